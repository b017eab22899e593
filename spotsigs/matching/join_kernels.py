"""Kernels of the exact join: functions of arrays that release the interpreter lock.

`shared_weights` finds rows that can have no partner in another collection. The others run in the order of this file:
scan the rows (`scan_rows`), group equal ones (`first_of_hash`, `confirm_copies`), number the documents
(`number_documents`), order the tokens (`rank_tokens`), write the prefix of every document (`pack_documents`), invert
the prefixes (`invert`), probe (`probe`, `name_pairs`), and expand the pairs to equal rows (`mark_copied`, `link`,
`list_partners`, `pair_starts`, `fill_pairs`). The bounds are proved in docs/bounds.md, "Tight one-sided bounds".

Indices into arrays are unsigned, so the compiler emits no code for negative ones. A *token* is one unit of weight:
(signature, number of its occurrence).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.parallel import bit_count, prefetch
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
AHEAD = np.uint64(8)
FEW = 32
"""Prefix length up to which selecting one minimum after the other is faster than sorting all tokens."""


class Rows(NamedTuple):
    """Collection as CSR arrays: ``indptr`` int64, ``ids`` ascending in each row, ``counts`` int32.

    Ids are int32. The ids of rows on disk, which `spotsigs.matching.prefix_kernels` reads, can be int64.
    """

    indptr: NDArray[np.int64]
    ids: NDArray[Any]
    counts: NDArray[np.int32]


class TokenOrder(NamedTuple):
    """Order of tokens: by class of document frequency, rarest first, then by number.

    The first occurrence of signature ``s`` is token ``s``; its ``z``-th, for ``z >= 2``, is token
    ``n_signatures + further[s] + z - 2``. Tokens of class 0 cannot be shared by two documents.
    """

    further: NDArray[np.uint32]  # (n_signatures + 1,) further-occurrence tokens of all signatures before this one
    frequency_class: NDArray[np.uint8]  # (n_tokens,)
    rank: NDArray[np.uint32]  # (n_tokens,) position in the order


class Documents(NamedTuple):
    """Prefixes of n distinct documents, numbered by increasing length.

    Bit ``k`` of a sketch is the parity of the number of the document's tokens whose rank is ``k`` modulo 64.
    """

    rows: Rows  # collection of the documents
    row_of: NDArray[np.int32]  # (n,) first row of each document
    lengths: NDArray[np.int32]  # (n,) tokens of each document
    first: NDArray[np.int64]  # (longest + 2,) first document of each length; the last entry is n
    prefix: NDArray[np.int32]  # (longest + 1,) number of tokens in the prefix, the rarest ones, by length
    starts: NDArray[np.int64]  # (longest + 2,) start of the prefixes of the documents of each length
    tokens: NDArray[np.uint32]  # prefixes as ranks, ascending within a document
    sketches: NDArray[np.uint64]  # (n,)


class Postings(NamedTuple):
    """Postings lists of the prefixes of the documents from ``offset`` on."""

    begin: NDArray[np.uint32]  # (lists + 2,) start of the list of each token of rank ``unshared`` or more
    documents: NDArray[np.uint32]  # document numbers minus offset, ascending; `END` terminates each list
    unshared: np.uint32  # number of leading ranks without a list
    offset: int


class Scratch(NamedTuple):
    """Scratch arrays of one probing thread."""

    # (indexed documents,) common prefix tokens of each with the last probing document that shares any, plus the version
    # of that probing document
    common: NDArray[Any]
    marks: NDArray[Any]  # (n_signatures,) count of each signature in the document that is verified
    reach: NDArray[np.uint32]  # (longest prefix + 1,) first document that is too long for each prefix position
    candidates: NDArray[np.uint32]  # (2, indexed documents + batch) probing document; candidate minus the offset
    verified: NDArray[np.uint32]  # (3, capacity) probing document, partner, overlap
    state: NDArray[np.int64]  # (5,) version; scanned postings, candidates, verifications; number of pairs in `verified`


VERSION, SCANNED, CANDIDATES, VERIFIED, FOUND = range(5)
BATCH = 64
"""Number of candidates that are verified together, so that their cache misses overlap."""


@kernel
def mark_signatures(ids: Any, words: Any) -> None:
    """Set the bit of each id, modulo the number of bits, which is a power of two."""
    last = np.uint64(64 * len(words) - 1)
    for k in range(len(ids)):
        bit = np.uint64(np.uint32(ids[k])) & last
        words[bit >> np.uint64(6)] |= ONE << (bit & np.uint64(63))


@kernel
def shared_weights(rows: Rows, words: Any, begin: Any, end: Any, out: Any) -> None:
    """Write the weight of the signatures of the rows ``begin:end`` whose bit is set: at least what they can share."""
    last = np.uint64(64 * len(words) - 1)
    for r in range(begin, end):
        total = np.int64(0)
        for k in range(np.uint64(rows.indptr[r]), np.uint64(rows.indptr[r + 1])):
            bit = np.uint64(np.uint32(rows.ids[k])) & last
            total += np.int64(words[bit >> np.uint64(6)] >> (bit & np.uint64(63)) & ONE) * rows.counts[k]
        out[r] = total


@kernel
def scan_rows(rows: Rows, lengths: Any, limit: Any, begin: Any, end: Any, hashes: Any, seen: Any, most: Any) -> None:
    """Hash rows ``begin:end``, and count the rows of each signature among those not longer than ``limit``.

    ``most[s]`` is the largest count of ``s`` in a row if it exceeds 2.
    """
    # seen[s] = | 63 ... 32: rows that contain s at least twice | 31 ... 0: rows that contain s |
    for r in range(begin, end):
        h = np.uint64(0)  # a sum of mixed entries: it does not depend on their order, and the loop has no dependency
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


@kernel
def first_of_hash(hashes: Any, lengths: Any, part: Any, parts: Any, copy_of: Any) -> None:
    """Set ``copy_of`` to the first row of equal hash for each non-empty row whose hash is in a part of the range."""
    own, n = np.empty(len(hashes), np.int32), np.uint64(0)
    for r in range(len(hashes)):  # branch-free: half of the branches would be mispredicted
        own[n] = r
        n += np.uint64((lengths[r] > 0) & (((hashes[r] >> HALF) * np.uint64(parts)) >> HALF == np.uint64(part)))
    size = 64
    while size < 2 * n:
        size *= 2
    # Open addressing with linear probing: a slot contains the first row of its hash, or -1. At most half of the slots
    # are in use, so each probe ends at a free one. Slots are prefetched, and then the hashes to which they refer.
    table, mask = np.full(size, -1, np.int32), np.uint64(size - 1)
    for k in range(n):
        if k + AHEAD + AHEAD < n:
            prefetch(table, hashes[own[k + AHEAD + AHEAD]] & mask)
            prefetch(hashes, np.int64(table[hashes[own[k + AHEAD]] & mask]))
        row = np.uint64(own[k])
        slot = hashes[row] & mask
        while table[slot] >= 0 and hashes[table[slot]] != hashes[row]:
            slot = (slot + ONE) & mask
        if table[slot] < 0:
            table[slot] = row
        copy_of[row] = table[slot]


@kernel
def confirm_copies(rows: Rows, begin: Any, end: Any, copy_of: Any) -> Any:
    """Compare each row of ``begin:end`` with the row of equal hash; reset ``copy_of`` if they differ.

    Return the numbers of rows that equal an earlier one, and of rows whose hash collided.
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
            entry = np.uint64(rows.indptr[copy_of[copies[c + 8]]])
            prefetch(rows.ids, entry)
            prefetch(rows.ids, entry + LINE)
            prefetch(rows.counts, entry)
            prefetch(rows.counts, entry + LINE)
        r = copies[c]
        a, b = np.uint64(rows.indptr[copy_of[r]]), np.uint64(rows.indptr[r])
        size = np.uint64(rows.indptr[r + 1]) - b
        differences = np.int32(size != np.uint64(rows.indptr[copy_of[r] + 1]) - a)
        if differences == 0:  # without a branch in the loop, which the compiler vectorizes
            for k in range(size):
                differences |= (rows.ids[a + k] ^ rows.ids[b + k]) | (rows.counts[a + k] ^ rows.counts[b + k])
        if differences != 0:
            copy_of[r] = r
            collided += 1
    return n - collided, collided


