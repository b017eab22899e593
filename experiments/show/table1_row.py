"""The row of a run in the columns of the paper's Table 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.show.tables import QUALITY, Column, band_text
from spotsigs.method import Method

ROW = {
    "IDF": ("idf", ""), "tau": ("tau", "g"), "k": ("k", "g"), "l": ("l", "g"), "#Spots": ("signatures", ",.0f"),
    "MB": ("memory_mib", ".1f"), "Sort/Hash(msec)": ("sort_hash_ms", ",.0f"), "Clust.(msec)": ("cluster_ms", ",.0f"),
    "Total(msec)": ("total_ms", ",.0f"), "Prec.": ("precision", ".3f"), "Rec.": ("recall", ".3f"), "F1": ("f1", ".3f"),
}  # fmt: skip
"""Columns by title: the key of ``metrics.json`` and the format of numbers."""


def printed_row(metrics: Mapping[str, Any], method: Method, published: Mapping[str, Any] | None) -> str:
    """Return the row of a run for a terminal, after the published row of the same method if there is one."""
    plain = "spotsigs" in metrics["matcher"] and metrics["signature"] == "spotsigs"
    plain |= method.matcher.reads_texts
    name = metrics["label"] if plain else f"{metrics['label']} on {metrics['signature']}"
    rows = {name: metrics} if published is None else {f"{name}, published": published, f"{name}, measured": metrics}
    columns = [
        Column(name=key, title=title, form=form)
        for title, (key, form) in ROW.items()
        if metrics["f1"] is not None or key not in QUALITY
    ]
    cells = [["", *(column.title for column in columns)]]
    for label, row in rows.items():
        shown = {**row, "idf": band_text(row["idf_min"], row["idf_max"])}
        cells.append([label, *(column.printed(shown) for column in columns)])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)
