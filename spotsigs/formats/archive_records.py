"""Web archives (WARC, ARC): their records one by one, in shares that begin at a record, and copies of them.

A share begins at the first record behind its place in the file: a gzip member, a zstd frame or a header line whose
content begins like a record. Nothing is decompressed but the first bytes of each candidate. An archive that itself
holds an uncompressed copy of an archive may be entered inside that copy, so that its pages appear too; no record is
ever lost by that, because the share before reads its last record to the end.

Members and frames are followed here, whatever they hold, rather than by a library that takes an empty one for the end.
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

import zstandard

from spotsigs.formats.input_files import (
    END,
    READ_ERRORS,
    ZSTD_PIECE,
    InputFile,
    compression,
    file_shards,
    raw,
    unreadable,
    zstd_frame,
)
from spotsigs.formats.writers import Keep, copy_whole, packed, target_of
from spotsigs.records import Document, Shard, Skipped

LINE = 1 << 16
"""Bytes of the longest line of a record's header."""

_BLOCK = 1 << 20
_READ = 1 << 16
_OVERLAP = 4096
_MOST_DICTIONARY = 64 << 20
_MARKS = {"gzip": re.compile(rb"\x1f\x8b\x08[\x00-\x1f]"), "zstd": re.compile(rb"\x28\xb5\x2f\xfd")}


@dataclass(frozen=True, slots=True)
class Head:
    """The header of a record.

    Attributes
    ----------
    text : bytes
        As it stands, with the line end that closes it.
    uri : str
        What was fetched; empty where the record does not say.
    length : int
        Bytes of the block behind it.
    fields : mapping of str to str
        By lower-case names.
    """

    text: bytes
    uri: str
    length: int
    fields: Mapping[str, str]


@dataclass(slots=True)
class Record:
    """A record whose block is read as far as it is wanted.

    Attributes
    ----------
    place : str
        File and byte, which name a record without URI.
    head : Head
        Its header.
    """

    place: str
    head: Head
    stream: IO[bytes] = field(repr=False)
    _taken: list[bytes] = field(default_factory=list)
    _at: int = 0

    @property
    def missing(self) -> int:
        """Bytes of the block that were not read."""
        return self.head.length - self._at

    def take(self, size: int) -> bytes:
        """Return the next bytes of the block, fewer where the file ends, and remember them."""
        block = self._next(size)
        self._taken.append(block)
        return block

    def pieces(self) -> Iterator[bytes]:
        """Iterate over the block: what was taken, and the rest in pieces."""
        yield from self._taken
        while block := self._next(_BLOCK):
            yield block

    def whole(self) -> bytes:
        """Return the block, fewer bytes where the file ends, and remember it once."""
        if self.missing:
            self.take(self.missing)
        if len(self._taken) != 1:
            self._taken = [b"".join(self._taken)]
        return self._taken[0]

    def skip(self) -> None:
        """Pass over the rest of the block."""
        while self._next(_BLOCK):
            pass

    def _next(self, size: int) -> bytes:
        block = self.stream.read(min(size, self.missing))
        self._at += len(block)
        return block


@dataclass(frozen=True, slots=True)
class ArchiveLayout:
    """How the records of an archive format look.

    Attributes
    ----------
    name : str
        The format's name.
    head : Pattern
        Matches the first bytes of a record.
    line : Pattern
        Finds the first line of a record in uncompressed text; begins with a look-behind for the line end before it.
    parse : callable
        ``(first line, stream) -> Head``; what is no header is an OSError, one that is cut short an EOFError.
    documents : callable
        ``(record) -> iterator``: the document that a record holds, if it is a page and all there.
    end : bytes
        What stands behind a block.
    """

    name: str
    head: re.Pattern[bytes]
    line: re.Pattern[bytes]
    parse: Callable[[bytes, IO[bytes]], Head]
    documents: Callable[[Record], Iterator[Document | Skipped]]
    end: bytes


def block_length(digits: bytes) -> int:
    """Return the length that a header declares; what no file can hold is an OSError."""
    if not re.fullmatch(rb"\d{1,18}", digits):
        raise OSError(f"{digits[:30]!r} is no length of a record")
    return int(digits)


