"""Pairs to clusters: connected components, or clusters anchored at a representative."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.errors import InputError, require
from spotsigs.records import Clusters, FloatArray, IntArray, Pairs

GIANT = 20
"""Documents from which on a cluster that hangs together by few pairs is a giant chain."""


class Method(Enum):
    """What a cluster is.

    ``components``: everything connected by pairs. ``anchored``: every member reaches tau to the representative.
    """

    components = "components"
    anchored = "anchored"


def cluster(
    pairs: Pairs, n: int | None = None, *, method: str | Method = Method.components, priority: IntArray | None = None
) -> Clusters:
    """Group documents by their pairs.

    Parameters
    ----------
    pairs : Pairs
        Near-duplicate pairs.
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
    require(
        len(pairs) == 0 or int(pairs.j.max()) < n, f"n={n} is too small: the pairs name row {pairs.j.max(initial=0)}"
    )
    try:
        method = Method(method)
    except ValueError:
        raise InputError(f"clusters must be 'components' or 'anchored', got '{method}'") from None
    priority = np.zeros(n, np.int64) if priority is None else np.asarray(priority)
    require(len(priority) == n, f"priority has {len(priority)} entries for {n} documents; give one each")
    order = np.argsort(priority, kind="stable")
    if method is Method.components:
        heads = _component_heads(pairs, n, order)
    else:
        indptr, neighbours = _adjacency(pairs, n)
        heads = _anchored_heads(indptr, neighbours, order)
    representatives, labels = _numbered(heads)
    return Clusters(labels, representatives, _similarity_to(heads, pairs))


def _component_heads(pairs: Pairs, n: int, order: IntArray) -> NDArray[np.int32]:
    """Return the row of best priority in each row's component."""
    roots = _roots(pairs.i, pairs.j, n)
    best: NDArray[np.int32] = np.empty(n, np.int32)
    best[roots[order[::-1]]] = order[::-1]
    heads: NDArray[np.int32] = best[roots]
    return heads


@njit(cache=True, nogil=True)
def _roots(i, j, n):  # type: ignore[no-untyped-def]
    """Return a row of each row's component, the same one for all of them: union by lower number, paths halved."""
    parent = np.arange(n).astype(np.int32)
    for p in range(len(i)):
        a, b = i[p], j[p]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a != b:
            parent[max(a, b)] = min(a, b)
    for row in range(n):
        parent[row] = parent[parent[row]]  # that of a lower row is a root by now
    return parent


def _adjacency(pairs: Pairs, n: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    ends = np.concatenate([pairs.i, pairs.j])
    order = np.argsort(ends, kind="stable")
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(ends, minlength=n))])
    return indptr, np.concatenate([pairs.j, pairs.i])[order]


@njit(cache=True, nogil=True)
def _anchored_heads(indptr, neighbours, order):  # type: ignore[no-untyped-def]
    heads = np.full(len(order), -1, np.int32)
    for row in order:
        if heads[row] >= 0:
            continue
        heads[row] = row
        for p in range(indptr[row], indptr[row + 1]):
            if heads[neighbours[p]] < 0:
                heads[neighbours[p]] = row
    return heads


def _numbered(heads: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Number the clusters by first appearance; return their representatives and the label of each row."""
    representatives, first, inverse = np.unique(heads, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    return representatives[order], number[inverse]


def _similarity_to(heads: NDArray[np.int32], pairs: Pairs) -> NDArray[np.float64]:
    similarity = np.where(heads == np.arange(len(heads)), 1.0, np.nan)
    for a, b in ((pairs.i, pairs.j), (pairs.j, pairs.i)):
        to_head = heads[a] == b
        similarity[a[to_head]] = pairs.similarity[to_head]
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
