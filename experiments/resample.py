"""One bootstrap for every figure of quality: intervals, paired differences, held-out thresholds, corrections.

It resamples stories and sites where sites are known, since true pairs share a story and many false pairs share a site;
else stories alone. All methods have the same samples, so that differences are paired.

References
----------
A. B. Owen, D. Eckles. Bootstrapping data arrays of arbitrary order. Annals of Applied Statistics 6, 2012.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from experiments.claims.facts import Fact
from spotsigs.arrays.kernel import kernel
from spotsigs.errors import require
from spotsigs.evaluation.documents import stories as stories_of
from spotsigs.evaluation.metrics import micro_averages, percentile_interval
from spotsigs.records import FloatArray, IntArray, Pairs, Truth

RESAMPLES = 400
"""Bootstrap samples of an interval."""

SPLITS = 10
"""Random splits into halves, each of which has the threshold that is best on the other half."""
SAMPLES = 2_000
"""Bootstrap samples of a difference: enough for a small p-value after the correction for many methods."""

T = TypeVar("T")


def sites_of(collection: Any, names: Sequence[str]) -> list[str] | None:
    """Return the site of each document; None if they are not known.

    A collection can have the ``sites`` of its pages by id, or a ``site_pattern``, a regular expression whose group is
    the site in an id. Otherwise the site is the host, if all ids are URLs.
    """
    given = getattr(collection, "sites", None)
    if isinstance(given, Mapping):  # a number of sites, of which pages are made, names none
        return [given.get(name, "") for name in names]
    pattern = getattr(collection, "site_pattern", None)
    if pattern:
        return [_matched(pattern, name) for name in names]
    hosts = [urlsplit(name).hostname if "://" in name else None for name in names]
    return [host for host in hosts if host] if all(hosts) and hosts else None


def _matched(pattern: str, name: str) -> str:
    match = re.search(pattern, name)
    require(match is not None, f"the pattern {pattern!r} of sites does not match the id {name!r}")
    return match[1] if match else ""


def _checksum(kind: str, name: str) -> int:
    return int.from_bytes(blake2b(f"{kind} {name}".encode(), digest_size=8).digest(), "little")


def multiplicities(kind: str, names: Sequence[str], resamples: int = RESAMPLES) -> FloatArray:
    """Draw how often each story or site occurs in each bootstrap sample, shape (resamples, n).

    The number is Poisson with mean 1, from a random stream of the name, so that all methods, collections and seeds
    resample the same stories and sites alike and differences are paired.
    """
    # Poisson numbers, unlike a draw of n of n, are independent: each name has its own stream, whatever the other names.
    drawn = [np.random.default_rng(_checksum(kind, name)).poisson(1, resamples) for name in names]
    return np.array(drawn, float).reshape(len(names), resamples).T


def half_of(kind: str, names: Sequence[str], splits: int) -> NDArray[np.bool_]:
    """Return whether each name is in the first half of each random split, shape (splits, n).

    The order of the names in a split follows from random streams of the names.
    """
    streams = [np.random.default_rng(_checksum(f"half {kind}", name)).random(splits) for name in names]
    ranks = np.argsort(np.argsort(np.reshape(streams, (len(names), splits)), axis=0), axis=0)
    return (ranks < len(names) / 2).T


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Story and site of each document, and the names of both."""

    # (n,) numbers of the story and of the site of each document.
    stories: IntArray
    sites: IntArray
    # Names by number; there are no sites if there is one name.
    story_names: list[str]
    site_names: list[str]

    @classmethod
    def of(cls, truth: Truth, sites: Sequence[str] | None) -> Levels:
        """Number the stories of a truth and the sites of its documents."""
        labels = stories_of(truth)
        titles = [truth.names[label] if label < len(truth.names) else f"page {row}" for row, label in enumerate(labels)]
        story_names, stories = np.unique(titles, return_inverse=True)
        site_names, numbers = np.unique([""] * len(labels) if sites is None else sites, return_inverse=True)
        return cls(stories=stories, sites=numbers, story_names=story_names.tolist(), site_names=site_names.tolist())

    @property
    def sited(self) -> bool:
        """Whether there are sites to resample."""
        return len(self.site_names) > 1

    def halves(self, splits: int) -> NDArray[np.bool_]:
        """Return the documents of each half of each split, shape (splits, 2, n).

        A document belongs to a half if its story and its site do. Stories of one site each are split by their sites.
        """
        # If each story is on one site, a split of the sites splits the stories; a second one would halve the halves.
        sites_of_stories = len(np.unique(self.stories * len(self.site_names) + self.sites))
        crossed = not self.sited or sites_of_stories > len(self.story_names)
        first = [half_of("site", self.site_names, splits)[:, self.sites]] if self.sited else []
        first += [half_of("story", self.story_names, splits)[:, self.stories]] if crossed else []
        return np.stack([np.all(first, axis=0), ~np.any(first, axis=0)], axis=1)

    def drawn(self, samples: int) -> tuple[FloatArray, FloatArray]:
        """Return multiplicities of stories and of sites in each bootstrap sample; a single site is not drawn."""
        of_sites = multiplicities("site", self.site_names, samples)
        return (
            multiplicities("story", self.story_names, samples),
            of_sites if self.sited else np.ones_like(of_sites),
        )


