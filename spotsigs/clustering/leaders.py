"""Leaders of a collection without its pairs: the clusters of `spotsigs.clustering.clusters.cluster`.

Leaders need only the pairs with kept pages. Work, memory and output grow with pages and leaders, whatever the size of a
cluster: exact duplicates are one unit, and near-duplicates are compared with the leaders alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.parallel import concatenated, over_blocks
from spotsigs.arrays.row_blocks import gathered
from spotsigs.clustering.clusters import number_clusters, rank_rows
from spotsigs.matching import prefix_kernels as kernels
from spotsigs.matching.bounds import rarity_classes
from spotsigs.matching.join_kernels import Rows
from spotsigs.matching.prefix_index import empty_index, prefixed
from spotsigs.matching.prefix_kernels import Indexed, Prefixed, Units
from spotsigs.records import Clusters, FloatArray, IntArray, Overlap, Pairs, Vectors
from spotsigs.signatures.contained import NO_RULE, RemovalRule
from spotsigs.storage.exact_duplicates import ExactDuplicates


class LeaderOptions(NamedTuple):
    """Order of the documents, and the pairs that count."""

    # Arguments of `spotsigs.clustering.clusters.cluster`.
    priority: IntArray | None = None
    removed: NDArray[np.bool_] | None = None
    rule: RemovalRule = NO_RULE  # a document whose removal for a leader the rule excludes has no pair with it
    # Documents before this number are old: no pair of two of them counts. Those that are not removed come first.
    new_from: int = 0
    # Report also, for each leader, the pair with its most similar document: every document that has a pair has one in
    # the result. The contents of the rule then do not count.
    both: bool = False


class Nearest(NamedTuple):
    """The most similar leader of each of some units, -1 for none, and the similarity; the same for leaders."""

    number: NDArray[np.int32]
    similarity: FloatArray
    of_leaders: NDArray[np.int32]  # empty unless they are requested
    similarity_of_leaders: FloatArray


@dataclass(frozen=True)
class Undecided:
    """Units of a collection in order of priority: sets of exact duplicates.

    The old documents of a set are a unit, and those that are added to them another one.
    """

    of: NDArray[np.int32]  # (n,) unit of each document
    first: NDArray[np.int32]  # (m,) document of best priority of each unit
    rows: NDArray[np.int32]  # (m,) document that has the signatures of each unit
    old: NDArray[np.bool_]  # (m,) whether the documents are old: no pair of two old documents counts
    # (m,) whether the unit is no leader, at first because an earlier run has removed its documents.
    covered: NDArray[np.bool_]
    nearest: NDArray[np.int32]  # (m,) most similar leader of each unit that is covered, -1 if none is known
    similarity: FloatArray  # (m,) similarity to it

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
        rank = rank_rows(n, priority, removed)
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

    def take(self, units: IntArray, leaders: IntArray, found: Nearest) -> None:
        """Take the nearest leaders of some units, which are covered then, and the nearest units of some leaders."""
        out = self.nearest, self.similarity
        kernels.merge_nearest(units, found.number, found.similarity, out)
        self.covered[units] |= self.nearest[units] >= 0
        if len(found.of_leaders):
            kernels.merge_nearest(leaders, found.of_leaders, found.similarity_of_leaders, out)

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
        representatives, labels = number_clusters(leaders)
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

    `spotsigs.clustering.clusters.cluster` returns the same clusters for all pairs of multiset Jaccard similarity
    ``tau`` that count. Each document that is no leader is in one pair, with its leader.

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
    entries = Rows(vectors.indptr, vectors.ids, vectors.counts)
    rows = prefixed(entries, vectors.lengths, classes, tau, options.rule, threads=threads)
    numbers = np.arange(len(state.first), dtype=np.int32)
    batch = empty_index(state.units(numbers, state.rows), rows, vectors.n_signatures)
    state.join_sets(True)
    kernels.find_leaders(batch, tau, options.rule, state.covered)
    covered = np.flatnonzero(state.covered)
    units = state.units(covered, state.rows[covered])
    nearest = nearest_leaders(units, rows, batch, tau, options.rule, both=options.both, threads=threads)
    state.take(units.numbers, batch.units.numbers, nearest)
    state.join_sets(False)
    clusters = state.clusters()
    return clusters, state.pairs(clusters, gathered(vectors.lengths, exact_duplicates.representatives), options.both)


def nearest_leaders(
    units: Units,
    rows: Prefixed,
    leaders: Indexed,
    tau: float,
    rule: RemovalRule,
    *,
    both: bool,
    threads: int | None = None,
) -> Nearest:
    """Find the most similar leader of some units, and, with ``both``, the most similar unit of each leader."""

    def search(begin: int, end: int) -> tuple[NDArray[np.int32], FloatArray, NDArray[np.int32], FloatArray]:
        found: tuple[NDArray[np.int32], FloatArray, NDArray[np.int32], FloatArray] = kernels.find_nearest(
            rows, units, begin, end, leaders, tau, rule, both
        )
        return found

    if both:  # all arrays of leaders were found by one search
        return Nearest(*search(0, len(units.numbers)))
    number, similarity = concatenated(over_blocks(search, len(units.numbers), threads), (np.int32, np.float64))
    return Nearest(number, similarity, np.empty(0, np.int32), np.empty(0))
