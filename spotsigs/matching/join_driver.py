"""Stages of the exact join: they lay out the arrays, cut the work into tasks for threads, and call the kernels.

`inputs`, `read` (once per collection), `search` (number, order and pack the documents; invert and probe band by band),
`expand` (from distinct documents to rows).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from queue import SimpleQueue
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.contiguous_ids import renumbered
from spotsigs.arrays.parallel import all_cores
from spotsigs.matching import join_kernels as kernels
from spotsigs.matching.bounds import Bounds, bounds, indexed_prefixes
from spotsigs.matching.join_kernels import Documents, Links, Postings, Rows, Scratch, TokenOrder
from spotsigs.records import FloatArray, Vectors, as_threads, require_listable

LONGEST = 2**22
"""Occurrences of a document beyond which it is compared row by row instead of being written out token by token."""
LEAST_TOKENS = 2**27
"""Tokens that may be written out whatever the size of the input; beyond, eight for each entry of the input."""
BAND_RATIO = 1.25
"""Greatest to least length of the documents that probe one inverted index: small bands scan less and invert more."""
BAND_DOCUMENTS = 4096
SHORT_PREFIX = 8191
"""Prefixes up to it leave 16-bit counters of meetings room for several documents between two resets."""


class Stages:
    """The threads of one join, its wall clock by stage, and its counters: a context that stops the threads."""

    def __init__(self, threads: int | None) -> None:
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

    def lap(self, stage: str) -> None:
        """Book the time since the last lap on a stage."""
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._since
        self._since = now

    def book(self, stage: str, seconds: float) -> None:
        """Book seconds on a stage and take them from the running lap."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
        self._since += seconds

    def each(self, task: Callable[..., Any], cuts: NDArray[np.int64], *more: Sequence[Any]) -> list[Any]:
        """Run ``task(begin, end, ...)`` on the stretches between consecutive cuts; return the results in order."""
        return list(self.pool.map(task, cuts[:-1].tolist(), cuts[1:].tolist(), *more))

    def cuts(self, indptr: NDArray[np.int64], times: int = 1) -> NDArray[np.int64]:
        """Cut rows into stretches of about equal size, ``times`` as many as there are threads."""
        places = np.linspace(indptr[0], indptr[-1], self.threads * times + 1, dtype=np.int64)[1:-1]
        return np.concatenate([[0], np.searchsorted(indptr, places), [len(indptr) - 1]])


class Input(NamedTuple):
    """One collection as the kernels read it; ``limit`` is the greatest length that is written out as tokens."""

    rows: Rows
    lengths: NDArray[np.int64]
    n_signatures: int
    limit: int


def inputs(collections: Sequence[Vectors], sets: bool, stages: Stages, *, count: bool = True) -> list[Input]:
    """Bring collections into the kernels' form, with ids dense over all of them; none of those if not to be counted."""
    parts = [vectors.as_sets() if sets else vectors for vectors in collections]
    ids = [part.ids for part in parts]
    entries = sum(map(len, ids))
    n_signatures = 1 + max(_greatest(part, stages) for part in ids) if count else 0
    if n_signatures > 2**16 + 4 * entries:
        ids, n_signatures = renumbered(ids, n_signatures)
    limit = _limit([part.lengths for part in parts], max(LEAST_TOKENS, 8 * entries))
    return [
        Input(Rows(part.indptr, dense, part.counts), part.lengths, n_signatures, limit)
        for part, dense in zip(parts, ids, strict=True)
    ]


def _greatest(ids: NDArray[np.int32], stages: Stages) -> int:
    """Return the greatest id, -1 if there is none."""
    cuts = np.linspace(0, len(ids), stages.threads + 1).astype(np.int64)
    return int(max(stages.each(lambda begin, end: ids[begin:end].max(initial=-1), cuts)))


def _limit(lengths: Sequence[NDArray[np.int64]], budget: int) -> int:
    """Return the greatest length so that all rows up to it together have at most ``budget`` occurrences."""
    longest = max(int(part.max(initial=0)) for part in lengths)
    if longest <= LONGEST and sum(int(part.sum()) for part in lengths) <= budget:
        return longest
    ascending = np.sort(np.concatenate(lengths))
    within = int(np.searchsorted(np.cumsum(ascending, dtype=np.float64), budget, side="right"))
    return min(longest if within == len(ascending) else int(ascending[within]) - 1, LONGEST)


