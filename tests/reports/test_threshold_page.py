"""Choosing tau: the counts at each threshold are the counts of a run, and the page is safe."""

import csv
import json
import re
import warnings

import numpy as np
import pytest
from browser import Browser, in_browser
from in_process import command
from runs import planned
from test_removal_rule import stories

from spotsigs.clustering.clusters import cluster
from spotsigs.errors import InputError
from spotsigs.evaluation.metrics import evaluate, percentile_interval
from spotsigs.evaluation.text_lost import text_lost
from spotsigs.matching.brute_force import BruteForce
from spotsigs.records import Pairs, Truth
from spotsigs.reports.charts import LogAxis, histogram
from spotsigs.reports.threshold_page import pairs_around
from spotsigs.runs.stages import readable_texts
from spotsigs.runs.thresholds import threshold_report
from spotsigs.signatures.extract import grams_of

EVIL = "<img src=x onerror='window.hacked=1'></script><script>window.hacked=1</script> the cat is here"


def chosen(tmp_path, *overrides):
    method, run = planned(tmp_path / "threshold", "engine=serial", *overrides)
    return method, run, threshold_report(method, run)


def test_the_table_has_the_counts_of_a_run_at_each_threshold(tmp_path):
    method, run, printed = chosen(tmp_path, "data=tiny")
    folder = tmp_path / "threshold"
    rows = list(csv.DictReader((folder / "threshold.csv").open()))
    assert "proposed: tau=0.278" in printed
    assert {"0.1", "0.278", "0.44", "1.0"} <= {row["tau"] for row in rows}
    joined = method.prepare_join(run.collection, method.extract(run.collection, run.engine))
    texts = list(readable_texts(method, run))
    for row in rows[::6]:
        matched = joined.match(BruteForce(tau=float(row["tau"])))
        truth = Truth.from_clusters(matched.signatures.clusters)
        pairs, groups = matched.pairs, cluster(matched.pairs)
        quality = evaluate(pairs, truth, groups, resamples=10)
        assert int(row["pairs"]) == len(pairs)
        assert int(row["clusters"]) == np.count_nonzero(groups.sizes > 1)
        assert int(row["removed"]) == pairs.n - len(groups.representatives)
        kept = np.isin(np.arange(pairs.n), groups.representatives)
        assert float(row["text_lost"]) == text_lost(grams_of(texts), kept).share
        assert float(row["recall"]) == pytest.approx(quality.recall)
        assert float(row["lost"]) == pytest.approx(quality.documents.stories_lost / quality.documents.stories)
        assert float(row["left"]) == pytest.approx(quality.documents.duplicates_left / quality.documents.duplicates)
    assert {path.name for path in folder.iterdir()} == {"threshold.csv", "histogram.csv", "threshold.html", "run.json"}
    counted = sum(int(row["pairs"]) for row in csv.DictReader((folder / "histogram.csv").open()))
    assert counted == len(BruteForce(tau=0.03)(joined.corpus))
    page = (folder / "threshold.html").read_text()
    assert page.count("<svg") == 1
    assert "best F1 by the truth" in page


