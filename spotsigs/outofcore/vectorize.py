"""From segments to a store of vectors, within a memory budget: document frequencies, filter, order by length.

Four rounds of tasks, see `spotsigs.outofcore.resumable_tasks`:

1. `scatter`: the distinct hashes of a batch of segments, ascending, with their frequencies and the partition key of the
   first document that contains each, by range of hashes.
2. `tally`: the hashes of a range from all batches; those inside the IDF band are its vocabulary.
3. `number`: the rows of a batch with the ids and marks of their signatures, by length.
4. `gather`: the rows of some lengths from all batches.

The mark of a signature has the class of its frequency and its partition key, see
`spotsigs.outofcore.prefix_partition_kernels`. The calling process concatenates the results of `gather` and `tally`; it
stores a few numbers for each task and each length. The vectors do not depend on batches and ranges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.frequency_classes import rarity_classes
from spotsigs.engines import Engine, Serial
from spotsigs.errors import InputError, require
from spotsigs.exact_duplicates import Copies
from spotsigs.outofcore.resumable_tasks import Checkpoints, append_parts, run
from spotsigs.outofcore.segments import Segments
from spotsigs.signatures.idf import IdfFilter
from spotsigs.storage.identity import identity
from spotsigs.storage.locations import absolute, as_path, exists
from spotsigs.storage.store import (
    StoredVectors,
    Writer,
    claim,
    entry_spans,
    fingerprint,
    open_vectors,
    remove_tree,
    writing,
)

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}

_MADE_OF = "layout.json"

MOST_SIGNATURES = 2**31 - 1
"""Most signatures: their ids are int32."""

BYTES_A_DOCUMENT = 64  # of the calling process: checksums, or hashes of ids, and their order
BYTES_A_HASH = 48  # of `tally`, for each hash of a batch: hash, frequency, order, their sorted copies and the sums
BYTES_AN_ENTRY = 64  # of other tasks, for each entry and each row: the entry, its row, its index and temporaries

TASKS = 16
"""Least number of tasks of a round of a large collection, so that workers have equal work."""

_ENTRY: dict[str, Any] = {"ids": np.int32, "counts": np.int32, "marks": np.uint16}
"""Arrays with a value for each entry of the vectors."""

LEAST_ENTRIES = 2**18
"""Entries of a batch, or hashes of a range, below which another task would cost more than it saves."""


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
        If the text is no size of at least 64 MB.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", str(text).lower())
    if found is None or found[2] not in _UNITS:
        raise InputError(f"memory must be a size such as 2GB or 512MiB, got {text!r}")
    size = int(float(found[1]) * _UNITS[found[2]])
    require(size >= 64 * 10**6, f"memory must be at least 64MB, got {text!r}")
    return size


def build_vectors(
    folder: str | Path,
    segments: Segments,
    idf_filter: IdfFilter,
    *,
    memory: int,
    engine: Engine | None = None,
    sets: bool = False,
    copies: Copies | None = None,
    facts: Mapping[str, Any] | None = None,
) -> StoredVectors:
    """Filter the signatures of a collection and sort the documents by length.

    The rows are those of `IdfFilter` in memory, in another order. A stopped call with the same arguments is resumed.

    Parameters
    ----------
    folder : str or Path
        Path of the store.
    segments : Segments
        Signatures of the collection, which all workers can read.
    idf_filter : IdfFilter
        The signatures and documents that are compared.
    memory : int
        Bytes that one task may use.
    engine : Engine, optional
        Where the tasks run; in this process by default.
    sets : bool
        Count every signature once.
    copies : Copies, optional
        Exact duplicates: frequencies are counted over the other documents, and duplicates become empty rows.
    facts : mapping, optional
        Further facts of the store's manifest.

    Raises
    ------
    InputError
        If there are too many signatures.
    """
    sizes, entries = segments.sizes(), segments.entries()
    n = int(sizes.sum())
    copies = Copies.none(n) if copies is None else copies
    segments = segments.only(copies.distinct)
    folder, engine = as_path(folder), Serial() if engine is None else engine
    layout = Layout(
        folder=absolute(rounds_of(folder)),
        idf_filter=idf_filter,
        sets=sets,
        documents=int(np.count_nonzero(copies.distinct)),
        memory=memory,
        ranges=max(1, ceil(int(entries.sum()) / _share(entries, memory // BYTES_A_HASH))),
    )
    _claim(layout, segments, copies)
    batches = list(_batches(layout, segments, sizes, entries))
    ranges_of_lengths = _run_rounds(layout, batches, engine)
    with writing(folder, "vectors") as store:
        _concatenate(store, layout, ranges_of_lengths)
        store.strings("doc_ids", segments.doc_ids)
        store.strings("clusters", (name or "" for name in segments.clusters))
        store.put("content", copies.content)
        store.put("representatives", copies.representatives)
        store.facts |= {"rows": n, **(facts or {})}
    remove_tree(layout.path())
    return open_vectors(folder)


def rounds_of(folder: Path) -> Path:
    """Return the path of the results of the tasks that build a store."""
    return folder.parent / f"{folder.name}-in-the-making"


def _run_rounds(layout: Layout, batches: Sequence[Batch], engine: Engine) -> int:
    """Run all tasks; return the number of ranges of lengths."""
    _count(layout, batches, engine)
    list(run(engine, number, batches, "numbering"))
    tasks = [
        LengthRange(layout, k, len(batches), *edges) for k, edges in enumerate(_length_ranges(layout, len(batches)))
    ]
    list(run(engine, gather, tasks, "ordering"))
    return len(tasks)


def _share(entries: NDArray[np.int64], most: int) -> int:
    """Return the number of entries of a task, at most a given number."""
    return max(1, min(most, max(ceil(int(entries.sum()) / TASKS), LEAST_ENTRIES)))


@dataclass(frozen=True, kw_only=True)
class Layout(Checkpoints):
    """Settings of all tasks.

    Attributes
    ----------
    documents : int
        Number of distinct documents, by which frequencies are divided.
    memory : int
        Bytes that one task may use.
    ranges : int
        Number of ranges of hashes, of equal width.
    """

    idf_filter: IdfFilter
    sets: bool
    documents: int
    memory: int
    ranges: int


class Batch(NamedTuple):
    """A task: some segments, the number of their first document, and the documents that are compared."""

    layout: Layout
    number: int
    first: int
    folders: tuple[str, ...]
    rows: NDArray[np.bool_] | None

    def segments(self) -> Segments:
        """Return the signatures."""
        return Segments(tuple(map(as_path, self.folders)), self.rows)


class Range(NamedTuple):
    """A task: a range of hashes from all batches."""

    layout: Layout
    number: int
    batches: int


class LengthRange(NamedTuple):
    """A task: the rows between two edges; an edge is a length, and the first batch whose rows of it are after it."""

    layout: Layout
    number: int
    batches: int
    begin: tuple[int, int]
    end: tuple[int, int]


def _claim(layout: Layout, segments: Segments, copies: Copies) -> None:
    """Write the identity of the input of the tasks; delete results with another one."""
    made_of = "".join(map(fingerprint, segments.folders)).encode() + copies.representatives.tobytes()
    facts = {
        "of": xxhash.xxh3_128_hexdigest(made_of),
        "settings": identity((layout.idf_filter, layout.sets)),
        "memory": layout.memory,
    }
    folder = layout.path()
    if not exists(folder / _MADE_OF) or claim(folder, _MADE_OF, facts):
        remove_tree(folder)
        claim(folder, _MADE_OF, facts)


def _batches(
    layout: Layout, segments: Segments, sizes: NDArray[np.int64], entries: NDArray[np.int64]
) -> Iterator[Batch]:
    """Group segments up to a number of entries and documents; a larger one is a batch of its own."""
    weights = entries + sizes
    most = _share(weights, layout.memory // (2 * BYTES_AN_ENTRY))
    before = row_starts(weights)
    rows = row_starts(sizes)
    for number, (start, stop) in enumerate(entry_spans(before, most)):
        first, last = int(rows[start]), int(rows[stop])
        counted = None if segments.rows is None else segments.rows[first:last]
        yield Batch(layout, number, first, tuple(map(absolute, segments.folders[start:stop])), counted)


def _count(layout: Layout, batches: Sequence[Batch], engine: Engine) -> None:
    """Run the rounds that find the vocabulary; write the id of the first signature of each range."""
    list(run(engine, scatter, batches, "counting"))
    ranges = [Range(layout, k, len(batches)) for k in range(layout.ranges)]
    ends = np.cumsum([0, *run(engine, tally, ranges, "filtering")], dtype=np.int64)
    if ends[-1] > MOST_SIGNATURES:
        remove_tree(layout.path())
    require(
        int(ends[-1]) <= MOST_SIGNATURES,
        f"{ends[-1]:,} distinct signatures are inside the band, and their numbers end at {MOST_SIGNATURES:,}; "
        "a narrower IDF band, such as idf_max=0.85, drops the rare ones",
    )
    layout.checkpoint("bases", work=lambda out: out.put("bases", ends))


def scatter(batch: Batch) -> None:
    """Write the distinct hashes of a batch, and the index of the hash of each entry."""
    batch.layout.checkpoint("scattered", batch.number, work=lambda out: _scatter(batch, out))


def _scatter(batch: Batch, out: Writer) -> None:
    from spotsigs.outofcore import prefix_partition_kernels as kernels

    found = [(np.empty(0, np.int64), np.empty(0, np.uint64)), *(part.read()[:2] for part in batch.segments().parts())]
    sizes, hashes = (np.concatenate(column) for column in zip(*found, strict=True))
    del found
    order = np.argsort(hashes)
    hashes = hashes[order]
    begins = _begins(hashes)
    entries = np.empty(len(order), np.int32)
    entries[order] = np.cumsum(begins, dtype=np.int32) - 1
    del order
    starts = np.flatnonzero(begins)
    distinct = hashes[starts]
    ranges = batch.layout.ranges
    edges = np.searchsorted(distinct, np.array([2**64 * k // ranges for k in range(ranges)], np.uint64))
    out.put("hashes", distinct)
    out.put("frequencies", np.diff(np.append(starts, len(hashes))).astype(np.int32))
    out.put("entries", entries)
    partition_keys = np.empty(len(distinct), np.uint16)
    kernels.find_partition_keys(sizes, batch.first, entries, partition_keys)
    out.put("partition_keys", partition_keys)
    out.put("edges", np.append(edges, len(distinct)).astype(np.int64))


def _begins(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether each of ascending values differs from the one before."""
    return np.append(np.ones(min(len(values), 1), np.bool_), values[1:] != values[:-1])


