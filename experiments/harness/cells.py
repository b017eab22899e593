"""Cells, the rows that all tables and figures are views of: one method on one collection at one threshold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Cell = dict[str, Any]
"""A row: figures by the keys of ``metrics.json``, an end of an interval by the key of its figure, as ``f1_low``."""

FIRST = ("collection", "method", "tau", "program", "idf_min", "idf_max")
"""First columns of the table of cells."""


def cell_of(
    metrics: Mapping[str, Any], *, label: str = "", seed: int, commit: str | None, contended: bool = False
) -> Cell:
    """Return a cell.

    Parameters
    ----------
    metrics : mapping
        `spotsigs.runs.result.Result.described`, or the same figures from ``metrics.json``.
    label : str
        Name of the method in tables; by default all that it is typed by, which is also in the column ``typed``.
    seed, commit
        Seed of the run, and the commit of its code.
    contended : bool
        Other tasks ran at the same time, so that times do not compare.

    Returns
    -------
    dict
        ``collection``; ``method``, the label; ``program``, the label of the matcher that ran; ``idf_min`` and
        ``idf_max``, the band that was applied; all other figures. Counters and seconds of stages are JSON.
    """
    given = dict(metrics)
    intervals = given.pop("intervals") or {}
    named = {"collection": given.pop("data"), "typed": given.pop("method"), "program": given.pop("label")}
    ends = {
        f"{name}_{end}": value
        for name, interval in intervals.items()
        for end, value in zip(("low", "high"), interval, strict=True)
    }
    plain = {
        key: json.dumps(value, sort_keys=True) if isinstance(value, dict) else value for key, value in given.items()
    }
    values = plain | ends | named | {"method": label or named["typed"], "peak_mb": given["peak_mb"] or None}
    values |= {"seed": seed, "commit": commit, "contended": contended}
    return {key: values[key] for key in dict.fromkeys((*FIRST, *values))}
