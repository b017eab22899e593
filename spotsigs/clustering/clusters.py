"""Pairs to clusters: leader clustering, or connected components."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import INT32_MAX, as_array
from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.row_blocks import flagged, gathered, is_identity, scattered
from spotsigs.errors import as_choice, as_count, require, shown
from spotsigs.records import Clusters, FloatArray, IntArray, PairArrays, Pairs

GIANT = 20
"""Least number of documents of a giant chain, a cluster with few pairs."""


class ClusterMethod(Enum):
    """Definition of a cluster.

    ``leaders``: the leaders are the lexicographically first maximal independent set of the pair graph in order of
    priority. Each other document joins the most similar leader it has a pair with. ``components``: everything that is
    connected by pairs.
    """

    leaders = "leaders"
    components = "components"


Counts = Callable[[IntArray, IntArray, FloatArray], NDArray[np.bool_]]
"""Function of rows, partners and similarities: for which pairs the row may be removed for its partner."""


def every_pair(rows: IntArray, partners: IntArray, similarity: FloatArray) -> NDArray[np.bool_]:
    """Let every pair count."""
    return np.ones(len(rows), np.bool_)


def cluster(
    pairs: Pairs,
    n: int | None = None,
    *,
    clusters: str | ClusterMethod = ClusterMethod.leaders,
    priority: IntArray | None = None,
    removed: NDArray[np.bool_] | None = None,
    counts: Counts = every_pair,
) -> Clusters:
    """Group documents by their pairs.

    Parameters
    ----------
    pairs : Pairs
        Near-duplicate pairs.
    n : int, optional
        Number of documents. The default is the number that the pairs have.
    clusters : {"leaders", "components"}
        ``leaders``: in order of priority, a document that has no pair with an earlier leader becomes a leader. Each
        other document joins its most similar leader, among equals the one of best priority. So every member has a pair
        with its leader, and no two leaders have a pair. ``components``: connected components, which chain documents
        that have no pair with each other.
    priority : ndarray of int, shape (n,), optional
        Smaller values come first, ties in order of rows; by default the order of rows. The first document of a cluster
        is its representative.
    removed : ndarray of bool, shape (n,), optional
        Documents that an earlier run has removed. They come last, and are no leaders unless they have no pair.
    counts : callable
        Function of rows, of partners, and of similarities, which returns for which pairs the row may be removed for its
        partner; all by default. A row joins a leader for which it may be removed. A component's pairs are those whose
        row that comes later in order of priority may be removed for the other one.

    Raises
    ------
    InputError
        If a pair is outside ``range(n)``, or `clusters` is unknown.

    Examples
    --------
    >>> from spotsigs.records import Pairs
    >>> chain = Pairs.build(np.array([0, 1]), np.array([1, 2]), np.array([0.5, 0.9]), 3)
    >>> list(cluster(chain)), list(cluster(chain, clusters="components"))
    ([0, 1, 1], [0, 0, 0])
    """
    require(isinstance(pairs, Pairs), f"pairs must be Pairs, got {shown(pairs)}; see Pairs.build")
    n = pairs.n if n is None else as_count("n", n, 0, INT32_MAX)
    method = as_choice("clusters", clusters, ClusterMethod)
    if removed is not None:
        removed = as_array("removed", removed, "b")
        require(len(removed) == n, f"removed has {len(removed)} entries for {n} documents; give one each")
    require(callable(counts), f"counts must be a function of rows, partners and similarities, got {shown(counts)}")
    rank = rank_rows(n, priority, removed)
    if method is ClusterMethod.leaders:
        leaders, similarity = _by_leader(pairs, n, rank, removed, counts)
    else:
        leaders = _by_component(pairs, n, rank, counts)
        similarity = _similarity_to(leaders, pairs, counts)
    representatives, labels = number_clusters(leaders)
    return Clusters(labels, representatives, similarity)


def rank_rows(n: int, priority: IntArray | None, removed: NDArray[np.bool_] | None) -> NDArray[np.int32] | None:
    """Return the position of each row in order of priority, removed ones last; None for the order of rows."""
    order = None
    if priority is not None:
        priority = as_array("priority", priority, "iuf")
        require(len(priority) == n, f"priority has {len(priority)} entries for {n} documents; give one each")
        order = np.argsort(priority, kind="stable").astype(np.int32)
    if removed is not None:
        order = np.arange(n, dtype=np.int32) if order is None else order
        order = order[np.argsort(removed[order], kind="stable")]
    return None if order is None else scattered(np.arange(n, dtype=np.int32), order)


def _chunks(pairs: Pairs, n: int) -> Iterator[PairArrays]:
    for i, j, similarity in pairs.chunks():
        require(len(j) == 0 or int(j.max()) < n, f"n={n} is too small: the pairs name row {j.max(initial=0)}")
        yield i, j, similarity


def _by_leader(
    pairs: Pairs, n: int, rank: NDArray[np.int32] | None, removed: NDArray[np.bool_] | None, counts: Counts
) -> tuple[NDArray[np.int32], FloatArray]:
    """Return the leader of each row, and the similarity to it."""
    covered = np.zeros(n, np.bool_) if removed is None else removed.copy()
    for first, second, values in _by_rank(pairs, n, rank):
        some = counts(second, first, values)
        _cover(first[some], second[some], covered)
    leaders = np.arange(n, dtype=np.int32)
    similarity = np.where(covered, np.nan, 1.0)
    rank = leaders.copy() if rank is None else rank
    for i, j, values in pairs.chunks():
        for rows, others in ((i, j), (j, i)):
            some = counts(rows, others, values)
            _join_leader(rows[some], others[some], values[some], covered, rank, leaders, similarity)
    similarity[is_identity(leaders)] = 1
    return leaders, similarity


def _by_rank(pairs: Pairs, n: int, rank: NDArray[np.int32] | None) -> Iterator[PairArrays]:
    """Yield the two ends of each pair, the one of lower rank first, in ascending order of the lower rank.

    Without ranks, the rows are the ranks and the pairs are in order. Otherwise each pass over the pairs selects the
    pairs of the next ranks, as many as may be in memory.
    """
    if rank is None:
        yield from _chunks(pairs, n)
        return
    until = np.zeros(n, np.int64)  # pairs up to each rank
    for i, j, _ in _chunks(pairs, n):
        np.add.at(until, np.minimum(rank[i], rank[j]), 1)
    np.cumsum(until, out=until)
    start, most = 0, pairs.chunk_size or len(pairs)
    while start < n:
        done = int(until[start - 1]) if start else 0
        stop = max(int(np.searchsorted(until, done + most, side="right")), start + 1)
        selected, similarity = [np.empty((2, 0), np.int32)], [np.empty(0)]
        for i, j, values in pairs.chunks() if until[min(stop, n) - 1] > done else ():
            lower = np.minimum(rank[i], rank[j])
            inside = (lower >= start) & (lower < stop)
            ends = np.stack([i[inside], j[inside]]).astype(np.int32)
            selected.append(np.where(rank[ends[0]] < rank[ends[1]], ends, ends[::-1]))
            similarity.append(values[inside])
        first, second = np.concatenate(selected, axis=1)
        in_order = np.argsort(rank[first], kind="stable")
        yield first[in_order], second[in_order], np.concatenate(similarity)[in_order]
        start = stop


@kernel
def _cover(first, second, covered):  # type: ignore[no-untyped-def]
    """Mark the partners of every document that is not covered when its turn comes; pairs are in order of rank."""
    # All pairs of earlier rows were read before the pairs of first[p], so it is a leader unless one of them covered it.
    for p in range(len(first)):
        if not covered[first[p]]:
            covered[second[p]] = True


@kernel
def _join_leader(rows, others, values, covered, rank, leaders, similarity):  # type: ignore[no-untyped-def]
    """Assign each covered row to its most similar leader, among equals the one of lowest rank."""
    for p in range(len(rows)):
        row, other = rows[p], others[p]
        if covered[row] and not covered[other]:
            new, old = values[p], similarity[row]
            more = new > old or (np.isnan(old) and not np.isnan(new))
            equal = new == old or (np.isnan(old) and np.isnan(new))
            if leaders[row] == row or more or (equal and rank[other] < rank[leaders[row]]):
                leaders[row] = other
                similarity[row] = new


def _by_component(pairs: Pairs, n: int, rank: NDArray[np.int32] | None, counts: Counts) -> NDArray[np.int32]:
    """Return the row of best priority in each row's component: union-find over ranks, with 4 bytes a row."""
    forest = np.arange(n, dtype=np.int32)
    for i, j, values in _chunks(pairs, n):
        a, b = (i, j) if rank is None else (rank[i], rank[j])
        some = np.where(a < b, counts(j, i, values), counts(i, j, values))
        _unite(forest, a[some], b[some])
    _flatten(forest)
    if rank is None:
        return forest
    return gathered(scattered(np.arange(n, dtype=np.int32), rank), gathered(forest, rank))


