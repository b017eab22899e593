"""Kernels of frame-aware suppression: portraits of pages, the search for neighbours, the choice of mates, the votes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.regions import LINK, TEXT, heaviest

SAME = 0.5
"""Two main parts that share this much say the same, whatever their frames: the pages are versions, never mates."""

WITNESSES = 4
"""So many pages of different content must agree before what they share with a page counts as their frame."""

_FIRST_STRIDE = 1024  # ranks looked through at first; doubled while too few neighbours are found


class Portraits(NamedTuple):
    """What is compared of each page, in CSR form: its outline, its distinct spots, its main part."""

    indptr: NDArray[np.int64]  # of the outlines
    hashes: NDArray[np.uint64]
    kinds: NDArray[np.int32]
    spot_indptr: NDArray[np.int64]  # of the distinct spots, ascending
    spots: NDArray[np.uint64]
    is_main: NDArray[np.bool_]  # whether the spot occurs in running text of the main part


class Links(NamedTuple):
    """The distinct links of each page, rarest first, and the pages of each link, ascending."""

    indptr: NDArray[np.int64]
    ids: NDArray[np.int32]
    posting_indptr: NDArray[np.int64]
    postings: NDArray[np.int32]


@njit(cache=True, nogil=True)
def own_gains(kinds: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return what each entry of an outline adds to the main part of the page, seen alone."""
    gains = np.zeros(len(kinds), np.int64)
    for i in range(len(kinds)):
        gains[i] = (kinds[i] == TEXT) - np.int64(kinds[i] == LINK)
    return gains


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
def search(
    left: Links, right: Links, ranks: NDArray[np.int32], alike: float, most: int, first: int, last: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Find, for some left pages, the first right pages whose links are alike.

    Right pages are looked through in their order, a stretch at a time; those that share one of the page's rarer links
    are counted, and those whose count can suffice are compared. A left page's own place among the right ones, or the
    number of those, is in ``ranks``.
    """
    n_right = len(right.indptr) - 1
    sizes, found, n = np.zeros(last - first, np.int64), np.empty((last - first) * most, np.int32), 0
    counts, touched = np.zeros(n_right, np.int32), np.empty(n_right, np.int32)
    for page in range(first, last):
        own = left.ids[left.indptr[page] : left.indptr[page + 1]]
        if len(own) == 0:
            continue
        needed = _needed(len(own), alike)
        probed = own[: len(own) - needed + 1]  # whatever is alike shares one of these
        at = right.posting_indptr[probed]
        begin, low, stride = n, 0, _FIRST_STRIDE
        while low < n_right and n - begin < most:
            high, n_touched = min(low + stride, n_right), 0
            for k in range(len(probed)):
                stop = right.posting_indptr[probed[k] + 1]
                while at[k] < stop and right.postings[at[k]] < high:
                    other = right.postings[at[k]]
                    at[k] += 1
                    touched[n_touched] = other
                    n_touched += counts[other] == 0
                    counts[other] += 1
            candidates = np.sort(touched[:n_touched])
            for other in candidates:
                theirs = right.ids[right.indptr[other] : right.indptr[other + 1]]
                overlap = counts[other] + needed - 1
                counts[other] = 0
                if n - begin == most or other == ranks[page] or overlap < _needed(len(theirs), alike):
                    continue
                overlap = shared(own, theirs)
                if overlap / (len(own) + len(theirs) - overlap) >= alike:
                    found[n] = other
                    n += 1
            low, stride = high, 2 * stride
        sizes[page - first] = n - begin
    return sizes, found[:n].copy()


@njit(cache=True, nogil=True)
def _main_jaccard(pages: Portraits, a: int, b: int) -> float:
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
        similarity = _main_jaccard(pages, page, other)
        if similarity < alike:
            mates[n] = other
            n += 1
        elif similarity < SAME:
            doubtful[n_doubtful] = other
            n_doubtful += 1
            is_new = True
            for witness in witnesses[:n_witnesses]:
                is_new = is_new and _main_jaccard(pages, other, witness) < SAME
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
def _kept(pages: Portraits, page: int, votes: NDArray[np.int32], most: float) -> NDArray[np.int64]:
    """Return the places in a page's outline of the spots that stay: not the frame's, and inside the main part."""
    begin, end = pages.indptr[page], pages.indptr[page + 1]
    own = pages.spots[pages.spot_indptr[page] : pages.spot_indptr[page + 1]]
    gains, stays = own_gains(pages.kinds[begin:end]), np.zeros(end - begin, np.bool_)
    for i in range(end - begin):
        if pages.kinds[begin + i] == LINK:
            continue
        stays[i] = votes[np.searchsorted(own, pages.hashes[begin + i])] < most
        if not stays[i]:
            gains[i] = -1
    start, stop = heaviest(gains)
    stays[:start] = False
    stays[stop:] = False
    return np.flatnonzero(stays)


@njit(cache=True, nogil=True)
def suppress(
    pages: Portraits,
    indptr: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    alike: float,
    share: float,
    first: int,
    last: int,
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int32], NDArray[np.int32]]:
    """Return the distinct spots that stay of some pages, their counts, how many each page has, and its mates."""
    room = pages.spot_indptr[last] - pages.spot_indptr[first]
    spots, counts, n = np.empty(room, np.uint64), np.empty(room, np.int32), 0
    sizes, n_mates = np.empty(last - first, np.int64), np.empty(last - first, np.int32)
    for page in range(first, last):
        mates = choose_mates(pages, page, neighbours[indptr[page] : indptr[page + 1]], alike, share)
        votes = np.zeros(pages.spot_indptr[page + 1] - pages.spot_indptr[page], np.int32)
        for mate in mates:
            _vote(pages, page, mate, False, votes)
        begin = n
        for spot in np.sort(pages.hashes[pages.indptr[page] + _kept(pages, page, votes, max(1, share * len(mates)))]):
            if n == begin or spots[n - 1] != spot:
                spots[n], counts[n] = spot, 0
                n += 1
            counts[n - 1] += 1
        sizes[page - first], n_mates[page - first] = n - begin, len(mates)
    return sizes, spots[:n].copy(), counts[:n].copy(), n_mates
