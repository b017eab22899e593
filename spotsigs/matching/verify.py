"""Verification of candidate pairs by their exact multiset Jaccard similarity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.parallel import distinct, over_blocks
from spotsigs.records import FloatArray, IntArray, Vectors


class Verified(NamedTuple):
    """Candidate pairs ``i < j`` of Jaccard at least tau, sorted, without repeats.

    Attributes
    ----------
    i, j : ndarray of int32
        Rows of each pair.
    similarity : ndarray of float64
        Multiset Jaccard similarity of each pair.
    candidates, verifications : int
        Number of distinct candidate pairs, and of those that pass the length filter.
    """

    i: NDArray[np.int32]
    j: NDArray[np.int32]
    similarity: FloatArray
    candidates: int
    verifications: int


def verified(vectors: Vectors, i: IntArray, j: IntArray, tau: float, threads: int | None = None) -> Verified:
    """Compute the similarity of candidate pairs and keep those with ``intersection / union >= tau``.

    Parameters
    ----------
    vectors : Vectors
        Signature multisets.
    i, j : ndarray of int
        Rows of each candidate pair, in any order and orientation, with repeats.
    tau : float
        Similarity threshold in (0, 1].
    threads : int, optional
        Threads of the comparison; all cores by default.
    """
    n = max(len(vectors), 1)
    key = np.minimum(i, j).astype(np.int64) * n + np.maximum(i, j)
    if not np.all(key[1:] > key[:-1]):
        key = distinct(key)
    low, high = (part.astype(np.int32) for part in np.divmod(key, n))
    close = similar_lengths(vectors.lengths[low], vectors.lengths[high], tau)
    low, high = low[close], high[close]
    similarity = jaccard(vectors, low, high, threads)
    keep = similarity >= tau
    return Verified(low[keep], high[keep], similarity[keep], len(key), len(low))


def similar_lengths(a: IntArray, b: IntArray, tau: float) -> NDArray[np.bool_]:
    """Return which pairs of lengths allow a similarity of tau (Inequality 6 of the paper).

    The intersection is at most the shorter length and the union at least the longer, and float64 division is
    monotone, so no pair with ``intersection / union >= tau`` has ``shorter / longer < tau``.
    """
    longer = np.maximum(np.maximum(a, b), 1)
    return np.minimum(a, b) / longer >= tau


def jaccard(vectors: Vectors, i: IntArray, j: IntArray, threads: int | None = None) -> FloatArray:
    """Return the multiset Jaccard of pairs of rows (Equation 4 of the paper), 0 if both rows are empty.

    It is fastest if pairs with the same ``i`` are adjacent.
    """
    similarity = np.empty(len(i))

    def block(start: int, stop: int) -> None:
        compare(
            vectors.indptr,
            vectors.ids,
            vectors.counts,
            vectors.lengths,
            vectors.n_signatures,
            i[start:stop],
            j[start:stop],
            similarity[start:stop],
        )

    over_blocks(block, len(i), threads)
    return similarity


@kernel
def compare(indptr, ids, counts, lengths, n_signatures, i, j, out_similarity):  # type: ignore[no-untyped-def]
    """Write the multiset Jaccard of each pair; a table stores the counts of row ``i`` for all its partners."""
    table = np.zeros(n_signatures, np.int32)
    current = -1
    for pair in range(len(i)):
        if i[pair] != current:
            if current >= 0:
                for entry in range(indptr[current], indptr[current + 1]):
                    table[ids[entry]] = 0
            current = i[pair]
            for entry in range(indptr[current], indptr[current + 1]):
                table[ids[entry]] = counts[entry]
        shared = 0
        for entry in range(indptr[j[pair]], indptr[j[pair] + 1]):
            shared += min(table[ids[entry]], counts[entry])
        union = lengths[current] + lengths[j[pair]] - shared
        out_similarity[pair] = shared / union if union > 0 else 0.0
