"""Views of cells, declared in the YAML of a study: figures by what is on their axes, tables by columns, and facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from experiments.claims.facts import Fact
from experiments.harness.timing import quotient
from experiments.show.by_method import finite, interval_of
from experiments.show.figures import Mark, Panel, Point, draw_bars, draw_dots, draw_lines
from experiments.show.tables import TIMES, TITLES, Column, titled
from spotsigs.errors import require

Row = Mapping[str, Any]
"""A cell with the columns that a study adds."""

LOWEST, HIGHEST = "lowest", "highest"
"""Values of a column in `FactView.of`: the lowest and the highest of the rows that have the other values."""

DOTS, BARS = "dots", "bars"

SHARED = ("collection", "data_seed", "of", "panel", "tau", "threads", "l")
"""Columns in which the two rows of a ratio agree unless `FactView.over` has them."""

SHAPES = "lines", DOTS, BARS
"""Shapes of a figure."""

FIRST_HIDDEN = ("difference", "difference_low", "difference_high", "p", "p_holm", "contended", "program", "typed")
"""First columns of a table that the csv alone has."""


def columns_of(shown: Sequence[str], rows: Sequence[Row]) -> list[Column]:
    """Return the columns of a table: those that are shown, and all others of the rows for the csv alone."""
    unknown = [name for name in shown if name not in TITLES]
    require(not unknown, f"a table has no column {', '.join(unknown)}; there are {', '.join(TITLES)}")
    rest = dict.fromkeys([*FIRST_HIDDEN, *(key for row in rows for key in row)])
    hidden = (name for name in rest if name not in shown and any(name in row for row in rows))
    return titled(*shown) + [Column(name=name) for name in hidden]


@dataclass(frozen=True, kw_only=True)
class FactView:
    """Facts of the rows of a study: a figure, its mean over other rows, or its ratio to the figure of another row.

    The name of a fact is a format of the columns of its row. A ratio of times is left out if other processes were
    active, and is a lower bound if its first run was stopped, see `experiments.harness.timing.quotient`.
    """

    # Values of columns of the rows: one value, a list of values, `LOWEST` or `HIGHEST`.
    of: dict[str, Any] = field(default_factory=dict)
    column: str = "total_ms"  # figure
    # Columns in which the other row of a ratio differs, with its values; None: no ratio.
    over: dict[str, Any] | None = None
    inverse: bool = False  # divide the other row by this one
    per: str = ""  # column of the row that divides the value
    mean: str = ""  # column over whose values the rows are averaged; their range is the interval
    into: str = ""  # column of the row that receives the value, for tables and figures
    same: bool = False  # the only fact is whether all rows have the same value
    # The only fact is where values reach ``at_least`` for good: the lowest ``column`` from which on they do, else
    # ``value``, which is printed as ``text``.
    reached: dict[str, Any] = field(default_factory=dict)

    def facts(self, name: str, rows: Sequence[dict[str, Any]]) -> Iterator[Fact]:
        """Yield the facts of rows, which receive the column `into`."""
        values = [(row, self._value(name, row, rows)) for row in self._chosen(rows) if self._is_comparable(row, rows)]
        for row, fact in values if self.into else ():
            if fact is not None and not fact.text:
                row |= {self.into: fact.value, f"{self.into}_low": fact.low, f"{self.into}_high": fact.high}
        known = [(row, fact) for row, fact in values if fact is not None]
        if self.same:
            if len(known) > 1:
                yield Fact(name=name, value=len({fact.value for _, fact in known}) == 1)
        elif self.reached:
            if known and len(known) == len(values):
                yield self._reached(name, self._averaged(known))
        else:
            for row, fact in self._averaged(known):
                if self.over is None or self._other(row, rows) is not row:
                    yield replace(fact, name=name.format(**row))

    def _chosen(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        chosen = list(rows)
        for key, value in sorted(self.of.items(), key=lambda item: item[1] in (LOWEST, HIGHEST)):
            of_key = [row.get(key) for row in chosen]
            if value in (LOWEST, HIGHEST):
                known = [each for each in of_key if each is not None]
                wanted = [(min if value == LOWEST else max)(known)] if known else []
            else:
                wanted = value if isinstance(value, list) else [value]
            chosen = [row for row, each in zip(chosen, of_key, strict=True) if each in wanted]
        return chosen

    def _other(self, row: Row, rows: Sequence[Row]) -> Row | None:
        wanted = {key: row.get(key) for key in SHARED} | (self.over or {})
        return next((one for one in rows if all(one.get(key) == value for key, value in wanted.items())), None)

    def _is_comparable(self, row: Row, rows: Sequence[Row]) -> bool:
        """Return whether the row that divides this one was measured to its end."""
        other = None if self.over is None else row if self.inverse else self._other(row, rows)
        return self.over is None or (other is not None and not other.get("over_s"))

    def _value(self, name: str, row: Row, rows: Sequence[Row]) -> Fact | None:
        if self.over is None:
            value = row.get(self.column)
            fact = None if value is None else Fact(name=name, value=float(value))
        else:
            other = self._other(row, rows)
            fact = None if other is None else self._ratio(name, row, other)
        if fact is None or not self.per:
            return fact
        by = max(row[self.per], 1)
        low, high = (end if end is None else end / by for end in (fact.low, fact.high))
        return replace(fact, value=fact.value / by, low=low, high=high)

    def _ratio(self, name: str, row: Row, other: Row) -> Fact | None:
        one, two = (other, row) if self.inverse else (row, other)
        if self.column in TIMES:
            return quotient(name, dict(one), dict(two), self.column)
        above, below = one.get(self.column), two.get(self.column)
        return Fact(name=name, value=above / below) if above is not None and below else None

    def _averaged(self, known: Sequence[tuple[dict[str, Any], Fact]]) -> list[tuple[dict[str, Any], Fact]]:
        if not self.mean:
            return list(known)
        groups: dict[tuple[Any, ...], list[tuple[dict[str, Any], Fact]]] = {}
        for row, fact in known:
            key = tuple(row.get(name) for name in SHARED if name != self.mean)
            groups.setdefault(key, []).append((row, fact))
        averaged = []
        for (first, fact), *more in groups.values():
            values = [fact.value, *(each.value for _, each in more)]
            mean = sum(values) / len(values)
            averaged.append((first, replace(fact, value=mean, low=min(values), high=max(values))))
        return averaged

    def _reached(self, name: str, known: Sequence[tuple[Row, Fact]]) -> Fact:
        column, least = self.reached["column"], self.reached["at_least"]
        below = [row[column] for row, fact in known if fact.value < least]
        enough = [row[column] for row, _ in known if not below or row[column] > max(below)]
        if enough:
            return Fact(name=name, value=min(enough))
        return Fact(name=name, value=self.reached["value"], text=self.reached["text"])


def facts_of(declared: Mapping[str, Mapping[str, Any]], rows: Sequence[dict[str, Any]]) -> list[Fact]:
    """Return the facts of rows by the names and attributes of `FactView`."""
    return [fact for name, attributes in declared.items() for fact in FactView(**attributes).facts(name, rows)]


@dataclass(frozen=True, kw_only=True)
class View:
    """A figure of rows of cells."""

    caption: str = ""  # the names of the collections follow it
    marked: str = ""  # sentence on the published values, if one of them is drawn
    x: str = "tau"  # column on the x axis
    # Columns on the y axis by title; each is a line of its own.
    y: dict[str, str] = field(default_factory=lambda: {"F1": "f1"})
    # Formats of the names of lines and panels, of the columns of a row and ``measure``, the title of y.
    series: str = "{of}"
    panel: str = "{collection}"
    # ``lines``; ``dots``: a line of text for each series, with a dot at x of its best threshold and the interval; or
    # ``bars`` of a single panel.
    shape: str = "lines"
    # Groups and keys, and the values at which all methods run for this figure.
    grid: dict[str, list[Any]] = field(default_factory=dict)
    # Attributes of `Panel`, the same for all; ``of`` has attributes of single panels by their name, and ``columns`` the
    # number of panels in a row, by default all.
    axes: dict[str, Any] = field(default_factory=dict)
    # ``mean``, the column over whose values the rows of a line are averaged, whose range the bars are then; and
    # ``computed``, the names of lines that are not measured, which have no markers.
    lines: dict[str, Any] = field(default_factory=dict)
    # Published values, attributes of `Mark`, by panel.
    marks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    omitted: list[str] = field(default_factory=list)  # collections that are not drawn if there are others

    def __post_init__(self) -> None:
        require(self.shape in SHAPES, f"a figure has the shape {' or '.join(SHAPES)}, got {self.shape!r}")

    def drawn(self, rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Return the rows that the figure has."""
        return [row for row in rows if row["collection"] not in self.omitted] or rows

    def points(self, rows: Iterable[Row]) -> Iterator[Point]:
        """Yield the points of rows that have a value of y; a row without one of x is a level line."""
        known = list(rows)
        level = [] if self.shape == DOTS else sorted({row[self.x] for row in known} - {None})
        groups: dict[Any, list[Point]] = {}
        for row in known:
            for title, key in self.y.items():
                if self.shape != DOTS and key not in row:
                    continue
                names, of = {**row, "measure": title}, self.x if self.shape == DOTS else key
                low, high = interval_of(row, of)
                x_low, x_high = (None, None) if self.shape == DOTS else interval_of(row, self.x)
                for x in level if row[self.x] is None else [row[self.x]]:
                    point = Point(
                        panel=self.panel.format(**names),
                        series=self.series.format(**names),
                        x=finite(x),
                        y=0 if self.shape == DOTS else finite(row[key]),
                        low=low,
                        high=high,
                        x_low=x_low,
                        x_high=x_high,
                    )
                    same = (point.panel, point.series, x) if "mean" in self.lines else len(groups)
                    groups.setdefault(same, []).append(point)
        yield from (_mean_of(points) if "mean" in self.lines else points[0] for points in groups.values())

    def draw(self, path: Path, rows: Sequence[Row]) -> None:
        """Draw rows and write the files of a figure."""
        points = list(self.points(rows))
        panels = [
            Panel(name=name, marks=self._marks(name, rows[0]), **self._axes(name))
            for name in dict.fromkeys(point.panel for point in points)
        ]
        if self.shape == DOTS:
            draw_dots(path, panels, points)
        elif self.shape == BARS:
            draw_bars(path, panels[0], points)
        else:
            computed = self.lines.get("computed", ())
            draw_lines(path, panels, points, columns=self.axes.get("columns"), computed=computed)

    def _marks(self, panel: str, row: Row) -> list[Mark]:
        return [Mark(**mark | {"label": mark["label"].format(**row)}) for mark in self.marks.get(panel, [])]

    def _axes(self, panel: str) -> dict[str, Any]:
        shared = {key: value for key, value in self.axes.items() if key not in ("of", "columns")}
        own: dict[str, Any] = self.axes.get("of", {}).get(panel, {})
        return shared | own

    def full_caption(self, rows: Sequence[Mapping[str, Any]]) -> str:
        """Return the caption with the sentence on published values that are drawn, and the collections."""
        marked = any(point.panel in self.marks for point in self.points(rows))
        *others, last = dict.fromkeys(str(row["collection"]) for row in rows)
        collections = f"{', '.join(others)} and {last}" if others else last
        return "; ".join([self.caption, *([self.marked] if marked and self.marked else []), collections])


def _mean_of(points: Sequence[Point]) -> Point:
    """Return the mean of points of one x, with their range; a single point has no range."""
    values = [point.y for point in points]
    low, high = (min(values), max(values)) if len(values) > 1 else (None, None)
    return replace(points[0], y=sum(values) / len(values), low=low, high=high)
