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


class ClusterMethod(Enum):
    """What a cluster is.

    ``components``: everything connected by pairs. ``anchored``: every member reaches tau to the representative.
    """

    components = "components"
    anchored = "anchored"


def cluster(
    pairs: PairChunks,
    n: int | None = None,
    *,
    clusters: str | ClusterMethod = ClusterMethod.components,
    priority: IntArray | None = None,
) -> Clusters:
    """Group documents by their pairs.

    Parameters
    ----------
    pairs : Pairs, or spotsigs.crawl.block_join.PairFiles
        Near-duplicate pairs, in memory or on disk.
    n : int, optional
        Number of documents; by default the one the pairs carry.
    clusters : {"components", "anchored"}
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
        If a pair lies outside ``range(n)``, or `clusters` is unknown.
    """
    n = pairs.n if n is None else n
    try:
        way = ClusterMethod(clusters)
    except ValueError:
        raise InputError(f"clusters must be 'components' or 'anchored', got '{clusters}'") from None
    priority = np.zeros(n, np.int64) if priority is None else np.asarray(priority)
    require(len(priority) == n, f"priority has {len(priority)} entries for {n} documents; give one each")
    order = np.argsort(priority, kind="stable")
    heads = (_component_heads if way is ClusterMethod.components else _anchored_heads)(pairs, n, order)
    representatives, labels = _numbered(heads)
    return Clusters(labels, representatives, _similarity_to(heads, pairs))


def _chunks(pairs: PairChunks, n: int) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    for i, j, similarity in pairs.chunks():
        require(len(j) == 0 or int(j.max()) < n, f"n={n} is too small: the pairs name row {j.max(initial=0)}")
        yield i, j, similarity


def _component_heads(pairs: PairChunks, n: int, order: IntArray) -> NDArray[np.int32]:
    """Return the row of best priority in each row's component: a forest of 4 bytes a row, whatever the pairs are."""
    forest = np.arange(n, dtype=np.int32)
    for i, j, _ in _chunks(pairs, n):
        _unite(forest, i, j)
    heads: NDArray[np.int32] = _best(forest, order)
    return heads


@njit(cache=True, nogil=True)
def _root(forest, row):  # type: ignore[no-untyped-def]
    """Return the root of a row's tree; every other row on the way is lifted by one."""
    while forest[row] != row:
        forest[row] = forest[forest[row]]
        row = forest[row]
    return row


@njit(cache=True, nogil=True)
def _unite(forest, i, j):  # type: ignore[no-untyped-def]
    for p in range(len(i)):
        a, b = _root(forest, i[p]), _root(forest, j[p])
        forest[max(a, b)] = min(a, b)


@njit(cache=True, nogil=True)
def _best(forest, order):  # type: ignore[no-untyped-def]
    """Return for each row the first in order of its tree."""
    best = np.full(len(forest), -1, np.int32)
    for row in order:
        root = _root(forest, row)
        if best[root] < 0:
            best[root] = row
    for row in range(len(forest)):
        forest[row] = _root(forest, row)
    return best[forest]


def _anchored_heads(pairs: PairChunks, n: int, order: IntArray) -> NDArray[np.int32]:
    """Return each row's anchor: pass after pass over the pairs, in order of rank, those that fit at a time."""
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


@njit(cache=True, nogil=True)
def _numbered(heads):  # type: ignore[no-untyped-def]
    """Number the clusters by first appearance; return their representatives and the label of each row."""
    number, labels = np.full(len(heads), -1, np.int32), np.empty(len(heads), np.int32)
    representatives = np.empty(len(heads), np.int32)
    k = 0
    for row in range(len(heads)):
        if number[heads[row]] < 0:
            number[heads[row]] = k
            representatives[k] = heads[row]
            k += 1
        labels[row] = number[heads[row]]
    return representatives[:k].copy(), labels


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
