"""SimHash: documents whose 64-bit fingerprints differ in few bits are near-duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import combinations, pairwise
from math import comb
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from baselines.hashing import group_rows, pairs_across, pairs_within, splitmix64, term_hashes
from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.parallel import all_cores, bit_count, concatenated, grown, over_blocks
from spotsigs.contracts import ThreadedMatcher
from spotsigs.errors import require
from spotsigs.records import Corpus, Measure, Pairs, Vectors


class Weights(Enum):
    """Weight of a signature in the fingerprint's sums: its count, or count times IDF."""

    tf = "tf"
    tfidf = "tfidf"


@dataclass(frozen=True, kw_only=True)
class SimHash(ThreadedMatcher):
    """Pairs of documents whose Charikar fingerprints differ in at most ``radius`` bits.

    Bit ``b`` of a document's fingerprint is 1 iff the signed sum of its signatures' weights is positive; the sign of a
    weight is given by bit ``b`` of the signature's hash (1: positive, 0: negative). Documents without signatures are in
    no pair. All pairs within the radius are found. The similarity is the fraction of equal bits. There is no tau.

    Parameters
    ----------
    radius : int
        Largest Hamming distance of a pair, in bits, below ``bits``.
    weights : Weights
        ``tf`` or ``tfidf``.
    bits : int
        Width of a fingerprint, in [8, 64].
    blocks : int, optional
        Number of blocks of a fingerprint for the permuted tables, more than ``radius``; 0 compares all pairs. By
        default, `choose_blocks` minimizes the expected cost. The pairs do not depend on it.
    threads : int or None
        Number of threads; None uses all cores.

    References
    ----------
    M. S. Charikar. Similarity estimation techniques from rounding algorithms. STOC 2002, section 3.
    G. S. Manku, A. Jain and A. Das Sarma. Detecting near-duplicates for web crawling. WWW 2007, sections 2 and 3.
    L. Huang, L. Wang and X. Li. Achieving both high precision and high recall in near-duplicate detection. CIKM 2008
    (SimHash as a baseline).

    Deviations
    ----------
    - Features are the collection's signatures of any scheme. IDF is ``log(N / df) / log(N)``, rounded to multiples of
      2**-20, so that sums are exact integers and bits do not depend on the order of addition.
    - Equal fingerprints are merged before the search and expanded after it.
    - A table stores the fingerprints sorted by the bits of some blocks, which are masked instead of moved to the front
      as in Manku et al., and is searched for all pairs at once. The first table that must contain a pair reports it.
    """

    label: ClassVar[str] = "SimHash (unverified)"
    measure: ClassVar[str] = Measure.hamming

    radius: int = 3
    weights: Weights = Weights.tf
    bits: int = 64
    blocks: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(8 <= self.bits <= 64, f"bits must be in [8, 64], got {self.bits}")
        require(0 <= self.radius < self.bits, f"radius must be in [0, {self.bits - 1}], got {self.radius}")
        require(
            self.blocks is None or self.blocks == 0 or self.radius < self.blocks <= self.bits,
            f"blocks must be 0 or be in [{self.radius + 1}, {self.bits}], got {self.blocks}",
        )

    def __call__(self, corpus: Corpus) -> Pairs:
        """Return all pairs of non-empty documents within the radius.

        Raises
        ------
        InputError
            If there are more than 2**31 such pairs.
        """
        start = perf_counter()
        vectors = corpus.vectors
        documents = np.flatnonzero(vectors.lengths)
        distinct, copies = np.unique(self.fingerprints(vectors)[documents], return_inverse=True)
        rows, indptr = group_rows(copies)
        hashed = perf_counter()
        blocks = choose_blocks(len(distinct), self.radius, self.bits) if self.blocks is None else self.blocks
        g, h, distance = near_fingerprints(distinct, self.radius, self.bits, blocks, self.threads)
        same_i, same_j = pairs_within(rows, indptr)
        near_i, near_j, source = pairs_across(rows, indptr, g, h)
        distances = np.concatenate([np.zeros(len(same_i), np.int64), distance[source]])
        return Pairs.build(
            documents[np.concatenate([same_i, near_i])],
            documents[np.concatenate([same_j, near_j])],
            1.0 - distances / self.bits,
            len(vectors),
            seconds={"sort_hash": hashed - start, "cluster": perf_counter() - hashed},
            counters={"fingerprints": len(distinct), "tables": comb(blocks, self.radius) if blocks else 0},
        )

    def fingerprints(self, vectors: Vectors) -> NDArray[np.uint64]:
        """Return the fingerprint of each row; 0 for an empty row.

        Returns
        -------
        ndarray of uint64, shape (n,)
            Bits ``bits`` to 63 are 0.
        """
        n = len(vectors)
        hashes = splitmix64(term_hashes(vectors))
        weights = np.ones(len(hashes), dtype=np.int64)
        if self.weights is Weights.tfidf and n > 1:
            df = np.maximum(vectors.document_frequencies, 1)
            weights = np.rint(np.log(n / df) / np.log(n) * 2.0**20).astype(np.int64)
        out = np.zeros(n, dtype=np.uint64)

        def block(start: int, stop: int) -> None:
            _fingerprint(vectors.indptr, vectors.ids, vectors.counts, hashes, weights, start, stop, out)

        over_blocks(block, n, self.threads)
        return out & np.uint64(2**self.bits - 1)


