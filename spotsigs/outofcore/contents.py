"""Contents of the documents of a store, a file that is memory-mapped while documents are decided.

Tasks find the contents of some segments each, and a last one merges them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.errors import InputError
from spotsigs.signatures.blocks import Blocks
from spotsigs.signatures.contained import Contents, contents_of
from spotsigs.storage.locations import absolute, as_path
from spotsigs.storage.store import Reader, Writer, entry_spans, fingerprint, opened, remove_tree, writing
from spotsigs.storage.tasks import LEAST_ENTRIES, Job, in_the_making, resumable, run_tasks, task_size
from spotsigs.workers.engines import Engine


def stored_contents(folder: Path, outlines: Blocks, segments: Blocks, engine: Engine, *, marked: bool) -> Contents:
    """Return the contents of documents, which tasks write unless they are in the folder.

    Parameters
    ----------
    folder : Path
        Their store.
    outlines : Blocks
        Blocks with the phrases of the documents.
    segments : Blocks
        Blocks of the same documents with the signatures that are compared.
    engine : Engine
        Where the tasks run.
    marked : bool
        As in `spotsigs.signatures.contained.contents_of`.
    """
    parts = "\n".join(map(fingerprint, (*outlines.folders, *segments.folders)))
    made_of = xxhash.xxh3_128_hexdigest(f"{parts} {marked}".encode())
    known = _open_made_of(folder, made_of)
    if known is None:
        _write_contents(folder, outlines, segments, engine, marked=marked, made_of=made_of)
        known = opened(folder, "contents")
    return Contents(known.whole("indptr", np.int64), known.mapped("hashes", np.uint32))


def _open_made_of(folder: Path, made_of: str) -> Reader | None:
    try:
        reader = opened(folder, "contents")
    except InputError:
        return None
    return reader if reader.facts.get("made_of") == made_of else None


@dataclass(frozen=True, kw_only=True)
class ContentsJob(Job):
    """Settings of all tasks: whether hashes of shingles are marked."""

    marked: bool


class PhraseBatch(NamedTuple):
    """A task: some segments, with the phrases of their documents and with the signatures that are compared."""

    job: ContentsJob
    number: int
    outlines: tuple[str, ...]
    segments: tuple[str, ...]


class Merge(NamedTuple):
    """The last task: the contents of all batches."""

    job: ContentsJob
    folder: str
    batches: int
    made_of: str


def _write_contents(
    folder: Path, outlines: Blocks, segments: Blocks, engine: Engine, *, marked: bool, made_of: str
) -> None:
    job = ContentsJob(folder=absolute(in_the_making(folder)), marked=marked)
    job.begin({"of": made_of})
    entries = row_starts(outlines.entries() + 1)
    most = task_size(int(entries[-1]), LEAST_ENTRIES)
    of_outlines, of_segments = (tuple(map(absolute, part.folders)) for part in (outlines, segments))
    spans = list(entry_spans(entries, most))
    batches = [PhraseBatch(job, k, of_outlines[i:j], of_segments[i:j]) for k, (i, j) in enumerate(spans)]
    list(run_tasks(engine, find_contents, batches, "phrases", rows=int(outlines.sizes().sum())))
    list(run_tasks(engine, merge_contents, [Merge(job, absolute(folder), len(batches), made_of)], "merging phrases"))
    remove_tree(job.path())


@resumable("contents")
def find_contents(batch: PhraseBatch, out: Writer) -> None:
    """Write the contents of the documents of some segments."""
    sizes: list[NDArray[np.int64]] = []
    outlines, segments = (Blocks(tuple(map(as_path, part))) for part in (batch.outlines, batch.segments))
    with out.growing("hashes", np.uint32) as append:
        for outline, block in zip(outlines.read("phrases"), segments.read("hashes"), strict=True):
            assert outline.phrases is not None
            contents = contents_of(outline.phrases, block.indptr, block.hashes, marked=batch.job.marked, threads=1)
            sizes.append(np.diff(contents.indptr))
            append(contents.hashes)
    out.put("sizes", np.concatenate(sizes))


def merge_contents(task: Merge) -> None:
    """Write the contents of all documents."""
    parts = [task.job.result("contents", number) for number in range(task.batches)]
    sizes = [part.whole("sizes", np.int64) for part in parts]
    with writing(as_path(task.folder), "contents") as out:
        with out.growing("hashes", np.uint32) as append:
            for part in parts:
                append(part.whole("hashes", np.uint32))
        out.put("indptr", row_starts(np.concatenate([np.empty(0, np.int64), *sizes])))
        out.facts["made_of"] = task.made_of
