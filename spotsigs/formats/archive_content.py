"""Unpacked content of a web archive, with positions in the file, and with a way back after a damaged record."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import IO, NamedTuple

import zstandard

from spotsigs.formats.compression import Members, packing_of
from spotsigs.text.size_limits import largest_page

PIECE = 1 << 16
"""Bytes of an archive that are read at a time."""

OVERLAP = 4096
"""Bytes that show that a record begins."""

_KEPT = 8 << 20  # bytes after a mark that need not be read again, at most as many as a page has
_MOST_BEFORE = 256  # pieces before a mark that are in memory
_MOST_AGAIN = 4
_EMPTY_LINE = re.compile(rb"\n\s*?\n")


Match = re.Match[bytes]


def search(read: Callable[[int], bytes], pattern: re.Pattern[bytes]) -> Iterator[tuple[int, Match | None]]:
    """Yield the matches of a pattern in a stream, after its first byte, with their offsets; at last its size, and None.

    A match is found if its end depends on fewer than `OVERLAP` bytes.
    """
    size = 2 * OVERLAP  # small at first, because the next record is near a damaged one
    text, before, more = read(size), 0, b"-"
    while more:
        size = min(2 * size, PIECE)
        more = read(size)
        certain = len(text) if not more else max(len(text) - OVERLAP, 1)
        for match in pattern.finditer(text, 1):
            if match.start() >= certain:
                break
            yield before + match.start(), match
        if more:
            before += certain - 1  # one byte earlier, for a look-behind
            text = text[certain - 1 :] + more
    yield before + len(text), None


class Position(NamedTuple):
    """Offset of a member in the file, and of a byte in its content; for plain content, the byte's offset and 0."""

    member: int
    inner: int


class Piece(NamedTuple):
    """Some bytes of a content that are in memory, all of one member."""

    offset: int  # bytes of the content before it
    position: Position  # of its first byte
    content: bytes