@kernel
def number_documents(copy_of: Any, lengths: Any, limit: Any) -> Any:
    """Number the distinct documents not longer than ``limit`` by length, then by row.

    Return the document that first occurs in each row or -1, and ``row_of``, ``lengths`` and ``first`` of `Documents`.
    """
    first = np.zeros(limit + 2, np.int64)
    for r in range(len(copy_of)):
        if copy_of[r] == r and lengths[r] <= limit:
            first[lengths[r] + 1] += 1
    first = np.cumsum(first)
    following = first.copy()
    row_of, length_of = np.empty(first[-1], np.int32), np.empty(first[-1], np.int32)
    document_of = np.full(len(copy_of), -1, np.int32)
    for r in range(len(copy_of)):
        if copy_of[r] == r and lengths[r] <= limit:
            d = following[lengths[r]]
            following[lengths[r]] += 1
            document_of[r], row_of[d], length_of[d] = d, r, lengths[r]
    return document_of, row_of, length_of, first


@kernel
def rank_tokens(seen: Any, shared: Any, order: TokenOrder) -> Any:
    """Fill the token order, of which ``further`` is input, from the counts ``seen`` of `scan_rows`.

    The frequency of a third or later occurrence is extrapolated from the first two: any order yields exact results.
    ``shared`` marks signatures that two compared documents can share. Return the number of classes, and the
    number of tokens in class 0.
    """
    n = len(seen)
    for s in range(n):
        once, twice = np.int64(seen[s] & LOW), np.int64(seen[s] >> HALF)
        order.frequency_class[s] = _frequency_class(once) if shared[s] else 0
        expected = np.float64(twice)
        for t in range(n + order.further[s], n + order.further[s + 1]):
            # a second occurrence in a single row cannot be shared, nor can later ones
            order.frequency_class[t] = _frequency_class(max(np.int64(expected), min(twice, 2))) if shared[s] else 0
            expected *= twice / once
    sizes = np.zeros(MAX_CLASSES + 1, np.int64)
    for c in order.frequency_class:
        sizes[c + 1] += 1
    classes = MAX_CLASSES
    while classes > 1 and sizes[classes] == 0:
        classes -= 1
    position = np.cumsum(sizes)
    for t in range(len(order.rank)):
        c = order.frequency_class[t]
        order.rank[t] = position[c]
        position[c] += 1
    return classes, sizes[1]


