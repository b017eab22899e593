"""Kernels of frame-aware suppression: features of pages, the search for neighbours, the choice of mates, the votes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.signatures.main_content import LINK, TEXT, heaviest, own_gains

SAME = 0.5
"""Two main parts that share this much say the same: the pages are versions, unless it is their own that travels."""

FEWEST_VOTES = 2
"""Mates that must have a spot (all, where there are fewer) before it counts as the frame's: one may be a version."""

CERTAIN = 5
"""Pages of different content from which on the share of them may disagree on their frame; fewer must agree better."""


class PageFeatures(NamedTuple):
    """What is compared of each page, in CSR form: its outline, its distinct spots, its main part."""

    indptr: NDArray[np.int64]  # of the outlines
    hashes: NDArray[np.uint64]
    kinds: NDArray[np.int32]
    spot_indptr: NDArray[np.int64]  # of the distinct spots, ascending
    spots: NDArray[np.uint64]
    is_main: NDArray[np.bool_]  # whether the spot occurs in running text of the main part
    starts: NDArray[np.int64]  # of the main parts, counted from the outlines' first entries
    stops: NDArray[np.int64]


class Rules(NamedTuple):
    """What decides which neighbours are mates, see `spotsigs.signatures.template_removal.FramedSpots`.

    The switches are all on but where the worth of each is measured.
    """

    alike: float
    share: float
    anywhere: bool = True  # a main part's spots count wherever they stand on the other page
    per_spot: bool = True  # doubtful neighbours may agree on most of what each shares, not only all on nearly all
    around: bool = True  # what is shared stands around what is the page's own, which decides where agreement cannot
    travels: bool = True  # and does so where main parts are the same, if the own travels and what is shared does not


class Worth(NamedTuple):
    """What decides how much of what is left of a page stays."""

    boilerplate: NDArray[np.uint64]  # spots of the boilerplate of many sites, ascending
    share: float  # of a stretch of boilerplate may be none
    spots: NDArray[np.uint64]  # the frequent ones, ascending
    frequencies: NDArray[np.int64]  # pages that have each
    others: int  # upper bound of the pages that have any other spot
    pages: int
    least: float  # evidence, in nats, that a page must carry


class Sightings(NamedTuple):
    """The first and the last page in the circle, of all that have each of some spots, by their places."""

    spots: NDArray[np.uint64]  # ascending
    first: NDArray[np.int32]
    last: NDArray[np.int32]


class PageLinks(NamedTuple):
    """The distinct links of some pages, ascending, and the pages of each link, ascending."""

    rows: NDArray[np.int64]  # of the pages, in their features
    indptr: NDArray[np.int64]
    ids: NDArray[np.int32]
    posting_indptr: NDArray[np.int64]
    postings: NDArray[np.int32]


