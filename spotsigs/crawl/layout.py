"""From segments to a store of vectors, within a memory budget: document frequencies, filter, order by length."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.rarity import rarity_classes
from spotsigs.copies import Copies
from spotsigs.crawl.segments import Part, Segments
from spotsigs.disk.atomic import beside
from spotsigs.disk.places import is_remote, place
from spotsigs.disk.store import Reader, StoredVectors, Writer, open_vectors, opened, writing
from spotsigs.errors import InputError, require
from spotsigs.signatures.idf import IdfFilter

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}

MOST_SIGNATURES = 2**31 - 1
"""Signatures that can be told apart: their numbers are int32."""

BYTES_A_DOCUMENT = 64
"""What the layout holds for each document at once: hash, size, length, place, order and their temporaries."""

BYTES_A_HASH = 40
"""What counting holds for each occurrence: the hash, its sorted copy, the distinct ones and their frequencies."""

BYTES_AN_ENTRY = 64
"""What placing holds for each entry: the entry, its row, its place and their temporaries."""


def parse_memory(text: str | int) -> int:
    """Return a memory budget in bytes.

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
    sets: bool = False,
    copies: Copies | None = None,
    facts: Mapping[str, Any] | None = None,
) -> StoredVectors:
    """Filter the signatures of a whole collection and lay them out by length.

    The rows are those `IdfFilter` gives in memory; only their order differs.

    Parameters
    ----------
    folder : str or Path
        Place of the store.
    segments : Segments
        Signatures of the collection.
    idf_filter : IdfFilter
        Which signatures and documents take part.
    memory : int
        Bytes that may be held at once.
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
        If the budget is too small for the number of documents.
    """
    sizes = segments.sizes()
    n = int(sizes.sum())
    copies = Copies.none(n) if copies is None else copies
    segments = segments.only(copies.distinct)
    require(
        n * BYTES_A_DOCUMENT <= memory,
        f"memory is too small for {n:,} documents: {n * BYTES_A_DOCUMENT / 1e6:,.0f} MB are needed to order them",
    )
    folder = place(folder)
    with beside(folder) as scratch:  # unordered entries lie on this machine
        unordered = scratch / "unordered"
        with writing(unordered, "unordered") as store:
            _count(store, segments, idf_filter, int(np.count_nonzero(copies.distinct)), memory)
            kept, lengths = _filter(store, segments, idf_filter, sets, memory)
        with writing(folder, "vectors") as store:
            _order(store, opened(unordered, "unordered"), kept, lengths, memory)
            store.strings("doc_ids", segments.doc_ids())
            store.strings("clusters", segments.clusters())
            store.put("content", copies.content)
            store.put("stands", copies.stands)
            store.facts |= facts or {}
    return open_vectors(folder, verify=None)


