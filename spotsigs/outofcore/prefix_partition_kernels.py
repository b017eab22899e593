"""Kernels of the join on disk: arrays in, arrays out, no interpreter lock held.

In the order of their use: say where the home of each signature is (`find_homes`); write the prefixes of a range of rows
(`spread_rows`) and sort them by part (`count_parts`, `fill_parts`); meet what shares signatures of a part
(`number_signatures`, `count_lists`, `fill_lists`, `meet`, and `count_visits` for what is left of it); add the meetings
of each pair up (`merge`), compare what is left (`compare`) and spread the similar pairs over the copies of their rows
(`count_members`, `fill_members`). `docs/bounds.md` proves what is left out.

A *place* is the number of units of weight that stand before a signature in its row's order. Rows are numbered as in the
store, in ascending order of length; rows of one length are a *run*.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.arrays.intrinsics import bit_count, prefetch
from spotsigs.matching.join_kernels import MAX_CLASSES, MIX_1, MIX_2

HOME_BITS = 10
"""Low bits of the mark of a signature, a hash of the first document that has it; its class stands above them."""

BIN_BITS = 12
"""Bits of the range of signatures that is sent to one part: those of the home, and of a hash of the signature."""

A_HOME = 12
"""A document has one home for so many of its signatures, as a power of two, so that a huge one fills no part alone."""

HOMES = 2**HOME_BITS - 1
LOW = np.uint64(0xFFFFFFFF)
BYTE, HALF = np.uint64(8), np.uint64(32)
MOST_PLACE = 2**16 - 1
"""Places beyond it are written as this one: a bound on a smaller place leaves less out."""

MOST_MEETINGS = 255
"""Meetings beyond it are not counted: no more are ever asked for."""

MOST_LENGTH = 2**24 - 1
"""Longest partner that a posting tells; what reaches further has no limit."""

MOST_ROWS = 2**24
"""Rows of one comparison: their numbers have 24 bits there."""

NO_LIMIT = 2**40
AHEAD = 8
"""Comparisons, tokens and candidates ahead of which memory is asked for."""

MEMO = 256
"""Places whose bounds are kept while rows of one length pass."""

TOTALS = 4096
"""Sums of two lengths whose bounds are kept."""

UNKNOWN = -2

A_TOKEN = 16
"""Work of a token that is read and listed, where looking at a posting is 1."""


class Runs(NamedTuple):
    """What depends on the length alone, for each length that occurs, ascending.

    Attributes
    ----------
    lengths : ndarray of int64, shape (n,)
        The lengths, from 1 on.
    rows : ndarray of int64, shape (n + 1,)
        First row of each, and the number of rows.
    low : ndarray of int64, shape (n,)
        First run of the lengths that a shorter partner can have.
    meetings : ndarray of int64, shape (n,)
        Meetings of a similar pair whose shorter row has this length.
    prefix : ndarray of int64, shape (n,)
        Units of weight in which a row of this length has them.
    offered : ndarray of int64, shape (n,)
        Units of weight in which it looks out for partners that are not shorter.
    """

    lengths: NDArray[np.int64]
    rows: NDArray[np.int64]
    low: NDArray[np.int64]
    meetings: NDArray[np.int64]
    prefix: NDArray[np.int64]
    offered: NDArray[np.int64]


class Share(NamedTuple):
    """Rows with a signature of one part in their prefix, and those signatures.

    Attributes
    ----------
    marks : ndarray of uint64, shape (2 n,)
        For each the sketch, the parity of the units of weight that fall on each of 64 bits, then its number, ascending,
        and its run (32 bits each): what a candidate is judged by, side by side.
    fresh : ndarray of bool, shape (n,)
        Whether the row, or a copy of it, is new.
    first : ndarray of int64, shape (n_runs + 1,)
        First of them, by place here, in each run.
    starts : ndarray of int64, shape (n + 1,)
        Row ``r`` has its tokens at ``starts[r]:starts[r + 1]``.
    tokens : ndarray of uint64
        Number of the signature (in what is sent that of the vocabulary), place (16 bits), weight inside the prefix (8
        bits).
    """

    marks: NDArray[np.uint64]
    fresh: NDArray[np.bool_]
    first: NDArray[np.int64]
    starts: NDArray[np.int64]
    tokens: NDArray[np.uint64]


class Lists(NamedTuple):
    """Rows by signature, filled as the rows before a probing one pass.

    Attributes
    ----------
    bounds : ndarray of int32, shape (2 n_signatures,)
        For each the first posting that is still in reach, and the one behind the last.
    postings : ndarray of uint64
        Place of the row in its share, longest partner it can have by this signature (24 bits), weight (8 bits).
    """

    bounds: NDArray[np.int32]
    postings: NDArray[np.uint64]


@njit(cache=True, nogil=True)
def least_of(total: Any, tau: Any) -> Any:
    """Return the least overlap of a similar pair, as `spotsigs.matching.bounds.least_overlap` does."""
    o: Any = max(np.int64(np.floor(total * (tau / (1 + tau)))) - 1, 1)
    for _ in range(3):
        if o / max(total - o, 1) < tau:
            o += 1
    return o


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def sketch_rows(indptr: Any, ids: Any, counts: Any, out: Any) -> None:
    """Write the parity of each row's units of weight on each of 64 bits."""
    for r in range(len(out)):
        sketch = np.uint64(0)
        for k in range(indptr[r], indptr[r + 1]):
            x = np.uint64(np.uint32(ids[k])) * MIX_1
            x = (x ^ (x >> HALF)) * MIX_2
            bit = x >> np.uint64(58)
            if counts[k] >> 6 & 1:
                sketch = ~sketch  # every bit once for 64 units
            for z in range(counts[k] & 63):
                sketch ^= np.uint64(1) << ((bit + np.uint64(z)) & np.uint64(63))
        out[r] = sketch


