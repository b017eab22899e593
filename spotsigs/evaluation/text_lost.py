"""Text lost: the part of the text of a collection that no kept page contains, a measure that needs no truth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.parallel import distinct
from spotsigs.records import WordGrams

MOST_LOST = 0.05
"""Fraction of the text in no kept page above which much is lost."""

FEWEST_REMOVED = 100
"""Least number of removed pages at which much lost text is reported. If a few pages are most of a collection, their
templates are much of its text."""

MOST_BYTES = 1 << 29
"""Memory for hashes of a run without a budget."""

_BYTES = 40  # of a hash with its page, copies for sorting included


@dataclass(frozen=True, slots=True)
class TextLost:
    """Distinct word 5-grams and sentences of a collection that no kept page contains."""

    share: float  # fraction of the distinct 5-grams of all pages that no kept page contains; 0 without any
    of_sentences: float  # the same fraction of the distinct sentences
    # The same fraction of each removed page's own 5-grams; NaN for kept pages, and for pages without a counted one.
    # Shape (n,).
    of_page: NDArray[np.float64]
    one_in: int  # one in so many distinct 5-grams and sentences is counted; the fractions are estimates unless it is 1

    @property
    def mostly_lost(self) -> int:
        """Number of removed pages with more than half of their 5-grams in no kept page."""
        return int(np.count_nonzero(self.of_page > 0.5))


class Drawn(NamedTuple):
    """Hashes of kept pages, and the hashes of each removed page.

    Both ascend once parts are concatenated, and the hashes of kept pages are distinct then.
    """

    kept: NDArray[np.uint64]
    removed: NDArray[np.uint64]
    rows: NDArray[np.int32]  # the page of each of them

    @classmethod
    def of(cls, grams: WordGrams, kept: NDArray[np.bool_], first: int) -> Drawn:
        """Return the hashes of consecutive pages, by the number of the first and which of them are kept."""
        sizes = np.diff(grams.indptr)
        stays = np.repeat(kept, sizes)
        rows = np.repeat(first + np.flatnonzero(~kept), sizes[~kept]).astype(np.int32)
        return cls(grams.hashes[stays], grams.hashes[~stays], rows)

    @classmethod
    def concatenate(cls, parts: Sequence[Drawn]) -> Drawn:
        """Return the hashes of the pages of several parts together, sorted."""
        kept, removed, rows = (np.concatenate(column) for column in zip(cls.none(), *parts, strict=True))
        order = np.argsort(removed)
        return cls(distinct(kept), removed[order], rows[order])

    @classmethod
    def none(cls) -> Drawn:
        """Return the hashes of no page."""
        return cls(np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.int32))

    @property
    def size(self) -> int:
        """Number of hashes."""
        return len(self.kept) + len(self.removed)

    def begin_with(self, bits: int) -> Drawn:
        """Return the hashes that begin with so many zero bits."""
        if not bits:
            return self
        m, n = (int(np.searchsorted(part, np.uint64(2 ** (64 - bits)))) for part in (self.kept, self.removed))
        return Drawn(self.kept[:m], self.removed[:n], self.rows[:n])


class Counted(NamedTuple):
    """Counts of distinct hashes in a range.

    ``own`` and ``lost`` are the 5-grams of removed pages, whose numbers ``pages`` has, and those in no kept page.
    """

    pages: NDArray[np.int32]
    own: NDArray[np.int64]
    lost: NDArray[np.int64]
    kept_grams: int
    kept_sentences: int
    lost_grams: int
    lost_sentences: int

    @classmethod
    def of(cls, parts: Sequence[Drawn]) -> Counted:
        """Count the hashes of a range, of all pages; each part is sorted."""
        kept, removed, rows = parts[0] if len(parts) == 1 else Drawn.concatenate(parts)
        lost, is_gram = ~_among(removed, kept), WordGrams.are_grams(removed)
        pages = distinct(rows[is_gram])
        own, without = (
            np.bincount(np.searchsorted(pages, rows[some]), minlength=len(pages)) for some in (is_gram, is_gram & lost)
        )
        totals = []
        for hashes in (kept, distinct(removed[lost])):
            n_grams = int(np.count_nonzero(WordGrams.are_grams(hashes)))
            totals += [n_grams, len(hashes) - n_grams]
        return cls(pages, own, without, *totals)


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
    most, bits, row = max(most_bytes // _BYTES, 2), 0, 0
    drawn, waiting, size = Drawn.none(), list[Drawn](), 0
    for batch in grams:
        bits, n = max(bits, batch.bits), len(batch.indptr) - 1
        if row + n > len(kept):
            return None
        waiting.append(Drawn.of(batch.drawn(bits), kept[row : row + n], row))
        row, size = row + n, size + waiting[-1].size
        if size > most // 2:
            drawn, bits = _fitting(Drawn.concatenate([drawn, *waiting]), bits, most)
            waiting, size = [], 0
    if row < len(kept):
        return None
    drawn, bits = _fitting(Drawn.concatenate([drawn, *waiting]), bits, most)
    return measured([Counted.of([drawn])], len(kept), bits)


def _fitting(drawn: Drawn, bits: int, most: int) -> tuple[Drawn, int]:
    """Return the hashes that begin with more zero bits, and how many bits, so that there are no more than most."""
    drawn = drawn.begin_with(bits)
    while drawn.size > most and bits < 64:
        bits += 1
        drawn = drawn.begin_with(bits)
    return drawn, bits


def bits_for(samples: Iterable[tuple[int, int]], most: int) -> int:
    """Return with how many zero bits hashes begin of which no more than `most` are expected.

    Each sample has a number of hashes, and the number of zero bits with which these begin at least.
    """
    known = list(samples)
    bits = max((own for _, own in known), default=0)
    while bits < 63 and sum(size >> (bits - own) for size, own in known) > most:
        bits += 1
    return bits


def is_much(share: float, removed: int) -> bool:
    """Whether a run that removes so many pages should lose less text."""
    return removed >= FEWEST_REMOVED and share > MOST_LOST


def shares_lost(grams: WordGrams | None) -> Callable[[NDArray[np.bool_]], float]:
    """Return the function from the pages that are kept to `TextLost.share`, for many decisions on one collection.

    The collection has no pages if `grams` is None.
    """
    if grams is None:
        return lambda kept: 0.0
    known = distinct(grams.hashes)
    is_gram = WordGrams.are_grams(known)
    gram = np.searchsorted(known, grams.hashes).astype(np.int32)
    sizes = np.diff(grams.indptr)

    def share(kept: NDArray[np.bool_]) -> float:
        stays = np.zeros(len(known), np.bool_)
        stays[gram[np.repeat(kept, sizes)]] = True
        return int((is_gram & ~stays).sum()) / max(int(is_gram.sum()), 1)

    return share


def _among(hashes: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which of the hashes are among others, which ascend."""
    if not len(known):
        return np.zeros(len(hashes), np.bool_)
    at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    found: NDArray[np.bool_] = known[at] == hashes
    return found


def measured(parts: Iterable[Counted], n: int, bits: int) -> TextLost:
    """Return the measure of n pages by the counts of all ranges of hashes that begin with so many zero bits."""
    own, lost, totals = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(4, np.int64)
    for part in parts:
        own[part.pages] += part.own
        lost[part.pages] += part.lost
        totals += part[3:]
    kept_grams, kept_sentences, lost_grams, lost_sentences = totals.tolist()
    of_page = np.full(n, np.nan)
    np.divide(lost, own, out=of_page, where=own > 0)
    share = lost_grams / max(kept_grams + lost_grams, 1)
    return TextLost(share, lost_sentences / max(kept_sentences + lost_sentences, 1), of_page, 1 << bits)
