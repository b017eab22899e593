"""Observations of earlier results, tested as a second family by the rules of ``docs/protocol.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings, method_of
from experiments.harness.cross_validation import (
    Difference,
    FloatArray,
    OverSplits,
    f1_of,
    holm,
    over_splits,
    tallies_over_splits,
)
from experiments.harness.curves import STEP, thresholds
from experiments.harness.extracted_collections import Stored
from experiments.harness.study import SEVERAL, Work
from experiments.show.tables import Column, Table
from experiments.studies.signature_study import ALPHA, MARGIN, StudiedCollection, Treatment, over_collections
from spotsigs.errors import InputError, require
from spotsigs.method import Method

TAU = 0.44
"""The paper's threshold."""
BOUND = 0.85
"""The paper's upper IDF bound; it drops signatures of fewer than ``N ** (1 - BOUND)`` documents."""
REPEATS = 3
"""Measurements of the core seconds of a join."""

SPOTS: dict[str, Any] = {}
SHORTER = {"signature.d": 1, "signature.c": 2}
WORDS = {"signature": "shingles1"}
IMATCH = {"matcher": "imatch", "idf_min": 0.4, "idf_max": 0.75}
WHOLE, WITHOUT = Treatment(), Treatment(template_free=True)
EXTRACTED = ((WHOLE, (SPOTS, SHORTER, WORDS)), (WITHOUT, (SPOTS, WORDS)))
"""Signatures by treatment: each page is read, and its template removed, once for all of them."""

NOTES = (
    "The seven observations of docs/protocol.md, over the same splits and samples as its hypotheses. p: uncorrected, "
    "and after Holm's correction. An observation of several parts has the largest p-value of them; the bound of a part "
    "is in brackets. Tests of a difference are two-sided.",
)
TUNED = (
    "F1 of LSH-S at the paper's setting, k = 6 and l = 32, and with k and l chosen like the threshold on the other "
    "half, less that of the exact join, with 95 % intervals; core seconds of the joins at τ = .44, median of three runs"
)


@dataclass(frozen=True, kw_only=True)
class Partial:
    """Part of an observation: a difference, its p-value, and whether its interval is beyond its bound."""

    name: str
    difference: Difference
    p: float
    opposite: bool

    @classmethod
    def above(cls, name: str, difference: Difference, bound: float = 0.0) -> Partial:
        """Test a difference above a bound; at 0, two-sided."""
        p = min(1.0, 2 * difference.p_above(0)) if bound == 0 else difference.p_above(bound)
        opposite = difference.interval[1] < bound
        return cls(name=f"{name} (above {bound:g})", difference=difference, p=p, opposite=opposite)

    @classmethod
    def below(cls, name: str, difference: Difference) -> Partial:
        """Test a difference below 0, two-sided."""
        p, opposite = min(1.0, 2 * difference.p_below(0)), difference.interval[0] > 0
        return cls(name=f"{name} (below 0)", difference=difference, p=p, opposite=opposite)

    @classmethod
    def equal(cls, name: str, difference: Difference) -> Partial:
        """Test a difference within the margin."""
        low, high = difference.interval
        p, opposite = difference.p_equal(MARGIN), low > MARGIN or high < -MARGIN
        return cls(name=f"{name} (within {MARGIN:g})", difference=difference, p=p, opposite=opposite)


