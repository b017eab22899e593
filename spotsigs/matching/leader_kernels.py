"""Kernels that find the leaders of a collection, and the most similar leader of each other row.

The rows of a *batch* come in order of priority. `find_leaders` compares each with the leaders before it, of which alone
an inverted index has postings; `find_nearest` compares any rows with all leaders of the batch. No similar pair of two
rows that are no leaders is generated, so that the work of a large cluster is that of its rows. docs/bounds.md has the
bounds.

Bit layouts, the highest bits first::

    token, uint64      signature (32) | position (16) | weight inside the prefix (16)
    posting, 4 int32   leader | length | length of the longest partner | old (1) | shared weight (8) | weight (8)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.parallel import bit_count
from spotsigs.matching.join_kernels import MAX_CLASSES
from spotsigs.signatures.contained import RemovalRule, may_remove

MAX_POSITION = 2**16 - 1  # larger positions are stored as this one: the bound of a smaller position prunes less
MAX_SHARED = 255  # larger shared weights are stored as this one: no bound requires more
MAX_LENGTH = 2**31 - 1
NO_LIMIT = 2**40


class Prefixed(NamedTuple):
    """Rows, and the prefix of each: its rarest signatures, in which every similar pair shares some weight."""

    indptr: NDArray[np.int64]
    ids: NDArray[np.int32]
    counts: NDArray[np.int32]
    lengths: NDArray[np.int64]
    shortest: NDArray[np.int64]  # (n,) length of the shortest partner
    shared: NDArray[np.int64]  # (n,) weight that a pair shares in the prefixes whose shorter row this is
    ends: NDArray[np.int64]  # (n,) the tokens of row r are tokens[indptr[r]:ends[r]]
    tokens: NDArray[np.uint64]


class LeaderIndex(NamedTuple):
    """Inverted index of the prefixes of leaders; the lists have capacity for all rows of a batch."""

    words: NDArray[np.uint64]  # a bit for each signature, set if a prefix of the batch has it
    before: NDArray[np.int32]  # (words + 1,) bits of all words before
    starts: NDArray[np.int64]  # (lists + 1,) start of each list
    ends: NDArray[np.int64]  # (lists,) end of the part of each list that is in use
    postings: NDArray[np.int32]  # (capacity, 4)


class Units(NamedTuple):
    """Units of a collection: sets of exact duplicates, which have one row."""

    numbers: NDArray[np.int32]  # (n,) number of each unit in order of priority
    row_of: NDArray[np.int32]  # (n,) row of each unit
    old: NDArray[np.bool_]  # (n,) whether the unit is old; no pair of two old units counts
    documents: NDArray[np.int32]  # (n,) document that has the signatures and the text of each unit


class Indexed(NamedTuple):
    """Units in order of priority, and the leaders among them."""

    units: Units
    rows: Prefixed
    lists: LeaderIndex


@kernel
def least_of(total: Any, tau: Any) -> Any:
    """Return the least overlap of a similar pair, as `spotsigs.matching.bounds.least_overlap` does."""
    o: Any = max(np.int64(np.floor(total * (tau / (1 + tau)))) - 1, 1)
    for _ in range(3):
        if o / max(total - o, 1) < tau:
            o += 1
    return o


@kernel
def longest_partner(length: Any, most: Any, tau: Any) -> Any:
    """Return the greatest length of a partner with which an overlap of at most `most` suffices."""
    if most < 1:
        return -1
    if most / tau > NO_LIMIT:
        return NO_LIMIT
    total = most + np.int64(np.floor(most / tau)) + 2
    for _ in range(4):
        if most / max(total - most, 1) < tau:
            total -= 1
    return total - length


@kernel
def select_prefixes(rows: Prefixed, classes: Any, sizes: Any, begin: Any, end: Any) -> None:
    """Write the prefixes of the rows ``begin:end``, of some units of weight each.

    The signatures of a row are ordered by class, rarest first, then by id. Those of class 0 occur in no other row: they
    count for positions and are not written.
    """
    at = np.empty(MAX_CLASSES + 1, np.int64)
    for r in range(begin, end):
        first, last = rows.indptr[r], rows.indptr[r + 1]
        at[:] = 0  # a counting sort: at[c] becomes the position of the next signature of class c
        for k in range(first, last):
            at[classes[k] + 1] += rows.counts[k]
        for c in range(MAX_CLASSES):
            at[c + 1] += at[c]
        n = first
        for k in range(first, last):
            position = at[classes[k]]
            if classes[k] == 0 or position >= sizes[r]:
                continue
            at[classes[k]] += rows.counts[k]
            weight = min(np.int64(rows.counts[k]), sizes[r] - position, MAX_SHARED)
            rows.tokens[n] = np.uint64(rows.ids[k]) << 32 | np.uint64(min(position, MAX_POSITION) << 16 | weight)
            n += 1
        rows.ends[r] = n


@kernel
def mark_signatures(rows: Prefixed, words: Any) -> None:
    """Set the bit of each signature of a prefix."""
    for r in range(len(rows.ends)):
        for k in range(rows.indptr[r], rows.ends[r]):
            s = rows.tokens[k] >> np.uint64(32)
            words[s >> np.uint64(6)] |= np.uint64(1) << (s & np.uint64(63))


@kernel
def _list_of(index: LeaderIndex, token: Any) -> Any:
    """Return the number of the list of a token's signature; -1 if no prefix of the batch has it."""
    s = token >> np.uint64(32)
    word, bit = index.words[s >> np.uint64(6)], s & np.uint64(63)
    if word >> bit & np.uint64(1) == 0:
        return np.int64(-1)
    return np.int64(index.before[s >> np.uint64(6)]) + bit_count(word & ((np.uint64(1) << bit) - np.uint64(1)))


