"""Exact all-pairs Cosine over TF·IDF vectors, with the bounds of AllPairs and L2AP and a length partitioning.

`docs/cosine_bound.md` derives and proves the bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from time import perf_counter
from typing import ClassVar, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.parallel import concatenated, grown, over_blocks
from spotsigs.records import Corpus, FloatArray, Measure, Pairs, ThreadedMatcher, ThresholdMatcher, Vectors

COUNTERS = ("lists_opened", "postings", "candidates", "verifications")
LISTS, POSTINGS, CANDIDATES, VERIFICATIONS = range(len(COUNTERS))


@dataclass(frozen=True, kw_only=True)
class Cosine(ThreadedMatcher, ThresholdMatcher):
    """All pairs with TF·IDF Cosine of at least tau.

    A document is the vector ``u`` of ``count * log(N / df)``, its counts divided by their greatest common divisor (so
    that proportional documents are equal), and the similarity of two is ``min(1, u·v / sqrt(u·u v·v))`` in float64,
    every product summed up in ascending order of the signature id. Signatures of all documents have idf 0 and vanish;
    documents that keep nothing have no similarity. The pairs are exactly those that a comparison of all documents by
    this definition would give: every bound leaves room for rounding (see `slack`), and every pair is decided by it.

    Attributes
    ----------
    tau : float
        Similarity threshold in (0, 1].
    threads : int or None
        Threads over blocks of documents; None takes all cores.

    References
    ----------
    R. J. Bayardo, Y. Ma, R. Srikant: Scaling up all pairs similarity search. WWW 2007. D. C. Anastasiu, G. Karypis:
    L2AP: fast cosine similarity search with prefix L-2 norm bounds. ICDE 2014. M. Theobald, J. Siddharth, A. Paepcke:
    SpotSigs. SIGIR 2008, section 5.3.1 (Cosine with TF·IDF weights) and section 6 (a bound for Cosine as future work).

    Deviations
    ----------
    The index is built before the first probe, not while probing, so that probes run on threads. A probe stops at its
    first list that can bring no new candidate; candidates are then compared in full, in the order of the definition.
    """

    measure: ClassVar[str] = Measure.cosine
    exact: ClassVar[bool] = True
    verified: ClassVar[bool] = True
    label: ClassVar[str] = "Cosine"

    def __call__(self, corpus: Corpus) -> Pairs:
        """Return all pairs with Cosine of at least tau."""
        began = perf_counter()
        weighted = weigh(corpus.vectors)
        index = build_index(weighted, self.tau)
        indexed = perf_counter()
        parts = over_blocks(
            lambda start, stop: _probe_block(weighted, index, self.tau, start, stop),
            len(index.rows),
            self.threads,
            blocks_a_thread=32,
        )
        i, j, similarity = concatenated(parts, (np.int32, np.int32, np.float64))
        counts = np.sum([np.zeros(len(COUNTERS), np.int64), *(part[3] for part in parts)], axis=0)
        return Pairs.build(
            i,
            j,
            similarity,
            len(corpus.vectors),
            seconds={"sort_hash": indexed - began, "cluster": perf_counter() - indexed},
            counters=dict(zip(COUNTERS, counts.tolist(), strict=True))
            | {"partitions": len(index.partitions), "indexed": len(index.postings)},
        )

    def memory_bytes(self, vectors: Vectors) -> int:
        """Return the paper's kind of lower bound: id, 4-byte weight and list pointer an entry, 4 bytes a document."""
        return len(vectors.ids) * (4 + 4 + 4) + len(vectors) * 4


class Weighted(NamedTuple):
    """TF·IDF vectors, not normalised: what the similarity is defined on.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n + 1,)
        Row ``r`` lies at ``indptr[r]:indptr[r + 1]``.
    ids : ndarray of int32, shape (nnz,)
        Signature ids, ascending within a row; those of all documents are left out.
    values : ndarray of float64, shape (nnz,)
        Positive weights.
    squares : ndarray of float64, shape (n,)
        Sum of the squared weights of each row, in ascending order of the ids.
    frequencies : ndarray of int64, shape (n_signatures,)
        Document frequencies.
    """

    indptr: NDArray[np.int64]
    ids: NDArray[np.int32]
    values: FloatArray
    squares: FloatArray
    frequencies: NDArray[np.int64]


