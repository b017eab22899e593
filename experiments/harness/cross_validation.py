"""Quality over random splits of stories and sites, with bootstrap samples of both, and tests of differences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from experiments.claims.facts import Fact
from experiments.harness.extracted_collections import Stored
from spotsigs.arrays.kernel import kernel
from spotsigs.clustering.clusters import cluster
from spotsigs.errors import require
from spotsigs.evaluation.documents import stories as stories_of
from spotsigs.evaluation.metrics import ends, evaluate, micro_averages
from spotsigs.method import Method
from spotsigs.records import FloatArray, IntArray, Pairs, Truth

RESAMPLES = 400
"""Bootstrap samples of an interval."""

SITES = {"gold": r"/(.+)-[0-9]+\.html$", "newsframes": r"/(.+)-[0-9]+\.html$", "republished": r"^([^/.]+)"}
"""Pattern of the site in the id of a document, by the name of the collection."""

T = TypeVar("T")


def site_of(name: str, pattern: str) -> str:
    """Return the site in the id of a document; the empty string without a pattern."""
    match = re.search(pattern, name) if pattern else None
    require(match is not None or not pattern, f"the pattern {pattern!r} of sites does not match the id {name!r}")
    return match[1] if match else ""


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


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Story and site of each document, and the names of both.

    Attributes
    ----------
    stories, sites : ndarray of int, shape (n,)
        Numbers of the story and of the site of each document.
    story_names, site_names : list of str
        Names by number; there are no sites if there is one name.
    """

    stories: IntArray
    sites: IntArray
    story_names: list[str]
    site_names: list[str]

    @classmethod
    def of(cls, truth: Truth, names: Sequence[str], site: str) -> Levels:
        """Number the stories of a truth and the sites in the ids of its documents."""
        labels = stories_of(truth)
        titles = [truth.names[label] if label < len(truth.names) else f"page {row}" for row, label in enumerate(labels)]
        story_names, stories = np.unique(titles, return_inverse=True)
        site_names, sites = np.unique([site_of(name, site) for name in names], return_inverse=True)
        return cls(stories=stories, sites=sites, story_names=story_names.tolist(), site_names=site_names.tolist())

    def halves(self, splits: int, *, by_story: bool) -> NDArray[np.bool_]:
        """Return the documents of each half of each split, shape (splits, 2, n).

        A document belongs to a half if its story and its site do.
        """
        sited = len(self.site_names) > 1
        require(sited or by_story, "there is nothing to split: the ids have one site, and stories are not split")
        first = [half_of("site", self.site_names, splits)[:, self.sites]] if sited else []
        first += [half_of("story", self.story_names, splits)[:, self.stories]] if by_story else []
        return np.stack([np.all(first, axis=0), ~np.any(first, axis=0)], axis=1)

    def drawn(self, samples: int) -> tuple[FloatArray, FloatArray]:
        """Return multiplicities of stories and of sites in each bootstrap sample; a single site is not drawn."""
        of_sites = multiplicities("site", self.site_names, samples)
        return (
            multiplicities("story", self.story_names, samples),
            of_sites if len(self.site_names) > 1 else np.ones_like(of_sites),
        )

    def effective(self, half: NDArray[np.bool_]) -> dict[str, float]:
        """Return the effective numbers of stories, by positive pairs, and of sites, by pages, among some documents."""
        sizes = np.bincount(self.stories[half])
        stories, sites = effective_number(sizes * (sizes - 1) / 2), effective_number(np.bincount(self.sites[half]))
        return {"stories": stories, "sites": sites}


def effective_number(sizes: NDArray[Any]) -> float:
    """Return the number of equal clusters that weigh as much as clusters of these sizes: (sum n)^2 / sum n^2."""
    sizes = np.asarray(sizes, float)
    return float(sizes.sum() ** 2 / max((sizes**2).sum(), 1))