@kernel
def count_postings(batch: Indexed, sizes: Any) -> None:
    """Count the most postings of each list."""
    for r in batch.units.row_of:
        for k in range(batch.rows.indptr[r], batch.rows.ends[r]):
            sizes[_list_of(batch.lists, batch.rows.tokens[k])] += 1


@kernel
def _reach(rows: Prefixed, r: Any, token: Any, tau: Any) -> Any:
    """Return the length of the longest partner for which a row needs a token."""
    position = np.int64(token >> np.uint64(16) & np.uint64(MAX_POSITION))
    return longest_partner(rows.lengths[r], rows.lengths[r] - position + rows.shared[r] - 1, tau)


@kernel
def _insert(batch: Indexed, y: Any, tau: Any) -> None:
    """List a new leader."""
    rows, index, r = batch.rows, batch.lists, batch.units.row_of[y]
    for k in range(rows.indptr[r], rows.ends[r]):
        token = rows.tokens[k]
        t = _list_of(index, token)
        p = index.ends[t]
        index.ends[t] = p + 1
        index.postings[p, 0] = y
        index.postings[p, 1] = rows.lengths[r]
        index.postings[p, 2] = min(_reach(rows, r, token, tau), MAX_LENGTH)
        index.postings[p, 3] = (
            np.int64(batch.units.old[y]) << 16 | rows.shared[r] << 8 | np.int64(token & np.uint64(0xFF))
        )


@kernel
def _probe(
    rows: Prefixed, r: Any, old: Any, batch: Indexed, tau: Any, counts: Any, touched: Any, candidates: Any
) -> Any:
    """Write the leaders that share enough weight in the prefixes with a row; return their number."""
    index, length, n, m = batch.lists, rows.lengths[r], 0, 0
    for k in range(rows.indptr[r], rows.ends[r]):
        token = rows.tokens[k]
        t = _list_of(index, token)
        if t < 0:
            continue
        reach, weight = _reach(rows, r, token, tau), np.int32(token & np.uint64(0xFF))
        for p in range(index.starts[t], index.ends[t]):
            y, other, longest, more = index.postings[p]
            if other < rows.shortest[r] or other > reach or length > longest or (old and more >> 16):
                continue
            count = np.int32(counts[y])
            if count == 0:
                touched[m] = y
                m += 1
            least = min(more >> 8 & 0xFF, rows.shared[r])
            total = min(count + min(weight, more & 0xFF), MAX_SHARED)
            counts[y] = total
            if count < least <= total:
                candidates[n] = y
                n += 1
    for k in range(m):
        counts[touched[k]] = 0
    return n


