"""Kernels of rows with prefixes: pairs of two blocks of rows, leaders of a batch, and the nearest leader of a row.

An inverted index has postings of the prefixes of some rows. `find_pairs` compares other rows with all of them. For
clusters, the rows of a *batch* come in order of priority: `find_leaders` compares each with the leaders before it, of
which alone the index has postings, and `find_nearest` compares any rows with all leaders. No similar pair of two rows
that are no leaders is generated, so that the work of a large cluster grows with its rows, not with its pairs.
docs/bounds.md has the bounds.

Bit layouts, the highest bits first::

    token, uint64      signature (40) | position (16) | weight inside the prefix (8)
    posting, 4 int32   unit | length | weight from the token on | old (1) | shared weight (8) | weight (8)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.parallel import bit_count, prefetch
from spotsigs.matching.join_kernels import HALF, MAX_CLASSES, MIX_1, MIX_2, Rows
from spotsigs.signatures.contained import RemovalRule, may_remove

MOST_SIGNATURES = 2**40  # ids of larger collections do not fit into a token
MAX_POSITION = 2**16 - 1  # larger positions are stored as this one: the bound of a smaller position prunes less
MAX_SHARED = 255  # larger shared weights are stored as this one: no bound requires more
MAX_LENGTH = 2**31 - 1  # larger lengths are stored as this one: no bound prunes more
NO_LIMIT = 2**40
AHEAD = 8  # distance of prefetching, in tokens
LINE, LINES = 16, 8  # entries in a cache line, and lines of a row that are prefetched
LONG_LIST = 16  # postings from which on a binary search finds the first one that is long enough
SLACK = 0.001  # more than products of sums of two lengths and a quotient of the threshold are rounded by
SIGNATURE, POSITION = np.uint64(24), np.uint64(8)  # first bits of the fields of a token
WEIGHT = np.uint64(0xFF)
FEW_ENTRIES = 2**12  # up to which a row has sixteen slots for each entry, and four beyond


class Prefixed(NamedTuple):
    """Rows, and the prefix of each: its rarest signatures, in which every similar pair shares some weight.

    Signatures that no other row has may be left out of the entries, but count for the lengths.
    """

    indptr: NDArray[np.int64]
    ids: NDArray[Any]  # int32 or int64
    counts: NDArray[np.int32]
    lengths: NDArray[np.int64]
    shortest: NDArray[np.int64]  # (n,) length of the shortest partner
    shared: NDArray[np.int64]  # (n,) weight that a pair shares in the prefixes whose shorter row this is
    starts: NDArray[np.int64]  # (n + 1,) the tokens of row r are tokens[starts[r]:starts[r + 1]]
    tokens: NDArray[np.uint64]


class Lists(NamedTuple):
    """Inverted index of the prefixes of some rows.

    A list is of all signatures with the same bit. If there are few signatures, each has a bit of its own. Otherwise two
    may share one, so that rows seem to have more in common than they have, and more of them are compared.
    """

    # (2 * words,) 64 bits, set if a prefix has a signature of this bit; then the number of bits set in words before.
    # The bit of a signature is its id modulo the number of bits, a power of two: ids ascend with hashes.
    marks: NDArray[np.uint64]
    bounds: NDArray[np.int64]  # (2 * lists,) start of each list, and the end of the part that is in use
    postings: NDArray[np.int32]  # (4 * capacity,)
    ascending: bool  # the postings of each list ascend by length, then by unit


class Units(NamedTuple):
    """Units of a collection: sets of exact duplicates, which have one row."""

    numbers: NDArray[np.int32]  # (n,) number of each unit in order of priority
    row_of: NDArray[np.int32]  # (n,) row of each unit
    old: NDArray[np.bool_]  # (n,) whether the unit is old; no pair of two old units counts
    documents: NDArray[np.int32]  # (n,) document that has the signatures and the text of each unit


class Indexed(NamedTuple):
    """Units, and an index of all of them or of the leaders among them."""

    units: Units
    rows: Prefixed
    listed: NDArray[np.int64]  # (rows,) tokens from this position on are not listed
    lists: Lists


class RowTable(NamedTuple):
    """Entries of a row in slots by their signatures, with which other rows are compared without a merge."""

    ids: NDArray[Any]  # (slots,) signature in each slot, the last bits of its id; -1 in a free one
    counts: NDArray[np.int32]  # (slots,)
    further: NDArray[np.int64]  # (entries,) entries whose slot has another signature
    state: NDArray[np.int64]  # (3,) row, or -1; number of its last slot; number of its further entries


class ProbeScratch(NamedTuple):
    """Scratch arrays of a thread that probes an index."""

    counts: NDArray[np.uint8]  # (units,) weight that each indexed unit shares with the row; zero between rows
    touched: NDArray[np.int32]  # (units + 1,) units with a count
    candidates: NDArray[np.int32]  # (units + 1,)
    lists: NDArray[np.int64]  # (tokens of a row,) list of each token that has one
    tokens: NDArray[np.int64]  # (tokens of a row,) the token
    table: RowTable


@kernel
def keep_shared(rows: Rows, classes: Any, least: Any, kept: Any, out: Rows, out_classes: Any) -> Any:
    """Copy the rows that share some weight at least with all others, without the signatures of class 0.

    Signatures of class 0 are in no other row. ``least`` has the weight that a row needs; ``kept``, an output,
    states which rows have it; ``out`` has room for all rows. Return the numbers of rows and of entries that are copied.
    """
    m, n = 0, 0
    out.indptr[0] = 0
    for r in range(len(kept)):
        shared = np.int64(0)
        for k in range(rows.indptr[r], rows.indptr[r + 1]):
            shared += np.int64(classes[k] > 0) * rows.counts[k]
        kept[r] = shared >= least[r]
        if not kept[r]:
            continue
        for k in range(rows.indptr[r], rows.indptr[r + 1]):
            out.ids[n], out.counts[n], out_classes[n] = rows.ids[k], rows.counts[k], classes[k]
            n += classes[k] > 0
        m += 1
        out.indptr[m] = n
    return m, n


@kernel
def hash_rows(rows: Rows, out: Any) -> None:
    """Write a hash of the entries of each row."""
    for r in range(len(out)):
        h = np.uint64(0)
        for k in range(rows.indptr[r], rows.indptr[r + 1]):
            x = (np.uint64(rows.ids[k]) * MIX_2 + np.uint64(rows.counts[k])) * MIX_1
            x = (x ^ (x >> HALF)) * MIX_2
            h += x ^ (x >> HALF)
        out[r] = h


@kernel
def mark_repeated(rows: Rows, lengths: Any, out: Any) -> None:
    """Write whether each row equals the one before."""
    for r in range(len(out)):
        a, b, end = rows.indptr[r - 1], rows.indptr[r], rows.indptr[r + 1]
        same = r > 0 and lengths[r] == lengths[r - 1] and b - a == end - b
        while same and b < end:
            same = rows.ids[a] == rows.ids[b] and rows.counts[a] == rows.counts[b]
            a += 1
            b += 1
        out[r] = same


@kernel
def select_prefixes(rows: Rows, lengths: Any, classes: Any, sizes: Any, begin: Any, end: Any) -> Any:
    """Return the number of tokens in the prefix of each of the rows ``begin:end``, and the tokens.

    The signatures of a row are ordered by class, rarest first, then by id. Signatures of class 0 occur in no other
    row: they count for positions and have no token. A prefix has ``sizes`` units of weight; its tokens are in this
    order.
    """
    # two counting sorts: at[c] becomes the position of the next signature of class c, slot[c] the place of its token
    at, slot = np.empty(MAX_CLASSES + 1, np.int64), np.empty(MAX_CLASSES + 1, np.int64)
    number = np.empty(end - begin, np.int64)
    tokens = np.empty(rows.indptr[end] - rows.indptr[begin], np.uint64)
    n = 0
    for r in range(begin, end):
        first, last, before = rows.indptr[r], rows.indptr[r + 1], n
        at[:] = 0
        slot[:] = 0
        at[1], slot[1] = lengths[r], n
        for k in range(first, last):
            if classes[k] > 0:
                at[1] -= rows.counts[k]
                at[classes[k] + 1] += rows.counts[k]
                slot[classes[k] + 1] += 1
        for c in range(1, MAX_CLASSES):
            at[c + 1] += at[c]
            slot[c + 1] += slot[c]
        for k in range(first, last):
            position = at[classes[k]]
            if classes[k] == 0 or position >= sizes[r]:
                continue
            at[classes[k]] += rows.counts[k]
            weight = min(np.int64(rows.counts[k]), sizes[r] - position, MAX_SHARED)
            tokens[slot[classes[k]]] = np.uint64(rows.ids[k]) << SIGNATURE | np.uint64(
                min(position, MAX_POSITION) << 8 | weight
            )
            slot[classes[k]] += 1
            n += 1
        number[r - begin] = n - before
    return number, tokens[:n].copy()


@kernel
def mark_signatures(units: Units, rows: Prefixed, listed: Any, marks: Any) -> None:
    """Set the bit of each signature that is to be listed, and count the bits of all words before."""
    for r in units.row_of:
        for k in range(rows.starts[r], rows.starts[r + 1]):
            if _position(rows.tokens[k]) < listed[r]:
                bit = _bit_of(marks, rows.tokens[k])
                marks[bit >> np.uint64(6) << np.uint64(1)] |= np.uint64(1) << (bit & np.uint64(63))
    n = np.uint64(0)
    for w in range(0, len(marks), 2):
        marks[w + 1] = n
        n += np.uint64(bit_count(marks[w]))


@kernel
def _position(token: Any) -> Any:
    return np.int64(token >> POSITION & np.uint64(MAX_POSITION))


@kernel
def _bit_of(marks: Any, token: Any) -> Any:
    return token >> SIGNATURE & np.uint64(32 * len(marks) - 1)


@kernel
def _list_of(marks: Any, token: Any) -> Any:
    """Return the number of the list of a token's signature; -1 if there is none."""
    bit = _bit_of(marks, token)
    at = bit >> np.uint64(6) << np.uint64(1)
    word, bit = marks[at], bit & np.uint64(63)
    if word >> bit & np.uint64(1) == 0:
        return np.int64(-1)
    return np.int64(marks[at + np.uint64(1)]) + bit_count(word & ((np.uint64(1) << bit) - np.uint64(1)))


