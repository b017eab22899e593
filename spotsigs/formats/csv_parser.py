"""Rows of CSV files as bytes, with quotes that are closed and quotes that are not."""

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
        Position of its first byte.
    text : bytes
        As stored.
    fields : list of bytes, str or None
        In the file's encoding; empty for an empty line; the reason if it is no row; None for a further piece of a line
        that is too long.
    """

    offset: int
    text: bytes
    fields: list[bytes] | str | None


def csv_rows(stream: IO[bytes], delimiter: str) -> Iterator[Row]:
    """Iterate over the rows of a stream.

    A row continues after its line if a quote is open there, up to the line that closes it. If no line closes it within
    the size of a page, or one closes it in the middle of a field, the quote is an error: this line alone is no row,
    and the next line begins the next row. No line is parsed more than three times.

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
    """Lines of a stream, with a look-ahead."""

    def __init__(self, stream: IO[bytes], delimiter: str) -> None:
        self._stream, self._delimiter = stream, delimiter
        self._held: deque[bytes] = deque()  # at most the last one closes a quote
        self._size = 0  # of the held lines
        self._number = 0  # of the next line
        self._close, self._closes = -1, False  # the last line found that ends a quote, and whether a field ends there

    def next(self) -> bytes:
        """Return the next line, or a piece of one that is longer than a page; empty at the end."""
        self._number += 1
        if not self._held:
            return self._stream.readline(largest_page() + 1)
        line = self._held.popleft()
        self._size -= len(line) + MARK
        return line

    def to_the_close(self, size: int) -> list[bytes]:
        """Return the next lines up to the one that closes a quote; none without such a line.

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


_CLOSE = '"'  # appended to the parsed lines: a line of its own, unless it closes a quote


def _fields(lines: list[bytes], delimiter: str) -> list[bytes] | str | None:
    """Return the fields of a row, or None if a quote is open at its end."""
    found = csv.reader([*map(_decoded, lines), _CLOSE], delimiter=delimiter)
    try:
        fields = next(found)
    except csv.Error as error:
        return f"the row cannot be read: {error}"
    return None if found.line_num > len(lines) else [field.encode("latin-1") for field in fields]


def _closes(line: bytes, delimiter: str) -> bool | None:
    """Return None if an open quote stays open in this line, else whether a field ends with it."""
    if b'"' not in line or len(line) > largest_page():
        return None
    found = csv.reader([f'"{_decoded(line)}', _CLOSE], delimiter=delimiter, strict=True)
    try:
        next(found)
    except csv.Error:
        return False
    return True if found.line_num == 1 else None


def _decoded(line: bytes) -> str:
    """Return a line as text with one character for each byte.

    Latin-1 passes any bytes through the parser unchanged, so that each field can be decoded by itself. A carriage
    return alone, which the parser refuses, counts as white space.
    """
    body = line.rstrip(b"\r\n")
    return (body.replace(b"\r", b" ") + line[len(body) :]).decode("latin-1")