@dataclass(frozen=True, kw_only=True)
class Observations(Experiment):
    """The seven observations of the protocol, each with its parts and p-value.

    Attributes
    ----------
    collections : dict of str to dict
        Attributes of `StudiedCollection` by name: republished, package_docs_html, newsframes. All are needed.
    k, l : list of int
        Min-hashes of a key and tables of LSH-S to choose from; the paper has 6 and 32.
    splits, samples : int
        Random splits, and bootstrap samples in each.
    step : float
        Distance between thresholds, a divisor of 1.
    """

    collections: dict[str, dict[str, Any]] = field(default_factory=dict)
    k: list[int] = field(default_factory=lambda: [6])
    l: list[int] = field(default_factory=lambda: [32])  # noqa: E741 - the paper's name
    splits: int = 60
    samples: int = 40
    step: float = STEP

    def __post_init__(self) -> None:
        require(6 in self.k and 32 in self.l, "k and l must contain the paper's 6 and 32")

    def __call__(self, settings: Settings) -> str:
        """Write the tables; return them as text."""
        work = Work.begin(self.results, settings, SEVERAL)
        chosen = {name: StudiedCollection(**attributes) for name, attributes in self.collections.items()}
        runs = {}
        for name, collection in chosen.items():
            try:
                runs[name] = run = _Runs(self, work, name, collection, settings)
                run.extract_once()
            except InputError as error:
                raise InputError(f"{work.leave_out(name, error)}; the observations compare the collections") from error
        lsh = {name: run.tuned() for name, run in runs.items()}
        observations = dict(self._parts(runs, lsh))
        p = {name: max(part.p for part in parts) for name, parts in observations.items()}
        corrected = holm(p)
        work.facts([*_facts(observations, corrected), *(fact for of in lsh.values() for fact in of.facts)])
        tables = [_table(observations, p, corrected), _table_of_lsh(lsh)]
        return "\n\n".join(work.table(table, name) for table, name in zip(tables, ("observations", "lsh"), strict=True))

    def _parts(self, runs: Mapping[str, _Runs], lsh: Mapping[str, Tuned]) -> Iterator[tuple[str, list[Partial]]]:
        """Yield the observations in the order of the protocol, with their parts."""
        news, docs = runs["newsframes"], runs["republished"]
        change = {name: run.of_bound() for name, run in (("newsframes", news), ("republished", docs))}
        yield (
            "At τ = .44 the upper IDF bound raises F1 on newsframes and lowers it on republished, in clusters below "
            "N^0.15",
            [
                Partial.above("newsframes", change["newsframes"]),
                Partial.below("republished", change["republished"]),
                Partial.below("republished, stories below N^0.15", docs.of_bound(small=True)),
            ],
        )
        gain = Difference.of(news.over(IMATCH, WITHOUT), [news.over(IMATCH)])
        yield "I-Match-S has a higher F1 on newsframes without templates", [Partial.above("newsframes", gain)]
        yield (
            "No threshold transfers: the best of each collection costs more than .02 on another",
            transfers({name: run.curves() for name, run in runs.items()}),
        )
        yield (
            "LSH tuned over (k, l) has the F1 of the exact join within .02",
            [Partial.equal(name, tuned.difference) for name, tuned in lsh.items()],
        )
        shorter = Difference.of(docs.over(SHORTER), [docs.over(SPOTS)])
        yield (
            "d = 1, c = 2 is on republished at most .02 worse than 2, 3",
            [Partial.above("republished", shorter, -MARGIN)],
        )
        yield (
            "Template removal lowers the F1 of words on all three collections",
            [Partial.below(k, Difference.of(r.over(WORDS, WITHOUT), [r.over(WORDS)])) for k, r in runs.items()],
        )
        yield (
            "On republished more than half of the pairs that LSH misses at the paper's setting are false",
            [Partial.above("fraction − .5", docs.of_missed())],
        )


@dataclass(frozen=True)
class Tuned:
    """LSH-S with chosen and with published k and l, each less the exact join, and ratios of times."""

    difference: Difference
    published: Difference
    chosen: str
    seconds: dict[str, float]
    facts: list[Fact]


