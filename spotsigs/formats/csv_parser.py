"""The rows of CSV files: bytes as they stand, quotes that are closed, and quotes that are not."""

from __future__ import annotations

import codecs
import csv
from collections import deque
from collections.abc import Iterator
from typing import IO, NamedTuple

from spotsigs.text.size_limits import MARK, in_words, largest_page, outweighs

_NOT_CLOSED = "a quote in this line is not closed"


class Row(NamedTuple):
    """A row of CSV.

    Attributes
    ----------
    offset : int
        Where it begins, in bytes.
    text : bytes
        As it stands.
    fields : list of bytes, str or None
        As they are encoded; empty for an empty line; a sentence where it is no row; None for the rest of a line whose
        beginning was too long already.
    """

    offset: int
    text: bytes
    fields: list[bytes] | str | None


def csv_rows(stream: IO[bytes], delimiter: str) -> Iterator[Row]:
    """Iterate over the rows of a stream.

    A row goes beyond its line where a quote is open at its end, up to the line that closes it. If none does within
    the size of a page, or one closes it in the middle of a field, the quote was meant for none: this line alone is no
    row, and the next line begins the next row. No line is parsed more than three times.

    Parameters
    ----------
    stream : file
        Plain content.
    delimiter : str
        One character between the fields.
    """
    csv.field_size_limit(2**31 - 1)
    ahead, offset = _Ahead(stream, delimiter), 0
    while line := ahead.next():
        text = line
        if len(line) > largest_page():
            yield Row(offset, text, f"the row is longer than {in_words(largest_page())}")
            while not text.endswith(b"\n") and (text := ahead.next()):
                offset += len(line)
                line = text
                yield Row(offset, text, None)
        elif outweighs(line, delimiter.encode("latin-1", "ignore")):
            yield Row(
                offset,
                text,
                f"the row is larger than {in_words(largest_page())}, its fields counted for {MARK} bytes each",
            )
        else:
            fields = _fields([line.removeprefix(codecs.BOM_UTF8) if offset == 0 else line], delimiter)
            if fields is None:
                lines = [line, *ahead.to_the_close(len(line))]
                fields = _fields(lines, delimiter) or _NOT_CLOSED
                line = text = b"".join(lines)
            yield Row(offset, text, fields)
        offset += len(line)


class _Ahead:
    """Lines of a stream, of which some are looked at before their turn."""

    def __init__(self, stream: IO[bytes], delimiter: str) -> None:
        self._stream, self._delimiter = stream, delimiter
        self._held: deque[bytes] = deque()  # none of which closes a quote, but perhaps the last one
        self._size = 0  # of what is held
        self._number = 0  # of the line that comes next
        self._close, self._closes = -1, False  # the last line found that ends a quote, and whether it does so soundly

    def next(self) -> bytes:
        """Return the next line, or a piece of one that is longer than a page; nothing at the end."""
        self._number += 1
        if not self._held:
            return self._stream.readline(largest_page() + 1)
        line = self._held.popleft()
        self._size -= len(line) + MARK
        return line

    def to_the_close(self, size: int) -> list[bytes]:
        """Take the next lines up to the one that closes a quote; none where that is not there.

        Parameters
        ----------
        size : int
            Bytes of the line that opened it.
        """
        if self._close < self._number and not self._look_for_close(size):
            return []
        if not self._closes or size + self._size > largest_page():
            return []
        return [self.next() for _ in range(self._close - self._number + 1)]

    def _look_for_close(self, size: int) -> bool:
        while size + self._size <= largest_page() and (line := self._stream.readline(largest_page() + 1)):
            self._held.append(line)
            self._size += len(line) + MARK
            if (closes := _closes(line, self._delimiter)) is not None:
                self._close, self._closes = self._number + len(self._held) - 1, closes
                return True
        return False


_CLOSE = '"'  # behind what is parsed: a line of its own, unless it closes a quote


def _fields(lines: list[bytes], delimiter: str) -> list[bytes] | str | None:
    """Return the fields of a row; None where a quote is open at its end."""
    found = csv.reader([*map(_decoded, lines), _CLOSE], delimiter=delimiter)
    try:
        fields = next(found)
    except csv.Error as error:
        return f"the row cannot be read: {error}"
    return None if found.line_num > len(lines) else [field.encode("latin-1") for field in fields]


def _closes(line: bytes, delimiter: str) -> bool | None:
    """Tell whether an open quote ends in this line, True if behind it comes what may; None if it stays open."""
    if b'"' not in line or len(line) > largest_page():
        return None
    found = csv.reader([f'"{_decoded(line)}', _CLOSE], delimiter=delimiter, strict=True)
    try:
        next(found)
    except csv.Error:
        return False
    return True if found.line_num == 1 else None


def _decoded(line: bytes) -> str:
    """Return a line as text that stands for its bytes.

    Latin-1 carries any bytes through the parser unchanged, so that each field can be decoded on its own. A carriage
    return alone, which the parser refuses, counts as white space.
    """
    body = line.rstrip(b"\r\n")
    return (body.replace(b"\r", b" ") + line[len(body) :]).decode("latin-1")