@njit(cache=True, nogil=True)
def find_homes(sizes: Any, first: Any, entries: Any, homes: Any) -> None:
    """Write for each signature the home of the first document that has it, a hash of that document's number.

    Parameters
    ----------
    sizes : ndarray of int64
        Signatures of each document.
    first : int
        Number of the first document.
    entries : ndarray of int32
        Place of each signature of each document in ``homes``.
    homes : ndarray of uint16
        Receives them.
    """
    k = len(entries)
    for r in range(len(sizes) - 1, -1, -1):
        for place in range(sizes[r] - 1, -1, -1):
            k -= 1
            x = np.uint64(first + r) * MIX_1 + np.uint64(place >> A_HOME) * MIX_2
            homes[entries[k]] = (x ^ (x >> HALF)) * MIX_2 >> np.uint64(64 - HOME_BITS)


@njit(cache=True, nogil=True)
def spread_rows(indptr: Any, ids: Any, counts: Any, marks: Any, runs: Any, copy_of: Any, tables: Runs, out: Any) -> Any:
    """Write the prefixes of the rows that copy no other row.

    A row's signatures are ordered by class, rarest first, then by number; those of class 0 occur in no other row and
    take their place only.

    Parameters
    ----------
    indptr, ids, counts : ndarray
        Rows as CSR arrays, ids ascending in each.
    marks : ndarray of uint16
        Class and home of each signature.
    runs : ndarray of int64
        Run of each row.
    copy_of : ndarray of int32
        First equal row of each row.
    tables : Runs
        By length.
    out : tuple of ndarray
        ``tokens`` as in `Share`, ``rows``, and ``bins``, by which they are sent; room for one of each entry.

    Returns
    -------
    int
        How many there are.
    """
    tokens, rows, bins = out
    weight = np.empty(MAX_CLASSES + 1, np.int64)
    split = BIN_BITS - HOME_BITS
    n = 0
    for r in range(len(runs)):
        if copy_of[r] != r:
            continue
        first, last = indptr[r], indptr[r + 1]
        weight[:] = 0
        for k in range(first, last):
            weight[(marks[k] >> HOME_BITS) + 1] += counts[k]
        size = tables.prefix[runs[r]]
        for c in range(MAX_CLASSES):
            weight[c + 1] += weight[c]
        for k in range(first, last):
            c = marks[k] >> HOME_BITS
            at = weight[c]
            if c == 0 or at >= size:
                continue
            weight[c] += counts[k]
            tokens[n] = (
                np.uint64(np.uint32(ids[k])) << HALF
                | np.uint64(min(at, MOST_PLACE)) << BYTE
                | np.uint64(min(counts[k], size - at, MOST_MEETINGS))
            )
            rows[n] = r
            within = np.uint64(np.uint32(ids[k])) * MIX_1 >> np.uint64(64 - BIN_BITS + HOME_BITS)
            bins[n] = (marks[k] & HOMES) << split | np.int64(within)
            n += 1
    return n


