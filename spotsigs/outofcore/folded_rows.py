"""Rows of a store that can have a partner, folded and with their prefixes: written once, read by all tasks of a join.

A task reads a span of rows in order of length, drops those that share too little with all others, drops the signatures
that no other row has, and writes the prefixes of what remains, see `spotsigs.matching.prefix_kernels`. New and old rows
are written apart. Equal rows follow each other. Later tasks map these files.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.parallel import begins, gather
from spotsigs.matching import prefix_kernels as kernels
from spotsigs.matching.join_driver import weight_to_share
from spotsigs.matching.join_kernels import Rows
from spotsigs.matching.prefix_index import bounds_of, prefixed
from spotsigs.matching.prefix_kernels import Prefixed
from spotsigs.signatures.contained import NO_RULE, RemovalRule
from spotsigs.storage.store import Reader, Writer, entry_spans, opened, type_of_ids
from spotsigs.storage.tasks import Job, resumable, run_tasks
from spotsigs.workers.engines import Engine

SPAN = 2**21
"""Most entries that a task folds."""

BYTES_A_FOLDED = 64
"""Bytes that a task uses for each entry and each row that it folds."""

NEVER = 2**62
"""Weight that no row has."""

Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True)
class RowJob(Job):
    """Tasks on the vectors at the path ``store`` with the fingerprint ``checksum``."""

    store: str
    checksum: str
    tau: float  # similarity threshold
    new_from: int  # documents from this number on are new
    memory: int  # bytes that one task may use

    def vectors(self) -> Reader:
        """Open the store."""
        return opened(self.store, "vectors")

    @property
    def ids(self) -> np.dtype[Any]:
        """Type of the ids of signatures."""
        return type_of_ids(self.vectors())

    def rule(self) -> RemovalRule:
        """Return the rule by which pairs count: all do."""
        return NO_RULE

    @property
    def groups(self) -> tuple[bool, ...]:
        """Groups of rows: the new ones, and the old ones if there are any."""
        return (True, False) if self.new_from else (True,)


class RowSpan(NamedTuple):
    """A task: the rows ``begin:end`` of the store."""

    job: RowJob
    number: int
    begin: int
    end: int


class FoldedFile(NamedTuple):
    """The new or the old rows of a task, and their numbers."""

    number: int
    new: bool
    rows: int
    entries: int
    tokens: int
    shortest: int
    longest: int


class FoldedRows(NamedTuple):
    """Rows in ascending order of length, the document of each, and whether each equals the one before."""

    rows: Prefixed
    documents: NDArray[np.int64]
    repeated: NDArray[np.bool_]


def fold(job: RowJob, engine: Engine) -> list[FoldedFile]:
    """Run the tasks; return the files that have rows, in ascending order of length, the new ones first."""
    indptr = job.vectors().array("indptr", np.int64)
    most = max(min(SPAN, job.memory // BYTES_A_FOLDED), 1)
    tasks = [RowSpan(job, number, *span) for number, span in enumerate(entry_spans(indptr, most))]
    results = list(run_tasks(engine, fold_rows, tasks, "folding", rows=len(indptr) - 1))
    files = [FoldedFile(*file) for facts in results for file in facts["folded"]]
    return [file for new in job.groups for file in files if file.new == new]


@resumable("folded")
def fold_rows(task: RowSpan, out: Writer) -> None:
    """Write the rows of a span that can have a partner."""
    job, reader = task.job, task.job.vectors()
    indptr = reader.part("indptr", np.int64, task.begin, task.end + 1)
    span = slice(int(indptr[0]), int(indptr[-1]))
    ids, counts, classes = (
        reader.mapped(name, kind)[span]
        for name, kind in (("ids", job.ids), ("counts", np.int32), ("classes", np.uint8))
    )
    whole = Rows(indptr - indptr[0], ids, counts)
    lengths, documents = (reader.part(name, np.int64, task.begin, task.end) for name in ("lengths", "rows"))
    least = weight_to_share(np.maximum(lengths, 1), job.tau)
    files = []
    for new in job.groups:
        of_group = (documents >= job.new_from) == new
        kept, of_entries = np.empty(len(lengths), np.bool_), np.empty_like(classes)
        room = Rows(np.empty_like(whole.indptr), np.empty_like(whole.ids), np.empty_like(whole.counts))
        m, n = kernels.keep_shared(
            whole, classes, np.where(of_group & (lengths > 0), least, NEVER), kept, room, of_entries
        )
        if m:
            rows = Rows(room.indptr[: m + 1], room.ids[:n], room.counts[:n])
            files.append(
                _write_folded(job, out, task.number, new, rows, of_entries[:n], lengths[kept], documents[kept])
            )
    out.facts["folded"] = files


def _write_folded(
    job: RowJob,
    out: Writer,
    number: int,
    new: bool,
    rows: Rows,
    classes: NDArray[np.uint8],
    lengths: NDArray[np.int64],
    documents: NDArray[np.int64],
) -> FoldedFile:
    """Write rows with their prefixes, equal ones after each other."""
    hashes = np.empty(len(lengths), np.uint64)
    kernels.hash_rows(rows, hashes)
    repeated = np.zeros(len(lengths), np.bool_)
    if not begins(np.sort(hashes)).all():
        order = np.lexsort((hashes, lengths))
        sizes = np.diff(rows.indptr)
        starts = row_starts(sizes[order])
        columns: list[Any] = [np.empty_like(column) for column in (rows.ids, rows.counts, classes)]
        for column, ordered in zip((rows.ids, rows.counts, classes), columns, strict=True):
            gather(rows.indptr, column, order, starts, ordered)
        rows, classes = Rows(starts, columns[0], columns[1]), columns[2]
        lengths, documents = lengths[order], documents[order]
        kernels.mark_repeated(rows, lengths, repeated)
    with_prefixes = prefixed(rows, lengths, classes, job.tau, job.rule(), documents, threads=1)
    for name in ("indptr", "ids", "counts", "lengths", "starts", "tokens"):
        out.put(_array_name(name, new), getattr(with_prefixes, name))
    out.put(_array_name("documents", new), documents)
    out.put(_array_name("repeated", new), repeated)
    shortest, longest = int(lengths[0]), int(lengths[-1])
    return FoldedFile(number, new, len(lengths), len(rows.ids), len(with_prefixes.tokens), shortest, longest)


def _array_name(column: str, new: bool) -> str:
    return f"{'new' if new else 'old'}.{column}"


def read_folded(job: RowJob, file: FoldedFile) -> FoldedRows:
    """Map the rows of a file."""
    reader, columns = job.result("folded", file.number), dict[str, NDArray[Any]]()
    kinds: dict[str, Any] = {
        "indptr": np.int64,
        "ids": job.ids,
        "counts": np.int32,
        "lengths": np.int64,
        "starts": np.int64,
        "tokens": np.uint64,
        "documents": np.int64,
        "repeated": np.bool_,
    }
    for name, kind in kinds.items():
        columns[name] = reader.mapped(_array_name(name, file.new), kind)
    documents, repeated = columns.pop("documents"), columns.pop("repeated")
    shortest, shared, _ = bounds_of(columns["lengths"], job.tau)
    return FoldedRows(Prefixed(shortest=shortest, shared=shared, **columns), documents, repeated)


def concatenated_rows(parts: Sequence[FoldedRows]) -> FoldedRows:
    """Return the rows of several files, in memory."""
    if len(parts) == 1:
        return parts[0]
    rows = [part.rows for part in parts]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in rows])
        for name in ("ids", "counts", "lengths", "shortest", "shared", "tokens")
    }
    offsets: dict[str, Any] = {
        name: row_starts(np.concatenate([np.diff(getattr(part, name)) for part in rows]))
        for name in ("indptr", "starts")
    }
    documents, repeated = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("documents", "repeated")
    )
    return FoldedRows(Prefixed(**columns, **offsets), documents, repeated)


_LAST: dict[Hashable, Any] = {}
"""What the last task of this process has made, with which the next one mostly begins: the index of a block."""


def last_made(key: Hashable, make: Callable[[], Made]) -> Made:
    """Return what the last task has made, or make another in its place."""
    if key not in _LAST:
        forget()  # frees the memory before more is used
        _LAST[key] = make()
    made: Made = _LAST[key]
    return made


def forget() -> None:
    """Free what the last task has made."""
    _LAST.clear()
