"""Sketches of documents, and the pairs whose sketches are similar, after lecture slides on duplicate detection.

The slides map sketches to (shingle, document) pairs, shuffle these by shingle, write a triplet (smaller document,
larger document, 1) for every two documents of a shingle, and add the triplets up. Here, an inverted index counts the
same for one document after the other, so that no triplets are stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from time import perf_counter
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from baselines.hashing import term_hashes
from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.parallel import concatenated, grown, over_blocks
from spotsigs.contracts import ThreadedMatcher, ThresholdMatcher
from spotsigs.errors import InputError, require
from spotsigs.records import Corpus, FloatArray, IntArray, Measure, Pairs, Vectors


class Kind(Enum):
    """Values of a sketch: numbers of a document's shingles under random permutations of the 64-bit values.

    ``smallest``: the m smallest numbers, ``F_m``. ``modulo``: the numbers divisible by n, ``V_n``. ``permutations``:
    the shingle with the smallest number under each of P independent permutations.
    """

    smallest = "smallest"
    modulo = "modulo"
    permutations = "permutations"


class Sketches(NamedTuple):
    """One set of values for each document, in CSR form; a document without shingles has an empty row.

    Values are uint64, ascending within a row. Two documents share a value iff they share the shingle, the position and
    its shingle, or the super shingle that it represents.
    """

    indptr: NDArray[np.int64]
    values: NDArray[np.uint64]


class ValueIndex(NamedTuple):
    """Inverted index of sketch values: postings list ``g`` is ``documents[starts[g]:starts[g + 1]]``, ascending.

    ``lists`` has the number of the list of each value of the sketches.
    """

    lists: NDArray[np.int64]
    starts: NDArray[np.int64]
    documents: NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class Sketch(ThreadedMatcher, ThresholdMatcher):
    """Pairs whose resemblance, estimated from sketches, reaches tau.

    The resemblance of two documents is the Jaccard of their sets of signatures; how often one occurs plays no part.
    Pairs are not verified: the similarity reported is the estimate.

    Attributes
    ----------
    tau : float
        Threshold on the estimate in (0, 1]: the share t of equal positions, which the slides put at 0.8.
    kind : Kind
        ``smallest``, ``modulo`` or ``permutations``.
    size : int
        Numbers kept (``smallest``), or permutations; the slides take about 200.
    modulus : int
        The n of ``modulo``: one shingle in n is kept.
    super_shingles : int
        0, or the number of groups, a divisor of ``size``, into which the positions of ``permutations`` are cut. Each
        group is hashed to one super shingle, and only documents with ``common_super_shingles`` in common are paired
        (DSC-SS); their estimate, from the whole sketches, must still reach tau.
    common_super_shingles : int
        Super shingles that a pair must share.
    seed : int
        Seed of the permutations; not negative.
    threads : int or None
        Threads over blocks of documents; None uses all cores.

    References
    ----------
    K. Radinsky, after C. Manning and P. Raghavan: Duplicate detection (lecture slides). A. Z. Broder, S. C. Glassman,
    M. S. Manasse, G. Zweig: Syntactic clustering of the Web. WWW 1997 (DSC, DSC-SS). A. Z. Broder: Identifying and
    filtering near-duplicate documents. CPM 2000 (super shingles of min-hashes: 6 groups of 14, two in common).

    Deviations
    ----------
    The random permutations are keyed bijections of 64-bit values, not drawn from all permutations. Documents are joined
    at an estimate of tau or more, where step 6 says "exceeds": 80 % of 200 positions is a pair, as on the slide before.
    A pair without a common value has no estimate (both sketches may be empty) and is not reported.
    """

    measure: ClassVar[str] = Measure.resemblance
    label: ClassVar[str] = "Sketch (unverified)"

    tau: float = 0.8
    kind: Kind = Kind.permutations
    size: int = 200
    modulus: int = 25
    super_shingles: int = 0
    common_super_shingles: int = 2
    seed: int = 2008

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.size >= 1, f"size must be at least 1, got {self.size}")
        require(self.modulus >= 1, f"modulus must be at least 1, got {self.modulus}")
        require(self.super_shingles >= 0, f"super_shingles must not be negative, got {self.super_shingles}")
        if self.super_shingles:
            require(
                self.kind is Kind.permutations,
                f"super_shingles need kind=permutations, whose positions correspond; got kind={self.kind.value}",
            )
            require(
                self.size % self.super_shingles == 0,
                f"super_shingles={self.super_shingles} must divide size={self.size}",
            )
            require(
                1 <= self.common_super_shingles <= self.super_shingles,
                f"common_super_shingles must be in [1, {self.super_shingles}], got {self.common_super_shingles}",
            )
        require(self.seed >= 0, f"seed must not be negative, got {self.seed}")

    def __call__(self, corpus: Corpus) -> Pairs:
        """Return the pairs that share a sketch value and have an estimated resemblance of at least tau.

        Raises
        ------
        InputError
            If a shingle is shared by more than 2**16 documents.
        """
        began = perf_counter()
        sketches = self.sketches(corpus.vectors)
        keys = super_shingles(sketches, self.super_shingles) if self.super_shingles else sketches
        sketched = perf_counter()
        index, counters = self.inverted(keys)

        def block(start: int, stop: int) -> tuple[IntArray, IntArray, FloatArray, int]:
            i, j, common = _count_common(keys.indptr, *index, start, stop)
            return *self._enough(sketches, i, j, common), len(i)

        parts = over_blocks(block, len(corpus.vectors), self.threads, blocks_a_thread=32)
        i, j, estimate = concatenated(parts, (np.int32, np.int32, np.float64))
        return Pairs.build(
            i,
            j,
            estimate,
            len(corpus.vectors),
            seconds={"sort_hash": sketched - began, "cluster": perf_counter() - sketched},
            counters=counters | {"candidates": sum(part[3] for part in parts)},
        )

    def inverted(self, keys: Sketches) -> tuple[ValueIndex, dict[str, int]]:
        """Build the inverted index; also return counts of its lists."""
        order = np.argsort(keys.values, kind="stable")
        values = keys.values[order]
        starts = np.concatenate([np.flatnonzero(np.diff(values, prepend=~values[:1])), [len(values)]])
        sizes = np.diff(starts)
        pairs = sizes * (sizes - 1) // 2
        if pairs.max(initial=0) > 2**31:
            raise InputError(
                f"a shingle is shared by {sizes.max():,} documents, and pairing them is too much: "
                "give an idf_min that drops such signatures"
            )
        lists = np.empty(len(values), np.int64)
        lists[order] = np.repeat(np.arange(len(sizes)), sizes)
        rows = np.repeat(np.arange(len(keys.indptr) - 1, dtype=np.int32), np.diff(keys.indptr))
        return ValueIndex(lists, starts, rows[order]), {
            "values": len(values),
            "shared_shingles": int(np.count_nonzero(sizes > 1)),
            "triplets": int(pairs.sum()),
        }

    def _enough(
        self, sketches: Sketches, i: IntArray, j: IntArray, common: IntArray
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the candidates whose estimate reaches tau, and the estimates.

        `common` counts the keys of each pair: values of the sketches, or super shingles.
        """
        if self.super_shingles:
            enough = common >= self.common_super_shingles
            i, j = i[enough], j[enough]
            common = common_values(sketches, i, j)
        # No estimate exceeds the fraction of common values, so most pairs need no estimate.
        hopeful = common / self._compared(sketches, i, j, common) >= self.tau
        i, j, common = i[hopeful], j[hopeful], common[hopeful]
        estimate = self.estimates(sketches, i, j, common)
        keep = estimate >= self.tau
        return i[keep], j[keep], estimate[keep]

    def memory_bytes(self, vectors: Vectors) -> int:
        """Return the expected bytes of the sketches and a document number each: no vectors are needed any more."""
        filled = int(np.count_nonzero(vectors.lengths))
        values = len(vectors.ids) // self.modulus if self.kind is Kind.modulo else filled * self.size
        return values * (8 + 4)

    def sketches(self, vectors: Vectors) -> Sketches:
        """Return the sketch of each document (step 1).

        Counts play no part. A shingle is its hash, or its id if the vectors have no vocabulary.
        """
        shingles = term_hashes(vectors)
        random = np.random.default_rng(self.seed)
        if self.kind is Kind.permutations:
            keys = random.integers(0, 2**64, self.size, dtype=np.uint64)
            return _positions(vectors, shingles, keys, self.threads)
        key = random.integers(0, 2**64, 1, dtype=np.uint64)
        numbers = mixed(shingles ^ key[0])
        indptr, values = vectors.indptr, numbers[vectors.ids]
        if self.kind is Kind.modulo:
            indptr, values = _filtered(indptr, values, values % np.uint64(self.modulus) == 0)
        _sort_rows(indptr, values)
        if self.kind is Kind.smallest:
            place = np.arange(len(values)) - np.repeat(indptr[:-1], np.diff(indptr))
            indptr, values = _filtered(indptr, values, place < self.size)
        return Sketches(indptr, values)

    def estimates(self, sketches: Sketches, i: IntArray, j: IntArray, common: IntArray) -> FloatArray:
        """Return the slides' unbiased estimates of resemblance, NaN if both sketches are empty.

        ``smallest``: ``|min_m(F(a) u F(b)) n F(a) n F(b)| / |min_m(F(a) u F(b))|``; ``modulo``:
        ``|V(a) n V(b)| / |V(a) u V(b)|``; ``permutations``: the fraction of equal positions. `common` has the number
        of common values of each pair.
        """
        compared = self._compared(sketches, i, j, common)
        if self.kind is Kind.smallest:
            common = common_values(sketches, i, j, self.size)
        with np.errstate(invalid="ignore"):
            return np.asarray(common / compared, dtype=np.float64)

    def _compared(self, sketches: Sketches, i: IntArray, j: IntArray, common: IntArray) -> IntArray:
        """Return how many values the estimator of each pair compares; 0 if both sketches are empty."""
        sizes = np.diff(sketches.indptr)
        union = sizes[i] + sizes[j] - common
        return union if self.kind is Kind.modulo else np.minimum(union, self.size)


