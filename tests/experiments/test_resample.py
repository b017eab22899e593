"""Halves are disjoint, thresholds are chosen on the other half, and the bootstrap resamples stories and sites."""

from __future__ import annotations

from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.resampling import pairs_of_sample
from strategies import examples

from data.truth import truth_of_pairs
from experiments.resample import (
    Levels,
    PairsOfLevels,
    crossed_averages,
    half_of,
    held_out_f1,
    holm,
    multiplicities,
    p_differs,
    sites_of,
)
from spotsigs.errors import InputError
from spotsigs.records import Pairs, Truth


def test_sites_are_those_of_the_pattern_or_the_hosts_of_urls():
    pages = SimpleNamespace(site_pattern=r"/(.+)-[0-9]+\.html$")
    assert sites_of(pages, ["1/herald-2.html", "1/post-2.html"]) == ["herald", "post"]
    drawn = SimpleNamespace(site_pattern=pages.site_pattern, sites=2)
    assert sites_of(drawn, ["1/herald-2.html", "1/post-2.html"]) == ["herald", "post"]
    with pytest.raises(InputError, match="does not match the id 'a/b'"):
        sites_of(pages, ["a/b"])
    assert sites_of(None, ["https://a.example/x", "http://b.example:80/"]) == ["a.example", "b.example"]
    assert sites_of(None, ["https://a.example/x", "b"]) is None
    assert sites_of(None, []) is None
    assert sites_of(SimpleNamespace(sites={"a": "x", "b": "y"}), ["b", "a"]) == ["y", "x"]


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
    every = PairsOfLevels(*numbers, np.array([stories[a] == stories[b] for a, b in pairs], bool), levels, 2)
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
    truth = Truth(np.array(stories, np.int32), ("a", "b"))
    every = PairsOfLevels.of(Pairs.build(i, j, np.ones(3), 5), truth, levels, [0.5])
    averages = crossed_averages(every, drawn)[..., 0]
    for sample, (of_stories, of_sites) in enumerate(zip(*copies, strict=True)):
        samples = (pairs_of_sample(p, stories, sites, of_stories, of_sites) for p in (of_story, other, missed))
        true, false, lost = samples
        assert averages[0, sample] == pytest.approx(true / (true + false))
        assert averages[1, sample] == pytest.approx(true / (true + lost))


@examples(30)
@given(st.data())
def test_each_half_has_the_threshold_that_is_best_on_the_other(data):
    """In each sample, and without one; judged pairs alone count if there are any."""
    n = data.draw(st.integers(4, 8))
    labels = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    sites = data.draw(st.lists(st.sampled_from("xyz"), min_size=n, max_size=n))
    every = list(combinations(range(n), 2))
    similarity = data.draw(st.lists(st.sampled_from([0.0, 0.3, 0.6, 0.9]), min_size=len(every), max_size=len(every)))
    reported = {pair: value for pair, value in zip(every, similarity, strict=True) if value}
    taus = [0.2, 0.5, 0.8]
    i, j = np.array([*reported], np.int32).reshape(-1, 2).T
    pairs = Pairs.build(i, j, np.array([*reported.values()]), n)
    truth = Truth.from_clusters([str(label) for label in labels])
    known = set(every)
    if data.draw(st.booleans()):
        known = data.draw(st.sets(st.sampled_from(every)))
        a, b = np.array(sorted(known), np.int64).reshape(-1, 2).T
        same = np.array([labels[x] == labels[y] for x, y in sorted(known)], bool)
        truth = truth_of_pairs(a, b, same, n)
    levels = Levels.of(truth, sites)
    positive = {pair for pair in known if labels[pair[0]] == labels[pair[1]]}
    values = held_out_f1([PairsOfLevels.of(pairs, truth, levels, taus)], splits=2, samples=2)
    apart = [PairsOfLevels.of(pairs.at(tau), truth, levels, [0.0]) for tau in taus]
    assert held_out_f1(apart, splits=2, samples=2).tolist() == values.tolist()
    of_stories, of_sites = (part.astype(int).tolist() for part in levels.drawn(2))
    expected = []
    for sample in range(3):
        stories_in = [1] * len(levels.story_names) if sample == 0 else of_stories[sample - 1]
        sites_in = [1] * len(levels.site_names) if sample == 0 else of_sites[sample - 1]

        def f1(half, tau, stories_in=stories_in, sites_in=sites_in):
            inside = {pair for pair in known if half[pair[0]] and half[pair[1]]}
            found = {pair for pair in inside if reported.get(pair, 0) >= tau}
            parts = (found & positive, found - positive, (inside & positive) - found)
            numbers = levels.stories.tolist(), levels.sites.tolist(), stories_in, sites_in
            true, false, missed = (pairs_of_sample(sorted(part), *numbers) for part in parts)
            return 2 * true / (2 * true + false + missed) if 2 * true + false + missed else 0

        scores = []
        for halves in levels.halves(2):
            for half, other in ((halves[0], halves[1]), (halves[1], halves[0])):
                scores.append(f1(half, max(taus, key=lambda tau, other=other: f1(other, tau))))
        expected.append(np.mean(scores))
    assert values == pytest.approx(expected)


def test_stories_of_one_site_each_are_split_by_their_sites():
    truth = Truth.from_clusters(["a", "a", "b", "b", "c", "c"])
    nested = Levels.of(truth, ["x", "x", "y", "y", "y", "y"]).halves(5)
    assert nested.any(1).all()
    assert (nested[..., 0::2] == nested[..., 1::2]).all()
    crossed = Levels.of(truth, ["x", "y"] * 3).halves(5)
    assert not np.any(crossed[:, 0] & crossed[:, 1])
    assert not crossed.any(1).all()


def test_a_p_value_counts_one_more_sample_on_both_sides():
    assert p_differs(np.full(99, 0.1)) == 2 / 100
    assert p_differs(np.array([-1.0, 1, 2, 3])) == 4 / 5
    assert p_differs(np.zeros(9)) == 1


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


def test_holm_rejects_as_in_the_definition():
    p = {"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}
    assert holm(p) == pytest.approx({"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06})
