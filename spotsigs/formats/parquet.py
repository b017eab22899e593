"""Documents from Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from spotsigs.errors import InputError
from spotsigs.formats.compression import open_stored
from spotsigs.formats.input_files import STREAM_SHARDS, InputFile
from spotsigs.formats.parquet_limits import CODECS, Chunk, Sizes, column_chunks, page_sizes
from spotsigs.formats.row_documents import RowCollection
from spotsigs.formats.writers import Keep
from spotsigs.records import Document, Skipped
from spotsigs.storage.locations import is_remote
from spotsigs.text.size_limits import MAX_UNIT, in_words, largest_page, largest_unit

T = TypeVar("T")

_BATCH_ROWS = 256


@dataclass(frozen=True, kw_only=True)
class Parquet(RowCollection):
    """One row a document.

    A shard is a range of rows of one row group. Shards of the same row group decode it from its beginning, so that a
    file written as a single row group is still spread over the workers. Text columns may be strings or bytes.
    """

    def fault(self, path: Path) -> str | None:
        """Return why a file is not Parquet; None if it is."""
        try:
            _opened(path)
        except (pa.ArrowException, ValueError) as error:
            return f"the file is not Parquet or is truncated: {str(error).splitlines()[0]}"
        return None

    def present(self, path: Path) -> list[str]:
        """Return the columns of a file."""
        return _column_names(_opened(path).schema_arrow)

    def cut(self, path: Path) -> list[tuple[int, int]]:
        """Return ranges of rows."""
        file = _opened(path)
        edges = [0]
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            parts = min(STREAM_SHARDS, max(1, round(group.total_byte_size / self.shard_bytes)))
            edges += [edges[-1] + group.num_rows * k // parts for k in range(1, parts + 1)]
        return [(a, b) for a, b in pairwise(edges) if a < b]

    def records(self, source: InputFile, start: int, stop: int) -> Iterator[Document | Skipped]:
        """Iterate over the rows ``[start, stop)`` of a file."""
        file = _opened(source.path)
        columns = self.check_columns(source.path, _column_names(file.schema_arrow))
        first = 0
        try:
            for group in range(file.num_row_groups):
                end = first + file.metadata.row_group(group).num_rows
                for batch in _row_batches(source, file, group, columns) if start < end else ():
                    low, high = max(start - first, 0), min(stop - first, len(batch))
                    yield from self._documents(source, first + low, batch.slice(low, max(high - low, 0)))
                    first += len(batch)
                    if first >= stop:
                        return
                first = end
        except (pa.ArrowException, OSError, ValueError) as error:
            yield Skipped(source.name, f"rows {start} to {stop - 1} cannot all be read: {str(error).splitlines()[0]}")

    def largest_unit(self, copied: bool, most: int) -> tuple[int, str]:
        """Return the bytes of the largest pages that are unpacked together, if they are read or `copied`.

        The second value is a sentence on how to write the file with pages of at most `most` bytes. Of remote files,
        whose pages take a request each, the first is inspected. Pages of rows that are too large in any case do not
        count.
        """
        largest, sentence = 0, ""
        for source in self.sources():
            if self.unreadable(source):
                continue
            try:
                file = _opened(source.path)
                columns = None if copied else self.check_columns(source.path, _column_names(file.schema_arrow))
                with open_stored(source.path) as content:
                    for chunks in column_chunks(content):
                        sizes = page_sizes(content, _read(chunks, columns))
                        if largest < sizes.pages <= MAX_UNIT and sizes.value <= largest_page():
                            largest, sentence = sizes.pages, f"{source.path}: {_too_large(sizes, most)}"
            except (pa.ArrowException, OSError, ValueError):  # listed when it is read
                continue
            if is_remote(source.path):
                break
        return largest, sentence

    def copy_file(self, source: InputFile, target: Path, keep: Keep) -> None:
        """Copy every row with all its columns but the removed ones."""
        file = _opened(source.path)
        schema = file.schema_arrow
        names = self.check_columns(source.path, _column_names(schema))
        wanted = list(dict.fromkeys(name if name in schema.names else name.partition(".")[0] for name in names))
        row = 0
        codec = next(_whole(source, _codecs(source)), "none")
        with target.open("xb") as stored, pq.ParquetWriter(stored, schema, compression=codec) as out:
            for group in range(file.num_row_groups):
                batches: list[pa.RecordBatch] = []
                size = 0
                for batch in _whole(source, _row_batches(source, file, group)):
                    if size + batch.nbytes > 2 * largest_page():
                        out.write_table(pa.Table.from_batches(batches, schema))
                        batches, size = [], 0
                    records = self._documents(source, row, batch.select(wanted))
                    stays = [not isinstance(record, Document) or keep(record) for record in records]
                    for stay, run in groupby(range(len(batch)), key=stays.__getitem__):
                        rows = list(run)
                        if stay:  # slices, because no function of Arrow filters every type
                            batches.append(batch.slice(rows[0], len(rows)))
                    row, size = row + len(batch), size + batch.nbytes
                out.write_table(pa.Table.from_batches(batches, schema))

    def _documents(self, source: InputFile, first: int, batch: pa.RecordBatch) -> Iterator[Document | Skipped]:
        """Iterate over the records of a batch; text need not be UTF-8."""
        for k in range(len(batch)):
            row, position = batch.slice(k, 1), f"{source.name}#{first + k}"
            values = (c.dictionary_decode() if isinstance(c, pa.DictionaryArray) else c for c in row.columns)
            if (size := sum(value.nbytes for value in values)) > largest_page():
                yield Skipped(position, f"the row has {in_words(size)}, more than {in_words(largest_page())}")
                continue
            try:
                fields = {name: _value(column) for name, column in zip(row.schema.names, row.columns, strict=True)}
            except (ValueError, OverflowError, pa.ArrowException) as error:
                yield Skipped(position, f"the row cannot be read: {str(error).splitlines()[0]}")
            else:
                yield self.document(position, fields)


def _value(column: pa.Array) -> Any:
    """Return the value of a column of one row; of a date that Python cannot represent, its number as text."""
    try:
        return column[0].as_py()
    except (ValueError, OverflowError):
        if not pa.types.is_temporal(column.type):
            raise
        return str(column.cast(pa.int64())[0])


def _opened(path: Path) -> pq.ParquetFile:
    # Arrow takes a path such as run:1/x for a URL, and refuses one that is not UTF-8.
    is_odd = is_remote(path) or ":" in str(path) or not str(path).isprintable()
    return pq.ParquetFile(open_stored(path) if is_odd else path, buffer_size=1 << 16)


def _column_names(fields: Iterable[pa.Field], above: str = "") -> list[str]:
    """Return the names of columns, and the paths of those nested in them."""
    names: list[str] = []
    for field in fields:
        names.append(above + field.name)
        if pa.types.is_struct(field.type):
            names += _column_names(field.type.fields, f"{above}{field.name}.")
    return names


def _row_batches(
    source: InputFile, file: pq.ParquetFile, group: int, columns: list[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Read a row group, few rows at a time: a value is never larger than its page of the file."""
    encoded = {field.name for field in file.schema_arrow if pa.types.is_dictionary(field.type)}
    with open_stored(source.path) as content:
        chunks = _read(column_chunks(content)[group], columns)
        sizes = page_sizes(content, chunks)
        repeated = page_sizes(content, [c for c in chunks if c.column not in encoded]) if encoded else sizes
    if sizes.pages > largest_unit():
        raise ValueError(_too_large(sizes, largest_unit()))
    rows = 2 * largest_page() // max(repeated.dictionaries, repeated.value, 1)
    yield from file.iter_batches(min(max(rows, 1), _BATCH_ROWS), row_groups=[group], columns=columns)


