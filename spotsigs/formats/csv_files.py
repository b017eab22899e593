"""Documents from CSV files: rows as bytes, with quotes that are closed and quotes that are not."""

from __future__ import annotations

import codecs
import csv
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, ClassVar, NamedTuple

from spotsigs.errors import require
from spotsigs.formats.compression import open_bytes
from spotsigs.formats.file_collection import Piece
from spotsigs.formats.input_files import END, InputFile, read_head
from spotsigs.formats.row_documents import RowCollection, wide_fault
from spotsigs.records import Document, Skipped
from spotsigs.text.size_limits import MARK, in_words, largest_page, outweighs

_NOT_CLOSED = "a quote in this line is not closed"


@dataclass(frozen=True, kw_only=True)
class Csv(RowCollection):
    """One row a document; the first row names the columns, quotes may enclose line breaks, plain or compressed.

    A line break ends a row or not depending on all quotes before it, so that a file is parsed from its beginning; a
    worker that reads several shards of it continues its pass.

    Parameters
    ----------
    delimiter : str
        One character between the fields.
    charset : str, optional
        Encoding of the content; detected for each row if omitted. It must contain ASCII, as UTF-8 and Latin-1 do.
    """

    seekable: ClassVar[bool] = False

    delimiter: str = ","
    charset: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(len(self.delimiter) == 1, f"delimiter must be one character, got {self.delimiter!r}")

    def fault(self, path: Path) -> str | None:
        """Return why a file is not CSV; None if it is, as an empty one."""
        head = read_head(path)
        if fault := wide_fault(head):
            return fault
        start = head.removeprefix(codecs.BOM_UTF8).lstrip()
        if b"\0" in start.partition(b"\n")[0]:
            return f"the file is not CSV: it begins with {head[:24]!r}"
        if start.startswith((b'{"', b'[{"')):
            return "the file is JSON, not CSV; one record a line is the format jsonl"
        if start.startswith(b"<"):
            return f"the file is not CSV: it begins with {start[:24]!r}"
        return None if start or not head else "its first row must name the columns"

    def present(self, path: Path) -> list[str] | None:
        """Return the names in the first row; None of an empty file."""
        with open_bytes(path) as stream:
            first = next((row for row in csv_rows(stream, self.delimiter) if _names(row.fields)), None)
        if first is None:
            return None
        if not isinstance(first.fields, list):
            raise OSError(f"its first row must name the columns: {first.fields}")
        return _names(first.fields)

    def cut(self, path: Path) -> list[tuple[int, int]]:
        """Return the shards of a file; none of an empty one."""
        return super().cut(path) if self.present(path) else []

    def pieces(self, source: InputFile, start: int = 0, stop: int = END) -> Iterator[Piece]:
        """Iterate over the rows of a file, the header first."""
        with open_bytes(source.path) as stream:
            names: list[str] = []
            for offset, text, fields in csv_rows(stream, self.delimiter):
                position = f"{source.name}@{offset}"
                yield offset, (text, partial(self._record, position, names, fields) if names and fields else None)
                names = names or _names(fields)

    def _record(self, position: str, names: list[str], row: list[bytes] | str) -> Document | Skipped:
        if isinstance(row, str):
            return Skipped(position, row)
        if len(row) != len(names):
            return Skipped(position, f"the row has {len(row)} fields, the header {len(names)}")
        record = self.document(position, dict(zip(names, row, strict=True)))
        return replace(record, charset=self.charset) if isinstance(record, Document) else record


def _names(fields: list[bytes] | str | None) -> list[str]:
    """Return the names of the columns in a row; none of a blank one, or of Excel's line about the delimiter."""
    names = [name.decode("utf-8", "replace").strip() for name in fields] if isinstance(fields, list) else [fields or ""]
    about = any(names) and names[0].startswith("sep=") and len(names[0]) <= len("sep=;") and not any(names[1:])
    return names if any(names) and not about else []


class Row(NamedTuple):
    """A row of CSV, with its offset and its text as stored.

    The fields are empty for an empty line, the reason if it is no row, None for a further piece of a line too long.
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
        lines: list[bytes] = []

        def inside() -> Iterator[str]:
            nonlocal size
            while size <= largest_page() and (line := self.next()):
                lines.append(line)
                size += len(line) + MARK
                yield _decoded(line) if len(lines) > 1 else f'"{_decoded(line)}'

        try:
            next(csv.reader(inside(), delimiter=delimiter, strict=True))
            if size <= largest_page():
                return lines
        except (csv.Error, StopIteration):
            pass
        self._ahead.extendleft(reversed(lines))
        return []


_CLOSE = '"'  # appended to the parsed lines: a line of its own, unless it closes a quote


def _fields(lines: list[bytes], delimiter: str) -> list[bytes] | str | None:
    """Return the fields of a row, or None if a quote is open at its end."""
    reader = csv.reader([*map(_decoded, lines), _CLOSE], delimiter=delimiter)
    try:
        fields = next(reader)
    except csv.Error as error:
        return f"the row cannot be read: {error}"
    return None if reader.line_num > len(lines) else [field.encode("latin-1") for field in fields]


def _decoded(line: bytes) -> str:
    """Return a line as text with one character for each byte, so that each field can be decoded by itself.

    A carriage return alone, which the parser refuses, counts as white space.
    """
    body = line.rstrip(b"\r\n")
    return (body.replace(b"\r", b" ") + line[len(body) :]).decode("latin-1")