@njit(cache=True, nogil=True)
def count_parts(rows: Any, part: Any, starts: Any) -> None:
    """Count the tokens of each part and the rows that have some.

    Parameters
    ----------
    rows : ndarray
        As `spread_rows` writes them.
    part : ndarray of int32
        Part of each token.
    starts : ndarray of int64, shape (2, n_parts + 2)
        Zero; receives where the rows and the tokens of each part start, one place further.
    """
    before = np.full(starts.shape[1], -1, np.int32)
    for k in range(len(rows)):
        p = part[k]
        if rows[k] != before[p]:
            starts[0, p + 2] += 1
            before[p] = rows[k]
        starts[1, p + 2] += 1
    for p in range(2, starts.shape[1]):
        starts[0, p] += starts[0, p - 1]
        starts[1, p] += starts[1, p - 1]


@njit(cache=True, nogil=True)
def fill_parts(
    tokens: Any, rows: Any, part: Any, first_row: Any, fresh: Any, sketches: Any, starts: Any, out: Any
) -> None:
    """Write what `count_parts` counted.

    ``out`` are the tokens and, for each row of a part, its sketch, and behind that its number (32 bits), whether it is
    new (1 bit) and how many tokens it has there (31 bits).
    """
    of_part, heads = out
    before = np.full(starts.shape[1], -1, np.int32)
    for k in range(len(tokens)):
        p = part[k]
        if rows[k] != before[p]:
            at = starts[0, p + 1]
            starts[0, p + 1] += 1
            heads[2 * at] = sketches[rows[k]]
            heads[2 * at + 1] = np.uint64(first_row + rows[k]) << HALF | np.uint64(fresh[rows[k]]) << np.uint64(31)
            before[p] = rows[k]
        heads[2 * starts[0, p + 1] - 1] += np.uint64(1)
        of_part[starts[1, p + 1]] = tokens[k]
        starts[1, p + 1] += 1


@njit(cache=True, nogil=True)
def read_heads(tables: Runs, out: Share) -> None:
    """Fill the arrays of a `Share`, but for its tokens, whose `marks` are what `fill_parts` wrote."""
    q = 0
    for r in range(len(out.fresh)):
        head = out.marks[2 * r + 1]
        row = head >> HALF
        out.fresh[r] = head >> np.uint64(31) & np.uint64(1) != 0
        out.starts[r + 1] = out.starts[r] + np.int64(head & np.uint64(0x7FFFFFFF))
        while tables.rows[q + 1] <= np.int64(row):
            q += 1
            out.first[q] = r
        out.marks[2 * r + 1] = row << HALF | np.uint64(q)
    out.first[q + 1 :] = len(out.fresh)


