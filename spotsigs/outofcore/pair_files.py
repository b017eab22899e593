"""The pairs of a store in one file of each column, in order, which `spotsigs.records.Pairs` maps.

Tasks write runs of pairs, each sorted by (i, j). Other tasks merge all runs for a range of first documents, and these
ranges follow each other in the files of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.parallel import concatenated
from spotsigs.records import BYTES_A_PAIR, IntArray, Overlap, PairArrays, Pairs, require_listable
from spotsigs.storage.locations import is_remote
from spotsigs.storage.store import Reader, Writer, entry_spans, opened, writing
from spotsigs.storage.tasks import Job, resumable, run_tasks
from spotsigs.workers.engines import Engine

BYTES_A_MERGED_PAIR = 128
"""Bytes that sorting and naming pairs uses for each of them."""

PAIR_COLUMNS: dict[str, Any] = {"i": np.int32, "j": np.int32, "similarity": np.float64}
"""Arrays of a store of pairs."""

LEAST_PAIRS = 2**10
"""Pairs of a run at least, however small the memory is."""


class PairRuns(NamedTuple):
    """Runs of pairs that a task has written: how many, and the number of their pairs."""

    runs: int
    pairs: int


class MergedRange(NamedTuple):
    """A task: the pairs of some runs whose first document is in a range."""

    job: Job
    number: int
    runs: tuple[Path, ...]
    first: int
    end: int


def write_runs(folder: Path, chunks: Iterable[PairArrays], *, memory: int) -> PairRuns:
    """Write pairs, ``i < j`` in any order and without repeats, as runs whose number is the name of each.

    A run has as many pairs as are sorted within a quarter of the memory. Raise `InputError` for too many pairs.
    """
    most, found, runs = max(memory // 4 // BYTES_A_PAIR, LEAST_PAIRS), 0, 0
    waiting: list[PairArrays] = []

    def write() -> None:
        nonlocal runs
        columns = concatenated(waiting, tuple(PAIR_COLUMNS.values()))
        waiting.clear()
        for start in range(0, len(columns[0]), most):
            write_run(run_path(folder, runs), *(column[start : start + most] for column in columns))
            runs += 1

    for chunk in chunks:
        found += len(chunk[0])
        require_listable(found, on_disk=True)
        waiting.append(chunk)
        if sum(len(i) for i, _, _ in waiting) >= most:
            write()
    if waiting:
        write()
    return PairRuns(runs, found)


def run_path(folder: Path, number: int) -> Path:
    """Return the path of a run of a task."""
    return folder / f"{number:06d}"


def write_run(path: Path, i: IntArray, j: IntArray, similarity: NDArray[np.float64]) -> None:
    """Write a run of pairs, sorted by (i, j)."""
    with writing(path, "run") as out:
        for name, values in zip(PAIR_COLUMNS, _in_order(i, j, similarity), strict=True):
            out.put(name, values)


def read_runs(runs: Iterable[Path]) -> Iterator[PairArrays]:
    """Yield the pairs of each run."""
    for run in runs:
        yield _columns(opened(run, "run"), 0, None)


def merge_runs(
    job: Job, runs: Sequence[Path], n: int, engine: Engine, out: Writer, *, memory: int, until: int | None = None
) -> None:
    """Merge the runs of pairs of n documents into a store, by tasks; no pair is in two runs.

    Each task uses ``memory`` bytes, which the pairs of a single document can exceed. Only pairs whose first document is
    before ``until`` are taken.
    """
    n_first = n if until is None else until
    edges = _edges(runs, n_first, pairs_at_a_time(memory))
    tasks = [MergedRange(job, number, tuple(runs), *span) for number, span in enumerate(edges)]
    with ExitStack() as stack:
        appends = [stack.enter_context(out.growing(name, kind)) for name, kind in PAIR_COLUMNS.items()]
        for task, _ in zip(tasks, run_tasks(engine, merge_range, tasks, "merging pairs"), strict=True):
            merged = job.result("merged", task.number)
            for append, (name, kind) in zip(appends, PAIR_COLUMNS.items(), strict=True):
                append(merged.mapped(name, kind))


def _edges(runs: Sequence[Path], n: int, most: int) -> list[tuple[int, int]]:
    """Cut the first n documents into ranges that have a limited number of pairs."""
    width = max(1, n >> 16)
    bins = np.zeros(-(-n // width), np.int64)  # pairs by bin of the first document
    for run in runs:
        first = opened(run, "run").mapped("i", np.int32)
        bins += np.bincount(first[: np.searchsorted(first, np.int32(n))] // width, minlength=len(bins))
    return [(begin * width, min(end * width, n)) for begin, end in entry_spans(row_starts(bins), most)]


@resumable("merged")
def merge_range(task: MergedRange, out: Writer) -> None:
    """Write the pairs of a range of first documents, in order."""
    parts = []
    for path in task.runs:
        run = opened(path, "run", verify=is_remote(path))  # the caller has compared the checksums
        begin, end = np.searchsorted(run.mapped("i", np.int32), np.array([task.first, task.end], np.int32)).tolist()
        if begin < end:
            parts.append(_columns(run, begin, end))
    columns = concatenated(parts, tuple(PAIR_COLUMNS.values()))
    parts.clear()
    for name, values in zip(PAIR_COLUMNS, _in_order(*columns), strict=True):
        out.put(name, values)


def _columns(run: Reader, begin: int, end: int | None) -> PairArrays:
    """Read the pairs of a range of a run; of the whole one if it has no end."""
    end = run.length("i", np.int32) if end is None else end
    return (
        run.part("i", np.int32, begin, end),
        run.part("j", np.int32, begin, end),
        run.part("similarity", np.float64, begin, end),
    )


def _in_order(i: IntArray, j: IntArray, similarity: NDArray[np.float64]) -> PairArrays:
    """Return pairs sorted by (i, j); no pair occurs twice."""
    order = np.argsort(i.astype(np.int64) << 32 | j)
    return i[order].astype(np.int32), j[order].astype(np.int32), similarity[order]


def pairs_at_a_time(memory: int) -> int:
    """Return the number of pairs that are sorted or named within a memory."""
    return max(1, memory // BYTES_A_MERGED_PAIR)


def stored_pairs(store: Reader, n: int, overlap: Overlap | None = None) -> Pairs:
    """Return the pairs of n documents that a store has; its arrays are memory-mapped."""
    i, j, similarity = (store.mapped(name, kind) for name, kind in PAIR_COLUMNS.items())
    return Pairs(i, j, similarity, n, counters=store.facts.get("counters", {}), overlap=overlap)
