"""LSH-S as compiled kernels: min-hashes by random linear functions, tables of k-tuples, exact verification."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isqrt
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.parallel import concatenated, grown, over_blocks
from spotsigs.contracts import ThreadedMatcher, ThresholdMatcher
from spotsigs.errors import InputError, require
from spotsigs.matching.verify import compare
from spotsigs.records import Corpus, FloatArray, Measure, Overlap, Pairs, Vectors

MINIMA_BYTES = 2**28
"""Maximal bytes of min-hashes in memory: tables are built in groups, of which only the chains are kept."""

ROWS_A_PART = 1000
"""Average number of rows in a part of a hash table."""

COUNTERS = ("collisions", "candidates", "verifications")
COLLISIONS, CANDIDATES, VERIFICATIONS = range(len(COUNTERS))


@dataclass(frozen=True, kw_only=True)
class LshNative(ThreadedMatcher, ThresholdMatcher):
    """Locality-sensitive hashing of multisets: ``l`` tables with keys of ``k`` min-hashes; candidates are verified.

    Multisets become sets by numbering repeats: each (signature, z-th occurrence) is one dimension. The probability of
    two equal min-hashes is then the multiset Jaccard. A pair is found with probability
    ``1 - (1 - similarity**k)**l`` (see `s_curve`) and verified exactly.

    The cost is ``k * l`` multiplications in vector registers for each of the ``n * m`` occurrences, ``l`` insertions
    into a hash table for each document, and a traversal of the later documents in its ``l`` buckets, each of which is
    compared once. Memory is one next-document pointer for each document and table, plus the min-hashes of the tables
    that are being built.

    Attributes
    ----------
    tau : float
        Similarity threshold in (0, 1].
    k : int
        Min-hashes in the key of a bucket.
    l : int
        Number of tables.
    seed : int
        Seed of the functions, not negative.
    threads : int or None
        Threads over documents and tables; None uses all cores.

    References
    ----------
    M. Theobald, J. Siddharth, A. Paepcke: SpotSigs. SIGIR 2008, section 5.2: ``pi_i(x) = (alpha_i x + beta_i) mod P``,
    ``P`` the first prime larger than the dimensionality, k = 6, l = 32. P. Indyk, R. Motwani. STOC 1998.

    Deviations
    ----------
    ``alpha`` is drawn from [1, D - 1], not [0, D - 1]: with alpha = 0, all documents have the same min-hash. A bucket
    contains the documents with the same k-tuple, not with the same sum of min-hashes as in the authors' prototype. Each
    of the k * l functions is drawn independently, not from a pool of 1,024.
    """

    measure: ClassVar[str] = Measure.jaccard
    verified: ClassVar[bool] = True
    label: ClassVar[str] = "LSH-S (native)"

    k: int = 6
    l: int = 32  # noqa: E741 - the paper's name
    seed: int = 2008

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.k >= 1, f"k must be at least 1, got {self.k}")
        require(self.l >= 1, f"l must be at least 1, got {self.l}")
        require(self.seed >= 0, f"seed must not be negative, got {self.seed}")

    def __call__(self, corpus: Corpus) -> Pairs:
        """Return the pairs that share a bucket and have multiset Jaccard of at least tau."""
        began = perf_counter()
        vectors = corpus.vectors
        chains, buckets, hashing = self.tables(vectors)
        hashed = perf_counter()
        parts = over_blocks(lambda start, stop: self._block(vectors, chains, start, stop), len(vectors), self.threads)
        i, j, similarity = concatenated(parts, (np.int32, np.int32, np.float64))
        counts = np.sum([np.zeros(len(COUNTERS), np.int64), *(part[3] for part in parts)], axis=0)
        return Pairs.build(
            i,
            j,
            similarity,
            len(vectors),
            seconds={"min_hash": hashing, "sort_hash": hashed - began, "cluster": perf_counter() - hashed},
            counters={"buckets": buckets} | dict(zip(COUNTERS, counts.tolist(), strict=True)),
            overlap=Overlap(vectors.lengths),
        )

    def memory_bytes(self, vectors: Vectors) -> int:
        """Return the paper's lower bound (section 5.4.1): 4 + 2 bytes for each entry, 4 (l + 1) for each row."""
        return len(vectors.ids) * (4 + 2) + (self.l + 1) * len(vectors) * 4

    def tables(self, vectors: Vectors) -> tuple[NDArray[np.int32], int, float]:
        """Hash all documents into the l tables.

        Return the next larger row in the same bucket of each table, or -1, of shape (n, l); the number of non-empty
        buckets over all tables; and the wall seconds of min-hashing, without building the tables.
        """
        first_token = number_tokens(vectors)
        functions = linear_functions(self.k * self.l, int(first_token[-1]), self.seed)
        n, seconds, buckets = len(vectors), 0.0, 0
        chains = np.full((n, self.l), -1, np.int32)
        most = max(1, MINIMA_BYTES // (max(n, 1) * self.k * 4))
        group = ceil(self.l / ceil(self.l / most))
        minima = np.empty((group, n, self.k), np.uint32)
        for first in range(0, self.l, group):
            began = perf_counter()
            some = minima[: self.l - first]
            part = slice(first * self.k, (first + len(some)) * self.k)
            chosen = LinearFunctions(functions.alpha[part], functions.beta[part], functions.prime)
            min_hash(vectors, first_token, chosen, some, self.threads)
            seconds += perf_counter() - began
            out = chains[:, first:]
            buckets += sum(self._link_each(some, vectors.lengths, out))
        return chains, buckets, seconds

    def _link_each(self, minima: NDArray[np.uint32], lengths: NDArray[np.int64], out: NDArray[np.int32]) -> list[int]:
        """Chain the buckets of several tables, one table per thread at a time; return their numbers."""

        def table(t: int, _: int) -> int:
            return int(link_buckets(minima[t], lengths, out[:, t]))

        return over_blocks(table, len(minima), self.threads, blocks_a_thread=len(minima))

    def _block(self, vectors: Vectors, chains: NDArray[np.int32], start: int, stop: int) -> tuple[Any, ...]:
        i, j, counts = _candidates(chains, vectors.lengths, self.tau, start, stop)
        similarity = np.empty(len(i))
        compare(vectors.indptr, vectors.ids, vectors.counts, vectors.lengths, vectors.n_signatures, i, j, similarity)
        keep = similarity >= self.tau
        return i[keep], j[keep], similarity[keep], counts


class LinearFunctions(NamedTuple):
    """Functions ``pi(x) = (alpha x + beta) mod prime``, one-to-one below the prime (< 2**31.5) if alpha is not 0."""

    alpha: NDArray[np.uint64]
    beta: NDArray[np.uint64]
    prime: int


def linear_functions(n: int, dimensions: int, seed: int) -> LinearFunctions:
    """Draw n random linear functions for ``D < 2**31`` dimensions (section 5.2 of the paper).

    ``alpha`` is in [1, D - 1] (1 if D < 2), ``beta`` in [0, D - 1]; ``prime`` is the first prime larger than D.
    """
    if dimensions >= 2**31:
        raise InputError(f"{dimensions} distinct occurrences; linear functions need fewer than 2**31")
    random = np.random.default_rng(seed)
    alpha = random.integers(1, max(dimensions, 2), n, dtype=np.uint64)
    beta = random.integers(0, max(dimensions, 1), n, dtype=np.uint64)
    return LinearFunctions(alpha, beta, first_prime_above(dimensions))


def first_prime_above(n: int) -> int:
    """Return the smallest prime larger than n."""
    candidate = max(n + 1, 2)
    while any(candidate % divisor == 0 for divisor in range(2, isqrt(candidate) + 1)):
        candidate += 1
    return candidate


def number_tokens(vectors: Vectors) -> NDArray[np.int64]:
    """Number every (signature, z-th occurrence) of the collection, which turns multisets into sets.

    Entry ``s`` is the first number of signature ``s``, the last entry the number of dimensions.
    """
    return row_starts(_highest_counts(vectors.ids, vectors.counts, vectors.n_signatures))


@kernel
def _highest_counts(ids, counts, n_signatures):  # type: ignore[no-untyped-def]
    highest = np.zeros(n_signatures, np.int64)
    for entry in range(len(ids)):
        highest[ids[entry]] = max(highest[ids[entry]], counts[entry])
    return highest


def min_hash(
    vectors: Vectors,
    first_token: NDArray[np.int64],
    functions: LinearFunctions,
    out_minima: NDArray[np.uint32],
    threads: int | None = None,
) -> None:
    """Write the least value of function ``t * k + c`` over row ``r`` to ``out_minima[t, r, c]``; skip empty rows.

    ``alpha x + beta mod P`` is computed without division, as the fractional part of ``(alpha x + beta + 1/2) / P`` in
    units of 2**-64: ``A x + B`` in wrapping 64-bit arithmetic, with ``A = floor(alpha 2**64 / P)`` and
    ``B = floor((beta + 1/2) 2**64 / P)``. The two roundings subtract less than ``x + 1 <= P + 1`` units. Half a residue
    is ``2**63 / P`` units, which is more if ``P < 2**31.5``. So the value is between the values of residues ``r`` and
    ``r + 1``, residues keep their order, and ``floor(value P / 2**64)`` is ``r``.
    """
    alpha, beta = functions.alpha.tolist(), functions.beta.tolist()
    slopes = np.array([(a << 64) // functions.prime for a in alpha], np.uint64)
    shifts = np.array([((2 * b + 1) << 63) // functions.prime for b in beta], np.uint64)
    scaled = ScaledFunctions(slopes, shifts, np.uint64(functions.prime))

    def block(start: int, stop: int) -> None:
        _min_hash_block(vectors.indptr, vectors.ids, vectors.counts, first_token, scaled, start, stop, out_minima)

    over_blocks(block, len(vectors), threads)


class ScaledFunctions(NamedTuple):
    """Linear functions of `min_hash`, in units of 2**-64."""

    slopes: NDArray[np.uint64]
    shifts: NDArray[np.uint64]
    prime: np.uint64


@kernel
def _min_hash_block(indptr, ids, counts, first_token, functions, start, stop, out_minima):  # type: ignore[no-untyped-def]
    slopes, shifts, prime = functions
    best = np.empty(len(slopes), np.uint64)
    k = out_minima.shape[2]
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    for row in range(start, stop):
        if indptr[row] == indptr[row + 1]:
            continue
        best[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
        for entry in range(indptr[row], indptr[row + 1]):
            first = first_token[ids[entry]]
            for number in range(first, first + counts[entry]):
                x = np.uint64(number)
                for f in range(len(slopes)):
                    best[f] = min(best[f], slopes[f] * x + shifts[f])
        for table in range(len(out_minima)):
            for c in range(k):
                value = best[table * k + c]
                out_minima[table, row, c] = ((value >> half) * prime + (((value & low) * prime) >> half)) >> half


@kernel
def link_buckets(minima, lengths, out_next):  # type: ignore[no-untyped-def]
    """Chain the rows of each bucket of one table, ascending; return the number of buckets.

    Rows are partitioned by the hash of their k-tuple, so that the open-addressing table of a part fits into the
    first-level cache. A slot stores the last position of its bucket so far. Tuples are compared in full.
    """
    rows, keys, starts = _partition(minima, lengths)
    size = 4
    while size < 2 * np.max(np.diff(starts)):
        size *= 2
    slots = np.empty(size, np.int32)
    buckets = 0
    for part in range(len(starts) - 1):
        slots[:] = -1
        for p in range(starts[part], starts[part + 1]):
            slot = np.int64(keys[p] & np.uint64(size - 1))
            while slots[slot] >= 0:
                last = slots[slot]
                if keys[last] == keys[p] and _equal_rows(minima, rows[last], rows[p]):
                    break
                slot = (slot + 1) & (size - 1)
            if slots[slot] >= 0:
                out_next[rows[slots[slot]]] = rows[p]
            else:
                buckets += 1
            slots[slot] = p
    return buckets


@kernel
def _equal_rows(values, a, b):  # type: ignore[no-untyped-def]
    same = True
    for column in range(values.shape[1]):
        same &= values[a, column] == values[b, column]
    return same


@kernel
def _partition(minima, lengths):  # type: ignore[no-untyped-def]
    """Hash the k-tuple of each non-empty row; return rows and hashes by part, rows ascending, and part starts."""
    n, k = minima.shape
    parts = n // ROWS_A_PART + 1
    hashes, part_of = np.empty(n, np.uint64), np.empty(n, np.int32)
    starts = np.zeros(parts + 1, np.int64)
    for row in range(n):
        key = np.uint64(0x9E3779B97F4A7C15)
        for c in range(k):
            key = (key ^ np.uint64(minima[row, c])) * np.uint64(0xBF58476D1CE4E5B9)
            key ^= key >> np.uint64(29)
        hashes[row] = key
        part_of[row] = ((key >> np.uint64(32)) * np.uint64(parts)) >> np.uint64(32)
        starts[part_of[row] + 1] += lengths[row] > 0
    starts = np.cumsum(starts)
    cursor = starts[:-1].copy()
    rows, keys = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.uint64)
    for row in range(n):
        if lengths[row] > 0:
            position = cursor[part_of[row]]
            rows[position], keys[position] = row, hashes[row]
            cursor[part_of[row]] += 1
    return rows, keys, starts


@kernel
def _candidates(chains, lengths, tau, start, stop):  # type: ignore[no-untyped-def]
    """Return the distinct pairs of similar length that share a bucket, sorted, whose first rows are in a block."""
    out_i, out_j = np.empty(1024, np.int32), np.empty(1024, np.int32)
    counts = np.zeros(len(COUNTERS), np.int64)
    seen_by = np.full(len(lengths), -1, np.int32)
    partners = np.empty(len(lengths), np.int32)
    size = 0
    for row in range(start, stop):
        n_pairs = 0
        for table in range(chains.shape[1]):
            other = chains[row, table]
            while other >= 0:
                counts[COLLISIONS] += 1
                if seen_by[other] != row:
                    seen_by[other] = row
                    counts[CANDIDATES] += 1
                    if min(lengths[row], lengths[other]) / max(lengths[row], lengths[other]) >= tau:
                        partners[n_pairs] = other
                        n_pairs += 1
                other = chains[other, table]
        if n_pairs:
            while size + n_pairs > len(out_i):
                out_i, out_j = grown(out_i), grown(out_j)
            out_i[size : size + n_pairs] = row
            out_j[size : size + n_pairs] = np.sort(partners[:n_pairs])
            size += n_pairs
    counts[VERIFICATIONS] = size
    return out_i[:size], out_j[:size], counts


def s_curve(k: int, l: int, similarity: ArrayLike) -> FloatArray:  # noqa: E741 - the paper's name
    """Return the probability ``1 - (1 - similarity**k)**l`` that a pair shares a bucket of k min-hashes.

    Raises
    ------
    InputError
        If k or l is less than 1, or a similarity outside [0, 1].
    """
    similarity = np.asarray(similarity, dtype=np.float64)
    require(k >= 1 and l >= 1, f"k and l must be at least 1, got k={k}, l={l}")
    require(bool(np.all((similarity >= 0) & (similarity <= 1))), "similarities must be in [0, 1]")
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(l * np.log1p(-(similarity**k))), dtype=np.float64)
