"""Frames: what is left of a real page when its article is taken out, with slots where it stood."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Literal, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from data.collections.newsframes.reuters_stories import grams, words

Kind = Literal["markup", "headline", "lead", "slot", "block"]

SLOT_SHARE = 0.8
"""Share of a block's 4-grams that the article's text holds, at least, where the block is a slot."""
COVERED = (0.75, 1.3)
"""Words of all slots, at least and at most, as a part of the article's."""
LEFT_OVER = 0.05
"""Share of the article's 5-grams that stands outside the slots, less than this."""
FRAME_WORDS = (80, 2500)
"""Words of a frame, at least and at most."""
ENGLISH = 0.1
"""Share of the most frequent English words in the article, at least."""
FREQUENT = frozenset(("the", "of", "and", "to", "in", "a", "is", "that", "for", "on"))
ALIKE = 0.6
"""Jaccard similarity of the words of a heading and of the headline, at least, where it is the headline."""
LEAD_LETTERS = 200

BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure footer form "
    "h1 h2 h3 h4 h5 h6 header hr legend li main nav ol p pre section summary table tbody td tfoot th thead tr "
    "ul".split()
)
HIDDEN = frozenset("script style noscript template iframe object embed head title textarea svg noframes".split())
REPEATED = frozenset("p div li blockquote td section article dd pre center".split())
"""Slots whose tags go when nothing stands in them."""
_HEADLINE_METAS = frozenset(
    "og:title twitter:title title dc.title dcterms.title hdl headline sailthru.title parsely-title fb_title".split()
)
_LEAD_METAS = frozenset("description og:description twitter:description dc.description sailthru.description".split())
_MARK = re.compile("\u27e6(\\d+)\u27e7")


@dataclass(frozen=True)
class FramePiece:
    """A piece of a frame, in the order of the page.

    Attributes
    ----------
    kind : str
        ``markup`` stays; ``headline`` and ``lead`` are replaced by the story's; ``slot`` takes its paragraphs;
        ``block`` is text of the frame that may be exchanged.
    html : str
        What stood there, without the tags around it.
    opening, closing : str
        Tags around a slot.
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
    """A page without its article.

    Attributes
    ----------
    site : str
        Its host, without ``www.``.
    name : str
        Different for each frame.
    pieces : tuple of FramePiece
        One after another they are the page.
    paragraphs : tuple of str
        The article that stood in it, without markup.
    """

    site: str
    name: str
    pieces: tuple[FramePiece, ...]
    paragraphs: tuple[str, ...]

    @property
    def blocks(self) -> list[int]:
        """Positions of the pieces that may be exchanged."""
        return [i for i, piece in enumerate(self.pieces) if piece.kind == "block"]

    def served(self) -> str:
        """Return the page as its site served it."""
        return "".join(piece.opening + piece.html + piece.closing for piece in self.pieces)

    def bare(self) -> str:
        """Return the page with nothing in its slots and no headline."""
        return "".join(piece.html for piece in self.pieces if piece.kind in ("markup", "block"))

    def with_blocks(self, blocks: dict[int, str]) -> Frame:
        """Return the frame with other contents of some blocks, by their positions."""
        pieces = tuple(replace(piece, html=blocks[i]) if i in blocks else piece for i, piece in enumerate(self.pieces))
        return replace(self, pieces=pieces)


class AnnotatedPage(NamedTuple):
    """A page and what people said of its article.

    Attributes
    ----------
    site, name : str
        As in `Frame`.
    html : str
        The page.
    headline : str
        The article's.
    text : str
        The article.
    """

    site: str
    name: str
    html: str
    headline: str
    text: str


class TextBlock(NamedTuple):
    """An element that holds text and no other element of a block's kind that does; or a whole slot that does."""

    node: LexborNode
    words: list[str]
    slot: bool


class Rejected(NamedTuple):
    """Why a page is no frame."""

    name: str
    reason: str


def frame(page: AnnotatedPage) -> Frame | Rejected:
    """Cut the article out of a page.

    A block is a slot where at least `SLOT_SHARE` of its 4-grams stand in the article's text as people marked it. A
    page serves as a frame if its article is English, the slots hold as much text as the article (`COVERED`), hardly
    any of it stands elsewhere (`LEFT_OVER`), and the rest has neither too few words nor too many (`FRAME_WORDS`).

    Parameters
    ----------
    page : AnnotatedPage
        With the article's text.

    Returns
    -------
    Frame or Rejected
    """
    article = words(page.text)
    if len(article) < 5 or sum(word in FREQUENT for word in article) < ENGLISH * len(article):
        return Rejected(page.name, "not English")
    tree = LexborHTMLParser(page.html)
    if tree.body is None:
        return Rejected(page.name, "no body")
    blocks = _scan(tree.body, grams(article, 4))[1]
    slots = [block for block in blocks if block.slot]
    covered = sum(len(block.words) for block in slots) / len(article)
    if not COVERED[0] <= covered <= COVERED[1]:
        return Rejected(page.name, "article not found in blocks")
    title = set(words(page.headline))
    headings = [block for block in blocks if not block.slot and _is_headline(block, title)]
    rest = [block for block in blocks if not block.slot and block not in headings]
    around = [word for block in rest for word in block.words]
    fives = grams(article, 5)
    if fives and len(fives & grams(around, 5)) >= LEFT_OVER * len(fives):
        return Rejected(page.name, "article elsewhere too")
    if not FRAME_WORDS[0] <= len(around) <= FRAME_WORDS[1]:
        return Rejected(page.name, "too few or too many words around")
    paragraphs = tuple(" ".join(visible(block.node.html or "").split()) for block in slots)
    return Frame(page.site, page.name, tuple(_cut(tree, page.headline, slots, headings, rest)), paragraphs)


def visible(html: str) -> str:
    """Return the visible text of a piece of a page, blocks parted by line ends."""
    body = LexborHTMLParser(html).body
    return "" if body is None else "".join(_texts(body))


def _texts(node: LexborNode) -> Iterator[str]:
    """Iterate over the text of an element in order, line ends where blocks part it."""
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
    """Return an element's text and the innermost blocks with text in it, itself if there are none below it.

    Where much of its text stands beside such blocks, the element as a whole is the slot if it is one.
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
    held = sum(len(block.words) for block in below)
    own = words(text)
    beside = len(own) - held
    whole = not below or (2 * beside >= len(own) and node.tag != "body" and _is_slot(own, known))
    return text, ([TextBlock(node, own, _is_slot(own, known))] if own else []) if whole else below


def _is_slot(tokens: Sequence[str], known: set[tuple[str, ...]]) -> bool:
    found = [gram in known for gram in zip(*(tokens[i:] for i in range(4)), strict=False)]
    return bool(found) and sum(found) >= SLOT_SHARE * len(found)


def _is_headline(block: TextBlock, title: set[str]) -> bool:
    own = set(block.words)
    heading = block.node.tag in ("h1", "h2", "h3") or block.node.css_first("h1, h2") is not None
    return heading and bool(title) and len(own & title) >= ALIKE * len(own | title)


def _cut(
    tree: LexborHTMLParser, headline: str, slots: list[TextBlock], headings: list[TextBlock], rest: list[TextBlock]
) -> Iterator[FramePiece]:
    """Iterate over the pieces of a page; its tree is used up."""
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
    """Put marks for headline and lead into title and metas."""
    for node in tree.css("head > title"):
        text = " ".join((node.text() or "").split())
        short = " ".join(headline.split())
        before, found, after = text.partition(short) if short else ("", "", "")
        if not found:  # the longest part is taken for the headline, the others for the site's name
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
