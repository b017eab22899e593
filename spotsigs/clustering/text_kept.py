"""Removed pages that stay for their text: more than a fraction of it is rare, and in no page that stays.

The fraction is estimated from a sample of each page's distinct word 5-grams by their hashes, the same whatever the
memory, so that decisions depend on the pages alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.clustering.clusters import alone
from spotsigs.clustering.decisions import Decisions
from spotsigs.errors import require
from spotsigs.records import IntArray, WordGrams
from spotsigs.signatures.extract import GRAM_BITS, count_signatures
from spotsigs.spelling import flag

RARE = 4
"""Most distinct pages that have a rare 5-gram; templates and licences are in more."""

CERTAIN = 1.0
"""Standard errors of its sample by which a page has to exceed the fraction: short pages have few sampled 5-grams."""

MOST_BYTES = 1 << 29
"""Memory for hashes of a run without a budget."""

_BYTES = 48  # of a hash with its row, copies for sorting included
_AT_ONCE = 1 << 22  # hashes that are read at once
_LAST = 2 ** (64 - GRAM_BITS)  # the sampled hashes are smaller

Batches = Callable[[], Iterable[WordGrams]]
Entries = tuple[NDArray[np.uint64], NDArray[np.int32]]  # hashes, and the page of each


def largest_share(chosen: float | None, default: float, *, reference: bool) -> float:
    """Return the largest fraction of text that a removed page loses: 1, any, if there is a reference."""
    why = "a page that reaches tau with one of the reference is removed, whatever its text"
    require(chosen is None or not reference, f"{why}; leave out {flag('most_text_lost')}")
    return 1.0 if reference else default if chosen is None else chosen


def keep_for_text(
    decisions: Decisions,
    grams: Batches,
    share: float,
    *,
    priority: IntArray | None = None,
    old: int = 0,
    most_bytes: int = MOST_BYTES,
) -> Decisions:
    """Let removed pages stay until each has at most a fraction of rare text that is in no page that stays.

    In order of priority, a removed page stays, as a cluster of its own, if more than this fraction of its sampled word
    5-grams is in at most `RARE` distinct pages, of which none stays. Exact duplicates are one page.

    Parameters
    ----------
    decisions : Decisions
        Decisions by similarity.
    grams : callable
        Iterates, at each call, over the word 5-grams of the n documents, in order, in batches.
    share : float
        The largest fraction.
    priority : ndarray of int, shape (n,), optional
        Smaller values come first; by default the order of the documents.
    old : int
        Documents before this number are decided already.
    most_bytes : int
        Memory for hashes, on which the result does not depend.
    """
    of, n = decisions.exact_duplicates.representatives, len(decisions.kept)
    stays = np.zeros(n, np.bool_)  # sets of exact duplicates, by representative
    stays[of[decisions.kept]] = True
    rows = _in_order(decisions, stays, priority, old)
    sizes = np.zeros(n, np.int32)
    for _, pages in _sampled(grams, decisions.exact_duplicates.distinct):
        np.add.at(sizes, pages, 1)
    most = max(most_bytes // _BYTES, 1)
    text = _Text(grams, decisions.exact_duplicates.distinct, max(-(-int(sizes.sum()) // most), 1))
    sampled = sizes[of[rows]]
    limits = share * sampled + CERTAIN * np.sqrt(sampled * share * (1 - share))  # 5-grams that a page may lose
    found = np.zeros(n, np.bool_)
    while len(rows):
        once = list(text.lost(stays)) if text.ranges == 1 else None
        counts = np.zeros(n, np.int32)
        for _, pages in once or text.lost(stays):
            np.add.at(counts, pages, 1)
        still = counts[of[rows]] > limits  # each page that stays only lowers the counts of others
        rows, limits = rows[still], limits[still]
        fit = max(int(np.searchsorted(np.cumsum(counts[of[rows]]), most, side="right")), 1)
        some = rows[:fit]
        some = some[_first_come(once or text.lost(stays), of[some], limits[:fit], n)]
        found[some] = True
        stays[of[some]] = True
        rows, limits = rows[fit:], limits[fit:]
    clusters = alone(decisions.clusters, found)
    return replace(decisions, clusters=clusters, kept=decisions.kept | found, for_text=found)


def _in_order(decisions: Decisions, stays: NDArray[np.bool_], priority: IntArray | None, old: int) -> IntArray:
    """Return the documents that may stay, the first of each set of exact duplicates, in order of priority."""
    of = decisions.exact_duplicates.representatives
    rows = old + np.flatnonzero(~decisions.kept[old:])
    rows = rows[~stays[of[rows]]]
    if priority is not None:
        rows = rows[np.argsort(priority[rows], kind="stable")]
    first = np.unique(of[rows], return_index=True)[1]
    in_order: IntArray = rows[np.sort(first)]
    return in_order


def _sampled(grams: Batches, pages: NDArray[np.bool_], start: int = 0, stop: int = _LAST) -> Iterator[Entries]:
    """Yield the sampled 5-grams of some pages whose hashes are in a range."""
    row = 0
    for batch in grams():
        n, indptr = len(batch.indptr) - 1, batch.indptr
        for first, last in pairwise(np.unique([*np.searchsorted(indptr, range(0, indptr[-1], _AT_ONCE)), n]).tolist()):
            hashes = batch.hashes[indptr[first] : indptr[last]]
            wanted = (hashes < stop) & (hashes >= start) & WordGrams.are_grams(hashes)
            numbers = np.arange(row + first, row + last, dtype=np.int32)
            numbers = np.repeat(numbers, np.diff(indptr[first : last + 1]))[wanted]
            some = pages[numbers]
            yield hashes[wanted][some], numbers[some]
        row += n


@dataclass(frozen=True)
class _Text:
    """Sampled 5-grams of distinct pages, which are compared in ranges of their hashes."""

    grams: Batches
    distinct: NDArray[np.bool_]
    ranges: int

    def lost(self, stays: NDArray[np.bool_]) -> Iterator[Entries]:
        """Yield the rare 5-grams that are in no page that stays."""
        edges = [_LAST * k // self.ranges for k in range(self.ranges + 1)]
        for span in pairwise(edges):
            there = [hashes for hashes, _ in _sampled(self.grams, self.distinct & stays, *span)]
            hashes, pages = _joined(_sampled(self.grams, self.distinct & ~stays, *span))
            grams, counts = count_signatures(hashes)
            rare = grams[(counts <= RARE) & ~among(grams, count_signatures(np.concatenate([*there, hashes[:0]]))[0])]
            wanted = among(hashes, rare)
            yield hashes[wanted], pages[wanted]


def _joined(parts: Iterable[Entries]) -> Entries:
    columns = zip((np.empty(0, np.uint64), np.empty(0, np.int32)), *parts, strict=True)
    hashes, pages = (np.concatenate(column) for column in columns)
    return hashes, pages


def among(hashes: NDArray[np.uint64], distinct: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which of the hashes are among distinct ones, which ascend."""
    if not len(distinct):
        return np.zeros(len(hashes), np.bool_)
    at = np.minimum(np.searchsorted(distinct, hashes), len(distinct) - 1)
    found: NDArray[np.bool_] = distinct[at] == hashes
    return found


def _first_come(lost: Iterable[Entries], pages: IntArray, limits: NDArray[np.float64], n: int) -> NDArray[np.bool_]:
    """Return which of some pages stay, in their order: each saves its text for the later ones."""
    number = np.full(n, -1, np.int32)
    number[pages] = np.arange(len(pages), dtype=np.int32)
    hashes, numbers = _joined((some[number[of] >= 0], number[of][number[of] >= 0]) for some, of in lost)
    grams = np.searchsorted(count_signatures(hashes)[0], hashes)[np.argsort(numbers, kind="stable")]
    there, stays = np.zeros(len(hashes), np.bool_), np.zeros(len(pages), np.bool_)
    starts = row_starts(np.bincount(numbers, minlength=len(pages))).tolist()
    for k, (start, stop) in enumerate(pairwise(starts)):
        own = grams[start:stop]
        if np.count_nonzero(~there[own]) > limits[k]:
            stays[k] = True
            there[own] = True
    return stays
