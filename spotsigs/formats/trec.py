"""Documents from TREC collections such as WT10g."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from pathlib import Path

from spotsigs.errors import require
from spotsigs.formats.http_response import iso_date, parse_response
from spotsigs.formats.input_files import (
    END,
    SHARD_BYTES,
    InputFile,
    beginning,
    file_shards,
    find_sources,
    lines,
    unreadable,
    windows,
)
from spotsigs.formats.writers import Keep, copy_pieces, copy_whole
from spotsigs.records import CopyableCollection, Document, Shard, Skipped
from spotsigs.text.size_limits import in_words, largest_page

_NUMBER = re.compile(rb"<DOCNO>", re.IGNORECASE), re.compile(rb"</DOCNO>\s*", re.IGNORECASE)
_HEADER = re.compile(rb"<DOCHDR>", re.IGNORECASE), re.compile(rb"</DOCHDR>\r?\n?", re.IGNORECASE)
_CLOSE = re.compile(rb"</DOC>\s*$", re.IGNORECASE)
_HEAD_LINES, _HEAD_BYTES = 8, 1 << 16  # before <DOCNO>
_BEFORE = 1 << 20  # bytes before a share in which it is looked whether a document is open at its beginning
_DATE = re.compile(rb"\S+ \S+ (\d{14}) ")


@dataclass(frozen=True, kw_only=True)
class Trec(CopyableCollection):
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

    def sources(self) -> list[InputFile]:
        """Return the files the collection reads."""
        return find_sources(self.path)

    def shards(self) -> Sequence[Shard]:
        """Return the collection's shares."""
        return file_shards(self.sources(), _fault, partial(windows, shard_bytes=self.shard_bytes), _records)

    def copy(self, folder: Path, keep: Keep) -> None:
        """Copy every document but the removed ones, see `spotsigs.records.CopyableCollection`."""
        for source in self.sources():
            if unreadable(source.path, _fault):
                copy_whole(source, folder)
            else:
                copy_pieces(source, folder, _blocks(source, 0, END), keep)


def _fault(path: Path) -> str | None:
    return None if b"<DOC>" in beginning(path).upper() else "the file is not in TREC form: no <DOC> at its beginning"


def _records(source: InputFile, start: int, stop: int) -> Iterator[Document | Skipped]:
    return (record for _, record in _blocks(source, start, stop) if record is not None)


def _blocks(source: InputFile, start: int, stop: int) -> Iterator[tuple[bytes, Document | Skipped | None]]:
    """Iterate over the text of the documents that begin in ``[start, stop)``, and over the lines between them.

    ``<DOC>`` opens a document only where ``<DOCNO>`` follows soon: a page may contain the tag itself. A document that
    is too long comes in pieces, the first of which says so.
    """
    block: list[bytes] = []
    begin = size = 0
    before = max(0, start - _BEFORE)
    between = before == 0  # surely in no document
    for offset, line, following in _with_following(lines(source.path, before)):
        opens = _opens(line, following)
        if offset < start:
            between = _CLOSE.search(line) is not None or (between and not opens)
            continue
        if block and (opens or size > largest_page()):
            yield _finished(source, begin, block)
            block = []
        if not block and offset >= stop and (opens or not size):
            return
        if opens:
            begin, size, between = offset, 0, False
        if opens or block:
            block.append(line)
        else:
            lost = between and line.lstrip().upper().startswith(b"<DOC>")
            yield line, Skipped(f"{source.name}@{offset}", "the document has no <DOCNO>") if lost else None
        size += len(line) if block else 0
        if _CLOSE.search(line):
            if block:
                yield _finished(source, begin, block)
            block, size, between = [], 0, True
    if block:
        yield _finished(source, begin, block)


def _finished(source: InputFile, begin: int, block: Sequence[bytes]) -> tuple[bytes, Document | Skipped]:
    text = b"".join(block)
    return text, _document(f"{source.name}@{begin}", text)


def _with_following(numbered: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes, Sequence[bytes]]]:
    """Give each line its offset and the first lines behind it, `_HEAD_LINES` at most, fewer where they are long."""
    held: deque[tuple[int, bytes]] = deque()
    size = 0
    for offset, line in chain(numbered, repeat((0, b""), _HEAD_LINES)):
        held.append((offset, line))
        size += len(line)
        while len(held) > _HEAD_LINES or (size > _HEAD_BYTES and len(held) > 1):
            first = held.popleft()
            size -= len(first[1])
            if first[1]:
                yield *first, [text for _, text in held]
    for first in held:
        if first[1]:
            yield *first, []


def _opens(line: bytes, following: Sequence[bytes]) -> bool:
    """Tell whether a document begins: ``<DOC>``, then ``<DOCNO>`` behind blank lines and other elements."""
    start = line.lstrip().upper()
    if not start.startswith(b"<DOC>"):
        return False
    if b"<DOCNO>" in start:
        return True
    for text in following:
        start = text.strip().upper()
        if start.startswith(b"<DOCNO>"):
            return True
        if start and not start.startswith(b"<DOCID>"):
            return False
    return False


def _document(place: str, block: bytes) -> Document | Skipped:
    number, begin = _element(block, *_NUMBER, 0, 1 << 12)
    if not number:
        return Skipped(place, "the document has no <DOCNO>")
    doc_id = number.decode("utf-8", "replace")
    close = _CLOSE.search(block)
    if close is None:
        fault = (
            f"is longer than {in_words(largest_page())}"
            if len(block) > largest_page()
            else "has no </DOC>: it is truncated"
        )
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
