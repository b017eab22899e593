"""From documents to text: the visible text of the whole page, or its main part by other extractors.

Each choice is a frozen dataclass ``(document) -> str`` and one YAML in ``conf/text/``.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from importlib.util import find_spec

from spotsigs.errors import require
from spotsigs.records import Document, MarkedText
from spotsigs.text.charset import to_utf8
from spotsigs.text.markup import UNMARKED, has_more_attributes, parsing_cost, simplify
from spotsigs.text.size_limits import require_room

DEEPEST = 2000
"""Nesting beyond which a page is taken for an attack on a parser whose time grows with the square of the depth."""

MOST_ATTRIBUTES = 2000
"""Attributes of a tag beyond which a page is taken for an attack on a parser that compares each with all others."""

_MARKS = b"< \n\t\r\f/="  # what may begin an element or an attribute, for parsers that keep these


def visible_text(document: Document, *, marked: bool = False) -> str:
    """Return the visible text of the whole page, boilerplate included.

    Scripts, styles, templates, ``noscript`` and frame fallbacks are removed. Words that inline elements split stay
    whole (``<b>T</b>he`` is "The"); every tag of another element separates words, whether or not there is white space
    in the source, and whether or not an end tag closes anything. Soft hyphens, which are not visible, are dropped.

    Parameters
    ----------
    document : Document
        HTML, or plain text, which is only decoded.
    marked : bool
        Mark links and blocks, see `spotsigs.text.markup.simplify`; without the marks, the words are the same.

    Returns
    -------
    str
        With the source's own white space; empty where the page has no body.
    """
    content = _utf8(document, b"" if _is_plain(document) else b"<")
    if marked:
        content = content.translate(UNMARKED)
    text = content.decode() if _is_plain(document) else _body_text(content, marked)
    return text.replace("\xad", "")


def _body_text(html: bytes, marked: bool) -> str:
    from selectolax.lexbor import LexborHTMLParser

    body = LexborHTMLParser(simplify(html, marked=marked)).body
    return "" if body is None else body.text()


def _utf8(document: Document, marks: bytes) -> bytes:
    content = to_utf8(document.content, document.charset)
    require_room(content, marks)
    return content


def _tamed(document: Document, name: str) -> str:
    """Return a page that a parser reads in time that grows with its size; refuse another."""
    content = _utf8(document, _MARKS)
    beyond = f"beyond what text={name} reads; text=visible does"
    deepest, again = parsing_cost(content, DEEPEST)
    require(deepest <= DEEPEST, f"its elements nest more than {DEEPEST:,} deep, {beyond}")
    require_room(content, _MARKS, again)
    require(
        not has_more_attributes(content, MOST_ATTRIBUTES),
        f"a tag has more than {MOST_ATTRIBUTES:,} attributes, {beyond}",
    )
    return content.decode()


def _is_plain(document: Document) -> bool:
    return document.media_type.lower().startswith("text/plain")


@dataclass(frozen=True, kw_only=True)
class VisibleText(MarkedText):
    """The visible text of the whole page: what SpotSigs reads, since its signatures skip boilerplate themselves."""

    def __call__(self, document: Document) -> str:
        """Return `visible_text` of the document."""
        return visible_text(document)

    def marked(self, document: Document) -> str:
        """Return the same text with its links and blocks marked, for schemes that look at them."""
        return visible_text(document, marked=True)


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
        html = _tamed(document, "main")
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
        html = _tamed(document, "trafilatura")
        logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # it complains of each page without a main text
        return trafilatura.extract(html, include_comments=False) or ""
