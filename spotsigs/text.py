"""From documents to text: the visible text of the whole page, or its main part by other extractors.

Each choice is a frozen dataclass ``(document) -> str`` and one YAML in ``conf/text/``.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.charset import to_utf8
from spotsigs.errors import require
from spotsigs.records import Document

# Elements that may stand inside a word. All others separate words, unknown ones too.
_INLINE = """a abbr acronym b bdi bdo big blink cite code data del dfn em font i ins kbd mark nobr q s samp small span
    strike strong sub sup time tt u var wbr""".split()
# Elements that a page may leave open without nesting deeper: void ones, those closed by the next one, raw text.
_FLAT = """area base basefont bgsound body br caption col colgroup dd dt embed frame frameset head hr html img input
    keygen li link meta optgroup option p param source tbody td textarea tfoot th thead title tr track wbr xmp""".split()
# Elements whose content browsers do not show; all are flat.
_HIDDEN = ("script", "style", "noscript", "template", "iframe", "noembed", "noframes")
_IS_INLINE, _IS_FLAT, _HIDDEN_SHIFT = 1, 2, 2  # flags of an element; above them its place in _HIDDEN, from 1
# The parser's time is quadratic in depth and in the attributes of one tag, its memory in open inline elements.
_MAX_DEPTH, _MAX_INLINE_DEPTH = 512, 64
_MAX_TAG_BYTES, _MAX_ATTRIBUTES = 16384, 1024
_LT, _GT, _SLASH, _SPACE, _EQUALS, _QUOTES = 60, 62, 47, 32, 61, (34, 39)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _element_table() -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Return a hash table from packed element names to flags: 256 slots, linear probing, key 0 is empty."""
    keys, flags = np.zeros(256, np.uint64), np.zeros(256, np.uint8)
    kinds = dict.fromkeys(_INLINE, _IS_INLINE)
    for name in _FLAT:
        kinds[name] = kinds.get(name, 0) | _IS_FLAT
    for place, name in enumerate(_HIDDEN, start=1):
        kinds[name] = _IS_FLAT | place << _HIDDEN_SHIFT
    for name, kind in kinds.items():
        key = int.from_bytes(name.encode(), "big")
        slot = (key * int(_GOLDEN) & (1 << 64) - 1) >> 56
        while keys[slot]:
            slot = (slot + 1) & 255
        keys[slot], flags[slot] = key, kind
    return keys, flags


_ELEMENTS, _FLAGS = _element_table()


@njit(cache=True, nogil=True)
def _element(html: NDArray[np.uint8], at: int) -> tuple[np.uint64, int]:
    """Return the element name at a position, lower-cased and packed, and where it ends."""
    key, end = np.uint64(0), at
    while end < len(html) and html[end] > _SPACE and html[end] != _SLASH and html[end] != _GT:
        byte = html[end]
        key = (key << np.uint64(8)) | np.uint64(byte | 32 if 65 <= byte <= 90 else byte)
        end += 1
    # A longer name must not pass for the known one that its last eight bytes spell.
    return (key if end - at <= 8 else ~key), end


@njit(cache=True, nogil=True)
def _flags_of(key: np.uint64, elements: NDArray[np.uint64], flags: NDArray[np.uint8]) -> np.uint8:
    slot = (key * _GOLDEN) >> np.uint64(56)
    while elements[slot] != key and elements[slot] != 0:
        slot = (slot + np.uint64(1)) & np.uint64(255)
    return flags[slot]


@njit(cache=True, nogil=True)
def _close(stack: NDArray[np.uint64], depth: int, key: np.uint64) -> int:
    """Return the depth after an end tag; one that closes nothing changes nothing."""
    for level in range(depth - 1, -1, -1):
        if stack[level] == key:
            return level
    return depth


@njit(cache=True, nogil=True)
def _separate_words(
    html: NDArray[np.uint8], elements: NDArray[np.uint64], flags: NDArray[np.uint8], out: NDArray[np.uint8]
) -> tuple[int, int]:
    """Write a page with a space before every tag that separates words.

    Nothing else changes, except that start tags past the depth limits become ``<wbr``, which holds nothing. Returns
    the size in ``out`` and a bit for each place in `_HIDDEN` whose element occurs.
    """
    at, size, depth, was_inline, hidden = 0, 0, 0, True, 0
    stack = np.empty(_MAX_DEPTH, np.uint64)
    while at < len(html):
        byte, name = html[at], at + 1
        if byte == _LT and name < len(html) and html[name] == _SLASH:
            name += 1
        if byte != _LT or name >= len(html) or not 97 <= html[name] | 32 <= 122:
            out[size] = byte
            size, at = size + 1, at + 1
            continue
        key, end = _element(html, name)
        kind = _flags_of(key, elements, flags)
        is_inline = kind & _IS_INLINE != 0
        before = html[at - 1] if at > 0 else _SPACE
        if not (is_inline or before <= _SPACE or (before == _GT and not was_inline)):
            out[size] = _SPACE
            size += 1
        was_inline = is_inline
        hidden |= 1 << (kind >> _HIDDEN_SHIFT)
        if name == at + 2:
            depth = _close(stack, depth, key)
        elif not kind & _IS_FLAT:
            if depth < (_MAX_INLINE_DEPTH if is_inline else _MAX_DEPTH):
                stack[depth] = key
                depth += 1
            else:
                for letter in b"<wbr":
                    out[size] = letter
                    size += 1
                at = end
        while at < end:
            out[size] = html[at]
            size, at = size + 1, at + 1
    return size, hidden


