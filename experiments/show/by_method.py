"""Figures of cells over the threshold, a panel for each method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.show.figures import Mark, Panel, Point, draw_lines


def draw_by_method(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    lines: Mapping[str, str],
    *,
    marks: Mapping[str, Sequence[Mark]] | None = None,
    beside: str = "",
) -> None:
    """Draw columns of rows over ``tau``, a panel for each ``method``, in the order of their best F1.

    A row without a threshold is a level line. The names of columns are given by the titles of their lines, the
    published values by method; the F1 of the method `beside` is in the panels of all others, too.
    """
    taus = sorted({row["tau"] for row in rows} - {None}) or [0.0, 1.0]
    methods: dict[str, list[Mapping[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["tau"] or 0):
        methods.setdefault(row["method"], []).append(row)
    order = sorted(methods, key=lambda name: -max(finite(row["f1"]) for row in methods[name]))
    other = f"F1 of {beside}"
    of_panels = [(name, name, title, key) for name in order for title, key in lines.items()]
    of_panels += [(name, beside, other, "f1") for name in order if beside not in ("", name)]
    points = [
        Point(panel=panel, series=series, x=tau, y=finite(row[key]), low=low, high=high)
        for panel, name, series, key in of_panels
        for row in methods[name]
        for low, high in [interval_of(row, key) if key == "f1" and series != other else (None, None)]
        for tau in (taus if row["tau"] is None else [row["tau"]])
        if key == "f1" or (row[key] is not None and not math.isnan(row[key]))
    ]
    ticks = taus if len(taus) < 6 else ()
    panels = [
        Panel(
            name=name, x_label="τ", y_label="", y_range=(-0.02, 1.05), x_ticks=ticks, marks=(marks or {}).get(name, ())
        )
        for name in order
    ]
    across = min(len(panels), 3 if len(panels) <= 9 else 5)
    draw_lines(path, panels, points, columns=across, size=(2.7, 2.1), computed=[other])


def interval_of(row: Mapping[str, Any], key: str) -> tuple[float | None, float | None]:
    """Return the ends of the interval of a figure of a row; None where it has none."""
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    return (None if low is None else finite(low)), (None if high is None else finite(high))


def finite(value: Any) -> float:
    """Return a figure, or 0 if it is undefined (no pair was reported)."""
    return 0.0 if value is None or math.isnan(value) else float(value)
