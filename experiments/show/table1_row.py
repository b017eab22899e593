"""The row of a run in the columns of the paper's Table 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spotsigs.method import Method

ROW = {
    "IDF": ("idf", ""), "tau": ("tau", "g"), "k": ("k", "g"), "l": ("l", "g"), "#Spots": ("signatures", ",.0f"),
    "MB": ("memory_mib", ".1f"), "Sort/Hash(msec)": ("sort_hash_ms", ",.0f"), "Clust.(msec)": ("cluster_ms", ",.0f"),
    "Total(msec)": ("total_ms", ",.0f"), "Prec.": ("precision", ".3f"), "Rec.": ("recall", ".3f"), "F1": ("f1", ".3f"),
}  # fmt: skip
"""Columns by title: the key of ``metrics.json`` and the format of numbers."""

QUALITY = ("precision", "recall", "f1")
"""Keys that a collection without truth lacks."""


def printed_row(metrics: Mapping[str, Any], method: Method, published: Mapping[str, Any] | None) -> str:
    """Return the row of a run for a terminal, after the published row of the same method if there is one."""
    own = "spotsigs" in metrics["matcher"] and metrics["signature"] == "spotsigs"
    own |= method.matcher.reads_texts
    name = metrics["label"] if own else f"{metrics['label']} on {metrics['signature']}"
    rows = {name: metrics} if published is None else {f"{name}, published": published, f"{name}, measured": metrics}
    titles = [title for title, (key, _) in ROW.items() if metrics["f1"] is not None or key not in QUALITY]
    cells = [["", *titles], *([label, *(row_cell(row, title) for title in titles)] for label, row in rows.items())]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def row_cell(row: Mapping[str, Any], title: str) -> str:
    """Return the cell of a column, by the keys of ``metrics.json``."""
    key, form = ROW[title]
    if key == "idf":
        return f"[{row['idf_min']:g}, {row['idf_max']:g}]"
    value = row.get(key)
    if value is None or value != value:
        return "n/a"
    return format(value, form) if isinstance(value, (int, float)) else str(value)