@njit(cache=True, nogil=True)
def _mend_tags(html: NDArray[np.uint8]) -> None:
    """Make text, in place, of tags with more attributes than a real one has: prose after a stray ``<``.

    White space in quoted values does not count, so that embedded data stays where it is.
    """
    at = 0
    while at < len(html):
        start, gaps = at, 0
        is_tag = html[at] == _LT and at + 1 < len(html) and 97 <= html[at + 1] | 32 <= 122
        while is_tag and at < len(html) and html[at] != _GT:
            gaps += html[at] <= _SPACE
            if html[at] == _EQUALS and at + 1 < len(html) and html[at + 1] in _QUOTES:
                quote = html[at + 1]
                at += 2
                while at < len(html) and html[at] != quote:
                    at += 1
            at += 1
        if gaps > _MAX_ATTRIBUTES:
            for k in range(start, min(at, len(html))):
                if html[k] == _LT:
                    html[k] = _SPACE
        at += 1


def _mended(html: bytes) -> bytes:
    """Return a page the parser reads in linear time; only one with a long stretch without ``>`` can need mending."""
    at = 0
    while at + _MAX_TAG_BYTES < len(html):
        at = html.rfind(b">", at, at + _MAX_TAG_BYTES) + 1
        if at == 0:
            page = np.frombuffer(html, np.uint8).copy()
            _mend_tags(page)
            return page.tobytes()
    return html


def _body_text(html: bytes) -> str:
    """Return the text of a page's body without what browsers do not show."""
    from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

    html = _mended(html)
    out = np.empty(2 * len(html) + 8, np.uint8)
    size, hidden = _separate_words(np.frombuffer(html, np.uint8), _ELEMENTS, _FLAGS, out)
    page = LexborHTMLParser(out[:size].tobytes(), options=LexborDocumentOptions.WO_EVENTS, scripting=True)
    if page.body is None:
        return ""
    names = [name for place, name in enumerate(_HIDDEN, start=1) if hidden >> place & 1]
    for node in page.body.css(",".join(names)) if names else ():
        node.decompose()
    return page.body.text()


def visible_text(document: Document) -> str:
    """Return the visible text of the whole page, boilerplate included.

    Scripts, styles, templates, ``noscript`` and frame fallbacks are removed. Words that inline elements split stay
    whole (``<b>T</b>he`` is "The"); every other element separates words, whether or not there is white space in the
    source. Soft hyphens, which are not visible, are dropped.

    Parameters
    ----------
    document : Document
        HTML, or plain text, which is only decoded.

    Returns
    -------
    str
        With the source's own white space; empty where the page has no body.
    """
    content = to_utf8(document.content, document.charset)
    text = content.decode() if _is_plain(document) else _body_text(content)
    return text.replace("\xad", "")


def _is_plain(document: Document) -> bool:
    return document.media_type.lower().startswith("text/plain")


@dataclass(frozen=True, kw_only=True)
class VisibleText:
    """The visible text of the whole page: what SpotSigs reads, since its signatures skip boilerplate themselves."""

    def __call__(self, document: Document) -> str:
        """Return `visible_text` of the document."""
        return visible_text(document)


@dataclass(frozen=True, kw_only=True)
class MainText:
    """The main part of the page, found by Resiliparse's rules; plain text stays as it is.

    References
    ----------
    J. Bevendorff, B. Stein, M. Hagen, M. Potthast, "Elastic ChatNoir", ECIR 2018 (the Resiliparse library).
    """

    def __call__(self, document: Document) -> str:
        """Return the main text of the document."""
        from resiliparse.extract.html2text import extract_plain_text

        if _is_plain(document):
            return visible_text(document)
        html = to_utf8(document.content, document.charset).decode()
        return extract_plain_text(html, main_content=True, alt_texts=False, list_bullets=False)


@dataclass(frozen=True, kw_only=True)
class Trafilatura:
    """The main text of the page, found by trafilatura; plain text stays as it is.

    References
    ----------
    A. Barbaresi, "Trafilatura: A Web Scraping Library and Command-Line Tool for Text Discovery and Extraction",
    ACL 2021 (system demonstrations).
    """

    def __post_init__(self) -> None:
        require(
            find_spec("trafilatura") is not None,
            "text=trafilatura needs the package trafilatura: pip install 'spotsigs[trafilatura]'",
        )

    def __call__(self, document: Document) -> str:
        """Return the main text of the document; empty where trafilatura finds none."""
        import trafilatura

        if _is_plain(document):
            return visible_text(document)
        html = to_utf8(document.content, document.charset).decode()
        return trafilatura.extract(html, include_comments=False) or ""
