"""Published figures of the sources."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PAPER = Path(__file__).parent / "paper"

Row = dict[str, Any]

METHODS = {
    ("spotsigs", "spotsigs"): "SpotSigs",
    ("shingles1", "spotsigs"): "1-Shingles",
    ("shingles3", "spotsigs"): "3-Shingles",
    ("spotsigs", "lsh"): "LSH-S",
    ("shingles1", "imatch"): "I-Match",
    ("spotsigs", "imatch"): "I-Match-S",
    ("", "spotsigs"): "SpotSigs",
    ("", "lsh"): "LSH-S",
    ("", "imatch"): "I-Match-S",
}
"""Methods of the published tables by signature and matcher; the vectors of Table 2 have no signature."""

KEYS = {"spots": "signatures", "mb": "memory_mib"}
"""Columns of the published tables that ``metrics.json`` names otherwise."""

READ = (
    *("data", "data.seed", "data.cache", "signature", "matcher", "tau", "idf_min", "idf_max"),
    *("keep", "engine", "workers", "threads", "seed", "timing", "debug"),
)
"""Keys that a run of a published row may override; all others make it another method or collection."""


def published(table: str) -> list[Row]:
    """Return the rows of a published table, a file of ``experiments/claims/paper/``; empty cells are None."""
    with (PAPER / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return [{name: _value(cell) for name, cell in row.items()} for row in csv.DictReader(file)]


def published_row(metrics: Mapping[str, Any], overrides: Iterable[str]) -> Row | None:
    """Return the published row of the method, collection, band and threshold of a run.

    A run is given by its figures, see `spotsigs.runs.result.Result.described`, and by the overrides of its command. The
    row has the keys of the figures.
    """
    kind = "table1" if metrics["data"] == "gold" else "table2"
    if metrics["data"] not in ("gold", "wt10g_scale") or any(_key(word) not in READ for word in overrides):
        return None
    signature = metrics["signature"] if kind == "table1" else ""
    method = METHODS.get((signature, metrics["matcher"]))
    band = metrics["idf_min"], metrics["idf_max"]
    for row in published(kind):
        same_band = kind == "table2" or (row["idf_min"], row["idf_max"]) == band  # vectors are filtered already
        if row["method"] == method and row["tau"] == metrics["tau"] and same_band:
            return {KEYS.get(name, name): value for name, value in row.items()}
    return None


def _key(override: str) -> str:
    return override.lstrip("+").partition("=")[0]


def _value(cell: str) -> str | float | None:
    try:
        return float(cell) if cell else None
    except ValueError:
        return cell
