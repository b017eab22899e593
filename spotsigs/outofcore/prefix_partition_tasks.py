"""The tasks of the join on disk: prefixes go out by signature, pairs come back by row.

Rounds of tasks, each with inputs that it names and a result of its own, so that it can run again anywhere:

1. `sample`: what a few rows of each stretch of the store would send, by range of homes; equal parts follow.
2. `spread`: the rows of a stretch, copies collapsed, send the rarest signatures of each row to their parts.
3. `meet`: pairs of rows with a signature of a part in both prefixes, each once, and how many of them they share. A
   part with much more work than others is left where that shows, and further tasks share the rest of it.
4. `verify`: the pairs of some rows from all parts; those with enough meetings are compared, and stand for their copies.

The home of a signature is a hash of the first document that has it. So a near-copy and its original, which share
signatures that no document before had, find nearly all of them in one part, whatever the number of parts. Pairs do not
depend on homes: any will do that are the same for all rows.

Bytes that go through the store grow with the rows, with what they send, and with the pairs that meet.
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
from spotsigs.outofcore.resumable_tasks import Rounds
from spotsigs.records import FloatArray, RowNumbers, Vectors, require_listable, unchecked
from spotsigs.storage.store import Reader, Writer, check_rows, opened, remove_tree, writing

BYTES_SPREAD = 56
"""What `spread` holds for each entry of its rows."""

BYTES_A_ROW = 120
"""What it holds for each row."""

BYTES_MEET = 64
"""What `meet` holds for each token of its part, with its row and its signature."""

BYTES_A_CANDIDATE = 48
"""What `verify` holds for each pair that met."""

BYTES_COMPARED = 96
"""What it holds for each pair that is compared at once."""

BYTES_LISTED = 64
"""What it holds for each similar pair of documents that has not been written yet."""

BYTES_A_PAIR = 128
"""What sorting and naming pairs holds for each of them."""

CELLS = 32
"""Stretches that `verify` puts together, to as many of a budget."""

BINS = 2**kernels.BIN_BITS
"""Ranges of homes that parts are made of."""

SAMPLED = 32
"""One row in this many is sampled to learn how many signatures go to each part."""

LEAST_TOKENS = 2**21
"""Tokens of a part below which another one would cost more than it gives."""

LEAST_WORK = 2**25
"""Work that is never left to others: about a tenth of a second."""

UNEVEN = 1.5
"""Work at which a task leaves the rest to others, as a multiple of what it takes to read and list a mean part."""

PIECE = 2**18
"""Pairs that are counted at a time."""

NO_END = 2**62

FORM = 3
"""Of what tasks leave for one another; counted up where it changes."""

GAP = 64
"""Rows between two requested ones up to which both are read at once."""


@dataclass(frozen=True, kw_only=True)
class Job(Rounds):
    """What all tasks of a join know.

    Attributes
    ----------
    store : str
        Place of the vectors.
    checksum : str
        What changes with them: tasks keep what they have read of the store.
    tau : float
        Similarity threshold.
    new_from : int
        Only pairs with a document of at least this number are wanted.
    memory : int
        Bytes that one task may hold.
    """

    store: str
    checksum: str
    tau: float
    new_from: int
    memory: int

    def vectors(self) -> Reader:
        """Open the store."""
        return opened(self.store, "vectors", verify=None)


class Plan(NamedTuple):
    """How a join is cut.

    Attributes
    ----------
    tables : Runs
        By length.
    spans : ndarray of int64
        First row of each stretch that is spread at once, and the end.
    cells : ndarray of int64
        First row of each stretch whose pairs stay together, and the end.
    """

    tables: Runs
    spans: NDArray[np.int64]
    cells: NDArray[np.int64]


def make_plan(job: Job, indptr: NDArray[np.int64], lengths: NDArray[np.int64]) -> int:
    """Leave the plan; return the number of stretches that are spread."""

    def work(out: Writer) -> None:
        tables = _runs(lengths, job.tau)
        for name, values in tables._asdict().items():
            out.put(name, values)
        first = int(tables.rows[0])
        spans = stretches(indptr, first, job.memory // 2, BYTES_SPREAD, BYTES_A_ROW)
        out.put("spans", spans)
        out.put("cells", stretches(indptr, first, job.memory // CELLS, 16, BYTES_A_ROW))
        out.facts |= {"spans": len(spans) - 1, "form": FORM}

    return int(job.leave("plan", work=work)["spans"])


def stretches(indptr: NDArray[np.int64], first: int, budget: int, an_entry: int, a_row: int) -> NDArray[np.int64]:
    """Cut the rows from `first` on into stretches of a number of bytes; a larger row is a stretch of its own."""
    n = len(indptr) - 1
    edges = [first]
    while edges[-1] < n:
        start = edges[-1]
        low, high = start + 1, min(n, start + max(budget // a_row, 1), start + kernels.MOST_ROWS)
        while low < high:  # the last row behind which the stretch still fits
            middle = (low + high + 1) // 2
            if (int(indptr[middle]) - int(indptr[start])) * an_entry + (middle - start) * a_row <= budget:
                low = middle
            else:
                high = middle - 1
        edges.append(low)
    return np.array(edges, np.int64)


def _runs(lengths: NDArray[np.int64], tau: float) -> Runs:
    """Find the lengths that occur, one search each, and tabulate the bounds."""
    found, rows = [], [int(np.searchsorted(lengths, 1))]
    while rows[-1] < len(lengths):
        found.append(int(lengths[rows[-1]]))
        rows.append(int(np.searchsorted(lengths, found[-1], side="right")))
    distinct = np.array(found, np.int64)
    shortest, meetings, prefix = prefixes(tau, distinct, kernels.MOST_MEETINGS)
    offered = distinct - least_overlap(tau, 2 * distinct) + meetings
    return Runs(distinct, np.array(rows, np.int64), np.searchsorted(distinct, shortest), meetings, prefix, offered)


@lru_cache(2)
def _plan(job: Job) -> Plan:
    reader = job.left("plan")
    whole = {name: reader.whole(name, np.int64) for name in (*Runs._fields, "spans", "cells")}
    return Plan(Runs(*(whole[name] for name in Runs._fields)), whole["spans"], whole["cells"])


def read_block(reader: Reader, block: tuple[int, int]) -> tuple[Vectors, NDArray[np.int64]]:
    """Read a range of rows into memory.

    Parameters
    ----------
    reader : Reader
        An open store of vectors.
    block : tuple of int
        First row, and the one behind the last.

    Returns
    -------
    vectors : Vectors
        The rows; ids are those of the store.
    rows : ndarray of int64
        Their former numbers.
    """
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


def _marks(reader: Reader, first_row: int, vectors: Vectors) -> NDArray[np.uint16]:
    """Return the marks of the signatures of rows; a store that has none sends a signature by its number."""
    if "marks.npy" in reader.facts["files"]:
        first = int(reader.part("indptr", np.int64, first_row, first_row + 1)[0])
        return reader.part("marks", np.uint16, first, first + len(vectors.ids))
    ids, places = np.unique(vectors.ids, return_inverse=True)
    known = int(ids.max(initial=-1)) < reader.length("classes", np.uint8)
    require(known, f"the classes of the store {reader.folder} are damaged; build the store again")
    classes = reader.take("classes", np.uint8, ids.astype(np.int64)).astype(np.uint32)
    homes = ids.astype(np.uint32) * np.uint32(2654435761) >> np.uint32(32 - kernels.HOME_BITS)
    return (classes << np.uint32(kernels.HOME_BITS) | homes).astype(np.uint16)[places]


def sample(task: tuple[Job, int]) -> NDArray[np.int64]:
    """Return how many tokens the rows of a stretch will send from each range of homes, from some of them."""
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
    """Return the tokens of the prefixes of rows, and the row and the range of homes of each."""
    tables = _plan(job).tables
    runs = np.searchsorted(tables.rows, np.arange(first_row, first_row + len(vectors)), side="right") - 1
    room = len(vectors.ids)
    out = np.empty(room, np.uint64), np.empty(room, np.int32), np.empty(room, np.uint16)
    marks = _marks(job.vectors(), first_row, vectors)
    n = kernels.spread_rows(vectors.indptr, vectors.ids, vectors.counts, marks, runs, copy_of, tables, out)
    return out[0][:n], out[1][:n], out[2][:n]


def cut_parts(job: Job, bins: NDArray[np.int64]) -> int:
    """Leave the part of each range of homes, from how many tokens it sends; return how many parts there are."""

    def work(out: Writer) -> None:
        total = int(bins.sum())
        n = max(-(-total * BYTES_MEET * 2 // max(job.memory, 1)), total // LEAST_TOKENS, 1)
        # a range with a part's share or more begins and ends one
        part = np.minimum((np.cumsum(bins) - bins // 2) * n // max(total, 1), n - 1)
        part = np.cumsum(np.diff(part, prepend=part[0]) > 0)
        out.put("part_of", part)
        out.facts["parts"] = int(part[-1]) + 1

    return int(job.leave("parts", work=work)["parts"])


def spread(task: tuple[Job, int]) -> int:
    """Send the prefixes of a stretch of rows to their parts; return how many tokens they have."""
    job, number = task
    return int(job.leave("spread", number, work=lambda out: _spread(job, number, out))["tokens"])


def _spread(job: Job, number: int, out: Writer) -> None:
    from spotsigs.matching.join_driver import Stages, inputs, read

    part_of = job.left("parts").whole("part_of", np.int64)
    start, stop = (int(edge) for edge in _plan(job).spans[number : number + 2])
    vectors, documents = read_block(job.vectors(), (start, stop))
    with Stages(1) as stages:
        copy_of = read(inputs([vectors], False, stages, count=False)[0], stages).copy_of
    copies = np.flatnonzero(copy_of != np.arange(len(copy_of), dtype=np.int32))
    by_first = copies[np.argsort(copy_of[copies], kind="stable")]
    fresh = documents >= job.new_from
    fresh[copy_of[copies[fresh[copies]]]] = True
    out.put("copied", start + copy_of[by_first].astype(np.int64))
    out.put("copies", documents[by_first])
    del documents

    tokens, rows, bins = _tokens(job, vectors, start, copy_of)
    starts, part = np.zeros((2, int(part_of[-1]) + 3), np.int64), part_of[bins].astype(np.int32)
    kernels.count_parts(rows, part, starts)
    sketches = np.empty(len(vectors), np.uint64)
    kernels.sketch_rows(vectors.indptr, vectors.ids, vectors.counts, sketches)
    parted, heads = np.empty_like(tokens), np.zeros(2 * int(starts[0, -1]), np.uint64)
    kernels.fill_parts(tokens, rows, part, start, fresh, sketches, starts, (parted, heads))
    out.put("tokens", parted)
    out.put("heads", heads)
    out.put("head_starts", starts[0, :-1])
    out.put("token_starts", starts[1, :-1])
    out.facts = {"tokens": len(tokens), "copies": len(copies)}


@lru_cache(256)
def _sent(job: Job, number: int) -> tuple[Reader, NDArray[np.int64], NDArray[np.int64]]:
    """Open what a stretch sent; return also where the rows and the tokens of each part start."""
    reader = job.left("spread", number)
    return reader, reader.whole("head_starts", np.int64), reader.whole("token_starts", np.int64)


_NOTHING = np.empty(0, np.uint64)


def _groups(job: Job, part: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Put the stretches together whose tokens of a part fit into half of the budget; return each two of these groups.

    The rows of the second look for partners in the first; a group is paired with itself, too.
    """
    held, groups, first = 0, [], 0
    n = len(_plan(job).spans) - 1
    for number in range(n):
        _, _, tokens = _sent(job, number)
        size = int(tokens[part + 1] - tokens[part]) * BYTES_MEET
        if held and held + size > job.memory // 2:
            groups.append((first, number))
            held, first = 0, number
        held += size
    groups.append((first, n))
    return [(one, other) for k, other in enumerate(groups) for one in groups[: k + 1]]