@kernel
def _most_tokens(rows: Prefixed) -> Any:
    most = np.int64(0)
    for r in range(len(rows.lengths)):
        most = max(most, rows.starts[r + 1] - rows.starts[r])
    return most


@kernel
def _find_lists(rows: Prefixed, r: Any, end: Any, marks: Any, bounds: Any, lists: Any, tokens: Any) -> Any:
    """Write the lists of the tokens of a row before a position, and the tokens; return the number of those with one."""
    n = 0
    first, last = rows.starts[r], rows.starts[r + 1]
    for k in range(first, last):
        if k + AHEAD < last:
            prefetch(marks, _bit_of(marks, rows.tokens[k + AHEAD]) >> np.uint64(6) << np.uint64(1))
        if _position(rows.tokens[k]) >= end:
            continue
        t = _list_of(marks, rows.tokens[k])
        if t >= 0:
            prefetch(bounds, 2 * t)
            lists[n], tokens[n] = t, k
            n += 1
    return n


@kernel
def count_postings(units: Units, rows: Prefixed, listed: Any, marks: Any, bounds: Any) -> Any:
    """Write the start of each list, which is empty, with room for all units; return the number of postings."""
    lists, tokens = np.empty(_most_tokens(rows), np.int64), np.empty(_most_tokens(rows), np.int64)
    for r in units.row_of:
        for k in range(_find_lists(rows, r, listed[r], marks, bounds, lists, tokens)):
            bounds[2 * lists[k]] += 1
    n = 0
    for t in range(0, len(bounds), 2):
        size = bounds[t]
        bounds[t] = bounds[t + 1] = n
        n += size
    return n