@njit(cache=True, nogil=True)
def number_signatures(tokens: Any, known: Any, n: Any) -> Any:
    """Number the signatures of tokens anew, in the order in which they come.

    What a row is the first to have lies side by side then, and so does what a near-copy of it looks up.

    Parameters
    ----------
    tokens : ndarray of uint64
        As in `Share`; receive the new numbers.
    known : ndarray of uint64
        A hash table with more room than signatures, a power of two, of the signatures that have been numbered; 0 where
        it is empty.
    n : int
        How many these are.

    Returns
    -------
    int
        How many there are now.
    """
    last = np.uint64(len(known) - 1)
    for k in range(len(tokens)):
        if k + AHEAD < len(tokens):
            prefetch(known, np.int64((tokens[k + AHEAD] >> HALF) * MIX_1 >> HALF & last))
        signature = tokens[k] >> HALF
        at = signature * MIX_1 >> HALF & last
        while known[at] != 0 and known[at] >> HALF != signature:
            at = at + np.uint64(1) & last
        if known[at] == 0:
            n += 1
            known[at] = signature << HALF | np.uint64(n)
        tokens[k] = (known[at] & LOW) - np.uint64(1) << HALF | tokens[k] & LOW
    return n


@njit(cache=True, nogil=True)
def _run(share: Share, r: Any) -> Any:
    return np.int64(share.marks[2 * r + 1] & LOW)


@njit(cache=True, nogil=True)
def count_lists(share: Share, only_fresh: Any, tables: Runs, bounds: Any) -> Any:
    """Write where the list of each signature starts, `bounds` being zero; return their length."""
    for r in range(len(share.fresh)):
        if only_fresh and not share.fresh[r]:
            continue
        offered = tables.offered[_run(share, r)]
        for k in range(share.starts[r], share.starts[r + 1]):
            if np.int64(share.tokens[k] >> BYTE & np.uint64(0xFFFF)) < offered:
                bounds[2 * np.int64(share.tokens[k] >> HALF)] += 1
    n = 0
    for t in range(0, len(bounds), 2):
        size = bounds[t]
        bounds[t] = bounds[t + 1] = n
        n += size
    return n


@njit(cache=True, nogil=True)
def _reach(place: Any, q: Any, tables: Runs, tau: Any, memo: Any) -> Any:
    """Return the longest partner of a row by a signature at a place; `memo` is that of its length."""
    known = place < len(memo)
    if known and memo[place] != UNKNOWN:
        return memo[place]
    length = tables.lengths[q]
    reach = longest_partner(length, length - place + tables.meetings[q] - 1, tau)
    if known:
        memo[place] = reach
    return reach


@njit(cache=True, nogil=True)
def _insert(share: Share, r: Any, tables: Runs, tau: Any, memo: Any, lists: Lists) -> None:
    q = _run(share, r)
    offered = tables.offered[q]
    for k in range(share.starts[r], share.starts[r + 1]):
        token = share.tokens[k]
        place = np.int64(token >> BYTE & np.uint64(0xFFFF))
        if place >= offered:
            continue
        reach = np.uint64(min(_reach(place, q, tables, tau, memo), MOST_LENGTH))
        t = 2 * np.int64(token >> HALF)
        lists.postings[lists.bounds[t + 1]] = np.uint64(r) << HALF | reach << BYTE | token & np.uint64(0xFF)
        lists.bounds[t + 1] += 1


@njit(cache=True, nogil=True)
def fill_lists(share: Share, begin: Any, end: Any, only_fresh: Any, tables: Runs, tau: Any, lists: Lists) -> None:
    """List the rows ``begin:end`` of a share."""
    memo, of = np.full(MEMO, UNKNOWN, np.int64), -1
    for r in range(begin, end):
        if share.fresh[r] or not only_fresh:
            if _run(share, r) != of:
                memo[:], of = UNKNOWN, _run(share, r)
            _insert(share, r, tables, tau, memo, lists)


