"""Bounds of the exact join, as tables over lengths; docs/bounds.md has the proofs.

Two multisets of lengths ``a`` and ``b`` (sums of counts) with overlap ``o`` are similar iff
``o / (a + b - o) >= tau`` in float64. Every table is derived from this test, never from a product such as
``(1 - tau) * a``, so no bound is stricter than the test. In the following, ``m`` is the least overlap that passes.

1. *Length filter.* The overlap is at most the shorter length, so similar pairs pass the test with ``o = min(a, b)``.
2. *Prefix filter with k common tokens.* In one total order of unit tokens (signature, number of its occurrence), the
   first ``a - m + k`` tokens of one list and the first ``b - m + k`` of the other have at least ``k`` in common.
3. *Positional filter.* The token at position ``i`` (from 0) of the list of length ``a`` is needed only for partners
   with ``i < a - m + k``. Since ``m`` grows with the partner's length, each position has a maximal partner length.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

HIGHEST_CLASS = 63
"""Highest class of document frequency, by which the join orders signatures."""


class Bounds(NamedTuple):
    """Tables for one threshold and all lengths up to ``longest``; all are int32."""

    least: NDArray[np.int32]  # (2 * longest + 1,) least overlap that makes a pair similar, by the sum of its lengths
    shortest: NDArray[np.int32]  # (longest + 1,) shortest length of a partner, by length
    longest: NDArray[np.int32]  # (longest + 1,) longest length of a partner
    common: NDArray[np.int32]  # (longest + 1,) common prefix tokens that a probing document requires (k); ascends
    probed: NDArray[np.int32]  # (longest + 1,) length of the prefix of a probing document


def bounds(tau: float, longest: int) -> Bounds:
    """Tabulate the bounds for a threshold in (0, 1] and all lengths up to a largest one, and at least 1."""
    longest = max(longest, 1)
    lengths = np.arange(longest + 1, dtype=np.int64)
    least = least_overlap(tau, np.arange(2 * longest + 1, dtype=np.int64))
    shortest, common, probed = prefixes(tau, np.maximum(lengths, 1), longest)
    probed[0] = 0  # an empty document probes for nothing
    # the longest partner is the last length whose shortest partner is not longer than this one
    longest_partner = np.searchsorted(shortest, lengths, side="right") - 1
    return Bounds(*(table.astype(np.int32) for table in (least, shortest, longest_partner, common, probed)))


def prefixes(
    tau: float, lengths: NDArray[np.int64], most_common: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return three bounds of some lengths, at least 1, without tables over all shorter ones; all are int64.

    The shortest length of a partner; the common prefix tokens that a pair needs whose shorter document has this length,
    which do not decrease with length; the length of the prefix that contains them, whether the document is the shorter
    or the longer one.
    """
    shortest = np.maximum(_first_true(lambda b: b / lengths >= tau, lengths * tau), 1)
    least = least_overlap(tau, lengths + shortest)
    # one common token yields too many chance candidates; three scan more postings than they save verifications
    common = np.maximum(np.minimum(np.minimum(2 + lengths // 96, least), most_common), 1)
    return shortest, common, lengths - least + common


def least_overlap(tau: float, total: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the least overlap ``o`` with ``o / (total - o) >= tau``, int64, for sums of two lengths below 2**52."""
    return _first_true(lambda o: o / np.maximum(total - o, 1) >= tau, total * (tau / (1 + tau)))


def least_shared(tau: float, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the least overlap of rows of some lengths, at least 1, with any similar row: a shortest partner."""
    shortest, _, _ = prefixes(tau, lengths, 1)
    return least_overlap(tau, lengths + shortest)


def _first_true(test: Any, estimate: NDArray[Any]) -> NDArray[np.int64]:
    """Return the least positive integer that passes a monotone test, from estimates with an error of at most 1."""
    value: NDArray[np.int64] = np.maximum(np.floor(estimate).astype(np.int64) - 1, 1)
    for _ in range(3):
        value += ~test(value)
    return value


def indexed_prefixes(bounds: Bounds, lowest: int, highest: int, own_side: bool) -> tuple[int, NDArray[np.int32]]:
    """Return the lengths of the prefixes to index for probing documents of ``lowest`` to ``highest`` tokens.

    The first result is the smallest length of a document that can be similar to one of them, the second (int32) the
    prefix length for each length from there to the largest that can. With ``own_side``, as in a self-join, documents
    are probed only by documents of at least their own length.
    """
    shortest = int(bounds.shortest[lowest])
    lengths = np.arange(shortest, (highest if own_side else bounds.longest[highest]) + 1)
    # the shortest partner in the band requires the longest prefix
    partner = np.maximum(lengths if own_side else bounds.shortest[lengths], lowest)
    taken = lengths - bounds.least[lengths + partner] + bounds.common[highest]
    return shortest, np.minimum(taken, lengths).astype(np.int32)


def rarity_classes(frequencies: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return 0 for a signature of at most one row, else two classes to each doubling of its rows; uint8."""
    mantissa, exponent = np.frexp(np.maximum(frequencies, 1))
    classes = 2 * exponent - 3 + (mantissa >= 0.75)
    return np.where(frequencies > 1, np.minimum(classes, HIGHEST_CLASS), 0).astype(np.uint8)
