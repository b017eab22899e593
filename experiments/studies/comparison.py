"""Methods compared on collections: figures, best F1, differences, and the tables of the paper and of anyone's pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

import numpy as np

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings, method_of
from experiments.harness.cells import Cell
from experiments.harness.curves import STEP, Curve, compared, paired_samples, pooled, resampled_fact, thresholds
from experiments.harness.method_choices import chosen_collections, chosen_methods, composed_methods, of_collection
from experiments.harness.study import Work
from experiments.show.views import View, finite
from experiments.studies.compared_methods import OnCollection, TableOfMethods, write_lists
from spotsigs.errors import InputError, require
from spotsigs.method import Method
from spotsigs.spelling import spelled

MEASURED = (("f1", "F1", 0.44), ("precision", "precision", 0.44), ("recall", "recall", 0.44))
"""Measures at a threshold of the paper that become facts; a matcher without one has its only values."""


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Difference of a method to the best of others.

    Attributes
    ----------
    of : list of str
        The label of a method, then those of one or more others; with ``*``, all other labels of that pattern.
    measure : str
        Figure that is compared.
    tau : float or None
        Threshold; None: the best one of each method.
    relative : bool
        Divide by the value of the other.
    ratio : bool
        Give the ratio instead.
    """

    of: list[str]
    measure: str = "f1"
    tau: float | None = None
    relative: bool = False
    ratio: bool = False

    def fact(self, name: str, curves: Mapping[str, Curve]) -> Fact:
        """Return the difference with its paired interval; its text has the other if a pattern chose it."""
        first, *others = self.of
        labels = [label for label in curves if label != first and any(fnmatchcase(label, other) for other in others)]
        labels = [label for label in others if label in curves] or labels
        best = max(labels, key=lambda label: best_f1(curves[label]))
        relative = self.relative or self.ratio
        fact = compared(name, curves[first], curves[best], measure=self.measure, relative=relative, tau=self.tau)
        if self.ratio:
            low, high = fact.interval
            fact = replace(fact, value=fact.value + 1, low=low + 1, high=high + 1)
        return fact if best in others else replace(fact, text=f"against {best}: {fact.value:.3f}")


