"""Documents from ARC files, the format of web archives before WARC."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from spotsigs.formats.archive_content import Content
from spotsigs.formats.archive_records import Archive, Head, Record, block_length, long_header
from spotsigs.formats.http_response import MOST_HEADER, document_of, iso_date, parse_response
from spotsigs.records import Document, Skipped

_FIELDS = rb"[A-Za-z][\w+.-]*:\S* [\d.a-fA-F:]+ \d{8,14} \S+(?: .*)? \d+\r?\n"
# A record line without its length. Crawlers have written blanks into the URL and the type, and lines without an IP
# address, a type or a date of digits.
_START = rb"(?P<url>[A-Za-z][\w+.-]*:.*?)"
_LINES = (
    re.compile(_START + rb" [\d.a-fA-F:]+ (?P<date>\d{8,14}) ?(?P<type>.*)"),
    re.compile(_START + rb" \S+ (?P<date>\d{8,14}) ?(?P<type>.*)"),
    re.compile(_START + rb" \S+ (?P<date>\S+) (?P<type>\S*)"),
)
_UNTYPED = ("no-type", "unknown", "unk", "-", "")


@dataclass(frozen=True, kw_only=True)
class Arc(Archive):
    """HTTP responses of HTML type with a 2xx status.

    The id is the URL, the date the archive date. Both versions of the record line are read (``URL IP date type
    length`` and the one with checksum and offset), also with blanks in the URL or without an IP address. The type in it
    counts where the HTTP header has none.

    References
    ----------
    M. Burner and B. Kahle, *Arc File Format*, Internet Archive, 1996.
    """

    format = "an ARC file"
    first = re.compile(_FIELDS)
    line = re.compile(rb"(?<!\S)" + _FIELDS)
    end = b"\n"

    def parse(self, line: bytes, stream: Content) -> Head:
        """Read a header, which is one line."""
        text, _, length = line.rstrip(b"\r\n").rpartition(b" ")
        match = next(filter(None, (pattern.fullmatch(text) for pattern in _LINES)), None)
        if match is None or not length.isdigit() or not line.endswith(b"\n"):
            raise OSError(f"{line[:60]!r} is no record line")
        fields = {name: value.decode("utf-8", "replace") for name, value in match.groupdict().items()}
        return Head(line, fields["url"], block_length(length), fields)

    def documents(self, record: Record) -> Iterator[Document | Skipped]:
        """Yield the document of a record, if it is a page and complete."""
        fields = record.head.fields
        begin = record.take(MOST_HEADER)
        if fault := long_header(record, begin):
            yield fault
            return
        response = parse_response(begin)
        if (
            not response.content_type
            and (declared := fields["type"].lower().split(" ")[0].rstrip(",;")) not in _UNTYPED
        ):
            response = replace(response, content_type=declared)
        if not response.is_page:
            return
        block = record.whole()
        if isinstance(block, Skipped):
            yield block
        elif block is not None:
            response = response if block is begin else parse_response(block)
            date = fields["date"].encode()
            yield document_of(record.head.uri, response, iso_date(date) if date.isdigit() else None, record.position)
