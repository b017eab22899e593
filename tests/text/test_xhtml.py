"""XHTML: elements closed in their start tag, CDATA sections, and pages that are declared as XHTML but are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import extract as naive
from strategies import examples

from spotsigs.formats.http_response import document_of, parse_response
from spotsigs.records import Document
from spotsigs.text.markup import simplify, simplify_xhtml
from spotsigs.text.visible import MainText, Trafilatura, visible_text
from spotsigs.text.xhtml import CDATA, as_html, is_xhtml

XML, SPACE = '<?xml version="1.0" encoding="utf-8"?>', 'xmlns="http://www.w3.org/1999/xhtml"'
DOCTYPE = '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "http://www.w3.org/TR/xhtml1/DTD/x.dtd">'
TEXT = "The ferry to the islands was cancelled because the harbour had frozen over in the night."
NAMES = """a b button div em form frameset h1 iframe i math noembed noframes noscript object ol option p plaintext pre
    script section select span style svg table td template textarea title tr ul video x-card xmp""".split()


def words(content: str | bytes, media_type: str = "text/html") -> list[str]:
    return visible_text(Document(id="", content=content, media_type=media_type)).split()


def body(content: str, begin: str = XML, head: str = "") -> str:
    return f"{begin}<html><head>{head}</head><body>{content}</body></html>"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("begin", [XML, DOCTYPE, f"\n {XML}{DOCTYPE}", "<!DOCTYPE html>"])
def test_an_element_closed_in_its_start_tag_hides_nothing(name, begin):
    media_type = "application/xhtml+xml" if begin == "<!DOCTYPE html>" else "text/html"
    for tag in (f"<{name}/>", f"<{name} src='a/>' class=\"b\" />", f"<{name}\n/>" * 3, f"<{name.upper()}/>"):
        html = body(f"<p>{TEXT}</p>{tag}<p>{TEXT}</p>{tag}<div>{TEXT}</div>", begin)
        assert words(html, media_type) == 3 * TEXT.split()
        assert words(body(f"<p>{TEXT}</p>", begin, head=tag), media_type) == TEXT.split()


@pytest.mark.parametrize("extract", [MainText(), Trafilatura()])
def test_extractors_read_xhtml(extract):
    paragraphs = "".join(f"<p>{TEXT} That was the {k}. time.</p>" for k in range(9))
    html = body(f"<script src='x'/><article><h1>News</h1>{paragraphs}</article>", head="<title/>")
    assert extract(Document(id="", content=html)).count(TEXT) == 9


def test_sections_are_text():
    assert words(body("<p>a <![CDATA[<b>1 & 2 &amp; 3</b> ]] > ]]>b</p>")) == "a <b>1 & 2 &amp; 3</b> ]] > b".split()
    assert words(body("a<script>//<![CDATA[\n if (x < y && y) { } //]]></script>b")) == ["a", "b"]
    assert words(body("<![CDATA[]]>a <![CDATA[b <i>c</i>")) == ["a", "b", "c"]


@pytest.mark.parametrize("broken", ["<title>", "<script src=x>", "<!-- note ", "<iframe src=x>", "<textarea>", "<xmp>"])
def test_what_has_no_end_hides_nothing(broken):
    for begin in (XML, DOCTYPE):
        assert words(body(f"<p>{TEXT}</p>{broken}<p>{TEXT}</p>", begin))[-15:] == words(body(TEXT, begin))[-15:]
        assert set(TEXT.split()) <= set(words(f"{begin}<html><head>{broken}</head><body><p>{TEXT}"))


def test_only_declared_pages_are_xhtml():
    assert words("<p>a<script/>b</p>") == ["a"]  # as browsers read HTML
    assert words(body("a<script/>b", f"<!DOCTYPE html><html {SPACE} lang='en'>")) == ["a", "b"]
    assert not is_xhtml(b"<p>about <?xml version='1.0'?> and xhtml", "text/html")
    assert not is_xhtml(b" " * 5000 + DOCTYPE.encode(), "text/html")
    assert is_xhtml(b"<p>", "Application/XHTML+XML; charset=utf-8")
    assert is_xhtml(DOCTYPE.upper().encode(), "text/html")


def test_readers_give_the_media_type():
    block = b"HTTP/1.1 200 OK\r\nContent-Type: application/xhtml+xml; charset=utf-8\r\n\r\n<p>a<script/>b</p>"
    document = document_of("x", parse_response(block), None, "")
    assert document.media_type == "application/xhtml+xml"
    assert visible_text(document).split() == ["a", "b"]


HIDDEN = ["iframe", "noembed", "noframes", "noscript", "script", "style", "template"]
LEAVES = st.sampled_from(["the", "T ", " ", "é", "&lt;b&gt;", "&amp;", "<![CDATA[<p> & ]]>", "<!-- x -->", "<br/>"])


def elements(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Draw elements that may contain each other in HTML, too."""
    full = st.tuples(st.sampled_from(["div", "span", "section", "i"]), st.lists(children, max_size=4).map("".join))
    hidden = st.tuples(st.sampled_from(HIDDEN), st.just("hidden words"))
    empty = st.sampled_from([name for name in NAMES if name not in ("frameset", "plaintext")])
    return st.one_of(
        full.map(lambda drawn: "<{0} class='a>'>{1}</{0}>".format(*drawn)),
        hidden.map(lambda drawn: "<{0}>{1}</{0}>".format(*drawn)),
        empty.map(lambda name: f"<{name} id='/>'/>"),
    )


