"""Tasks of the join on disk: prefixes are shuffled by signature, candidate pairs by row.

Each task names its inputs and writes a result of its own, so that it can run again on any worker:

1. `sample`: for some rows of each block, the number of prefix tokens by range of partition keys, from which parts of
   equal size are cut.
2. `shuffle`: the rows of a block, copies collapsed; the rarest signatures of each row are written by part.
3. `find_candidates`: the pairs of rows that share a signature of a part in both prefixes, and the weight they share. A
   task with much more work than the mean stops, and further tasks divide the rest.
4. `verify`: the candidate pairs of some rows from all parts; those that share enough are compared, and the similar ones
   expanded to the copies of their rows.

The partition key of a signature is a hash of the first document that contains it. Near-duplicates share rare signatures
that first occur in the same document, so that most of a pair's shared signatures fall into one part, for any number of
parts. The pairs do not depend on the keys: any function of the signature gives the same ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.errors import InputError, require
from spotsigs.matching.bounds import least_overlap, prefixes
from spotsigs.outofcore import prefix_partition_kernels as kernels
from spotsigs.outofcore.prefix_partition_kernels import Block, Groups, Lists, Runs, Share
from spotsigs.outofcore.resumable_tasks import Checkpoints
from spotsigs.records import FloatArray, IntArray, RowNumbers, Vectors, require_listable, unchecked
from spotsigs.storage.store import Reader, Writer, check_rows, opened, remove_tree, writing

BYTES_SHUFFLED = 56  # that `shuffle` uses for each entry of its rows
BYTES_A_ROW = 120  # that it uses for each row
BYTES_A_TOKEN = 64  # that `find_candidates` uses for each token of its part
BYTES_A_CANDIDATE = 48  # that `verify` uses for each candidate pair
BYTES_COMPARED = 96  # that it uses for each pair of a batch of comparisons
BYTES_LISTED = 64  # that it uses for each similar pair of documents that has not been written
BYTES_A_PAIR = 128  # that sorting and naming pairs uses for each of them

CELLS = 32
"""A cell is a block of rows that uses one part in so many of the budget; a task of `verify` takes several."""

BINS = 2**kernels.BIN_BITS
"""Ranges of partition keys that parts consist of."""

SAMPLED = 32
"""One row in this many is sampled."""

LEAST_TOKENS = 2**21
"""Tokens of a part below which another part would cost more than it saves."""

LEAST_WORK = 2**25
"""Least work of a task that may stop: about a tenth of a second."""

UNEVEN = 1.5
"""Work at which a task stops, as a multiple of the work of reading and listing a mean part."""

PIECE = 2**18
"""Pairs that are counted at a time."""

NO_END = 2**62

GAP = 64
"""Rows between two requested ones up to which both are read at once."""


@dataclass(frozen=True, kw_only=True)
class Job(Checkpoints):
    """A join of the vectors at the path ``store`` with the fingerprint ``checksum``.

    Attributes
    ----------
    tau : float
        Similarity threshold.
    new_from : int
        Only pairs with a document of at least this number are reported.
    memory : int
        Bytes that one task may use.
    """

    store: str
    checksum: str
    tau: float
    new_from: int
    memory: int

    def vectors(self) -> Reader:
        """Open the store."""
        return opened(self.store, "vectors")


class Plan(NamedTuple):
    """Bounds by length, and the first rows of blocks that are shuffled (``spans``) and of cells, with their end."""

    tables: Runs
    spans: NDArray[np.int64]
    cells: NDArray[np.int64]


def make_plan(job: Job, indptr: NDArray[np.int64], lengths: NDArray[np.int64]) -> int:
    """Write the plan; return the number of blocks."""

    def work(out: Writer) -> None:
        tables = _runs(lengths, job.tau)
        for name, values in tables._asdict().items():
            out.put(name, values)
        first = int(tables.rows[0])
        spans = cut_rows(indptr, first, job.memory // 2, BYTES_SHUFFLED, BYTES_A_ROW)
        out.put("spans", spans)
        out.put("cells", cut_rows(indptr, first, job.memory // CELLS, 16, BYTES_A_ROW))
        out.facts["spans"] = len(spans) - 1

    return int(job.checkpoint("plan", work=work)["spans"])


def cut_rows(indptr: NDArray[np.int64], first: int, budget: int, an_entry: int, a_row: int) -> NDArray[np.int64]:
    """Cut the rows from `first` on into blocks of a number of bytes; a larger row is a block of its own."""
    n = len(indptr) - 1
    edges = [first]
    while edges[-1] < n:
        start = edges[-1]
        low, high = start + 1, min(n, start + max(budget // a_row, 1), start + kernels.MAX_ROWS)
        while low < high:  # the last end with which the block fits
            middle = (low + high + 1) // 2
            if (int(indptr[middle]) - int(indptr[start])) * an_entry + (middle - start) * a_row <= budget:
                low = middle
            else:
                high = middle - 1
        edges.append(low)
    return np.array(edges, np.int64)


def _runs(lengths: NDArray[np.int64], tau: float) -> Runs:
    """Find the lengths that occur, by one search each, and tabulate the bounds."""
    found, rows = [], [int(np.searchsorted(lengths, 1))]
    while rows[-1] < len(lengths):
        found.append(int(lengths[rows[-1]]))
        rows.append(int(np.searchsorted(lengths, found[-1], side="right")))
    distinct = np.array(found, np.int64)
    shortest, shared, prefix = prefixes(tau, distinct, kernels.MAX_SHARED)
    offered = distinct - least_overlap(tau, 2 * distinct) + shared
    return Runs(distinct, np.array(rows, np.int64), np.searchsorted(distinct, shortest), shared, prefix, offered)


@lru_cache(2)
def _plan(job: Job) -> Plan:
    reader = job.result("plan")
    whole = {name: reader.whole(name, np.int64) for name in (*Runs._fields, "spans", "cells")}
    return Plan(Runs(*(whole[name] for name in Runs._fields)), whole["spans"], whole["cells"])


def read_block(reader: Reader, block: tuple[int, int]) -> tuple[Vectors, NDArray[np.int64]]:
    """Read the rows from ``block[0]`` to ``block[1]`` into memory; return them and their document numbers."""
    start, stop = block
    indptr = reader.part("indptr", np.int64, start, stop + 1)
    _require_rising(reader, indptr)
    first, last = int(indptr[0]), int(indptr[-1])
    rows = reader.part("rows", np.int64, start, stop)
    vectors = unchecked(
        Vectors,
        indptr=indptr - first,
        ids=reader.part("ids", np.int32, first, last),
        counts=reader.part("counts", np.int32, first, last),
        lengths=reader.part("lengths", np.int64, start, stop),
        doc_ids=RowNumbers(stop - start),
        vocabulary=None,
    )
    check_rows(reader, vectors.indptr, vectors.ids, vectors.counts, vectors.lengths)
    return vectors, rows


def _require_rising(reader: Reader, indptr: NDArray[np.int64]) -> None:
    rising = bool((indptr[1:] >= indptr[:-1]).all())
    require(rising, f"the rows of the store {reader.folder} are damaged; build the store again")


def sample(task: tuple[Job, int]) -> NDArray[np.int64]:
    """Estimate the tokens of the rows of a block by range of partition keys, from some of the rows."""
    job, number = task
    start, stop = (int(edge) for edge in _plan(job).spans[number : number + 2])
    some = max((stop - start) // SAMPLED, min(stop - start, 1000))
    middle = start + (stop - start - some) // 2
    vectors, _ = read_block(job.vectors(), (middle, middle + some))
    _, _, bins = _tokens(job, vectors, middle, np.arange(some, dtype=np.int32))
    return np.bincount(bins, minlength=BINS) * (stop - start) // some


def _tokens(
    job: Job, vectors: Vectors, first_row: int, copy_of: NDArray[np.int32]
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.uint16]]:
    """Return the tokens of the prefixes of rows, and the row and the range of partition keys of each."""
    tables = _plan(job).tables
    runs = np.searchsorted(tables.rows, np.arange(first_row, first_row + len(vectors)), side="right") - 1
    most = len(vectors.ids)
    out = np.empty(most, np.uint64), np.empty(most, np.int32), np.empty(most, np.uint16)
    reader = job.vectors()
    first = int(reader.part("indptr", np.int64, first_row, first_row + 1)[0])
    marks = reader.part("marks", np.uint16, first, first + most)
    n = kernels.select_prefixes(vectors.indptr, vectors.ids, vectors.counts, marks, runs, copy_of, tables, out)
    return out[0][:n], out[1][:n], out[2][:n]


def cut_parts(job: Job, bins: NDArray[np.int64]) -> int:
    """Assign ranges of partition keys to parts with equal numbers of tokens; return the number of parts."""

    def work(out: Writer) -> None:
        total = int(bins.sum())
        n = max(-(-total * BYTES_A_TOKEN * 2 // max(job.memory, 1)), total // LEAST_TOKENS, 1)
        # a range with as many tokens as a part is a part of its own
        part = np.minimum((np.cumsum(bins) - bins // 2) * n // max(total, 1), n - 1)
        part = np.cumsum(np.diff(part, prepend=part[0]) > 0)
        out.put("part_of", part)
        out.facts["parts"] = int(part[-1]) + 1

    return int(job.checkpoint("parts", work=work)["parts"])


def shuffle(task: tuple[Job, int]) -> int:
    """Write the prefixes of a block of rows by part; return the number of tokens."""
    job, number = task
    return int(job.checkpoint("shuffled", number, work=lambda out: _shuffle(job, number, out))["tokens"])


def _shuffle(job: Job, number: int, out: Writer) -> None:
    from spotsigs.matching.join_driver import Stages, inputs, read

    part_of = job.result("parts").whole("part_of", np.int64)
    start, stop = (int(edge) for edge in _plan(job).spans[number : number + 2])
    vectors, documents = read_block(job.vectors(), (start, stop))
    with Stages(1) as stages:
        copy_of = read(inputs([vectors], False, stages, count=False)[0], stages).copy_of
    copies = np.flatnonzero(copy_of != np.arange(len(copy_of), dtype=np.int32))
    by_first = copies[np.argsort(copy_of[copies], kind="stable")]
    is_new = documents >= job.new_from
    is_new[copy_of[copies[is_new[copies]]]] = True
    out.put("copied", start + copy_of[by_first].astype(np.int64))
    out.put("copies", documents[by_first])
    del documents

    tokens, rows, bins = _tokens(job, vectors, start, copy_of)
    starts, part = np.zeros((2, int(part_of[-1]) + 3), np.int64), part_of[bins].astype(np.int32)
    kernels.count_parts(rows, part, starts)
    sketches = np.empty(len(vectors), np.uint64)
    kernels.sketch_rows(vectors.indptr, vectors.ids, vectors.counts, sketches)
    parted, heads = np.empty_like(tokens), np.zeros(2 * int(starts[0, -1]), np.uint64)
    kernels.fill_parts(tokens, rows, part, start, is_new, sketches, starts, (parted, heads))
    out.put("tokens", parted)
    out.put("heads", heads)
    out.put("head_starts", starts[0, :-1])
    out.put("token_starts", starts[1, :-1])
    out.facts = {"tokens": len(tokens), "copies": len(copies)}


@lru_cache(256)
def _sent(job: Job, number: int) -> tuple[Reader, NDArray[np.int64], NDArray[np.int64]]:
    """Open the result of a block; return also the offsets of the rows and tokens of each part."""
    reader = job.result("shuffled", number)
    return reader, reader.whole("head_starts", np.int64), reader.whole("token_starts", np.int64)


_NOTHING = np.empty(0, np.uint64)


def _groups(job: Job, part: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Group blocks whose tokens of a part fit into half of the budget; return all pairs of these groups.

    The rows of the second group are probed against those of the first; a group is also paired with itself.
    """
    used, groups, first = 0, [], 0
    n = len(_plan(job).spans) - 1
    for number in range(n):
        _, _, tokens = _sent(job, number)
        size = int(tokens[part + 1] - tokens[part]) * BYTES_A_TOKEN
        if used and used + size > job.memory // 2:
            groups.append((first, number))
            used, first = 0, number
        used += size
    groups.append((first, n))
    return [(one, other) for k, other in enumerate(groups) for one in groups[: k + 1]]


