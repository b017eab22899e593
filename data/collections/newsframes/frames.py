"""Templates (frames) of real pages: pages without their article, with slots in its position."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Literal, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from data.collections.newsframes.reuters_stories import grams, words

Kind = Literal["markup", "headline", "lead", "slot", "block"]

SLOT_SHARE = 0.8
"""Minimal fraction of a block's 4-grams in the article's text for the block to be a slot."""
COVERED = (0.75, 1.3)
"""Range of the words of all slots, relative to the words of the article."""
LEFT_OVER = 0.05
"""Upper limit of the fraction of the article's 5-grams outside the slots."""
FRAME_WORDS = (80, 2500)
"""Range of the number of words of a template."""
ENGLISH = 0.1
"""Minimal fraction of the most frequent English words in the article."""
FREQUENT = frozenset(("the", "of", "and", "to", "in", "a", "is", "that", "for", "on"))
ALIKE = 0.6
"""Minimal Jaccard similarity of the words of a heading and the headline for the heading to be the headline."""
LEAD_LETTERS = 200

BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure footer form "
    "h1 h2 h3 h4 h5 h6 header hr legend li main nav ol p pre section summary table tbody td tfoot th thead tr "
    "ul".split()
)
HIDDEN = frozenset("script style noscript template iframe object embed head title textarea svg noframes".split())
REPEATED = frozenset("p div li blockquote td section article dd pre center".split())
"""Elements whose tags are dropped with an empty slot."""
_HEADLINE_METAS = frozenset(
    "og:title twitter:title title dc.title dcterms.title hdl headline sailthru.title parsely-title fb_title".split()
)
_LEAD_METAS = frozenset("description og:description twitter:description dc.description sailthru.description".split())
_MARK = re.compile("\u27e6(\\d+)\u27e7")


@dataclass(frozen=True)
class FramePiece:
    """Piece of a template: its original content, and the tags around a slot.

    ``markup`` is kept; ``headline`` and ``lead`` are replaced by the story's; ``slot`` receives its paragraphs;
    ``block`` is text of the template that may be exchanged.
    """

    kind: Kind
    html: str
    opening: str = ""
    closing: str = ""

    @property
    def text(self) -> str:
        """Visible text of a slot or a block."""
        return visible(self.html)


@dataclass(frozen=True)
class Frame:
    """Template of a page: the page without its article.

    ``site`` is the host without ``www.``; the pieces form the page in order; ``paragraphs`` are the original article,
    without markup.
    """

    site: str
    name: str
    pieces: tuple[FramePiece, ...]
    paragraphs: tuple[str, ...]

    @cached_property
    def blocks(self) -> list[int]:
        """Positions of the pieces that may be exchanged."""
        return [i for i, piece in enumerate(self.pieces) if piece.kind == "block"]

    def bare(self) -> str:
        """Return the page with empty slots and no headline."""
        return "".join(piece.html for piece in self.pieces if piece.kind in ("markup", "block"))

    def with_blocks(self, blocks: dict[int, str]) -> Frame:
        """Return the template with new contents of blocks, given by position."""
        pieces = list(self.pieces)
        for i, html in blocks.items():
            pieces[i] = FramePiece("block", html)
        return replace(self, pieces=tuple(pieces))


class AnnotatedPage(NamedTuple):
    """Page with headline and text of its article, which was annotated by hand; site and name as in `Frame`."""

    site: str
    name: str
    html: str
    headline: str
    text: str


class TextBlock(NamedTuple):
    """Innermost block element with text, or an element that is a slot as a whole."""

    node: LexborNode
    words: list[str]
    slot: bool


def frame(page: AnnotatedPage) -> Frame | str:
    """Return the template of a page, or the reason why the page has none.

    A block is a slot if at least `SLOT_SHARE` of its 4-grams occur in the annotated article. A page is usable as a
    template if its article is English, the slots contain about as much text as the article (`COVERED`), little of the
    article occurs elsewhere (`LEFT_OVER`), and the number of remaining words is in range (`FRAME_WORDS`).
    """
    article = words(page.text)
    if len(article) < 5 or sum(word in FREQUENT for word in article) < ENGLISH * len(article):
        return "not English"
    tree = LexborHTMLParser(page.html)
    if tree.body is None:
        return "no body"
    blocks = _scan(tree.body, grams(article, 4))[1]
    slots = [block for block in blocks if block.slot]
    covered = sum(len(block.words) for block in slots) / len(article)
    if not COVERED[0] <= covered <= COVERED[1]:
        return "article not found in blocks"
    title = set(words(page.headline))
    headings = [block for block in blocks if not block.slot and _is_headline(block, title)]
    rest = [block for block in blocks if not block.slot and block not in headings]
    around = [word for block in rest for word in block.words]
    fives = grams(article, 5)
    if fives and len(fives & grams(around, 5)) >= LEFT_OVER * len(fives):
        return "article elsewhere too"
    if not FRAME_WORDS[0] <= len(around) <= FRAME_WORDS[1]:
        return "too few or too many words around"
    paragraphs = tuple(" ".join(visible(block.node.html or "").split()) for block in slots)
    return Frame(page.site, page.name, tuple(_cut(tree, page.headline, slots, headings, rest)), paragraphs)