def weigh(vectors: Vectors) -> Weighted:
    """Weigh counts by inverse document frequency.

    Parameters
    ----------
    vectors : Vectors
        One row per document; ``N`` is the number of rows.

    Returns
    -------
    Weighted
    """
    frequencies = vectors.document_frequencies
    idf = inverse_document_frequencies(frequencies, len(vectors))
    kept = idf[vectors.ids] > 0
    indptr = row_starts(kept)[vectors.indptr]
    ids = vectors.ids[kept]
    values, squares = _weigh_rows(indptr, ids, vectors.counts[kept], idf)
    return Weighted(indptr, ids, values, squares, frequencies)


def inverse_document_frequencies(frequencies: NDArray[np.int64], n: int) -> FloatArray:
    """Return ``log(n / df)``, correctly rounded, so that it is the same on every machine; 0 where df is 0.

    Parameters
    ----------
    frequencies : ndarray of int64
        Document frequencies, at most ``n``.
    n : int
        Number of documents.

    Returns
    -------
    ndarray of float64, of the same shape
    """
    distinct, inverse = np.unique(frequencies, return_inverse=True)
    context = Context(prec=40)
    logs = [float(context.ln(context.divide(Decimal(n), Decimal(df)))) if df else 0.0 for df in distinct.tolist()]
    return np.asarray(logs, dtype=np.float64)[inverse]


