"""Text lost of a store, in tasks: batches of segments, then ranges of hashes.

1. `draw`: the hashes of some segments, of kept and of removed pages, by ranges.
2. `count`: a range of hashes from all batches. A hash of a removed page that no batch has for a kept page is lost.

The calling process adds up the counts of removed pages. The measure is `spotsigs.evaluation.text_lost`, whose functions
count the ranges of a run in memory as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.evaluation.text_lost import Counted, Drawn, PageHashes, TextLost, bits_for, measured
from spotsigs.records import WordGrams
from spotsigs.signatures.blocks import Blocks
from spotsigs.storage.locations import absolute, as_path
from spotsigs.storage.store import Writer, entry_spans, fingerprint, opened, remove_tree
from spotsigs.storage.tasks import Job, resumable, run_tasks, task_size
from spotsigs.workers.engines import Engine

BYTES_A_HASH = 64  # of a task, for each hash: read, ordered with its page, and counted

LEAST_HASHES = 1 << 19
"""Hashes of a task below which another one would cost more than it saves."""


@dataclass(frozen=True, kw_only=True)
class LostJob(Job):
    """Settings of all tasks: the zero bits with which counted hashes begin, and the number of their ranges.

    The number is a power of two, and two at least.
    """

    bits: int
    ranges: int


class GramBatch(NamedTuple):
    """A task: some segments, the number of their first page, and which of their pages are kept."""

    job: LostJob
    number: int
    first: int
    folders: tuple[str, ...]
    kept: NDArray[np.bool_]


class GramRange(NamedTuple):
    """A task: a range of hashes from all batches."""

    job: LostJob
    number: int
    batches: int


@dataclass(frozen=True)
class StoredGrams:
    """Word 5-grams of the texts of a store."""

    outlines: Blocks  # blocks in files that have them
    folder: Path  # folder of the results of tasks
    engine: Engine  # where the tasks run
    memory: int  # bytes that one task may use

    def text_lost(self, kept: NDArray[np.bool_], most: int) -> TextLost | None:
        """Measure the text that no kept page contains, by about so many hashes at most.

        Returns
        -------
        TextLost or None
            None if the store has not ``len(kept)`` pages.
        """
        readers = [opened(folder, "signatures", verify=False) for folder in self.outlines.folders]
        rows = row_starts(np.array([reader.facts["rows"] for reader in readers], np.int64))
        if rows[-1] != len(kept):
            return None
        samples = [(reader.length("grams", np.uint64), int(reader.facts["gram_bits"])) for reader in readers]
        bits = bits_for(samples, most)
        weights = np.array([size >> (bits - own) for size, own in samples], np.int64)
        task = task_size(int(weights.sum()), LEAST_HASHES, self.memory // BYTES_A_HASH)
        ranges = 1 << max((max(int(weights.sum()), 1) - 1) // task, 1).bit_length()
        job = LostJob(folder=absolute(self.folder), bits=bits, ranges=ranges)
        made_of = "".join(map(fingerprint, self.outlines.folders)).encode() + np.packbits(kept).tobytes()
        job.begin({"of": xxhash.xxh3_128_hexdigest(made_of), "bits": bits, "ranges": ranges, "task": task})
        batches = []
        for number, (start, stop) in enumerate(entry_spans(row_starts(weights + 1), task)):
            first, last = int(rows[start]), int(rows[stop])
            folders = tuple(map(absolute, self.outlines.folders[start:stop]))
            batches.append(GramBatch(job, number, first, folders, kept[first:last]))
        list(run_tasks(self.engine, draw, batches, "drawing text"))
        tasks = [GramRange(job, k, len(batches)) for k in range(ranges)]
        lost = measured(run_tasks(self.engine, count, tasks, "text lost", arrays=True), len(kept), bits)
        remove_tree(job.path())
        return lost


@resumable("drawn")
def draw(batch: GramBatch, out: Writer) -> None:
    """Write the hashes of some segments, and where each range of them begins."""
    job, parts, row = batch.job, list[PageHashes](), 0
    for folder in batch.folders:
        store = opened(as_path(folder), "signatures")
        columns = store.whole("gram_indptr", np.int64), store.whole("grams", np.uint64)
        grams = WordGrams(*columns, store.facts["gram_bits"]).drawn(job.bits)
        n = len(grams.indptr) - 1
        parts.append(PageHashes.of(grams, batch.kept[row : row + n], batch.first + row))
        row += n
    ranges = PageHashes.concatenate(parts).in_ranges(0, 1 << 64 - job.bits, job.ranges)
    for name, column in ranges._asdict().items():
        out.put(name, column)


def count(task: GramRange) -> Counted:
    """Count the hashes of a range."""
    parts = []
    for number in range(task.batches):
        store = task.job.result("drawn", number)
        kept, removed = (
            store.part(f"{name}_edges", np.int64, task.number, task.number + 2).tolist() for name in ("kept", "removed")
        )
        parts.append(
            Drawn(
                store.part("kept", np.uint64, *kept),
                store.part("removed", np.uint64, *removed),
                store.part("pages", np.int32, *removed),
            )
        )
    return Counted.of(parts)
