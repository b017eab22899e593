"""Documents from Parquet and CSV files."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import pyarrow as pa
import pyarrow.parquet as pq

from spotsigs.errors import InputError, require
from spotsigs.formats.csv_parser import csv_rows
from spotsigs.formats.input_files import (
    END,
    STREAM_SHARDS,
    InputFile,
    beginning,
    file_shards,
    open_bytes,
    raw,
    unreadable,
    windows,
)
from spotsigs.formats.parquet_limits import CODECS, column_chunks, largest_pages
from spotsigs.formats.row_documents import RowCollection
from spotsigs.formats.writers import Keep, copy_pieces, copy_whole, target_of
from spotsigs.records import Document, Shard, Skipped
from spotsigs.spelling import option
from spotsigs.storage.locations import is_remote
from spotsigs.text.size_limits import in_words, largest_page

T = TypeVar("T")

_BATCH_ROWS = 256


@dataclass(frozen=True, kw_only=True)
class Parquet(RowCollection):
    """One row a document; column names are given.

    A share is a range of rows of one row group. Shares of the same row group decode it from its beginning, so that a
    file written as a single row group is still spread over the workers. Text columns may be strings or bytes.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".parquet", ".pq")

    def shards(self) -> Sequence[Shard]:
        """Return the collection's shares."""
        return file_shards(self.sources(), _parquet_fault, partial(_row_ranges, self), partial(_parquet_records, self))

    def copy(self, folder: Path, keep: Keep) -> None:
        """Copy every row with all its columns but the removed ones, see `spotsigs.records.CopyableCollection`."""
        for source in self.sources():
            if unreadable(source.path, _parquet_fault):
                copy_whole(source, folder)
            else:
                _copy_parquet(self, source, target_of(folder, source), keep)


def _opened(path: Path) -> pq.ParquetFile:
    return pq.ParquetFile(raw(path) if is_remote(path) else path, buffer_size=1 << 16)


class _TooLargeError(ValueError):
    """Pages of a row group that do not fit."""