@dataclass(frozen=True)
class PairsOfLevels:
    """Reported and missed true pairs of a collection, and the number of thresholds that each reaches."""

    # (pairs,) rows of the documents of each pair, and the number of thresholds of at most its similarity.
    i: IntArray
    j: IntArray
    reached: IntArray
    true: NDArray[np.bool_]  # (pairs,) whether each pair is one of duplicates
    levels: Levels  # stories and sites of the documents
    count: int  # number of thresholds

    @classmethod
    def of(cls, pairs: Pairs, truth: Truth, levels: Levels, taus: Sequence[float]) -> PairsOfLevels:
        """Add the true pairs that are missed, which reach no threshold, to the reported ones, without unjudged ones."""
        reported = pairs.i.astype(np.int64) * pairs.n + pairs.j  # one number for each pair, to find it among others
        reached = np.searchsorted(taus, pairs.similarity, side="right")
        i, j = pairs.i, pairs.j
        if truth.judged is None:
            true = levels.stories[i] == levels.stories[j]
            first, second = positive_pairs(levels.stories)
        else:
            true, false = truth.judged.of(pairs.i, pairs.j, pairs.n)
            judged = true | false  # nobody knows whether the others are duplicates, so they count as neither
            i, j, true, reached = i[judged], j[judged], true[judged], reached[judged]
            first, second = np.divmod(truth.judged.keys[truth.judged.positive], pairs.n)
        missed = ~np.isin(first * pairs.n + second, reported)
        count = int(missed.sum())
        return cls(
            np.concatenate([i, first[missed]]).astype(np.int32),
            np.concatenate([j, second[missed]]).astype(np.int32),
            np.concatenate([reached, np.zeros(count, np.int64)]).astype(np.int32),
            np.concatenate([true, np.ones(count, np.bool_)]),
            levels,
            len(taus),
        )

    def tallies(self, halves: NDArray[np.bool_], of_stories: FloatArray, of_sites: FloatArray) -> FloatArray:
        """Return true, false and missed pairs within each half, shape (3, halves, samples, thresholds).

        A sample draws each story and each site a number of times. The weight of a pair of pages is the product of these
        numbers over its one or two stories and its one or two sites.

        Parameters
        ----------
        halves : ndarray of bool, shape (halves, n)
            Documents of each half, which are disjoint.
        of_stories, of_sites : ndarray of float64, shape (samples, stories or sites)
            Copies in each sample.
        """
        numbers = np.where(halves.any(0), np.argmax(halves, axis=0), -1).astype(np.int32)  # -1: in no half
        stories, sites = self.levels.stories.astype(np.int32), self.levels.sites.astype(np.int32)
        both = np.zeros((len(halves), 2, self.count + 1, len(of_stories)))
        copies = np.ascontiguousarray(of_stories.T), np.ascontiguousarray(of_sites.T)
        _add_weights(self.i, self.j, self.reached, self.true, numbers, stories, sites, *copies, both)
        # `both` counts each pair at the number of thresholds that it reaches; a threshold reports all pairs above it.
        at_least = np.cumsum(both[:, :, :0:-1], axis=2)[:, :, ::-1]
        true, false = at_least[:, 0], at_least[:, 1]
        missed = both[:, 0].sum(1)[:, None] - true
        return np.stack([true, false, missed]).swapaxes(2, 3)


@kernel
def _add_weights(i, j, reached, true, halves, stories, sites, of_stories, of_sites, both):  # type: ignore[no-untyped-def]
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
        total = both[half, 0 if true[k] else 1, reached[k]]
        for m in range(len(total)):
            again = (1.0 if same_story else second_story[m]) * (1.0 if same_site else second_site[m])
            total[m] += story[m] * site[m] * again