def tally(task: Range) -> int:
    """Write the vocabulary of a range, its marks, and the dropped hashes; return its size."""
    return int(task.layout.checkpoint("tallied", task.number, work=lambda out: _tally(task, out))["signatures"])


def _tally(task: Range, out: Writer) -> None:
    from spotsigs.outofcore.prefix_partition_kernels import KEY_BITS

    kinds: dict[str, Any] = {"hashes": np.uint64, "frequencies": np.int32, "partition_keys": np.uint16}
    found = [tuple(np.empty(0, kind) for kind in kinds.values())]
    for number in range(task.batches):
        left = task.layout.result("scattered", number)
        span = left.part("edges", np.int64, task.number, task.number + 2).tolist()
        found.append(tuple(left.part(name, kind, *span) for name, kind in kinds.items()))
    hashes, frequencies, partition_keys = (np.concatenate(column) for column in zip(*found, strict=True))
    del found
    order = np.argsort(hashes)
    hashes, frequencies = hashes[order], frequencies[order]
    starts = np.flatnonzero(_begins(hashes))
    total = np.add.reduceat(frequencies, starts, dtype=np.int64) if len(starts) else np.empty(0, np.int64)
    del frequencies
    # the key of the first batch that contains a hash
    partition_keys = partition_keys[np.minimum.reduceat(order, starts)] if len(starts) else partition_keys
    del order
    kept = task.layout.idf_filter.keeps(total, task.layout.documents)
    out.put("vocabulary", hashes[starts[kept]])
    out.put("dropped", hashes[starts[~kept]])
    del hashes, starts
    out.put("marks", rarity_classes(total[kept]).astype(np.uint16) << KEY_BITS | partition_keys[kept])
    out.facts = {"signatures": int(np.count_nonzero(kept))}


