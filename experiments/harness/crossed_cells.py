"""F1 of signatures on one collection in bootstrap samples, with the threshold chosen again in each sample.

The samples draw stories and sites by their names, so that the cells of all collections, signatures and numbers of sites
have the same samples, and their differences and means are paired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.harness.extracted_collections import Source, Stored, read_together
from experiments.harness.finished_cells import CellTask
from experiments.harness.template_free import TemplateFree
from experiments.resample import Levels, PairsOfLevels, f1_of, itself_and, multiplicities, sites_of
from spotsigs.evaluation.documents import of_stories, resampled_documents
from spotsigs.method import Method
from spotsigs.records import FloatArray
from spotsigs.workers.engines import Serial

Labelled = tuple[tuple[str, Method], ...]
"""Methods with their labels."""


@dataclass(frozen=True)
class SampledF1:
    """Quality of a signature on a collection: its first entries are of the collection itself, the others of samples."""

    tau: float  # threshold with the highest micro F1 on the collection itself; of equal ones, the lowest
    # Micro precision and recall there
    precision: float
    recall: float
    f1: FloatArray  # micro F1 at the threshold that is best in each sample. Shape (1 + samples,).
    # Numbers of false pairs at that threshold, and of the false pairs of two pages of one site. Shape (1 + samples,).
    false: FloatArray
    false_of_one_site: FloatArray

    @classmethod
    def of(cls, value: dict[str, Any]) -> SampledF1:
        """Return the quality of a finished cell."""
        arrays = {name: np.array(value[name], float) for name in ("f1", "false", "false_of_one_site")}
        return cls(**value | arrays)


@dataclass(frozen=True, kw_only=True)
class SignaturesInSamples(CellTask):
    """Quality of several signatures on a collection: the attributes of `SampledF1` of each method by its label.

    The pages are read once and their signatures are not stored, since hundreds of collections have a cell each.
    """

    collection: Any  # collection with truth, whose sites are known or one
    methods: Labelled  # exact methods by label; their thresholds are replaced
    taus: tuple[float, ...]  # thresholds, ascending
    samples: int  # number of bootstrap samples

    def __call__(self) -> dict[str, Any]:
        """Return the attributes of `SampledF1` by label."""
        with TemporaryDirectory() as folder:
            stored = _extracted(self.collection, self.methods, Path(folder))
            return {
                label: _sampled(of, method, self.taus, self.samples)
                for (label, method), of in zip(self.methods, stored, strict=True)
            }


@dataclass(frozen=True, kw_only=True)
class DecisionsInSamples(CellTask):
    """Fractions of stories lost and of duplicates left of several methods on a collection, by label and measure.

    Each is a list of 1 + `samples` values: of the collection itself, then of each bootstrap sample of stories.
    """

    # As in `SignaturesInSamples`; the thresholds of the methods are their own
    collection: Any
    methods: Labelled
    samples: int

    def __call__(self) -> dict[str, Any]:
        """Return the lists by label and by ``lost`` and ``left``."""
        value: dict[str, Any] = {}
        with TemporaryDirectory() as folder:
            stored = _extracted(self.collection, self.methods, Path(folder))
            for (label, method), of in zip(self.methods, stored, strict=True):
                matched = of.prepare_join(method).match(method.matcher.with_threads(1))
                decisions, truth = method.decide(matched)[0], of.truth()
                by_story = of_stories(decisions.kept, decisions.clusters, truth)
                drawn = multiplicities("story", list(truth.names), self.samples)
                lost, left = resampled_documents(by_story, np.vstack([np.ones(len(truth.names)), drawn]))[3:]
                value[label] = {"lost": np.round(lost, 6).tolist(), "left": np.round(left, 6).tolist()}
        return value


def _extracted(collection: Any, methods: Labelled, folder: Path) -> list[Stored]:
    """Return the signatures of each method, extracted in one pass over the pages."""
    sources = [Source.of(collection, method) for _, method in methods]
    distinct = list({repr(source): source for source in sources}.values())
    stored = read_together(distinct, folder, Serial())
    by_source = {repr(source): of for source, of in zip(distinct, stored, strict=True)}
    return [by_source[repr(source)] for source in sources]


def _sampled(stored: Stored, method: Method, taus: Sequence[float], samples: int) -> dict[str, Any]:
    pages = stored.source.collection
    whole = pages.collection if isinstance(pages, TemplateFree) else pages
    truth, sites = stored.truth(), sites_of(whole, stored.signatures().doc_ids)
    levels = Levels.of(truth, sites)
    pairs = stored.prepare_join(method).match(method.at(taus[0]).matcher.with_threads(1)).pairs
    every = PairsOfLevels.of(pairs, truth, levels, taus)
    drawn = itself_and(levels.drawn(samples))
    tallies = _tallies(every, drawn)
    f1 = f1_of(tallies)
    best = np.argmax(f1, axis=1)
    of_one_site = _at(_tallies(_false_of_one_site(every), drawn)[1], best)
    true, false, missed = (_at(each, best) for each in tallies)
    with np.errstate(invalid="ignore"):
        precision, recall = true[0] / (true[0] + false[0]), true[0] / (true[0] + missed[0])
    return {
        "tau": float(taus[best[0]]),
        "precision": float(precision),
        "recall": float(recall),
        "f1": np.round(_at(f1, best), 6).tolist(),
        "false": false.astype(int).tolist(),
        "false_of_one_site": of_one_site.astype(int).tolist(),
    }


def _tallies(every: PairsOfLevels, drawn: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return true, false and missed pairs of the collection, shape (3, samples, thresholds)."""
    tallies: FloatArray = every.tallies(np.ones((1, len(every.levels.stories)), np.bool_), *drawn)[:, 0]
    return tallies


def _false_of_one_site(every: PairsOfLevels) -> PairsOfLevels:
    sites = every.levels.sites
    chosen = ~every.true & (sites[every.i] == sites[every.j])
    columns = {name: getattr(every, name)[chosen] for name in ("i", "j", "reached", "true")}
    return replace(every, **columns)


def _at(values: FloatArray, best: NDArray[np.int64]) -> FloatArray:
    chosen: FloatArray = np.take_along_axis(values, best[:, None], 1)[:, 0]
    return chosen