def _share(job: Job, part: int, group: tuple[int, int]) -> Share:
    """Read the rows and tokens of a part from some blocks."""
    found = [[_NOTHING, _NOTHING]]
    for number in range(*group):
        reader, heads, tokens = _sent(job, number)
        spans = {"heads": 2 * heads[part : part + 2], "tokens": tokens[part : part + 2]}
        if spans["heads"][0] < spans["heads"][1]:
            found.append([reader.part(name, np.uint64, *span.tolist()) for name, span in spans.items()])
    marks, of_rows = (np.concatenate(column) for column in zip(*found, strict=True))
    del found
    sent = marks[1::2]
    n, tables = len(sent), _plan(job).tables
    numbers, size = sent >> np.uint64(32), int((sent & np.uint64(2**31 - 1)).sum())
    sound = size == len(of_rows) and bool((numbers[1:] > numbers[:-1]).all())
    sound = sound and int(numbers[-1:].max(initial=0)) < int(tables.rows[-1])
    _require_undamaged(sound, job)
    share = Share(
        marks=marks,
        is_new=np.empty(n, np.bool_),
        first=np.zeros(len(tables.rows), np.int64),
        starts=np.zeros(n + 1, np.int64),
        tokens=of_rows,
    )
    kernels.read_heads(tables, share)
    return share