@njit(cache=True, nogil=True)
def _passed(lists: Lists, t: Any, low: Any) -> Any:
    """Return the first posting of a list that is long enough, and the one behind the last; forget those before.

    Rows probe in ascending order of length, so a posting that is too short now is so for all that follow.
    """
    p, last = np.int64(lists.bounds[2 * t]), np.int64(lists.bounds[2 * t + 1])
    while p < last and np.int64(lists.postings[p] >> HALF) < low:
        p += 1
    lists.bounds[2 * t] = p
    return p, last


@njit(cache=True, nogil=True)
def count_visits(
    probing: Share, listed: Share, own: Any, begin: Any, tables: Runs, tau: Any, all_rows: Lists, new: Lists, out: Any
) -> None:
    """Write the work of each row from `begin` on: its tokens and the postings it will look at, none being looked at.

    ``all_rows`` lists the rows before; ``new`` the new ones among them, which are what an old row looks for.
    """
    memo, of = np.full(MEMO, UNKNOWN, np.int64), -1
    for r in range(begin, len(probing.fresh)):
        q = _run(probing, r)
        if q != of:
            memo[:], of = UNKNOWN, q
        low = listed.first[tables.low[q]]
        lists = all_rows if probing.fresh[r] else new
        out[r - begin] = A_TOKEN * (probing.starts[r + 1] - probing.starts[r])
        for k in range(probing.starts[r], probing.starts[r + 1]):
            if k + AHEAD < len(probing.tokens):
                prefetch(lists.bounds, 2 * np.int64(probing.tokens[k + AHEAD] >> HALF))
            p, last = _passed(lists, np.int64(probing.tokens[k] >> HALF), low)
            out[r - begin] += last - p
        if own:
            _insert(probing, r, tables, tau, memo, all_rows)
            if len(new.bounds) and probing.fresh[r]:
                _insert(probing, r, tables, tau, memo, new)


@njit(cache=True, nogil=True)
def _differing(total: Any, tau: Any, memo: Any) -> Any:
    """Return the most bits in which the sketches of similar rows differ, by the sum of their lengths."""
    if total >= len(memo):
        return total - 2 * least_of(total, tau)
    if memo[total] == UNKNOWN:
        memo[total] = total - 2 * least_of(total, tau)
    return memo[total]