def archive_shards(sources: Sequence[InputFile], layout: ArchiveLayout, shard_bytes: int) -> list[Shard]:
    """Return the shares of a collection of archives, see `spotsigs.formats.input_files.file_shards`."""
    cut = partial(archive_shares, layout=layout, shard_bytes=shard_bytes)
    return file_shards(sources, partial(fault, layout=layout), cut, partial(_read, layout=layout))


def _read(source: InputFile, start: int, stop: int, layout: ArchiveLayout) -> Iterator[Document | Skipped]:
    for record in records(source, layout, start, stop):
        if isinstance(record, Skipped):
            yield record
        else:
            yield from layout.documents(record)


def records(source: InputFile, layout: ArchiveLayout, start: int = 0, stop: int = END) -> Iterator[Record | Skipped]:
    """Iterate over the records that begin in a share; behind a damaged one go on where the next one begins.

    A record whose block turns out to be damaged or cut short is followed by the reason.
    """
    packing = compression(source.path)
    while start < stop:
        with raw(source.path) as file:
            file.seek(start)
            content = Members(file, packing)
            stream: IO[bytes] = file if packing == "plain" else io.BufferedReader(content, _READ)
            position = start
            try:
                while True:
                    position, inner = content.position(stream)
                    line = stream.readline(LINE) if position < stop else b""
                    if not line:
                        if position < stop and content.damage:
                            raise content.damage
                        return
                    if line.strip():
                        at = f"{source.name}@{position}{f'+{inner}' if inner else ''}"
                        record = Record(at, layout.parse(line, stream), stream)
                        yield record
                        record.skip()
                        if record.missing:
                            yield _broken(record, content.damage)
                            break
            except READ_ERRORS as error:
                yield Skipped(f"{source.name}@{position}", f"the record at this byte cannot be read: {error}")
        start = next_record(source.path, layout, position + 1)


def _broken(record: Record, damage: Exception | None) -> Skipped:
    if damage is not None and not isinstance(damage, EOFError):
        return Skipped(record.place, f"the record at this byte cannot be read: {damage}")
    there, length = record.head.length - record.missing, record.head.length
    return Skipped(record.head.uri or record.place, f"the record is truncated: {there} of {length} bytes are there")


class Members(io.RawIOBase):
    """The content of a file of gzip members or zstd frames, which knows where in the file the current one begins.

    It ends where the file does, or at damage, which it keeps.
    """

    def __init__(self, file: IO[bytes], packing: str) -> None:
        self._file, self._packing = file, packing
        self._input, self._output = b"", memoryview(b"")
        self._member: Any = None
        self._start = self._given = 0
        self.damage: Exception | None = None
        self._dictionary = _dictionary(file) if packing == "zstd with dictionary" else None

    def readable(self) -> bool:
        """Return true."""
        return True

    def position(self, stream: IO[bytes]) -> tuple[int, int]:
        """Return where the member of the byte that `stream` gives next begins, and how far that byte lies in it."""
        if self._packing == "plain":
            return self._file.tell(), 0
        waiting = len(stream.peek(1))  # type: ignore[attr-defined]
        if not waiting and self.damage is None:
            return END, 0
        return self._start, self._given - waiting

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Decompress into a buffer; nothing at the end."""
        try:
            while not self._output and self._fill(len(buffer)):
                pass
        except READ_ERRORS as error:
            self.damage = error
        size = min(len(buffer), len(self._output))
        buffer[:size] = self._output[:size]
        self._output = self._output[size:]
        self._given += size
        return size

    def _fill(self, size: int) -> bool:
        """Decompress a little; return whether the file goes on."""
        if self.damage is not None:
            return False
        at_end = not self._input and not (more := self._file.read(_READ))
        self._input = self._input or (b"" if at_end else more)
        if self._member is None:
            if self._packing == "gzip":
                self._input = self._input.lstrip(b"\0")  # padding
            if not self._input:
                return not at_end
            self._start, self._given = self._file.tell() - len(self._input), 0
            self._member = self._decompressor()
        if self._packing == "gzip":
            self._output = memoryview(self._member.decompress(self._input, size))
            rest = self._member.unconsumed_tail
        else:
            self._output = memoryview(self._member.decompress(self._input[:ZSTD_PIECE]))
            rest = self._input[ZSTD_PIECE:]
        if self._member.eof:
            rest = self._member.unused_data + (b"" if self._packing == "gzip" else rest)
            self._member = None
        elif at_end and not self._output:
            raise EOFError("the compressed stream is truncated")
        self._input = rest
        return True

    def _decompressor(self) -> Any:
        if self._packing == "gzip":
            return zlib.decompressobj(zlib.MAX_WBITS | 16)
        return zstd_frame(self._dictionary)


def _dictionary(file: IO[bytes]) -> zstandard.ZstdCompressionDict:
    """Read the dictionary in the skippable frame before the first record."""
    size = int.from_bytes(file.read(8)[4:], "little")
    content = file.read(min(size, _MOST_DICTIONARY))
    if _MARKS["zstd"].match(content):
        content = zstandard.ZstdDecompressor().decompress(content, _MOST_DICTIONARY)
    return zstandard.ZstdCompressionDict(content)


def copy_archives(sources: Sequence[InputFile], layout: ArchiveLayout, folder: Path, keep: Keep) -> None:
    """Copy every record but the removed documents', each compressed on its own; what is no archive stays as it is."""
    for source in sources:
        if unreadable(source.path, partial(fault, layout=layout)):
            copy_whole(source, folder)
            continue
        how = compression(source.path)
        with target_of(folder, source).open("xb") as out:
            for record in records(source, layout):
                if not isinstance(record, Skipped) and not _removed(layout, record, keep):
                    begin = out.tell()
                    with packed(out, how) as stream:
                        stream.write(record.head.text)
                        for piece in record.pieces():
                            stream.write(piece)
                        stream.write(layout.end)
                    if record.missing:  # it is damaged
                        out.seek(begin)
                        out.truncate()


