"""The lead of spot signatures over the number of sites that supply the pages: the second part of docs/protocol.md."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from data.collections.manysites import ManySites
from experiments.claims.facts import Fact, read_facts
from experiments.config import Experiment, Settings, composed, methods_of
from experiments.harness.crossed_cells import DecisionsInSamples, Labelled, SampledF1, SignaturesInSamples
from experiments.harness.curves import thresholds
from experiments.harness.study import Work
from experiments.harness.template_free import TemplateFree
from experiments.show.figures import Mark, Panel, Point, draw_lines
from experiments.show.tables import Column, Table, band_text
from spotsigs.errors import InputError, require
from spotsigs.records import FloatArray
from spotsigs.reports.output_files import write_csv

ORDER = ("sites", "sites_density", "sites_templates")
"""Experiments in the order of their hypotheses."""
HOLDS, FAILS, NOT_TESTED = "holds", "does not hold", "not tested"
VERDICT = ": verdict"
"""End of the names of the facts that state whether a hypothesis holds."""

MARGIN = 0.02
"""Largest difference in F1 that counts as equality."""
CLEAR = 0.05
"""Lead that few sites have to exceed."""
MOST = 0.9
"""Fraction of the false pairs that has to be of one site."""

CELL = ("collection", "sites", "data_seed", "prose", "method", "idf_max")
CELL_FIGURES = ("tau", "f1", "precision", "recall", "false", "false_of_one_site")

OF_INTERVALS = (
    "Means over draws of the sites, with 95 % intervals of the mean. The bootstrap samples draw stories and sites, and "
    "each sample chooses the thresholds and the best rival again."
)
LEAD_CAPTION = (
    "Lead of spot signatures, which is their F1 less the F1 of the best of words, 3-shingles and 5-shingles, by the "
    "number of sites that supply 2,160 whole pages; the band is the 95 % interval of the mean over draws"
)


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """A statistic of a hypothesis, its interval, and whether it is as the hypothesis states."""

    step: str  # number of the hypothesis in the protocol
    says: str  # the statistic in words
    # Value on the collections themselves, and ends of the interval.
    value: float
    low: float
    high: float
    criterion: str  # what the interval has to satisfy, in words
    satisfied: bool  # whether it does

    @classmethod
    def above(cls, step: str, says: str, values: FloatArray, bound: float) -> Statistic:
        """Return a statistic that has to be above a bound, by the lower end of its 95 % interval."""
        value, low, high = with_interval(values)
        criterion = f"95 % interval above {bound:g}"
        return cls(step=step, says=says, value=value, low=low, high=high, criterion=criterion, satisfied=low > bound)

    @classmethod
    def below(cls, step: str, says: str, values: FloatArray) -> Statistic:
        """Return a statistic that has to be below 0, by the upper end of its 95 % interval."""
        value, low, high = with_interval(values)
        criterion = "95 % interval below 0"
        return cls(step=step, says=says, value=value, low=low, high=high, criterion=criterion, satisfied=high < 0)

    @classmethod
    def other_than_0(cls, step: str, says: str, values: FloatArray) -> Statistic:
        """Return a statistic whose 95 % interval has to exclude 0."""
        value, low, high = with_interval(values)
        criterion, outside = "95 % interval without 0", low > 0 or high < 0
        return cls(step=step, says=says, value=value, low=low, high=high, criterion=criterion, satisfied=outside)

    @classmethod
    def equal(cls, step: str, says: str, values: FloatArray) -> Statistic:
        """Return a statistic that has to be 0 within the margin: two one-sided tests, hence a 90 % interval."""
        value, low, high = with_interval(values, 0.9)
        criterion, inside = f"90 % interval within ±{MARGIN:g}", low > -MARGIN and high < MARGIN
        return cls(step=step, says=says, value=value, low=low, high=high, criterion=criterion, satisfied=inside)


def with_interval(values: FloatArray, level: float = 0.95) -> tuple[float, float, float]:
    """Return the first value, and the ends of the interval of the others, which are its bootstrap samples.

    Samples in which the value is undefined do not count; the ends are NaN if it is undefined in all of them.
    """
    known = values[1:][~np.isnan(values[1:])]
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2]) if len(known) else (np.nan, np.nan)
    return float(values[0]), float(low), float(high)


def verdicts(statistics: Sequence[Statistic], before: bool) -> dict[str, str]:
    """Return the verdict on each hypothesis by its number; it is tested only if all hypotheses before it hold.

    Parameters
    ----------
    statistics : sequence of Statistic
        In the order of the hypotheses; a hypothesis holds if all of its statistics are satisfied.
    before : bool
        Whether all hypotheses of the experiments before hold.
    """
    found: dict[str, str] = {}
    for step in dict.fromkeys(each.step for each in statistics):
        holds = all(each.satisfied for each in statistics if each.step == step)
        found[step] = (HOLDS if holds else FAILS) if before else NOT_TESTED
        before = before and holds
    return found


def all_held(results: Path, names: Sequence[str]) -> bool:
    """Return whether all hypotheses of experiments hold; an InputError if one has no results."""
    held = True
    for name in names:
        decided = {fact: each for fact, each in read_facts(results / name / "facts.csv").items() if " verdict" in fact}
        require(
            bool(decided), f"{results / name} has no results, on which the next depend; run experiment={name} first"
        )
        held = held and all(each.value == 1 for each in decided.values())
    return held


@dataclass(frozen=True)
class Condition:
    """Conditions under which collections are drawn: the number of sites, and the density that templates are brought to.

    All sites have None as number, and templates that are not changed None as density.
    """

    sites: int | None
    prose: float | None = None


OverDraws = Mapping[Condition, Sequence[Mapping[str, SampledF1]]]
"""Quality by the label of the method, of each draw of each condition."""


@dataclass(frozen=True, kw_only=True)
class DrawsOfSites(Experiment):
    """Collections of one size with pages of few sites or of many, in many draws of each number of sites."""

    sites: list[Any] = field(default_factory=lambda: [None])  # numbers of sites, of which one can be null for all sites
    # Densities of spots that the templates are brought to; null leaves them as they are.
    prose: list[Any] = field(default_factory=lambda: [None])
    # First seed, and number of draws.
    first: int = 1
    draws: int = 1
    samples: int = 2000  # bootstrap samples of stories and sites

    def conditions(self) -> list[Condition]:
        """Return the conditions, the numbers of sites within each density."""
        return [Condition(sites, prose) for prose, sites in product(self.prose, self.sites)]

    def drawn(self, work: Work) -> dict[Condition, list[ManySites]]:
        """Return the collections of each condition, one for each draw."""
        base = work.settings.collection
        require(isinstance(base, ManySites), "the experiment draws sites of data=manysites; leave data= out")
        base.parts()  # fetched and cut once, before worker processes ask for it
        seeds = range(self.first, self.first + self.draws)
        return {
            one: [replace(base, sites=one.sites, prose=one.prose, seed=seed) for seed in seeds]
            for one in self.conditions()
        }

    def number(self, work: Work, condition: Condition) -> int:
        """Return the number of sites of a condition."""
        return condition.sites or len(work.settings.collection.parts()[1])


@dataclass(frozen=True, kw_only=True)
class LeadStudy(DrawsOfSites):
    """Lead of a signature over the best of its rivals."""

    # Groups and keys of each signature by its label. The lead is of the first over the best of the others.
    signatures: dict[str, dict[str, Any]] = field(default_factory=dict)
    # Upper ends of the IDF band; the first decides, the others are reported.
    bands: list[float] = field(default_factory=lambda: [1.0])
    template_free: bool = False  # compare the pages without their templates, see `experiments.harness.template_free`
    step: float = 0.02  # distance between thresholds, a divisor of 1

    def __call__(self, settings: Settings) -> str:
        """Write the cells, the tables, the figures and the facts; return them as text."""
        work = Work.begin(self.results, settings)
        before = all_held(self.results, ORDER[: ORDER.index(settings.names["experiment"])])
        collections, measured = self.drawn(work), self.measured(work)
        rows = [self._row(work, measured, condition, band) for band in self.bands for condition in collections]
        cells = [
            self._cell(work, condition, collection.seed, label, cell)
            for condition, of in collections.items()
            for collection, one in zip(of, measured[condition], strict=True)
            for label, cell in one.items()
        ]
        beside, cells_beside, left_out = self.beside_rows(work)
        statistics = list(self.statistics(work, measured))
        decided = verdicts(statistics, before)
        header = [*CELL, *CELL_FIGURES]
        write_csv(
            work.folder / "cells.csv", header, ([cell[key] for key in header] for cell in [*cells, *cells_beside])
        )
        facts = [*_lead_facts([*rows, *beside]), *_facts_of(statistics, decided), *self.facts_of(work, measured)]
        work.facts(facts)
        parts = [
            work.table(self._table([*rows, *beside]), "leads"),
            work.table(_table_of(statistics, decided), "hypotheses"),
            *self.drawings(work, rows),
        ]
        return "\n\n".join([*parts, *left_out])

    @abstractmethod
    def statistics(self, work: Work, measured: OverDraws) -> Iterator[Statistic]:
        """Yield the statistics of the hypotheses, in order."""

    def facts_of(self, work: Work, measured: OverDraws) -> Iterator[Fact]:
        """Yield further facts."""
        yield from ()

    def drawings(self, work: Work, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """Draw the figures; yield their paths."""
        yield from ()

    def beside_rows(self, work: Work) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]]:
        """Return rows and cells of further collections, and a sentence for each that cannot be fetched."""
        return [], [], []

    def methods(self, settings: Settings) -> Labelled:
        """Return each signature at each band, with labels as in ``words .85``."""
        of_bands = [methods_of(self.signatures, settings, idf_max=band, **self.fixed) for band in self.bands]
        return tuple(
            (f"{label} {band:g}", method)
            for band, methods in zip(self.bands, of_bands, strict=True)
            for label, method in methods.items()
        )

    def measured(self, work: Work) -> OverDraws:
        """Return the quality of all signatures in all draws; a draw of all conditions ends before the next begins."""
        methods, collections = self.methods(work.settings), self.drawn(work)
        order = [(condition, draw) for draw in range(self.draws) for condition in collections]
        tasks = [self.task(collections[condition][draw], methods) for condition, draw in order]
        found: dict[Condition, list[Mapping[str, SampledF1]]] = {condition: [] for condition in collections}
        for (condition, _), value in zip(
            order, work.finished.of(tasks, work.settings.names["experiment"]), strict=True
        ):
            found[condition].append({label: SampledF1.of(cell) for label, cell in value.items()})
        return found

    def task(self, collection: Any, methods: Labelled) -> SignaturesInSamples:
        """Return the task of a collection."""
        whole = TemplateFree(collection=collection) if self.template_free else collection
        taus = tuple(thresholds(self.step))
        return SignaturesInSamples(collection=whole, methods=methods, taus=taus, samples=self.samples)

    def lead(self, one: Mapping[str, SampledF1], band: float | None = None) -> FloatArray:
        """Return the lead in one draw: of the draw itself, then in each sample, shape (1 + samples,)."""
        first, *others = (one[f"{label} {self.bands[0] if band is None else band:g}"].f1 for label in self.signatures)
        lead: FloatArray = first - np.max(others, axis=0)
        return lead

    def mean_lead(self, measured: OverDraws, condition: Condition, band: float | None = None) -> FloatArray:
        """Return the mean lead over draws, shape (1 + samples,)."""
        mean: FloatArray = np.mean([self.lead(one, band) for one in measured[condition]], axis=0)
        return mean

    def of_one_site(self, measured: OverDraws, condition: Condition, band: float) -> tuple[FloatArray, FloatArray]:
        """Return the fraction of the false pairs that are of one site, of the first signature and of the best rival.

        It is the mean over the draws that have false pairs, shape (1 + samples,).
        """
        of_first, of_rival = [], []
        for one in measured[condition]:
            cells = [one[f"{label} {band:g}"] for label in self.signatures]
            best = np.argmax([cell.f1 for cell in cells[1:]], axis=0)
            with np.errstate(invalid="ignore", divide="ignore"):
                shares = np.stack([cell.false_of_one_site / cell.false for cell in cells])
            of_first.append(shares[0])
            of_rival.append(np.take_along_axis(shares[1:], best[None], 0)[0])
        return _mean_of_known(of_first), _mean_of_known(of_rival)

    def _row(self, work: Work, measured: OverDraws, condition: Condition, band: float) -> dict[str, Any]:
        row = self.row_of(measured, condition, band)
        return row | {"collection": work.settings.names["data"], "sites": self.number(work, condition)}

    def row_of(self, measured: OverDraws, condition: Condition, band: float) -> dict[str, Any]:
        """Return the row of a condition in the table of leads."""
        leads = np.stack([self.lead(one, band) for one in measured[condition]])
        lead, low, high = with_interval(leads.mean(0))
        f1 = {label: [one[f"{label} {band:g}"].f1[0] for one in measured[condition]] for label in self.signatures}
        names = ("of_one_site", "of_one_site_rival")
        shares = dict(zip(names, (share[0] for share in self.of_one_site(measured, condition, band)), strict=True))
        return {
            "prose": condition.prose,
            "idf": band_text(0.2, band),
            "idf_max": band,
            "draws": len(leads),
            "lead": lead,
            "low": low,
            "high": high,
            "interval": f"{low:+.3f} to {high:+.3f}",
            "deviation": float(leads[:, 0].std(ddof=1)) if len(leads) > 1 else None,
            **{f"f1 {label}": float(np.mean(of)) for label, of in f1.items()},
            **{name: None if np.isnan(share) else float(share) for name, share in shares.items()},
        }

    def _cell(self, work: Work, condition: Condition, seed: int | None, label: str, cell: SampledF1) -> dict[str, Any]:
        where = {"collection": work.settings.names["data"], "sites": self.number(work, condition), "data_seed": seed}
        return where | {"prose": condition.prose} | cell_row(label, cell)

    def _table(self, rows: Sequence[dict[str, Any]]) -> Table:
        columns = [Column(name="collection", title="Collection"), Column(name="sites", title="Sites", form=",.0f")]
        if len(self.prose) > 1:
            columns.append(Column(name="prose", title="Spots per token of templates", form=".3f"))
        columns += [Column(name="idf", title="IDF"), Column(name="idf_max"), Column(name="draws")]
        columns += [Column(name=f"f1 {label}", title=f"F1, {label}", form=".3f") for label in self.signatures]
        columns += [Column(name="lead", title="Lead", form="+.3f"), Column(name="interval", title="95 %")]
        columns += [Column(name="low"), Column(name="high"), Column(name="deviation")]
        columns += [
            Column(name="of_one_site", title="False pairs of one site", form=".1%"),
            Column(name="of_one_site_rival", title="of the best rival", form=".1%"),
        ]
        of_text = "without their templates" if self.template_free else "as whole pages"
        caption = f"Lead of spot signatures over the best of the other signatures, by the number of sites, {of_text}"
        return Table(caption=caption, columns=columns, rows=rows, notes=(OF_INTERVALS,), named=["collection", "sites"])


def cell_row(label: str, cell: SampledF1) -> dict[str, Any]:
    """Return the figures of a cell, whose label ends with the upper end of the band."""
    method, _, band = label.rpartition(" ")
    figures = {"tau": cell.tau, "f1": float(cell.f1[0]), "precision": cell.precision, "recall": cell.recall}
    false = {"false": int(cell.false[0]), "false_of_one_site": int(cell.false_of_one_site[0])}
    return {"method": method, "idf_max": float(band)} | figures | false


@dataclass(frozen=True, kw_only=True)
class LeadOverSites(LeadStudy):
    """The lead on whole pages falls with the number of sites: hypotheses 1 to 4 of the protocol."""

    # Further collections, whose number of sites cannot be changed; they decide nothing.
    beside: list[str] = field(default_factory=list)

    def statistics(self, work: Work, measured: OverDraws) -> Iterator[Statistic]:
        """Yield the slope, the leads with all sites and with the fewest, and the fractions of one site."""
        conditions = self.conditions()
        numbers = {one: self.number(work, one) for one in conditions}
        fewest, most = min(conditions, key=numbers.__getitem__), max(conditions, key=numbers.__getitem__)
        yield Statistic.below(
            "1", "slope of the lead over the logarithm of the number of sites", self._slope(work, measured)
        )
        yield Statistic.equal("2", f"lead with {numbers[most]} sites", self.mean_lead(measured, most))
        yield Statistic.above("3", f"lead with {numbers[fewest]} sites", self.mean_lead(measured, fewest), CLEAR)
        first, rival = self.of_one_site(measured, fewest, self.bands[0])
        says = f"fraction of the false pairs that are of one site, {numbers[fewest]} sites"
        yield Statistic.above("4", f"{says}, spots", first, MOST)
        yield Statistic.above("4", f"{says}, best rival", rival, MOST)

    def _slope(self, work: Work, measured: OverDraws) -> FloatArray:
        leads = {one: [self.lead(draw) for draw in draws] for one, draws in measured.items()}
        numbers = [self.number(work, one) for one, draws in leads.items() for _ in draws]
        return slope(numbers, np.stack([lead for of in leads.values() for lead in of]))

    def facts_of(self, work: Work, measured: OverDraws) -> Iterator[Fact]:
        """Yield the standard error of the slope, by which the power was stated."""
        samples = self._slope(work, measured)[1:]
        yield Fact(name="standard error of the slope", value=float(samples.std(ddof=1)))

    def beside_rows(self, work: Work) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]]:
        """Return the rows and cells of the collections beside."""
        rows, cells, left_out = [], [], []
        for data in self.beside:
            try:
                collection = composed(f"data={data}").collection
                [value] = work.finished.of([self.task(collection, self.methods(work.settings))], data)
            except InputError as error:
                left_out.append(work.leave_out(data, error))
                continue
            one = {label: SampledF1.of(cell) for label, cell in value.items()}
            condition = Condition(None)
            for band in self.bands:
                rows.append(self.row_of({condition: [one]}, condition, band) | {"collection": data, "sites": None})
            where = {"collection": data, "sites": None, "data_seed": None, "prose": None}
            cells += [where | cell_row(label, cell) for label, cell in one.items()]
        return rows, cells, left_out

    def drawings(self, work: Work, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """Draw the lead over the number of sites."""
        numbers = sorted({row["sites"] for row in rows})
        panel = Panel(
            name="",
            x_label="number of sites",
            y_label="lead of spot signatures, F1",
            x_log=True,
            x_ticks=numbers,
            marks=[Mark(label="equal within .02", y=MARGIN, side="left"), Mark(label="", y=-MARGIN)],
        )
        points = [
            Point(panel="", series="whole pages", x=row["sites"], y=row["lead"], low=row["low"], high=row["high"])
            for row in rows
            if row["idf"] == rows[0]["idf"]  # the band that decides; the table has the others
        ]
        yield work.figure("lead_over_sites", LEAD_CAPTION, partial(draw_lines, panels=[panel], points=points))


def slope(numbers: Sequence[int], leads: FloatArray) -> FloatArray:
    """Return the slope of leads, shape (draws, samples), over the natural logarithm of numbers, by least squares."""
    x = np.log(np.array(numbers, float))
    centred = x - x.mean()
    fitted: FloatArray = centred @ leads / (centred @ centred)
    return fitted


@dataclass(frozen=True, kw_only=True)
class SitesAndDensity(LeadStudy):
    """The number of sites and the density of antecedents in templates, apart from each other: hypothesis 5."""

    def statistics(self, work: Work, measured: OverDraws) -> Iterator[Statistic]:
        """Yield the main effects of the two factors, each the mean lead at its lower value less that at its higher."""
        leads = {one: self.mean_lead(measured, one) for one in self.conditions()}
        few, many = self.sites
        sparse, dense = self.prose
        of_sites = [leads[Condition(few, prose)] - leads[Condition(many, prose)] for prose in self.prose]
        of_density = [leads[Condition(sites, sparse)] - leads[Condition(sites, dense)] for sites in self.sites]
        says = f"lead with {few} sites less the lead with {many}, mean of both densities"
        yield Statistic.other_than_0("5a", says, np.mean(of_sites, axis=0))
        says = f"lead at density {sparse:g} less the lead at {dense:g}, mean of both numbers of sites"
        yield Statistic.other_than_0("5b", says, np.mean(of_density, axis=0))


@dataclass(frozen=True, kw_only=True)
class LeadWithoutTemplates(LeadStudy):
    """The lead after the removal of templates, for every number of sites: hypothesis 6."""

    def statistics(self, work: Work, measured: OverDraws) -> Iterator[Statistic]:
        """Yield the lead with each number of sites."""
        for one in self.conditions():
            says = f"lead after template removal, {self.number(work, one)} sites"
            yield Statistic.equal("6", says, self.mean_lead(measured, one))


@dataclass(frozen=True, kw_only=True)
class DecisionsOverSites(DrawsOfSites):
    """Stories lost and duplicates left of the command ``dedup`` over the number of sites."""

    # Groups and keys by the label of a setting.
    settings_of_dedup: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __call__(self, settings: Settings) -> str:
        """Write the table, the figure and the facts; return them as text."""
        work = Work.begin(self.results, settings)
        methods: Labelled = tuple(methods_of(self.settings_of_dedup, settings, **self.fixed).items())
        collections = self.drawn(work)
        order = [(condition, draw) for draw in range(self.draws) for condition in collections]
        tasks = [
            DecisionsInSamples(collection=collections[condition][draw], methods=methods, samples=self.samples)
            for condition, draw in order
        ]
        found: dict[tuple[Condition, str, str], list[list[float]]] = {}
        for (condition, _), value in zip(order, work.finished.of(tasks, settings.names["experiment"]), strict=True):
            for label, measures in value.items():
                for name, values in measures.items():
                    found.setdefault((condition, label, name), []).append(values)
        rows, facts = [], []
        for condition, (label, _) in product(collections, methods):
            row: dict[str, Any] = {"sites": self.number(work, condition), "method": label, "draws": self.draws}
            for name, title in (("lost", "stories lost"), ("left", "duplicates left")):
                mean, low, high = with_interval(np.mean(found[condition, label, name], axis=0))
                row |= {name: mean, f"{name}_low": low, f"{name}_high": high}
                row |= {f"{name}_interval": f"{low:.1%} to {high:.1%}"}
                facts.append(Fact(name=f"{title}, {row['sites']} sites, {label}", value=mean, low=low, high=high))
            rows.append(row)
        work.facts(facts)
        return "\n\n".join([work.table(_table_of_decisions(rows), "decisions"), _draw_decisions(work, rows)])


def _table_of_decisions(rows: Sequence[dict[str, Any]]) -> Table:
    columns = [Column(name="sites", title="Sites", form=",.0f"), Column(name="method", title="Settings")]
    for name, title in (("lost", "Lost"), ("left", "Left")):
        columns += [Column(name=name, title=title, form=".1%"), Column(name=f"{name}_interval", title="95 %")]
        columns += [Column(name=f"{name}_low"), Column(name=f"{name}_high")]
    note = (
        "Lost: stories of which no page is kept. Left: duplicates that are kept. Means over draws of the sites, with "
        "95 % intervals over stories."
    )
    caption = "Stories lost and duplicates left by dedup, by the number of sites that supply 2,160 pages"
    return Table(caption=caption, columns=columns, rows=rows, notes=(note,), named=["sites"])


def _draw_decisions(work: Work, rows: Sequence[Mapping[str, Any]]) -> str:
    numbers = sorted({row["sites"] for row in rows})
    titles = {"lost": "stories lost", "left": "duplicates left"}
    shared: dict[str, Any] = {"x_label": "number of sites", "x_log": True, "x_ticks": numbers}
    shared["y_range"] = (-0.02, 0.05 + max(row[f"{name}_high"] for name in titles for row in rows))
    panels = [Panel(name=title, y_label="fraction", **shared) for title in titles.values()]
    points = [
        Point(
            panel=title,
            series=str(row["method"]),
            x=row["sites"],
            y=row[name],
            low=row[f"{name}_low"],
            high=row[f"{name}_high"],
        )
        for name, title in titles.items()
        for row in rows
    ]
    caption = "Stories lost and duplicates left by dedup over the number of sites, with 95 % intervals over stories"
    return work.figure("decisions_over_sites", caption, partial(draw_lines, panels=panels, points=points))


def _mean_of_known(shares: Sequence[FloatArray]) -> FloatArray:
    """Return the mean of each sample over the draws that have false pairs; NaN if none has."""
    stacked = np.stack(shares)
    known = ~np.isnan(stacked)
    with np.errstate(invalid="ignore"):
        mean: FloatArray = np.where(known, stacked, 0).sum(0) / known.sum(0)
    return mean


def _lead_facts(rows: Sequence[Mapping[str, Any]]) -> Iterator[Fact]:
    for row in rows:
        where = row["collection"] if row["sites"] is None else f"{row['sites']} sites"
        where += "" if row["prose"] is None else f", density {row['prose']:g}"
        where += f", {row['idf']}"
        yield Fact(name=f"lead of spots, {where}", value=row["lead"], low=row["low"], high=row["high"])
        if row["deviation"] is not None:
            yield Fact(name=f"lead of spots, {where}: deviation over draws", value=row["deviation"])
        for name, value in row.items():
            if name.startswith("f1 "):
                yield Fact(name=f"F1 of {name.removeprefix('f1 ')}, {where}", value=value)


def _facts_of(statistics: Sequence[Statistic], decided: Mapping[str, str]) -> Iterator[Fact]:
    for each in statistics:
        yield Fact(name=f"hypothesis {each.step}: {each.says}", value=each.value, low=each.low, high=each.high)
    for step, verdict in decided.items():
        yield Fact(name=f"hypothesis {step}{VERDICT}", value=verdict == HOLDS, text=verdict)


def _table_of(statistics: Sequence[Statistic], decided: Mapping[str, str]) -> Table:
    columns = [
        Column(name="step", title="No."),
        Column(name="says", title="Statistic"),
        Column(name="value", title="Value", form="+.3f"),
        Column(name="interval", title="Interval"),
        Column(name="criterion", title="It holds if"),
        Column(name="verdict", title="Verdict"),
        Column(name="low"),
        Column(name="high"),
    ]
    rows = [
        {name: getattr(each, name) for name in ("step", "says", "value", "low", "high", "criterion")}
        | {"interval": f"{each.low:+.3f} to {each.high:+.3f}", "verdict": decided[each.step]}
        for each in statistics
    ]
    note = "A hypothesis is tested only if all hypotheses before it hold, at .05 each."
    caption = "Hypotheses of the second part of the protocol, in order"
    return Table(caption=caption, columns=columns, rows=rows, notes=(note,))
