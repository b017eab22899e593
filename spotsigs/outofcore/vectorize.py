"""From segments to a store of vectors, within a memory budget: document frequencies, filter, order by length.

Four rounds of tasks, see `spotsigs.outofcore.resumable_tasks`:

1. `scatter`: the distinct hashes of a batch of segments, ascending, with their frequencies and the home of the first
   document that has each, cut where ranges begin.
2. `tally`: the hashes of a range from all batches; those inside the band are its vocabulary.
3. `number`: the rows of a batch with the numbers and marks of their signatures, by length.
4. `gather`: the rows of some lengths from all batches.

A mark says how rare a signature is and where its home is, see `spotsigs.outofcore.prefix_partition_kernels.HOME_BITS`.

The calling process puts the results of `gather` and `tally` behind one another and holds a few numbers for each task
and each length that occurs. The vectors do not depend on how batches, ranges and lengths are cut.
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
from spotsigs.outofcore.resumable_tasks import Rounds, append_parts, run
from spotsigs.outofcore.segments import Segments
from spotsigs.signatures.idf import IdfFilter
from spotsigs.storage.identity import identity
from spotsigs.storage.locations import absolute, as_path, exists
from spotsigs.storage.store import (
    StoredVectors,
    Writer,
    claim,
    fingerprint,
    open_vectors,
    remove_tree,
    writing,
)

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}

_MADE_OF = "layout.json"

_FORM = 3
"""Of what tasks leave; counted up where it changes, so that nothing a former version left is read."""

MOST_SIGNATURES = 2**31 - 1
"""Signatures that can be told apart: their numbers are int32."""

BYTES_A_DOCUMENT = 64
"""What the calling process holds for each document at once: checksums, or hashes of ids, and their order."""

BYTES_A_HASH = 48
"""What `tally` holds for each hash of a batch: hash, frequency, order, their sorted copies and the sums."""

BYTES_AN_ENTRY = 64
"""What the other tasks hold for each entry, and for each row: the entry, its row, its place and their temporaries."""

TASKS = 16
"""Tasks of a round, where the budget does not ask for more: shares that several workers end at about the same time."""

_ENTRY: dict[str, Any] = {"ids": np.int32, "counts": np.int32, "marks": np.uint16}
"""What the vectors say of each entry."""

LEAST_ENTRIES = 2**18
"""Entries of a batch, or hashes of a range, below which another task would cost more than it gives."""


def parse_memory(text: str | int) -> int:
    """Return a memory budget in bytes.

    Parameters
    ----------
    text : str or int
        A number with a unit, such as ``2GB`` (10^9 bytes each) or ``512 MiB`` (2^20 each); without one, bytes.

    Returns
    -------
    int

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
    """Filter the signatures of a whole collection and lay them out by length.

    The rows are those `IdfFilter` gives in memory; only their order differs. What a stopped call with the same
    arguments left complete is kept.

    Parameters
    ----------
    folder : str or Path
        Place of the store.
    segments : Segments
        Signatures of the collection, where all workers can read them.
    idf_filter : IdfFilter
        Which signatures and documents take part.
    memory : int
        Bytes that one task may hold.
    engine : Engine, optional
        Where the tasks run; the vectors do not depend on it. In this process by default.
    sets : bool
        Count every signature once.
    copies : Copies, optional
        Which documents are copies: frequencies are counted over the others, and copies become empty rows.
    facts : mapping, optional
        What the store's manifest shall say beside its files.

    Returns
    -------
    StoredVectors

    Raises
    ------
    InputError
        If the budget is too small for the number of documents, or there are too many signatures to be numbered.
    """
    sizes, entries = segments.sizes(), segments.entries()
    n = int(sizes.sum())
    copies = Copies.none(n) if copies is None else copies
    segments = segments.only(copies.distinct)
    require(
        n * BYTES_A_DOCUMENT <= memory,
        f"memory is too small for {n:,} documents: {n * BYTES_A_DOCUMENT / 1e6:,.0f} MB are needed to order them",
    )
    folder, engine = as_path(folder), Serial() if engine is None else engine
    rounds = folder.parent / f"{folder.name}-in-the-making"
    layout = Layout(
        folder=absolute(rounds),
        idf_filter=idf_filter,
        sets=sets,
        documents=int(np.count_nonzero(copies.distinct)),
        memory=memory,
        ranges=max(1, ceil(int(entries.sum()) / _share(entries, memory // BYTES_A_HASH))),
    )
    _claim(rounds, layout, segments, copies)
    batches = list(_batches(layout, segments, sizes, entries))
    _count(layout, batches, engine)
    list(run(engine, number, batches, "numbering"))
    stretches = [Stretch(layout, k, len(batches), *edges) for k, edges in enumerate(_stretches(layout, len(batches)))]
    list(run(engine, gather, stretches, "ordering"))
    with writing(folder, "vectors") as store:
        _put_together(store, layout, len(stretches))
        store.strings("doc_ids", segments.doc_ids)
        store.strings("clusters", (name or "" for name in segments.clusters))
        store.put("content", copies.content)
        store.put("stands", copies.stands)
        store.facts |= {"rows": n, **(facts or {})}
    remove_tree(rounds)
    return open_vectors(folder, verify=None)


def _share(entries: NDArray[np.int64], most: int) -> int:
    """Return how many of the entries a task takes, at most a given number."""
    return max(1, min(most, max(ceil(int(entries.sum()) / TASKS), LEAST_ENTRIES)))


@dataclass(frozen=True, kw_only=True)
class Layout(Rounds):
    """What all tasks know.

    Attributes
    ----------
    idf_filter : IdfFilter
        Which signatures and documents take part.
    sets : bool
        Count every signature once.
    documents : int
        How many stand for themselves: frequencies are held against their number.
    memory : int
        Bytes that one task may hold.
    ranges : int
        Of hashes, of equal width.
    """

    idf_filter: IdfFilter
    sets: bool
    documents: int
    memory: int
    ranges: int


class Batch(NamedTuple):
    """A task: some segments, the number of their first document, and which of their documents count."""

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


class Stretch(NamedTuple):
    """A task: the rows from one edge to another, each a length, and the first batch whose rows of it lie behind it."""

    layout: Layout
    number: int
    batches: int
    begin: tuple[int, int]
    end: tuple[int, int]


def _claim(rounds: Path, layout: Layout, segments: Segments, copies: Copies) -> None:
    """Say what the results of the tasks come from; delete those that come from something else, or do not say."""
    made_of = "".join(map(fingerprint, segments.folders)).encode() + copies.stands.tobytes()
    facts = {
        "of": xxhash.xxh3_128_hexdigest(made_of),
        "settings": identity((layout.idf_filter, layout.sets)),
        "memory": layout.memory,
        "form": _FORM,
    }
    if not exists(rounds / _MADE_OF) or claim(rounds, _MADE_OF, facts):
        remove_tree(rounds)
        claim(rounds, _MADE_OF, facts)


def _batches(
    layout: Layout, segments: Segments, sizes: NDArray[np.int64], entries: NDArray[np.int64]
) -> Iterator[Batch]:
    """Put segments together up to a number of entries and documents; a larger one stands alone."""
    weights = entries + sizes
    most = _share(weights, layout.memory // (2 * BYTES_AN_ENTRY))
    behind = row_starts(weights)
    rows = row_starts(sizes)
    for number, (start, stop) in enumerate(spans(behind, most)):
        first, last = int(rows[start]), int(rows[stop])
        counted = None if segments.rows is None else segments.rows[first:last]
        yield Batch(layout, number, first, tuple(map(absolute, segments.folders[start:stop])), counted)


def spans(indptr: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Cut rows into consecutive spans with a limited number of entries; a row with more is a span of its own."""
    first, n = 0, len(indptr) - 1
    while first < n:
        last = int(np.searchsorted(indptr, indptr[first] + most, side="right")) - 1
        last = min(max(last, first + 1), n)
        yield first, last
        first = last


def _count(layout: Layout, batches: Sequence[Batch], engine: Engine) -> None:
    """Run the rounds that find the vocabulary; leave the number of the first signature of each range."""
    list(run(engine, scatter, batches, "counting"))
    ranges = [Range(layout, k, len(batches)) for k in range(layout.ranges)]
    ends = np.cumsum([0, *run(engine, tally, ranges, "filtering")], dtype=np.int64)
    if ends[-1] > MOST_SIGNATURES:
        remove_tree(layout.path())
    require(
        int(ends[-1]) <= MOST_SIGNATURES,
        f"{ends[-1]:,} distinct signatures are left, and their numbers end at {MOST_SIGNATURES:,}; "
        "a narrower IDF band, such as idf_max=0.85, drops the rare ones",
    )
    layout.leave("bases", work=lambda out: out.put("bases", ends))


def scatter(batch: Batch) -> None:
    """Leave the distinct hashes of a batch, and which of them each entry has."""
    batch.layout.leave("scattered", batch.number, work=lambda out: _scatter(batch, out))


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
    homes = np.empty(len(distinct), np.uint16)
    kernels.find_homes(sizes, batch.first, entries, homes)
    out.put("homes", homes)
    out.put("edges", np.append(edges, len(distinct)).astype(np.int64))


def _begins(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where ascending values differ from those before."""
    return np.append(np.ones(min(len(values), 1), np.bool_), values[1:] != values[:-1])


def tally(task: Range) -> int:
    """Leave the vocabulary of a range, its marks, and what is dropped; return its size."""
    return int(task.layout.leave("tallied", task.number, work=lambda out: _tally(task, out))["signatures"])


def _tally(task: Range, out: Writer) -> None:
    from spotsigs.outofcore.prefix_partition_kernels import HOME_BITS

    kinds: dict[str, Any] = {"hashes": np.uint64, "frequencies": np.int32, "homes": np.uint16}
    found = [tuple(np.empty(0, kind) for kind in kinds.values())]
    for number in range(task.batches):
        left = task.layout.left("scattered", number)
        span = left.part("edges", np.int64, task.number, task.number + 2).tolist()
        found.append(tuple(left.part(name, kind, *span) for name, kind in kinds.items()))
    hashes, frequencies, homes = (np.concatenate(column) for column in zip(*found, strict=True))
    del found
    order = np.argsort(hashes)
    hashes, frequencies = hashes[order], frequencies[order]
    starts = np.flatnonzero(_begins(hashes))
    total = np.add.reduceat(frequencies, starts, dtype=np.int64) if len(starts) else np.empty(0, np.int64)
    del frequencies
    homes = homes[np.minimum.reduceat(order, starts)] if len(starts) else homes  # of the first batch that has it
    del order
    kept = task.layout.idf_filter.keeps(total, task.layout.documents)
    out.put("vocabulary", hashes[starts[kept]])
    out.put("dropped", hashes[starts[~kept]])
    del hashes, starts
    out.put("marks", rarity_classes(total[kept]).astype(np.uint16) << HOME_BITS | homes[kept])
    out.facts = {"signatures": int(np.count_nonzero(kept))}


def number(batch: Batch) -> None:
    """Leave the rows of a batch by length, and where each length that occurs begins."""
    batch.layout.leave("numbered", batch.number, work=lambda out: _number(batch, out))


def _number(batch: Batch, out: Writer) -> None:
    layout = batch.layout
    ids, marks = _numbers_of(batch)
    found = zip(*(part.sized() for part in batch.segments().parts()), strict=True)
    sizes, counts = (np.concatenate(column) for column in found)
    require(len(ids) == len(counts), f"what the layout left in {layout.folder} is damaged; delete it and run again")
    stays, size, lengths = layout.idf_filter.long_enough(sizes, ids >= 0, counts)
    lengths = size if layout.sets else lengths
    counts = np.ones(int(size.sum()), np.int32) if layout.sets else counts[stays]
    order = _put_by_length(out, size, {"ids": ids[stays], "counts": counts, "marks": marks[stays]}, lengths)
    out.put("rows", batch.first + order)
    _put_runs(out)


def _numbers_of(batch: Batch) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
    """Return the number of the signature of each entry, -1 where it is dropped, and its mark."""
    layout, left = batch.layout, batch.layout.left("scattered", batch.number)
    edges = left.whole("edges", np.int64).tolist()
    bases = layout.left("bases").whole("bases", np.int64).tolist()
    ids, marks = np.full(edges[-1], -1, np.int32), np.zeros(edges[-1], np.uint16)
    for k in range(layout.ranges):
        span, words = slice(edges[k], edges[k + 1]), layout.left("tallied", k)
        hashes = left.part("hashes", np.uint64, span.start, span.stop)
        places, known = look_up(hashes, words.whole("vocabulary", np.uint64))
        ids[span][known] = places[known] + np.int32(bases[k])
        marks[span][known] = words.whole("marks", np.uint16)[places[known]]
    entries = left.whole("entries", np.int32)
    return ids[entries], marks[entries]


def _put_by_length(
    out: Writer, sizes: NDArray[np.int64], columns: Mapping[str, NDArray[Any]], lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Write rows, of each entry several columns, by ascending length, equal ones as they come; return that order."""
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
    """Write the lengths that occur, ascending, and how many rows and entries there are up to each."""
    left = out.reader()
    lengths, ends = left.whole("lengths", np.int64), left.whole("ends", np.int64)
    rows = np.flatnonzero(np.append(_begins(lengths)[1:], np.ones(min(len(lengths), 1), np.bool_))) + 1
    out.put("run_lengths", lengths[rows - 1])
    out.put("run_rows", rows)
    out.put("run_entries", ends[rows - 1])


class _Runs(NamedTuple):
    """Lengths of the rows of a batch, ascending, and how many rows and entries there are before each, and in all."""

    lengths: NDArray[np.int64]
    rows: NDArray[np.int64]
    entries: NDArray[np.int64]

    @classmethod
    def of(cls, layout: Layout, batch: int) -> _Runs:
        """Read them."""
        left = layout.left("numbered", batch)
        lengths, rows, entries = (left.whole(f"run_{name}", np.int64) for name in cls._fields)
        return cls(lengths, np.append(0, rows), np.append(0, entries))

    def before(self, edge: tuple[int, int], batch: int) -> int:
        """Return how many of the lengths lie before an edge."""
        length, first = edge
        return int(np.searchsorted(self.lengths, length, side="right" if batch < first else "left"))


def _stretches(layout: Layout, batches: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Cut the rows by length, and rows of one length by batch, into stretches that fit."""
    lengths, costs = np.empty(0, np.int64), np.empty(0, np.int64)
    for batch in range(batches):
        runs = _Runs.of(layout, batch)
        lengths, place = np.unique(np.append(lengths, runs.lengths), return_inverse=True)
        costs = np.bincount(place, np.append(costs, np.diff(runs.rows) + np.diff(runs.entries))).astype(np.int64)
    most = _share(costs, layout.memory // (4 * BYTES_AN_ENTRY))
    edges, held = [(0, 0)], 0
    for length, cost in zip(lengths.tolist(), costs.tolist(), strict=True):
        cells = [(0, cost)] if cost <= most else _cells(layout, batches, length)
        for batch, size in cells:
            if held and held + size > most:
                edges.append((length, batch))
                held = 0
            held += size
    edges.append((int(lengths[-1]) + 1 if len(lengths) else 0, 0))
    return pairwise(edges)


def _cells(layout: Layout, batches: int, length: int) -> Iterator[tuple[int, int]]:
    """Yield each batch, and rows and entries of it that have a length."""
    for batch in range(batches):
        runs = _Runs.of(layout, batch)
        first, last = runs.before((length, 0), batch), runs.before((length, batches), batch)
        yield batch, int(runs.rows[last] - runs.rows[first] + runs.entries[last] - runs.entries[first])


def gather(stretch: Stretch) -> None:
    """Leave the rows of a stretch from all batches, by length."""
    stretch.layout.leave("gathered", stretch.number, work=lambda out: _gather(stretch, out))


def _gather(stretch: Stretch, out: Writer) -> None:
    none = np.empty(0, np.int64)
    found: list[tuple[NDArray[Any], ...]] = [(none, none, none, *(np.empty(0, kind) for kind in _ENTRY.values()))]
    for batch in range(stretch.batches):
        runs, left = _Runs.of(stretch.layout, batch), stretch.layout.left("numbered", batch)
        first, last = runs.before(stretch.begin, batch), runs.before(stretch.end, batch)
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


def _put_together(store: Writer, layout: Layout, stretches: int) -> None:
    """Write the results of the tasks behind one another."""
    rows = [layout.left("gathered", k) for k in range(stretches)]
    words = [layout.left("tallied", k) for k in range(layout.ranges)]
    for name, kind in ({"rows": np.int64, "lengths": np.int64} | _ENTRY).items():
        append_parts(store, name, kind, rows)
    append_parts(store, "indptr", np.int64, rows, "ends", before=np.zeros(1, np.int64))
    for name in ("vocabulary", "dropped"):
        append_parts(store, name, np.uint64, words)
    store.facts["n_signatures"] = store.reader().length("vocabulary", np.uint64)


def look_up(hashes: NDArray[np.uint64], vocabulary: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the place of each hash in an ascending vocabulary, and whether it is there."""
    if not len(vocabulary):
        return np.zeros(len(hashes), np.int32), np.zeros(len(hashes), np.bool_)
    places = np.minimum(np.searchsorted(vocabulary, hashes), len(vocabulary) - 1).astype(np.int32)
    return places, vocabulary[places] == hashes
