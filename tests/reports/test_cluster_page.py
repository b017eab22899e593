"""The page of clusters: what is in it, and how it behaves in a browser."""

import base64
import gzip
import json
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from archives import packed, warc_record
from browser import Browser, in_browser
from runs import ran
from strategies import pairs_of

from spotsigs.clustering.clusters import cluster
from spotsigs.doors.cli import main as command
from spotsigs.reports.cluster_page import Limits, common_prefix, located_spots, token_edges, write_cluster_page
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.tokens import tokenize

TINY = Path(__file__).parents[2] / "data" / "tiny"
SCHEME = SpotSignatures(antecedents=["a", "an", "the", "is"], d=1, c=2)


def write(path, texts, edges, ids=None, **options):
    pairs = pairs_of(edges, len(texts))
    ids = ids or [f"doc{k}" for k in range(len(texts))]
    write_cluster_page(path, ids, pairs, cluster(pairs, clusters="components"), texts, **{"scheme": SCHEME, **options})
    return path


def blocks_of(path):
    """Return the page's two JSON blocks as a browser finds them: up to the first end of the element."""
    element = r'<script id="(?:data|texts)" type="application/json">(.*?)</script'
    return list(map(json.loads, re.findall(element, path.read_text(), re.DOTALL)))


def unpacked(block):
    return json.loads(gzip.decompress(base64.b64decode(block)))


STORY = "A rally to kick off the campaign is at the city hall. The mayor is a friend of the band."
OTHER = STORY.replace("the band", "the old brass band")


def test_page_holds_clusters_by_size_with_their_cohesion(tmp_path):
    texts = [STORY, "alone", OTHER, "x", "y", "z"]
    page, blocks = blocks_of(write(tmp_path / "p.html", texts, [(0, 2, 0.75), (3, 4, 0.5), (4, 5, 1.0)]))
    assert page["summary"] == "5 of 6 documents, 3 pairs"
    largest, second = page["clusters"]
    ids, similarities = ["doc3", "doc4", "doc5"], [1.0, 0.5, None]
    cohesion = {"low": 0.5, "mean": 0.75, "pairs": 2, "chain": 1, "giant": False}
    assert largest == {"label": 2, "ids": ids, "similarities": similarities, **cohesion}
    assert (second["ids"], second["chain"]) == (["doc0", "doc2"], 0)
    content = unpacked(blocks[1])
    assert content["texts"] == [STORY, OTHER]
    assert content["pairs"] == [[0, 1, 0.75]]


def test_texts_are_limited(tmp_path):
    texts = [f"the text {k} " * 99 for k in range(40)]
    edges = [(k, k + 1, 1.0) for k in range(29)] + [(k, k + 1, 1.0) for k in range(30, 39)]
    limits = Limits(texts=7, members=4, characters=50)
    page, blocks = blocks_of(write(tmp_path / "p.html", texts, edges, limits=limits))
    assert [len(c["ids"]) for c in page["clusters"]] == [30, 10]
    assert [len(unpacked(block)["texts"]) for block in blocks] == [4, 3]
    assert {len(text) for block in blocks for text in unpacked(block)["texts"]} == {50}
    _, blocks = blocks_of(write(tmp_path / "p.html", texts, edges, limits=Limits(texts=0)))
    assert blocks == [None, None]


def test_pairs_without_similarity_and_no_pairs(tmp_path):
    page, _ = blocks_of(write(tmp_path / "p.html", ["x", "y"], [(0, 1, np.nan)]))
    assert page["clusters"][0]["low"] is None
    none = pairs_of([], 3)
    write_cluster_page(tmp_path / "p.html", ["a", "b", "c"], none, cluster(none))
    empty = {"clusters": [], "summary": "0 of 3 documents, 0 pairs", "marked": False, "prefix": ""}
    assert blocks_of(tmp_path / "p.html") == [empty, []]


@pytest.mark.parametrize(
    "text",
    [
        STORY,
        "The İstanbul 😀 ferry is a 漢字漢字テスト boat, the the the boat is a boat.",
        "THE CAT IS THE CAT is the cat, don't",
        "",
    ],
)
def test_words_are_located_in_the_text(text):
    words, places = tokenize(text).words, token_edges(text)
    units = text.encode("utf-16-le")
    shown = [units[2 * a : 2 * b].decode("utf-16-le") for a, b in places]
    assert [word.lower() for word in shown] == words
    assert [a for a, _ in places] == sorted(a for a, _ in places)


