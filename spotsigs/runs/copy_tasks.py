"""Copies of collections of files by tasks of some files each, with the bytes of a copy in one pass.

A large file whose records are found from any position is copied in ranges. A first stage finds the bytes that stay of
each range, a second one writes them to their places in the new file.

What happens to a document is known by its id, so that a task needs no other. The sum of the hashes of all ids shows
whether the tasks found the documents that were matched, each once: names of repeated ids have numbers, and their sum is
another one.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from spotsigs.formats.compression import BLOCK, READ_ERRORS
from spotsigs.formats.input_files import InputFile
from spotsigs.formats.writers import COPY
from spotsigs.records import Document
from spotsigs.signatures.extract import is_readable, name_hash
from spotsigs.storage.tasks import run_tasks
from spotsigs.text.size_limits import largest_page, largest_unit, page_size_limit
from spotsigs.workers.engines import Dask, Engine

TASK_BYTES = 1 << 25
"""Bytes of files below which a task takes further ones."""


@runtime_checkable
class CopiedByFile(Protocol):
    """A collection whose files are copied one by one."""

    def sources(self) -> list[InputFile]:
        """Return the files."""

    def copy_source(self, source: InputFile, folder: Path, keep: Callable[[Document], bool]) -> None:
        """Copy one of the files."""


@runtime_checkable
class CopiedInRanges(CopiedByFile, Protocol):
    """A collection whose large files are copied in ranges."""

    def ranges(self, source: InputFile) -> list[tuple[int, int]]:
        """Return the ranges in which a file can be copied; none if it is copied as a whole."""

    def staying(
        self, source: InputFile, start: int, stop: int, keep: Callable[[Document], bool]
    ) -> Iterator[tuple[int, int, bool]]:
        """Yield start and stop of each piece of a range, and whether it stays."""

    def target(self, source: InputFile, folder: Path) -> Path:
        """Return the path of a file in a copy."""


@dataclass(frozen=True)
class JudgedBy:
    """Whether a document was matched. One that has the id of a skipped record is extracted again to find out."""

    skipped: NDArray[np.uint64]  # hashes of the ids of skipped records, ascending
    # Text and signature scheme of the method
    text: Any
    scheme: Any

    def __call__(self, document: Document) -> bool:
        """Return whether the document was matched."""
        return not _contains(self.skipped, name_hash(document.id)) or is_readable(document, self.text, self.scheme)


@dataclass(frozen=True)
class Decided:
    """Which documents belong to a copy."""

    judged: JudgedBy  # whether a document was matched; others are copied
    removed: str  # file with the hashes of the ids of removed documents, ascending
    limits: tuple[int, int]  # largest page and largest unit in bytes

    @contextmanager
    def counting(self) -> Iterator[tuple[Callable[[Document], bool], CopiedRecords]]:
        """Yield the function that decides about a document, and the documents that it has decided about."""
        removed, counted = np.load(self.removed, mmap_mode="r"), CopiedRecords()

        def keep(document: Document) -> bool:
            if not self.judged(document):
                return True
            name = name_hash(document.id)
            counted.number, counted.total = counted.number + 1, (counted.total + name) % 2**64
            return not _contains(removed, name)

        with page_size_limit(*self.limits):
            yield keep, counted


@dataclass
class CopiedRecords:
    """Number of the documents that were matched, and the sum of the hashes of their ids."""

    number: int = 0
    total: int = 0

    def add(self, other: CopiedRecords) -> None:
        """Add the counts of other documents."""
        self.number, self.total = self.number + other.number, (self.total + other.total) % 2**64


class WholeFiles(NamedTuple):
    """A task: some files, and the folder of the copy."""

    collection: CopiedByFile
    sources: tuple[InputFile, ...]
    folder: str
    decided: Decided


class FileRange(NamedTuple):
    """A task: the bytes of a range of a file that stay."""

    collection: CopiedInRanges
    source: InputFile
    start: int
    stop: int
    decided: Decided


class Staying(NamedTuple):
    """The bytes of a range of a file that stay.

    ``first`` and ``end`` are the start of its first piece and the stop of its last one; None if no piece begins in it.
    ``gap`` is true if bytes between its pieces are missing. ``spans`` has the start and the stop of each run of bytes
    that stays, int64, shape (m, 2).
    """

    counted: CopiedRecords
    first: int | None
    end: int | None
    gap: bool
    spans: NDArray[np.int64]

    @property
    def size(self) -> int:
        """Number of bytes."""
        return int((self.spans[:, 1] - self.spans[:, 0]).sum())


class PlacedRuns(NamedTuple):
    """A task: runs of bytes of a file, which are written to a place in another one."""

    source: str
    target: str
    at: int
    spans: NDArray[np.int64]


def copied_by_tasks(
    collection: Any,
    doc_ids: Sequence[str],
    kept: NDArray[np.bool_],
    temporary: Path,
    *,
    judged: JudgedBy,
    engine: Engine,
) -> bool:
    """Copy a collection by tasks on this machine, and return whether it is complete.

    It is not, and there is no copy, if the files are too few, an id is repeated, or the tasks found other documents
    than those that were matched. Then `spotsigs.formats.writers.prepare_copy`, which has the same arguments, copies the
    collection or refuses it.
    """
    elsewhere = isinstance(engine, Dask) and engine.address is not None  # the copy is on this machine
    if elsewhere or not isinstance(collection, CopiedByFile):
        return False
    ranges = dict(_ranges_of(collection)) if isinstance(collection, CopiedInRanges) else {}
    batches = list(_source_batches([source for source in collection.sources() if source not in ranges]))
    if len(batches) + sum(map(len, ranges.values())) < 2:
        return False
    hashes = np.fromiter(map(name_hash, doc_ids), np.uint64, len(doc_ids))
    folder, removed = temporary / COPY, temporary / "removed.npy"
    folder.mkdir()
    np.save(removed, np.sort(hashes[~kept]))
    decided = Decided(judged, str(removed), (largest_page(), largest_unit()))
    files = [WholeFiles(collection, batch, str(folder), decided) for batch in batches]
    parts = list(_file_ranges(collection, ranges, decided))
    # Ids and their sum prove that the tasks, which know nothing of each other, met each matched document once.
    counted = CopiedRecords()
    for one in run_tasks(engine, copy_files, files, "copying", rows=attrgetter("number")):
        counted.add(one)
    found = list(run_tasks(engine, staying_bytes, parts, "finding what stays", rows=attrgetter("counted.number")))
    placed: list[PlacedRuns] = []
    for source, group in groupby(zip(parts, found, strict=True), key=lambda pair: pair[0].source):
        of_file = [staying for _, staying in group]
        for staying in of_file:
            counted.add(staying.counted)
        placed += _placed(source, parts[0].collection.target(source, folder), of_file)
    complete = counted == CopiedRecords(len(hashes), int(hashes.sum())) and len(placed) == len(parts)
    if complete:
        list(run_tasks(engine, place, placed, "copying ranges"))
    else:
        shutil.rmtree(folder)
    return complete


def _ranges_of(collection: CopiedInRanges) -> Iterator[tuple[InputFile, list[tuple[int, int]]]]:
    """Yield the large files, each with the ranges in which it is copied."""
    for source in collection.sources():
        if not source.fault and source.path.is_file() and source.path.stat().st_size >= 2 * TASK_BYTES:
            spans = _grouped(collection.ranges(source))
            if len(spans) > 1:
                yield source, spans


def _file_ranges(
    collection: Any, ranges: Mapping[InputFile, Sequence[tuple[int, int]]], decided: Decided
) -> Iterator[FileRange]:
    """Yield the tasks that find what stays of large files, none if the collection has no ranges."""
    for source, spans in ranges.items():
        for start, stop in spans:
            yield FileRange(collection, source, start, stop, decided)


def _grouped(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join neighbouring ranges of a file up to `TASK_BYTES`."""
    joined: list[tuple[int, int]] = []
    for start, stop in spans:
        if joined and start - joined[-1][0] < TASK_BYTES:
            joined[-1] = joined[-1][0], stop
        else:
            joined.append((start, stop))
    return joined


