"""Two-fold cross-validation over disjoint stories and sites, and intervals by a bootstrap that resamples both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.claims.facts import Fact
from experiments.config import composed, overrides
from experiments.work.curves import FloatArray, thresholds
from experiments.work.extracted_collections import Stored
from experiments.work.study import Line, Work, equally_exact
from spotsigs.clustering.clusters import cluster
from spotsigs.contracts import Collection, Matcher, Shard
from spotsigs.errors import require
from spotsigs.evaluation.documents import b_cubed, decided
from spotsigs.evaluation.documents import stories as stories_of
from spotsigs.evaluation.metrics import ends, micro_averages, tallies
from spotsigs.records import Clusters, Document, IntArray, Skipped, Truth
from spotsigs.signatures.idf import IdfFilter

RESAMPLES = 400
"""Bootstrap samples of an interval."""


@dataclass(frozen=True, kw_only=True)
class HalvedCollection:
    """Collection of a study, and its cut into halves.

    Attributes
    ----------
    data : str
        Overrides of ``data``, separated by spaces.
    site : str
        Regular expression whose group is the site in the id of a document; empty if there are no sites.
    stories : bool
        Cut the stories, too. False if a story is part of one site.
    """

    data: str
    site: str = ""
    stories: bool = True

    def halves(self) -> list[Half]:
        """Return both halves."""
        whole = composed(*self.data.split(), *origin(self.data)).collection
        return [Half(collection=whole, number=number, site=self.site, stories=self.stories) for number in (0, 1)]


@dataclass(frozen=True, kw_only=True)
class Half(Collection):
    """Documents of a collection whose story and whose site are in one half, 0 or 1; see `HalvedCollection`."""

    collection: Any
    number: int
    site: str = ""
    stories: bool = True

    def shards(self) -> Sequence[Shard]:
        """Return the shards of the collection without the other documents."""
        return [partial(_kept, shard, self) for shard in self.collection.shards()]

    def __contains__(self, document: Document) -> bool:
        names = [("site", site_of(document.id, self.site))] if self.site else []
        names += [("story", document.cluster or document.id)] if self.stories else []
        return all(_checksum(*name) & 1 == self.number for name in names)


def _kept(shard: Shard, part: Half) -> Iterator[Document | Skipped]:
    return (record for record in shard() if isinstance(record, Document) and record in part)


def site_of(name: str, pattern: str) -> str:
    """Return the site in the id of a document; the empty string without a pattern."""
    found = re.search(pattern, name) if pattern else None
    require(found is not None or not pattern, f"the pattern {pattern!r} of sites does not match the id {name!r}")
    return found[1] if found else ""


def _checksum(kind: str, name: str) -> int:
    return int.from_bytes(blake2b(f"{kind} {name}".encode(), digest_size=8).digest(), "little")


def multiplicities(kind: str, names: Sequence[str], resamples: int = RESAMPLES) -> FloatArray:
    """Draw how often each story or site occurs in each bootstrap sample, shape (resamples, n).

    The number is Poisson with mean 1, from a random stream of the name, so that all methods, collections and seeds
    resample the same stories and sites alike and differences are paired.

    References
    ----------
    A. B. Owen, D. Eckles. Bootstrapping data arrays of arbitrary order. Annals of Applied Statistics 6, 2012.
    """
    drawn = [np.random.default_rng(_checksum(kind, name)).poisson(1, resamples) for name in names]
    return np.array(drawn, float).reshape(len(names), resamples).T


def resampled_pairs(
    i: IntArray,
    j: IntArray,
    factors: Sequence[tuple[IntArray, FloatArray]],
) -> FloatArray:
    """Return the number of pairs in each bootstrap sample of the crossed factors.

    A sample contains copies of stories and of sites, and a page for each copy of its story and of its site. A pair
    counts once for each copy of a story that both pages share, or for each two copies of two stories; sites alike.

    Parameters
    ----------
    i, j : ndarray of int, shape (m,)
        Pairs of rows.
    factors : sequence of (ndarray of int of shape (n,), ndarray of float64 of shape (resamples, levels))
        The level of each row, and the multiplicity of each level in each sample.

    Returns
    -------
    ndarray of float64, shape (resamples,)
    """
    resamples = len(factors[0][1])
    columns = []
    for levels, drawn in factors:
        with_one = np.hstack([drawn, np.ones((resamples, 1))])
        same = levels[i] == levels[j]
        columns.append((with_one, levels[i], np.where(same, drawn.shape[1], levels[j])))
    counts = np.zeros(resamples)
    for sample in range(resamples):
        weight = np.ones(len(i))
        for drawn, one, other in columns:
            weight *= drawn[sample][one] * drawn[sample][other]
        counts[sample] = weight.sum()
    return counts


def evaluated_at(*, stored: Stored, idf_filter: IdfFilter, matcher: Matcher, sets: bool, site: str) -> dict[str, Any]:
    """Evaluate a matcher at its threshold, with bootstrap samples of stories and sites.

    Parameters are those of `experiments.work.curves.quality_curve` and the pattern of sites of `HalvedCollection`.

    Returns
    -------
    dict
        The measures of pairs and decisions; ``resampled``, samples of F1, lost and left.
    """
    truth, corpus = stored.truth(), stored.corpus(idf_filter, sets=sets)
    pairs = matcher.with_threads(1)(corpus)
    numbered, stories = story_numbers(truth)
    sites, site_numbers = np.unique([site_of(name, site) for name in corpus.vectors.doc_ids], return_inverse=True)
    of_stories = multiplicities("story", numbered)
    of_sites = multiplicities("site", sites.tolist()) if site else np.ones((RESAMPLES, 1))
    factors = [(stories, of_stories), (site_numbers, of_sites)]
    positive = positive_pairs(stories)
    true = stories[pairs.i] == stories[pairs.j]
    found, false, every = (
        resampled_pairs(i, j, factors)
        for i, j in ((pairs.i[true], pairs.j[true]), (pairs.i[~true], pairs.j[~true]), positive)
    )
    n_true = float(true.sum())
    averages = micro_averages(*(np.array([n]) for n in (n_true, len(pairs) - n_true, len(positive[0]) - n_true)))
    clusters = cluster(pairs)
    kept = kept_by(clusters)
    decisions = decided(kept, truth)
    lost, left = resampled_decisions(kept, stories, of_stories)
    return {
        **dict(zip(("precision", "recall", "f1"), np.nan_to_num(averages).tolist(), strict=True)),
        "lost": decisions.lost,
        "left": decisions.left,
        "stories_lost": decisions.stories_lost,
        "duplicates_left": decisions.duplicates_left,
        "bcubed_f1": b_cubed(clusters, truth)[2],
        "largest": int(clusters.sizes.max(initial=0)),
        "resampled": {
            "f1": micro_averages(*(x[:, None] for x in (found, false, every - found)))[2].tolist(),
            "lost": lost.tolist(),
            "left": left.tolist(),
        },
    }


def kept_by(clusters: Clusters) -> NDArray[np.bool_]:
    """Return True for each document that is kept, the representative of its cluster."""
    kept = np.zeros(len(clusters), np.bool_)
    kept[clusters.representatives] = True
    return kept


def positive_pairs(stories: IntArray) -> tuple[IntArray, IntArray]:
    """Return all pairs of rows of one story."""
    order = np.argsort(stories, kind="stable")
    starts = np.flatnonzero(np.diff(stories[order], prepend=-1))
    parts = [np.sort(part)[np.stack(np.triu_indices(len(part), 1))] for part in np.split(order, starts[1:])]
    i, j = np.concatenate(parts, axis=1) if parts else np.empty((2, 0), np.int64)
    return i, j


def story_numbers(truth: Truth) -> tuple[list[str], IntArray]:
    """Return the names of the stories, sorted, and the number of the story of each document."""
    labels = stories_of(truth)
    names = [truth.names[label] if label < len(truth.names) else f"page {row}" for row, label in enumerate(labels)]
    numbered, stories = np.unique(names, return_inverse=True)
    return numbered.tolist(), stories


def resampled_decisions(kept: NDArray[np.bool_], stories: IntArray, drawn: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the fractions of lost stories and of left duplicates in each bootstrap sample of stories.

    Parameters
    ----------
    kept : ndarray of bool, shape (n,)
        True for each kept document.
    stories : ndarray of int, shape (n,)
        Number of the story of each document.
    drawn : ndarray of float64, shape (resamples, stories)
        From `multiplicities`.
    """
    sizes, stays = np.bincount(stories), np.bincount(stories, kept)
    with np.errstate(invalid="ignore", divide="ignore"):
        lost = drawn @ (stays == 0) / drawn.sum(1)
        left = drawn @ np.maximum(stays - 1, 0) / (drawn @ (sizes - 1))
    return lost, left