@dataclass(frozen=True)
class _Runs:
    """Methods on one collection, over splits."""

    study: Observations
    work: Work
    name: str
    chosen: StudiedCollection
    settings: Settings

    def extract_once(self) -> None:
        """Read the signatures of all that follows; an InputError if the collection cannot be fetched."""
        for treatment, signatures in EXTRACTED:
            methods = {str(k): self._method(choices) for k, choices in enumerate(signatures)}
            for collection in treatment.collections(self.chosen):
                self.work.read_all(methods, collection)

    def _method(self, choices: Mapping[str, Any]) -> Method:
        return method_of({"signature": "spotsigs"} | dict(choices), self.settings, **self.study.fixed)

    def _cells(
        self, function: Any, choices: Sequence[Mapping[str, Any]], treatment: Treatment, **more: Any
    ) -> list[list[dict[str, Any]]]:
        taus = more.pop("taus", None) or thresholds(self.study.step)
        study = self.chosen.split(self.study.splits, self.study.samples, taus)
        methods = {str(k): self._method(each) for k, each in enumerate(choices)}
        collections = treatment.collections(self.chosen)
        return [*over_collections(self.work, function, methods, collections, self.name, study=study, **more).values()]

    def over(self, choices: Mapping[str, Any], treatment: Treatment = WHOLE) -> OverSplits:
        """Return the quality of a method at thresholds of the other half."""
        [cells] = self._cells(over_splits, [choices], treatment)
        return OverSplits(tuple(cells))

    def tallies(self, choices: Mapping[str, Any], **more: Any) -> FloatArray:
        """Return counts of pairs, shape (seeds, splits, 3, halves, samples, thresholds)."""
        [cells] = self._cells(tallies_over_splits, [choices], WHOLE, **more)
        return np.array([cell["tallies"] for cell in cells])

    def curves(self) -> FloatArray:
        """Return F1 of spots at each threshold, shape (splits, samples, halves, thresholds), the mean over seeds."""
        f1: FloatArray = np.mean(f1_of(np.moveaxis(self.tallies(SPOTS), 2, 0)), axis=0).swapaxes(1, 2)
        return f1

    def of_bound(self, *, small: bool = False) -> Difference:
        """Return the change of F1 at the paper's threshold by the upper IDF bound, for all or for small stories."""
        n = len(self._first.signatures())
        more = {"taus": [TAU]} | ({"below": n ** (1 - BOUND)} if small else {})
        bounded, whole = (
            f1_of(np.moveaxis(self.tallies(choices, **more), 2, 0))[..., 0] for choices in ({"idf_max": BOUND}, SPOTS)
        )
        return Difference((bounded - whole).mean(axis=(0, 2)))

    def of_missed(self) -> Difference:
        """Return the fraction of false pairs among those of the exact join that LSH-S misses, less one half."""
        exact, lsh = (self.tallies(each, taus=[TAU])[..., 0] for each in (SPOTS, {"matcher": "lsh_native"}))
        true, false, _ = np.moveaxis(exact - lsh, 2, 0).sum(axis=(1, 3))
        return Difference(false / np.maximum(true + false, 1) - 0.5)

    def tuned(self) -> Tuned:
        """Return LSH-S at the k and l that are best on the other half, and at the paper's."""
        settings = list(product(self.study.k, self.study.l))
        exact = self.over(SPOTS)
        choices = [{"matcher": "lsh_native", "matcher.k": k, "matcher.l": l} for k, l in settings]  # noqa: E741
        cells = self._cells(over_splits, choices, WHOLE, decisions=False)
        splits = [OverSplits(tuple(of_seeds)) for of_seeds in cells]
        best = int(np.argmax([each.value("development") for each in splits]))
        paper = settings.index((6, 32))
        chosen = "{}, {}".format(*settings[best])
        times = {"exact": self._core_seconds({"matcher": "spotsigs_tight"})}
        times |= {"6, 32": self._core_seconds(choices[paper]), chosen: self._core_seconds(choices[best])}
        difference = Difference(-Difference.of(exact, splits).values)
        published = Difference.of(splits[paper], [exact])
        facts = [
            difference.fact(f"{self.name}: LSH-S, k and l chosen, less exact join: F1"),
            published.fact(f"{self.name}: LSH-S, k = 6, l = 32, less exact join: F1"),
            *(self._ratio(name, runs, times["exact"]) for name, runs in times.items() if name != "exact"),
        ]
        return Tuned(difference, published, chosen, {name: median(runs) for name, runs in times.items()}, facts)

    def _core_seconds(self, choices: Mapping[str, Any]) -> list[float]:
        """Measure the joins of the first seed at the paper's threshold, which other processes hardly disturb."""
        method = self._method(dict(choices) | {"tau": TAU})
        join, matcher, runs = self._first.joined(method), method.matcher.with_threads(1), []
        matcher(join.corpus)  # loads the kernels
        for _ in range(REPEATS):
            began = process_time()
            matcher(join.corpus)
            runs.append(process_time() - began)
        return runs

    def _ratio(self, name: str, runs: Sequence[float], exact: Sequence[float]) -> Fact:
        """Return the ratio of the core seconds of two joins, with its range over the runs."""
        ends = min(runs) / max(exact), max(runs) / min(exact)
        title = f"{self.name}: LSH-S, k, l = {name} / exact join, core seconds at τ = .44"
        return Fact(name=title, value=median(runs) / median(exact), low=ends[0], high=ends[1], over="runs")

    @cached_property
    def _first(self) -> Stored:
        return self.work.read(self._method(SPOTS), self.chosen.composed()[0])


