"""Pairs to clusters: connected components, or clusters anchored at a representative."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.errors import InputError, require
from spotsigs.records import Clusters, FloatArray, IntArray, PairChunks

GIANT = 20
"""Documents from which on a cluster that hangs together by few pairs is a giant chain."""


class Method(Enum):
    """What a cluster is.

    ``components``: everything connected by pairs. ``anchored``: every member reaches tau to the representative.
    """

    components = "components"
    anchored = "anchored"


def cluster(
    pairs: PairChunks,
    n: int | None = None,
    *,
    method: str | Method = Method.components,
    priority: IntArray | None = None,
) -> Clusters:
    """Group documents by their pairs.

    Parameters
    ----------
    pairs : Pairs, or spotsigs.crawl.block_join.PairFiles
        Near-duplicate pairs, in memory or on disk.
    n : int, optional
        Number of documents; by default the one the pairs carry.
    method : {"components", "anchored"}
        ``components``: connected components. ``anchored``: in order of priority, each document that belongs to no
        cluster yet becomes a representative and takes its unassigned partners, so chains cannot grow.
    priority : ndarray of int, shape (n,), optional
        The smallest value of a cluster is its representative, ties going to the first row; by default the first row.

    Returns
    -------
    Clusters
        As a sequence: the cluster label of each row.

    Raises
    ------
    InputError
        If a pair lies outside ``range(n)``, or the method is unknown.
    """
    n = pairs.n if n is None else n
    try:
        method = Method(method)
    except ValueError:
        raise InputError(f"clusters must be 'components' or 'anchored', got '{method}'") from None
    priority = np.zeros(n, np.int64) if priority is None else np.asarray(priority)
    require(len(priority) == n, f"priority has {len(priority)} entries for {n} documents; give one each")
    order = np.argsort(priority, kind="stable")
    heads = (_component_heads if method is Method.components else _anchored_heads)(pairs, n, order)
    representatives, labels = _numbered(heads)
    return Clusters(labels, representatives, _similarity_to(heads, pairs))


def _chunks(pairs: PairChunks, n: int) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    for i, j, similarity in pairs.chunks():
        require(len(j) == 0 or int(j.max()) < n, f"n={n} is too small: the pairs name row {j.max(initial=0)}")
        yield i, j, similarity


def _component_heads(pairs: PairChunks, n: int, order: IntArray) -> NDArray[np.int32]:
    """Return the row of best priority in each row's component."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    component = np.arange(n, dtype=np.int32)
    for i, j, _ in _chunks(pairs, n):
        edges = coo_array((np.ones(len(i), np.bool_), (component[i], component[j])), shape=(n, n))
        _, merged = connected_components(edges, directed=False)
        component = merged[component]
    best: NDArray[np.int32] = np.full(int(component.max(initial=-1)) + 1, -1, np.int32)
    best[component[order[::-1]]] = order[::-1]
    heads: NDArray[np.int32] = best[component]
    return heads


def _anchored_heads(pairs: PairChunks, n: int, order: IntArray) -> NDArray[np.int32]:
    """Return each row's anchor: pass after pass over the pairs, as many of them in order of rank as fit."""
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    sizes = np.zeros(n, np.int64)
    for i, j, _ in _chunks(pairs, n):
        sizes += np.bincount(np.minimum(rank[i], rank[j]), minlength=n)
    behind = np.cumsum(sizes)
    heads = np.full(n, -1, np.int32)  # by rank
    first = 0
    while first < n:
        done = int(behind[first - 1]) if first else 0
        last = int(np.searchsorted(behind, done + pairs.held, side="right"))
        last = min(max(last, first + 1), n)
        found = [np.empty((2, 0), np.int64)]
        for i, j, _ in pairs.chunks() if behind[last - 1] > done else ():
            low, high = np.minimum(rank[i], rank[j]), np.maximum(rank[i], rank[j])
            inside = (low >= first) & (low < last)
            found.append(np.stack([low[inside], high[inside]]))
        low, high = np.concatenate(found, axis=1)
        by_rank = np.lexsort((high, low))
        _anchor(first, last, low[by_rank], high[by_rank], heads)
        first = last
    anchors: NDArray[np.int32] = np.empty(n, np.int32)
    anchors[order] = order[heads]
    return anchors


