"""Quality curves: evaluation of a method over thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from experiments.claims.facts import Fact
from experiments.harness.cells import Cell
from experiments.resample import (
    mean_of_defined,
    resampled_fact,
)
from spotsigs.errors import require
from spotsigs.evaluation.metrics import (
    MEASURES,
    percentile_interval,
)
from spotsigs.records import FloatArray

STEP = 0.02
"""Distance between a quality curve's thresholds; the paper's 0.4 and 0.44 are among them."""


def thresholds(step: float, *more: float | None) -> list[float]:
    """Return the multiples of a step up to 1, rounded to decimals, and further thresholds, ascending.

    Raises
    ------
    InputError
        If the step does not divide 1, or is too small.
    """
    count = round(1 / step) if step > 0 else 0
    require(count > 0 and abs(count * step - 1) < 1e-9, f"step must divide 1, as 0.02 does, got {step}")
    require(count <= 1000, f"step must be at least 0.001, got {step}")
    return sorted({*(round(number / count, 6) for number in range(1, count + 1)), *(tau for tau in more if tau)})


@dataclass(frozen=True)
class Curve:
    """Quality of one method over thresholds."""

    value: dict[str, Any]  # result of `experiments.evaluate.QualityCells`
    rows: Sequence[Cell] = ()  # cells as rows of the table of cells

    @property
    def cells(self) -> list[dict[str, Any]]:
        """Figures at each threshold."""
        cells: list[dict[str, Any]] = self.value["cells"]
        return cells

    @property
    def taus(self) -> list[float]:
        """Thresholds, ascending."""
        return [float(cell["tau"]) for cell in self.cells if cell["tau"] is not None]

    @cached_property
    def crossed(self) -> FloatArray:
        """Precision, recall and F1 in the samples of `experiments.resample`, shape (3, samples, thresholds)."""
        return np.array(self.value["crossed"], float)

    def values(self, figure: str) -> FloatArray:
        """Return a figure of the cells by threshold, NaN where it is undefined."""
        return np.array([cell[figure] for cell in self.cells], float)

    def interval(self, figure: str) -> FloatArray:
        """Return the ends of the 95 % interval of a figure, shape (2, thresholds), NaN where it is undefined."""
        undefined = (np.nan, np.nan)
        return np.array([cell["intervals"].get(figure, undefined) for cell in self.cells], float).T

    def row(self, at: int) -> Cell:
        """Return the row of a position, with the ends of `interval`."""
        ends_of = {measure: self.interval(measure)[:, at].tolist() for measure in MEASURES}
        return {
            **self.rows[at],
            **{f"{m}_{end}": x for m, two in ends_of.items() for end, x in zip(("low", "high"), two, strict=True)},
        }

    def fact(self, name: str, figure: str, at: int) -> Fact:
        """Return a figure at a position as a fact."""
        low, high = (None if end != end else float(end) for end in self.interval(figure)[:, at])
        return Fact(name=name, value=float(self.values(figure)[at]), low=low, high=high)

    def at(self, tau: float) -> int:
        """Return the position of a threshold."""
        position = int(np.argmin(np.abs(np.array(self.taus) - tau)))
        require(abs(self.taus[position] - tau) < 1e-9, f"tau={tau} is not among the curve's thresholds")
        return position

    @cached_property
    def best(self) -> int:
        """Position of the lowest threshold with the highest micro F1."""
        return int(np.argmax(np.nan_to_num(self.values("f1"))))


def pooled(curves: Sequence[Curve]) -> Curve:
    """Return the mean of the curves of one method on collections of the same stories and sites.

    A bootstrap sample has the same stories and sites of all of them, see
    `experiments.resample.multiplicities`: the intervals of precision, recall and F1 are of the mean.
    Other figures have none.
    """
    first, *others = curves
    if not others:
        return first
    samples = mean_of_defined(np.array([curve.crossed for curve in curves], float), (0,))
    intervals = np.moveaxis(percentile_interval(np.moveaxis(samples, 1, 0)), -1, 0)
    cells = [
        _mean_cell(same) | {"intervals": dict(zip(MEASURES, interval.T.tolist(), strict=True))}
        for same, interval in zip(zip(*(curve.cells for curve in curves), strict=True), intervals, strict=True)
    ]
    rows = [_mean_cell(same) for same in zip(*(curve.rows for curve in curves), strict=True)]
    rows = [{key: None if key.endswith(("_low", "_high")) else value for key, value in row.items()} for row in rows]
    return Curve(first.value | {"cells": cells, "crossed": samples.tolist()}, rows)


def _mean_cell(cells: Sequence[Cell]) -> Cell:
    """Return the means of the numbers that differ, and the first of all other values."""
    mean = dict(cells[0])
    for key in mean:
        values = [cell.get(key) for cell in cells]  # an interval that is undefined on one has no ends there
        numbers = all(isinstance(value, (int, float)) for value in values)
        if numbers and len(set(values)) > 1:
            mean[key] = float(mean_of_defined(np.array(values, float), (0,)))
    return mean


def paired_samples(points: Sequence[tuple[Curve, int]]) -> FloatArray:
    """Return precision, recall and F1 of curves at a position each, in the same samples, (points, 3, samples)."""
    return np.stack([curve.crossed[:, :, at] for curve, at in points])


def compared(
    name: str, a: Curve, b: Curve, *, measure: str = "f1", relative: bool = False, tau: float | None = None
) -> Fact:
    """Return the difference of two curves over one collection as a fact with the paired 95 % interval.

    The curves are compared at a threshold, or at the best F1 of each. A `relative` difference is divided by the value
    of the second curve.
    """
    points = [(curve, curve.at(tau) if tau is not None and curve.taus else curve.best) for curve in (a, b)]

    def gap(x: Any, y: Any) -> Any:
        with np.errstate(invalid="ignore", divide="ignore"):
            return (x - y) / y if relative else x - y

    samples = paired_samples(points)[:, MEASURES.index(measure)]
    return resampled_fact(name, gap(*(curve.values(measure)[at] for curve, at in points)), gap(*samples))
