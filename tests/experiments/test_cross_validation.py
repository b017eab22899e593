"""Halves are disjoint, thresholds come from the other half, and the bootstrap resamples stories and sites."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hydra import initialize_config_dir
from hypothesis import given
from hypothesis import strategies as st
from naive.resampling import pairs_of_sample
from strategies import examples

from data.collections.gold import Gold
from experiments.config import composed
from experiments.work.cross_validation import (
    Difference,
    Half,
    HalvedCollection,
    Result,
    cross_validated,
    multiplicities,
    positive_pairs,
    resampled_decisions,
    resampled_pairs,
    site_of,
)
from experiments.work.study import Work, lines_of
from spotsigs.errors import InputError
from spotsigs.evaluation.documents import decided
from spotsigs.evaluation.metrics import evaluate
from spotsigs.records import Truth

CONF = Path(__file__).parents[2] / "conf"
SITE = r"/(.+)-[0-9]+\.html$"


@pytest.fixture
def archives(tmp_path):
    return Gold(seed=1, pages=150, clusters=24, cache=tmp_path)


def documents(collection):
    return [record for shard in collection.shards() for record in shard()]


def test_halves_share_no_story_and_no_site(archives):
    halves = [documents(Half(collection=archives, number=number, site=SITE)) for number in (0, 1)]
    for name in (lambda page: page.cluster, lambda page: site_of(page.id, SITE)):
        first, second = ({name(page) for page in half} for half in halves)
        assert first
        assert second
        assert not first & second
    whole = {page.id for page in documents(archives)}
    assert {page.id for half in halves for page in half} < whole
    by_site = [documents(Half(collection=archives, number=k, site=SITE, stories=False)) for k in (0, 1)]
    assert {page.id for half in by_site for page in half} == whole


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
    of_stories, of_sites = data.draw(copies), data.draw(copies)
    pairs = data.draw(st.lists(st.sampled_from(list(combinations(range(n), 2))), unique=True))
    i, j = np.array(pairs, int).reshape(-1, 2).T
    factors = [(np.array(stories), np.array([of_stories])), (np.array(sites), np.array([of_sites]))]
    assert resampled_pairs(i, j, factors) == [pairs_of_sample(pairs, stories, sites, of_stories, of_sites)]


@examples(60)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=10), st.data())
def test_decisions_without_resampling_are_those_of_the_definition(labels, data):
    stories = np.unique(labels, return_inverse=True)[1]
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=len(labels), max_size=len(labels))))
    lost, left = resampled_decisions(kept, stories, np.ones((1, stories.max() + 1)))
    found = decided(kept, Truth.from_clusters([str(label) for label in labels]))
    assert lost == [found.lost]
    assert left == [found.left] or (np.isnan(left[0]) and found.left == 0)
    assert len(positive_pairs(stories)[0]) == sum(a == b for a, b in combinations(labels, 2))


def test_copies_depend_on_the_name_alone():
    first, second = multiplicities("story", ["a", "b"]), multiplicities("story", ["b", "c"])
    assert np.array_equal(first[:, 1], second[:, 0])
    assert not np.array_equal(first[:, 0], multiplicities("site", ["a"])[:, 0])
    assert multiplicities("story", [str(k) for k in range(100)]).mean() == pytest.approx(1, abs=0.02)


def result(*f1, development=(0.5, 0.5)):
    cells = tuple({"f1": value, "resampled": {"f1": [value - 0.1, value + 0.1]}} for value in f1)
    return Result((0.2, 0.3), development, cells)


def test_the_other_method_is_chosen_where_the_threshold_is():
    spots = result(0.9, 0.9)
    early, late = result(0.8, 0.2, development=(0.7, 0.1)), result(0.1, 0.6, development=(0.2, 0.6))
    lead = Difference.of(spots, [early, late])
    assert lead.value == pytest.approx((0.1 + 0.3) / 2)  # early in the first half, late in the second
    assert lead.verdict == "holds"
    assert Difference(0.1, np.array([-0.1, 0.2])).verdict == "inconclusive"
    assert lead.minus(lead).value == 0
    assert Difference.of(early, [spots]).verdict == "does not hold"


def test_each_half_is_evaluated_at_the_threshold_of_the_other(tmp_path):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        settings = composed("experiment=signatures", "workers=1", "engine=serial")
        words = f"data=gold data.seed=1 data.pages=150 data.clusters=24 +data.cache={tmp_path}"
        lines = lines_of({"spots": "signature=spotsigs"}, settings)
        work = Work.begin(tmp_path, settings)
        found = cross_validated(work, "gold", HalvedCollection(data=words, site=SITE), lines, 0.1)["spots"]
    assert len(found.cells) == 2
    for tau, development, cell, other in zip(found.taus, found.development, found.cells, (1, 0), strict=True):
        [stored] = [s for s in work.inputs.values() if s.source.collection.number == other]
        curve = []
        for step in range(1, 11):
            pairs = lines[0].matcher.at(step / 10)(stored.corpus(lines[0].idf_filter))
            curve.append(evaluate(pairs, stored.truth(), resamples=0).f1)
        assert development == pytest.approx(np.nanmax(curve))
        assert tau == pytest.approx((np.nanargmax(curve) + 1) / 10)
        [own] = [s for s in work.inputs.values() if s.source.collection.number == 1 - other]
        quality = evaluate(lines[0].matcher.at(tau)(own.corpus(lines[0].idf_filter)), own.truth(), resamples=0)
        assert cell["f1"] == pytest.approx(quality.f1)
        assert cell["stories_lost"] == quality.stories_lost
        assert cell["duplicates_left"] == quality.duplicates_left
        assert cell["bcubed_f1"] == pytest.approx(quality.bcubed_f1)
    low, high = found.interval["f1"]
    assert low <= found.value("f1") <= high