def half_of(kind: str, names: Sequence[str], splits: int) -> NDArray[np.bool_]:
    """Return whether each name is in the first half of each random split, shape (splits, n).

    The order of the names in a split follows from random streams of the names.
    """
    streams = [np.random.default_rng(_checksum(f"half {kind}", name)).random(splits) for name in names]
    ranks = np.argsort(np.argsort(np.reshape(streams, (len(names), splits)), axis=0), axis=0)
    return (ranks < len(names) / 2).T


@dataclass(frozen=True)
class PairsOfLevels:
    """Reported and missed true pairs of a collection, and the number of thresholds that each reaches.

    Attributes
    ----------
    i, j, reached : ndarray of int, shape (pairs,)
        Rows of the documents of each pair, and the number of thresholds of at most its similarity.
    levels : Levels
        Stories and sites of the documents.
    count : int
        Number of thresholds.
    """

    i: IntArray
    j: IntArray
    reached: IntArray
    levels: Levels
    count: int

    @classmethod
    def of(cls, pairs: Pairs, levels: Levels, taus: Sequence[float]) -> PairsOfLevels:
        """Add the true pairs that are missed, which reach no threshold, to the reported pairs."""
        i, j = positive_pairs(levels.stories)
        missed = ~np.isin(i * pairs.n + j, pairs.i.astype(np.int64) * pairs.n + pairs.j)
        reached = np.searchsorted(taus, pairs.similarity, side="right")
        return cls(
            np.concatenate([pairs.i, i[missed]]).astype(np.int32),
            np.concatenate([pairs.j, j[missed]]).astype(np.int32),
            np.concatenate([reached, np.zeros(missed.sum(), np.int64)]).astype(np.int32),
            levels,
            len(taus),
        )

    def tallies(self, halves: NDArray[np.bool_], of_stories: FloatArray, of_sites: FloatArray) -> FloatArray:
        """Return true, false and missed pairs within each half, shape (3, halves, samples, thresholds).

        A sample contains copies of stories and of sites, and a page for each copy of its story and of its site. A pair
        counts once for each copy of a story that both pages share, or for each two copies of two stories; sites alike.

        Parameters
        ----------
        halves : ndarray of bool, shape (halves, n)
            Documents of each half, which are disjoint.
        of_stories, of_sites : ndarray of float64, shape (samples, stories or sites)
            Copies in each sample.
        """
        numbers = np.where(halves.any(0), np.argmax(halves, axis=0), -1).astype(np.int32)
        stories, sites = self.levels.stories.astype(np.int32), self.levels.sites.astype(np.int32)
        shape = (len(halves), 2, self.count + 1, len(of_stories))
        both = np.zeros(shape)
        copies = np.ascontiguousarray(of_stories.T), np.ascontiguousarray(of_sites.T)
        _add_weights(self.i, self.j, self.reached, numbers, stories, sites, *copies, both)
        at_least = np.cumsum(both[:, :, :0:-1], axis=2)[:, :, ::-1]
        true, false = at_least[:, 0], at_least[:, 1]
        missed = both[:, 0].sum(1)[:, None] - true
        return np.stack([true, false, missed]).swapaxes(2, 3)


