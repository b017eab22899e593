"""Web archives (WARC, ARC): their records one by one, in shards that begin at a record, and copies of them.

A record is found by the lengths of the records before it, never by its look, because a page may contain whole records:
as text, or as gzip members that the archive stores as they are. So a pass over its headers, which unpacks the archive
once more, finds the shards of an archive, and reading and copying see the same records. Only after damage, where no
length is known, the next record is the next one that looks like one.

fastwarc 2.0 and warcio 1.8 are not used: fastwarc ends at an empty gzip member, raises at padding and at the first
damaged member, and reads no ARC; warcio reads no zstd and no archive of a single gzip member. Tests compare with both.
"""

from __future__ import annotations

import logging
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest
from zstandard import ZstdCompressionDict

from spotsigs.formats.archive_content import OVERLAP, Content, Position, search
from spotsigs.formats.compression import BLOCK, READ_ERRORS, compression, open_stored, packing_of
from spotsigs.formats.file_collection import FileCollection
from spotsigs.formats.http_response import MOST_HEADER, has_whole_header, parse_response
from spotsigs.formats.input_files import END, InputFile, positioned
from spotsigs.formats.writers import open_packed
from spotsigs.records import Document, Skipped
from spotsigs.text.size_limits import in_words, largest_page

LINE = 1 << 16
"""Bytes of the longest line of a record's header."""

_MARK = np.dtype([("id", "u8"), ("record", "i8"), ("at", "i8"), ("is_inside", "?"), ("follows", "?"), ("stays", "?")])

KINDS = 1000
"""Records whose kinds are counted if none is a page."""

_LOG = logging.getLogger(__name__)
_UNREADABLE = "the record at this byte cannot be read: {}"
_PACKED = rb"(?P<packed>\x1f\x8b\x08[\x00-\x1f]|\x28\xb5\x2f\xfd|BZh[1-9]1AY&SY)"


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

    start: Position
    position: str  # file and byte
    head: Head
    stream: Content = field(repr=False)
    ends: Callable[[Content, int], bool | None] = field(repr=False)  # whether a record may end so many bytes ahead
    _taken: list[bytes] = field(default_factory=list)
    _at: int = 0
    _is_whole: bool | None = None  # None if it is not known yet

    @property
    def name(self) -> str:
        """The id of the record if it is skipped."""
        return positioned(self.head.uri, self.position)

    @property
    def missing(self) -> int:
        """Bytes of the block that were not read."""
        return self.head.length - self._at

    def take(self, size: int) -> bytes:
        """Read the next bytes of the block, fewer where the file ends, and keep them."""
        block = self._read_block(size)
        self._taken.append(block)
        return block

    def pieces(self) -> Iterator[bytes]:
        """Iterate over the block: the bytes kept, and the rest in pieces."""
        yield from self._taken
        while block := self._read_block(BLOCK):
            yield block

    def whole(self) -> bytes | Skipped | None:
        """Return the block; the reason if it is too large for a page; None if the record is damaged."""
        if self.is_too_large:
            self.skip()
            reason = f"the record is larger than {in_words(largest_page())}"
            return None if self.fault() else Skipped(self.name, reason)
        if self.missing:
            self.take(self.missing)
        if len(self._taken) != 1:
            self._taken = [b"".join(self._taken)]
        return None if self.fault() else self._taken[0]

    @property
    def is_too_large(self) -> bool:
        """Whether the block is larger than a page may be."""
        return self.head.length > largest_page()

    def fault(self) -> Skipped | None:
        """Return why the record is damaged, as far as that is known before all of it is read; None if it is not."""
        length, damage = self.head.length, self.stream.damage
        if self._is_whole:
            return None
        if self.stream.lacks(self.missing):
            if damage is not None and not isinstance(damage, EOFError):
                return Skipped(self.position, _UNREADABLE.format(damage))
            there = self._at + self.stream.left
            return Skipped(self.name, f"the record is truncated: {there} of {length} bytes are there")
        self._is_whole = self.ends(self.stream, self.missing)
        if self._is_whole is False:
            return Skipped(self.name, f"the record does not end after {length} bytes, as its header declares")
        if self.stream.refuses(self.missing):
            return Skipped(
                self.name, f"its {in_words(length)} are not read, because records before it have a false length"
            )
        return None

    def skip(self) -> None:
        """Read the rest of the block without keeping it."""
        self._at += self.stream.skip(self.missing)

    def _read_block(self, size: int) -> bytes:
        block = self.stream.read(min(size, self.missing))
        self._at += len(block)
        return block


