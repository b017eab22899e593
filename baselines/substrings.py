"""Exact substrings: pages that repeat enough of all earlier kept pages together."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

import numpy as np

from spotsigs.contracts import ThresholdMatcher
from spotsigs.records import Corpus, Pairs


@dataclass(frozen=True, kw_only=True)
class Substrings(ThresholdMatcher):
    """Each page of which enough signatures occur in earlier kept pages, with the one that has most of them.

    Pages are read in their order. A page is kept if less than a fraction `tau` of its signatures occurs in the pages
    kept so far; the pairs of the others make a cluster around each kept page. On shingles of 50 tokens these are the
    substrings of Lee et al., whose program cuts them out of pages instead of removing whole pages.

    Attributes
    ----------
    tau : float
        Fraction of the occurrences of signatures in (0, 1].

    References
    ----------
    Lee et al.: Deduplicating Training Data Makes Language Models Better, ACL 2022.
    """

    label: ClassVar[str] = "Substrings (unverified)"
    measure: ClassVar[str] = "share in kept pages"

    def __call__(self, corpus: Corpus) -> Pairs:
        """Return a pair for each page that is not kept; its similarity is the share in all kept pages."""
        began, vectors = perf_counter(), corpus.vectors
        first = np.full(vectors.n_signatures, -1, np.int64)  # kept page in which a signature occurs first
        pairs: list[tuple[int, int, float]] = []
        for row in range(len(vectors)):
            ids, counts = vectors.row(row)
            known = first[ids] >= 0
            share = counts[known].sum() / max(counts.sum(), 1)
            if len(ids) and share >= self.tau:
                pairs.append((int(np.bincount(first[ids[known]], counts[known]).argmax()), row, float(share)))
            else:
                first[ids[~known]] = row
        i, j, similarity = (np.array(part) for part in zip(*pairs, strict=True)) if pairs else np.empty((3, 0))
        seconds = {"sort_hash": 0.0, "cluster": perf_counter() - began}
        n = len(vectors)
        return Pairs.build(i.astype(np.int32), j.astype(np.int32), similarity.astype(float), n, seconds=seconds)
