"""Kernels of template removal: features of pages, siblings, votes of siblings, and the signatures that remain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.types import Flags, Int32s, Int64s, UInt64s
from spotsigs.signatures.main_content import LINK, SHINGLE, TEXT, heaviest, own_gains
from spotsigs.signatures.spots import FEWEST

OTHER_CONTENT = 0.5
"""Siblings' main contents are less alike than this fraction of the similarity of their links."""

SAME_TEMPLATE = 0.75
"""Siblings' links are at least this fraction as alike as the links of the most alike sibling."""

COMPARED = 32
"""Pages whose main contents are compared with a page's: those with the most similar links."""

WALKED = 1024
"""Entries of a page's postings lists that are read to find candidates."""

EACH_LINK = 16
"""Entries of each link's postings list that are read at least."""

CONTAINED = 0.75
"""A page that has more than this fraction of another's main content may be a digest, an archive that quotes it."""

FLOOR = 4
"""A page is compared by at least one signature for this many of its main content."""

UNKNOWN_TEMPLATE = 0.25
"""Links at least as alike as this are of one template, which is unknown if no page that has it is a sibling."""


class PageFeatures(NamedTuple):
    """The parts of pages that are compared, in CSR form: sequences, distinct signatures, main contents."""

    indptr: NDArray[np.int64]  # of the outlines
    kinds: NDArray[np.int32]
    ranks: NDArray[np.int32]  # of each signature of an outline among the page's distinct ones
    distinct_indptr: NDArray[np.int64]
    distinct: NDArray[np.uint64]  # signatures, ascending within a page
    is_main: NDArray[np.bool_]  # whether the signature occurs in running text of the main content
    n_main: NDArray[np.int32]  # occurrences in running text of the main content
    keys: NDArray[np.uint64]  # a hash of each page's outline


class PageLinks(NamedTuple):
    """The distinct links of the distinct pages, ascending, and the pages of each link, ascending."""

    rows: NDArray[np.int64]  # of the pages, in their features, in the order of their keys
    indptr: NDArray[np.int64]
    ids: NDArray[np.int32]
    posting_indptr: NDArray[np.int64]
    postings: NDArray[np.int32]


@kernel
def _sorted(hashes: UInt64s, first: int, last: int, order: Int64s) -> None:
    """Write the positions of ``hashes[first:last]`` in ascending order of these, by Shell's sort."""
    n, gap = last - first, 1
    while gap < n // 3:
        gap = 3 * gap + 1
    for i in range(n):
        order[i] = first + i
    while gap > 0:  # order[i - gap], order[i - 2 * gap], ... ascend for each i before the next
        for i in range(gap, n):
            position, at = order[i], i
            while at >= gap and hashes[order[at - gap]] > hashes[position]:
                order[at] = order[at - gap]
                at -= gap
            order[at] = position
        gap //= 3


@kernel
def page_features(
    indptr: Int64s, hashes: UInt64s, kinds: Int32s, first: int, last: int
) -> tuple[Int64s, Int64s, UInt64s, Int32s, UInt64s, Flags, Int32s, UInt64s]:
    """Return the distinct links of some pages, ascending within a page, and the columns of `PageFeatures`.

    The first two arrays are the numbers of distinct links and of distinct signatures of each page.
    """
    begin, n_pages = indptr[first], last - first
    room, longest = indptr[last] - begin, 0
    for page in range(first, last):
        longest = max(longest, indptr[page + 1] - indptr[page])
    sizes, n_links, n_main = np.zeros(n_pages, np.int64), np.zeros(n_pages, np.int64), np.zeros(n_pages, np.int32)
    keys, links, distinct = np.empty(n_pages, np.uint64), np.empty(room, np.uint64), np.empty(room, np.uint64)
    ranks, is_main, order = np.zeros(room, np.int32), np.zeros(room, np.bool_), np.empty(longest, np.int64)
    n = m = 0
    for page in range(first, last):
        start_page, stop_page = indptr[page], indptr[page + 1]
        key = np.uint64(stop_page - start_page)
        for i in range(start_page, stop_page):  # the multipliers are SplitMix64's
            key = (key ^ hashes[i] ^ np.uint64(kinds[i])) + np.uint64(0x9E3779B97F4A7C15)
            key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            key ^= key >> np.uint64(31)
        start, stop = heaviest(own_gains(kinds[start_page:stop_page]))
        _sorted(hashes, start_page, stop_page, order)
        first_link, first_signature = m, n
        for i in order[: stop_page - start_page]:
            if kinds[i] >= LINK:
                if m == first_link or links[m - 1] != hashes[i]:
                    links[m] = hashes[i]
                    m += 1
                continue
            if n == first_signature or distinct[n - 1] != hashes[i]:
                distinct[n] = hashes[i]
                n += 1
            ranks[i - begin] = n - 1 - first_signature
            in_main = kinds[i] == TEXT and start_page + start <= i < start_page + stop
            is_main[n - 1] |= in_main
            n_main[page - first] += in_main
        n_links[page - first], sizes[page - first], keys[page - first] = m - first_link, n - first_signature, key
    return n_links, sizes, links[:m].copy(), ranks, distinct[:n].copy(), is_main[:n].copy(), n_main, keys