@njit(cache=True, nogil=True)
def meet(
    probing: Share,
    listed: Share,
    own: Any,
    begin: Any,
    end: Any,
    tables: Runs,
    tau: Any,
    all_rows: Lists,
    new: Lists,
    most: Any,
    met: Any,
    touched: Any,
    out: Any,
) -> Any:
    """Write the pairs of the rows ``begin:end`` of a share with listed ones, until no room may be left or much is done.

    Parameters
    ----------
    probing, listed : Share
        Rows of one part, or of two stretches of it.
    own : bool
        Whether both are the same rows: each is listed when it has looked for partners.
    begin, end : int
        Which rows look for partners.
    tables, tau, all_rows, new
        As for `count_visits`.
    most : int
        Work, as `count_visits` counts it, after which no further row begins.
    met, touched : ndarray of uint8 and of int64, shape (listed rows,)
        Room; ``met`` is zero on entry and exit.
    out : tuple of ndarray
        Pairs (number of the shorter row, 32 bits, of the probing one), and their meetings.

    Returns
    -------
    tuple of int
        First row that has not looked for partners, how many pairs there are, and the work that was done.
    """
    pairs, meetings = out
    n, work = 0, 0
    room = len(pairs) - len(met)
    memo, of, differing = np.full(MEMO, UNKNOWN, np.int64), -1, np.full(TOTALS, UNKNOWN, np.int64)
    for r in range(begin, end):
        if n > room or work >= most:
            return r, n, work
        work += A_TOKEN * (probing.starts[r + 1] - probing.starts[r])
        q = _run(probing, r)
        if q != of:
            memo[:], of = UNKNOWN, q
        length = tables.lengths[q]
        low = listed.first[tables.low[q]]
        lists = all_rows if probing.fresh[r] else new
        saturated = np.uint64(min(length, MOST_LENGTH))
        m = 0
        # Meetings are counted in `met` by listed row; `touched` says which counters to read and clear afterwards, so
        # that a row costs what it meets, not what is listed.
        for k in range(probing.starts[r], probing.starts[r + 1]):
            if k + AHEAD < len(probing.tokens):
                prefetch(lists.bounds, 2 * np.int64(probing.tokens[k + AHEAD] >> HALF))
            token = probing.tokens[k]
            p, last = _passed(lists, np.int64(token >> HALF), low)
            if p == last:
                continue
            # the bound of this row at this place, and below, in the posting, that of the other row at its own
            reach = _reach(np.int64(token >> BYTE & np.uint64(0xFFFF)), q, tables, tau, memo)
            stop = len(met)
            if reach < length:
                stop = listed.first[np.searchsorted(tables.lengths, reach, side="right")]
            work += last - p
            weight = token & np.uint64(0xFF)
            while p < last:
                posting = lists.postings[p]
                y = np.int64(posting >> HALF)
                if y >= stop:
                    break
                if saturated <= posting >> BYTE & np.uint64(0xFFFFFF):
                    if met[y] == 0:
                        touched[m] = y
                        m += 1
                        prefetch(listed.marks, 2 * y)
                    met[y] = min(np.uint64(met[y]) + min(weight, posting & np.uint64(0xFF)), np.uint64(MOST_MEETINGS))
                p += 1
        # 64 bits can differ in 64 at most: where similar rows may, sketches say nothing and are not looked at
        sketched = _differing(length + tables.lengths[tables.low[q]], tau, differing) < 64
        sketch, row = probing.marks[2 * r], probing.marks[2 * r + 1] >> HALF
        for c in range(m):
            y = touched[c]
            mark = listed.marks[2 * y + 1]
            total = length + tables.lengths[np.int64(mark & LOW)]
            if not sketched or bit_count(sketch ^ listed.marks[2 * y]) <= _differing(total, tau, differing):
                pairs[n] = mark >> HALF << HALF | row
                meetings[n] = met[y]
                n += 1
            met[y] = 0
        if own:
            _insert(probing, r, tables, tau, memo, all_rows)
            if len(new.bounds) and probing.fresh[r]:
                _insert(probing, r, tables, tau, memo, new)
    return end, n, work


@njit(cache=True, nogil=True)
def pack_keys(pairs: Any, meetings: Any, first_row: Any, keys: Any) -> None:
    """Write shorter row (32 bits), longer one less `first_row` (24 bits) and meetings (8 bits) into one number."""
    for k in range(len(pairs)):
        keys[k] = (
            (pairs[k] >> HALF) << HALF | ((pairs[k] & LOW) - np.uint64(first_row)) << BYTE | np.uint64(meetings[k])
        )


@njit(cache=True, nogil=True)
def merge(keys: Any, tables: Runs) -> Any:
    """Add up the meetings of each pair of sorted keys and move those with enough to the front; return their number."""
    n, k, q = 0, 0, 0
    while k < len(keys):
        pair, total = keys[k] >> BYTE, np.int64(0)
        while k < len(keys) and keys[k] >> BYTE == pair:
            total += np.int64(keys[k] & np.uint64(0xFF))
            k += 1
        row = np.int64(pair >> np.uint64(24))
        while tables.rows[q + 1] <= row:
            q += 1
        if total >= tables.meetings[q]:
            keys[n] = pair
            n += 1
    return n


class Block(NamedTuple):
    """Rows as CSR arrays, with their lengths."""

    indptr: NDArray[np.int64]
    ids: NDArray[np.int32]
    counts: NDArray[np.int32]
    lengths: NDArray[np.int64]


