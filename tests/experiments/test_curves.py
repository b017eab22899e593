"""Quality curves over thresholds, and the facts of curve studies."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from runs import configured, read

from baselines.imatch import IMatch
from experiments.evaluate import QualityCells, intervals_of
from experiments.harness.curves import Curve, compared, paired_samples, pooled, thresholds
from experiments.harness.extracted_collections import Source
from experiments.resample import RESAMPLES, Levels, PairsOfLevels, crossed_averages
from experiments.studies.compared_methods import OnCollection
from experiments.studies.comparison import MethodComparison
from spotsigs.contracts import ThresholdMatcher
from spotsigs.errors import InputError
from spotsigs.evaluation.metrics import MEASURES, evaluate, percentile_interval
from spotsigs.matching.algorithm1 import SpotSigs
from spotsigs.matching.prefix_join import SpotSigsTight, self_join
from spotsigs.method import Method
from spotsigs.records import Pairs, Truth
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.workers.engines import Serial


def drawn_curve(seed=0, clusters=12, taus=(0.2, 0.4, 0.6)):
    rng = np.random.default_rng(seed)
    n = 120
    truth = Truth(rng.integers(0, clusters, n).astype(np.int32), tuple(map(str, range(clusters))))
    i, j = np.triu_indices(n, 1)
    same = truth.labels[i] == truth.labels[j]
    similarity = np.clip(rng.normal(np.where(same, 0.55, 0.15), 0.15), 0.01, 1)
    pairs = Pairs.build(i, j, similarity, n)
    levels = Levels.of(truth, None)
    crossed = crossed_averages(PairsOfLevels.of(pairs, truth, levels, taus), levels.drawn(RESAMPLES))
    cells = [{"tau": tau} | evaluate(pairs.at(tau), truth, resamples=0).figures() for tau in taus]
    for k, cell in enumerate(cells):
        cell["intervals"] = intervals_of(crossed[..., k])
    value = {"cells": cells, "crossed": crossed.tolist()}
    return Curve(json.loads(json.dumps(value))), pairs, truth


def test_differences_are_drawn_by_the_samples_of_the_intervals():
    curve, _, _ = drawn_curve()
    other, _, _ = drawn_curve(seed=1)
    samples = paired_samples([(curve, 1), (other, 1), (curve, 1)])
    for m, measure in enumerate(MEASURES):
        for k, one in enumerate((curve, other)):
            np.testing.assert_allclose(percentile_interval(samples[k, m]), one.interval(measure)[:, 1])
    np.testing.assert_array_equal(samples[0], samples[2])


def test_best_and_difference():
    curve, _, _ = drawn_curve()
    assert curve.values("f1")[curve.best] == max(curve.values("f1"))
    same = compared("x", curve, curve)
    assert (same.value, same.low, same.high) == (0, 0, 0)
    worse = Curve({"cells": curve.value["cells"][:1], "crossed": curve.crossed[..., :1].tolist()})
    difference = compared("x", curve, worse)
    assert difference.low <= difference.value <= difference.high
    assert difference.value > 0
    with pytest.raises(ValueError, match=r"tau=0\.5 is not among"):
        curve.at(0.5)
    assert thresholds(0.25, 0.44, None, 0.5) == [0.25, 0.44, 0.5, 0.75, 1]


def test_pooled_curves_have_the_mean_and_its_interval():
    rng = np.random.default_rng(3)
    curves = []
    for seed in range(3):
        drawn, _, _ = drawn_curve(seed)
        rows = [{"f1": cell["f1"], "lost_low": 0.1, "method": "m", "tau": cell["tau"]} for cell in drawn.cells]
        curves.append(Curve(drawn.value | {"crossed": rng.random((3, 50, 3)).tolist()}, rows))
    curves[1].cells[2]["precision"] = np.nan  # undefined on one collection
    del curves[2].rows[1]["lost_low"]
    mean = pooled(curves)
    expected = [np.mean([curve.values("f1")[at] for curve in curves]) for at in range(3)]
    np.testing.assert_allclose(mean.values("f1"), expected)
    assert mean.values("precision")[2] == pytest.approx(np.mean([curves[k].values("precision")[2] for k in (0, 2)]))
    assert mean.taus == curves[0].taus
    samples = np.mean([curve.crossed for curve in curves], axis=0)
    np.testing.assert_allclose(mean.interval("recall"), np.quantile(samples[1], [0.025, 0.975], axis=0))
    assert np.isnan(mean.interval("macro_f1")).all()
    row = mean.row(1)
    assert (row["f1"], row["method"], row["lost_low"]) == (pytest.approx(expected[1]), "m", None)
    assert (row["f1_low"], row["f1_high"]) == tuple(mean.interval("f1")[:, 1])
    assert pooled(curves[:1]) is curves[0]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    chosen = configured("data=tiny")
    source = Source(collection=chosen.collection, text=chosen.method.text, signature=SpotSignatures())
    return read(source, tmp_path_factory.mktemp("cells"), Serial())


def test_a_curve_needs_truth(tmp_path):
    collection = configured("data=wt10g_like", "data.documents=100").collection
    vectors = read(Source(collection=collection), tmp_path, Serial())
    with pytest.raises(ValueError, match="has no truth"):
        QualityCells(stored=vectors, method=Method(matcher=SpotSigs()), taus=[0.5], data="tiny")()


def test_curve_of_a_matcher_without_threshold(stored):
    curve = Curve(QualityCells(stored=stored, method=Method(matcher=IMatch()), taus=[], data="tiny")())
    assert curve.taus == []
    assert curve.values("f1").shape == (1,)
    with pytest.raises(ValueError, match="no threshold to draw a curve over"):
        QualityCells(stored=stored, method=Method(matcher=IMatch()), taus=[0.5], data="tiny")()


@dataclass(frozen=True, kw_only=True)
class Unverified(ThresholdMatcher):
    """The pairs of the exact join, without their similarity."""

    label = "Unverified"

    def __call__(self, corpus):
        pairs = self_join(corpus.vectors, self.tau)
        return replace(pairs, similarity=np.ones(len(pairs)))


def test_an_unverified_matcher_runs_at_each_threshold_of_its_curve(stored):
    exact, unverified = [
        QualityCells(stored=stored, method=Method(matcher=matcher), taus=[0.2, 0.5, 0.8], data="tiny")()
        for matcher in (Unverified(), SpotSigsTight())
    ]
    assert [cell["pairs"] for cell in exact["cells"]] == [cell["pairs"] for cell in unverified["cells"]]
    np.testing.assert_array_equal(exact["crossed"], unverified["crossed"])
    assert len({cell["pairs"] for cell in exact["cells"]}) == 3
    assert [cell["joined_at"] for cell in unverified["cells"]] == [None, 0.2, 0.2]


def test_a_curve_study_compares_with_the_best_of_the_others():
    curves = {name: drawn_curve(seed)[0] for seed, name in enumerate("abc")}
    best = {name: max(curve.values("f1")) for name, curve in curves.items()}
    study = MethodComparison(
        methods={key: {} for key in "abc"},
        facts={
            "a - the best other": {"of": ["a", "b", "c"]},
            "a / b - 1": {"of": ["a", "b"], "relative": True},
            "range": {"spread": ["c"]},
        },
        further={"newsframes": {}},
    )
    work = SimpleNamespace(settings=SimpleNamespace(names={"data": "gold"}))
    part = OnCollection(work, {}, curves, {label: {"of": label, "grid": "{}"} for label in curves})
    facts = {fact.name.removeprefix("gold: "): fact for fact in study.facts_of(part)}
    listed = [f"{label}: best {what}" for label in "abc" for what in ("F1", "tau")]
    assert list(facts) == [*listed, "a - the best other", "a / b - 1", "range"]
    assert facts["a - the best other"].value == pytest.approx(best["a"] - max(best["b"], best["c"]))
    assert facts["a / b - 1"].value == pytest.approx(best["a"] / best["b"] - 1)
    assert facts["range"].value == pytest.approx(abs(best["a"] - best["b"]))
    assert facts["range"].low <= facts["range"].value


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"facts": {"range": {"spread": ["c"]}}}, "'range' must leave out methods, got .'c'."),
        ({"facts": {"x": {"of": ["a", "c"]}}}, "'x' names .'c'.; the methods are .'a', 'b'."),
        ({"facts": {"x": {"of": ["a"]}}}, "'x' needs at least two methods"),
        ({"panels": {"P": {}}, "facts": {"x": {"of": ["a", "b"]}}}, "the methods are .'a, P', 'b, P'."),
    ],
)
def test_a_curve_study_checks_its_labels(wrong, message):
    with pytest.raises(InputError, match=message):
        MethodComparison(methods={"a": {}, "b": {}}, **wrong)