def test_spots_are_marked_at_their_positions():
    text = "the cat sat. the cat sat. a dog is here"
    number = {}
    spots = located_spots(text, SCHEME, number)
    marked = [[text[a:b] for a, b in zip(ends[::2], ends[1::2], strict=True)] for _, *ends in spots]
    assert [":".join(words) for words in marked] == SCHEME.readable(text)
    assert spots[0][0] == spots[1][0]
    assert spots[0][1:] != spots[1][1:]
    assert list(number) == list(dict.fromkeys(SCHEME.readable(text)))


def test_only_signatures_that_were_compared_are_marked():
    text = "the cat sat. the dog ran. the cat sat. a dog is here. the cat sat."
    readable, hashes = SCHEME.readable(text), SCHEME(tokenize(text)).tolist()
    known = dict(zip(readable, hashes, strict=True))
    assert len(readable) == 6
    all_of_it = located_spots(text, SCHEME, {})
    assert located_spots(text, SCHEME, {}, Counter(hashes)) == all_of_it
    assert located_spots(text, SCHEME, {}, {}) == []
    number = {}
    some = located_spots(text, SCHEME, number, {known["the:dog:ran"]: 1, known["the:cat:sat"]: 2, 7: 1})
    assert list(number) == ["the:cat:sat", "the:dog:ran"]
    assert [(name, *edges) for name, *edges in some] == [(k % 2, *all_of_it[k][1:]) for k in range(3)]


EVERYWHERE = ("spotsigs boilerplate=remove", "idf_min=0.3"), ("shingles", "sets=true"), ("spotsigs", "memory=1GB")
PAGES = [
    pytest.param(signature, how, marks=[] if (signature, how) in EVERYWHERE else pytest.mark.long)
    for signature in ("spotsigs", "spotsigs boilerplate=main_content", "spotsigs boilerplate=remove", "shingles")
    for how in ("idf_min=0.3", "sets=true", "memory=1GB")
]


@pytest.mark.parametrize(("signature", "how"), PAGES)
def test_what_a_page_marks_adds_up_to_the_similarity(tmp_path, signature, how):
    ran(tmp_path, "data=tiny", *f"signature={signature}".split(), "tau=0.1", "engine=serial", "page=true", how)
    _, blocks = blocks_of(tmp_path / "clusters.html")
    compared = 0
    for content in map(unpacked, filter(None, blocks)):
        spots = [Counter(number for number, *_ in spots) for spots in content["spots"]]
        for a, b, similarity in content["pairs"]:
            both, either = (spots[a] & spots[b]).total(), (spots[a] | spots[b]).total()
            assert round(both / either, 6) == similarity
            compared += 1
    assert compared > 10


def test_untrusted_text_cannot_end_its_json(tmp_path, monkeypatch):
    evil = "</script><script>alert(1)</script><!-- <script> & \u2028 \u2029 ]]>"
    monkeypatch.setattr("spotsigs.reports.cluster_page.TITLE", evil)
    path = write(tmp_path / "p.html", [evil, evil], [(0, 1, 1.0)], ids=[evil, evil + "2"])
    page, blocks = blocks_of(path)
    assert page["clusters"][0]["ids"] == [evil, evil + "2"]
    assert unpacked(blocks[0])["texts"] == [evil, evil]
    assert "alert(1)</script>" not in path.read_text()
    assert path.read_text().count("<script") == 3


@in_browser
def test_untrusted_text_stays_text(tmp_path, monkeypatch):
    evil = "<img src=x onerror='window.hacked=1'></script><script>window.hacked=1</script> the cat is <b>bold</b>"
    monkeypatch.setattr("spotsigs.reports.cluster_page.TITLE", evil)
    path = write(tmp_path / "p.html", [evil, evil + " \ud83d"], [(0, 1, 1.0)], ids=[evil, "b"])
    with Browser() as browser:
        browser.open(path)
        assert browser.text("#left") == evil
        assert browser.text("#left-name") == evil
        assert browser.text("h1") == evil
        assert browser.js("window.hacked") is None
        assert browser.js("document.querySelectorAll('img, main script, main b').length") == 0
        assert browser.requests() == [path.resolve().as_uri()]
        assert browser.complaints() == []
        # The page's own policy stops what a hole would let through: an inserted script, an image, a request.
        browser.js(
            "{const s = document.createElement('script'); s.textContent = 'window.hacked = 1'; document.body.append(s);"
            "const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; fetch('http://127.0.0.1:9/').catch(() => 0); 0}"
        )
        browser.settle()
        assert browser.js("window.hacked") is None
        assert any("Content Security Policy" in str(complaint) for complaint in browser.complaints())


