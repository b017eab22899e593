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
    """Iterate over the rows of a stream of plain content.

    A row continues after its line if a quote is open there, up to the line that closes it. If no line closes it within
    the size of a page, or one closes it in the middle of a field, the quote is an error: this line alone is no row,
    and the next line begins the next row. Lines inside an open quote leave none open by themselves, so that each line
    is parsed three times at most.
    """
    csv.field_size_limit(2**31 - 1)
    lines, offset, most = _Lines(stream), 0, largest_page()
    while text := lines.next():
        if len(text) > most:
            yield Row(offset, text, f"the row is longer than {in_words(most)}")
            while not text.endswith(b"\n"):
                offset += len(text)
                if not (text := lines.next()):
                    return
                yield Row(offset, text, None)
        elif outweighs(text, delimiter.encode("latin-1", "ignore")):
            reason = f"the row is larger than {in_words(most)}, its fields counted for {MARK} bytes each"
            yield Row(offset, text, reason)
        else:
            row = [text.removeprefix(codecs.BOM_UTF8) if offset == 0 else text]
            fields = _fields(row, delimiter)
            if fields is None:
                rest = lines.to_the_close(len(text), delimiter)
                fields = _fields(row + rest, delimiter) or _NOT_CLOSED
                text = b"".join([text, *rest])
            yield Row(offset, text, fields)
        offset += len(text)


class _Lines:
    """Lines of a stream, or pieces of those that are longer than a page, with a look-ahead."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._ahead = stream, deque[bytes]()

    def next(self) -> bytes:
        """Return the next line; empty at the end."""
        return self._ahead.popleft() if self._ahead else self._stream.readline(largest_page() + 1)

    def to_the_close(self, size: int, delimiter: str) -> list[bytes]:
        """Return the next lines up to the one that closes a quote, opened in a line of `size` bytes; none without."""
        found: list[bytes] = []

        def inside() -> Iterator[str]:
            nonlocal size
            while size <= largest_page() and (line := self.next()):
                found.append(line)
                size += len(line) + MARK
                yield _decoded(line) if found[1:] else f'"{_decoded(line)}'

        try:
            next(csv.reader(inside(), delimiter=delimiter, strict=True))
            if size <= largest_page():
                return found
        except (csv.Error, StopIteration):
            pass
        self._ahead.extendleft(reversed(found))
        return []


_CLOSE = '"'  # appended to the parsed lines: a line of its own, unless it closes a quote


def _fields(lines: list[bytes], delimiter: str) -> list[bytes] | str | None:
    """Return the fields of a row, or None if a quote is open at its end."""
    found = csv.reader([*map(_decoded, lines), _CLOSE], delimiter=delimiter)
    try:
        fields = next(found)
    except csv.Error as error:
        return f"the row cannot be read: {error}"
    return None if found.line_num > len(lines) else [field.encode("latin-1") for field in fields]


def _decoded(line: bytes) -> str:
    """Return a line as text with one character for each byte, so that each field can be decoded by itself.

    A carriage return alone, which the parser refuses, counts as white space.
    """
    body = line.rstrip(b"\r\n")
    return (body.replace(b"\r", b" ") + line[len(body) :]).decode("latin-1")
