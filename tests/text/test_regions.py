"""Links and blocks marked in a page's text, and the densest region of one page."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import extract as naive_extract
from naive import templates as naive_templates
from strategies import examples

from spotsigs.records import Document
from spotsigs.signatures.main_content import LINK, LINKED, TEXT, MainContent, heaviest, outline_of
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.markup import BLOCK_MARK, LINK_END_MARK, LINK_MARK
from spotsigs.text.tokens import tokenize, tokenize_marked, unmarked
from spotsigs.text.visible import VisibleText

READ = VisibleText()
PIECES = """<p> </p> <a href=x> <a href='y'>the </a> <a name=z> <A HREF=q>was <b> </b> <div> <li> <br> <td> <table>
    </table> <tr> <nav> the a is word another T he &amp; <!-- --> <script>x</script> \x1e \x1f \x0c"""
SOUP = [*PIECES.split(), " ", "\n"]


def page(html: str) -> Document:
    return Document(id="", content=html)


def linked(html: str) -> list[tuple[str, int]]:
    tokens = tokenize_marked(READ.marked(page(html)))
    return list(zip(tokens.words, tokens.links.tolist(), strict=True))


# --- marks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>one <a href=x>two three</a> four", "one:0 two:1 three:1 four:0"),
        ("<a href=x>one</a><a href=y>two</a>", "onetwo:1"),  # one word, and its first character is in the first
        ("<a href=x>one</a> <a href=y>two</a>", "one:1 two:2"),
        ("<a href=x>one <a href=y>two</a> three", "one:1 two:2 three:0"),
        ("<a href=x>one<p>two</a> three", "one:1 two:2 three:0"),  # a block begins another link
        ("<a name=x>one</a> two", "one:0 two:0"),  # not a link but an anchor
        ("<a name=x href>one</a> <A data-href=1>two</A>", "one:1 two:0"),
        ("<a href=x>o<b>n</b>e</a> two", "one:1 two:0"),
        ("one</a> two", "one:0 two:0"),
        ("<a href=x><img src=y></a>one", "one:0"),
        ("\x1eone\x1f two", "one:0 two:0"),  # what the page has of the marks itself
        ("<a href=x>漢字 a</a>漢", "漢字:1 a:1 漢:0"),
    ],
)
def test_links_of_tokens(html, expected):
    numbers: dict[int, int] = {0: 0}
    renumbered = [f"{word}:{numbers.setdefault(link, len(numbers))}" for word, link in linked(html)]
    assert renumbered == expected.split()


@examples(100)
@given(st.lists(st.sampled_from(SOUP), max_size=25).map("".join))
def test_marks_change_no_word_of_any_tag_soup(html):
    text, marked = READ(page(html)), READ.marked(page(html))
    assert tokenize_marked(marked).words == tokenize(text).words


@examples(100)
@given(st.text(st.sampled_from("abZéÉ漢字かไก\u0e38\u0e48e\u0301\u200b™ﬁ½ｶﾞЖ 'İΣσ.\x0c\x1e\x1f"), max_size=30))
def test_links_of_any_marked_text(text):
    tokens = tokenize_marked(text)
    assert tokens.links.tolist() == naive_templates.links(text)
    assert tokens.words == naive_extract.tokens(text.replace(LINK_MARK, "").replace(LINK_END_MARK, ""))
    assert tokens.words == tokenize(unmarked(text)).words
    assert tokens.links.dtype == np.int32


def test_plain_text_has_no_links_whatever_marks_it_contains():
    document = Document(id="", content="one \x1etwo\x1f three", media_type="text/plain")
    assert not tokenize_marked(READ.marked(document)).links.any()
    assert BLOCK_MARK.isspace()


# --- regions ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-3, 3), max_size=12))
def test_heaviest_segment(gains):
    assert heaviest(np.array(gains, np.int64)) == naive_templates.heaviest(gains)


def weight(chains: list[list[int]], links: list[int]) -> int:
    """The weight of a link: the signatures of four tokens of running text."""
    return max(1, 4 * sum(links[chain[0]] == 0 for chain in chains) // max(1, links.count(0)))


MAIN = MainContent(signature=SpotSignatures(d=1, c=2))


def densest(html: str, scheme: MainContent) -> list[str]:
    """The region word by word: score tokens, take the heaviest segment, keep what begins inside."""
    tokens = tokenize_marked(READ.marked(page(html)))
    words, links = tokens.words, tokens.links.tolist()
    chains = scheme.signature.chains(tokens)
    gains = [0] * len(words)
    for chain in chains:
        gains[chain[0]] += links[chain[0]] == 0
    for i, link in enumerate(links):
        gains[i] -= weight(chains, links) * (link != 0 and (i == 0 or links[i - 1] != link))
    start, stop = naive_templates.heaviest(gains)
    return [":".join(words[k] for k in chain) for chain in chains if start <= chain[0] < stop]


WORDS = ["the ", "is ", "was ", "cat ", "dog ", "bird ", "fish ", "<a href=x>", "</a>", "<p>", "<a href=y>sun</a> "]


@given(st.lists(st.sampled_from(WORDS), max_size=30).map("".join))
def test_densest_region_of_any_page(html):
    scheme = MAIN
    tokens = tokenize_marked(READ.marked(page(html)))
    expected = densest(html, scheme)
    assert scheme(tokens).tolist() == naive_extract.hashed(expected)
    assert [":".join(tokens.words[k] for k in chain) for chain in scheme.chains(tokens)] == expected


MENU = "".join(f"<a href=/{k}>the section of {k}</a> " for k in range(9))
ARTICLE = "The council has approved the plan for a bridge that will be built by the river. " * 3


@pytest.mark.parametrize("text", ["", "word", ARTICLE, "the the the"])
def test_without_links_everything_is_inside(text):
    scheme, alone = MAIN, SpotSignatures(d=1, c=2)
    for tokens in (tokenize(text), tokenize_marked(text)):
        assert scheme(tokens).tolist() == alone(tokenize(text)).tolist()


def test_a_page_of_links_keeps_all():
    tokens = tokenize_marked(READ.marked(page(MENU)))
    assert MAIN(tokens).tolist() == SpotSignatures(d=1, c=2)(tokens).tolist()


# --- outlines ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(WORDS), max_size=30).map("".join))
def test_outline_of_any_page(html):
    scheme = SpotSignatures(d=1, c=2)
    tokens = tokenize_marked(READ.marked(page(html)))
    words, links = tokens.words, tokens.links.tolist()
    expected = []
    chains = {chain[0]: ":".join(words[k] for k in chain) for chain in scheme.chains(tokens)}
    for i, link in enumerate(links):
        if link and (i == 0 or links[i - 1] != link):
            stop = next((k for k in range(i, len(links)) if links[k] != link), len(links))
            expected.append((":".join(words[i:stop]), LINK + weight(list(scheme.chains(tokens)), links) - 1))
    at = [i for i, link in enumerate(links) if link and (i == 0 or links[i - 1] != link)]
    entries = [(place, 0, entry) for place, entry in zip(at, expected, strict=True)]
    entries += [(i, 1, (spot, LINKED if links[i] else TEXT)) for i, spot in chains.items()]
    ordered = [entry for _, _, entry in sorted(entries)]
    hashes, kinds = outline_of(scheme, tokens)
    assert hashes.tolist() == naive_extract.hashed([text for text, _ in ordered])
    assert kinds.tolist() == [kind for _, kind in ordered]
