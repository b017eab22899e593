"""Unpacked content of a web archive, with positions in the file, and with a way back after a damaged record."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

import zstandard

from spotsigs.formats.compression import BLOCK, Members, packing_of
from spotsigs.text.size_limits import largest_page

_PIECE = 1 << 16
_OVERLAP = 4096  # of two searches: bytes that show that a record begins
_KEPT = 8 << 20  # bytes after a mark that need not be read again, at most those of a page
_EMPTY_LINE = re.compile(rb"\n\s*?\n")


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
        self._file, self._dictionary = file, dictionary
        self._kept = min(_KEPT, largest_page())
        file.seek(start)
        self.packing = packing_of(file.read(4))
        self._open(start)
        self._offset = self._mark = 0  # bytes before the next one, and before the mark
        self._marked = Position(start, 0)
        self.size: int | None = None  # bytes, once the end was read

    def _open(self, start: int) -> None:
        self._file.seek(start)
        self._plain, self._members = start, None
        if self.packing != "plain":
            self._members = Members(self._file, self.packing, raises=False, trailing=True, dictionary=self._dictionary)
            self._dictionary = self._members.dictionary
        self._read = deque[tuple[Position, bytes]]()  # pieces since the mark
        self._waiting = deque[tuple[Position, bytes]]()
        self._taken = 0  # bytes of the first waiting piece that were read

    @property
    def dictionary(self) -> zstandard.ZstdCompressionDict | None:
        """The dictionary of the zstd frames."""
        return self._dictionary

    @property
    def damage(self) -> Exception | None:
        """The reason why the content ends before its members do."""
        return self._members.damage if self._members else None

    @property
    def stop(self) -> Position:
        """Offset in the file of the first byte that is not unpacked, and of the member to which it belongs."""
        return Position(*self._members.stop) if self._members else Position(self._plain, self._plain)

    def position(self) -> Position | None:
        """Return the position of the next byte; None at the end."""
        return self._moved(self._waiting[0][0], self._taken) if self._fill() else None

    def peek(self, size: int) -> bytes:
        """Return the next bytes without reading them."""
        while self._unread() < size and self._append():
            pass
        if self._waiting and len(self._waiting[0][1]) - self._taken >= size:
            return self._waiting[0][1][self._taken : self._taken + size]
        return b"".join(piece for _, piece in self._waiting)[self._taken : self._taken + size]

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
            end = self._waiting[0][1].find(b"\n", self._taken, self._taken + most) + 1
            line += self._take(end - self._taken if end else most)
        return line

    def lines(self, size: int) -> Iterator[bytes]:
        """Read lines of `size` bytes at most; those up to an empty line at once, if it is unpacked already."""
        if self._taken:  # the line feed before is in the same piece
            end = _EMPTY_LINE.search(self._waiting[0][1], self._taken - 1, self._taken + size)
            if end is not None:
                for line in self._take(end.end() - self._taken).split(b"\n")[:-1]:
                    yield line + b"\n"
        while True:
            yield self.readline(size)

    def mark(self) -> None:
        """Make the next byte the one to which `rewind` returns."""
        self._marked, self._mark = self.position() or self._marked, self._offset
        self._read.clear()

    def rewind(self) -> None:
        """Read from the mark again."""
        if sum(len(piece) for _, piece in self._read) == self._offset - self._mark:
            if self._taken:
                position, piece = self._waiting.popleft()
                self._waiting.appendleft((self._moved(position, self._taken), piece[self._taken :]))
                self._taken = 0
            self._waiting.extendleft(reversed(self._read))
            self._read.clear()
        else:
            self._open(self._marked.member)
            self._offset = self._mark - self._marked.inner
            self.skip(self._marked.inner)
            self._read.clear()
        self._offset = self._mark

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
        text, before = b"", 0
        is_found = False
        while not is_found:
            more = self.read(_PIECE)
            text += more
            for match in pattern.finditer(text, 1):
                before_it = before + match.start()
                is_plain = match.lastgroup != "packed"
                if is_plain or (self._members is None and begins(self._marked.member + before_it)):
                    before, is_found = before_it, True
                    break
            else:
                if not more:
                    before += len(text)
                    break
                before += max(0, len(text) - _OVERLAP)
                text = text[-_OVERLAP:]
        self.rewind()
        return before, is_found

    def lacks(self, size: int) -> bool:
        """Return whether it is known that the content has fewer than `size` more bytes."""
        return self.size is not None and self._offset + size > self.size

    @property
    def left(self) -> int:
        """Number of unread bytes of a content of known size."""
        return (self.size or 0) - self._offset

    def _take(self, size: int) -> bytes:
        """Read from the first waiting piece."""
        position, piece = self._waiting[0]
        first = self._taken
        taken = piece[first : first + size]
        self._taken += len(taken)
        if self._taken == len(piece):
            self._waiting.popleft()
            self._taken = 0
        self._offset += len(taken)
        if self._offset - self._mark <= self._kept:
            self._read.append((self._moved(position, first) if first else position, taken))
        else:
            self._read.clear()
        return taken

    def _moved(self, position: Position, size: int) -> Position:
        if self._members is None:
            return Position(position.member + size, 0)
        return Position(position.member, position.inner + size)

    def _unread(self) -> int:
        """Return the number of unpacked bytes that were not read."""
        return sum(len(piece) for _, piece in self._waiting) - self._taken

    def _fill(self) -> bool:
        return bool(self._waiting) or self._append()

    def _append(self) -> bool:
        """Append the next piece of the content; return False at the end."""
        if self._members is None:
            self._file.seek(self._plain)
            piece, position = self._file.read(_PIECE), Position(self._plain, 0)
            self._plain += len(piece)
        else:
            piece = bytes(self._members.piece(_PIECE))
            position = Position(*self._members.position(len(piece)))
        if piece:
            self._waiting.append((position, piece))
        else:
            self.size = self._offset + self._unread()
        return bool(piece)
