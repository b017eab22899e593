"""Documents from ARC files, the format of web archives before WARC."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from spotsigs.errors import require
from spotsigs.formats.archive_records import ArchiveLayout, Head, Record, archive_shards, block_length, copy_archives
from spotsigs.formats.http_response import HTML_TYPES, iso_date, page, parse_response
from spotsigs.formats.input_files import SHARD_BYTES, InputFile, find_sources
from spotsigs.formats.writers import Keep
from spotsigs.records import CopyableCollection, Document, Shard, Skipped
from spotsigs.text.size_limits import in_words, largest_page

_FIELDS = rb"(?P<url>[A-Za-z][\w+.-]*:\S*) [\d.a-fA-F:]+ (?P<date>\d{8,14}) (?P<type>\S+)(?: .*)? (?P<length>\d+)\r?\n"
_FIRST = re.compile(_FIELDS)


@dataclass(frozen=True, kw_only=True)
class Arc(CopyableCollection):
    """HTTP responses of HTML type with a 2xx status.

    The id is the URL, the date the archive date. Both versions of the record line are read (``URL IP date type
    length`` and the one with checksum and offset). Large files are split, see `.archive`.

    Parameters
    ----------
    path : str
        File, folder, glob pattern, or ``-`` for standard input; plain, or gzip with one member a record.
    shard_bytes : int
        Bytes of a file that a worker takes at a time.

    References
    ----------
    M. Burner and B. Kahle, *Arc File Format*, Internet Archive, 1996.
    """

    path: str
    shard_bytes: int = SHARD_BYTES

    def __post_init__(self) -> None:
        require(self.shard_bytes > 0, f"shard_bytes must be positive, got {self.shard_bytes}")

    def sources(self) -> list[InputFile]:
        """Return the files the collection reads."""
        return find_sources(self.path, [".arc", ".arc.gz"])

    def shards(self) -> Sequence[Shard]:
        """Return the collection's shares."""
        return archive_shards(self.sources(), LAYOUT, self.shard_bytes)

    def copy(self, folder: Path, keep: Keep) -> None:
        """Copy every record but the removed documents', each compressed on its own, ."""
        copy_archives(self.sources(), LAYOUT, folder, keep)


def _parse(line: bytes, stream: IO[bytes]) -> Head:
    found = _FIRST.fullmatch(line)
    if found is None:
        raise OSError(f"{line[:60]!r} is no record line")
    fields = {name: value.decode("utf-8", "replace") for name, value in found.groupdict().items()}
    return Head(line, fields["url"], block_length(found["length"]), fields)


def _documents(record: Record) -> Iterator[Document | Skipped]:
    """Yield the page a record holds, if it holds one."""
    fields, uri, length = record.head.fields, record.head.uri, record.head.length
    if fields["type"].lower().partition(";")[0] not in HTML_TYPES | {"no-type", "unknown", "-"}:
        return
    if length > largest_page():
        record.skip()
        if not record.missing:
            yield Skipped(uri, f"the record is larger than {in_words(largest_page())}")
        return
    if len(record.whole()) == length and (found := _page(record)) is not None:
        yield found


def _page(record: Record) -> Document | Skipped | None:
    response = parse_response(record.whole())
    date = iso_date(record.head.fields["date"].encode())
    return page(record.head.uri, response, date) if response.is_page else None


LAYOUT = ArchiveLayout(
    name="an ARC file",
    head=_FIRST,
    line=re.compile(rb"(?<=\n)" + _FIELDS),
    parse=_parse,
    documents=_documents,
    end=b"\n",
)