def visible(html: str) -> str:
    """Return the visible text of a piece of a page, with line ends between blocks."""
    body = LexborHTMLParser(html).body
    return "" if body is None else "".join(_texts(body))


def _texts(node: LexborNode) -> Iterator[str]:
    """Yield the text of an element in order, with line ends between blocks."""
    for child in node.iter(include_text=True):
        tag = child.tag
        if tag == "-text":
            yield child.text_content or ""
        elif tag == "br":
            yield "\n"
        elif tag and tag not in HIDDEN and not tag.startswith("-"):
            block = tag in BLOCKS
            if block:
                yield "\n"
            yield from _texts(child)
            if block:
                yield "\n"


def _scan(node: LexborNode, known: set[tuple[str, ...]]) -> tuple[str, list[TextBlock]]:
    """Return the text of an element and its innermost blocks with text, or the element itself if there are none.

    If much of its text is outside these blocks, the element as a whole may be a slot.
    """
    texts: list[str] = []
    below: list[TextBlock] = []
    for child in node.iter(include_text=True):
        tag = child.tag
        if tag == "-text":
            texts.append(child.text_content or "")
        elif tag == "br":
            texts.append("\n")
        elif tag and tag not in HIDDEN and not tag.startswith("-"):
            text, blocks = _scan(child, known)
            texts.append(f"\n{text}\n" if tag in BLOCKS else text)
            below += blocks
    text = "".join(texts)
    if node.tag not in BLOCKS:
        return text, below
    inside = sum(len(block.words) for block in below)
    own = words(text)
    outside = len(own) - inside
    whole = not below or (2 * outside >= len(own) and node.tag != "body" and _is_slot(own, known))
    return text, ([TextBlock(node, own, _is_slot(own, known))] if own else []) if whole else below


def _is_slot(tokens: Sequence[str], known: set[tuple[str, ...]]) -> bool:
    is_known = [gram in known for gram in zip(*(tokens[i:] for i in range(4)), strict=False)]
    return bool(is_known) and sum(is_known) >= SLOT_SHARE * len(is_known)


def _is_headline(block: TextBlock, title: set[str]) -> bool:
    own = set(block.words)
    heading = block.node.tag in ("h1", "h2", "h3") or block.node.css_first("h1, h2") is not None
    return heading and bool(title) and len(own & title) >= ALIKE * len(own | title)


def _cut(
    tree: LexborHTMLParser, headline: str, slots: list[TextBlock], headings: list[TextBlock], rest: list[TextBlock]
) -> Iterator[FramePiece]:
    """Yield the pieces of a page; this modifies the tree."""
    pieces: list[FramePiece] = []

    def mark(kind: Kind, html: str, opening: str = "", closing: str = "") -> str:
        pieces.append(FramePiece(kind, html, opening, closing))
        return f"\u27e6{len(pieces) - 1}\u27e7"

    _mark_head(tree, headline, mark)
    if not headings:
        slots[0].node.insert_before(mark("headline", "", "<h1>", "</h1>"))
    for block in headings:
        block.node.inner_html = mark("headline", block.node.inner_html or "")
    for block in rest:
        if block.node.tag != "body":
            block.node.inner_html = mark("block", block.node.inner_html or "")
    for block in slots:
        html, inner, closing = block.node.html or "", block.node.inner_html or "", f"</{block.node.tag}>"
        if block.node.tag in REPEATED:
            opening = html[: len(html) - len(inner) - len(closing)]
            block.node.replace_with(mark("slot", inner, opening, closing))
        else:
            block.node.inner_html = mark("slot", inner)
    for i, part in enumerate(_MARK.split(tree.html or "")):
        if i % 2:
            yield pieces[int(part)]
        elif part:
            yield FramePiece("markup", part)


def _mark_head(tree: LexborHTMLParser, headline: str, mark: Callable[[Kind, str], str]) -> None:
    """Insert marks of headline and lead into title and metas."""
    for node in tree.css("head > title"):
        text = " ".join((node.text() or "").split())
        short = " ".join(headline.split())
        before, head, after = text.partition(short) if short else ("", "", "")
        if not head:  # the longest part is assumed to be the headline, the others the name of the site
            parts = re.split(r"(\s[-|:\u2013\u2014\u00bb]\s)", text)
            longest = max(range(0, len(parts), 2), key=lambda i: len(parts[i]))
            before, after = "".join(parts[:longest]), "".join(parts[longest + 1 :])
            short = parts[longest]
        node.inner_html = before + mark("headline", escape(short)) + after
    for node in tree.css("meta"):
        name = (node.attributes.get("property") or node.attributes.get("name") or "").lower()
        text = node.attributes.get("content") or ""
        if text and name in _HEADLINE_METAS:
            node.attrs["content"] = mark("headline", escape(text))
        elif text and name in _LEAD_METAS:
            node.attrs["content"] = mark("lead", escape(text))
