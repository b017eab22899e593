"""Documents from WARC and WET files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from string import whitespace

from spotsigs.formats.archive_content import Content
from spotsigs.formats.archive_records import Archive, Head, Record, block_length, long_header
from spotsigs.formats.http_response import (
    FOLD,
    HTML_TYPES,
    MOST_HEADER,
    content_type,
    document_of,
    parse_response,
)
from spotsigs.records import Document, Skipped
from spotsigs.text.size_limits import in_words

_FIRST = re.compile(rb"WARC/[01]\.\d+\r?\n")
_LINKED = re.compile(rb"^WARC-(?:Record-ID|Concurrent-To)[ \t]*+:[ \t]*+(\S++)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Warc(Archive):
    """HTTP responses of HTML type with a 2xx status, HTML resources, and the text records of WET files.

    All other records (requests, images, redirects, revisits) are no documents. The id is the target URI, the date
    ``WARC-Date``, the charset the HTTP header's. A page that the crawler has cut, as ``WARC-Truncated`` or the HTTP
    header shows, a fragment (status 206) and a segment are skipped. A record without a type is read as what its
    content is. A file whose records are not compressed one by one, or with a shared zstd dictionary, is one shard.

    References
    ----------
    ISO 28500:2017 (WARC 1.1); Common Crawl's WET files.
    """

    format = "a WARC file"
    first = _FIRST
    line = re.compile(rb"WARC/[01]\.\d+\r?\n(?=(?:[\w-]+:[^\n]*\n)*?WARC-Type:)")
    end = b"\r\n\r\n"

    def parse(self, line: bytes, stream: Content) -> Head:
        """Read a header: lines of ``name: value``, which white space continues, up to an empty one."""
        if _FIRST.fullmatch(line) is None:
            raise OSError(f"{line[:60]!r} is no record line")
        header = stream.header(MOST_HEADER)
        *lines, last, rest = header.split(b"\n") if b"\n" in header else (header, b"")
        if last.strip() or rest:
            if len(header) < MOST_HEADER:
                raise EOFError("the file ends inside the header")
            raise OSError(f"its header is longer than {in_words(MOST_HEADER)}")
        fields: dict[str, str] = {}
        for field in FOLD.sub(b" ", b"\n".join(lines)).decode("utf-8", "replace").split("\n"):
            name, _, value = field.partition(":")
            fields.setdefault(name.strip(whitespace).lower(), value.strip(whitespace))
        if "content-length" not in fields:
            raise OSError("its header names no Content-Length")
        uri = fields.get("warc-target-uri", "").strip("<> ")
        return Head(line + header, uri, block_length(fields["content-length"].encode()), fields)

    def links(self, head: Head) -> tuple[list[bytes], bool]:
        """Return the ids of a record and of those it names, and whether a copy has it only with the records named.

        Some crawlers name the response in its request, others the request in the response. A revisit names a response
        by its id, or by address and date.
        """
        fields, kind = head.fields, head.fields.get("warc-type", "").lower()
        named = [fields["warc-refers-to"].encode()] if "warc-refers-to" in fields else []
        if kind == "revisit":
            there, then = (fields.get(f"warc-refers-to-{name}", "") for name in ("target-uri", "date"))
            return named or _capture(there, then), True
        if kind in ("request", "metadata"):
            return _LINKED.findall(head.text) + named, True
        linked = _LINKED.findall(head.text) if kind == "response" else [fields.get("warc-record-id", "").encode()]
        return linked + _capture(head.uri, fields.get("warc-date", "")), False

    def documents(self, record: Record) -> Iterator[Document | Skipped]:
        """Yield the document of a record, if it is a page and complete."""
        fields, uri = record.head.fields, record.head.uri or record.position
        kind = fields.get("warc-type", "").lower()
        number = fields.get("warc-segment-number")
        if kind == "continuation":
            yield Skipped(record.name, f"it is a segment of a record, {number}")
        if kind not in ("response", "resource", "conversion"):
            return
        media_type, charset = content_type(fields.get("content-type", ""))
        begin = record.take(MOST_HEADER) if kind == "response" or not media_type else b""
        is_http = kind == "response" and (begin.startswith(b"HTTP/") or media_type in ("application/http", ""))
        if is_http:
            if fault := long_header(record, begin):
                yield fault
                return
            response = parse_response(begin)
            wanted = response.is_page
        elif kind == "conversion":
            wanted = media_type in ("text/plain", "")
        else:
            wanted = media_type in HTML_TYPES or (not media_type and parse_response(begin).is_page)
        if wanted and number:
            yield Skipped(record.name, f"it is a segment of a record, {number}")
            return
        block, date = record.whole() if wanted else None, fields.get("warc-date")
        if block is None:
            return
        if isinstance(block, Skipped):
            yield block
        elif cut := fields.get("warc-truncated"):
            yield Skipped(record.name, f"the crawler has cut it: WARC-Truncated: {cut[:40]}")
        elif is_http:
            yield document_of(uri, response if block is begin else parse_response(block), date, record.position)
        else:
            shown = "text/plain" if kind == "conversion" else media_type or "text/html"
            yield Document(id=uri, content=block, media_type=shown, charset=charset, date=date)


def _capture(uri: str, date: str) -> list[bytes]:
    """Return the id of a capture, made of address and date; none if one is missing."""
    return [f"{uri.strip('<> ')} {date}".encode()] if uri and date else []