def _share(job: Job, part: int, group: tuple[int, int]) -> Share:
    """Read what some stretches sent to a part."""
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
        fresh=np.empty(n, np.bool_),
        first=np.zeros(len(tables.rows), np.int64),
        starts=np.zeros(n + 1, np.int64),
        tokens=of_rows,
    )
    kernels.read_heads(tables, share)
    return share


def _require_undamaged(sound: bool, job: Job) -> None:
    """Refuse numbers that no kernel may use as places."""
    require(sound, f"what the join left in {job.folder} is damaged; delete that folder and run again")


_NO_LISTS = Lists(np.empty(0, np.int32), np.empty(0, np.uint64))


class Meet(NamedTuple):
    """A task: rows of a part that look for partners.

    Attributes
    ----------
    job : Job
        Of the join.
    number : int
        Of the task.
    part : int
        Of the signatures.
    groups : int
        Which two groups of its rows, see `_groups`; most parts are one group.
    begin, end : int
        Which rows of the second of them look for partners, by place there; it may end before `end`.
    most : int
        Work after which the rest is left to other tasks.
    """

    job: Job
    number: int
    part: int
    groups: int
    begin: int
    end: int
    most: int


class _Join:
    """The rows of a task, and their lists, filled for the rows that come before those that look for partners."""

    def __init__(self, task: Meet, listed: tuple[int, int], probing: tuple[int, int]) -> None:
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
        self._fill(0, task.begin if self.own else len(self.listed.fresh))

    def _lists(self, width: int, only_fresh: bool) -> Lists:
        """Return empty lists with room for the rows."""
        bounds = np.zeros(2 * width, np.int32)
        n = kernels.count_lists(self.listed, only_fresh, self.tables, bounds)
        return Lists(bounds, np.empty(n, np.uint64))

    def _fill(self, begin: int, end: int) -> None:
        """List some rows."""
        kernels.fill_lists(self.listed, begin, end, False, self.tables, self.tau, self.all_rows)
        if len(self.new.bounds):
            kernels.fill_lists(self.listed, begin, end, True, self.tables, self.tau, self.new)

    def work(self, begin: int) -> NDArray[np.int64]:
        """Return the work of each row from one on, after those before have looked for partners."""
        work = np.empty(len(self.probing.fresh) - begin, np.int64)
        kernels.count_visits(
            self.probing, self.listed, self.own, begin, self.tables, self.tau, self.all_rows, self.new, work
        )
        return work


