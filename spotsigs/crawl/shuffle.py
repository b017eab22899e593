"""The tasks of the join on disk: prefixes go out by signature, pairs come back by row.

Five rounds, each task with inputs that it names and a result of its own, so that it can run again anywhere:

1. `sample`: what a few rows of each stretch of the store would send, by range of signatures; equal parts follow.
2. `spread`: the rows of a stretch, copies collapsed, send the rarest signatures of each row to their parts.
3. `weigh`: how many rows the rows of a part will look at.
4. `meet`: pairs of rows with a signature of a part in both prefixes, each once, and how many of them they share.
5. `verify`: the pairs of some rows from all parts; those with enough meetings are compared, and stand for their copies.

Bytes that go through the store grow with the rows, with what they send, and with the pairs that meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.crawl import shuffle_kernels as kernels
from spotsigs.crawl.rounds import Rounds
from spotsigs.crawl.shuffle_kernels import Block, Groups, Lists, Runs, Share
from spotsigs.disk.places import is_remote
from spotsigs.disk.store import Reader, Writer, check_rows, opened, writing
from spotsigs.errors import InputError, require
from spotsigs.matching.bounds import least_overlap, prefixes
from spotsigs.records import FloatArray, RowNumbers, Vectors, require_listable

BYTES_SPREAD = 56
"""What `spread` holds for each entry of its rows."""

BYTES_A_ROW = 120
"""What it holds for each row."""

BYTES_MEET = 48
"""What `meet` holds for each token of its part."""

BYTES_A_SIGNATURE = 16
"""What it holds for each signature of its part."""

BYTES_A_CANDIDATE = 48
"""What `verify` holds for each pair that met, and for each similar one."""

BYTES_A_PAIR = 128
"""What sorting and naming pairs holds for each of them."""

CELLS = 32
"""Stretches that `verify` puts together, to as many of a budget."""

BINS = 4096
"""Ranges of signatures that parts are made of."""

SAMPLED = 32
"""One row in this many is sampled to learn how many signatures go to each part."""

LEAST_TOKENS = 2**21
"""Tokens of a part below which another one would cost more than it gives."""

LEAST_WORK = 2**25
"""Work that is never split: about a tenth of a second."""

UNEVEN = 1.5
"""Work of a task, as a multiple of the mean of all parts, beyond which it is split."""

A_TOKEN = 16
"""Work of a token that is read and listed, where looking at a posting is 1."""

GAP = 64
"""Rows that are read, though nobody asked for them, rather than begin another read."""

REMOTE_GAP = 1 << 13


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
        out.facts["spans"] = len(spans) - 1

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
    whole = {name: reader.part(name, np.int64, 0, reader.length(name)) for name in (*Runs._fields, "spans", "cells")}
    return Plan(Runs(*(whole[name] for name in Runs._fields)), whole["spans"], whole["cells"])


@lru_cache(2)
def _classes(job: Job) -> NDArray[np.uint8]:
    """Return the class of each signature; the classes held at once fill an eighth of the budget."""
    reader = job.vectors()
    size = int(reader.facts["n_signatures"])
    table = np.zeros(max(min(size, job.memory // 8), 1), np.uint8)
    for start in range(0, size, len(table)):
        part = reader.part("classes", np.uint8, start, min(start + len(table), size))
        np.maximum(table[: len(part)], part, out=table[: len(part)])
    return table


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
    vectors = Vectors(
        indptr=indptr - first,
        ids=reader.part("ids", np.int32, first, last),
        counts=reader.part("counts", np.int32, first, last),
        lengths=reader.part("lengths", np.int64, start, stop),
        doc_ids=RowNumbers(stop - start),
    )
    check_rows(reader, vectors.indptr, vectors.ids, vectors.counts, vectors.lengths)
    return vectors, rows


def _require_rising(reader: Reader, indptr: NDArray[np.int64]) -> None:
    rising = bool((indptr[1:] >= indptr[:-1]).all())
    require(rising, f"the rows of the store {reader.folder} are damaged; build the store again")


def sample(task: tuple[Job, int]) -> NDArray[np.int64]:
    """Return how many tokens the rows of a stretch will send from each range of signatures, from some of them."""
    job, number = task
    start, stop = (int(edge) for edge in _plan(job).spans[number : number + 2])
    some = max((stop - start) // SAMPLED, min(stop - start, 1000))
    middle = start + (stop - start - some) // 2
    vectors, _ = read_block(job.vectors(), (middle, middle + some))
    tokens, _ = _tokens(job, vectors, middle, np.arange(some, dtype=np.int32))
    bins = np.zeros(BINS, np.int64)
    kernels.tally(tokens, _width(job), bins)
    return bins * (stop - start) // some


def _width(job: Job) -> int:
    return -(-max(int(job.vectors().facts["n_signatures"]), 1) // BINS)


def _tokens(
    job: Job, vectors: Vectors, first_row: int, copy_of: NDArray[np.int32]
) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Return the tokens of the prefixes of rows, and the row of each."""
    tables = _plan(job).tables
    runs = np.searchsorted(tables.rows, np.arange(first_row, first_row + len(vectors)), side="right") - 1
    room = len(vectors.ids)
    out = np.empty(room, np.uint64), np.empty(room, np.int32)
    n = kernels.spread_rows(
        vectors.indptr, vectors.ids, vectors.counts, runs, 0, len(vectors), copy_of, tables, _classes(job), out
    )
    return out[0][:n], out[1][:n]


