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
from spotsigs.text.markup import MAX_TABLES, parsing_cost, simplify
from spotsigs.text.size_limits import BUDGET_PAGE, page_size_limit
from spotsigs.text.visible import MainText, visible_text

DEEPEST = 5 * MAX_TABLES + 24  # a table has its body, a row and a cell
REPEATS = 2500

NAMES = """a address applet article b base blockquote body br button caption center col colgroup dd desc details div dl
    dt em fieldset font foo foreignobject form frameset g h1 h2 head hr html i iframe img input label li main marquee
    math menu mi mo ms mtext nobr noscript object ol optgroup option p param path pre rb rp rt rtc ruby search section
    select span summary svg table tbody td template textarea tfoot th thead title tr ul annotation-xml x-card""".split()


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


FORMS = ["<{}>", "</{}>", "<{}>", "</{}>", "<{}/>", "<{} a=1>", "x"]
TAGS = st.builds(str.format, st.sampled_from(FORMS), st.sampled_from(NAMES))
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
        "<form><div></form>",
        "<foo><div></foo>",
        "<div><object></div>",
        "<svg><desc><foo/>",
        "<svg><div/></svg>",
        "<li><dt>",
        "<optgroup><li>",
        "<div><select></div>",
        "<p><button></p>",
        "<li><ul></li>",
        "<div><table></div>",
        "<math><mi><div></math>",
        "<svg><foreignobject><div></svg>",
        "<div><template></div>",
        "<h1><marquee></h1>",
        "<math><annotation-xml><p></math>",
        "<svg><title><div></svg>",
        "<svg><caption>",
        "<svg><g><p></p><foo></g>",
        "<svg><button></button><caption>",
        "<frameset>",
        "<select><xmp></select><div>",
        "<div><svg><title></title></svg>",
        "<ruby><rt><div></ruby>",
    ],
)
def test_end_tags_close_nothing_beyond_a_scope(soup):
    assert depth(simplify(soup.encode() * 3000)) <= DEEPEST
    assert depth(simplify(soup.encode() * 3000, marked=True)) <= DEEPEST


@pytest.mark.parametrize(
    "begin",
    [
        "<svg><title>",
        "<svg><textarea>",
        "<select><xmp></select>",
        "<math><mi><title>",
        "<frameset><title>",
        "<frameset><textarea>",
        "<template>",
        "<table><tr><td><select><title>",
    ],
)
@pytest.mark.parametrize("repeated", ["<div>", "<frameset>", "<table><tr><td>", "<svg>", "<template>"])
def test_tags_in_what_may_be_raw_text_do_not_nest(begin, repeated):
    assert depth(simplify((begin + repeated * 5000).encode())) <= DEEPEST


def test_ordinary_pages_keep_their_tags():
    """Unclosed elements of real pages close with the elements that contain them, so that no page nears the limit."""
    rows = "<tr><td><div><p>one<p>two<ul><li>a<li>b</ul></div>" * 2000
    page = (
        f"<div><form><table>{rows}</table></form><svg>{'<path/>' * 900}<g><path></g></svg></div><h1>end</h1>".encode()
    )
    assert simplify(page).count(b"<td>") == 2000
    assert parsing_cost(page)[0] <= 20


@pytest.mark.parametrize(
    ("begin", "repeated", "end"),
    [
        ("<p>", "<b x=#>", "<p>a"),
        ("<p>", "<font color=#>", "</p>a"),
        ("", "<i x=#><div>", "</i></div>a"),
        ("<span><p>", "<code x=#>", "</span><span>a"),
    ],
)
@pytest.mark.parametrize("n", [100, 400])
def test_formats_that_are_opened_again_count(begin, repeated, end, n):
    page = (begin + "".join(repeated.replace("#", str(k)) for k in range(n)) + end * n).encode()
    again = parsing_cost(page)[1]
    assert again >= tree(page)[1] / 3 - 6 * page.count(b"<")
    assert again > n * n // 4


@pytest.mark.parametrize("nested", ["<div>", "<b>", "<x-card>", "<svg>", "<ul><li>", "<div><p>"])
def test_main_text_refuses_depth(nested):
    assert parsing_cost(nested.encode() * 3000)[0] >= 3000
    with pytest.raises(ValueError, match="its elements nest more than 2,000 deep, beyond what text=main reads"):
        MainText()(Document(id="x", content=nested.encode() * 3000))


def test_main_text_refuses_formats_without_end():
    page = b"<p>the page " + b"".join(b"<b x=%d>" % k for k in range(1900)) + b"<p>a" * 30_000
    with (
        page_size_limit(BUDGET_PAGE),
        pytest.raises(ValueError, match=r"^the page is larger than 8 MiB: 0\.1 MiB of text"),
    ):
        MainText()(Document(id="x", content=page))


def test_main_text_refuses_a_tag_of_any_number_of_attributes():
    """The parser of text=main compares each attribute of a tag with all others."""
    page = b"<p>the page<p " + b" ".join(b"a%x" % k for k in range(3000)) + b">end"
    assert parsing_cost(page)[2] == 3000
    assert parsing_cost(page.removesuffix(b">end"))[2] == 3000
    assert parsing_cost(b"<path d='" + b"M 0 " * 5000 + b"'>")[2] == 1
    with pytest.raises(ValueError, match="a tag has more than 2,000 attributes, beyond what text=main reads"):
        MainText()(Document(id="x", content=page))
    assert visible_text(Document(id="x", content=page)).split() == ["the", "page", "end"]
