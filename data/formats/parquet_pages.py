"""How large the pages of a Parquet file are: what a reader holds at once, which the file's footer does not say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

_STRUCT, _LIST, _SET, _MAP, _BINARY, _DOUBLE, _BYTE = 12, 9, 10, 11, 8, 7, 3
_UNPACKED, _STORED = 2, 3  # fields of a page's header
_DEEPEST = 16


def largest_pages(file: IO[bytes], group: Any, columns: list[str] | None = None) -> int:
    """Return the bytes of the largest unpacked page of each column chunk of a row group, added up.

    Parameters
    ----------
    file : file
        The Parquet file, which can seek.
    group : pyarrow.parquet.RowGroupMetaData
        The row group.
    columns : list of str, optional
        Columns that are read; all where omitted.

    Raises
    ------
    ValueError
        If a page's header is damaged.

    References
    ----------
    Apache Parquet, *Thrift definition* (PageHeader); Apache Thrift, *Thrift compact protocol encoding*.
    """
    total = 0
    for chunk in (group.column(k) for k in range(group.num_columns)):
        if columns is None or chunk.path_in_schema.partition(".")[0] in columns:
            starts = [place for place in (chunk.dictionary_page_offset, chunk.data_page_offset) if place]
            start = min(starts, default=0)
            total += max(_page_sizes(file, start, start + chunk.total_compressed_size), default=0)
    return total


def _page_sizes(file: IO[bytes], at: int, stop: int) -> Iterator[int]:
    while at < stop:
        file.seek(at)
        numbers = _struct(file, 0)
        stored, unpacked = numbers.get(_STORED, -1), numbers.get(_UNPACKED, -1)
        if stored < 0 or unpacked < 0:
            raise ValueError(f"there is no page at byte {at}")
        yield unpacked
        at = file.tell() + stored


def _struct(file: IO[bytes], depth: int) -> dict[int, int]:
    """Read a struct; return its integers by field."""
    numbers: dict[int, int] = {}
    field = 0
    while head := _byte(file):
        kind = head & 15
        field = field + (head >> 4) if head >> 4 else _number(file)
        found = _value(file, kind, depth)
        if found is not None:
            numbers[field] = found
    return numbers


def _value(file: IO[bytes], kind: int, depth: int) -> int | None:
    """Pass over a value; return it if it is an integer."""
    if depth > _DEEPEST:
        raise ValueError("a page's header nests too deep")
    if kind in (1, 2):  # a boolean lies in its field's header
        return None
    if kind in (4, 5, 6):
        return _number(file)
    if kind == _STRUCT:
        _struct(file, depth + 1)
    elif kind in (_BYTE, _DOUBLE):
        file.seek(1 if kind == _BYTE else 8, 1)
    elif kind == _BINARY:
        file.seek(_varint(file), 1)
    elif kind in (_LIST, _SET):
        head = _byte(file)
        for _ in range(_varint(file) if head >> 4 == 15 else head >> 4):
            _element(file, head & 15, depth)
    elif kind == _MAP:
        if n := _varint(file):
            kinds = _byte(file)
            for _ in range(n):
                _element(file, kinds >> 4, depth)
                _element(file, kinds & 15, depth)
    else:
        raise ValueError("a page's header is damaged")
    return None


def _element(file: IO[bytes], kind: int, depth: int) -> None:
    if kind in (1, 2):  # in a list a boolean has a byte of its own
        _byte(file)
    else:
        _value(file, kind, depth + 1)


def _byte(file: IO[bytes]) -> int:
    if not (byte := file.read(1)):
        raise ValueError("a page's header is cut short")
    return byte[0]


def _varint(file: IO[bytes]) -> int:
    value = shift = 0
    while True:
        byte = _byte(file)
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value
        if shift > 63:
            raise ValueError("a page's header is damaged")


def _number(file: IO[bytes]) -> int:
    value = _varint(file)
    return (value >> 1) ^ -(value & 1)
