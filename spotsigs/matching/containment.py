"""Exact join by containment: pairs whose shorter page is part of the other, as a teaser is of its article."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

import numpy as np

from spotsigs.arrays.csr import row_starts, take_rows
from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.parallel import concatenated, grown, over_blocks
from spotsigs.contracts import ThreadedMatcher, ThresholdMatcher
from spotsigs.matching.algorithm1 import fill_lists
from spotsigs.records import Corpus, Measure, Overlap, Pairs, Vectors


@dataclass(frozen=True, kw_only=True)
class Containment(ThreadedMatcher, ThresholdMatcher):
    """Exact join by multiset containment: the intersection divided by the size of the smaller multiset.

    Each page probes an inverted index for longer pages, its rarest signatures first, until its remaining signatures
    cannot reach the threshold. The proof is in docs/bounds.md.

    Attributes
    ----------
    tau : float
        Containment threshold in (0, 1]: a pair is reported iff its intersection divided by the smaller number of
        signatures is at least ``tau`` in float64.
    threads : int or None
        Threads of the kernels; None uses all cores.

    References
    ----------
    A. Broder, "On the Resemblance and Containment of Documents", SEQUENCES 1997: the measure.
    Bayardo, Ma, Srikant: Scaling up all pairs similarity search, WWW 2007 (prefixes).
    """

    exact: ClassVar[bool] = True
    verified: ClassVar[bool] = True
    label: ClassVar[str] = "SpotSigs, containment"
    measure: ClassVar[Measure] = Measure.containment

    def __call__(self, corpus: Corpus) -> Pairs:
        """Return the pairs in which one document contains at least a fraction ``tau`` of the other."""
        began = perf_counter()
        vectors = corpus.vectors
        order, indptr, tokens, counts = _ordered(vectors)
        lengths = vectors.lengths[order].astype(np.int64)
        posting_indptr = row_starts(np.bincount(tokens))
        postings = fill_lists(np.arange(len(order)), indptr, tokens, posting_indptr[:-1].copy(), len(tokens))
        sorted_at = perf_counter()
        parts = over_blocks(
            lambda start, stop: _probe(
                indptr, tokens, counts, lengths, posting_indptr, postings, self.tau, start, stop
            ),
            len(order),
            self.threads,
            blocks_a_thread=32,
        )
        a, b, similarity, verified = concatenated(parts, (np.int32, np.int32, np.float64, np.int64))
        return Pairs.build(
            order[a],
            order[b],
            similarity,
            len(vectors),
            seconds={"sort_hash": sorted_at - began, "cluster": perf_counter() - sorted_at},
            counters={"verifications": int(verified.sum())},
            overlap=Overlap(vectors.lengths, self.measure),
        )

    def keep_contained_references(self, pairs: Pairs, new_from: int) -> Pairs:
        """Return the pairs without documents of a reference that the other document does not contain.

        The intersection is divided by the signatures of the reference's document, however long the other one is.
        """
        assert pairs.overlap is not None
        lengths = pairs.overlap.lengths[pairs.i]
        contains = (pairs.i >= new_from) | (pairs.shared / np.maximum(lengths, 1) >= self.tau) | (lengths == 0)
        return pairs.where(contains)

    def memory_bytes(self, vectors: Vectors) -> int:
        """Return the bytes of vectors and index: 4 + 4 + 2 for each entry, 4 for each document."""
        return len(vectors.ids) * (4 + 4 + 2) + len(vectors) * 4


def _ordered(vectors: Vectors):  # type: ignore[no-untyped-def]
    """Return the non-empty rows in ascending order of length, each with its rarest signature first."""
    order = np.argsort(vectors.lengths, kind="stable")
    order = order[vectors.lengths[order] > 0]
    names, positions, frequency = np.unique(vectors.ids, return_inverse=True, return_counts=True)
    rank = np.empty(len(names), np.int32)
    rank[np.argsort(frequency, kind="stable")] = np.arange(len(names), dtype=np.int32)
    indptr, entries = take_rows(vectors.indptr, order)
    tokens, counts = rank[positions][entries], vectors.counts[entries]
    within = np.lexsort((tokens, np.repeat(np.arange(len(order)), np.diff(indptr))))
    return order, indptr, tokens[within], counts[within].astype(np.int64)


@kernel
def _overlap(indptr, tokens, counts, lengths, a, b, tau):  # type: ignore[no-untyped-def]
    """Return the overlap of the shorter row ``a`` with ``b``, or -1 if it cannot reach the threshold."""
    i, j, end_i, end_j = indptr[a], indptr[b], indptr[a + 1], indptr[b + 1]
    shared, remaining = 0, lengths[a]
    while i < end_i and j < end_j:
        if tokens[i] == tokens[j]:
            shared += min(counts[i], counts[j])
            remaining -= counts[i]
            i, j = i + 1, j + 1
        elif tokens[i] < tokens[j]:
            remaining -= counts[i]
            i += 1
            if (shared + remaining) / lengths[a] < tau:
                return -1
        else:
            j += 1
    return shared


@kernel
def _probe(indptr, tokens, counts, lengths, posting_indptr, postings, tau, start, stop):  # type: ignore[no-untyped-def]
    """Return the pairs of some rows with longer or equally long later rows, and the number of verifications."""
    out_a, out_b, out_s = np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(1024, np.float64)
    n, verified = 0, np.zeros(1, np.int64)
    seen = np.full(len(lengths), -1, np.int32)
    for a in range(start, stop):
        done = 0
        for k in range(indptr[a], indptr[a + 1]):
            if (lengths[a] - done) / lengths[a] < tau:
                break
            done += counts[k]
            first, last = posting_indptr[tokens[k]], posting_indptr[tokens[k] + 1]
            first += np.searchsorted(postings[first:last], a, side="right")
            for b in postings[first:last]:
                if seen[b] == a:
                    continue
                seen[b] = a
                verified[0] += 1
                shared = _overlap(indptr, tokens, counts, lengths, a, b, tau)
                if shared <= 0 or shared / lengths[a] < tau:
                    continue
                if n == len(out_a):
                    out_a, out_b, out_s = grown(out_a), grown(out_b), grown(out_s)
                out_a[n], out_b[n], out_s[n] = a, b, shared / lengths[a]
                n += 1
    return out_a[:n], out_b[:n], out_s[:n], verified
