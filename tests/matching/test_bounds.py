"""The tables of the exact join, entry by entry, from their definitions in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotsigs.matching.bounds import bounds, indexed_prefixes, least_overlap, prefixes

TAUS = [0.01, 0.1, 0.3, 1 / 3, 0.44, 0.5, 0.6, 0.75, 0.8, 0.9, 0.99, 1.0]


def similar(overlap, total, tau):
    return overlap / max(total - overlap, 1) >= tau


def least(tau, total):
    return next(o for o in range(total + 2) if similar(o, total, tau))


def partners(tau, length, longest):
    return [b for b in range(1, longest + 1) if min(b, length) / max(b, length) >= tau]


def meetings(tau, length, longest):
    return max(min(2 + length // 96, least(tau, length + partners(tau, length, longest)[0])), 1)


@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("longest", [1, 2, 120])
def test_each_table(tau, longest):
    tables = bounds(tau, longest)
    assert all(table.dtype == np.int32 for table in tables)
    assert len(tables.least) == 2 * longest + 1
    assert tables.least.tolist() == [least(tau, total) for total in range(2 * longest + 1)]
    for table in (tables.shortest, tables.longest, tables.common, tables.probed):
        assert len(table) == longest + 1
    assert (tables.shortest[0], tables.probed[0]) == (1, 0)  # an empty document probes for no partner
    for length in range(1, longest + 1):
        possible = partners(tau, length, longest)
        k = meetings(tau, length, longest)
        assert (tables.shortest[length], tables.longest[length]) == (possible[0], possible[-1])
        assert tables.common[length] == k
        assert tables.probed[length] == length - least(tau, length + possible[0]) + k


@pytest.mark.parametrize("tau", [*TAUS, 0.07, 0.999, 1e-300])
@pytest.mark.parametrize("most", [1, 2, 255])
def test_prefixes_of_some_lengths_are_those_of_the_tables(tau, most):
    lengths = np.array([1, 2, 3, 50, 95, 96, 97, 191, 192, 250])
    tables = bounds(tau, 250)
    shortest, k, prefix = prefixes(tau, lengths, most)
    assert shortest.tolist() == tables.shortest[lengths].tolist()
    assert k.tolist() == np.minimum(tables.common[lengths], most).tolist()
    assert prefix.tolist() == (tables.probed[lengths].astype(int) - tables.common[lengths] + k).tolist()


@given(st.sampled_from(TAUS), st.integers(1, 110), st.integers(0, 20), st.booleans())
def test_prefixes_of_a_band(tau, lowest, width, own_side):
    longest = 120
    highest = min(lowest + width, longest)
    tables = bounds(tau, longest)
    shortest, taken = indexed_prefixes(tables, lowest, highest, own_side)
    assert taken.dtype == np.int32
    assert shortest == partners(tau, lowest, longest)[0]
    upto = highest if own_side else partners(tau, highest, longest)[-1]
    k = meetings(tau, highest, longest)
    expected = []
    for length in range(shortest, upto + 1):
        # of all lengths in the band, the one with the longest prefix of this document
        partner = min(max(length if own_side else partners(tau, length, longest)[0], lowest), highest)
        expected.append(min(length, length - least(tau, length + partner) + k))
    assert taken.tolist() == expected


@given(st.sampled_from(TAUS), st.integers(1, 120), st.integers(1, 120), st.booleans())
def test_a_prefix_serves_every_probing_document_of_its_band(tau, a, b, own_side):
    """For each probing length b of a band, a document of length a offers enough for the b's number of meetings."""
    tables = bounds(tau, 120)
    if min(a, b) / max(a, b) < tau or (own_side and a > b):
        return
    for lowest, highest in ((b, b), (max(1, b - 5), b), (b, min(120, b + 5))):
        shortest, taken = indexed_prefixes(tables, lowest, highest, own_side)
        if shortest <= a < shortest + len(taken):
            assert taken[a - shortest] >= min(a, a - least(tau, a + b) + tables.common[b])


@pytest.mark.parametrize("tau", [0.44, 0.9, 1.0])
def test_the_least_overlap_of_long_documents_passes_and_one_less_does_not(tau):
    totals = np.random.default_rng(1).integers(2**40, 2**51, 200)
    for overlap, total in zip(least_overlap(tau, totals), totals, strict=True):
        assert similar(overlap, total, tau)
        assert not similar(overlap - 1, total, tau)


def fractions_and_their_neighbours():
    """Return every threshold at which some lengths up to 40 are just similar, and the neighbouring floats."""
    exact = {a / b for b in range(1, 41) for a in range(1, b + 1)}
    adjacent = {float(np.nextafter(tau, end)) for tau in exact for end in (0.0, 2.0)}
    return sorted(tau for tau in exact | adjacent if 0.02 <= tau <= 1.0)


def test_tables_at_every_threshold_where_they_change():
    lengths, totals = np.arange(1, 121), np.arange(241)
    for tau in fractions_and_their_neighbours():
        tables = bounds(tau, 120)
        least, shortest = tables.least.astype(np.int64), tables.shortest[1:].astype(np.int64)
        assert np.all(least / np.maximum(totals - least, 1) >= tau), tau
        assert not np.any((least - 1) / np.maximum(totals - least + 1, 1) >= tau), tau
        assert np.all(shortest / lengths >= tau), tau
        assert not np.any((shortest - 1) / lengths >= tau), tau
        assert np.array_equal(np.sort(least), least), tau