def _placed(source: InputFile, target: Path, parts: Sequence[Staying]) -> Iterator[PlacedRuns]:
    """Create a file for the bytes that stay, and yield the tasks that write them; none unless all bytes are known.

    A line that is longer than a page may be is read in pieces, and the range in which it begins has the first alone.
    """
    reached = 0
    for part in parts:
        if part.gap or part.first not in (None, reached):
            return
        reached = reached if part.end is None else part.end
    if reached != source.path.stat().st_size:
        return
    with target.open("xb") as file:
        file.truncate(sum(part.size for part in parts))
    at = 0
    for part in parts:
        yield PlacedRuns(str(source.path), str(target), at, part.spans)
        at += part.size


def _source_batches(sources: Sequence[InputFile]) -> Iterator[tuple[InputFile, ...]]:
    """Cut files into batches of `TASK_BYTES`, at least one file each."""
    batch: list[InputFile] = []
    size = 0
    for source in sources:
        batch.append(source)
        size += 0 if source.fault or not source.path.is_file() else source.path.stat().st_size
        if size >= TASK_BYTES:
            yield tuple(batch)
            batch, size = [], 0
    if batch:
        yield tuple(batch)


def copy_files(task: WholeFiles) -> CopiedRecords:
    """Copy some files."""
    with task.decided.counting() as (keep, counted):
        for source in task.sources:
            task.collection.copy_source(source, Path(task.folder), keep)
    return counted


def staying_bytes(task: FileRange) -> Staying:
    """Find the bytes of a range of a file that stay."""
    spans: list[tuple[int, int]] = []
    first: int | None = None
    end: int | None = None
    gap = False
    with task.decided.counting() as (keep, counted), suppress(*READ_ERRORS):
        for start, stop, stays in task.collection.staying(task.source, task.start, task.stop, keep):
            first = start if first is None else first
            gap |= end not in (None, start)
            end = stop
            if stays and spans and spans[-1][1] == start:
                spans[-1] = spans[-1][0], stop
            elif stays:
                spans.append((start, stop))
    return Staying(counted, first, end, gap, np.array(spans, np.int64).reshape(-1, 2))


def place(task: PlacedRuns) -> None:
    """Write runs of bytes of a file to a place in another one."""
    with open(task.source, "rb") as file, open(task.target, "r+b") as out:
        out.seek(task.at)
        for start, stop in task.spans.tolist():
            file.seek(start)
            while start < stop and (block := file.read(min(stop - start, BLOCK))):
                out.write(block)
                start += len(block)


def _contains(ascending: NDArray[np.uint64], value: int) -> bool:
    position = int(np.searchsorted(ascending, np.uint64(value)))
    return position < len(ascending) and int(ascending[position]) == value