def _group_batches(
    source: InputFile, file: pq.ParquetFile, group: int, columns: list[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Read a row group, so few rows at a time that they fit: a value is never larger than the page it lies in."""
    most = 2 * largest_page()
    with raw(source.path) as content:
        chunks = column_chunks(content)[group]
        size = largest_pages(content, (chunk for chunk in chunks if columns is None or chunk.column in columns))
    if size > most:
        raise _TooLargeError(
            f"pages of a row group unpack to {in_words(size)}, more than {in_words(most)}; write it with smaller ones"
        )
    yield from file.iter_batches(min(max(most // max(size, 1), 1), _BATCH_ROWS), row_groups=[group], columns=columns)


def _copy_parquet(collection: Parquet, source: InputFile, target: Path, keep: Keep) -> None:
    file = _opened(source.path)
    groups = range(file.num_row_groups)
    codec = next(_whole(source, map(_codec, [source])))
    row = 0
    wanted = collection.check_columns(source.path, file.schema_arrow.names)
    with pq.ParquetWriter(target, file.schema_arrow, compression=codec) as out:
        for group in groups:
            batches: list[pa.RecordBatch] = []
            for batch in _whole(source, _group_batches(source, file, group)):
                if sum(held.nbytes for held in batches) + batch.nbytes > 2 * largest_page():
                    out.write_table(pa.Table.from_batches(batches, file.schema_arrow))
                    batches = []
                found = enumerate(_rows(batch.select(wanted)), start=row)
                records = (_parquet_record(collection, source, number, values) for number, values in found)
                stays = [not isinstance(record, Document) or keep(record) for record in records]
                batches.append(batch.filter(pa.array(stays, pa.bool_())))
                row += len(batch)
            out.write_table(pa.Table.from_batches(batches, file.schema_arrow))


def _codec(source: InputFile) -> str:
    """Return how the first column of a file is packed."""
    with raw(source.path) as content:
        number = next((chunk.codec for group in column_chunks(content) for chunk in group), 0)
    if number not in CODECS:
        raise ValueError(f"it is packed by a codec that is not known here, number {number}")
    return CODECS[number]


def _whole(source: InputFile, parts: Iterator[T]) -> Iterator[T]:
    """Refuse damage: a table cannot be copied up to somewhere inside a row group."""
    try:
        yield from parts
    except (pa.ArrowException, OSError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise InputError(f"{source.path} cannot be copied, for it cannot all be read: {why}; see kept.csv") from error


def _parquet_record(
    collection: Parquet, source: InputFile, row: int, values: dict[str, Any] | str
) -> Document | Skipped:
    place = f"{source.name}#{row}"
    return collection.document(place, values) if isinstance(values, dict) else Skipped(place, values)


def _parquet_fault(path: Path) -> str | None:
    try:
        _opened(path)
    except (pa.ArrowException, ValueError) as error:
        return f"the file is not Parquet or is truncated: {str(error).splitlines()[0]}"
    return None


def _row_ranges(collection: Parquet, path: Path) -> list[tuple[int, int]]:
    file = _opened(path)
    metadata = file.metadata
    collection.check_columns(path, file.schema_arrow.names)
    edges = [0]
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        parts = min(STREAM_SHARDS, max(1, round(metadata.row_group(group).total_byte_size / collection.shard_bytes)))
        edges += [edges[-1] + rows * k // parts for k in range(1, parts + 1)]
    return [(a, b) for a, b in pairwise(edges) if a < b]


def _parquet_records(collection: Parquet, source: InputFile, start: int, stop: int) -> Iterator[Document | Skipped]:
    """Read the rows ``[start, stop)`` of a file."""
    file = _opened(source.path)
    columns = collection.check_columns(source.path, file.schema_arrow.names)
    try:
        for first, batch in _batches(source, file, columns, start, stop):
            for row, values in enumerate(_rows(batch), start=first):
                yield _parquet_record(collection, source, row, values)
    except (pa.ArrowException, OSError, ValueError) as error:
        yield Skipped(source.name, f"rows {start} to {stop - 1} cannot all be read: {str(error).splitlines()[0]}")


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any] | str]:
    """Iterate over the rows of a batch; where Python has no such value, over why not (text need not be UTF-8)."""
    for k in range(len(batch)):
        row = batch.slice(k, 1)
        if row.nbytes > largest_page():
            yield f"the row has {in_words(row.nbytes)}, more than {in_words(largest_page())}"
            continue
        try:
            [values] = row.to_pylist()
        except (ValueError, OverflowError, pa.ArrowException) as error:
            values = f"the row cannot be read: {str(error).splitlines()[0]}"
        yield values


def _batches(
    source: InputFile, file: pq.ParquetFile, columns: list[str], start: int, stop: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    first = 0
    for group in range(file.num_row_groups):
        end = first + file.metadata.row_group(group).num_rows
        if first < stop and start < end:
            position = first
            for batch in _group_batches(source, file, group, columns):
                low, high = max(start - position, 0), min(stop - position, len(batch))
                if low < high:
                    yield position + low, batch.slice(low, high - low)
                position += len(batch)
                if position >= stop:
                    break
        first = end


@dataclass(frozen=True, kw_only=True)
class Csv(RowCollection):
    """One row a document; the first row names the columns, quotes may enclose line breaks, plain, gzip or zstd.

    Whether a line break ends a row is known only from all that stands before it. Each share of a file, eight at most,
    therefore parses from the beginning and keeps the rows that begin in its window; parsing is several times cheaper
    than extraction.

    Parameters
    ----------
    delimiter : str
        One character between the fields.
    charset : str, optional
        Encoding of the content; detected for each row where none is given. It must contain ASCII, as UTF-8 and
        Latin-1 do.
    """

    delimiter: str = ","
    charset: str | None = None

    suffixes: ClassVar[tuple[str, ...]] = tuple(
        kind + pack for kind in (".csv", ".tsv") for pack in ("", ".gz", ".zst")
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require(len(self.delimiter) == 1, f"delimiter must be one character, got {self.delimiter!r}")

    def shards(self) -> Sequence[Shard]:
        """Return the collection's shares."""
        return file_shards(self.sources(), _csv_fault, partial(_csv_windows, self), partial(_csv_records, self))

    def copy(self, folder: Path, keep: Keep) -> None:
        """Copy every row but the removed ones, see `spotsigs.records.CopyableCollection`."""
        for source in self.sources():
            if unreadable(source.path, _csv_fault):
                copy_whole(source, folder)
            else:
                copy_pieces(source, folder, _csv_pieces(self, source, 0, END), keep)


def _csv_fault(path: Path) -> str | None:
    head = beginning(path)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "the file is UTF-16; save it as UTF-8"
    if b"\0" in head:
        return f"the file is not CSV: it begins with {head[:24]!r}"
    if head.removeprefix(codecs.BOM_UTF8).lstrip().startswith((b'{"', b'[{"')):
        return f"the file is JSON, not CSV; one record a line is read by {option('data', 'jsonl')}"
    return None if head.strip() else "the file is empty: its first row must name the columns"


def _csv_windows(collection: Csv, path: Path) -> list[tuple[int, int]]:
    with open_bytes(path) as stream:
        header = next(csv_rows(stream, collection.delimiter)).fields
    if not isinstance(header, list):
        raise OSError(f"its first row must name the columns: {header}")
    collection.check_columns(path, _names(header))
    return windows(path, collection.shard_bytes, seekable=False)


def _names(header: list[bytes]) -> list[str]:
    return [name.decode("utf-8", "replace").strip() for name in header]


def _csv_records(collection: Csv, source: InputFile, start: int, stop: int) -> Iterator[Document | Skipped]:
    return (record for _, record in _csv_pieces(collection, source, start, stop) if record is not None)


def _csv_pieces(
    collection: Csv, source: InputFile, start: int, stop: int
) -> Iterator[tuple[bytes, Document | Skipped | None]]:
    """Iterate over the text of the rows of a share and the records that they are, the header's first."""
    with open_bytes(source.path) as stream:
        rows = csv_rows(stream, collection.delimiter)
        _, text, header = next(rows)
        yield text, None
        names = _names(cast("list[bytes]", header))
        for offset, text, fields in rows:
            if offset >= stop:
                return
            if offset >= start:
                yield text, _csv_record(collection, f"{source.name}@{offset}", names, fields) if fields else None


def _csv_record(collection: Csv, place: str, names: list[str], row: list[bytes] | str) -> Document | Skipped:
    if isinstance(row, str):
        return Skipped(place, row)
    if len(row) != len(names):
        return Skipped(place, f"the row has {len(row)} fields, the header {len(names)}")
    record = collection.document(place, dict(zip(names, row, strict=True)))
    return replace(record, charset=collection.charset) if isinstance(record, Document) else record