@njit(cache=True, nogil=True)
def page_features(
    indptr: NDArray[np.int64], hashes: NDArray[np.uint64], kinds: NDArray[np.int32], first: int, last: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct spots of some pages, ascending: how many, which, whether of the main part; and that part."""
    n_pages = last - first
    sizes, starts, stops = np.zeros(n_pages, np.int64), np.zeros(n_pages, np.int64), np.zeros(n_pages, np.int64)
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
        sizes[page - first], starts[page - first], stops[page - first] = n - begin, start, stop
    return sizes, spots[:n].copy(), is_main[:n].copy(), starts, stops


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
def main_jaccard(pages: PageFeatures, a: int, b: int, anywhere: bool) -> float:
    """Return the share of two pages' main parts that the other page has, too, anywhere or in its own main part.

    1 where both main parts are empty, for then nothing differs.
    """
    i, j = pages.spot_indptr[a], pages.spot_indptr[b]
    end_i, end_j = pages.spot_indptr[a + 1], pages.spot_indptr[b + 1]
    both = either = 0
    while i < end_i or j < end_j:
        from_a = i < end_i and (j == end_j or pages.spots[i] <= pages.spots[j])
        from_b = j < end_j and (i == end_i or pages.spots[j] <= pages.spots[i])
        in_a, in_b = from_a and pages.is_main[i], from_b and pages.is_main[j]
        both += (in_a and in_b) or (anywhere and from_a and from_b and (in_a or in_b))
        either += in_a or in_b
        i, j = i + from_a, j + from_b
    return both / either if either > 0 else 1.0


@njit(cache=True, nogil=True)
def _width(n: int, most: int, walked: int) -> int:
    """Return how many of the next pages in the list of each of its n links are a page's candidates."""
    return max(most, walked // n)


@njit(cache=True, nogil=True)
def _is_new(value: int, slots: NDArray[np.int32]) -> bool:
    """Put a number into a set, open addressing in a power of two of slots, -1 where empty; return whether it is new."""
    mask = len(slots) - 1
    at = ((np.int64(value) * 0x9E3779B1) >> 7) & mask
    while slots[at] != -1:
        if slots[at] == value:
            return False
        at = (at + 1) & mask
    slots[at] = value
    return True


@njit(cache=True, nogil=True)
def _candidates(
    own: NDArray[np.int32], right: PageLinks, itself: int, width: int
) -> tuple[NDArray[np.int32], int, int]:
    """Return the next pages, up to a width, in the list of each of a page's links, where lists are circles.

    Those come first that are in a list without more pages than these. Return how many they are, and the number of the
    other lists: it bounds the links that any other candidate shares with the page.
    """
    entries, n_long = 0, 0
    for link in own:
        others = right.posting_indptr[link + 1] - right.posting_indptr[link] - 1
        entries, n_long = entries + min(width, others), n_long + (others > width)
    room = 16
    while room < 2 * entries:
        room *= 2
    slots, found, n, n_first = np.full(room, -1, np.int32), np.empty(entries, np.int32), 0, 0
    for is_long in (False, True):
        n_first = n
        for link in own:
            first, last = right.posting_indptr[link], right.posting_indptr[link + 1]
            if (last - first - 1 > width) != is_long:
                continue
            at = first + np.searchsorted(right.postings[first:last], itself)
            for _ in range(min(width, last - first - 1)):
                at = at + 1 if at + 1 < last else first
                found[n] = right.postings[at]
                n += _is_new(found[n], slots)
    return found[:n], n_first, n_long


@njit(cache=True, nogil=True)
def _keep_most_alike(
    own: NDArray[np.int32],
    right: PageLinks,
    itself: int,
    others: NDArray[np.int32],
    at_most: int,
    least: float,
    steps: NDArray[np.int64],
    likeness: NDArray[np.float64],
    n: int,
) -> int:
    """Put other pages, if their links are alike, among the most alike, of which there are n; return how many now.

    They stand in ``steps`` and ``likeness`` as their distances in the circle and similarities, the most alike first,
    of those equally alike the next. No page shares more than ``at_most`` links.
    """
    for other in others:
        theirs = right.ids[right.indptr[other] : right.indptr[other + 1]]
        if n == len(steps):
            least = max(least, likeness[n - 1])
        both, bound = len(own) + len(theirs), min(at_most, len(theirs))
        if bound / (both - bound) < least:
            continue
        overlap = shared(own, theirs)
        similarity = overlap / (both - overlap)
        if similarity < least:
            continue
        step, at = (other - itself) % len(right.rows), n
        while at > 0 and (likeness[at - 1] < similarity or (likeness[at - 1] == similarity and steps[at - 1] > step)):
            at -= 1
        n = min(n + 1, len(steps))
        for k in range(n - 1, at, -1):
            steps[k], likeness[k] = steps[k - 1], likeness[k - 1]
        if at < n:
            steps[at], likeness[at] = step, similarity
    return n


@njit(cache=True, nogil=True)
def _vote(pages: PageFeatures, page: int, mate: int, main_only: bool, votes: NDArray[np.int32]) -> None:
    """Add a vote to each of a page's spots that its mate has, or has in its main part."""
    begin, i, j = pages.spot_indptr[page], pages.spot_indptr[page], pages.spot_indptr[mate]
    end_i, end_j = pages.spot_indptr[page + 1], pages.spot_indptr[mate + 1]
    while i < end_i and j < end_j:
        if pages.spots[i] == pages.spots[j]:
            votes[i - begin] += not main_only or pages.is_main[j]
        step_i, step_j = pages.spots[i] <= pages.spots[j], pages.spots[j] <= pages.spots[i]
        i, j = i + step_i, j + step_j


@njit(cache=True, nogil=True)
def _stands_around(
    pages: PageFeatures, page: int, votes: NDArray[np.int32], n_voters: int, share: float, in_one: bool
) -> bool:
    """Tell whether what others have of a page's main part stands around what is the page's own, not within it.

    Two links in a row separate stretches. Nearly all voters have the shared spots, hardly any the own ones; the sum,
    over stretches, of the fewer of both is at most a share of the own ones. If asked for, one stretch holds nearly all
    own ones, for a text stands in one place.
    """
    begin, first = pages.spot_indptr[page], pages.indptr[page]
    distinct = pages.spots[begin : pages.spot_indptr[page + 1]]
    own, most_own, mixed, here_own, here_shared, links = 0, 0, 0, 0, 0, 0
    for k in range(first + pages.starts[page], first + pages.stops[page] + 1):
        at_end = k == first + pages.stops[page]
        if at_end or pages.kinds[k] == LINK:
            links += 1
            if at_end or links == 2:
                own, most_own, mixed = own + here_own, max(most_own, here_own), mixed + min(here_own, here_shared)
                here_own, here_shared = 0, 0
        else:
            links = 0
            if pages.kinds[k] == TEXT:
                having = votes[np.searchsorted(distinct, pages.hashes[k])]
                is_shared = n_voters - having <= share * n_voters
                here_shared += is_shared
                here_own += not is_shared and having <= share * n_voters
    return own > 0 and mixed <= share * own and (not in_one or own - most_own <= share * own)


@njit(cache=True, nogil=True)
def _votes_of(pages: PageFeatures, page: int, others: NDArray[np.int32], main_only: bool) -> NDArray[np.int32]:
    """Return how many others have each of a page's spots."""
    votes = np.zeros(pages.spot_indptr[page + 1] - pages.spot_indptr[page], np.int32)
    for other in others:
        _vote(pages, page, other, main_only, votes)
    return votes


@njit(cache=True, nogil=True)
def _agree(pages: PageFeatures, page: int, witnesses: NDArray[np.int32], rules: Rules) -> bool:
    """Tell whether pages of different content agree on what they share with a page's main part, which has more.

    Either all have nearly all that any of them has, wherever that stands. Or most of what each shares is core, which
    all but a share of them have, and stands apart from the page's own spots. Less may differ between few witnesses,
    since few agree by chance.
    """
    n, here = len(witnesses), slice(pages.spot_indptr[page], pages.spot_indptr[page + 1])
    votes = _votes_of(pages, page, witnesses, not rules.anywhere)
    in_main = votes[pages.is_main[here]]
    at_most = rules.share * min(n - 1, CERTAIN - 1) / (CERTAIN - 1)
    some, every = np.count_nonzero(in_main), np.count_nonzero(in_main == n)
    if some - every <= at_most * some and len(in_main) - every >= rules.share * len(in_main):
        return True
    core = in_main[n - in_main <= rules.share * n]
    if not rules.per_spot or len(in_main) - len(core) < rules.share * len(in_main):
        return False
    if np.sum(in_main) - np.sum(core) > at_most * np.sum(in_main):
        return False
    return not rules.around or _stands_around(pages, page, votes, n, rules.share, False)


@njit(cache=True, nogil=True)
def _surrounds(pages: PageFeatures, page: int, other: int, rules: Rules) -> bool:
    """Tell whether what another page has of a page stands around the page's own text."""
    votes = np.zeros(pages.spot_indptr[page + 1] - pages.spot_indptr[page], np.int32)
    _vote(pages, page, other, not rules.anywhere, votes)
    return _stands_around(pages, page, votes, 1, rules.share, True)


@njit(cache=True, nogil=True)
def _surround_each_other(pages: PageFeatures, page: int, other: int, rules: Rules) -> bool:
    """Tell whether what two pages share stands around the own text of both."""
    return rules.around and _surrounds(pages, page, other, rules) and _surrounds(pages, other, page, rules)


@njit(cache=True, nogil=True)
def count_main(pages: PageFeatures, rows: NDArray[np.int64]) -> int:
    """Return how many spots the main parts of some pages have, together."""
    n = 0
    for page in rows:
        n += int(np.count_nonzero(pages.is_main[pages.spot_indptr[page] : pages.spot_indptr[page + 1]]))
    return n


@njit(cache=True, nogil=True)
def _span(pages: PageFeatures, page: int, lowest: np.uint64, highest: np.uint64) -> tuple[int, int]:
    """Return where those of a page's distinct spots lie whose hashes are within bounds."""
    begin, end = pages.spot_indptr[page], pages.spot_indptr[page + 1]
    own = pages.spots[begin:end]
    return begin + np.searchsorted(own, lowest), begin + np.searchsorted(own, highest, side="right")


@njit(cache=True, nogil=True)
def main_spots(
    pages: PageFeatures, rows: NDArray[np.int64], lowest: np.uint64, highest: np.uint64
) -> NDArray[np.uint64]:
    """Return the spots, whose hashes are within bounds, of some pages' main parts, page by page."""
    room = 0
    for page in rows:
        begin, end = _span(pages, page, lowest, highest)
        room += int(np.count_nonzero(pages.is_main[begin:end]))
    found, n = np.empty(room, np.uint64), 0
    for page in rows:
        begin, end = _span(pages, page, lowest, highest)
        for k in range(begin, end):
            if pages.is_main[k]:
                found[n] = pages.spots[k]
                n += 1
    return found


@njit(cache=True, nogil=True)
def first_and_last(
    pages: PageFeatures, places: NDArray[np.int64], spots: NDArray[np.uint64], lowest: np.uint64, highest: np.uint64
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the first and the last place, among those of all pages, of a page with each of some spots.

    The spots, ascending, are within the bounds; each is on some page.
    """
    room = 64
    while room < 16 * len(spots):
        room *= 2
    marks, mask = np.zeros(room >> 3, np.uint8), np.uint64(room - 1)  # tell most other spots without a search
    for spot in spots:
        marks[(spot & mask) >> np.uint64(3)] |= np.uint8(1) << np.uint8(spot & np.uint64(7))
    first, last = np.full(len(spots), np.iinfo(np.int32).max, np.int32), np.full(len(spots), -1, np.int32)
    for page in range(len(places)):
        begin, end = _span(pages, page, lowest, highest)
        at = 0
        for k in range(begin, end):
            spot = pages.spots[k]
            if not (marks[(spot & mask) >> np.uint64(3)] >> np.uint8(spot & np.uint64(7))) & np.uint8(1):
                continue
            at += np.searchsorted(spots[at:], spot)
            if at == len(spots):
                break
            if spots[at] == spot:
                first[at], last[at] = min(first[at], places[page]), max(last[at], places[page])
    return first, last


@njit(cache=True, nogil=True)
def _travelling(pages: PageFeatures, links: PageLinks, itself: int, seen: Sightings, alike: float) -> NDArray[np.bool_]:
    """Tell which of a page's distinct spots, of its main part, stand on the first or last page in another frame."""
    page = links.rows[itself]
    own = links.ids[links.indptr[itself] : links.indptr[itself + 1]]
    begin, end = pages.spot_indptr[page], pages.spot_indptr[page + 1]
    travels, at = np.zeros(end - begin, np.bool_), 0
    known, is_far = np.full(256, -1, np.int32), np.zeros(256, np.bool_)  # the same pages occur again and again
    for k in range(begin, end):
        if not pages.is_main[k]:
            continue
        at += np.searchsorted(seen.spots[at:], pages.spots[k])
        if at == len(seen.spots):
            break
        if seen.spots[at] != pages.spots[k]:
            continue
        for place in (seen.first[at], seen.last[at]):
            slot = place % len(known)
            if known[slot] != place:
                theirs = links.ids[links.indptr[place] : links.indptr[place + 1]]
                overlap = shared(own, theirs)
                known[slot], is_far[slot] = place, overlap / (len(own) + len(theirs) - overlap) < alike
            travels[k - begin] |= is_far[slot]
    return travels


@njit(cache=True, nogil=True)
def _own_travels(pages: PageFeatures, page: int, other: int, travels: NDArray[np.bool_], rules: Rules) -> bool:
    """Tell whether nearly all of a main part that another page does not have travels, and hardly any that it has."""
    own, own_travels, common, common_travels = 0, 0, 0, 0
    begin, j, end_j = pages.spot_indptr[page], pages.spot_indptr[other], pages.spot_indptr[other + 1]
    for i in range(begin, pages.spot_indptr[page + 1]):
        while j < end_j and pages.spots[j] < pages.spots[i]:
            j += 1
        if not pages.is_main[i]:
            continue
        if j < end_j and pages.spots[j] == pages.spots[i] and (rules.anywhere or pages.is_main[j]):
            common, common_travels = common + 1, common_travels + travels[i - begin]
        else:
            own, own_travels = own + 1, own_travels + travels[i - begin]
    return own > 0 and own - own_travels <= rules.share * own and common_travels <= rules.share * common


@njit(cache=True, nogil=True)
def _of_other_content(
    pages: PageFeatures,
    page: int,
    right: PageLinks,
    itself: int,
    steps: NDArray[np.int64],
    likeness: NDArray[np.float64],
    rules: Rules,
    seen: Sightings,
) -> tuple[NDArray[np.int64], float, NDArray[np.int64]]:
    """Return which of the most alike say something else and have half the likeness of the first such, and that half.

    Third come those with the same main part but for what may be their own.
    """
    kept, n, half = np.empty(len(steps), np.int64), 0, 0.0
    same, n_same = np.empty(len(steps), np.int64), 0
    travels = np.empty(0, np.bool_)
    for k in range(len(steps)):
        if likeness[k] < half:
            break
        place = (itself + steps[k]) % len(right.rows)
        other = right.rows[place]
        similarity = main_jaccard(pages, page, other, rules.anywhere)
        says_more = similarity < SAME
        if SAME <= similarity < 1:
            same[n_same] = steps[k]
            n_same += 1
            if len(seen.spots) > 0 and _surround_each_other(pages, page, other, rules):
                if len(travels) == 0:
                    travels = _travelling(pages, right, itself, seen, rules.alike)
                if _own_travels(pages, page, other, travels, rules):
                    theirs = _travelling(pages, right, place, seen, rules.alike)
                    says_more = _own_travels(pages, other, page, theirs, rules)
        if says_more:
            half = max(half, likeness[k] / 2)
            kept[n] = steps[k]
            n += 1
    return kept[:n], half, same[:n_same]


@njit(cache=True, nogil=True)
def search(
    pages: PageFeatures,
    links: PageLinks,
    rules: Rules,
    most: int,
    looked: int,
    walked: int,
    seen: Sightings,
    places: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_], NDArray[np.int32]]:
    """Find, for the pages at some places, others in the same frame: how many, and which, the next in the circle first.

    As long as nothing is seen, tell also which are in doubt about some other with the same main part, around which
    what the two share stands on both pages; and which others these are.
    """
    sizes, found, n = np.zeros(len(places), np.int64), np.empty(len(places) * most, np.int32), 0
    in_doubt, others_in_doubt, n_others = np.zeros(len(places), np.bool_), np.empty(len(places) * looked, np.int32), 0
    asks = rules.travels and rules.around and len(seen.spots) == 0
    steps, likeness = np.empty(looked, np.int64), np.empty(looked, np.float64)
    for at in range(len(places)):
        k = places[at]
        own, page = links.ids[links.indptr[k] : links.indptr[k + 1]], links.rows[k]
        if len(own) == 0:
            continue
        others, n_first, n_long = _candidates(own, links, k, _width(len(own), most, walked))
        top = _keep_most_alike(own, links, k, others[:n_first], len(own), rules.alike, steps, likeness, 0)
        _, half, _ = _of_other_content(pages, page, links, k, steps[:top], likeness[:top], rules, seen)
        least = max(rules.alike, half)  # those below it would be dropped
        top = _keep_most_alike(own, links, k, others[n_first:], n_long, least, steps, likeness, top)
        kept, half, same = _of_other_content(pages, page, links, k, steps[:top], likeness[:top], rules, seen)
        chosen = np.sort(kept)[:most]
        for step in chosen:
            found[n] = (k + step) % len(links.rows)
            n += 1
        sizes[at] = len(chosen)
        for step in same if asks else same[:0]:
            other = (k + step) % len(links.rows)
            if _surround_each_other(pages, page, links.rows[other], rules):
                in_doubt[at], others_in_doubt[n_others] = True, other
                n_others += 1
    return sizes, found[:n].copy(), in_doubt, others_in_doubt[:n_others].copy()


@njit(cache=True, nogil=True)
def choose_mates(pages: PageFeatures, page: int, neighbours: NDArray[np.int32], rules: Rules) -> NDArray[np.int32]:
    """Return which neighbours share a page's frame and not its content.

    Those whose main part is not alike; and those whose main parts are alike by prose of the frame: because several
    pages of different content agree on it, or because it stands around the text of both. Neighbours with the same main
    part have been found to be of the latter kind.
    """
    mates, n = np.empty(len(neighbours), np.int32), 0
    doubtful, n_doubtful = np.empty(len(neighbours), np.int32), 0
    witnesses, n_witnesses = np.empty(len(neighbours), np.int32), 0
    for other in neighbours:
        similarity = main_jaccard(pages, page, other, rules.anywhere)
        if similarity < rules.alike or similarity >= SAME:
            mates[n] = other
            n += 1
        else:
            doubtful[n_doubtful] = other
            n_doubtful += 1
            is_new = True
            for witness in witnesses[:n_witnesses]:
                is_new = is_new and main_jaccard(pages, other, witness, rules.anywhere) < SAME
            witnesses[n_witnesses] = other
            n_witnesses += is_new
    agreed = n_witnesses > 1 and _agree(pages, page, witnesses[:n_witnesses], rules)
    for other in doubtful[:n_doubtful]:
        if agreed or _surround_each_other(pages, page, other, rules):
            mates[n] = other
            n += 1
    return mates[:n]


@njit(cache=True, nogil=True)
def vote(
    pages: PageFeatures,
    indptr: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    rules: Rules,
    first: int,
    last: int,
) -> NDArray[np.bool_]:
    """Tell which distinct spots of some pages their mates declare to be the frame's."""
    begin = pages.spot_indptr[first]
    dropped = np.zeros(pages.spot_indptr[last] - begin, np.bool_)
    for page in range(first, last):
        mates = choose_mates(pages, page, neighbours[indptr[page] : indptr[page + 1]], rules)
        if len(mates) == 0:
            continue
        votes = _votes_of(pages, page, mates, False)
        enough = max(min(FEWEST_VOTES, len(mates)), rules.share * len(mates))
        dropped[pages.spot_indptr[page] - begin : pages.spot_indptr[page + 1] - begin] = votes >= enough
    return dropped


@njit(cache=True, nogil=True)
def count_among(
    pages: PageFeatures, spots: NDArray[np.uint64], dropped: NDArray[np.bool_], first: int, last: int
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
def among(pages: PageFeatures, spots: NDArray[np.uint64], first: int, last: int) -> NDArray[np.bool_]:
    """Return which distinct spots of some pages are among the given ones (ascending)."""
    begin = pages.spot_indptr[first]
    found = np.zeros(pages.spot_indptr[last] - begin, np.bool_)
    for page in range(first, last):
        at = 0
        for k in range(pages.spot_indptr[page], pages.spot_indptr[page + 1]):
            at += np.searchsorted(spots[at:], pages.spots[k])
            if at == len(spots):
                break
            found[k - begin] = spots[at] == pages.spots[k]
    return found


@njit(cache=True, nogil=True)
def _kept(pages: PageFeatures, page: int, dropped: NDArray[np.bool_]) -> NDArray[np.int64]:
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
def _stretches(pages: PageFeatures, page: int, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each stretch of a page's kept spots begins, and their number: two links separate stretches."""
    begin, bounds, n = pages.indptr[page], np.empty(len(places) + 1, np.int64), 0
    for k in range(len(places)):
        links = 2 if k == 0 else 0
        for at in range(places[k - 1] + 1, places[k]) if k > 0 else range(0):
            links += pages.kinds[begin + at] == LINK
        if links >= 2:
            bounds[n] = k
            n += 1
    bounds[n] = len(places)
    return bounds[: n + 1]


@njit(cache=True, nogil=True)
def _find(spots: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return where hashes stand among spots (ascending), -1 where they do not."""
    found = np.searchsorted(spots, hashes)
    for k in range(len(hashes)):
        if found[k] == len(spots) or spots[found[k]] != hashes[k]:
            found[k] = -1
    return found


@njit(cache=True, nogil=True)
def count_buckets(hashes: NDArray[np.uint64], buckets: NDArray[np.uint8], many: int) -> None:
    """Count hashes, up to many, by their low bits; the number of buckets is a power of two."""
    mask = np.uint64(len(buckets) - 1)
    for h in hashes:
        at = h & mask
        if buckets[at] < many:
            buckets[at] += 1


@njit(cache=True, nogil=True)
def in_full_buckets(hashes: NDArray[np.uint64], buckets: NDArray[np.uint8], many: int) -> NDArray[np.bool_]:
    """Tell of which hashes the bucket has counted many."""
    mask = np.uint64(len(buckets) - 1)
    full = np.zeros(len(hashes), np.bool_)
    for k in range(len(hashes)):
        full[k] = buckets[hashes[k] & mask] >= many
    return full


@njit(cache=True, nogil=True)
def count_aside(
    pages: PageFeatures,
    dropped: NDArray[np.bool_],
    spots: NDArray[np.uint64],
    frequencies: NDArray[np.int64],
    share: float,
    first: int,
    last: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the pages, of some, on which each of some spots (ascending) stands aside from what is the page's own.

    Own is what at most a share of the spot's pages have. Most of what the page keeps must be, and hardly anything of
    any stretch that the spot stands in. Spots that are not among the given ones count as own beside all of these.
    Count also the pages that have nothing of their own.
    """
    aside, alone = np.zeros(len(spots), np.int64), np.zeros(len(spots), np.int64)
    for page in range(first, last):
        places = _kept(pages, page, dropped)
        found = _find(spots, pages.hashes[pages.indptr[page] + places])
        bounds = _stretches(pages, page, places)
        frequency = np.zeros(len(places), np.int64)
        for k in range(len(places)):
            if found[k] >= 0:
                frequency[k] = frequencies[found[k]]
        everywhere, apart, n_own = np.sort(frequency), np.zeros(len(places), np.bool_), np.zeros(len(places), np.int64)
        for s in range(len(bounds) - 1):
            here = np.sort(frequency[bounds[s] : bounds[s + 1]])
            for k in range(bounds[s], bounds[s + 1]):
                own = np.searchsorted(everywhere, share * frequency[k], side="right")
                own_here = np.searchsorted(here, share * frequency[k], side="right")
                apart[k], n_own[k] = 2 * own > len(places) and own_here <= share * len(here), own
        order = np.argsort(found)
        at = np.searchsorted(found[order], 0)
        while at < len(order):
            spot, always = found[order[at]], True
            alone[spot] += n_own[order[at]] == 0
            while at < len(order) and found[order[at]] == spot:
                always = always and bool(apart[order[at]])
                at += 1
            aside[spot] += always
    return aside, alone


@njit(cache=True, nogil=True)
def _said(
    pages: PageFeatures, page: int, places: NDArray[np.int64], boilerplate: NDArray[np.uint64], share: float
) -> NDArray[np.int64]:
    """Return the kept places but for the stretches of which all but a share is boilerplate."""
    is_boilerplate = _find(boilerplate, pages.hashes[pages.indptr[page] + places]) >= 0
    bounds, stays = _stretches(pages, page, places), np.ones(len(places), np.bool_)
    for s in range(len(bounds) - 1):
        size = bounds[s + 1] - bounds[s]
        if size - np.count_nonzero(is_boilerplate[bounds[s] : bounds[s + 1]]) <= share * size:
            stays[bounds[s] : bounds[s + 1]] = False
    return places[stays]


@njit(cache=True, nogil=True)
def _evidence(spots: NDArray[np.uint64], worth: Worth) -> float:
    """Return how unlikely a page has all of some distinct spots by chance: minus the logarithm of the probability."""
    total = 0.0
    for at in _find(worth.spots, spots):
        total += math.log(worth.pages / (worth.frequencies[at] if at >= 0 else worth.others))
    return total


@njit(cache=True, nogil=True)
def suppress(
    pages: PageFeatures, dropped: NDArray[np.bool_], worth: Worth, first: int, last: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int32], NDArray[np.bool_]]:
    """Return how many distinct spots stay of each of some pages, these, ascending, their counts; and who says nothing.

    A page whose spots are too little evidence keeps none. It says nothing if all it kept was boilerplate.
    """
    room = pages.spot_indptr[last] - pages.spot_indptr[first]
    spots, counts, n = np.empty(room, np.uint64), np.empty(room, np.int32), 0
    sizes, says_nothing = np.empty(last - first, np.int64), np.zeros(last - first, np.bool_)
    for page in range(first, last):
        places, begin = _kept(pages, page, dropped), n
        if len(worth.boilerplate) > 0:
            said = _said(pages, page, places, worth.boilerplate, worth.share)
            says_nothing[page - first] = len(places) > 0 and len(said) == 0
            places = said
        for spot in np.sort(pages.hashes[pages.indptr[page] + places]):
            if n == begin or spots[n - 1] != spot:
                spots[n], counts[n] = spot, 0
                n += 1
            counts[n - 1] += 1
        if worth.least > 0 and _evidence(spots[begin:n], worth) < worth.least:
            n = begin
        sizes[page - first] = n - begin
    return sizes, spots[:n].copy(), counts[:n].copy(), says_nothing
