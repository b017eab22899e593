"""Leaders of a collection without its pairs: the clusters of `spotsigs.clustering.clusters.cluster`.

Leaders need only the pairs with kept pages. Work, memory and output grow with pages and leaders, whatever the size of a
cluster: exact duplicates are one unit, and near-duplicates are compared with the leaders alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.parallel import distinct, over_blocks
from spotsigs.arrays.row_blocks import gathered
from spotsigs.clustering.clusters import _numbered, _rank
from spotsigs.matching import leader_kernels as kernels
from spotsigs.matching.bounds import prefixes, rarity_classes
from spotsigs.matching.leader_kernels import Indexed, LeaderIndex, Prefixed, Units
from spotsigs.records import Clusters, FloatArray, IntArray, Overlap, Pairs, Vectors
from spotsigs.signatures.contained import NO_RULE, RemovalRule
from spotsigs.storage.exact_duplicates import ExactDuplicates


class LeaderOptions(NamedTuple):
    """Order of the documents, and the pairs that count.

    Attributes
    ----------
    priority, removed : ndarray, optional
        Those of `spotsigs.clustering.clusters.cluster`.
    rule : RemovalRule
        A document whose removal for a leader the rule excludes has no pair with it.
    new_from : int
        Documents before this number are old: no pair of two of them counts. Those that are not removed come first.
    both : bool
        Report also, for each leader, the pair with its most similar document: every document that has a pair has one in
        the result. The contents of the rule then do not count.
    """

    priority: IntArray | None = None
    removed: NDArray[np.bool_] | None = None
    rule: RemovalRule = NO_RULE
    new_from: int = 0
    both: bool = False


@dataclass(frozen=True)
class Undecided:
    """Units of a collection in order of priority: sets of exact duplicates.

    The old documents of a set are a unit, and those that are added to them another one.

    Attributes
    ----------
    of : ndarray of int32, shape (n,)
        Unit of each document.
    first : ndarray of int32, shape (m,)
        Document of best priority of each unit.
    rows : ndarray of int32, shape (m,)
        Document that has the signatures of each unit.
    old : ndarray of bool, shape (m,)
        Whether the documents are old: no pair of two old documents counts.
    covered : ndarray of bool, shape (m,)
        Whether the unit is no leader, at first because an earlier run has removed its documents.
    nearest : ndarray of int32, shape (m,)
        Most similar leader of each unit that is covered, -1 if none is known.
    similarity : ndarray of float64, shape (m,)
        Similarity to it.
    """

    of: NDArray[np.int32]
    first: NDArray[np.int32]
    rows: NDArray[np.int32]
    old: NDArray[np.bool_]
    covered: NDArray[np.bool_]
    nearest: NDArray[np.int32]
    similarity: FloatArray

    @classmethod
    def build(cls, exact_duplicates: ExactDuplicates, options: LeaderOptions) -> Undecided:
        """Order the units of a collection."""
        priority, removed, _, new_from, _ = options
        n = len(exact_duplicates)
        part = exact_duplicates.representatives
        if new_from:
            part = part.copy()
            last = np.arange(n, dtype=np.int32)  # of the old documents of each set
            old = np.flatnonzero(part[:new_from] >= new_from).astype(np.int32)
            last[part[old]] = old
            part[old] = last[part[old]]
        rank = _rank(n, priority, removed)
        order = np.arange(n, dtype=np.int32) if rank is None else np.argsort(rank).astype(np.int32)
        best = np.full(n, n, np.int32)  # rank of the first document of each part
        np.minimum.at(best, part, np.arange(n, dtype=np.int32) if rank is None else rank)
        first = order[np.sort(best[best < n])]
        number = np.empty(n, np.int32)
        number[part[first]] = np.arange(len(first), dtype=np.int32)
        return cls(
            gathered(number, part),
            first,
            gathered(exact_duplicates.representatives, first),
            first < new_from,
            np.zeros(len(first), np.bool_) if removed is None else removed[first],
            np.full(len(first), -1, np.int32),
            np.full(len(first), np.nan),
        )

    def units(self, numbers: IntArray, row_of: IntArray) -> Units:
        """Return some units, by their numbers and rows."""
        return Units(numbers.astype(np.int32), row_of.astype(np.int32), self.old[numbers], self.rows[numbers])

    def join_sets(self, added_join: bool) -> None:
        """Pair the added documents of each set with its old ones, whose row is the same and may be in no index.

        Before the search, added documents join old ones that are kept; after it, old ones join added leaders.
        """
        if not self.old.any():
            return
        old, added = np.flatnonzero(self.old), np.flatnonzero(~self.old)
        added = added[np.argsort(self.rows[added], kind="stable")]
        at = np.searchsorted(self.rows[added], self.rows[old])
        some = np.flatnonzero(at < len(added))
        some = some[self.rows[added[at[some]]] == self.rows[old[some]]]
        unit, leader = (added[at[some]], old[some]) if added_join else (old[some], added[at[some]])
        known = (self.similarity[unit] == 1) & (self.nearest[unit] < leader)
        joins = ~self.covered[leader] & ~known
        unit, leader = unit[joins], leader[joins]
        self.covered[unit], self.nearest[unit], self.similarity[unit] = True, leader, 1.0

    def clusters(self) -> Clusters:
        """Return the clusters, once all leaders are known."""
        n, m = len(self.of), len(self.first)
        target = np.where(self.covered, self.nearest, np.arange(m, dtype=np.int32))
        target[~self.covered & self.old] = -1  # kept earlier, each by itself
        joined = gathered(target, self.of)
        leaders = np.arange(n, dtype=np.int32)
        leaders[joined >= 0] = self.first[joined[joined >= 0]]
        similarity = gathered(np.where(self.covered & (self.nearest >= 0), self.similarity, 1.0), self.of)
        representatives, labels = _numbered(leaders)
        return Clusters(labels, representatives, similarity)

    def pairs(self, clusters: Clusters, lengths: IntArray, both: bool) -> Pairs:
        """Return the pair of each document with its leader; with ``both``, also of each leader with its nearest one."""
        n = len(self.of)
        leaders = clusters.representatives[clusters.labels]
        i = np.flatnonzero(leaders != np.arange(n, dtype=np.int32)).astype(np.int32)
        j, similarity = leaders[i], clusters.similarity_to_representative[i]
        if both:
            other = np.flatnonzero(~self.covered & (self.nearest >= 0))
            i = np.concatenate([i, self.first[other]])
            j = np.concatenate([j, self.first[self.nearest[other]]])
            similarity = np.concatenate([similarity, self.similarity[other]])
        return Pairs.build(i, j, similarity, n, overlap=Overlap(lengths))


def leaders_of(
    vectors: Vectors,
    tau: float,
    options: LeaderOptions,
    *,
    exact_duplicates: ExactDuplicates | None = None,
    threads: int | None = None,
) -> tuple[Clusters, Pairs]:
    """Group the documents by leaders, without the pairs between documents that are no leaders.

    The clusters are those of `spotsigs.clustering.clusters.cluster` with all pairs of multiset Jaccard similarity
    ``tau`` that count; the pairs are that of each document with its leader.

    Parameters
    ----------
    exact_duplicates : ExactDuplicates, optional
        Exact duplicates, of similarity 1, of which the representatives have rows; none by default.
    threads : int, optional
        Threads of the kernels; one per available core if omitted.
    """
    exact_duplicates = ExactDuplicates.none(len(vectors)) if exact_duplicates is None else exact_duplicates
    state = Undecided.build(exact_duplicates, options)
    classes = gathered(rarity_classes(vectors.document_frequencies), vectors.ids)
    rows = prefixed(
        vectors.indptr, vectors.ids, vectors.counts, vectors.lengths, classes, tau, options.rule, threads=threads
    )
    numbers = np.arange(len(state.first), dtype=np.int32)
    batch = batched(state.units(numbers, state.rows), rows, vectors.n_signatures)
    state.join_sets(True)
    kernels.find_leaders(batch, tau, options.rule, state.covered)
    covered = np.flatnonzero(state.covered)
    units = state.units(covered, state.rows[covered])
    find_nearest(state, units, rows, batch, tau, options, threads)
    state.join_sets(False)
    clusters = state.clusters()
    return clusters, state.pairs(clusters, gathered(vectors.lengths, exact_duplicates.representatives), options.both)


def prefixed(
    indptr: NDArray[np.int64],
    ids: NDArray[np.int32],
    counts: NDArray[np.int32],
    lengths: NDArray[np.int64],
    classes: NDArray[np.uint8],
    tau: float,
    rule: RemovalRule = NO_RULE,
    documents: IntArray | None = None,
    *,
    threads: int | None = None,
) -> Prefixed:
    """Return rows with their prefixes, by the class of frequency of each entry.

    Prefixes are of the pairs that the rule allows; the rows are of the ``documents``, by default of all in order.
    """
    known = np.maximum(distinct(lengths), 1)
    at = np.searchsorted(known, lengths)
    shortest, shared, sizes = (table[at] for table in prefixes(tau, known, kernels.MAX_SHARED))
    if rule.least_bound > 0:
        missing = rule.missing if documents is None else rule.missing[documents]
        # the overlap is at least this fraction of what the row and what is missing of it have together
        overlap = np.floor(rule.least_bound * (lengths + missing)).astype(np.int64) - 1
        sizes = np.maximum(np.minimum(sizes, lengths - overlap + shared), 0)
    ends, tokens = np.empty(len(lengths), np.int64), np.empty(len(ids), np.uint64)
    rows = Prefixed(indptr, ids, counts, lengths, shortest, shared, ends, tokens)
    over_blocks(partial(kernels.select_prefixes, rows, classes, sizes), len(lengths), threads)
    return rows


def batched(units: Units, rows: Prefixed, n_signatures: int) -> Indexed:
    """Return units with an index that has capacity for all of them."""
    words = np.zeros((n_signatures >> 6) + 1, np.uint64)
    kernels.mark_signatures(rows, words)
    before = row_starts(np.bitwise_count(words)).astype(np.int32)
    sizes = np.zeros(int(before[-1]), np.int64)
    index = LeaderIndex(words, before, sizes, sizes, np.empty((0, 4), np.int32))
    kernels.count_postings(Indexed(units, rows, index), sizes)
    starts = row_starts(sizes)
    postings = np.empty((int(starts[-1]), 4), np.int32)  # the system allocates only the pages that are written
    return Indexed(units, rows, LeaderIndex(words, before, starts, starts[:-1].copy(), postings))


def find_nearest(
    state: Undecided,
    units: Units,
    rows: Prefixed,
    batch: Indexed,
    tau: float,
    options: LeaderOptions,
    threads: int | None = None,
) -> None:
    """Find the most similar leader of some units among those of a batch, which cover them."""
    out = state.nearest, state.similarity

    def search(begin: int, end: int) -> None:
        kernels.find_nearest(rows, units, begin, end, batch, tau, options.rule, options.both, out)

    over_blocks(search, len(units.numbers), 1 if options.both else threads)
    state.covered[units.numbers] |= state.nearest[units.numbers] >= 0