def number(batch: Batch) -> None:
    """Write the rows of a batch by length, and the offsets of each length."""
    batch.layout.checkpoint("numbered", batch.number, work=lambda out: _number(batch, out))


def _number(batch: Batch, out: Writer) -> None:
    layout = batch.layout
    ids, marks = _numbers_of(batch)
    found = zip(*(part.sized() for part in batch.segments().parts()), strict=True)
    sizes, counts = (np.concatenate(column) for column in found)
    require(len(ids) == len(counts), f"the results of tasks in {layout.folder} are damaged; delete it and run again")
    kept, size, lengths = layout.idf_filter.long_enough(sizes, ids >= 0, counts)
    lengths = size if layout.sets else lengths
    counts = np.ones(int(size.sum()), np.int32) if layout.sets else counts[kept]
    order = _put_by_length(out, size, {"ids": ids[kept], "counts": counts, "marks": marks[kept]}, lengths)
    out.put("rows", batch.first + order)
    _put_runs(out)


def _numbers_of(batch: Batch) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
    """Return the id of the signature of each entry, -1 if it is dropped, and its mark."""
    layout, left = batch.layout, batch.layout.result("scattered", batch.number)
    edges = left.whole("edges", np.int64).tolist()
    bases = layout.result("bases").whole("bases", np.int64).tolist()
    ids, marks = np.full(edges[-1], -1, np.int32), np.zeros(edges[-1], np.uint16)
    for k in range(layout.ranges):
        span, words = slice(edges[k], edges[k + 1]), layout.result("tallied", k)
        hashes = left.part("hashes", np.uint64, span.start, span.stop)
        indices, known = look_up(hashes, words.whole("vocabulary", np.uint64))
        ids[span][known] = indices[known] + np.int32(bases[k])
        marks[span][known] = words.whole("marks", np.uint16)[indices[known]]
    entries = left.whole("entries", np.int32)
    return ids[entries], marks[entries]