@in_browser
def test_differences_and_shared_signatures_are_marked(tmp_path):
    path = write(tmp_path / "p.html", [STORY, OTHER], [(0, 1, 0.8)])
    with Browser() as browser:
        browser.open(path)
        assert browser.text("#summary").startswith("Cluster 0: 2 documents, 1 of 1 pairs similar, by 0.800")
        left, right = Counter(SCHEME.readable(STORY)), Counter(SCHEME.readable(OTHER))
        both = f"{(left & right).total()} of {(left | right).total()} signatures shared"
        assert both in browser.text("#comparison")
        only = browser.js("[...document.querySelectorAll('#right .only')].map(e => e.textContent).join('')")
        assert only == "old brass"
        assert browser.js("document.querySelectorAll('#left .only').length") == 0
        assert "rally" in browser.js("[...document.querySelectorAll('#left .shared')].map(e => e.textContent)")
        browser.press("n")
        assert browser.text(".here") in only


@in_browser
def test_keyboard_and_filter(tmp_path):
    texts = [f"the text {k}" for k in range(60)]
    edges = [(k, k + 1, 0.9) for k in range(0, 60, 3)] + [(k, k + 2, 0.8) for k in range(0, 60, 3)]
    path = write(tmp_path / "p.html", texts, edges, ids=[f"Site/{k}.html" for k in range(60)])
    with Browser() as browser:
        browser.open(path)
        chosen = "#clusters [aria-selected=true] .name"
        assert browser.text("#counts").startswith("20 clusters, 60 of 60 documents")
        browser.press("ArrowDown", "j", "ArrowUp")
        assert browser.text(chosen) == "Site/3.html"
        browser.press("Enter")
        browser.press("ArrowDown")
        assert browser.text("#right-name") == "Site/5.html"
        assert browser.text("#right") == "the text 5"
        browser.press("l", "k")
        assert (browser.text("#left-name"), browser.text("#right-name")) == ("Site/5.html", "Site/4.html")
        assert browser.text("#comparison").startswith("not reported as a pair")
        browser.press("ArrowLeft", "End")
        assert browser.text(chosen) == "Site/57.html"
        browser.press("/", *"site/4")
        assert browser.text("#counts").startswith("5 of 20 clusters")
        browser.press("Enter", "j")
        assert browser.text(chosen) == "Site/39.html"
        browser.press("/", "z")
        assert browser.text("#summary") == "No cluster has such a document."
        browser.press("Escape")
        assert browser.text("#counts").startswith("20 clusters")
        browser.press("?", "j")
        assert browser.js("document.getElementById('help').open")
        assert browser.text(chosen) == "Site/0.html"
        browser.press("?")
        assert not browser.js("document.getElementById('help').open")
        browser.click("#members .row:nth-child(3)")
        assert browser.text("#right-name") == "Site/2.html"
        assert browser.complaints() == []


@in_browser
def test_giant_chains_are_flagged(tmp_path):
    edges = [(k, k + 1, 0.9) for k in range(29)] + [(a, b, 0.9) for a in range(30, 65) for b in range(a + 1, 65)]
    path = write(tmp_path / "p.html", [f"the text {k}" for k in range(65)], edges)
    with Browser() as browser:
        browser.open(path)
        values = "[...document.querySelectorAll('#clusters .value')].map(e => e.textContent)"
        assert browser.js(values) == ["0.900", "giant chain 0.900"]
        order = "document.getElementById('order')"
        browser.js(f"{{const o = {order}; o.value = 'chain'; o.dispatchEvent(new Event('change'))}}")
        assert browser.js(values) == ["giant chain 0.900", "0.900"]
        assert "29 of 435 pairs similar" in browser.text("#summary")
        assert "28 of the documents did not reach" in browser.text("#summary")
        assert browser.complaints() == []


def longest_common(a, b):
    row = [0] * (len(b) + 1)
    for x in a:
        last = 0
        for k, y in enumerate(b, start=1):
            last, row[k] = row[k], last + 1 if x == y else max(row[k], row[k - 1])
    return row[-1]


@in_browser
def test_differences_are_shortest(tmp_path):
    path = write(tmp_path / "p.html", [STORY, OTHER], [(0, 1, 0.8)])
    rng = random.Random(1)
    with Browser() as browser:
        browser.open(path)
        for size in [0, 1, 2, 5, 5, 9, 9, 30, 80]:
            a, b = ([rng.choice("abcd") for _ in range(rng.randint(0, size))] for _ in range(2))
            actual = browser.js(
                f"(() => {{ const e = edits({json.dumps(a)}, {json.dumps(b)});"
                "return [[...e.sides[0]], [...e.sides[1]], e.exact]; })()"
            )
            left, right = (sorted(side) for side in actual[:2])
            assert [a[k] for k in left] == [b[k] for k in right]
            assert len(left) == longest_common(a, b)
            assert actual[2]
        far = browser.js("(() => edits([...Array(4000).keys()], [...Array(4000).keys()].reverse()).exact)()")
        assert far is False


