"""Listed pairs of which one document may be removed for the other one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotsigs.contracts import PairChunks
from spotsigs.records import FloatArray, IntArray
from spotsigs.signatures.contained import RemovalRule


@dataclass(frozen=True)
class CountingPairs:
    """Pairs of which a rule allows to remove one document for the other one."""

    pairs: PairChunks  # pairs of n documents
    rule: RemovalRule  # the rule, for representatives
    representatives: NDArray[np.int32]  # representative of each document among its exact duplicates. Shape (n,).

    def counts(self, rows: IntArray, partners: IntArray, similarity: FloatArray) -> NDArray[np.bool_]:
        """Return for which pairs the row may be removed for its partner."""
        of = self.representatives
        return self.rule.counts(of[rows], of[partners], similarity)

    def chunks(self) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
        """Iterate over the pairs in ascending order of (i, j)."""
        for i, j, similarity in self.pairs.chunks():
            counts = self.counts(i, j, similarity) | self.counts(j, i, similarity)
            yield i[counts], j[counts], similarity[counts]
