"""Quality curves: evaluation of a method over thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.work.extracted_collections import Stored
from spotsigs.clustering.clusters import ClusterMethod, cluster
from spotsigs.errors import InputError, require
from spotsigs.evaluation.documents import b_cubed, decided
from spotsigs.evaluation.metrics import (
    MEASURES,
    drawn,
    ends,
    macro_averages,
    micro_averages,
    resampled_micro,
    tallies,
)
from spotsigs.matching.thresholds import JoinedOnce
from spotsigs.records import Matcher, Pairs, Truth
from spotsigs.signatures.idf import IdfFilter

FloatArray = NDArray[np.float64]


def judge(
    *, stored: Stored, idf_filter: IdfFilter, matcher: Matcher, taus: Sequence[float], sets: bool = False
) -> dict[str, Any]:
    """Count true, false and missed pairs at each threshold.

    One join serves all thresholds of a verified matcher, see `spotsigs.matching.thresholds.JoinedOnce`.

    Parameters
    ----------
    stored : Stored
        Signatures of a collection with truth.
    idf_filter : IdfFilter
        Filter of signatures.
    matcher : Matcher
        Matcher; its ``tau`` is replaced by the thresholds.
    taus : sequence of float
        Thresholds, ascending; empty for a matcher without one.
    sets : bool
        Count every signature once.

    Returns
    -------
    dict
        ``taus``; ``true, false, missed`` by threshold and truth cluster; ``pairs`` by threshold; ``decisions`` by
        clustering, measure and threshold, see `decision_measures`; ``documents``, ``signatures``, ``occurrences``,
        ``entries``.
    """
    corpus = stored.corpus(idf_filter, sets=sets)
    truth = stored.truth()
    if truth is None:
        raise InputError("the collection has no truth to evaluate against; choose one that has, as in data=gold")
    thresholds: list[float | None] = list(taus) or [None]
    has_curve = matcher.threshold is not None or thresholds == [None]
    require(has_curve, f"{matcher.label} has no threshold to draw a curve over")
    matcher = matcher.with_threads(1)
    joined, counters = JoinedOnce(corpus), {}
    counts, pairs = [], []
    decisions: dict[str, dict[str, list[float]]] = {method.value: {} for method in ClusterMethod}
    for tau in thresholds:
        reported = joined(matcher.at(tau))
        counters = counters or dict(reported.counters)
        counts.append(tallies(reported, truth))
        pairs.append(len(reported))
        for method, measured in decisions.items():
            for name, value in decision_measures(reported, truth, method).items():
                measured.setdefault(name, []).append(value)
    vectors = corpus.vectors
    return {
        "taus": thresholds,
        "pairs": pairs,
        **{name: [c[m].tolist() for c in counts] for m, name in enumerate(("true", "false", "missed"))},
        "decisions": decisions,
        "counters": counters,
        "documents": len(vectors),
        "documents_matched": int(np.count_nonzero(vectors.lengths)),
        "signatures": vectors.n_signatures,
        "occurrences": vectors.n_occurrences,
        "entries": len(vectors.ids),
    }


def decision_measures(pairs: Pairs, truth: Truth, method: str = "leaders") -> dict[str, float]:
    """Return the measures of the decisions that pairs lead to.

    Parameters
    ----------
    pairs : Pairs
        Pairs at one threshold.
    truth : Truth
        Cluster labels.
    method : {"leaders", "components"}
        Clustering; the first document of each cluster is kept.

    Returns
    -------
    dict
        ``lost`` and ``left``, fractions of the stories and of the duplicates; ``stories_lost``, ``duplicates_left``,
        ``kept``, ``bcubed_f1``, ``largest``.
    """
    clusters = cluster(pairs, clusters=method)
    kept = np.zeros(pairs.n, np.bool_)
    kept[clusters.representatives] = True
    found = decided(kept, truth)
    return {
        "lost": found.lost,
        "left": found.left,
        "stories_lost": found.stories_lost,
        "duplicates_left": found.duplicates_left,
        "kept": len(clusters.representatives),
        "bcubed_f1": b_cubed(clusters, truth)[2],
        "largest": int(clusters.sizes.max(initial=0)),
    }


@dataclass(frozen=True)
class Curve:
    """Quality of one method over thresholds, with intervals from resampled truth clusters.

    All curves over one collection use the same resamples, so differences between them are paired.

    Attributes
    ----------
    cell : dict
        Result of `judge`.
    """

    cell: dict[str, Any]

    @property
    def taus(self) -> list[float]:
        """Thresholds, ascending."""
        return [float(tau) for tau in self.cell["taus"] if tau is not None]

    @cached_property
    def tallies(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """True, false and missed pairs, each of shape (thresholds, clusters)."""
        return (np.array(self.cell["true"]), np.array(self.cell["false"]), np.array(self.cell["missed"]))

    @cached_property
    def micro(self) -> FloatArray:
        """Precision, recall, F1 over pairs, shape (3, thresholds)."""
        return micro_averages(*self.tallies)

    @cached_property
    def macro(self) -> FloatArray:
        """Precision, recall, F1 averaged over clusters, shape (3, thresholds)."""
        return macro_averages(*self.tallies)

    @cached_property
    def resampled(self) -> FloatArray:
        """Micro averages of each resample, shape (3, resamples, thresholds)."""
        return resampled_micro(self.tallies, _paired(self.tallies[0].shape[1]))

    def interval(self, measure: str, level: float = 0.95) -> FloatArray:
        """Return the lower and upper ends of the measure's interval, shape (2, thresholds)."""
        return ends(self.resampled[MEASURES.index(measure)], level)

    def decided(self, at: int, method: str = "leaders") -> dict[str, float]:
        """Return the measures of decisions at the position of a threshold, see `decision_measures`."""
        return {name: values[at] for name, values in self.cell["decisions"][method].items()}

    def at(self, tau: float) -> int:
        """Return the position of a threshold."""
        position = int(np.argmin(np.abs(np.array(self.taus) - tau)))
        require(abs(self.taus[position] - tau) < 1e-9, f"tau={tau} is not among the curve's thresholds")
        return position

    @cached_property
    def best(self) -> int:
        """Position of the lowest threshold with the highest micro F1."""
        return int(np.nanargmax(np.nan_to_num(self.micro[2])))


@lru_cache(maxsize=8)
def _paired(clusters: int) -> FloatArray:
    """Return how often each cluster is drawn in each resample, shape (resamples, clusters)."""
    return drawn(np.ones(clusters))


def difference(
    a: Curve, at_a: int, b: Curve, at_b: int, measure: str = "f1", *, relative: bool = False
) -> tuple[float, float, float]:
    """Return the difference between points of two curves, with the paired 95 % interval.

    Parameters
    ----------
    a, b : Curve
        Curves over the same collection, so that both use the same resamples.
    at_a, at_b : int
        Positions of the thresholds.
    measure : str
        ``precision``, ``recall`` or ``f1``.
    relative : bool
        Divide the difference by the second curve's value.

    Returns
    -------
    value, low, high : float
    """
    m = MEASURES.index(measure)

    def gap(x: Any, y: Any) -> Any:
        with np.errstate(invalid="ignore", divide="ignore"):
            return (x - y) / y if relative else x - y

    low, high = ends(gap(a.resampled[m, :, at_a], b.resampled[m, :, at_b]))
    return float(gap(a.micro[m, at_a], b.micro[m, at_b])), float(low), float(high)
