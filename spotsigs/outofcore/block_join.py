"""The exact join of a store that does not fit into memory: the join in memory of each pair of blocks of its rows.

Rows are stored in order of length. A block is a range of them that fits, with another block, into the memory of a task.
Two blocks whose lengths differ by more than the threshold allows are not compared: these are the partitions by length
of section 4.2 of the paper, at the size of a machine. A task reads its two blocks and writes their pairs, so that it
can run again on any worker, and completed tasks are skipped.

Documents that are added to a store have blocks of their own, which are compared with each other and with the blocks of
old documents. No two old documents are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.parallel import all_cores, renumbered
from spotsigs.errors import InputError, as_tau, require
from spotsigs.matching.join_driver import LONGEST, weight_to_share
from spotsigs.matching.join_kernels import Rows, fold_unshared, folded_sizes
from spotsigs.matching.prefix_join import join, self_join, some_rows
from spotsigs.outofcore.pair_files import PairFiles, write_pairs
from spotsigs.records import (
    BYTES_A_PAIR,
    Overlap,
    PairArrays,
    RowNumbers,
    TooManyPairsError,
    Vectors,
    require_listable,
    unchecked,
)
from spotsigs.storage.locations import absolute, as_path
from spotsigs.storage.store import Reader, Writer, claim, entry_spans, fingerprint, open_vectors, opened, remove_tree
from spotsigs.storage.tasks import JOB, Job, resumable, run_tasks
from spotsigs.workers.engines import Engine

BYTES_AN_ENTRY = 28
"""Bytes that a join uses for each entry: ids, their numbers, counts, and tables of signatures."""

BYTES_A_TOKEN = 5
"""Bytes that it uses for each unit of weight: prefixes and tables of tokens."""

BYTES_A_ROW = 96
"""Bytes that it uses for each row."""

SPAN = 2**21
"""Entries that are read at once, before those of no use are dropped."""

SPANS = 4
"""Spans whose entries one task counts."""

NEVER = 2**62
"""Weight that no row has."""


@dataclass(frozen=True, kw_only=True)
class JoinJob(Job):
    """A join of the vectors at the path ``store`` with the fingerprint ``checksum``.

    Attributes
    ----------
    tau : float
        Similarity threshold.
    new_from : int
        Only pairs with a document of at least this number are reported.
    memory : int
        Bytes that one task may use.
    """

    store: str
    checksum: str
    tau: float
    new_from: int
    memory: int

    def vectors(self) -> Reader:
        """Open the store."""
        return opened(self.store, "vectors")

    def pairs_path(self, task: int, number: int) -> Path:
        """Return the path of a store of pairs of a task."""
        return self.path(f"{task:08d}-{number:04d}")


class BlockOfRows(NamedTuple):
    """The new or the old documents among the rows ``begin:end`` of the store, and their least and greatest length."""

    begin: int
    end: int
    new: bool
    shortest: int
    longest: int


class RowSpan(NamedTuple):
    """A task: the rows ``begin:end`` of the store."""

    job: JoinJob
    number: int
    begin: int
    end: int


class PairOfBlocks(NamedTuple):
    """A task: two blocks, or a block and itself, and the threads that compare them."""

    job: JoinJob
    number: int
    a: BlockOfRows
    b: BlockOfRows
    threads: int


def join_store(
    store: str | Path, folder: str | Path, tau: float, engine: Engine, *, memory: int, new_from: int = 0
) -> PairFiles:
    """Find all pairs of a store with multiset Jaccard similarity at least tau.

    The vectors are those of ``store``, which all workers can read, and the pairs are written below ``folder``; a call
    with the same arguments reuses complete results. Each task uses ``memory`` bytes, unless a single row exceeds them.
    Only pairs with a document of at least the number ``new_from`` are generated.

    Returns
    -------
    PairFiles
        The pairs of all rows, with the counters ``blocks``, ``tasks``, ``postings``, ``candidates`` and
        ``verifications``.

    Raises
    ------
    InputError
        If tau is out of range, the folder contains the pairs of another join, or there are too many pairs.
    """
    tau, folder, stored = as_tau(tau), as_path(folder), open_vectors(store)
    facts: dict[str, Any] = {"checksum": fingerprint(store), "tau": tau, "new_from": new_from, "memory": memory}
    require(
        not claim(folder, JOB, facts), f"{folder} contains the pairs of another join; give another path or delete it"
    )
    job = JoinJob(store=absolute(store), folder=absolute(folder), **facts)
    done = _run_or_resume(job, engine)
    remove_tree(folder / "joined")
    remove_tree(folder / "sizes")
    folders = tuple(job.pairs_path(task, k) for task, count in enumerate(done["stores"]) for k in range(count))
    return PairFiles(folders, len(stored), counters=done["counters"], overlap=Overlap(stored.compared_lengths()))


def _run_or_resume(job: JoinJob, engine: Engine) -> dict[str, Any]:
    """Return the number of stores of pairs of each task, and the counters, of a complete join."""
    try:
        done = job.result("done").facts
        for task, count in enumerate(done["stores"]):
            for k in range(count):
                opened(job.pairs_path(task, k), "pairs")
    except InputError:
        remove_tree(job.path("done"))
        done = job.checkpoint("done", work=lambda out: out.facts.update(_join_blocks(job, engine)))
    return done


def _join_blocks(job: JoinJob, engine: Engine) -> dict[str, Any]:
    """Run the tasks; return the number of stores of pairs of each, and the counters."""
    reader = job.vectors()
    indptr, lengths = reader.array("indptr", np.int64), reader.array("lengths", np.int64)
    spans = [RowSpan(job, k, *span) for k, span in enumerate(entry_spans(indptr, max(len(indptr), SPANS * SPAN)))]
    counted = list(run_tasks(engine, count_entries, spans, "counting entries", rows=len(lengths)))
    sizes = [job.result("sizes", k).whole("sizes", np.int32) for k in range(len(counted))]
    blocks = cut_blocks(
        np.concatenate([np.empty(0, np.int32), *sizes]),
        lengths,
        reader.array("rows", np.int64),
        memory=job.memory,
        new_from=job.new_from,
    )
    del sizes
    pairs = pairs_of_blocks(blocks, job.tau)
    threads = max(engine.processes // max(len(pairs), 1), 1)
    tasks = [PairOfBlocks(job, number, a, b, threads) for number, (a, b) in enumerate(pairs)]
    stores, found, counters = list[int](), 0, {"blocks": len(blocks), "tasks": len(tasks)}
    for facts in run_tasks(engine, join_blocks, tasks, "joining", rows=len(lengths)):
        stores.append(facts["stores"])
        found += facts["pairs"]
        require_listable(found, on_disk=True)
        for name, value in facts["counters"].items():
            counters[name] = counters.get(name, 0) + value
    return {"stores": stores, "counters": counters}


def cut_blocks(
    sizes: NDArray[np.int32], lengths: NDArray[np.int64], documents: NDArray[np.int64], *, memory: int, new_from: int
) -> list[BlockOfRows]:
    """Cut the rows of a store into blocks of which two fit into the memory of a task.

    ``sizes`` are the entries that a task reads of each row, 0 for a row that it drops. The blocks
    of new documents come first. Rows that fit as a whole are one block.
    """
    costs = sizes.astype(np.int64) * BYTES_AN_ENTRY
    costs += np.minimum(lengths, LONGEST) * BYTES_A_TOKEN + BYTES_A_ROW
    costs[sizes == 0] = 0
    most = memory - memory // 4  # the rest is for pairs
    most = most if new_from == 0 and int(costs.sum()) <= most else most // 2
    blocks = []
    for new in (True, False) if new_from else (True,):
        kept = ((documents >= new_from) == new) & (sizes > 0)
        rows = np.flatnonzero(kept)
        for start, stop in entry_spans(row_starts(costs[kept]), most):
            begin, end = int(rows[start]), int(rows[stop - 1]) + 1
            blocks.append(BlockOfRows(begin, end, new, int(lengths[begin]), int(lengths[end - 1])))
    return blocks


def pairs_of_blocks(blocks: Sequence[BlockOfRows], tau: float) -> list[tuple[BlockOfRows, BlockOfRows]]:
    """Return the pairs of blocks, each also with itself, that can have a pair of rows which counts."""
    return [
        (a, b)
        for k, a in enumerate(blocks)
        for b in blocks[k:]
        if (a.new or b.new) and (a.longest / b.shortest >= tau and b.longest / a.shortest >= tau)
    ]


class _BlockRows(NamedTuple):
    """Rows in memory, and the document of each."""

    vectors: Vectors
    documents: NDArray[np.int64]

    def halves(self) -> tuple[_BlockRows, _BlockRows]:
        half = len(self.documents) // 2
        first, second = np.arange(half), np.arange(half, len(self.documents))
        return (
            _BlockRows(some_rows(self.vectors, first), self.documents[:half]),
            _BlockRows(some_rows(self.vectors, second), self.documents[half:]),
        )


@resumable("sizes")
def count_entries(task: RowSpan, out: Writer) -> None:
    """Write the entries that a block has of each row, 0 for a row that can have no partner."""
    reader, sizes = task.job.vectors(), [np.empty(0, np.int32)]
    for part in _spans(reader, task.begin, task.end):
        sizes.append(np.empty(len(part.documents), np.int32))
        folded_sizes(part.rows, part.classes, weight_to_share(np.maximum(part.lengths, 1), task.job.tau), sizes[-1])
    out.put("sizes", np.concatenate(sizes))


class _Span(NamedTuple):
    """Some rows of a store, with the classes of their signatures."""

    rows: Rows
    classes: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    documents: NDArray[np.int64]


def _spans(reader: Reader, begin: int, end: int) -> Iterator[_Span]:
    """Read some rows, a limited number of entries at a time."""
    indptr = reader.part("indptr", np.int64, begin, end + 1)
    for start, stop in entry_spans(indptr, SPAN):
        span = int(indptr[start]), int(indptr[stop])
        ids, counts = reader.part("ids", np.int32, *span), reader.part("counts", np.int32, *span)
        lengths, documents = (reader.part(name, np.int64, begin + start, begin + stop) for name in ("lengths", "rows"))
        rows = Rows(indptr[start : stop + 1] - indptr[start], ids, counts)
        yield _Span(rows, reader.part("classes", np.uint8, *span), lengths, documents)


@resumable("joined")
def join_blocks(task: PairOfBlocks, out: Writer) -> None:
    """Write the similar pairs of two blocks, in stores of limited size."""
    job = task.job
    a = _first_block(job, task.a)
    b = None if task.a == task.b else read_block(job, task.b)
    counters: dict[str, int] = {}
    stores, found = 0, 0
    threads = min(task.threads, all_cores())
    for i, j, similarity in _pairs_within(
        a, b, job.tau, threads, max(job.memory // 4 // BYTES_A_PAIR, 2**10), counters
    ):
        found += len(i)
        require_listable(found, on_disk=True)
        if len(i):
            write_pairs(job.pairs_path(task.number, stores), i, j, similarity)
            stores += 1
    out.facts = {"stores": stores, "pairs": found, "counters": counters}


def _renumbered(vectors: Vectors) -> Vectors:
    """Number the signatures of a block, which are few of those of the store: tables have an entry for each number."""
    [ids], _ = renumbered([vectors.ids], 1 + int(vectors.ids.max(initial=-1)))
    columns = {"indptr": vectors.indptr, "ids": ids, "counts": vectors.counts, "lengths": vectors.lengths}
    return unchecked(Vectors, **columns, doc_ids=vectors.doc_ids, vocabulary=None)


_FIRST: dict[tuple[JoinJob, BlockOfRows], _BlockRows] = {}
"""The first block of the last task, with which the next one mostly begins."""


def _first_block(job: JoinJob, block: BlockOfRows) -> _BlockRows:
    """Return a block that the next task is to use again, and free the previous one."""
    if (job, block) not in _FIRST:
        _FIRST.clear()
        _FIRST[job, block] = read_block(job, block)
    return _FIRST[job, block]


def read_block(job: JoinJob, block: BlockOfRows) -> _BlockRows:
    """Read the rows of a block that can have a partner, with one entry for all signatures that no other row has."""
    parts: list[Rows] = []
    documents, lengths = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for part in _spans(job.vectors(), block.begin, block.end):
        least = weight_to_share(np.maximum(part.lengths, 1), job.tau)
        least[(part.documents >= job.new_from) != block.new] = NEVER
        kept, whole = np.empty(len(least), np.bool_), part.rows
        folded = Rows(np.empty_like(whole.indptr), np.empty_like(whole.ids), np.empty_like(whole.counts))
        n_rows, n = fold_unshared(whole, part.classes, least, kept, folded)
        parts.append(Rows(folded.indptr[: n_rows + 1], folded.ids[:n].copy(), folded.counts[:n].copy()))
        documents.append(part.documents[kept])
        lengths.append(part.lengths[kept])
    vectors = unchecked(
        Vectors,
        indptr=row_starts(np.concatenate([np.diff(part.indptr) for part in parts])),
        ids=np.concatenate([part.ids for part in parts]),
        counts=np.concatenate([part.counts for part in parts]),
        lengths=np.concatenate(lengths),
        doc_ids=RowNumbers(sum(map(len, lengths))),
        vocabulary=None,
    )
    return _BlockRows(vectors, np.concatenate(documents))


def _pairs_within(
    a: _BlockRows, b: _BlockRows | None, tau: float, threads: int, most: int, counters: dict[str, int]
) -> Iterator[PairArrays]:
    """Yield the pairs of documents of two blocks, or of one; blocks with more pairs than fit are cut into halves."""
    try:
        if b is None:
            found: Any = self_join(_renumbered(a.vectors), tau, threads=threads, most=most)
        else:
            found = join(a.vectors, b.vectors, tau, threads=threads, most=most)
    except TooManyPairsError:
        if b is None:
            one, other = a.halves()
            parts = [(one, None), (other, None), (one, other)]
        elif len(a.documents) >= len(b.documents):
            parts = [(half, b) for half in a.halves()]
        else:
            parts = [(a, half) for half in b.halves()]
        for part in parts:
            yield from _pairs_within(*part, tau, threads, most, counters)
        return
    for name in ("postings", "candidates", "verifications"):
        counters[name] = counters.get(name, 0) + found.counters[name]
    one, other = a.documents[found.i], (a if b is None else b).documents[found.j]
    yield np.minimum(one, other), np.maximum(one, other), found.similarity
