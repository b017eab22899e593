"""Facts: named measured values, written by experiments and read by the claims ledger."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spotsigs.reports.output_files import write_csv


@dataclass(frozen=True, kw_only=True)
class Fact:
    """Measured value."""

    name: str  # name, unique within the experiment
    value: float  # value; 1 or 0 for true or false
    # 95 % interval, if there is one
    low: float | None = None
    high: float | None = None
    text: str = ""  # text to print instead of the number
    over: str = ""  # meaning of the ends if they are no interval: "runs" for the range over several runs

    @property
    def interval(self) -> tuple[float, float]:
        """Interval, or the value twice."""
        return (self.value if self.low is None else self.low, self.value if self.high is None else self.high)

    def __str__(self) -> str:
        number = self.text or _number(self.value)
        if self.low is None or self.high is None or (self.over and self.low == self.high):
            return number
        over = f" over {self.over}" if self.over else ""
        return f"{number} ({_number(self.low)} to {_number(self.high)}{over})"


def write_facts(path: Path, facts: Sequence[Fact]) -> None:
    """Write facts as csv, without rounding."""
    write_csv(
        path, list(Fact.__dataclass_fields__), ([f.name, float(f.value), f.low, f.high, f.text, f.over] for f in facts)
    )


def read_facts(path: Path) -> dict[str, Fact]:
    """Return the facts of a file by name; none if the file does not exist."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    for row in rows:
        row |= {"value": float(row["value"])} | {end: float(row[end]) if row[end] else None for end in ("low", "high")}
    return {row["name"]: Fact(**row) for row in rows}


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1000 else f"{value:.3g}"