@njit(cache=True, nogil=True)
def compare(one: Block, a: Any, other: Block, b: Any, tau: Any, out: Any) -> Any:
    """Compare rows ``a`` of one block with rows ``b`` of another.

    Parameters
    ----------
    one, other : Block
        The rows.
    a, b : ndarray of int64, shape (n,)
        Which are compared; signatures ascend in both.
    tau : float
        Similarity threshold.
    out : tuple of ndarray
        Receives the places of the similar ones among the n, and their similarities.

    Returns
    -------
    int
        How many are similar.
    """
    places, similarity = out
    n = 0
    for c in range(len(a)):
        if c + AHEAD < len(a):
            for block, row in ((one, a[c + AHEAD]), (other, b[c + AHEAD])):
                at = block.indptr[row]
                prefetch(block.ids, at)
                prefetch(block.ids, at + 16)
                prefetch(block.ids, at + 32)
                prefetch(block.counts, at)
        x, x_end, y, y_end = one.indptr[a[c]], one.indptr[a[c] + 1], other.indptr[b[c]], other.indptr[b[c] + 1]
        overlap = np.int64(0)
        while x < x_end and y < y_end:  # no branch to mispredict
            left, right = one.ids[x], other.ids[y]
            overlap += np.int64(left == right) * min(one.counts[x], other.counts[y])
            x += left <= right
            y += right <= left
        value = overlap / max(one.lengths[a[c]] + other.lengths[b[c]] - overlap, 1)
        if value >= tau:
            places[n], similarity[n] = c, value
            n += 1
    return n


@njit(cache=True, nogil=True)
def gather(indptr: Any, values: Any, rows: Any, ends: Any, out: Any) -> None:
    """Copy the values of some rows behind one another; where they begin and end there is given."""
    for r in range(len(rows)):
        at, to = indptr[rows[r]], ends[r]
        for k in range(ends[r + 1] - to):
            out[to + k] = values[at + k]


class Groups(NamedTuple):
    """The document numbers of each row and of its copies: ``numbers[starts[r]:starts[r + 1]]``.

    Attributes
    ----------
    starts, numbers : ndarray of int64
        As above.
    sizes, old : ndarray of int64
        How many a row has, and how many of them are not new.
    """

    starts: NDArray[np.int64]
    numbers: NDArray[np.int64]
    sizes: NDArray[np.int64]
    old: NDArray[np.int64]


@njit(cache=True, nogil=True)
def list_pairs(
    one: Groups, a: Any, other: Groups, b: Any, own: Any, similarity: Any, new_from: Any, at: Any, out: Any
) -> Any:
    """Write the pairs of documents that pairs of rows stand for, lower number first, until there is no room.

    Parameters
    ----------
    one, other : Groups
        The documents of the rows.
    a, b : ndarray of int64, shape (n,)
        The pairs of rows.
    own : bool
        Each row is paired with itself: its copies with one another.
    similarity : ndarray of float64, shape (n,)
        Theirs.
    new_from : int
        One document of each pair at least has this number or a higher one.
    at : ndarray of int64, shape (3,)
        Where to begin: a pair of rows, the place of its first document, and that of its second; zeros at first.
        Receives where to go on.
    out : tuple of ndarray
        Receives documents and similarities.

    Returns
    -------
    int
        How many were written.
    """
    i, j, values = out
    n, c, x, y = 0, at[0], at[1], at[2]
    while c < len(a):
        first, second = one.starts[a[c]], other.starts[b[c]]
        while first + x < one.starts[a[c] + 1]:
            skipped = x + 1 if own else 0
            while second + skipped + y < other.starts[b[c] + 1]:
                if n == len(i):
                    at[0], at[1], at[2] = c, x, y
                    return n
                low, high = one.numbers[first + x], other.numbers[second + skipped + y]
                if max(low, high) >= new_from:
                    i[n], j[n], values[n] = min(low, high), max(low, high), similarity[c]
                    n += 1
                y += 1
            x, y = x + 1, 0
        c, x = c + 1, 0
    at[0], at[1], at[2] = c, 0, 0
    return n