@njit(cache=True, nogil=True)
def _anchor(first, last, low, high, heads):  # type: ignore[no-untyped-def]
    """Let each rank that belongs to no cluster yet take its partners of higher rank; pairs come sorted."""
    p = 0
    for rank in range(first, last):
        anchors = heads[rank] < 0
        if anchors:
            heads[rank] = rank
        while p < len(low) and low[p] == rank:
            if anchors and heads[high[p]] < 0:
                heads[high[p]] = rank
            p += 1


def _numbered(heads: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Number the clusters by first appearance; return their representatives and the label of each row."""
    representatives, first, inverse = np.unique(heads, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    return representatives[order], number[inverse]


def _similarity_to(heads: NDArray[np.int32], pairs: PairChunks) -> NDArray[np.float64]:
    similarity = np.where(heads == np.arange(len(heads)), 1.0, np.nan)
    for i, j, values in pairs.chunks():
        for a, b in ((i, j), (j, i)):
            to_head = heads[a] == b
            similarity[a[to_head]] = values[to_head]
    return similarity


@dataclass(frozen=True)
class Cohesion:
    """How well each cluster holds together.

    Attributes
    ----------
    pairs : ndarray of int64, shape (n_clusters,)
        Reported pairs between its members.
    minimum, mean : ndarray of float64, shape (n_clusters,)
        Of their similarities; NaN for a cluster of one document, and where the method has no similarity.
    apart : ndarray of int64, shape (n_clusters,)
        Members without a reported pair with the representative.
    chain : ndarray of bool, shape (n_clusters,)
        Whether it is a giant chain: at least `GIANT` documents, some of them apart from the representative, and fewer
        than half of all pairs of its members reported.
    """

    pairs: NDArray[np.int64]
    minimum: FloatArray
    mean: FloatArray
    apart: NDArray[np.int64]
    chain: NDArray[np.bool_]


def cohesion(clusters: Clusters, chunks: Iterable[tuple[IntArray, IntArray, FloatArray]]) -> Cohesion:
    """Measure how well clusters hold together.

    Parameters
    ----------
    clusters : Clusters
        Of any method.
    chunks : iterable of (i, j, similarity)
        The pairs they were made of, in ascending order of (i, j): `spotsigs.records.Pairs.chunks`. The result does not
        depend on how they are cut.

    Returns
    -------
    Cohesion
    """
    k = len(clusters.representatives)
    pairs, known, paired = (np.zeros(k, np.int64) for _ in range(3))
    minimum, total = np.full(k, np.inf), np.zeros(k)
    for i, j, similarity in chunks:
        _add_up(clusters.labels, clusters.representatives, i, j, similarity, pairs, known, paired, minimum, total)
    with np.errstate(invalid="ignore"):
        mean = total / known
    sizes = clusters.sizes
    apart = sizes - 1 - paired
    chain = (sizes >= GIANT) & (apart > 0) & (4 * pairs < sizes * (sizes - 1))
    return Cohesion(pairs, np.where(known > 0, minimum, np.nan), mean, apart, chain)


@njit(cache=True, nogil=True)
def _add_up(labels, heads, i, j, similarity, pairs, known, paired, minimum, total):  # type: ignore[no-untyped-def]
    for p in range(len(i)):
        label = labels[i[p]]
        if label != labels[j[p]]:
            continue  # anchored clusters leave pairs between them
        pairs[label] += 1
        paired[label] += heads[label] == i[p] or heads[label] == j[p]
        if not np.isnan(similarity[p]):
            known[label] += 1
            total[label] += similarity[p]
            minimum[label] = min(minimum[label], similarity[p])