@examples(200)
@given(st.recursive(LEAVES, elements, max_leaves=30))
def test_well_formed_pages_have_the_text_that_a_parser_of_xml_finds(content):
    html = body(content)
    assert "".join(words(html)) == "".join(naive.xhtml_text(html).split())


SOUP = """<p> </p> <script/> <script> </script> <title> </title> <title/> <!-- --> <!--> --!> <![CDATA[ ]]> <a/> < > " '
    / = <b <textarea> <textarea/> </textarea> word & <td/> <select/> <template/> <plaintext/> <x-y/> \0 é""".split()


@examples(200)
@given(st.lists(st.sampled_from([*SOUP, " "]), max_size=20).map("".join))
def test_any_soup_is_converted(soup):
    html = as_html(soup.encode())
    assert as_html(html) == html  # nothing remains to convert
    visible_text(Document(id="", content=XML + soup))


ALIKE = [*"<p> <br/> <br a> <img a='/>'> <svg> </svg> <select> <!-- --> <!-- <title>t</title> <p".split(), "x&am"]


@examples(600)
@given(st.lists(st.sampled_from([*ALIKE, *ALIKE, *SOUP]), max_size=12).map(" ".join), st.booleans())
def test_a_page_is_converted_unless_that_changes_nothing(soup, marked):
    content = soup.encode()
    directly = None if CDATA in content else simplify_xhtml(content, marked=marked)
    if directly is not None:
        assert as_html(content) == content
        assert directly == simplify(content, marked=marked)


@pytest.mark.parametrize(
    "page", ["<p>a<br/>b<img src='x' />", "<script>a</script><p>b<!-- c -->d", "<title>a</title>b &amp; c<p/ >"]
)
def test_what_html_reads_alike_is_not_converted(page):
    assert simplify_xhtml(page.encode()) == simplify(page.encode())


@pytest.mark.parametrize(
    "page", ["<p/>a", "a<script/>b", "<script>a", "<title>a", "a<!-- b", "<svg><title>a</title></svg>", "<p a='"]
)
def test_what_html_may_read_otherwise_is_converted(page):
    assert simplify_xhtml(page.encode()) is None


@pytest.mark.compiled
@pytest.mark.parametrize(
    "soup", [b"<iframe>", b"<!--", b"<![CDATA[", b"<title><textarea>", b"<x/>", b"<script><!--<script>", b"<p a='"]
)
def test_conversion_takes_linear_time(soup):
    assert len(as_html(soup * (4_000_000 // len(soup)))) < 20_000_000
