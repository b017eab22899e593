"""Measures of decisions: lost stories, duplicates left, and B-cubed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotsigs.errors import require
from spotsigs.records import Clusters, IntArray, Truth


@dataclass(frozen=True, slots=True)
class StoryCounts:
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


def count_stories(kept: NDArray[np.bool_], truth: Truth) -> StoryCounts:
    """Count lost stories and duplicates left of the documents that any tool keeps, a mask of shape (n,).

    Examples
    --------
    >>> truth = Truth.from_clusters(["a", "a", "a", "b", None])
    >>> count_stories(np.array([True, True, False, False, True]), truth)
    StoryCounts(stories=3, stories_lost=1, duplicates=2, duplicates_left=1)
    """
    require(len(kept) == len(truth.labels), f"kept are {len(kept):,} documents, the truth {len(truth.labels):,}")
    known = _known(truth)
    of, kept = stories(truth)[known], kept[known]
    n, stories_kept = len(np.unique(of)), len(np.unique(of[kept]))
    return StoryCounts(n, n - stories_kept, len(of) - n, int(np.count_nonzero(kept)) - stories_kept)


def b_cubed(clusters: Clusters, truth: Truth) -> tuple[float, float, float]:
    """Return B-cubed precision, recall and F1 of a clustering.

    Precision is the mean over documents of the fraction of the document's cluster that belongs to its story; recall is
    the mean of the fraction of its story that is in its cluster. All are NaN without documents.
    """
    by_story = of_stories(np.ones(len(clusters), np.bool_), clusters, truth)
    precision, recall, f1 = resampled_documents(by_story, np.ones((1, by_story.shape[1])))[:3, 0].tolist()
    return precision, recall, f1


def _known(truth: Truth) -> NDArray[np.bool_]:
    """Return the documents whose story is known: with judged pairs, all documents of a judged pair."""
    return np.ones(len(truth.labels), np.bool_) if truth.judged is None else truth.labels >= 0


def of_stories(kept: NDArray[np.bool_], clusters: Clusters, truth: Truth) -> NDArray[np.float64]:
    """Return documents, kept ones, and sums of B-cubed precision and recall of each story, shape (4, stories).

    Documents whose story is unknown do not count, in clusters neither.
    """
    known = _known(truth)
    wanted, kept, groups = stories(truth)[known], kept[known], clusters.labels[known].astype(np.int64)
    _, joint, sizes = np.unique(groups * (wanted.max(initial=0) + 1) + wanted, return_inverse=True, return_counts=True)
    shared, of_story = sizes[joint], np.unique(wanted, return_inverse=True)[1]
    documents = np.bincount(of_story)
    precision, recall = shared / np.bincount(groups)[groups], shared / documents[of_story]
    sums = [np.bincount(of_story, weights, len(documents)) for weights in (kept, precision, recall)]
    return np.stack([documents, *sums])


def resampled_documents(of_stories: NDArray[np.float64], drawn: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return B-cubed precision, recall and F1 and the fractions of stories lost and duplicates left of each sample.

    The result has shape (5, samples), NaN where a sample has no documents, or no duplicates. The argument
    ``of_stories``, shape (4, kinds), is the result of the function `of_stories`, in which equal stories may be one
    kind; ``drawn``, shape (samples, kinds), has the number of each kind in each sample.
    """
    documents, kept, precision, recall = of_stories
    with np.errstate(invalid="ignore", divide="ignore"):
        precision, recall = drawn @ precision / (drawn @ documents), drawn @ recall / (drawn @ documents)
        lost = drawn @ (kept == 0) / drawn.sum(1)
        left = drawn @ np.maximum(kept - 1, 0) / (drawn @ (documents - 1))
        return np.stack([precision, recall, 2 * precision * recall / (precision + recall), lost, left])
