"""The exact join of a store that does not fit into memory: two blocks of neighbouring lengths at a time.

Rows lie in ascending order of length, so a block is a range of rows, and two blocks can hold a similar pair only if
the longest row of the shorter block and the shortest row of the longer one pass the test ``shorter / longer >= tau``:
the intersection is at most the shorter length, the union at least the longer one, and float64 division is monotonic.
These are the partitions of the paper (section 4.1), cut further where one alone exceeds the budget.

Each task names a store and two ranges of rows, reads them, and leaves its pairs in a file of its own. So no array
passes through an engine, a task can run again anywhere, and what is complete need not. A task measures its work first
(`block_cost`); where that is too much, it leaves, in place of pairs, the parts into which it falls, and those
run in a second round. No part depends on the engine or on how many workers it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from tqdm import tqdm

from spotsigs.arrays.dense import renumbered
from spotsigs.crawl.block_cost import MOST_WORK, SAMPLE, bound, counted, cuts, limit
from spotsigs.crawl.layout import find
from spotsigs.disk.places import absolute, place
from spotsigs.disk.store import Reader, StoredVectors, check_rows, claim, fingerprint, open_vectors, opened, writing
from spotsigs.engines import Engine
from spotsigs.errors import InputError, require, require_tau
from spotsigs.judging.clusters import Method, _numbered
from spotsigs.records import Clusters, FloatArray, IntArray, Pairs, RowNumbers, Vectors

BYTES_AN_OCCURRENCE = 64
"""What a join holds for each occurrence of its rows: at most 58 were measured."""

BYTES_A_ROW = 120
"""What it holds for each row."""

BYTES_A_PAIR = 128
"""What sorting and naming pairs holds for each of them."""

Block = tuple[int, int]
"""First and last row of a range of a store."""


@dataclass(frozen=True, kw_only=True)
class BlockTask:
    """One join of two blocks, or of a block with itself.

    Attributes
    ----------
    store : str
        Place of the vectors.
    target : str
        Place of the pairs.
    a, b : tuple of int
        Ranges of rows: the pairs of a row of ``a`` with a row of ``b`` behind it are wanted. Either ``a`` lies before
        ``b``, or ``b`` is the end of ``a``, or all of it.
    tau : float
        Similarity threshold.
    new_from : int
        Only pairs with a document of at least this number are wanted.
    threads : int or None
        Threads of the kernels.
    most : int
        Work beyond which a task is not done but split, see `spotsigs.crawl.block_cost.limit`; 0 for a part of one.
    """

    store: str
    target: str
    a: Block
    b: Block
    tau: float
    new_from: int = 0
    threads: int | None = 1
    most: int = 0


def plan(stored: StoredVectors, tau: float, *, memory: int) -> list[tuple[Block, Block]]:
    """Return the pairs of blocks that must be joined.

    Parameters
    ----------
    stored : StoredVectors
        The rows.
    tau : float
        Similarity threshold.
    memory : int
        Bytes that one join may hold.

    Returns
    -------
    list of (Block, Block)
        Each with itself, and with every longer one that can hold a partner.
    """
    require_tau(tau)
    lengths = stored.vectors.lengths
    first = int(np.searchsorted(lengths, 1))
    blocks = _blocks(stored.vectors.indptr, first, memory // 2)
    found = []
    for at, a in enumerate(blocks):
        longest = int(lengths[a[1] - 1])
        for b in blocks[at:]:
            if longest < int(lengths[b[0]]) and longest / int(lengths[b[0]]) < tau:
                break
            found.append((a, b))
    return found


def _blocks(indptr: NDArray[np.int64], first: int, budget: int) -> list[Block]:
    """Cut the rows behind `first` into blocks whose cost fits the budget; a row too long for it is a block."""
    cost = (indptr[first:] - indptr[first]) * BYTES_AN_OCCURRENCE + np.arange(len(indptr) - first) * BYTES_A_ROW
    blocks = []
    start, n = 0, len(cost) - 1
    while start < n:
        stop = int(np.searchsorted(cost, cost[start] + budget, side="right")) - 1
        stop = min(max(stop, start + 1), n)
        blocks.append((first + start, first + stop))
        start = stop
    return blocks


def estimate(stored: StoredVectors, tau: float, *, memory: int) -> dict[str, int]:
    """Return what a join of the store will take: tasks, and the bytes the largest of them holds."""
    indptr = stored.vectors.indptr
    tasks = plan(stored, tau, memory=memory)
    largest = 0
    for a, b in tasks:
        rows = {a, b}
        entries = sum(int(indptr[stop] - indptr[start]) for start, stop in rows)
        largest = max(largest, entries * BYTES_AN_OCCURRENCE + sum(y - x for x, y in rows) * BYTES_A_ROW)
    return {"tasks": len(tasks), "bytes_a_task": largest, "store_bytes": 8 * int(indptr[-1]) + 40 * len(stored)}


def join_store(
    store: str | Path,
    folder: str | Path,
    tau: float,
    engine: Engine,
    *,
    memory: int,
    new_from: int = 0,
    threads: int | None = 1,
    most: int = MOST_WORK,
) -> PairFiles:
    """Find all pairs of a store with multiset Jaccard similarity at least tau.

    Parameters
    ----------
    store : str or Path
        Place of the vectors, where all workers can read it.
    folder : str or Path
        Place of the pairs. What a former call with the same arguments left complete is kept.
    tau : float
        Similarity threshold in (0, 1].
    engine : Engine
        Where the tasks run; the result does not depend on it.
    memory : int
        Bytes that one task may hold. A single document, or pairs beyond counting, can exceed it.
    new_from : int
        Report only pairs with at least one document of this number or higher: new against old and new against new.
        Old pairs are not even looked for.
    threads : int or None
        Threads of one task's kernels; with several workers, one.
    most : int
        Work of a task beyond which it is split, see `spotsigs.crawl.block_cost`.

    Returns
    -------
    PairFiles
        The pairs that one join of all rows gives. The counter ``tasks`` is how many joins were made, ``split`` how
        many tasks fell into parts.

    Raises
    ------
    InputError
        If tau is out of range, or the folder holds the pairs of another join.
    """
    stored = open_vectors(store, verify=None)
    folder = place(folder)
    job = {"checksum": fingerprint(place(store)), "tau": tau, "new_from": new_from, "memory": memory, "most": most}
    require(
        not claim(folder, "job.json", job),
        f"{folder} holds the pairs of another join; give another place or delete it",
    )
    whole = BlockTask(
        store=absolute(store), target="", a=(0, 0), b=(0, 0), tau=tau, new_from=new_from, threads=threads, most=most
    )
    indptr = stored.vectors.indptr
    tasks = [
        (replace(whole, target=absolute(folder / f"{k:08d}"), a=a, b=b), _entries(indptr, a, b))
        for k, (a, b) in enumerate(plan(stored, tau, memory=memory))
    ]
    found = _dearest_first(engine, tasks, "joining")
    parts = [
        (replace(task, target=f"{task.target}-{k:04d}", a=_before(task, stop), b=(start, stop), most=0), work)
        for (task, _), facts in zip(tasks, found, strict=True)
        for k, (start, stop, work) in enumerate(facts["parts"])
    ]
    _dearest_first(engine, parts, "joining parts of dear tasks")
    folders = [place(target) for target in sorted(task.target for task, _ in (*tasks, *parts))]
    split = sum(bool(facts["parts"]) for facts in found)
    return PairFiles(tuple(folders), len(stored), counters={"tasks": len(tasks) + len(parts) - split, "split": split})


def _entries(indptr: NDArray[np.int64], *blocks: Block) -> int:
    return sum(int(indptr[stop] - indptr[start]) for start, stop in set(blocks))


def _before(task: BlockTask, stop: int) -> Block:
    """Return the rows that a part of a task, whose rows end at `stop`, is joined with."""
    return task.a if task.a != task.b else (task.a[0], stop)


def _dearest_first(engine: Engine, tasks: Sequence[tuple[BlockTask, int]], name: str) -> list[dict[str, Any]]:
    """Run tasks in descending order of their work, so that none begins when the others end; return the facts of each.

    Files are named before, so that the order leaves no trace.
    """
    order = sorted(range(len(tasks)), key=lambda k: -tasks[k][1])
    done = engine.map(join_blocks, [tasks[k][0] for k in order])
    progress = tqdm(done, name, total=len(tasks), unit=" blocks", disable=None, leave=False)
    facts = dict(zip(order, progress, strict=True))
    return [facts[k] for k in range(len(tasks))]


def join_blocks(task: BlockTask) -> dict[str, Any]:
    """Run one task, unless its result is there.

    Returns
    -------
    dict
        ``pairs``: how many it has; ``parts``: first row, last row and work of each part into which it falls, none where
        it was done.
    """
    try:
        return _facts(opened(task.target, "pairs", verify=None).facts)
    except InputError:
        pass
    (i, j, similarity), parts = _joined(opened(task.store, "vectors", verify=None), task)
    low, high = np.minimum(i, j), np.maximum(i, j)
    order = np.lexsort((high, low))
    with writing(task.target, "pairs") as out:
        out.put("i", low[order])
        out.put("j", high[order])
        out.put("similarity", similarity[order])
        out.facts = {"pairs": len(order), "parts": parts}
    return _facts(out.facts)


def _facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {"pairs": int(facts["pairs"]), "parts": facts.get("parts", [])}


class Rows(NamedTuple):
    """Rows of a block and their former numbers."""

    vectors: Vectors
    numbers: IntArray

    def take(self, places: IntArray) -> Rows:
        """Return some of them."""
        return Rows(self.vectors.take(places), self.numbers[places])

    def since(self, number: int) -> tuple[Rows, Rows]:
        """Return those of at least this former number, and the others."""
        new = self.numbers >= number
        return self.take(np.flatnonzero(new)), self.take(np.flatnonzero(~new))


class Joined(NamedTuple):
    """Pairs of former row numbers, and the work they took."""

    i: IntArray
    j: IntArray
    similarity: FloatArray
    work: int = 0


_NOTHING = Joined(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def _joined(reader: Reader, task: BlockTask) -> tuple[Found, list[list[int]]]:
    """Return the pairs of a task by former row numbers; or none of them, and its parts."""
    if task.new_from and not any(
        (reader.part("rows", np.int64, *block) >= task.new_from).any() for block in {task.a, task.b}
    ):
        return _NOTHING[:3], []
    own = task.b[0] < task.a[1]
    before = _read(reader, (task.a[0], task.b[0] if own else task.a[1]))
    rows = _read(reader, task.b)
    vectors = _compact(before.vectors, rows.vectors)
    before, rows = (Rows(part, side.numbers) for part, side in zip(vectors, (before, rows), strict=True))
    parts = _parts(before, rows, own, task) if task.most else []
    return (_NOTHING if parts else _pairs_of(before, rows, own, task))[:3], parts


def _parts(before: Rows, rows: Rows, own: bool, task: BlockTask) -> list[list[int]]:
    """Return where to cut the rows of a task that is too dear: first and last row and about the work of each part."""
    entries = len(before.vectors.ids) + len(rows.vectors.ids)
    most = limit(task.most, entries)
    a, b = (rows.vectors, None) if own else (before.vectors, rows.vectors)
    at_most = bound(a, b, task.tau)
    if len(at_most) < 2 or int(at_most.sum()) <= most:
        return []
    every = min(SAMPLE, len(at_most) // 2)
    sample = rows.take(np.arange(every // 2, len(at_most), every))
    # of the rows of a block with itself every pair is looked at twice, from the sample
    work = _between(rows if own else before, sample, task).work * every // (2 if own else 1)
    if work <= most:
        return []
    edges = cuts(at_most, -(-work // most))
    share = work / max(int(at_most.sum()), 1)
    return [
        [task.b[0] + start, task.b[0] + stop, int(at_most[start:stop].sum() * share)] for start, stop in pairwise(edges)
    ]


def _pairs_of(before: Rows, rows: Rows, own: bool, task: BlockTask) -> Joined:
    """Return the pairs of rows with those before them and, if they are to be joined with their own, among them."""
    return _both(_between(before, rows, task), _within(rows, task) if own else _NOTHING)


def _within(rows: Rows, task: BlockTask) -> Joined:
    if (rows.numbers >= task.new_from).all():
        return _self(rows, task)
    fresh, old = rows.since(task.new_from)
    return _both(_self(fresh, task), _cross(fresh, old, task))


def _between(a: Rows, b: Rows, task: BlockTask) -> Joined:
    if any((side.numbers >= task.new_from).all() for side in (a, b)):
        return _cross(a, b, task)
    fresh, old = a.since(task.new_from)
    return _both(_cross(fresh, b, task), _cross(old, b.since(task.new_from)[0], task))


def _compact(*blocks: Vectors) -> list[Vectors]:
    """Number anew the signatures of a few rows of a large vocabulary, so that tables over it stay as small as they."""
    n_ids = 1 + max(int(block.ids.max(initial=-1)) for block in blocks)
    if n_ids <= sum(len(block.ids) for block in blocks):
        return list(blocks)
    ids, _ = renumbered([block.ids for block in blocks], n_ids)
    return [replace(block, ids=numbers) for block, numbers in zip(blocks, ids, strict=True)]


Found = tuple[IntArray, IntArray, FloatArray]


def _both(one: Joined, other: Joined) -> Joined:
    if not len(one.i) or not len(other.i):
        return (other if len(other.i) else one)._replace(work=one.work + other.work)
    i, j, similarity = (np.concatenate(pair) for pair in zip(one[:3], other[:3], strict=True))
    return Joined(i, j, similarity, one.work + other.work)


def _self(rows: Rows, task: BlockTask) -> Joined:
    from spotsigs.matching.tight import self_join

    if len(rows.vectors) < 2:
        return _NOTHING
    pairs = self_join(rows.vectors, task.tau, threads=task.threads)
    work = counted(pairs.counters, len(pairs), float(rows.vectors.lengths.mean()))
    return Joined(rows.numbers[pairs.i], rows.numbers[pairs.j], pairs.similarity, work)


def _cross(a: Rows, b: Rows, task: BlockTask) -> Joined:
    from spotsigs.matching.tight import join

    if not len(a.vectors) or not len(b.vectors):
        return _NOTHING
    pairs = join(a.vectors, b.vectors, task.tau, threads=task.threads)
    work = counted(pairs.counters, len(pairs), float(a.vectors.lengths.mean()))
    return Joined(a.numbers[pairs.i], b.numbers[pairs.j], pairs.similarity, work)


def _read(reader: Reader, block: Block) -> Rows:
    return Rows(*read_block(reader, block))


def read_block(reader: Reader, block: Block) -> tuple[Vectors, NDArray[np.int64]]:
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
    rising = bool((indptr[1:] >= indptr[:-1]).all())
    require(rising, f"the rows of the store {reader.folder} are damaged; build the store again")
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


@dataclass(frozen=True)
class PairFiles:
    """Pairs on disk, as the tasks of a join left them.

    Attributes
    ----------
    folders : tuple of Path
        One store of pairs a task, each sorted by (i, j).
    n : int
        Number of documents.
    seconds, counters : mapping
        As in `spotsigs.records.Pairs`.
    """

    folders: tuple[Path, ...]
    n: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(int(opened(folder, "pairs", verify=False).facts["pairs"]) for folder in self.folders)

    def load(self) -> Pairs:
        """Return all pairs, in memory."""
        [(i, j, similarity)] = self.chunks(BYTES_A_PAIR * (len(self) + 1))
        return Pairs.build(i, j, similarity, self.n, self.seconds, self.counters)

    def chunks(self, memory: int) -> Iterator[Found]:
        """Iterate over the pairs in ascending order of (i, j), as many at a time as a budget allows.

        Parameters
        ----------
        memory : int
            Bytes; the pairs of a single document can exceed it.

        Yields
        ------
        i, j : ndarray of int64
            Document numbers, ``i < j``.
        similarity : ndarray of float64
        """
        readers = [opened(folder, "pairs") for folder in self.folders]
        edges = list(self._edges(readers, max(1, memory // BYTES_A_PAIR)))
        places = [np.searchsorted(_whole(reader, "i"), edges).tolist() for reader in readers]
        for k in range(len(edges) - 1):
            found = _sorted(
                _range(r, at[k], at[k + 1]) for r, at in zip(readers, places, strict=True) if at[k] < at[k + 1]
            )
            i, j, _ = found
            sound = int(i.min(initial=0)) >= 0 and bool((i < j).all()) and int(j.max(initial=-1)) < self.n
            require(sound, f"the pairs in {self.folders[0].parent} are damaged; delete that folder and run again")
            yield found

    def _edges(self, readers: Sequence[Reader], most: int) -> Iterator[int]:
        """Cut the document numbers into ranges with at most so many pairs, and yield where each begins and the end."""
        width = max(1, self.n >> 16)
        bins = np.zeros(self.n // width + 1, np.int64)
        for reader in readers:
            bins += np.bincount(_whole(reader, "i") // width, minlength=len(bins))
        taken = 0
        yield 0
        for number, size in enumerate(bins.tolist()):
            if taken and taken + size > most:
                yield number * width
                taken = 0
            taken += size
        yield self.n

    def cluster(self, memory: int, priority: IntArray | None = None, *, method: Method = Method.components) -> Clusters:
        """Group the documents, as `spotsigs.judging.clusters.cluster` does.

        Parameters
        ----------
        memory : int
            Bytes of pairs at a time.
        priority : ndarray of int, shape (n,), optional
            The smallest value of a cluster is its representative, ties going to the first document.
        method : Method
            What a cluster is.

        Returns
        -------
        Clusters
        """
        order = np.arange(self.n) if priority is None else np.argsort(priority, kind="stable")
        heads = self._component_heads(memory, order) if method is Method.components else self._anchored(memory, order)
        similarity = np.where(heads == np.arange(self.n), 1.0, np.nan)
        for i, j, values in self.chunks(memory):
            for a, b in ((i, j), (j, i)):
                to_head = heads[a] == b
                similarity[a[to_head]] = values[to_head]
        representatives, labels = _numbered(heads)
        return Clusters(labels, representatives, similarity)

    def _component_heads(self, memory: int, order: NDArray[np.int64]) -> NDArray[np.int32]:
        parent = np.arange(self.n)
        for i, j, _ in self.chunks(memory):
            _unite(parent, i, j)
        _flatten(parent)
        best = np.empty(self.n, np.int32)
        best[parent[order[::-1]]] = order[::-1]
        heads: NDArray[np.int32] = best[parent]
        return heads

    def _anchored(self, memory: int, order: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return each row's anchor: pass after pass over the pairs, as many of them in order of rank as fit."""
        rank = np.empty(self.n, np.int64)
        rank[order] = np.arange(self.n)
        sizes = np.zeros(self.n, np.int64)
        for i, j, _ in self.chunks(memory):
            sizes += np.bincount(np.minimum(rank[i], rank[j]), minlength=self.n)
        behind = np.cumsum(sizes)
        heads = np.full(self.n, -1, np.int32)  # by rank
        first = 0
        while first < self.n:
            done = int(behind[first - 1]) if first else 0
            last = int(np.searchsorted(behind, done + memory // BYTES_A_PAIR, side="right"))
            last = min(max(last, first + 1), self.n)
            found = [np.empty((2, 0), np.int64)]
            for i, j, _ in self.chunks(memory) if behind[last - 1] > done else ():
                low, high = np.minimum(rank[i], rank[j]), np.maximum(rank[i], rank[j])
                inside = (low >= first) & (low < last)
                found.append(np.stack([low[inside], high[inside]]))
            low, high = np.concatenate(found, axis=1)
            by_rank = np.lexsort((high, low))
            _anchor(first, last, low[by_rank], high[by_rank], heads)
            first = last
        anchors = np.empty(self.n, np.int32)
        anchors[order] = order[heads]
        return anchors


def _whole(reader: Reader, name: str) -> NDArray[np.int64]:
    """Read a column of one task's pairs; mapped instead, the pages of all tasks would add up."""
    return reader.part(name, np.int64, 0, reader.facts["pairs"])


def _sorted(parts: Iterable[Found]) -> Found:
    columns = list(zip(_NOTHING[:3], *parts, strict=True))
    i, j, similarity = (np.concatenate(column) for column in columns)
    columns.clear()
    order = np.lexsort((j, i))
    i, j = i[order], j[order]
    return i, j, similarity[order]


def _range(reader: Reader, first: int, last: int) -> Found:
    return (
        reader.part("i", np.int64, first, last),
        reader.part("j", np.int64, first, last),
        reader.part("similarity", np.float64, first, last),
    )


@njit(cache=True, nogil=True)
def _root(parent, row):  # type: ignore[no-untyped-def]
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row


@njit(cache=True, nogil=True)
def _unite(parent, i, j):  # type: ignore[no-untyped-def]
    for k in range(len(i)):
        a, b = _root(parent, i[k]), _root(parent, j[k])
        if a < b:
            parent[b] = a
        else:
            parent[a] = b


@njit(cache=True, nogil=True)
def _flatten(parent):  # type: ignore[no-untyped-def]
    for row in range(len(parent)):
        parent[row] = parent[parent[row]]


@njit(cache=True, nogil=True)
def _anchor(first, last, low, high, heads):  # type: ignore[no-untyped-def]
    """Let each rank that belongs to no cluster yet take its partners of higher rank; pairs come sorted."""
    p = 0
    for rank in range(first, last):
        anchors = heads[rank] < 0
        if anchors:
            heads[rank] = rank
        while p < len(low) and low[p] == rank:
            if anchors and heads[high[p]] < 0:
                heads[high[p]] = rank
            p += 1


def query(
    store: str | Path, hashes: NDArray[np.uint64], counts: NDArray[np.int32], tau: float, *, memory: int
) -> tuple[NDArray[np.int64], FloatArray]:
    """Find the documents of a store that one page is similar to.

    Parameters
    ----------
    store : str or Path
        Place of the vectors, built by `spotsigs.crawl.layout.build_vectors`.
    hashes : ndarray of uint64, shape (k,)
        The page's distinct signatures.
    counts : ndarray of int32, shape (k,)
        Occurrences of each.
    tau : float
        Similarity threshold.
    memory : int
        Bytes that may be held.

    Returns
    -------
    rows : ndarray of int64
        Document numbers, ascending.
    similarity : ndarray of float64
        With the store's filter: signatures it dropped are dropped from the page, those it never saw stay. (Adding the
        page to the collection would change document frequencies by one.)
    """
    from spotsigs.matching.tight import join

    require_tau(tau)
    stored = open_vectors(store, verify=None)
    reader = opened(store, "vectors", verify=None)
    vocabulary = stored.vectors.vocabulary
    if vocabulary is None:
        raise InputError(f"the store {store} has no vocabulary; it cannot be asked for pages")
    ids, known = find(hashes, reader, "vocabulary", memory)
    unseen = ~known & ~find(hashes, reader, "dropped", memory)[1]
    ids[unseen] = len(vocabulary) + np.arange(np.count_nonzero(unseen))
    used = known | unseen
    page = Vectors.from_csr([0, np.count_nonzero(used)], ids[used], counts[used])
    length = int(page.lengths[0])
    if length < reader.facts.get("min_spots", 1):
        return np.empty(0, np.int64), np.empty(0)
    lengths = stored.vectors.lengths
    first = int(np.searchsorted(lengths, max(1, int(length * tau) - 1)))
    found = []
    for block in _blocks(stored.vectors.indptr, first, memory):
        if length < int(lengths[block[0]]) and length / int(lengths[block[0]]) < tau:
            break
        vectors, rows = read_block(reader, block)
        one, many = _compact(page, vectors)
        pairs = join(one, many, tau, threads=1)
        found.append((rows[pairs.j], pairs.similarity))
    rows = np.concatenate([np.empty(0, np.int64), *(part for part, _ in found)])
    order = np.argsort(rows)
    return rows[order], np.concatenate([np.empty(0), *(part for _, part in found)])[order]
