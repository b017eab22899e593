"""Quality curves of several methods: Figures 5 and 6, and those by chain length and by spot distance."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings
from experiments.show.figures import Mark
from experiments.show.quality_figures import STEP, best_facts, compared, curve_points, f1_panel, thresholds
from experiments.work.curves import Curve
from experiments.work.study import Work, lines_of
from spotsigs.errors import require


@dataclass(frozen=True, kw_only=True)
class CurveStudy(Experiment):
    """F1 over the threshold, one line for each method, in one panel or several.

    Attributes
    ----------
    results : Path
        Folder that receives the experiment's own.
    caption : str
        Caption of the figure.
    methods : dict of str to str
        Lines by label, each as on the command line.
    panels : dict of str to str
        Words that a panel adds to each method. The label of a curve is then ``method, panel``. If empty, there is
        one panel, and the label is that of the method.
    marks : dict of str to list of dict
        Published values by panel, drawn on ``data=gold`` alone: the attributes of `Mark`.
    undrawn : list of str
        Methods that are compared, but neither drawn nor reported themselves.
    comparisons : dict of str to list of str
        Differences of best F1 by the name of the fact: the label of a curve, then those of one or more others, the best
        of which is subtracted.
    relative : list of str
        Names of the comparisons that are divided by the F1 of the other.
    spread : str
        Name of the fact that gives the largest minus the smallest best F1 of the drawn curves; empty for none.
    step : float
        Distance between thresholds, a divisor of 1. One exact join at the lowest threshold serves all of them.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, section 5.3.
    """

    results: Path = Path("results")
    caption: str = ""
    methods: dict[str, str] = field(default_factory=dict)
    panels: dict[str, str] = field(default_factory=dict)
    marks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    undrawn: list[str] = field(default_factory=list)
    comparisons: dict[str, list[str]] = field(default_factory=dict)
    relative: list[str] = field(default_factory=list)
    spread: str = ""
    step: float = STEP

    def __post_init__(self) -> None:
        labels = {self._label(method, panel) for panel, method in self._keys()}
        require(self.methods.keys() >= set(self.undrawn), f"undrawn must name methods, got {self.undrawn}")
        require(self.comparisons.keys() >= set(self.relative), f"relative must name comparisons, got {self.relative}")
        for name, compared_labels in self.comparisons.items():
            missing = set(compared_labels) - labels
            require(not missing, f"comparisons: {name!r} names {sorted(missing)}; the curves are {sorted(labels)}")
            require(len(compared_labels) > 1, f"comparisons: {name!r} needs at least two curves, got {compared_labels}")

    def __call__(self, settings: Settings) -> str:
        """Write the figure and the facts; return a summary."""
        work = Work.begin(self.results, settings)
        keys = self._keys()
        words = {self._label(m, p): f"{self.methods[m]} {self.panels.get(p, '')}" for p, m in keys}
        name = settings.names["experiment"]
        curves = work.curves(lines_of(words, settings), thresholds(self.step), name)
        drawn = {(p, m): curves[self._label(m, p)] for p, m in keys if m not in self.undrawn}
        points = [point for (panel, method), curve in drawn.items() for point in curve_points(curve, panel, method)]
        marks = self.marks if settings.names["data"] == "gold" else {}  # published values are about that collection
        panels = [
            replace(f1_panel(panel), marks=[Mark(**mark) for mark in marks.get(panel, [])])
            for panel in self.panels or [""]
        ]
        written = work.lines(name, self.caption, panels, points)
        reported = {self._label(method, panel): curve for (panel, method), curve in drawn.items()}
        work.facts(self._facts(curves, reported))
        best = "; ".join(
            f"{label} {_best(curve):.3f} at {curve.taus[curve.best]:g}" for label, curve in reported.items()
        )
        return f"{name}: best F1 {best}; {written}"

    def _keys(self) -> list[tuple[str, str]]:
        return [(panel, method) for panel in self.panels or [""] for method in self.methods]

    def _label(self, method: str, panel: str) -> str:
        return f"{method}, {panel}" if panel else method

    def _facts(self, curves: dict[str, Curve], drawn: dict[str, Curve]) -> list[Fact]:
        facts = [fact for label, curve in drawn.items() for fact in best_facts(label, curve)]
        for name, (label, *others) in self.comparisons.items():
            other = max((curves[other] for other in others), key=_best)
            facts.append(compared(name, curves[label], other, relative=name in self.relative))
        if self.spread:
            best = [_best(curve) for curve in drawn.values()]
            facts.append(Fact(name=self.spread, value=max(best) - min(best)))
        return facts


def _best(curve: Curve) -> float:
    return float(curve.micro[2, curve.best])
