"""Cutting web archives (WARC, ARC) into shares that begin at a record.

A share begins at the first record behind its place in the file: a gzip member, a zstd frame or a header line whose
content begins like a record. Nothing is decompressed but the first bytes of each candidate. An archive that itself
holds an uncompressed copy of an archive may be entered inside that copy, so that its pages appear too; no record is
ever lost by that, because the share before reads its last record to the end.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import zstandard

from spotsigs.data.formats.input_files import END, Reader, Source, compression, file_shards, raw
from spotsigs.records import Shard

_BLOCK = 1 << 20
_OVERLAP = 4096
_MARKS = {"gzip": re.compile(rb"\x1f\x8b\x08[\x00-\x1f]"), "zstd": re.compile(rb"\x28\xb5\x2f\xfd")}


@dataclass(frozen=True, slots=True)
class Layout:
    """How the records of an archive format begin.

    Attributes
    ----------
    name : str
        The format's name.
    head : Pattern
        Matches the first bytes of a record.
    line : Pattern
        Finds the first line of a record in uncompressed text; begins with a look-behind for the line end before it.
    """

    name: str
    head: re.Pattern[bytes]
    line: re.Pattern[bytes]


def archive_shards(sources: Sequence[Source], layout: Layout, shard_bytes: int, read: Reader) -> list[Shard]:
    """Return the shares of a collection of archives, see `spotsigs.data.formats.input_files.file_shards`."""
    cut = partial(archive_shares, layout=layout, shard_bytes=shard_bytes)
    return file_shards(sources, partial(fault, layout=layout), cut, read)


def fault(path: Path, layout: Layout) -> str | None:
    """Return why a file is no archive of this format, or None if it is one."""
    with raw(path) as file:
        head = file.read(256 << 10)
    if not head:
        return f"the file is empty, not {layout.name}"
    packing = compression(path)
    if packing == "zstd with dictionary":
        return None
    begin = _beginning(head, packing)
    if not begin:
        return "its compressed stream is damaged or ends before a record begins"
    return None if layout.head.match(begin) else f"the file is not {layout.name}: it begins with {begin[:24]!r}"


def archive_shares(path: Path, layout: Layout, shard_bytes: int) -> list[tuple[int, int]]:
    """Return the shares of an archive as byte ranges of the file, each beginning at a record."""
    size = path.stat().st_size
    parts = 1 if compression(path) == "zstd with dictionary" else max(1, round(size / shard_bytes))
    starts = [0]
    for target in (size * k // parts for k in range(1, parts)):
        if target > starts[-1]:
            starts.append(next_record(path, layout, target))
    if starts[-1] >= size:
        starts.pop()
    return list(zip(starts, [*starts[1:], END], strict=True))


def next_record(path: Path, layout: Layout, position: int) -> int:
    """Return where the first record at or behind a byte of the file begins; the file's size where none does."""
    packing = compression(path)
    mark = _MARKS.get(packing, layout.line)
    base = max(0, position - 1)  # one byte earlier, for the look-behind
    with raw(path) as file:
        while True:
            file.seek(base)
            block = file.read(_BLOCK + _OVERLAP)
            last = len(block) < _BLOCK + _OVERLAP
            for match in mark.finditer(block):
                start = base + match.start()
                if start < position or (match.start() > _BLOCK and not last):
                    continue
                if packing == "plain" or _is_record(file, start, packing, layout):
                    return start
            if last:
                return base + len(block)
            base += _BLOCK
            position = max(position, base)


def _is_record(file: IO[bytes], start: int, packing: str, layout: Layout) -> bool:
    file.seek(start)
    begin = _beginning(file.read(256 << 10), packing)
    return begin is not None and layout.head.match(begin) is not None


def _beginning(data: bytes, packing: str) -> bytes | None:
    """Decompress the first bytes; None where they do not."""
    unpack: Callable[[bytes], bytes]
    if packing == "gzip":
        unpack = lambda data: zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, _OVERLAP)  # noqa: E731
    elif packing == "zstd":
        unpack = lambda data: zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(data).read(_OVERLAP)  # noqa: E731
    else:
        return data
    try:
        return unpack(data)
    except (zlib.error, zstandard.ZstdError):
        return None
