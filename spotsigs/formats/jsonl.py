"""Documents as JSON lines, plain, gzip or zstd."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spotsigs.errors import InputError
from spotsigs.formats.input_files import (
    END,
    READ_ERRORS,
    InputFile,
    beginning,
    file_shards,
    find_sources,
    lines,
    reason,
    unreadable,
    windows,
)
from spotsigs.formats.row_documents import RowCollection
from spotsigs.formats.writers import Keep, copy_pieces, copy_whole
from spotsigs.records import Document, Shard, Skipped
from spotsigs.text.size_limits import MARK, in_words, largest_page, outweighs

_VALUES = b",[{"  # what stands before a value of JSON, which holds more than its text


@dataclass(frozen=True, kw_only=True)
class Jsonl(RowCollection):
    """One JSON object a line: ``id``, ``html`` or ``text``, optional ``cluster`` and ``date``.

    A plain file is cut into byte ranges at line ends; see `.input_files.windows` for compressed ones.

    Parameters
    ----------
    judgments : str, optional
        File of judged pairs that replaces the clusters as truth, see `read_judgments`.
    """

    judgments: str | None = None

    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".ndjson.gz", ".ndjson.zst")

    def shards(self) -> Sequence[Shard]:
        """Return the collection's shares."""
        cut = partial(windows, shard_bytes=self.shard_bytes)
        return file_shards(self.sources(), _fault, cut, partial(_records, self))

    def judged(self, doc_ids: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]] | None:
        """Return the judged pairs of rows; None where no file of them is given."""
        return None if self.judgments is None else read_judgments(self.judgments, doc_ids)

    def copy(self, folder: Path, keep: Keep) -> None:
        """Copy every line but the removed documents', see `spotsigs.records.CopyableCollection`."""
        for source in self.sources():
            if unreadable(source.path, _fault):
                copy_whole(source, folder)
            else:
                copy_pieces(source, folder, _lines(self, source, 0, END), keep)


def _fault(path: Path) -> str | None:
    head = beginning(path)
    if b"\0" in head or (head and b"{" not in head):
        return f"the file is not JSON lines: it begins with {head[:24]!r}"
    return None


def _records(collection: Jsonl, source: InputFile, start: int, stop: int) -> Iterator[Document | Skipped]:
    return (record for _, record in _lines(collection, source, start, stop) if record is not None)


def _lines(
    collection: Jsonl, source: InputFile, start: int, stop: int
) -> Iterator[tuple[bytes, Document | Skipped | None]]:
    """Iterate over the lines of a share and the records that they are; one that is too long comes in pieces."""
    inside = False
    for offset, line in lines(source.path, start, stop):
        yield line, _record(collection, source.name, offset, line) if not inside and line.strip() else None
        inside = (inside or len(line) > largest_page()) and not line.endswith(b"\n")


def _record(collection: Jsonl, name: str, offset: int, line: bytes) -> Document | Skipped:
    at = f"{name}@{offset}"
    if len(line) > largest_page():
        return Skipped(at, f"the line is longer than {in_words(largest_page())}")
    if outweighs(line, _VALUES):
        return Skipped(
            at, f"the line is larger than {in_words(largest_page())}, its values counted for {MARK} bytes each"
        )
    try:
        row = json.loads(line.removeprefix(b"\xef\xbb\xbf").decode())
    except UnicodeDecodeError as error:
        return Skipped(at, f"the line is not UTF-8: {error.reason} at byte {error.start}")
    except (ValueError, RecursionError) as error:  # a number of too many digits is a bare ValueError
        return Skipped(at, f"the line is not JSON: {error}")
    if not isinstance(row, dict):
        return Skipped(at, f"the line holds a JSON {type(row).__name__}, not an object")
    if b"\\ud" in line or b"\\uD" in line:
        row = {key: _without_lone_surrogates(value) for key, value in row.items()}
    return collection.document(at, row)


def _without_lone_surrogates(value: object) -> object:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def read_judgments(path: str, doc_ids: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
    """Read judged pairs: JSON lines ``{"doc_a": id, "doc_b": id, "duplicate": true or false}``.

    Parameters
    ----------
    path : str
        Plain, gzip or zstd file, or several by folder or pattern.
    doc_ids : sequence of str
        Ids of the collection's documents, by row.

    Returns
    -------
    i, j : ndarray of int32, shape (n_judged,)
        Row numbers, ``i < j``, sorted by (i, j), without repeats.
    positive : ndarray of bool, shape (n_judged,)
        Whether the pair was judged a duplicate.

    Raises
    ------
    InputError
        For a line that is no such judgment, an id the collection does not have, a document judged against itself, or
        a pair judged both ways.
    """
    rows = {doc_id: row for row, doc_id in enumerate(doc_ids)}
    judged: dict[tuple[int, int], bool] = {}
    for source in find_sources(path, Jsonl.suffixes):
        try:
            for number, (_, line) in enumerate(lines(source.path), start=1):
                if line.strip():
                    pair, duplicate = _judgment(f"line {number} of {source.path}", line, rows)
                    if judged.setdefault(pair, duplicate) != duplicate:
                        names = " and ".join(repr(doc_ids[row]) for row in pair)
                        raise InputError(f"line {number} of {source.path} contradicts an earlier judgment of {names}")
        except READ_ERRORS as error:
            raise InputError(f"{source.path}: {reason(error)}") from error
    if not judged:
        raise InputError(f"{path} holds no judged pair")
    pairs = sorted(judged)
    i, j = np.array(pairs, dtype=np.int32).T
    return i, j, np.array([judged[pair] for pair in pairs])


def _judgment(place: str, line: bytes, rows: Mapping[str, int]) -> tuple[tuple[int, int], bool]:
    form = '{"doc_a": id, "doc_b": id, "duplicate": true or false}'
    try:
        row = json.loads(line)
        a, b, duplicate = str(row["doc_a"]), str(row["doc_b"]), row["duplicate"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(f"{place} is no judged pair; each line is {form}") from error
    if not isinstance(duplicate, bool):
        raise InputError(f"{place}: 'duplicate' must be true or false, got {duplicate!r}")
    for doc_id in (a, b):
        if doc_id not in rows:
            raise InputError(f"{place} judges {doc_id!r}, which is not among the {len(rows)} documents that were read")
    if a == b:
        raise InputError(f"{place} judges {a!r} against itself")
    first, second = sorted((rows[a], rows[b]))
    return (first, second), duplicate
