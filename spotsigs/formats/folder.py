"""A folder of pages; on request each sub-folder is a cluster of duplicates, as in the original Gold Set."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import ClassVar

from spotsigs.contracts import CopyableCollection, Shard
from spotsigs.errors import InputError, option, require
from spotsigs.formats.compression import BLOCK, ENDINGS, READ_ERRORS, open_bytes
from spotsigs.formats.input_files import (
    SHARD_BYTES,
    InputFile,
    file_name,
    find_sources,
    lines,
    not_readable,
    read_head,
    why_unread,
)
from spotsigs.formats.writers import copy_whole
from spotsigs.records import Document, Skipped
from spotsigs.text.size_limits import in_words, largest_page

_HTML = re.compile(rb"(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]*+>\s*+)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)


class SortedBy(StrEnum):
    """How the pages of a folder are sorted into duplicates."""

    none = "none"
    folders = "folders"


@dataclass(frozen=True, kw_only=True)
class Folder(CopyableCollection):
    """One file a page, plain or compressed. A file that is no page is skipped, and copied as it is.

    A page is a file with one of the suffixes below, or of any name if it begins as HTML does.

    Parameters
    ----------
    path : str
        Folder, single file, glob pattern, or ``-`` to read the names of files, one a line, from standard input.
    clusters : SortedBy
        ``folders`` if duplicates are sorted into folders: the first level of sub-folders below `path` names the
        clusters, files directly in `path` have none.
    html_suffixes, text_suffixes : list of str
        Suffixes of HTML and of plain text files, before the suffix of a compression. Names without a dot have the
        empty suffix.
    shard_bytes : int
        Bytes of pages in a shard.
    """

    truth_by: ClassVar[str] = "data.clusters=folders does, where each sub-folder contains the duplicates of one page"

    path: str
    clusters: SortedBy = SortedBy.none
    html_suffixes: list[str] = field(default_factory=lambda: [".html", ".htm", ".xhtml", ""])
    text_suffixes: list[str] = field(default_factory=lambda: [".txt", ".text"])
    shard_bytes: int = SHARD_BYTES

    def __post_init__(self) -> None:
        require(self.shard_bytes > 0, f"shard_bytes must be positive, got {self.shard_bytes}")

    def sources(self) -> list[InputFile]:
        """Return the files of the collection."""
        files = find_sources(self.path)
        if self.path != "-":
            return files
        names = [Path(os.fsdecode(line.rstrip(b"\r\n"))) for _, line in lines(files[0].path) if line.strip()]
        sources = [InputFile(name, file_name(name)) for name in names]
        require(bool(sources), "standard input names no file; give one name a line")
        return sources

    def shards(self) -> Sequence[Shard]:
        """Return the shards of the collection."""
        sources = self.sources()
        if not any(self._media_type(source) for source in sources):
            endings = ", ".join(ending or "no ending" for ending in [*self.html_suffixes, *self.text_suffixes])
            raise InputError(
                f"no file of {self.path} is a page: pages begin as HTML does, or end in {endings}; "
                f"set {option('data')} of a table without a column html, text or content"
            )
        return [partial(map, self._record, batch) for batch in _file_batches(sources, self.shard_bytes)]

    def copy(self, folder: Path, keep: Callable[[Document], bool]) -> None:
        """Copy every file but the removed pages, see `spotsigs.contracts.CopyableCollection`."""
        for source in self.sources():
            self.copy_source(source, folder, keep)

    def copy_source(self, source: InputFile, folder: Path, keep: Callable[[Document], bool]) -> None:
        """Copy one file of the collection, the task of a worker."""
        record = self._record(source)
        if isinstance(record, Skipped) or keep(record):
            copy_whole(source, folder)

    def _media_type(self, source: InputFile) -> str | None:
        """Return the media type of a page, or None of another file."""
        if source.fault:
            return None
        name = Path(source.name)
        suffix = Path(name.stem if name.suffix.lower() in ENDINGS.values() else name).suffix.lower()
        if suffix in self.html_suffixes:
            return "application/xhtml+xml" if suffix == ".xhtml" else "text/html"
        if suffix in self.text_suffixes:
            return "text/plain"
        try:
            is_html = source.path.is_file() and _HTML.match(read_head(source.path, 1 << 10))
        except READ_ERRORS:
            return None
        return "text/html" if is_html else None

    def _record(self, source: InputFile) -> Document | Skipped:
        media_type = self._media_type(source)
        if source.fault:
            return Skipped(source.name, source.fault)
        if not source.path.is_file():
            return Skipped(source.name, not_readable(source.path))
        if media_type is None:
            suffix = Path(source.name).suffix
            return Skipped(source.name, f"a file ending in {suffix!r} that does not begin as HTML does is no page")
        try:
            if (size := source.path.stat().st_size) > largest_page():
                return Skipped(source.name, f"the page has {in_words(size)}, more than {in_words(largest_page())}")
            with open_bytes(source.path) as file:  # in blocks: one read allocates the memory of the largest page
                content = b"".join(takewhile(bool, (file.read(BLOCK) for _ in range(largest_page() // BLOCK + 1))))
        except READ_ERRORS as error:
            return Skipped(source.name, why_unread(error))
        if len(content) > largest_page():
            return Skipped(source.name, f"the page has more than {in_words(largest_page())}")
        folder, _, rest = source.name.partition("/")
        is_cluster = self.clusters == SortedBy.folders and rest and self.path != "-"
        return Document(id=source.name, content=content, media_type=media_type, cluster=folder if is_cluster else None)


def _file_batches(sources: Sequence[InputFile], shard_bytes: int) -> Iterator[tuple[InputFile, ...]]:
    batch: list[InputFile] = []
    size = 0
    for source in sources:
        batch.append(source)
        size += 4096
        with suppress(OSError):
            size += source.path.stat().st_size
        if size >= shard_bytes:
            yield tuple(batch)
            batch, size = [], 0
    if batch:
        yield tuple(batch)