def _count(store: Writer, segments: Segments, idf_filter: IdfFilter, n: int, memory: int) -> None:
    """Write the signatures inside the band, ascending, and those outside; one pass for each range of hashes."""
    total = sum(reader.length("hashes") for reader in segments.stores())
    passes = max(1, ceil(total * BYTES_A_HASH / memory))
    edges = [2**64 * k // passes for k in range(passes + 1)]
    with (
        store.growing("vocabulary", np.uint64) as keep,
        store.growing("classes", np.uint8) as rank,
        store.growing("dropped", np.uint64) as drop,
    ):
        for low, high in pairwise(edges):
            hashes = np.concatenate([np.empty(0, np.uint64), *_between(segments, low, high - 1)])
            distinct, frequencies = np.unique(hashes, return_counts=True)
            del hashes
            kept = idf_filter.keeps(frequencies, n)
            keep(distinct[kept])
            rank(rarity_classes(frequencies[kept]))
            drop(distinct[~kept])


def _between(segments: Segments, low: int, high: int) -> Iterator[NDArray[np.uint64]]:
    for part in segments.parts():
        hashes = part.hashes()
        yield hashes[(hashes >= np.uint64(low)) & (hashes <= np.uint64(high))]


def _filter(
    store: Writer, segments: Segments, idf_filter: IdfFilter, sets: bool, memory: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Write the entries that stay, in document order; return how many each row has and its length."""
    vocabulary = store.reader()
    distinct = vocabulary.length("vocabulary")
    require(
        distinct <= MOST_SIGNATURES,
        f"{distinct:,} distinct signatures are left, and their numbers end at {MOST_SIGNATURES:,}; "
        "a narrower IDF band, such as idf_max=0.85, drops the rare ones",
    )
    sizes, lengths = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    with store.growing("ids", np.int32) as append_ids, store.growing("counts", np.int32) as append_counts:
        for batch in _batches(segments, memory // (2 * BYTES_AN_ENTRY)):
            indptr, hashes, counts = _together(batch)
            n = len(indptr) - 1
            ids, stays = _number(hashes, vocabulary, "vocabulary", memory // 32)
            del hashes
            rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(indptr))
            total = np.bincount(rows[stays], weights=counts[stays], minlength=n)
            stays &= (total >= idf_filter.min_spots)[rows]
            size = np.bincount(rows[stays], minlength=n)
            total = size if sets else np.where(total >= idf_filter.min_spots, total, 0)
            append_ids(ids[stays])
            append_counts(np.ones(int(size.sum()), np.int32) if sets else counts[stays])
            sizes.append(size.astype(np.int32))
            lengths.append(total.astype(np.int64))
    return np.concatenate(sizes), np.concatenate(lengths)


def _batches(segments: Segments, most: int) -> Iterator[list[Part]]:
    """Put segments together while they have at most so many entries; a larger one stands alone."""
    batch: list[Part] = []
    held = 0
    for part in segments.parts():
        entries = part.store.length("hashes")
        if batch and held + entries > most:
            yield batch
            batch, held = [], 0
        batch.append(part)
        held += entries
    if batch:
        yield batch


def _together(batch: list[Part]) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int32]]:
    """Read the rows of several segments, one after the other; none of their files stays open."""
    sizes, hashes, counts = zip(*(part.read() for part in batch), strict=True)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(sizes))])
    return indptr, np.concatenate(hashes), np.concatenate(counts)


def find(
    hashes: NDArray[np.uint64], store: Reader, name: str, memory: int
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the place of each hash in an ascending array of a store, and whether it is there.

    A local array is mapped and searched; a remote one passes in ranges.
    """
    if is_remote(store.folder):
        return _number(hashes, store, name, memory // 32)
    return look_up(hashes, store.array(name, np.uint64))


def _number(
    hashes: NDArray[np.uint64], store: Reader, name: str, most: int
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the place of each hash in the store's vocabulary, and whether it is there; `most` of it at a time."""
    order = np.argsort(hashes)
    ascending = hashes[order]
    ids, known = np.zeros(len(hashes), np.int32), np.zeros(len(hashes), np.bool_)
    size = store.length(name)
    first = 0
    for start in range(0, size, most):
        part = store.part(name, np.uint64, start, min(start + most, size))
        last = int(np.searchsorted(ascending, part[-1], side="right"))
        places, there = look_up(ascending[first:last], part)
        ids[order[first:last]] = places + np.int32(start)
        known[order[first:last]] = there
        first = last
    return ids, known


def look_up(hashes: NDArray[np.uint64], vocabulary: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the place of each hash in an ascending vocabulary, and whether it is there."""
    if not len(vocabulary):
        return np.zeros(len(hashes), np.int32), np.zeros(len(hashes), np.bool_)
    places = np.minimum(np.searchsorted(vocabulary, hashes), len(vocabulary) - 1).astype(np.int32)
    return places, vocabulary[places] == hashes


def _order(store: Writer, unordered: Reader, sizes: NDArray[np.int32], lengths: NDArray[np.int64], memory: int) -> None:
    """Write rows in ascending order of length, equal ones in document order, some of them at a time."""
    rows = np.argsort(lengths, kind="stable")
    store.put("rows", rows.astype(np.int64, copy=False))
    store.put("lengths", lengths[rows])
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[rows], dtype=np.int64)])
    store.put("indptr", indptr)
    place = np.empty(len(rows), np.int64)
    place[rows] = np.arange(len(rows))
    del rows
    most = max(1, memory // (4 * BYTES_AN_ENTRY))
    with store.growing("ids", np.int32) as append_ids, store.growing("counts", np.int32) as append_counts:
        for first, last in spans(indptr, most):
            ids = np.empty(indptr[last] - indptr[first], np.int32)
            counts = np.empty_like(ids)
            for start, stop, entry, entry_stop in _runs(sizes, most):
                inside = (place[start:stop] >= first) & (place[start:stop] < last)
                taken = np.repeat(inside, sizes[start:stop])
                to = _targets(indptr, place[start:stop][inside], sizes[start:stop][inside]) - indptr[first]
                ids[to] = unordered.part("ids", np.int32, entry, entry_stop)[taken]
                counts[to] = unordered.part("counts", np.int32, entry, entry_stop)[taken]
            append_ids(ids)
            append_counts(counts)
    for name, dtype in (("vocabulary", np.uint64), ("classes", np.uint8), ("dropped", np.uint64)):
        with store.growing(name, dtype) as append:
            values = unordered.array(name, dtype)
            for start in range(0, len(values), 1 << 20):
                append(values[start : start + (1 << 20)])
        if name == "vocabulary":
            store.facts = {"rows": len(place), "n_signatures": len(values)}


def spans(indptr: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Cut rows into consecutive spans of at most so many entries; a row with more is a span of its own."""
    first, n = 0, len(indptr) - 1
    while first < n:
        last = int(np.searchsorted(indptr, indptr[first] + most, side="right")) - 1
        last = min(max(last, first + 1), n)
        yield first, last
        first = last


def _runs(sizes: NDArray[np.int32], most: int) -> Iterator[tuple[int, int, int, int]]:
    """Cut the unordered rows alike: first and last row, first and last entry."""
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
    for first, last in spans(indptr, most):
        yield first, last, int(indptr[first]), int(indptr[last])


def _targets(indptr: NDArray[np.int64], rows: NDArray[np.int64], sizes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return where the entries of some rows belong, rows one after the other."""
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
    offsets: NDArray[np.int64] = np.arange(starts[-1]) + np.repeat(indptr[rows] - starts[:-1], sizes)
    return offsets