@kernel
def _frequency_class(frequency: Any) -> Any:
    """Return 0 for a token in at most one row, else its class; there are two for each doubling of the frequency."""
    if frequency <= 1:
        return 0
    doublings = 0
    while frequency >> (doublings + 1) > 0:
        doublings += 1
    half = frequency >> (doublings - 1) & 1
    return min(2 * doublings - 1 + half, MAX_CLASSES - 1)


@kernel
def pack_documents(out: Documents, document_of: Any, begin: Any, end: Any, order: TokenOrder, classes: Any) -> None:
    """Write the prefix and the sketch of each distinct document among rows ``begin:end``."""
    indptr, longest = out.rows.indptr, len(out.first) - 2
    position, own = np.zeros(classes + 1, np.uint64), np.empty(longest + 1, np.uint8)
    listed, repeated = np.empty(longest + BLOCK, np.uint32), np.empty(longest + 1, np.uint64)
    for r in range(begin, end):
        d = document_of[r]
        if d < 0:
            continue
        n = _list_tokens(out.rows, np.uint64(indptr[r]), np.uint64(indptr[r + 1]), order, listed, repeated)
        wanted = np.uint64(out.prefix[n])
        at = np.uint64(out.starts[n]) + np.uint64(d - out.first[n]) * wanted
        if wanted > FEW:
            _sort_by_class(listed, n, order.frequency_class, position, own, repeated)
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


@kernel
def _sort_by_class(listed: Any, n: Any, classes: Any, position: Any, own: Any, copy: Any) -> None:
    """Sort tokens by rank; ``position``, ``own`` and ``copy`` are scratch for positions, classes and a copy.

    The tokens ascend by number, and ranks are ordered by class first, so one stable counting sort by class suffices.
    """
    position[:] = 0
    for k in range(n):
        own[k] = classes[listed[k]]
        copy[k] = listed[k]
        position[np.uint64(own[k]) + ONE] += ONE
    for c in range(1, len(position)):
        position[c] += position[c - 1]
    for k in range(n):
        of = np.uint64(own[k])
        listed[position[of]] = copy[k]
        position[of] += ONE


