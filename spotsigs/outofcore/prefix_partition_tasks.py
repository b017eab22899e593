"""Tasks of the join on disk: prefixes are shuffled by signature, candidate pairs by row.

Each task names its inputs and writes a result of its own, so that it can run again on any worker:

1. `sample`: for some rows of each block, the number of prefix tokens by range of partition keys, from which parts of
   equal size are cut.
2. `shuffle`: the rarest signatures of each row of a block, by part.
3. `find_candidates`: the pairs of rows that share a signature of a part in both prefixes, and the weight they share. A
   task with much more work than the mean stops, and further tasks divide the rest.
4. `verify`: the candidate pairs of some rows from all parts; those that share enough are compared.

The partition key of a signature is a hash of the first document that contains it. Near-duplicates share rare signatures
that first occur in the same document, so that most of a pair's shared signatures fall into one part, for any number of
parts. The pairs do not depend on the keys: any function of the signature gives the same ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.parallel import concatenated
from spotsigs.errors import require
from spotsigs.matching.bounds import least_overlap, prefixes
from spotsigs.outofcore import prefix_partition_kernels as kernels
from spotsigs.outofcore.prefix_partition_kernels import Block, Lists, PartRows, PrefixIndex, Runs
from spotsigs.records import FloatArray, IntArray, require_listable
from spotsigs.storage.store import Reader, Writer, entry_spans, opened, writing
from spotsigs.storage.tasks import Job, resumable

BYTES_SHUFFLED = 56  # that `shuffle` uses for each entry of its rows
BYTES_A_ROW = 120  # that it uses for each row
BYTES_A_TOKEN = 64  # that `find_candidates` uses for each token of its part
BYTES_A_CANDIDATE = 48  # that `verify` uses for each candidate pair
BYTES_COMPARED = 96  # that it uses for each pair of a batch of comparisons
BYTES_LISTED = 64  # that it uses for each similar pair of documents that has not been written
BYTES_A_PAIR = 128  # that sorting and naming pairs uses for each of them

SLICES = 32
"""A slice is a block of rows that uses one part in so many of the budget; a task of `verify` takes several."""

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

PAIR_COLUMNS: dict[str, Any] = {"i": np.int64, "j": np.int64, "similarity": np.float64}
"""Arrays of a store of pairs."""

GAP = 256
"""Rows between two requested ones up to which both are read at once."""


@dataclass(frozen=True, kw_only=True)
class JoinJob(Job):
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
    """Bounds by length, and the first rows of blocks that are shuffled (``spans``) and of slices, with their end."""

    tables: Runs
    spans: NDArray[np.int64]
    slices: NDArray[np.int64]


class BlockTask(NamedTuple):
    """A task: a block of rows."""

    job: JoinJob
    number: int


def make_plan(job: JoinJob, indptr: NDArray[np.int64], lengths: NDArray[np.int64]) -> int:
    """Write the plan; return the number of blocks."""

    def work(out: Writer) -> None:
        tables = _runs(lengths, job.tau)
        for name, values in tables._asdict().items():
            out.put(name, values)
        first = int(tables.rows[0])
        spans = cut_rows(indptr, first, job.memory // 2, BYTES_SHUFFLED, BYTES_A_ROW)
        out.put("spans", spans)
        a_slice = min(job.memory // SLICES, kernels.MAX_ROWS * BYTES_A_ROW)
        out.put("slices", cut_rows(indptr, first, a_slice, 16, BYTES_A_ROW))
        out.facts["spans"] = len(spans) - 1

    return int(job.checkpoint("plan", work=work)["spans"])


def cut_rows(indptr: NDArray[np.int64], first: int, budget: int, an_entry: int, a_row: int) -> NDArray[np.int64]:
    """Cut the rows from `first` on into blocks of a number of bytes; a larger row is a block of its own."""
    ends = indptr[first:] * an_entry
    ends += np.arange(0, len(ends) * a_row, a_row)
    return np.array([first, *(first + end for _, end in entry_spans(ends, budget))], np.int64)


def _runs(lengths: NDArray[np.int64], tau: float) -> Runs:
    """Find the lengths that occur, by one search each, and tabulate the bounds."""
    blocks, rows = [], [int(np.searchsorted(lengths, 1))]
    while rows[-1] < len(lengths):
        blocks.append(int(lengths[rows[-1]]))
        rows.append(int(np.searchsorted(lengths, blocks[-1], side="right")))
    distinct = np.array(blocks, np.int64)
    shortest, shared, prefix = prefixes(tau, distinct, kernels.MAX_SHARED)
    offered = distinct - least_overlap(tau, 2 * distinct) + shared
    return Runs(distinct, np.array(rows, np.int64), np.searchsorted(distinct, shortest), shared, prefix, offered)


@lru_cache(2)
def _plan(job: JoinJob) -> Plan:
    reader = job.result("plan")
    whole = {name: reader.whole(name, np.int64) for name in (*Runs._fields, "spans", "slices")}
    return Plan(Runs(*(whole[name] for name in Runs._fields)), whole["spans"], whole["slices"])


def read_block(reader: Reader, start: int, stop: int) -> Block:
    """Read some rows into memory."""
    indptr = reader.part("indptr", np.int64, start, stop + 1)
    first, last = int(indptr[0]), int(indptr[-1])
    return Block(
        indptr - first,
        reader.part("ids", np.int32, first, last),
        reader.part("counts", np.int32, first, last),
        reader.part("lengths", np.int64, start, stop),
        reader.part("rows", np.int64, start, stop),
    )


def sample(task: BlockTask) -> NDArray[np.int64]:
    """Estimate the tokens of the rows of a block by range of partition keys, from some of the rows."""
    start, stop = _plan(task.job).spans[task.number : task.number + 2].tolist()
    some = max((stop - start) // SAMPLED, min(stop - start, 1000))
    middle = start + (stop - start - some) // 2
    _, _, bins = _tokens(task.job, read_block(task.job.vectors(), middle, middle + some), middle)
    estimated: NDArray[np.int64] = np.bincount(bins, minlength=BINS) * (stop - start) // some
    return estimated


def _tokens(
    job: JoinJob, block: Block, first_row: int
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.uint16]]:
    """Return the tokens of the prefixes of rows, and the row and the range of partition keys of each."""
    tables, reader = _plan(job).tables, job.vectors()
    rows = np.arange(first_row, first_row + len(block.lengths))
    runs = np.searchsorted(tables.rows, rows, side="right") - 1
    most = len(block.ids)
    first = int(reader.part("indptr", np.int64, first_row, first_row + 1)[0])
    marks = reader.part("marks", np.uint16, first, first + most)
    out = np.empty(most, np.uint64), np.empty(most, np.int32), np.empty(most, np.uint16)
    n = kernels.select_prefixes(block.indptr, block.ids, block.counts, marks, runs, tables, out)
    return out[0][:n], out[1][:n], out[2][:n]


def cut_parts(job: JoinJob, bins: NDArray[np.int64]) -> int:
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


@resumable("shuffled")
def shuffle(task: BlockTask, out: Writer) -> None:
    """Write the prefixes of a block of rows by part."""
    job = task.job
    part_of = job.result("parts").whole("part_of", np.int64)
    start, stop = _plan(job).spans[task.number : task.number + 2].tolist()
    block = read_block(job.vectors(), start, stop)
    is_new = block.documents >= job.new_from
    tokens, rows, bins = _tokens(job, block, start)
    sketches = np.empty(len(is_new), np.uint64)
    kernels.sketch_rows(block.indptr, block.ids, block.counts, sketches)
    del block
    part = part_of[bins].astype(np.uint16)  # of which NumPy's stable sort is a radix sort
    order = np.argsort(part, kind="stable")
    part, rows = part[order], rows[order]
    out.put("tokens", tokens[order])
    begins = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]) | (part[1:] != part[:-1]))[: len(rows)])
    row, size = rows[begins], np.diff(begins, append=len(rows))
    new, numbers = is_new[row].astype(np.uint64), (start + row).astype(np.uint64)
    heads = np.stack([sketches[row], numbers << np.uint64(32) | new << np.uint64(31) | size.astype(np.uint64)], axis=1)
    out.put("heads", heads.reshape(-1))
    parts = np.arange(part_of[-1] + 2)
    out.put("head_starts", np.searchsorted(part[begins], parts))
    out.put("token_starts", np.searchsorted(part, parts))
    out.facts = {"tokens": len(tokens)}


@lru_cache(256)
def _shuffled(job: JoinJob, number: int) -> tuple[Reader, NDArray[np.int64], NDArray[np.int64]]:
    """Open the result of a block; return also the offsets of the rows and tokens of each part."""
    reader = job.result("shuffled", number)
    return reader, reader.whole("head_starts", np.int64), reader.whole("token_starts", np.int64)


def _groups(job: JoinJob, part: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Group blocks whose tokens of a part fit into half of the budget; return all pairs of these groups.

    The rows of the second group are probed against those of the first; a group is also paired with itself.
    """
    of_blocks = (_shuffled(job, number)[2][part : part + 2] for number in range(len(_plan(job).spans) - 1))
    sizes = [int(stop - start) * BYTES_A_TOKEN for start, stop in of_blocks]
    groups = list(entry_spans(row_starts(sizes), job.memory // 2))
    return [(one, other) for k, other in enumerate(groups) for one in groups[: k + 1]]


def _part_rows(job: JoinJob, part: int, group: tuple[int, int]) -> PartRows:
    """Read the rows and tokens of a part from some blocks."""
    heads, tokens = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    for number in range(*group):
        reader, head_starts, token_starts = _shuffled(job, number)
        of_heads, of_tokens = head_starts[part : part + 2].tolist(), token_starts[part : part + 2].tolist()
        heads.append(reader.part("heads", np.uint64, 2 * of_heads[0], 2 * of_heads[1]))
        tokens.append(reader.part("tokens", np.uint64, *of_tokens))
    marks, of_rows = np.concatenate(heads), np.concatenate(tokens)
    del heads, tokens
    head, tables = marks[1::2], _plan(job).tables  # see the bit layouts of the kernels
    rows = (head >> np.uint64(32)).astype(np.int64)
    is_new = head & np.uint64(2**31) != 0
    starts = row_starts(head & np.uint64(2**31 - 1))
    sound = starts[-1] == len(of_rows) and bool((rows[1:] > rows[:-1]).all())
    _require_undamaged(sound and int(rows[-1:].max(initial=0)) < int(tables.rows[-1]), job)
    first = np.searchsorted(rows, tables.rows)
    runs = np.repeat(np.arange(len(first) - 1, dtype=np.uint64), np.diff(first))
    marks[1::2] = rows.astype(np.uint64) << np.uint64(32) | runs
    return PartRows(marks, is_new, first, starts, of_rows)


def _require_undamaged(sound: bool, job: JoinJob) -> None:
    """Refuse numbers that no kernel may use as indices."""
    require(sound, f"the results of tasks in {job.folder} are damaged; delete that folder and run again")


_NO_LISTS = Lists(np.empty(0, np.int32), np.empty(0, np.uint64))


class CandidateTask(NamedTuple):
    """A task: the rows ``begin:end`` of a part, or of a pair of its groups (see `_groups`), are probed.

    The task stops after the work ``most``.
    """

    job: JoinJob
    number: int
    part: int
    groups: int
    begin: int
    end: int
    most: int


def _index(task: CandidateTask, listed_blocks: tuple[int, int], probing_blocks: tuple[int, int]) -> PrefixIndex:
    """Read the rows of a task, and list those before the ones that are probed."""
    job, tables, is_self = task.job, _plan(task.job).tables, listed_blocks == probing_blocks
    listed = _part_rows(job, task.part, listed_blocks)
    probing = listed if is_self else _part_rows(job, task.part, probing_blocks)
    shares = [listed] if is_self else [listed, probing]
    known = np.zeros(1 << (3 * sum(len(share.tokens) for share in shares) // 2).bit_length(), np.uint64)
    width = 0
    for share in shares:
        width = kernels.number_signatures(share.tokens, known, width)
    del known
    end = task.begin if is_self else len(listed.is_new)

    def lists(only_new: bool) -> Lists:
        bounds = np.zeros(2 * width, np.int32)
        n = kernels.count_lists(listed, only_new, tables, bounds)
        filled = Lists(bounds, np.empty(n, np.uint64))
        kernels.fill_lists(listed, 0, end, only_new, tables, job.tau, filled)
        return filled

    return PrefixIndex(
        probing, listed, is_self, lists(False), lists(True) if job.new_from else _NO_LISTS, tables, job.tau
    )


def first_candidate_tasks(job: JoinJob, parts: int, tokens: int) -> list[CandidateTask]:
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
    tasks: list[CandidateTask] = []
    for task, result in zip(searches[first:], results[first:], strict=True):
        if first == 0:
            tasks += (task._replace(groups=k) for k in range(1, result["groups"]))
        edges = result["edges"]
        shares = pairwise([*edges[:-1:step], *edges[-1:]])
        tasks += (task._replace(begin=begin, end=end, most=NO_END) for begin, end in shares)
    return [task._replace(number=len(searches) + k) for k, task in enumerate(tasks)]


@resumable("candidates")
def find_candidates(task: CandidateTask, out: Writer) -> None:
    """Write the candidate pairs of rows of a part.

    The facts of the result are the ``work`` and the postings that were read (``visits``), the number of pairs of
    ``groups`` of the part, the work that is ``left``, and the ``edges`` of blocks of its rows with equal work.
    """
    job, plan = task.job, _plan(task.job)
    groups = _groups(job, task.part)
    index = _index(task, *groups[task.groups])
    begin, end = task.begin, min(task.end, len(index.probing.is_new))
    n = len(index.listed.is_new)
    most = n + max(2**16, min(n, 2**20))
    counts, touched = np.zeros(n, np.uint8), np.empty(n, np.int64)
    pairs, shared = np.empty(most, np.uint64), np.empty(most, np.uint8)
    slices, work = np.zeros(len(plan.slices), np.int64), 0
    with out.growing("pairs", np.uint64) as append_pairs, out.growing("shared", np.uint8) as append_shared:
        while begin < end and work < task.most:
            begin, n_pairs, more = kernels.probe(index, begin, end, task.most - work, counts, touched, (pairs, shared))
            work += more
            append_pairs(pairs[:n_pairs])
            append_shared(shared[:n_pairs])
            slices[1:] += np.searchsorted(_longer(pairs[:n_pairs]), plan.slices[1:])
    out.put("slices", slices)
    left = np.empty(len(index.probing.is_new) - begin if begin < end else 0, np.int64)
    if len(left):
        kernels.count_visits(index, begin, left)
    starts = index.probing.starts
    visits = work - kernels.A_TOKEN * int(starts[begin] - starts[task.begin])
    out.facts = {"pairs": int(slices[-1]), "work": int(work), "visits": int(visits), "groups": len(groups)}
    out.facts |= {"left": int(left.sum()), "edges": (begin + _edges(left, task.most)).tolist()}


def _longer(pairs: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the longer rows of candidate pairs."""
    return (pairs & kernels.LOW).astype(np.int64)


def _edges(work: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return the edges of blocks of rows with equal work below a limit; none if there are no rows."""
    done = np.cumsum(work)
    n = -(-int(work.sum()) // most)
    if n < 1:
        return done[:0]
    inner = np.searchsorted(done, int(done[-1]) * np.arange(1, n) // n)
    return np.unique(np.concatenate([[0], inner, [len(work)]]))


class VerifyTask(NamedTuple):
    """A task: the candidate pairs with some longer rows; ``searches`` is the number of the tasks that found them."""

    job: JoinJob
    number: int
    rows: tuple[int, int]
    searches: int


def verify_tasks(job: JoinJob, searches: int) -> list[VerifyTask]:
    """Group slices while their rows and candidate pairs fit into the budget."""
    slices = _plan(job).slices.tolist()
    sizes = np.zeros(len(slices) - 1, np.int64)
    for number in range(searches):
        sizes += np.diff(job.result("candidates", number).whole("slices", np.int64))
    edges, used = slices[:1], 0
    for k, size in enumerate((sizes * BYTES_A_CANDIDATE + job.memory // SLICES).tolist()):
        if used and (used + size > job.memory // 2 or slices[k + 1] - edges[-1] > kernels.MAX_ROWS):
            edges.append(slices[k])
            used = 0
        used += size
    edges += slices[-1:] if used else []
    return [VerifyTask(job, number, rows, searches) for number, rows in enumerate(pairwise(edges))]


@resumable("verified")
def verify(task: VerifyTask, out: Writer) -> None:
    """Write the similar pairs with some longer rows, in stores of limited size."""
    similar = _SimilarPairs(task)
    counts = np.zeros(2, np.int64)
    for rows in _passes(task):
        counts += _verify_rows(task, rows, similar)
    similar.write()
    candidates, verifications = counts.tolist()
    out.facts = {"stores": similar.stores, "candidates": candidates, "verifications": verifications}


def pair_folders(job: JoinJob, counts: Sequence[int]) -> list[Path]:
    """Return the paths of the stores of pairs, from the number of stores of each task of `verify`."""
    return [_pairs_path(job, task, k) for task, count in enumerate(counts) for k in range(count)]


def _pairs_path(job: JoinJob, task: int, number: int) -> Path:
    return job.path(f"{task:08d}-{number:04d}")


def _candidates(task: VerifyTask, rows: tuple[int, int]) -> Iterator[tuple[Reader, int, int]]:
    """Yield the results with candidate pairs, and the range of those with some longer rows, which ascend."""
    for number in range(task.searches):
        reader = task.job.result("candidates", number)
        pairs = reader.array("pairs", np.uint64)
        begin, end = (bisect_left(pairs, row, key=lambda pair: int(pair & kernels.LOW)) for row in rows)
        yield reader, begin, end


def _passes(task: VerifyTask) -> Iterator[tuple[int, int]]:
    """Cut the rows of a task so that their candidate pairs fit: all rows of a slice may be similar."""
    start, stop = task.rows
    most = task.job.memory // 2
    candidates = list(_candidates(task, task.rows))
    if sum(end - begin for _, begin, end in candidates) * BYTES_A_CANDIDATE <= most:
        yield task.rows
        return
    counts = np.zeros(stop - start, np.int64)
    for reader, begin, end in candidates:
        for first in range(begin, end, PIECE):
            rows = _longer(reader.part("pairs", np.uint64, first, min(first + PIECE, end)))
            counts += np.bincount(rows - start, minlength=len(counts))
    yield from pairwise((start + cut_rows(row_starts(counts), 0, most, BYTES_A_CANDIDATE, BYTES_A_ROW)).tolist())


def _verify_rows(task: VerifyTask, rows: tuple[int, int], similar: _SimilarPairs) -> tuple[int, int]:
    """Add the similar pairs with some longer rows; return the numbers of candidates and of comparisons."""
    job, plan, reader = task.job, _plan(task.job), task.job.vectors()
    start, stop = rows
    keys = _keys(task, rows)
    candidates = len(keys)
    keys.sort()
    keys = keys[: kernels.merge(keys, plan.tables)].copy()
    shorter = (keys >> np.uint64(24)).astype(np.int64)
    longer = (keys & np.uint64(kernels.MAX_ROWS - 1)).astype(np.int64)
    del keys
    _require_undamaged(int(shorter.max(initial=0)) < stop and int(longer.max(initial=0)) < stop - start, job)
    one = read_block(reader, start, stop)
    for first, last in _comparisons(shorter, plan.slices, max(job.memory // SLICES // BYTES_COMPARED, 1)):
        other, at = _read_near(reader, shorter[first:last])
        out = np.empty(last - first, np.int64), np.empty(last - first)
        n = kernels.compare(one, longer[first:last], other, at, job.tau, out)
        positions, similarity = out[0][:n], out[1][:n]
        a, b = one.documents[longer[first:last][positions]], other.documents[at[positions]]
        i, j = np.minimum(a, b), np.maximum(a, b)
        new = j >= job.new_from
        similar.add(i[new], j[new], similarity[new])
    return candidates, len(shorter)


def _keys(task: VerifyTask, rows: tuple[int, int]) -> NDArray[np.uint64]:
    """Read the candidate pairs with some longer rows, as keys."""
    keys = [np.empty(0, np.uint64)]
    for reader, begin, end in _candidates(task, rows):
        pairs, shared = reader.part("pairs", np.uint64, begin, end), reader.part("shared", np.uint8, begin, end)
        # the shorter row stays in the upper half
        keys.append(pairs - (pairs & kernels.LOW) | ((pairs & kernels.LOW) - np.uint64(rows[0])) << np.uint64(8))
        keys[-1] |= shared
    return np.concatenate(keys)


def _comparisons(rows: NDArray[np.int64], slices: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Cut ascending rows at the edges of slices, and into blocks of a limited size."""
    edges = np.union1d(np.searchsorted(rows, slices), np.arange(0, len(rows), most))
    return ((first, last) for first, last in pairwise(edges.tolist()) if first < last)


def _read_near(reader: Reader, rows: NDArray[np.int64]) -> tuple[Block, NDArray[np.int64]]:
    """Read ascending rows, and those in small gaps between them; return also the index of each row."""
    blocks, index, n = [], [], 0
    for near in np.split(rows, np.flatnonzero(np.diff(rows) > GAP) + 1):
        blocks.append(read_block(reader, int(near[0]), int(near[-1]) + 1))
        index.append(n + near - near[0])
        n += len(blocks[-1].lengths)
    if len(blocks) == 1:
        return blocks[0], index[0]
    indptr = row_starts(np.concatenate([np.diff(block.indptr) for block in blocks]))
    columns = (np.concatenate(column) for column in zip(*(block[1:] for block in blocks), strict=True))
    return Block(indptr, *columns), np.concatenate(index)


class _SimilarPairs:
    """Buffer of the similar pairs of a task, which is written to a store when it is full."""

    def __init__(self, task: VerifyTask) -> None:
        self.task, self.most = task, max(task.job.memory // 4 // BYTES_LISTED, 2**10)
        self.parts: list[tuple[IntArray, IntArray, FloatArray]] = []
        self.buffered = self.pairs = self.stores = 0

    def add(self, i: IntArray, j: IntArray, similarity: FloatArray) -> None:
        """Add pairs of documents."""
        self.pairs += len(i)
        require_listable(self.pairs, on_disk=True)
        if self.buffered and self.buffered + len(i) > self.most:
            self.write()
        self.parts.append((i, j, similarity))
        self.buffered += len(i)

    def write(self) -> None:
        """Write the buffer to a store, sorted by (i, j)."""
        columns = concatenated(self.parts, tuple(PAIR_COLUMNS.values()))
        self.parts, self.buffered = [], 0
        write_pairs(_pairs_path(self.task.job, self.task.number, self.stores), *columns)
        self.stores += 1


def write_pairs(path: Path, i: IntArray, j: IntArray, similarity: FloatArray) -> None:
    """Write a store of pairs, sorted by (i, j)."""
    order = np.lexsort((j, i))
    with writing(path, "pairs") as out:
        for (name, kind), values in zip(PAIR_COLUMNS.items(), (i, j, similarity), strict=True):
            out.put(name, values[order].astype(kind, copy=False))
        out.facts = {"pairs": len(order)}
