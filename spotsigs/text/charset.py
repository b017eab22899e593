"""Detection of a page's encoding, and conversion to UTF-8."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is a prefix of this one
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MARKUP = re.compile(
    rb"<(?:(?P<comment>!--)|(?P<raw>script|style|title|textarea|noscript|iframe|xmp)\b[^<>]*+>"
    rb"|(?P<meta>meta|\?xml)\b(?P<attributes>[^<>]*+)>)",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(rb"([^\s=/\"'?]++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'?]++))")
_CHARSET = re.compile(rb"charset\s*+=\s*+[\"']?+\s*+([\w.:-]++)", re.IGNORECASE)
_PROLOGUE = 4096  # bytes that are searched for zero bytes
_HANGUL = re.compile("[\uac00-\ud7a3]")
_ASCII = bytes(range(128))
# Browsers decode these labels as the vendor's superset; Python's codec of the same name is the bare standard.
_SUPERSETS = {"shift_jis": "cp932", "euc_kr": "cp949", "gbk": "gb18030", "big5": "big5hkscs", "iso8859-11": "cp874"}


_WIDE = (
    (re.compile(rb"\xff\xfe\0\0|(?:[\t-~]\0\0\0){2}"), "utf-32-le"),
    (re.compile(rb"\0\0\xfe\xff|(?:\0\0\0[\t-~]){2}"), "utf-32-be"),
    (re.compile(rb"\xff\xfe|(?:[\t-~]\0){2}"), "utf-16-le"),
    (re.compile(rb"\xfe\xff|(?:\0[\t-~]){2}"), "utf-16-be"),
)


def wide_codec(head: bytes) -> str | None:
    """Return the codec of text in UTF-16 or UTF-32 that begins with a mark or two ASCII characters; else None."""
    return next((codec for pattern, codec in _WIDE if pattern.match(head)), None)


def to_utf8(content: bytes | str, declared: str | None = None) -> bytes:
    """Return a page's content as UTF-8.

    Evidence in the bytes has precedence over declarations: a byte order mark, the zero bytes of UTF-16, valid UTF-8
    (text in another encoding is almost never valid UTF-8 unless it is ASCII), the escape sequences of ISO-2022-JP.
    Without such evidence, the declared charset, the charset of ``<meta>`` or of the XML declaration, wherever it is in
    the page, UTF-8, EUC-KR and statistical detection are tried in this order. A declared encoding is rejected if more
    than a quarter of the non-ASCII bytes are invalid in it; UTF-8 that is not declared, if more than a fifth of the
    characters beyond ASCII are.

    The result has no byte order mark; invalid bytes become U+FFFD, lone surrogates ``?``. A string is encoded without
    detection; an unknown label of `declared`, for example in an HTTP header, is ignored.
    """
    if isinstance(content, str):
        return content.encode("utf-8", "replace")
    if (b"\0" not in content and b"\x1b" not in content) or not _proven_codec(content):
        try:
            content.decode()
        except UnicodeDecodeError:
            pass
        else:
            return content.removeprefix(codecs.BOM_UTF8)
    return _decode(content, declared).removeprefix("\ufeff").encode("utf-8", "replace")


def _decode(content: bytes, declared: str | None) -> str:
    if proven := _proven_codec(content):
        return content.decode(proven, "replace")
    non_ascii = len(content.translate(None, _ASCII))
    for codec in _candidates(content, declared):
        text = content.decode(codec, "replace")
        if 4 * text.count("\ufffd") <= non_ascii:
            return text
    return content.decode("cp1252", "replace")


def _proven_codec(content: bytes) -> str | None:
    """Return the codec that the bytes prove, or None; UTF-8 without a byte order mark is not considered."""
    for mark, codec in _MARKS:
        if content.startswith(mark):
            return codec
    # In UTF-16 the zero bytes of ASCII characters are all at even or all at odd positions.
    even, odd = content[:_PROLOGUE:2].count(0), content[1:_PROLOGUE:2].count(0)
    if max(even, odd) > min(len(content), _PROLOGUE) // 16 and min(even, odd) * 8 < max(even, odd):
        return "utf-16-le" if odd > even else "utf-16-be"
    escapes = b"\x1b$B" in content or b"\x1b$@" in content
    return "iso2022_jp" if escapes and content.isascii() else None  # all of its bytes are ASCII


def _candidates(content: bytes, declared: str | None) -> Iterator[str]:
    """Yield the codecs to try, the most likely first."""
    from resiliparse.parse.encoding import detect_encoding

    codec = _codec(declared or "")
    if codec and (b"\0" in content or not codec.startswith("utf-16")):
        yield codec
    codec = _codec(_declared_inside(content))
    if codec and not codec.startswith("utf-16"):  # a UTF-16 page has no readable declaration
        yield codec
    text, beyond = content.decode("utf-8", "replace"), len(content.translate(None, _ASCII))
    if 5 * text.count("\ufffd") <= len(text) - (len(content) - beyond):
        yield "utf-8"
    if _is_korean(content):
        yield "cp949"
    if detected := detect_encoding(content):
        yield _SUPERSETS.get(detected, detected)


def _is_korean(content: bytes) -> bool:
    """Return whether most characters beyond ASCII are Hangul if the bytes are in EUC-KR, and hardly one is invalid."""
    text = content.decode("euc_kr", "replace")
    ascii_bytes = len(content) - len(content.translate(None, _ASCII))
    hangul = len(_HANGUL.findall(text))
    return 2 * hangul > len(text) - ascii_bytes and 20 * text.count("\ufffd") <= hangul


def _declared_inside(content: bytes) -> str:
    """Return the label of the first declaration in a page, outside of comments and scripts; empty without one."""
    at = 0
    while match := _MARKUP.search(content, at):
        at = match.end()
        if match["comment"]:
            at = content.find(b"-->", match.start() + 2) + 3
            if at < 3:
                break
        elif raw := match["raw"]:
            end = re.compile(b"</" + raw, re.IGNORECASE).search(content, at)
            if end is None:
                break
            at = end.end()
        elif label := _label(match["attributes"], is_xml=match["meta"].startswith(b"?")):
            return label
    return ""


def _label(attributes: bytes, *, is_xml: bool) -> str:
    """Return the charset that a ``<meta>`` or an XML declaration names; empty if it names none."""
    found: dict[bytes, bytes] = {}
    for name, *values in _ATTRIBUTE.findall(attributes):
        found.setdefault(name.lower(), b"".join(values))
    if is_xml:
        label = found.get(b"encoding", b"")
    elif b"charset" in found:
        label = found[b"charset"]
    else:
        is_type = found.get(b"http-equiv", b"").strip().lower() == b"content-type"
        match = _CHARSET.search(found.get(b"content", b"")) if is_type else None
        label = match[1] if match else b""
    return label.decode("latin-1")


def _codec(label: str) -> str | None:
    """Return Python's codec for a label of the Encoding Standard, or None if the label is unknown."""
    from resiliparse.parse.encoding import map_encoding_to_html5

    name = map_encoding_to_html5(label.strip(" \t\r\n\"'"), False)
    return None if name is None else _SUPERSETS.get(name, name)
