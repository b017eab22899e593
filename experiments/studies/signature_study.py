"""Signatures crossed with treatments of boilerplate, by the rules of ``docs/protocol.md``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from data.collections.newsframes import NewsFrames
from data.collections.newsframes.frames import Frame
from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings, composed, methods_of, overrides
from experiments.harness.cross_validation import (
    RESAMPLES,
    Difference,
    FloatArray,
    OverSplits,
    Splits,
    holm,
    over_splits,
)
from experiments.harness.curves import STEP, thresholds
from experiments.harness.study import SEVERAL, Work, task_of
from experiments.harness.template_free import TemplateFree
from experiments.show.figures import Mark, Panel, Point, draw_dots, draw_lines
from experiments.show.tables import Column, Table
from spotsigs.errors import InputError, require
from spotsigs.evaluation.metrics import ends
from spotsigs.method import Method
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.tokens import tokenize

MARGIN = 0.02
"""Largest difference in F1 that counts as equality."""
ALPHA = 0.05
"""Level of a family of tests."""

QUALITY = {
    "tau": "tau",
    "precision": "Precision",
    "recall": "Recall",
    "macro_f1": "Macro F1",
    "bcubed_f1": "B-cubed F1",
}
SAMPLED = {"f1": "F1", "lost": "Lost", "left": "Left"}

NOTES = (
    "Means over random splits, directions and seeds; the threshold of each half has the highest micro F1 on the other "
    "half. IDF in [0.2, 1], exact multiset Jaccard. Lost: stories of which no page is kept. Left: duplicates that are "
    "kept. Decisions by leaders. Intervals (95 %): bootstrap samples of stories and sites in each split; of stories "
    "alone for lost and left.",
)
TEST_NOTES = (
    "docs/protocol.md defines hypotheses, margin and words. Lead: F1 of spots minus F1 of the best other signature, "
    "which is chosen, like the thresholds, on the other half. H1: the lead on whole pages differs from 0. H2: on a "
    "text that is the same for all signatures the lead is within the margin; H2, difference: it differs from 0. H3: "
    "the lead on whole pages minus that lead. H4: the lead with dense templates minus that with the placebo, by rival. "
    "p: uncorrected, and after Holm's correction over all rows.",
)
LEADS_CAPTION = (
    "Lead of spots over the best of words, 3- and 5-shingles in F1, mean over splits, with 95 % intervals of one more "
    "split; lines: the margin of equality; *: each signature has its own text"
)
SPLITS_CAPTION = "Fraction of the random splits whose lead of spots is at most x, by text of the pages"


@dataclass(frozen=True, kw_only=True)
class StudiedCollection:
    """Collection of the study.

    Attributes
    ----------
    data : str
        Overrides of ``data``, separated by spaces.
    site, stories
        See `Splits`.
    seeds : list of int
        Seeds, which are pooled; empty for a collection without.
    decides : bool
        The family of tests includes its leads.
    article : bool
        The collection knows the text of its articles (``data.article=true``).
    mechanism : list of str
        Overrides that change the density of spots in templates, and their placebo.
    """

    data: str
    site: str = ""
    stories: bool = True
    seeds: list[int] = field(default_factory=list)
    decides: bool = True
    article: bool = False
    mechanism: list[str] = field(default_factory=list)

    def composed(self, words: str = "") -> list[Any]:
        """Return the collection of each seed, with further overrides."""
        data = f"{self.data} {words}".split()
        if "data=newsframes" in data:  # whose origin and licence the command line can state
            typed = ("data.path=", "data.accept_licence=", "data.cache=")
            data += [word for word in overrides() if word.startswith(typed)]
        seeds = [[f"data.seed={seed}"] for seed in self.seeds] or [[]]
        return [composed(*data, *seed).collection for seed in seeds]

    def split(self, splits: int, samples: int, taus: Sequence[float]) -> Splits:
        """Return its splits."""
        return Splits(taus=taus, site=self.site, stories=self.stories, splits=splits, samples=samples)


@dataclass(frozen=True, kw_only=True)
class Treatment:
    """Treatment of the boilerplate of pages.

    Attributes
    ----------
    method : dict of str to object
        Groups and keys that it fixes for all methods.
    data : str
        Overrides of the collection.
    template_free : bool
        Remove templates from the text, see `TemplateFree`.
    same_text : bool
        All signatures are those of the same text.
    """

    method: dict[str, Any] = field(default_factory=dict)
    data: str = ""
    template_free: bool = False
    same_text: bool = True

    def collections(self, chosen: StudiedCollection, words: str = "") -> list[Any]:
        """Return the treated collection of each seed."""
        composed = chosen.composed(f"{self.data} {words}")
        return [TemplateFree(collection=collection) for collection in composed] if self.template_free else composed


@dataclass(frozen=True, kw_only=True)
class SignatureStudy(Experiment):
    """F1 and decisions of signatures by treatment of the page's boilerplate, over random splits.

    Attributes
    ----------
    collections : dict of str to dict
        Attributes of `StudiedCollection` by name; those that cannot be fetched are left out.
    signatures : dict of str to str
        Overrides by label. Each signature is combined with each treatment.
    treatments : dict of str to dict
        Attributes of `Treatment` by label; the first is the reference.
    leader : str
        Signature whose lead over `rivals` is measured.
    rivals : list of str
        Signatures it is compared to.
    splits, samples : int
        Random splits, and bootstrap samples in each.
    step : float
        Distance between thresholds, a divisor of 1.
    """

    collections: dict[str, dict[str, Any]] = field(default_factory=dict)
    signatures: dict[str, dict[str, Any]] = field(default_factory=dict)
    treatments: dict[str, dict[str, Any]] = field(default_factory=dict)
    leader: str = "spots"
    rivals: list[str] = field(default_factory=list)
    splits: int = 60
    samples: int = 40
    step: float = STEP

    def __post_init__(self) -> None:
        unknown = {self.leader, *self.rivals} - self.signatures.keys() if self.signatures else set()
        require(not unknown, f"leader and rivals must name signatures, got {sorted(unknown)}")

    def __call__(self, settings: Settings) -> str:
        """Write the tables and the figures; return them as text."""
        work = Work.begin(self.results, settings, SEVERAL)
        chosen = {name: StudiedCollection(**attributes) for name, attributes in self.collections.items()}
        measured: dict[str, Measured] = {}
        mechanism: dict[str, Difference] = {}
        left_out, facts = [], []
        for name, collection in chosen.items():
            try:
                measured[name] = self._evaluated(work, name, collection, settings)
                if collection.mechanism:
                    mechanism = self._mechanism(work, collection, settings)
                    facts = link_facts(_templates(collection))
            except InputError as error:
                left_out.append(work.leave_out(name, error))
        require(bool(measured), "; ".join(left_out))
        leads = {(name, treatment): self._lead(of, treatment) for name, of in measured.items() for treatment in of}
        tests = self.hypothesis_tests({key: lead for key, lead in leads.items() if chosen[key[0]].decides}, mechanism)
        work.facts([*_facts(measured), *_lead_facts(leads), *(test.fact() for test in tests), *facts])
        parts = [
            work.table(self._quality(measured), "signatures"),
            work.table(_table_of_tests(tests), "tests"),
            self._draw_leads(work, leads),
            self._draw_splits(work, leads),
        ]
        return "\n\n".join([*parts, *left_out])

    def _evaluated(self, work: Work, name: str, chosen: StudiedCollection, settings: Settings) -> Measured:
        treatments = {
            label: Treatment(**attributes)
            for label, attributes in self.treatments.items()
            if chosen.article or "data.article" not in attributes.get("data", "")
        }
        for data in dict.fromkeys(t.data for t in treatments.values()):  # each page is read once for all of these
            alike = [self._methods(t, settings) for t in treatments.values() if t.data == data and not t.template_free]
            methods = {f"{k} {label}": method for k, of in enumerate(alike) for label, method in of.items()}
            for collection in chosen.composed(data):
                work.read_all(methods, collection)
        return {
            label: self._treated(work, f"{name}, {label}", chosen, treatment, settings)
            for label, treatment in treatments.items()
        }

    def _methods(self, treatment: Treatment, settings: Settings) -> dict[str, Method]:
        return methods_of(self.signatures, settings, **self.fixed, **treatment.method)

    def _treated(
        self,
        work: Work,
        describe: str,
        chosen: StudiedCollection,
        treatment: Treatment,
        settings: Settings,
        more: str = "",
    ) -> dict[str, OverSplits]:
        study = chosen.split(self.splits, self.samples, thresholds(self.step))
        collections, methods = treatment.collections(chosen, more), self._methods(treatment, settings)
        cells = over_collections(work, over_splits, methods, collections, describe, study=study)
        return {label: OverSplits(tuple(of_seeds)) for label, of_seeds in cells.items()}

    def _mechanism(self, work: Work, chosen: StudiedCollection, settings: Settings) -> dict[str, Difference]:
        """Return by rival how much more the lead changes by dense templates than by the placebo."""
        dense, placebo = (
            self._treated(work, words, chosen, Treatment(), settings, words) for words in chosen.mechanism
        )
        return {
            rival: Difference.of(dense[self.leader], [dense[rival]]).minus(
                Difference.of(placebo[self.leader], [placebo[rival]])
            )
            for rival in self.rivals
        }

    def _lead(self, measured: Measured, treatment: str) -> Difference:
        return Difference.of(measured[treatment][self.leader], [measured[treatment][rival] for rival in self.rivals])

    def hypothesis_tests(
        self, leads: Mapping[tuple[str, str], Difference], mechanism: Mapping[str, Difference]
    ) -> list[CorrectedTest]:
        """Return the tests of the family, with Holm's correction."""
        whole, *others = (label for label, of in self.treatments.items() if Treatment(**of).same_text)
        family: dict[tuple[str, str, str], tuple[Difference, float]] = {}
        for name in dict.fromkeys(name for name, _ in leads):
            family["H1", name, whole] = leads[name, whole], leads[name, whole].p_differs
        for (name, treatment), lead in leads.items():
            if treatment in others:
                more = leads[name, whole].minus(lead)
                family["H2", name, treatment] = lead, lead.p_equal(MARGIN)
                family["H2, difference", name, treatment] = lead, lead.p_differs
                family["H3", name, treatment] = more, more.p_differs
        family |= {("H4", "newsframes", rival): (change, change.p_differs) for rival, change in mechanism.items()}
        corrected = holm({key: p for key, (_, p) in family.items()})
        return [
            CorrectedTest(*key, difference, p, corrected[key])
            for key, (difference, p) in sorted(family.items(), key=str)
        ]

    def _quality(self, measured: Mapping[str, Measured]) -> Table:
        columns = [Column(name=name, title=name.capitalize()) for name in ("collection", "treatment", "signature")]
        for name, title in (SAMPLED | QUALITY).items():
            columns.append(Column(name=name, title=title, form=".1%" if name in ("lost", "left") else ".3f"))
            if name in SAMPLED:
                columns.append(Column(name=f"{name}_interval", title="95 %"))
        rows = [
            {"collection": name, "treatment": treatment, "signature": signature} | _row(of[treatment][signature])
            for name, of in measured.items()
            for treatment, signature in product(of, self.signatures)
        ]
        return Table(caption="Quality by signature and treatment", columns=columns, rows=rows, notes=NOTES)

    def _draw_leads(self, work: Work, leads: Mapping[tuple[str, str], Difference]) -> str:
        """Draw each lead with its interval, a row for each collection and treatment."""
        marks = [Mark(label=label, x=x) for label, x in (("", -MARGIN), ("", 0.0), ("", MARGIN))]
        panel = Panel(name="", x_label="lead of spots, F1", y_label="", marks=marks)
        points = []
        for (name, treatment), lead in leads.items():
            low, high = lead.interval
            mark = "" if Treatment(**self.treatments[treatment]).same_text else " *"
            points.append(Point(panel="", series=f"{name}: {treatment}{mark}", x=lead.value, y=0, low=low, high=high))
        return work.figure(draw_dots, "leads", LEADS_CAPTION, [panel], points)

    def _draw_splits(self, work: Work, leads: Mapping[tuple[str, str], Difference]) -> str:
        """Draw the distribution of each lead over splits, a panel for each collection."""
        names = dict.fromkeys(name for name, _ in leads)
        labels: dict[str, Any] = {"x_label": "lead of spots, F1", "y_label": "fraction of the splits"}
        panels = [Panel(name=name, marks=[Mark(label="", x=0.0)], **labels) for name in names]
        points = [
            Point(panel=name, series=treatment, x=float(x), y=(rank + 1) / self.splits)
            for (name, treatment), lead in leads.items()
            if Treatment(**self.treatments[treatment]).same_text
            for rank, x in enumerate(np.sort(lead.values[:, 0]))
        ]
        return work.figure(draw_lines, "splits", SPLITS_CAPTION, panels, points, columns=3)


