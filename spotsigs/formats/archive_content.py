"""Unpacked content of a web archive, with positions in the file, and with a way back after a damaged record."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

import zstandard

from spotsigs.formats.compression import BLOCK, Members, packing_of
from spotsigs.text.size_limits import largest_page

PIECE = 1 << 16
"""Bytes of an archive that are read at a time."""

OVERLAP = 4096
"""Bytes that show that a record begins."""

_KEPT = 8 << 20  # bytes after a mark that need not be read again, at most those of a page
_EMPTY_LINE = re.compile(rb"\n\s*?\n")


Match = re.Match[bytes]


def search(read: Callable[[int], bytes], pattern: re.Pattern[bytes]) -> Iterator[tuple[int, Match | None]]:
    """Yield the matches of a pattern in a stream, after its first byte, with their offsets; at last its size, and None.

    A match is found if its end depends on fewer than `OVERLAP` bytes.
    """
    text, before, more = read(PIECE), 0, b"-"
    while more:
        more = read(PIECE)
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


class Content:
    """Content of an archive from a byte on: plain, or the members of one compression up to damage or to other bytes.

    Parameters
    ----------
    file : binary file
    start : int
        Offset of the first byte.
    dictionary : optional
        That of the file's zstd frames.
    """

    def __init__(self, file: IO[bytes], start: int, dictionary: zstandard.ZstdCompressionDict | None = None) -> None:
        self._file, self.dictionary = file, dictionary
        self._kept = min(_KEPT, largest_page())
        file.seek(start)
        self.packing = packing_of(file.read(4))
        self.size: int | None = None  # bytes, once the end was read
        self._open(Position(start, 0), 0)

    def _open(self, mark: Position, offset: int) -> None:
        """Begin at a mark that has so many bytes before it."""
        start, inner = self._marked = mark
        self._file.seek(start)
        self._plain, self._members = start, None
        if self.packing != "plain":
            self._members = Members(self._file, self.packing, raises=False, trailing=True, dictionary=self.dictionary)
            self.dictionary = self._members.dictionary
        self._pieces: list[tuple[int, int, bytes]] = []  # since the mark, if kept: member, offset in it, content
        self._next = self._taken = self._first = 0  # piece of the next byte, bytes of it before that, and at the mark
        self._offset = self._mark = offset - inner  # bytes before the next one, and before the mark
        self.skip(inner)
        self.mark()

    @property
    def damage(self) -> Exception | None:
        """The reason why the content ends before its members do."""
        return self._members.damage if self._members else None

    @property
    def end(self) -> Position:
        """Position after the last byte that was unpacked."""
        return Position(*self._members.position(0)) if self._members else Position(self._plain, 0)

    @property
    def stop(self) -> Position:
        """Offset in the file of the first byte that is not unpacked, and of the member to which it belongs."""
        return Position(*self._members.stop) if self._members else Position(self._plain, self._plain)

    def position(self) -> Position | None:
        """Return the position of the next byte; None at the end."""
        if not self._fill():
            return None
        member, inner, _ = self._pieces[self._next]
        return Position(member + self._taken, 0) if self._members is None else Position(member, inner + self._taken)

    def peek(self, size: int) -> bytes:
        """Return the next bytes without reading them."""
        if self._fill():
            start = self._pieces[self._next][2][self._taken : self._taken + size]
            if len(start) == size:
                return start
        while self._unread() < size and self._append():
            pass
        return b"".join(piece for _, _, piece in self._pieces[self._next :])[self._taken : self._taken + size]

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
            most = size - len(line)
            end = self._pieces[self._next][2].find(b"\n", self._taken, self._taken + most) + 1
            line += self._take(end - self._taken if end else most)
        return line

    def header(self, size: int) -> bytes:
        """Read lines up to an empty one, `size` bytes at most."""
        if self._taken:  # the line feed before is in the same piece
            end = _EMPTY_LINE.search(self._pieces[self._next][2], self._taken - 1, self._taken + size)
            if end is not None:
                return self._take(end.end() - self._taken)
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
        del self._pieces[: self._next]
        self._next, self._first, self._is_kept = 0, self._taken, True
        return position

    def rewind(self) -> None:
        """Read from the mark again."""
        if self._is_kept:
            self._next, self._taken, self._offset = 0, self._first, self._mark
        else:
            self._open(self._marked, self._mark)

    def skip(self, size: int) -> None:
        """Read bytes without returning them."""
        for _ in self.pieces(size):
            pass

    def pieces(self, size: int) -> Iterator[bytes]:
        """Read bytes in pieces."""
        while size > 0 and (piece := self.read(min(size, BLOCK))):
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
        """Return whether it is known that the content has fewer than `size` more bytes."""
        return self.size is not None and self._offset + size > self.size

    @property
    def left(self) -> int:
        """Number of unread bytes of a content of known size."""
        return (self.size or 0) - self._offset

    def _take(self, size: int) -> bytes:
        """Read from the piece of the next byte."""
        piece = self._pieces[self._next][2]
        taken = piece[self._taken : self._taken + size]
        self._taken += len(taken)
        self._offset += len(taken)
        if self._taken == len(piece):
            self._next, self._taken = self._next + 1, 0
            if self._offset - self._mark > self._kept:
                del self._pieces[: self._next]
                self._next, self._is_kept = 0, False
        return taken

    def _unread(self) -> int:
        """Return the number of unpacked bytes that were not read."""
        return sum(len(piece) for _, _, piece in self._pieces[self._next :]) - self._taken

    def _fill(self) -> bool:
        return self._next < len(self._pieces) or self._append()

    def _append(self) -> bool:
        """Append the next piece of the content; return False at the end."""
        if self._members is None:
            self._file.seek(self._plain)
            piece, position = self._file.read(PIECE), (self._plain, 0)
            self._plain += len(piece)
        else:
            piece = self._members.piece(PIECE)
            position = self._members.position(len(piece))
        if piece:
            self._pieces.append((*position, piece))
        else:
            self.size = self._offset + self._unread()
        return bool(piece)
