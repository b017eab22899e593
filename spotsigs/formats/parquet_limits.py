"""Sizes of the pages of Parquet files, which a reader unpacks one at a time for each column.

A page may be as large as its row group (DuckDB writes such pages), and no function of PyArrow returns its size. The
footer is parsed here too, because PyArrow ends the process if the statistics of a column contradict the schema.

References
----------
Apache Parquet, *Thrift definition* (FileMetaData, PageHeader); Apache Thrift, *Thrift compact protocol encoding*.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from io import BytesIO
from typing import IO, Any, NamedTuple

_GROUPS, _COLUMNS, _FACTS = 4, 1, 3  # fields of the footer, of a row group, of a column of it
_PATH, _CODEC, _STORED_BYTES, _DATA, _DICTIONARY = 3, 4, 7, 9, 11  # fields of the facts about a column
_UNPACKED, _STORED = 2, 3  # fields of a page's header
_KINDS, _VALUES = (5, 7, 8), 1  # headers of a page of data, of a dictionary and of data of version 2; a field of each
_FOOTER: Mapping[int, Any] = {
    _GROUPS: {_COLUMNS: {_FACTS: {key: {} for key in (_PATH, _CODEC, _STORED_BYTES, _DATA, _DICTIONARY)}}}
}
_PAGE: Mapping[int, Any] = {_UNPACKED: {}, _STORED: {}} | {kind: {_VALUES: {}} for kind in _KINDS}
_MOST_HEADER = 1 << 20
_DEEPEST = 16

CODECS = {0: "none", 1: "snappy", 2: "gzip", 4: "brotli", 5: "lz4", 6: "zstd", 7: "lz4"}
"""PyArrow's names of the format's numbers."""


class Chunk(NamedTuple):
    """One column in one row group: its outermost name, its compression, and the range of its pages in the file."""

    column: str
    codec: int
    start: int
    stop: int


def column_chunks(file: IO[bytes]) -> tuple[tuple[Chunk, ...], ...]:
    """Return the columns of each row group of a Parquet file; raise ValueError if the footer is damaged."""
    end = file.seek(0, 2) - 8
    file.seek(max(end, 0))
    size = int.from_bytes(file.read(4), "little")
    file.seek(max(end - size, 0))
    return _column_chunks(file.read(size))


@lru_cache(maxsize=1)  # a worker reads one shard of a file after the other
def _column_chunks(footer: bytes) -> tuple[tuple[Chunk, ...], ...]:
    try:
        groups = _Struct(BytesIO(footer), len(footer)).fields(_FOOTER)[_GROUPS]
        return tuple(tuple(_chunk(column[_FACTS]) for column in group[_COLUMNS]) for group in groups)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ValueError("a column has no metadata") from None


def _chunk(facts: Mapping[int, Any]) -> Chunk:
    start = min((at for name in (_DICTIONARY, _DATA) if (at := facts.get(name, 0)) > 0), default=0)
    name = facts[_PATH][0].decode("utf-8", "replace")
    return Chunk(name, int(facts.get(_CODEC, -1)), int(start), int(start + facts[_STORED_BYTES]))


class Sizes(NamedTuple):
    """Bytes of unpacked pages, added up over the columns of a row group."""

    pages: int  # the largest page of each column
    dictionaries: int  # the dictionary of each column that has one
    value: int  # the largest mean of a page's values


def page_sizes(file: IO[bytes], chunks: Iterable[Chunk]) -> Sizes:
    """Return the sizes of the pages of columns; raise ValueError for a damaged header."""
    pages = dictionaries = value = 0
    for chunk in chunks:
        headers = list(_pages(file, chunk))
        pages += max((size for size, _, _ in headers), default=0)
        dictionaries += max((size for size, _, is_dictionary in headers if is_dictionary), default=0)
        value += max((size // max(values, 1) for size, values, _ in headers), default=0)
    return Sizes(pages, dictionaries, value)


def _pages(file: IO[bytes], chunk: Chunk) -> Iterator[tuple[int, int, bool]]:
    """Iterate over the unpacked bytes and the number of values of each page, and whether it is a dictionary."""
    at = chunk.start
    while at < chunk.stop:
        file.seek(at)
        header = _Struct(file, _MOST_HEADER).fields(_PAGE)
        stored, unpacked = header.get(_STORED), header.get(_UNPACKED)
        if not (isinstance(stored, int) and isinstance(unpacked, int) and min(stored, unpacked) >= 0):
            raise ValueError(f"there is no page at byte {at}")
        kind = next((kind for kind in _KINDS if kind in header), None)
        values = header[kind].get(_VALUES, 0) if kind and isinstance(header[kind], dict) else 0
        yield unpacked, values if isinstance(values, int) else 0, kind == _KINDS[1]
        at = file.tell() + stored


class _Struct:
    """A structure of Thrift's compact protocol, of which at most some bytes are read; its content is not trusted."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self.file, self.rest = file, most

    def fields(self, wanted: Mapping[int, Any], depth: int = 0) -> dict[int, Any]:
        """Read the structure and return the wanted fields: by number, those wanted of the structures in each."""
        values: dict[int, Any] = {}
        name = 0
        while header := self._byte():
            name = name + (header >> 4) if header >> 4 else self._integer()
            value = self._value(header & 15, wanted.get(name, {}), depth)
            if name in wanted:
                values[name] = value
        return values

    def _value(self, kind: int, wanted: Mapping[int, Any], depth: int) -> Any:
        match kind:
            case 1 | 2:  # true and false have no bytes
                return None
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._integer()
            case 7 | 8:
                return self._bytes(8 if kind == 7 else self._varint())
            case 9 | 10 if depth < _DEEPEST:
                header = self._byte()
                size = self._varint() if header >> 4 == 15 else header >> 4
                of = 3 if header & 15 in (1, 2) else header & 15  # in a list, booleans have a byte
                return [self._value(of, wanted, depth + 1) for _ in range(size)]
            case 12 if depth < _DEEPEST:
                return self.fields(wanted, depth + 1)
        raise ValueError("a Thrift structure is damaged")

    def _bytes(self, size: int) -> bytes:
        self.rest -= size
        if self.rest < 0 or len(content := self.file.read(size)) < size:
            raise ValueError("a Thrift structure is damaged or cut short")
        return content

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 64, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a Thrift structure is damaged")

    def _integer(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)
