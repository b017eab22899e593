"""Thresholds of any number type, extreme ids and sums."""

from __future__ import annotations

import tracemalloc
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from spotsigs.errors import InputError, as_tau
from spotsigs.matching.algorithm1 import SpotSigs
from spotsigs.matching.bounds import bounds
from spotsigs.matching.brute_force import BruteForce
from spotsigs.matching.partitions import partition_boundaries
from spotsigs.matching.prefix_join import SpotSigsTight, join, self_join
from spotsigs.records import Corpus, Vectors

FEW = Vectors.from_csr([0, 2, 4, 6], [0, 1, 0, 1, 5, 6])


@pytest.mark.parametrize(
    "tau", [Fraction(11, 25), Decimal("0.44"), np.float64(0.44), np.float32(0.5), np.longdouble("0.44"), 1, np.int64(1)]
)
def test_any_number_is_a_threshold_as_the_float_it_is(tau):
    assert type(as_tau(tau)) is float
    for kind in (SpotSigs, SpotSigsTight, BruteForce):
        matcher = kind(tau=tau)
        assert type(matcher.tau) is float
        assert matcher == kind(tau=float(tau))
        assert len(matcher(Corpus(FEW))) == 1
    assert len(self_join(FEW, tau)) == 1
    assert len(join(FEW, FEW, tau)) == 5
    assert partition_boundaries(tau, 9).tolist() == partition_boundaries(float(tau), 9).tolist()


@pytest.mark.parametrize("tau", ["0.44", None, True, [0.44], np.array([0.4, 0.5]), 0.4 + 0j, Decimal("sNaN"), 10**400])
@pytest.mark.parametrize(
    "use",
    [
        lambda tau: SpotSigs(tau=tau),
        lambda tau: BruteForce(tau=tau),
        lambda tau: self_join(FEW, tau),
        lambda tau: join(FEW, FEW, tau),
        lambda tau: partition_boundaries(tau, 9),
    ],
)
def test_what_is_no_number_is_refused_in_a_sentence(tau, use):
    with pytest.raises(InputError, match=r"^tau must be (a number )?in \(0, 1\], got "):
        use(tau)


@pytest.mark.parametrize("tau", [5e-324, 1e-300, 1e-17])
def test_the_least_thresholds_warn_of_nothing(tau):
    long = Vectors.from_csr([0, 1, 2, 3], [0, 0, 1], [2**31 - 1, 1, 5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bounds(tau, 100)
        for vectors in (FEW, long):
            expected = len(BruteForce(tau=tau)(Corpus(vectors)))
            assert expected == 1
            assert len(self_join(vectors, tau)) == len(SpotSigs(tau=tau)(Corpus(vectors))) == expected


def test_the_greatest_id_needs_no_memory():
    vectors = Vectors.from_csr([0, 2, 4, 5], [0, 2**31 - 2, 0, 2**31 - 2, 7])
    tracemalloc.start()
    actual = SpotSigs(tau=0.5)(Corpus(vectors))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert list(zip(actual.i.tolist(), actual.j.tolist(), actual.similarity.tolist(), strict=True)) == [(0, 1, 1.0)]
    assert peak < 2**30  # a bit for each possible number, for a moment


@pytest.mark.long
def test_sums_that_are_no_floats_any_more():
    """Two rows that differ, and whose similarity is 1 in float64."""
    n = (1 << 22) + 8
    ids = np.tile(np.arange(n, dtype=np.int32), 2)
    counts = np.full(2 * n, 2**31 - 1, np.int32)
    counts[-1] -= 1
    vectors = Vectors.from_csr([0, n, 2 * n], ids, counts)
    assert int(vectors.lengths.min()) > 2**53
    for tau in (1.0, 1 - 2**-53):
        assert len(BruteForce(tau=tau)(Corpus(vectors))) == len(self_join(vectors, tau)) == 1
        assert len(join(vectors, vectors, tau)) == 4
