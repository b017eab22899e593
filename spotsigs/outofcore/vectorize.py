"""From segments to a store of vectors, within a memory budget: document frequencies, filter, order by length.

Three rounds of tasks, see `spotsigs.storage.tasks`:

1. `scatter_hashes`: the distinct hashes of a batch of segments, ascending, with their frequencies, by range of
   hashes.
2. `tally_hashes`: the hashes of a range from all batches; those inside the IDF band are its vocabulary.
3. `number_rows`: the rows of a batch with the ids of their signatures and the classes of their frequencies, by length.

A last task, `lay_out`, merges the rows of all batches by length, and concatenates the results of `tally_hashes`. The
vectors do not depend on batches and ranges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.parallel import begins, concatenated, gather
from spotsigs.errors import InputError
from spotsigs.matching.bounds import rarity_classes
from spotsigs.matching.prefix_kernels import MOST_SIGNATURES
from spotsigs.records import Signatures
from spotsigs.signatures.blocks import Blocks
from spotsigs.signatures.idf import IdfFilter
from spotsigs.storage.exact_duplicates import ExactDuplicates
from spotsigs.storage.identity import identity
from spotsigs.storage.locations import absolute, as_path
from spotsigs.storage.store import (
    Reader,
    StoredVectors,
    Writer,
    entry_spans,
    fingerprint,
    open_vectors,
    remove_tree,
    writing,
)
from spotsigs.storage.tasks import LEAST_ENTRIES, Job, in_the_making, resumable, run_tasks, task_size
from spotsigs.workers.engines import Engine, Serial

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}

LAYOUT = 2
"""Version of the arrays of vectors; vectors of another version are built again."""

MOST_NARROW = 2**31 - 1
"""Most signatures whose ids are int32; if there are more, all ids are int64."""

BYTES_A_DOCUMENT = 64  # of the calling process: checksums, or hashes of ids, and their order
BYTES_A_HASH = 48  # of `tally_hashes`, for each hash of a batch: hash, frequency, order, sorted copies and sums
BYTES_AN_ENTRY = 64  # of other tasks, for each entry and each row: the entry, its row, its index and temporaries

_SERIAL = Serial()


def parse_memory(text: str | int) -> int:
    """Return a memory budget in bytes.

    Parameters
    ----------
    text : str or int
        A number with a unit, such as ``2GB`` (10^9 bytes each) or ``512 MiB`` (2^20 each); without one, bytes.

    Examples
    --------
    >>> parse_memory("2GB"), parse_memory("512 MiB")
    (2000000000, 536870912)

    Raises
    ------
    InputError
        If the text is no size.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", str(text).lower())
    if match is None or match[2] not in _UNITS:
        raise InputError(f"memory must be a size such as 2GB or 512MiB, got {text!r}")
    return int(float(match[1]) * _UNITS[match[2]])