@kernel
def _content_shared(pages: PageFeatures, a: int, b: int) -> tuple[float, bool]:
    """Return the fraction of two pages' main contents that the other page has, too, and whether b may quote all of a's.

    A signature of one main content counts as shared wherever the other page has it; two empty ones are the same. A main
    content of fewer than `FEWEST` distinct signatures is not known to be quoted.
    """
    i, j = pages.distinct_indptr[a], pages.distinct_indptr[b]
    end_i, end_j = pages.distinct_indptr[a + 1], pages.distinct_indptr[b + 1]
    both = either = own = quoted = 0
    # a merge of two ascending lists: both positions advance where the signatures are equal
    while i < end_i or j < end_j:
        from_a = i < end_i and (j == end_j or pages.distinct[i] <= pages.distinct[j])
        from_b = j < end_j and (i == end_i or pages.distinct[j] <= pages.distinct[i])
        in_a = from_a and pages.is_main[i]
        in_main = in_a or (from_b and pages.is_main[j])
        own += in_a
        quoted += in_a and from_b
        both += from_a and from_b and in_main
        either += in_main
        i, j = i + from_a, j + from_b
    return both / either if either > 0 else 1.0, own >= FEWEST and quoted > CONTAINED * own


@kernel
def _candidates(links: PageLinks, itself: int) -> Int32s:
    """Return the pages that follow a page in the postings list of each of its links; the lists are circular."""
    own = links.ids[links.indptr[itself] : links.indptr[itself + 1]]
    width, entries = max(EACH_LINK, WALKED // max(len(own), 1)), 0
    for link in own:
        entries += min(width, links.posting_indptr[link + 1] - links.posting_indptr[link] - 1)
    room = 16  # slots of a hash set with linear probing, at most half of them in use
    while room < 2 * entries:
        room *= 2
    slots, candidates, n = np.full(room, -1, np.int32), np.empty(entries, np.int32), 0
    for link in own:
        first, last = links.posting_indptr[link], links.posting_indptr[link + 1]
        at, end = first, last
        while at < end:  # the page itself is in the list
            middle = (at + end) >> 1
            if links.postings[middle] < itself:
                at = middle + 1
            else:
                end = middle
        for _ in range(min(width, last - first - 1)):
            at = at + 1 if at + 1 < last else first
            page = links.postings[at]
            slot = ((np.int64(page) * 0x9E3779B1) >> 7) & (room - 1)
            while slots[slot] != -1 and slots[slot] != page:
                slot = (slot + 1) & (room - 1)
            if slots[slot] == -1:
                slots[slot] = candidates[n] = page
                n += 1
    return candidates[:n]


@kernel
def _most_alike(links: PageLinks, itself: int, is_own: Flags, steps: Int64s, likeness: NDArray[np.float64]) -> int:
    """Write the pages whose links are most alike, most alike first, equal ones by distance; return how many.

    A page is given by its distance in the order of the keys, which is circular. `is_own`, one flag for each distinct
    link, is False before and after.
    """
    own = links.ids[links.indptr[itself] : links.indptr[itself + 1]]
    is_own[own] = True
    n = 0
    for other in _candidates(links, itself):
        theirs = links.ids[links.indptr[other] : links.indptr[other + 1]]
        least = 0.0 if n < len(steps) else likeness[n - 1]
        # the ratio of sizes bounds the similarity from above, see docs/bounds.md, "Length"
        if min(len(own), len(theirs)) / max(len(own), len(theirs)) < least:
            continue
        overlap = 0
        for link in theirs:
            overlap += is_own[link]
        similarity = overlap / (len(own) + len(theirs) - overlap)
        if similarity < least:
            continue
        # insertion into the list, whose last entry is dropped once it is full
        step, at = (other - itself) % len(links.rows), n
        while at > 0 and (likeness[at - 1] < similarity or (likeness[at - 1] == similarity and steps[at - 1] > step)):
            at -= 1
        n = min(n + 1, len(steps))
        for k in range(n - 1, at, -1):
            steps[k], likeness[k] = steps[k - 1], likeness[k - 1]
        if at < n:
            steps[at], likeness[at] = step, similarity
    is_own[own] = False
    return n


@kernel
def _siblings(
    pages: PageFeatures, links: PageLinks, itself: int, is_own: Flags, steps: Int64s, likeness: NDArray[np.float64]
) -> Int64s:
    """Return the pages of the same template with other content.

    A single page that has all of the page's main content, as a digest has, is none.
    """
    siblings, n_alike = np.empty(len(steps), np.int64), _most_alike(links, itself, is_own, steps, likeness)
    n, best, only_digest = 0, 0.0, False
    for k in range(n_alike):
        if likeness[k] < SAME_TEMPLATE * best:
            break
        other = links.rows[(itself + steps[k]) % len(links.rows)]
        similarity, is_digest = _content_shared(pages, links.rows[itself], other)
        if similarity < OTHER_CONTENT * likeness[k]:
            only_digest = n == 0 and is_digest
            best = max(best, likeness[k])
            siblings[n] = other
            n += 1
    return siblings[: 0 if only_digest else n]


@kernel
def _template(pages: PageFeatures, page: int, siblings: Int64s) -> Flags:
    """Return which distinct signatures of a page more than half of its siblings have."""
    begin, end = pages.distinct_indptr[page], pages.distinct_indptr[page + 1]
    votes = np.zeros(end - begin, np.int32)
    for sibling in siblings:
        i, j, end_j = begin, pages.distinct_indptr[sibling], pages.distinct_indptr[sibling + 1]
        while i < end and j < end_j:
            a, b = pages.distinct[i], pages.distinct[j]
            votes[i - begin] += a == b
            i, j = i + (a <= b), j + (b <= a)
    return 2 * votes > len(siblings)


@kernel
def _remaining(pages: PageFeatures, page: int, is_template: Flags, counts: Int32s) -> tuple[int, int, int]:
    """Count each distinct signature of the page's main content, where the template has gain -1.

    If they are fewer than `FEWEST`, the page's shingles that are not in the template are counted instead, if any. On a
    page with links, signatures that are shingles, for want of stopwords, do not count as spots. Return the sum of the
    counts, the number of signatures of the main content without the template, and of the whole page.
    """
    begin, end = pages.indptr[page], pages.indptr[page + 1]
    kinds, ranks = pages.kinds[begin:end], pages.ranks[begin:end]
    distinct = pages.distinct[pages.distinct_indptr[page] : pages.distinct_indptr[page + 1]]
    gains = own_gains(kinds)
    for i in range(len(kinds)):
        if TEXT <= kinds[i] < LINK and is_template[ranks[i]]:
            gains[i] = -1
    start, stop = heaviest(gains)
    n = spots = shingles = everywhere = 0
    has_links = False
    for i in range(len(kinds)):
        has_links |= kinds[i] >= LINK
    for i in range(len(kinds)):
        everywhere += TEXT <= kinds[i] < LINK
        if kinds[i] >= LINK or is_template[ranks[i]]:
            continue
        shingles += kinds[i] == SHINGLE
        if kinds[i] >= TEXT and start <= i < stop:
            n += 1
            spots += not has_links or distinct[ranks[i]] & np.uint64(1) == 0
    by_shingles = spots < FEWEST and shingles > 0
    for i in range(len(kinds)):
        counted = kinds[i] == SHINGLE if by_shingles else TEXT <= kinds[i] < LINK and start <= i < stop
        if counted and not is_template[ranks[i]]:
            counts[ranks[i]] += 1
    return shingles if by_shingles else n, n, everywhere


@kernel
def remove_templates(
    pages: PageFeatures, links: PageLinks, first: int, last: int
) -> tuple[Int64s, Flags, Int32s, NDArray[np.float64], UInt64s, Int32s]:
    """Return the signatures that remain of some pages.

    Of each page how many are distinct, whether its template is unknown, how many signatures are missing, and which
    fraction of its signatures is in its main content without the template; the signatures, ascending, and the counts.

    A page of which less than a `FLOOR`-th of the main content remains misses the difference; one whose template is
    unknown misses as many signatures as it has, if that is more.
    """
    room, most = last - first, 0
    for k in range(first, last):
        size = pages.distinct_indptr[links.rows[k] + 1] - pages.distinct_indptr[links.rows[k]]
        room, most = room + size, max(most, size)
    hashes, counts, n = np.empty(room, np.uint64), np.empty(room, np.int32), 0
    sizes, own = np.empty(last - first, np.int64), np.empty(most, np.int32)
    unknown, missing = np.zeros(last - first, np.bool_), np.zeros(last - first, np.int32)
    fractions = np.zeros(last - first, np.float64)
    steps, likeness = np.empty(COMPARED, np.int64), np.empty(COMPARED, np.float64)
    is_own = np.zeros(len(links.posting_indptr) - 1, np.bool_)
    for k in range(first, last):
        page, begin = links.rows[k], n
        distinct = pages.distinct[pages.distinct_indptr[page] : pages.distinct_indptr[page + 1]]
        own[: len(distinct)], likeness[0] = 0, 0.0
        siblings = _siblings(pages, links, k, is_own, steps, likeness)
        n_own, in_main, everywhere = _remaining(pages, page, _template(pages, page, siblings), own)
        fractions[k - first] = in_main / max(everywhere, 1)
        # the least count that leaves a FLOOR-th of the main content, rounded up
        missing[k - first] = max(-(-pages.n_main[page] // FLOOR) - n_own, 0) if n_own > 0 else 0
        if len(siblings) == 0 and likeness[0] >= UNKNOWN_TEMPLATE:
            unknown[k - first] = True
            missing[k - first] = max(missing[k - first], n_own)
        for i in range(len(distinct)):
            if own[i] > 0:
                hashes[n], counts[n] = distinct[i], own[i]
                n += 1
        sizes[k - first] = n - begin
    return sizes, unknown, missing, fractions, hashes[:n].copy(), counts[:n].copy()
