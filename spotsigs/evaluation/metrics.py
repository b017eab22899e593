"""Precision, recall and F1 of pairs and clusters against a truth, with bootstrap intervals over clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass, fields
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spotsigs.errors import as_count, require, shown
from spotsigs.evaluation.documents import StoryCounts, count_stories, of_stories, resampled_documents
from spotsigs.records import Clusters, Pairs, Truth

FloatArray = NDArray[np.float64]
Tallies = tuple[FloatArray, FloatArray, FloatArray]
Interval = tuple[float, float]

MEASURES = ("precision", "recall", "f1")
MACRO, BCUBED = (tuple(f"{average}_{name}" for name in MEASURES) for average in ("macro", "bcubed"))
OF_DOCUMENTS = (*BCUBED, "lost", "left")
AVERAGES = (*MEASURES, *MACRO, *OF_DOCUMENTS)
RESAMPLES = 1000
"""Bootstrap samples of clusters for an interval."""

LEVEL = 0.95
"""Confidence level of intervals."""

DRAWN_AT_ONCE = 1 << 22
"""Numbers of clusters that are drawn at a time."""


@dataclass(frozen=True, slots=True)
class Averages:
    """Precision, recall and F1."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Numbers of pairs.

    Attributes
    ----------
    true_pairs, reported_pairs, positive_pairs : int
        Reported and true; reported, with judged pairs those that are judged; all true ones.
    unjudged_pairs : int
        Reported pairs that are not judged, which count neither as true nor as false; 0 if labels are the truth.
    """

    true_pairs: int
    reported_pairs: int
    positive_pairs: int
    unjudged_pairs: int


@dataclass(frozen=True, slots=True)
class Quality:
    """Precision, recall and F1 in three averages; a value is NaN where nothing defines it.

    Attributes
    ----------
    precision, recall, f1 : float
        Micro averages over pairs (the paper's text, section 5.1).
    macro : Averages
        Averages over truth clusters of at least two documents (the slides' label). A false pair counts against each
        cluster it touches; a cluster without any reported pair has no precision and F1 0.
    bcubed : Averages
        Averages over documents, see `spotsigs.evaluation.documents.b_cubed`.
    lost, left : float
        Fractions of the stories that are lost, and of the duplicates that are left.
    documents : StoryCounts
        Numbers of stories and duplicates.
    pairs : PairCounts
        Numbers of pairs.
    intervals : dict of str to (float, float)
        95 % intervals by resampling truth clusters, by the keys of `figures`; for B-cubed, ``lost`` and ``left``,
        stories. A value that more than 5 % of the samples leave undefined has none.
    """

    precision: float
    recall: float
    f1: float
    macro: Averages
    bcubed: Averages
    lost: float
    left: float
    documents: StoryCounts
    pairs: PairCounts
    intervals: dict[str, Interval]

    def figures(self) -> dict[str, Any]:
        """Return all values by the keys of ``metrics.json``, such as ``macro_f1`` and ``stories_lost``."""
        micro = (self.precision, self.recall, self.f1)
        averages = (*micro, *astuple(self.macro), *astuple(self.bcubed), self.lost, self.left)
        counts = asdict(self.documents) | asdict(self.pairs)
        return dict(zip(AVERAGES, averages, strict=True)) | counts | {"intervals": self.intervals}


FIGURES = (*AVERAGES, *(item.name for of in (StoryCounts, PairCounts) for item in fields(of)), "intervals")
"""Keys of `Quality.figures`."""


def _require_same_documents(pairs: Any, truth: Any, clusters: Any, kept: Any) -> None:
    """Refuse arguments of `evaluate` of another type, or of other documents than the truth."""
    require(isinstance(pairs, Pairs), f"pairs must be Pairs, got {shown(pairs)}; see Pairs.build")
    require(isinstance(truth, Truth), f"truth must be a Truth, got {shown(truth)}; see Truth.from_clusters")
    require(clusters is None or isinstance(clusters, Clusters), f"clusters must be Clusters, got {shown(clusters)}")
    n = len(truth.labels)
    sizes = {"pairs": pairs.n, "clusters": n if clusters is None else len(clusters)}
    for name, of in sizes.items():
        require(of == n, f"{name} are of {of:,} documents, the truth of {n:,}")
    mask = isinstance(kept, np.ndarray) and kept.dtype == np.bool_ and kept.shape == (n,)
    require(kept is None or mask, f"kept must be True or False for each of {n:,} documents")


def evaluate(
    pairs: Pairs,
    truth: Truth,
    clusters: Clusters | None = None,
    *,
    kept: NDArray[np.bool_] | None = None,
    resamples: int = RESAMPLES,
) -> Quality:
    """Compare pairs, clusters and decisions with the truth.

    Parameters
    ----------
    pairs : Pairs
        Reported pairs.
    truth : Truth
        Cluster labels.
    clusters : Clusters, optional
        By default clusters of leaders, made from the pairs.
    kept : ndarray of bool, shape (n,), optional
        True for each kept document; by default the representatives of the clusters.
    resamples : int
        Bootstrap resamples for the intervals; without intervals if 0.

    Raises
    ------
    InputError
        If the arguments are of different documents.
    """
    _require_same_documents(pairs, truth, clusters, kept)
    resamples = as_count("resamples", resamples, 0, 10**6)
    counted = tallies(pairs, truth)
    precision, recall, f1 = map(float, micro_averages(*counted))
    kept, clusters = _documents(pairs, truth, clusters, kept)
    by_story = of_stories(kept, clusters, truth)
    *bcubed, lost, left = resampled_documents(by_story, np.ones((1, by_story.shape[1])))[:, 0].tolist()
    true, false, missed = (float(tally.sum()) for tally in counted)
    unjudged = 0 if truth.judged is None else len(pairs) - round(true + false)
    return Quality(
        precision,
        recall,
        f1,
        macro=Averages(*map(float, macro_averages(*counted))),
        bcubed=Averages(*bcubed),
        lost=lost,
        left=left,
        documents=count_stories(kept, truth),
        pairs=PairCounts(round(true), round(true + false), round(true + missed), unjudged),
        intervals=_intervals(counted, by_story, resamples) if resamples else {},
    )


def _documents(
    pairs: Pairs, truth: Truth, clusters: Clusters | None, kept: NDArray[np.bool_] | None
) -> tuple[NDArray[np.bool_], Clusters]:
    """Return the kept documents and the clusters. By default, leaders form the clusters."""
    if clusters is None:
        from spotsigs.clustering.clusters import cluster

        clusters = cluster(pairs)
    if kept is None:
        kept = np.zeros(len(truth.labels), np.bool_)
        kept[clusters.representatives] = True
    return kept, clusters


def tallies(pairs: Pairs, truth: Truth) -> Tallies:
    """Count true, false and missed pairs by truth cluster, the input of every average and every resample.

    With judged pairs, only those count, and clusters are components of the positive ones.

    The arrays are float64 of shape (n_clusters + 1,). Half a false pair belongs to each cluster it touches; the last
    entry is for documents without a cluster.
    """
    count = max(len(truth.names), int(truth.labels.max(initial=-1)) + 1)
    true, false = np.zeros(count + 1), np.zeros(count + 1)
    sizes = np.bincount(truth.labels[truth.labels >= 0], minlength=count + 1).astype(float)
    positive = sizes * (sizes - 1) / 2
    if truth.judged is not None:
        first = truth.judged.keys[truth.judged.positive] // len(truth.labels)
        positive = np.bincount(truth.labels[first], minlength=count + 1).astype(float)
    for i, j, _ in pairs.chunks():
        a, b = truth.labels[i], truth.labels[j]
        same = (a == b) & (a >= 0)
        different = ~same
        if truth.judged is not None:
            same, different = truth.judged.of(i, j, len(truth.labels))
        true += np.bincount(a[same], minlength=count + 1)
        ends = np.concatenate([a[different], b[different]])
        false += np.bincount(np.where(ends < 0, count, ends), minlength=count + 1) / 2
    return true, false, positive - true


def micro_averages(true: FloatArray, false: FloatArray, missed: FloatArray) -> FloatArray:
    """Return precision, recall, F1 over all pairs, shape (3, ...); the last axis of `tallies` has the clusters."""
    return _averages(true.sum(-1), false.sum(-1), missed.sum(-1))


def macro_averages(true: FloatArray, false: FloatArray, missed: FloatArray) -> FloatArray:
    """Return precision, recall, F1 as `micro_averages`, averaged over the clusters that have true pairs to find."""
    per_cluster = _averages(true, 2 * false, missed)
    per_cluster[:, true + missed == 0] = np.nan
    with np.errstate(invalid="ignore"):
        averages: FloatArray = np.nansum(per_cluster, -1) / (~np.isnan(per_cluster)).sum(-1)
    return averages


def resampled_macro(tallies: Tallies, drawn: FloatArray) -> FloatArray:
    """Return averages over clusters of each bootstrap sample, as `resampled_micro`; tallies have shape (kinds,)."""
    true, false, missed = tallies
    per_cluster = np.where(true + missed == 0, np.nan, _averages(true, 2 * false, missed))
    with np.errstate(invalid="ignore"):
        averages: FloatArray = np.nan_to_num(per_cluster) @ drawn.T / (~np.isnan(per_cluster) @ drawn.T)
    return averages


def _averages(true: FloatArray, false: FloatArray, missed: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return np.stack([true / (true + false), true / (true + missed), 2 * true / (2 * true + false + missed)])


def drawn(counts: ArrayLike, resamples: int = RESAMPLES, rng: np.random.Generator | None = None) -> FloatArray:
    """Draw how many clusters of each kind there are in each bootstrap sample.

    Each cluster occurs a Poisson number of times with mean 1, as in the intervals of the studies, which draw stories
    and sites in this way. Clusters of equal tallies are one kind, and the sum of their numbers is one Poisson number,
    so that few are drawn.

    The counts of clusters by kind have shape (kinds,), the result has shape (resamples, kinds). Without a generator,
    the samples are the same each time.

    References
    ----------
    A. B. Owen, D. Eckles. Bootstrapping data arrays of arbitrary order. Annals of Applied Statistics 6, 2012.
    """
    sizes = np.asarray(counts)
    rng = rng or np.random.default_rng(0)
    return rng.poisson(sizes, (resamples, len(sizes))).astype(float)


def resampled_micro(tallies: Tallies, drawn: FloatArray) -> FloatArray:
    """Return precision, recall, F1 over all pairs of each bootstrap sample, shape (3, resamples, ...).

    The `tallies` have shape (..., kinds), leading axes are thresholds; the samples of `drawn` (resamples, kinds).
    """
    return _averages(*(drawn @ tally.T for tally in tallies))


def percentile_interval(resampled: FloatArray) -> FloatArray:
    """Return the 95 % percentile interval over the resamples (first axis), shape (2, ...).

    It is NaN where more than 5 % of the resamples do not define the value, since its ends could lie anywhere then.
    """
    tail = (1 - LEVEL) / 2
    known = np.mean(~np.isnan(resampled), axis=0)
    with catch_warnings():
        simplefilter("ignore", RuntimeWarning)  # of values that no resample defines
        ends = np.nanquantile(resampled, [tail, 1 - tail], axis=0)
    interval: FloatArray = np.where(known >= LEVEL, ends, np.nan)
    return interval


def _intervals(counted: Tallies, by_story: FloatArray, resamples: int) -> dict[str, Interval]:
    """Return the intervals of the measures that have one, see `percentile_interval`."""

    def of_pairs(kinds: FloatArray, drawn: FloatArray) -> FloatArray:
        tallies = (kinds[0], kinds[1], kinds[2])
        return np.concatenate([resampled_micro(tallies, drawn), resampled_macro(tallies, drawn)])

    averages = np.concatenate(
        [
            resampled(np.stack(counted), of_pairs, resamples),
            resampled(np.round(by_story, 9), resampled_documents, resamples),
        ]
    )
    ends = percentile_interval(averages.T).T.tolist()
    return {name: (low, high) for name, (low, high) in zip(AVERAGES, ends, strict=True) if low == low}


def resampled(
    table: FloatArray, averages: Callable[[FloatArray, FloatArray], FloatArray], resamples: int
) -> FloatArray:
    """Return the averages of each bootstrap sample of the columns of a table, shape (averages, resamples).

    Equal columns are one kind: `averages` gets a column for each kind, and how often it is in each sample, see `drawn`.
    """
    kinds, counts = np.unique(table, axis=1, return_counts=True)
    rng, batch = np.random.default_rng(0), max(1, DRAWN_AT_ONCE // len(counts))
    samples = (drawn(counts, min(batch, resamples - first), rng) for first in range(0, resamples, batch))
    return np.concatenate([averages(kinds, some) for some in samples], axis=1)


def relative_recall(pairs: Pairs, base: Pairs) -> float:
    """Return the fraction of the recall base's pairs that were reported, as in Table 2 of the paper.

    Both are pairs of the same documents. The result is NaN for an empty base.
    """
    for name, of in (("pairs", pairs), ("base", base)):
        require(isinstance(of, Pairs), f"{name} must be Pairs, got {shown(of)}")
    require(pairs.n == base.n, f"pairs are of {pairs.n:,} documents, the base of {base.n:,}")
    if len(base) == 0:
        return float("nan")
    is_joint = np.isin(base.i.astype(np.int64) * base.n + base.j, pairs.i.astype(np.int64) * pairs.n + pairs.j)
    return float(is_joint.mean())
