"""A stored HTTP response, as WARC, ARC and TREC files keep it, and what it says about its content."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from spotsigs.records import Document, Skipped

MAX_BODY = 256 << 20
"""Bytes a compressed body may unpack to; more is taken for an attack."""

MOST_ENCODINGS = 8

HTML_TYPES = {"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"}
# Possessive: a page may put any amount of white space wherever a pattern lets it stand.
_CHARSET = re.compile(r"charset\s*+=\s*+[\"']?+\s*+([\w.:+-]+)", re.ASCII | re.IGNORECASE)
_HEAD_END = re.compile(rb"\r?\n[ \t]*\r?\n")
_HTML_START = re.compile(
    rb"\s*+(?:<\?xml[^>]*+>\s*+)?(?:(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body|title)\b", re.I | re.S
)


@dataclass(frozen=True, slots=True)
class Response:
    """A parsed response.

    Attributes
    ----------
    status : int or None
        None where the block has no status line (HTTP/0.9 and broken servers).
    content_type : str
        Lower-cased media type without parameters; empty where none is declared.
    charset : str or None
        Charset parameter of the content type.
    encodings : tuple of str
        Transfer and content encodings, in the order in which they must be undone.
    body : bytes
        As stored.
    """

    status: int | None
    content_type: str
    charset: str | None
    encodings: tuple[str, ...]
    body: bytes

    @property
    def is_page(self) -> bool:
        """Whether it is an HTML page that the server delivered (status 2xx)."""
        if self.status is not None and not 200 <= self.status < 300:
            return False
        if self.content_type:
            return self.content_type in HTML_TYPES
        return bool(_HTML_START.match(self.body[:2048]))


def content_type(header: str) -> tuple[str, str | None]:
    """Split a Content-Type header into media type and charset.

    Examples
    --------
    >>> content_type('Text/HTML; charset="UTF-8"')
    ('text/html', 'UTF-8')
    """
    found = _CHARSET.search(header)
    return header.partition(";")[0].strip().lower(), found[1] if found else None


def parse_response(block: bytes) -> Response:
    """Split a stored response into its headers and body; a block without status line is all body."""
    if not block.startswith(b"HTTP/"):
        return Response(None, "", None, (), block)
    end = _HEAD_END.search(block)
    head, body = (block[: end.start()], block[end.end() :]) if end else (block, b"")
    status_line, *fields = head.decode("latin-1").splitlines()
    headers: dict[str, str] = {}
    for line in fields:
        name, _, value = line.partition(":")
        headers.setdefault(name.strip().lower(), value.strip())
    code = re.search(r"\s(\d{3})\b", status_line)
    media_type, charset = content_type(headers.get("content-type", ""))
    encodings = [
        encoding.strip().lower()
        for name in ("transfer-encoding", "content-encoding")
        for encoding in reversed(headers.get(name, "").split(","))
    ]
    applied = tuple(encoding for encoding in encodings if encoding not in ("", "identity"))
    return Response(int(code[1]) if code else None, media_type, charset, applied, body)


def decode_body(response: Response) -> bytes:
    """Undo chunking and compression.

    A body that is not encoded as its headers claim is returned as stored: crawlers often undo an encoding and keep
    the header.

    Raises
    ------
    ValueError
        If an encoding is unknown, there are more than `MOST_ENCODINGS`, or the body unpacks to more than `MAX_BODY`.
    """
    body = response.body
    if len(response.encodings) > MOST_ENCODINGS:
        raise ValueError(f"its body is encoded {len(response.encodings)} times; {MOST_ENCODINGS} are undone at most")
    for encoding in response.encodings:
        match encoding:
            case "chunked":
                body = _unchunked(body)
            case "gzip" | "x-gzip" if body.startswith(b"\x1f\x8b"):
                body = _inflated(body, zlib.MAX_WBITS | 16)
            case "deflate" if body:
                body = _inflated(body, zlib.MAX_WBITS if body[0] & 15 == 8 else -zlib.MAX_WBITS)
            case "br":
                body = _unbrotlied(body)
            case "gzip" | "x-gzip" | "deflate":
                pass
            case _:
                raise ValueError(f"its encoding {encoding!r} is unknown; known are chunked, gzip, deflate and br")
    return body


def _unchunked(body: bytes) -> bytes:
    chunks = []
    position = 0
    while line := re.compile(rb"([0-9a-fA-F]{1,8})[^\r\n]*\r?\n").match(body, position):
        size = int(line[1], 16)
        chunks.append(body[line.end() : line.end() + size])
        position = line.end() + size
        position += 2 if body.startswith(b"\r\n", position) else body.startswith(b"\n", position)
        if size == 0:
            break
    return b"".join(chunks) if chunks else body


def _inflated(body: bytes, wbits: int) -> bytes:
    decompressor = zlib.decompressobj(wbits)
    try:
        content = decompressor.decompress(body, MAX_BODY)
    except zlib.error:
        return body
    if decompressor.unconsumed_tail:
        raise ValueError(f"its body unpacks to more than {MAX_BODY >> 20} MiB")
    return content


def _unbrotlied(body: bytes) -> bytes:
    try:
        from fastwarc.stream_io import BrotliReader
    except ImportError:
        raise ValueError("its brotli encoding needs fastwarc: pip install 'spotsigs[warc]'") from None
    import io

    try:
        content = BrotliReader(io.BytesIO(body)).read(MAX_BODY + 1)
    except OSError:
        return body
    if len(content) > MAX_BODY:
        raise ValueError(f"its body unpacks to more than {MAX_BODY >> 20} MiB")
    return bytes(content)


def page(doc_id: str, response: Response, date: str | None) -> Document | Skipped:
    """Turn a response into a document."""
    try:
        content = decode_body(response)
    except ValueError as error:
        return Skipped(doc_id, str(error))
    return Document(id=doc_id, content=content, charset=response.charset, date=date)


def iso_date(date: bytes) -> str:
    """Return an archive date of 8 to 14 digits as ISO 8601.

    Examples
    --------
    >>> iso_date(b"19970109132131")
    '1997-01-09T13:21:31Z'
    """
    digits = date.decode().ljust(14, "0")
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}T{digits[8:10]}:{digits[10:12]}:{digits[12:14]}Z"
