"""Halves are disjoint, thresholds are chosen on the other half, and the bootstrap resamples stories and sites."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.resampling import pairs_of_sample
from runs import read
from strategies import examples

from data.collections.gold import Gold
from experiments.harness.cross_validation import (
    Difference,
    Levels,
    OverSplits,
    PairsOfLevels,
    Splits,
    crossed_averages,
    effective_number,
    half_of,
    holm,
    multiplicities,
    over_splits,
    positive_pairs,
    resampled_decisions,
    site_of,
)
from experiments.harness.extracted_collections import Source
from spotsigs.engines import Serial
from spotsigs.errors import InputError
from spotsigs.evaluation.documents import count_stories
from spotsigs.evaluation.metrics import evaluate
from spotsigs.exact_duplicates import Sameness
from spotsigs.method import Method
from spotsigs.records import Pairs, Truth

SITE = r"/(.+)-[0-9]+\.html$"


@pytest.fixture
def archives(tmp_path):
    return Gold(seed=1, pages=150, clusters=24, cache=tmp_path)


def test_an_id_without_a_site_is_an_error():
    with pytest.raises(InputError, match="does not match the id 'a/b'"):
        site_of("a/b", SITE)
    assert site_of("a/b", "") == ""


@examples(60)
@given(st.data())
def test_weighted_pairs_are_those_of_the_sample(data):
    n = data.draw(st.integers(2, 8))
    numbers = st.lists(st.integers(0, 2), min_size=n, max_size=n)
    stories, sites = data.draw(numbers), data.draw(numbers)
    copies = st.lists(st.integers(0, 3), min_size=3, max_size=3)
    of_stories, of_sites = [data.draw(copies), [1, 1, 1]], [data.draw(copies), [1, 1, 1]]
    half = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    pairs = data.draw(st.lists(st.sampled_from(list(combinations(range(n), 2))), unique=True))
    reached = data.draw(st.lists(st.integers(0, 2), min_size=len(pairs), max_size=len(pairs)))
    i, j = np.array(pairs, int).reshape(-1, 2).T
    levels = Levels(stories=np.array(stories), sites=np.array(sites), story_names=[], site_names=[])
    numbers = (np.array(column, np.int32) for column in (i, j, reached))
    every = PairsOfLevels(*numbers, levels, 2)
    tallies = every.tallies(np.stack([half, ~half]), np.array(of_stories, float), np.array(of_sites, float))
    assert tallies.shape == (3, 2, 2, 2)

    def counted(same, levels, number, sample):
        chosen = [
            (i, j)
            for (i, j), level in zip(pairs, reached, strict=True)
            if (stories[i] == stories[j]) == same and level in levels and half[i] == half[j] == (number == 0)
        ]
        return pairs_of_sample(chosen, stories, sites, of_stories[sample], of_sites[sample])

    for number, sample, k in product((0, 1), repeat=3):
        above, below = range(k + 1, 3), range(k + 1)
        levels_of = ((True, above), (False, above), (True, below))
        expected = [counted(same, levels, number, sample) for same, levels in levels_of]
        assert tallies[:, number, sample, k].tolist() == expected


def test_crossed_averages_are_those_of_the_sample():
    stories, sites = [0, 0, 0, 1, 1], [0, 1, 2, 0, 1]
    levels = Levels(stories=np.array(stories), sites=np.array(sites), story_names=[], site_names=[])
    reported = [(0, 1), (0, 3), (3, 4)]
    of_story, other, missed = [(0, 1), (3, 4)], [(0, 3)], [(0, 2), (1, 2)]
    copies = [[1, 1], [2, 1], [0, 3]], [[1, 1, 1], [1, 2, 3], [1, 1, 2]]
    i, j = np.array(reported, np.int32).T
    drawn = np.array(copies[0], float), np.array(copies[1], float)
    averages = crossed_averages(Pairs.build(i, j, np.ones(3), 5), levels, drawn)
    for sample, (of_stories, of_sites) in enumerate(zip(*copies, strict=True)):
        samples = (pairs_of_sample(p, stories, sites, of_stories, of_sites) for p in (of_story, other, missed))
        true, false, lost = samples
        assert averages[0, sample] == pytest.approx(true / (true + false))
        assert averages[1, sample] == pytest.approx(true / (true + lost))


@examples(60)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=10), st.data())
def test_decisions_without_resampling_are_those_of_the_definition(labels, data):
    stories = np.unique(labels, return_inverse=True)[1]
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=len(labels), max_size=len(labels))))
    lost, left = resampled_decisions(kept, stories, np.ones((1, stories.max() + 1)))
    counts = count_stories(kept, Truth.from_clusters([str(label) for label in labels]))
    assert lost == [counts.lost]
    assert left == [counts.left] or (np.isnan(left[0]) and counts.left == 0)
    assert len(positive_pairs(stories)[0]) == sum(a == b for a, b in combinations(labels, 2))


def test_copies_depend_on_the_name_alone():
    first, second = multiplicities("story", ["a", "b"]), multiplicities("story", ["b", "c"])
    assert np.array_equal(first[:, 1], second[:, 0])
    assert not np.array_equal(first[:, 0], multiplicities("site", ["a"])[:, 0])
    assert multiplicities("story", [str(k) for k in range(100)]).mean() == pytest.approx(1, abs=0.02)


def test_a_split_has_two_halves_that_depend_on_names_and_split():
    names = [str(k) for k in range(40)]
    first = half_of("story", names, 7)
    assert first.shape == (7, 40)
    assert (first.sum(1) == 20).all()
    assert len({tuple(split) for split in first.tolist()}) == 7
    assert np.array_equal(half_of("story", names[::-1], 7), first[:, ::-1])
    assert not np.array_equal(half_of("site", names, 7), first)


def test_equal_clusters_count_fully():
    assert effective_number(np.array([5, 5, 5])) == 3
    assert effective_number(np.array([100, 1, 1])) == pytest.approx(1.04, abs=0.01)
    assert effective_number(np.zeros(3)) == 0


def method(f1, development):
    return OverSplits(({"f1": [[f1]], "development": [[development]]},))


def test_the_rival_is_chosen_where_the_threshold_is():
    spots = method([0.9, 0.9], [0.9, 0.9])
    early, late = method([0.8, 0.2], [0.7, 0.1]), method([0.1, 0.6], [0.2, 0.6])
    lead = Difference.of(spots, [early, late])
    assert lead.value == pytest.approx((0.1 + 0.3) / 2)  # early in the first half, late in the second
    assert lead.minus(lead).value == 0


def test_p_values_count_the_samples_beyond_the_bound():
    difference = Difference(np.array([[0.01, -0.01, 0.01, 0.03, 0.05]]))
    assert difference.p_above(0) == 2 / 5
    assert difference.p_below(0) == 4 / 5
    assert difference.p_differs == 4 / 5
    assert difference.p_equal(0.02) == 3 / 5
    assert difference.p_equal(0.04) == 2 / 5
    assert difference.value == 0.01
    assert Difference(np.array([[1.0, 0], [-1, 0], [2, 0], [3, 0]])).below == 0.25


def test_holm_rejects_as_in_the_definition():
    p = {"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}
    assert holm(p) == pytest.approx({"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06})


def test_each_half_is_evaluated_at_the_threshold_of_the_other(archives, tmp_path):
    method, taus = Method(duplicates=Sameness.off), [k / 10 for k in range(1, 11)]
    stored = read(Source.of(archives, method), tmp_path, Serial())
    study = Splits(taus=taus, site=SITE, stories=True, splits=3, samples=8)
    figures = over_splits(stored=stored, method=method, study=study)
    truth, joined = stored.truth(), stored.joined(method)
    halves = Levels.of(truth, stored.signatures().doc_ids, SITE).halves(3, by_story=True)
    assert not np.any(halves[:, 0] & halves[:, 1])

    def quality(half, tau):
        rows = np.flatnonzero(half)
        pairs = joined(method.matcher.at(tau)).pairs
        inside = [k for k in range(len(pairs)) if half[pairs.i[k]] and half[pairs.j[k]]]
        number = {row: k for k, row in enumerate(rows.tolist())}
        i, j = (np.array([number[int(side[k])] for k in inside], np.int32) for side in (pairs.i, pairs.j))
        of_half = Pairs(i, j, pairs.similarity[inside], len(rows))
        return evaluate(of_half, Truth(truth.labels[rows], truth.names), resamples=0)

    for split in range(3):
        for number, other in ((0, 1), (1, 0)):
            curve = np.nan_to_num([quality(halves[split, other], tau).f1 for tau in taus])
            assert figures["tau"][split][number] == taus[int(np.argmax(curve))]
            assert figures["development"][split][0][number] == pytest.approx(curve.max(), abs=1e-6)
            expected = quality(halves[split, number], figures["tau"][split][number])
            assert figures["f1"][split][0][number] == pytest.approx(expected.f1, abs=1e-6)
            assert figures["macro_f1"][split][number] == pytest.approx(expected.macro.f1, abs=1e-6)
            assert figures["lost"][split][0][number] == pytest.approx(expected.lost, abs=1e-6)
    over = OverSplits((figures, figures))
    low, high = over.interval("f1")
    assert low <= over.value("f1") + 0.2
    assert over.samples("f1").shape == (3, 9)
    assert over.samples("tau").shape == (3, 1)
    assert high <= 1
