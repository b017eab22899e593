"""Published figures of the sources."""

from __future__ import annotations

import csv
from pathlib import Path

PAPER = Path(__file__).parent / "paper"

Row = dict[str, str | float | None]


def published(table: str) -> list[Row]:
    """Return the rows of a published table.

    Parameters
    ----------
    table : str
        ``table1``, ``table2``, ``lcs_table1`` or ``lcs_table2``: a file of ``experiments/claims/paper/``.

    Returns
    -------
    list of dict
        Rows; numeric cells are numbers, empty cells None.
    """
    with (PAPER / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return [{name: _value(cell) for name, cell in row.items()} for row in csv.DictReader(file)]


def _value(cell: str) -> str | float | None:
    try:
        return float(cell) if cell else None
    except ValueError:
        return cell
