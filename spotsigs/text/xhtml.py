"""Conversion of XHTML into the syntax of HTML, so that the parser of HTML reads all of its text.

XHTML closes any element by ``/>`` and writes text in CDATA sections. A parser of HTML ignores the slash, so that
``<script/>`` hides the page up to the next ``</script>``, and drops the sections. XML also forbids what many pages that
are declared as XHTML do, such as a title or a comment without an end, by which a parser of HTML hides the rest, too.
Here nothing without an end hides text: it is dropped alone.
"""

from __future__ import annotations

import re

import numpy as np

from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.types import Bytes, UInt64s
from spotsigs.text.markup import (
    ELEMENT_KEYS,
    ELEMENT_TRAITS,
    VOID,
    declaration_end,
    is_letter,
    name_end,
    packed_name,
    raw_text_end,
    raw_text_kind,
    slot_of,
    tag_end,
)

MEDIA_TYPES = ("application/xhtml+xml", "application/vnd.wap.xhtml+xml", "application/xml", "text/xml")
"""Media types of XHTML."""

CDATA = b"<![CDATA["

_HEAD = 2048  # bytes in which a page declares itself
_DECLARATION = re.compile(
    rb"\A\s*+<\?xml\s|<!doctype\s[^<>]*xhtml|<html\s[^<>]*\bxmlns\s*+=\s*+[\"']?+http://www\.w3\.org/1999/xhtml",
    re.IGNORECASE,
)
_LT, _BANG, _SLASH, _GT, _AMPERSAND = b"<!/>&"


def _among(names: str) -> UInt64s:
    """Return the packed names of elements."""
    return np.array([packed_name(name) for name in names.split()], np.uint64)


_UNENDING = _among("frameset plaintext")  # of which an end tag does not undo the start tag


def is_xhtml(content: bytes, media_type: str) -> bool:
    """Return whether a page in UTF-8 is XHTML by its media type, XML declaration, document type or name space."""
    declared = media_type.lower().partition(";")[0].strip() in MEDIA_TYPES
    if declared:
        return True
    head = content[:_HEAD].lower()
    return (b"xhtml" in head or b"<?xml" in head) and _DECLARATION.search(head) is not None


@kernel
def _is_among(key: np.uint64, keys: UInt64s) -> bool:
    among = False
    for other in keys:
        among |= key == other
    return among


@kernel
def _begins(html: Bytes, at: int, what: bytes) -> bool:
    if at + len(what) > len(html):
        return False
    same = True
    for k in range(len(what)):
        same &= html[at + k] == what[k]
    return same


@kernel
def _copy(html: Bytes, start: int, end: int, out: Bytes, size: int) -> int:
    """Append ``html[start:end]``; return the new size."""
    for at in range(start, end):
        out[size] = html[at]
        size += 1
    return size


@kernel
def _write_end_tag(html: Bytes, start: int, end: int, out: Bytes, size: int) -> int:
    """Append the end tag of the element that is named ``html[start:end]``; return the new size."""
    out[size], out[size + 1] = _LT, _SLASH
    size = _copy(html, start, end, out, size + 2)
    out[size] = _GT
    return size + 1


@kernel
def _write_escaped(html: Bytes, at: int, out: Bytes, size: int) -> tuple[int, int]:
    """Append what is in a CDATA section, which must have an end, as character data.

    Return the position after the section and the new size.
    """
    while not _begins(html, at, b"]]>"):
        out[size] = html[at]
        if html[at] == _LT or html[at] == _AMPERSAND:
            out[size] = _AMPERSAND
            for letter in b"lt;" if html[at] == _LT else b"amp;":
                size += 1
                out[size] = letter
        size, at = size + 1, at + 1
    return at + len(b"]]>"), size


@kernel
def _convert(html: Bytes, keys: UInt64s, traits: Bytes, unending: UInt64s, last: int, out: Bytes) -> int:
    """Write the page in the syntax of HTML; return its size. The last CDATA section ends at the position ``last``."""
    at, size = int(np.int64(0)), int(np.int64(0))  # a literal compiles what is called twice
    endless = np.zeros(len(keys), np.bool_)  # by name: whether no end tag follows
    comments_end = True
    while at < len(html):
        if html[at] != _LT or at + 1 == len(html):
            out[size] = html[at]
            size, at = size + 1, at + 1
            continue
        if _begins(html, at, CDATA):
            at += len(CDATA)
            if at <= last:
                at, size = _write_escaped(html, at, out, size)
            continue
        is_end = html[at + 1] == _SLASH
        start = at + 2 if is_end else at + 1
        if start == len(html) or not is_letter(html[start]):
            is_comment = _begins(html, at, b"<!--")
            after = at
            if start < len(html) and (comments_end or not is_comment):  # one that does not end is searched for once
                after = declaration_end(html, at)
            ends = comments_end and (_begins(html, after - 3, b"-->") or _begins(html, after - 4, b"--!>"))
            if is_comment and not ends:
                comments_end, after = False, at + len(b"<!--")
            else:
                after = max(after, at + 1)
                size = _copy(html, at, after, out, size)
            at = after
            continue
        key, end = name_end(html, start)
        after, is_closed, _, _ = tag_end(html, end)
        if after < 0:
            break  # HTML drops a tag without an end, too
        slot = slot_of(key, keys)
        if is_closed and not is_end and not traits[slot] & VOID:
            if not _is_among(key, unending):
                size = _copy(html, at, after - 2, out, size)
                out[size] = _GT
                size = _write_end_tag(html, start, end, out, size + 1)
            at = after
            continue
        size, at = _copy(html, at, after, out, size), after
        kind = raw_text_kind(traits[slot])
        if kind and not is_end:
            stop = len(html) if endless[slot] else raw_text_end(html, at, start, end, kind == 2)
            if stop == len(html):
                endless[slot] = True
                size = _write_end_tag(html, start, end, out, size)
            else:
                size, at = _copy(html, at, stop, out, size), stop
    return size


def as_html(xhtml: bytes) -> bytes:
    """Return a page of XHTML, well-formed or not, in the syntax of HTML.

    Elements closed by ``/>`` get an end tag unless HTML has none for them, and CDATA sections become character data.
    A comment, a section or raw text without an end hides nothing.
    """
    out = np.empty(5 * len(xhtml) + 8, np.uint8)
    page, last = np.frombuffer(xhtml, np.uint8), xhtml.rfind(b"]]>")
    size = _convert(page, ELEMENT_KEYS, ELEMENT_TRAITS, _UNENDING, last, out)
    return out[:size].tobytes()
