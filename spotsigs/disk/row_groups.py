"""Parquet files put behind one another: row groups are copied as they are, and the footers become one.

A footer is a Thrift structure in the compact protocol, and says of each column of each row group where in the file it
lies (parquet.thrift of the Parquet format, version 2). Files written with the same settings become the same bytes as
one file with all of their row groups, for less than it takes to write them again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

_MAGIC = b"PAR1"

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = 4, 5, 6

_ROWS, _GROUPS = 3, 4  # fields of the footer
_COLUMNS, _GROUP_PLACE, _ORDINAL = 1, 5, 7  # of a row group
_CHUNK_PLACES, _FACTS, _PLACES = (2, 4, 6), 3, (9, 10, 11, 14)  # of a column of it, and of the facts about that

Fields = dict[int, tuple[int, Any]]
"""Kind and value of each field of a structure; the value of a list is the kind of its values, and these."""


def join_files(parts: Iterable[bytes], out: IO[bytes]) -> None:
    """Write one Parquet file with the row groups of several, in order.

    Parameters
    ----------
    parts : iterable of bytes
        Whole files, at least one, of the same schema and settings; one is held at a time.
    out : binary file
        An empty one.
    """
    out.write(_MAGIC)
    footer: Fields = {}
    groups: list[bytes] = []
    rows, place = 0, len(_MAGIC)
    for part in parts:
        end = len(part) - 8 - int.from_bytes(part[-8:-4], "little")
        own = _Reader(part, end).fields()
        footer = footer or own
        for group in own[_GROUPS][1][1]:
            _move(group, place - len(_MAGIC), len(groups))
            groups.append(_fields(group))
        rows += own[_ROWS][1]
        out.write(memoryview(part)[len(_MAGIC) : end])
        place += end - len(_MAGIC)
    footer[_ROWS] = footer[_ROWS][0], rows
    footer[_GROUPS] = _LIST, (_STRUCT, groups)
    whole = _fields(footer)
    out.write(whole + len(whole).to_bytes(4, "little") + _MAGIC)


def _move(group: Fields, by: int, ordinal: int) -> None:
    """Make a row group the one of this number, so many bytes further on."""
    if _ORDINAL in group:
        group[_ORDINAL] = group[_ORDINAL][0], ordinal
    places = [(group, _GROUP_PLACE)]
    for chunk in group[_COLUMNS][1][1]:
        places += [(chunk, name) for name in _CHUNK_PLACES] + [(chunk[_FACTS][1], name) for name in _PLACES]
    for fields, name in places:
        if fields.get(name, (0, 0))[1]:  # Arrow writes 0 where it says nothing
            fields[name] = fields[name][0], fields[name][1] + by


class _Reader:
    """Reads a structure of Thrift's compact protocol."""

    def __init__(self, content: bytes, at: int) -> None:
        self.content, self.at = content, at

    def fields(self) -> Fields:
        found: Fields = {}
        name = 0
        while header := self.byte():
            kind = header & 15
            name = name + (header >> 4) if header >> 4 else self.integer()
            found[name] = kind, self.value(kind)
        return found

    def value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return None  # the kind says it
        if kind == _BYTE:
            return self.byte()
        if kind in _INTEGERS:
            return self.integer()
        if kind in (_DOUBLE, _BINARY):
            size = 8 if kind == _DOUBLE else self.varint()
            self.at += size
            return self.content[self.at - size : self.at]
        if kind in (_LIST, _SET):
            header = self.byte()
            size, of = header >> 4, header & 15
            size = self.varint() if size == 15 else size
            read = self.byte if of in (_TRUE, _FALSE) else lambda: self.value(of)
            return of, [read() for _ in range(size)]
        return self.fields()

    def byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while (byte := self.byte()) & 128:
            value |= (byte & 127) << shift
            shift += 7
        return value | byte << shift

    def integer(self) -> int:
        value = self.varint()
        return value >> 1 ^ -(value & 1)


def _fields(fields: Fields) -> bytes:
    """Return a structure in Thrift's compact protocol."""
    out, last = bytearray(), 0
    for name, (kind, value) in sorted(fields.items()):
        step = name - last
        out += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + _varint(name << 1)
        out += _value(kind, value)
        last = name
    return bytes(out + b"\0")


def _value(kind: int, value: Any) -> bytes:
    if kind in (_TRUE, _FALSE):
        return b""
    if kind == _BYTE:
        return bytes([value])
    if kind in _INTEGERS:
        return _varint(value << 1 ^ value >> 63)
    if kind in (_DOUBLE, _BINARY):
        return b"".join([b"" if kind == _DOUBLE else _varint(len(value)), value])
    if kind in (_LIST, _SET):
        of, values = value
        size = len(values)
        header = bytes([size << 4 | of]) if size < 15 else bytes([15 << 4 | of]) + _varint(size)
        return header + b"".join(bytes([one]) if of in (_TRUE, _FALSE) else _value(of, one) for one in values)
    return value if isinstance(value, bytes) else _fields(value)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