def super_shingles(sketches: Sketches, groups: int) -> Sketches:
    """Hash groups of positions of min-hash sketches: a sketch of the sketch (DSC-SS).

    ``groups`` divides the size of all non-empty rows. Values contain their positions, so groups of different positions
    do not collide.
    """
    filled = np.flatnonzero(np.diff(sketches.indptr))
    parts = sketches.values.reshape(len(filled) * groups, -1) if len(filled) else sketches.values.reshape(0, 1)
    hashes = np.zeros(len(parts), np.uint64)
    for column in parts.T:
        hashes = mixed(hashes * np.uint64(0x9E3779B97F4A7C15) + column)
    return Sketches(
        row_starts(np.diff(sketches.indptr) > 0) * groups, np.sort(hashes.reshape(-1, groups), axis=1).ravel()
    )


def common_values(sketches: Sketches, i: IntArray, j: IntArray, among: int | None = None) -> NDArray[np.int64]:
    """Return how many values pairs of sketches share, optionally among that number of smallest values of the union."""
    common = np.empty(len(i), np.int64)
    _common_values(sketches.indptr, sketches.values, i, j, len(sketches.values) if among is None else among, common)
    return common


def _positions(
    vectors: Vectors, shingles: NDArray[np.uint64], keys: NDArray[np.uint64], threads: int | None
) -> Sketches:
    """Return, for each document and permutation, position and id of the shingle with the smallest number."""
    filled = np.diff(vectors.indptr) > 0
    indptr = row_starts(filled) * len(keys)
    values = np.empty((int(filled.sum()), len(keys)), np.uint64)

    def block(start: int, stop: int) -> None:
        out = values[indptr[start] // len(keys) :]
        _smallest_ids(vectors.indptr, vectors.ids, shingles, keys, start, stop, out)

    over_blocks(block, len(vectors), threads)
    values += np.arange(len(keys), dtype=np.uint64) * np.uint64(max(vectors.n_signatures, 1))
    return Sketches(indptr, values.ravel())


def _filtered(
    indptr: NDArray[np.int64], values: NDArray[np.uint64], keep: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    return row_starts(keep)[indptr], values[keep]


def mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the finaliser of MurmurHash3 of each value: a bijection on 64 bits."""
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> np.uint64(33))


@kernel
def _smallest_ids(indptr, ids, shingles, keys, start, stop, out_ids):  # type: ignore[no-untyped-def]
    """Write the id with the smallest number under each key, row by row of the documents that have any."""
    best, best_id = np.empty(len(keys), np.uint64), np.empty(len(keys), np.uint64)
    filled = 0
    for row in range(start, stop):
        if indptr[row] == indptr[row + 1]:
            continue
        best[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
        best_id[:] = np.uint64(ids[indptr[row]])
        for entry in range(indptr[row], indptr[row + 1]):
            shingle, number_of = shingles[ids[entry]], np.uint64(ids[entry])
            for f in range(len(keys)):  # `mixed`, without a branch, so that it runs in vector registers
                x = shingle ^ keys[f]
                x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
                x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
                x = x ^ (x >> np.uint64(33))
                smaller = x < best[f]
                best[f] = x if smaller else best[f]
                best_id[f] = number_of if smaller else best_id[f]
        out_ids[filled] = best_id
        filled += 1


@kernel
def _sort_rows(indptr, out_values):  # type: ignore[no-untyped-def]
    for row in range(len(indptr) - 1):
        if indptr[row + 1] - indptr[row] > 1:
            out_values[indptr[row] : indptr[row + 1]].sort()


@kernel
def _count_common(indptr, lists, starts, documents, start, stop):  # type: ignore[no-untyped-def]
    """Return the pairs of the rows ``start:stop`` with later rows, and how many postings lists each pair shares."""
    out_i, out_j, out_common = np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(1024, np.int32)
    common, touched = np.zeros(len(indptr) - 1, np.int32), np.empty(len(indptr) - 1, np.int32)
    size = 0
    for row in range(start, stop):
        n = 0
        for entry in range(indptr[row], indptr[row + 1]):
            number = lists[entry]
            posting = starts[number + 1] - 1
            while documents[posting] > row:  # the list contains the row itself
                other = documents[posting]
                if common[other] == 0:
                    touched[n] = other
                    n += 1
                common[other] += 1
                posting -= 1
        while size + n > len(out_i):
            out_i, out_j, out_common = grown(out_i), grown(out_j), grown(out_common)
        for other in touched[:n]:
            out_i[size], out_j[size], out_common[size] = row, other, common[other]
            common[other] = 0
            size += 1
    return out_i[:size], out_j[:size], out_common[:size]


@kernel
def _common_values(indptr, values, i, j, limit, out_common):  # type: ignore[no-untyped-def]
    for pair in range(len(i)):
        a, a_stop = indptr[i[pair]], indptr[i[pair] + 1]
        b, b_stop = indptr[j[pair]], indptr[j[pair] + 1]
        seen, common = 0, 0
        while a < a_stop and b < b_stop and seen < limit:
            equal = values[a] == values[b]
            forward = values[a] <= values[b]
            common += equal
            a += forward
            b += equal or not forward
            seen += 1
        out_common[pair] = common
