"""The report: what pages contain stays text, in a real browser, too."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser

from experiments.claims.facts import read_facts
from experiments.claims.judged_claims import judge_all
from experiments.show.report import OTHERS, SECTIONS, finding, render, sections
from spotsigs.runs.provenance import provenance

ROOT = Path(__file__).parents[2]
ATTACKS = (
    "<script>document.title = 'taken'</script>",
    "<img src=x onerror=\"document.title = 'taken'\">",
    "</div></article><svg onload=\"document.title='taken'\">",
    "</script><script>document.title = 'taken'</script>",
    "' onmouseover='document.title=1' x='",
    "{{ 7 * 7 }} ${7 * 7} <!-- -->",
)
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: install chromium to run browser tests")


def hostile_report(folder, attack):
    table = {"caption": attack, "titles": [attack], "numbers": [False], "cells": [[attack]], "notes": [attack]}
    listed = [{"title": attack, "items": [{"name": "x", "table": table, "origin": {"command": attack}}]}]
    about = provenance() | {"data": attack, "seed": 1, "command": [attack]}
    path = folder / "report.html"
    path.write_text(render(sections=listed, judged=judge_all(folder), finding=[attack], about=about), "utf-8")
    return path


@pytest.fixture(scope="module")
def committed():
    """The report of the committed results."""
    results = ROOT / "results"
    about = provenance() | {"data": "gold", "seed": 1, "command": ["run.py"]}
    return render(finding=finding(results), sections=sections(results), judged=judge_all(results), about=about)


@pytest.mark.parametrize("attack", ATTACKS)
def test_page_text_is_escaped(tmp_path, attack):
    page = hostile_report(tmp_path, attack).read_text("utf-8")
    assert attack not in page or not set("<>\"'") & set(attack)
    assert page.count("<script>") == 1


def test_the_report_loads_no_other_file(tmp_path):
    page = hostile_report(tmp_path, "x").read_text("utf-8")
    assert "default-src 'none'" in page
    for word in ("http://", "https://", 'src="//', "@import", "url("):
        assert word not in page


def test_the_report_opens_with_the_findings_and_the_key_claims(committed, tmp_path):
    sentences = finding(ROOT / "results")
    facts = read_facts(ROOT / "results/quality/facts.csv")
    assert f"{facts['newsframes: SpotSigs: best F1'].value:.3f}" in sentences[1]
    key = committed[committed.index('id="key"') : committed.index("<section")]
    assert committed.index(sentences[0]) < committed.index(key)
    (claim,) = (item for item in judge_all(ROOT / "results") if item.claim.says.startswith("F1 of SpotSigs at the"))
    for value in (claim.claim.published, claim.on("gold"), claim.on("newsframes"), claim.verdict.value):
        assert value
        assert f">{value}<" in key
    assert finding(tmp_path) == sections(tmp_path) == []


def test_verdicts_are_shown_next_to_what_they_judge(committed):
    table = committed[committed.index('id="table2-table2"') :]
    assert "NoPart takes longer than SpotSigs" in table[: table.index("</figure>")]


def test_results_that_no_section_names_are_in_the_last():
    found = sections(ROOT / "results")
    assert [section["title"] for section in found].index(OTHERS) == len(found) - 1
    named = {name for names in SECTIONS.values() for name in names}
    assert not named & {item["name"] for item in found[-1]["items"]}


def test_no_sentence_is_repeated_and_no_markup_is_shown(committed):
    text = re.sub(r"<(script|style|details)>.*?</\1>", "", committed, flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", "\n", text)
    assert not re.findall(r"\*\*\w|``|\]\(", text)
    assert not re.findall(r"\b[0-9a-f]{24}\b", text)
    sentences = Counter(
        part.strip() for part in re.split(r"[\n]|(?<=[.:])\s", text) if len(part.split()) > 6 and part[-1] in ".:"
    )
    assert sentences.most_common(1)[0][1] <= 3, sentences.most_common(3)


@in_browser
def test_the_report_in_a_browser(committed, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(committed, "utf-8")
    with Browser(1400, 2000) as browser:
        browser.open(path)
        cut_off = "[...document.querySelectorAll('.wide')].filter(box => box.scrollWidth > box.clientWidth + 1)"
        assert browser.js(f"{cut_off}.map(box => box.getAttribute('aria-label'))") == []
        browser.press("t")
        assert browser.js("document.documentElement.dataset.theme") == "dark"
        browser.js(
            "{const v = document.getElementById('verdicts'); v.value = 'contradicted';"
            "v.dispatchEvent(new Event('change')); 0}"
        )
        shown = "[...document.getElementById('ledger').tBodies[0].rows].filter(row => !row.hidden)"
        assert set(browser.js(f"{shown}.map(row => row.dataset.verdict)")) == {"contradicted"}
        assert browser.requests() == [path.resolve().as_uri()]


@in_browser
@pytest.mark.parametrize("attack", ATTACKS[:4])
def test_script_in_a_result_does_not_run(tmp_path, attack):
    naive = tmp_path / "naive.html"
    naive.write_text(f"<title>naive</title>{ATTACKS[0]}", "utf-8")
    with Browser() as browser:
        browser.open(hostile_report(tmp_path, attack))
        assert browser.js("document.title") == "SpotSigs, reproduced"
        browser.open(naive)
        assert browser.js("document.title") == "taken"  # the browser runs such a script
