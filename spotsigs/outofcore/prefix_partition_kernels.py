"""Kernels of the join on disk: arrays in, arrays out, without the interpreter lock.

In the order of their use: find the partition key of each signature (`find_partition_keys`), select the prefixes of a
block of rows (`select_prefixes`), generate the candidate pairs of a part over an inverted index (`number_signatures`,
`count_lists`, `fill_lists`, `probe`, and `count_visits` for the remaining work), sum the shared weights of each pair
(`merge`), and verify (`compare`). `docs/bounds.md` proves that the filters lose no pair.

The *position* of a signature is the number of units of weight before it in its row's order. Rows are numbered as in the
store, in ascending order of length; rows of one length are a *run*.

Bit layouts, the highest bits first::

    mark of a signature, uint16   class of its frequency (6) | partition key (10)
    token, uint64                 signature (32) | 0 (8) | position (16) | weight inside the prefix (8)
    head, uint64                  row (32) | new (1) | number of tokens (31)
    row of a share, uint64        row (32) | run (32)
    posting, uint64               index in the share (32) | longest partner (24) | weight (8)
    candidate pair, uint64        shorter row (32) | longer row (32)
    key, uint64                   shorter row (32) | longer row less the first one (24) | shared weight (8)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.parallel import bit_count, prefetch
from spotsigs.matching.join_kernels import MAX_CLASSES, MIX_1, MIX_2
from spotsigs.matching.leader_kernels import least_of, longest_partner

KEY_BITS = 10
"""Bits of a partition key, a hash of the first document that contains the signature."""

BIN_BITS = 12
"""Bits of a bin, the unit of which parts consist: the partition key, then bits of a hash of the signature."""

LOG_SIGNATURES_A_KEY = 12
"""Logarithm of the number of signatures of a document that have one partition key, so that a huge one fills no part."""

KEY_MASK = 2**KEY_BITS - 1
LOW = np.uint64(0xFFFFFFFF)
BYTE, HALF = np.uint64(8), np.uint64(32)
MAX_POSITION = 2**16 - 1  # larger positions are stored as this one: the bound of a smaller position prunes less
MAX_SHARED = 255  # larger shared weights are stored as this one: no bound requires more
MAX_LENGTH = 2**24 - 1  # largest length of a partner that a posting can store; larger ones mean no limit
MAX_ROWS = 2**24  # rows of one comparison: their numbers have 24 bits in a key
AHEAD = 8  # distance of prefetching, in comparisons, tokens and candidates
MEMO = 256  # positions whose bounds are kept for the rows of one length
TOTALS = 4096  # sums of two lengths whose bounds are kept
UNKNOWN = -2
A_TOKEN = 16  # work of a token that is read and listed; the work of a posting is 1


@njit(cache=True, nogil=True, inline="always")
def upper(word: Any) -> Any:
    """Return the upper half: the signature of a token, the row of a head, the index of a posting."""
    return np.int64(word >> HALF)


@njit(cache=True, nogil=True, inline="always")
def lower(word: Any) -> Any:
    """Return the lower half: the run of a row, the longer row of a pair."""
    return np.int64(word & LOW)


@njit(cache=True, nogil=True, inline="always")
def position_of(token: Any) -> Any:
    """Return the position of a token in its row."""
    return np.int64(token >> BYTE & np.uint64(0xFFFF))


@njit(cache=True, nogil=True, inline="always")
def weight_of(entry: Any) -> Any:
    """Return the weight of a token or posting, or the shared weight of a key."""
    return entry & np.uint64(0xFF)


@njit(cache=True, nogil=True, inline="always")
def longest_of(posting: Any) -> Any:
    """Return the length of the longest partner by a posting."""
    return posting >> BYTE & np.uint64(0xFFFFFF)


class Runs(NamedTuple):
    """Bounds that depend on the length of a row alone, for each of the n lengths that occur, ascending."""

    lengths: NDArray[np.int64]  # the lengths, from 1 on
    rows: NDArray[np.int64]  # first row of each run, and the number of rows
    low: NDArray[np.int64]  # first run of the lengths of shorter partners
    shared: NDArray[np.int64]  # weight that a similar pair shares in the prefixes, by the length of its shorter row
    prefix: NDArray[np.int64]  # units of weight of the prefix in which a row shares them
    offered: NDArray[np.int64]  # units of weight of the prefix that is listed for partners that are not shorter


class PartRows(NamedTuple):
    """The n rows with a signature of one part in their prefix, and these signatures."""

    marks: NDArray[np.uint64]  # (2 n,) for each row its sketch, as `sketch_rows` writes it, then its row and run
    is_new: NDArray[np.bool_]  # (n,) whether the row is new
    first: NDArray[np.int64]  # (runs + 1,) index of the first row of each run
    starts: NDArray[np.int64]  # (n + 1,) the tokens of row r are tokens[starts[r]:starts[r + 1]]
    tokens: NDArray[np.uint64]  # with the id of the signature, in the part once `number_signatures` has run


class Lists(NamedTuple):
    """Inverted index of a part, which grows while rows are probed."""

    bounds: NDArray[np.int32]  # (2 signatures,) for each the first posting still in reach, and the end of its list
    postings: NDArray[np.uint64]


class PrefixIndex(NamedTuple):
    """Rows that are probed, and the inverted index of the rows with which they are compared."""

    probing: PartRows
    listed: PartRows  # the same rows, or those of another group of blocks
    is_self: bool  # whether both are the same rows: each row is listed after it has been probed
    all_rows: Lists  # the listed rows
    new: Lists  # the new ones among them, which are the partners of old rows; empty if all rows are new
    tables: Runs
    tau: float


@kernel
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


@kernel
def find_partition_keys(sizes: Any, first: Any, entries: Any, partition_keys: Any) -> None:
    """Compute the partition key of each signature, a hash of the first document that contains it.

    ``sizes`` are the signatures of each document from number ``first`` on, ``entries`` the index of each of them in
    ``partition_keys``, the output.
    """
    k = len(entries)
    for r in range(len(sizes) - 1, -1, -1):
        for rank in range(sizes[r] - 1, -1, -1):
            k -= 1
            x = np.uint64(first + r) * MIX_1 + np.uint64(rank >> LOG_SIGNATURES_A_KEY) * MIX_2
            partition_keys[entries[k]] = (x ^ (x >> HALF)) * MIX_2 >> np.uint64(64 - KEY_BITS)


@kernel
def select_prefixes(indptr: Any, ids: Any, counts: Any, marks: Any, runs: Any, tables: Runs, out: Any) -> Any:
    """Write the prefixes of rows in CSR form, ids ascending in each; return the number of tokens.

    The signatures of a row are ordered by class, rarest first, then by id. Those of class 0 occur in no other row: they
    count for positions and are not written. ``runs`` has the run of each row. The output, as long as the entries, are
    ``tokens`` as in `PartRows`, and the row and the bin of each.
    """
    tokens, rows, bins = out
    weight = np.empty(MAX_CLASSES + 1, np.int64)
    split = BIN_BITS - KEY_BITS
    n = 0
    for r in range(len(runs)):
        first, last = indptr[r], indptr[r + 1]
        # a counting sort by class: `weight[c]` becomes the position of the next signature of class c
        weight[:] = 0
        for k in range(first, last):
            weight[(marks[k] >> KEY_BITS) + 1] += counts[k]
        size = tables.prefix[runs[r]]
        for c in range(MAX_CLASSES):
            weight[c + 1] += weight[c]
        for k in range(first, last):
            c = marks[k] >> KEY_BITS
            at = weight[c]
            if c == 0 or at >= size:  # in no other row, or after the prefix
                continue
            weight[c] += counts[k]
            tokens[n] = (
                np.uint64(np.uint32(ids[k])) << HALF
                | np.uint64(min(at, MAX_POSITION)) << BYTE
                | np.uint64(min(counts[k], size - at, MAX_SHARED))
            )
            rows[n] = r
            # signatures of one key are spread over several bins, so that a key with many signatures can be cut
            within = np.uint64(np.uint32(ids[k])) * MIX_1 >> np.uint64(64 - BIN_BITS + KEY_BITS)
            bins[n] = (marks[k] & KEY_MASK) << split | np.int64(within)
            n += 1
    return n


@kernel
def number_signatures(tokens: Any, known: Any, n: Any) -> Any:
    """Renumber the signatures of tokens in the order of their first occurrence; return their number.

    Postings lists of signatures that first occur in one row are then adjacent, and so are those that its
    near-duplicates probe. ``known`` is the hash table of the ``n`` signatures that were numbered before, 0 where it is
    empty; its size is a power of two above their number.
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


