"""Documents from TREC collections such as WT10g."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sized
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from spotsigs.formats.compression import READ_ERRORS
from spotsigs.formats.file_collection import FileCollection, Piece
from spotsigs.formats.http_response import iso_date, parse_response
from spotsigs.formats.input_files import END, InputFile, lines, positioned, read_head
from spotsigs.records import Document, Skipped
from spotsigs.text.size_limits import in_words, largest_page

_NUMBER = re.compile(rb"<DOCNO>", re.IGNORECASE), re.compile(rb"</DOCNO>\s*", re.IGNORECASE)
_HEADER = re.compile(rb"<DOCHDR>", re.IGNORECASE), re.compile(rb"</DOCHDR>\r?\n?", re.IGNORECASE)
OPENS = rb"<DOC(?:\s[^<>]*+)?>"
_OPENS = re.compile(OPENS, re.IGNORECASE)
_SECOND = re.compile(rb"</DOC>\s*+" + OPENS + rb"\s*+<DOCNO>", re.IGNORECASE)
_CLOSE = re.compile(rb"</DOC>\s*$", re.IGNORECASE)
_MOST_AHEAD = 1 << 12  # lines, and bytes of the last one, between <DOC> and <DOCNO>
_BEFORE = 1 << 20  # bytes before a shard that show whether a document is open at its beginning
_DATE = re.compile(rb"\S+ \S+ (\d{14}) ")


@dataclass(frozen=True, kw_only=True)
class Trec(FileCollection):
    """One ``<DOC>`` a document, whose id is its ``<DOCNO>``.

    A ``<DOCHDR>`` contains a line ``URL IP date type length`` and the HTTP header, which give date, media type and
    charset. The content is the text after it, or after the number if there is none.

    References
    ----------
    P. Bailey, N. Craswell and D. Hawking, *Engineering a multi-purpose test collection for Web retrieval
    experiments*, Information Processing and Management 39(6), 2003 (WT10g).
    """

    def fault(self, path: Path) -> str | None:
        """Return why a file is not in TREC form; None if it is."""
        match = _OPENS.search(head := read_head(path))
        if match and re.match(rb"[ \t]*\r(?!\n)", head[match.end() :]):
            return "its lines end in carriage returns alone; write line feeds: tr '\\r' '\\n'"
        return None if match else "the file is not in TREC form: no <DOC> at its beginning"

    def without_pages(self, skipped: Sized) -> str:
        """Return what a document is."""
        return "each document has a line of <DOC>, then one of <DOCNO>, and ends in a line with </DOC>"

    def pieces(self, source: InputFile, start: int = 0, stop: int = END) -> Iterator[Piece]:
        """Iterate over documents and the lines between them.

        ``<DOC>``, which may have attributes, opens a document only if ``<DOCNO>`` follows soon: a page may contain the
        tag itself. A document that is too long comes in pieces, of which the first is skipped with the reason.
        """

        def finished() -> Piece:
            text = b"".join(block)
            return begin, (text, partial(_document, f"{source.name}@{begin}", text))

        block: list[bytes] = []
        begin = size = 0
        before = max(0, start - _BEFORE)
        between = before == 0  # not inside a document
        for offset, line, opens in _with_openings(lines(source.path, before)):
            if offset < start:
                between = _CLOSE.search(line) is not None or (between and not opens)
                continue
            if block and (opens or size > largest_page()):
                yield finished()
                block = []
            if not block and offset >= stop and (opens or not size):
                return
            if opens:
                begin, size, between = offset, 0, False
            if opens or block:
                block.append(line)
            else:
                lost = between and _OPENS.match(line.lstrip()) is not None
                yield offset, (line, partial(_without_number, f"{source.name}@{offset}") if lost else None)
            size += len(line) if block else 0
            if _CLOSE.search(line):
                if block:
                    yield finished()
                block, size, between = [], 0, True
        if block:
            yield finished()


def _with_openings(numbered: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes, bool]]:
    """Iterate over lines with their offset, and whether a document begins: ``<DOC>``, then ``<DOCNO>``.

    Between the two are blank lines and ``<DOCID>`` at most; these lines are read ahead.
    """
    ahead: list[tuple[int, bytes]] = []
    try:
        for offset, line in numbered:
            text = line.strip().upper()
            if ahead:
                opens = text.startswith(b"<DOCNO>")
                if not opens and (not text or text.startswith(b"<DOCID>")) and len(ahead) + len(line) < _MOST_AHEAD:
                    ahead.append((offset, line))
                    continue
                yield *ahead[0], opens
                yield from ((*other, False) for other in ahead[1:])
                ahead.clear()
            begins = _OPENS.match(text) is not None
            if begins and b"<DOCNO>" not in text:
                ahead.append((offset, line))
            else:
                yield offset, line, begins
    except READ_ERRORS:
        yield from ((*other, False) for other in ahead)
        raise
    yield from ((*other, False) for other in ahead)


def _without_number(position: str) -> Skipped:
    return Skipped(position, "the document has no <DOCNO>")


def _document(position: str, block: bytes) -> Document | Skipped:
    number, begin = _element(block, *_NUMBER, 0, 1 << 12)
    if not number:
        return _without_number(position)
    doc_id = number.decode("utf-8", "replace")
    if _SECOND.search(block):
        return Skipped(
            positioned(doc_id, position), "another document begins in the line of its </DOC>; write one a line"
        )
    close = _CLOSE.search(block)
    if close is None and len(block) > largest_page():
        return Skipped(positioned(doc_id, position), f"the document is longer than {in_words(largest_page())}")
    if close is None:
        return Skipped(positioned(doc_id, position), "the document has no </DOC>: it is truncated")
    header, begin = _element(block, *_HEADER, begin, begin + (1 << 16))
    if header is None:
        return Document(id=doc_id, content=block[begin : close.start()])
    origin, _, http = header.partition(b"\n")
    response = parse_response(http + b"\r\n\r\n")
    date = _DATE.match(origin)
    return Document(
        id=doc_id,
        content=block[begin : close.start()],
        media_type=response.content_type or "text/html",
        charset=response.charset,
        date=iso_date(date[1]) if date else None,
    )


def _element(
    block: bytes, opening: re.Pattern[bytes], closing: re.Pattern[bytes], start: int, stop: int
) -> tuple[bytes | None, int]:
    """Return the content and the end of the first element between two offsets; None and `start` without one."""
    first = opening.search(block, start, stop)
    last = closing.search(block, first.end(), stop) if first else None
    return (block[first.end() : last.start()].strip(), last.end()) if first and last else (None, start)
