"""Documents from ARC files, the format of web archives before WARC."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from spotsigs.formats.archive_content import Content
from spotsigs.formats.archive_records import Archive, Head, Record, block_length
from spotsigs.formats.http_response import HTML_TYPES, iso_date, page, parse_response
from spotsigs.records import Document, Skipped

_FIELDS = rb"(?P<url>[A-Za-z][\w+.-]*:\S*) [\d.a-fA-F:]+ (?P<date>\d{8,14}) (?P<type>\S+)(?: .*)? (?P<length>\d+)\r?\n"
_FIRST = re.compile(_FIELDS)


@dataclass(frozen=True, kw_only=True)
class Arc(Archive):
    """HTTP responses of HTML type with a 2xx status.

    The id is the URL, the date the archive date. Both versions of the record line are read (``URL IP date type
    length`` and the one with checksum and offset).

    References
    ----------
    M. Burner and B. Kahle, *Arc File Format*, Internet Archive, 1996.
    """

    format = "an ARC file"
    first = _FIRST
    line = re.compile(rb"(?<!\S)" + _FIELDS)
    end = b"\n"

    def parse(self, line: bytes, stream: Content) -> Head:
        """Read a header, which is one line."""
        match = _FIRST.fullmatch(line)
        if match is None:
            raise OSError(f"{line[:60]!r} is no record line")
        fields = {name: value.decode("utf-8", "replace") for name, value in match.groupdict().items()}
        return Head(line, fields["url"], block_length(match["length"]), fields)

    def documents(self, record: Record) -> Iterator[Document | Skipped]:
        """Yield the document of a record, if it is a page and complete."""
        fields = record.head.fields
        if fields["type"].lower().partition(";")[0] not in HTML_TYPES | {"no-type", "unknown", "-"}:
            return
        block = record.whole()
        if isinstance(block, Skipped):
            yield block
        elif block is not None and (response := parse_response(block)).is_page:
            yield page(record.head.uri, response, iso_date(fields["date"].encode()), record.position)