@dataclass(slots=True)
class Unread:
    """Bytes of an archive that are no record."""

    start: Position
    skipped: Skipped
    size: int  # bytes of the content
    stored: tuple[int, int]  # bytes of the file that cannot be unpacked: start and stop
    stream: Content = field(repr=False)  # at the first of them

    def copy(self, file: IO[bytes], out: IO[bytes]) -> None:
        """Write the bytes, packed as the file that they are from."""
        if self.size:
            with open_packed(out, self.stream.packing) as stream:
                for piece in self.stream.pieces(self.size):
                    stream.write(piece)
        _copy_bytes(file, out, *self.stored)


def _copy_bytes(file: IO[bytes], out: IO[bytes], start: int, stop: int) -> None:
    """Copy bytes of a file as they are stored, fewer where it ends."""
    if start < stop:
        file.seek(start)
    while start < stop and (piece := file.read(min(BLOCK, stop - start))):
        out.write(piece)
        start += len(piece)


def block_length(digits: bytes) -> int:
    """Return the length that a header declares; an impossible one is an OSError."""
    if not re.fullmatch(rb"\d{1,18}", digits):
        raise OSError(f"{digits[:30]!r} is no length of a record")
    return int(digits)


def long_header(record: Record, begin: bytes) -> Skipped | None:
    """Return the reason if a record's HTTP header does not end within its first `MOST_HEADER` bytes."""
    if not record.missing or has_whole_header(begin) or len(begin) < MOST_HEADER:
        return None
    return Skipped(record.name, f"its HTTP header is longer than {in_words(MOST_HEADER)}")