class Side(NamedTuple):
    """One collection after its rows were read once.

    Attributes
    ----------
    source : Input
        The rows.
    seen, most : ndarray
        What `kernels.scan_rows` counts of each signature.
    copy_of : ndarray of int32, shape (n_rows,)
        First row of the same document, -1 for an empty row.
    collided : int
        Rows that differ from the first row of the same hash: they stand for themselves, though they might be copies
        of a later one.
    """

    source: Input
    seen: NDArray[np.uint64]
    most: NDArray[np.int32]
    copy_of: NDArray[np.int32]
    collided: int


def read(source: Input, stages: Stages) -> Side:
    """Read all rows once: find the copies and count in how many rows each signature is, where they are dense."""
    n, counted = len(source.lengths), source.n_signatures
    hashes = np.empty(n, np.uint64)
    cuts = stages.cuts(source.rows.indptr)
    seen = [np.zeros(counted, np.uint64) for _ in cuts[1:]]
    most = [np.zeros(counted, np.int32) for _ in cuts[1:]]

    def scan(begin: int, end: int, *counts: NDArray[Any]) -> None:
        kernels.scan_rows(source.rows, source.lengths, source.limit, begin, end, hashes, *counts)

    stages.each(scan, cuts, seen, most)
    stages.lap("scan")
    copy_of, collided = _first_copies(source, hashes, stages)
    stages.lap("copies")
    return Side(source, sum(seen[1:], seen[0]), np.maximum.reduce(most), copy_of, collided)


def _first_copies(source: Input, hashes: NDArray[np.uint64], stages: Stages) -> tuple[NDArray[np.int32], int]:
    """Return the first equal row of each row (-1 for an empty one), and how many hashes collided."""
    n = len(hashes)
    bits = max((n // 512).bit_length(), 1)
    starts = np.zeros(2**bits + 2, np.int64)
    bucketed, rows = np.empty(n, np.uint64), np.empty(n, np.int32)
    kernels.bucket_hashes(hashes, source.lengths, np.uint64(64 - bits), starts, bucketed, rows)
    copy_of = np.full(n, -1, np.int32)

    def find(begin: int, end: int) -> None:
        kernels.first_of_hash(bucketed, rows, starts, begin, end, copy_of)

    def confirm(begin: int, end: int) -> tuple[int, int]:
        found: tuple[int, int] = kernels.confirm_copies(source.rows, begin, end, copy_of)
        return found

    stages.each(find, stages.cuts(starts[:-1]))
    confirmed = stages.each(confirm, stages.cuts(source.rows.indptr))
    stages.counters["copies"] += sum(copies for copies, _ in confirmed)
    return copy_of, sum(collided for _, collided in confirmed)


class Found(NamedTuple):
    """Similar pairs of distinct documents, each given by its first row."""

    a: NDArray[np.int32]
    b: NDArray[np.int32]
    similarity: FloatArray

    @classmethod
    def none(cls) -> Found:
        """Return no pairs."""
        return cls(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))


def search(a: Side, b: Side, tau: float, stages: Stages) -> Found:
    """Find the similar pairs of distinct documents: of ``a`` with ``b``, or within one side given twice."""
    own_side = a is b
    sides = [a] if own_side else [a, b]
    tables = bounds(tau, a.source.limit)
    numbered = [_number(side) for side in sides]
    stages.lap("order")
    order, classes, unshared = _order_tokens(sides)
    swapped = _tokens(numbered[0]) < _tokens(numbered[-1])
    x, y = (-1, 0) if swapped else (0, -1)  # the smaller collection is inverted; similarity is symmetric
    bands = _bands(numbered[x].first)
    prefix = _prefixes(tables, bands, own_side)
    documents = [_pack(*one, prefix, order, classes, stages) for one in zip(sides, numbered, strict=True)]
    stages.lap("pack")
    most = max(int(side.most.max(initial=2)) for side in sides)
    parts = BandJoin(documents[x], documents[y], own_side, tables, order, unshared, most).run(bands, stages)
    if swapped:
        parts = [Found(part.b, part.a, part.similarity) for part in parts]
    parts += _compare_long(a, b, numbered[0], numbered[-1], tau)
    found = _put_together(parts)
    stages.lap("join")
    return found


def _prefixes(tables: Bounds, bands: Sequence[tuple[int, int]], own_side: bool) -> NDArray[np.int32]:
    """Return how many of its tokens a document looks up or offers at most, by length."""
    prefix = tables.probed.copy()
    for band in bands:
        shortest, taken = indexed_prefixes(tables, *band, own_side)
        part = prefix[shortest : shortest + len(taken)]
        np.maximum(part, taken, out=part)
    return prefix


def _put_together(parts: list[Found]) -> Found:
    """Return the pieces, which go one by one, as one."""
    size = sum(len(part.a) for part in parts)
    found = Found(np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size))
    while parts:
        part = parts.pop()
        begin = size - len(part.a)
        found.a[begin:size], found.b[begin:size], found.similarity[begin:size] = part
        size = begin
    return found


