"""Reference implementations of the exact join: counters, and comparison of every two documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from naive import Multiset, jaccard, similar_pairs


def as_sets(documents: Sequence[Multiset]) -> list[Multiset]:
    """Return the documents with all counts replaced by 1."""
    return [Counter(list(document)) for document in documents]


def self_join(documents: Sequence[Multiset], tau: float) -> list[tuple[int, int, float]]:
    """Return all similar pairs of one collection, sorted."""
    return [(i, j, similarity) for (i, j), similarity in similar_pairs(documents, tau).items()]


def join(left: Sequence[Multiset], right: Sequence[Multiset], tau: float) -> list[tuple[int, int, float]]:
    """Return all similar pairs of a left and a right document, sorted."""
    compared = ((i, j, jaccard(a, b)) for i, a in enumerate(left) for j, b in enumerate(right))
    return [pair for pair in compared if pair[2] >= tau]


def least_overlap(tau: float, total: int) -> int:
    """Return the least overlap of two similar multisets with ``total`` occurrences."""
    return next(o for o in range(1, total + 1) if total - o > 0 and o / (total - o) >= tau)