@kernel
def _root(forest, row):  # type: ignore[no-untyped-def]
    """Return the root of a row's tree, halving the path to it."""
    while forest[row] != row:
        forest[row] = forest[forest[row]]
        row = forest[row]
    return row


@kernel
def _unite(forest, i, j):  # type: ignore[no-untyped-def]
    for p in range(len(i)):
        a, b = _root(forest, i[p]), _root(forest, j[p])
        forest[max(a, b)] = min(a, b)  # a parent is never greater than its child


@kernel
def _flatten(forest):  # type: ignore[no-untyped-def]
    """Point every row to its root, the least of its tree."""
    for row in range(len(forest)):
        forest[row] = forest[forest[row]]  # the parent, which is not greater, points to its root already


@kernel
def number_clusters(leaders):  # type: ignore[no-untyped-def]
    """Number the clusters by first appearance; return their representatives and the label of each row."""
    number, labels = np.full(len(leaders), -1, np.int32), np.empty(len(leaders), np.int32)
    representatives = np.empty(len(leaders), np.int32)
    k = 0
    for row in range(len(leaders)):
        if number[leaders[row]] < 0:
            number[leaders[row]] = k
            representatives[k] = leaders[row]
            k += 1
        labels[row] = number[leaders[row]]
    return representatives[:k].copy(), labels