def _removed(layout: ArchiveLayout, record: Record, keep: Keep) -> bool:
    return any(isinstance(found, Document) and not keep(found) for found in layout.documents(record))


def fault(path: Path, layout: ArchiveLayout) -> str | None:
    """Return why a file is no archive of this format, or None if it is one."""
    packing = compression(path)
    with raw(path) as file:
        if not file.read(1):
            return f"the file is empty, not {layout.name}"
        begin = _beginning(file, 0, packing)
    if not begin:
        return "its compressed stream is damaged or ends before a record begins"
    return None if layout.head.match(begin) else f"the file is not {layout.name}: it begins with {begin[:24]!r}"


def archive_shares(path: Path, layout: ArchiveLayout, shard_bytes: int) -> list[tuple[int, int]]:
    """Return the shares of an archive as byte ranges of the file, each beginning at a record."""
    size = path.stat().st_size
    parts = 1 if compression(path) == "zstd with dictionary" else max(1, round(size / shard_bytes))
    starts = [0]
    for target in (size * k // parts for k in range(1, parts)):
        if target > starts[-1]:
            starts.append(next_record(path, layout, target))
    if starts[-1] >= size:
        starts.pop()
    return list(zip(starts, [*starts[1:], END], strict=True))


def next_record(path: Path, layout: ArchiveLayout, position: int) -> int:
    """Return where the first record at or behind a byte of the file begins; the file's size where none does."""
    packing = compression(path)
    mark = _MARKS.get(packing, layout.line)
    base = max(0, position - 1)  # one byte earlier, for the look-behind
    with raw(path) as file:
        while True:
            file.seek(base)
            block = file.read(_BLOCK + _OVERLAP)
            last = len(block) < _BLOCK + _OVERLAP
            for match in mark.finditer(block):
                start = base + match.start()
                if start < position or (match.start() > _BLOCK and not last):
                    continue
                if packing == "plain" or layout.head.match(_beginning(file, start, packing)):
                    return start
            if last:
                return base + len(block)
            base += _BLOCK
            position = max(position, base)


def _beginning(file: IO[bytes], start: int, packing: str) -> bytes:
    """Decompress the first bytes from a place on; nothing where they do not."""
    file.seek(start)
    stream = file if packing == "plain" else io.BufferedReader(Members(file, packing), _OVERLAP)
    return stream.read(_OVERLAP)