def first_meets(job: Job, parts: int, tokens: int) -> list[Meet]:
    """Return a task for each part.

    Parameters
    ----------
    job : Job
        Of the join.
    parts, tokens : int
        How many parts there are, and tokens that were sent to all of them.
    """
    most = max(LEAST_WORK, int(UNEVEN * kernels.A_TOKEN * tokens / max(parts, 1)))
    return [Meet(job, part, part, 0, 0, NO_END, most) for part in range(parts)]


def further_meets(meets: Sequence[Meet], results: Sequence[Mapping[str, Any]], first: int) -> list[Meet]:
    """Return the tasks that some left behind.

    Of rows that are left, each takes as much as ends a task, or the mean of all parts where that is more.

    Parameters
    ----------
    meets, results : sequence
        All tasks so far, and what `meet` returned of each.
    first : int
        Those from this one on have not been asked before.
    """
    most, parts = meets[0].most, 1 + max(task.part for task in meets)
    total = sum(result["work"] for result in results) + sum(result["left"] for result in results[first:])
    step = max(total // parts // most, 1)
    found: list[Meet] = []
    for task, result in zip(meets[first:], results[first:], strict=True):
        if first == 0:
            found += (task._replace(groups=k) for k in range(1, result["groups"]))
        edges = result["edges"]
        shares = pairwise([*edges[:-1:step], *edges[-1:]])
        found += (task._replace(begin=begin, end=end, most=NO_END) for begin, end in shares)
    return [task._replace(number=len(meets) + k) for k, task in enumerate(found)]


def meet(task: Meet) -> dict[str, Any]:
    """Leave the pairs of rows that meet.

    Returns
    -------
    dict
        The ``work`` that was done and the postings that were looked at (``visits``), on how many pairs of ``groups``
        the rows of the part were put, the work that is ``left``, and the ``edges`` of equal shares of its rows.
    """
    facts = task.job.leave("met", task.number, work=lambda out: _meet(task, out))
    return {name: facts[name] for name in ("work", "visits", "groups", "left", "edges")}


def _meet(task: Meet, out: Writer) -> None:
    job, plan = task.job, _plan(task.job)
    groups = _groups(job, task.part)
    join = _Join(task, *groups[task.groups])
    begin, end = task.begin, min(task.end, len(join.probing.fresh))
    n = len(join.listed.fresh)
    room = n + max(2**16, min(n, 2**20))
    met, touched = np.zeros(n, np.uint8), np.empty(n, np.int64)
    pairs, meetings = np.empty(room, np.uint64), np.empty(room, np.uint8)
    cells, work = np.zeros(len(plan.cells), np.int64), 0
    with out.growing("pairs", np.uint64) as append_pairs, out.growing("meetings", np.uint8) as append_meetings:
        while begin < end and work < task.most:
            begin, found, more = kernels.meet(
                join.probing, join.listed, join.own, begin, end, plan.tables, job.tau, join.all_rows, join.new,
                task.most - work, met, touched, (pairs, meetings),
            )  # fmt: skip
            work += more
            append_pairs(pairs[:found])
            append_meetings(meetings[:found])
            rows = (pairs[:found] & kernels.LOW).astype(np.int64)
            cells[1:] += np.searchsorted(rows, plan.cells[1:])
    out.put("cells", cells)
    left = join.work(begin) if begin < end else np.empty(0, np.int64)
    visits = work - kernels.A_TOKEN * int(join.probing.starts[begin] - join.probing.starts[task.begin])
    out.facts = {"pairs": int(cells[-1]), "work": int(work), "visits": int(visits), "groups": len(groups)}
    out.facts |= {"left": int(left.sum()), "edges": (begin + _edges(left, task.most)).tolist()}


def _edges(work: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return the edges of as many equal shares of rows as have at most some work; none where there are no rows."""
    done = np.cumsum(work)
    n = -(-int(work.sum()) // most)
    if n < 1:
        return done[:0]
    inner = np.searchsorted(done, int(done[-1]) * np.arange(1, n) // n)
    return np.unique(np.concatenate([[0], inner, [len(work)]]))


class Verify(NamedTuple):
    """A task: the pairs whose longer row lies in some cells."""

    job: Job
    number: int
    cells: tuple[int, int]
    met: int


def cut_cells(job: Job, met: int) -> list[Verify]:
    """Put cells together while their rows, and the pairs that met, fit."""
    cells = _plan(job).cells
    sizes = np.zeros(len(cells) - 1, np.int64)
    for number in range(met):
        sizes += np.diff(job.left("met", number).whole("cells", np.int64))
    tasks: list[Verify] = []
    first, held = 0, 0
    for k, size in enumerate((sizes * BYTES_A_CANDIDATE + job.memory // CELLS).tolist()):
        if held and (held + size > job.memory // 2 or int(cells[k + 1] - cells[first]) > kernels.MOST_ROWS):
            tasks.append(Verify(job, len(tasks), (first, k), met))
            first, held = k, 0
        held += size
    return [*tasks, Verify(job, len(tasks), (first, len(sizes)), met)] if len(sizes) else []


def verify(task: Verify) -> dict[str, int]:
    """Leave the similar pairs whose longer row lies in some cells; return how many, and in how many stores."""
    job = task.job
    try:
        facts = job.left("verified", task.number).facts
        for place in stores(job, {task.number: facts["stores"]}):
            opened(place, "pairs", verify=None)
    except InputError:
        remove_tree(job.path("verified", task.number))
        facts = job.leave("verified", task.number, work=lambda out: out.facts.update(_verified(task)))
    return {name: int(facts[name]) for name in ("pairs", "stores", "candidates", "verifications")}


def stores(job: Job, verified: Mapping[int, int]) -> list[Path]:
    """Return where pairs lie, from how many stores each task of `verify` left."""
    return [_place(job, task, k) for task, count in verified.items() for k in range(count)]


def _place(job: Job, task: int, number: int) -> Path:
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
    """Cut the rows of a task so that the pairs that met fit: in a single cell all rows may resemble one another."""
    job = task.job
    start, stop = _plan(job).cells[list(task.cells)].tolist()
    met = [_met_in(task, number) for number in range(task.met)]
    if sum(end - begin for _, begin, end in met) * BYTES_A_CANDIDATE <= job.memory // 2:
        yield start, stop
        return
    counts = np.zeros(stop - start, np.int64)
    for reader, begin, end in met:
        for first in range(begin, end, PIECE):
            rows = reader.part("pairs", np.uint64, first, min(first + PIECE, end)) & kernels.LOW
            counts += np.bincount(rows.astype(np.int64) - start, minlength=len(counts))
    edges = start + stretches(row_starts(counts), 0, job.memory // 2, BYTES_A_CANDIDATE, BYTES_A_ROW)
    yield from pairwise(edges.tolist())


def _verify_rows(task: Verify, span: tuple[int, int], listing: _Listing) -> tuple[int, int]:
    """List the similar pairs whose longer row lies in a span; return how many met, and how many were compared."""
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
    longer = (keys & np.uint64(kernels.MOST_ROWS - 1)).astype(np.int64)
    del keys
    _require_undamaged(int(shorter.max(initial=0)) < stop and int(longer.max(initial=0)) < stop - start, job)
    for first, last in _windows(shorter, plan.cells, max(job.memory // CELLS // BYTES_COMPARED, 1)):
        wanted, at = np.unique(shorter[first:last], return_inverse=True)
        other = _gathered(reader, wanted)
        similar = np.empty(last - first, np.int64), np.empty(last - first)
        n = kernels.compare(one, longer[first:last], other, at, job.tau, similar)
        places, similarity = similar[0][:n], similar[1][:n]
        listing.add(groups, longer[first:last][places], _members(job, reader, wanted), at[places], similarity)
    return candidates, len(shorter)


class _Listing:
    """Pairs of documents on their way to stores, of which each is sorted by (i, j) and takes a share of the budget."""

    def __init__(self, task: Verify) -> None:
        self.task = task
        room = max(task.job.memory // 4 // BYTES_LISTED, 2**10)
        self.out = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
        self.held = self.stores = self.pairs = 0

    def add(
        self, one: Groups, a: NDArray[np.int64], other: Groups, b: NDArray[np.int64], similarity: FloatArray
    ) -> None:
        """List what pairs of rows stand for; those of a row with itself stand for its copies."""
        own, new_from = one is other, self.task.job.new_from
        self.pairs += _count(one, a, other, b, own)
        require_listable(self.pairs)
        at = np.zeros(3, np.int64)
        while at[0] < len(a):
            free = tuple(column[self.held :] for column in self.out)
            self.held += kernels.list_pairs(one, a, other, b, own, similarity, new_from, at, free)
            if at[0] < len(a):
                self.write()

    def write(self) -> None:
        """Leave a store of what is held."""
        i, j, similarity = (column[: self.held] for column in self.out)
        order = np.lexsort((j, i))
        with writing(_place(self.task.job, self.task.number, self.stores), "pairs") as out:
            out.put("i", i[order])
            out.put("j", j[order])
            out.put("similarity", similarity[order])
            out.facts = {"pairs": len(order)}
        self.held, self.stores = 0, self.stores + 1


def _count(one: Groups, a: NDArray[np.int64], other: Groups, b: NDArray[np.int64], own: bool) -> int:
    """Return how many pairs of documents pairs of rows stand for, without looking at each: all but those of two old."""
    found = 0.0  # so that what is beyond counting does not wrap
    for sign, x, y in (1, one.sizes[a], other.sizes[b]), (-1, one.old[a], other.old[b]):
        found += sign * float((x.astype(np.float64) * (y - own)).sum())
    return int(found) // (1 + own)


def _met_in(task: Verify, number: int) -> tuple[Reader, int, int]:
    """Open the pairs of a task that looked for them, and say where those of the cells begin and end."""
    reader = task.job.left("met", number)
    begin, end = reader.whole("cells", np.int64)[list(task.cells)].tolist()
    return reader, begin, end


def _keys(task: Verify, span: tuple[int, int]) -> NDArray[np.uint64]:
    """Read the pairs that met and whose longer row lies in a span."""
    found = [np.empty(0, np.uint64)]
    whole = _plan(task.job).cells[list(task.cells)].tolist() == list(span)
    for number in range(task.met):
        reader, begin, end = _met_in(task, number)
        if not whole:
            rows, among = partial(_longer, reader), range(begin, end)
            begin, end = (begin + bisect_left(among, row, key=rows) for row in span)
        if begin < end:
            found.append(np.empty(end - begin, np.uint64))
            pairs, meetings = (reader.part(n, t, begin, end) for n, t in (("pairs", np.uint64), ("meetings", np.uint8)))
            kernels.pack_keys(pairs, meetings, span[0], found[-1])
    return np.concatenate(found)


def _longer(reader: Reader, place: int) -> int:
    """Return the longer row of a pair that met."""
    return int(reader.part("pairs", np.uint64, place, place + 1)[0] & kernels.LOW)


def _windows(rows: NDArray[np.int64], cells: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Cut ascending rows by the cells they lie in, and into no more than some of them."""
    edges = np.union1d(np.searchsorted(rows, cells), np.arange(0, len(rows), most))
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if first < last:
            yield first, last


def _gathered(reader: Reader, rows: NDArray[np.int64]) -> Block:
    """Read some rows, ascending; what lies between near ones is read with them."""
    blocks = [_some(reader, run) for run in _near(rows)]
    starts = np.cumsum([0, *(int(block.indptr[-1]) for block in blocks)])
    return Block(
        np.concatenate([np.zeros(1, np.int64), *(b.indptr[1:] + s for b, s in zip(blocks, starts, strict=False))]),
        np.concatenate([np.empty(0, np.int32), *(block.ids for block in blocks)]),
        np.concatenate([np.empty(0, np.int32), *(block.counts for block in blocks)]),
        np.concatenate([np.empty(0, np.int64), *(block.lengths for block in blocks)]),
    )


def _some(reader: Reader, run: NDArray[np.int64]) -> Block:
    """Read some rows that lie near one another."""
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
    numbers = np.concatenate([np.empty(0, np.int64), *(_numbers(reader, run) for run in _near(rows))])
    copied, copies = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for number in np.unique(np.searchsorted(spans, rows, side="right") - 1).tolist():
        left = job.left("spread", number)
        if left.facts["copies"]:
            copied.append(left.whole("copied", np.int64))
            copies.append(left.whole("copies", np.int64))
    of, copy = np.concatenate(copied), np.concatenate(copies)
    begin, end = np.searchsorted(of, rows), np.searchsorted(of, rows, side="right")
    sizes = 1 + end - begin
    starts = row_starts(sizes)
    members = np.repeat(numbers, sizes)
    places = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
    members[places > 0] = copy[(np.repeat(begin, sizes) + places - 1)[places > 0]]
    return Groups(starts, members, sizes, np.diff(row_starts(members < job.new_from)[starts]))


def _numbers(reader: Reader, run: NDArray[np.int64]) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = reader.part("rows", np.int64, int(run[0]), int(run[-1]) + 1)[run - run[0]]
    return numbers
