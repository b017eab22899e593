"""Measures of decisions: lost stories, duplicates left, and B-cubed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotsigs.errors import require
from spotsigs.records import Clusters, IntArray, Truth


@dataclass(frozen=True, slots=True)
class Decided:
    """Stories and duplicates of a collection, and those that a selection of its documents loses or leaves.

    Attributes
    ----------
    stories : int
        Truth clusters; a document without a cluster is a story of its own.
    stories_lost : int
        Stories of which no document is kept.
    duplicates : int
        Documents beyond the first of each story.
    duplicates_left : int
        Kept documents beyond the first of each story.
    """

    stories: int
    stories_lost: int
    duplicates: int
    duplicates_left: int

    @property
    def lost(self) -> float:
        """Fraction of the stories that are lost; 0 without stories."""
        return self.stories_lost / max(self.stories, 1)

    @property
    def left(self) -> float:
        """Fraction of the duplicates that are left; 0 without duplicates."""
        return self.duplicates_left / max(self.duplicates, 1)


def stories(truth: Truth) -> IntArray:
    """Return the story of each document: its truth cluster, or one of its own. Shape (n,)."""
    alone = truth.labels < 0
    own = np.cumsum(alone) + int(truth.labels.max(initial=-1))
    return np.where(alone, own, truth.labels).astype(np.int64)


def decided(kept: NDArray[np.bool_], truth: Truth) -> Decided:
    """Count lost stories and duplicates left of the documents that any tool keeps, a mask of shape (n,).

    Examples
    --------
    >>> truth = Truth.from_clusters(["a", "a", "a", "b", None])
    >>> decided(np.array([True, True, False, False, True]), truth)
    Decided(stories=3, stories_lost=1, duplicates=2, duplicates_left=1)
    """
    require(len(kept) == len(truth.labels), f"kept are {len(kept):,} documents, the truth {len(truth.labels):,}")
    of = stories(truth)
    n, found = len(np.unique(of)), len(np.unique(of[kept]))
    return Decided(n, n - found, len(of) - n, int(np.count_nonzero(kept)) - found)


def b_cubed(clusters: Clusters, truth: Truth) -> tuple[float, float, float]:
    """Return B-cubed precision, recall and F1 of a clustering.

    Precision is the mean over documents of the fraction of the document's cluster that belongs to its story; recall is
    the mean of the fraction of its story that is in its cluster. All are NaN without documents.
    """
    if len(truth.labels) == 0:
        return (float("nan"),) * 3
    wanted = stories(truth)
    _, cell, sizes = np.unique(clusters.labels * (wanted.max() + 1) + wanted, return_inverse=True, return_counts=True)
    shared = sizes[cell]
    precision = float(np.mean(shared / np.bincount(clusters.labels)[clusters.labels]))
    recall = float(np.mean(shared / np.bincount(wanted)[wanted]))
    return precision, recall, 2 * precision * recall / (precision + recall)