@kernel
def _write_least(ranks: Any, n: Any, wanted: Any, at: Any, tokens: Any) -> None:
    """Write the ``wanted`` smallest of ``n`` ranks in order; each minimum takes one vectorized pass."""
    size = (n + BLOCK - ONE) & ~(BLOCK - ONE)
    for k in range(n, size):
        ranks[k] = END
    lower = np.uint32(0)
    for k in range(wanted):
        least = END
        for other in range(size):  # ranks below `lower` wrap around to the largest values
            least = min(least, np.uint32(ranks[other] - lower))
        tokens[at + k] = least + lower
        lower = np.uint32(least + lower + np.uint32(1))


@kernel
def _list_tokens(rows: Rows, begin: Any, end: Any, order: TokenOrder, listed: Any, repeated: Any) -> Any:
    """List the tokens of the entries ``begin:end`` by number; ``repeated`` is scratch for entries of count >= 2."""
    n, m = end - begin, np.uint64(0)
    for k in range(n):
        listed[k] = rows.ids[begin + k]
        repeated[m] = begin + k
        m += np.uint64(rows.counts[begin + k] > 1)  # branch-free: rare, hence mispredicted
    n_signatures = np.uint32(len(order.further) - 1)
    for q in range(m):
        k = repeated[q]
        token = n_signatures + order.further[np.uint32(rows.ids[k])]
        for z in range(np.uint64(rows.counts[k] - 1)):
            listed[n] = token + z
            n += ONE
    return n


@kernel
def invert(documents: Documents, shortest: Any, taken: Any, unshared: Any, starts: Any) -> Any:
    """Return the postings lists of the first ``taken[length - shortest]`` tokens of each document, see `Postings`.

    ``starts`` is zero on entry and has two entries more than there are lists; it contains their starts on exit.
    """
    one, two = np.uint32(1), np.uint32(2)
    for step in range(len(taken)):
        length = shortest + step
        for at in range(documents.starts[length], documents.starts[length + 1], documents.prefix[length]):
            for k in range(np.uint64(at), np.uint64(at + taken[step])):
                if documents.tokens[k] >= unshared:
                    starts[documents.tokens[k] - unshared + two] += one
    for t in range(2, len(starts)):
        starts[t] += starts[t - 1] + one  # one more entry for END
    postings = np.empty(np.int64(starts[len(starts) - 1]), np.uint32)
    # starts[t + 1] is the position of the next posting of list t: the start of list t + 1 once all are written
    for step in range(len(taken)):
        length = shortest + step
        d = documents.first[length] - documents.first[shortest]
        for at in range(documents.starts[length], documents.starts[length + 1], documents.prefix[length]):
            for k in range(np.uint64(at), np.uint64(at + taken[step])):
                if documents.tokens[k] >= unshared:
                    t = documents.tokens[k] - unshared + one
                    postings[starts[t]] = d
                    starts[t] += one
            d += 1
    for t in range(1, len(starts) - 1):
        postings[starts[t]] = END
        starts[t] += one
    return postings


