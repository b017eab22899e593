"""Documents from WARC and WET files."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from spotsigs.data.formats.archive import Layout, archive_shards, fault, next_record
from spotsigs.data.formats.input_files import (
    END,
    READ_ERRORS,
    SHARD_BYTES,
    Source,
    compression,
    find_sources,
    open_bytes,
    raw,
    unreadable,
)
from spotsigs.data.formats.responses import HTML_TYPES, MAX_BODY, content_type, page, parse_response
from spotsigs.data.formats.writers import Keep, copy_whole, pack, place
from spotsigs.errors import InputError, require
from spotsigs.records import CopyableCollection, Document, Shard, Skipped

if TYPE_CHECKING:
    from fastwarc import WarcRecord, WarcRecordType

LAYOUT = Layout(
    name="a WARC file",
    head=re.compile(rb"WARC/[01]\.\d+\r?\n"),
    line=re.compile(rb"(?<=\n)WARC/[01]\.\d+\r?\n(?=(?:[\w-]+:[^\n]*\n)*?WARC-Type:)"),
)

_LENGTH = re.compile(
    rb"\s*WARC/(?:[^\n]*\n)+?content-length:[ \t]*(\d+)[ \t]*\r?\n(?:[^\r\n][^\n]*\n)*\r?\n", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True)
class Warc(CopyableCollection):
    """HTTP responses of HTML type with a 2xx status, HTML resources, and the text records of WET files.

    Everything else in an archive (requests, images, redirects, revisits) is no document and is passed over. The id is
    the target URI, the date ``WARC-Date``, the charset the HTTP header's. Large files are split, see `.archive`;
    a file whose records are not compressed one by one, or with a shared zstd dictionary, is one share.

    Parameters
    ----------
    path : str
        File, folder, glob pattern, or ``-`` for standard input; plain, gzip or zstd.
    shard_bytes : int
        Bytes of a file that a worker takes at a time.

    References
    ----------
    ISO 28500:2017 (WARC 1.1); Common Crawl's WET files.
    """

    path: str
    shard_bytes: int = SHARD_BYTES

    def __post_init__(self) -> None:
        require(self.shard_bytes > 0, f"shard_bytes must be positive, got {self.shard_bytes}")

    def sources(self) -> list[Source]:
        """Return the files the collection reads."""
        return find_sources(self.path, [f".{kind}{pack}" for kind in ("warc", "wet") for pack in ("", ".gz", ".zst")])

    def shards(self) -> Sequence[Shard]:
        """Return the collection's shares."""
        try:
            import fastwarc  # noqa: F401
        except ImportError:
            raise InputError("reading WARC files needs fastwarc: pip install 'spotsigs[warc]'") from None
        return archive_shards(self.sources(), LAYOUT, self.shard_bytes, _read)

    def copy(self, folder: Path, keep: Keep) -> None:
        """Copy every record but the removed documents', each compressed on its own."""
        from fastwarc import WarcRecordType

        for source in self.sources():
            if unreadable(source.path, partial(fault, layout=LAYOUT)):
                copy_whole(source, folder)
                continue
            how = compression(source.path)
            with place(folder, source).open("xb") as out:
                for item in _scan(source, 0, END, WarcRecordType.any_type):
                    if isinstance(item, Skipped):
                        continue
                    offset, record = item
                    record.freeze()
                    found = list(_document(source, offset, record))
                    record.reader.seek(0)
                    if not any(isinstance(document, Document) and not keep(document) for document in found):
                        content = io.BytesIO()
                        record.write(content)
                        out.write(pack(content.getvalue(), how))


def _read(source: Source, start: int, stop: int) -> Iterator[Document | Skipped]:
    from fastwarc import WarcRecordType

    kinds = WarcRecordType.response | WarcRecordType.resource | WarcRecordType.conversion
    told = False
    for item in _scan(source, start, stop, kinds):
        found = [item] if isinstance(item, Skipped) else list(_document(source, *item, stop))
        if not (told and found and found == [item]):  # a damaged record may be met again where reading goes on
            yield from found
        told = any(isinstance(record, Skipped) for record in found)


