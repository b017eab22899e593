"""The exact join of a store that does not fit into memory: each pair of blocks of its rows is compared by a task.

Rows are stored in order of length. They are folded and get their prefixes once, see
`spotsigs.outofcore.folded_rows`. A block is a run of the files of folded rows whose index fits into the memory of a
task. Two blocks whose lengths differ by more than the threshold allows are not compared: these are the partitions by
length of section 4.2 of the paper, at the size of a machine. A task maps the files of two blocks, probes the index of
the first one with the rows of the second one, and writes their pairs, so that it can run again on any worker, and
completed tasks are skipped.

Documents that are added to a store have blocks of their own, which are compared with each other and with the blocks of
old documents. No two old documents are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.parallel import all_cores
from spotsigs.errors import as_tau, require
from spotsigs.matching import prefix_kernels as kernels
from spotsigs.matching.prefix_index import as_units, full_index, units_for_longer
from spotsigs.matching.prefix_kernels import Indexed
from spotsigs.outofcore.folded_rows import (
    FoldedFile,
    FoldedRows,
    RowJob,
    concatenated_rows,
    fold,
    forget,
    last_made,
    read_folded,
)
from spotsigs.outofcore.pair_files import (
    LEAST_PAIRS,
    merge_runs,
    pairs_at_a_time,
    read_runs,
    run_path,
    stored_pairs,
    write_runs,
)
from spotsigs.records import BYTES_A_PAIR, Overlap, PairArrays, Pairs, require_listable
from spotsigs.storage.locations import absolute, as_path
from spotsigs.storage.store import Writer, claim, entry_spans, fingerprint, open_vectors, remove_tree
from spotsigs.storage.tasks import JOB, resumable, run_tasks
from spotsigs.workers.engines import Engine

BYTES_A_COUNT = 4
"""Bytes of an entry of a block in addition to its id."""

BYTES_A_TOKEN = 44
"""Bytes of a token of a prefix: itself, its posting, its list, and the bits of the index."""

BYTES_A_ROW = 80
"""Bytes of a row."""


class RowBlock(NamedTuple):
    """New or old documents: some files of their rows, and their least and greatest length."""

    files: tuple[FoldedFile, ...]
    new: bool
    shortest: int
    longest: int


class PairOfBlocks(NamedTuple):
    """A task: two blocks, or a block and itself, and the threads that compare them."""

    job: RowJob
    number: int
    a: RowBlock
    b: RowBlock
    threads: int


class SpreadRuns(NamedTuple):
    """A task: the pairs that exact duplicates add to the pairs of some runs.

    Without runs, these are the pairs of two documents that are exact duplicates of each other.
    """

    job: RowJob
    number: int
    runs: tuple[Path, ...]


def join_store(
    store: str | Path,
    folder: str | Path,
    tau: float,
    engine: Engine,
    *,
    memory: int,
    new_from: int = 0,
    crossed: bool = False,
) -> Pairs:
    """Find all pairs of a store with multiset Jaccard similarity at least tau, and the pairs of exact duplicates.

    The vectors are in ``store``, which all workers can read, and the pairs are written below ``folder``; a call
    with the same arguments reuses complete results. Each task uses ``memory`` bytes, unless a single row exceeds them.
    Only pairs with a document of at least the number ``new_from`` are listed; if ``crossed``, only those with a
    document before that number as well.

    Returns
    -------
    Pairs
        The pairs of all rows, memory-mapped, with the counters ``blocks``, ``tasks``, ``postings``, ``candidates`` and
        ``rows``, those that can have a partner.

    Raises
    ------
    InputError
        If tau is out of range, the folder contains the pairs of another join, or there are too many pairs.
    """
    tau, folder, stored = as_tau(tau), as_path(folder), open_vectors(store)
    facts: dict[str, Any] = {"checksum": fingerprint(store), "tau": tau, "new_from": new_from, "memory": memory}
    require(
        not claim(folder, JOB, facts | {"crossed": crossed}),
        f"{folder} contains the pairs of another join; give another path or delete it",
    )
    job = RowJob(store=absolute(store), folder=absolute(folder), **facts)
    until = new_from if crossed else None
    job.checkpoint("pairs", work=lambda out: _join_pairs(job, engine, out, stored.exact_duplicates.any, until))
    forget()
    for name in ("joined", "spread", "merged", "runs", "folded"):
        remove_tree(folder / name)
    return stored_pairs(job.result("pairs"), len(stored), Overlap(stored.compared_lengths()))


def _join_pairs(job: RowJob, engine: Engine, out: Writer, duplicates: bool, until: int | None) -> None:
    """Run all tasks, and write the pairs and the counters."""
    files = fold(job, engine)
    blocks = cut_blocks(files, memory=job.memory, bytes_an_entry=job.ids.itemsize + BYTES_A_COUNT)
    pairs = pairs_of_blocks(blocks, job.tau)
    threads = max(engine.processes // max(len(pairs), 1), 1)
    tasks = [PairOfBlocks(job, number, a, b, threads) for number, (a, b) in enumerate(pairs)]
    counters = {"blocks": len(blocks), "tasks": len(tasks), "rows": sum(file.rows for file in files)}
    found, runs = 0, list[tuple[Path, ...]]()
    for task, facts in zip(tasks, run_tasks(engine, join_blocks, tasks, "joining", rows=counters["rows"]), strict=True):
        found += facts["pairs"]
        require_listable(found, on_disk=True)
        runs.append(_runs_of(job, "joined", task.number, facts["runs"]))
        for name, value in facts["counters"].items():
            counters[name] = counters.get(name, 0) + value
    if duplicates:
        spread = [SpreadRuns(job, number, of) for number, of in enumerate([(), *filter(None, runs)])]
        done = run_tasks(engine, spread_runs, spread, "pairs of exact duplicates")
        for one, facts in zip(spread, done, strict=True):
            found += facts["pairs"]
            require_listable(found, on_disk=True)
            runs.append(_runs_of(job, "spread", one.number, facts["runs"]))
    n = len(job.vectors().array("rows", np.int64))
    merge_runs(job, [run for of in runs for run in of], n, engine, out, memory=job.memory, until=until)
    out.facts["counters"] = counters


def _runs_folder(job: RowJob, kind: str, task: int) -> Path:
    return job.path("runs", f"{kind}-{task:08d}")


def _runs_of(job: RowJob, kind: str, task: int, count: int) -> tuple[Path, ...]:
    return tuple(run_path(_runs_folder(job, kind, task), number) for number in range(count))


@resumable("spread")
def spread_runs(task: SpreadRuns, out: Writer) -> None:
    """Write the pairs that exact duplicates add to the pairs of some runs."""
    job = task.job
    duplicates = open_vectors(job.store).exact_duplicates
    limits = {"most": pairs_at_a_time(job.memory // 4), "new_from": job.new_from}
    chunks = duplicates.pairs_across(read_runs(task.runs), **limits) if task.runs else duplicates.pairs_within(**limits)
    out.facts.update(write_runs(_runs_folder(job, "spread", task.number), chunks, memory=job.memory)._asdict())


def cut_blocks(files: Sequence[FoldedFile], *, memory: int, bytes_an_entry: int) -> list[RowBlock]:
    """Group files of new rows and files of old rows into blocks whose index fits into the memory of a task."""
    blocks = []
    for new in (True, False):
        group = [file for file in files if file.new == new]
        costs = [
            file.entries * bytes_an_entry + file.tokens * BYTES_A_TOKEN + file.rows * BYTES_A_ROW for file in group
        ]
        for start, stop in entry_spans(row_starts(costs), memory - memory // 4):  # the rest is for pairs
            some = tuple(group[start:stop])
            blocks.append(RowBlock(some, new, some[0].shortest, some[-1].longest))
    return blocks


def pairs_of_blocks(blocks: Sequence[RowBlock], tau: float) -> list[tuple[RowBlock, RowBlock]]:
    """Return the pairs of blocks, each also with itself, that can have a pair of rows which counts."""
    return [
        (a, b)
        for k, a in enumerate(blocks)
        for b in blocks[k:]
        if (a.new or b.new) and (a.longest / b.shortest >= tau and b.longest / a.shortest >= tau)
    ]


@resumable("joined")
def join_blocks(task: PairOfBlocks, out: Writer) -> None:
    """Write the similar pairs of two blocks as runs."""
    job, counters = task.job, {"postings": 0, "candidates": 0}
    chunks = _pairs_of(task, min(task.threads, all_cores()), counters)
    runs = write_runs(_runs_folder(job, "joined", task.number), chunks, memory=job.memory)
    out.facts.update(runs._asdict(), counters=counters)


def _pairs_of(task: PairOfBlocks, threads: int, counters: dict[str, int]) -> Iterator[PairArrays]:
    """Yield the pairs of documents of two blocks, about as many at a time as a run has."""
    most = max(task.job.memory // 4 // BYTES_A_PAIR, LEAST_PAIRS)
    job, ordered = task.job, task.a.new == task.b.new
    index, indexed = last_made((job, task.a, ordered), lambda: _index_of(job, task.a, ordered=ordered))
    parts = [indexed] if task.a == task.b else (read_folded(job, file) for file in task.b.files)
    for part in parts:
        for i, j, similarity in _pairs_within(index, part, task, threads, most, counters):
            one, other = part.documents[i], indexed.documents[j]
            yield np.minimum(one, other), np.maximum(one, other), similarity


def _pairs_within(
    index: Indexed, part: FoldedRows, task: PairOfBlocks, threads: int, most: int, counters: dict[str, int]
) -> Iterator[PairArrays]:
    """Yield the pairs of rows of a part and indexed rows."""
    edges = np.linspace(0, len(part.documents), threads + 1).astype(np.int64).tolist()
    size, own = most // threads + 2 * len(index.units.row_of), task.a == task.b

    def search(span: tuple[int, int]) -> tuple[tuple[int, int], PairArrays, int, int]:
        out = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size)
        begin, n, postings, candidates = kernels.find_pairs(
            part.rows, part.repeated, *span, index, own, task.job.tau, out
        )
        return (begin, span[1]), (out[0][:n], out[1][:n], out[2][:n]), postings, candidates

    spans = list(pairwise(edges))
    with ThreadPoolExecutor(threads) as pool:
        while spans := [(begin, end) for begin, end in spans if begin < end]:
            for k, (span, pairs, postings, candidates) in enumerate(pool.map(search, spans)):
                spans[k] = span
                counters["postings"] += postings
                counters["candidates"] += candidates
                if len(pairs[0]):
                    yield pairs


def _index_of(job: RowJob, block: RowBlock, *, ordered: bool) -> tuple[Indexed, FoldedRows]:
    """Return the index of a block and its rows; if ``ordered``, for partners that are not shorter."""
    folded = concatenated_rows([read_folded(job, file) for file in block.files])
    listed = units_for_longer(folded.rows, job.tau) if ordered else None
    n_signatures = int(job.vectors().facts["n_signatures"])
    return full_index(as_units(folded.rows), folded.rows, n_signatures, listed=listed), folded
