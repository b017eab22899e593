"""Text lost: the part of the text of a collection that no kept page contains, a measure that needs no truth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.parallel import distinct
from spotsigs.arrays.types import Int32s, Int64s, UInt64s
from spotsigs.records import WordGrams

MOST_LOST = 0.05
"""Fraction of the text in no kept page above which much is lost."""

FEWEST_REMOVED = 100
"""Least number of removed pages at which much lost text is reported. If a few pages are most of a collection, their
templates are much of its text."""

MOST_BYTES = 1 << 29
"""Memory for hashes of a run without a budget."""

RANGE_HASHES = 1 << 16
"""Hashes of a range that is counted at once: sets of them fit the processor's cache."""

_BYTES = 40  # of a hash with its page, a copy in ranges included
_STAYS = -1
_MOST_BITS = 64


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


class PageHashes(NamedTuple):
    """Hashes of pages in CSR form, and the number of each row's page, or `_STAYS` for pages that are kept."""

    indptr: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    pages: NDArray[np.int32]

    @classmethod
    def of(cls, grams: WordGrams, kept: NDArray[np.bool_], first: int) -> PageHashes:
        """Return the hashes of consecutive pages, by the number of the first and which of them are kept."""
        pages = np.where(kept, _STAYS, np.arange(first, first + len(kept))).astype(np.int32)
        return cls(grams.indptr, grams.hashes, pages)

    @classmethod
    def concatenate(cls, parts: Sequence[PageHashes]) -> PageHashes:
        """Return the hashes of the pages of several parts together."""
        if len(parts) == 1:
            return parts[0]
        sizes = [np.diff(part.indptr) for part in parts]
        hashes = np.concatenate([np.empty(0, np.uint64), *(part.hashes for part in parts)])
        pages = np.concatenate([np.empty(0, np.int32), *(part.pages for part in parts)])
        return cls(row_starts(np.concatenate([np.empty(0, np.int64), *sizes])), hashes, pages)

    def in_ranges(self, begin: int, end: int, n: int) -> Ranges:
        """Return the hashes from ``begin`` to below ``end`` in ``n`` ranges of one width; all three are powers of two.

        ``begin`` may also be 0. There are no more ranges than hashes that are possible, and two at least if all are.
        """
        shift = (end - begin).bit_length() - n.bit_length()
        return Ranges(*_in_ranges(*self, np.uint64(begin), np.uint64(end - 1), np.uint64(shift), n))


class Drawn(NamedTuple):
    """Hashes of kept pages, which may be repeated, and the hashes of each removed page."""

    kept: NDArray[np.uint64]
    removed: NDArray[np.uint64]
    pages: NDArray[np.int32]  # the number of the page of each hash of a removed page, ascending


class Ranges(NamedTuple):
    """Hashes of kept and of removed pages, as `Drawn`, by ranges, and where each range begins and the last one ends."""

    kept: NDArray[np.uint64]
    removed: NDArray[np.uint64]
    pages: NDArray[np.int32]
    kept_edges: NDArray[np.int64]
    removed_edges: NDArray[np.int64]

    def drawn(self, number: int) -> Drawn:
        """Return the hashes of a range."""
        kept, removed = (slice(*edges[number : number + 2].tolist()) for edges in self[3:])
        return Drawn(self.kept[kept], self.removed[removed], self.pages[removed])


@kernel
def _in_ranges(
    indptr: Int64s, hashes: UInt64s, pages: Int32s, begin: np.uint64, last: np.uint64, shift: np.uint64, n: int
) -> tuple[UInt64s, UInt64s, Int32s, Int64s, Int64s]:
    """Return the hashes from ``begin`` to ``last`` by ranges, in the order of the pages within a range."""
    edges = np.zeros((2, n + 1), np.int64)
    for r in range(len(pages)):
        side = 0 if pages[r] == _STAYS else 1
        for at in range(indptr[r], indptr[r + 1]):
            if begin <= hashes[at] <= last:
                edges[side, np.int64((hashes[at] - begin) >> shift) + 1] += 1
    for k in range(n):
        edges[0, k + 1] += edges[0, k]
        edges[1, k + 1] += edges[1, k]
    kept, removed = np.empty(edges[0, n], np.uint64), np.empty(edges[1, n], np.uint64)
    of_removed, at_end = np.empty(edges[1, n], np.int32), edges.copy()
    for r in range(len(pages)):
        for at in range(indptr[r], indptr[r + 1]):
            if not begin <= hashes[at] <= last:
                continue
            number = np.int64((hashes[at] - begin) >> shift)
            if pages[r] == _STAYS:
                kept[at_end[0, number]] = hashes[at]
                at_end[0, number] += 1
            else:
                removed[at_end[1, number]], of_removed[at_end[1, number]] = hashes[at], pages[r]
                at_end[1, number] += 1
    return kept, removed, of_removed, edges[0], edges[1]


@kernel
def _hash_set(n: int) -> UInt64s:
    """Return an empty set for so many hashes: open addressing, linear probing; the last entry is not 0 if 0 is in."""
    slots = 2
    while slots < 2 * n:
        slots *= 2
    return np.zeros(slots + 1, np.uint64)


@kernel
def _slot(known: UInt64s, wanted: np.uint64) -> np.int64:
    """Return the slot of a hash in a set, or the empty one in which it belongs."""
    if wanted == 0:
        return np.int64(len(known) - 1)
    mask = np.uint64(len(known) - 2)
    slot = wanted >> np.uint64(1) & mask  # the lowest bit is the same for most, and the highest ones for a range
    while known[slot] != 0 and known[slot] != wanted:
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


