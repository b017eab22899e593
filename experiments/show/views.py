"""Figures of cells, by what is on the axes and what makes a line and a panel."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.show.figures import Mark, Panel, Point, draw_dots, draw_lines


@dataclass(frozen=True, kw_only=True)
class View:
    """A figure of rows of cells.

    Attributes
    ----------
    caption : str
        Caption; the names of the collections follow.
    marked : str
        Sentence on the published values, if one of them is drawn.
    x : str
        Column on the x axis.
    y : dict of str to str
        Columns on the y axis by title; each is a line of its own.
    series, panel : str
        Formats of the names of lines and panels, of the columns of a row and ``measure``, the title of y.
    dots : bool
        Draw a line of text for each series, with a dot at x of its best threshold and the interval, instead of lines.
    grid : dict of str to list
        Groups and keys, and the values at which all methods run for this figure.
    axes : dict of str to object
        Attributes of `Panel`, the same for all.
    marks : dict of str to list of dict
        Published values, attributes of `Mark`, by panel.
    columns : int or None
        Panels in a row; None: all.
    omitted : list of str
        Collections that are not drawn if there are others.
    """

    caption: str = ""
    marked: str = ""
    x: str = "tau"
    y: dict[str, str] = field(default_factory=lambda: {"F1": "f1"})
    series: str = "{of}"
    panel: str = "{collection}"
    dots: bool = False
    grid: dict[str, list[Any]] = field(default_factory=dict)
    axes: dict[str, Any] = field(default_factory=dict)
    marks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    columns: int | None = None
    omitted: list[str] = field(default_factory=list)

    def drawn(self, rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Return the rows that the figure has."""
        return [row for row in rows if row["collection"] not in self.omitted] or rows

    def points(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[Point]:
        """Yield the points of rows that have a value of x."""
        for row in rows:
            for title, key in self.y.items():
                if row[self.x] is None:
                    continue
                names, of = {**row, "measure": title}, self.x if self.dots else key
                low, high = _interval(row, of)
                x_low, x_high = (None, None) if self.dots else _interval(row, self.x)
                yield Point(
                    panel=self.panel.format(**names),
                    series=self.series.format(**names),
                    x=finite(row[self.x]),
                    y=0 if self.dots else finite(row[key]),
                    low=low,
                    high=high,
                    x_low=x_low,
                    x_high=x_high,
                )

    def draw(self, path: Path, rows: Sequence[Mapping[str, Any]], caption: str) -> None:
        """Draw rows and write the files of a figure."""
        points = list(self.points(rows))
        panels = [
            Panel(name=name, marks=[Mark(**mark) for mark in self.marks.get(name, [])], **self.axes)
            for name in dict.fromkeys(point.panel for point in points)
        ]
        if self.dots:
            draw_dots(path, panels, points, caption)
        else:
            draw_lines(path, panels, points, caption, columns=self.columns)

    def full_caption(self, rows: Sequence[Mapping[str, Any]]) -> str:
        """Return the caption with the sentence on published values that are drawn, and the collections."""
        marked = any(point.panel in self.marks for point in self.points(rows))
        *others, last = dict.fromkeys(str(row["collection"]) for row in rows)
        collections = f"{', '.join(others)} and {last}" if others else last
        return "; ".join([self.caption, *([self.marked] if marked and self.marked else []), collections])


def draw_by_method(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    lines: Mapping[str, str],
    caption: str,
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
        for low, high in [_interval(row, key) if key == "f1" and series != other else (None, None)]
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
    draw_lines(path, panels, points, caption, columns=across, size=(2.7, 2.1), computed=[other])


def _interval(row: Mapping[str, Any], key: str) -> tuple[float | None, float | None]:
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    return (None if low is None else finite(low)), (None if high is None else finite(high))


def finite(value: Any) -> float:
    """Return a figure, or 0 if it is undefined (no pair was reported)."""
    return 0.0 if value is None or math.isnan(value) else float(value)
