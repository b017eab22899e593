"""Methods compared on collections: figures, best F1, differences, and the tables of the paper and of anyone's pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from hydra.utils import get_method

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings, method_of
from experiments.harness.cells import Cell
from experiments.harness.curves import STEP, Curve, compared, paired_samples, pooled, thresholds
from experiments.harness.method_choices import chosen_collections, chosen_methods, composed_methods, of_collection
from experiments.harness.study import Work
from experiments.resample import resampled_fact
from experiments.show.by_method import finite
from experiments.studies.compared_methods import OnCollection, TableOfMethods
from experiments.views import DOTS, FactView, View
from spotsigs.errors import InputError, require
from spotsigs.method import Method
from spotsigs.options import plain

SWEEP = "sweep"
"""Key of a method with lists of the values that it runs with."""

MEASURED = (("f1", "F1", 0.44), ("precision", "precision", 0.44), ("recall", "recall", 0.44))
"""Measures at a threshold of the paper that become facts; a matcher without one has its only values."""


GAP_USUAL: dict[str, Any] = {"measure": "f1", "tau": None, "relative": False, "ratio": False}
"""What a difference of methods is unless its fact has other values, see `MethodComparison.facts`."""


def gap(name: str, declared: dict[str, Any], curves: Mapping[str, Curve]) -> Fact:
    """Return the difference of a method to the best of others, with its paired interval.

    Its text has the other method if a pattern chose it.
    """
    first, *others = declared["of"]
    labels = [label for label in curves if label != first and any(fnmatchcase(label, other) for other in others)]
    labels = [label for label in others if label in curves] or labels
    best = max(labels, key=lambda label: best_f1(curves[label]))
    chosen = GAP_USUAL | declared
    relative, one, other = chosen["relative"] or chosen["ratio"], curves[first], curves[best]
    fact = compared(name, one, other, measure=chosen["measure"], relative=relative, tau=chosen["tau"])
    if chosen["ratio"]:
        low, high = fact.interval
        fact = replace(fact, value=fact.value + 1, low=low + 1, high=high + 1)
    return fact if best in others else replace(fact, text=f"against {best}: {fact.value:.3f}")


@dataclass(frozen=True, kw_only=True)
class MethodComparison(Experiment):
    """Methods on collections, over the threshold or another parameter, at their best and default thresholds.

    Attributes
    ----------
    methods : dict of str to dict
        Methods by label; if empty, those that the command line chooses. A method whose `SWEEP` has lists of
        values, as in ``sweep: {matcher.l: [16, 32]}``, runs with each; its labels are then ``method, l=16`` and so on.
    shared : dict of str to object
        Groups and keys of all methods that do not set them; `fixed` has those that none can set.
    panels : dict of str to dict
        Groups and keys by name, with each of which all methods run; a label is then ``method, panel``.
    figures : dict of str to dict
        Attributes of `View` by the name of the file.
    table : dict of str to object
        Attributes of `TableOfMethods`; none if empty.
    further : dict of str to dict
        Further collections, evaluated if the collection of the run is `gold`, the default: choices of ``data=`` with
        their keys. Of a list of ``data.seed`` the mean is evaluated, see `experiments.harness.curves.pooled`. Those
        that cannot be fetched are omitted. The names of facts then begin with the name of the collection.
    facts : dict of str to dict
        By the name of the fact, the difference of a method to the best of others: ``of``, a list of the label of the
        method and the labels of one or more others, which with ``*`` are all other labels of that pattern; ``measure``,
        the figure that is compared, by default F1; ``tau``, by default the best of each method; ``relative``, to divide
        by the value of the other, or ``ratio``, to give the ratio instead. Or attributes of
        `experiments.views.FactView`, whose ``of`` is no list; or ``spread`` with a list of methods: the largest minus
        the smallest best F1 of all others.
    added : str
        Function of what is no grid, by its module and name, or empty: it returns further rows from the `Work`, the
        methods by label, and the rows of a collection.
    step : float
        Distance between thresholds, a divisor of 1. One exact join at the lowest threshold serves all of them; 0: each
        method runs at its own threshold alone.
    coarse : float
        Least distance between the thresholds of a method that runs again at each.
    chosen : dict of str to object
        Methods of the command line: parameters of `experiments.harness.method_choices.chosen_methods`.
    collections : list or None
        Collections of the command line, in place of the collection of ``data=``: choices of it, or overrides by name.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, section 5.3.
    """

    methods: dict[str, dict[str, Any]] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)
    panels: dict[str, dict[str, Any]] = field(default_factory=dict)
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    table: dict[str, Any] = field(default_factory=dict)
    further: dict[str, dict[str, Any]] = field(default_factory=dict)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    added: str = ""
    step: float = STEP
    coarse: float = 0
    chosen: dict[str, Any] = field(default_factory=dict)
    collections: Any = None

    def __post_init__(self) -> None:
        if self.step:
            thresholds(self.step)
        labels = [label for label, *_ in self._runs()]
        for name, attributes in self.facts.items():
            without, of = attributes.get("spread", []), attributes.get("of", {})
            require(self.methods.keys() >= set(without), f"facts: {name!r} must leave out methods, got {without}")
            if isinstance(of, list):
                unknown = sorted(attributes.keys() - {"of", *GAP_USUAL})
                require(not unknown, f"facts: {name!r} has no {', '.join(unknown)}; it has of, {', '.join(GAP_USUAL)}")
                missing = {pattern for pattern in of if not any(fnmatchcase(label, pattern) for label in labels)}
                require(not missing, f"facts: {name!r} names {sorted(missing)}; the methods are {sorted(labels)}")
                require(len(of) > 1, f"facts: {name!r} needs at least two methods, got {of}")
            elif not without:
                FactView(**attributes)

    @property
    def _table(self) -> TableOfMethods | None:
        return TableOfMethods(**self.table) if self.table else None

    def __call__(self, settings: Settings) -> str:
        """Write the figures, the table, the lists and the facts; return a summary."""
        left_out: list[str] = []
        chosen = chosen_collections(self.collections, settings)
        work = replace(Work.begin(self.results, settings), settings=chosen[0])
        parts = [self._on_collection([replace(work, settings=each)], left_out) for each in chosen]
        further = self.further if settings.names["data"] == "gold" and self.collections is None else {}
        for name, keys in further.items():
            seeded = [{"data.seed": seed} for seed in self._seeds(name)] or [{}]
            try:
                works = [replace(work, settings=of_collection(settings, {"data": name} | keys | one)) for one in seeded]
                parts.append(self._on_collection(works, left_out))
            except InputError as error:
                left_out.append(work.leave_out(name, error))
        written = []
        facts = [fact for part in parts for fact in self.facts_of(part)]
        table = self._table
        if table is not None:
            written.append(table.write(work, parts))
            facts += table.facts(parts)
        written += [self._drawn(name, View(**view), parts) for name, view in self.figures.items()]
        written += table.appended(work, parts) if table is not None else []
        listed = work.facts(facts) if facts else ""
        summary = [] if self.table else [_summary(part) for part in parts] if self.step else [listed]
        return "\n\n".join([*summary, *left_out, *written])

    def _seeds(self, name: str) -> list[int]:
        seeds = self.further[name].get("data.seed") if name in self.further else None
        return seeds if isinstance(seeds, list) else []

    def _runs(self) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
        """Yield label, name, added choices, and columns of each method in each panel and at each point of a grid."""
        grids = [view.get("grid", {}) for view in self.figures.values()] or [{}]
        for (panel, choices), name in product((self.panels or {"": {}}).items(), self.methods):
            for grid in grids:
                swept = self.methods[name].get(SWEEP, {}) | grid
                for values in product(*swept.values()):
                    added = dict(zip(swept, values, strict=True))
                    columns = {key.rpartition(".")[2]: value for key, value in added.items()}
                    words = [panel, *(f"{key}={plain(value)}" for key, value in columns.items())]
                    label = ", ".join([name, *filter(None, words)])
                    yield label, name, choices | added, columns | {"of": name, "panel": panel, "grid": str(grid)}

    def composed(self, settings: Settings) -> tuple[dict[str, Method], dict[str, Cell]]:
        """Compose the methods of the configuration; return them, and their columns, by label."""
        methods, columns = dict[str, Method](), dict[str, Cell]()
        for label, name, added, values in self._runs():
            if added.get("idf_min", 0) < added.get("idf_max", 1):
                choices = {key: value for key, value in self.methods[name].items() if key != SWEEP}
                methods[label] = method_of(self.shared | choices, settings, label=name, **self.fixed, **added)
                columns[label] = values
        return methods, columns

    def _on_collection(self, seeded: Sequence[Work], left_out: list[str]) -> OnCollection:
        """Run all methods over their thresholds, on each seed of a collection, and again alone if they are timed."""
        work, settings = seeded[0], seeded[0].settings
        methods, columns = self.composed(settings)
        if not self.methods:
            methods, wrong = composed_methods(chosen_methods(**self.chosen), settings)
            for label, error in wrong.items():
                require(self.chosen["named"] is None, str(error))
                left_out.append(work.leave_out(label, error))
        if self._table is not None:
            self._table.require_baseline(methods)
        for one in seeded:
            one.require_truth(methods.values())
        name = f"{settings.names['experiment']}: {settings.names['data']}"
        every = [self._curves(one, methods, name) for one in seeded]
        curves = {label: pooled([each[label] for each in every]) for label in methods}
        columns = {label: columns.get(label, {"of": label, "panel": "", "grid": "{}"}) for label in methods}
        part = OnCollection(work, methods, curves, columns)
        if self.added:
            part.added.extend(get_method(self.added)(work, methods, part.rows()))
        return part if self._table is None else self._table.with_times(part)

    def _curves(self, work: Work, methods: Mapping[str, Method], name: str) -> dict[str, Curve]:
        more = [*(fact.get("tau") for fact in self.facts.values()), *(method.tau for method in methods.values())]
        curves: dict[str, Curve] = {}
        for once, step in ((True, self.step), (False, max(self.step, self.coarse))):
            some = {
                label: method
                for label, method in methods.items()
                if (not self.coarse or method.matcher.nested or not method.tau) == once
            }
            if some:
                taus = thresholds(step, *more) if step else None
                curves |= work.curves(
                    some, taus, name, listed=self.table.get("listed", 0) > 0, compared=self.table.get("ranked", False)
                )
        return {label: curves[label] for label in methods}

    def _drawn(self, name: str, view: View, parts: list[OnCollection]) -> str:
        every = [row for part in parts for row in part.rows(best=view.shape == DOTS) if row["grid"] == str(view.grid)]
        rows = view.drawn(every)
        drawn = next(part.work for part in parts if part.name == rows[0]["collection"])
        shown = dict.fromkeys(row["collection"] for row in rows)
        seeds = {name: len(self._seeds(name)) for name in shown}
        means = [f"{name}: mean of {count} seeds" for name, count in seeds.items() if count]
        return drawn.figure(name, "; ".join([view.full_caption(rows), *means]), partial(view.draw, rows=rows))

    def facts_of(self, part: OnCollection) -> Iterator[Fact]:
        """Yield the facts of a collection."""
        prefix = f"{part.name}: " if self.further or self.collections else ""
        curves = part.curves
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
        for name, attributes in self.facts.items():
            if "spread" in attributes:
                drawn = [label for label in curves if part.columns[label]["of"] not in attributes["spread"]]
                best = np.array([best_f1(curves[label]) for label in drawn])
                samples = paired_samples([(curves[label], curves[label].best) for label in drawn])[:, 2]
                yield resampled_fact(f"{prefix}{name}", float(np.ptp(best)), np.ptp(samples, axis=0))
            elif isinstance(attributes.get("of"), list):
                fact = gap(f"{prefix}{name}", attributes, curves)
                if np.isfinite(fact.value):  # a ratio to 0 is none
                    yield fact
            else:
                yield from FactView(**attributes).facts(f"{prefix}{name}", part.rows())


def best_f1(curve: Curve) -> float:
    """Return the best F1 of a curve, 0 if it is undefined."""
    return finite(curve.values("f1")[curve.best])


def _summary(part: OnCollection) -> str:
    best = ", ".join(f"{label} {best_f1(curve):.3f}" for label, curve in part.curves.items())
    return f"best F1 on {part.name}: {best}"