def positive_pairs(stories: IntArray) -> tuple[IntArray, IntArray]:
    """Return all pairs of rows of one story."""
    order = np.argsort(stories, kind="stable")  # the rows of a story become adjacent, in ascending order
    starts = np.flatnonzero(np.diff(stories[order], prepend=-1))
    parts = [np.sort(part)[np.stack(np.triu_indices(len(part), 1))] for part in np.split(order, starts[1:])]
    i, j = np.concatenate(parts, axis=1) if parts else np.empty((2, 0), np.int64)
    return i, j


def crossed_averages(every: PairsOfLevels, drawn: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return precision, recall and F1 over all pairs in bootstrap samples, shape (3, samples, thresholds)."""
    whole = np.ones((1, len(every.levels.stories)), np.bool_)
    averages: FloatArray = micro_averages(*every.tallies(whole, *drawn)[:, 0, ..., None])
    return averages


def f1_of(tallies: FloatArray) -> FloatArray:
    """Return micro F1 of true, false and missed pairs (first axis), 0 if undefined."""
    f1: FloatArray = np.nan_to_num(micro_averages(*tallies[..., None])[2])
    return f1


def held_out_f1(every: Sequence[PairsOfLevels], *, splits: int = SPLITS, samples: int = SAMPLES) -> FloatArray:
    """Return F1 at thresholds that were chosen on other pages, in each bootstrap sample, shape (1 + samples,).

    Each half of each random split has the threshold of the highest F1 on the other half, and the value is the mean over
    halves and splits. The threshold is chosen again in each sample. The first entry is of the collection itself.

    Parameters
    ----------
    every : sequence of PairsOfLevels
        The pairs at all thresholds, or, of a matcher that does not report the same candidates at each, those at each.
    splits, samples : int
        Random splits, and bootstrap samples of stories and sites.
    """
    levels = every[0].levels
    of_stories, of_sites = itself_and(levels.drawn(samples))
    total = np.zeros(1 + samples)
    for halves in levels.halves(splits):
        f1 = np.concatenate([f1_of(part.tallies(halves, of_stories, of_sites)) for part in every], axis=-1)
        best = np.argmax(f1[::-1], axis=2)  # the halves change places: each is evaluated at the other's threshold
        total += np.take_along_axis(f1, best[..., None], 2)[..., 0].mean(0)
    return total / splits


def f1_of_samples(every: PairsOfLevels, samples: int = SAMPLES) -> FloatArray:
    """Return F1 at the lowest threshold of the collection itself, then in each sample of `held_out_f1`."""
    whole = np.ones((1, len(every.levels.stories)), np.bool_)
    return f1_of(every.tallies(whole, *itself_and(every.levels.drawn(samples))))[0, :, 0]


def itself_and(drawn: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return copies of stories and sites in each sample, after one copy of each."""
    of_stories, of_sites = (np.vstack([np.ones(part.shape[1]), part]) for part in drawn)
    return of_stories, of_sites


def mean_of_defined(values: FloatArray, axes: tuple[int, ...]) -> FloatArray:
    """Return the mean over axes of the values that are defined, NaN if none is."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        means: FloatArray = np.where(known, values, 0).sum(axes) / known.sum(axes)
    return means


def p_differs(samples: FloatArray) -> float:
    """Return the two-sided p-value of a difference from 0 by its bootstrap samples, counting one more."""
    # With the one more, no p-value is 0, which no number of samples could show.
    beyond = min(np.sum(samples <= 0), np.sum(samples >= 0))
    return min(1.0, 2 * float(beyond + 1) / (len(samples) + 1))


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
        highest = max(highest, min(1.0, (len(ordered) - rank) * p))  # a later test cannot be more significant
        corrected[name] = highest
    return corrected


def resampled_means(values: FloatArray, seed: int = 0) -> FloatArray:
    """Return the mean of each of 1,000 bootstrap samples of values."""
    rng = np.random.default_rng(seed)
    means: FloatArray = values[rng.integers(len(values), size=(1000, len(values)))].mean(1)
    return means


def resampled_fact(name: str, value: float, resampled: FloatArray) -> Fact:
    """Return a fact with the 95 % interval of its bootstrap samples."""
    low, high = percentile_interval(resampled)
    return Fact(name=name, value=float(value), low=float(low), high=float(high))
