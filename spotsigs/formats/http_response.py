"""HTTP responses as WARC, ARC and TREC files store them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from spotsigs.formats.compression import BLOCK, READ_ERRORS, Members, packing_of
from spotsigs.formats.input_files import positioned
from spotsigs.records import Document, Skipped
from spotsigs.text.charset import wide_codec
from spotsigs.text.size_limits import in_words, largest_page

MOST_ENCODINGS = 8
_MOST_BEGINNING = 4096

MOST_HEADER = 1 << 20
"""Bytes of the longest header of a response."""

FOLD = re.compile(rb"\r?\n[ \t]++")
"""Line end within a field of a header, which white space continues on the next line."""

HTML_TYPES = {"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"}
# Possessive, because a page may contain any amount of white space.
_CHARSET = re.compile(r"charset\s*+=\s*+[\"']?+\s*+([\w.:+-]+)", re.ASCII | re.IGNORECASE)
_CHUNK = re.compile(rb"([0-9a-fA-F]++)[ \t]*+(?:;[^\r\n]*+)?\r?\n")
_CONTROL = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")  # compressed bytes soon contain one
_LISTS = ("transfer-encoding", "content-encoding")
_INTERIM = re.compile(rb"HTTP/\S*[ \t]++1\d\d\b")
_HEAD_END = re.compile(rb"\r?\n[ \t]*\r?\n")
# The standard lists the elements that begin HTML: WHATWG, MIME Sniffing, section 7.1.
_HTML_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]*+>\s*+)?(?:(?><!--.*?-->)\s*+)*+"
    rb"<(?:!doctype\s+html|html|head|body|title|script|iframe|h1|div|font|table|a|style|b|br|p)(?=[\s>])",
    re.I | re.S,
)
_MEDIA_TYPE = re.compile(r"[\w!#$%&'*+.^`|~-]++/[\w!#$%&'*+.^`|~-]++", re.ASCII)
_NO_TYPES = ("unknown/unknown", "application/unknown", "*/*")  # section 7 of the standard: as if none was declared
_ENCODINGS = ("chunked", "gzip", "x-gzip", "deflate", "br", "zstd")
# The other content codings of the IANA; any other value is no coding, and the body is as it is.
_NOT_UNDONE = {"compress", "x-compress", "dcb", "dcz", "exi", "pack200-gzip", "aes128gcm"}


@dataclass(frozen=True, slots=True)
class Response:
    """A parsed response."""

    status: int | None  # None without a status line (HTTP/0.9 and broken servers)
    content_type: str  # in lower case, without parameters; empty if none is declared
    charset: str | None
    encodings: tuple[str, ...]  # transfer and content encodings, in the order in which they must be undone
    body: bytes  # as stored
    length: int | None = None  # Content-Length; None with a transfer encoding, which overrides it

    @property
    def is_page(self) -> bool:
        """Whether it is an HTML page that the server delivered (status 2xx)."""
        if self.status is not None and not 200 <= self.status < 300:
            return False
        if self.content_type:
            return self.content_type in HTML_TYPES
        return bool(_HTML_START.match(_beginning(self)))


def content_type(header: str) -> tuple[str, str | None]:
    """Split a Content-Type header into media type, in lower case, and charset; the type is empty if it is none.

    Of several types, the last one counts, as in browsers.
    """
    match = _CHARSET.search(header)
    types = [part.partition(";")[0].strip().lower() for part in header.split(",")]
    known = [name for name in types if _MEDIA_TYPE.fullmatch(name) and name not in _NO_TYPES]
    return known[-1] if known else "", match[1] if match else None


def parse_response(block: bytes) -> Response:
    """Split a stored response into its headers and body; a block without status line is all body.

    An interim response (status 1xx) that another one follows is left out.
    """
    if not block.startswith(b"HTTP/"):
        return Response(None, "", None, (), block)
    start, end = 0, _HEAD_END.search(block)
    while end and block.startswith(b"HTTP/", end.end()) and _INTERIM.match(block, start):
        start, end = end.end(), _HEAD_END.search(block, end.end())
    head, body = (block[start : end.start()], block[end.end() :]) if end else (block[start:], b"")
    status_line, *fields = FOLD.sub(b" ", head).decode("latin-1").splitlines()
    headers: dict[str, str] = {}
    for line in fields:
        name, _, value = line.partition(":")
        name, value = name.strip().lower(), value.strip()
        if name in _LISTS and name in headers:
            value = f"{headers.pop(name)}, {value}"
        headers.setdefault(name, value)
    code = re.search(r"\s(\d{3})\b", status_line)
    media_type, charset = content_type(headers.get("content-type", ""))
    encodings = [encoding.strip().lower() for name in _LISTS for encoding in reversed(headers.get(name, "").split(","))]
    encodings = [encoding.partition(";")[0].strip(" \"'") for encoding in encodings]
    applied = tuple(encoding for encoding in encodings if encoding not in ("", "identity"))
    declared = re.fullmatch(r"\d{1,18}", headers.get("content-length", ""), re.ASCII)
    length = int(declared[0]) if declared and not headers.get("transfer-encoding") else None
    return Response(int(code[1]) if code else None, media_type, charset, applied, body, length)


def decode_body(response: Response) -> bytes:
    """Undo chunking and compression.

    A body that is not encoded as its headers claim is returned as stored: crawlers often undo an encoding and keep
    the header, and some servers send a charset or ``none`` as an encoding. Compressed bytes and parts of a page are
    never returned.

    Raises
    ------
    ValueError
        If an encoding is unknown, there are more than `MOST_ENCODINGS`, the body unpacks to more than a page may have,
        is damaged, or is cut short: a compressed or chunked body without its end, or fewer bytes than Content-Length.
    """
    body = response.body
    if len(response.encodings) > MOST_ENCODINGS:
        raise ValueError(f"its body is encoded {len(response.encodings)} times; {MOST_ENCODINGS} are undone at most")
    for encoding in response.encodings:
        if encoding in _ENCODINGS and body:
            body = _unchunked(body) if encoding == "chunked" else _unpacked(body, encoding.removeprefix("x-"))
    unknown = next((encoding for encoding in response.encodings if encoding not in _ENCODINGS), None)
    if unknown and (_NOT_UNDONE.intersection(response.encodings) or not _is_text(body)):
        raise ValueError(f"its encoding {unknown!r} is unknown; known are chunked, gzip, deflate, br and zstd")
    undone = bool(response.encodings) and body is response.body  # the stated length counts other bytes
    if response.length is not None and len(response.body) < response.length and not undone:
        raise ValueError(f"its body is cut short: {len(response.body)} of {response.length} bytes are there")
    return body


def _beginning(response: Response) -> bytes:
    """Return the first bytes of a body after its encodings, as UTF-8, as far as they can be undone."""
    text = response.body[:BLOCK]
    for encoding in response.encodings[:MOST_ENCODINGS]:
        if encoding == "chunked":
            line = _CHUNK.match(text)
            text = text[line.end() : line.end() + int(line[1], 16)] if line else text
        elif encoding in _ENCODINGS and text:
            with suppress(ValueError, *READ_ERRORS):
                name = encoding.removeprefix("x-")
                text = next(iter(_brotli_pieces(text) if name == "br" else _pieces(text, name)), text)
    codec = wide_codec(text)
    text = text[:_MOST_BEGINNING]
    return text.decode(codec, "ignore").encode("utf-8", "replace") if codec else text


def _is_text(body: bytes) -> bool:
    """Return whether a body looks like text, not like compressed bytes."""
    return body.startswith((b"\xff\xfe", b"\xfe\xff")) or not _CONTROL.search(body, 0, 4096)


def _unchunked(body: bytes) -> bytes:
    chunks, position = [], len(body) - len(body.lstrip())
    while line := _CHUNK.match(body, position):
        size = int(line[1], 16)
        position = line.end() + size
        chunks.append(body[line.end() : position])
        if position > len(body):
            raise ValueError("its chunked body is cut short")
        if size == 0:
            return b"".join(chunks)
        position += 2 if body.startswith(b"\r\n", position) else body.startswith(b"\n", position)
    if not chunks:
        return body
    raise ValueError("its chunked body is " + ("damaged" if body[position:].strip() else "cut short: no last chunk"))


def _unpacked(body: bytes, encoding: str) -> bytes:
    """Undo a compression; text, which the crawler has unpacked, is returned as it is."""
    start = body.lstrip(b"\r\n \t") if encoding in ("gzip", "zstd") else body
    content = bytearray()
    try:
        for piece in _brotli_pieces(body) if encoding == "br" else _pieces(start, encoding):
            content += piece
            if len(content) > largest_page():
                raise ValueError(f"its body unpacks to more than {in_words(largest_page())}")
    except READ_ERRORS as error:
        if packing_of(start) != encoding and _is_text(body):
            return body
        fault = "cut short" if isinstance(error, EOFError) else f"damaged: {error}"
        raise ValueError(f"its compressed body is {fault}") from error
    return bytes(content)


def _pieces(body: bytes, encoding: str) -> Iterator[bytes]:
    """Unpack all members; bytes after the last are ignored, as browsers do."""
    packing = "zlib" if encoding == "deflate" and body[0] & 15 == 8 else encoding
    stream = Members(io.BytesIO(body), packing, trailing=True)
    while piece := stream.read(BLOCK >> 2):
        yield piece


def _brotli_pieces(body: bytes) -> Iterator[bytes]:
    try:
        import brotli
    except ImportError:
        raise ValueError("its brotli encoding needs brotli: pip install 'spotsigs[warc]'") from None
    stream = brotli.Decompressor()
    try:
        while not stream.is_finished():
            piece = stream.process(body, output_buffer_limit=BLOCK >> 2)
            body = b""
            yield piece
            if not piece and not stream.is_finished() and stream.can_accept_more_data():
                raise EOFError
    except brotli.error as error:
        raise OSError(error) from error


def has_whole_header(block: bytes) -> bool:
    """Return whether the beginning of a stored response includes its whole header."""
    return not block.startswith(b"HTTP/") or _HEAD_END.search(block) is not None


def document_of(doc_id: str, response: Response, date: str | None, position: str) -> Document | Skipped:
    """Return a response as a document; `position` is where its record begins."""
    if response.status == 206:
        return Skipped(positioned(doc_id, position), "the response is a fragment of a page (HTTP status 206)")
    try:
        content = decode_body(response)
    except ValueError as error:
        return Skipped(positioned(doc_id, position), str(error))
    kind = response.content_type or "text/html"
    return Document(id=doc_id, content=content, media_type=kind, charset=response.charset, date=date)


def iso_date(date: bytes) -> str:
    """Return an archive date of 8 to 14 digits as ISO 8601."""
    digits = date.decode().ljust(14, "0")
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}T{digits[8:10]}:{digits[10:12]}:{digits[12:14]}Z"
