"""No page nests deeper for the parser than the pass before it allows, so that any page takes time in proportion.

Depth is counted, not time: the parser's time grows with the size of a page and the depth of its open elements.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser
from strategies import examples

from spotsigs.records import Document
from spotsigs.text.markup import _MAX_DEPTH, parsing_cost, simplify
from spotsigs.text.size_limits import BUDGET_PAGE, pages_up_to
from spotsigs.text.visible import MainText, visible_text

DEEPEST = 4 * _MAX_DEPTH + 24  # a table has its body, a row and a cell
REPEATS = 2500

# SVG and MathML have rules of their own, of which only some cases are tested below.
NAMES = """a address applet article b base blockquote body br button caption center col colgroup dd desc details div dl
    dt em fieldset font foo foreignobject form frameset g h1 h2 head hr html i iframe img input label li main marquee
    math menu mi mo ms mtext nobr noscript object ol optgroup option p param path pre rb rp rt rtc ruby search section
    select span summary svg table tbody td template textarea tfoot th thead title tr ul annotation-xml x-card""".split()


OPEN = [
    "<svg><title>",
    "<svg><textarea>",
    "<select><xmp></select>",
    "<math><mi><title>",
    "<frameset><title>",
    "<frameset><textarea>",
]  # what begins raw text, or does not


def tree(html: bytes) -> tuple[int, int]:
    """Return how deep the parser's tree is, and how many nodes it has."""
    node, level, deepest, nodes = LexborHTMLParser(html).root, 0, 0, 0
    while node is not None:
        deepest, nodes = max(deepest, level), nodes + 1
        child = node.child
        if child is not None:
            node, level = child, level + 1
            continue
        while node is not None and node.next is None:
            node, level = node.parent, level - 1
        node = None if node is None else node.next
    return deepest, nodes


def depth(html: bytes) -> int:
    return tree(html)[0]


def tag(name: str, form: str) -> str:
    return form.format(name)


TAGS = st.builds(
    tag, st.sampled_from(NAMES), st.sampled_from(["<{}>", "</{}>", "<{}>", "</{}>", "<{}/>", "<{} a=1>", "x"])
)
RAW = st.lists(
    TAGS
    | st.builds(
        tag,
        st.sampled_from("b i u font code nobr a p div svg title style span".split()),
        st.sampled_from(["<{}>", "</{}>", "<{} x=#>", "<{} x=#>", "<{} color=#>", "a", "<![CDATA[", "]]>"]),
    ),
    min_size=1,
    max_size=9,
).map("".join)
SOUPS = st.lists(TAGS, min_size=1, max_size=7).map("".join)


def test_depth_is_that_of_the_tree():
    assert depth(b"<div>" * 40) - depth(b"<div>" * 10) == 30


@examples(100)
@given(SOUPS, SOUPS)
def test_no_soup_nests_deeper_than_the_cap(first, soup):
    assert depth(simplify((first + soup * REPEATS).encode())) <= DEEPEST


@pytest.mark.parametrize(
    "soup",
    [
        "<form><div></form>", "<foo><div></foo>", "<div><object></div>", "<svg><desc><foo/>", "<svg><div/></svg>",
        "<li><dt>", "<optgroup><li>", "<div><select></div>", "<p><button></p>", "<li><ul></li>", "<div><table></div>",
        "<math><mi><div></math>", "<svg><foreignobject><div></svg>", "<div><template></div>", "<h1><marquee></h1>",
        "<math><annotation-xml><p></math>", "<svg><title><div></svg>",
        "<svg><caption>", "<svg><g><p></p><foo></g>", "<svg><button></button><caption>",
        "<frameset>", "<select><xmp></select><div>", "<div><svg><title></title></svg>", "<ruby><rt><div></ruby>",
    ],
)  # fmt: skip
def test_end_tags_close_nothing_beyond_a_scope(soup):
    assert depth(simplify(soup.encode() * 3000)) <= DEEPEST
    assert depth(simplify(soup.encode() * 3000, marked=True)) <= DEEPEST


@pytest.mark.parametrize("begin", OPEN)
def test_raw_text_holds_no_tags(begin):
    for tag in (b"<div>", b"<frameset>"):
        assert depth(simplify(begin.encode() + tag * 5000)) <= DEEPEST


