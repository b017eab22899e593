"""Thresholds without labels: where the valley is, its evidence, and when there is none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotsigs.errors import InputError
from spotsigs.evaluation.threshold import BINS, FEWEST, FLOOR, suggest

RANDOM = np.random.default_rng(8)


def hill(centre: float, width: float, n: int) -> np.ndarray:
    return np.clip(np.exp(RANDOM.normal(np.log(centre), width, n)), 0, 1)


UNRELATED, COPIES = hill(0.05, 0.4, 5000), hill(0.7, 0.25, 400)


def separation(counts: list[int], tau: float) -> float:
    """Return the fraction of the variance of the bins' numbers that is between those below and above a similarity."""
    values = np.repeat(np.arange(len(counts)) + 0.5, counts)
    place = BINS * np.log(tau / FLOOR) / np.log(1 / FLOOR)
    sides = [values[values < place - 1e-6], values[values >= place - 1e-6]]
    between = sum(len(side) * (side.mean() - values.mean()) ** 2 for side in sides if len(side))
    return between / len(values) / values.var()


def test_between_two_hills():
    suggestion = suggest(np.concatenate([UNRELATED, COPIES]))
    assert suggestion.tau is not None
    assert 0.15 < suggestion.tau < 0.4
    assert separation(suggestion.counts.tolist(), suggestion.tau) == pytest.approx(suggestion.separation)
    assert suggestion.separation > 0.5
    assert "is in the valley" in suggestion.reason


def test_evidence():
    similarities = np.concatenate([UNRELATED, COPIES, [1.0, FLOOR, FLOOR / 2, np.nan]])
    suggestion = suggest(similarities)
    assert len(suggestion.counts) == len(suggestion.edges) - 1 == BINS
    assert (suggestion.edges[0], suggestion.edges[-1]) == (FLOOR, 1.0)
    assert np.allclose(np.diff(np.log(suggestion.edges)), np.log(1 / FLOOR) / BINS)
    assert suggestion.counts.sum() == np.count_nonzero(similarities >= FLOOR)
    for k in range(BINS):
        upper = similarities <= 1 if k == BINS - 1 else similarities < suggestion.edges[k + 1]
        assert suggestion.counts[k] == np.count_nonzero((similarities >= suggestion.edges[k]) & upper)


@pytest.mark.parametrize(
    ("similarities", "message"),
    [
        ([], "only 0 pairs"),
        ([0.5] * (FEWEST - 1), "a histogram needs"),
        ([1.0] * 100, "are in one bin"),
        ([0.01] * 1000 + [0.9], "only 1 pair "),
        (hill(0.3, 0.3, 3000), "no valley"),
        (UNRELATED, "no valley"),
        (np.concatenate([UNRELATED, hill(0.2, 0.1, 800)]), "as pages with a shared template have it"),
        (np.exp(np.linspace(np.log(FLOOR), 0, 3000)), "no valley"),
        (np.concatenate([UNRELATED, [0.9, 0.95]]), "no valley"),
    ],
)
def test_refused_with_a_reason(similarities, message):
    suggestion = suggest(np.array(similarities, np.float64))
    assert suggestion.tau is None
    assert message in suggestion.reason


def test_the_valley_before_the_copies_and_not_another_one():
    suggestion = suggest(np.concatenate([UNRELATED, hill(0.5, 0.1, 400), hill(0.97, 0.01, 60)]))
    assert suggestion.tau is not None
    assert 0.15 < suggestion.tau < 0.4


def test_in_the_middle_of_an_empty_valley():
    suggestion = suggest(np.repeat([0.05, 0.8], 100))
    assert suggestion.tau == pytest.approx(np.sqrt(0.05 * 0.8), rel=0.1)
    assert suggestion.separation == pytest.approx(1)


@given(st.lists(st.integers(0, 20), min_size=BINS, max_size=BINS).filter(lambda counts: sum(counts) >= FEWEST))
def test_any_histogram(counts):
    edges = np.exp(np.linspace(np.log(FLOOR), 0, BINS + 1))
    similarities = np.repeat(np.sqrt(edges[1:] * edges[:-1]), counts)
    suggestion = suggest(similarities)
    assert suggestion.counts.tolist() == counts
    if suggestion.tau is not None:
        assert suggestion.tau < max(similarities)
        assert suggestion.separation == pytest.approx(separation(counts, suggestion.tau))
    shuffled = suggest(np.random.default_rng(0).permutation(similarities))
    assert (shuffled.tau, shuffled.reason) == (suggestion.tau, suggestion.reason)


def test_wrong_input():
    with pytest.raises(InputError, match="floor must be in"):
        suggest(np.array([0.5]), floor=0)
    with pytest.raises(InputError, match="must not exceed 1"):
        suggest(np.array([1.5]))
