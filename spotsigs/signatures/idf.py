"""Signatures to vectors: contiguous ids, the IDF filter, the minimum number of spots."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.arrow import arrow_numbers, as_ndarray
from spotsigs.arrays.csr import INT32_MAX, row_starts
from spotsigs.errors import as_choice, as_count, as_number, option, require
from spotsigs.options import BAND
from spotsigs.records import Signatures, Vectors
from spotsigs.storage.exact_duplicates import ExactDuplicates

FEWEST = 32
"""Least number of documents with an IDF band.

The default band, from 0.2, drops signatures of more than n ** 0.8 of n documents: of more than half of fewer than 32,
which may be a template, or the story that they all have.
"""


MOST_IDS = INT32_MAX
"""Most distinct signatures in memory: their ids are int32."""


class Idf(Enum):
    """Normalisations of the inverse document frequency."""

    paper = "paper"
    prototype = "prototype"


@dataclass(frozen=True, kw_only=True)
class IdfFilter:
    """Choice of the signatures and documents that are matched.

    Attributes
    ----------
    idf_min, idf_max : float
        Band of normalised IDF that is kept, both ends included.
    idf : Idf
        ``paper``: ``log(N / df) / log(N)`` (section 5.1); ``prototype``: ``log((N + 1) / df) / log(N + 1)``.
    min_spots : int
        Documents with fewer occurrences left become empty rows (section 5.4 uses 5).
    fewest : int
        A collection of fewer documents has no band, see `FEWEST`.
    """

    idf_min: float = BAND[0]
    idf_max: float = BAND[1]
    idf: Idf = Idf.paper
    min_spots: int = 1
    fewest: int = FEWEST

    def __post_init__(self) -> None:
        low, high = as_number("idf_min", self.idf_min), as_number("idf_max", self.idf_max)
        require(
            0 <= low <= min(high, 1),
            f"idf_min={low} and idf_max={high}: give 0 <= idf_min <= idf_max (idf is in [0, 1])",
        )
        as_count("min_spots", self.min_spots)
        as_count("fewest", self.fewest, 0)
        object.__setattr__(self, "idf", as_choice("idf", self.idf, Idf))

    def __call__(self, signatures: Signatures, exact_duplicates: ExactDuplicates | None = None) -> Vectors:
        """Number the signatures, drop those outside the band, and empty the documents that are too short then.

        Exact duplicates become empty rows and are not counted in frequencies. Ids ascend with the signature hash, for
        any order of the documents.

        Raises
        ------
        InputError
            If there are more distinct signatures than numbers.
        """
        documents = len(signatures)
        if exact_duplicates is not None:
            signatures, documents = (
                signatures.keep_rows(exact_duplicates.distinct),
                int(np.count_nonzero(exact_duplicates.distinct)),
            )
        ids, vocabulary = dense_ids(signatures.hashes)
        frequencies = np.bincount(ids, minlength=len(vocabulary))
        kept = self.keeps(frequencies, documents)
        number = np.cumsum(kept, dtype=np.int64).astype(np.int32) - 1
        entries, sizes, lengths = self.long_enough(np.diff(signatures.indptr), kept[ids], signatures.counts)
        return Vectors(
            indptr=row_starts(sizes),
            ids=number[ids[entries]],
            counts=signatures.counts[entries],
            lengths=lengths,
            doc_ids=signatures.doc_ids,
            vocabulary=vocabulary[kept],
        )

    def long_enough(
        self, sizes: NDArray[np.int64], kept: NDArray[np.bool_], counts: NDArray[np.int32]
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
        """Drop all entries of the rows that are too short.

        Rows are given by their number of entries, entries by ``kept``, which is overwritten, and count. Return the
        entries that remain, their number in each row, and the sum of their counts (int64).
        """
        n = len(sizes)
        rows = np.repeat(np.arange(n, dtype=np.int32), sizes)
        lengths = np.bincount(rows[kept], weights=counts[kept], minlength=n)
        long = lengths >= self.min_spots
        kept &= long[rows]
        return kept, np.bincount(rows[kept], minlength=n), np.where(long, lengths, 0).astype(np.int64)

    def keeps(self, frequencies: NDArray[np.int64], n: int) -> NDArray[np.bool_]:
        """Return which signatures of the given document frequencies are in the band of a collection of n documents."""
        if n < self.fewest:
            return np.ones(len(frequencies), np.bool_)
        values = normalised_idf(frequencies, n, self.idf)
        return (values >= self.idf_min) & (values <= self.idf_max)


def normalised_idf(frequencies: NDArray[np.int64], n: int, idf: Idf = Idf.paper) -> NDArray[np.float64]:
    """Return the normalised IDF of document frequencies, at least 1, in a collection of n documents.

    It is 1 for a signature of one document and 0 for one of all; 1 for all if there is only one document.
    """
    total = n + 1 if idf is Idf.prototype else n
    if total <= 1:
        return np.ones(len(frequencies))
    values: NDArray[np.float64] = np.log(total / frequencies) / np.log(total)
    return values


def dense_ids(hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """Return the rank of each hash among the distinct ones, int32, and the distinct hashes, ascending.

    Raises
    ------
    InputError
        If there are more than `MOST_IDS` of them.
    """
    ids, hashes_by_id, n = np.empty(len(hashes), np.int32), [np.empty(0, np.uint64)], 0
    sixteenth = (hashes >> np.uint64(60)).astype(np.uint8)
    for k in range(16):  # one at a time: a table of all would take eight times the bytes of the hashes
        at = np.flatnonzero(sixteenth == k)
        # A hash table over the occurrences and a sort of the distinct values only: several times faster than np.unique.
        encoded = arrow_numbers(hashes[at]).dictionary_encode()
        distinct = as_ndarray(encoded.dictionary)
        require(
            n + len(distinct) <= MOST_IDS,
            f"there are more than {MOST_IDS:,} distinct signatures, which is the limit in memory; "
            f"with {option('memory', '16GB')}, only those inside the IDF band count",
        )
        order = np.argsort(distinct)
        rank = np.empty(len(distinct), np.int32)
        rank[order] = np.arange(n, n + len(distinct), dtype=np.int32)
        ids[at] = rank[as_ndarray(encoded.indices)]
        hashes_by_id.append(distinct[order])
        n += len(distinct)
    return ids, np.concatenate(hashes_by_id)
