"""Text lost: the part of the text of a collection that no kept page contains, a measure that needs no truth."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spotsigs.records import WordGrams
from spotsigs.signatures.extract import count_signatures

MOST_LOST = 0.05
"""Fraction of the text in no kept page above which much is lost."""

FEWEST_REMOVED = 100
"""Least number of removed pages at which much lost text is reported. If a few pages are most of a collection, their
templates are much of its text."""

MOST_BYTES = 1 << 29
"""Memory for hashes of a run without a budget."""

_BYTES = 40  # of a hash with its row, copies for sorting included
_KEPT = -1  # instead of the row of a kept page


@dataclass(frozen=True, slots=True)
class TextLost:
    """Distinct word 5-grams and sentences of a collection that no kept page contains.

    Attributes
    ----------
    share : float
        Fraction of the distinct 5-grams of all pages that no kept page contains; 0 without any.
    of_sentences : float
        The same fraction of the distinct sentences.
    of_page : ndarray of float64, shape (n,)
        The same fraction of each removed page's own 5-grams; NaN for kept pages, and for pages without a counted one.
    one_in : int
        One in so many distinct 5-grams and sentences is counted; the fractions are estimates unless it is 1.
    """

    share: float
    of_sentences: float
    of_page: NDArray[np.float64]
    one_in: int

    @property
    def mostly_lost(self) -> int:
        """Number of removed pages with more than half of their 5-grams in no kept page."""
        return int(np.count_nonzero(self.of_page > 0.5))


class _Sample:
    """Distinct hashes of kept and removed pages that begin with ``bits`` zero bits, as many as fit."""

    def __init__(self, capacity: int) -> None:
        self.hashes, self.rows = np.empty(capacity, np.uint64), np.empty(capacity, np.int32)
        self.size = self.bits = 0

    def drawn(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        drawn: NDArray[np.bool_] = hashes >> np.uint64(64 - self.bits) == 0
        return drawn

    def add(self, hashes: NDArray[np.uint64], row: int) -> None:
        """Add the distinct hashes of a page, the row being `_KEPT` for a kept one."""
        hashes = hashes[self.drawn(hashes)]
        while self.size + len(hashes) > len(self.hashes):
            self._shrink(len(hashes))
            hashes = hashes[self.drawn(hashes)]
        self._append(hashes, row)

    def begin(self, bits: int) -> None:
        """Prepare for pages whose own sample has hashes with so many zero bits only."""
        if bits > self.bits:
            self.bits = bits
            self._shrink(0)

    def _append(self, hashes: NDArray[np.uint64], rows: int | NDArray[np.int32]) -> None:
        new = slice(self.size, self.size + len(hashes))
        self.hashes[new], self.rows[new] = hashes, rows
        self.size += len(hashes)

    def _shrink(self, more: int) -> None:
        """Remove repeated hashes of kept pages; if that does not free half of the capacity, halve the sample."""
        kept, hashes, rows = self.parts()
        self.bits += max(len(kept) + len(hashes), more) > len(self.hashes) // 2
        drawn = self.drawn(hashes)
        kept, hashes, rows = kept[self.drawn(kept)], hashes[drawn], rows[drawn]
        self.size = 0
        self._append(kept, _KEPT)
        self._append(hashes, rows)

    def parts(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int32]]:
        """Return the distinct hashes of kept pages, and those of each removed page with its row."""
        hashes, rows = self.hashes[: self.size], self.rows[: self.size]
        removed = rows != _KEPT
        return _distinct(hashes[~removed]), hashes[removed], rows[removed]


def _distinct(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return count_signatures(hashes)[0]  # sorted: np.unique builds a hash table, which takes twenty times as long


def text_lost(grams: Iterable[WordGrams], kept: NDArray[np.bool_], *, most_bytes: int = MOST_BYTES) -> TextLost | None:
    """Measure the text that no kept page contains, in one pass over the word 5-grams and sentences of the pages.

    Parameters
    ----------
    grams : iterable of WordGrams
        Word 5-grams and sentences of the pages, in order, in batches.
    kept : ndarray of bool, shape (n,)
        The pages that are kept.
    most_bytes : int
        Memory for hashes. If all do not fit, one in two, four, ... is counted, by its hash.

    Returns
    -------
    TextLost or None
        None if the batches have not ``n`` pages: the input has changed since it was read.

    Examples
    --------
    >>> from spotsigs.signatures.extract import grams_of
    >>> pages = ["one two three four five", "one two three four five six", "a page of its own"]
    >>> lost = text_lost(grams_of(pages), np.array([True, False, True]))
    >>> lost.share, lost.of_page.tolist()
    (0.3333333333333333, [nan, 0.5, nan])
    """
    sample, row = _Sample(max(most_bytes // _BYTES, 2)), 0
    for batch in grams:
        sample.begin(batch.bits)
        for start, stop in pairwise(batch.indptr.tolist()):
            if row == len(kept):
                return None
            sample.add(batch.hashes[start:stop], _KEPT if kept[row] else row)
            row += 1
    return _measured(sample, len(kept)) if row == len(kept) else None


def is_much(share: float, removed: int) -> bool:
    """Whether a run that removes so many pages should lose less text."""
    return removed >= FEWEST_REMOVED and share > MOST_LOST


def shares_lost(grams: WordGrams | None) -> Callable[[NDArray[np.bool_]], float]:
    """Return the function from the pages that are kept to `TextLost.share`, for many decisions on one collection.

    The collection has no pages if `grams` is None.
    """
    if grams is None:
        return lambda kept: 0.0
    distinct = _distinct(grams.hashes)
    is_gram = WordGrams.are_grams(distinct)
    gram = np.searchsorted(distinct, grams.hashes).astype(np.int32)
    sizes = np.diff(grams.indptr)

    def share(kept: NDArray[np.bool_]) -> float:
        stays = np.zeros(len(distinct), np.bool_)
        stays[gram[np.repeat(kept, sizes)]] = True
        return int((is_gram & ~stays).sum()) / max(int(is_gram.sum()), 1)

    return share


def _among(hashes: NDArray[np.uint64], distinct: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which of the hashes are among distinct ones, which ascend."""
    if not len(distinct):
        return np.zeros(len(hashes), np.bool_)
    at = np.minimum(np.searchsorted(distinct, hashes), len(distinct) - 1)
    found: NDArray[np.bool_] = distinct[at] == hashes
    return found


def _measured(sample: _Sample, n: int) -> TextLost:
    kept, hashes, rows = sample.parts()
    lost = ~_among(hashes, kept)
    is_gram, kept_grams, lost_grams = map(WordGrams.are_grams, (hashes, kept, _distinct(hashes[lost])))
    own = np.bincount(rows[is_gram], minlength=n)
    of_page = np.full(n, np.nan)
    np.divide(np.bincount(rows[is_gram & lost], minlength=n), own, out=of_page, where=own > 0)
    n_grams, n_sentences = int(lost_grams.sum()), int((~lost_grams).sum())
    share = n_grams / max(int(kept_grams.sum()) + n_grams, 1)
    of_sentences = n_sentences / max(int((~kept_grams).sum()) + n_sentences, 1)
    return TextLost(share, of_sentences, of_page, 1 << sample.bits)
