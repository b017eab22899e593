"""Documents from TREC collections such as WT10g."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from spotsigs.data.formats.input_files import (
    END,
    READ_ERRORS,
    SHARD_BYTES,
    Source,
    beginning,
    compression,
    file_shards,
    find_sources,
    lines,
    windows,
)
from spotsigs.data.formats.responses import MAX_BODY, iso_date, parse_response
from spotsigs.data.formats.writers import Keep, packing, place

from spotsigs.errors import require
from spotsigs.records import Document, Shard, Skipped

_NUMBER = re.compile(rb"<DOCNO>", re.IGNORECASE), re.compile(rb"</DOCNO>\s*", re.IGNORECASE)
_HEADER = re.compile(rb"<DOCHDR>", re.IGNORECASE), re.compile(rb"</DOCHDR>\r?\n?", re.IGNORECASE)
_CLOSE = re.compile(rb"</DOC>\s*$", re.IGNORECASE)
_DATE = re.compile(rb"\S+ \S+ (\d{14}) ")


@dataclass(frozen=True, kw_only=True)
class Trec:
    """One ``<DOC>`` a document, called by its ``<DOCNO>``.

    A ``<DOCHDR>`` holds a line ``URL IP date type length`` and the HTTP header: date, media type and charset come from
    there. The content is all that follows it, or all that follows the number where there is none.

    Parameters
    ----------
    path : str
        File, folder (every file in it), glob pattern, or ``-`` for standard input; plain, gzip or zstd.
    shard_bytes : int
        Bytes of a file that a worker takes at a time, see `.input_files.windows` for compressed files.

    References
    ----------
    P. Bailey, N. Craswell and D. Hawking, *Engineering a multi-purpose test collection for Web retrieval
    experiments*, Information Processing and Management 39(6), 2003 (WT10g).
    """

    path: str
    shard_bytes: int = SHARD_BYTES

    def __post_init__(self) -> None:
        require(self.shard_bytes > 0, f"shard_bytes must be positive, got {self.shard_bytes}")

    def sources(self) -> list[Source]:
        """Return the files the collection reads."""
        return find_sources(self.path)

    def shards(self) -> Sequence[Shard]:
        """Return the collection's shares."""
        return file_shards(self.sources(), _fault, partial(windows, shard_bytes=self.shard_bytes), _records)

    def copy(self, folder: Path, keep: Keep) -> None:
        """Copy every document but the removed ones, see `.writers.Copied`."""
        for source in self.sources():
            if _fault(source.path) is None:
                with packing(place(folder, source.name), compression(source.path)) as out, suppress(*READ_ERRORS):
                    for offset, block in _blocks(source.path, 0, END):
                        record = _document(f"{source.name}@{offset}", block)
                        if isinstance(record, Skipped) or keep(record):
                            out.write(block)


def _fault(path: Path) -> str | None:
    return None if b"<DOC>" in beginning(path).upper() else "the file is not in TREC form: no <DOC> at its beginning"


def _records(source: Source, start: int, stop: int) -> Iterator[Document | Skipped]:
    for offset, block in _blocks(source.path, start, stop):
        yield _document(f"{source.name}@{offset}", block)


def _blocks(path: Path, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """Iterate over the text of the documents that begin in ``[start, stop)``.

    ``<DOC>`` opens a document only where ``<DOCNO>`` follows at once: a page may contain the tag itself.
    """
    block: list[bytes] = []
    begin = size = 0
    held: tuple[int, bytes] | None = None
    for following in _and_an_end(lines(path, start)):
        if held is not None:
            offset, line = held
            if _opens(line, following[1]):
                if block:
                    yield begin, b"".join(block)
                if offset >= stop:
                    return
                begin, block, size = offset, [line], len(line)
            elif block:
                if size <= MAX_BODY:
                    block.append(line)
                size += len(line)
            elif offset >= stop:
                return
            if block and _CLOSE.search(line):
                yield begin, b"".join(block)
                block = []
        held = following
    if block:
        yield begin, b"".join(block)


def _and_an_end(numbered: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    yield from numbered
    yield 0, b""


def _opens(line: bytes, following: bytes) -> bool:
    start = line.lstrip().upper()
    return start.startswith(b"<DOC>") and (b"<DOCNO>" in start or following.lstrip().upper().startswith(b"<DOCNO>"))


def _document(place: str, block: bytes) -> Document | Skipped:
    number, begin = _element(block, *_NUMBER, 0, 1 << 12)
    if not number:
        return Skipped(place, "the document has no <DOCNO>")
    doc_id = number.decode("utf-8", "replace")
    close = _CLOSE.search(block)
    if close is None:
        fault = f"is longer than {MAX_BODY >> 20} MiB" if len(block) > MAX_BODY else "has no </DOC>: it is truncated"
        return Skipped(doc_id, f"the document {fault}")
    header, begin = _element(block, *_HEADER, begin, begin + (1 << 16))
    if header is None:
        return Document(id=doc_id, content=block[begin : close.start()])
    origin, _, http = header.partition(b"\n")
    response = parse_response(http + b"\r\n\r\n")
    date = _DATE.match(origin)
    return Document(
        id=doc_id,
        content=block[begin : close.start()],
        media_type="text/plain" if response.content_type == "text/plain" else "text/html",
        charset=response.charset,
        date=iso_date(date[1]) if date else None,
    )


def _element(
    block: bytes, opening: re.Pattern[bytes], closing: re.Pattern[bytes], start: int, stop: int
) -> tuple[bytes | None, int]:
    """Return the content of the first element between two places and where it ends; None and `start` without one."""
    first = opening.search(block, start, stop)
    last = closing.search(block, first.end(), stop) if first else None
    return (block[first.end() : last.start()].strip(), last.end()) if first and last else (None, start)
