"""Documents as JSON lines, plain or compressed."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from spotsigs.formats.file_collection import NotOfFormatError, Piece
from spotsigs.formats.input_files import END, InputFile, lines, read_head
from spotsigs.formats.row_documents import RowCollection, column_names, value_of, wide_fault
from spotsigs.records import Document, Skipped
from spotsigs.text.size_limits import MARK, in_words, largest_page, outweighs

_VALUES = b",[{"  # a value of JSON follows each, and uses more memory than its text
_LINE = re.compile(rb"^(?:\xef\xbb\xbf)?[ \t]*[\[{]", re.MULTILINE)
_SAMPLE = 100


@dataclass(frozen=True, kw_only=True)
class Jsonl(RowCollection):
    """One JSON object a line: ``id``, ``html`` or ``text``, optional ``cluster`` and ``date``.

    Of a key that an object repeats, the last value counts.

    A plain file is cut into byte ranges at line ends; see `.input_files.shard_ranges` for compressed ones.
    """

    def fault(self, path: Path) -> str | None:
        """Return why a file is not JSON lines; None if it is, as an empty one."""
        head = read_head(path)
        match = _LINE.search(head)
        is_text = b"\0" not in head[: match.start()] if match else not head.strip()
        return wide_fault(head) or (None if is_text else f"the file is not JSON lines: it begins with {head[:24]!r}")

    def pieces(self, source: InputFile, start: int = 0, stop: int = END) -> Iterator[Piece]:
        """Iterate over lines; one that is too long comes in pieces, of which the first is the record."""
        is_rest = False
        for offset, line in lines(source.path, start, stop):
            is_record = not is_rest and line.removeprefix(codecs.BOM_UTF8).strip()
            yield offset, (line, partial(self._record, source.name, offset, line) if is_record else None)
            is_rest = (is_rest or len(line) > largest_page()) and not line.endswith(b"\n")

    def with_lines(self) -> Iterator[tuple[Document, bytes | None]]:
        """Iterate over the documents, each with its line."""
        for source in self.sources():
            for line, record in () if self.unreadable(source) else self.with_records(source):
                if isinstance(record, Document):
                    yield record, line.removeprefix(b"\xef\xbb\xbf")

    def _record(self, name: str, offset: int, line: bytes) -> Document | Skipped:
        position = f"{name}@{offset}"
        if len(line) > largest_page():
            return Skipped(position, f"the line is longer than {in_words(largest_page())}")
        if outweighs(line, _VALUES):
            most = in_words(largest_page())
            return Skipped(position, f"the line is larger than {most}, its values counted for {MARK} bytes each")
        try:
            row = self._parsed(line)
        except UnicodeDecodeError as error:
            return Skipped(position, f"the line is not UTF-8: {error.reason} at byte {error.start}")
        except (ValueError, RecursionError) as error:  # a number of too many digits is a bare ValueError
            return Skipped(position, f"the line is not JSON: {error}")
        if not isinstance(row, dict):
            return Skipped(position, f"the line contains a JSON {type(row).__name__}, not an object")
        return self.document(position, row)

    def _parsed(self, line: bytes) -> Any:
        """Parse a line by orjson, or by the standard library if the two may differ.

        orjson refuses lone surrogates, NaN and a byte order mark, and rounds integers of more than 64 bits.
        """
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError:
            row = json.loads(line.removeprefix(codecs.BOM_UTF8).decode())
            if isinstance(row, dict) and (b"\\ud" in line or b"\\uD" in line):
                row = {key: _without_lone_surrogates(value) for key, value in row.items()}
            return row
        if isinstance(row, dict) and any(isinstance(value_of(row, column), float) for column in self.columns()):
            return json.loads(line)
        return row

    def present(self, path: Path) -> list[str] | None:
        """Return the keys of the first lines of a file, and the named columns in them; None of a file without rows."""
        keys = dict[str, None]()
        for _, line in islice(lines(path), _SAMPLE):
            try:
                row = self._parsed(line) if len(line) <= largest_page() else None
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict):
                keys |= dict.fromkeys(row)
                keys |= {name: None for name in self.named_columns() if value_of(row, name) is not None}
        return list(keys) or None

    def require_content(self, path: Path) -> None:
        """Raise NotOfFormatError if the first lines of a file have no key of ids or content that the user has named."""
        named = [name for name in self.named_columns() if name not in (self.cluster_column, self.date_column)]
        present = self.present(path) if named else None
        for name in named:
            if present is not None and name not in present:
                raise NotOfFormatError(self.without_column(path, name, present))

    def without_column(self, path: Path, name: str, present: Iterable[str]) -> str:
        """Return the sentence on a file without a key."""
        return f"{path} has no key {name!r} in its first lines; their keys are {column_names(present)}"


def _without_lone_surrogates(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_lone_surrogates(inner) for key, inner in value.items()}
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