def _require_undamaged(sound: bool, job: Job) -> None:
    """Refuse numbers that no kernel may use as indices."""
    require(sound, f"the results of tasks in {job.folder} are damaged; delete that folder and run again")


_NO_LISTS = Lists(np.empty(0, np.int32), np.empty(0, np.uint64))


class CandidateTask(NamedTuple):
    """A task: the rows ``begin:end`` of a part, or of a pair of its groups (see `_groups`), are probed.

    The task stops after the work ``most``.
    """

    job: Job
    number: int
    part: int
    groups: int
    begin: int
    end: int
    most: int


class _Join:
    """The rows of a task and their inverted index, with the rows before those that are probed."""

    def __init__(self, task: CandidateTask, listed: tuple[int, int], probing: tuple[int, int]) -> None:
        self.own, self.tau, self.tables = listed == probing, task.job.tau, _plan(task.job).tables
        self.listed = _share(task.job, task.part, listed)
        self.probing = self.listed if self.own else _share(task.job, task.part, probing)
        shares = [self.listed] if self.own else [self.listed, self.probing]
        known = np.zeros(1 << (3 * sum(len(share.tokens) for share in shares) // 2).bit_length(), np.uint64)
        width = 0
        for share in shares:
            width = kernels.number_signatures(share.tokens, known, width)
        del known
        self.all_rows = self._lists(width, False)
        self.new = self._lists(width, True) if task.job.new_from else _NO_LISTS
        self._fill(0, task.begin if self.own else len(self.listed.is_new))

    def _lists(self, width: int, only_new: bool) -> Lists:
        """Allocate the postings lists."""
        bounds = np.zeros(2 * width, np.int32)
        n = kernels.count_lists(self.listed, only_new, self.tables, bounds)
        return Lists(bounds, np.empty(n, np.uint64))

    def _fill(self, begin: int, end: int) -> None:
        """List some rows."""
        kernels.fill_lists(self.listed, begin, end, False, self.tables, self.tau, self.all_rows)
        if len(self.new.bounds):
            kernels.fill_lists(self.listed, begin, end, True, self.tables, self.tau, self.new)

    def work(self, begin: int) -> NDArray[np.int64]:
        """Return the work of each row from one on, after those before have been probed."""
        work = np.empty(len(self.probing.is_new) - begin, np.int64)
        kernels.count_visits(
            self.probing, self.listed, self.own, begin, self.tables, self.tau, self.all_rows, self.new, work
        )
        return work


def first_candidate_tasks(job: Job, parts: int, tokens: int) -> list[CandidateTask]:
    """Return a task for each part; ``tokens`` is their number in all parts."""
    most = max(LEAST_WORK, int(UNEVEN * kernels.A_TOKEN * tokens / max(parts, 1)))
    return [CandidateTask(job, part, part, 0, 0, NO_END, most) for part in range(parts)]


def further_candidate_tasks(
    searches: Sequence[CandidateTask], results: Sequence[Mapping[str, Any]], first: int
) -> list[CandidateTask]:
    """Return tasks for the rows of tasks that stopped, among those from ``first`` on and their results.

    Each has as much work as the limit of a task, or the mean of all parts if that is more.
    """
    most, parts = searches[0].most, 1 + max(task.part for task in searches)
    total = sum(result["work"] for result in results) + sum(result["left"] for result in results[first:])
    step = max(total // parts // most, 1)
    found: list[CandidateTask] = []
    for task, result in zip(searches[first:], results[first:], strict=True):
        if first == 0:
            found += (task._replace(groups=k) for k in range(1, result["groups"]))
        edges = result["edges"]
        shares = pairwise([*edges[:-1:step], *edges[-1:]])
        found += (task._replace(begin=begin, end=end, most=NO_END) for begin, end in shares)
    return [task._replace(number=len(searches) + k) for k, task in enumerate(found)]


def find_candidates(task: CandidateTask) -> dict[str, Any]:
    """Write the candidate pairs of rows of a part.

    Returns
    -------
    dict
        The ``work`` and the postings that were read (``visits``), the number of pairs of ``groups`` of the part, the
        work that is ``left``, and the ``edges`` of blocks of its rows with equal work.
    """
    facts = task.job.checkpoint("candidates", task.number, work=lambda out: _find_candidates(task, out))
    return {name: facts[name] for name in ("work", "visits", "groups", "left", "edges")}


def _find_candidates(task: CandidateTask, out: Writer) -> None:
    job, plan = task.job, _plan(task.job)
    groups = _groups(job, task.part)
    join = _Join(task, *groups[task.groups])
    begin, end = task.begin, min(task.end, len(join.probing.is_new))
    n = len(join.listed.is_new)
    most = n + max(2**16, min(n, 2**20))
    counts, touched = np.zeros(n, np.uint8), np.empty(n, np.int64)
    pairs, shared = np.empty(most, np.uint64), np.empty(most, np.uint8)
    cells, work = np.zeros(len(plan.cells), np.int64), 0
    with out.growing("pairs", np.uint64) as append_pairs, out.growing("shared", np.uint8) as append_shared:
        while begin < end and work < task.most:
            begin, found, more = kernels.probe(
                join.probing, join.listed, join.own, begin, end, plan.tables, job.tau, join.all_rows, join.new,
                task.most - work, counts, touched, (pairs, shared),
            )  # fmt: skip
            work += more
            append_pairs(pairs[:found])
            append_shared(shared[:found])
            rows = (pairs[:found] & kernels.LOW).astype(np.int64)
            cells[1:] += np.searchsorted(rows, plan.cells[1:])
    out.put("cells", cells)
    left = join.work(begin) if begin < end else np.empty(0, np.int64)
    visits = work - kernels.A_TOKEN * int(join.probing.starts[begin] - join.probing.starts[task.begin])
    out.facts = {"pairs": int(cells[-1]), "work": int(work), "visits": int(visits), "groups": len(groups)}
    out.facts |= {"left": int(left.sum()), "edges": (begin + _edges(left, task.most)).tolist()}


def _edges(work: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return the edges of blocks of rows with equal work below a limit; none if there are no rows."""
    done = np.cumsum(work)
    n = -(-int(work.sum()) // most)
    if n < 1:
        return done[:0]
    inner = np.searchsorted(done, int(done[-1]) * np.arange(1, n) // n)
    return np.unique(np.concatenate([[0], inner, [len(work)]]))


class Verify(NamedTuple):
    """A task: the candidate pairs whose longer row is in some cells; ``searches`` is the number of their tasks."""

    job: Job
    number: int
    cells: tuple[int, int]
    searches: int


def cut_cells(job: Job, searches: int) -> list[Verify]:
    """Group cells while their rows and candidate pairs fit into the budget."""
    cells = _plan(job).cells
    sizes = np.zeros(len(cells) - 1, np.int64)
    for number in range(searches):
        sizes += np.diff(job.result("candidates", number).whole("cells", np.int64))
    tasks: list[Verify] = []
    first, used = 0, 0
    for k, size in enumerate((sizes * BYTES_A_CANDIDATE + job.memory // CELLS).tolist()):
        if used and (used + size > job.memory // 2 or int(cells[k + 1] - cells[first]) > kernels.MAX_ROWS):
            tasks.append(Verify(job, len(tasks), (first, k), searches))
            first, used = k, 0
        used += size
    return [*tasks, Verify(job, len(tasks), (first, len(sizes)), searches)] if len(sizes) else []


def verify(task: Verify) -> dict[str, int]:
    """Write the similar pairs whose longer row is in some cells; return their number, and the number of stores."""
    job = task.job
    try:
        facts = job.result("verified", task.number).facts
        for path in stores(job, {task.number: facts["stores"]}):
            opened(path, "pairs")
    except InputError:
        remove_tree(job.path("verified", task.number))
        facts = job.checkpoint("verified", task.number, work=lambda out: out.facts.update(_verified(task)))
    return {name: int(facts[name]) for name in ("pairs", "stores", "candidates", "verifications")}


def stores(job: Job, verified: Mapping[int, int]) -> list[Path]:
    """Return the paths of the stores of pairs, from the number of stores of each task of `verify`."""
    return [_pairs_path(job, task, k) for task, count in verified.items() for k in range(count)]


def _pairs_path(job: Job, task: int, number: int) -> Path:
    return job.path(f"{task:08d}-{number:04d}")


def _verified(task: Verify) -> dict[str, int]:
    listing, counts = _Listing(task), np.zeros(2, np.int64)
    for span in _passes(task):
        counts += _verify_rows(task, span, listing)
    listing.write()
    candidates, verifications = counts.tolist()
    return {
        "pairs": listing.pairs,
        "stores": listing.stores,
        "candidates": candidates,
        "verifications": verifications,
    }


def _passes(task: Verify) -> Iterator[tuple[int, int]]:
    """Cut the rows of a task so that their candidate pairs fit: all rows of a cell may be similar."""
    job = task.job
    start, stop = _plan(job).cells[list(task.cells)].tolist()
    candidates = [_candidates_of(task, number) for number in range(task.searches)]
    if sum(end - begin for _, begin, end in candidates) * BYTES_A_CANDIDATE <= job.memory // 2:
        yield start, stop
        return
    counts = np.zeros(stop - start, np.int64)
    for reader, begin, end in candidates:
        for first in range(begin, end, PIECE):
            rows = reader.part("pairs", np.uint64, first, min(first + PIECE, end)) & kernels.LOW
            counts += np.bincount(rows.astype(np.int64) - start, minlength=len(counts))
    edges = start + cut_rows(row_starts(counts), 0, job.memory // 2, BYTES_A_CANDIDATE, BYTES_A_ROW)
    yield from pairwise(edges.tolist())


def _verify_rows(task: Verify, span: tuple[int, int], listing: _Listing) -> tuple[int, int]:
    """List the similar pairs whose longer row is in a span; return the numbers of candidates and of comparisons."""
    job, plan, reader = task.job, _plan(task.job), task.job.vectors()
    start, stop = span
    keys = _keys(task, span)
    candidates = len(keys)
    keys.sort()
    keys = keys[: kernels.merge(keys, plan.tables)].copy()
    rows = np.arange(start, stop)
    one, groups = _gathered(reader, rows), _members(job, reader, rows)
    copied = np.flatnonzero(groups.sizes > 1)
    listing.add(groups, copied, groups, copied, np.ones(len(copied)))
    shorter = (keys >> np.uint64(24)).astype(np.int64)
    longer = (keys & np.uint64(kernels.MAX_ROWS - 1)).astype(np.int64)
    del keys
    _require_undamaged(int(shorter.max(initial=0)) < stop and int(longer.max(initial=0)) < stop - start, job)
    for first, last in _windows(shorter, plan.cells, max(job.memory // CELLS // BYTES_COMPARED, 1)):
        wanted, at = np.unique(shorter[first:last], return_inverse=True)
        other = _gathered(reader, wanted)
        similar = np.empty(last - first, np.int64), np.empty(last - first)
        n = kernels.compare(one, longer[first:last], other, at, job.tau, similar)
        found, similarity = similar[0][:n], similar[1][:n]
        listing.add(groups, longer[first:last][found], _members(job, reader, wanted), at[found], similarity)
    return candidates, len(shorter)


def write_pairs(path: Path, i: IntArray, j: IntArray, similarity: FloatArray) -> None:
    """Write a store of pairs, sorted by (i, j)."""
    order = np.lexsort((j, i))
    with writing(path, "pairs") as out:
        for name, values in (("i", i), ("j", j), ("similarity", similarity)):
            out.put(name, values[order])
        out.facts = {"pairs": len(order)}


class _Listing:
    """Buffer of similar pairs of documents, which is written to a store, sorted by (i, j), when it is full."""

    def __init__(self, task: Verify) -> None:
        self.task = task
        most = max(task.job.memory // 4 // BYTES_LISTED, 2**10)
        self.out = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
        self.filled = self.stores = self.pairs = 0

    def add(
        self, one: Groups, a: NDArray[np.int64], other: Groups, b: NDArray[np.int64], similarity: FloatArray
    ) -> None:
        """Add the pairs of documents of pairs of rows; a row paired with itself gives the pairs of its copies."""
        own, new_from = one is other, self.task.job.new_from
        self.pairs += _count(one, a, other, b, own)
        require_listable(self.pairs)
        at = np.zeros(3, np.int64)
        while at[0] < len(a):
            free = tuple(column[self.filled :] for column in self.out)
            self.filled += kernels.list_pairs(one, a, other, b, own, similarity, new_from, at, free)
            if at[0] < len(a):
                self.write()

    def write(self) -> None:
        """Write the buffer to a store."""
        i, j, similarity = self.out[0][: self.filled], self.out[1][: self.filled], self.out[2][: self.filled]
        write_pairs(_pairs_path(self.task.job, self.task.number, self.stores), i, j, similarity)
        self.filled, self.stores = 0, self.stores + 1


def _count(one: Groups, a: NDArray[np.int64], other: Groups, b: NDArray[np.int64], own: bool) -> int:
    """Count the pairs of documents of pairs of rows, except those of two old documents, without listing them."""
    found = 0.0  # as a float, which does not overflow
    for sign, x, y in (1, one.sizes[a], other.sizes[b]), (-1, one.old[a], other.old[b]):
        found += sign * float((x.astype(np.float64) * (y - own)).sum())
    return int(found) // (1 + own)


def _candidates_of(task: Verify, number: int) -> tuple[Reader, int, int]:
    """Open the candidate pairs of a task; return also the range of those of the cells."""
    reader = task.job.result("candidates", number)
    begin, end = reader.whole("cells", np.int64)[list(task.cells)].tolist()
    return reader, begin, end


def _keys(task: Verify, span: tuple[int, int]) -> NDArray[np.uint64]:
    """Read the candidate pairs whose longer row is in a span, as keys."""
    found = [np.empty(0, np.uint64)]
    whole = _plan(task.job).cells[list(task.cells)].tolist() == list(span)
    for number in range(task.searches):
        reader, begin, end = _candidates_of(task, number)
        if not whole:
            rows, among = partial(_longer, reader), range(begin, end)
            begin, end = (begin + bisect_left(among, row, key=rows) for row in span)
        if begin < end:
            found.append(np.empty(end - begin, np.uint64))
            pairs, shared = (reader.part(n, t, begin, end) for n, t in (("pairs", np.uint64), ("shared", np.uint8)))
            kernels.pack_keys(pairs, shared, span[0], found[-1])
    return np.concatenate(found)


def _longer(reader: Reader, index: int) -> int:
    """Return the longer row of a candidate pair."""
    return int(reader.part("pairs", np.uint64, index, index + 1)[0] & kernels.LOW)


def _windows(rows: NDArray[np.int64], cells: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Cut ascending rows at the edges of cells, and into blocks of a limited size."""
    edges = np.union1d(np.searchsorted(rows, cells), np.arange(0, len(rows), most))
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if first < last:
            yield first, last


def _gathered(reader: Reader, rows: NDArray[np.int64]) -> Block:
    """Read some ascending rows; those with small gaps between them are read at once."""
    blocks = [_some(reader, run) for run in _near(rows)]
    starts = np.cumsum([0, *(int(block.indptr[-1]) for block in blocks)])
    return Block(
        np.concatenate([np.zeros(1, np.int64), *(b.indptr[1:] + s for b, s in zip(blocks, starts, strict=False))]),
        np.concatenate([np.empty(0, np.int32), *(block.ids for block in blocks)]),
        np.concatenate([np.empty(0, np.int32), *(block.counts for block in blocks)]),
        np.concatenate([np.empty(0, np.int64), *(block.lengths for block in blocks)]),
    )


def _some(reader: Reader, run: NDArray[np.int64]) -> Block:
    """Read some rows with small gaps between them."""
    start, stop = int(run[0]), int(run[-1]) + 1
    indptr = reader.part("indptr", np.int64, start, stop + 1)
    _require_rising(reader, indptr)
    first, last = int(indptr[0]), int(indptr[-1])
    ids, counts = reader.part("ids", np.int32, first, last), reader.part("counts", np.int32, first, last)
    lengths, indptr = reader.part("lengths", np.int64, start, stop), indptr - first
    if stop - start == len(run):
        return Block(indptr, ids, counts, lengths)
    at = run - start
    ends = row_starts(np.diff(indptr)[at])
    out = Block(ends, np.empty(ends[-1], np.int32), np.empty(ends[-1], np.int32), lengths[at])
    kernels.gather(indptr, ids, at, ends, out.ids)
    kernels.gather(indptr, counts, at, ends, out.counts)
    return out


def _near(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Cut ascending rows at gaps that are worth another read."""
    return np.split(rows, np.flatnonzero(np.diff(rows) > GAP) + 1) if len(rows) else []


def _members(job: Job, reader: Reader, rows: NDArray[np.int64]) -> Groups:
    """Return the document numbers of some rows, ascending, and of their copies."""
    spans = _plan(job).spans
    parts = (reader.part("rows", np.int64, int(run[0]), int(run[-1]) + 1)[run - run[0]] for run in _near(rows))
    numbers = np.concatenate([np.empty(0, np.int64), *parts])
    copied, copies = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for number in np.unique(np.searchsorted(spans, rows, side="right") - 1).tolist():
        left = job.result("shuffled", number)
        if left.facts["copies"]:
            copied.append(left.whole("copied", np.int64))
            copies.append(left.whole("copies", np.int64))
    of, copy = np.concatenate(copied), np.concatenate(copies)
    begin, end = np.searchsorted(of, rows), np.searchsorted(of, rows, side="right")
    sizes = 1 + end - begin
    starts = row_starts(sizes)
    members = np.repeat(numbers, sizes)
    within = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
    members[within > 0] = copy[(np.repeat(begin, sizes) + within - 1)[within > 0]]
    return Groups(starts, members, sizes, np.diff(row_starts(members < job.new_from)[starts]))
