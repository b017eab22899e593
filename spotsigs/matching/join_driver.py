"""Stages of the exact join: they allocate the arrays, split the work into tasks for threads, and call the kernels.

In order: `rows_with_partners` drops rows that share too little with the other side, `group_equal_rows` finds the groups
of equal rows, `search` numbers, orders and packs the documents and then inverts and probes one band of lengths after
the other, and `expand` turns pairs of distinct documents into pairs of rows.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from queue import SimpleQueue
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_sums, take_rows
from spotsigs.arrays.parallel import all_cores, renumbered
from spotsigs.contracts import as_threads
from spotsigs.matching import join_kernels as kernels
from spotsigs.matching.bounds import Bounds, bounds, indexed_prefixes, least_shared
from spotsigs.matching.join_kernels import Documents, Links, Postings, Rows, Scratch, TokenOrder
from spotsigs.records import FloatArray, Vectors, require_listable

LONGEST = 2**22
"""Length in occurrences beyond which a document is compared row by row instead of being expanded into tokens."""
LEAST_TOKENS = 2**27
"""Tokens that may always be expanded; above this, the limit is eight tokens for each entry of the input."""
BAND_RATIO = 1.25
"""Ratio of the largest to the smallest length in a band. Smaller bands scan fewer postings and invert more."""
BAND_DOCUMENTS = 4096
BITS_AN_ENTRY = 8
"""Bits for each entry of a collection in the set of its signatures: one of eight others seems to be in the set."""
SHORT_PREFIX = 8191
"""Longest prefix for which 16-bit counters of common tokens serve several documents between two resets."""


class Stages:
    """Thread pool, wall seconds by stage and counters of one join; a context manager that stops the threads."""

    def __init__(self, threads: int | None, most: int | None = None) -> None:
        self.most = most  # pairs that may be listed
        self.threads = as_threads(threads) or all_cores()
        self.pool = ThreadPoolExecutor(self.threads)
        self.seconds: dict[str, float] = {}
        self.counters = {"copies": 0, "postings": 0, "candidates": 0, "verifications": 0}
        self._since = time.perf_counter()

    def __enter__(self) -> Stages:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pool.shutdown(cancel_futures=True)
        cluster = self.seconds.get("join", 0.0) + self.seconds.get("expand", 0.0)
        self.seconds |= {"sort_hash": sum(self.seconds.values()) - cluster, "cluster": cluster}

    def end(self, stage: str) -> None:
        """Add the time since the previous call to the stage that ends."""
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._since
        self._since = now

    def transfer(self, stage: str, seconds: float) -> None:
        """Add seconds to a stage and subtract them from the one that ends next."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
        self._since += seconds

    def run_on_ranges(self, task: Callable[..., Any], cuts: NDArray[np.int64], *more: Sequence[Any]) -> list[Any]:
        """Run ``task(begin, end, ...)`` on the ranges between consecutive cuts; return the results in order."""
        return list(self.pool.map(task, cuts[:-1].tolist(), cuts[1:].tolist(), *more))

    def cut_rows(self, indptr: NDArray[np.int64], times: int = 1) -> NDArray[np.int64]:
        """Cut rows into ranges of about equal size, ``times`` ranges for each thread."""
        sizes = np.linspace(indptr[0], indptr[-1], self.threads * times + 1, dtype=np.int64)[1:-1]
        return np.concatenate([[0], np.searchsorted(indptr, sizes), [len(indptr) - 1]])


class Side(NamedTuple):
    """Collection in the form of the kernels, after the first pass over its rows.

    ``collided`` rows differ from the first row of the same hash. Each counts as a distinct document, even if it equals
    a later row.
    """

    rows: Rows
    lengths: NDArray[np.int64]
    limit: int  # largest length that is expanded into tokens
    seen: NDArray[np.uint64]  # counts of each signature by `kernels.scan_rows`
    most: NDArray[np.int32]
    copy_of: NDArray[np.int32]  # (n_rows,) first row of the same document, -1 for an empty row
    collided: int


