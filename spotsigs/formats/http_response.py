"""A stored HTTP response, as WARC, ARC and TREC files keep it, and what it says about its content."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import Any

import zstandard

from spotsigs.formats.input_files import ZSTD_PIECE, zstd_frame
from spotsigs.records import Document, Skipped
from spotsigs.text.size_limits import in_words, largest_page

MOST_ENCODINGS = 8

BEGINNING = 1 << 16
"""Bytes of a response that tell what it is."""

HTML_TYPES = {"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"}
# Possessive: a page may put any amount of white space wherever a pattern lets it stand.
_CHARSET = re.compile(r"charset\s*+=\s*+[\"']?+\s*+([\w.:+-]+)", re.ASCII | re.IGNORECASE)
_CHUNK = re.compile(rb"([0-9a-fA-F]++)[ \t]*+(?:;[^\r\n]*+)?\r?\n")
_CONTROL = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")
_FOLD = re.compile(rb"\r?\n[ \t]++")
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_FIRST_PIECE = 1 << 9  # of what may be a short gzip member
_LISTS = ("transfer-encoding", "content-encoding")
_HEAD_END = re.compile(rb"\r?\n[ \t]*\r?\n")
_HTML_START = re.compile(
    rb"\s*+(?:<\?xml[^>]*+>\s*+)?(?:(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body|title)\b", re.I | re.S
)


class DamageError(ValueError):
    """A body that does not unpack."""


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
    status_line, *fields = _FOLD.sub(b" ", head).decode("latin-1").splitlines()
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
    applied = tuple(encoding for encoding in encodings if encoding not in ("", "identity"))
    return Response(int(code[1]) if code else None, media_type, charset, applied, body)


def decode_body(response: Response) -> bytes:
    """Undo chunking and compression.

    A body that is not encoded as its headers claim is returned as stored: crawlers often undo an encoding and keep
    the header.

    Raises
    ------
    ValueError
        If an encoding is unknown, there are more than `MOST_ENCODINGS`, the body unpacks to more than a page may have,
        or is damaged or cut short: neither compressed bytes nor part of a page pass for the page.
    """
    body = response.body
    if len(response.encodings) > MOST_ENCODINGS:
        raise ValueError(f"its body is encoded {len(response.encodings)} times; {MOST_ENCODINGS} are undone at most")
    for encoding in response.encodings:
        if encoding not in _DECODERS:
            raise ValueError(f"its encoding {encoding!r} is unknown; known are chunked, gzip, deflate, br and zstd")
        if body:
            body = _DECODERS[encoding](body)
    return body


def _unchunked(body: bytes) -> bytes:
    chunks, position = [], 0
    while line := _CHUNK.match(body, position):
        size = int(line[1], 16)
        position = line.end() + size
        chunks.append(body[line.end() : position])
        if position > len(body):
            raise ValueError("its chunked body is cut short")
        if size == 0:
            break
        position += 2 if body.startswith(b"\r\n", position) else body.startswith(b"\n", position)
    else:
        if chunks and body[position:].strip():
            raise ValueError("its chunked body is damaged")
    return b"".join(chunks) if chunks else body


def _gunzipped(body: bytes) -> bytes:
    """Unpack all members; what stands behind the last is ignored, as browsers do."""
    if not body.startswith(_GZIP):
        return body
    content, at = bytearray(), 0
    while body.startswith(_GZIP, at):
        at = _add_member(body, at, content)
    return bytes(content)


def _add_member(body: bytes, at: int, content: bytearray) -> int:
    """Unpack the member at a position; return the position behind it.

    What it is given grows by and by: the decompressor copies what stands behind a member, and there may be many.
    """
    member, size = zlib.decompressobj(zlib.MAX_WBITS | 16), _FIRST_PIECE
    while not member.eof:
        piece = body[at : at + size]
        if not piece:
            raise DamageError("its compressed body is cut short")
        try:
            content += member.decompress(piece, largest_page() + 1 - len(content))
        except zlib.error as error:
            raise DamageError(f"its compressed body is damaged: {error}") from error
        _require_room(len(content) <= largest_page())
        at += len(piece) - len(member.unconsumed_tail) - len(member.unused_data)
        size = min(2 * size, BEGINNING)
    return at


def _unzstd(body: bytes) -> bytes:
    """Unpack all frames; what stands behind the last is ignored."""
    content, at = bytearray(), 0
    while body.startswith(_ZSTD, at):
        frame = zstd_frame()
        while not frame.eof:
            piece = body[at : at + ZSTD_PIECE]
            if not piece:
                raise DamageError("its compressed body is cut short")
            try:
                content += frame.decompress(piece)
            except (zstandard.ZstdError, OSError) as error:
                raise DamageError(f"its compressed body is damaged: {error}") from error
            _require_room(len(content) <= largest_page())
            at += len(piece) - len(frame.unused_data)
    return bytes(content) if at else body


def _inflated(body: bytes) -> bytes:
    try:
        return _unpacked(
            zlib.decompressobj(zlib.MAX_WBITS if body[0] & 15 == 8 else -zlib.MAX_WBITS), body, largest_page()
        )
    except DamageError:
        if _is_text(body):
            return body
        raise


def _unpacked(stream: Any, body: bytes, most: int) -> bytes:
    try:
        content: bytes = stream.decompress(body, most + 1)
    except zlib.error as error:
        raise DamageError(f"its compressed body is damaged: {error}") from error
    _require_room(len(content) <= most)
    if not stream.eof:
        raise DamageError("its compressed body is cut short")
    return content


def _unbrotlied(body: bytes) -> bytes:
    try:
        import brotli
    except ImportError:
        raise ValueError("its brotli encoding needs brotli: pip install 'spotsigs[warc]'") from None
    stream, most = brotli.Decompressor(), largest_page()
    content: list[bytes] = []
    try:
        while not stream.is_finished():
            content.append(stream.process(b"" if content else body, output_buffer_limit=most + 1))
            _require_room(sum(map(len, content)) <= most)
            if not content[-1] and not stream.is_finished() and stream.can_accept_more_data():
                raise DamageError("its compressed body is cut short")
    except (brotli.error, DamageError) as error:
        if _is_text(body):
            return body
        raise DamageError(f"its compressed body is damaged or cut short: {error}") from error
    return b"".join(content)


def _require_room(fits: bool) -> None:
    if not fits:
        raise ValueError(f"its body unpacks to more than {in_words(largest_page())}")


def _is_text(body: bytes) -> bool:
    """Tell text from compressed bytes, which soon have control characters among them."""
    return not _CONTROL.search(body, 0, 4096)


_DECODERS = {
    "chunked": _unchunked,
    "gzip": _gunzipped,
    "x-gzip": _gunzipped,
    "deflate": _inflated,
    "br": _unbrotlied,
    "zstd": _unzstd,
}


MOST_HEADER = 1 << 20
"""Bytes of the longest header of a response."""


def has_whole_header(block: bytes) -> bool:
    """Tell whether the beginning of a stored response goes beyond its header."""
    return not block.startswith(b"HTTP/") or _HEAD_END.search(block) is not None


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
