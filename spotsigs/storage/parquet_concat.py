"""Parquet files put behind one another: row groups are copied as they are, and the footers become one.

A footer says of each column of each row group where in the file it lies. Files written with the same settings become
the same bytes as one file with all of their row groups, for less than it takes to write them again.

References
----------
Apache Parquet, *Thrift definition*, version 2 (FileMetaData).
"""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from typing import IO

from spotsigs.storage.thrift import LIST, STRUCT, Fields, StructReader, written

_MAGIC = b"PAR1"

_ROWS, _GROUPS = 3, 4  # fields of the footer
_COLUMNS, _GROUP_PLACE, _ORDINAL = 1, 5, 7  # of a row group
_CHUNK_PLACES, _FACTS, _PLACES = (2, 4, 6), 3, (9, 10, 11, 14)  # of a column of it, and of the facts about that


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
        own = StructReader(BytesIO(part[end:]), len(part) - end).fields()
        footer = footer or own
        for group in own[_GROUPS][1][1]:
            _move(group, place - len(_MAGIC), len(groups))
            groups.append(written(group))
        rows += own[_ROWS][1]
        out.write(memoryview(part)[len(_MAGIC) : end])
        place += end - len(_MAGIC)
    footer[_ROWS] = footer[_ROWS][0], rows
    footer[_GROUPS] = LIST, (STRUCT, groups)
    whole = written(footer)
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