@njit(cache=True, nogil=True)
def _weigh_rows(indptr, ids, counts, idf):  # type: ignore[no-untyped-def]
    values, squares = np.empty(len(ids)), np.zeros(len(indptr) - 1)
    for row in range(len(squares)):
        common = 0
        for entry in range(indptr[row], indptr[row + 1]):
            common = _common_divisor(counts[entry], common)
        for entry in range(indptr[row], indptr[row + 1]):
            values[entry] = (counts[entry] // common) * idf[ids[entry]]
            squares[row] += values[entry] * values[entry]
    return values, squares


@njit(cache=True, nogil=True)
def _common_divisor(a, b):  # type: ignore[no-untyped-def]
    while b > 0:
        a, b = b, a % b
    return a


def slack(longest: int) -> float:
    """Return the share of tau by which every bound is relaxed, so that rounding loses no pair.

    Bounds and similarities are sums of at most ``longest`` non-negative products, each off by a relative error below
    ``(2 longest + 16) 2**-53``. So where a computed bound falls short of ``(1 - slack) tau``, the defined similarity
    falls short of tau, with room to spare (docs/cosine_bound.md, rounding).

    Parameters
    ----------
    longest : int
        Most signatures of a document.

    Returns
    -------
    float
    """
    return (16 * longest + 256) * 2.0**-53


class SuffixIndex(NamedTuple):
    """Documents by effective length, the frequent signatures of each first, and inverted lists of their suffixes.

    A document's rank is its position by ascending effective length. Documents whose shared signatures alone weigh too
    little have none. Weights are normalised, and signatures of one document only are left out.

    Attributes
    ----------
    rows : ndarray of int64, shape (n_ranks,)
        Row of each rank.
    lengths, reaches : ndarray of float64, shape (n_ranks,)
        Effective length, and the largest one a similar document can have.
    first : ndarray of int64, shape (n_ranks,)
        First rank of the partition before each document's own.
    partitions : ndarray of float64, shape (n_partitions,)
        Smallest effective length of each partition.
    indptr, places, weights, norms, remaining : ndarray
        Rows by rank: places of the signatures (0 is the most frequent), ascending; normalised weights; norm of the
        entries before each entry; bound of what the entries up to and including each add to any earlier rank.
    lists : ndarray of int64, shape (n_places + 1,)
        First posting of each place.
    postings, posting_weights, posting_norms : ndarray
        Ranks, ascending within a list; weight; norm of the document's entries before this one.
    low : float
        Threshold of the bounds: a little below tau.
    """

    rows: NDArray[np.int64]
    lengths: FloatArray
    reaches: FloatArray
    first: NDArray[np.int64]
    partitions: FloatArray
    indptr: NDArray[np.int64]
    places: NDArray[np.int32]
    weights: FloatArray
    norms: FloatArray
    remaining: FloatArray
    lists: NDArray[np.int64]
    postings: NDArray[np.int32]
    posting_weights: FloatArray
    posting_norms: FloatArray
    low: float


def build_index(weighted: Weighted, tau: float) -> SuffixIndex:
    """Sort the documents by effective length into partitions, and index the suffix of each.

    Parameters
    ----------
    weighted : Weighted
        One row per document.
    tau : float
        Similarity threshold in (0, 1].

    Returns
    -------
    SuffixIndex
    """
    place = _id_positions(weighted.frequencies, len(weighted.squares))
    low = tau * (1 - slack(int(np.diff(weighted.indptr).max(initial=0))))
    lengths, reaches = effective_lengths(weighted, place >= 0, low)
    rows = np.argsort(lengths, kind="stable")
    rows = rows[reaches[rows] > 0]
    lengths, reaches = lengths[rows], reaches[rows]
    partitions = length_partitions(lengths, reaches)
    starts = np.searchsorted(lengths, partitions)
    own = np.searchsorted(partitions, lengths, side="right") - 1
    n_places = int(place.max(initial=-1)) + 1
    indptr, places, weights = _order_rows(weighted, rows, place, n_places)
    norms, remaining, split = _bounds(indptr, places, weights, n_places, low)
    lists, postings, posting_weights, posting_norms = _fill_lists(indptr, places, weights, norms, split, n_places)
    return SuffixIndex(
        rows,
        lengths,
        reaches,
        starts[np.maximum(own - 1, 0)],
        partitions,
        indptr,
        places,
        weights,
        norms,
        remaining,
        lists,
        postings,
        posting_weights,
        posting_norms,
        low,
    )


def _id_positions(frequencies: NDArray[np.int64], n: int) -> NDArray[np.int32]:
    """Return the place of each signature of two to ``n - 1`` documents, the most frequent first; -1 for the others."""
    shared = np.flatnonzero((frequencies >= 2) & (frequencies < n))
    place = np.full(len(frequencies), -1, np.int32)
    place[shared[np.argsort(-frequencies[shared], kind="stable")]] = np.arange(len(shared), dtype=np.int32)
    return place


def effective_lengths(weighted: Weighted, shared: NDArray[np.bool_], low: float) -> tuple[FloatArray, FloatArray]:
    """Return the property that bounds the Cosine, and how far it reaches (docs/cosine_bound.md, theorem 1).

    The effective length of a document is ``1 / w**2`` with ``w`` its largest normalised weight: the number of its
    signatures where all weigh the same. Two documents can be similar only if the length of neither exceeds the reach
    of the other.

    Parameters
    ----------
    weighted : Weighted
        One row per document.
    shared : ndarray of bool, shape (n_signatures,)
        Signatures that can contribute to a similarity: those of at least two documents.
    low : float
        Threshold of the bounds.

    Returns
    -------
    lengths, reaches : ndarray of float64, shape (n,)
        Infinite and 0 for a document whose shared signatures have a norm below ``low``: it has no similar document.
    """
    return _effective_lengths(weighted, shared, low)  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def _effective_lengths(weighted, shared, low):  # type: ignore[no-untyped-def]
    n = len(weighted.squares)
    lengths, reaches = np.full(n, np.inf), np.zeros(n)
    for row in range(n):
        first, stop = weighted.indptr[row], weighted.indptr[row + 1]
        ids = weighted.ids[first:stop]
        weights = np.sort(weighted.values[first:stop][shared[ids]] / np.sqrt(weighted.squares[row]))
        rest = np.zeros(len(weights) + 1)  # squared norm of the s smallest weights
        for s in range(len(weights)):
            rest[s + 1] = rest[s] + weights[s] * weights[s]
        if len(weights) == 0 or np.sqrt(rest[-1]) < low:
            continue
        cap = 0.0  # the least that the largest weight of a similar document can be
        total = 0.0
        for s in range(len(weights) - 1, -1, -1):
            total += weights[s]
            cap = max(cap, (low - np.sqrt(rest[s])) / total)
        lengths[row] = 1.0 / (weights[-1] * weights[-1])
        reaches[row] = max(1.0 / (cap * cap), lengths[row])
    return lengths, reaches


def length_partitions(lengths: FloatArray, reaches: FloatArray) -> FloatArray:
    """Cut the effective lengths into partitions so that similar documents lie in the same or neighbouring ones.

    The counterpart of section 4.2 of the paper: ``p_0`` is the shortest length, and ``p_(k+1)`` the shortest one that
    no document shorter than or as long as ``p_k`` reaches (docs/cosine_bound.md, theorem 2).

    Parameters
    ----------
    lengths : ndarray of float64, shape (n,)
        Effective lengths, ascending.
    reaches : ndarray of float64, shape (n,)
        How far each reaches, at least its length.

    Returns
    -------
    ndarray of float64, shape (n_partitions,)
        Smallest length of each partition, ascending.
    """
    furthest = np.maximum.accumulate(reaches)
    boundaries = []
    rank = 0
    while rank < len(lengths):
        boundaries.append(lengths[rank])
        up_to = int(np.searchsorted(lengths, lengths[rank], side="right"))
        rank = int(np.searchsorted(lengths, furthest[up_to - 1], side="right"))
    return np.asarray(boundaries, dtype=np.float64)


@njit(cache=True, nogil=True)
def _order_rows(weighted, rows, place, n_places):  # type: ignore[no-untyped-def]
    """Return the rows by rank, their entries by place, weights normalised: a transposition there and back."""
    indptr = np.zeros(len(rows) + 1, np.int64)
    starts = np.zeros(n_places + 1, np.int64)
    for rank in range(len(rows)):
        indptr[rank + 1] = indptr[rank]
        for entry in range(weighted.indptr[rows[rank]], weighted.indptr[rows[rank] + 1]):
            if place[weighted.ids[entry]] >= 0:
                indptr[rank + 1] += 1
                starts[place[weighted.ids[entry]] + 1] += 1
    starts = np.cumsum(starts)
    cursor = starts[:-1].copy()
    ranks, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
    for rank in range(len(rows)):
        norm = np.sqrt(weighted.squares[rows[rank]])
        for entry in range(weighted.indptr[rows[rank]], weighted.indptr[rows[rank] + 1]):
            p = place[weighted.ids[entry]]
            if p >= 0:
                ranks[cursor[p]], values[cursor[p]] = rank, weighted.values[entry] / norm
                cursor[p] += 1
    cursor = indptr[:-1].copy()
    places, weights = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
    for p in range(n_places):
        for entry in range(starts[p], starts[p + 1]):
            places[cursor[ranks[entry]]], weights[cursor[ranks[entry]]] = p, values[entry]
            cursor[ranks[entry]] += 1
    return indptr, places, weights


@njit(cache=True, nogil=True)
def _bounds(indptr, places, weights, n_places, low):  # type: ignore[no-untyped-def]
    """Return prefix norms, what prefixes can still add to earlier ranks, and where each document's suffix begins."""
    n = len(indptr) - 1
    norms, remaining = np.empty(len(weights)), np.empty(len(weights))
    largest = np.zeros(n_places)  # weight of each signature among the earlier ranks
    for rank in range(n):
        product, square = 0.0, 0.0
        for entry in range(indptr[rank], indptr[rank + 1]):
            norms[entry] = np.sqrt(square)
            product += weights[entry] * largest[places[entry]]
            square += weights[entry] * weights[entry]
            remaining[entry] = min(product, np.sqrt(square))
        for entry in range(indptr[rank], indptr[rank + 1]):
            largest[places[entry]] = max(largest[places[entry]], weights[entry])
    largest[:] = 0.0  # now among the later ranks, which will probe this one
    split = indptr[1:].copy()
    for rank in range(n - 1, -1, -1):
        product, square = 0.0, 0.0
        for entry in range(indptr[rank], indptr[rank + 1]):
            product += weights[entry] * largest[places[entry]]
            square += weights[entry] * weights[entry]
            if min(product, np.sqrt(square)) >= low:
                split[rank] = entry
                break
        for entry in range(indptr[rank], indptr[rank + 1]):
            largest[places[entry]] = max(largest[places[entry]], weights[entry])
    return norms, remaining, split


@njit(cache=True, nogil=True)
def _fill_lists(indptr, places, weights, norms, split, n_places):  # type: ignore[no-untyped-def]
    lists = np.zeros(n_places + 1, np.int64)
    for rank in range(len(split)):
        for entry in range(split[rank], indptr[rank + 1]):
            lists[places[entry] + 1] += 1
    lists = np.cumsum(lists)
    cursor = lists[:-1].copy()
    postings = np.empty(lists[-1], np.int32)
    posting_weights, posting_norms = np.empty(lists[-1]), np.empty(lists[-1])
    for rank in range(len(split)):
        for entry in range(split[rank], indptr[rank + 1]):
            p = cursor[places[entry]]
            postings[p], posting_weights[p], posting_norms[p] = rank, weights[entry], norms[entry]
            cursor[places[entry]] += 1
    return lists, postings, posting_weights, posting_norms


@njit(cache=True, nogil=True)
def _probe_block(weighted, index, tau, start, stop):  # type: ignore[no-untyped-def]
    out_i, out_j, out_s = np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(1024)
    counts = np.zeros(len(COUNTERS), np.int64)
    sums = np.zeros(len(index.rows))
    met = np.empty(len(index.rows), np.int32)
    table = np.zeros(len(weighted.frequencies))
    similarity = np.empty(len(index.rows))
    size = 0
    for probe in range(start, stop):
        candidates = _meet(index, probe, sums, met, counts)
        if candidates:
            found = _decide(weighted, index, tau, probe, candidates, sums, met, table, similarity, counts)
            while size + found > len(out_i):
                out_i, out_j, out_s = grown(out_i), grown(out_j), grown(out_s)
            out_i[size : size + found] = index.rows[probe]
            out_j[size : size + found] = met[:found]
            out_s[size : size + found] = similarity[:found]
            size += found
    return out_i[:size], out_j[:size], out_s[:size], counts


@njit(cache=True, nogil=True)
def _meet(index, probe, out_sums, out_met, out_counts):  # type: ignore[no-untyped-def]
    """Add up products over the lists of one document, rarest signature first; return the number of candidates.

    Candidates are earlier ranks, of the probe's partition and the one before. The sum of one that can no longer be
    similar becomes negative.
    """
    candidates = 0
    for entry in range(index.indptr[probe + 1] - 1, index.indptr[probe] - 1, -1):
        if index.remaining[entry] < index.low:
            break  # whoever has not been met yet shares these and more frequent signatures at most
        out_counts[LISTS] += 1
        weight, norm = index.weights[entry], index.norms[entry]
        stop = index.lists[index.places[entry] + 1]
        low, high = index.lists[index.places[entry]], stop
        while low < high:  # the list's part within the two partitions
            middle = (low + high) // 2
            if index.postings[middle] < index.first[probe]:
                low = middle + 1
            else:
                high = middle
        for posting in range(low, stop):
            other = index.postings[posting]
            if other >= probe:
                break
            out_counts[POSTINGS] += 1
            total = out_sums[other]
            if total < 0.0:
                continue
            if total == 0.0:
                if index.reaches[other] < index.lengths[probe]:
                    continue
                out_met[candidates] = other
                candidates += 1
            total += weight * index.posting_weights[posting]
            if total + norm * index.posting_norms[posting] < index.low:
                total = -1.0
            out_sums[other] = total
    return candidates


@njit(cache=True, nogil=True)
def _decide(  # type: ignore[no-untyped-def]
    weighted, index, tau, probe, candidates, out_sums, out_met, out_table, out_similarity, out_counts
):
    """Compute the similarity of the candidates left; return how many reach tau, their rows first in ``out_met``."""
    row = index.rows[probe]
    first, stop = weighted.indptr[row], weighted.indptr[row + 1]
    for entry in range(first, stop):
        out_table[weighted.ids[entry]] = weighted.values[entry]
    out_counts[CANDIDATES] += candidates
    found = 0
    for candidate in range(candidates):
        rank = out_met[candidate]
        alive = out_sums[rank] >= 0.0
        out_sums[rank] = 0.0
        if not alive:
            continue
        out_counts[VERIFICATIONS] += 1
        other = index.rows[rank]
        # The zeros of signatures that only the other document has leave the sum over the shared ones as it is.
        product = 0.0
        for entry in range(weighted.indptr[other], weighted.indptr[other + 1]):
            product += out_table[weighted.ids[entry]] * weighted.values[entry]
        similarity = min(1.0, product / np.sqrt(weighted.squares[row] * weighted.squares[other]))
        if similarity >= tau:
            out_met[found] = other
            out_similarity[found] = similarity
            found += 1
    for entry in range(first, stop):
        out_table[weighted.ids[entry]] = 0.0
    return found
