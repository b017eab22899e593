import importlib.util

import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import extract as naive
from strategies import examples

from spotsigs.errors import InputError
from spotsigs.records import Document
from spotsigs.text.charset import to_utf8
from spotsigs.text.markup import simplify
from spotsigs.text.visible import MainText, Trafilatura, VisibleText, visible_text


def visible(content, **kwargs):
    return visible_text(Document(id="", content=content, **kwargs))


@pytest.mark.parametrize(
    ("html", "words"),
    [
        ("<span>T</span>he <b>c</b>a<i>t</i>", "The cat"),
        ("<SPAN CLASS='a>b'>T</SPAN>he", "The"),
        ("a<p>b<div>c</div>d", "a b c d"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><th>c<td>d</table>", "a b c d"),
        ("a<br>b<br/>c<hr>d<img src=x alt=y>e", "a b c d e"),
        ("<ul><li>a<li>b</ul><dl><dt>c<dd>d</dl>", "a b c d"),
        ("x<custom-card>y</custom-card>z<wbr>w", "x y zw"),
        ("H<sub>2</sub>O item<!-- -->s", "H2O items"),
        ("co&shy;op AT&amp;T caf&eacute; &#x6f;k a&nbsp;b &lt;b&gt;", "coop AT&T café ok a b <b>"),
        ("AT&<b>amp;</b>T", "AT&amp;T"),
        ("1 <<b>2</b>", "1 < 2"),
        ("a<script>b</script>c<style>d</style>e<template>f</template>g<noscript>h</noscript>i", "a c e g i"),
        ("a<script><!-- <script>b</script> c --></script>d", "a d"),
        ("a<!-- <script> -->b<!--> c <!-->d", "ab c d"),
        ("<svg><style/><title/><path d='x'/></svg>a<iframe>b</iframe>", "a"),
        ("<p title='<b>x' data-x=\"a>b\">a</p", "a"),
        ("<textarea><b>a</b></textarea>", "<b>a</b>"),
        ("<head><title>t</title></head>a", "a"),
        ("a<script>never closed", "a"),
        ("a<!-- never closed", "a"),
        ("a<p never closed", "a"),
        ("<html><frameset><frame src=x><noframes>a</noframes></frameset></html>", ""),
        ("x<x-a><template shadowrootmode=open>a<b>b</b></template>c</x-a>d", "x ab c d"),
        (
            "<TEMPLATE id='>' ShadowRootMode='closed'><p>a<template><p>b</template>c</template><template>d</template>e",
            "a c e",
        ),
        ("<template><template shadowrootmode=open>a</template>b</template>c", "c"),
        ("<template shadowroot=open><template shadowrootmode=open>a</template>b</template>c", "a b c"),
        ("<template title=shadowroot>a</template>b<template/shadowrootmode=open>c", "b c"),
        ("", ""),
        ("a & b < c", "a & b < c"),
        ("<div>a</section>b</b>c</script>d", "a bc d"),
    ],
)
def test_visible_text(html, words):
    assert visible(html).split() == words.split()
    assert visible(html.encode()).split() == words.split()


SOUP = """<p> </p> <div> </div> <b> </b> <span class="a>b"> </span> <a href='x"y'> </a> <!-- --> <!--> <!---> --!>
    <!--x-- <script> </script> <script><!-- <style> </style> <textarea> </textarea> <table> <tr> <td> </td> </table>
    <br> <br/> <ul> <li> word é &amp; &eacute; &lt;b&gt; < > " ' = / - ! <! <? <x </ </> <h1 <a <img alt="<b>"> <i/>
    <noscript> </noscript> <template> </template> <xmp> </xmp> </p <B> <DIV> </SCRIPT> </script/> <p/x=1> <a b=c/>
    <button> </button> <form> <iframe> </iframe> <option> <nobr> <font color=red> \0 \xad ]]> <!--<script> <wbr> </h2>
    <hr> & &am p; &#6 &not in; x 1"""
PIECES = [*SOUP.split(), " ", "\n", "a"]


@examples(200)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_no_character_is_lost_or_added_in_any_tag_soup(soup):
    html = "<body>" + soup
    assert "".join(visible(html).split()) == "".join(naive.visible_text(html).split())


def elements(children):
    name = st.sampled_from(["p", "div", "b", "span", "td", "li", "a", "x-y", "script", "h1", "code", "section"])

    def element(drawn):
        name, content = drawn[0], "".join(drawn[1])
        if name in ("li", "h1", "script"):  # one within another would end it, and its end tag would close no element
            content = content.replace(name, "b")
        return f"<{name} a='>'>{content}</{name}>"

    return st.tuples(name, st.lists(children, max_size=4)).map(element)


@examples(100)
@given(
    st.recursive(st.sampled_from(["the", "T", " ", "é", "1", "<br>", "<!-- x -->", "&amp;"]), elements, max_leaves=30)
)
def test_words_split_where_elements_do(html):
    html = "<div>" + html.replace("<td", "<table><tr><td").replace("</td>", "</td></tr></table>")
    assert naive.tokens(visible(html)) == naive.tokens(naive.visible_text(html))


@pytest.mark.compiled
@pytest.mark.parametrize(
    "html",
    [
        b"<div>" * 1_000_000 + b"x" + b"</div>" * 1_000_000,
        b"<b><i>" * 500_000 + b"x",
        b"<i></b>" * 300_000 + b"x",
        b"".join(b"<p><font color=%d>" % i for i in range(40_000)) + b"x",
        b"<table><tr><td>" * 100_000 + b"x",
        b"<svg>" * 300_000 + b"x",
    ],
)
def test_many_tags_take_linear_time(html):
    assert visible(html).split() == ["x"]


@pytest.mark.compiled
def test_many_attributes_or_one_huge_token():
    assert visible(b"a<p " + b"".join(b"a%d " % i for i in range(300_000)) + b">b").split() == ["a", "b"]
    assert visible(b"a<p " + b"".join(b"a%d " % i for i in range(300_000))).split() == ["a"]
    assert len(visible(b"a" * 50_000_000)) == 50_000_000


def test_simplified_pages_keep_only_what_the_parser_needs():
    page = b"<!DOCTYPE html><p class=a>one<b>t</b>wo<script>x</script> three<br/>four<table><td>x"
    assert simplify(page) == b"<p>onetwo  three <br>four <table><td>x"


GERMAN, RUSSIAN, JAPANESE = "Größe über Flüssen möchte", "Привет, это обычный русский текст", "日本語の文字コードを判定"


@pytest.mark.parametrize(
    ("text", "codec", "declared"),
    [
        *((GERMAN, "utf-8", declared) for declared in (None, "iso-8859-1", "gbk", "utf-16", "nonsense")),
        *((GERMAN, "cp1252", declared) for declared in ("ISO-8859-1", '"latin1" ', "utf-8", None)),
        (GERMAN, "utf-8-sig", None),
        (GERMAN, "utf-32", None),
        (RUSSIAN, "cp1251", None),
        (RUSSIAN, "koi8-r", None),
        (RUSSIAN, "koi8-r", "koi8-r"),
        (JAPANESE, "cp932", "shift_jis"),
        (JAPANESE, "euc-jp", None),
        (JAPANESE, "iso2022_jp", None),
        (JAPANESE, "iso2022_jp", "utf-8"),
        (JAPANESE, "gb18030", "gb2312"),
    ],
)
def test_encodings(text, codec, declared):
    assert to_utf8(text.encode(codec), declared).decode() == text


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("declared", [None, "utf-16", "iso-8859-1", "utf-8"])
def test_utf_16_with_and_without_byte_order_mark(codec, declared):
    for text in (f"<p>{GERMAN}</p>", f"<p>{JAPANESE}</p>", "<p>ASCII alone, cut short</p>"):
        assert to_utf8(text.encode(codec), declared).decode() == text
        assert to_utf8(text.encode(codec)[:-1], declared).decode() == text[:-1] + "\ufffd"


@pytest.mark.parametrize(
    "head",
    [
        "<meta charset=windows-1251>",
        "<META http-equiv='Content-Type' content='text/html; charset=Windows-1251'>",
        '<?xml version="1.0" encoding="windows-1251"?>',
        '<meta content="text/html;charset=windows-1251" http-equiv=content-type>',
    ],
)
def test_encodings_declared_in_the_page(head):
    assert to_utf8((head + "Да").encode("cp1251")).decode().endswith("Да")
    assert to_utf8((head + "Größe").encode()).decode().endswith("Größe")
    assert to_utf8((head + "Größe").encode("cp1252"), "windows-1252").decode().endswith("Größe")


KOREAN = "시의회는 연말까지 건설될 새 다리 계획을 승인했다. 주민들은 이 결정을 오랫동안 기다려 왔다."


@pytest.mark.parametrize("late", ["", f"<!-- {'x' * 6000} -->", f"<script>{'y' * 9000}</script>"])
@pytest.mark.parametrize(
    ("text", "codec", "label"),
    [(KOREAN, "euc-kr", "euc-kr"), (RUSSIAN, "koi8-r", "KOI8-R"), (GERMAN, "cp1252", "latin1")],
)
def test_late_declarations_and_korean_without_one(text, codec, label, late):
    page = f"{late}<p>{text}</p>".encode(codec)
    assert text in to_utf8(f"{late}<meta charset={label}><p>{text}".encode(codec)).decode()
    assert codec != "euc-kr" or to_utf8(page).decode().endswith(f"<p>{text}</p>")


@pytest.mark.parametrize(
    "before",
    [
        "<!-- <meta charset=koi8-r> -->",
        "<script>s = '<meta charset=koi8-r>'</script>",
        "<title><meta charset=koi8-r></title>",
        "<meta name=description content='write charset=koi8-r'>",
        "<meta data-charset=koi8-r>",
        "<meta http-equiv=refresh content='0; charset=koi8-r'>",
        "<STYLE><meta charset=koi8-r></STYLE>",
    ],
)
def test_only_a_declaration_is_one(before):
    page = f"{before}<meta charset=windows-1251><p>{RUSSIAN}</p>"
    assert to_utf8(page.encode("cp1251")).decode() == page


@pytest.mark.parametrize("control", ["\x1b[0m", "\0", "\x1b$B", "\x1b\0"])
def test_valid_utf_8_has_precedence_whatever_control_characters_it_has(control):
    for text in (GERMAN, RUSSIAN, KOREAN):
        page = f"<p>{control} {text * 9}</p>"
        assert to_utf8(page.encode(), "iso-8859-1").decode() == page


@pytest.mark.compiled
@pytest.mark.parametrize("soup", [b"<meta ", b"<!--", b"<script>", b"<script></script>", b"<meta x='", b"<title></"])
def test_declarations_are_searched_in_linear_time(soup):
    to_utf8(b"\xff" + soup * (2_000_000 // len(soup)))


def test_a_declared_encoding_is_read_despite_a_few_invalid_bytes():
    text = to_utf8((GERMAN * 3).encode() + b"\xff x", "utf-8").decode()
    assert text == GERMAN * 3 + "\ufffd x"
    text = to_utf8(GERMAN.encode("cp1252") + b" \x81 " + RUSSIAN.encode("cp1252", "replace"), "iso-8859-1").decode()
    assert text.startswith(GERMAN + " \ufffd ")


@examples(100)
@given(
    st.binary(max_size=60), st.sampled_from([None, "", "utf-8", "utf-16", "gbk", "iso-2022-jp", "x\0", "rot13", "idna"])
)
def test_any_bytes_under_any_declaration(content, declared):
    to_utf8(content, declared).decode()
    visible(content, charset=declared)


def test_plain_text_is_not_parsed():
    assert visible("a <b> &amp; c\xad\xadd", media_type="text/plain") == "a <b> &amp; cd"
    assert visible(b"caf\xe9 <p>", media_type="text/plain; charset=x", charset="latin1") == "café <p>"
    assert visible("a\ud800b", media_type="text/plain") == "a?b"
    assert visible("a\ud800b") == "a?b"


ARTICLE = "The committee approved a plan that will change the way the city pays for its schools. " * 8
PAGE = f"<html><body><nav><a href=/>Home</a></nav><article><h1>News</h1><p>{ARTICLE}</p></article></body></html>"


@pytest.mark.parametrize("extract", [MainText(), Trafilatura()])
def test_main_text(extract):
    for content in (PAGE, PAGE.encode("utf-16")):
        text = extract(Document(id="", content=content))
        assert ARTICLE.strip() in text
        assert "Home" not in text
    assert extract(Document(id="", content="<p>x", media_type="text/plain")) == "<p>x"
    assert extract(Document(id="", content=b"")) == ""
    assert VisibleText()(Document(id="", content=PAGE)) == visible(PAGE)


def test_trafilatura_does_not_complain_of_a_page_without_text(caplog):
    pytest.importorskip("trafilatura")
    page = Document(id="x", content=b"<html><body></body></html>", media_type="text/html")
    assert Trafilatura()(page) == ""
    assert not caplog.records


def test_trafilatura_is_optional(monkeypatch):
    monkeypatch.setattr("spotsigs.text.visible.find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install"):
        Trafilatura()
    assert importlib.util.find_spec("trafilatura") is not None
