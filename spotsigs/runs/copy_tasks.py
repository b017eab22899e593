"""Copies of collections of files by workers: tasks of some files each, with the bytes of a copy by one process.

What happens to a document is known by its id, so that a task needs no other. The sum of the hashes of all ids shows
whether the tasks found the documents that were matched, each once: names of repeated ids have numbers, and their sum is
another one.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from spotsigs.formats.input_files import InputFile
from spotsigs.formats.writers import COPY
from spotsigs.records import Document
from spotsigs.signatures.extract import is_readable, name_hash
from spotsigs.storage.tasks import run_tasks
from spotsigs.text.size_limits import largest_page, largest_unit, page_size_limit
from spotsigs.workers.engines import ClusterEngine, Engine

TASK_BYTES = 1 << 25
"""Bytes of files below which a task takes further ones."""


@runtime_checkable
class CopiedByFile(Protocol):
    """A collection whose files are copied one by one."""

    def sources(self) -> list[InputFile]:
        """Return the files."""

    def copy_source(self, source: InputFile, folder: Path, keep: Callable[[Document], bool]) -> None:
        """Copy one of them."""


@dataclass(frozen=True)
class JudgedBy:
    """Whether a document was matched: one whose id is that of a skipped record is extracted again.

    Attributes
    ----------
    skipped : ndarray of uint64
        Hashes of the ids of skipped records, ascending.
    text, scheme
        Those of the method.
    """

    skipped: NDArray[np.uint64]
    text: Any
    scheme: Any

    def __call__(self, document: Document) -> bool:
        """Return it."""
        return not _contains(self.skipped, name_hash(document.id)) or is_readable(document, self.text, self.scheme)


class Copied(NamedTuple):
    """A task: some files, the folder of the copy, and which documents do not belong to it."""

    collection: CopiedByFile
    sources: tuple[InputFile, ...]
    folder: str
    judged: JudgedBy
    removed: str
    limits: tuple[int, int]


def copied_by_tasks(
    collection: Any,
    doc_ids: Sequence[str],
    kept: NDArray[np.bool_],
    temporary: Path,
    *,
    judged: JudgedBy,
    engine: Engine,
) -> bool:
    """Copy a collection on workers of this machine, and return whether it is complete.

    It is not, and there is no copy, if the files are too few, an id is repeated, or the tasks found other documents
    than those that were matched. Then `spotsigs.formats.writers.prepare_copy`, which has the same arguments, copies the
    collection or refuses it.
    """
    elsewhere = isinstance(engine, ClusterEngine) and engine.address is not None  # the copy is on this machine
    if engine.processes < 2 or elsewhere or not isinstance(collection, CopiedByFile):
        return False
    batches = list(_source_batches(collection.sources()))
    if len(batches) < 2:
        return False
    hashes = np.fromiter(map(name_hash, doc_ids), np.uint64, len(doc_ids))
    folder, removed = temporary / COPY, temporary / "removed.npy"
    folder.mkdir()
    np.save(removed, np.sort(hashes[~kept]))
    limits = largest_page(), largest_unit()
    tasks = [Copied(collection, batch, str(folder), judged, str(removed), limits) for batch in batches]
    found = list(run_tasks(engine, copy_files, tasks, "copying", rows=itemgetter(0)))
    complete = (sum(n for n, _ in found), sum(total for _, total in found) % 2**64) == (len(hashes), int(hashes.sum()))
    if not complete:
        shutil.rmtree(folder)
    return complete


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


def copy_files(task: Copied) -> tuple[int, int]:
    """Copy some files; return the number of documents that were matched, and the sum of the hashes of their ids."""
    removed = np.load(task.removed, mmap_mode="r")
    n = total = 0

    def keep(document: Document) -> bool:
        nonlocal n, total
        if not task.judged(document):
            return True
        name = name_hash(document.id)
        n, total = n + 1, total + name
        return not _contains(removed, name)

    with page_size_limit(*task.limits):
        for source in task.sources:
            task.collection.copy_source(source, Path(task.folder), keep)
    return n, total % 2**64


def _contains(ascending: NDArray[np.uint64], value: int) -> bool:
    position = int(np.searchsorted(ascending, np.uint64(value)))
    return position < len(ascending) and int(ascending[position]) == value