def _put_by_length(
    out: Writer, sizes: NDArray[np.int64], columns: Mapping[str, NDArray[Any]], lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Write rows in ascending order of length, stable, with several columns an entry; return that order."""
    from spotsigs.outofcore import prefix_partition_kernels as kernels

    order = np.argsort(lengths, kind="stable")
    indptr, ends = row_starts(sizes), row_starts(sizes[order])
    out.put("ends", ends[1:])
    out.put("lengths", lengths[order])
    for name, values in columns.items():
        ordered = np.empty_like(values)
        kernels.gather(indptr, values, order, ends, ordered)
        out.put(name, ordered)
    return order


def _put_runs(out: Writer) -> None:
    """Write the lengths that occur, ascending, and the cumulative numbers of rows and entries."""
    left = out.reader()
    lengths, ends = left.whole("lengths", np.int64), left.whole("ends", np.int64)
    rows = np.flatnonzero(np.append(_begins(lengths)[1:], np.ones(min(len(lengths), 1), np.bool_))) + 1
    out.put("run_lengths", lengths[rows - 1])
    out.put("run_rows", rows)
    out.put("run_entries", ends[rows - 1])


class _Runs(NamedTuple):
    """Lengths of the rows of a batch, ascending, and the offsets of their rows and entries."""

    lengths: NDArray[np.int64]
    rows: NDArray[np.int64]
    entries: NDArray[np.int64]

    @classmethod
    def of(cls, layout: Layout, batch: int) -> _Runs:
        """Read them."""
        left = layout.result("numbered", batch)
        lengths, rows, entries = (left.whole(f"run_{name}", np.int64) for name in cls._fields)
        return cls(lengths, np.append(0, rows), np.append(0, entries))

    def before(self, edge: tuple[int, int], batch: int) -> int:
        """Return the number of lengths before an edge."""
        length, first = edge
        return int(np.searchsorted(self.lengths, length, side="right" if batch < first else "left"))


def _length_ranges(layout: Layout, batches: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Cut the rows by length, and rows of one length by batch, into ranges that fit into the budget."""
    lengths, costs = np.empty(0, np.int64), np.empty(0, np.int64)
    for batch in range(batches):
        runs = _Runs.of(layout, batch)
        lengths, index = np.unique(np.append(lengths, runs.lengths), return_inverse=True)
        costs = np.bincount(index, np.append(costs, np.diff(runs.rows) + np.diff(runs.entries))).astype(np.int64)
    most = _share(costs, layout.memory // (4 * BYTES_AN_ENTRY))
    edges, used = [(0, 0)], 0
    for length, cost in zip(lengths.tolist(), costs.tolist(), strict=True):
        cells = [(0, cost)] if cost <= most else _cells(layout, batches, length)
        for batch, size in cells:
            if used and used + size > most:
                edges.append((length, batch))
                used = 0
            used += size
    edges.append((int(lengths[-1]) + 1 if len(lengths) else 0, 0))
    return pairwise(edges)


def _cells(layout: Layout, batches: int, length: int) -> Iterator[tuple[int, int]]:
    """Yield each batch, and the number of its rows and entries of a length."""
    for batch in range(batches):
        runs = _Runs.of(layout, batch)
        first, last = runs.before((length, 0), batch), runs.before((length, batches), batch)
        yield batch, int(runs.rows[last] - runs.rows[first] + runs.entries[last] - runs.entries[first])


def gather(task: LengthRange) -> None:
    """Write the rows of a range of lengths from all batches, by length."""
    task.layout.checkpoint("gathered", task.number, work=lambda out: _gather(task, out))


def _gather(task: LengthRange, out: Writer) -> None:
    none = np.empty(0, np.int64)
    found: list[tuple[NDArray[Any], ...]] = [(none, none, none, *(np.empty(0, kind) for kind in _ENTRY.values()))]
    for batch in range(task.batches):
        runs, left = _Runs.of(task.layout, batch), task.layout.result("numbered", batch)
        first, last = runs.before(task.begin, batch), runs.before(task.end, batch)
        span = int(runs.rows[first]), int(runs.rows[last])
        if span[0] < span[1]:
            begin, end = int(runs.entries[first]), int(runs.entries[last])
            rows, lengths, ends = (left.part(name, np.int64, *span) for name in ("rows", "lengths", "ends"))
            columns = (left.part(name, kind, begin, end) for name, kind in _ENTRY.items())
            found.append((rows, lengths, np.diff(ends, prepend=begin), *columns))
    rows, lengths, sizes, *entries = (np.concatenate(column) for column in zip(*found, strict=True))
    del found
    order = _put_by_length(out, sizes, dict(zip(_ENTRY, entries, strict=True)), lengths)
    out.put("rows", rows[order])


def _concatenate(store: Writer, layout: Layout, ranges_of_lengths: int) -> None:
    """Concatenate the results of the tasks."""
    rows = [layout.result("gathered", k) for k in range(ranges_of_lengths)]
    words = [layout.result("tallied", k) for k in range(layout.ranges)]
    for name, kind in ({"rows": np.int64, "lengths": np.int64} | _ENTRY).items():
        append_parts(store, name, kind, rows)
    append_parts(store, "indptr", np.int64, rows, "ends", before=np.zeros(1, np.int64))
    for name in ("vocabulary", "dropped"):
        append_parts(store, name, np.uint64, words)
    store.facts["n_signatures"] = store.reader().length("vocabulary", np.uint64)


def look_up(hashes: NDArray[np.uint64], vocabulary: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the index of each hash in an ascending vocabulary, and whether it is there."""
    if not len(vocabulary):
        return np.zeros(len(hashes), np.int32), np.zeros(len(hashes), np.bool_)
    indices = np.minimum(np.searchsorted(vocabulary, hashes), len(vocabulary) - 1).astype(np.int32)
    return indices, vocabulary[indices] == hashes