def transfers(curves: Mapping[str, FloatArray]) -> list[Partial]:
    """Return for each collection the largest loss of F1 on another one at its best threshold.

    Parameters
    ----------
    curves : mapping of str to ndarray
        F1 by collection, shape (splits, samples, halves, thresholds). The threshold of one half of a collection is
        compared on the other half of another one with the best threshold of that one's first half.
    """
    parts = []
    for name, curve in curves.items():
        chosen = np.argmax(curve, axis=-1)[:, :, ::-1, None]
        losses = {}
        for other, f1 in curves.items():
            if other != name:
                best = np.argmax(f1, axis=-1)[:, :, ::-1, None]
                at = [np.take_along_axis(f1, each, -1)[..., 0] for each in (best, chosen)]
                losses[other] = Difference((at[0] - at[1]).mean(axis=2))
        worst = max(losses, key=lambda other: losses[other].value)
        part = Partial.above(f"{name} to {worst}", losses[worst], MARGIN)
        parts.append(replace(part, p=min(1.0, len(losses) * part.p)))
    return parts


def words_of(parts: Sequence[Partial], corrected: float) -> str:
    """Return the outcome of an observation: it holds, a part of it is refuted, or it is undecided."""
    if corrected < ALPHA:
        return "holds"
    refuted = [part.name for part in parts if part.p > 1 - ALPHA / 2 and part.opposite]
    return f"refuted: {', '.join(refuted)}" if refuted else "undecided"


def _table(
    observations: Mapping[str, Sequence[Partial]], p: Mapping[str, float], corrected: Mapping[str, float]
) -> Table:
    columns = [
        Column(name="number", title="", form=".0f"),
        Column(name="observation", title="Observation"),
        Column(name="parts", title="Differences in F1 (95 %)"),
        Column(name="p", title="p", form=".2g"),
        Column(name="corrected", title="corrected", form=".2g"),
        Column(name="words", title="Outcome"),
    ]
    rows = [
        {
            "number": number,
            "observation": name,
            "parts": "; ".join(f"{part.name}: {part.difference}" for part in parts),
            "p": p[name],
            "corrected": corrected[name],
            "words": words_of(parts, corrected[name]),
        }
        for number, (name, parts) in enumerate(observations.items(), start=1)
    ]
    return Table(caption="Observations of the protocol", columns=columns, rows=rows, notes=NOTES)


def _table_of_lsh(lsh: Mapping[str, Tuned]) -> Table:
    titles = {"collection": "Collection", "setting": "k, l", "difference": "F1 less exact join"}
    columns = [Column(name=name, title=title) for name, title in titles.items()]
    columns.append(Column(name="seconds", title="Core seconds", form=".3f"))
    rows = []
    for name, tuned in lsh.items():
        rows.append({"collection": name, "setting": "exact join", "seconds": tuned.seconds["exact"]})
        for label, difference, key in (
            ("6, 32 (paper)", tuned.published, "6, 32"),
            (f"{tuned.chosen} (chosen)", tuned.difference, tuned.chosen),
        ):
            seconds = tuned.seconds[key]
            rows.append({"collection": name, "setting": label, "difference": str(difference), "seconds": seconds})
    return Table(caption=TUNED, columns=columns, rows=rows)


def _facts(observations: Mapping[str, Sequence[Partial]], corrected: Mapping[str, float]) -> Iterator[Fact]:
    for number, (name, parts) in enumerate(observations.items(), start=1):
        text = f"{corrected[name]:.2g}, {words_of(parts, corrected[name])}"
        yield Fact(name=f"observation {number}: corrected p", value=corrected[name], text=text)
        for part in parts:
            yield part.difference.fact(f"observation {number}: {part.name}")
