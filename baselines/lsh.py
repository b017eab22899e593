"""LSH-S with datasketch: its MinHash and MinHashLSH, candidates verified exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from baselines.hashing import splitmix64
from baselines.verify import verified
from spotsigs.errors import require
from spotsigs.records import Corpus, Measure, Overlap, Pairs, ThreadedMatcher, ThresholdMatcher, Vectors


class Scheme(Enum):
    """How datasketch 2 permutes hash values; min-hashes of different schemes cannot be compared."""

    affine32 = "affine32"
    affine64 = "affine64"
    legacy = "legacy"


@dataclass(frozen=True, kw_only=True)
class Lsh(ThreadedMatcher, ThresholdMatcher):
    """Locality sensitive hashing of multisets through datasketch, with k and l given, candidates verified.

    A multiset becomes a set by numbering repeats: the z-th occurrence of a signature is an element of its own, so that
    the chance of two equal min-hashes is the multiset Jaccard. ``s_curve`` of `baselines.lsh_native`
    is the probability that a pair is found.

    Attributes
    ----------
    tau : float
        Similarity threshold in (0, 1].
    k : int
        Min-hashes a band.
    l : int
        Bands, each with a hash table; at least 2.
    seed : int
        Seed of datasketch's permutations, in [0, 2**32).
    scheme : Scheme
        datasketch's permutation scheme; ``legacy`` is the one before version 2.
    threads : int or None
        Threads of the verification; None takes all cores. datasketch itself runs in one.

    References
    ----------
    M. Theobald, J. Siddharth, A. Paepcke: SpotSigs. SIGIR 2008, section 5.2 (k = 6, l = 32). E. Zhu et al.: datasketch.

    Deviations
    ----------
    Min-hashes come from datasketch's permutations of 32- or 64-bit hashes, not from linear functions mod P over the
    collection's dimensions. ``params=(l, k)`` is given, so that datasketch's choice by threshold plays no part.
    """

    measure: ClassVar[str] = Measure.jaccard
    verified: ClassVar[bool] = True
    label: ClassVar[str] = "LSH-S (datasketch)"

    k: int = 6
    l: int = 32  # noqa: E741 - the paper's name
    seed: int = 2008
    scheme: Scheme = Scheme.affine32

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.k >= 1, f"k must be at least 1, got {self.k}")
        require(self.l >= 2, f"l must be at least 2 (datasketch takes no fewer bands), got {self.l}")
        require(0 <= self.seed < 2**32, f"seed must lie in [0, 2**32), got {self.seed}")

    def __call__(self, corpus: Corpus) -> Pairs:
        """Return the pairs that share a band and have multiset Jaccard of at least tau."""
        from datasketch import MinHashLSH

        began = perf_counter()
        vectors = corpus.vectors
        documents = np.flatnonzero(vectors.lengths)
        index = MinHashLSH(num_perm=self.k * self.l, params=(self.l, self.k))
        min_hashes = list(self.min_hashes(vectors, documents))
        for row, min_hash in zip(documents.tolist(), min_hashes, strict=True):
            index.insert(row, min_hash, check_duplication=False)
        hashed = perf_counter()
        met = [np.array(index.query(min_hash), dtype=np.int32) for min_hash in min_hashes]
        i = np.repeat(documents.astype(np.int32), [len(partners) for partners in met])
        j = np.concatenate([np.empty(0, np.int32), *met])
        left = verified(vectors, i[i < j], j[i < j], self.tau, self.threads)
        return Pairs.build(
            left.i,
            left.j,
            left.similarity,
            len(vectors),
            seconds={"sort_hash": hashed - began, "cluster": perf_counter() - hashed},
            counters={"candidates": left.candidates, "verifications": left.verifications},
            overlap=Overlap(vectors.lengths),
        )

    def memory_bytes(self, vectors: Vectors) -> int:
        """Return the paper's lower bound (section 5.4.1): id and frequency an entry, l min-hashes and an id a row."""
        return len(vectors.ids) * (4 + 2) + (self.l + 1) * len(vectors) * 4

    def min_hashes(self, vectors: Vectors, documents: NDArray[np.int64]) -> Iterator[Any]:
        """Yield the datasketch.MinHash of each of the given rows."""
        from datasketch import MinHash

        hashes = occurrence_hashes(vectors)
        if self.scheme is not Scheme.affine64:
            hashes >>= np.uint64(32)
        ends = np.cumsum(vectors.lengths)
        elements = (hashes[ends[row] - vectors.lengths[row] : ends[row]].tolist() for row in documents.tolist())
        # The elements are hash values already, so the hash function of an element is the identity.
        yield from MinHash.generator(
            elements, num_perm=self.k * self.l, seed=self.seed, scheme=self.scheme.value, hashfunc=int
        )


def occurrence_hashes(vectors: Vectors) -> NDArray[np.uint64]:
    """Hash every (signature, z-th occurrence).

    Parameters
    ----------
    vectors : Vectors
        One row per document.

    Returns
    -------
    ndarray of uint64, shape (n_occurrences,)
        Row by row, equal for the same occurrence number of the same signature id, and different otherwise: the
        function splitmix64 is a bijection on 64 bits.
    """
    counts = vectors.counts.astype(np.int64)
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return splitmix64(np.repeat(vectors.ids.astype(np.uint64), counts) << np.uint64(32) | number.astype(np.uint64))