class Content:
    """Content of an archive from a byte on: plain, or the members of one compression up to damage or to other bytes.

    Parameters
    ----------
    file : binary file
    start : int
        Offset of the first byte.
    dictionary : optional
        Dictionary of the file's zstd frames.

    Attributes
    ----------
    size : int or None
        Number of bytes; None until the end of compressed content was read.
    """

    def __init__(self, file: IO[bytes], start: int, dictionary: zstandard.ZstdCompressionDict | None = None) -> None:
        self._file, self._start, self.dictionary = file, start, dictionary
        self._kept = max(min(_KEPT, largest_page()), PIECE)
        self._reached = self._again = 0  # bytes unpacked for the first time, and again
        file.seek(start)
        self.packing = packing_of(file.read(4))
        self.size = file.seek(0, os.SEEK_END) - start if self.packing == "plain" else None
        self._open(Position(start, 0), 0)

    def _open(self, mark: Position, offset: int) -> None:
        """Begin at a mark that has so many bytes before it."""
        self._members = None
        if self.packing != "plain":
            self._file.seek(mark.member)
            self._members = Members(self._file, self.packing, raises=False, trailing=True, dictionary=self.dictionary)
            self.dictionary, self.packing = self._members.dictionary, self.packing.partition(" ")[0]
        self._marked = mark
        self._pieces: list[Piece] = []  # since the mark, if kept
        self._first = self._next = 0  # pieces of the mark and of the next byte
        self._offset = self._mark = self._end = (
            offset - mark.inner
        )  # bytes before the next, the mark, the one to unpack
        self.skip(mark.inner)
        self.mark()

    @property
    def damage(self) -> Exception | None:
        """The reason why the content ends before its members do."""
        return self._members.damage if self._members else None

    @property
    def end(self) -> Position:
        """Position after the last byte that was unpacked."""
        return Position(*self._members.position(0)) if self._members else Position(self._start + self._end, 0)

    @property
    def stop(self) -> Position:
        """Offset in the file of the first byte that is not unpacked, and of the member to which it belongs."""
        return Position(*self._members.stop) if self._members else Position(*[self._start + self._end] * 2)

    def position(self) -> Position | None:
        """Return the position of the next byte; None at the end."""
        if not self._fill():
            return None
        if self._members is None:
            return Position(self._start + self._offset, 0)
        piece = self._pieces[self._next]
        return Position(piece.position.member, piece.position.inner + self._offset - piece.offset)

    def peek(self, size: int) -> bytes:
        """Return the next bytes without reading them."""
        while self._end < self._offset + size and self._append():
            pass
        return self._loaded(self._next, self._offset, size)

    def ahead(self, distance: int, size: int) -> tuple[bytes, bool] | None:
        """Return bytes at a distance from the next one without reading them; None if they are too far away.

        The second value is whether a member begins with them, or the content ends there.
        """
        offset = self._offset + distance
        if self._members is None and offset >= self._end:
            self._file.seek(self._start + offset)
            text = self._file.read(size)
            return text, not text
        if not self._loads(distance + size):
            return None
        number = bisect_right(self._pieces, offset, self._next, key=_offset_of) - 1
        if offset >= self._end:
            return b"", True
        text = self._loaded(number, offset, size)
        piece = self._pieces[number]
        return text, self._members is not None and piece.offset == offset and piece.position.inner == 0

    def read(self, size: int) -> bytes:
        """Read the next bytes, fewer at the end."""
        pieces = []
        while size > 0 and self._fill():
            pieces.append(self._take(size))
            size -= len(pieces[-1])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def readline(self, size: int) -> bytes:
        """Read up to a line feed, `size` bytes at most."""
        line = b""
        while len(line) < size and not line.endswith(b"\n") and self._fill():
            most, taken = size - len(line), self._taken
            end = self._pieces[self._next].content.find(b"\n", taken, taken + most) + 1
            line += self._take(end - taken if end else most)
        return line

    def header(self, size: int) -> bytes:
        """Read lines up to an empty one, `size` bytes at most."""
        if self._fill() and (taken := self._taken):  # the line feed before is in the same piece
            end = _EMPTY_LINE.search(self._pieces[self._next].content, taken - 1, taken + size)
            if end is not None:
                return self._take(end.end() - taken)
        line = self.readline(size)
        text = bytearray(line)
        while line.strip() and len(text) < size:
            line = self.readline(size - len(text))
            text += line
        return bytes(text)

    def mark(self) -> Position | None:
        """Make the next byte the one to which `rewind` returns; return its position, None at the end."""
        position = self.position()
        self._marked, self._mark = position or self._marked, self._offset
        self._first, self._is_kept = self._next, True
        if self._first > _MOST_BEFORE:
            del self._pieces[: self._first]
            self._first = self._next = 0
        return position

    def rewind(self) -> None:
        """Read from the mark again."""
        if self._is_kept:
            self._next, self._offset = self._first, self._mark
        else:
            self._again += self._end - self._mark + self._marked.inner if self._members else 0
            self._open(self._marked, self._mark)

    def skip(self, size: int) -> int:
        """Read bytes without returning them; return their number, less than `size` at the end."""
        if self._members is None and self.size is not None:
            size = min(size, self.size - self._offset)
            self._offset += size
            if self._offset < self._end:
                self._next = bisect_right(self._pieces, self._offset, self._next, key=_offset_of) - 1
            else:
                self._pieces.clear()
                self._first = self._next = 0
                self._end, self._is_kept = self._offset, self._offset == self._mark
            return size
        return sum(map(len, self.pieces(size)))

    def pieces(self, size: int) -> Iterator[bytes]:
        """Read bytes in pieces."""
        while size > 0 and self._fill():
            piece = self._take(size)
            yield piece
            size -= len(piece)

    def gap(self, pattern: re.Pattern[bytes], begins: Callable[[int], bool]) -> tuple[int, bool]:
        """Return the number of bytes from the mark to the next record, and whether there is one; return to the mark.

        Parameters
        ----------
        pattern : re.Pattern
            Finds a record in plain content, or in a plain file a compressed member.
        begins : callable
            Called with the offset of such a member; whether it begins a record.
        """
        self.rewind()
        for size, match in search(self.read, pattern):
            if match is None or match.lastgroup != "packed":
                break
            if self._members is None and begins(self._marked.member + size):
                break
        self.rewind()
        return size, match is not None

    def lacks(self, size: int) -> bool:
        """Return whether the content has fewer than `size` more bytes, as far as that is known."""
        if self.size is None:
            self._loads(size)
        return self.size is not None and self._offset + size > self.size

    @property
    def left(self) -> int:
        """Number of unread bytes of a content of known size."""
        return (self.size or 0) - self._offset

    def refuses(self, size: int) -> bool:
        """Return whether as many bytes would have to be unpacked again in vain as is too much.

        The content is unpacked `_MOST_AGAIN` times more at most, however many of its records declare a false length.
        """
        return self.packing != "plain" and size > self._kept and self._again > _MOST_AGAIN * self._reached

    @property
    def _taken(self) -> int:
        """Number of bytes before the next one in its piece."""
        return self._offset - self._pieces[self._next].offset

    def _take(self, size: int) -> bytes:
        """Read from the piece of the next byte."""
        piece, taken = self._pieces[self._next], self._taken
        part = piece.content[taken : taken + size]
        self._offset += len(part)
        if taken + len(part) == len(piece.content):
            self._next += 1
            if self._offset - self._mark > self._kept:
                del self._pieces[: self._next]
                self._first = self._next = 0
                self._is_kept = False
        return part

    def _loaded(self, number: int, offset: int, size: int) -> bytes:
        """Return bytes in memory, the first of which is in the piece of a number."""
        parts: list[bytes] = []
        while size > 0 and number < len(self._pieces):
            piece = self._pieces[number]
            part = piece.content[offset - piece.offset : offset - piece.offset + size]
            parts.append(part)
            number, offset, size = number + 1, offset + len(part), size - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _loads(self, size: int) -> bool:
        """Unpack the next bytes, or all; return False if they are more than are kept."""
        while self._end < self._offset + size:
            if self._end - self._offset > self._kept:
                return False
            if not self._append():
                break
        return True

    def _fill(self) -> bool:
        return self._offset < self._end or self._append()

    def _append(self) -> bool:
        """Append the next piece of the content; return False at the end."""
        if self._members is None:
            self._file.seek(self._start + self._end)
            piece, position = self._file.read(PIECE), Position(self._start + self._end, 0)
        else:
            piece = self._members.piece(PIECE)
            position = Position(*self._members.position(len(piece)))
        if piece:
            self._pieces.append(Piece(self._end, position, piece))
            self._end += len(piece)
            self._reached = max(self._reached, self._end)
        else:
            self.size = self._end
        return bool(piece)


_offset_of = attrgetter("offset")
