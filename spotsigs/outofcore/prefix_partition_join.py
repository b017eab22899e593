"""The exact join of a store that does not fit into memory; the resulting pairs are on disk.

The join runs in rounds of tasks (`spotsigs.outofcore.prefix_partition_tasks`). Each task names a store, reads it, and
writes its result to files of its own. No array passes through an engine, a task can run again on any worker, and
completed tasks are skipped. The calling process stores a few numbers for each task. No task depends on the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.parallel import concatenated
from spotsigs.engines import Engine
from spotsigs.errors import InputError, as_tau, require
from spotsigs.outofcore import prefix_partition_tasks as tasks
from spotsigs.outofcore.prefix_partition_tasks import BYTES_A_PAIR, PAIR_COLUMNS, JoinJob, pair_folders
from spotsigs.records import FloatArray, Overlap, Pairs
from spotsigs.storage.locations import absolute, as_path
from spotsigs.storage.store import Reader, claim, entry_spans, fingerprint, open_vectors, opened, remove_tree
from spotsigs.storage.tasks import run_tasks

MOST_MEMORY = 2**36
"""Most bytes that a task uses: offsets of the postings of a part are int32."""

JOB = "job.json"
"""File that describes the join of a folder."""

ROUNDS = ("plan", "parts", "shuffled", "candidates", "verified")
"""Results of tasks that are deleted after the join."""


def join_store(
    store: str | Path, folder: str | Path, tau: float, engine: Engine, *, memory: int, new_from: int = 0
) -> PairFiles:
    """Find all pairs of a store with multiset Jaccard similarity at least tau.

    The vectors are those of ``store``, which all workers can read, and the pairs are written below ``folder``; a call
    with the same arguments reuses complete results. Each task uses ``memory`` bytes, unless the candidates of a single
    document exceed them. Only pairs with a document of at least the number ``new_from`` are generated.

    Returns
    -------
    PairFiles
        The pairs of all rows, with the counters ``tasks``, ``work_mean`` and ``work_most`` (of the tasks that generate
        candidates, in postings), ``tokens`` (shuffled), ``visits`` (postings in reach, of all tasks and of one task at
        most), ``candidates`` (once for each part) and ``verifications``.

    Raises
    ------
    InputError
        If tau is out of range, or the folder contains the pairs of another join.
    """
    tau = as_tau(tau)
    folder = as_path(folder)
    stored = open_vectors(store)
    facts: dict[str, Any] = {"checksum": fingerprint(store), "tau": tau, "new_from": new_from, "memory": memory}
    require(
        not claim(folder, JOB, facts), f"{folder} contains the pairs of another join; give another path or delete it"
    )
    job = JoinJob(
        store=absolute(store),
        checksum=facts["checksum"],
        folder=absolute(folder),
        tau=tau,
        new_from=new_from,
        memory=min(memory, MOST_MEMORY),
    )
    done = _run_or_resume(job, engine)
    for name in ROUNDS:
        remove_tree(folder / name)
    overlap = Overlap(stored.compared_lengths())
    return PairFiles(tuple(pair_folders(job, done["stores"])), len(stored), counters=done["counters"], overlap=overlap)


def _run_or_resume(job: JoinJob, engine: Engine) -> dict[str, Any]:
    """Return the number of stores of pairs of each of the last tasks, and the counters, of a complete join."""
    try:
        done = job.result("done").facts
        for pairs in pair_folders(job, done["stores"]):
            opened(pairs, "pairs")
    except InputError:
        remove_tree(job.path("done"))
        done = job.checkpoint("done", work=lambda out: out.facts.update(_joined(job, engine)))
    return done


def _joined(job: JoinJob, engine: Engine) -> dict[str, Any]:
    """Run the rounds; return the number of stores of pairs of each of the last tasks, and the counters."""
    reader = job.vectors()
    n_blocks = tasks.make_plan(job, reader.array("indptr", np.int64), reader.array("lengths", np.int64))
    blocks = [tasks.BlockTask(job, number) for number in range(n_blocks)]
    bins = sum(run_tasks(engine, tasks.sample, blocks, "sampling"), np.zeros(tasks.BINS, np.int64))
    parts = tasks.cut_parts(job, bins) if blocks else 0
    tokens = sum(facts["tokens"] for facts in run_tasks(engine, tasks.shuffle, blocks, "shuffling"))
    searches = tasks.first_candidate_tasks(job, parts, tokens)
    results: list[dict[str, Any]] = []
    while len(results) < len(searches):
        first = len(results)
        results += run_tasks(engine, tasks.find_candidates, searches[first:], "joining")
        searches += tasks.further_candidate_tasks(searches, results, first)
    verified = list(run_tasks(engine, tasks.verify, tasks.verify_tasks(job, len(searches)), "verifying"))
    work, visits = ([facts[name] for facts in results] for name in ("work", "visits"))
    counters = {
        "tasks": 2 * len(blocks) + len(searches) + len(verified),
        "parts": parts,
        "searches": len(searches),
        "work_mean": sum(work) // max(len(work), 1),
        "work_most": max(work, default=0),
        "tokens": tokens,
        "visits": sum(visits),
        "visits_most": max(visits, default=0),
        "candidates": sum(facts["candidates"] for facts in verified),
        "verifications": sum(facts["verifications"] for facts in verified),
    }
    return {"stores": [facts["stores"] for facts in verified], "counters": counters}


PairArrays = tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]


@dataclass(frozen=True)
class PairFiles:
    """Pairs on disk.

    Attributes
    ----------
    folders : tuple of Path
        Stores of pairs, each sorted by (i, j).
    n : int
        Number of documents.
    seconds, counters : mapping
        As in `spotsigs.records.Pairs`.
    overlap : Overlap, optional
        As in `spotsigs.records.Pairs`.
    memory : int
        Bytes of pairs in memory at a time; those of a single document can exceed it.
    """

    folders: tuple[Path, ...]
    n: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    overlap: Overlap | None = field(default=None, repr=False)
    memory: int = 1 << 27

    def __len__(self) -> int:
        return sum(int(store.facts["pairs"]) for store in self._readers(False))

    def _readers(self, verify: bool) -> list[Reader]:
        return [opened(folder, "pairs", verify=verify) for folder in self.folders]

    def load(self) -> Pairs:
        """Return all pairs, in memory."""
        [(i, j, similarity)] = self.within(BYTES_A_PAIR * (len(self) + 1)).chunks()
        return Pairs.build(i, j, similarity, self.n, self.seconds, self.counters, self.overlap)

    def load_if_fits(self) -> Pairs | None:
        """Return all pairs, or None if they do not fit into memory."""
        return self.load() if 2 * len(self) <= self.chunk_size else None

    @property
    def chunk_size(self) -> int:
        """Pairs in memory at a time, except those of a single document."""
        return max(1, self.memory // BYTES_A_PAIR)

    def within(self, memory: int) -> PairFiles:
        """Return the same pairs with a limit on the bytes that are in memory at a time."""
        return replace(self, memory=memory)

    def chunks(self) -> Iterator[PairArrays]:
        """Iterate over the pairs in ascending order of (i, j), in chunks that fit the memory.

        Yields
        ------
        i, j : ndarray of int32
            Document numbers, ``i < j``.
        similarity : ndarray of float64
        """
        stores = self._readers(True)
        edges = self._edges(stores)
        offsets = [np.searchsorted(store.whole("i", np.int64), edges).tolist() for store in stores]
        for k in range(len(edges) - 1):
            parts = [
                tuple(store.part(name, kind, at[k], at[k + 1]) for name, kind in PAIR_COLUMNS.items())
                for store, at in zip(stores, offsets, strict=True)
                if at[k] < at[k + 1]
            ]
            i, j, similarity = concatenated(parts, tuple(PAIR_COLUMNS.values()))
            parts.clear()
            order = np.lexsort((j, i))
            i, j, similarity = i[order], j[order], similarity[order]
            sound = int(i.min(initial=0)) >= 0 and bool((i < j).all()) and int(j.max(initial=-1)) < self.n
            where = self.folders[0].parent if self.folders else "memory"
            require(sound, f"the pairs in {where} are damaged; delete that folder and run again")
            yield i.astype(np.int32), j.astype(np.int32), similarity  # as in `Pairs`: kernels are compiled once

    def _edges(self, stores: Sequence[Reader]) -> list[int]:
        """Cut the document numbers into ranges with limited numbers of pairs, and return their edges."""
        width = max(1, self.n >> 16)
        bins = np.zeros(self.n // width + 1, np.int64)  # pairs by bin of the first document
        for store in stores:
            bins += np.bincount(store.whole("i", np.int64) // width, minlength=len(bins))
        return [*(first * width for first, _ in entry_spans(row_starts(bins), self.chunk_size)), self.n]