@kernel
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
    """Find the similar indexed documents of the probing documents ``begin:end``; stop before ``verified`` may overflow.

    Return the first document that was not probed.
    """
    state = scratch.state
    size = np.uint64(indexed.first[-1] - postings.offset)
    room = scratch.verified.shape[1] - scratch.candidates.shape[1]
    top = np.uint64((1 << 8 * scratch.common.itemsize) - 1)
    length, k, spacing = np.int64(-1), np.uint64(0), np.uint64(0)
    version = np.uint64(state[VERSION])
    n = np.uint64(0)
    state[FOUND] = 0
    for d in range(begin, end):
        if probing.lengths[d] != length:
            length = np.int64(probing.lengths[d])
            k = np.uint64(bounds.common[length])
            spacing = np.uint64(bounds.probed[length] + 1)
            _reach(length, own_side, indexed.first, postings.offset, bounds, scratch.reach)
        # `common` is not reset for each document. Each document counts from a version of its own; smaller values belong
        # to previous documents. Versions are spaced by the prefix length + 1. All counters are cleared only if the type
        # cannot represent another version.
        if version > top - spacing - spacing:
            scratch.common[:size] = 0
            version = np.uint64(0)
        # within one side, each pair is found once, from its later document
        ceiling = np.uint32(d - postings.offset) if own_side else END
        n = _count_common(probing, d, np.uint64(bounds.probed[length]), ceiling, postings, version, k, scratch, n)
        version += spacing
        if n >= BATCH or d + 1 == end:  # in batches, so that cache misses overlap
            _verify(probing, indexed, np.uint64(postings.offset), bounds.least, scratch, n)
            n = np.uint64(0)
            if state[FOUND] > room:
                state[VERSION] = version
                return d + 1
    state[VERSION] = version
    return end


@kernel
def _reach(length: Any, own_side: Any, first: Any, offset: Any, bounds: Bounds, reach: Any) -> None:
    """Set ``reach`` to the first indexed document that is too long for each prefix position of a document."""
    partner = np.int64(length if own_side else bounds.longest[length])
    # Bound 3: position i is needed only for partners whose least overlap m satisfies i < length - m + k. Their maximal
    # length does not increase with i, so one descending scan of the lengths serves all positions.
    for i in range(bounds.probed[length]):
        while partner > 0 and bounds.least[length + partner] > length - i + bounds.common[length] - 1:
            partner -= 1
        reach[i] = max(first[partner + 1] - offset, 0)


