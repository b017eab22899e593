"""Comparison of all pairs, which defines the result of an exact matcher."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

import numpy as np

from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.parallel import concatenated, grown, over_blocks, overlap
from spotsigs.contracts import ThreadedMatcher, ThresholdMatcher
from spotsigs.records import Corpus, Measure, Overlap, Pairs


@dataclass(frozen=True, kw_only=True)
class BruteForce(ThreadedMatcher, ThresholdMatcher):
    """Compare all pairs of documents that have signatures.

    Attributes
    ----------
    tau : float
        Similarity threshold in (0, 1].
    threads : int or None
        Threads, each on blocks of documents; None uses all cores.
    """

    exact: ClassVar[bool] = True
    verified: ClassVar[bool] = True
    label: ClassVar[str] = "Brute force"
    measure: ClassVar[str] = Measure.jaccard

    def __call__(self, corpus: Corpus) -> Pairs:
        """Return all pairs with multiset Jaccard of at least tau."""
        began = perf_counter()
        vectors = corpus.vectors
        parts = over_blocks(
            lambda start, stop: _compare_block(
                vectors.indptr, vectors.ids, vectors.counts, vectors.lengths, start, stop, self.tau
            ),
            len(vectors),
            self.threads,
            blocks_a_thread=32,
        )
        i, j, similarity = concatenated(parts, (np.int32, np.int32, np.float64))
        filled = int(np.count_nonzero(vectors.lengths))
        return Pairs.build(
            i,
            j,
            similarity,
            len(vectors),
            seconds={"sort_hash": 0.0, "cluster": perf_counter() - began},
            counters={"verifications": filled * (filled - 1) // 2},
            overlap=Overlap(vectors.lengths),
        )


@kernel
def _compare_block(indptr, ids, counts, lengths, start, stop, tau):  # type: ignore[no-untyped-def]
    out_i, out_j, out_s = np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(1024, np.float64)
    n_out = 0
    for i in range(start, stop):
        for j in range(i + 1, len(lengths)):
            if lengths[i] == 0 or lengths[j] == 0:
                continue
            shared = overlap(ids, counts, indptr[i], indptr[i + 1], indptr[j], indptr[j + 1])
            similarity = shared / (lengths[i] + lengths[j] - shared)
            if similarity >= tau:
                if n_out == len(out_i):
                    out_i, out_j, out_s = grown(out_i), grown(out_j), grown(out_s)
                out_i[n_out], out_j[n_out], out_s[n_out] = i, j, similarity
                n_out += 1
    return out_i[:n_out], out_j[:n_out], out_s[:n_out]