@kernel
def _add(known: UInt64s, new: np.uint64, totals: Int64s) -> None:
    """Add a hash to a set; count it among the 5-grams, which are even, or the sentences if the set has not had it."""
    slot = _slot(known, new)
    totals[new & np.uint64(1)] += known[slot] == 0
    known[slot] = new if new != 0 else np.uint64(1)


@kernel
def _count(
    kept: UInt64s, removed: UInt64s, pages: Int32s, known: UInt64s, absent: UInt64s
) -> tuple[Int32s, Int32s, Int32s, Int64s]:
    """Return the columns of `Counted` and its totals; the two sets are empty."""
    totals, n = np.zeros(4, np.int64), 0
    for at in range(len(kept)):
        _add(known, kept[at], totals[:2])
    for at in range(len(pages)):
        n += at == 0 or pages[at] != pages[at - 1]
    numbers, own, lost = np.empty(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32)
    row = -1
    for at in range(len(removed)):
        if at == 0 or pages[at] != pages[at - 1]:
            row += 1
            numbers[row] = pages[at]
        is_gram = removed[at] & np.uint64(1) == 0
        own[row] += is_gram
        if known[_slot(known, removed[at])] == 0:
            lost[row] += is_gram
            _add(absent, removed[at], totals[2:])
    return numbers, own, lost, totals


class Counted(NamedTuple):
    """Counts of distinct hashes in a range.

    ``pages`` has the numbers of removed pages, ``own`` counts the 5-grams of each, and ``lost`` counts the 5-grams of
    each that are in no kept page.
    """

    pages: NDArray[np.int32]
    own: NDArray[np.int32]
    lost: NDArray[np.int32]
    totals: NDArray[np.int64]  # 5-grams and sentences of kept pages, then both in no kept page. Shape (4,).

    @classmethod
    def of(cls, parts: Sequence[Drawn]) -> Counted:
        """Count the hashes of a range, of all pages, which are in parts in their order."""
        kept, removed, pages = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
        return cls(*_count(kept, removed, pages, _hash_set(len(kept)), _hash_set(len(removed))))


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
    waiting, size = list[PageHashes](), 0
    for batch in grams:
        n = len(batch.indptr) - 1
        if row + n > len(kept):
            return None
        if size > most // 2:
            rest, bits = _fitting(PageHashes.concatenate(waiting), bits, most)
            waiting, size = [rest], 0
        bits = max(bits, batch.bits)
        waiting.append(PageHashes.of(batch.drawn(bits), kept[row : row + n], row))
        row, size = row + n, size + len(waiting[-1].hashes)
    if row < len(kept):
        return None
    parts, bits = _counted(PageHashes.concatenate(waiting), bits, most)
    return measured(parts, len(kept), bits)


def _fitting(hashed: PageHashes, bits: int, most: int) -> tuple[PageHashes, int]:
    """Return no more hashes, without repeated ones of kept pages, and with how many zero bits they begin."""
    of_hashes = np.repeat(hashed.pages, np.diff(hashed.indptr))
    stays = of_hashes == _STAYS
    kept, removed, pages = distinct(hashed.hashes[stays]), hashed.hashes[~stays], of_hashes[~stays]
    while True:
        drawn = removed <= _last(bits)
        kept, removed, pages = kept[kept <= _last(bits)], removed[drawn], pages[drawn]
        if len(kept) + len(removed) <= most or bits == _MOST_BITS:
            break
        bits += 1
    indptr = np.append(0, np.arange(len(kept), len(kept) + len(removed) + 1))  # a row for each hash of a removed page
    return PageHashes(indptr, np.concatenate([kept, removed]), np.append(np.int32(_STAYS), pages)), bits


def _counted(hashed: PageHashes, bits: int, most: int) -> tuple[list[Counted], int]:
    """Count hashes in ranges, and return with how many zero bits they begin, so that there are no more than `most`.

    Repeated hashes of kept pages are one. The hashes with most zero bits are counted first, then twice as many.
    """
    highest = bits
    while highest < _MOST_BITS and np.count_nonzero(hashed.hashes <= _last(highest)) > most:
        highest += 1
    parts, size, drawn = list[Counted](), 0, highest
    for end in range(64 - highest, 64 - bits + 1):  # of the logarithm of the end of the hashes
        begin = end - 1 if end > 64 - highest else -1
        log_width = end if begin < 0 else begin
        expected = len(hashed.hashes) >> (64 - bits - log_width)
        log_n = min(max((expected // RANGE_HASHES).bit_length(), log_width == 64), log_width)
        ranges = hashed.in_ranges(1 << begin if begin >= 0 else 0, 1 << end, 1 << log_n)
        counted = [Counted.of([ranges.drawn(k)]) for k in range(1 << log_n)]
        size += sum(int(part.totals[:2].sum()) for part in counted) + len(ranges.removed)
        if parts and size > most:
            break
        parts, drawn = parts + counted, 64 - end
    return parts, drawn


def _last(bits: int) -> np.uint64:
    """Return the last hash that begins with so many zero bits."""
    return np.uint64((1 << 64 - bits) - 1)


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


def measured(parts: Iterable[Counted], n: int, bits: int) -> TextLost:
    """Return the measure of n pages by the counts of all ranges of hashes that begin with so many zero bits."""
    own, lost, totals = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(4, np.int64)
    for part in parts:
        own[part.pages] += part.own
        lost[part.pages] += part.lost
        totals += part.totals
    kept_grams, kept_sentences, lost_grams, lost_sentences = totals.tolist()
    of_page = np.full(n, np.nan)
    np.divide(lost, own, out=of_page, where=own > 0)
    share = lost_grams / max(kept_grams + lost_grams, 1)
    return TextLost(share, lost_sentences / max(kept_sentences + lost_sentences, 1), of_page, 1 << bits)