@kernel
def _count_common(
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
    """Count the common prefix tokens of one document and each indexed one; append those with ``k`` as candidates."""
    tokens, begin, documents, unshared = probing.tokens, postings.begin, postings.documents, postings.unshared
    common, reach, candidates = scratch.common, scratch.reach, scratch.candidates
    length = np.uint64(probing.lengths[d])
    step = np.uint64(probing.prefix[length])
    at = np.uint64(probing.starts[length]) + np.uint64(d - probing.first[length]) * step
    # Cache misses on the lists dominate: lists are prefetched one document ahead, their starts two ahead. The next
    # documents mostly have the same length; otherwise the prefetches are useless but harmless.
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
        # Documents ascend by length, so those within reach are the start of a list. END terminates it, which saves
        # reading the end of the list from a second array.
        while documents[p] < stop:
            y = documents[p]
            count = max(np.uint64(common[y]), version) + ONE
            common[y] = count
            if count == target:  # not >=, so that a candidate is appended once
                candidates[0, n] = d
                candidates[1, n] = y
                n += ONE
            p += ONE
        scanned += p
    scratch.state[SCANNED] += np.int64(scanned)
    return n


@kernel
def _verify(probing: Documents, indexed: Documents, offset: Any, least: Any, scratch: Scratch, n: Any) -> None:
    """Verify ``n`` candidates: append those whose overlap is large enough to ``verified``."""
    candidates, marks, verified, state = scratch.candidates, scratch.marks, scratch.verified, scratch.state
    state[CANDIDATES] += np.int64(n)
    n = _filter_by_sketch(probing, indexed, offset, least, candidates, n)
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
        # The candidates of one document are adjacent: its signatures are marked once, and the signatures of each
        # partner are looked up in the marks. This reads each signature once and has no unpredictable branch, unlike a
        # merge.
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
            verified[0, m] = d
            verified[1, m] = y
            verified[2, m] = overlap
            state[FOUND] += 1
    for k in range(begin, end):
        marks[np.uint32(own.ids[k])] = 0


@kernel
def _filter_by_sketch(probing: Documents, indexed: Documents, offset: Any, least: Any, candidates: Any, n: Any) -> Any:
    """Drop candidates whose sketches differ in more bits than similar documents differ in tokens.

    A token of only one document flips one bit, and two tokens may cancel: the number of differing bits is a lower bound
    of the symmetric difference, ``total - 2 * overlap``.
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


@kernel
def name_pairs(pairs: Any, probing: Documents, indexed: Documents, out: Any) -> None:
    """Translate the pairs of documents found by `probe` to rows and similarities, the arrays ``out``."""
    row_a, row_b, similarity = out
    for m in range(len(similarity)):
        d, y = np.uint64(pairs[0, m]), np.uint64(pairs[1, m])
        total = np.int64(probing.lengths[d]) + indexed.lengths[y]
        row_a[m], row_b[m] = probing.row_of[d], indexed.row_of[y]
        similarity[m] = pairs[2, m] / (total - np.int64(pairs[2, m]))


class Links(NamedTuple):
    """Similar documents as adjacency lists: the links of row ``r`` are at ``start[r]:start[r + 1]``."""

    start: NDArray[np.int64]  # (n_rows + 2,) the last entry is used while the links are written
    row: NDArray[np.int32]  # partner of each link
    similarity: NDArray[np.float64]


@kernel
def mark_copied(copy_of: Any) -> Any:
    """Return for each row whether it is the first of several equal ones."""
    copied = np.zeros(len(copy_of), np.bool_)
    for r in range(len(copy_of)):
        if copy_of[r] >= 0 and copy_of[r] != r:
            copied[copy_of[r]] = True
    return copied


@kernel
def link(pairs: Any, own_side: Any, copied: Any, links: Links, fill: Any) -> None:
    """Count the links of each row ``r`` in ``start[r + 2]``; if ``fill``, write them from ``start[r + 1]`` on.

    Links are directed from the second row of a pair to the first. Within one side, they are directed from the later row
    to the earlier one, and also back if the earlier row has equal ones, which may come after its partner.
    """
    a, b, similarity = pairs
    for m in range(len(a)):
        early, late = (min(a[m], b[m]), max(a[m], b[m])) if own_side else (a[m], b[m])
        _link(late, early, similarity[m], links, fill)
        if own_side and copied[early]:
            _link(early, late, similarity[m], links, fill)


@kernel
def _link(row: Any, partner: Any, similarity: Any, links: Links, fill: Any) -> None:
    if fill:
        k = links.start[row + 1]
        links.row[k], links.similarity[k] = partner, similarity
        links.start[row + 1] = k + 1
    else:
        links.start[row + 2] += 1


@kernel
def list_partners(
    links: Links, copy_of: Any, own: Any, begin: Any, end: Any, cursor: Any, passed: Any, out: Any, fill: Any
) -> None:
    """Count into ``cursor[e]`` the rows similar to first row ``e`` of ``begin:end``; if ``fill``, write them.

    ``links`` are directed from first rows of one side, whose rows ``copy_of`` describes, to first rows ``e`` of the
    other. Partners ascend, since rows are visited in order. Within one side (``own``), only rows after ``e`` count,
    among them the rows that equal it. Counting then sets ``passed``, for each of these, to the number of its first
    row's partners that are not after it. ``cursor`` starts at 0 or, if ``fill``, at each row's pairs in ``out``, the
    arrays (i, j, similarity).
    """
    _, j, similarity = out
    for r in range(begin if own else 0, len(copy_of)):
        first = copy_of[r]
        if first < 0:
            continue
        for k in range(links.start[first], links.start[first + 1]):
            e = links.row[k]
            if begin <= e < end and (e < r or not own):
                if fill:
                    j[cursor[e]], similarity[cursor[e]] = r, links.similarity[k]
                cursor[e] += 1
        if own and begin <= first < end and first < r:
            if fill:
                j[cursor[first]], similarity[cursor[first]] = r, 1.0
            else:
                passed[r] = cursor[first] + 1
            cursor[first] += 1


@kernel
def pair_starts(copy_of: Any, partners: Any, passed: Any) -> Any:
    """Return the start of each row's pairs, from the counts of `list_partners`."""
    starts = np.zeros(len(copy_of) + 1, np.int64)
    for r in range(len(copy_of)):
        starts[r + 1] = starts[r] + (partners[copy_of[r]] - passed[r] if copy_of[r] >= 0 else 0)
    return starts


@kernel
def fill_pairs(copy_of: Any, begin: Any, end: Any, starts: Any, out: Any) -> None:
    """Complete the pairs of rows ``begin:end``; the partners of an equal row are the last of its first row's."""
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