@kernel
def list_units(index: Indexed, order: Any) -> None:
    """List some units, in this order."""
    lists, tokens = np.empty(_most_tokens(index.rows), np.int64), np.empty(_most_tokens(index.rows), np.int64)
    for y in order:
        _insert(index, y, lists, tokens)


@kernel
def _insert(index: Indexed, y: Any, lists: Any, tokens: Any) -> None:
    rows, bounds, postings, r = index.rows, index.lists.bounds, index.lists.postings, index.units.row_of[y]
    length, old = rows.lengths[r], np.int64(index.units.old[y])
    found = _find_lists(rows, r, index.listed[r], index.lists.marks, bounds, lists, tokens)
    for k in range(found):
        prefetch(postings, 4 * bounds[2 * lists[k] + 1])
    for k in range(found):
        token, t = rows.tokens[tokens[k]], lists[k]
        p = bounds[2 * t + 1]
        bounds[2 * t + 1] = p + 1
        postings[4 * p] = y
        postings[4 * p + 1] = min(length, MAX_LENGTH)
        postings[4 * p + 2] = min(length - _position(token), MAX_LENGTH)
        postings[4 * p + 3] = old << 16 | rows.shared[r] << 8 | np.int64(token & WEIGHT)


@kernel
def _first_of_length(postings: Any, p: Any, end: Any, least: Any) -> Any:
    """Return the first posting of some length at least."""
    while p < end:
        middle = (p + end) // 2
        if postings[4 * middle + 1] < least:
            p = middle + 1
        else:
            end = middle
    return p