@kernel
def _run(share: PartRows, r: Any) -> Any:
    return lower(share.marks[2 * r + 1])


@kernel
def count_lists(share: PartRows, only_new: Any, tables: Runs, bounds: Any) -> Any:
    """Write the start of each postings list into `bounds`, which is zero; return the number of postings."""
    for r in range(len(share.is_new)):
        if only_new and not share.is_new[r]:
            continue
        offered = tables.offered[_run(share, r)]
        for k in range(share.starts[r], share.starts[r + 1]):
            if position_of(share.tokens[k]) < offered:
                bounds[2 * upper(share.tokens[k])] += 1
    n = 0
    for t in range(0, len(bounds), 2):
        size = bounds[t]
        bounds[t] = bounds[t + 1] = n
        n += size
    return n


@kernel
def _reach(position: Any, q: Any, tables: Runs, tau: Any, memo: Any) -> Any:
    """Return the length of the longest partner of a row by a signature at a position; `memo` is that of its length."""
    known = position < len(memo)
    if known and memo[position] != UNKNOWN:
        return memo[position]
    length = tables.lengths[q]
    reach = longest_partner(length, length - position + tables.shared[q] - 1, tau)
    if known:
        memo[position] = reach
    return reach


@kernel
def _insert(share: PartRows, r: Any, tables: Runs, tau: Any, memo: Any, lists: Lists) -> None:
    q = _run(share, r)
    offered = tables.offered[q]
    for k in range(share.starts[r], share.starts[r + 1]):
        token = share.tokens[k]
        position = position_of(token)
        if position >= offered:
            continue
        reach = np.uint64(min(_reach(position, q, tables, tau, memo), MAX_LENGTH))
        t = 2 * upper(token)
        lists.postings[lists.bounds[t + 1]] = np.uint64(r) << HALF | reach << BYTE | weight_of(token)
        lists.bounds[t + 1] += 1


