"""Documents from ARC files, the format of web archives before WARC."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, cast

from spotsigs.data.formats.archive import Layout, archive_shards, fault, next_record
from spotsigs.data.formats.input_files import (
    END,
    READ_ERRORS,
    SHARD_BYTES,
    Source,
    compression,
    find_sources,
    raw,
    unreadable,
)
from spotsigs.data.formats.responses import HTML_TYPES, MAX_BODY, iso_date, page, parse_response
from spotsigs.data.formats.writers import Keep, copy_whole, pack, place
from spotsigs.errors import require
from spotsigs.records import CopyableCollection, Document, Shard, Skipped

_FIELDS = rb"(?P<url>[A-Za-z][\w+.-]*:\S*) [\d.a-fA-F:]+ (?P<date>\d{8,14}) (?P<type>\S+)(?: .*)? (?P<length>\d+)\r?\n"

LAYOUT = Layout(name="an ARC file", head=re.compile(_FIELDS), line=re.compile(rb"(?<=\n)" + _FIELDS))


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

    def sources(self) -> list[Source]:
        """Return the files the collection reads."""
        return find_sources(self.path, [".arc", ".arc.gz"])

    def shards(self) -> Sequence[Shard]:
        """Return the collection's shares."""
        return archive_shards(self.sources(), LAYOUT, self.shard_bytes, _read)

    def copy(self, folder: Path, keep: Keep) -> None:
        """Copy every record but the removed documents', each compressed on its own."""
        for source in self.sources():
            if unreadable(source.path, partial(fault, layout=LAYOUT)):
                copy_whole(source, folder)
                continue
            how = compression(source.path)
            with place(folder, source).open("xb") as out:
                for item in _scan(source, 0, END, lambda media_type, length: True):
                    if isinstance(item, Skipped):
                        continue
                    line, block = item
                    media_type = line["type"].decode("latin-1").lower().partition(";")[0]
                    found = _document(line, block) if _may_be_page(media_type, len(block)) else ()
                    if not any(isinstance(document, Document) and not keep(document) for document in found):
                        out.write(pack(line[0] + block + b"\n", how))


def _read(source: Source, start: int, stop: int) -> Iterator[Document | Skipped]:
    for item in _scan(source, start, stop, _may_be_page):
        if isinstance(item, Skipped):
            yield item
        elif item[1]:
            yield from _document(*item)


def _may_be_page(media_type: str, length: int) -> bool:
    return media_type in HTML_TYPES | {"no-type", "unknown", "-"} and length <= MAX_BODY


def _scan(
    source: Source, start: int, stop: int, wanted: Callable[[str, int], bool]
) -> Iterator[tuple[re.Match[bytes], bytes] | Skipped]:
    """Iterate over the record lines and blocks of a share; behind a damaged record go on where the next one begins."""
    packed = compression(source.path) == "gzip"
    while start < stop:
        with raw(source.path) as file:
            file.seek(start)
            content = _GzipMembers(file, start) if packed else None
            stream: IO[bytes] = io.BufferedReader(content) if content else file
            position = start
            try:
                while (position := content.record_start(stream) if content else file.tell()) < stop:
                    line = stream.readline(1 << 16)
                    if not line:
                        return
                    if line.strip():
                        yield _record(line, stream, wanted)
                return
            except READ_ERRORS as error:
                yield Skipped(f"{source.name}@{position}", f"the record at this byte cannot be read: {error}")
        start = next_record(source.path, LAYOUT, position + 1)


def _record(
    line: bytes, stream: IO[bytes], wanted: Callable[[str, int], bool]
) -> tuple[re.Match[bytes], bytes] | Skipped:
    """Read the block that belongs to a record line, an empty one where it is not wanted."""
    found = LAYOUT.head.fullmatch(line)
    if found is None:
        raise OSError(f"{line[:60]!r} is no record line")
    length = int(found["length"])
    media_type = found["type"].decode("latin-1").lower().partition(";")[0]
    if wanted(media_type, length):
        block = stream.read(length)
        if len(block) < length:
            raise EOFError(f"{_url(found)} is truncated, {len(block)} of {length} bytes are there")
        return found, block
    while length > 0:
        block = stream.read(min(length, 1 << 20))
        if not block:
            raise EOFError(f"{_url(found)} is truncated")
        length -= len(block)
    if int(found["length"]) > MAX_BODY and _may_be_page(media_type, 0):
        return Skipped(_url(found), f"the record is larger than {MAX_BODY >> 20} MiB")
    return found, b""


def _url(line: re.Match[bytes]) -> str:
    return line["url"].decode("utf-8", "replace")


def _document(line: re.Match[bytes], block: bytes) -> Iterator[Document | Skipped]:
    response = parse_response(block)
    if response.is_page:
        yield page(_url(line), response, iso_date(line["date"]))


class _GzipMembers(io.RawIOBase):
    """The content of a file of gzip members that knows where in the file the current member begins."""

    def __init__(self, file: IO[bytes], start: int) -> None:
        self._file = file
        self._input = b""
        self._member: zlib._Decompress | None = None
        self.member_start = start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while True:
            self._input = self._input or self._file.read(1 << 16)
            if self._member is None:
                if not self._input:
                    return 0
                self.member_start = self._file.tell() - len(self._input)
                self._member = zlib.decompressobj(zlib.MAX_WBITS | 16)
            at_end = not self._input
            output = self._member.decompress(self._input, len(buffer))
            ended = self._member.eof
            self._input = self._member.unused_data if ended else self._member.unconsumed_tail
            if ended:
                self._member = None
            if output:
                buffer[: len(output)] = output
                return len(output)
            if at_end and not ended:
                raise EOFError("the gzip stream is truncated")

    def record_start(self, stream: IO[bytes]) -> int:
        """Return where the member of the byte that `stream` gives next begins; the end of the file behind the last."""
        return self.member_start if cast("io.BufferedReader", stream).peek(1) else END
