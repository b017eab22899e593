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
from spotsigs.text.markup import _MAX_DEPTH, has_more_attributes, nests_deeper, simplify
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


def depth(html: bytes) -> int:
    """Return how deep the parser's tree is."""
    node, level, deepest = LexborHTMLParser(html).root, 0, 0
    while node is not None:
        deepest = max(deepest, level)
        child = node.child
        if child is not None:
            node, level = child, level + 1
            continue
        while node is not None and node.next is None:
            node, level = node.parent, level - 1
        node = None if node is None else node.next
    return deepest


def tag(name: str, form: str) -> str:
    return form.format(name)


TAGS = st.builds(
    tag, st.sampled_from(NAMES), st.sampled_from(["<{}>", "</{}>", "<{}>", "</{}>", "<{}/>", "<{} a=1>", "x"])
)
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
    """What real pages leave open closes with what they lie in, so that nothing comes near the cap."""
    rows = "<tr><td><div><p>one<p>two<ul><li>a<li>b</ul></div>" * 2000
    page = (
        f"<div><form><table>{rows}</table></form><svg>{'<path/>' * 900}<g><path></g></svg></div><h1>end</h1>".encode()
    )
    assert b"<h1>end " in simplify(page)
    assert not nests_deeper(page, 20)


def test_main_text_refuses_a_tag_of_any_number_of_attributes():
    """The parser of text=main compares each attribute of a tag with all others."""
    page = b"<p>the page<p " + b" ".join(b"a%x" % k for k in range(3000)) + b">end"
    assert has_more_attributes(page, 2999)
    assert not has_more_attributes(page, 3000)
    assert not has_more_attributes(b"<path d='" + b"M 0 " * 5000 + b"'>", 2000)
    with pytest.raises(ValueError, match="a tag has more than 2,000 attributes, beyond what text=main reads"):
        MainText()(Document(id="x", content=page))
    assert visible_text(Document(id="x", content=page)).split() == ["the", "page", "end"]