@kernel
def _empty_scratch(rows: Prefixed, index: Indexed) -> Any:
    n, most = len(index.units.row_of), _most_tokens(rows)
    return ProbeScratch(
        np.zeros(n, np.uint8),
        np.empty(n + 1, np.int32),
        np.empty(n + 1, np.int32),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        _empty_row_table(rows),
    )


@kernel
def _empty_row_table(rows: Prefixed) -> Any:
    most = np.int64(0)
    for r in range(len(rows.lengths)):
        most = max(most, rows.indptr[r + 1] - rows.indptr[r])
    slots = _number_of_slots(most)
    return RowTable(
        np.full(slots, -1, rows.ids.dtype),
        np.zeros(slots, np.int32),
        np.empty(most, np.int64),
        np.array([-1, 0, 0]),
    )


@kernel
def _number_of_slots(entries: Any) -> Any:
    """Return the number of slots for a number of entries, a power of two."""
    slots = 16
    while slots < max(16 * min(entries, FEW_ENTRIES), 4 * entries):
        slots *= 2
    return slots


@kernel
def _probe(rows: Prefixed, r: Any, old: Any, index: Indexed, stop: Any, tau: Any, scratch: ProbeScratch) -> Any:
    """Write the units before ``stop`` that can be similar to a row, by the weight that they share in the prefixes.

    Return their number, and the number of the postings that were read. A pair is dropped by a common token if what both
    rows have from this token on, with what they were seen to share, is too little: this is the positional filter.
    """
    marks, bounds, postings, ascending = index.lists
    counts = scratch.counts
    m, n, visits = 0, 0, 0
    found = _find_lists(rows, r, MAX_LENGTH, marks, bounds, scratch.lists, scratch.tokens)
    for q in range(min(found, AHEAD)):
        prefetch(postings, 4 * bounds[2 * scratch.lists[q]])
    length = rows.lengths[r]
    shared = np.int32(rows.shared[r])
    long, low, ratio = min(length, MAX_LENGTH), min(rows.shortest[r], MAX_LENGTH), tau / (1 + tau)
    for q in range(found):
        if q + AHEAD < found:
            prefetch(postings, 4 * bounds[2 * scratch.lists[q + AHEAD]])
        token = rows.tokens[scratch.tokens[q]]
        position, weight = _position(token), np.int32(token & WEIGHT)
        rest = length - position
        # the length of the longest partner for which the row needs the token, or a bit more
        reach = np.int64(min((rest + rows.shared[r] - 1 + SLACK) / ratio, NO_LIMIT)) - length
        p, end = bounds[2 * scratch.lists[q]], bounds[2 * scratch.lists[q] + 1]
        if ascending and end - p > LONG_LIST:
            p = _first_of_length(postings, p, end, low)
        visits -= p
        while p < end:
            y, other, others_rest, more = postings[4 * p], postings[4 * p + 1], postings[4 * p + 2], postings[4 * p + 3]
            if ascending and (other > reach or y >= stop):
                break
            p += 1
            if other < low or other > reach or (old and more >> 16):
                continue
            count = np.int32(counts[y])
            # a count that is saturated may be greater
            if count < MAX_SHARED and count + min(rest, others_rest) + SLACK < (long + other) * ratio:
                continue
            total = min(count + min(weight, more & 0xFF), MAX_SHARED)
            counts[y] = total
            # without branches, which would be mispredicted
            scratch.touched[m] = y
            m += int(count == 0)
            needed = min(more >> 8 & 0xFF, shared)
            scratch.candidates[n] = y
            n += int((count < needed) & (needed <= total))
        visits += p
    for k in range(m):
        counts[scratch.touched[k]] = 0
    return n, visits


