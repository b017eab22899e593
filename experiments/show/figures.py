"""Figures: tidy points in, svg and png and csv out; the only module that draws."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib import rcParams, style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from spotsigs.reports.output_files import replacing, write_csv

logging.getLogger("fontTools").setLevel(logging.WARNING)  # it logs each glyph of a PDF

STYLE = Path(__file__).with_name("paper.mplstyle")
HIGHEST_DENSITY = 12  # markers on a line
MOST_BANDS = 3  # lines whose intervals are drawn as bands
MOST_TICKS = 6  # intervals between labels of an axis, which must not overlap


@dataclass(frozen=True, kw_only=True)
class Point:
    """One point of a line, one bar of a chart."""

    # Where it is drawn and to which line it belongs
    panel: str
    series: str
    # Position
    x: float
    y: float
    # 95 % intervals of y and of x; in a figure of dots, `low` and `high` are the interval of x
    low: float | None = None
    high: float | None = None
    x_low: float | None = None
    x_high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Published value: a star, or a line across the panel if only one coordinate is published."""

    label: str  # text next to it
    # Position; None for a line along that axis
    x: float | None = None
    y: float | None = None
    series: str = ""  # row of a star in a figure of dots, instead of y
    # Position of a star's label: ``right``, ``left``, ``below`` or ``above``. The label of a horizontal line is at
    # its right end, or at its left one.
    side: str = "right"


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Pair of axes."""

    name: str  # name that its points refer to; printed above if there are several panels
    # Labels of the axes, with units
    x_label: str
    y_label: str
    # Logarithmic axes. A number is the end of a linear part that begins at 0, for fractions that may be 0.
    x_log: bool | float = False
    y_log: bool | float = False
    # Ends of the axes; free if empty
    x_range: Sequence[float] = ()
    y_range: Sequence[float] = ()
    x_ticks: Sequence[float] = ()  # positions of the labels on the x axis; the library's choice if empty
    y_ticks: Sequence[float] = ()  # as `x_ticks`, for the y axis
    marks: Sequence[Mark] = ()  # published values
    apart: float = 0  # distance by which neighbouring lines are shifted along x so that their intervals do not overlap


def draw_lines(
    path: Path,
    panels: Sequence[Panel],
    points: Sequence[Point],
    columns: int | None = None,
    computed: Sequence[str] = (),
    size: tuple[float, float] = (3.6, 3.4),
) -> None:
    """Draw lines with their intervals and write ``path`` as svg, png, pdf and csv.

    Parameters
    ----------
    path : Path
        Path without suffix.
    panels : sequence of Panel
        From left to right.
    points : sequence of Point
        In the order of x within a series; a series looks alike in all panels. The legend has the order of the series.
    columns : int, optional
        Panels in a row; all of them if omitted.
    computed : sequence of str
        Series that are computed, not measured: they have no markers.
    size : tuple of float
        Width and height of a panel in inches.
    """
    across = min(columns or len(panels), len(panels))
    down = math.ceil(len(panels) / across)

    def draw(figure: Figure) -> None:
        axes = figure.subplots(down, across, squeeze=False).ravel()
        looks = _looks(points)
        for series in (name for name in computed if name in looks):
            looks[series] |= {"marker": "None", "linewidth": 1.0}
        most = Counter((point.series, point.panel) for point in points)
        if max(most.values(), default=0) == 1:  # points, which the legend shows without a line
            looks = {series: look | {"linestyle": "none"} for series, look in looks.items()}
        for axis, panel in zip(axes, panels, strict=False):
            _prepare(axis, panel, len(panels))
            for number, (series, look) in enumerate(looks.items()):
                line = [p for p in points if p.panel == panel.name and p.series == series]
                shift = (number - (len(looks) - 1) / 2) * panel.apart
                line = [replace(p, x=p.x + shift) for p in line] if shift else line
                _draw_line(axis, series, line, look, number / len(looks), len(looks) <= MOST_BANDS and not panel.apart)
        for axis in axes[len(panels) :]:
            axis.remove()
        _legend(figure, list(axes))

    width = 5.0 if across == 1 else size[0] * across
    _write(path, points, draw, width=width, height=size[1] * down + 0.3 * (down > 1))


def _legend(figure: Figure, axes: Sequence[Axes]) -> None:
    known = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if len(known) < 2:
        return
    inches = 0.55 + 0.075 * max(map(len, known))
    columns = max(1, min(len(known), int(figure.get_figwidth() / inches)))
    rows = math.ceil(len(known) / columns)
    figure.legend(
        known.values(), known.keys(), loc="outside lower center", ncols=math.ceil(len(known) / rows), handlelength=3.4
    )


def draw_dots(path: Path, panels: Sequence[Panel], points: Sequence[Point]) -> None:
    """Draw a row for each series with its x and interval; parameters and files as in `draw_lines`."""
    names = list(dict.fromkeys(point.series for point in points))

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, len(panels), squeeze=False, sharey=True).ravel()
        for axis, panel in zip(axes, panels, strict=True):
            rows = {name: row for row, name in enumerate(names)}
            marks = [replace(mark, y=rows[mark.series]) if mark.series else mark for mark in panel.marks]
            _prepare(axis, replace(panel, marks=marks), len(panels))
            for point in (point for point in points if point.panel == panel.name):
                _draw_dot(axis, point, rows[point.series])
            axis.set_yticks(range(len(names)), names)
        axes[0].set_ylim(len(names) - 0.4, -0.6)

    width = 3.2 * len(panels) + 0.07 * max(map(len, names), default=0)
    _write(path, points, draw, width=width, height=0.9 + 0.32 * len(names))


def _draw_dot(axis: Axes, point: Point, row: int) -> None:
    color = rcParams["axes.prop_cycle"].by_key()["color"][0]
    if point.low is not None and point.high is not None:
        axis.hlines(row, point.low, point.high, color=color, linewidth=1.2)
    axis.plot([point.x], [row], marker="o", color=color, linestyle="none")
    halo = [withStroke(linewidth=2, foreground="white")]
    text: dict[str, Any] = {"fontsize": 7, "textcoords": "offset points", "va": "bottom", "ha": "center"}
    text |= {"path_effects": halo, "zorder": 6}
    axis.annotate(f"{point.x:.3f}".replace("0.", ".", 1).replace("-", "−"), (point.x, row), xytext=(0, 3), **text)


def draw_bars(path: Path, panel: Panel, points: Sequence[Point]) -> None:
    """Draw bars; parameters and files as in `draw_lines`."""

    def draw(figure: Figure) -> None:
        axis = figure.subplots()
        _prepare(axis, panel, 1)
        color = rcParams["axes.prop_cycle"].by_key()["color"][0]
        axis.bar([p.x for p in points], [p.y for p in points], 0.8, color=color, edgecolor="black", linewidth=0.3)

    _write(path, points, draw, width=7.0, height=2.6)


def _looks(points: Sequence[Point]) -> dict[str, dict[str, Any]]:
    cycle = sorted(rcParams["axes.prop_cycle"].by_key().items())  # its keys are a set
    names = list(dict.fromkeys(point.series for point in points))
    # after one round of colours each property is shifted, so that no two series look alike
    return {
        name: {
            look: values[(number + number // len(values) * step) % len(values)]
            for step, (look, values) in enumerate(cycle)
        }
        for number, name in enumerate(names)
    }


def _prepare(axis: Axes, panel: Panel, panels: int) -> None:
    axis.set_xlabel(panel.x_label)
    axis.set_ylabel(panel.y_label)
    if panels > 1:
        axis.set_title(panel.name)
    _set_scale(axis, panel)
    if len(panel.x_ticks):
        axis.set_xticks(list(panel.x_ticks), [f"{x:g}" for x in panel.x_ticks])
        axis.minorticks_off()
    if len(panel.y_ticks):
        axis.set_yticks(list(panel.y_ticks), [f"{y:g}" for y in panel.y_ticks])
        axis.minorticks_off()
    if len(panel.x_range):
        axis.set_xlim(*panel.x_range)
    if len(panel.y_range):
        axis.set_ylim(*panel.y_range)
    for mark in panel.marks:
        _draw_mark(axis, mark)


def _set_scale(axis: Axes, panel: Panel) -> None:
    """Set logarithmic axes; axes of fractions that may be 0 end beyond 1, so that no marker is cut off."""
    for along, log in ((axis.xaxis, panel.x_log), (axis.yaxis, panel.y_log)):
        name = along.axis_name
        if not log:
            along.set_major_locator(MaxNLocator(MOST_TICKS, steps=[1, 2, 2.5, 5, 10]))
        if log is True:
            axis.set(**{f"{name}scale": "log"})
        elif log:
            getattr(axis, f"set_{name}scale")("symlog", linthresh=log)
            ticks = [0, *(10.0**power for power in range(round(math.log10(log)), 1))]
            along.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
            getattr(axis, f"set_{name}lim")(-0.2 * log, 1.6)


def _draw_mark(axis: Axes, mark: Mark) -> None:
    look: dict[str, Any] = {"color": "0.35", "linewidth": 0.9, "linestyle": (0, (4, 2))}
    halo = [withStroke(linewidth=2, foreground="white")]
    text: dict[str, Any] = {"fontsize": 7, "color": "0.1", "textcoords": "offset points", "path_effects": halo}
    text["zorder"] = 6  # above the lines
    if mark.x is not None and mark.y is not None:
        axis.plot([mark.x], [mark.y], marker="*", markersize=9, color="black", linestyle="none", zorder=5)
        offset = {"right": (5, 4), "left": (-6, -2), "below": (5, -9), "above": (-6, 12)}[mark.side]
        axis.annotate(mark.label, (mark.x, mark.y), xytext=offset, ha="right" if offset[0] < 0 else "left", **text)
    elif mark.y is not None:
        axis.axhline(mark.y, **look)
        end, offset = (0, (2, -9)) if mark.side == "left" else (1, (-8, 3))
        ha = "right" if end else "left"
        axis.annotate(mark.label, (end, mark.y), xycoords=("axes fraction", "data"), xytext=offset, ha=ha, **text)
    elif mark.x is not None:
        axis.axvline(mark.x, **look)
        axis.annotate(mark.label, (mark.x, 0), xycoords=("data", "axes fraction"), xytext=(3, 4), **text)


def _draw_line(
    axis: Axes, series: str, line: Sequence[Point], look: dict[str, Any], shift: float, banded: bool
) -> None:
    """Draw one line; markers are shifted by ``shift`` of their spacing, so that lines do not hide each other's.

    Intervals are bands, or bars at the markers where many bands would overlap.
    """
    if not line:
        return
    every = max(1, math.ceil(len(line) / HIGHEST_DENSITY))
    at = slice(int(shift * every), None, every)
    axis.plot([p.x for p in line], [p.y for p in line], label=series, markevery=at, markerfacecolor="white", **look)
    known = [(p.x, p.low, p.high) for p in (line if banded else line[at]) if p.low is not None and p.high is not None]
    x, low, high = ([ends[k] for ends in known] for k in range(3))
    thin: dict[str, Any] = {"color": look["color"], "linewidth": 0.8, "alpha": 0.7}
    if banded:
        axis.fill_between(x, low, high, color=look["color"], alpha=0.15, linewidth=0)
    else:
        axis.vlines(x, low, high, **thin)
    for p in line:
        if p.x_low is not None and p.x_high is not None:
            axis.hlines(p.y, p.x_low, p.x_high, **thin)


KINDS = {"svg": ("Date", "Creator"), "png": ("Software",), "pdf": ("CreationDate", "Creator", "Producer")}
"""Formats of a figure, and the metadata about time and program that each omits."""


def _write(path: Path, points: Sequence[Point], draw: Callable[[Figure], None], *, width: float, height: float) -> None:
    """Draw in the project's style; the same bytes for the same points and library versions."""
    rows = [asdict(point) for point in points]
    header = [
        n for n in Point.__dataclass_fields__ if not n.startswith("x_") or any(row[n] is not None for row in rows)
    ]
    write_csv(path.with_suffix(".csv"), header, ([row[name] for name in header] for row in rows))
    with style.context(STYLE):
        figure = Figure(figsize=(width, height), dpi=rcParams["savefig.dpi"])
        draw(figure)
        ConstrainedLayoutEngine().execute(figure)  # once: a figure with this layout repeats it for each format
        for kind, omitted in KINDS.items():
            with replacing(path.with_suffix(f".{kind}")) as temporary:
                figure.savefig(temporary, format=kind, metadata=dict.fromkeys(omitted))
