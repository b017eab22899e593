"""The experiment on what goes beyond the paper: its parts on small collections, and all of it on one."""

from __future__ import annotations

import csv
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from data.collections.gold import Gold, GoldDrift, GoldVersions
from experiments.show.quality_figures import thresholds
from experiments.studies.beyond import (
    FRAMED,
    PLAIN,
    REMOVED,
    SHORT,
    _kept,
    _promise,
    collection_name,
    methods,
    texts,
)
from experiments.work.curves import Curve, judge
from experiments.work.extracted_collections import Source, read
from experiments.work.page_cost import time_pages
from experiments.work.regret import suggested
from spotsigs.engines import Serial
from spotsigs.evaluation.metrics import evaluate
from spotsigs.formats.folder import Folder, SortedBy
from spotsigs.matching.prefix_join import SpotSigsTight, self_join
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.visible import VisibleText

ROOT = Path(__file__).parents[2]
TINY = Folder(path=str(ROOT / "data" / "tiny"), clusters=SortedBy.folders)


def source(scheme) -> Source:
    return Source(collection=TINY, text=VisibleText(), signature=scheme)


def test_a_suggested_threshold_is_judged(tmp_path):
    stored = read(source(SpotSignatures(d=1, c=2)), tmp_path, Serial())
    found = suggested(stored=stored, idf_filter=IdfFilter(idf_min=0.0))
    if found["tau"] is None:
        assert found["reason"]
    else:
        pairs = self_join(stored.corpus(IdfFilter(idf_min=0.0)).vectors, found["tau"])
        assert found["f1"] == pytest.approx(evaluate(pairs, stored.truth(), resamples=0).f1)
    assert sum(found["counts"]) > 0


@pytest.mark.parametrize("scheme", [SpotSignatures(), REMOVED])
def test_cost_has_its_parts(scheme):
    found = time_pages(source=source(scheme), pages=10, repeats=1)
    assert found["pages"] == 10
    assert found["ms"] == pytest.approx(found["text_ms"] + found["signature_ms"] + found["refine_ms"])
    assert (found["refine_ms"] > 0) == (scheme is REMOVED)
    assert found["text_ms"] > 0
    assert found["signature_ms"] > 0


def curve(true: list[float], false: list[float]) -> Curve:
    """A curve over 0.18 and 0.44 of one cluster of ten pairs."""
    counts = [[t, 0.0] for t in true], [[f, 0.0] for f in false], [[10 - t, 0.0] for t in true]
    return Curve({"taus": [0.18, 0.44], **dict(zip(("true", "false", "missed"), counts, strict=True))})


def test_the_promise_is_the_lowest_difference():
    good, bad = curve([10, 8], [0, 0]), curve([10, 5], [5, 0])
    rows = [_promise("a", {FRAMED: good, PLAIN: bad, SHORT: bad}, PLAIN)]
    rows.append(_promise("b", {FRAMED: bad, PLAIN: good, SHORT: good}, PLAIN))
    rows.append(_promise("b", {FRAMED: bad, PLAIN: good, SHORT: good}, SHORT))
    assert rows[0]["at_18"] == pytest.approx(1 - 20 / 25)
    assert rows[0]["at_44"] == pytest.approx(16 / 18 - 10 / 15)
    assert rows[1]["best"] == pytest.approx(20 / 25 - 1)
    facts = {fact.name: fact.value for fact in _kept(rows)}
    assert facts["templates removed - SpotSigs, lowest of all collections, at_18"] == pytest.approx(20 / 25 - 1)
    assert facts["promise kept against SpotSigs, best"] == 0
    assert all(fact.value == 1 for fact in _kept(rows[:1]) if fact.name.startswith("promise"))


def test_names():
    assert (
        collection_name("data=newsframes data.accept_licence=true data.seed=5 data.drift=0.3") == "newsframes drift=0.3"
    )

    assert collection_name("data=gold data.seed=5") == "gold"
    assert collection_name("data=gold_drift data.seed=1 data.drift=0.5") == "gold_drift drift=0.5"
    assert len({method.label for method in methods()}) == len(methods())


@pytest.mark.long
@pytest.mark.parametrize(
    "collection",
    [
        Gold(seed=2, pages=300, clusters=30),
        *(GoldDrift(seed=2, pages=300, clusters=30, drift=drift) for drift in (0.15, 0.5)),
        GoldVersions(seed=2, sites=4, stories=20),
        TINY,
    ],
    ids=["gold", "drift 0.15", "drift 0.5", "versions", "tiny"],
)
def test_removal_is_never_far_below_plain_at_each_ones_best(collection, tmp_path):
    if hasattr(collection, "cache"):
        collection = replace(collection, cache=tmp_path)
    best = {}
    for scheme in (REMOVED, SpotSignatures(), SpotSignatures(d=1, c=2)):
        stored = read(Source(collection=collection, text=VisibleText(), signature=scheme), tmp_path, Serial())
        cell = judge(stored=stored, idf_filter=IdfFilter(), matcher=SpotSigsTight(), taus=thresholds(0.02))
        best[repr(scheme)] = float(np.nanmax(Curve(cell).micro[2]))
    ours, *theirs = best.values()
    assert ours >= max(theirs) - 0.01


@pytest.mark.long
def test_all_of_it_on_a_small_collection(tmp_path):
    data = '"data=gold_versions data.seed=1 data.sites=2 data.stories=6"'
    drift = '"data=gold_drift data.seed=1 data.pages=40 data.clusters=6"'
    teasers = '"data=made_teasers data.sites=2 data.stories=3"'
    done = subprocess.run(
        [
            sys.executable, "run.py", "experiment=beyond", "workers=2", f"experiment.results={tmp_path}",
            f"experiment.collections=[{data}]", f"experiment.drifting={drift}", "experiment.drifts=[0.0,0.5]",
            f"experiment.timed=[{data}]", "experiment.timed_pages=5", f"experiment.teasers=[{teasers}]",
        ],
        cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "beyond"
    for name in ("beyond", "promise", "teasers", "text", "cost", "drift"):
        assert {path.suffix for path in folder.glob(f"{name}.*")} >= {".csv", ".json"}
    with (folder / "beyond.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert set(rows) == {method.label for method in methods()}
    assert all(float(row["f1"]) >= float(row["f1_18"]) for row in rows.values())
    with (folder / "text.csv").open(encoding="utf-8", newline="") as file:
        chosen = {(row["text"], row["signature"]): row for row in csv.DictReader(file)}
    assert set(chosen) == {(method.text, method.label) for method in texts()}
    assert chosen["visible", FRAMED]["f1"] == rows[FRAMED]["f1"]
    assert chosen["main", SHORT]["f1"] == rows[f"main text, {SHORT}"]["f1"]
    assert len({(row["f1_18"], row["f1_44"], row["f1"]) for row in chosen.values()}) > len(chosen) / 2
    with (folder / "drift.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 2 * 2 * len(methods())