@kernel
def _similarity(rows: Prefixed, r: Any, index: Indexed, y: Any, table: RowTable) -> Any:
    others, o = index.rows, index.units.row_of[y]
    if table.state[0] != r:
        _clear_table(rows, table)
        _enter_row(rows, r, table)
    shared = _weight_shared(rows, others, o, table)
    return shared / (rows.lengths[r] + others.lengths[o] - shared)


@kernel
def _clear_table(rows: Prefixed, table: RowTable) -> None:
    row, last = table.state[0], np.uint64(table.state[1])
    if row >= 0:
        for k in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + 1])):
            table.ids[np.uint64(rows.ids[k]) & last] = -1


@kernel
def _enter_row(rows: Prefixed, r: Any, table: RowTable) -> None:
    """Put the entries of a row into the table, which is empty."""
    begin, end, n = np.uint64(rows.indptr[r]), np.uint64(rows.indptr[r + 1]), 0
    last = np.uint64(_number_of_slots(np.int64(end - begin)) - 1)
    for k in range(begin, end):
        slot = np.uint64(rows.ids[k]) & last
        if table.ids[slot] < 0:
            table.ids[slot], table.counts[slot] = rows.ids[k], rows.counts[k]
        else:
            table.further[n] = k
            n += 1
    table.state[0], table.state[1], table.state[2] = r, last, n


@kernel
def _weight_shared(rows: Prefixed, others: Prefixed, o: Any, table: RowTable) -> Any:
    """Return the weight that the row in the table shares with a row of ``others``."""
    # no branch, and no step waits for the one before
    shared, last = np.int64(0), np.uint64(table.state[1])
    begin, end = np.uint64(others.indptr[o]), np.uint64(others.indptr[o + 1])
    for k in range(begin, end):
        slot = np.uint64(others.ids[k]) & last
        shared += np.int64(table.ids[slot] == others.ids[k]) * min(table.counts[slot], others.counts[k])
    for n in range(table.state[2]):
        entry = table.further[n]
        k = _first_of_id(others.ids, begin, end, rows.ids[entry])
        if k < end and others.ids[k] == rows.ids[entry]:
            shared += min(rows.counts[entry], others.counts[k])
    return shared


@kernel
def _first_of_id(ids: Any, k: Any, end: Any, least: Any) -> Any:
    """Return the first entry from ``k`` on whose id is at least ``least``, by bisection; ids ascend."""
    while k < end:
        middle = (k + end) // np.uint64(2)
        if ids[middle] < least:
            k = middle + np.uint64(1)
        else:
            end = middle
    return k


@kernel
def _similarity_of_equal(rows: Prefixed, r: Any) -> Any:
    """Return the similarity of a row and one with equal entries; below 1 if both have signatures of their own."""
    shared = np.int64(0)
    for k in range(rows.indptr[r], rows.indptr[r + 1]):
        shared += rows.counts[k]
    return shared / (2 * rows.lengths[r] - shared)


@kernel
def find_pairs(
    rows: Prefixed, repeated: Any, begin: Any, end: Any, index: Indexed, own: Any, tau: Any, out: Any
) -> Any:
    """Write the similar pairs of the rows ``begin:end`` and indexed rows, until the output is full.

    Parameters
    ----------
    rows : Prefixed
        Rows in ascending order of length.
    repeated : ndarray of bool, shape (rows,)
        Whether each row equals the one before. Its pairs are copied: blocks of equal rows, which are common where
        texts differ, cost no more than their pairs.
    index : Indexed
        An index of rows; unit y is row y.
    own : bool
        The indexed rows are the same rows, and each pair is written once, with the later row first.
    out : tuple of ndarray
        Output: rows, indexed rows and similarities.

    Returns
    -------
    tuple of int
        First row that was not compared, numbers of pairs, postings read and candidates.
    """
    i, j, similarity = out
    scratch, n, before = _empty_scratch(rows, index), 0, 0
    postings, candidates, full = 0, 0, len(i) - len(index.units.row_of)
    for r in range(begin, end):
        if n > full:
            return r, n, postings, candidates
        at = n
        if r > begin and repeated[r]:
            for k in range(before, at):
                i[n], j[n], similarity[n] = r, j[k], similarity[k]
                n += 1
            value = _similarity_of_equal(rows, r) if own else 0.0
            if own and value >= tau:
                i[n], j[n], similarity[n] = r, r - 1, value
                n += 1
        else:
            m, visits = _probe(rows, r, False, index, r if own else MAX_LENGTH, tau, scratch)
            postings += visits
            candidates += m
            for k in range(m):
                o = scratch.candidates[k]
                entry = index.rows.indptr[o]
                end_of_row = min(index.rows.indptr[o + 1], entry + LINES * LINE)
                while entry < end_of_row:
                    prefetch(index.rows.ids, entry)
                    prefetch(index.rows.counts, entry)
                    entry += LINE
            for k in range(m):
                value = _similarity(rows, r, index, scratch.candidates[k], scratch.table)
                if value >= tau:
                    i[n], j[n], similarity[n] = r, scratch.candidates[k], value
                    n += 1
        before = at
    return end, n, postings, candidates