def crossed_averages(pairs: Pairs, levels: Levels, drawn: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return precision, recall and F1 over all pairs in bootstrap samples of stories and of sites.

    Parameters
    ----------
    pairs : Pairs
        Reported pairs, all of which count.
    levels : Levels
        Stories and sites of the documents.
    drawn : tuple of ndarray
        Copies of both in each sample, see `Levels.drawn`.

    Returns
    -------
    ndarray of float64, shape (3, samples)
    """
    whole = np.ones((1, len(levels.stories)), np.bool_)
    averages: FloatArray = micro_averages(*PairsOfLevels.of(pairs, levels, [0.0]).tallies(whole, *drawn)[:, 0])
    return averages


@kernel
def _add_weights(i, j, reached, halves, stories, sites, of_stories, of_sites, both):  # type: ignore[no-untyped-def]
    """Add the weight of each pair within a half, in each sample, to its half, truth and level.

    The weight is the product of the copies of the pair's distinct stories and sites.
    """
    for k in range(len(i)):
        one, other = i[k], j[k]
        half = halves[one]
        if half < 0 or half != halves[other]:
            continue
        story, second_story = of_stories[stories[one]], of_stories[stories[other]]
        site, second_site = of_sites[sites[one]], of_sites[sites[other]]
        same_story, same_site = stories[one] == stories[other], sites[one] == sites[other]
        total = both[half, 0 if same_story else 1, reached[k]]
        for m in range(len(total)):
            again = (1.0 if same_story else second_story[m]) * (1.0 if same_site else second_site[m])
            total[m] += story[m] * site[m] * again


@dataclass(frozen=True, kw_only=True)
class Splits:
    """Random splits of a collection into halves, bootstrap samples of each, and the thresholds of a method.

    Attributes
    ----------
    taus : sequence of float
        Thresholds, ascending.
    site : str
        Regular expression whose group is the site in the id of a document; empty if there are no sites.
    stories : bool
        Split the stories, too. False if a story is part of one site.
    splits, samples : int
        Random splits, and bootstrap samples of stories and sites for each.
    """

    taus: Sequence[float]
    site: str
    stories: bool
    splits: int
    samples: int

    def joined(self, stored: Stored, method: Method) -> JoinedCollection:
        """Match a collection at the lowest threshold; a matcher without one has a single threshold of 0."""
        taus = self.taus if method.tau is not None else [0.0]
        matcher = method.matcher if method.tau is None else method.matcher.at(min(taus))
        truth, matched = stored.truth(), stored.joined(method)(matcher.with_threads(1))
        return JoinedCollection(matched.pairs, truth, Levels.of(truth, matched.doc_ids, self.site), taus)

    def drawn(self, levels: Levels) -> Iterator[tuple[NDArray[np.bool_], tuple[FloatArray, FloatArray]]]:
        """Yield the halves of each split, and the copies of stories and sites in its samples; first, all are 1."""
        drawn = levels.drawn(self.splits * self.samples)
        of_stories, of_sites = (part.reshape(self.splits, self.samples, -1) for part in drawn)
        for split, halves in enumerate(levels.halves(self.splits, by_story=self.stories)):
            first, second = (np.vstack([np.ones(part.shape[2]), part[split]]) for part in (of_stories, of_sites))
            yield halves, (first, second)


@dataclass(frozen=True)
class JoinedCollection:
    """Pairs of a collection by a method, its truth, and thresholds."""

    pairs: Pairs
    truth: Truth
    levels: Levels
    taus: Sequence[float]

    @property
    def every(self) -> PairsOfLevels:
        """Reported and missed true pairs."""
        return PairsOfLevels.of(self.pairs, self.levels, self.taus)


def over_splits(*, stored: Stored, method: Method, study: Splits, decisions: bool = True) -> dict[str, Any]:
    """Evaluate a method on each half of random splits, at the threshold that is best on the other half.

    Signatures, IDF and pairs are those of the whole collection; a half has the pairs of its documents.

    Parameters
    ----------
    stored, method
        As in `experiments.harness.curves.quality_curve`; the matcher must be verified.
    study : Splits
        Splits, samples and thresholds.
    decisions : bool
        Return more than ``f1`` and ``development``.

    Returns
    -------
    dict
        Arrays as lists, by split and half. ``f1``, ``development`` (F1 of the threshold on the other half), ``lost``
        and ``left`` have an axis of samples between both, whose first entry is the collection itself; ``tau`` and the
        other measures are those of the collection itself. ``stories`` and ``sites``: effective numbers in the half.
    """
    matched = study.joined(stored, method)
    every, taus = matched.every, matched.taus
    of_splits: dict[str, list[Any]] = {}
    for halves, copies in study.drawn(matched.levels):
        f1 = f1_of(every.tallies(halves, *copies))
        best = np.argmax(f1[::-1], axis=2)
        values: dict[str, Any] = {}
        if decisions:
            of_halves = [_decided(matched, halves[half], taus[best[half, 0]], copies[0]) for half in (0, 1)]
            values = {name: np.transpose([each[name] for each in of_halves]) for name in of_halves[0]}
        values["f1"] = np.take_along_axis(f1, best[..., None], 2)[..., 0].T
        values["development"] = f1[::-1].max(2).T
        for name, value in values.items():
            of_splits.setdefault(name, []).append(np.round(value, 6).tolist())
    return of_splits


def tallies_over_splits(*, stored: Stored, method: Method, study: Splits, below: float = np.inf) -> dict[str, Any]:
    """Count true, false and missed pairs in each half of random splits, at each threshold.

    Parameters
    ----------
    stored, method, study
        As in `over_splits`.
    below : float
        Count the pairs of documents whose stories have fewer documents than this.

    Returns
    -------
    dict
        ``tallies``: lists of shape (splits, 3, halves, 1 + samples, thresholds), see `PairsOfLevels.tallies`.
    """
    matched = study.joined(stored, method)
    every, stories = matched.every, matched.levels.stories
    small = np.bincount(stories)[stories] < below
    drawn = study.drawn(matched.levels)
    return {"tallies": [every.tallies(halves & small, *copies).tolist() for halves, copies in drawn]}


def f1_of(tallies: FloatArray) -> FloatArray:
    """Return micro F1 of true, false and missed pairs (first axis), 0 if undefined."""
    f1: FloatArray = np.nan_to_num(micro_averages(*tallies[..., None])[2])
    return f1


def _decided(matched: JoinedCollection, half: NDArray[np.bool_], tau: float, copies: FloatArray) -> dict[str, Any]:
    """Return the measures of pairs and leaders of a half at a threshold; lost and left also in each sample."""
    pairs, truth, levels = matched.pairs, matched.truth, matched.levels
    rows, numbers = np.flatnonzero(half), (np.cumsum(half) - 1).astype(np.int32)
    reach = np.flatnonzero(pairs.similarity >= tau)
    chosen = reach[half[pairs.i[reach]] & half[pairs.j[reach]]]
    inside = Pairs(numbers[pairs.i[chosen]], numbers[pairs.j[chosen]], pairs.similarity[chosen], len(rows))
    labels, clusters = truth.labels[rows], cluster(inside)
    quality = evaluate(inside, Truth(labels, truth.names), clusters, resamples=0).figures()
    kept = np.isin(np.arange(len(rows)), clusters.representatives)
    known, stories = np.unique(levels.stories[rows], return_inverse=True)
    lost, left = resampled_decisions(kept, stories, copies[:, known])
    names = ("precision", "recall", "macro_f1", "bcubed_f1")
    measures = {name: quality[name] for name in names} | {"tau": tau, "lost": lost, "left": left}
    return measures | levels.effective(half)


def positive_pairs(stories: IntArray) -> tuple[IntArray, IntArray]:
    """Return all pairs of rows of one story."""
    order = np.argsort(stories, kind="stable")
    starts = np.flatnonzero(np.diff(stories[order], prepend=-1))
    parts = [np.sort(part)[np.stack(np.triu_indices(len(part), 1))] for part in np.split(order, starts[1:])]
    i, j = np.concatenate(parts, axis=1) if parts else np.empty((2, 0), np.int64)
    return i, j


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
class OverSplits:
    """Quality of a method over splits, from a result of `over_splits` for each seed of a collection."""

    cells: tuple[dict[str, Any], ...]

    def samples(self, measure: str) -> FloatArray:
        """Return a measure by split and sample, the mean over seeds and halves; sample 0 is the collection itself."""
        values = np.array([cell[measure] for cell in self.cells], float)
        return mean_of_defined(values.reshape(*values.shape[:2], -1, 2), (0, 3))

    def value(self, measure: str) -> float:
        """Return the mean of a measure over splits."""
        return float(np.nanmean(self.samples(measure)[:, 0]))

    def interval(self, measure: str) -> tuple[float, float]:
        """Return the 95 % interval of a measure over splits, and samples if it has any."""
        samples = self.samples(measure)
        low, high = ends(samples[:, 1:].ravel() if samples.shape[1] > 1 else samples[:, 0])
        return float(low), float(high)


def mean_of_defined(values: FloatArray, axes: tuple[int, ...]) -> FloatArray:
    """Return the mean over axes of the values that are defined, NaN if none is."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        means: FloatArray = np.where(known, values, 0).sum(axes) / known.sum(axes)
    return means


@dataclass(frozen=True)
class Difference:
    """Difference in F1 by split and sample, shape (splits, 1 + samples); sample 0 is the collection itself."""

    values: FloatArray

    @classmethod
    def of(cls, better: OverSplits, others: Sequence[OverSplits]) -> Difference:
        """Subtract the best of the others, which is chosen, like the thresholds, on the other half in each sample."""
        by_seed = []
        for seed, cell in enumerate(better.cells):
            development = np.array([other.cells[seed]["development"] for other in others])
            f1 = np.array([other.cells[seed]["f1"] for other in others])
            rival = np.take_along_axis(f1, np.argmax(development, axis=0)[None], 0)[0]
            by_seed.append(np.array(cell["f1"]) - rival)
        return cls(np.mean(by_seed, axis=(0, 3)))

    def minus(self, other: Difference) -> Difference:
        """Return the difference of two differences."""
        return Difference(self.values - other.values)

    @property
    def value(self) -> float:
        """Mean over splits."""
        return float(self.values[:, 0].mean())

    @property
    def deviation(self) -> float:
        """Standard deviation over splits."""
        return float(self.values[:, 0].std(ddof=1))

    @property
    def below(self) -> float:
        """Fraction of the splits with a value below 0."""
        return float(np.mean(self.values[:, 0] < 0))

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the samples of all splits."""
        low, high = ends(self.values[:, 1:].ravel())
        return float(low), float(high)

    def p_above(self, bound: float) -> float:
        """Return the one-sided p-value of a difference above the bound: samples at or below it, and one more."""
        samples = self.values[:, 1:].ravel()
        return float((np.sum(samples <= bound) + 1) / (len(samples) + 1))

    def p_below(self, bound: float) -> float:
        """Return the one-sided p-value of a difference below the bound."""
        return Difference(-self.values).p_above(-bound)

    @property
    def p_differs(self) -> float:
        """Two-sided p-value of a difference from 0."""
        return min(1.0, 2 * min(self.p_above(0), self.p_below(0)))

    def p_equal(self, margin: float) -> float:
        """Return the p-value of two one-sided tests for a difference within the margin."""
        return max(self.p_above(-margin), self.p_below(margin))

    def fact(self, name: str) -> Fact:
        """Return the difference as a fact."""
        low, high = self.interval
        return Fact(name=name, value=self.value, low=low, high=high)

    def __str__(self) -> str:
        return "{:+.3f} ({:+.3f} to {:+.3f})".format(self.value, *self.interval)


def holm(p_values: Mapping[T, float]) -> dict[T, float]:
    """Return the p-values of a family of tests after Holm's correction.

    Examples
    --------
    >>> holm({"a": 0.25, "b": 0.125})
    {'b': 0.25, 'a': 0.25}
    """
    corrected, highest = {}, 0.0
    ordered = sorted(p_values.items(), key=lambda item: item[1])
    for rank, (name, p) in enumerate(ordered):
        highest = max(highest, min(1.0, (len(ordered) - rank) * p))
        corrected[name] = highest
    return corrected
