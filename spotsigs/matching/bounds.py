"""Bounds of the exact join, as tables over lengths.

Two multisets of lengths ``a`` and ``b`` (sums of counts) with overlap ``o`` are similar iff
``o / (a + b - o) >= tau`` in float64. Every table below is derived from that very test, never from a product such as
``(1 - tau) * a``, so that no bound is stricter than the test.

1. *Length.* The overlap is at most the shorter length, so similar pairs pass the test with ``o = min(a, b)``.
2. *Prefix with k meetings.* Let ``m`` be the least overlap that passes for ``a`` and ``b``, let both multisets be lists
   of distinct unit tokens (signature, number of its occurrence) in one total order, and let ``k <= m``. A similar pair
   has common tokens ``c1 < c2 < ... < cm``. Behind ``ck`` each list still holds the ``m - k`` others, so ``c1 ... ck``
   lie among the first ``a - m + k`` tokens of one list and among the first ``b - m + k`` of the other: the pair meets
   at least ``k`` times inside these prefixes. With ``k = 1`` this is the usual prefix filter.
3. *Position.* For the same reason the token at position ``i`` (from 0) of the list of length ``a`` concerns only
   partners with ``i < a - m + k``; ``m`` grows with the partner's length, which bounds that length for each position.
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
        Lengths a partner can have, by length.
    meetings : ndarray of int32, shape (longest length + 1,)
        The ``k`` of a document that looks for partners; does not decrease with length.
    probed : ndarray of int32, shape (longest length + 1,)
        Tokens such a document looks up.
    """

    least: NDArray[np.int32]
    shortest: NDArray[np.int32]
    longest: NDArray[np.int32]
    meetings: NDArray[np.int32]
    probed: NDArray[np.int32]


def bounds(tau: float, longest: int) -> Bounds:
    """Tabulate the bounds.

    Parameters
    ----------
    tau : float
        Similarity threshold in (0, 1].
    longest : int
        Greatest length to tabulate, in occurrences; tables reach to 1 at least.

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
    # one meeting happens by chance too often, three cost more postings than the verifications they save
    meetings = np.maximum(np.minimum(2 + lengths // 96, least[lengths + shortest]), 1)
    probed = lengths - least[lengths + shortest] + meetings
    return Bounds(*(table.astype(np.int32) for table in (least, shortest, longest_partner, meetings, probed)))


def prefixes(
    tau: float, lengths: NDArray[np.int64], most_meetings: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the bounds of some lengths alone, without tables over all that are shorter.

    Parameters
    ----------
    tau : float
        Similarity threshold in (0, 1].
    lengths : ndarray of int64
        At least 1.
    most_meetings : int
        What ``meetings`` shall not exceed.

    Returns
    -------
    shortest : ndarray of int64
        Least length a partner can have.
    meetings : ndarray of int64
        The ``k`` of a pair whose shorter document has this length; does not decrease with length.
    prefix : ndarray of int64
        Tokens among which such a document, as the shorter or the longer one, has its meetings.
    """
    shortest = np.maximum(_first_true(lambda b: b / lengths >= tau, lengths * tau), 1)
    least = least_overlap(tau, lengths + shortest)
    meetings = np.maximum(np.minimum(np.minimum(2 + lengths // 96, least), most_meetings), 1)
    return shortest, meetings, lengths - least + meetings


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
        Same shape; it does not decrease with ``total``.
    """
    return _first_true(lambda o: o / np.maximum(total - o, 1) >= tau, total * (tau / (1 + tau)))


def _first_true(test: Any, estimate: NDArray[Any]) -> NDArray[np.int64]:
    """Return the least positive integer that passes a test monotone in it, given estimates off by at most one."""
    value: NDArray[np.int64] = np.maximum(np.floor(estimate).astype(np.int64) - 1, 1)
    for _ in range(3):
        value += ~test(value)
    return value


def indexed_prefixes(bounds: Bounds, lowest: int, highest: int, own_side: bool) -> tuple[int, NDArray[np.int32]]:
    """Return how many tokens documents must offer to probing documents of a band of lengths.

    Parameters
    ----------
    bounds : Bounds
        Tables.
    lowest, highest : int
        Least and greatest length of the probing documents.
    own_side : bool
        Whether a document is probed only by documents at least as long as itself, as in a self-join.

    Returns
    -------
    shortest : int
        Least length of a document that can be similar to one of the band.
    taken : ndarray of int32
        Tokens for each length from ``shortest`` to the greatest that can be similar.
    """
    shortest = int(bounds.shortest[lowest])
    lengths = np.arange(shortest, (highest if own_side else bounds.longest[highest]) + 1)
    # the shortest partner in the band asks for the longest prefix
    partner = np.maximum(lengths if own_side else bounds.shortest[lengths], lowest)
    taken = lengths - bounds.least[lengths + partner] + bounds.meetings[highest]
    return shortest, np.minimum(taken, lengths).astype(np.int32)
