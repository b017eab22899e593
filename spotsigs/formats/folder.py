"""A folder of pages; on request each sub-folder is a cluster of duplicates, as in the original Gold Set."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import ClassVar, cast

from spotsigs.errors import InputError, require
from spotsigs.formats.input_files import (
    SHARD_BYTES,
    InputFile,
    file_name,
    find_sources,
    lines,
    not_readable,
    reason,
)
from spotsigs.formats.writers import Keep, copy_whole, target_of
from spotsigs.records import CopyableCollection, Document, Shard, Skipped
from spotsigs.text.size_limits import in_words, largest_page


class SortedBy(StrEnum):
    """What says which pages of a folder are duplicates."""

    none = "none"
    folders = "folders"


@dataclass(frozen=True, kw_only=True)
class Folder(CopyableCollection):
    """One file a page. Hidden files are left out; files with another ending are counted as skipped.

    Parameters
    ----------
    path : str
        Folder, single file, glob pattern, or ``-`` to read the names of files, one a line, from standard input.
    clusters : SortedBy
        ``folders`` where somebody sorted duplicates into folders: the first level of sub-folders below `path` names
        the clusters, files directly in `path` carry none. The folders of a mirrored site say nothing of the kind.
    html_suffixes, text_suffixes : list of str
        Endings of HTML and of plain text files; the empty one stands for names without a dot.
    shard_bytes : int
        Bytes of pages that a worker takes at a time.
    """

    truth_by: ClassVar[str] = "data.clusters=folders does, where each sub-folder holds the duplicates of one page"

    path: str
    clusters: SortedBy = SortedBy.none
    html_suffixes: list[str] = field(default_factory=lambda: [".html", ".htm", ".xhtml", ""])
    text_suffixes: list[str] = field(default_factory=lambda: [".txt", ".text"])
    shard_bytes: int = SHARD_BYTES

    def __post_init__(self) -> None:
        require(self.shard_bytes > 0, f"shard_bytes must be positive, got {self.shard_bytes}")

    def sources(self) -> list[InputFile]:
        """Return the files the collection reads."""
        found = find_sources(self.path)
        if self.path != "-":
            return found
        names = [Path(os.fsdecode(line.rstrip(b"\r\n"))) for _, line in lines(found[0].path) if line.strip()]
        sources = [InputFile(name, file_name(name)) for name in names]
        require(bool(sources), "standard input names no file; give one name a line")
        return sources

    def shards(self) -> Sequence[Shard]:
        """Return the collection's shares."""
        sources = self.sources()
        if not any(self._media_type(source) for source in sources):
            endings = ", ".join(ending or "no ending" for ending in [*self.html_suffixes, *self.text_suffixes])
            raise InputError(f"none of the {len(sources)} files of {self.path} is a page; pages end in {endings}")
        return [partial(_read, self, batch) for batch in _batches(sources, self.shard_bytes)]

    def copy(self, folder: Path, keep: Keep) -> None:
        """Copy every file but the removed pages, see `spotsigs.records.CopyableCollection`."""
        for source in self.sources():
            record = _record(self, source)
            if isinstance(record, Skipped):
                copy_whole(source, folder)
            elif keep(record):
                target_of(folder, source).write_bytes(cast("bytes", record.content))

    def _media_type(self, source: InputFile) -> str | None:
        suffix = Path(source.name).suffix.lower()
        if suffix in self.html_suffixes:
            return "text/html"
        return "text/plain" if suffix in self.text_suffixes else None


def _batches(sources: Sequence[InputFile], shard_bytes: int) -> Iterator[tuple[InputFile, ...]]:
    batch: list[InputFile] = []
    size = 0
    for source in sources:
        batch.append(source)
        size += 4096 + _size(source.path)
        if size >= shard_bytes:
            yield tuple(batch)
            batch, size = [], 0
    if batch:
        yield tuple(batch)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read(collection: Folder, sources: Sequence[InputFile]) -> Iterator[Document | Skipped]:
    return (_record(collection, source) for source in sources)


def _record(collection: Folder, source: InputFile) -> Document | Skipped:
    media_type = collection._media_type(source)
    if media_type is None:
        return Skipped(source.name, f"a file ending in {Path(source.name).suffix!r} is taken for no page")
    folder, _, rest = source.name.partition("/")
    truth = collection.clusters == SortedBy.folders
    cluster = folder if truth and rest and collection.path != "-" else None
    if not source.path.is_file():
        return Skipped(source.name, not_readable(source.path))
    if (size := _size(source.path)) > largest_page():
        return Skipped(source.name, f"the page has {in_words(size)}, more than {in_words(largest_page())}")
    try:
        with source.path.open("rb") as file:
            content = file.read(largest_page() + 1)  # it may have grown
    except OSError as error:
        return Skipped(source.name, reason(error))
    if len(content) > largest_page():
        return Skipped(source.name, f"the page has more than {in_words(largest_page())}")
    return Document(id=source.name, content=content, media_type=media_type, cluster=cluster)
