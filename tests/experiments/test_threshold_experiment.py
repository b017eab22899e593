"""Choosing tau: what each threshold is said to report and remove is what a run there does, and the page is safe."""

import csv
import json

import numpy as np
import pytest
from browser import CHROMIUM, Browser
from test_large import configured

from experiments.studies.threshold_page import Threshold, around
from experiments.work.extracted_collections import Source, read
from spotsigs.clustering.clusters import cluster
from spotsigs.errors import InputError
from spotsigs.evaluation.metrics import evaluate
from spotsigs.matching.brute_force import BruteForce
from spotsigs.records import Pairs

EVIL = "<img src=x onerror='window.hacked=1'></script><script>window.hacked=1</script> the cat is here"


def chosen(tmp_path, *overrides):
    settings = configured("experiment=threshold", "engine=serial", f"experiment.results={tmp_path}", *overrides)
    return settings, settings.experiment(settings)


def test_the_table_says_what_runs_at_each_threshold_do(tmp_path):
    settings, told = chosen(tmp_path, "data=tiny", "experiment.step=0.1", "experiment.candidates=[0.6]")
    folder = tmp_path / "threshold" / "tiny"
    rows = list(csv.DictReader((folder / "threshold.csv").open()))
    assert "proposed: tau=0.278" in told
    assert {"0.1", "0.278", "0.44", "0.6", "1.0"} <= {row["tau"] for row in rows}
    source = Source(collection=settings.collection, text=settings.text, signature=settings.signature)
    stored = read(source, tmp_path / "cells", settings.engine)
    corpus = stored.corpus(settings.idf_filter)
    for row in rows:
        pairs = BruteForce(tau=float(row["tau"]))(corpus)
        groups = cluster(pairs)
        quality = evaluate(pairs, stored.truth(), groups, resamples=10)
        assert int(row["pairs"]) == len(pairs)
        assert int(row["clusters"]) == np.count_nonzero(groups.sizes > 1)
        assert int(row["removed"]) == pairs.n - len(groups.representatives)
        assert float(row["recall"]) == pytest.approx(quality.recall)
        assert float(row["lost"]) == pytest.approx(quality.stories_lost / quality.stories)
        assert float(row["left"]) == pytest.approx(quality.duplicates_left / quality.duplicates)
        assert float(row["f1_low"]) <= float(row["f1"]) <= float(row["f1_high"])
    assert {path.suffix for path in folder.glob("similarities.*")} == {".csv", ".svg", ".png", ".pdf", ".json"}
    counted = sum(float(row["y"]) for row in csv.DictReader((folder / "similarities.csv").open()))
    assert counted == len(BruteForce(tau=0.03)(corpus))
    facts = {row["name"]: row["value"] for row in csv.DictReader((folder / "facts.csv").open())}
    assert {"proposed tau", "best F1", "F1 at the proposed tau"} <= facts.keys()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page about documents without truth, full of markup, of too few pairs for a proposal."""
    tmp_path = tmp_path_factory.mktemp("threshold")
    words = [f"the cat is on a mat of {k} and {k // 4} is a {k // 2} of the {EVIL}" for k in range(8)]
    rows = [{"id": f"{EVIL}{k}", "text": " ".join(words[max(0, k - 5) : k + 1])} for k in range(8)]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    _, told = chosen(tmp_path, "data=jsonl", f"data.path={tmp_path / 'x.jsonl'}", "idf_min=0")
    return tmp_path / "threshold" / "jsonl" / "threshold.html", told


def test_without_truth_and_without_a_valley(page):
    path, told = page
    assert "no threshold is proposed" in told
    assert "Prec." not in told
    assert "true cluster" not in path.read_text()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: install chromium to run browser tests")
def test_pairs_can_be_judged_and_their_text_stays_text(page):
    path, _ = page
    with Browser() as browser:
        browser.open(path)
        visible = "[...document.querySelectorAll('article.pair')].filter(e => !e.hidden)"
        assert browser.js(f"{visible}.length") == 1
        assert browser.js(f"{visible}[0].querySelector('h3').textContent").startswith("Just reaching τ = 0.44")
        assert browser.js("document.querySelectorAll('article.pair .shared').length") > 0
        browser.press("2")
        assert browser.js(f"{visible}[0].querySelector('h3').textContent").startswith("Just missing τ = 0.44")
        assert EVIL in browser.js("document.querySelector('article.pair .text').textContent")
        assert browser.js("window.hacked") is None
        assert browser.js("document.querySelectorAll('main img:not([src^=\"data:\"]), main script').length") == 0
        assert browser.requests()[0] == path.resolve().as_uri()
        assert all(request.startswith("data:") for request in browser.requests()[1:])
        assert browser.complaints() == []


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: install chromium to run browser tests")
def test_it_fits_a_narrow_window(page):
    with Browser(420, 800) as browser:
        browser.open(page[0])
        assert browser.js("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_pairs_around_a_threshold_are_of_different_documents():
    i = np.arange(60) // 2
    pairs = Pairs.build(i, i + 40, np.linspace(0.1, 0.9, 60), 100)
    rng = np.random.default_rng(1)
    for above in (True, False):
        places = around(pairs, 0.5, above, 7, rng)
        assert len(places) == 7
        assert ((pairs.similarity[places] >= 0.5) == above).all()
        assert len({*pairs.i[places].tolist(), *pairs.j[places].tolist()}) == 14
    assert around(pairs, 0.95, True, 7, rng) == []


def test_parameters():
    for wrong in ({"lowest": 0.0}, {"each": -1}, {"candidates": [0.01]}, {"step": 0.3}):
        with pytest.raises(InputError):
            Threshold(**wrong)
    settings = configured("experiment=threshold", "data=wt10g_like")
    with pytest.raises(InputError, match="experiment=threshold shows pages"):
        settings.experiment(settings)