class Numbered(NamedTuple):
    """The distinct documents of a side, by length: those to be written out as tokens, then the longer ones.

    Attributes
    ----------
    document_of : ndarray of int32, shape (n_rows,)
        Number of the document whose first row this is, -1 for other rows.
    row_of : ndarray of int32, shape (n,)
        First row of each document.
    lengths, first : ndarray
        As in `Documents`.
    long : ndarray of int32
        First rows of the documents beyond the limit, by length.
    """

    document_of: NDArray[np.int32]
    row_of: NDArray[np.int32]
    lengths: NDArray[np.int32]
    first: NDArray[np.int64]
    long: NDArray[np.int32]


def _number(side: Side) -> Numbered:
    """Give the distinct documents of a side numbers by length."""
    lengths, limit, copy_of = side.source.lengths, side.source.limit, side.copy_of
    first = np.zeros(limit + 2, np.int64)
    kernels.count_lengths(copy_of, lengths, first)
    n = int(first[-1])
    document_of, row_of, length_of = np.full(len(lengths), -1, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    kernels.number_documents(copy_of, lengths, first, document_of, row_of, length_of)
    long = np.flatnonzero(lengths > limit)
    long = long[copy_of[long] == long]
    long = long[np.argsort(lengths[long], kind="stable")].astype(np.int32)
    return Numbered(document_of, row_of, length_of, first, long)


def _tokens(numbered: Numbered) -> int:
    """Return how many tokens the distinct documents have together."""
    return int(numbered.lengths.sum(dtype=np.int64))


def _order_tokens(sides: Sequence[Side]) -> tuple[TokenOrder, int, int]:
    """Order the tokens of all sides; return also the number of classes and of tokens no two documents can share."""
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
    """Write down the rarest tokens of the documents of a side, and sketches of all."""
    n = len(numbered.row_of)
    starts = np.zeros(len(numbered.first), np.int64)
    np.cumsum(np.diff(numbered.first) * prefix[: len(starts) - 1], out=starts[1:])
    documents = Documents(
        side.source.rows,
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

    stages.each(pack, stages.cuts(side.source.rows.indptr, times=4))
    return documents


class BandJoin:
    """The join of packed documents, band of lengths by band of lengths.

    Threads invert the prefixes of one band's partners while others still probe the band before.
    """

    def __init__(
        self,
        probing: Documents,
        indexed: Documents,
        own_side: bool,
        tables: Bounds,
        order: TokenOrder,
        unshared: int,
        most: int,
    ) -> None:
        self.probing, self.indexed, self.own_side, self.tables = probing, indexed, own_side, tables
        self.n_signatures, self.n_tokens, self.unshared = len(order.further) - 1, len(order.rank), unshared
        self.most = most
        self.scratches: SimpleQueue[Scratch] = SimpleQueue()

    def run(self, bands: Sequence[tuple[int, int]], stages: Stages) -> list[Found]:
        """Return the similar pairs in pieces; first rows of probing documents come first."""
        for _ in range(stages.threads):
            self.scratches.put(self._scratch())
        submit = stages.pool.submit
        ahead = (stages.threads + 1) // 2  # more postings at once only take memory
        inverted = deque(submit(self._invert, *band) for band in bands[:ahead])
        tasks: deque[tuple[Future[tuple[Postings, float]], list[Future[list[Found]]]]] = deque()
        for k, (lowest, highest) in enumerate(bands):
            begin, end = int(self.probing.first[lowest]), int(self.probing.first[highest + 1])
            cuts = np.linspace(begin, end, min(max((end - begin) // 2048, 1), 16) + 1).astype(np.int64).tolist()
            stretches, postings = list(pairwise(cuts)), inverted.popleft()
            # one thread inverts for as long as another probes a quarter of a band or so
            split = max(len(stretches) - 4 * (stages.threads - 1), 0)
            probes = [submit(self._look_up, postings, *stretch) for stretch in stretches[:split]]
            if k + ahead < len(bands):
                inverted.append(submit(self._invert, *bands[k + ahead]))
            probes += [submit(self._look_up, postings, *stretch) for stretch in stretches[split:]]
            tasks.append((postings, probes))
        found: list[Found] = []
        inverting = 0.0
        while tasks:  # what was probed goes out of scope, and with it its postings
            postings, probes = tasks.popleft()
            inverting += postings.result()[1]
            found += [piece for probe in probes for piece in probe.result()]
            require_listable(sum(len(piece.a) for piece in found))
        stages.book("postings", inverting / stages.threads)
        states = [self.scratches.get().state for _ in range(stages.threads)]
        for name, place in (("postings", 1), ("candidates", 2), ("verifications", 3)):
            stages.counters[name] += sum(int(state[place]) for state in states)
        return found

    def _invert(self, lowest: int, highest: int) -> tuple[Postings, float]:
        """Invert what documents of the lengths ``lowest`` to ``highest`` look into; return also the seconds it took."""
        began = time.perf_counter()
        shortest, taken = indexed_prefixes(self.tables, lowest, highest, self.own_side)
        documents = np.diff(self.indexed.first[shortest : shortest + len(taken) + 1])
        places = np.uint32 if int(documents @ taken) + self.n_tokens < 2**32 else np.uint64
        starts = np.zeros(self.n_tokens - self.unshared + 2, places)
        unshared = np.uint32(self.unshared)
        size = kernels.count_postings(self.indexed, shortest, taken, unshared, starts)
        offset = int(self.indexed.first[shortest])
        postings = Postings(np.empty(len(starts) - 2, places), np.empty(size, np.uint32), unshared, offset)
        kernels.fill_postings(self.indexed, shortest, taken, starts, postings)
        return postings, time.perf_counter() - began

    def _look_up(self, postings: Future[tuple[Postings, float]], begin: int, end: int) -> list[Found]:
        """Probe the documents ``begin:end``; return the pairs in pieces."""
        inverted, found, scratch = postings.result()[0], [], self.scratches.get()
        while begin < end:
            begin = kernels.probe(self.probing, self.indexed, self.own_side, inverted, self.tables, begin, end, scratch)
            n = int(scratch.state[kernels.FOUND])
            found.append(Found(np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n)))
            kernels.name_pairs(scratch.found, self.probing, self.indexed, tuple(found[-1]))
        self.scratches.put(scratch)
        return found

    def _scratch(self) -> Scratch:
        """Return a thread's scratch; pages that are not touched cost nothing."""
        longest_prefix = int(self.tables.probed[len(self.probing.first) - 2])
        n = len(self.indexed.row_of)
        return Scratch(
            met=np.zeros(n, np.uint16 if longest_prefix <= SHORT_PREFIX else np.uint32),
            marks=np.zeros(self.n_signatures, np.uint8 if self.most < 2**8 else np.int32),
            reach=np.empty(longest_prefix + 1, np.uint32),
            candidates=np.empty((2, n + kernels.BATCH), np.uint32),
            found=np.empty((3, n + kernels.BATCH + 2**16), np.uint32),
            state=np.zeros(5, np.int64),
        )


def _bands(first: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Cut the lengths of documents into bands (least, greatest length) of bounded ratio, but not of few documents."""
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
    """Compare the documents that are too long to be written out, each with all that its length admits."""
    marks = np.zeros(a.source.n_signatures if len(of_a.long) or len(of_b.long) else 0, np.int32)
    all_b = np.concatenate([of_b.row_of, of_b.long])
    # on the own side a document is compared with those before it
    upto = len(of_b.row_of) + np.arange(len(of_a.long)) if a is b else np.full(len(of_a.long), len(all_b))
    found = [_compare(a, b, row, all_b[:end], tau, marks) for row, end in zip(of_a.long, upto, strict=True)]
    if a is not b:
        found += [Found(y, x, s) for x, y, s in (_compare(b, a, row, of_a.row_of, tau, marks) for row in of_b.long)]
    return found


WIDER = 2.0**-50
"""Share by which lengths are looked at beyond the bounds, which round where lengths are no float64 any more."""


def _compare(a: Side, b: Side, row: int, others: NDArray[np.int32], tau: float, marks: NDArray[np.int32]) -> Found:
    """Compare one row of ``a`` with those of ``others``, rows of ``b`` by length, that its length admits."""
    length, lengths = a.source.lengths[row], b.source.lengths[others]
    with np.errstate(over="ignore"):  # any length reaches the least thresholds; the test itself is below
        begin, end = np.searchsorted(lengths, [length * tau * (1 - WIDER) - 1, length / tau * (1 + WIDER) + 1])
    overlap = np.empty(end - begin, np.int64)
    kernels.overlaps(a.source.rows, row, b.source.rows, others[begin:end], marks, overlap)
    similarity = overlap / (length + lengths[begin:end] - overlap)
    similar = similarity >= tau
    partners = others[begin:end][similar]
    return Found(np.full(len(partners), row, np.int32), partners, similarity[similar])


def expand(a: Side, b: Side, found: Found, stages: Stages) -> tuple[NDArray[np.int32], NDArray[np.int32], FloatArray]:
    """Spread pairs of distinct documents over their copies.

    Returns
    -------
    tuple of ndarray
        Rows of ``a`` (int32), rows of ``b`` (int32), similarity (float64), sorted by rows. On one side given twice
        the first row is the lower one, and copies are pairs themselves.

    Raises
    ------
    InputError
        If there are more than 2**31 pairs.
    """
    links = _links(found, a is b, b.copy_of)
    del found
    starts, out = _first_pairs(a, b, links, stages)
    del links  # before the pages of the first rows' numbers are touched

    def fill(begin: int, end: int) -> None:
        kernels.fill_pairs(a.copy_of, begin, end, starts, out)

    stages.each(fill, stages.cuts(starts, times=4))
    stages.lap("expand")
    return out


def _links(found: Found, own_side: bool, copy_of: NDArray[np.int32]) -> Links:
    """List for each row the rows it was found similar to; on one side, the later ones only for rows with copies."""
    start, copied = np.zeros(len(copy_of) + 2, np.int64), np.zeros(len(copy_of), np.bool_)
    kernels.mark_copied(copy_of, copied)
    kernels.count_links(found.a, found.b, own_side, copied, start)
    links = Links(start, np.empty(start[-1], np.int32), np.empty(start[-1]))
    kernels.fill_links(found.a, found.b, found.similarity, own_side, copied, links)
    return links


def _first_pairs(
    a: Side, b: Side, links: Links, stages: Stages
) -> tuple[NDArray[np.int64], tuple[NDArray[np.int32], NDArray[np.int32], FloatArray]]:
    """Return where the pairs of each row start, and the pairs with the partners of all first rows filled in."""
    own_side, n = a is b, len(a.copy_of)
    partners, passed, starts = np.zeros(n, np.int64), np.zeros(n, np.int32), np.empty(n + 1, np.int64)

    def count(begin: int, end: int) -> None:
        kernels.count_partners(links, b.copy_of, own_side, begin, end, partners, passed)

    def fill(begin: int, end: int) -> None:
        kernels.fill_partners(links, b.copy_of, own_side, begin, end, place, out)

    stretches = np.linspace(0, n, stages.threads + 1).astype(np.int64)
    stages.each(count, stretches)
    kernels.place_pairs(a.copy_of, partners, passed, starts)
    require_listable(int(starts[-1]))
    place = starts[:-1].copy()
    out = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int32), np.empty(starts[-1])
    stages.each(fill, stretches)
    return starts, out