def over_collections(
    work: Work,
    function: Callable[..., dict[str, Any]],
    methods: Mapping[str, Method],
    collections: Sequence[Any],
    describe: str,
    **arguments: Any,
) -> dict[str, list[dict[str, Any]]]:
    """Return the results of a function on collections, such as those of several seeds, by the label of the method."""
    stored = [work.read_all(methods, collection) for collection in collections]
    tasks = [task_of(function, of[label], method, **arguments) for label, method in methods.items() for of in stored]
    results = iter(work.cache.run(tasks, describe))
    return {label: list(islice(results, len(stored))) for label in methods}


Measured = Mapping[str, Mapping[str, OverSplits]]
"""Quality by treatment and signature."""


@dataclass(frozen=True)
class CorrectedTest:
    """Test of the family, with its p-value and that after correction."""

    hypothesis: str
    collection: str
    treatment: str
    difference: Difference
    p: float
    corrected: float

    @property
    def words(self) -> str:
        """Outcome, in the words of the protocol."""
        if self.corrected >= ALPHA:
            return "undecided"
        if self.hypothesis == "H2":
            return f"equal within {MARGIN:g}"
        above, below = ("larger", "smaller") if self.hypothesis in ("H3", "H4") else ("spots lead", "the rival leads")
        return above if self.difference.value > 0 else below

    def fact(self) -> Fact:
        """Return the corrected p-value as a fact."""
        name = f"{self.hypothesis}: {self.collection}, {self.treatment}"
        return Fact(name=f"{name}: corrected p", value=self.corrected, text=f"{self.corrected:.2g}, {self.words}")


