"""Exact all-pairs Cosine over TF·IDF vectors by an inverted index."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from time import perf_counter
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.parallel import concatenated, grown, over_blocks
from spotsigs.contracts import ThreadedMatcher, ThresholdMatcher
from spotsigs.records import Corpus, FloatArray, Measure, Pairs, Vectors


@dataclass(frozen=True, kw_only=True)
class Cosine(ThreadedMatcher, ThresholdMatcher):
    """All pairs with TF·IDF Cosine of at least tau.

    A document is the vector ``u`` of ``count * log(N / df)``, its counts divided by their greatest common divisor (so
    that proportional documents are equal). The similarity of two documents is ``min(1, u·v / sqrt(u·u v·v))`` in
    float64, each product summed in ascending order of the signature id. Signatures of all documents have idf 0 and are
    dropped; documents without other signatures have no similarity.

    The product of the matrix with its transpose is computed row by row over the postings lists, in the order of the
    definition, so that no pair needs a verification.

    Attributes
    ----------
    tau : float
        Similarity threshold in (0, 1].
    threads : int or None
        Threads over blocks of documents; None uses all cores.

    References
    ----------
    M. Theobald, J. Siddharth, A. Paepcke: SpotSigs. SIGIR 2008, section 5.3.1 (Cosine with TF·IDF weights).
    """

    measure: ClassVar[str] = Measure.cosine
    exact: ClassVar[bool] = True
    verified: ClassVar[bool] = True
    label: ClassVar[str] = "Cosine"

    def __call__(self, corpus: Corpus) -> Pairs:
        """Return all pairs with Cosine of at least tau."""
        began = perf_counter()
        weighted = weigh(corpus.vectors)
        indexed = perf_counter()
        parts = over_blocks(
            lambda start, stop: _probe_block(weighted, self.tau, start, stop),
            len(corpus.vectors),
            self.threads,
            blocks_a_thread=32,
        )
        i, j, similarity = concatenated(parts, (np.int32, np.int32, np.float64))
        return Pairs.build(
            i,
            j,
            similarity,
            len(corpus.vectors),
            seconds={"sort_hash": indexed - began, "cluster": perf_counter() - indexed},
            counters={"candidates": sum(part[3] for part in parts)},
        )

    def memory_bytes(self, vectors: Vectors) -> int:
        """Return the paper's kind of lower bound: id, 4-byte weight and list pointer an entry, 4 bytes a document."""
        return len(vectors.ids) * (4 + 4 + 4) + len(vectors) * 4


class Weighted(NamedTuple):
    """TF·IDF vectors, not normalised, by row and by signature.

    Row ``r`` has the ``ids[indptr[r]:indptr[r + 1]]``, ascending, without signatures of all documents, their positive
    weights in ``values``, and the sum of the squared weights in ``squares[r]``. The postings list of signature ``s``
    has the rows ``postings[lists[s]:lists[s + 1]]``, ascending, and its weights in ``posting_values``.
    """

    indptr: NDArray[np.int64]
    ids: NDArray[np.int32]
    values: FloatArray
    squares: FloatArray
    lists: NDArray[np.int64]
    postings: NDArray[np.int32]
    posting_values: FloatArray


def weigh(vectors: Vectors) -> Weighted:
    """Weigh counts by inverse document frequency, and build the inverted index."""
    frequencies = vectors.document_frequencies
    idf = inverse_document_frequencies(frequencies, len(vectors))
    kept = idf[vectors.ids] > 0
    indptr = row_starts(kept)[vectors.indptr]
    ids = vectors.ids[kept]
    values, squares = _weigh_rows(indptr, ids, vectors.counts[kept], idf)
    order = np.argsort(ids, kind="stable")
    rows = np.repeat(np.arange(len(vectors), dtype=np.int32), np.diff(indptr))
    lists = row_starts(np.bincount(ids, minlength=len(frequencies)))
    return Weighted(indptr, ids, values, squares, lists, rows[order], values[order])


def inverse_document_frequencies(frequencies: NDArray[np.int64], n: int) -> FloatArray:
    """Return ``log(n / df)``, correctly rounded, so that it is the same on every machine; 0 where df is 0."""
    distinct, inverse = np.unique(frequencies, return_inverse=True)
    context = Context(prec=40)
    logs = [float(context.ln(context.divide(Decimal(n), Decimal(df)))) if df else 0.0 for df in distinct.tolist()]
    return np.asarray(logs, dtype=np.float64)[inverse]


@kernel
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


@kernel
def _common_divisor(a, b):  # type: ignore[no-untyped-def]
    while b > 0:
        a, b = b, a % b
    return a


@kernel
def _probe_block(weighted, tau, start, stop):  # type: ignore[no-untyped-def]
    """Return the pairs of the rows ``start:stop`` with preceding rows, and how many pairs share a signature."""
    out_i, out_j, out_s = np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(1024)
    products, touched = np.zeros(stop), np.empty(stop, np.int32)
    size = candidates = 0
    for row in range(start, stop):
        n = 0
        for entry in range(weighted.indptr[row], weighted.indptr[row + 1]):
            signature, weight = weighted.ids[entry], weighted.values[entry]
            for posting in range(weighted.lists[signature], weighted.lists[signature + 1]):
                other = weighted.postings[posting]
                if other >= row:
                    break
                if products[other] == 0.0:  # weights are positive
                    touched[n] = other
                    n += 1
                products[other] += weight * weighted.posting_values[posting]
        candidates += n
        while size + n > len(out_i):
            out_i, out_j, out_s = grown(out_i), grown(out_j), grown(out_s)
        for other in touched[:n]:
            similarity = min(1.0, products[other] / np.sqrt(weighted.squares[row] * weighted.squares[other]))
            products[other] = 0.0
            if similarity >= tau:
                out_i[size], out_j[size], out_s[size] = other, row, similarity
                size += 1
    return out_i[:size], out_j[:size], out_s[:size], candidates