def rows_with_partners(a: Vectors, b: Vectors, tau: float, stages: Stages) -> NDArray[np.int64]:
    """Return the rows of ``a`` that share enough weight with the signatures of all rows of ``b`` to be similar to one.

    Signatures of ``b`` are bits, several to a bit if there are more ids than bits: a row may share less than it seems.
    Empty rows have no partner.
    """
    bits = 64
    while bits < min(BITS_AN_ENTRY * len(b.ids), 1 + int(b.ids.max(initial=0))):
        bits *= 2
    words, shared = np.zeros(bits // 64, np.uint64), np.empty(len(a), np.int64)
    kernels.mark_signatures(b.ids, words)
    rows = Rows(a.indptr, a.ids, a.counts)
    stages.run_on_ranges(
        lambda begin, end: kernels.shared_weights(rows, words, begin, end, shared), stages.cut_rows(a.indptr)
    )
    return np.flatnonzero(shared >= weight_to_share(np.maximum(a.lengths, 1), tau))


def weight_to_share(lengths: NDArray[np.int64], tau: float) -> NDArray[np.int64]:
    """Return the weight of the signatures of other rows that a row of some length, at least 1, needs to be similar."""
    return np.where(lengths > LONGEST, 0, least_shared(tau, np.minimum(lengths, LONGEST)))


def group_equal_rows(collections: Sequence[Vectors], sets: bool, stages: Stages, *, count: bool = True) -> list[Side]:
    """Group the equal rows of each collection; if ``count`` is true, number and count the signatures of all.

    Exact duplicates are no rows any more where they were found before. Other pages can have equal rows: each group is
    compared once, and `expand` copies its pairs.
    """
    parts = [vectors.as_sets() if sets else vectors for vectors in collections]
    ids = [part.ids for part in parts]
    entries = sum(map(len, ids))
    blocks = [block for part in ids for block in np.array_split(part, stages.threads)]
    n_signatures = 1 + int(max(stages.pool.map(lambda block: block.max(initial=-1), blocks))) if count else 0
    if n_signatures > 2**16 + entries:
        ids, n_signatures = renumbered(ids, n_signatures)
    limit = _longest_expanded([part.lengths for part in parts], max(LEAST_TOKENS, 8 * entries))
    return [
        _scan(Rows(part.indptr, numbers, part.counts), part.lengths, limit, n_signatures, stages)
        for part, numbers in zip(parts, ids, strict=True)
    ]


def _longest_expanded(lengths: Sequence[NDArray[np.int64]], budget: int) -> int:
    """Return the largest length such that all rows up to it have at most ``budget`` occurrences together."""
    longest = max(int(part.max(initial=0)) for part in lengths)
    if longest <= LONGEST and sum(int(part.sum()) for part in lengths) <= budget:
        return longest
    ascending = np.sort(np.concatenate(lengths))
    within = int(np.searchsorted(np.cumsum(ascending, dtype=np.float64), budget, side="right"))
    return min(longest if within == len(ascending) else int(ascending[within]) - 1, LONGEST)


def _scan(rows: Rows, lengths: NDArray[np.int64], limit: int, n_signatures: int, stages: Stages) -> Side:
    """Scan the rows once: group equal ones, and count the rows of each signature."""
    hashes, copy_of = np.empty(len(lengths), np.uint64), np.full(len(lengths), -1, np.int32)
    cuts = stages.cut_rows(rows.indptr)
    seen = [np.zeros(n_signatures, np.uint64) for _ in cuts[1:]]
    most = [np.zeros(n_signatures, np.int32) for _ in cuts[1:]]

    def scan(begin: int, end: int, *counts: NDArray[Any]) -> None:
        kernels.scan_rows(rows, lengths, limit, begin, end, hashes, *counts)

    def confirm(begin: int, end: int) -> tuple[int, int]:
        confirmed_rows: tuple[int, int] = kernels.confirm_copies(rows, begin, end, copy_of)
        return confirmed_rows

    stages.run_on_ranges(scan, cuts, seen, most)
    stages.end("scan")
    parts = range(stages.threads)
    list(stages.pool.map(lambda part: kernels.first_of_hash(hashes, lengths, part, len(parts), copy_of), parts))
    confirmed = stages.run_on_ranges(confirm, cuts)
    stages.counters["copies"] += sum(copies for copies, _ in confirmed)
    collided = sum(collided for _, collided in confirmed)
    stages.end("copies")
    return Side(rows, lengths, limit, sum(seen[1:], seen[0]), np.maximum.reduce(most), copy_of, collided)


Found = tuple[NDArray[np.int32], NDArray[np.int32], FloatArray]
"""Similar pairs of distinct documents: the first row of each, and the similarity."""


def empty_pairs(size: int) -> Found:
    """Return arrays with room for some pairs."""
    return np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size)


