"""Reference implementations: Python counters, nested loops, textbook definitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations
from operator import truediv

Multiset = Counter[int]
Quotient = Callable[[int, int], float]


def jaccard(a: Multiset, b: Multiset, quotient: Quotient = truediv) -> float:
    """Return the multiset Jaccard (Equation 4), 0 for two empty documents."""
    larger = (a | b).total()
    return quotient((a & b).total(), larger) if larger else 0.0


def containment(a: Multiset, b: Multiset) -> float:
    """Return the fraction of the smaller multiset that the other one contains, 0 for an empty document."""
    return (a & b).total() / max(min(a.total(), b.total()), 1)


def pairs_of(
    documents: Sequence[Multiset], tau: float, similarity: Callable[[Multiset, Multiset], float]
) -> dict[tuple[int, int], float]:
    """Return all pairs of similarity at least tau by comparing every two documents."""
    compared = ((i, j, similarity(a, b)) for (i, a), (j, b) in combinations(enumerate(documents), 2))
    return {(i, j): value for i, j, value in compared if value >= tau}


def similar_pairs(documents: Sequence[Multiset], tau: float) -> dict[tuple[int, int], float]:
    """Return all pairs of Jaccard at least tau."""
    return pairs_of(documents, tau, jaccard)


def contained_pairs(documents: Sequence[Multiset], tau: float) -> dict[tuple[int, int], float]:
    """Return all pairs of containment at least tau."""
    return pairs_of(documents, tau, containment)


def similar_pairs_exactly(documents: Sequence[Multiset], tau: Fraction) -> set[tuple[int, int]]:
    """Return the similar pairs in rational arithmetic."""
    return set(pairs_of(documents, tau, partial(jaccard, quotient=Fraction)))


def leaders(
    pairs: Mapping[tuple[int, int], float],
    order: Sequence[int],
    removed: Iterable[int] = (),
    may_remove: Callable[[int, int, float], bool] = lambda removed, kept, similarity: True,
) -> dict[int, int]:
    """Return the leader of each document: itself if it is in no pair with an earlier one, else the most similar.

    Pairs count for a document if it may be removed for the other one.
    """

    def similarity(a: int, b: int) -> float | None:
        value = pairs.get((min(a, b), max(a, b)))
        return value if value is None or may_remove(a, b, value) else None

    kept: list[int] = []
    for x in order:
        if x not in removed and all(similarity(x, y) is None for y in kept):
            kept.append(x)
    head = {}
    for x in order:
        near = [(-1.0 if s != s else s, -kept.index(y), y) for y in kept if (s := similarity(x, y)) is not None]
        head[x] = x if x in kept else max(near, default=(0, 0, x))[2]
    return head


def decided(kept: Sequence[bool], labels: Sequence[object]) -> tuple[int, int, int, int]:
    """Stories, stories lost, duplicates, duplicates left: by going through the documents of each story."""
    stories: dict[object, list[bool]] = {}
    for k, (stays, label) in enumerate(zip(kept, labels, strict=True)):
        stories.setdefault(("alone", k) if label is None else label, []).append(stays)
    lost = sum(not any(story) for story in stories.values())
    duplicates = sum(len(story) - 1 for story in stories.values())
    return len(stories), lost, duplicates, sum(max(0, sum(story) - 1) for story in stories.values())


def idf_band(documents: Sequence[Multiset], low: float, high: float, prototype: bool = False) -> list[Multiset]:
    """Keep the signatures whose normalised IDF is in the band."""
    from math import log

    n = len(documents)
    frequency = Counter(signature for document in documents for signature in document)
    total = n + 1 if prototype else n
    idf = {s: log(total / df) / log(total) if total > 1 else 1.0 for s, df in frequency.items()}
    return [Counter({s: c for s, c in document.items() if low <= idf[s] <= high}) for document in documents]


def boundaries_as_printed(tau: Fraction, rho: int) -> list[int]:
    """Return the series of section 4.2 in rational arithmetic."""
    series = [1]
    for length in range(2, rho + 1):
        if length - series[-1] > (1 - tau) * length:
            series.append(length)
    return series
