from fractions import Fraction

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotsigs import InputError, partition_boundaries
from spotsigs.matching.partitions import partner_lengths


@pytest.mark.parametrize(("tau", "count"), [(1.0, 501), (0.9, 41), (0.1, 3)])
def test_the_prototypes_convention_gives_the_counts_the_paper_reports(tau, count):
    assert len(partition_boundaries(tau, 1000, "prototype")) == count


def test_the_41_of_tau_09_is_a_rounding_artefact():
    assert len(partition_boundaries(0.9, 1000, "prototype", exact=True)) == 40


@pytest.mark.parametrize(
    ("tau", "exact", "count"), [(1.0, True, 1000), (0.9, True, 49), (0.9, False, 50), (0.1, True, 3)]
)
def test_the_papers_formula_gives_other_counts(tau, exact, count):
    assert len(partition_boundaries(tau, 1000, "paper", exact=exact)) == count


def test_the_slides_series_is_the_prototypes_for_075():
    assert partition_boundaries(0.75, 1000, "prototype")[:10].tolist() == [1, 3, 6, 10, 15, 22, 31, 43, 59, 80]
    assert partition_boundaries(0.7, 1000, "prototype")[:10].tolist() == [1, 3, 6, 10, 16, 24, 36, 53, 77, 112]
    assert partition_boundaries(0.7, 1000, "paper")[:10].tolist() == [1, 2, 3, 5, 8, 12, 18, 26, 38, 55]


@pytest.mark.parametrize("tau", ["1/3", "0.44", "0.5", "0.8", "0.9", "1", "0.07"])
def test_exact_boundaries_equal_rational_arithmetic(tau):
    assert partition_boundaries(float(Fraction(tau)), 400).tolist() == naive.boundaries_as_printed(Fraction(tau), 400)


@given(st.floats(0.01, 1.0), st.sampled_from(["paper", "prototype"]), st.integers(1, 300))
def test_similar_lengths_lie_in_the_same_or_neighbouring_partitions(tau, convention, rho):
    boundaries = partition_boundaries(tau, rho, convention)
    _, largest = partner_lengths(tau, 400)
    partition = np.searchsorted(boundaries, np.arange(1, 401), side="right")
    partition_of_largest = np.searchsorted(boundaries, largest[1:], side="right")
    assert np.all(partition_of_largest - partition <= 1)


@given(st.integers(1, 100), st.sampled_from([100, 97, 64]), st.integers(1, 300))
def test_partner_lengths_are_those_the_test_admits(numerator, denominator, length):
    tau = min(1.0, numerator / denominator)
    smallest, largest = partner_lengths(tau, length)
    candidates = np.arange(1, int(length / tau) + 3)
    admitted = candidates[np.minimum(candidates, length) / np.maximum(candidates, length) >= tau]
    assert (smallest[length], largest[length]) == (admitted.min(), admitted.max())


@pytest.mark.parametrize(
    "arguments", [{"tau": 0}, {"tau": 1.1}, {"tau": 0.5, "rho": 0}, {"tau": 0.5, "convention": "x"}]
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(InputError):
        partition_boundaries(**arguments)


@pytest.mark.parametrize("tau", [0.1, 1 / 3, 0.44, 0.5, 0.8, 0.9, 1.0])
def test_partner_lengths_entry_by_entry(tau):
    smallest, largest = partner_lengths(tau, 60)
    assert smallest.dtype == largest.dtype == np.int64
    assert (smallest[0], largest[0]) == (0, 0)
    for length in range(1, 61):
        admitted = [b for b in range(1, 700) if min(b, length) / max(b, length) >= tau]
        assert (smallest[length], largest[length]) == (admitted[0], admitted[-1])
    assert [len(part) for part in partner_lengths(tau, 0)] == [1, 1]


@pytest.mark.filterwarnings("error")
def test_no_length_is_too_large_for_the_least_thresholds():
    for tau in (5e-324, 1e-300, 2.0**-62):
        smallest, largest = partner_lengths(tau, 3)
        assert smallest.tolist() == [0, 1, 1, 1]
        assert (largest[1:] >= 2**62 - 1).all()


def test_boundaries_of_a_small_rho_and_their_defaults():
    assert partition_boundaries(0.5, 1).tolist() == [1]
    assert partition_boundaries(0.5, 1).dtype == np.int64
    assert partition_boundaries(0.5).tolist() == partition_boundaries(0.5, 1000, "paper", exact=True).tolist()
    assert partition_boundaries(1.0, 4).tolist() == [1, 2, 3, 4]
    assert partition_boundaries(1.0, 5, "prototype").tolist() == [1, 3, 5]
    with pytest.raises(InputError, match=r"^convention must be 'paper' or 'prototype', got 'x'$"):
        partition_boundaries(0.5, 1000, "x")
    with pytest.raises(InputError, match=r"^rho must lie in \[1, 10000000\], got 0$"):
        partition_boundaries(0.5, 0)


@pytest.mark.parametrize("hundredths", range(10, 101))
def test_partner_lengths_wherever_a_product_rounds(hundredths):
    tau, longest = hundredths / 100, 130
    smallest, largest = partner_lengths(tau, longest)
    lengths, candidates = np.arange(1, longest + 1)[:, None], np.arange(1, int(longest / tau) + 3)
    admitted = np.minimum(lengths, candidates) / np.maximum(lengths, candidates) >= tau
    np.testing.assert_array_equal(smallest[1:], 1 + admitted.argmax(axis=1))
    np.testing.assert_array_equal(largest[1:], len(candidates) - admitted[:, ::-1].argmax(axis=1))


def fractions_and_their_neighbours():
    """Return every threshold at which some lengths up to 40 are just similar, and the floats beside it."""
    exact = {a / b for b in range(1, 41) for a in range(1, b + 1)}
    beside = {float(np.nextafter(tau, end)) for tau in exact for end in (0.0, 2.0)}
    return sorted(tau for tau in exact | beside if 0.02 <= tau <= 1.0)


def test_partner_lengths_at_every_threshold_where_they_change():
    lengths = np.arange(1, 201)
    for tau in fractions_and_their_neighbours():
        smallest, largest = (part[1:] for part in partner_lengths(tau, 200))
        assert np.all(smallest / lengths >= tau), tau
        assert not np.any((smallest - 1) / lengths >= tau), tau
        assert np.all(lengths / largest >= tau), tau
        assert not np.any(lengths / (largest + 1) >= tau), tau


def test_the_paper_has_a_thousand_as_its_largest_boundary():
    assert partition_boundaries(1.0).tolist() == list(range(1, 1001))
