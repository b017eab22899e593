"""Quality curves over thresholds, and the facts of curve studies."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from runs import configured

from baselines.imatch import IMatch
from experiments.harness.curves import Curve, compared, quality_curve
from experiments.harness.extracted_collections import Source, read
from experiments.studies.quality import QualityCurves
from spotsigs.contracts import ThresholdMatcher
from spotsigs.engines import Serial
from spotsigs.errors import InputError
from spotsigs.evaluation.metrics import evaluate, tallies
from spotsigs.matching.algorithm1 import SpotSigs
from spotsigs.matching.prefix_join import SpotSigsTight, self_join
from spotsigs.method import Method
from spotsigs.records import Pairs, Truth
from spotsigs.signatures.spots import SpotSignatures


def drawn_curve(seed=0, clusters=12, taus=(0.2, 0.4, 0.6)):
    rng = np.random.default_rng(seed)
    n = 120
    truth = Truth(rng.integers(0, clusters, n).astype(np.int32), tuple(map(str, range(clusters))))
    i, j = np.triu_indices(n, 1)
    same = truth.labels[i] == truth.labels[j]
    similarity = np.clip(rng.normal(np.where(same, 0.55, 0.15), 0.15), 0.01, 1)
    pairs = Pairs.build(i, j, similarity, n)
    counts = [tallies(pairs.at(tau), truth) for tau in taus]
    cell = {"taus": list(taus), "pairs": [len(pairs.at(tau)) for tau in taus], "signatures": 1}
    cell |= {name: [c[m].tolist() for c in counts] for m, name in enumerate(("true", "false", "missed"))}
    return Curve(json.loads(json.dumps(cell))), pairs, truth


def test_averages_and_intervals_are_those_of_the_metrics():
    curve, pairs, truth = drawn_curve()
    for at, tau in enumerate(curve.taus):
        quality = evaluate(pairs.at(tau), truth)
        np.testing.assert_allclose(curve.micro[:, at], [quality.precision, quality.recall, quality.f1])
        np.testing.assert_allclose(
            curve.macro[:, at], [quality.macro_precision, quality.macro_recall, quality.macro_f1]
        )
        np.testing.assert_allclose(curve.interval("f1")[:, at], quality.intervals["f1"], atol=0.02)


def test_best_and_difference():
    curve, _, _ = drawn_curve()
    assert curve.micro[2, curve.best] == max(curve.micro[2])
    same = compared("x", curve, curve)
    assert (same.value, same.low, same.high) == (0, 0, 0)
    worse = Curve(curve.cell | {name: [curve.cell[name][0]] for name in ("taus", "true", "false", "missed")})
    found = compared("x", curve, worse)
    assert found.low <= found.value <= found.high
    assert found.value > 0
    with pytest.raises(ValueError, match=r"tau=0\.5 is not among"):
        curve.at(0.5)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    chosen = configured("data=tiny")
    source = Source(collection=chosen.collection, text=chosen.method.text, signature=SpotSignatures())
    return read(source, tmp_path_factory.mktemp("cells"), Serial())


def test_a_curve_needs_truth(tmp_path):
    vectors = read(
        Source(collection=configured("data=wt10g_like", "data.documents=100").collection), tmp_path, Serial()
    )
    with pytest.raises(ValueError, match="has no truth"):
        quality_curve(stored=vectors, method=Method(matcher=SpotSigs()), taus=[0.5])


def test_curve_of_a_matcher_without_threshold(stored):
    curve = Curve(quality_curve(stored=stored, method=Method(matcher=IMatch()), taus=[]))
    assert curve.taus == []
    assert curve.micro.shape == (3, 1)
    with pytest.raises(ValueError, match="no threshold to draw a curve over"):
        quality_curve(stored=stored, method=Method(matcher=IMatch()), taus=[0.5])


@dataclass(frozen=True, kw_only=True)
class Unverified(ThresholdMatcher):
    """The pairs of the exact join, without their similarity."""

    label = "Unverified"

    def __call__(self, corpus):
        found = self_join(corpus.vectors, self.tau)
        return replace(found, similarity=np.ones(len(found)))


def test_an_unverified_matcher_runs_at_each_threshold_of_its_curve(stored):
    cells = [
        quality_curve(stored=stored, method=Method(matcher=matcher), taus=[0.2, 0.5, 0.8])
        for matcher in (Unverified(), SpotSigsTight())
    ]
    assert cells[0]["pairs"] == cells[1]["pairs"]
    assert cells[0]["true"] == cells[1]["true"]
    assert len(set(cells[0]["pairs"])) == 3


def test_a_curve_study_compares_with_the_best_of_the_others():
    curves = {name: drawn_curve(seed)[0] for seed, name in enumerate("abc")}
    best = {name: float(np.nanmax(np.nan_to_num(curve.micro[2]))) for name, curve in curves.items()}
    study = QualityCurves(
        methods={key: {} for key in "abc"},
        baselines=["c"],
        comparisons={"a - the best other": ["a", "b", "c"], "a / b - 1": ["a", "b"]},
        relative=["a / b - 1"],
        spread="range",
    )
    facts = {fact.name.removeprefix("gold: "): fact for fact in study._facts("gold", curves)}
    listed = [f"{label}: best {what}" for label in "abc" for what in ("F1", "tau")]
    assert list(facts) == [*listed, "a - the best other", "a / b - 1", "range"]
    assert facts["a - the best other"].value == pytest.approx(best["a"] - max(best["b"], best["c"]))
    assert facts["a / b - 1"].value == pytest.approx(best["a"] / best["b"] - 1)
    assert facts["range"].value == pytest.approx(abs(best["a"] - best["b"]))
    assert facts["range"].low <= facts["range"].value


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"baselines": ["c"]}, "baselines must name methods, got .'c'."),
        ({"comparisons": {"x": ["a", "c"]}}, "'x' names .'c'.; the curves are .'a', 'b'."),
        ({"comparisons": {"x": ["a"]}}, "'x' needs at least two curves"),
        ({"relative": ["x"]}, "relative and at must name comparisons"),
        ({"panels": {"P": ""}, "comparisons": {"x": ["a", "b"]}}, "the curves are .'a, P', 'b, P'."),
    ],
)
def test_a_curve_study_checks_its_labels(wrong, message):
    with pytest.raises(InputError, match=message):
        QualityCurves(methods={"a": "", "b": ""}, **wrong)
