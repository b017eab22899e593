from fractions import Fraction

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotsigs import InputError, partition_boundaries


@pytest.mark.parametrize(("tau", "count"), [(1.0, 501), (0.9, 41), (0.1, 3)])
def test_the_prototypes_convention_gives_the_counts_the_paper_reports(tau, count):
    assert len(partition_boundaries(tau, 1000, "prototype")) == count


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
def test_similar_lengths_are_in_the_same_or_neighbouring_partitions(tau, convention, rho):
    boundaries = partition_boundaries(tau, rho, convention)
    assert np.all(
        (boundaries[1:-1] - 1) / boundaries[2:] < tau
    )  # the longest of one partition, the shortest of the next but one


def test_boundaries_of_a_small_rho_and_their_defaults():
    assert partition_boundaries(0.5, 1).tolist() == [1]
    assert partition_boundaries(0.5, 1).dtype == np.int64
    assert partition_boundaries(0.5).tolist() == partition_boundaries(0.5, 1000, "paper", exact=True).tolist()
    assert partition_boundaries(1.0, 4).tolist() == [1, 2, 3, 4]
    assert partition_boundaries(1.0, 5, "prototype").tolist() == [1, 3, 5]
    with pytest.raises(InputError, match=r"^convention must be 'paper' or 'prototype', got 'x'$"):
        partition_boundaries(0.5, 1000, "x")
    with pytest.raises(InputError, match=r"^rho must be in \[1, 10000000\], got 0$"):
        partition_boundaries(0.5, 0)
