"""Figures: tidy points in, svg and png and csv out; the only module that draws."""

from __future__ import annotations

import itertools
import logging
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from spotsigs.output_files import replacing, write_csv

logging.getLogger("fontTools").setLevel(logging.WARNING)  # it tells of each glyph that a PDF takes

STYLE = Path(__file__).with_name("paper.mplstyle")
HIGHEST_DENSITY = 12  # markers on a line
LETTERS_AN_INCH = 16  # of a caption
MOST_BANDS = 3  # lines whose intervals are drawn as bands


@dataclass(frozen=True, kw_only=True)
class Point:
    """One point of a line, one bar of a chart.

    Attributes
    ----------
    panel, series : str
        Where it is drawn and to which line it belongs.
    x, y : float
        Position.
    low, high : float or None
        95 % interval of y.
    """

    panel: str
    series: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A published value: a star where it stands, or a line across where only one coordinate is published.

    Attributes
    ----------
    label : str
        What is printed beside it.
    x, y : float or None
        None for a line along that axis.
    side : str
        Where the label of a star stands: ``right``, ``left`` or ``below``.
    """

    label: str
    x: float | None = None
    y: float | None = None
    side: str = "right"


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A pair of axes.

    Attributes
    ----------
    name : str
        The panel its points name; printed above if there are several.
    x_label, y_label : str
        With units.
    x_log, y_log : bool
        Logarithmic axes.
    y_range : list of float
        Lowest and highest y; free where empty.
    guides : list of float
        x positions of thin vertical lines.
    x_ticks : list of float
        Positions of the labels on the x axis; the library's choice where empty.
    marks : list of Mark
        Published values.
    """

    name: str
    x_label: str
    y_label: str
    x_log: bool = False
    y_log: bool = False
    y_range: Sequence[float] = ()
    guides: Sequence[float] = ()
    x_ticks: Sequence[float] = ()
    marks: Sequence[Mark] = ()


def write_points(path: Path, points: Sequence[Point]) -> None:
    """Write a figure's points as csv."""
    header = list(Point.__dataclass_fields__)
    write_csv(path, header, (list(asdict(point).values()) for point in points))


def draw_lines(path: Path, panels: Sequence[Panel], points: Sequence[Point], caption: str = "") -> None:
    """Draw lines with their intervals and write ``path`` as svg, png and csv.

    The legend names the series by the size of what they reach, the largest first.

    Parameters
    ----------
    path : Path
        Without suffix.
    panels : sequence of Panel
        From left to right.
    points : sequence of Point
        In the order of x within a series; a series looks alike in all panels.
    caption : str
        Printed above, within the picture.
    """

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        looks = _looks(points)
        for axis, panel in zip(axes, panels, strict=True):
            _prepare(axis, panel, len(panels))
            for number, (series, look) in enumerate(looks.items()):
                line = [p for p in points if p.panel == panel.name and p.series == series]
                _draw_line(axis, series, line, look, number / len(looks), len(looks) <= MOST_BANDS)
        _legend(figure, axes, points)

    _write(path, points, draw, caption, width=5.0 if len(panels) == 1 else 3.6 * len(panels))


def _legend(figure: Figure, axes: Sequence[Axes], points: Sequence[Point]) -> None:
    """Put one legend of all axes below them, by size, in the columns that fit the width."""
    known = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if len(known) < 2:
        return
    reached = {series: max(p.y for p in points if p.series == series) for series in known}
    handles = {series: known[series] for series in sorted(known, key=lambda series: -reached[series])}
    inches = 0.55 + 0.075 * max(map(len, handles))
    columns = max(1, min(len(handles), int(figure.get_figwidth() / inches)))
    rows = math.ceil(len(handles) / columns)
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=math.ceil(len(handles) / rows),
        handlelength=3.4,
    )


