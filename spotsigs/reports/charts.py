"""Line charts and histograms as inline SVG, without a library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10

WIDTH, HEIGHT = 560, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 26, 44


@dataclass(frozen=True, kw_only=True)
class Series:
    """One line, or the bars of a histogram."""

    name: str  # in the legend
    x: Sequence[float] = ()
    y: Sequence[float] = ()  # values that are not finite interrupt the line
    edges: Sequence[float] = ()  # of the bins of a histogram, one more than values


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis: its label, its range and its scale."""

    label: str
    low: float
    high: float
    log: bool = False

    def at(self, value: float, size: float) -> float:
        """Return the position of a value between 0 and ``size``."""
        low, high, value = (log10(v) if self.log else v for v in (self.low, self.high, value))
        return size * min(max((value - low) / (high - low or 1), 0), 1)

    def ticks(self) -> list[float]:
        """Return the labelled values: 1, 3 and 10 on a logarithmic axis, else multiples of a round step."""
        if self.log:
            powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
            steps = (1, 3) if len(powers) < 4 else (1,)
            values = [step * 10.0**power for power in powers for step in steps]
            return [value for value in values if self.low <= value * 1.0001 and value <= self.high * 1.0001]
        power = 10.0 ** floor(log10((self.high - self.low) / 5 or 1))
        step = next(step * power for step in (1, 2, 5, 10) if (self.high - self.low) / (step * power) <= 6)
        return [k * step for k in range(ceil(self.low / step), floor(self.high / step + 1e-9) + 1)]


def chart(title: str, x: Axis, y: Axis, series: Sequence[Series], guides: Sequence[float] = ()) -> str:
    """Return a chart as an SVG element, with dotted vertical lines at `guides`; values outside an axis are clipped."""
    width, height = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

    def position(value: float, level: float) -> tuple[float, float]:
        return round(_LEFT + x.at(value, width), 1), round(_TOP + height - y.at(level, height), 1)

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">']
    parts.append(f'<text x="{_LEFT}" y="14" class="title">{escape(title)}</text>')
    for value in x.ticks():
        at, bottom = position(value, y.low)
        parts.append(f'<path class="tick" d="M{at} {bottom}v5"/>{_text(at, bottom + 18, f"{value:g}", "middle")}')
    for value in y.ticks():
        left, at = position(x.low, value)
        shown = _text(left - 6, at + 4, f"{value:,g}", "end")
        parts.append(f'<path class="grid" d="M{left} {at}h{width}"/>{shown}')
    parts.append(_text(_LEFT + width / 2, HEIGHT - 6, x.label, "middle"))
    parts.append(
        f'<text class="label" transform="translate(12 {_TOP + height / 2}) rotate(-90)">{escape(y.label)}</text>'
    )
    for value in guides:
        at, bottom = position(value, y.low)
        parts.append(f'<path class="guide" d="M{at} {bottom}V{_TOP}"/>')
    for number, drawn in enumerate(series):
        path = _bars(drawn, position, y.low) if len(drawn.edges) else _line(drawn, position)
        parts.append(f'<path class="series s{number} {"bars" if len(drawn.edges) else "line"}" d="{path}"/>')
    if len(series) > 1:
        parts += [
            f'<text class="legend s{number}" x="{_LEFT + 120 * number}" y="{_TOP - 2}">{escape(drawn.name)}</text>'
            for number, drawn in enumerate(series)
        ]
    return "".join([*parts, "</svg>"])


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(series: Series, position) -> str:  # type: ignore[no-untyped-def]
    words, pen = [], "M"
    for value, level in zip(series.x, series.y, strict=True):
        if not isfinite(level):
            pen = "M"
            continue
        at = position(value, level)
        words.append(f"{pen}{at[0]} {at[1]}")
        pen = "L"
    return "".join(words)


def _bars(series: Series, position, low: float) -> str:  # type: ignore[no-untyped-def]
    words = []
    for left, right, level in zip(series.edges[:-1], series.edges[1:], series.y, strict=True):
        if level > low:
            (x0, bottom), (x1, top) = position(left, low), position(right, level)
            words.append(f"M{x0} {bottom}V{top}H{x1}V{bottom}Z")
    return "".join(words)
