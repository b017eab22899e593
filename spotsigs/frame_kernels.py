"""Kernels of frame-aware suppression: portraits of pages, the search for neighbours, the choice of mates, the votes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.regions import LINK, TEXT, heaviest, own_gains

SAME = 0.5
"""Two main parts that share this much say the same, whatever their frames: the pages are versions, never mates."""

FEWEST_VOTES = 2
"""So many mates must have a spot, where there are so many, before it counts as the frame's: one may be a version."""

WITNESSES = 4
"""So many pages of different content must agree before what they share with a page counts as their frame."""

LOOKED = 64
"""So many pages with links alike are looked at, at most, to find those in the same frame."""

_FIRST_STRIDE = 1024  # pages gone through at first, twice as many each time too few neighbours are found


class Portraits(NamedTuple):
    """What is compared of each page, in CSR form: its outline, its distinct spots, its main part."""

    indptr: NDArray[np.int64]  # of the outlines
    hashes: NDArray[np.uint64]
    kinds: NDArray[np.int32]
    spot_indptr: NDArray[np.int64]  # of the distinct spots, ascending
    spots: NDArray[np.uint64]
    is_main: NDArray[np.bool_]  # whether the spot occurs in running text of the main part


class Links(NamedTuple):
    """The distinct links of some pages, rarest first, and the pages of each link, ascending."""

    rows: NDArray[np.int64]  # of the pages, in their portraits
    indptr: NDArray[np.int64]
    ids: NDArray[np.int32]
    posting_indptr: NDArray[np.int64]
    postings: NDArray[np.int32]


@njit(cache=True, nogil=True)
def portray(
    indptr: NDArray[np.int64], hashes: NDArray[np.uint64], kinds: NDArray[np.int32], first: int, last: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.bool_]]:
    """Return the distinct spots of some pages, ascending, how many each page has, and which are of its main part."""
    sizes = np.zeros(last - first, np.int64)
    spots = np.empty(indptr[last] - indptr[first], np.uint64)
    is_main = np.zeros(len(spots), np.bool_)
    n = 0
    for page in range(first, last):
        own, kind = hashes[indptr[page] : indptr[page + 1]], kinds[indptr[page] : indptr[page + 1]]
        start, stop = heaviest(own_gains(kind))
        places = np.flatnonzero(kind != LINK)
        begin = n
        for place in places[np.argsort(own[places])]:
            if n == begin or spots[n - 1] != own[place]:
                spots[n] = own[place]
                n += 1
            is_main[n - 1] |= kind[place] == TEXT and start <= place < stop
        sizes[page - first] = n - begin
    return sizes, spots[:n].copy(), is_main[:n].copy()


@njit(cache=True, nogil=True)
def shared(a: NDArray[np.int32], b: NDArray[np.int32]) -> int:
    """Return the size of the intersection of two ascending arrays."""
    n, i, j = 0, 0, 0
    while i < len(a) and j < len(b):
        n += a[i] == b[j]
        step_a, step_b = a[i] <= b[j], b[j] <= a[i]
        i, j = i + step_a, j + step_b
    return n


@njit(cache=True, nogil=True)
def _needed(n: int, alike: float) -> int:
    """Return the least overlap with any set that can reach a Jaccard of ``alike``: that with a part of the set."""
    needed = max(1, int(alike * n) - 1)
    while needed / n < alike:
        needed += 1
    return needed


@njit(cache=True, nogil=True)
def main_jaccard(pages: Portraits, a: int, b: int) -> float:
    """Return the Jaccard similarity of two pages' main parts; 1 where both are empty, for then nothing differs."""
    i, j = pages.spot_indptr[a], pages.spot_indptr[b]
    end_i, end_j = pages.spot_indptr[a + 1], pages.spot_indptr[b + 1]
    both = either = 0
    while i < end_i or j < end_j:
        from_a = i < end_i and (j == end_j or pages.spots[i] <= pages.spots[j])
        from_b = j < end_j and (i == end_i or pages.spots[j] <= pages.spots[i])
        in_a, in_b = from_a and pages.is_main[i], from_b and pages.is_main[j]
        both += in_a and in_b
        either += in_a or in_b
        i, j = i + from_a, j + from_b
    return both / either if either > 0 else 1.0