def _table_of_tests(tests: Sequence[CorrectedTest]) -> Table:
    columns = [Column(name=name, title=name.capitalize()) for name in ("hypothesis", "collection", "treatment")]
    columns += [
        Column(name="difference", title="Difference"),
        Column(name="p", title="p", form=".2g"),
        Column(name="corrected", title="corrected", form=".2g"),
        Column(name="words", title="Outcome"),
    ]
    names = [column.name for column in columns]
    rows = [{name: getattr(test, name) for name in names} | {"difference": str(test.difference)} for test in tests]
    return Table(caption="Tests of the protocol", columns=columns, rows=rows, notes=TEST_NOTES)


def _row(result: OverSplits) -> dict[str, Any]:
    row: dict[str, Any] = {name: result.value(name) for name in (*SAMPLED, *QUALITY)}
    for name in SAMPLED:
        form = "{:.3f} to {:.3f}" if name == "f1" else "{:.1%} to {:.1%}"
        row[f"{name}_interval"] = form.format(*result.interval(name))
    return row


def _facts(measured: Mapping[str, Measured]) -> Iterator[Fact]:
    for name, of in measured.items():
        for treatment, by_signature in of.items():
            for signature, result in by_signature.items():
                for measure in ("f1", "lost", "left", "macro_f1", "tau"):
                    low, high = result.interval(measure)
                    title = (SAMPLED | QUALITY)[measure]
                    label = f"{name}: {signature}, {treatment}: {title if title == 'F1' else title.lower()}"
                    yield Fact(name=label, value=result.value(measure), low=low, high=high)
        (first, *_) = next(iter(of.values())).values()
        for kind in ("stories", "sites"):
            yield Fact(name=f"{name}: effective {kind} in a half", value=first.value(kind))


