"""Text extraction: the visible text of the whole page, or its main content.

Each choice is a frozen dataclass ``(document) -> str`` and one YAML in ``conf/text/``.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from importlib.util import find_spec

from spotsigs.contracts import MarkedText
from spotsigs.errors import require
from spotsigs.records import Document
from spotsigs.text.charset import to_utf8
from spotsigs.text.markup import LINK_END_MARK, LINK_MARK, UNMARKED, parsing_cost, simplify, simplify_xhtml
from spotsigs.text.size_limits import outweighs, require_within_limit
from spotsigs.text.xhtml import CDATA, as_html, is_xhtml

DEEPEST = 2000
"""Maximal nesting of elements for parsers whose time is quadratic in the depth."""

MOST_ATTRIBUTES = 2000
"""Maximal number of attributes of a tag for parsers that compare each attribute with all others."""

_LINK_MARKS = LINK_MARK.encode(), LINK_END_MARK.encode()
_MARKS = b"< \n\t\r\f/="  # bytes that may start an element or an attribute


def visible_text(document: Document, *, marked: bool = False) -> str:
    """Return the visible text of the whole page, boilerplate included.

    Scripts, styles, templates, ``noscript`` and the fallback content of frames are removed. Inline elements do not
    split words (``<b>T</b>he`` is "The"); every tag of another element separates words, even without white space in the
    source, and even if an end tag closes no element. Soft hyphens, which are invisible, are removed.

    XHTML is read as such, see `spotsigs.text.xhtml`. Plain text is decoded only. On request, links and blocks are
    marked, see `spotsigs.text.markup.simplify`; the words are the same. The text has the white space of the source, and
    is empty if the page has no body.
    """
    content = to_utf8(document.content, document.charset)
    if _is_plain(document):
        require_within_limit(content, b"")
        return (content.translate(UNMARKED) if marked else content).decode().replace("\xad", "")
    from selectolax.lexbor import LexborHTMLParser

    body = LexborHTMLParser(_simplified(content, document.media_type, marked)).body
    return "" if body is None else body.text().replace("\xad", "")


def _simplified(content: bytes, media_type: str, marked: bool) -> bytes:
    """Return the simplified page; XHTML is converted only if the simplification of HTML would lose text of it."""
    has_marks = any(mark in content for mark in _LINK_MARKS)
    if is_xhtml(content, media_type):
        if not (has_marks or CDATA in content or outweighs(content)):
            simplified = simplify_xhtml(content, marked=marked)
            if simplified is not None:
                return simplified
        content = as_html(content)
    require_within_limit(content)
    return simplify(content.translate(UNMARKED) if marked and has_marks else content, marked=marked)


def _parseable(document: Document, name: str) -> str:
    """Return the page of HTML as a string; refuse one that a parser does not read in linear time and memory."""
    content = to_utf8(document.content, document.charset)
    content = as_html(content) if is_xhtml(content, document.media_type) else content
    beyond = f"beyond what text={name} reads; text=visible does"
    deepest, again, attributes = parsing_cost(content)
    require(deepest <= DEEPEST, f"its elements nest more than {DEEPEST:,} deep, {beyond}")
    require_within_limit(content, _MARKS, again)
    require(attributes <= MOST_ATTRIBUTES, f"a tag has more than {MOST_ATTRIBUTES:,} attributes, {beyond}")
    return content.decode()


def _is_plain(document: Document) -> bool:
    return document.media_type.lower().startswith("text/plain")


@dataclass(frozen=True, kw_only=True)
class VisibleText(MarkedText):
    """Visible text of the whole page, as SpotSigs reads it: its signatures avoid boilerplate by themselves."""

    def __call__(self, document: Document) -> str:
        """Return `visible_text` of the document."""
        return visible_text(document)

    def marked(self, document: Document) -> str:
        """Return the same text with marked links and blocks, for signature schemes that use them."""
        return visible_text(document, marked=True)


@dataclass(frozen=True, kw_only=True)
class MainText:
    """Main content of a page, extracted by the rules of Resiliparse; plain text is returned unchanged.

    References
    ----------
    J. Bevendorff, B. Stein, M. Hagen, M. Potthast, "Elastic ChatNoir", ECIR 2018 (the Resiliparse library).
    """

    def __call__(self, document: Document) -> str:
        """Return the main content of the document."""
        from resiliparse.extract.html2text import extract_plain_text

        if _is_plain(document):
            return visible_text(document)
        html = _parseable(document, "main")
        return extract_plain_text(html, main_content=True, alt_texts=False, list_bullets=False)


@dataclass(frozen=True, kw_only=True)
class Trafilatura:
    """Main content of a page, extracted by trafilatura; plain text is returned unchanged.

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
        """Return the main content of the document; empty if trafilatura finds none."""
        import trafilatura

        if _is_plain(document):
            return visible_text(document)
        html = _parseable(document, "trafilatura")
        logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # it reports each page without main content
        return trafilatura.extract(html, include_comments=False) or ""