def search(a: Side, b: Side, tau: float, stages: Stages) -> Found:
    """Find the similar pairs of distinct documents between ``a`` and ``b``, or within ``a`` if ``b is a``."""
    own_side = a is b
    sides = [a] if own_side else [a, b]
    tables = bounds(tau, a.limit)
    numbered = [_number_documents(side) for side in sides]
    stages.end("order")
    order, classes, unshared = _order_tokens(sides)
    first_tokens, last_tokens = (int(side.lengths.sum(dtype=np.int64)) for side in (numbered[0], numbered[-1]))
    swapped = first_tokens < last_tokens
    x, y = (-1, 0) if swapped else (0, -1)  # invert the smaller collection; similarity is symmetric
    bands = _cut_bands(numbered[x].first)
    prefix = _longest_prefixes(tables, bands, own_side)
    documents = [_pack(*one, prefix, order, classes, stages) for one in zip(sides, numbered, strict=True)]
    stages.end("pack")
    most = max(int(side.most.max(initial=2)) for side in sides)
    parts = BandJoin(documents[x], documents[y], own_side, tables, order, unshared, most, stages.most).run(
        bands, stages
    )
    if swapped:
        parts = [(j, i, similarity) for i, j, similarity in parts]
    parts += _compare_long(a, b, numbered[0], numbered[-1], tau)
    pairs = _concatenate(parts)
    stages.end("join")
    return pairs


def _longest_prefixes(tables: Bounds, bands: Sequence[tuple[int, int]], own_side: bool) -> NDArray[np.int32]:
    """Return the longest prefix that a document probes with or is indexed by, for each length."""
    prefix = tables.probed.copy()
    for band in bands:
        shortest, taken = indexed_prefixes(tables, *band, own_side)
        part = prefix[shortest : shortest + len(taken)]
        np.maximum(part, taken, out=part)
    return prefix


def _concatenate(parts: list[Found]) -> Found:
    """Concatenate the parts, which are removed from the list one by one to free their memory."""
    size = sum(len(part[0]) for part in parts)
    i, j, similarity = empty_pairs(size)
    while parts:
        part = parts.pop()
        begin = size - len(part[0])
        i[begin:size], j[begin:size], similarity[begin:size] = part
        size = begin
    return i, j, similarity


class Numbered(NamedTuple):
    """Distinct documents of a side in order of length: those that are expanded into tokens, then the longer ones."""

    document_of: NDArray[np.int32]  # (n_rows,) number of the document that first occurs in a row; -1 for other rows
    row_of: NDArray[np.int32]  # (n,) first row of each document
    lengths: NDArray[np.int32]  # as in `Documents`
    first: NDArray[np.int64]
    long: NDArray[np.int32]  # first rows of the documents above the limit, in order of length


def _number_documents(side: Side) -> Numbered:
    """Number the distinct documents of a side by length, then by row."""
    long = np.flatnonzero(side.lengths > side.limit)
    long = long[side.copy_of[long] == long]
    long = long[np.argsort(side.lengths[long], kind="stable")].astype(np.int32)
    document_of, row_of, lengths, first = kernels.number_documents(side.copy_of, side.lengths, side.limit)
    return Numbered(document_of, row_of, lengths, first, long)