@in_browser
def test_ten_thousand_clusters_stay_fluid(tmp_path):
    n = 30_000
    texts = (f"the page {k // 3} is a page of many in the heap {k}" for k in range(n))
    edges = [(k, k + step, 0.5 + step / 10) for k in range(0, n, 3) for step in (1, 2)]
    pairs = pairs_of(edges, n)
    path = tmp_path / "p.html"
    write_cluster_page(
        path, [f"page/{k}.html" for k in range(n)], pairs, cluster(pairs, clusters="components"), texts, scheme=SCHEME
    )
    with Browser() as browser:
        browser.open(path)
        assert browser.text("#counts").startswith("10,000 clusters")
        assert browser.js("document.querySelectorAll('*').length") < 400
        press = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: KEY, bubbles: true}))"
        timed = (
            "(() => { const times = []; for (let k = 0; k < 100; k++) { const t = performance.now(); "
            f"{press.replace('KEY', 'k % 10 ? `j` : `PageDown`')}; document.body.offsetHeight; "
            "times.push(performance.now() - t); } return Math.min(...times.slice(-50)); })()"
        )
        assert browser.js(timed) < 40  # the fastest, so that other work on the machine does not decide
        browser.press("End")
        assert browser.text("#clusters [aria-selected=true] .name") == "page/29997.html"
        assert browser.text("#left") == "The text of this document is not in this page."
        assert browser.text("#comparison") == "similarity 0.700."
        browser.press("Enter", "l", "j")
        assert browser.text("#comparison") == "how similar these two are is not in this page."
        filtered = (
            "(() => { const t = performance.now(); document.getElementById('filter').value = '2999'; reorder();"
            "return performance.now() - t; })()"
        )
        assert min(browser.js(filtered) for _ in range(5)) < 500
        assert browser.text("#counts").startswith("7 of 10,000 clusters")


STORIES = ("ferry/wire.html", "ferry/daily.html")
TEMPLATE = "<ul>" + "\n\n      <li>\n   Section   {} </li>\t\n" * 150 + "</ul>"


@in_browser
def test_the_pages_of_an_archive_are_shown(tmp_path):
    templates = [TEMPLATE.format(*range(k, k + 150)) for k in (0, 1000)]
    pages = [template + (TINY / name).read_text() for template, name in zip(templates, STORIES, strict=True)]
    pages.append((TINY / "about.html").read_text())
    records = [warc_record(f"https://news.example/2026/{k}.html", page.encode()) for k, page in enumerate(pages)]
    (tmp_path / "crawl.warc.gz").write_bytes(packed(records, ".gz"))
    out = tmp_path / "out"
    words = ("--tau", "0.2", "--workers", "1", "--no-open", "--out", str(out))
    command(["inspect", str(tmp_path / "crawl.warc.gz"), *words])
    with Browser() as browser:
        browser.open(out / "clusters.html")
        assert browser.text("#counts").startswith("1 clusters, 2 of 3 documents")
        assert browser.text("#counts").endswith("ids begin with https://news.example/2026/")
        assert [browser.text(f"#{side}-name") for side in ("left", "right")] == ["0.html", "1.html"]
        assert browser.js("document.getElementById('left-name').title") == "https://news.example/2026/0.html"
        for side in ("left", "right"):
            assert not re.search(r"\s\s", browser.text(f"#{side}"))
            shared = f"document.querySelector('#{side} .shared').getBoundingClientRect()"
            pane = f"document.getElementById('{side}').getBoundingClientRect()"
            assert browser.js(f"document.getElementById('{side}').scrollTop") > 500  # after the template
            assert browser.js(f"{shared}.top >= {pane}.top && {shared}.bottom <= {pane}.bottom")
            marks = browser.js(f"[...document.querySelectorAll('#{side}-map i')].map(mark => mark.style.top)")
            assert marks
            assert all(float(mark.rstrip("%")) > 30 for mark in marks)  # the template has none
        browser.js("document.getElementById('left').scrollTop = 0")
        browser.click("#left-map i")
        assert browser.js("document.getElementById('left').scrollTop") > 500
        assert browser.requests() == [(out / "clusters.html").resolve().as_uri()]
        assert browser.complaints() == []


def test_what_all_ids_begin_with_is_left_out_where_it_is_long():
    assert common_prefix(["https://x.example/a/1", "https://x.example/a/2"]) == "https://x.example/a/"
    assert common_prefix(["https://x.example/a1", "https://x.example/a2", "https://y.example/"]) == "https://"
    assert common_prefix(["Site/1", "Site/2"]) == common_prefix([]) == common_prefix(["one", "two"]) == ""