@kernel
def find_leaders(batch: Indexed, tau: Any, rule: RemovalRule, covered: Any) -> None:
    """Mark as covered each unit that is similar to an earlier leader and may be removed for it; list the leaders.

    Units that are covered on entry are no leaders. Old ones that are not are leaders, and come first.
    """
    units, rows = batch.units, batch.rows
    scratch = _empty_scratch(rows, batch)
    for y in range(len(units.row_of)):
        if covered[y]:
            continue
        if not units.old[y]:
            r = units.row_of[y]
            m, _ = _probe(rows, r, False, batch, MAX_LENGTH, tau, scratch)
            for k in range(m):
                leader = scratch.candidates[k]
                value = _similarity(rows, r, batch, leader, scratch.table)
                if value >= tau and may_remove(rule, units.documents[y], units.documents[leader], value):
                    covered[y] = True
                    break
        if not covered[y]:
            _insert(batch, y, scratch.lists, scratch.tokens)


@kernel
def find_nearest(
    rows: Prefixed, units: Units, begin: Any, end: Any, index: Indexed, tau: Any, rule: RemovalRule, both: Any
) -> Any:
    """Return the nearest leader for which each of the units ``begin:end`` may be removed, and the similarity.

    The nearest one is the most similar one, among equals the first; its number is -1 if there is none. With ``both``,
    return also the nearest of the units of each leader; a rule whose contents count is out of the question then,
    because it is not symmetric.
    """
    scratch = _empty_scratch(rows, index)
    nearest, similarity = np.full(end - begin, -1, np.int32), np.full(end - begin, np.nan)
    m = len(index.units.row_of) if both else 0
    of_leaders, similarity_of_leaders = np.full(m, -1, np.int32), np.full(m, np.nan)
    for x in range(begin, end):
        u, r, at = units.numbers[x], units.row_of[x], x - begin
        m, _ = _probe(rows, r, units.old[x], index, MAX_LENGTH, tau, scratch)
        for k in range(m):
            leader = scratch.candidates[k]
            y = index.units.numbers[leader]
            value = _similarity(rows, r, index, leader, scratch.table)
            if value < tau or not (both or _is_nearer(at, y, value, nearest, similarity)):
                continue  # before texts are compared
            if may_remove(rule, units.documents[x], index.units.documents[leader], value):
                _take_nearest(at, y, value, nearest, similarity)
                if both:
                    _take_nearest(leader, u, value, of_leaders, similarity_of_leaders)
    return nearest, similarity, of_leaders, similarity_of_leaders


@kernel
def _is_nearer(u: Any, y: Any, value: Any, nearest: Any, similarity: Any) -> Any:
    return nearest[u] < 0 or value > similarity[u] or (value == similarity[u] and y < nearest[u])


@kernel
def _take_nearest(u: Any, y: Any, value: Any, nearest: Any, similarity: Any) -> None:
    if _is_nearer(u, y, value, nearest, similarity):
        nearest[u], similarity[u] = y, value


@kernel
def merge_nearest(units: Any, nearest: Any, similarity: Any, out: Any) -> None:
    """Take the nearest leaders of some units into arrays of all units, where they are nearer."""
    of_all, similarity_of_all = out
    for k in range(len(units)):
        if nearest[k] >= 0:
            _take_nearest(units[k], nearest[k], similarity[k], of_all, similarity_of_all)