def _scan(source: Source, start: int, stop: int, kinds: WarcRecordType) -> Iterator[tuple[int, WarcRecord] | Skipped]:
    """Iterate over the records of a share with their offsets; behind a damaged one go on where a record begins."""
    while start < stop:
        position, place = start, "at"
        try:
            for position, record in _records(source.path, start, stop, kinds):
                place = "behind the one at"
                yield position, record
            return
        except READ_ERRORS as error:
            yield Skipped(f"{source.name}@{position}", f"the record {place} this byte cannot be read: {error}")
        start = next_record(source.path, LAYOUT, position + 1)


def _records(path: Path, start: int, stop: int, kinds: WarcRecordType) -> Iterator[tuple[int, WarcRecord]]:
    from fastwarc import ArchiveIterator

    whole = compression(path) == "gzip" and start == 0 and stop == END and _is_one_member(path)
    with open_bytes(path) if whole else raw(path) as file:
        offset = 0
        for record in ArchiveIterator(_Window(file, start, stop), record_types=kinds, parse_http=False):
            offset = record.stream_pos
            yield start + offset, record
        if stop == END and not whole:
            _check_end(file, start + offset, compression(path))


def _is_one_member(path: Path) -> bool:
    return next_record(path, LAYOUT, 1) == path.stat().st_size


def _check_end(file: IO[bytes], position: int, packing: str) -> None:
    """Raise EOFError if the file ends inside a gzip member or a header, which the archive iterator takes for the end.

    Parameters
    ----------
    file : file
        The archive.
    position : int
        Where its last readable record begins.
    packing : str
        How it is compressed; a truncated zstd frame is told by the iterator.
    """
    file.seek(position)
    if packing == "gzip":
        stream = gzip.GzipFile(fileobj=file)
        while stream.read(1 << 20):
            pass
    while packing == "plain" and (head := file.read(1 << 16)).strip():
        length = _LENGTH.match(head)
        if length is None:
            raise EOFError("the file ends inside the header")
        position += length.end() + int(length[1]) + 4
        file.seek(position)


class _Window(io.RawIOBase):
    """The bytes of a file from `start` to `stop`."""

    def __init__(self, file: IO[bytes], start: int, stop: int) -> None:
        self._file, self._at, self._size = file, 0, stop - start
        if start:
            file.seek(start)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        left = self._size - self._at
        wanted = min(left if size < 0 else min(size, left), 1 << 20)
        block: bytes = self._file.read1(wanted)  # type: ignore[attr-defined]
        self._at += len(block)
        return block

    def tell(self) -> int:
        return self._at


def _document(source: Source, offset: int, record: WarcRecord, stop: int = END) -> Iterator[Document | Skipped]:
    """Yield the document a record holds, if it holds one."""
    from fastwarc import WarcRecordType

    uri = (record.headers.get("WARC-Target-URI") or "").strip("<> ") or f"{source.name}@{offset}"
    date = record.headers.get("WARC-Date")
    media_type, charset = content_type(record.headers.get("Content-Type") or "")
    length = record.content_length
    begin = _take(record, 1 << 16)
    if record.record_type == WarcRecordType.response and media_type == "application/http":
        wanted = parse_response(begin).is_page
    elif record.record_type == WarcRecordType.conversion:
        wanted = media_type == "text/plain"
    else:
        wanted = media_type in HTML_TYPES
    if not wanted:
        return
    if length > MAX_BODY:
        yield Skipped(uri, f"the record is larger than {MAX_BODY >> 20} MiB")
        return
    block = begin + _take(record, length)
    if len(block) < length and stop != END:
        block = _past_the_share(source.path, offset)
    if len(block) < length:
        yield Skipped(uri, f"the record is truncated: {len(block)} of {length} bytes are there")
    elif media_type == "application/http":
        yield page(uri, parse_response(block), date)
    else:
        kind = "text/plain" if media_type == "text/plain" else "text/html"
        yield Document(id=uri, content=block, media_type=kind, charset=charset, date=date)


def _take(record: WarcRecord, size: int) -> bytes:
    blocks = []
    while size > 0 and (block := record.reader.read(size)):
        blocks.append(block)
        size -= len(block)
    return b"".join(blocks)


def _past_the_share(path: Path, offset: int) -> bytes:
    """Read a record whose share was cut short inside it, see `.archive`."""
    from fastwarc import WarcRecordType

    for _, record in _records(path, offset, END - 1, WarcRecordType.any_type):
        return _take(record, record.content_length)
    return b""