def near_fingerprints(
    fingerprints: NDArray[np.uint64], radius: int, bits: int = 64, blocks: int = 0, threads: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return all pairs ``i != j`` of fingerprints within ``radius`` bits, each once, and their distances, all int64.

    If two fingerprints differ in at most ``radius`` bits, at least ``blocks - radius`` of their ``blocks`` blocks are
    equal. There is one table for each choice of that many blocks, sorted by them; it contains each such pair in a run
    of equal keys (Manku et al. 2007, section 3). A pair is reported by the table of its first equal blocks only.
    ``blocks=0`` compares all pairs; else ``radius < blocks <= bits``. Fingerprints may repeat.
    """
    n = len(fingerprints)
    if blocks:
        edges = [b * bits // blocks for b in range(blocks + 1)]
        masks = np.array([(1 << high) - (1 << low) for low, high in pairwise(edges)], dtype=np.uint64)
        choices = [np.array(choice) for choice in combinations(range(blocks), blocks - radius)]

        def table(k: int, _: int) -> list[NDArray[np.int64]]:
            return _search_table(fingerprints, masks, choices[k], radius)

        parts = over_blocks(table, len(choices), threads, blocks_a_thread=len(choices))
    else:
        # Row i has n - 1 - i partners; these rows divide the triangle into equal parts.
        tasks = 8 * (threads or all_cores())
        rows = (n - n * np.sqrt(1 - np.arange(tasks + 1) / tasks)).astype(np.int64)
        parts = over_blocks(lambda k, _: _scan(fingerprints, rows[k], rows[k + 1], radius), tasks, threads, tasks)
    i, j = concatenated(parts, (np.int64, np.int64))
    return i, j, np.bitwise_count(fingerprints[i] ^ fingerprints[j]).astype(np.int64)


def choose_blocks(n: int, radius: int, bits: int = 64) -> int:
    """Return the number of blocks with the least expected cost, or 0 if comparing all pairs is cheaper.

    With ``B`` blocks there are ``C(B, radius)`` tables, whose keys have about ``p = bits * (B - radius) / B`` bits:
    each needs a sort of ``n`` keys and about ``n**2 / 2**(p + 1)`` comparisons if fingerprints are uniform. More blocks
    mean longer keys and more tables. The unit of cost is one comparison of the full scan, which reads adjacent memory;
    a comparison in a table costs about two units, and sorting and reading one key about 120.
    """
    best, blocks = n * n / 2, 0
    for b in range(radius + 1, bits + 1):
        tables = comb(b, radius)
        if tables * n * 120 > best:
            break  # the number of tables increases with b
        cost = tables * (n * 120 + 2 * n * n / 2.0 ** (bits * (b - radius) // b + 1))
        if cost < best:
            best, blocks = cost, b
    return blocks


def _search_table(
    fingerprints: NDArray[np.uint64], masks: NDArray[np.uint64], chosen: NDArray[np.int64], radius: int
) -> list[NDArray[np.int64]]:
    """Return the pairs that agree on the chosen blocks and on no other block before the last of them."""
    keys = fingerprints & np.bitwise_or.reduce(masks[chosen])
    order = np.argsort(keys)
    others = np.setdiff1d(np.arange(chosen[-1]), chosen)
    return [order[rows] for rows in _table_pairs(fingerprints[order], keys[order], masks[others], radius)]


@kernel
def _fingerprint(indptr, ids, counts, hashes, weights, first, last, out):  # type: ignore[no-untyped-def]
    sums = np.empty(64, np.int64)
    for r in range(first, last):
        sums[:] = 0
        for p in range(indptr[r], indptr[r + 1]):
            h = hashes[ids[p]]
            w = weights[ids[p]] * counts[p]
            for b in range(64):
                sums[b] += w * (np.int64((h >> np.uint64(b)) & np.uint64(1)) * 2 - 1)
        bits = np.uint64(0)
        for b in range(64):
            if sums[b] > 0:
                bits |= np.uint64(1) << np.uint64(b)
        out[r] = bits


@kernel
def _scan(fingerprints, first, last, radius):  # type: ignore[no-untyped-def]
    """Return the pairs within the radius whose smaller position is in ``[first, last)``."""
    out_i, out_j = np.empty(256, np.int64), np.empty(256, np.int64)
    size = 0
    for i in range(first, last):
        if _any_near(fingerprints, i, len(fingerprints), radius):
            for j in range(i + 1, len(fingerprints)):
                if bit_count(fingerprints[i] ^ fingerprints[j]) <= radius:
                    if size == len(out_i):
                        out_i, out_j = grown(out_i), grown(out_j)
                    out_i[size], out_j[size] = i, j
                    size += 1
    return out_i[:size], out_j[:size]


@kernel
def _table_pairs(fingerprints, keys, others, radius):  # type: ignore[no-untyped-def]
    """Return the pairs within the radius that have equal keys and differ in each of the blocks ``others``."""
    out_i, out_j = np.empty(256, np.int64), np.empty(256, np.int64)
    size = 0
    end = 0
    for i in range(len(keys)):
        while end < len(keys) and (end <= i or keys[end] == keys[i]):
            end += 1
        if _any_near(fingerprints, i, end, radius):
            for j in range(i + 1, end):
                x = fingerprints[i] ^ fingerprints[j]
                if bit_count(x) <= radius and _all_differ(x, others):
                    if size == len(out_i):
                        out_i, out_j = grown(out_i), grown(out_j)
                    out_i[size], out_j[size] = i, j
                    size += 1
    return out_i[:size], out_j[:size]


@kernel
def _any_near(fingerprints, i, end, radius):  # type: ignore[no-untyped-def]
    """Return whether a fingerprint in ``(i, end)`` is within the radius of ``i``; branch-free, to vectorize."""
    near = 0
    for other in fingerprints[i + 1 : end]:
        if bit_count(fingerprints[i] ^ other) <= radius:
            near += 1
    return near > 0


@kernel
def _all_differ(x, masks):  # type: ignore[no-untyped-def]
    """Return whether ``x`` has a bit in each mask."""
    differing = 0
    for mask in masks:
        if x & mask:
            differing += 1
    return differing == len(masks)
