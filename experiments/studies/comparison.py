"""Methods compared on collections: Figures 5 and 6, best F1, and any methods on anyone's pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings, method_of
from experiments.harness.curves import STEP, Curve, compared, finite, paired_samples, resampled_fact, thresholds
from experiments.harness.method_choices import of_collection
from experiments.harness.study import Work
from experiments.show.figures import Mark, Panel, Point, draw_dots, draw_lines
from experiments.studies.compared_methods import compare
from spotsigs.errors import InputError, require

Curves = dict[str, dict[str, Curve]]
"""Curves by collection and label."""


MEASURED = (("f1", "F1", 0.44), ("precision", "precision", 0.44), ("recall", "recall", 0.44))
"""Measures at a threshold of the paper that become facts; a matcher without one has its only values."""


@dataclass(frozen=True, kw_only=True)
class MethodComparison(Experiment):
    """Figures of methods on collections: over the threshold, or at the best threshold of each.

    Attributes
    ----------
    caption : str
        Caption of the figure.
    marked : str
        Sentence on the published values, if they are drawn.
    methods : dict of str to dict
        Methods by label.
    panels : dict of str to dict
        Groups and keys that a panel fixes for all methods. The label of a curve is then ``method, panel``. If empty,
        there is one panel for each collection, and the label is that of the method.
    further : list of str
        Words of further collections, evaluated if the collection of the run is `gold`, the default; those that cannot
        be fetched are omitted.
    view : {"lines", "dots", "table"}
        F1 over the threshold; the best F1 of each method as a dot with its interval; or a table with F1, lost and left
        over the threshold and the pairs that methods find or miss alone, see `experiments.studies.compared_methods`.
    marks : dict of str to list of dict
        Published values by panel, drawn on `gold` alone: the attributes of `Mark`.
    baselines : list of str
        Methods that `spread` leaves out.
    comparisons : dict of str to list of str
        Differences of best F1 by the name of the fact: the label of a curve, then those of one or more others, the best
        of which is subtracted.
    relative : list of str
        Names of the comparisons that are divided by the F1 of the other.
    at : dict of str to float
        Threshold of a comparison, instead of the best one of each curve.
    spread : str
        Name of the fact that gives the largest minus the smallest best F1 of the drawn curves; empty for none.
    step : float
        Distance between thresholds, a divisor of 1. One exact join at the lowest threshold serves all of them.
    chosen : list or None
        Methods of the command line, in place of `methods`, see `experiments.harness.method_choices`.
    collections : list or None
        Collections of the command line, in place of that of ``data=``: choices of it, or overrides by name.
    omitted : list of str
        Matchers and signatures that are compared only if they are named: variants of others.
    paired : dict of str to list of str
        Signatures of a matcher that is usually not used with spots.
    baseline : str
        Method of the table that others are compared to; the first if empty.
    repeats : int
        Timed runs of each method at its best threshold; no times if 0.
    limit : float
        Seconds after which such a run is stopped.
    listed : int
        Pairs of each method that the lists of pairs show.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, section 5.3.
    """

    caption: str = ""
    marked: str = ""
    methods: dict[str, dict[str, Any]] = field(default_factory=dict)
    panels: dict[str, dict[str, Any]] = field(default_factory=dict)
    further: list[str] = field(default_factory=list)
    view: str = "lines"
    marks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    baselines: list[str] = field(default_factory=list)
    comparisons: dict[str, list[str]] = field(default_factory=dict)
    relative: list[str] = field(default_factory=list)
    at: dict[str, float] = field(default_factory=dict)
    spread: str = ""
    step: float = STEP
    chosen: Any = None
    collections: Any = None
    omitted: list[str] = field(default_factory=list)
    paired: dict[str, list[str]] = field(default_factory=dict)
    baseline: str = ""
    repeats: int = 1
    limit: float = 300
    listed: int = 10

    def __post_init__(self) -> None:
        thresholds(self.step)
        require(self.view in ("lines", "dots", "table"), f"view must be lines, dots or table, got {self.view!r}")
        labels = {self._label(method, panel) for panel, method in self._keys()}
        require(self.methods.keys() >= set(self.baselines), f"baselines must name methods, got {self.baselines}")
        named = {*self.relative, *self.at}
        require(self.comparisons.keys() >= named, f"relative and at must name comparisons, got {sorted(named)}")
        for name, compared_labels in self.comparisons.items():
            missing = set(compared_labels) - labels
            require(not missing, f"comparisons: {name!r} names {sorted(missing)}; the curves are {sorted(labels)}")
            require(len(compared_labels) > 1, f"comparisons: {name!r} needs at least two curves, got {compared_labels}")

    def __call__(self, settings: Settings) -> str:
        """Write the figures, the table and the facts; return a summary."""
        if self.view == "table":
            return compare(self, settings)
        name = settings.names["experiment"]
        work = Work.begin(self.results, settings)
        curves: Curves = {settings.names["data"]: self._curves(work)}
        left_out = []
        for words in self.further if settings.names["data"] == "gold" else ():
            try:
                own = of_collection(settings, words)
                curves[own.names["data"]] = self._curves(replace(work, settings=own))
            except InputError as error:
                left_out.append(work.leave_out(words.split()[0].removeprefix("data="), error))
        parts = [self.caption, *([self.marked] if "gold" in curves else []), " and ".join(curves)]
        written = self._drawn(work, name, "; ".join(parts), curves)
        work.facts([fact for collection, found in curves.items() for fact in self._facts(collection, found)])
        best = (
            f"{collection}: " + ", ".join(f"{label} {_best(curve):.3f}" for label, curve in found.items())
            for collection, found in curves.items()
        )
        return "; ".join([f"{name}: best F1 on {'; on '.join(best)}", *left_out, written])

    def _curves(self, work: Work) -> dict[str, Curve]:
        methods = {
            self._label(name, panel): method_of(
                self.methods[name], work.settings, label=name, **self.fixed, **self.panels.get(panel, {})
            )
            for panel, name in self._keys()
        }
        taus = thresholds(self.step, *self.at.values(), *(method.tau for method in methods.values()))
        return work.curves(methods, taus, work.settings.names["experiment"])

    def _drawn(self, work: Work, name: str, caption: str, curves: Curves) -> str:
        if self.view == "dots":
            points = [
                _dot(collection, label, curve) for collection, found in curves.items() for label, curve in found.items()
            ]
            panels = [Panel(name=key, x_label="best F1", y_label="", marks=self._marks(key)) for key in curves]
            return work.figure(draw_dots, name, caption, panels, points)
        panels, points = [], []
        for collection, found in curves.items():
            for panel in self.panels or [""]:
                title = ", ".join(filter(None, (panel, collection)))
                marks = self._marks(collection, panel)
                panels.append(
                    Panel(name=title, x_label="similarity threshold τ", y_label="F1", y_range=(0, 1), marks=marks)
                )
                for method in self.methods:
                    points += _points(found[self._label(method, panel)], title, method)
        return work.figure(draw_lines, name, caption, panels, points, columns=2)

    def _marks(self, collection: str, panel: str = "") -> list[Mark]:
        """Return the published values of a panel, which are about the Gold Set."""
        return [Mark(**mark) for mark in self.marks.get(panel, [])] if collection == "gold" else []

    def _keys(self) -> Iterator[tuple[str, str]]:
        return ((panel, method) for panel in self.panels or [""] for method in self.methods)

    def _label(self, method: str, panel: str) -> str:
        return f"{method}, {panel}" if panel else method

    def _facts(self, collection: str, curves: dict[str, Curve]) -> Iterator[Fact]:
        """Yield the facts of a collection, whose names begin with its own."""
        for label, curve in curves.items():
            yield curve.fact(f"{collection}: {label}: best F1", "f1", curve.best)
            if curve.taus:
                yield Fact(name=f"{collection}: {label}: best tau", value=curve.taus[curve.best])
            for measure, name, tau in MEASURED:
                if not curve.taus or tau in curve.taus:
                    at = curve.at(tau) if curve.taus else 0
                    fact = curve.fact(f"{collection}: {label}: {name}, tau {tau:g}", measure, at)
                    if fact.value == fact.value:
                        yield fact
        for name, (label, *others) in self.comparisons.items():
            other = max((curves[other] for other in others), key=_best)
            full = f"{collection}: {name}"
            yield compared(full, curves[label], other, relative=name in self.relative, tau=self.at.get(name))
        if self.spread:
            drawn = [self._label(method, panel) for panel, method in self._keys() if method not in self.baselines]
            best = np.array([_best(curves[label]) for label in drawn])
            samples = paired_samples([(curves[label], curves[label].best) for label in drawn])[:, 2]
            yield resampled_fact(f"{collection}: {self.spread}", float(np.ptp(best)), np.ptp(samples, axis=0))


def _best(curve: Curve) -> float:
    return finite(curve.values("f1")[curve.best])


def _points(curve: Curve, panel: str, series: str) -> list[Point]:
    """Return the F1 of a curve over tau, with intervals."""
    return [
        Point(panel=panel, series=series, x=tau, y=finite(value), low=finite(low), high=finite(high))
        for tau, value, low, high in zip(curve.taus, curve.values("f1"), *curve.interval("f1"), strict=True)
    ]


def _dot(collection: str, label: str, curve: Curve) -> Point:
    low, high = curve.interval("f1")[:, curve.best]
    return Point(panel=collection, series=label, x=_best(curve), y=0, low=finite(low), high=finite(high))
