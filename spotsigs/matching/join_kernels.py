"""Kernels of the exact join: arrays in, arrays out, no interpreter lock held.

They run in the order of this file: read the rows once (`scan_rows`), find exact copies (`bucket_hashes`,
`first_of_hash`, `confirm_copies`), number the distinct documents by length (`count_lengths`, `number_documents`), order
the tokens (`rank_tokens`) and write down the rarest tokens of every document (`pack_documents`), invert these prefixes
(`count_postings`, `fill_postings`), probe (`probe`, `name_pairs`), and spread the found pairs over the copies
(`mark_copied`, `count_links`, `fill_links`, `count_partners`, `place_pairs`, `fill_partners`, `fill_pairs`).

Conventions: indices into arrays are unsigned, so that no negative index has to be considered; a *token* is one unit of
weight, (signature, number of its occurrence).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.arrays.intrinsics import bit_count, prefetch
from spotsigs.matching.bounds import Bounds

ONE = np.uint64(1)
LINE = np.uint64(16)  # 32-bit entries in a cache line
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
END = np.uint32(0xFFFFFFFF)
MIX_1 = np.uint64(0x9E3779B97F4A7C15)
MIX_2 = np.uint64(0xD6E8FEB86659FD93)
SKETCH_BITS = np.uint64(63)
MAX_CLASSES = 64
BLOCK = np.uint64(32)
FEW = 32
"""Tokens of a document up to which looking for one after the other is faster than sorting all that it has."""


class Rows(NamedTuple):
    """A collection as CSR arrays: ``indptr`` int64, ``ids`` int32 ascending in each row, ``counts`` int32."""

    indptr: NDArray[np.int64]
    ids: NDArray[np.int32]
    counts: NDArray[np.int32]


class TokenOrder(NamedTuple):
    """The order of tokens: by class of document frequency, rarest first, then by number.

    The first occurrence of signature ``s`` is token ``s``; its ``z``-th, for ``z >= 2``, is token
    ``n_signatures + further[s] + z - 2``.

    Attributes
    ----------
    further : ndarray of uint32, shape (n_signatures + 1,)
        Number of further-occurrence tokens of all signatures before this one.
    frequency_class : ndarray of uint8, shape (n_tokens,)
        Class of each token; tokens of class 0 cannot be shared by two documents.
    rank : ndarray of uint32, shape (n_tokens,)
        Place of each token in the order.
    """

    further: NDArray[np.uint32]
    frequency_class: NDArray[np.uint8]
    rank: NDArray[np.uint32]


class Documents(NamedTuple):
    """Distinct documents, numbered by increasing length, as the tokens that are looked up or found.

    Attributes
    ----------
    rows : Rows
        The collection they are in.
    row_of : ndarray of int32, shape (n,)
        First row of each document.
    lengths : ndarray of int32, shape (n,)
        Tokens of each document.
    first : ndarray of int64, shape (longest length + 2,)
        First document of each length; the last entry is their number.
    prefix : ndarray of int32, shape (longest length + 1,)
        How many of its tokens a document of each length has here: its rarest ones.
    starts : ndarray of int64, shape (longest length + 2,)
        Where the tokens of the documents of each length begin.
    tokens : ndarray of uint32
        Ranks, ascending within a document.
    sketches : ndarray of uint64, shape (n,)
        Parity of the number of tokens, of all that the document has, that fall on each of 64 bits.
    """

    rows: Rows
    row_of: NDArray[np.int32]
    lengths: NDArray[np.int32]
    first: NDArray[np.int64]
    prefix: NDArray[np.int32]
    starts: NDArray[np.int64]
    tokens: NDArray[np.uint32]
    sketches: NDArray[np.uint64]


class Postings(NamedTuple):
    """Inverted prefixes of the documents from ``offset`` on.

    Attributes
    ----------
    begin : ndarray of uint32, shape (n_tokens - unshared,)
        Where the list of each token of rank ``unshared`` or more starts.
    documents : ndarray of uint32
        Document numbers less ``offset``, ascending in each list, each list closed by `END`.
    unshared : int
        Number of leading ranks that have no list.
    offset : int
        First document.
    """

    begin: NDArray[np.uint32]
    documents: NDArray[np.uint32]
    unshared: np.uint32
    offset: int


class Scratch(NamedTuple):
    """What one thread writes while it probes.

    Attributes
    ----------
    met : ndarray of uint16 or uint32, shape (indexed documents,)
        Meetings of each indexed document, on top of the version of the probe that saw it last.
    marks : ndarray of uint8 or int32, shape (n_signatures,)
        How often the document being verified has each signature.
    reach : ndarray of uint32, shape (longest prefix + 1,)
        First document, less the offset, that is too long for each prefix position.
    candidates : ndarray of uint32, shape (2, indexed documents + batch)
        Probing document and candidate, less the offset.
    found : ndarray of uint32, shape (3, capacity)
        Probing document, partner, overlap.
    state : ndarray of int64, shape (5,)
        Version, then counters: postings scanned, candidates, verifications; then pairs in ``found``.
    """

    met: NDArray[Any]
    marks: NDArray[Any]
    reach: NDArray[np.uint32]
    candidates: NDArray[np.uint32]
    found: NDArray[np.uint32]
    state: NDArray[np.int64]


VERSION, SCANNED, CANDIDATES, VERIFIED, FOUND = range(5)
BATCH = 64
"""Candidates that are verified together, so that their cache misses overlap."""


@njit(cache=True, nogil=True)
def scan_rows(rows: Rows, lengths: Any, limit: Any, begin: Any, end: Any, hashes: Any, seen: Any, most: Any) -> None:
    """Hash rows ``begin:end`` and count, over those not longer than ``limit``, in how many each signature occurs.

    ``seen[s]`` gathers the number of rows with ``s`` in its lower half and of those with ``s`` twice or more in its
    upper half; ``most[s]`` the highest count where it exceeds 2.
    """
    for r in range(begin, end):
        h = np.uint64(0)
        for k in range(rows.indptr[r], rows.indptr[r + 1]):
            x = (np.uint64(np.uint32(rows.ids[k])) << HALF | np.uint64(np.uint32(rows.counts[k]))) * MIX_1
            x = (x ^ (x >> HALF)) * MIX_2
            h += x ^ (x >> HALF)
        hashes[r] = (h ^ (h >> HALF)) * MIX_1
        if lengths[r] > limit or len(seen) == 0:
            continue
        for k in range(rows.indptr[r], rows.indptr[r + 1]):
            s = np.uint32(rows.ids[k])
            c = rows.counts[k]
            seen[s] += ONE + (np.uint64(c > 1) << HALF)
            if c > 2 and c > most[s]:
                most[s] = c


@njit(cache=True, nogil=True)
def bucket_hashes(hashes: Any, lengths: Any, shift: Any, starts: Any, bucketed: Any, rows: Any) -> None:
    """Bring (hash, row) of the rows that are not empty into buckets by leading bits, rows ascending in each.

    ``starts`` is all zero on entry, one longer than the bucket boundaries it holds on exit.
    """
    for r in range(len(hashes)):
        if lengths[r] > 0:
            starts[(hashes[r] >> shift) + np.uint64(2)] += 1
    for b in range(2, len(starts)):
        starts[b] += starts[b - 1]
    for r in range(len(hashes)):
        if lengths[r] > 0:
            b = (hashes[r] >> shift) + ONE
            k = np.uint64(starts[b])
            bucketed[k] = hashes[r]
            rows[k] = r
            starts[b] += 1


@njit(cache=True, nogil=True)
def first_of_hash(bucketed: Any, rows: Any, starts: Any, begin: Any, end: Any, copy_of: Any) -> None:
    """Write into ``copy_of`` the first row of equal hash, for the rows in buckets ``begin:end``."""
    table = np.empty(64, np.int64)
    for b in range(begin, end):
        size = 64
        while size < 2 * (starts[b + 1] - starts[b]):
            size *= 2
        if size > len(table):
            table = np.empty(size, np.int64)
        table[:size] = -1
        mask = np.uint64(size - 1)
        for k in range(starts[b], starts[b + 1]):
            h = bucketed[k]
            slot = h & mask
            while table[slot] >= 0 and bucketed[table[slot]] != h:
                slot = (slot + ONE) & mask
            if table[slot] < 0:
                table[slot] = k
            copy_of[rows[k]] = rows[table[slot]]


@njit(cache=True, nogil=True)
def confirm_copies(rows: Rows, begin: Any, end: Any, copy_of: Any) -> Any:
    """Compare each row of ``begin:end`` with the one it is said to copy; where they differ it stands for itself.

    Returns
    -------
    tuple of int
        Copies, and rows whose hash collided.
    """
    copies = np.empty(end - begin, np.int64)
    n = 0
    for r in range(begin, end):
        copies[n] = r
        n += copy_of[r] >= 0 and copy_of[r] != r
    collided = 0
    for c in range(n):
        if c + 16 < n:
            prefetch(rows.indptr, np.int64(copy_of[copies[c + 16]]))
        if c + 8 < n:
            place = np.uint64(rows.indptr[copy_of[copies[c + 8]]])
            prefetch(rows.ids, place)
            prefetch(rows.ids, place + LINE)
            prefetch(rows.counts, place)
            prefetch(rows.counts, place + LINE)
        r = copies[c]
        a, b = np.uint64(rows.indptr[copy_of[r]]), np.uint64(rows.indptr[r])
        size = np.uint64(rows.indptr[r + 1]) - b
        differences = np.int32(size != np.uint64(rows.indptr[copy_of[r] + 1]) - a)
        if differences == 0:
            for k in range(size):
                differences |= (rows.ids[a + k] ^ rows.ids[b + k]) | (rows.counts[a + k] ^ rows.counts[b + k])
        if differences != 0:
            copy_of[r] = r
            collided += 1
    return n - collided, collided


@njit(cache=True, nogil=True)
def count_lengths(copy_of: Any, lengths: Any, first: Any) -> None:
    """Write into ``first``, zero on entry, the number of distinct documents shorter than each length."""
    limit = len(first) - 2
    for r in range(len(copy_of)):
        if copy_of[r] == r and lengths[r] <= limit:
            first[lengths[r] + 1] += 1
    for length in range(1, limit + 2):
        first[length] += first[length - 1]


@njit(cache=True, nogil=True)
def number_documents(copy_of: Any, lengths: Any, first: Any, document_of: Any, row_of: Any, length_of: Any) -> None:
    """Give the distinct documents numbers by length, then by row."""
    limit = len(first) - 2
    following = first.copy()
    for r in range(len(copy_of)):
        if copy_of[r] == r and lengths[r] <= limit:
            d = following[lengths[r]]
            following[lengths[r]] += 1
            document_of[r] = d
            row_of[d] = r
            length_of[d] = lengths[r]


@njit(cache=True, nogil=True)
def rank_tokens(seen: Any, shared: Any, order: TokenOrder) -> Any:
    """Fill the token order from the counts of `scan_rows`.

    The frequency of a third or later occurrence is not counted but continued from the first two; any order is exact,
    and this one is close to the best.

    Parameters
    ----------
    seen : ndarray of uint64, shape (n_signatures,)
        Counts of `scan_rows`.
    shared : ndarray of bool, shape (n_signatures,)
        Signatures that two documents to be compared can share.
    order : TokenOrder
        ``further`` is given, the rest is filled.

    Returns
    -------
    tuple of int
        Number of classes, and of tokens in class 0.
    """
    n = len(seen)
    for s in range(n):
        once, twice = np.int64(seen[s] & LOW), np.int64(seen[s] >> HALF)
        order.frequency_class[s] = _frequency_class(once) if shared[s] else 0
        expected = np.float64(twice)
        for t in range(n + order.further[s], n + order.further[s + 1]):
            # a second occurrence in one row only can have no partner, nor can those after it
            order.frequency_class[t] = _frequency_class(max(np.int64(expected), min(twice, 2))) if shared[s] else 0
            expected *= twice / once
    sizes = np.zeros(MAX_CLASSES + 1, np.int64)
    for c in order.frequency_class:
        sizes[c + 1] += 1
    classes = MAX_CLASSES
    while classes > 1 and sizes[classes] == 0:
        classes -= 1
    place = np.cumsum(sizes)
    for t in range(len(order.rank)):
        c = order.frequency_class[t]
        order.rank[t] = place[c]
        place[c] += 1
    return classes, sizes[1]


@njit(cache=True, nogil=True)
def _frequency_class(frequency: Any) -> Any:
    """Return 0 for a token in at most one row, else two classes to each doubling."""
    if frequency <= 1:
        return 0
    doublings = 0
    while frequency >> (doublings + 1) > 0:
        doublings += 1
    half = frequency >> (doublings - 1) & 1
    return min(2 * doublings - 1 + half, MAX_CLASSES - 1)


@njit(cache=True, nogil=True)
def pack_documents(out: Documents, document_of: Any, begin: Any, end: Any, order: TokenOrder, classes: Any) -> None:
    """Write the rarest tokens (and sketch) of the distinct documents among rows ``begin:end``."""
    indptr, longest = out.rows.indptr, len(out.first) - 2
    place, own = np.zeros(classes + 1, np.uint64), np.empty(longest + 1, np.uint8)
    listed, repeated = np.empty(longest + BLOCK, np.uint32), np.empty(longest + 1, np.uint64)
    for r in range(begin, end):
        d = document_of[r]
        if d < 0:
            continue
        n = _list_tokens(out.rows, np.uint64(indptr[r]), np.uint64(indptr[r + 1]), order, listed, repeated)
        wanted = np.uint64(out.prefix[n])
        at = np.uint64(out.starts[n]) + np.uint64(d - out.first[n]) * wanted
        if wanted > FEW:
            _sort_by_class(listed, n, order.frequency_class, place, own, repeated)
        sketch = np.uint64(0)
        for k in range(n):
            rank = order.rank[listed[k]]
            listed[k] = rank
            sketch ^= ONE << (np.uint64(rank) & SKETCH_BITS)
        out.sketches[d] = sketch
        if wanted > FEW:
            for k in range(wanted):
                out.tokens[at + k] = listed[k]
        else:
            _write_least(listed, n, wanted, at, out.tokens)


@njit(cache=True, nogil=True)
def _sort_by_class(listed: Any, n: Any, classes: Any, place: Any, own: Any, room: Any) -> None:
    """Sort tokens by their order; ``place``, ``own`` and ``room`` are for counts, classes and a copy.

    They ascend by number and are ordered by class first, so one stable counting sort by class suffices.
    """
    place[:] = 0
    for k in range(n):
        own[k] = classes[listed[k]]
        room[k] = listed[k]
        place[np.uint64(own[k]) + ONE] += ONE
    for c in range(1, len(place)):
        place[c] += place[c - 1]
    for k in range(n):
        of = np.uint64(own[k])
        listed[place[of]] = room[k]
        place[of] += ONE


@njit(cache=True, nogil=True)
def _write_least(ranks: Any, n: Any, wanted: Any, at: Any, tokens: Any) -> None:
    """Write the least of ``n`` ranks in order, each found by vector instructions on blocks of all."""
    size = (n + BLOCK - ONE) & ~(BLOCK - ONE)
    for k in range(n, size):
        ranks[k] = END
    lower = np.uint32(0)
    for k in range(wanted):
        least = END
        for other in range(size):  # those below `lower` wrap around and are the greatest
            least = min(least, np.uint32(ranks[other] - lower))
        tokens[at + k] = least + lower
        lower = np.uint32(least + lower + np.uint32(1))


@njit(cache=True, nogil=True)
def _list_tokens(rows: Rows, begin: Any, end: Any, order: TokenOrder, listed: Any, repeated: Any) -> Any:
    """List the tokens of the entries ``begin:end`` by number; ``repeated`` is room for the entries counted twice."""
    n, m = end - begin, np.uint64(0)
    for k in range(n):
        listed[k] = rows.ids[begin + k]
        repeated[m] = begin + k
        m += np.uint64(rows.counts[begin + k] > 1)  # few: without a branch to mispredict
    n_signatures = np.uint32(len(order.further) - 1)
    for q in range(m):
        k = repeated[q]
        token = n_signatures + order.further[np.uint32(rows.ids[k])]
        for z in range(np.uint64(rows.counts[k] - 1)):
            listed[n] = token + z
            n += ONE
    return n


@njit(cache=True, nogil=True)
def count_postings(documents: Documents, shortest: Any, taken: Any, unshared: Any, starts: Any) -> Any:
    """Size the lists of the first ``taken[length - shortest]`` tokens of each document; return the postings' number.

    ``starts`` is zero on entry and has two entries more than there are lists; each list gets an entry for `END`.
    """
    two = np.uint32(2)
    for step in range(len(taken)):
        length = shortest + step
        for at in range(documents.starts[length], documents.starts[length + 1], documents.prefix[length]):
            for k in range(np.uint64(at), np.uint64(at + taken[step])):
                if documents.tokens[k] >= unshared:
                    starts[documents.tokens[k] - unshared + two] += np.uint32(1)
    for t in range(2, len(starts)):
        starts[t] += starts[t - 1] + np.uint32(1)
    return np.int64(starts[len(starts) - 1])


@njit(cache=True, nogil=True)
def fill_postings(documents: Documents, shortest: Any, taken: Any, starts: Any, out: Postings) -> None:
    """Write the lists that `count_postings` sized."""
    one = np.uint32(1)
    for step in range(len(taken)):
        length = shortest + step
        d = documents.first[length] - out.offset
        for at in range(documents.starts[length], documents.starts[length + 1], documents.prefix[length]):
            for k in range(np.uint64(at), np.uint64(at + taken[step])):
                if documents.tokens[k] >= out.unshared:
                    t = documents.tokens[k] - out.unshared + one
                    out.documents[starts[t]] = d
                    starts[t] += one
            d += 1
    start = np.uint32(0)
    for t in range(len(out.begin)):
        out.begin[t] = start
        out.documents[starts[t + 1]] = END
        start = starts[t + 1] + one


@njit(cache=True, nogil=True)
def probe(
    probing: Documents,
    indexed: Documents,
    own_side: Any,
    postings: Postings,
    bounds: Bounds,
    begin: Any,
    end: Any,
    scratch: Any,
) -> Any:
    """Find the similar indexed documents of the probing documents ``begin:end``, until ``found`` might overflow.

    Returns
    -------
    int
        The first document that was not probed.
    """
    state = scratch.state
    size = np.uint64(indexed.first[-1] - postings.offset)
    room = scratch.found.shape[1] - scratch.candidates.shape[1]
    top = np.uint64((1 << 8 * scratch.met.itemsize) - 1)
    length, k, spacing = np.int64(-1), np.uint64(0), np.uint64(0)
    version = np.uint64(state[VERSION])
    n = np.uint64(0)
    state[FOUND] = 0
    for d in range(begin, end):
        if probing.lengths[d] != length:
            length = np.int64(probing.lengths[d])
            k = np.uint64(bounds.meetings[length])
            spacing = np.uint64(bounds.probed[length] + 1)
            _reach(length, own_side, indexed.first, postings.offset, bounds, scratch.reach)
        # Nobody resets `met` between two documents: each counts on from a version of its own, below which every
        # counter is a former document's. A version leaves room for one meeting more than there are tokens to look up;
        # only where the type has no room for another one are all counters cleared.
        if version > top - spacing - spacing:
            scratch.met[:size] = 0
            version = np.uint64(0)
        # on one side each pair is looked for once, from its later document
        ceiling = np.uint32(d - postings.offset) if own_side else END
        n = _meet(probing, d, np.uint64(bounds.probed[length]), ceiling, postings, version, k, scratch, n)
        version += spacing
        if n >= BATCH or d + 1 == end:  # not one by one: their cache misses are to overlap
            _verify(probing, indexed, np.uint64(postings.offset), bounds.least, scratch, n)
            n = np.uint64(0)
            if state[FOUND] > room:
                state[VERSION] = version
                return d + 1
    state[VERSION] = version
    return end


@njit(cache=True, nogil=True)
def _reach(length: Any, own_side: Any, first: Any, offset: Any, bounds: Bounds, reach: Any) -> None:
    """Write, for each prefix position of a document, the first indexed document that is too long for it."""
    partner = np.int64(length if own_side else bounds.longest[length])
    # Bound 3: position i concerns only partners whose least overlap m leaves i < length - m + k. The longest of them
    # gets shorter as i grows, so one walk down the lengths serves all positions.
    for i in range(bounds.probed[length]):
        while partner > 0 and bounds.least[length + partner] > length - i + bounds.meetings[length] - 1:
            partner -= 1
        reach[i] = max(first[partner + 1] - offset, 0)


@njit(cache=True, nogil=True)
def _meet(
    probing: Documents,
    d: Any,
    size: Any,
    ceiling: Any,
    postings: Postings,
    version: Any,
    k: Any,
    scratch: Scratch,
    n: Any,
) -> Any:
    """Count the meetings of one document with all indexed ones; append to the candidates those that reach ``k``."""
    tokens, begin, documents, unshared = probing.tokens, postings.begin, postings.documents, postings.unshared
    met, reach, candidates = scratch.met, scratch.reach, scratch.candidates
    length = np.uint64(probing.lengths[d])
    step = np.uint64(probing.prefix[length])
    at = np.uint64(probing.starts[length]) + np.uint64(d - probing.first[length]) * step
    # What costs is the way to the lists, not the lists: they are asked for one document ahead, their begins two.
    # The next documents mostly have the same length; where not, the hints go astray and nothing else.
    last = np.uint64(len(tokens) - 1)
    target = version + k
    scanned = np.uint64(0)
    for i in range(size):
        t = tokens[min(at + step + step + i, last)]
        if t >= unshared:
            prefetch(begin, np.uint64(t - unshared))
        t = tokens[min(at + step + i, last)]
        if t >= unshared:
            p = np.uint64(begin[t - unshared])
            prefetch(documents, p)
            prefetch(documents, p + LINE)
            prefetch(documents, p + LINE + LINE)
        t = tokens[at + i]
        if t < unshared:
            continue
        stop = min(reach[i], ceiling)
        p = np.uint64(begin[t - unshared])
        scanned -= p
        # Documents ascend by length, so those within reach are a list's front; END closes it, so that no second index
        # is read to learn where it ends.
        while documents[p] < stop:
            y = documents[p]
            meetings = max(np.uint64(met[y]), version) + ONE
            met[y] = meetings
            if meetings == target:  # not >=: a candidate is one once
                candidates[0, n] = d
                candidates[1, n] = y
                n += ONE
            p += ONE
        scanned += p
    scratch.state[SCANNED] += np.int64(scanned)
    return n


@njit(cache=True, nogil=True)
def _verify(probing: Documents, indexed: Documents, offset: Any, least: Any, scratch: Scratch, n: Any) -> None:
    """Compute the overlap of each of ``n`` candidates and append those that pass to ``found``."""
    candidates, marks, found, state = scratch.candidates, scratch.marks, scratch.found, scratch.state
    state[CANDIDATES] += np.int64(n)
    n = _sift(probing, indexed, offset, least, candidates, n)
    state[VERIFIED] += np.int64(n)
    own, others = probing.rows, indexed.rows
    for c in range(n):
        prefetch(indexed.row_of, np.uint64(candidates[1, c]) + offset)
    for c in range(n):
        prefetch(others.indptr, np.uint64(indexed.row_of[np.uint64(candidates[1, c]) + offset]))
    for c in range(n):
        row = np.uint64(indexed.row_of[np.uint64(candidates[1, c]) + offset])
        at = np.uint64(others.indptr[row])
        end = min(np.uint64(others.indptr[row + ONE]), at + np.uint64(8) * LINE)
        while at < end:
            prefetch(others.ids, at)
            prefetch(others.counts, at)
            at += LINE
    marked, begin, end = np.int64(-1), np.uint64(0), np.uint64(0)
    for c in range(n):
        d, y = np.int64(candidates[0, c]), np.uint64(candidates[1, c]) + offset
        # Candidates of one document come together: its signatures are marked once, and each partner's are looked up
        # there, which reads every one once and branches on none, as a merge of two lists would.
        if d != marked:
            for k in range(begin, end):
                marks[np.uint32(own.ids[k])] = 0
            row = np.uint64(probing.row_of[d])
            marked, begin, end = d, np.uint64(own.indptr[row]), np.uint64(own.indptr[row + ONE])
            for k in range(begin, end):
                marks[np.uint32(own.ids[k])] = own.counts[k]
        row = np.uint64(indexed.row_of[y])
        overlap = np.int64(0)
        for k in range(np.uint64(others.indptr[row]), np.uint64(others.indptr[row + ONE])):
            overlap += min(np.int32(marks[np.uint32(others.ids[k])]), others.counts[k])
        if overlap >= least[probing.lengths[d] + indexed.lengths[y]]:
            m = np.uint64(state[FOUND])
            found[0, m] = d
            found[1, m] = y
            found[2, m] = overlap
            state[FOUND] += 1
    for k in range(begin, end):
        marks[np.uint32(own.ids[k])] = 0


@njit(cache=True, nogil=True)
def _sift(probing: Documents, indexed: Documents, offset: Any, least: Any, candidates: Any, n: Any) -> Any:
    """Drop candidates whose sketches differ in more bits than similar documents differ in tokens.

    A token of one document alone changes one bit of the parity, and two may cancel each other: differing bits are a
    lower bound of the symmetric difference, which is ``total - 2 * overlap``.
    """
    for c in range(n):
        y = np.uint64(candidates[1, c]) + offset
        prefetch(indexed.lengths, y)
        prefetch(indexed.sketches, y)
    kept = np.uint64(0)
    for c in range(n):
        d, y = candidates[0, c], np.uint64(candidates[1, c]) + offset
        total = probing.lengths[d] + indexed.lengths[y]
        candidates[0, kept] = candidates[0, c]
        candidates[1, kept] = candidates[1, c]
        kept += np.uint64(bit_count(probing.sketches[d] ^ indexed.sketches[y]) <= total - 2 * least[total])
    return kept


@njit(cache=True, nogil=True)
def name_pairs(found: Any, probing: Documents, indexed: Documents, out: Any) -> None:
    """Translate pairs of documents as `probe` finds them into pairs of rows and their similarity.

    ``out`` holds the arrays for the rows of both and for the similarity.
    """
    row_a, row_b, similarity = out
    for m in range(len(similarity)):
        d, y = np.uint64(found[0, m]), np.uint64(found[1, m])
        total = np.int64(probing.lengths[d]) + indexed.lengths[y]
        row_a[m], row_b[m] = probing.row_of[d], indexed.row_of[y]
        similarity[m] = found[2, m] / (total - np.int64(found[2, m]))


@njit(cache=True, nogil=True)
def overlaps(rows: Rows, row: Any, others: Rows, compared: Any, marks: Any, out: Any) -> None:
    """Write the overlap of one row with each of the ``compared`` rows of ``others``; ``marks`` is left as zero."""
    for k in range(rows.indptr[row], rows.indptr[row + 1]):
        marks[np.uint32(rows.ids[k])] = rows.counts[k]
    for c in range(len(compared)):
        overlap = np.int64(0)
        for k in range(others.indptr[compared[c]], others.indptr[compared[c] + 1]):
            overlap += min(marks[np.uint32(others.ids[k])], others.counts[k])
        out[c] = overlap
    for k in range(rows.indptr[row], rows.indptr[row + 1]):
        marks[np.uint32(rows.ids[k])] = 0


class Links(NamedTuple):
    """Similar pairs as adjacency lists.

    Attributes
    ----------
    start : ndarray of int64, shape (n_rows + 2,)
        Row ``r`` has its links at ``start[r]:start[r + 1]``; the last entry only serves the filling.
    row : ndarray of int32
        Each partner.
    similarity : ndarray of float64
        Of each link.
    """

    start: NDArray[np.int64]
    row: NDArray[np.int32]
    similarity: NDArray[np.float64]


@njit(cache=True, nogil=True)
def mark_copied(copy_of: Any, copied: Any) -> None:
    """Set ``copied`` at the rows that have copies."""
    for r in range(len(copy_of)):
        if copy_of[r] >= 0 and copy_of[r] != r:
            copied[copy_of[r]] = True


@njit(cache=True, nogil=True)
def count_links(a: Any, b: Any, own_side: Any, copied: Any, start: Any) -> None:
    """Write into ``start``, zero on entry, where the links of each row begin, one place further on.

    Links lead from ``b`` to ``a``; on the own side from the later row of a pair to the earlier one, and back only from
    a row with copies, since these may lie behind its partner.
    """
    for m in range(len(a)):
        early, late = (min(a[m], b[m]), max(a[m], b[m])) if own_side else (a[m], b[m])
        start[late + 2] += 1
        if own_side and copied[early]:
            start[early + 2] += 1
    for r in range(2, len(start)):
        start[r] += start[r - 1]


@njit(cache=True, nogil=True)
def fill_links(a: Any, b: Any, similarity: Any, own_side: Any, copied: Any, out: Links) -> None:
    """Write the links that `count_links` counted."""
    for m in range(len(a)):
        early, late = (min(a[m], b[m]), max(a[m], b[m])) if own_side else (a[m], b[m])
        _append(late, early, similarity[m], out)
        if own_side and copied[early]:
            _append(early, late, similarity[m], out)


@njit(cache=True, nogil=True)
def _append(row: Any, partner: Any, similarity: Any, out: Links) -> None:
    k = out.start[row + 1]
    out.row[k] = partner
    out.similarity[k] = similarity
    out.start[row + 1] = k + 1


@njit(cache=True, nogil=True)
def count_partners(links: Links, copy_of: Any, own_side: Any, begin: Any, end: Any, partners: Any, passed: Any) -> None:
    """Count into ``partners[e]`` the rows similar to first row ``e``, for those in ``begin:end``.

    ``links`` lead from first rows of one side to first rows ``e`` of the other, ``copy_of`` belongs to the former. On
    the own side only rows behind ``e`` count, its copies among them, and ``passed`` gets for each copy how many of its
    first row's partners are not behind it. Both are zero on entry.
    """
    for r in range(begin if own_side else 0, len(copy_of)):
        first = copy_of[r]
        if first < 0:
            continue
        for k in range(links.start[first], links.start[first + 1]):
            e = links.row[k]
            if begin <= e < end and (e < r or not own_side):
                partners[e] += 1
        if own_side and begin <= first < end and first < r:
            partners[first] += 1
            passed[r] = partners[first]


@njit(cache=True, nogil=True)
def place_pairs(copy_of: Any, partners: Any, passed: Any, starts: Any) -> None:
    """Write where the pairs of each row start, from what `count_partners` counted."""
    starts[0] = 0
    for r in range(len(copy_of)):
        starts[r + 1] = starts[r] + (partners[copy_of[r]] - passed[r] if copy_of[r] >= 0 else 0)


@njit(cache=True, nogil=True)
def fill_partners(links: Links, copy_of: Any, own_side: Any, begin: Any, end: Any, place: Any, out: Any) -> None:
    """Write the partners of the first rows ``begin:end``: as rows are visited in order, all come out ascending.

    ``place`` is where the pairs of each row start, on entry; ``out`` are the arrays (i, j, similarity) of all pairs.
    """
    _, j, similarity = out
    for r in range(begin if own_side else 0, len(copy_of)):
        first = copy_of[r]
        if first < 0:
            continue
        for k in range(links.start[first], links.start[first + 1]):
            e = links.row[k]
            if begin <= e < end and (e < r or not own_side):
                j[place[e]] = r
                similarity[place[e]] = links.similarity[k]
                place[e] += 1
        if own_side and begin <= first < end and first < r:
            j[place[first]] = r
            similarity[place[first]] = 1.0
            place[first] += 1


@njit(cache=True, nogil=True)
def fill_pairs(copy_of: Any, begin: Any, end: Any, starts: Any, out: Any) -> None:
    """Complete the pairs of the rows ``begin:end``: a copy has the last ones of its first row's partners."""
    i, j, similarity = out
    for r in range(begin, end):
        at, size = np.uint64(starts[r]), np.uint64(starts[r + 1] - starts[r])
        for step in range(size):
            i[at + step] = r
        if size > 0 and copy_of[r] != r:
            k = np.uint64(starts[copy_of[r] + 1]) - size
            for step in range(size):
                j[at + step] = j[k + step]
                similarity[at + step] = similarity[k + step]
