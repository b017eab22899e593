"""Algorithm 1 of the paper: partition by length, prune an inverted index by the threshold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.parallel import concatenated, grown, over_blocks, overlap, renumbered
from spotsigs.contracts import ThreadedMatcher, ThresholdMatcher
from spotsigs.errors import as_choice, as_count, as_flag
from spotsigs.matching.partitions import MOST_RHO, Convention, partition_boundaries
from spotsigs.records import Corpus, FloatArray, IntArray, Measure, Overlap, Pairs, Vectors

COUNTERS = (
    "lists_opened",
    "candidates",
    "verifications",
    "continues",
    "list_breaks",
    "probe_breaks",
    "candidates_next_door",  # candidates in the next partition
)
LISTS, CANDIDATES, VERIFICATIONS, CONTINUES, LIST_BREAKS, PROBE_BREAKS, NEXT_DOOR = range(len(COUNTERS))


@dataclass(frozen=True, kw_only=True)
class SpotSigs(ThreadedMatcher, ThresholdMatcher):
    """Algorithm 1 as printed, with exact results for every threshold, document order and number of threads.

    Attributes
    ----------
    tau : float
        Similarity threshold in (0, 1].
    partitioning : bool
        False puts all documents into a single partition (the paper's NoPart).
    pruning : bool
        False drops the continue and break conditions of lines 16, 18 and 26 (with ``partitioning=False`` NoPrune).
    local_order : bool
        Process the lists in ascending order of their length in the document's partition. False orders them by their
        length in the whole collection, which section 4.3.1 found slower.
    rho : int
        Largest partition boundary (section 5.1 uses 1,000).
    convention : Convention
        Partition boundaries by the paper's formula or as in the prototype.
    threads : int or None
        Threads, each on blocks of documents; None uses all cores.

    References
    ----------
    M. Theobald, J. Siddharth, A. Paepcke: SpotSigs. SIGIR 2008, sections 4.2 and 4.3, Algorithm 1.

    Deviations
    ----------
    Every bound is evaluated as ``smaller / larger >= tau`` in float64 instead of ``difference > (1 - tau) * larger``,
    which loses borderline pairs. Line 21 marks every compared document as checked, as the text of the paper states, not
    only similar ones. Documents are processed in order of length instead of random order; the result is the same.
    """

    exact: ClassVar[bool] = True
    verified: ClassVar[bool] = True
    label: ClassVar[str] = "SpotSigs"
    measure: ClassVar[str] = Measure.jaccard

    partitioning: bool = True
    pruning: bool = True
    local_order: bool = True
    rho: int = 1000
    convention: Convention = Convention.paper

    def __post_init__(self) -> None:
        super().__post_init__()
        as_count("rho", self.rho, most=MOST_RHO)
        object.__setattr__(self, "convention", as_choice("convention", self.convention, Convention))
        for name in ("partitioning", "pruning", "local_order"):
            as_flag(name, getattr(self, name))

    def __call__(self, corpus: Corpus) -> Pairs:
        """Return all pairs with multiset Jaccard of at least tau."""
        began = perf_counter()
        index = self.index(corpus.vectors)
        indexed = perf_counter()
        parts = over_blocks(lambda start, stop: self.probe(index, start, stop), len(index.rows), self.threads)
        i, j, similarity = concatenated(parts, (np.int32, np.int32, np.float64))
        counts = np.sum([np.zeros(len(COUNTERS), np.int64), *(part[3] for part in parts)], axis=0)
        return Pairs.build(
            i,
            j,
            similarity,
            len(corpus.vectors),
            seconds={"sort_hash": indexed - began, "cluster": perf_counter() - indexed},
            counters=dict(zip(COUNTERS, counts.tolist(), strict=True)) | {"partitions": len(index.boundaries)},
            overlap=Overlap(corpus.vectors.lengths),
        )

    def index(self, vectors: Vectors) -> PartitionIndex:
        """Return the inverted index of the documents, ordered by partition and length."""
        boundaries = partition_boundaries(self.tau, self.rho, self.convention) if self.partitioning else np.ones(1)
        return build_index(_dense(vectors), boundaries.astype(np.int64))

    def probe(self, index: PartitionIndex, start: int, stop: int) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
        """Return pairs of rows (the first probes), similarities and counters for a range of ranks (lines 3 to 33).

        A pair within one partition is found from both of its documents. The counters are in the order of `COUNTERS`.
        """
        matches: tuple[IntArray, IntArray, FloatArray, IntArray] = _probe_block(
            index, start, stop, self.tau, self.pruning, self.local_order
        )
        return matches

    def memory_bytes(self, vectors: Vectors) -> int:
        """Return the paper's lower bound (section 5.4.1): 4 + 2 + 4 bytes for each entry, 4 for each document."""
        return len(vectors.ids) * (4 + 2 + 4) + len(vectors) * 4


def _dense(vectors: Vectors) -> Vectors:
    """Return the vectors with contiguous ids if few ids span a large range: the index has a list for each id."""
    if vectors.n_signatures <= 2**16 + 4 * len(vectors.ids):
        return vectors
    [ids], _ = renumbered([vectors.ids], vectors.n_signatures)
    return replace(vectors, ids=ids, vocabulary=None)


class PartitionIndex(NamedTuple):
    """Inverted index over documents in order of partition and descending length.

    A document's position in this order is its rank. Partition ``k`` contains the ranks ``starts[k]:starts[k + 1]``, so
    the postings of a signature in a partition are a contiguous range of its list, sorted by length.
    """

    rows: NDArray[np.int64]  # row number of each rank; documents without signatures have no rank
    lengths: NDArray[np.int64]  # |d| of each rank, descending within a partition
    partitions: NDArray[np.int64]  # partition of each rank
    starts: NDArray[np.int64]  # first rank of each partition
    boundaries: NDArray[np.int64]  # smallest length of each partition
    list_starts: NDArray[np.int64]  # first posting of each signature
    postings: NDArray[np.int32]  # ranks, ascending within a signature
    indptr: NDArray[np.int64]
    ids: NDArray[np.int32]
    counts: NDArray[np.int32]


def build_index(vectors: Vectors, boundaries: NDArray[np.int64]) -> PartitionIndex:
    """Sort the documents into partitions, given by the smallest length of each, and build the inverted index."""
    partitions = np.searchsorted(boundaries, vectors.lengths, side="right") - 1
    rows = np.lexsort((-vectors.lengths, partitions))
    rows = rows[vectors.lengths[rows] > 0]
    list_starts = row_starts(vectors.document_frequencies)
    postings = fill_lists(rows, vectors.indptr, vectors.ids, list_starts[:-1].copy(), len(vectors.ids))
    return PartitionIndex(
        rows,
        vectors.lengths[rows],
        partitions[rows],
        np.searchsorted(partitions[rows], np.arange(len(boundaries) + 1)),
        boundaries,
        list_starts,
        postings,
        vectors.indptr,
        vectors.ids,
        vectors.counts,
    )


@kernel
def fill_lists(rows, indptr, ids, cursor, size):  # type: ignore[no-untyped-def]
    """Return the postings lists of some rows as indices into them; ``cursor``, the start of each list, changes."""
    postings = np.empty(size, np.int32)
    for rank in range(len(rows)):
        for entry in range(indptr[rows[rank]], indptr[rows[rank] + 1]):
            postings[cursor[ids[entry]]] = rank
            cursor[ids[entry]] += 1
    return postings


@kernel
def _first_at_least(values, low, high, wanted):  # type: ignore[no-untyped-def]
    """Return the first position in ``values[low:high]``, which ascends, whose value is at least ``wanted``."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _probe_block(index, start, stop, tau, pruning, local_order):  # type: ignore[no-untyped-def]
    """Probe a range of ranks: lines 3 to 33. Pairs within one partition are found from both documents."""
    out_i, out_j, out_s = np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(1024, np.float64)
    n_out = np.int64(0)
    counters = np.zeros(len(COUNTERS), np.int64)
    checked = np.full(len(index.rows), -1, np.int32)  # the last probe that was compared with each document
    for probe in range(start, stop):
        row = index.rows[probe]
        first, size = index.indptr[row], index.indptr[row + 1] - index.indptr[row]
        heads, ends = np.empty(size, np.int64), np.empty(size, np.int64)
        order = np.arange(size)
        if not local_order:
            for s in range(size):
                signature = index.ids[first + s]
                heads[s] = index.list_starts[signature + 1] - index.list_starts[signature]
            order = np.argsort(heads, kind="mergesort")
        k = index.partitions[probe]
        for visit in range(2):
            for s in range(size):
                signature = index.ids[first + s]
                low, high = index.list_starts[signature], index.list_starts[signature + 1]
                heads[s] = _first_at_least(index.postings, low, high, index.starts[k])
                ends[s] = _first_at_least(index.postings, heads[s], high, index.starts[k + 1])
            if visit == 0 and local_order:  # line 5; the next partition reuses this order (section 4.3.1)
                order = np.argsort(ends - heads, kind="mergesort")
            before = counters[CANDIDATES]
            out_i, out_j, out_s, n_out = _probe_partition(
                index, probe, k, order, heads, ends, tau, pruning, checked, counters, out_i, out_j, out_s, n_out
            )
            counters[NEXT_DOOR] += visit * (counters[CANDIDATES] - before)
            # Line 29: continue only if a document of the next partition's smallest length could be similar.
            if k + 1 == len(index.boundaries) or not index.lengths[probe] / index.boundaries[k + 1] >= tau:
                break
            k += 1
    return out_i[:n_out], out_j[:n_out], out_s[:n_out], counters


@kernel
def _probe_partition(  # type: ignore[no-untyped-def]
    index, probe, k, order, heads, ends, tau, pruning, checked, counters, out_i, out_j, out_s, n_out
):
    """Process the inverted lists of one document in one partition: lines 8 to 28."""
    row, length = index.rows[probe], index.lengths[probe]
    first, last = index.indptr[row], index.indptr[row + 1]
    longest = index.starts[k]  # rank of the longest unchecked document of the partition
    delta1 = 0  # occurrences of the probe in the lists read so far: no unchecked document shares any of them
    for s in order:
        counters[LISTS] += 1
        for p in range(heads[s], ends[s]):
            other = index.postings[p]
            if other == probe or checked[other] == probe:
                continue
            counters[CANDIDATES] += 1
            other_length = index.lengths[other]
            # docs/bounds.md, "Algorithm 1 is exact": why each test keeps every pair that the shorter document finds
            if pruning and other_length > length and not (length - delta1) / other_length >= tau:  # line 16
                counters[CONTINUES] += 1
                continue
            if pruning and other_length <= length and not (other_length - delta1) / length >= tau:  # line 18
                counters[LIST_BREAKS] += 1
                break
            checked[other] = probe
            counters[VERIFICATIONS] += 1
            other_row = index.rows[other]
            shared = overlap(index.ids, index.counts, first, last, index.indptr[other_row], index.indptr[other_row + 1])
            similarity = shared / (length + other_length - shared)
            if similarity >= tau:
                if n_out == len(out_i):
                    out_i, out_j, out_s = grown(out_i), grown(out_j), grown(out_s)
                out_i[n_out], out_j[n_out], out_s[n_out] = row, other_row, similarity
                n_out += 1
        delta1 += index.counts[first + s]
        if pruning:  # line 26: delta1 >= (1 - tau) * longest unchecked length, in the form of the test
            while longest < index.starts[k + 1] and checked[longest] == probe:
                longest += 1
            if longest == index.starts[k + 1] or (index.lengths[longest] - delta1) / index.lengths[longest] <= tau:
                counters[PROBE_BREAKS] += 1
                break
    return out_i, out_j, out_s, n_out