@kernel
def fill_lists(share: PartRows, begin: Any, end: Any, only_new: Any, tables: Runs, tau: Any, lists: Lists) -> None:
    """List the rows ``begin:end`` of a share."""
    memo, of = np.full(MEMO, UNKNOWN, np.int64), -1
    for r in range(begin, end):
        if share.is_new[r] or not only_new:
            if _run(share, r) != of:
                memo[:], of = UNKNOWN, _run(share, r)
            _insert(share, r, tables, tau, memo, lists)


@kernel
def _postings_in_reach(lists: Lists, t: Any, low: Any) -> Any:
    """Return the first posting of a list that is long enough, and the end of the list; drop those before.

    Rows are probed in ascending order of length: a posting that is too short now is too short for all later rows.
    """
    p, last = np.int64(lists.bounds[2 * t]), np.int64(lists.bounds[2 * t + 1])
    while p < last and upper(lists.postings[p]) < low:
        p += 1
    lists.bounds[2 * t] = p
    return p, last


@kernel
def _insert_probed(index: PrefixIndex, r: Any, memo: Any) -> None:
    """List a row that has been probed, for the rows after it."""
    if index.is_self:
        _insert(index.probing, r, index.tables, index.tau, memo, index.all_rows)
        if len(index.new.bounds) and index.probing.is_new[r]:
            _insert(index.probing, r, index.tables, index.tau, memo, index.new)


@kernel
def count_visits(index: PrefixIndex, begin: Any, out: Any) -> None:
    """Write the work of each row from `begin` on, in tokens and postings, without reading the postings."""
    probing, tables = index.probing, index.tables
    memo, of = np.full(MEMO, UNKNOWN, np.int64), -1
    for r in range(begin, len(probing.is_new)):
        q = _run(probing, r)
        if q != of:  # rows are in ascending order of length, and the memo is that of one length
            memo[:], of = UNKNOWN, q
        low = index.listed.first[tables.low[q]]
        lists = index.all_rows if probing.is_new[r] else index.new
        out[r - begin] = A_TOKEN * (probing.starts[r + 1] - probing.starts[r])
        for k in range(probing.starts[r], probing.starts[r + 1]):
            if k + AHEAD < len(probing.tokens):
                prefetch(lists.bounds, 2 * upper(probing.tokens[k + AHEAD]))
            p, last = _postings_in_reach(lists, upper(probing.tokens[k]), low)
            out[r - begin] += last - p
        _insert_probed(index, r, memo)


@kernel
def _differing(total: Any, tau: Any, memo: Any) -> Any:
    """Return the most bits in which the sketches of similar rows differ, by the sum of their lengths."""
    if total >= len(memo):
        return total - 2 * least_of(total, tau)
    if memo[total] == UNKNOWN:
        memo[total] = total - 2 * least_of(total, tau)
    return memo[total]