def _order_tokens(sides: Sequence[Side]) -> tuple[TokenOrder, int, int]:
    """Return the token order of all sides, the number of classes, and the number of tokens in at most one document."""
    seen = sum((side.seen for side in sides[1:]), sides[0].seen)
    most = np.maximum.reduce([side.most for side in sides])
    more = np.maximum(most - 1, (seen >> kernels.HALF > 0).astype(np.int32))
    further = np.zeros(len(seen) + 1, np.uint32)
    np.cumsum(more, out=further[1:])
    n_tokens = len(seen) + int(further[-1])
    order = TokenOrder(further, np.empty(n_tokens, np.uint8), np.empty(n_tokens, np.uint32))
    shared = np.logical_and.reduce([side.seen > 0 for side in sides])
    classes, unshared = kernels.rank_tokens(seen, shared, order)
    return order, int(classes), int(unshared)


def _pack(
    side: Side, numbered: Numbered, prefix: NDArray[np.int32], order: TokenOrder, classes: int, stages: Stages
) -> Documents:
    """Write the prefixes of the documents of a side, and sketches of all their tokens."""
    n = len(numbered.row_of)
    starts = np.zeros(len(numbered.first), np.int64)
    np.cumsum(np.diff(numbered.first) * prefix[: len(starts) - 1], out=starts[1:])
    documents = Documents(
        side.rows,
        numbered.row_of,
        numbered.lengths,
        numbered.first,
        prefix,
        starts,
        np.empty(starts[-1], np.uint32),
        np.empty(n, np.uint64),
    )

    def pack(begin: int, end: int) -> None:
        kernels.pack_documents(documents, numbered.document_of, begin, end, order, classes)

    stages.run_on_ranges(pack, stages.cut_rows(side.rows.indptr, times=4))
    return documents


