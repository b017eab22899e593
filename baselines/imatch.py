"""I-Match: documents with the same SHA-1 of their mid-frequency terms are near-duplicates."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from baselines.hashing import group_rows, pairs_within, splitmix64, term_hashes
from spotsigs.contracts import Matcher
from spotsigs.errors import require
from spotsigs.records import Corpus, Measure, Pairs, Vectors


@dataclass(frozen=True, kw_only=True)
class IMatch(Matcher):
    """Pairs of documents whose kept terms hash to the same SHA-1 value.

    The kept terms of a document are its distinct signatures with ``idf_min <= idf <= idf_max``, where
    ``idf = log(N / df) / log(N)`` over the corpus. Documents without a kept term are in no pair. On spot signatures
    (``signature=spotsigs``), the method is I-Match-S. There is no threshold, and the similarity of its pairs is NaN.

    With several lexica, lexicon 0 is the set of all kept terms, and each other lexicon a random subset of it. Two
    documents are near-duplicates if they agree under any lexicon.

    Parameters
    ----------
    idf_min, idf_max : float
        Band of normalised IDF in [0, 1], including both ends.
    lexica : int
        Number of fingerprints per document, including the fingerprint by lexicon 0.
    lexicon_share : float
        Fraction of the terms in each randomised lexicon, in (0, 1).
    seed : int
        Seed of the randomised lexica. A term's membership depends only on its hash, the lexicon and the seed.

    References
    ----------
    A. Chowdhury, O. Frieder, D. Grossman and M. C. McCabe. Collection statistics for fast duplicate document
    detection. ACM TOIS 20(2), 2002.
    A. Kolcz, A. Chowdhury and J. Alspector. Improved robustness of signature-based near-replica detection via lexicon
    randomization. KDD 2004.
    M. Theobald, J. Siddharth and A. Paepcke. SpotSigs. SIGIR 2008, sections 5.2 and 5.3.3, Table 1.

    Deviations
    ----------
    - A term is its 64-bit hash: SHA-1 is computed over the ascending hashes, 8 bytes big-endian each, not over a
      concatenation of strings. If vectors have no vocabulary, ids replace the hashes.
    - IDF is computed on the collection itself, not on an external one, as in the SpotSigs paper's experiments.
    - A randomised lexicon contains each term independently, so its size is random, too. The fraction of about two
      thirds is a round value of the order used in practice; the SpotSigs paper gives none.
    """

    label: ClassVar[str] = "I-Match (unverified)"
    measure: ClassVar[str] = Measure.fingerprint

    idf_min: float = 0.4
    idf_max: float = 0.75
    lexica: int = 1
    lexicon_share: float = 0.67
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            0.0 <= self.idf_min <= self.idf_max <= 1.0,
            f"idf_min and idf_max must satisfy 0 <= idf_min <= idf_max <= 1, got {self.idf_min} and {self.idf_max}",
        )
        require(1 <= self.lexica <= 1000, f"lexica must be in [1, 1000], got {self.lexica}")
        require(0.0 < self.lexicon_share < 1.0, f"lexicon_share must be in (0, 1), got {self.lexicon_share}")
        require(self.seed >= 0, f"seed must not be negative, got {self.seed}")

    def __call__(self, corpus: Corpus) -> Pairs:
        """Return all pairs of documents that share a fingerprint.

        Raises
        ------
        InputError
            If a lexicon yields more than 2**31 pairs.
        """
        n = len(corpus.vectors)
        keys = np.empty(0, np.int64)
        hashing = pairing = 0.0
        fingerprints = buckets = 0
        start = perf_counter()
        for labels in self.bucket_labels(corpus.vectors):
            hashed = perf_counter()
            fingerprints += int(np.count_nonzero(labels >= 0))
            buckets += int(labels.max(initial=-1)) + 1
            keys = np.union1d(keys, _bucket_keys(labels))
            hashing, pairing, start = hashing + hashed - start, pairing + perf_counter() - hashed, perf_counter()
        i, j = np.divmod(keys, max(n, 1))
        return Pairs.build(
            i,
            j,
            np.full(len(keys), np.nan),
            n,
            seconds={"sort_hash": hashing, "cluster": pairing},
            counters={
                "kept_signatures": int(np.count_nonzero(self._band(corpus.vectors))),
                "fingerprints": fingerprints,
                "buckets": buckets,
            },
        )

    def memory_bytes(self, vectors: Vectors) -> int:
        """Return the paper's figure: 40 characters of SHA-1 and a 4-byte id for each document and lexicon."""
        return 44 * len(vectors) * self.lexica

    def bucket_labels(self, vectors: Vectors) -> Iterator[NDArray[np.int64]]:
        """Yield, for each lexicon, the number of each document's SHA-1 by first occurrence, or -1 without terms."""
        n, hashes = len(vectors), term_hashes(vectors)
        order = np.argsort(hashes)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        hashes = hashes[order]
        kept = self._band(vectors)[vectors.ids]
        rows = np.repeat(np.arange(n), np.diff(vectors.indptr))[kept]
        # Sort the terms of each row by hash: rows are contiguous, so one sort of (row, rank) keys suffices.
        rows, ranks = np.divmod(np.sort(rows * max(len(hashes), 1) + rank[vectors.ids[kept]]), max(len(hashes), 1))
        for lexicon in range(self.lexica):
            inside = self.in_lexicon(hashes, lexicon)[ranks]
            sizes = np.bincount(rows[inside], minlength=n)
            yield _sha1_labels(hashes[ranks[inside]].astype(">u8").tobytes(), sizes)

    def _band(self, vectors: Vectors) -> NDArray[np.bool_]:
        """Return the mask of signatures in the IDF band, bool, shape (n_signatures,)."""
        n, df = len(vectors), vectors.document_frequencies
        if n < 2:  # log(N) = 0; there are no pairs
            return np.zeros(len(df), dtype=np.bool_)
        idf = np.log(n / np.maximum(df, 1)) / np.log(n)
        band: NDArray[np.bool_] = (df > 0) & (idf >= self.idf_min) & (idf <= self.idf_max)
        return band

    def in_lexicon(self, hashes: NDArray[np.uint64], lexicon: int) -> NDArray[np.bool_]:
        """Return the mask of the terms in a lexicon; lexicon 0 contains all."""
        if lexicon == 0:
            return np.ones(len(hashes), dtype=np.bool_)
        salt = np.random.SeedSequence([self.seed, lexicon]).generate_state(1, np.uint64)[0]
        uniform = (splitmix64(hashes ^ salt) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return uniform < self.lexicon_share


def _sha1_labels(terms: bytes, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number, by first occurrence, of the SHA-1 of each consecutive run of 8-byte terms."""
    labels = np.full(len(sizes), -1, dtype=np.int64)
    ends = np.cumsum(sizes) * 8
    rows = np.flatnonzero(sizes)
    numbers: dict[bytes, int] = {}
    view = memoryview(terms)
    for row, end, size in zip(rows.tolist(), ends[rows].tolist(), sizes[rows].tolist(), strict=True):
        digest = hashlib.sha1(view[end - 8 * size : end], usedforsecurity=False).digest()
        labels[row] = numbers.setdefault(digest, len(numbers))
    return labels


def _bucket_keys(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ``i * n + j`` of all pairs ``i < j`` with the same non-negative label."""
    i, j = pairs_within(*group_rows(labels))
    return i * len(labels) + j