@dataclass(frozen=True, kw_only=True)
class MethodComparison(Experiment):
    """Methods on collections, over the threshold or another parameter, at their best and default thresholds.

    Attributes
    ----------
    methods : dict of str to dict
        Methods by label; if empty, those that the command line chooses.
    shared : dict of str to object
        Groups and keys of all methods that do not set them; `fixed` has those that none can set.
    panels : dict of str to dict
        Groups and keys by name, with each of which all methods run; a label is then ``method, panel``.
    figures : dict of str to dict
        Attributes of `View` by the name of the file.
    table : dict of str to object
        Attributes of `TableOfMethods`; none if empty.
    further : list of str
        Words of further collections, evaluated if the collection of the run is `gold`, the default; those that cannot
        be fetched are omitted. The names of facts then begin with that of the collection.
    seeds : dict of str to list of int
        Seeds of a further collection, by its name, of which the mean is evaluated, see
        `experiments.harness.curves.pooled`.
    comparisons : dict of str to dict
        Attributes of `Gap` by the name of the fact.
    spread : str
        Name of the fact that gives the largest minus the smallest best F1 of the methods; empty for none.
    baselines : list of str
        Methods that `spread` leaves out.
    step : float
        Distance between thresholds, a divisor of 1. One exact join at the lowest threshold serves all of them; 0: each
        method runs at its own threshold alone.
    coarse : float
        Least distance between the thresholds of a method that runs again at each.
    chosen : list or None
        Methods of the command line, see `experiments.harness.method_choices`.
    collections : list or None
        Collections of the command line, in place of that of ``data=``: choices of it, or overrides by name.
    omitted : list of str
        Matchers and signatures that are compared only if they are named: variants of others.
    paired : dict of str to list of str
        Signatures of a matcher that is usually not used with spots.
    baseline : str
        Method that the others of the table are compared to; the first if empty.
    repeats : int
        Timed runs of each method; no times if 0.
    limit : float or None
        Seconds after which such a run is stopped.
    listed : int
        Pairs of each method in the lists of those that it finds or misses alone; no lists if 0.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, section 5.3.
    """

    methods: dict[str, dict[str, Any]] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)
    panels: dict[str, dict[str, Any]] = field(default_factory=dict)
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    table: dict[str, Any] = field(default_factory=dict)
    further: list[str] = field(default_factory=list)
    seeds: dict[str, list[int]] = field(default_factory=dict)
    comparisons: dict[str, dict[str, Any]] = field(default_factory=dict)
    spread: str = ""
    baselines: list[str] = field(default_factory=list)
    step: float = STEP
    coarse: float = 0
    chosen: Any = None
    collections: Any = None
    omitted: list[str] = field(default_factory=list)
    paired: dict[str, list[str]] = field(default_factory=dict)
    baseline: str = ""
    repeats: int = 0
    limit: float | None = None
    listed: int = 0

    def __post_init__(self) -> None:
        if self.step:
            thresholds(self.step)
        labels = [label for label, *_ in self._runs()]
        require(self.methods.keys() >= set(self.baselines), f"baselines must name methods, got {self.baselines}")
        for name, gap in self.comparisons.items():
            of = Gap(**gap).of
            missing = {pattern for pattern in of if not any(fnmatchcase(label, pattern) for label in labels)}
            require(not missing, f"comparisons: {name!r} names {sorted(missing)}; the methods are {sorted(labels)}")
            require(len(of) > 1, f"comparisons: {name!r} needs at least two methods, got {of}")

    def __call__(self, settings: Settings) -> str:
        """Write the figures, the table, the lists and the facts; return a summary."""
        left_out: list[str] = []
        chosen = chosen_collections(self.collections, settings)
        work = replace(Work.begin(self.results, settings), settings=chosen[0])
        parts = [self._on_collection([replace(work, settings=own)], left_out) for own in chosen]
        for words in self.further if settings.names["data"] == "gold" and self.collections is None else ():
            name = words.split()[0].removeprefix("data=")
            seeded = [f"{words} data.seed={seed}" for seed in self.seeds.get(name, ())] or [words]
            try:
                own = [replace(work, settings=of_collection(settings, one)) for one in seeded]
                parts.append(self._on_collection(own, left_out))
            except InputError as error:
                left_out.append(work.leave_out(name, error))
        written = []
        facts = [fact for part in parts for fact in self.facts_of(part)]
        if self.table:
            table = TableOfMethods(**self.table)
            written.append(table.write(work, parts, self.baseline))
            facts += table.facts(parts, self.baseline)
        written += [self._drawn(name, View(**view), parts) for name, view in self.figures.items()]
        written += table.curves(parts, self.baseline) if self.table else []
        written += [write_lists(work, parts, self.listed)] if self.listed else []
        listed = work.facts(facts) if facts else ""
        summary = [] if self.table else [_summary(part) for part in parts] if self.step else [listed]
        return "\n\n".join([*summary, *left_out, *written])

    def _runs(self) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
        """Yield label, name, added choices, and columns of each method in each panel and at each point of a grid."""
        grids = [view.get("grid", {}) for view in self.figures.values()] or [{}]
        for (panel, choices), name in product((self.panels or {"": {}}).items(), self.methods):
            for grid in grids if self.figures else [{}]:
                for values in product(*grid.values()):
                    added = dict(zip(grid, values, strict=True))
                    columns = {key.rpartition(".")[2]: value for key, value in added.items()}
                    words = [panel, *(f"{key}={spelled(value)}" for key, value in columns.items())]
                    label = ", ".join([name, *filter(None, words)])
                    yield label, name, choices | added, columns | {"of": name, "panel": panel, "grid": str(grid)}

    def composed(self, settings: Settings) -> tuple[dict[str, Method], dict[str, Cell]]:
        """Compose the methods of the configuration; return them, and their columns, by label."""
        methods, columns = dict[str, Method](), dict[str, Cell]()
        for label, name, added, own in self._runs():
            if added.get("idf_min", 0) < added.get("idf_max", 1):
                choices = self.shared | self.methods[name]
                methods[label] = method_of(choices, settings, label=name, **self.fixed, **added)
                columns[label] = own
        return methods, columns

    def _on_collection(self, seeded: Sequence[Work], left_out: list[str]) -> OnCollection:
        """Run all methods over their thresholds, on each seed of a collection, and again alone if they are timed."""
        work, settings = seeded[0], seeded[0].settings
        methods, columns = self.composed(settings)
        if not self.methods:
            methods, wrong = composed_methods(chosen_methods(self.chosen, self.omitted, self.paired), settings)
            for label, error in wrong.items():
                require(self.chosen is None, str(error))
                left_out.append(work.leave_out(label, error))
        name = f"{settings.names['experiment']}: {settings.names['data']}"
        every = [self._curves(one, methods, name) for one in seeded]
        curves = {label: pooled([own[label] for own in every]) for label in methods}
        columns = {label: columns.get(label, {"of": label, "panel": "", "grid": "{}"}) for label in methods}
        part = OnCollection(work, methods, curves, columns)
        if self.table and self.repeats:
            part = TableOfMethods(**self.table).with_times(part, self.repeats, self.limit)
        return part

    def _curves(self, work: Work, methods: Mapping[str, Method], name: str) -> dict[str, Curve]:
        more = [*(gap.get("tau") for gap in self.comparisons.values()), *(method.tau for method in methods.values())]
        curves: dict[str, Curve] = {}
        for once, step in ((True, self.step), (False, max(self.step, self.coarse))):
            some = {
                label: method
                for label, method in methods.items()
                if (not self.coarse or method.matcher.nested or not method.tau) == once
            }
            if some:
                taus = thresholds(step, *more) if step else None
                curves |= work.curves(some, taus, name, pairs=self.listed > 0)
        return {label: curves[label] for label in methods}

    def _drawn(self, name: str, view: View, parts: list[OnCollection]) -> str:
        rows: Sequence[Mapping[str, Any]] = [
            {**curve.row(at), **part.columns[label]} | {"collection": part.name}
            for part in parts
            for label, curve in part.curves.items()
            if part.columns[label]["grid"] == str(view.grid)
            for at in ([curve.best] if view.best or not curve.taus else range(len(curve.rows)))
        ]
        rows = view.drawn(rows)
        drawn = next(part.work for part in parts if part.name == rows[0]["collection"])
        shown = {row["collection"] for row in rows}
        means = [f"{of}: mean of {len(seeds)} seeds" for of, seeds in self.seeds.items() if of in shown]
        return drawn.figure(view.draw, name, "; ".join([view.full_caption(rows), *means]), rows)

    def facts_of(self, part: OnCollection) -> Iterator[Fact]:
        """Yield the facts of a collection."""
        prefix, curves = f"{part.name}: " if self.further else "", part.curves
        single = {label: curve for label, curve in curves.items() if part.columns[label]["grid"] == "{}"}
        for label, curve in single.items() if self.further and not self.table else ():
            yield curve.fact(f"{prefix}{label}: best F1", "f1", curve.best)
            if curve.taus:
                yield Fact(name=f"{prefix}{label}: best tau", value=curve.taus[curve.best])
            for measure, name, tau in MEASURED:
                if not curve.taus or tau in curve.taus:
                    at = curve.at(tau) if curve.taus else 0
                    fact = curve.fact(f"{prefix}{label}: {name}, tau {tau:g}", measure, at)
                    if fact.value == fact.value:
                        yield fact
        for name, gap in self.comparisons.items():
            fact = Gap(**gap).fact(f"{prefix}{name}", curves)
            if np.isfinite(fact.value):  # a ratio to 0 is none
                yield fact
        if self.spread:
            drawn = [label for label in curves if part.columns[label]["of"] not in self.baselines]
            best = np.array([best_f1(curves[label]) for label in drawn])
            samples = paired_samples([(curves[label], curves[label].best) for label in drawn])[:, 2]
            yield resampled_fact(f"{prefix}{self.spread}", float(np.ptp(best)), np.ptp(samples, axis=0))


def best_f1(curve: Curve) -> float:
    """Return the best F1 of a curve, 0 if it is undefined."""
    return finite(curve.values("f1")[curve.best])


def _summary(part: OnCollection) -> str:
    best = ", ".join(f"{label} {best_f1(curve):.3f}" for label, curve in part.curves.items())
    return f"best F1 on {part.name}: {best}"
