"""Containment: the reference implementation at every threshold, teasers, and errors."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from browser import Browser, in_browser
from hypothesis import given
from hypothesis import strategies as st
from naive import contained_pairs
from strategies import MULTISETS, by_rows, examples, vectors_of
from test_cluster_page import blocks_of, unpacked

from spotsigs import dedup, near_duplicates
from spotsigs.clustering.clusters import cluster
from spotsigs.doors.cli import main
from spotsigs.errors import InputError
from spotsigs.matching.containment import Containment
from spotsigs.method import Method
from spotsigs.records import Corpus
from spotsigs.reports.cluster_page import write_cluster_page

TAUS = st.one_of(
    st.sampled_from([1.0, 0.5, 1 / 3, 0.8, 0.9, 1e-9]), st.fractions(Fraction(1, 30), 1, max_denominator=30).map(float)
)


@examples(100)
@given(MULTISETS, TAUS, st.integers(1, 3))
def test_all_that_the_definition_finds(documents, tau, threads):
    matcher = Containment(tau=tau, threads=threads)
    assert by_rows(matcher(Corpus(vectors_of(documents)))) == contained_pairs(documents, tau)


@examples(100)
@given(MULTISETS, TAUS, st.randoms(use_true_random=False))
def test_the_order_makes_no_difference(documents, tau, random):
    order = list(range(len(documents)))
    random.shuffle(order)
    turned = Containment(tau=tau)(Corpus(vectors_of([documents[k] for k in order])))
    assert by_rows(turned, order) == by_rows(Containment(tau=tau)(Corpus(vectors_of(documents))))


def test_hardly_a_pair_is_verified_at_a_high_threshold():
    random = np.random.default_rng(1)
    documents = [Counter(random.integers(0, 3000, 60).tolist()) for _ in range(300)]
    documents += [Counter(dict(list(document.items())[:20])) for document in documents[:50]]
    pairs = Containment(tau=1.0)(Corpus(vectors_of(documents)))
    assert by_rows(pairs) == contained_pairs(documents, 1.0)
    assert len(pairs) >= 50
    assert pairs.counters["verifications"] < 350 * 349 / 2 / 20


def test_an_article_contains_its_teaser():
    names = "bridge river mayor town harbour market school forest".split()
    sentences = [f"The {name} of the old {name}s has been a part of the {name} festival." for name in names]
    article, teaser = " ".join(sentences), " ".join(sentences[:3])
    other = "A doctor has seen the patients who were in the hospital and was in a hurry."
    pages = [article, other, teaser]
    assert len(near_duplicates(pages, 0.7)) == 0
    pairs = near_duplicates(pages, 0.7, method=Method.of(measure="containment"))
    assert list(by_rows(pairs)) == [(0, 2)]
    with pytest.raises(InputError, match="measure must be 'jaccard' or 'containment', got 'cosine'"):
        Method.of(measure="cosine")


def test_a_short_item_is_found_in_the_page_that_quotes_it():
    """Both are compared by the same shingles, however short the item is."""
    items = [
        f"Which {name} is the {kind} one of 12 - {k}?"
        for k, (name, kind) in enumerate(
            zip("river bridge mayor harbour".split(), "longest oldest youngest deepest".split(), strict=True)
        )
    ]
    prose = " ".join(
        f"The {a} of the old {b} has been closed since {k}."
        for k, (a, b) in enumerate(
            [("mill", "town"), ("road", "forest"), ("school", "valley"), ("market", "square"), ("gate", "castle")] * 4
        )
    )
    pages = [f"{prose} {items[0]} {prose}", prose, f"{prose} Which river is the longest?", f"{items[3]} {prose}"]
    kept = dedup([{"text": page} for page in pages], against=items, method=Method.of(measure="containment"), tau=0.8)
    assert [row["text"] for row in kept] in ([pages[1]], [pages[2]])


def test_by_default_a_page_must_contain_most_of_an_item():
    item = "Which of the rivers that flow through the old town is the longest one of the whole county today?"
    half, prose = " ".join(item.split()[:10]), "The mill of the town has been closed since the flood of the spring."
    quoting, sharing = ({"text": f"{prose} {words} {prose}"} for words in (item, half))
    assert dedup([quoting, sharing], against=[item], method=Method.of(measure="containment")) == [sharing]
    assert dedup([sharing], against=[item], method=Method.of(measure="containment", tau=0.25)) == []


@pytest.fixture
def page(tmp_path):
    pairs = Containment(tau=0.9)(Corpus(vectors_of([Counter({1: 2, 2: 1, 3: 4}), Counter({1: 1, 2: 1})])))
    write_cluster_page(tmp_path / "p.html", ["article", "teaser"], pairs, cluster(pairs), ["the article", "the teaser"])
    return tmp_path / "p.html"


def test_the_page_of_clusters_states_which_page_contains_the_other(page):
    (block,) = blocks_of(page)[1]
    assert unpacked(block)["pairs"] == [[0, 1, 1.0, 1]]


@in_browser
def test_the_browser_shows_which_document_contains_the_other(page):
    with Browser() as browser:
        browser.open(page)
        assert browser.text("#comparison").startswith("the right document is contained in the left one by 1.000")


def test_on_the_command_line(tmp_path, capsys):
    article = " ".join(
        f"The {name} is a part of the {name} festival in a town." for name in "bridge river mayor".split()
    )
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "article.txt").write_text(f"{article} {article.replace('festival', 'market')}")
    (tmp_path / "pages" / "teaser.txt").write_text(article)
    words = [str(tmp_path / "pages"), "--tau", "0.9", "--workers", "1"]
    main(["pairs", *words])
    assert len(capsys.readouterr().out.splitlines()) == 1
    main(["pairs", *words, "--measure", "containment"])
    (_, line) = capsys.readouterr().out.splitlines()
    assert line.split("\t")[:2] == ["article.txt", "teaser.txt"]
    with pytest.raises(SystemExit, match="SpotSigs, containment has no form for vectors on disk"):
        main(["pairs", *words, "--measure", "containment", "--memory", "2GB"])
