"""Sizes of the pages of Parquet files, which a reader unpacks one at a time for each column.

A page may be as large as its row group (DuckDB writes such pages), and no function of PyArrow returns its size. The
footer is read here too, because PyArrow ends the process if the statistics of a column contradict the schema.

References
----------
Apache Parquet, *Thrift definition* (FileMetaData, PageHeader).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from io import BytesIO
from typing import IO, NamedTuple

from spotsigs.storage.thrift import BINARY, LIST, STRUCT, Fields, StructReader, integer

_GROUPS, _COLUMNS, _FACTS = 4, 1, 3  # fields of the footer, of a row group, of a column of it
_PATH, _CODEC, _STORED_BYTES, _DATA, _DICTIONARY = 3, 4, 7, 9, 11  # fields of the facts about a column
_UNPACKED, _STORED = 2, 3  # fields of a page's header
_MOST_HEADER = 1 << 20

CODECS = {0: "none", 1: "snappy", 2: "gzip", 4: "brotli", 5: "lz4", 6: "zstd", 7: "lz4"}
"""PyArrow's names of the format's numbers."""


class Chunk(NamedTuple):
    """One column in one row group.

    Attributes
    ----------
    column : str
        Name of the outermost field.
    codec : int
        Compression of its pages.
    start, stop : int
        Range of its pages in the file.
    """

    column: str
    codec: int
    start: int
    stop: int


def column_chunks(file: IO[bytes]) -> tuple[tuple[Chunk, ...], ...]:
    """Return the columns of each row group.

    Parameters
    ----------
    file : binary file
        A Parquet file, which can seek.

    Raises
    ------
    ValueError
        If the footer is damaged.
    """
    end = file.seek(0, 2) - 8
    file.seek(max(end, 0))
    size = int.from_bytes(file.read(4), "little")
    file.seek(max(end - size, 0))
    return _column_chunks(file.read(size))


@lru_cache(maxsize=1)  # a worker reads one shard of a file after the other
def _column_chunks(footer: bytes) -> tuple[tuple[Chunk, ...], ...]:
    fields = StructReader(BytesIO(footer), len(footer)).fields({_GROUPS: _chunks})
    kind, groups = fields.get(_GROUPS, (0, None))
    return tuple(groups[1]) if kind == LIST else ()


def _chunks(group: Fields) -> tuple[Chunk, ...]:
    kind, columns = group.get(_COLUMNS, (0, None)) if isinstance(group, dict) else (0, None)
    if kind != LIST or columns[0] != STRUCT:
        raise ValueError("a row group has no columns")
    return tuple(map(_chunk, columns[1]))


def _chunk(column: Fields) -> Chunk:
    kind, facts = column.get(_FACTS, (0, None))
    if kind != STRUCT:
        raise ValueError("a column has no metadata")
    kind, path = facts.get(_PATH, (0, None))
    if kind != LIST or path[0] != BINARY or not path[1]:
        raise ValueError("a column has no name")
    start = min((place for name in (_DICTIONARY, _DATA) if (place := integer(facts, name)) > 0), default=0)
    name = path[1][0].decode("utf-8", "replace")
    return Chunk(name, integer(facts, _CODEC, -1), start, start + integer(facts, _STORED_BYTES))


def largest_pages(file: IO[bytes], chunks: Iterable[Chunk]) -> int:
    """Return the bytes of the largest unpacked page of each column chunk, added up.

    Parameters
    ----------
    file : binary file
        The Parquet file, which can seek.
    chunks : iterable of Chunk
        The columns that are read.

    Raises
    ------
    ValueError
        If a page's header is damaged.
    """
    return sum(max(_page_sizes(file, chunk), default=0) for chunk in chunks)


def _page_sizes(file: IO[bytes], chunk: Chunk) -> Iterator[int]:
    at = chunk.start
    while at < chunk.stop:
        file.seek(at)
        header = StructReader(file, _MOST_HEADER).fields()
        stored, unpacked = integer(header, _STORED, -1), integer(header, _UNPACKED, -1)
        if stored < 0 or unpacked < 0:
            raise ValueError(f"there is no page at byte {at}")
        yield unpacked
        at = file.tell() + stored
