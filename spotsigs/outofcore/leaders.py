"""Leaders of a store without its pairs, in rounds of documents that fit a budget.

Each round reads the next documents in order of priority that no earlier leader covers, finds the leaders among them,
and compares all rows that are no leaders with these. The rows of the store are read in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts, take_rows
from spotsigs.arrays.row_blocks import gathered, scattered
from spotsigs.clustering.leaders import LeaderOptions, Undecided, batched, find_nearest, prefixed
from spotsigs.matching.leader_kernels import Indexed, Prefixed, Units, find_leaders
from spotsigs.records import Clusters, IntArray, Pairs
from spotsigs.signatures.contained import RemovalRule
from spotsigs.storage.store import Reader, cut_rows, open_vectors

BYTES_A_LEADER_ENTRY = 64
"""Bytes that a round uses for each entry of its rows: entries, tokens, postings and temporaries."""

BYTES_A_ROW = 120
"""Bytes that a round uses for each of its rows."""

BYTES_A_RESULT = 108
"""Most bytes that leaders, clusters, decisions and tables use for each document."""


def leaders_on_disk(store: str | Path, tau: float, options: LeaderOptions, *, memory: int) -> tuple[Clusters, Pairs]:
    """Group the documents of a store of vectors as `spotsigs.clustering.leaders.leaders_of` does.

    The documents and a round of their rows use ``memory`` bytes, which a single row can exceed.
    """
    stored = open_vectors(store)
    n = len(stored)
    state = Undecided.build(stored.exact_duplicates, options)
    state.join_sets(True)
    row_of = gathered(scattered(np.arange(n, dtype=np.int32), stored.rows), state.rows)
    rows = _RowsOnDisk(stored.store, row_of, tau, options.rule, max(memory - n * BYTES_A_RESULT, memory // 8))
    start = 0
    while len(numbers := _next(state, start, rows)):
        start = int(numbers[-1]) + 1
        batch = batched(*rows.of(state, numbers), stored.vectors.n_signatures)
        covered = np.zeros(len(numbers), np.bool_)
        find_leaders(batch, tau, options.rule, covered)
        state.covered[numbers] = covered
        _cover(state, batch, rows, start, options)
    state.join_sets(False)
    clusters = state.clusters()
    return clusters, state.pairs(clusters, stored.compared_lengths(), options.both)


def _next(state: Undecided, start: int, rows: _RowsOnDisk) -> NDArray[np.int64]:
    """Return the next units without a leader whose rows fit into half of the memory, at least one."""
    memory = rows.memory // 2
    numbers = start + np.flatnonzero(~state.covered[start : start + max(memory // BYTES_A_ROW, 1)])
    if not len(numbers):
        numbers = start + np.flatnonzero(~state.covered[start:])[:1]
    sizes = rows.indptr[rows.row_of[numbers] + 1] - rows.indptr[rows.row_of[numbers]]
    used = np.cumsum(sizes * BYTES_A_LEADER_ENTRY + BYTES_A_ROW)
    return numbers[: max(int(np.searchsorted(used, memory, side="right")), 1)]


def _cover(state: Undecided, batch: Indexed, rows: _RowsOnDisk, start: int, options: LeaderOptions) -> None:
    """Compare the leaders of a round with all units that are no leaders: those that are covered, and later ones."""
    for begin, end in rows.spans():
        first, last = np.searchsorted(rows.row_of, [begin, end], sorter=rows.by_row)
        numbers = rows.by_row[first:last]
        numbers = numbers[state.covered[numbers] | (numbers >= start)]
        if len(numbers):
            find_nearest(state, *rows.of(state, numbers), batch, rows.tau, options)


class _RowsOnDisk:
    """Rows of a store, of which as many are read at a time as fit into an eighth of the memory."""

    def __init__(self, reader: Reader, row_of: NDArray[np.int32], tau: float, rule: RemovalRule, memory: int) -> None:
        self.reader, self.row_of, self.tau, self.rule, self.memory = reader, row_of, tau, rule, memory
        self.by_row = np.argsort(row_of, kind="stable").astype(np.int32)  # units
        self.indptr = reader.array("indptr", np.int64)
        self.first = int(np.searchsorted(reader.array("lengths", np.int64), 1))  # empty rows are in no pair
        self.edges = cut_rows(self.indptr, self.first, memory // 8, BYTES_A_LEADER_ENTRY, BYTES_A_ROW)

    def spans(self) -> Iterator[tuple[int, int]]:
        """Iterate over the ranges of rows that are read at once."""
        return pairwise(self.edges.tolist())

    def of(self, state: Undecided, numbers: IntArray) -> tuple[Units, Prefixed]:
        """Return some units, and read their rows."""
        known, at = np.unique(self.row_of[numbers], return_inverse=True)
        return state.units(numbers, at), self._some(known)

    def _some(self, wanted: NDArray[np.int32]) -> Prefixed:
        """Read some rows, in ascending order, and find their prefixes."""
        kinds = {"ids": np.int32, "counts": np.int32, "classes": np.uint8}
        columns = [[np.empty(0, kind)] for kind in kinds.values()]
        for begin, end in self.spans():
            first, last = np.searchsorted(wanted, [begin, end])
            if first == last:
                continue
            begin, end = int(wanted[first]), int(wanted[last - 1]) + 1
            indptr = self.reader.part("indptr", np.int64, begin, end + 1)
            span = int(indptr[0]), int(indptr[-1])
            _, entries = take_rows(indptr - span[0], wanted[first:last] - begin)
            for part, (name, kind) in zip(columns, kinds.items(), strict=True):
                part.append(self.reader.part(name, kind, *span)[entries])
        ids, counts, classes = (np.concatenate(part) for part in columns)
        sizes = self.indptr[wanted + 1] - self.indptr[wanted]
        lengths = self.reader.array("lengths", np.int64)[wanted]
        documents = self.reader.array("rows", np.int64)[wanted]
        return prefixed(row_starts(sizes), ids, counts, lengths, classes, self.tau, self.rule, documents)