def _removed(marks: NDArray[np.void], first: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which records a copy omits.

    It omits the removed documents, and each record that names a removed document and no record that stays. The marks of
    a record begin at one of the indices ``first``.
    """
    gone, stay = (marks["id"][~marks["follows"] & (marks["stays"] == stays)] for stays in (False, True))
    goes, is_shared = (marks["follows"] & np.isin(marks["id"], ids) for ids in (gone, stay))
    return np.logical_or.reduceat(goes | ~marks["stays"], first) & ~np.logical_or.reduceat(is_shared, first)


@dataclass(frozen=True, kw_only=True)
class Archive(FileCollection):
    """A collection of archives of one format."""

    format: ClassVar[str]  # its name in messages
    first: ClassVar[re.Pattern[bytes]]  # matches the first bytes of a record
    line: ClassVar[re.Pattern[bytes]]  # finds a record in uncompressed text
    end: ClassVar[bytes]  # follows a block

    @abstractmethod
    def parse(self, line: bytes, stream: Content) -> Head:
        """Read the header that begins with a line; raise OSError if it is none, EOFError if it is cut short."""

    @abstractmethod
    def documents(self, record: Record) -> Iterator[Document | Skipped]:
        """Yield the document of a record, if it is a page and complete."""

    def links(self, head: Head) -> tuple[list[bytes], bool]:
        """Return the ids of a record and of those it names, and whether a copy has it only with the records named."""
        return [], False

    def records(self, source: InputFile, start: int, stop: int) -> Iterator[Document | Skipped]:
        """Iterate over the documents that begin in a shard."""
        for record in self._records(source, start, stop):
            if isinstance(record, Unread):
                yield record.skipped
            else:
                yield from self.documents(record)

    def _records(self, source: InputFile, start: int = 0, stop: int = END) -> Iterator[Record | Unread]:
        """Iterate over the records that begin in a shard, and the bytes between that are none.

        A record that turns out to be damaged is followed by its bytes, up to the next record in the unpacked content.
        """
        dictionary = None
        with open_stored(source.path) as file:
            while start < stop:
                content = Content(file, start, dictionary)
                dictionary = content.dictionary
                start = yield from self._part(source, content, stop)

    def _part(self, source: InputFile, content: Content, stop: int) -> Generator[Record | Unread, None, int]:
        """Iterate over the records of a content; return the offset in the file at which the next one begins."""
        while True:
            position = content.mark()
            at, inner = position or content.end
            if at >= stop:
                return at
            if position is None and content.damage is None:
                return content.stop.inner if content.stop.inner > at else END
            if content.packing == "plain" and packing_of(content.peek(4)) != "plain":
                return at
            name = f"{source.name}@{at}{f'+{inner}' if inner else ''}"
            line = content.readline(LINE)
            if line and not line.strip():
                continue
            fault: Skipped | None
            try:
                if not line:
                    raise content.damage or EOFError("the file ends")
                record = Record(Position(at, inner), name, self.parse(line, content), content, self._ends)
            except READ_ERRORS as error:
                fault = Skipped(name, _UNREADABLE.format(error))
            else:
                fault = record.fault()
                if not fault:
                    yield record
                    record.skip()
                    fault = record.fault()
                if not fault and content.peek(len(self.end)) == self.end:
                    content.read(len(self.end))
            if fault:
                unread = self._unread(source, content, fault, Position(at, inner))
                yield unread
                content.rewind()
                content.skip(unread.size)
                if unread.stored[1]:
                    return unread.stored[1]

    def _unread(self, source: InputFile, content: Content, fault: Skipped, position: Position) -> Unread:
        """Return the bytes from the mark to the next record."""
        contains = partial(self._contains_record, source.path, content.dictionary)
        size, is_found = content.gap(self._any_record, contains)
        start = stop = 0
        if not is_found and content.damage is not None:
            member, start = content.stop
            if position == (member, 0):
                size, start = 0, member
            stop = self._next_record(source.path, max(start, member + 1), contains)
        how = f"{size:,} bytes" if size or start == stop else ""
        how += f"{' and ' if how else ''}{stop - start:,} compressed bytes" if stop > start else ""
        skipped = Skipped(fault.id, f"{fault.reason}; {how} are no record")
        return Unread(position, skipped, size, (start, stop), content)

    def _ends(self, content: Content, distance: int) -> bool | None:
        """Return whether a record may end so many bytes ahead; None if that is too far to know.

        The line end of records, a member or another record follows its end.
        """
        there = content.ahead(distance, OVERLAP)
        if there is None:
            return None
        text, is_edge = there
        if is_edge or text.startswith(self.end):
            return True
        rest = text.lstrip(b"\r\n")
        return not rest or packing_of(rest) != "plain" or self.first.match(rest) is not None

    @property
    def _any_record(self) -> re.Pattern[bytes]:
        """Finds records, also where no line end precedes them, and compressed members."""
        return re.compile(self.line.pattern + b"|" + _PACKED)

    def copy_file(self, source: InputFile, target: Path, keep: Callable[[Document], bool]) -> None:
        """Copy all that is stored but the removed documents and their `links`.

        If one of these shares a compressed member with another record, every record is compressed again, on its own.
        """
        marks = np.fromiter(self._marks(source, keep), _MARK)
        first = np.flatnonzero(np.diff(marks["record"], prepend=-1))
        is_removed, is_inside = _removed(marks, first), np.append(marks["is_inside"][first], False)
        removed = np.flatnonzero(is_removed)
        with target.open("xb") as out, open_stored(source.path) as file:
            if is_inside[removed].any() or is_inside[removed + 1].any():
                self._copy_records(source, is_removed, file, out)
                return
            starts = np.append(marks["at"][first], END)
            edges = [0, *np.stack([starts[removed], starts[removed + 1]], axis=1).ravel().tolist(), END]
            for begin, end in zip(edges[::2], edges[1::2], strict=True):
                _copy_bytes(file, out, begin, end)

    def _copy_records(self, source: InputFile, is_removed: NDArray[np.bool_], file: IO[bytes], out: IO[bytes]) -> None:
        """Read all records again, and write those that stay one by one."""
        for record, omitted in zip(self._records(source), is_removed.tolist(), strict=True):
            if isinstance(record, Unread):
                record.copy(file, out)
            elif not omitted:
                begin = out.tell()
                with open_packed(out, record.stream.packing) as stream:
                    stream.write(record.head.text)
                    for piece in record.pieces():
                        stream.write(piece)
                    stream.write(self.end)
                if record.fault():
                    out.seek(begin)
                    out.truncate()

    def _marks(self, source: InputFile, keep: Callable[[Document], bool]) -> Iterator[tuple[Any, ...]]:
        """Iterate over the values of `_MARK`: at least one mark for each record, and for what is none.

        A mark has the hash of an id that `links` returns. It is an id of the record itself or, if the record
        ``follows``, the id of another record that it names. The id of a record without any is its position.
        """
        for number, record in enumerate(self._records(source)):
            ids, follows, stays = list[bytes](), False, True
            if isinstance(record, Record):
                ids, follows = self.links(record.head)
                documents = () if follows or record.is_too_large else self.documents(record)
                stays = not any(isinstance(document, Document) and not keep(document) for document in documents)
            at, inner = record.start
            for one in ids or [f"{at} {inner}".encode()]:
                yield xxh3_64_intdigest(one), number, at, inner > 0, follows, stays

    def without_pages(self, skipped: Sized) -> str:
        """Return the kinds of the first records, and which are pages."""
        kinds: Counter[str] = Counter()
        for source in self.sources():
            for record in () if self.unreadable(source) else islice(self._records(source), KINDS - kinds.total()):
                if isinstance(record, Record):
                    response = parse_response(record.take(LINE))
                    kind = record.head.fields.get("warc-type", "record")
                    kinds[f"{kind} {response.content_type} {response.status or ''}".strip()] += 1
        counts = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
        return f"its first records are {counts}; pages are HTML that a server delivered, and conversions to text"

    def fault(self, path: Path) -> str | None:
        """Return why a file is no archive of this format, or None if it is one."""
        with open_stored(path) as file:
            if not file.read(1):
                return f"the file is empty, not {self.format}"
            begin = Content(file, 0).peek(OVERLAP)
        if not begin:
            return "its compressed stream is damaged or ends before a record begins"
        return None if self.first.match(begin) else f"the file is not {self.format}: it begins with {begin[:24]!r}"

    def cut(self, path: Path) -> list[tuple[int, int]]:
        """Return the shards of an archive as byte ranges of the file, each beginning at a record."""
        size = path.stat().st_size
        parts = 1 if compression(path) == "zstd with dictionary" else max(1, round(size / self.shard_bytes))
        targets = [size * k // parts for k in range(1, parts)]
        starts = [0]
        for record in self._records(InputFile(path, path.name)) if targets else ():
            at, inner = record.start
            if inner == 0 and at >= targets[0]:
                starts.append(at)
                targets = [target for target in targets if target > at]
                if not targets:
                    break
        if parts > 1 and len(starts) == 1:
            _LOG.info("%s is read by one core, because its records are not compressed one by one", path)
        return list(zip(starts, [*starts[1:], END], strict=True))

    def _next_record(self, path: Path, position: int, contains: Callable[[int], bool]) -> int:
        """Return the offset of what looks like a record, at or after a byte of the file, or the file's size.

        `contains` returns whether there are records in the compressed member at an offset.
        """
        base = position - 1  # one byte earlier, for the look-behind
        with open_stored(path) as file:
            file.seek(base)
            found = ((base + at, match) for at, match in search(file.read, self._any_record))
            return next(at for at, match in found if not match or match.lastgroup != "packed" or contains(at))

    def _contains_record(self, path: Path, dictionary: ZstdCompressionDict | None, start: int) -> bool:
        """Return whether a record begins near the beginning of the compressed member at a byte of the file."""
        with open_stored(path) as file:
            return self.line.search(Content(file, start, dictionary).peek(LINE)) is not None