def draw_bars(path: Path, panels: Sequence[Panel], points: Sequence[Point], caption: str = "") -> None:
    """Draw bars with their intervals and write ``path`` as svg, png and csv; parameters as in `draw_lines`."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
        looks = _looks(points)
        for axis, panel in zip(axes, panels, strict=True):
            _prepare(axis, panel, len(panels))
            present = [name for name in looks if any(p.panel == panel.name and p.series == name for p in points)]
            for position, series in enumerate(present):
                bars = [p for p in points if p.panel == panel.name and p.series == series]
                width = 0.8 / len(present)
                x = [p.x + (position - (len(present) - 1) / 2) * width for p in bars]
                errors = (
                    None
                    if any(p.low is None for p in bars)
                    else [
                        [p.y - (p.low or 0.0) for p in bars],
                        [(p.high or 0.0) - p.y for p in bars],
                    ]
                )
                axis.bar(
                    x,
                    [p.y for p in bars],
                    width,
                    yerr=errors,
                    label=series,
                    color=looks[series]["color"],
                    edgecolor="black",
                    linewidth=0.3,
                    error_kw={"elinewidth": 0.8, "capsize": 1.5},
                )
            if len(present) > 1:
                axis.legend()

    _write(path, points, draw, caption, width=7.0, height=2.6 * len(panels))


def draw_histogram(path: Path, panel: Panel, edges: Sequence[float], counts: Sequence[int], caption: str = "") -> None:
    """Draw a histogram and write ``path`` as svg, png and csv, a point in the middle of each bin."""
    middles = [(a * b) ** 0.5 if panel.x_log else (a + b) / 2 for a, b in itertools.pairwise(edges)]
    points = [
        Point(panel=panel.name, series="pairs", x=float(x), y=float(y)) for x, y in zip(middles, counts, strict=True)
    ]

    def draw(figure: Figure) -> None:
        axis = figure.subplots()
        _prepare(axis, panel, 1)
        look = _looks(points)["pairs"]
        axis.stairs(counts, edges, fill=True, color=look["color"], alpha=0.6, baseline=0.5 if panel.y_log else 0)
        if panel.y_log:
            axis.set_ylim(bottom=0.5)

    _write(path, points, draw, caption, width=5.0)


def _looks(points: Sequence[Point]) -> dict[str, dict[str, Any]]:
    cycle = plt.rcParams["axes.prop_cycle"].by_key()
    names = list(dict.fromkeys(point.series for point in points))
    # after one round of colours each property goes on at another place, so that no two series look alike
    return {
        name: {
            look: values[(number + number // len(values) * step) % len(values)]
            for step, (look, values) in enumerate(cycle.items())
        }
        for number, name in enumerate(names)
    }


def _prepare(axis: Axes, panel: Panel, panels: int) -> None:
    axis.set_xlabel(panel.x_label)
    axis.set_ylabel(panel.y_label)
    if panels > 1:
        axis.set_title(panel.name)
    if panel.x_log:
        axis.set_xscale("log")
    if panel.y_log:
        axis.set_yscale("log")
    if len(panel.x_ticks):
        axis.set_xticks(list(panel.x_ticks), [f"{x:g}" for x in panel.x_ticks])
        axis.minorticks_off()
    if len(panel.y_range):
        axis.set_ylim(*panel.y_range)
    for x in panel.guides:
        axis.axvline(x, color="0.4", linewidth=0.8, linestyle=(0, (2, 2)))
    for mark in panel.marks:
        _draw_mark(axis, mark)


def _draw_mark(axis: Axes, mark: Mark) -> None:
    """Draw a published value, in the colour of the guides, and its label beside it."""
    look: dict[str, Any] = {"color": "0.35", "linewidth": 0.9, "linestyle": (0, (4, 2))}
    halo = [withStroke(linewidth=2, foreground="white")]
    text: dict[str, Any] = {"fontsize": 7, "color": "0.1", "textcoords": "offset points", "path_effects": halo}
    if mark.x is not None and mark.y is not None:
        axis.plot([mark.x], [mark.y], marker="*", markersize=9, color="black", linestyle="none")
        offset = {"right": (5, 4), "left": (-6, -2), "below": (5, -9)}[mark.side]
        axis.annotate(mark.label, (mark.x, mark.y), xytext=offset, ha="right" if offset[0] < 0 else "left", **text)
    elif mark.y is not None:
        axis.axhline(mark.y, **look)
        axis.annotate(mark.label, (1, mark.y), xycoords=("axes fraction", "data"), xytext=(-2, 3), ha="right", **text)
    elif mark.x is not None:
        axis.axvline(mark.x, **look)
        axis.annotate(mark.label, (mark.x, 0), xycoords=("data", "axes fraction"), xytext=(3, 4), **text)


def _draw_line(
    axis: Axes, series: str, line: Sequence[Point], look: dict[str, Any], shift: float, banded: bool
) -> None:
    """Draw one line; its markers stand ``shift`` of their spacing to the right, so that lines do not hide others'.

    Intervals are bands, or bars at the markers where many bands would lie on each other.
    """
    if not line:
        return
    every = max(1, math.ceil(len(line) / HIGHEST_DENSITY))
    at = slice(int(shift * every), None, every)
    axis.plot([p.x for p in line], [p.y for p in line], label=series, markevery=at, markerfacecolor="white", **look)
    known = [(p.x, p.low, p.high) for p in (line if banded else line[at]) if p.low is not None and p.high is not None]
    x, low, high = ([ends[k] for ends in known] for k in range(3))
    if banded:
        axis.fill_between(x, low, high, color=look["color"], alpha=0.15, linewidth=0)
    else:
        axis.vlines(x, low, high, color=look["color"], linewidth=0.8, alpha=0.7)


KINDS = {"svg": ("Date", "Creator"), "png": ("Software",), "pdf": ("CreationDate", "Creator", "Producer")}
"""Forms of a figure, and what each would say of when and by what it was drawn."""


def _write(
    path: Path,
    points: Sequence[Point],
    draw: Callable[[Figure], None],
    caption: str,
    *,
    width: float,
    height: float = 3.4,
) -> None:
    """Draw in the project's style; the same bytes for the same points and library versions."""
    write_points(path.with_suffix(".csv"), points)
    with plt.style.context(STYLE):
        lines = textwrap.wrap(caption, int(width * LETTERS_AN_INCH))
        figure = plt.figure(figsize=(width, height + 0.16 * len(lines)))
        try:
            draw(figure)
            if lines:
                figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=8)
            for kind, unsaid in KINDS.items():
                with replacing(path.with_suffix(f".{kind}")) as temporary:
                    figure.savefig(temporary, format=kind, metadata=dict.fromkeys(unsaid))
        finally:
            plt.close(figure)