def _lead_facts(leads: Mapping[tuple[str, str], Difference]) -> Iterator[Fact]:
    for (name, treatment), lead in leads.items():
        label = f"{name}: lead of spots, {treatment}"
        yield lead.fact(label)
        yield Fact(name=f"{label}: deviation over splits", value=lead.deviation)
        yield Fact(name=f"{label}: splits below 0", value=lead.below)


def _templates(chosen: StudiedCollection) -> Sequence[Frame]:
    collection = chosen.composed()[0]
    return collection.parts()[1] if isinstance(collection, NewsFrames) else ()


def link_facts(templates: Sequence[Frame]) -> list[Fact]:
    """Compare the spots per token of links in templates with those of articles, with intervals over templates.

    Returns
    -------
    list of Fact
        The ratio over all templates, and the fraction of templates whose links have no spot signature.
    """
    scheme = SpotSignatures()
    counts = np.empty((len(templates), 4))
    for row, frame in zip(counts, templates, strict=True):
        links = " ".join(link.text(separator=" ") for link in LexborHTMLParser(frame.bare()).css("a"))
        for at, text in ((0, links), (2, " ".join(frame.paragraphs))):
            tokens = tokenize(text)
            row[at : at + 2] = len(scheme(tokens)), len(tokens)
    drawn = np.random.default_rng(0).integers(len(templates), size=(RESAMPLES, len(templates)))

    def ratio(sums: FloatArray) -> FloatArray:
        return (sums[..., 0] / sums[..., 1]) / (sums[..., 2] / sums[..., 3])

    silent = counts[:, 0] == 0
    names = ("spots per token, links of frames / articles", "share of frames whose links alone have no spot signature")
    values = (ratio(counts.sum(0)), silent.mean())
    intervals = (ends(ratio(counts[drawn].sum(1))), ends(silent[drawn].mean(1)))
    return [
        Fact(name=name, value=float(value), low=float(low), high=float(high))
        for name, value, (low, high) in zip(names, values, intervals, strict=True)
    ]
