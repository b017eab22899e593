"""Histogram as inline SVG, without a library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 560, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 26, 44


@dataclass(frozen=True, kw_only=True)
class LogAxis:
    """Logarithmic axis: its label and its range."""

    label: str
    low: float
    high: float

    def at(self, value: float, size: float) -> float:
        """Return the position of a value between 0 and ``size``."""
        low, high = log10(self.low), log10(self.high)
        return size * min(max((log10(value) - low) / (high - low or 1), 0), 1)

    def ticks(self) -> list[float]:
        """Return the labelled values: powers of 10, and three times these if there are few."""
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        steps = (1, 3) if len(powers) < 4 else (1,)
        values = [step * 10.0**power for power in powers for step in steps]
        return [value for value in values if self.low <= value * 1.0001 and value <= self.high * 1.0001]


def histogram(
    title: str, x: LogAxis, y: LogAxis, edges: Sequence[float], counts: Sequence[int], guides: Sequence[float]
) -> str:
    """Return a histogram as an SVG element, with dotted vertical lines at `guides`."""
    width, height = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM
    bottom = _TOP + height

    def across(value: float) -> float:
        return round(_LEFT + x.at(value, width), 1)

    def down(level: float) -> float:
        return round(bottom - y.at(level, height), 1)

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">']
    parts.append(f'<text x="{_LEFT}" y="14" class="title">{escape(title)}</text>')
    for value in x.ticks():
        parts.append(f'<path class="tick" d="M{across(value)} {bottom}v5"/>')
        parts.append(_text(across(value), bottom + 18, f"{value:g}", "middle"))
    for value in y.ticks():
        parts.append(f'<path class="grid" d="M{_LEFT} {down(value)}h{width}"/>')
        parts.append(_text(_LEFT - 6, down(value) + 4, f"{value:,g}", "end"))
    parts.append(_text(_LEFT + width / 2, HEIGHT - 6, x.label, "middle"))
    turned = f"translate(12 {_TOP + height / 2}) rotate(-90)"
    parts.append(f'<text class="label" transform="{turned}">{escape(y.label)}</text>')
    parts += [f'<path class="guide" d="M{across(value)} {bottom}V{_TOP}"/>' for value in guides]
    bars = [
        f"M{across(left)} {bottom}V{down(count)}H{across(right)}V{bottom}Z"
        for left, right, count in zip(edges[:-1], edges[1:], counts, strict=True)
        if count > y.low
    ]
    parts.append(f'<path class="bars" d="{"".join(bars)}"/>')
    return "".join([*parts, "</svg>"])


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
