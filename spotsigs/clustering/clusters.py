"""Pairs to clusters: connected components, or clusters anchored at a representative."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.arrays.csr import INT32_MAX, numbers
from spotsigs.arrays.row_blocks import flagged, gathered, own, scattered
from spotsigs.errors import as_choice, as_count, require, shown
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
    pairs : Pairs, or spotsigs.outofcore.prefix_partition_join.PairFiles
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
    require(hasattr(pairs, "chunks"), f"pairs must be Pairs, got {shown(pairs)}; see Pairs.build")
    n = pairs.n if n is None else as_count("n", n, 0, INT32_MAX)
    way = as_choice("clusters", clusters, ClusterMethod)
    order = None
    if priority is not None:
        priority = numbers("priority", priority, "iuf")
        require(len(priority) == n, f"priority has {len(priority)} entries for {n} documents; give one each")
        order = np.argsort(np.asarray(priority), kind="stable").astype(np.int32)
    heads = (_component_heads if way is ClusterMethod.components else _anchored_heads)(pairs, n, order)
    representatives, labels = numbered(heads)
    return Clusters(labels, representatives, _similarity_to(heads, pairs))


def _chunks(pairs: PairChunks, n: int) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    for i, j, similarity in pairs.chunks():
        require(len(j) == 0 or int(j.max()) < n, f"n={n} is too small: the pairs name row {j.max(initial=0)}")
        yield i, j, similarity


def _component_heads(pairs: PairChunks, n: int, order: NDArray[np.int32] | None) -> NDArray[np.int32]:
    """Return the row of best priority in each row's component."""
    forest = components(((i, j) for i, j, _ in _chunks(pairs, n)), n)
    if order is not None:
        _crown(forest, order)
    return forest


def components(edges: Iterable[tuple[IntArray, IntArray]], n: int) -> NDArray[np.int32]:
    """Return the first row of each row's component, int32, shape (n,): 4 bytes a row, whatever the edges are."""
    forest = np.arange(n, dtype=np.int32)
    for i, j in edges:
        _unite(forest, i, j)
    _flatten(forest)
    return forest


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
def _flatten(forest):  # type: ignore[no-untyped-def]
    """Lift every row to its root, the first row of its tree."""
    for row in range(len(forest)):
        forest[row] = forest[forest[row]]  # a parent lies before its children


@njit(cache=True, nogil=True)
def _crown(roots, order):  # type: ignore[no-untyped-def]
    """Put in place of each row's root the first in order of its tree."""
    best = np.full(len(roots), -1, np.int32)
    for row in order:
        if best[roots[row]] < 0:
            best[roots[row]] = row
    for row in range(len(roots)):
        roots[row] = best[roots[row]]


def _anchored_heads(pairs: PairChunks, n: int, order: NDArray[np.int32] | None) -> NDArray[np.int32]:
    """Return each row's anchor: pass after pass over the pairs, in order of rank, those that fit at a time."""
    order = np.arange(n, dtype=np.int32) if order is None else order
    rank = scattered(np.arange(n, dtype=np.int32), order)
    behind = np.zeros(n, np.int64)
    for i, j, _ in _chunks(pairs, n):
        np.add.at(behind, np.minimum(rank[i], rank[j]), 1)
    np.cumsum(behind, out=behind)
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
    return scattered(gathered(order, heads), order)


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
def numbered(heads):  # type: ignore[no-untyped-def]
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
    similarity = np.full(len(heads), np.nan)
    similarity[own(heads)] = 1
    for i, j, values in pairs.chunks():
        for a, b in ((i, j), (j, i)):
            to_head = heads[a] == b
            similarity[a[to_head]] = values[to_head]
    return similarity


@dataclass(frozen=True)
class Cohesion:
    """How well clusters of several documents hold together; of those of one, there is nothing to say.

    Attributes
    ----------
    labels : ndarray of int32, shape (m,)
        The clusters, ascending.
    pairs : ndarray of int64, shape (m,)
        Reported pairs between the members of each.
    minimum, mean : ndarray of float64, shape (m,)
        Of their similarities; NaN where the method has no similarity.
    apart : ndarray of int32, shape (m,)
        Members without a reported pair with the representative.
    chain : ndarray of bool, shape (m,)
        Whether it is a giant chain: at least `GIANT` documents, some of them apart from the representative, and fewer
        than half of all pairs of its members reported.
    """

    labels: NDArray[np.int32]
    pairs: NDArray[np.int64]
    minimum: FloatArray
    mean: FloatArray
    apart: NDArray[np.int32]
    chain: NDArray[np.bool_]

    def of(self, labels: IntArray) -> Cohesion:
        """Return the same of any clusters, in the order given; those of one document have no pairs and NaN."""
        place = np.searchsorted(self.labels, labels)
        several = np.append(self.labels, -1)[place] == labels
        place = place[several]

        def each(values: NDArray[Any], alone: float) -> NDArray[Any]:
            found = np.full(len(labels), alone, values.dtype)
            found[several] = values[place]
            return found

        lone = {"pairs": 0, "minimum": np.nan, "mean": np.nan, "apart": 0, "chain": False}
        return Cohesion(labels.astype(np.int32), **{name: each(getattr(self, name), lone[name]) for name in lone})


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
    labels = np.concatenate([np.empty(0, np.int32), *(some.astype(np.int32) for some in flagged(clusters.sizes > 1))])
    place = np.empty(len(clusters.representatives), np.int32)  # read of clusters of several alone
    place[labels] = np.arange(len(labels), dtype=np.int32)
    apart = clusters.sizes[labels] - 1
    pairs, known, minimum, total = (np.zeros(len(labels), kind) for kind in (np.int64, np.int64, float, float))
    minimum[:] = np.inf
    for i, j, similarity in chunks:
        _add_up(clusters.labels, clusters.representatives, place, i, j, similarity, pairs, known, apart, minimum, total)
    del place
    minimum[known == 0] = np.nan
    with np.errstate(invalid="ignore"):
        np.divide(total, known, out=total)
    sizes = clusters.sizes[labels].astype(np.int64)
    chain = (sizes >= GIANT) & (apart > 0) & (4 * pairs < sizes * (sizes - 1))
    return Cohesion(labels, pairs, minimum, total, apart, chain)


@njit(cache=True, nogil=True)
def _add_up(labels, heads, place, i, j, similarity, pairs, known, apart, minimum, total):  # type: ignore[no-untyped-def]
    for p in range(len(i)):
        label = labels[i[p]]
        if label != labels[j[p]]:
            continue  # anchored clusters leave pairs between them
        k = place[label]
        pairs[k] += 1
        apart[k] -= heads[label] == i[p] or heads[label] == j[p]
        if not np.isnan(similarity[p]):
            known[k] += 1
            total[k] += similarity[p]
            minimum[k] = min(minimum[k], similarity[p])
