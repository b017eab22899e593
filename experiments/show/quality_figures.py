"""Panels, points and facts of quality curves."""

from __future__ import annotations

from experiments.claims.facts import Fact
from experiments.show.figures import Panel, Point
from experiments.work.curves import MEASURES, Curve, difference
from spotsigs.errors import require

STEP = 0.02
"""Distance between a quality curve's thresholds; the paper's 0.4 and 0.44 are among them."""


def thresholds(step: float) -> list[float]:
    """Return the multiples of a step up to 1, rounded to decimals.

    Raises
    ------
    InputError
        If the step does not divide 1, or is too small.
    """
    count = round(1 / step) if step > 0 else 0
    require(count > 0 and abs(count * step - 1) < 1e-9, f"step must divide 1, as 0.02 does, got {step}")
    require(count <= 1000, f"step must be at least 0.001, got {step}")
    return [round(number / count, 6) for number in range(1, count + 1)]


def f1_panel(name: str) -> Panel:
    """Return the axes of F1 over tau."""
    return Panel(name=name, x_label="similarity threshold τ", y_label="F1", y_range=(0, 1))


def curve_points(curve: Curve, panel: str, series: str, measure: str = "f1") -> list[Point]:
    """Return a curve's points over tau, with intervals."""
    low, high = curve.interval(measure)
    values = curve.micro[MEASURES.index(measure)]
    return [
        Point(panel=panel, series=series, x=tau, y=finite(value), low=finite(below), high=finite(above))
        for tau, value, below, above in zip(curve.taus, values, low, high, strict=True)
    ]


def best_facts(label: str, curve: Curve) -> list[Fact]:
    """Return a curve's best F1 and, if the method has one, its threshold as facts."""
    low, high = curve.interval("f1")[:, curve.best]
    f1 = Fact(name=f"{label}: best F1", value=float(curve.micro[2, curve.best]), low=float(low), high=float(high))
    return [f1, *([Fact(name=f"{label}: best tau", value=curve.taus[curve.best])] if curve.taus else [])]


def single_point(curve: Curve, panel: str, series: str, x: float, measure: str = "f1") -> Point:
    """Return the point of a curve that has one threshold or none, with its interval."""
    low, high = curve.interval(measure)[:, 0]
    y = finite(curve.micro[MEASURES.index(measure), 0])
    return Point(panel=panel, series=series, x=x, y=y, low=finite(low), high=finite(high))


def compared(
    name: str, a: Curve, b: Curve, *, measure: str = "f1", relative: bool = False, tau: float | None = None
) -> Fact:
    """Return the difference of two curves as a fact: at a threshold, or at the best F1 of each."""
    at = [(curve.at(tau) if tau is not None and curve.taus else curve.best) for curve in (a, b)]
    value, low, high = difference(a, at[0], b, at[1], measure, relative=relative)
    return Fact(name=name, value=value, low=low, high=high)


def finite(value: float) -> float:
    """Return the value, or 0 if it is undefined (no pair was reported)."""
    return float(value) if value == value else 0.0