def test_the_table_has_the_decisions_of_dedup(tmp_path):
    """Pages that stay for their text were counted as removed."""
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, stories(np.random.default_rng(3)))))
    done = command("threshold", "x.jsonl", "--out", "threshold", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = {row["tau"]: row for row in csv.DictReader((tmp_path / "threshold/threshold.csv").open())}
    for tau in ("0.06", "0.44", "0.9"):
        done = command("dedup", "x.jsonl", "--out", "kept", "--overwrite", "--tau", tau, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        metrics = json.loads((tmp_path / "kept-results/metrics.json").read_text())
        shown = int(rows[tau]["removed"]), float(rows[tau]["text_lost"]), int(rows[tau]["clusters"])
        assert shown == (metrics["removed"], metrics["text_lost"], metrics["clusters"])


def test_a_truth_of_single_pages_is_no_quality_and_no_warning(tmp_path):
    """NumPy warned of slices that are all NaN."""
    rows = [{"id": k, "text": f"the cat {k} is on a mat of {k // 2}", "cluster": f"c{k}"} for k in range(8)]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        chosen(tmp_path, "data=jsonl", f"data.path={tmp_path / 'x.jsonl'}", "idf_min=0")
        assert np.isnan(percentile_interval(np.full((5, 3), np.nan))).all()
    assert "best F1" not in (tmp_path / "threshold" / "threshold.html").read_text()


@pytest.mark.parametrize(("low", "high"), [(0.03, 1), (0.5, 3e6)])
def test_ticks_are_within_the_axis_and_few(low, high):
    axis = LogAxis(label="x", low=low, high=high)
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 9
    positions = [axis.at(value, 100) for value in ticks]
    assert positions == sorted(set(positions))
    assert all(low <= value * 1.001 and value <= high * 1.001 for value in ticks)


def test_a_histogram_is_xml_with_a_bar_for_each_count():
    from xml.etree import ElementTree

    x, y = LogAxis(label="<x>", low=0.1, high=1), LogAxis(label="y & z", low=0.5, high=100)
    svg = ElementTree.fromstring(histogram("<script>", x, y, [0.1, 0.5, 1], [0, 10], [0.5]))
    assert svg.attrib["aria-label"] == "<script>"
    [bars] = (path.attrib["d"] for path in svg.iter("path") if path.attrib["class"] == "bars")
    assert bars.count("Z") == 1


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page about documents without truth, full of markup, of too few pairs for a proposal."""
    tmp_path = tmp_path_factory.mktemp("threshold")
    words = [f"the cat is on a mat of {k} and {k // 4} is a {k // 2} of the {EVIL}" for k in range(8)]
    rows = [{"id": f"{EVIL}{k}", "text": " ".join(words[max(0, k - 5) : k + 1])} for k in range(8)]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    *_, printed = chosen(tmp_path, "data=jsonl", f"data.path={tmp_path / 'x.jsonl'}", "idf_min=0")
    return tmp_path / "threshold" / "threshold.html", printed


def test_without_truth_and_without_a_valley(page):
    path, printed = page
    assert re.search(r"no threshold is proposed: .*; at tau=0.44, \d+.\d % of the text is in no kept page", printed)
    assert "Prec." not in printed
    assert "Prec." not in path.read_text()


def test_without_truth_much_lost_text_raises_the_threshold(tmp_path):
    """Of each two pages, 0 to 19 of 20 sentences are the same, so that no valley separates them."""
    same = [(k, n if n < k % 20 else n + 20 * version) for k in range(300) for version in (0, 1) for n in range(20)]
    words = [f"the {k}x{n} of {k}y{n}" for k, n in same]
    rows = [{"id": str(k), "text": " ".join(words[20 * k : 20 * k + 20])} for k in range(600)]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = ("data=jsonl", f"data.path={tmp_path / 'x.jsonl'}", "idf_min=0")
    *_, printed = chosen(tmp_path, *words, "tau=0.8")
    assert "no threshold is proposed" in printed
    *_, printed = chosen(tmp_path, *words, "tau=0.1")
    rows = list(csv.DictReader((tmp_path / "threshold" / "threshold.csv").open()))
    few = [row["tau"] for row in rows if float(row["text_lost"]) <= 0.05 or int(row["removed"]) < 100]
    assert float(few[0]) > 0.3
    assert f"proposed: tau={few[0]}, the lowest from 0.1 on at which little text is lost: 4.5 % of the text" in printed
    assert f"τ = {few[0]}: text lost" in (tmp_path / "threshold" / "threshold.html").read_text()


@in_browser
def test_pairs_can_be_judged_and_their_text_stays_text(page):
    path, _ = page
    with Browser() as browser:
        browser.open(path)
        assert browser.js("document.getElementById('summary').textContent").startswith("Just reaches τ = 0.44")
        assert browser.js("document.querySelectorAll('#sides .shared').length") > 0
        browser.press("End")
        assert browser.js("document.getElementById('summary').textContent").startswith("Just misses τ = 0.44")
        assert EVIL in browser.js("document.getElementById('left').textContent")
        assert browser.js("window.hacked") is None
        assert browser.js("document.querySelectorAll('main img, main script, #about img, #about script').length") == 0
        assert browser.requests() == [path.resolve().as_uri()]
        assert browser.complaints() == []


def test_pairs_around_a_threshold_are_of_different_documents():
    i = np.arange(60) // 2
    pairs = Pairs.build(i, i + 40, np.linspace(0.1, 0.9, 60), 100)
    rng = np.random.default_rng(1)
    for above in (True, False):
        places = pairs_around(pairs, 0.5, above, rng)
        assert len(places) == 5
        assert ((pairs.similarity[places] >= 0.5) == above).all()
        assert len({*pairs.i[places].tolist(), *pairs.j[places].tolist()}) == 10
    assert pairs_around(pairs, 0.95, True, rng) == []


def test_vectors_are_refused(tmp_path):
    with pytest.raises(InputError, match="has vectors; a threshold page shows pages"):
        chosen(tmp_path, "data=wt10g_like")