def _similarity_to(leaders: NDArray[np.int32], pairs: Pairs, counts: Counts) -> NDArray[np.float64]:
    similarity = np.full(len(leaders), np.nan)
    similarity[is_identity(leaders)] = 1
    for i, j, values in pairs.chunks():
        for a, b in ((i, j), (j, i)):
            to_leader = (leaders[a] == b) & counts(a, b, values)
            similarity[a[to_leader]] = values[to_leader]
    return similarity


@dataclass(frozen=True)
class Cohesion:
    """Pairs inside the clusters of several documents.

    Attributes
    ----------
    labels : ndarray of int32, shape (m,)
        The clusters, ascending.
    pairs : ndarray of int64, shape (m,)
        Reported pairs between the members of each.
    minimum, mean : ndarray of float64, shape (m,)
        Of their similarities; NaN where the method has no similarity.
    apart : ndarray of int32, shape (m,)
        Members without a reported pair with the representative; 0 in clusters of leaders.
    chain : ndarray of bool, shape (m,)
        Giant chains: at least `GIANT` documents, some of them apart from the representative, and fewer than half of
        all pairs of its members reported.
    """

    labels: NDArray[np.int32]
    pairs: NDArray[np.int64]
    minimum: FloatArray
    mean: FloatArray
    apart: NDArray[np.int32]
    chain: NDArray[np.bool_]

    def of(self, labels: IntArray) -> Cohesion:
        """Return the cohesion of any clusters, in their order; a cluster of one document has no pairs and NaN."""
        position = np.searchsorted(self.labels, labels)
        several = np.append(self.labels, -1)[position] == labels
        position = position[several]

        def each(values: NDArray[Any], alone: float) -> NDArray[Any]:
            of_labels = np.full(len(labels), alone, values.dtype)
            of_labels[several] = values[position]
            return of_labels

        lone = {"pairs": 0, "minimum": np.nan, "mean": np.nan, "apart": 0, "chain": False}
        return Cohesion(labels.astype(np.int32), **{name: each(getattr(self, name), lone[name]) for name in lone})


class ClusterSums(NamedTuple):
    """Sums over the pairs of each cluster of several documents."""

    pairs: NDArray[np.int64]  # reported pairs
    known: NDArray[np.int64]  # pairs with a similarity
    apart: NDArray[np.int32]  # members without a reported pair with the representative
    minimum: FloatArray  # least similarity
    total: FloatArray  # sum of the similarities


def cohesion(clusters: Clusters, pairs: Pairs) -> Cohesion:
    """Count the pairs inside clusters, and summarize their similarities."""
    labels = np.concatenate([np.empty(0, np.int32), *(some.astype(np.int32) for some in flagged(clusters.sizes > 1))])
    position = np.empty(len(clusters.representatives), np.int32)  # read for clusters of several documents alone
    position[labels] = np.arange(len(labels), dtype=np.int32)
    apart = clusters.sizes[labels] - 1
    inside, known = np.zeros(len(labels), np.int64), np.zeros(len(labels), np.int64)
    minimum, total = np.full(len(labels), np.inf), np.zeros(len(labels))
    sums = ClusterSums(inside, known, apart, minimum, total)
    for i, j, similarity in pairs.chunks():
        _add_up(clusters.labels, clusters.representatives, position, i, j, similarity, sums)
    del position
    minimum[known == 0] = np.nan
    with np.errstate(invalid="ignore"):
        np.divide(total, known, out=total)
    sizes = clusters.sizes[labels].astype(np.int64)
    chain = (sizes >= GIANT) & (apart > 0) & (4 * inside < sizes * (sizes - 1))
    return Cohesion(labels, inside, minimum, total, apart, chain)


@kernel
def _add_up(labels, leaders, position, i, j, similarity, out):  # type: ignore[no-untyped-def]
    for p in range(len(i)):
        label = labels[i[p]]
        if label != labels[j[p]]:
            continue  # a pair between clusters of two leaders
        k = position[label]
        out.pairs[k] += 1
        out.apart[k] -= leaders[label] == i[p] or leaders[label] == j[p]
        if not np.isnan(similarity[p]):
            out.known[k] += 1
            out.total[k] += similarity[p]
            out.minimum[k] = min(out.minimum[k], similarity[p])