def test_ordinary_pages_keep_their_tags():
    """What real pages leave open closes with the elements around them, so that no page comes near the limit."""
    rows = "<tr><td><div><p>one<p>two<ul><li>a<li>b</ul></div>" * 2000
    page = (
        f"<div><form><table>{rows}</table></form><svg>{'<path/>' * 900}<g><path></g></svg></div><h1>end</h1>".encode()
    )
    assert b"<h1>end " in simplify(page)
    assert parsing_cost(page, 2000)[0] <= 20


@examples(100)
@given(RAW, RAW, st.sampled_from([30, 150]))
def test_no_page_makes_a_larger_tree_than_its_cost_says(first, soup, times):
    """The parser of text=main gets a page as it is; a tag makes an element, its text and what is opened again."""
    page = "".join(part.replace("#", str(k)) for k, part in enumerate([first, *[soup] * times])).encode()
    deepest, again, _ = parsing_cost(page, 1000)
    found, nodes = tree(page)
    assert deepest > 1000 or found <= 4 * deepest + 24
    assert deepest > 1000 or nodes <= 3 * again + 6 * page.count(b"<") + 24


@pytest.mark.parametrize(
    ("begin", "repeated", "end"),
    [
        ("<p>", "<b x=#>", "<p>a"), ("<p>", "<font color=#>", "</p>a"), ("", "<i x=#><div>", "</i></div>a"),
        ("<p>", "<b x=#>", "<svg><desc></b></svg><p>a"), ("<p>", "<b x=#>", "<object></b></object><p>a"),
        ("<p>", "<b x=#>", "<select></b></select><p>a"), ("<p>", "<b x=#>", "<textarea></b></textarea><p>a"),
        ("<span><p>", "<code x=#>", "</span><span>a"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("n", [100, 400])
def test_formats_that_are_opened_again_count(begin, repeated, end, n):
    page = (begin + "".join(repeated.replace("#", str(k)) for k in range(n)) + end * n).encode()
    again = parsing_cost(page, 2000)[1]
    assert again >= tree(page)[1] / 3 - 6 * page.count(b"<")
    assert again > n * n // 4


@pytest.mark.parametrize(
    "hidden",
    ["<svg><title>", "<svg><style>", "<noscript>", "<svg><textarea>", "<select><style></select>", "<span>",
     "<svg><![CDATA[>", "<svg><g><p></p><style/>", "<svg><style><style>", "<svg><a>", "<svg><g><b></b><foo>"],
)  # fmt: skip
def test_no_tag_hides_from_the_depth_of_a_page_for_main_text(hidden):
    page = (hidden + "<div>") * 1500 + "</p>" * 1500
    assert parsing_cost(page.encode(), 1000)[0] > 1000 or depth(page.encode()) < 1000
    page = hidden + "<div>" * 1500
    assert parsing_cost(page.encode(), 1000)[0] > 1000 or depth(page.encode()) < 1000
    page = "<div>" * 900 + hidden + "</div>" * 900 + ("<svg></svg></title></style>]]>" + "<div>" * 900)
    assert parsing_cost(page.encode(), 1000)[0] > 1000 or depth(page.encode()) < 1000


def test_main_text_refuses_formats_without_end():
    page = b"<p>the page " + b"".join(b"<b x=%d>" % k for k in range(1900)) + b"<p>a" * 30_000
    with pages_up_to(BUDGET_PAGE), pytest.raises(ValueError, match=r"^the page is larger than 8 MiB: 0\.1 MiB of text"):
        MainText()(Document(id="x", content=page))


def test_main_text_refuses_a_tag_of_any_number_of_attributes():
    """The parser of text=main compares each attribute of a tag with all others."""
    page = b"<p>the page<p " + b" ".join(b"a%x" % k for k in range(3000)) + b">end"
    assert parsing_cost(page, 2000)[2] == 3000
    assert parsing_cost(page.removesuffix(b">end"), 2000)[2] == 3000
    assert parsing_cost(b"<path d='" + b"M 0 " * 5000 + b"'>", 2000)[2] == 1
    with pytest.raises(ValueError, match="a tag has more than 2,000 attributes, beyond what text=main reads"):
        MainText()(Document(id="x", content=page))
    assert visible_text(Document(id="x", content=page)).split() == ["the", "page", "end"]
