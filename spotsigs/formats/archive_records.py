"""Web archives (WARC, ARC): their records one by one, in shards that begin at a record, and copies of them.

A shard begins at the first record after its position in the file: a gzip member, a zstd frame or a header line whose
content begins like a record. Only the first bytes of each candidate are decompressed. An archive that itself contains
an uncompressed copy of an archive may be entered inside that copy, so that its pages appear too; no record is lost by
that, because the previous shard reads its last record to the end.

fastwarc 2.0 and warcio 1.8 are not used: fastwarc ends at an empty gzip member, raises at padding and at the first
damaged member, and reads no ARC; warcio reads no zstd and no archive of a single gzip member. Tests compare with both.
"""

from __future__ import annotations

import io
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, ClassVar

from spotsigs.formats.compression import BLOCK, READ_ERRORS, Members, compression, raw
from spotsigs.formats.file_collection import FileCollection
from spotsigs.formats.input_files import END, InputFile, located
from spotsigs.formats.writers import packed
from spotsigs.records import Document, Skipped
from spotsigs.text.size_limits import in_words, largest_page

LINE = 1 << 16
"""Bytes of the longest line of a record's header."""

_OVERLAP = 4096
_MARKS = {
    "gzip": re.compile(rb"\x1f\x8b\x08[\x00-\x1f]"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
    "bzip2": re.compile(rb"BZh[1-9]1AY&SY"),
}


@dataclass(frozen=True, slots=True)
class Head:
    """The header of a record."""

    text: bytes  # as stored, with the line end that closes it
    uri: str  # address of the capture; empty if the record has none
    length: int  # bytes of the block that follows
    fields: Mapping[str, str]  # by lower-case names


@dataclass(slots=True)
class Record:
    """A record whose block is read as far as it is needed."""

    position: str  # file and byte
    head: Head
    stream: IO[bytes] = field(repr=False)
    _taken: list[bytes] = field(default_factory=list)
    _at: int = 0

    @property
    def name(self) -> str:
        """The id of the record if it is skipped."""
        return located(self.head.uri, self.position)

    @property
    def missing(self) -> int:
        """Bytes of the block that were not read."""
        return self.head.length - self._at

    def take(self, size: int) -> bytes:
        """Read the next bytes of the block, fewer where the file ends, and keep them."""
        block = self._next(size)
        self._taken.append(block)
        return block

    def pieces(self) -> Iterator[bytes]:
        """Iterate over the block: the bytes kept, and the rest in pieces."""
        yield from self._taken
        while block := self._next(BLOCK):
            yield block

    def whole(self) -> bytes | Skipped | None:
        """Return the block; the reason if it is too large for a page; None if the file does not contain all of it."""
        if self.head.length > largest_page():
            self.skip()
            reason = f"the record is larger than {in_words(largest_page())}"
            return None if self.missing else Skipped(self.name, reason)
        if self.missing:
            self.take(self.missing)
        if len(self._taken) != 1:
            self._taken = [b"".join(self._taken)]
        return None if self.missing else self._taken[0]

    def skip(self) -> None:
        """Read the rest of the block without keeping it."""
        while self._next(BLOCK):
            pass

    def _next(self, size: int) -> bytes:
        block = self.stream.read(min(size, self.missing))
        self._at += len(block)
        return block


def block_length(digits: bytes) -> int:
    """Return the length that a header declares; an impossible one is an OSError."""
    if not re.fullmatch(rb"\d{1,18}", digits):
        raise OSError(f"{digits[:30]!r} is no length of a record")
    return int(digits)


@dataclass(frozen=True, kw_only=True)
class Archive(FileCollection):
    """A collection of archives of one format."""

    format: ClassVar[str]  # its name in messages
    first: ClassVar[re.Pattern[bytes]]  # matches the first bytes of a record
    line: ClassVar[re.Pattern[bytes]]  # finds a record in uncompressed text; begins with a look-behind for a line end
    end: ClassVar[bytes]  # follows a block

    @abstractmethod
    def parse(self, line: bytes, stream: IO[bytes]) -> Head:
        """Read the header that begins with a line; raise OSError if it is none, EOFError if it is cut short."""

    @abstractmethod
    def documents(self, record: Record) -> Iterator[Document | Skipped]:
        """Yield the document of a record, if it is a page and complete."""

    def records(self, source: InputFile, start: int, stop: int) -> Iterator[Document | Skipped]:
        """Iterate over the documents that begin in a shard."""
        for record in self._records(source, start, stop):
            if isinstance(record, Skipped):
                yield record
            else:
                yield from self.documents(record)

    def _records(self, source: InputFile, start: int = 0, stop: int = END) -> Iterator[Record | Skipped]:
        """Iterate over the records that begin in a shard; after a damaged one, resume where the next one begins.

        A record whose block turns out to be damaged or truncated is followed by the reason.
        """
        packing = compression(source.path)
        while start < stop:
            with raw(source.path) as file:
                file.seek(start)
                content = Members(file, packing, raises=False)
                stream: IO[bytes] = file if packing == "plain" else io.BufferedReader(content, LINE)
                position = start
                try:
                    while True:
                        found = (file.tell(), 0) if packing == "plain" else content.position(stream)  # type: ignore[arg-type]
                        position, inner = found or (position, 0)
                        line = stream.readline(LINE) if position < stop and found else b""
                        if not line:
                            if position < stop and content.damage:
                                raise content.damage
                            return
                        if line.strip():
                            at = f"{source.name}@{position}{f'+{inner}' if inner else ''}"
                            record = Record(at, self.parse(line, stream), stream)
                            yield record
                            record.skip()
                            if record.missing:
                                yield _broken(record, content.damage)
                                break
                except READ_ERRORS as error:
                    yield Skipped(f"{source.name}@{position}", f"the record at this byte cannot be read: {error}")
            start = self._next_record(source.path, position + 1)

    def copy_file(self, source: InputFile, target: Path, keep: Callable[[Document], bool]) -> None:
        """Copy every record but the removed documents', each compressed on its own."""
        how = compression(source.path)
        with target.open("xb") as out:
            for record in self._records(source):
                if isinstance(record, Skipped):
                    continue
                if any(isinstance(found, Document) and not keep(found) for found in self.documents(record)):
                    continue
                begin = out.tell()
                with packed(out, how) as stream:
                    stream.write(record.head.text)
                    for piece in record.pieces():
                        stream.write(piece)
                    stream.write(self.end)
                if record.missing:  # it is damaged
                    out.seek(begin)
                    out.truncate()

    def fault(self, path: Path) -> str | None:
        """Return why a file is no archive of this format, or None if it is one."""
        packing = compression(path)
        with raw(path) as file:
            if not file.read(1):
                return f"the file is empty, not {self.format}"
            begin = _beginning(file, 0, packing)
        if not begin:
            return "its compressed stream is damaged or ends before a record begins"
        return None if self.first.match(begin) else f"the file is not {self.format}: it begins with {begin[:24]!r}"

    def cut(self, path: Path) -> list[tuple[int, int]]:
        """Return the shards of an archive as byte ranges of the file, each beginning at a record."""
        size = path.stat().st_size
        parts = 1 if compression(path) == "zstd with dictionary" else max(1, round(size / self.shard_bytes))
        starts = [0]
        for target in (size * k // parts for k in range(1, parts)):
            if target > starts[-1]:
                starts.append(self._next_record(path, target))
        if starts[-1] >= size:
            starts.pop()
        return list(zip(starts, [*starts[1:], END], strict=True))

    def _next_record(self, path: Path, position: int) -> int:
        """Return the offset of the first record at or after a byte of the file, or the file's size."""
        packing = compression(path)
        mark = _MARKS.get(packing, self.line)
        base = max(0, position - 1)  # one byte earlier, for the look-behind
        with raw(path) as file:
            while True:
                file.seek(base)
                block = file.read(BLOCK + _OVERLAP)
                last = len(block) < BLOCK + _OVERLAP
                for match in mark.finditer(block):
                    start = base + match.start()
                    if start < position or (match.start() > BLOCK and not last):
                        continue
                    if packing == "plain" or self.first.match(_beginning(file, start, packing)):
                        return start
                if last:
                    return base + len(block)
                base += BLOCK
                position = max(position, base)


def _broken(record: Record, damage: Exception | None) -> Skipped:
    if damage is not None and not isinstance(damage, EOFError):
        return Skipped(record.position, f"the record at this byte cannot be read: {damage}")
    there, length = record.head.length - record.missing, record.head.length
    return Skipped(record.name, f"the record is truncated: {there} of {length} bytes are there")


def _beginning(file: IO[bytes], start: int, packing: str) -> bytes:
    """Return the first unpacked bytes from an offset on; none if they cannot be unpacked."""
    file.seek(start)
    stream = file if packing == "plain" else io.BufferedReader(Members(file, packing, raises=False), _OVERLAP)
    return stream.read(_OVERLAP)