@kernel
def _similarity(rows: Prefixed, r: Any, batch: Indexed, y: Any) -> Any:
    others, o = batch.rows, batch.units.row_of[y]
    shared = _shared(rows, r, others, o)
    return shared / (rows.lengths[r] + others.lengths[o] - shared)


@kernel
def _shared(a: Prefixed, r: Any, b: Prefixed, o: Any) -> Any:
    shared, p, q, p_end, q_end = np.int64(0), a.indptr[r], b.indptr[o], a.indptr[r + 1], b.indptr[o + 1]
    while p < p_end and q < q_end:
        one, other = a.ids[p], b.ids[q]
        if one == other:
            shared += min(a.counts[p], b.counts[q])
        p += one <= other
        q += other <= one
    return shared


@kernel
def find_leaders(batch: Indexed, tau: Any, rule: RemovalRule, covered: Any) -> None:
    """Mark as covered each unit that is similar to an earlier leader and may be removed for it; list the leaders.

    Units that are covered on entry are no leaders. Old ones that are not are leaders, and come first.
    """
    n = len(batch.units.row_of)
    counts, touched, candidates = np.zeros(n, np.uint8), np.empty(n, np.int32), np.empty(n, np.int32)
    for y in range(n):
        if covered[y]:
            continue
        if not batch.units.old[y]:
            r = batch.units.row_of[y]
            for k in range(_probe(batch.rows, r, False, batch, tau, counts, touched, candidates)):
                value = _similarity(batch.rows, r, batch, candidates[k])
                documents = batch.units.documents
                if value >= tau and may_remove(rule, documents[y], documents[candidates[k]], value):
                    covered[y] = True
                    break
        if not covered[y]:
            _insert(batch, y, tau)


@kernel
def find_nearest(
    rows: Prefixed,
    units: Units,
    begin: Any,
    end: Any,
    batch: Indexed,
    tau: Any,
    rule: RemovalRule,
    both: Any,
    out: Any,
) -> None:
    """Find the most similar leader for which each of some units may be removed, among equals the first.

    ``out`` has for each unit of the collection, by number, its nearest leader and the similarity, which a better one
    replaces. With ``both``, a leader's nearest unit is also written, for which there may be only one thread, and a
    rule whose contents count is out of the question, because it is not symmetric.
    """
    nearest, similarity = out
    n = len(batch.units.row_of)
    counts, touched, candidates = np.zeros(n, np.uint8), np.empty(n, np.int32), np.empty(n, np.int32)
    for x in range(begin, end):
        u, r = units.numbers[x], units.row_of[x]
        for k in range(_probe(rows, r, units.old[x], batch, tau, counts, touched, candidates)):
            y = batch.units.numbers[candidates[k]]
            value = _similarity(rows, r, batch, candidates[k])
            if value < tau or not (both or _is_nearer(u, y, value, nearest, similarity)):
                continue  # before texts are compared
            if may_remove(rule, units.documents[x], batch.units.documents[candidates[k]], value):
                _take_nearest(u, y, value, nearest, similarity)
                if both:
                    _take_nearest(y, u, value, nearest, similarity)


@kernel
def _is_nearer(u: Any, y: Any, value: Any, nearest: Any, similarity: Any) -> Any:
    return nearest[u] < 0 or value > similarity[u] or (value == similarity[u] and y < nearest[u])


@kernel
def _take_nearest(u: Any, y: Any, value: Any, nearest: Any, similarity: Any) -> None:
    if _is_nearer(u, y, value, nearest, similarity):
        nearest[u], similarity[u] = y, value