def build_vectors(
    folder: str | Path,
    segments: Blocks,
    idf_filter: IdfFilter,
    *,
    memory: int,
    engine: Engine = _SERIAL,
    sets: bool = False,
    exact_duplicates: ExactDuplicates | None = None,
    facts: Mapping[str, Any] | None = None,
    wide: bool = False,
) -> StoredVectors:
    """Filter the signatures of a collection, sort the documents by length, and write them as a store.

    `IdfFilter` in memory makes the same rows, in another order; with ``sets``, every count is 1. Each task uses
    ``memory`` bytes. Frequencies are counted over the documents that are no `exact_duplicates`; these
    become empty rows. The manifest has ``facts`` in addition. A stopped call with the same arguments is resumed. Ids of
    signatures are int64 if there are too many for int32, or if ``wide``.

    Raises
    ------
    InputError
        If there are too many signatures.
    """
    sizes, entries = segments.sizes(), segments.entries()
    exact_duplicates = ExactDuplicates.none(int(sizes.sum())) if exact_duplicates is None else exact_duplicates
    folder = as_path(folder)
    job = VectorJob(
        folder=absolute(in_the_making(folder)),
        idf_filter=idf_filter,
        sets=sets,
        documents=int(np.count_nonzero(exact_duplicates.distinct)),
        memory=memory,
        ranges=max(1, ceil(int(entries.sum()) / _task_size(entries, memory // BYTES_A_HASH))),
        wide=wide,
    )
    _claim(job, segments, exact_duplicates)
    compared = exact_duplicates.distinct if exact_duplicates.any else None
    batches = list(_segment_batches(job, segments.folders, compared, sizes, entries))
    _find_vocabulary(job, batches, engine)
    list(run_tasks(engine, number_rows, batches, "numbering", rows=job.documents))
    job.checkpoint("duplicates", work=partial(_write_duplicates, exact_duplicates))
    folders = tuple(map(absolute, segments.folders))
    last = Layout(job, absolute(folder), folders, segments.reference, len(batches), dict(facts or {}))
    list(run_tasks(engine, lay_out, [last], "ordering", rows=job.documents))
    remove_tree(job.path())
    return open_vectors(folder)


def _write_duplicates(exact_duplicates: ExactDuplicates, out: Writer) -> None:
    out.put("content", exact_duplicates.content)
    out.put("representatives", exact_duplicates.representatives)


def _task_size(entries: NDArray[np.int64], most: int) -> int:
    """Return the number of entries of a task, at most a given number, and so many that int32 numbers them."""
    return task_size(int(entries.sum()), LEAST_ENTRIES, min(most, 2**31 - 1))


@dataclass(frozen=True, kw_only=True)
class VectorJob(Job):
    """Settings of all tasks."""

    idf_filter: IdfFilter
    sets: bool
    documents: int  # number of distinct documents, by which frequencies are divided
    memory: int  # bytes that one task may use
    ranges: int  # number of ranges of hashes, of equal width
    wide: bool  # ids are int64 in any case

    def bases(self) -> NDArray[np.int64]:
        """Return the id of the first signature of each range, and the number of all."""
        bases: NDArray[np.int64] = self.result("bases").whole("bases", np.int64)
        return bases

    def entries(self) -> dict[str, Any]:
        """Return the types of the arrays with a value for each entry of the vectors."""
        ids = np.int64 if self.wide or self.bases()[-1] > MOST_NARROW else np.int32
        return {"ids": ids, "counts": np.int32, "classes": np.uint8}


class VectorBatch(NamedTuple):
    """A task: some segments, the number of their first document, and the documents that are compared."""

    job: VectorJob
    number: int
    first: int
    folders: tuple[str, ...]
    rows: NDArray[np.bool_] | None

    def blocks(self, *columns: str) -> Iterator[Signatures]:
        """Yield some columns of the segments, without the signatures of documents that are not compared."""
        first = 0
        for block in Blocks(tuple(map(as_path, self.folders))).read(*columns):
            last = first + len(block)
            yield block if self.rows is None else block.keep_rows(self.rows[first:last])
            first = last


class HashRange(NamedTuple):
    """A task: a range of hashes from all batches."""

    job: VectorJob
    number: int
    batches: int


class Layout(NamedTuple):
    """The last task: all batches, and the segments with the ids of the documents."""

    job: VectorJob
    folder: str
    segments: tuple[str, ...]
    reference: int
    batches: int
    facts: dict[str, Any]


def _claim(job: VectorJob, segments: Blocks, exact_duplicates: ExactDuplicates) -> None:
    """Write the identity of the input of the tasks; delete results with another one."""
    made_of = "".join(map(fingerprint, segments.folders)).encode() + exact_duplicates.representatives.tobytes()
    facts = {
        "of": xxhash.xxh3_128_hexdigest(made_of),
        "settings": identity((job.idf_filter, job.sets)),
        "memory": job.memory,
        "layout": LAYOUT,
        "wide": job.wide,
    }
    job.begin(facts)


def _segment_batches(
    job: VectorJob,
    folders: Sequence[Path],
    compared: NDArray[np.bool_] | None,
    sizes: NDArray[np.int64],
    entries: NDArray[np.int64],
) -> Iterator[VectorBatch]:
    """Group segments up to a number of entries and documents; a larger one is a batch of its own."""
    weights = entries + sizes
    most = _task_size(weights, job.memory // (2 * BYTES_AN_ENTRY))
    before = row_starts(weights)
    rows = row_starts(sizes)
    for number, (start, stop) in enumerate(entry_spans(before, most)):
        first, last = int(rows[start]), int(rows[stop])
        counted = None if compared is None else compared[first:last]
        yield VectorBatch(job, number, first, tuple(map(absolute, folders[start:stop])), counted)


def _find_vocabulary(job: VectorJob, batches: Sequence[VectorBatch], engine: Engine) -> None:
    """Run the rounds that find the vocabulary; write the id of the first signature of each range."""
    list(run_tasks(engine, scatter_hashes, batches, "counting", rows=job.documents))
    ranges = [HashRange(job, k, len(batches)) for k in range(job.ranges)]
    sizes = [facts["signatures"] for facts in run_tasks(engine, tally_hashes, ranges, "filtering")]
    ends = row_starts(np.array(sizes, np.int64))
    if ends[-1] > MOST_SIGNATURES:
        remove_tree(job.path())
        raise InputError(
            f"{ends[-1]:,} distinct signatures are inside the band, and their numbers end at {MOST_SIGNATURES:,}; "
            "a narrower IDF band, such as idf_max=0.85, drops the rare ones"
        )
    job.checkpoint("bases", work=lambda out: out.put("bases", ends))


@resumable("scattered")
def scatter_hashes(batch: VectorBatch, out: Writer) -> None:
    """Write the distinct hashes of a batch, and the index of the hash of each entry."""
    hashes = np.concatenate([np.array(block.hashes) for block in batch.blocks("hashes")])  # a mapped file is open
    order = np.argsort(hashes)
    hashes = hashes[order]
    is_first = begins(hashes)
    entries = np.empty(len(order), np.int32)
    entries[order] = np.cumsum(is_first, dtype=np.int32) - 1
    del order
    starts = np.flatnonzero(is_first)
    distinct = hashes[starts]
    ranges = batch.job.ranges
    edges = np.searchsorted(distinct, np.array([2**64 * k // ranges for k in range(ranges)], np.uint64))
    out.put("hashes", distinct)
    out.put("frequencies", np.diff(np.append(starts, len(hashes))).astype(np.int32))
    out.put("entries", entries)
    out.put("edges", np.append(edges, len(distinct)).astype(np.int64))


@resumable("tallied")
def tally_hashes(task: HashRange, out: Writer) -> None:
    """Write the vocabulary of a range and the classes of its frequencies; return its size."""
    kinds: dict[str, Any] = {"hashes": np.uint64, "frequencies": np.int32}
    columns: list[tuple[NDArray[Any], ...]] = []
    for number in range(task.batches):
        scattered = task.job.result("scattered", number)
        span = scattered.part("edges", np.int64, task.number, task.number + 2).tolist()
        columns.append(tuple(scattered.part(name, kind, *span) for name, kind in kinds.items()))
    hashes, frequencies = concatenated(columns, tuple(kinds.values()))
    del columns
    order = np.argsort(hashes)
    hashes, frequencies = hashes[order], frequencies[order]
    starts = np.flatnonzero(begins(hashes))
    total = np.add.reduceat(frequencies, starts, dtype=np.int64) if len(starts) else np.empty(0, np.int64)
    del frequencies, order
    kept = task.job.idf_filter.keeps(total, task.job.documents)
    out.put("vocabulary", hashes[starts[kept]])
    del hashes, starts
    out.put("classes", rarity_classes(total[kept]))
    out.facts = {"signatures": int(np.count_nonzero(kept))}


@resumable("numbered")
def number_rows(batch: VectorBatch, out: Writer) -> None:
    """Write the rows of a batch by length, and the offsets of each length."""
    job = batch.job
    ids, classes = _numbers_of(batch)
    columns = [(np.diff(block.indptr), np.array(block.counts)) for block in batch.blocks("counts")]
    sizes, counts = (np.concatenate(column) for column in zip(*columns, strict=True))
    del columns
    kept, size, lengths = job.idf_filter.long_enough(sizes, ids >= 0, counts)
    lengths = size if job.sets else lengths
    counts = np.ones(int(size.sum()), np.int32) if job.sets else counts[kept]
    order = np.argsort(lengths, kind="stable")
    entries: tuple[NDArray[Any], ...] = (ids[kept], counts, classes[kept])
    for name, values in zip(job.entries(), entries, strict=True):
        out.put(name, _ordered(values, size, order))
    out.put("starts", row_starts(size[order]))
    out.put("lengths", lengths[order])
    out.put("rows", batch.first + order)


def _numbers_of(batch: VectorBatch) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Return the id of the signature of each entry, -1 if it is dropped, and the class of its frequency."""
    job = batch.job
    scattered = job.result("scattered", batch.number)
    edges = scattered.whole("edges", np.int64).tolist()
    bases = job.bases()
    ids, classes = np.full(edges[-1], -1, job.entries()["ids"]), np.zeros(edges[-1], np.uint8)
    for k, (first, last) in enumerate(pairwise(edges)):
        tallied = job.result("tallied", k)
        hashes = scattered.part("hashes", np.uint64, first, last)
        indices, known = look_up(hashes, tallied.whole("vocabulary", np.uint64))
        ids[first:last][known] = indices[known] + bases[k].astype(ids.dtype)
        classes[first:last][known] = tallied.whole("classes", np.uint8)[indices[known]]
    entries = scattered.whole("entries", np.int32)
    return ids[entries], classes[entries]


def _ordered(values: NDArray[Any], sizes: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[Any]:
    """Return the entries of rows of some sizes with the rows in another order."""
    ordered = np.empty_like(values)
    gather(row_starts(sizes), values, order, row_starts(sizes[order]), ordered)
    return ordered


def lay_out(task: Layout) -> None:
    """Write the store of vectors: merge the rows of all batches, and concatenate the vocabulary of all ranges."""
    job = task.job
    with writing(as_path(task.folder), "vectors") as store:
        _write_rows(store, job, [job.result("numbered", number) for number in range(task.batches)])
        words = [job.result("tallied", k) for k in range(job.ranges)]
        with store.growing("vocabulary", np.uint64) as append:
            for word in words:
                append(word.whole("vocabulary", np.uint64))
        store.strings("doc_ids", Blocks(tuple(map(as_path, task.segments)), task.reference).doc_ids)
        duplicates = job.result("duplicates")
        for name in ("content", "representatives"):
            store.put(name, duplicates.whole(name, np.int32))
        n_signatures = sum(int(word.facts["signatures"]) for word in words)
        rows = duplicates.length("content", np.int32)
        ids = np.dtype(job.entries()["ids"]).name
        store.facts |= {"rows": rows, "n_signatures": n_signatures, "ids": ids, **task.facts}


def _write_rows(store: Writer, job: VectorJob, numbered: Sequence[Reader]) -> None:
    """Merge the rows of all batches by length, some rows of similar length at a time."""
    entries = job.entries()
    kinds: dict[str, Any] = {"rows": np.int64, "lengths": np.int64, "indptr": np.int64, **entries}
    with ExitStack() as stack:
        append = {name: stack.enter_context(store.growing(name, kind)) for name, kind in kinds.items()}
        end = np.zeros(1, np.int64)
        append["indptr"](end)
        for spans in _row_ranges(job, numbered):
            parts = [_rows_of(batch, *span, entries) for batch, span in zip(numbered, spans, strict=True)]
            rows, lengths, sizes, *columns = concatenated(parts, tuple(kinds.values()))
            parts.clear()
            order = np.argsort(lengths, kind="stable")
            ends = end + np.cumsum(sizes[order])
            ordered = (_ordered(values, sizes, order) for values in columns)
            for name, values in zip(kinds, (rows[order], lengths[order], ends, *ordered), strict=True):
                append[name](values)
            end = ends[-1:]


def _rows_of(numbered: Reader, first: int, last: int, kinds: Mapping[str, Any]) -> tuple[NDArray[Any], ...]:
    """Return the numbers, lengths, sizes and entries of some rows of a batch."""
    rows, lengths = (numbered.part(name, np.int64, first, last) for name in ("rows", "lengths"))
    starts = numbered.part("starts", np.int64, first, last + 1)
    columns = (numbered.part(name, kind, int(starts[0]), int(starts[-1])) for name, kind in kinds.items())
    return rows, lengths, np.diff(starts), *columns


def _row_ranges(job: VectorJob, numbered: Sequence[Reader]) -> Iterator[tuple[tuple[int, int], ...]]:
    """Cut the order of all rows, by length and then by batch, into ranges that fit into the budget.

    Each range is the first and the last row of each batch.
    """
    batches, none = len(numbered), np.empty(0, np.int64)
    lengths = [result.whole("lengths", np.int64) for result in numbered]
    order = np.argsort(np.concatenate([none, *lengths]), kind="stable")
    batch_of = np.repeat(np.arange(batches, dtype=np.int32), list(map(len, lengths)))[order]
    del lengths
    sizes = [np.diff(result.whole("starts", np.int64)) for result in numbered]
    costs = 1 + np.concatenate([none, *sizes])[order]  # a row, and its entries
    most = _task_size(costs, job.memory // (4 * BYTES_AN_ENTRY))
    del sizes, order
    begin = np.zeros(batches, np.int64)
    for first, last in entry_spans(row_starts(costs), most):
        end = begin + np.bincount(batch_of[first:last], minlength=batches)
        yield tuple(zip(begin.tolist(), end.tolist(), strict=True))
        begin = end


def look_up(hashes: NDArray[np.uint64], vocabulary: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the index of each hash in an ascending vocabulary, and whether it is there."""
    if not len(vocabulary):
        return np.zeros(len(hashes), np.int32), np.zeros(len(hashes), np.bool_)
    indices = np.minimum(np.searchsorted(vocabulary, hashes), len(vocabulary) - 1).astype(np.int32)
    return indices, vocabulary[indices] == hashes
