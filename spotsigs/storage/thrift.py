"""Thrift's compact protocol, in which the footers and page headers of Parquet files are written.

References
----------
Apache Thrift, *Thrift compact protocol encoding*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import IO, Any

_TRUE, _FALSE, _BYTE, _DOUBLE, BINARY, LIST, _SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = 4, 5, 6

_DEEPEST = 16

Fields = dict[int, tuple[int, Any]]
"""Kind and value of each field of a structure; the value of a list is the kind of its values, and these."""

_NO_CHANGE: Mapping[int, Callable[[Any], Any]] = MappingProxyType({})


class StructReader:
    """Reads structures, of which nothing is trusted.

    Parameters
    ----------
    file : binary file
        At the beginning of a structure.
    most : int
        Bytes that may be read: they bound what a structure holds in memory, too.

    Raises
    ------
    ValueError
        By all methods, if the structure is damaged, cut short or longer.
    """

    def __init__(self, file: IO[bytes], most: int) -> None:
        self.file, self.left = file, most

    def fields(self, each: Mapping[int, Callable[[Any], Any]] = _NO_CHANGE, *, depth: int = 0) -> Fields:
        """Read a structure; of the lists named, keep what a function makes of each value, as it is read."""
        found: Fields = {}
        name = 0
        while header := self._byte():
            kind = header & 15
            name = name + (header >> 4) if header >> 4 else self._integer()
            found[name] = kind, self._value(kind, depth, each.get(name))
        return found

    def _value(self, kind: int, depth: int, change: Callable[[Any], Any] | None = None) -> Any:
        if kind in (_TRUE, _FALSE):
            return None  # the kind says it
        if kind == _BYTE:
            return self._byte()
        if kind in _INTEGERS:
            return self._integer()
        if kind in (_DOUBLE, BINARY):
            return self._bytes(8 if kind == _DOUBLE else self._varint())
        if depth < _DEEPEST and kind in (LIST, _SET):
            header = self._byte()
            size, of = header >> 4, header & 15
            size = self._varint() if size == 15 else size
            values = (self._byte() if of in (_TRUE, _FALSE) else self._value(of, depth + 1) for _ in range(size))
            return of, list(values if change is None else map(change, values))
        if depth < _DEEPEST and kind == STRUCT:
            return self.fields(depth=depth + 1)
        raise ValueError("a Thrift structure is damaged")

    def _bytes(self, size: int) -> bytes:
        self.left -= size
        if self.left < 0 or len(content := self.file.read(size)) < size:
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


def integer(fields: Fields, name: int, otherwise: int = 0) -> int:
    """Return an integer of a structure, or another number where it has none of this name."""
    kind, value = fields.get(name, (0, None))
    return value if kind in _INTEGERS else otherwise