@dataclass
class BandJoin:
    """Join of packed documents, one band of lengths after the other.

    Threads invert the prefixes of one band's partners while others still probe the index of the previous band.
    """

    probing: Documents
    indexed: Documents
    own_side: bool
    tables: Bounds
    order: TokenOrder
    unshared: int
    most: int
    limit: int | None  # pairs that may be listed
    scratches: SimpleQueue[Scratch] = field(default_factory=SimpleQueue)
    pairs: int = 0  # so far, at most: threads add to it at the same time

    def run(self, bands: Sequence[tuple[int, int]], stages: Stages) -> list[Found]:
        """Return the similar pairs in parts; ``a`` are the first rows of probing documents."""
        for _ in range(stages.threads):
            self.scratches.put(self._scratch())
        submit = stages.pool.submit
        ahead = (stages.threads + 1) // 2  # more indexes at a time only use memory
        inverted = deque(submit(self._invert, *band) for band in bands[:ahead])
        tasks: deque[tuple[Future[tuple[Postings, float]], list[Future[list[Found]]]]] = deque()
        for k, (lowest, highest) in enumerate(bands):
            begin, end = int(self.probing.first[lowest]), int(self.probing.first[highest + 1])
            cuts = np.linspace(begin, end, min(max((end - begin) // 2048, 1), 16) + 1).astype(np.int64).tolist()
            ranges, postings = list(pairwise(cuts)), inverted.popleft()
            # inverting a band takes about as long as probing with a quarter of it
            split = max(len(ranges) - 4 * (stages.threads - 1), 0)
            probes = [submit(self._look_up, postings, *part) for part in ranges[:split]]
            if k + ahead < len(bands):
                inverted.append(submit(self._invert, *bands[k + ahead]))
            probes += [submit(self._look_up, postings, *part) for part in ranges[split:]]
            tasks.append((postings, probes))
        pieces: list[Found] = []
        inverting = 0.0
        while tasks:  # popping frees the postings of finished bands
            postings, probes = tasks.popleft()
            inverting += postings.result()[1]
            pieces += [piece for probe in probes for piece in probe.result()]
            require_listable(sum(len(piece[0]) for piece in pieces), self.limit)
        stages.transfer("postings", inverting / stages.threads)
        states = [self.scratches.get().state for _ in range(stages.threads)]
        for name, index in (("postings", 1), ("candidates", 2), ("verifications", 3)):
            stages.counters[name] += sum(int(state[index]) for state in states)
        return pieces

    def _invert(self, lowest: int, highest: int) -> tuple[Postings, float]:
        """Return the postings to probe with documents of ``lowest`` to ``highest`` tokens, and the seconds taken."""
        began = time.perf_counter()
        shortest, taken = indexed_prefixes(self.tables, lowest, highest, self.own_side)
        documents = np.diff(self.indexed.first[shortest : shortest + len(taken) + 1])
        lists = len(self.order.rank) - self.unshared
        dtype = np.uint32 if int(documents @ taken) + lists < 2**32 else np.uint64
        starts: NDArray[Any] = np.zeros(lists + 2, dtype)
        unshared = np.uint32(self.unshared)
        entries = kernels.invert(self.indexed, shortest, taken, unshared, starts)
        postings = Postings(starts, entries, unshared, int(self.indexed.first[shortest]))
        return postings, time.perf_counter() - began

    def _look_up(self, postings: Future[tuple[Postings, float]], begin: int, end: int) -> list[Found]:
        """Probe with the documents ``begin:end``; return the pairs in parts."""
        inverted, pieces, scratch = postings.result()[0], [], self.scratches.get()
        try:
            while begin < end:
                begin = kernels.probe(
                    self.probing, self.indexed, self.own_side, inverted, self.tables, begin, end, scratch
                )
                size = int(scratch.state[kernels.FOUND])
                self.pairs += size
                require_listable(self.pairs, self.limit)
                pieces.append(empty_pairs(size))
                kernels.name_pairs(scratch.verified, self.probing, self.indexed, pieces[-1])
        finally:
            self.scratches.put(scratch)  # others wait for it
        return pieces

    def _scratch(self) -> Scratch:
        """Return the scratch arrays of a thread; the system allocates only the pages that are written."""
        longest_prefix = int(self.tables.probed[len(self.probing.first) - 2])
        n = len(self.indexed.row_of)
        return Scratch(
            common=np.zeros(n, np.uint16 if longest_prefix <= SHORT_PREFIX else np.uint32),
            marks=np.zeros(len(self.order.further) - 1, np.uint8 if self.most < 2**8 else np.int32),
            reach=np.empty(longest_prefix + 1, np.uint32),
            candidates=np.empty((2, n + kernels.BATCH), np.uint32),
            verified=np.empty((3, n + kernels.BATCH + 2**16), np.uint32),
            state=np.zeros(5, np.int64),
        )


def _cut_bands(first: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Cut the lengths into bands (smallest, largest length) of a bounded ratio or a minimal number of documents."""
    lengths = np.flatnonzero(np.diff(first))
    bands = []
    while len(lengths):
        by_ratio = np.searchsorted(lengths, lengths[0] * BAND_RATIO, side="right")
        by_number = np.searchsorted(first[lengths], first[lengths[0]] + BAND_DOCUMENTS)
        last = min(max(by_ratio, by_number), len(lengths)) - 1
        bands.append((int(lengths[0]), int(lengths[last])))
        lengths = lengths[last + 1 :]
    return bands


def _compare_long(a: Side, b: Side, of_a: Numbered, of_b: Numbered, tau: float) -> list[Found]:
    """Compare the documents that are not expanded into tokens, each with all others that pass the length filter."""
    all_b = np.concatenate([of_b.row_of, of_b.long])
    # within one side, a document is compared with the documents before it
    ends = len(of_b.row_of) + np.arange(len(of_a.long)) if a is b else np.full(len(of_a.long), len(all_b))
    pieces = [_compare(a, b, row, all_b[:end], tau) for row, end in zip(of_a.long, ends, strict=True)]
    if a is not b:
        pieces += [(y, x, s) for x, y, s in (_compare(b, a, row, of_a.row_of, tau) for row in of_b.long)]
    return pieces


WIDER = 2.0**-50
"""Fraction that widens the length filter, since lengths above 2**53 round in float64."""


def _compare(a: Side, b: Side, row: int, others: NDArray[np.int32], tau: float) -> Found:
    """Compare one row of ``a`` with the rows ``others`` of ``b``, sorted by length, that pass the length filter."""
    length, lengths = a.lengths[row], b.lengths[others]
    with np.errstate(over="ignore"):  # at the smallest thresholds any length passes; the test itself follows
        begin, end = np.searchsorted(lengths, [length * tau * (1 - WIDER) - 1, length / tau * (1 + WIDER) + 1])
    counts, own = np.zeros(len(a.seen), np.int32), slice(a.rows.indptr[row], a.rows.indptr[row + 1])
    counts[a.rows.ids[own]] = a.rows.counts[own]
    indptr, entries = take_rows(b.rows.indptr, others[begin:end])
    overlap = row_sums(indptr, np.minimum(counts[b.rows.ids[entries]], b.rows.counts[entries]))
    similarity = overlap / (length + lengths[begin:end] - overlap)
    similar = similarity >= tau
    partners = others[begin:end][similar]
    return (np.full(len(partners), row, np.int32), partners, similarity[similar])


def expand(a: Side, b: Side, pairs: Found, stages: Stages) -> Found:
    """Expand similar documents to pairs of all rows, including equal ones.

    The pairs are sorted by rows; within one side, the first row is the lower one. Raise InputError if there are more
    than 2**31 pairs.
    """
    links = _link_rows(pairs, a is b, b.copy_of)
    del pairs
    starts, out = _first_pairs(a, b, links, stages)
    del links  # free the links before the remaining pages of the result are written

    def fill(begin: int, end: int) -> None:
        kernels.fill_pairs(a.copy_of, begin, end, starts, out)

    stages.run_on_ranges(fill, stages.cut_rows(starts, times=4))
    stages.end("expand")
    return out


def _link_rows(pairs: Found, own_side: bool, copy_of: NDArray[np.int32]) -> Links:
    """Return the similar rows of each row; within one side, later ones only for rows that have equal ones."""
    copied = kernels.mark_copied(copy_of)
    links = Links(np.zeros(len(copy_of) + 2, np.int64), *empty_pairs(0)[1:])
    kernels.link(pairs, own_side, copied, links, False)
    np.cumsum(links.start, out=links.start)
    links = Links(links.start, *empty_pairs(int(links.start[-1]))[1:])
    kernels.link(pairs, own_side, copied, links, True)
    return links


def _first_pairs(a: Side, b: Side, links: Links, stages: Stages) -> tuple[NDArray[np.int64], Found]:
    """Return the start of each row's pairs, and the pairs with the partners of all first rows filled in."""
    n = len(a.copy_of)
    cuts = np.linspace(0, n, stages.threads + 1).astype(np.int64)
    partners, passed = np.zeros(n, np.int64), np.zeros(n, np.int32)

    def visit(begin: int, end: int, fill: bool, cursor: NDArray[np.int64], out: Found) -> None:
        kernels.list_partners(links, b.copy_of, a is b, begin, end, cursor, passed, out, fill)

    stages.run_on_ranges(partial(visit, fill=False, cursor=partners, out=empty_pairs(0)), cuts)
    starts = kernels.pair_starts(a.copy_of, partners, passed)
    require_listable(int(starts[-1]), stages.most)
    out = empty_pairs(int(starts[-1]))
    stages.run_on_ranges(partial(visit, fill=True, cursor=starts[:-1].copy(), out=out), cuts)
    return starts, out
