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
from spotsigs.contracts import ThreadedMatcher, ThresholdMatcher
from spotsigs.errors import require
from spotsigs.matching.verify import verified
from spotsigs.records import Corpus, Measure, Overlap, Pairs, Vectors


class Scheme(Enum):
    """Permutation scheme of datasketch 2; min-hashes of different schemes are not comparable."""

    affine32 = "affine32"
    affine64 = "affine64"
    legacy = "legacy"


@dataclass(frozen=True, kw_only=True)
class Lsh(ThreadedMatcher, ThresholdMatcher):
    """Locality-sensitive hashing of multisets with datasketch for given k and l; candidates are verified.

    Multisets become sets by numbering repeats: each (signature, z-th occurrence) is an element. The probability of two
    equal min-hashes is then the multiset Jaccard. The probability of finding a pair is `baselines.lsh_native.s_curve`.

    Attributes
    ----------
    tau : float
        Similarity threshold in (0, 1].
    k : int
        Min-hashes in a band.
    l : int
        Number of bands, each with a hash table; at least 2.
    seed : int
        Seed of datasketch's permutations, in [0, 2**32).
    scheme : Scheme
        datasketch's permutation scheme; ``legacy`` is that before version 2.
    threads : int or None
        Threads of the verification; None uses all cores. datasketch itself uses one thread.

    References
    ----------
    M. Theobald, J. Siddharth, A. Paepcke: SpotSigs. SIGIR 2008, section 5.2 (k = 6, l = 32). E. Zhu et al.: datasketch.

    Deviations
    ----------
    Min-hashes are datasketch's permutations of 32- or 64-bit hashes, not linear functions mod P over the collection's
    dimensions. ``params=(l, k)`` is set explicitly, instead of datasketch's choice by threshold.
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
        require(0 <= self.seed < 2**32, f"seed must be in [0, 2**32), got {self.seed}")

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
        colliding = [np.array(index.query(min_hash), dtype=np.int32) for min_hash in min_hashes]
        i = np.repeat(documents.astype(np.int32), [len(partners) for partners in colliding])
        j = np.concatenate([np.empty(0, np.int32), *colliding])
        pairs = verified(vectors, i[i < j], j[i < j], self.tau, self.threads)
        return Pairs.build(
            pairs.i,
            pairs.j,
            pairs.similarity,
            len(vectors),
            seconds={"sort_hash": hashed - began, "cluster": perf_counter() - hashed},
            counters={"candidates": pairs.candidates, "verifications": pairs.verifications},
            overlap=Overlap(vectors.lengths),
        )

    def memory_bytes(self, vectors: Vectors) -> int:
        """Return the paper's lower bound (section 5.4.1): 4 + 2 bytes for each entry, 4 (l + 1) for each row."""
        return len(vectors.ids) * (4 + 2) + (self.l + 1) * len(vectors) * 4

    def min_hashes(self, vectors: Vectors, documents: NDArray[np.int64]) -> Iterator[Any]:
        """Yield the ``datasketch.MinHash`` of each of the given rows."""
        from datasketch import MinHash

        hashes = occurrence_hashes(vectors)
        if self.scheme is not Scheme.affine64:
            hashes >>= np.uint64(32)
        ends = np.cumsum(vectors.lengths)
        elements = (hashes[ends[row] - vectors.lengths[row] : ends[row]].tolist() for row in documents.tolist())
        # Elements are hash values already, so the hash function is the identity.
        yield from MinHash.generator(
            elements, num_perm=self.k * self.l, seed=self.seed, scheme=self.scheme.value, hashfunc=int
        )


def occurrence_hashes(vectors: Vectors) -> NDArray[np.uint64]:
    """Return a uint64 hash of every (signature, z-th occurrence), row by row.

    Hashes are equal iff signature id and occurrence number are: splitmix64 is a bijection on 64 bits.
    """
    counts = vectors.counts.astype(np.int64)
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return splitmix64(np.repeat(vectors.ids.astype(np.uint64), counts) << np.uint64(32) | number.astype(np.uint64))