@kernel
def probe(index: PrefixIndex, begin: Any, end: Any, most: Any, counts: Any, touched: Any, out: Any) -> Any:
    """Write the candidate pairs of the rows ``begin:end`` with listed ones, until the output or the work is used up.

    Parameters
    ----------
    index : PrefixIndex
        The rows; those before ``begin`` are listed.
    most : int
        Work, as `count_visits` counts it, after which no further row is probed.
    counts, touched : ndarray of uint8 and of int64, shape (listed rows,)
        Scratch; ``counts`` is zero on entry and exit.
    out : tuple of ndarray
        Output: candidate pairs, and the weight that each shares in this part.

    Returns
    -------
    tuple of int
        First row that has not been probed, number of pairs, and work.
    """
    probing, listed, tables, tau = index.probing, index.listed, index.tables, index.tau
    pairs, shared = out
    n, work = 0, 0
    full = len(pairs) - len(counts)  # a row has at most as many pairs as there are listed rows
    memo, of, differing = np.full(MEMO, UNKNOWN, np.int64), -1, np.full(TOTALS, UNKNOWN, np.int64)
    for r in range(begin, end):
        if n > full or work >= most:
            return r, n, work
        work += A_TOKEN * (probing.starts[r + 1] - probing.starts[r])
        q = _run(probing, r)
        if q != of:
            memo[:], of = UNKNOWN, q
        length = tables.lengths[q]
        low = listed.first[tables.low[q]]
        lists = index.all_rows if probing.is_new[r] else index.new
        saturated = np.uint64(min(length, MAX_LENGTH))
        m = 0
        # `counts` has the shared weight by listed row, `touched` the rows with one: only these are read and cleared
        for k in range(probing.starts[r], probing.starts[r + 1]):
            if k + AHEAD < len(probing.tokens):
                prefetch(lists.bounds, 2 * upper(probing.tokens[k + AHEAD]))
            token = probing.tokens[k]
            p, last = _postings_in_reach(lists, upper(token), low)
            if p == last:
                continue
            # positional filter of this row; the posting has that of the other row
            reach = _reach(position_of(token), q, tables, tau, memo)
            stop = len(counts)
            if reach < length:
                stop = listed.first[np.searchsorted(tables.lengths, reach, side="right")]
            work += last - p
            weight = weight_of(token)
            while p < last:
                posting = lists.postings[p]
                y = upper(posting)
                if y >= stop:  # postings are in ascending order of length
                    break
                if saturated <= longest_of(posting):
                    if counts[y] == 0:
                        touched[m] = y
                        m += 1
                        prefetch(listed.marks, 2 * y)
                    counts[y] = min(np.uint64(counts[y]) + min(weight, weight_of(posting)), np.uint64(MAX_SHARED))
                p += 1
        # sketches differ in at most 64 bits: they prune nothing if those of similar rows may
        sketched = _differing(length + tables.lengths[tables.low[q]], tau, differing) < 64
        sketch, row = probing.marks[2 * r], probing.marks[2 * r + 1] >> HALF
        for c in range(m):
            y = touched[c]
            mark = listed.marks[2 * y + 1]
            total = length + tables.lengths[lower(mark)]
            if not sketched or bit_count(sketch ^ listed.marks[2 * y]) <= _differing(total, tau, differing):
                pairs[n] = mark >> HALF << HALF | row
                shared[n] = counts[y]
                n += 1
            counts[y] = 0
        _insert_probed(index, r, memo)
    return end, n, work


@kernel
def merge(keys: Any, tables: Runs) -> Any:
    """Sum the shared weight of each pair of sorted keys, move pairs with enough to the front, return their number."""
    n, k, q = 0, 0, 0
    while k < len(keys):
        pair, total = keys[k] >> BYTE, np.int64(0)
        while k < len(keys) and keys[k] >> BYTE == pair:
            total += np.int64(weight_of(keys[k]))
            k += 1
        row = np.int64(pair >> np.uint64(24))
        while tables.rows[q + 1] <= row:
            q += 1
        if total >= tables.shared[q]:
            keys[n] = pair
            n += 1
    return n


class Block(NamedTuple):
    """Rows as CSR arrays, with their lengths and document numbers."""

    indptr: NDArray[np.int64]
    ids: NDArray[np.int32]
    counts: NDArray[np.int32]
    lengths: NDArray[np.int64]
    documents: NDArray[np.int64]


@kernel
def compare(one: Block, a: Any, other: Block, b: Any, tau: Any, out: Any) -> Any:
    """Compare rows ``a`` of one block with rows ``b`` of another; return the number of similar pairs.

    ``out`` are their indices in ``a`` and ``b``, and their similarities.
    """
    indices, similarity = out
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
            indices[n], similarity[n] = c, value
            n += 1
    return n


@kernel
def gather(indptr: Any, values: Any, rows: Any, ends: Any, out: Any) -> None:
    """Concatenate the values of some rows; ``ends`` has their offsets in the output."""
    for r in range(len(rows)):
        at, to = indptr[rows[r]], ends[r]
        for k in range(ends[r + 1] - to):
            out[to + k] = values[at + k]
