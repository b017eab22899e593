"""Bounds of the exact join, as tables over lengths.

Two multisets of lengths ``a`` and ``b`` (sums of counts) with overlap ``o`` are similar iff
``o / (a + b - o) >= tau`` in float64. Every table below is derived from this test, never from a product such as
``(1 - tau) * a``, so no bound is stricter than the test.

1. *Length filter.* The overlap is at most the shorter length, so similar pairs pass the test with ``o = min(a, b)``.
2. *Prefix filter with k common tokens.* Let ``m`` be the least overlap that passes for ``a`` and ``b``. Let both
   multisets be lists of distinct unit tokens (signature, number of its occurrence) in one total order, and ``k <= m``.
   A similar pair has common tokens ``c1 < c2 < ... < cm``. After ``ck``, each list contains the ``m - k`` others, so
   ``c1 ... ck`` are among the first ``a - m + k`` tokens of one list and the first ``b - m + k`` of the other: these
   prefixes have at least ``k`` tokens in common. With ``k = 1`` this is the usual prefix filter.
3. *Positional filter.* By the same argument, the token at position ``i`` (from 0) of the list of length ``a`` is needed
   only for partners with ``i < a - m + k``. Since ``m`` grows with the partner's length, each position has a maximal
   partner length.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Bounds(NamedTuple):
    """Tables for one threshold and all lengths up to ``len(shortest) - 1``.

    Attributes
    ----------
    least : ndarray of int32, shape (2 * longest length + 1,)
        Least overlap that makes a pair similar, by the sum of its lengths.
    shortest, longest : ndarray of int32, shape (longest length + 1,)
        Shortest and longest length of a partner, by length.
    common : ndarray of int32, shape (longest length + 1,)
        Common prefix tokens that a probing document requires of a candidate (``k``); does not decrease with length.
    probed : ndarray of int32, shape (longest length + 1,)
        Length of the prefix of a probing document.
    """

    least: NDArray[np.int32]
    shortest: NDArray[np.int32]
    longest: NDArray[np.int32]
    common: NDArray[np.int32]
    probed: NDArray[np.int32]


def bounds(tau: float, longest: int) -> Bounds:
    """Tabulate the bounds.

    Parameters
    ----------
    tau : float
        Similarity threshold in (0, 1].
    longest : int
        Largest length to tabulate, in occurrences; the tables cover at least length 1.

    Returns
    -------
    Bounds
    """
    longest = max(longest, 1)
    lengths = np.arange(longest + 1, dtype=np.int64)
    least = least_overlap(tau, np.arange(2 * longest + 1, dtype=np.int64))
    shortest = np.maximum(_first_true(lambda b: b / np.maximum(lengths, 1) >= tau, lengths * tau), 1)
    # the longest partner is the last length whose shortest partner is not longer than this one
    longest_partner = np.searchsorted(shortest, lengths, side="right") - 1
    # k = 1 yields too many chance candidates; k = 3 scans more postings than it saves verifications
    common = np.maximum(np.minimum(2 + lengths // 96, least[lengths + shortest]), 1)
    probed = lengths - least[lengths + shortest] + common
    return Bounds(*(table.astype(np.int32) for table in (least, shortest, longest_partner, common, probed)))


def prefixes(
    tau: float, lengths: NDArray[np.int64], most_common: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the bounds of some lengths, without tables over all shorter ones.

    Parameters
    ----------
    tau : float
        Similarity threshold in (0, 1].
    lengths : ndarray of int64
        Lengths, at least 1.
    most_common : int
        Upper limit of ``common``.

    Returns
    -------
    shortest : ndarray of int64
        Shortest length of a partner.
    common : ndarray of int64
        Common prefix tokens that a pair needs whose shorter document has this length; does not decrease with length.
    prefix : ndarray of int64
        Length of the prefix that contains them, whether the document is the shorter or the longer one.
    """
    shortest = np.maximum(_first_true(lambda b: b / lengths >= tau, lengths * tau), 1)
    least = least_overlap(tau, lengths + shortest)
    common = np.maximum(np.minimum(np.minimum(2 + lengths // 96, least), most_common), 1)
    return shortest, common, lengths - least + common


def least_overlap(tau: float, total: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the least overlap ``o`` with ``o / (total - o) >= tau``.

    Parameters
    ----------
    tau : float
        Similarity threshold in (0, 1].
    total : ndarray of int64
        Sums of two lengths, below 2**52.

    Returns
    -------
    ndarray of int64
        Array of the same shape; does not decrease with ``total``.
    """
    return _first_true(lambda o: o / np.maximum(total - o, 1) >= tau, total * (tau / (1 + tau)))


def _first_true(test: Any, estimate: NDArray[Any]) -> NDArray[np.int64]:
    """Return the least positive integer that passes a monotone test, from estimates with an error of at most 1."""
    value: NDArray[np.int64] = np.maximum(np.floor(estimate).astype(np.int64) - 1, 1)
    for _ in range(3):
        value += ~test(value)
    return value


def indexed_prefixes(bounds: Bounds, lowest: int, highest: int, own_side: bool) -> tuple[int, NDArray[np.int32]]:
    """Return the lengths of the prefixes to index for probing documents of a band of lengths.

    Parameters
    ----------
    bounds : Bounds
        Tables of `bounds`.
    lowest, highest : int
        Smallest and largest length of the probing documents.
    own_side : bool
        True if documents are probed only by documents of at least their own length, as in a self-join.

    Returns
    -------
    shortest : int
        Smallest length of a document that can be similar to one of the band.
    taken : ndarray of int32
        Prefix length for each document length from ``shortest`` to the largest that can be similar.
    """
    shortest = int(bounds.shortest[lowest])
    lengths = np.arange(shortest, (highest if own_side else bounds.longest[highest]) + 1)
    # the shortest partner in the band requires the longest prefix
    partner = np.maximum(lengths if own_side else bounds.shortest[lengths], lowest)
    taken = lengths - bounds.least[lengths + partner] + bounds.common[highest]
    return shortest, np.minimum(taken, lengths).astype(np.int32)