@njit(cache=True, nogil=True)
def _probed(n: int, alike: float) -> int:
    """Return how many of n links, the rarest first, must be looked up: whatever is alike has one of them."""
    return n - _needed(n, alike) + 1


@njit(cache=True, nogil=True)
def _candidates(
    right: Links,
    probed: NDArray[np.int32],
    at: NDArray[np.int64],
    high: int,
    counts: NDArray[np.int32],
    touched: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Count the probed links of each page below ``high``, from where the last call stopped; return these pages."""
    n = 0
    for k in range(len(probed)):
        stop = right.posting_indptr[probed[k] + 1]
        while at[k] < stop and right.postings[at[k]] < high:
            other = right.postings[at[k]]
            at[k] += 1
            touched[n] = other
            n += counts[other] == 0
            counts[other] += 1
    return np.sort(touched[:n])


@njit(cache=True, nogil=True)
def _look(
    pages: Portraits,
    page: int,
    own: NDArray[np.int32],
    right: Links,
    itself: int,
    alike: float,
    most: int,
    counts: NDArray[np.int32],
    touched: NDArray[np.int32],
    found: NDArray[np.int32],
) -> tuple[int, int]:
    """Write the neighbours of one page; return how many there are, and the first right page not looked at."""
    n_right = len(right.rows)
    likeness, n, looked, strong, best = np.empty(LOOKED), 0, 0, 0, 0.0
    threshold, n_probed = alike, _probed(len(own), alike)
    at = right.posting_indptr[own]
    low, stride = 0, _FIRST_STRIDE
    while low < n_right:
        high = min(low + stride, n_right)
        unprobed = len(own) - n_probed
        candidates = _candidates(right, own[:n_probed], at, high, counts, touched)
        end = high
        for other in candidates:
            theirs = right.ids[right.indptr[other] : right.indptr[other + 1]]
            at_most = counts[other] + unprobed
            counts[other] = 0
            if end < high or other == itself or at_most < _needed(len(theirs), threshold):
                continue
            overlap = shared(own, theirs)
            similarity = overlap / (len(own) + len(theirs) - overlap)
            if similarity < threshold:
                continue
            looked += 1
            if main_jaccard(pages, page, right.rows[other]) < SAME:
                found[n], likeness[n] = other, similarity
                n, strong = n + 1, strong + (similarity >= 0.5)
                if similarity > best:
                    best = similarity
                    threshold = max(alike, best / 2)
                    n = _drop_below(threshold, found, likeness, n)
            if looked == LOOKED or strong == most:
                end = other + 1
        if end < high:
            return n, end
        n_probed = _probed(len(own), threshold)
        low, stride = high, 2 * stride
    return n, n_right


@njit(cache=True, nogil=True)
def _drop_below(threshold: float, found: NDArray[np.int32], likeness: NDArray[np.float64], n: int) -> int:
    kept = 0
    for k in range(n):
        if likeness[k] >= threshold:
            found[kept], likeness[kept] = found[k], likeness[k]
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def search(
    pages: Portraits,
    left: Links,
    right: Links,
    ranks: NDArray[np.int32],
    alike: float,
    most: int,
    first: int,
    last: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Find, for some left pages, right pages in the same frame: how many, which, and where the search stopped.

    Right pages are looked at in their order, a stretch at a time. Only those that have one of a page's rarer links are
    counted, and those whose count can suffice compared. ``ranks`` holds each left page's place among the right ones.
    """
    sizes, stops = np.zeros(last - first, np.int64), np.zeros(last - first, np.int32)
    found, n = np.empty((last - first) * most, np.int32), 0
    counts, touched = np.zeros(len(right.rows), np.int32), np.empty(len(right.rows) + 1, np.int32)
    looked = np.empty(LOOKED, np.int32)
    for k in range(first, last):
        own = left.ids[left.indptr[k] : left.indptr[k + 1]]
        if len(own) == 0:
            continue
        size, stops[k - first] = _look(pages, left.rows[k], own, right, ranks[k], alike, most, counts, touched, looked)
        size = min(size, most)
        found[n : n + size] = looked[:size]
        sizes[k - first] = size
        n += size
    return sizes, found[:n].copy(), stops


@njit(cache=True, nogil=True)
def meets(
    left: Links, right: Links, limits: NDArray[np.int32], alike: float, first: int, last: int
) -> NDArray[np.bool_]:
    """Tell, for some left pages, whether the links of any of the first so many right pages are alike."""
    found = np.zeros(last - first, np.bool_)
    counts, touched = np.zeros(len(right.rows), np.int32), np.empty(len(right.rows) + 1, np.int32)
    for k in range(first, last):
        own = left.ids[left.indptr[k] : left.indptr[k + 1]]
        if len(own) == 0:
            continue
        probed = own[: _probed(len(own), alike)]
        for other in _candidates(right, probed, right.posting_indptr[probed], limits[k], counts, touched):
            counts[other] = 0
            theirs = right.ids[right.indptr[other] : right.indptr[other + 1]]
            if not found[k - first]:
                overlap = shared(own, theirs)
                found[k - first] = overlap > 0 and overlap / (len(own) + len(theirs) - overlap) >= alike
    return found


@njit(cache=True, nogil=True)
def _vote(pages: Portraits, page: int, mate: int, main_only: bool, votes: NDArray[np.int32]) -> None:
    """Add a vote to each of a page's spots that its mate has, or has in the main part as the page does."""
    begin, i, j = pages.spot_indptr[page], pages.spot_indptr[page], pages.spot_indptr[mate]
    end_i, end_j = pages.spot_indptr[page + 1], pages.spot_indptr[mate + 1]
    while i < end_i and j < end_j:
        if pages.spots[i] == pages.spots[j]:
            votes[i - begin] += not main_only or (pages.is_main[i] and pages.is_main[j])
        step_i, step_j = pages.spots[i] <= pages.spots[j], pages.spots[j] <= pages.spots[i]
        i, j = i + step_i, j + step_j


@njit(cache=True, nogil=True)
def choose_mates(
    pages: Portraits, page: int, neighbours: NDArray[np.int32], alike: float, share: float
) -> NDArray[np.int32]:
    """Return which neighbours share a page's frame and not its content.

    Those whose main part is not alike; and, if there are enough, those whose main parts are alike by a part that they
    all have in common with the page, though they differ from one another: prose of the frame.
    """
    mates, n = np.empty(len(neighbours), np.int32), 0
    doubtful, n_doubtful = np.empty(len(neighbours), np.int32), 0
    witnesses, n_witnesses = np.empty(len(neighbours), np.int32), 0
    for other in neighbours:
        similarity = main_jaccard(pages, page, other)
        if similarity < alike:
            mates[n] = other
            n += 1
        elif similarity < SAME:
            doubtful[n_doubtful] = other
            n_doubtful += 1
            is_new = True
            for witness in witnesses[:n_witnesses]:
                is_new = is_new and main_jaccard(pages, other, witness) < SAME
            witnesses[n_witnesses] = other
            n_witnesses += is_new
    if n_witnesses < WITNESSES:
        return mates[:n]
    votes = np.zeros(pages.spot_indptr[page + 1] - pages.spot_indptr[page], np.int32)
    for witness in witnesses[:n_witnesses]:
        _vote(pages, page, witness, True, votes)
    some, every = np.count_nonzero(votes), np.count_nonzero(votes == n_witnesses)
    if some - every <= share * some:
        for other in doubtful[:n_doubtful]:
            mates[n] = other
            n += 1
    return mates[:n]


@njit(cache=True, nogil=True)
def vote(
    pages: Portraits,
    indptr: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    alike: float,
    share: float,
    first: int,
    last: int,
) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
    """Tell which distinct spots of some pages their mates declare to be the frame's, and how many mates each has."""
    begin = pages.spot_indptr[first]
    dropped = np.zeros(pages.spot_indptr[last] - begin, np.bool_)
    n_mates = np.empty(last - first, np.int32)
    for page in range(first, last):
        mates = choose_mates(pages, page, neighbours[indptr[page] : indptr[page + 1]], alike, share)
        n_mates[page - first] = len(mates)
        if len(mates) == 0:
            continue
        votes = np.zeros(pages.spot_indptr[page + 1] - pages.spot_indptr[page], np.int32)
        for mate in mates:
            _vote(pages, page, mate, False, votes)
        enough = max(min(FEWEST_VOTES, len(mates)), share * len(mates))
        dropped[pages.spot_indptr[page] - begin : pages.spot_indptr[page + 1] - begin] = votes >= enough
    return dropped, n_mates


@njit(cache=True, nogil=True)
def count_among(
    pages: Portraits, spots: NDArray[np.uint64], dropped: NDArray[np.bool_], first: int, last: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the pages, of some, that have each of the given spots (ascending), and those that drop it."""
    having, dropping = np.zeros(len(spots), np.int64), np.zeros(len(spots), np.int64)
    for page in range(first, last):
        at = 0
        for k in range(pages.spot_indptr[page], pages.spot_indptr[page + 1]):
            at += np.searchsorted(spots[at:], pages.spots[k])
            if at == len(spots):
                break
            if spots[at] == pages.spots[k]:
                having[at] += 1
                dropping[at] += dropped[k]
    return having, dropping


@njit(cache=True, nogil=True)
def drop_everywhere(
    pages: Portraits, spots: NDArray[np.uint64], dropped: NDArray[np.bool_], first: int, last: int
) -> NDArray[np.bool_]:
    """Return which distinct spots of some pages are dropped there, or are among the given ones (ascending)."""
    begin = pages.spot_indptr[first]
    found = dropped[begin : pages.spot_indptr[last]].copy()
    for page in range(first, last):
        at = 0
        for k in range(pages.spot_indptr[page], pages.spot_indptr[page + 1]):
            at += np.searchsorted(spots[at:], pages.spots[k])
            if at == len(spots):
                break
            found[k - begin] |= spots[at] == pages.spots[k]
    return found


@njit(cache=True, nogil=True)
def _kept(pages: Portraits, page: int, dropped: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the places in a page's outline of the spots that stay: not the frame's, and inside the main part."""
    begin, end = pages.indptr[page], pages.indptr[page + 1]
    first = pages.spot_indptr[page]
    own = pages.spots[first : pages.spot_indptr[page + 1]]
    gains, stays = own_gains(pages.kinds[begin:end]), np.zeros(end - begin, np.bool_)
    for i in range(end - begin):
        if pages.kinds[begin + i] == LINK:
            continue
        stays[i] = not dropped[first + np.searchsorted(own, pages.hashes[begin + i])]
        if not stays[i]:
            gains[i] = -1
    start, stop = heaviest(gains)
    stays[:start] = False
    stays[stop:] = False
    return np.flatnonzero(stays)


@njit(cache=True, nogil=True)
def suppress(
    pages: Portraits, dropped: NDArray[np.bool_], first: int, last: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int32]]:
    """Return how many distinct spots stay of each of some pages, these, ascending, and their counts."""
    room = pages.spot_indptr[last] - pages.spot_indptr[first]
    spots, counts, n = np.empty(room, np.uint64), np.empty(room, np.int32), 0
    sizes = np.empty(last - first, np.int64)
    for page in range(first, last):
        begin = n
        for spot in np.sort(pages.hashes[pages.indptr[page] + _kept(pages, page, dropped)]):
            if n == begin or spots[n - 1] != spot:
                spots[n], counts[n] = spot, 0
                n += 1
            counts[n - 1] += 1
        sizes[page - first] = n - begin
    return sizes, spots[:n].copy(), counts[:n].copy()