def _too_large(sizes: Sizes, most: int) -> str:
    """Return that pages are larger than a limit, and the rows of a row group of pages that are not.

    Other rows of the file may have eight times the mean size of these.
    """
    rows = max(most // max(8 * sizes.value, 1), 1)
    return (
        f"pages of a row group unpack to {in_words(sizes.pages)}, more than {in_words(most)}; "
        f"write it with row_group_size={rows}"
    )


def _read(chunks: Iterable[Chunk], columns: list[str] | None) -> list[Chunk]:
    """Return the chunks of some columns, which may be nested in them; all without columns."""
    return [
        chunk
        for chunk in chunks
        if columns is None or any(f"{name}.".startswith(f"{chunk.column}.") for name in columns)
    ]


def _codecs(source: InputFile) -> Iterator[str]:
    """Iterate over the compression of each column of each row group."""
    with open_stored(source.path) as content:
        for group in column_chunks(content):
            yield from (CODECS.get(chunk.codec, "zstd") for chunk in group)


def _whole(source: InputFile, parts: Iterator[T]) -> Iterator[T]:
    """Refuse damage: a row group cannot be copied in part."""
    try:
        yield from parts
    except (pa.ArrowException, OSError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise InputError(
            f"{source.path} cannot be copied, because it cannot all be read: {why}; see kept.csv"
        ) from error
