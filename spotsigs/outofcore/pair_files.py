"""Pairs in files: each store is sorted by (i, j), and all are merged in chunks that fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.parallel import concatenated
from spotsigs.records import FloatArray, IntArray, Overlap, PairArrays, Pairs
from spotsigs.storage.store import Reader, entry_spans, opened, writing

BYTES_A_PAIR = 128
"""Bytes that sorting and naming pairs uses for each of them."""

PAIR_COLUMNS: dict[str, Any] = {"i": np.int64, "j": np.int64, "similarity": np.float64}
"""Arrays of a store of pairs."""


@dataclass(frozen=True)
class PairFiles:
    """Pairs on disk."""

    folders: tuple[Path, ...]  # stores of pairs, each sorted by (i, j)
    n: int  # number of documents
    # As in `spotsigs.records.Pairs`.
    seconds: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    overlap: Overlap | None = field(default=None, repr=False)  # as in `spotsigs.records.Pairs`
    memory: int = 1 << 27  # bytes of pairs in memory at a time; those of a single document can exceed it

    def __len__(self) -> int:
        return sum(int(store.facts["pairs"]) for store in self._readers(False))

    def _readers(self, verify: bool) -> list[Reader]:
        return [opened(folder, "pairs", verify=verify) for folder in self.folders]

    def load(self) -> Pairs:
        """Return all pairs, in memory."""
        [(i, j, similarity)] = self.within(BYTES_A_PAIR * (len(self) + 1)).chunks()
        return Pairs.build(i, j, similarity, self.n, self.seconds, self.counters, self.overlap)

    def load_if_fits(self) -> Pairs | None:
        """Return all pairs, or None if they do not fit into memory."""
        return self.load() if 2 * len(self) <= self.chunk_size else None

    @property
    def chunk_size(self) -> int:
        """Pairs in memory at a time, except those of a single document."""
        return max(1, self.memory // BYTES_A_PAIR)

    def within(self, memory: int) -> PairFiles:
        """Return the same pairs with a limit on the bytes that are in memory at a time."""
        return replace(self, memory=memory)

    def chunks(self) -> Iterator[PairArrays]:
        """Iterate over the pairs in ascending order of (i, j), in chunks that fit the memory.

        Yields
        ------
        i, j : ndarray of int32
            Document numbers, ``i < j``.
        similarity : ndarray of float64
        """
        stores = self._readers(True)
        edges = self._edges(stores)
        offsets = [np.searchsorted(store.whole("i", np.int64), edges).tolist() for store in stores]
        for k in range(len(edges) - 1):
            parts = [
                tuple(store.part(name, kind, at[k], at[k + 1]) for name, kind in PAIR_COLUMNS.items())
                for store, at in zip(stores, offsets, strict=True)
                if at[k] < at[k + 1]
            ]
            i, j, similarity = concatenated(parts, tuple(PAIR_COLUMNS.values()))
            parts.clear()
            order = _in_order(i, j)
            # in the types of `Pairs`, so that kernels are compiled once
            yield i[order].astype(np.int32), j[order].astype(np.int32), similarity[order]

    def _edges(self, stores: Sequence[Reader]) -> list[int]:
        """Cut the document numbers into ranges with limited numbers of pairs, and return their edges."""
        width = max(1, self.n >> 16)
        bins = np.zeros(self.n // width + 1, np.int64)  # pairs by bin of the first document
        for store in stores:
            bins += np.bincount(store.whole("i", np.int64) // width, minlength=len(bins))
        return [*(first * width for first, _ in entry_spans(row_starts(bins), self.chunk_size)), self.n]


def write_pairs(path: Path, i: IntArray, j: IntArray, similarity: FloatArray) -> None:
    """Write a store of pairs, sorted by (i, j)."""
    order = _in_order(i, j)
    with writing(path, "pairs") as out:
        for (name, kind), values in zip(PAIR_COLUMNS.items(), (i, j, similarity), strict=True):
            out.put(name, values[order].astype(kind, copy=False))
        out.facts = {"pairs": len(order)}


def _in_order(i: IntArray, j: IntArray) -> NDArray[np.int64]:
    """Return the order of pairs by (i, j); no pair occurs twice."""
    return np.argsort(i.astype(np.int64) << 32 | j)
