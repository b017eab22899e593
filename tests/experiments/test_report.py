"""The report: what pages say stays text, in a real browser, too."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from experiments.claims.facts import read_facts
from experiments.claims.judged_claims import judge_all
from experiments.show.page_pairs import Page, Piece, Sample, marked, sample_pairs, similarity, word_places
from experiments.show.report import OTHERS, SECTIONS, finding, render, sections
from spotsigs.matching.algorithm1 import SpotSigs
from spotsigs.records import Corpus, Pairs, Truth, Vectors
from spotsigs.runs.provenance import provenance
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.tokens import tokenize

ROOT = Path(__file__).parents[2]
ATTACKS = (
    "<script>document.title = 'taken'</script>",
    "<img src=x onerror=\"document.title = 'taken'\">",
    "</div></article><svg onload=\"document.title='taken'\">",
    "</script><script>document.title = 'taken'</script>",
    "' onmouseover='document.title=1' x='",
    "{{ 7 * 7 }} ${7 * 7} <!-- -->",
)


def hostile_report(tmp_path, attack):
    page = Page(id=attack, truth=attack, found=attack, pieces=[Piece(text=attack), Piece(text=attack, kind="shared")])
    sample = Sample(kind="false", similarity=0.5, left=page, right=page)
    table = {"caption": attack, "titles": [attack], "numbers": [False], "cells": [[attack]], "notes": [attack]}
    origin = {"command": attack}
    listed = [{"title": attack, "lead": attack, "items": [{"name": "x", "table": table, "origin": origin}]}]
    about = provenance() | {"data": attack, "seed": 1, "command": [attack]}
    path = tmp_path / "report.html"
    path.write_text(render(sections=listed, judged=judge_all(tmp_path), samples=[sample], about=about), "utf-8")
    return path


@pytest.mark.parametrize("attack", ATTACKS)
def test_page_text_is_escaped(tmp_path, attack):
    page = hostile_report(tmp_path, attack).read_text("utf-8")
    assert attack not in page or not set("<>\"'") & set(attack)
    assert page.count("<script>") == 1


def test_the_report_loads_nothing(tmp_path):
    page = hostile_report(tmp_path, "x").read_text("utf-8")
    assert "default-src 'none'" in page
    for word in ("http://", "https://", 'src="//', "@import", "url("):
        assert word not in page


def test_the_report_opens_with_what_was_found(tmp_path):
    sentences = finding(ROOT / "results")
    assert len(sentences) == 2
    facts = read_facts(ROOT / "results/quality/facts.csv")
    assert f"{facts['newsframes: SpotSigs: best F1'].value:.3f}" in sentences[1]
    page = committed_report()
    assert page.index(sentences[0]) < page.index('id="key"') < page.index("<section")
    assert finding(tmp_path) == []


def test_the_first_screen_has_the_papers_gold_and_newsframes_values():
    page = committed_report()
    key = page[page.index('id="key"') : page.index("<section")]
    (claim,) = (item for item in judge_all(ROOT / "results") if item.claim.says.startswith("F1 of SpotSigs at the"))
    for value in (claim.claim.published, claim.on("gold"), claim.on("newsframes"), claim.verdict.value):
        assert value
        assert f">{value}<" in key
    assert key.count("<tr>") <= 16


def committed_report():
    results = ROOT / "results"
    about = provenance() | {"data": "gold", "seed": 1, "command": ["run.py"]}
    judged = judge_all(results)
    return render(finding=finding(results), sections=sections(results), judged=judged, samples=[], about=about)


def test_no_sentence_comes_again_and_again():
    text = re.sub(r"<[^>]+>", "\n", re.sub(r"<details>.*?</details>", "", committed_report(), flags=re.DOTALL))
    sentences = Counter(
        part.strip() for part in re.split(r"[\n]|(?<=[.:])\s", text) if len(part.split()) > 6 and part[-1] in ".:"
    )
    assert sentences.most_common(1)[0][1] <= 3, sentences.most_common(3)


def test_verdicts_stand_beside_what_they_judge():
    page = committed_report()
    table = page[page.index('id="table2-table2"') :]
    assert "NoPart takes longer than SpotSigs" in table[: table.index("</figure>")]


def test_no_table_is_cut_off(tmp_path):
    path = tmp_path / "report.html"
    measure = """
      const cut = [...document.querySelectorAll(".wide")].filter((box) => box.scrollWidth > box.clientWidth + 1);
      document.title = `${innerWidth}: ${cut.map((box) => box.getAttribute("aria-label")).join("; ")}`;
    """
    page = re.sub(r"script-src 'sha256-[^']+'", "script-src 'unsafe-inline'", committed_report())
    path.write_text(page.replace("</body>", f"<script>{measure}</script></body>"), "utf-8")
    width, _, cut = title_in_browser(path, "--window-size=1400,2000")[0].partition(": ")
    assert int(width) <= 1400
    assert cut == ""


def browser():
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("needs a Chromium browser (Debian package chromium)")
    return found


def title_in_browser(path, *more):
    """Return the page's title after its scripts have run, and the whole document."""
    options = [*more, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", "--dump-dom"]
    answer = subprocess.run(
        [browser(), *options, path.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    return answer.stdout.partition("<title>")[2].partition("</title>")[0], answer.stdout


@pytest.mark.parametrize("attack", ATTACKS[:4])
def test_script_in_a_page_does_not_run(tmp_path, attack):
    title, document = title_in_browser(hostile_report(tmp_path, attack))
    assert title == "SpotSigs, reproduced"
    assert "1 of 1" in document  # the report's own script did run


def test_the_browser_would_run_such_script(tmp_path):
    path = tmp_path / "naive.html"
    path.write_text(f"<title>naive</title>{ATTACKS[0]}", "utf-8")
    assert title_in_browser(path)[0] == "taken"


def test_the_keyboard_moves_between_pairs_and_changes_the_theme(tmp_path):
    pieces = [Piece(text="the river")]
    pages = [Page(id=name, truth="t", found="f", pieces=pieces) for name in "abcdef"]
    samples = [
        Sample(kind=kind, similarity=0.5, left=pages[2 * k], right=pages[2 * k + 1])
        for k, kind in enumerate(("true", "false", "missed"))
    ]
    about = provenance() | {"data": "tiny", "seed": 1}
    page = render(sections=[], judged=judge_all(tmp_path), samples=samples, about=about)
    press = """
      const told = [];
      for (const key of ["n", "n", "n", "p", "2", "1", "t"]) {
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        const shown = pairs.filter((pair) => !pair.hidden);
        told.push(shown.length === 1 ? shown[0].dataset.kind : "several", $("place").textContent);
      }
      $("verdicts").value = "not_measured";
      $("verdicts").dispatchEvent(new Event("change"));
      const kept = [...$("ledger").tBodies[0].rows].filter((row) => !row.hidden);
      told.push(root.dataset.theme, kept.every((row) => row.dataset.verdict === "not_measured"));
      document.title = told.join(",");
    """
    path = tmp_path / "pressed.html"
    policy = "script-src 'unsafe-inline'"  # a page of its own, to let the test press keys
    start, end = page.index("script-src"), page.index("; base-uri")
    path.write_text(
        f"{page[:start]}{policy}{page[end:]}".replace("</body>", f"<script>{press}</script></body>"), "utf-8"
    )
    title = title_in_browser(path)[0].split(",")
    assert title[:-2] == [
        *("false", "2 of 3", "missed", "3 of 3", "true", "1 of 3"),
        *("missed", "3 of 3", "false", "2 of 3", "true", "1 of 3", "true", "1 of 3"),
    ]
    assert title[-2:] == ["dark", "true"]


class TestMarks:
    scheme = SpotSignatures(antecedents=["the", "is"], d=1, c=2, stopwords=None)

    def test_pieces_add_up_to_the_text(self):
        text = "The river rises. 東京は大きい, and the old bridge is <b>closed</b> to the İstanbul cars – the end"
        other = "the old bridge stands"
        pieces = marked(text, other, self.scheme)
        assert "".join(piece.text for piece in pieces) == text

    def test_shared_and_own(self):
        pieces = marked("Now the old bridge is closed for good", "and the old bridge stands", self.scheme)
        kinds = {piece.text: piece.kind for piece in pieces if piece.kind}
        shared, own = (("the", "old", "bridge"), "shared"), (("is", "closed", "for"), "own")
        assert kinds == {word: kind for words, kind in (shared, own) for word in words}

    @pytest.mark.parametrize("text", ["One two, three. Don't", "東京は大きい x สวัสดี", "a\u0301b 12½ x²", ""])
    def test_places_are_those_of_the_tokens(self, text):
        places = word_places(text)
        assert [text[start:end].lower() for start, end in places] == tokenize(text).words


def test_samples_are_what_they_are_called():
    texts = [
        "the river rises and the old bridge is closed to the heavy trucks",
        "the river rises and the old bridge is closed to the heavy trucks again",
        "the river rises and the old bridge is closed to the heavy trucks now",
        "the council meets and is busy",
        "the mayor speaks of the war",
    ]
    scheme = SpotSignatures(d=1, c=2)
    words = sorted({spot for text in texts for spot in scheme.readable(text)})
    rows = [sorted({words.index(spot) for spot in scheme.readable(text)}) for text in texts]
    indptr = [0]
    for row in rows:
        indptr.append(indptr[-1] + len(row))
    vectors = Vectors.from_csr(indptr, [x for row in rows for x in row], doc_ids=list("abcde"))
    truth = Truth.from_clusters(["one", "one", None, "two", "two"])
    corpus = Corpus(vectors, lambda: iter(texts))
    samples = sample_pairs(corpus, truth, SpotSigs(tau=0.44), scheme, each=9, seed=1)
    found = {(sample.kind, sample.left.id, sample.right.id) for sample in samples}
    assert found == {("true", "a", "b"), ("false", "a", "c"), ("false", "b", "c"), ("missed", "d", "e")}
    pairs = SpotSigs(tau=0.01)(corpus)
    for sample in samples:
        i, j = ("abcde".index(side.id) for side in (sample.left, sample.right))
        assert sample.similarity == similarity(vectors, i, j)
        assert "".join(piece.text for piece in sample.left.pieces) == texts[i]
        at = (pairs.i == i) & (pairs.j == j)
        assert sample.similarity == (pairs.similarity[at][0] if at.any() else 0)
    assert sample_pairs(corpus, truth, SpotSigs(tau=0.44), scheme, each=0, seed=1) == []


def test_no_pairs_at_all():
    vectors = Vectors.from_csr([0, 1, 2], [0, 1])
    truth = Truth.from_clusters(["one", "two"])
    corpus = Corpus(vectors, lambda: iter(["the a", "the b"]))
    assert sample_pairs(corpus, truth, SpotSigs(), SpotSignatures(), each=3, seed=0) == []
    assert len(Pairs.build(*[vectors.ids[:0]] * 3, 2)) == 0


def test_sections_of_an_empty_folder(tmp_path):
    assert sections(tmp_path) == []


def test_what_no_section_names_is_the_last(tmp_path):
    found = sections(ROOT / "results")
    titles = [section["title"] for section in found]
    assert titles.index(OTHERS) == len(titles) - 1
    named = {name for names in SECTIONS.values() for name in names}
    assert not named & {item["name"] for item in found[-1]["items"]}


def test_a_narrow_screen_gets_its_own_pictures(tmp_path):
    items = {item["name"]: item for section in sections(ROOT / "results") for item in section["items"]}
    assert items["figure5/figure5"]["narrow"] != items["figure5/figure5"]["image"]
    assert items["figure4/figure4"]["narrow"] == ""
    assert "<source media" in committed_report()


def test_no_markup_and_no_hashes_are_shown():
    text = re.sub(r"<(script|style)>.*?</\1>", "", committed_report(), flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", " ", text)
    assert not re.findall(r"\*\*\w|``|\]\(", text)
    assert not re.findall(r"\b[0-9a-f]{24}\b", text)