@dataclass(frozen=True)
class Result:
    """Quality of a method on both halves, each at the threshold that is best on the other.

    Attributes
    ----------
    taus : tuple of float
        Threshold for each half.
    development : tuple of float
        F1 of that threshold on the half that it was chosen on.
    cells : tuple of dict
        Results of `evaluated_at` by half.
    """

    taus: tuple[float, ...]
    development: tuple[float, ...]
    cells: tuple[dict[str, Any], ...]

    def value(self, measure: str) -> float:
        """Return the mean of a measure over the halves; for ``largest``, the maximum."""
        found = [cell[measure] for cell in self.cells]
        return float(max(found) if measure == "largest" else np.mean(found))

    def resampled(self, half: int, measure: str) -> FloatArray:
        """Return a measure of each bootstrap sample of a half, NaN if it has no pair."""
        return np.array(self.cells[half]["resampled"][measure], float)

    @cached_property
    def interval(self) -> dict[str, tuple[float, float]]:
        """95 % intervals of F1, lost and left."""
        found = {}
        for measure in ("f1", "lost", "left"):
            low, high = ends(np.mean([self.resampled(half, measure) for half in (0, 1)], axis=0))
            found[measure] = float(low), float(high)
        return found


@dataclass(frozen=True)
class Difference:
    """Difference of two methods in F1, the mean over the halves, and that of each bootstrap sample."""

    value: float
    resampled: FloatArray

    @classmethod
    def of(cls, better: Result, others: Sequence[Result]) -> Difference:
        """Subtract the best of the others, which is chosen on the half that the thresholds are chosen on."""
        values, samples = [], []
        for half in (0, 1):
            other = max(others, key=lambda result: result.development[half])
            values.append(better.cells[half]["f1"] - other.cells[half]["f1"])
            samples.append(better.resampled(half, "f1") - other.resampled(half, "f1"))
        return cls(float(np.mean(values)), np.mean(samples, axis=0))

    def minus(self, other: Difference) -> Difference:
        """Return the difference of two differences."""
        return Difference(self.value - other.value, self.resampled - other.resampled)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval."""
        low, high = ends(self.resampled)
        return float(low), float(high)

    @property
    def verdict(self) -> str:
        """``holds`` or ``does not hold`` if the interval is on one side of 0, else ``inconclusive``."""
        low, high = self.interval
        return "holds" if low > 0 else "does not hold" if high < 0 else "inconclusive"

    def fact(self, name: str) -> Fact:
        """Return the difference as a fact."""
        low, high = self.interval
        return Fact(name=name, value=self.value, low=low, high=high)

    def __str__(self) -> str:
        return "{:+.3f} ({:+.3f} to {:+.3f})".format(self.value, *self.interval)


def cross_validated(
    work: Work, name: str, halved: HalvedCollection, lines: Sequence[Line], step: float
) -> dict[str, Result]:
    """Choose the threshold of each method on one half and evaluate it on the other, both ways.

    Returns the results by label of the method, whose matcher must be verified. Decisions are those of leaders.
    """
    taus = thresholds(step)
    stored = [work.read_lines(lines, half) for half in halved.halves()]

    def cells(function: Any, describe: str, arguments: Callable[[int, Line], dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the cells of each half by the label of the method."""
        tasks = [
            line.task(function, half[line.label], **arguments(number, line))
            for number, half in enumerate(stored)
            for line in lines
        ]
        found = iter(work.cells.run(tasks, f"{name}: {describe}"))
        return [{line.label: next(found) for line in lines} for _ in stored]

    curves = cells(f1_over_tau, "thresholds", lambda _, __: {"taus": taus})
    best = [{label: int(np.argmax(cell["f1"])) for label, cell in half.items()} for half in curves]

    def at_chosen(number: int, line: Line) -> dict[str, Any]:
        tau = taus[best[1 - number][line.label]]
        return {"matcher": equally_exact(line.matcher).at(tau), "site": halved.site}

    evaluated = cells(evaluated_at, "evaluation", at_chosen)
    return {
        line.label: Result(
            taus=tuple(taus[best[1 - number][line.label]] for number in (0, 1)),
            development=tuple(max(curves[1 - number][line.label]["f1"]) for number in (0, 1)),
            cells=tuple(half[line.label] for half in evaluated),
        )
        for line in lines
    }


def f1_over_tau(
    *, stored: Stored, idf_filter: IdfFilter, matcher: Matcher, taus: Sequence[float], sets: bool
) -> dict[str, Any]:
    """Return F1 over pairs at each threshold, from one join at the lowest; parameters as for `evaluated_at`."""
    truth = stored.truth()
    pairs = matcher.at(min(taus)).with_threads(1)(stored.corpus(idf_filter, sets=sets))
    found = [tallies(pairs.at(tau), truth) for tau in taus]
    return {"f1": [float(np.nan_to_num(micro_averages(*tally)[2])) for tally in found]}


def origin(data: str) -> list[str]:
    """Return the overrides of the command line that state the origin of newsframes and accept its licence."""
    words = ("data.path=", "data.accept_licence=", "data.cache=")
    return [word for word in overrides() if word.startswith(words)] if "newsframes" in data else []