def cut_parts(job: Job, bins: NDArray[np.int64]) -> int:
    """Leave where the parts begin, from how many tokens each range of signatures sends; return how many there are."""

    def work(out: Writer) -> None:
        size = int(job.vectors().facts["n_signatures"])
        width = _width(job)
        cost = bins * BYTES_MEET + width * BYTES_A_SIGNATURE
        n = max(-(-int(cost.sum()) * 2 // max(job.memory, 1)), int(bins.sum()) // LEAST_TOKENS, 1)
        # a range with a part's share or more begins and ends one
        before = np.cumsum(cost) - cost // 2
        part = np.minimum(before * n // max(int(cost.sum()), 1), n - 1)
        first = np.flatnonzero(np.diff(part, prepend=-1))
        edges = np.minimum(np.append(first * width, size), size)
        out.put("edges", np.unique(edges) if size else np.array([0, 1], np.int64))
        out.facts["parts"] = len(np.unique(edges)) - 1 if size else 1

    return int(job.leave("parts", work=work)["parts"])


def spread(task: tuple[Job, int]) -> int:
    """Send the prefixes of a stretch of rows to their parts; return how many tokens they have."""
    job, number = task
    return int(job.leave("spread", number, work=lambda out: _spread(job, number, out))["tokens"])


def _spread(job: Job, number: int, out: Writer) -> None:
    from spotsigs.matching.stages import Stages, inputs, read

    edges = _whole(job.left("parts"), "edges")
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

    tokens, rows = _tokens(job, vectors, start, copy_of)
    shift = max(int(edges[-1]).bit_length() - 16, 0)
    near = np.searchsorted(edges, np.arange(0, int(edges[-1]) + 1, 1 << shift), side="right").astype(np.int32) - 1
    starts = np.zeros((2, len(edges) + 1), np.int64)
    part = np.empty(len(tokens), np.int32)
    kernels.count_parts(tokens, rows, edges, np.minimum(near, len(edges) - 2).astype(np.int32), shift, part, starts)
    n = int(starts[0, -1])
    parted, heads, places = np.empty_like(tokens), np.zeros(n, np.uint64), np.empty(n, np.int32)
    kernels.fill_parts(tokens, rows, part, start, fresh, starts, (parted, heads, places))
    sketches = np.empty(len(vectors), np.uint64)
    kernels.sketch_rows(vectors.indptr, vectors.ids, vectors.counts, sketches)
    out.put("tokens", parted)
    out.put("heads", heads)
    out.put("sketches", sketches[places])
    out.put("head_starts", starts[0, :-1])
    out.put("token_starts", starts[1, :-1])
    out.facts = {"tokens": len(tokens), "copies": len(copies)}


def _whole(reader: Reader, name: str) -> NDArray[np.int64]:
    return reader.part(name, np.int64, 0, reader.length(name))


@lru_cache(256)
def _sent(job: Job, number: int) -> tuple[Reader, NDArray[np.int64], NDArray[np.int64]]:
    """Open what a stretch sent; return also where the rows and the tokens of each part start."""
    reader = job.left("spread", number)
    return reader, _whole(reader, "head_starts"), _whole(reader, "token_starts")


_NOTHING = np.empty(0, np.uint64)


def _groups(job: Job, part: int) -> list[tuple[int, int]]:
    """Put the stretches together whose tokens of a part fit into half of the budget."""
    held, groups, first = 0, [], 0
    n = len(_plan(job).spans) - 1
    for number in range(n):
        _, _, tokens = _sent(job, number)
        size = int(tokens[part + 1] - tokens[part]) * BYTES_MEET
        if held and held + size > job.memory // 2:
            groups.append((first, number))
            held, first = 0, number
        held += size
    return [*groups, (first, n)]


def _share(job: Job, part: int, group: tuple[int, int]) -> Share:
    """Read what some stretches sent to a part."""
    columns: dict[str, list[NDArray[np.uint64]]] = {"heads": [], "sketches": [], "tokens": []}
    for number in range(*group):
        reader, heads, tokens = _sent(job, number)
        for name, starts in (("heads", heads), ("sketches", heads), ("tokens", tokens)):
            begin, end = int(starts[part]), int(starts[part + 1])
            columns[name].append(reader.part(name, np.uint64, begin, end) if begin < end else _NOTHING)
    sent, sketches, of_rows = (np.concatenate(columns.pop(name)) for name in tuple(columns))
    n, tables = len(sent), _plan(job).tables
    edges = job.left("parts").part("edges", np.int64, part, part + 2)
    numbers, size = sent >> np.uint64(32), int((sent & np.uint64(2**31 - 1)).sum())
    sound = size == len(of_rows) and bool((numbers[1:] > numbers[:-1]).all())
    sound = sound and int(numbers[-1:].max(initial=0)) < int(tables.rows[-1])
    sound = sound and int(of_rows.min(initial=int(edges[0]) << 32)) >> 32 >= int(edges[0])
    sound = sound and int(of_rows.max(initial=0)) >> 32 < int(edges[1])
    _require_undamaged(sound, job)
    share = Share(
        marks=np.empty(2 * n, np.uint64),
        fresh=np.empty(n, np.bool_),
        first=np.zeros(len(tables.rows), np.int64),
        starts=np.zeros(n + 1, np.int64),
        tokens=of_rows,
    )
    kernels.read_heads(sent, sketches, tables, share)
    return share


def _require_undamaged(sound: bool, job: Job) -> None:
    """Refuse numbers that no kernel may use as places."""
    require(sound, f"what the join left in {job.folder} is damaged; delete that folder and run again")


def _lists(job: Job, share: Share, base: int, width: int, only_fresh: bool) -> Lists:
    """Return empty lists with room for the rows of a share."""
    bounds = np.zeros(2 * width, np.int32)
    n = kernels.count_lists(share, only_fresh, _plan(job).tables, base, bounds)
    return Lists(bounds, np.empty(n, np.uint64))


_NO_LISTS = Lists(np.empty(0, np.int32), np.empty(0, np.uint64))


class Meeting(NamedTuple):
    """One group of rows of a part that looks for partners in another one, or in itself, and its work."""

    part: int
    listed: tuple[int, int]
    probing: tuple[int, int]
    work: int


class _Join:
    """The rows of a meeting, and their lists, filled for the rows that come before those that look for partners."""

    def __init__(self, job: Job, meeting: Meeting) -> None:
        self.job, self.own = job, meeting.listed == meeting.probing
        edges = job.left("parts").part("edges", np.int64, meeting.part, meeting.part + 2)
        self.base, width = int(edges[0]), int(edges[1] - edges[0])
        self.listed = _share(job, meeting.part, meeting.listed)
        self.probing = self.listed if self.own else _share(job, meeting.part, meeting.probing)
        self.all_rows = _lists(job, self.listed, self.base, width, False)
        self.new = _lists(job, self.listed, self.base, width, True) if job.new_from else _NO_LISTS

    def fill(self, begin: int, end: int) -> None:
        """List some rows."""
        tables = _plan(self.job).tables
        kernels.fill_lists(self.listed, begin, end, False, tables, self.job.tau, self.base, self.all_rows)
        if len(self.new.bounds):
            kernels.fill_lists(self.listed, begin, end, True, tables, self.job.tau, self.base, self.new)

    def work(self) -> NDArray[np.int64]:
        """Return the work of each row, filling the lists."""
        if not self.own:
            self.fill(0, len(self.listed.fresh))
        work = A_TOKEN * np.diff(self.probing.starts)
        job = self.job
        kernels.count_visits(
            self.probing, self.listed, self.own, _plan(job).tables, job.tau, self.base, self.all_rows, self.new, work
        )
        return work


def weigh(task: tuple[Job, int]) -> list[Meeting]:
    """Return the meetings of a part, one where its rows fit into the budget, and the work of each."""
    job, part = task

    def work(out: Writer) -> None:
        groups = _groups(job, part)
        meetings = [Meeting(part, a, b, 0) for k, b in enumerate(groups) for a in groups[: k + 1]]
        out.facts["meetings"] = [m._replace(work=int(_Join(job, m).work().sum())) for m in meetings]

    facts = job.leave("weigh", part, work=work)["meetings"]
    return [Meeting(p, (a[0], a[1]), (b[0], b[1]), w) for p, a, b, w in facts]


class Meet(NamedTuple):
    """A task: the ``k``-th of ``n`` shares of a meeting's work."""

    job: Job
    number: int
    meeting: Meeting
    k: int
    n: int


def cut_meetings(job: Job, meetings: Sequence[Meeting]) -> list[Meet]:
    """Split the meetings with more work than most, so that no task has three times the mean."""
    mean = sum(m.work for m in meetings) / max(len(meetings), 1)
    most = max(LEAST_WORK, UNEVEN * mean)
    shares = [(m, k, n) for m in meetings if m.work for n in (int(-(-m.work // most)),) for k in range(n)]
    return [Meet(job, number, *share) for number, share in enumerate(shares)]


def meet(task: Meet) -> dict[str, Any]:
    """Leave the pairs of rows that meet; return how many there are of each cell."""
    facts = task.job.leave("met", task.number, work=lambda out: _meet(task, out))
    return {"pairs": int(facts["pairs"]), "visits": int(facts["visits"])}


def _meet(task: Meet, out: Writer) -> None:
    job, plan = task.job, _plan(task.job)
    join = _Join(job, task.meeting)
    begin, end = 0, len(join.probing.fresh)
    if task.n > 1:
        done = np.cumsum(_Join(job, task.meeting).work())
        edges = np.searchsorted(done, int(done[-1]) * np.arange(task.n + 1) // task.n, side="left")
        edges[0], edges[-1] = 0, end
        begin, end = int(edges[task.k]), int(edges[task.k + 1])
    n = len(join.listed.fresh)
    join.fill(0, begin if join.own else n)
    room = n + max(2**16, min(n, 2**20))
    met, touched = np.zeros(n, np.uint8), np.empty(n, np.int64)
    pairs, meetings = np.empty(room, np.uint64), np.empty(room, np.uint8)
    cells, visits = np.zeros(len(plan.cells), np.int64), 0
    with out.growing("pairs", np.uint64) as append_pairs, out.growing("meetings", np.uint8) as append_meetings:
        while begin < end:
            begin, found, scanned = kernels.meet(
                join.probing, join.listed, join.own, begin, end, plan.tables, job.tau, join.base,
                join.all_rows, join.new, met, touched, (pairs, meetings),
            )  # fmt: skip
            visits += scanned
            append_pairs(pairs[:found])
            append_meetings(meetings[:found])
            rows = (pairs[:found] & kernels.LOW).astype(np.int64)
            cells[1:] += np.searchsorted(rows, plan.cells[1:])
    out.put("cells", cells)
    out.facts = {"pairs": int(cells[-1]), "visits": int(visits)}


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
        sizes += np.diff(_whole(job.left("met", number), "cells"))
    tasks: list[Verify] = []
    first, held = 0, 0
    for k, size in enumerate((sizes * BYTES_A_CANDIDATE + job.memory // CELLS).tolist()):
        if held and (held + size > job.memory // 2 or int(cells[k + 1] - cells[first]) > kernels.MOST_ROWS):
            tasks.append(Verify(job, len(tasks), (first, k), met))
            first, held = k, 0
        held += size
    return [*tasks, Verify(job, len(tasks), (first, len(sizes)), met)] if len(sizes) else []


def verify(task: Verify) -> dict[str, int]:
    """Leave the similar pairs whose longer row lies in some cells; return how many there are."""
    target = task.job.path(f"{task.number:08d}")
    try:
        facts = opened(target, "pairs", verify=None).facts
    except InputError:
        i, j, similarity, counters = _verified(task)
        order = np.lexsort((j, i))
        with writing(target, "pairs") as out:
            out.put("i", i[order])
            out.put("j", j[order])
            out.put("similarity", similarity[order])
            out.facts = {"pairs": len(order), **counters}
        facts = out.facts
    return {name: int(facts[name]) for name in ("pairs", "candidates", "verifications")}


Found = tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]


def _verified(task: Verify) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray, dict[str, int]]:
    job, plan, reader = task.job, _plan(task.job), task.job.vectors()
    start, stop = int(plan.cells[task.cells[0]]), int(plan.cells[task.cells[1]])
    keys = _keys(task, start)
    counters = {"candidates": len(keys)}
    keys.sort()
    keys = keys[: kernels.merge(keys, plan.tables)].copy()
    counters["verifications"] = len(keys)
    rows = np.arange(start, stop)
    one, groups = _gathered(reader, rows), _members(job, reader, rows)
    found = [_copies(groups, job.new_from)]
    shorter = (keys >> np.uint64(24)).astype(np.int64)
    longer = (keys & np.uint64(kernels.MOST_ROWS - 1)).astype(np.int64)
    del keys
    _require_undamaged(int(shorter.max(initial=0)) < stop and int(longer.max(initial=0)) < stop - start, job)
    total = len(found[0][0])
    for first, last in _windows(shorter, plan.cells):
        wanted, at = np.unique(shorter[first:last], return_inverse=True)
        other = _gathered(reader, wanted)
        similar = np.empty(last - first, np.int64), np.empty(last - first)
        n = kernels.compare(one, longer[first:last], other, at, job.tau, similar)
        places, similarity = similar[0][:n], similar[1][:n]
        found.append(_spread_over(groups, longer[first:last][places], _members(job, reader, wanted), at[places],
                                  similarity, job.new_from))  # fmt: skip
        total += len(found[-1][0])
        require_listable(total)
    i, j, similarity = (np.concatenate(column) for column in zip(*found, strict=True))
    return i, j, similarity, counters


def _keys(task: Verify, start: int) -> NDArray[np.uint64]:
    found = [np.empty(0, np.uint64)]
    for number in range(task.met):
        reader = task.job.left("met", number)
        edges = _whole(reader, "cells")
        begin, end = int(edges[task.cells[0]]), int(edges[task.cells[1]])
        if begin < end:
            found.append(np.empty(end - begin, np.uint64))
            pairs, meetings = (reader.part(n, t, begin, end) for n, t in (("pairs", np.uint64), ("meetings", np.uint8)))
            kernels.pack_keys(pairs, meetings, start, found[-1])
    return np.concatenate(found)


def _windows(rows: NDArray[np.int64], cells: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Cut ascending rows by the cells they lie in."""
    edges = np.searchsorted(rows, cells)
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if first < last:
            yield first, last


def _gathered(reader: Reader, rows: NDArray[np.int64]) -> Block:
    """Read some rows, ascending; what lies between near ones is read with them."""
    blocks = [_some(reader, run) for run in _near(rows, reader)]
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
    block = Block(indptr - first, ids, counts, reader.part("lengths", np.int64, start, stop))
    if stop - start == len(run):
        return block
    at = run - start
    ends = np.cumsum(block.indptr[at + 1] - block.indptr[at])
    n = int(ends[-1])
    out = Block(np.append(0, ends), np.empty(n, np.int32), np.empty(n, np.int32), np.empty(len(run), np.int64))
    kernels.gather(block, at, out)
    return out


def _near(rows: NDArray[np.int64], reader: Reader) -> list[NDArray[np.int64]]:
    """Cut ascending rows where a gap is worth another read."""
    gap = REMOTE_GAP if is_remote(reader.folder) else GAP
    return np.split(rows, np.flatnonzero(np.diff(rows) > gap) + 1) if len(rows) else []


def _members(job: Job, reader: Reader, rows: NDArray[np.int64]) -> Groups:
    """Return the document numbers of some rows, ascending, and of their copies."""
    spans = _plan(job).spans
    numbers = np.concatenate([np.empty(0, np.int64), *(_numbers(reader, run) for run in _near(rows, reader))])
    copied, copies = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for number in np.unique(np.searchsorted(spans, rows, side="right") - 1).tolist():
        left = job.left("spread", number)
        if left.facts["copies"]:
            copied.append(_whole(left, "copied"))
            copies.append(_whole(left, "copies"))
    of, copy = np.concatenate(copied), np.concatenate(copies)
    begin, end = np.searchsorted(of, rows), np.searchsorted(of, rows, side="right")
    sizes = 1 + end - begin
    starts = row_starts(sizes)
    members = np.repeat(numbers, sizes)
    places = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
    members[places > 0] = copy[(np.repeat(begin, sizes) + places - 1)[places > 0]]
    return Groups(starts, members)


def _numbers(reader: Reader, run: NDArray[np.int64]) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = reader.part("rows", np.int64, int(run[0]), int(run[-1]) + 1)[run - run[0]]
    return numbers


def _room(n: int) -> Found:
    require_listable(n)
    return np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)


def _copies(groups: Groups, new_from: int) -> Found:
    out = _room(kernels.count_copies(groups, new_from))
    kernels.fill_copies(groups, new_from, out)
    return out


def _spread_over(
    one: Groups, a: NDArray[np.int64], other: Groups, b: NDArray[np.int64], similarity: FloatArray, new_from: int
) -> Found:
    out = _room(kernels.count_members(one, a, other, b, new_from))
    kernels.fill_members(one, a, other, b, similarity, new_from, out)
    return out
