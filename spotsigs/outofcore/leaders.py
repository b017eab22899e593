"""Leaders of a store without its pairs, in rounds of tasks.

Rows are folded and get their prefixes once, see `spotsigs.outofcore.folded_rows`. A round takes the next documents in
order of priority that no earlier leader covers, as many as fit into the memory of a task, and finds the leaders among
them. Then all other documents are compared with these leaders, each file of rows by a task. The state between rounds is
a byte, the number of the most similar leader, and the similarity of each document. Each task writes a result, so that a
stopped run resumes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from spotsigs.arrays.csr import take_rows
from spotsigs.clustering.leaders import LeaderOptions, Nearest, Undecided, nearest_leaders
from spotsigs.matching.prefix_index import empty_index, full_index
from spotsigs.matching.prefix_kernels import Indexed, Prefixed, Units, find_leaders
from spotsigs.outofcore.folded_rows import (
    FoldedFile,
    FoldedRows,
    RowJob,
    concatenated_rows,
    fold,
    forget,
    last_made,
    read_folded,
)
from spotsigs.records import Clusters, Pairs
from spotsigs.signatures.contained import NO_RULE, Contents, RemovalRule
from spotsigs.storage.locations import absolute
from spotsigs.storage.store import Writer, fingerprint, open_vectors, opened, remove_tree
from spotsigs.storage.tasks import resumable, run_tasks
from spotsigs.workers.engines import Engine

BYTES_A_LEADER_ENTRY = 88
"""Bytes that a round uses for each entry of its rows: entries, tokens, postings, lists and temporaries."""

BYTES_A_ROW = 120
"""Bytes that a round uses for each of its rows."""

BYTES_A_RESULT = 108
"""Most bytes that leaders, clusters, decisions and tables use for each document."""


@dataclass(frozen=True, kw_only=True)
class LeaderJob(RowJob):
    """Leaders by some options."""

    options: str  # checksum of the options
    # The four fields of `spotsigs.signatures.contained.RemovalRule`
    section_tau: float
    least: float
    least_bound: float
    of_shorter: bool
    contents: str | None  # path of the contents of the documents, if the rule reads them
    both: bool  # as in `spotsigs.clustering.leaders.LeaderOptions`

    def rule(self) -> RemovalRule:
        """Return which documents may be removed for which."""
        known, contents = self.result("rule"), NO_RULE.contents
        if self.contents is not None:
            stored = opened(self.contents, "contents")
            contents = Contents(stored.mapped("indptr", np.int64), stored.mapped("hashes", np.uint32))
        return RemovalRule(
            sections=known.mapped("sections", np.uint64),
            section_tau=self.section_tau,
            contents=contents,
            least=self.least,
            missing=known.mapped("missing", np.int32),
            lengths=known.mapped("lengths", np.int32),
            of_shorter=self.of_shorter,
            least_bound=self.least_bound,
        )

    def leaders(self, number: int) -> Indexed:
        """Return the index of the leaders of a round."""
        return last_made((self, number), lambda: self._index(number))

    def _index(self, number: int) -> Indexed:
        found = self.result("leaders", number)
        kinds = {**_PREFIXED, "ids": self.ids}
        rows = Prefixed(*(found.whole(name, kinds[name]) for name in Prefixed._fields))
        units = Units(*(found.whole(name, kind) for name, kind in _UNITS.items()))
        return full_index(units, rows, int(self.vectors().facts["n_signatures"]))


_PREFIXED: dict[str, Any] = {
    "indptr": np.int64,
    "counts": np.int32,
    "lengths": np.int64,
    "shortest": np.int64,
    "shared": np.int64,
    "starts": np.int64,
    "tokens": np.uint64,
}
_UNITS: dict[str, Any] = {"numbers": np.int32, "row_of": np.int32, "old": np.bool_, "documents": np.int32}


class Round(NamedTuple):
    """A task: find the leaders of a round."""

    job: LeaderJob
    number: int
    files: tuple[FoldedFile, ...]


class LeaderComparison(NamedTuple):
    """A task: compare a file of rows with the leaders of a round; units from ``start`` on are of later rounds."""

    job: LeaderJob
    number: int
    round: int
    start: int
    file: FoldedFile
    threads: int | None


def leaders_on_disk(
    store: str | Path,
    folder: str | Path,
    tau: float,
    options: LeaderOptions,
    engine: Engine,
    *,
    memory: int,
    contents: Path | None = None,
) -> tuple[Clusters, Pairs]:
    """Group the documents of a store of vectors as `spotsigs.clustering.leaders.leaders_of` does.

    The results of tasks are written below ``folder``, and a call with the same arguments resumes. The documents and a
    task use ``memory`` bytes, which a single row can exceed. ``contents`` is the path of the contents that the rule
    reads.
    """
    stored = open_vectors(store)
    memory = max(memory - len(stored) * BYTES_A_RESULT, memory // 8)
    job = LeaderJob(
        folder=absolute(folder),
        store=absolute(store),
        checksum=fingerprint(store),
        tau=tau,
        new_from=0,
        memory=memory,
        options=_checksum(options, contents),
        section_tau=options.rule.section_tau,
        least=float(options.rule.least),
        least_bound=float(options.rule.least_bound),
        of_shorter=options.rule.of_shorter,
        contents=None if contents is None else absolute(contents),
        both=options.both,
    )
    job = _begin(job)
    state = Undecided.build(stored.exact_duplicates, options)

    def decide(out: Writer) -> None:
        _run_rounds(job, state, options, engine)
        for name in ("covered", "nearest", "similarity"):
            out.put(name, getattr(state, name))

    job.checkpoint("done", work=decide)
    done = job.result("done")
    state = replace(
        state,
        covered=done.whole("covered", np.bool_),
        nearest=done.whole("nearest", np.int32),
        similarity=done.whole("similarity", np.float64),
    )
    forget()
    for name in ("rule", "folded", "units", "batch", "leaders", "covered", "compared"):
        remove_tree(job.path(name))
    clusters = state.clusters()
    return clusters, state.pairs(clusters, stored.compared_lengths(), options.both)


def _checksum(options: LeaderOptions, contents: Path | None) -> str:
    """Return the identity of what decides the leaders besides the vectors and the threshold."""
    rule = options.rule
    content = None if contents is None else fingerprint(contents)
    settings = f"{rule.section_tau} {rule.least} {options.new_from} {options.both} {content}"
    digest = xxhash.xxh3_128(f"{settings} {rule.least_bound} {rule.of_shorter}".encode())
    for values in (options.priority, options.removed, rule.sections, rule.missing, rule.lengths):
        digest.update(b"none" if values is None else values.tobytes())
    return digest.hexdigest()


def _begin(job: LeaderJob) -> LeaderJob:
    """Return the job with the memory that its rounds were cut for, if it was begun and that fits."""
    facts = {"checksum": job.checksum, "tau": job.tau, "options": job.options}
    job.begin(facts)
    cut = job.checkpoint("cut", work=lambda out: out.facts.update(memory=job.memory))["memory"]
    if cut > job.memory:
        remove_tree(job.path())
        return _begin(job)
    return replace(job, memory=cut)


def _run_rounds(job: LeaderJob, state: Undecided, options: LeaderOptions, engine: Engine) -> None:
    """Find all leaders, and the most similar one of each other unit."""
    state.join_sets(True)
    job.checkpoint("rule", work=lambda out: _write_rule(out, options.rule))
    files = fold(job, engine)
    sizes = _write_units(job, files, state)
    # A round decides as many units as fit into memory. All later rounds need to know only which units it has covered.
    number, start = 0, 0
    while len(numbers := _next_units(state, sizes, start, job.memory // 2)):
        job.checkpoint("batch", number, work=partial(_write_numbers, numbers))
        this_round = [Round(job, number, tuple(files))]
        list(run_tasks(engine, find_leaders_of, this_round, "finding leaders", rows=len(numbers)))
        state.covered[numbers] = job.result("leaders", number).whole("covered", np.bool_)
        start = int(numbers[-1]) + 1
        job.checkpoint("covered", number, work=lambda out: out.put("covered", state.covered))
        threads = 1 if engine.processes else None
        tasks = []
        for k, file in enumerate(files):
            tasks.append(LeaderComparison(job, number * len(files) + k, number, start, file, threads))
        leaders = numbers[~state.covered[numbers]]
        done = run_tasks(engine, compare, tasks, "comparing with leaders", rows=len(sizes))
        for task, _ in zip(tasks, done, strict=True):
            found = job.result("compared", task.number)
            nearest = Nearest(*(found.whole(name, kind) for name, kind in _NEAREST.items()))
            state.take(found.whole("units", np.int32), leaders, nearest)
        number += 1
    state.join_sets(False)


_NEAREST: dict[str, Any] = {
    "number": np.int32,
    "similarity": np.float64,
    "of_leaders": np.int32,
    "similarity_of_leaders": np.float64,
}


def _write_numbers(numbers: NDArray[np.int32], out: Writer) -> None:
    out.put("numbers", numbers)


def _write_rule(out: Writer, rule: RemovalRule) -> None:
    out.put("sections", rule.sections)
    out.put("missing", rule.missing)
    out.put("lengths", rule.lengths)


def _write_units(job: LeaderJob, files: Sequence[FoldedFile], state: Undecided) -> NDArray[np.int32]:
    """Write what tasks read of the units; return the entries of each, 0 for one whose row can have no partner."""
    order = np.argsort(state.rows, kind="stable").astype(np.int32)
    documents = state.rows[order]

    def write(out: Writer) -> None:
        for name, values in (("order", order), ("documents", documents), ("rows", state.rows), ("old", state.old)):
            out.put(name, values)

    job.checkpoint("units", work=write)
    sizes = np.zeros(len(order), np.int32)
    for file in files:
        part = read_folded(job, file)
        at, row_of = _units_of(documents, part.documents)
        sizes[order[at]] = np.maximum(np.diff(part.rows.indptr), 1)[row_of]
    return sizes


def _units_of(documents: NDArray[np.int32], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the units, in order of their documents, that some rows have, and the row of each."""
    first, last = (np.searchsorted(documents, rows.astype(np.int32), side) for side in ("left", "right"))
    row_of = np.repeat(np.arange(len(rows)), last - first)
    step = np.arange(len(row_of)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
    return first[row_of] + step, row_of


def _next_units(state: Undecided, sizes: NDArray[np.int32], start: int, memory: int) -> NDArray[np.int32]:
    """Return the next units without a leader whose rows fit into a memory, at least one."""
    numbers = start + np.flatnonzero(~state.covered[start:] & (sizes[start:] > 0))[: max(memory // BYTES_A_ROW, 1)]
    used = np.cumsum(sizes[numbers].astype(np.int64) * BYTES_A_LEADER_ENTRY + BYTES_A_ROW)
    return numbers[: max(int(np.searchsorted(used, memory, side="right")), 1)].astype(np.int32)


@resumable("leaders")
def find_leaders_of(task: Round, out: Writer) -> None:
    """Write which units of a round are covered by others of it, and its leaders with their rows."""
    job = task.job
    known, numbers = job.result("units"), job.result("batch", task.number).whole("numbers", np.int32)
    documents = known.mapped("rows", np.int32)[numbers]
    rows, of_rows = _rows_of(job, task.files, np.unique(documents))
    in_order = np.argsort(of_rows)
    row_of = in_order[np.searchsorted(of_rows, documents, sorter=in_order)].astype(np.int32)
    units = Units(numbers, row_of, known.mapped("old", np.bool_)[numbers], documents)
    covered = np.zeros(len(numbers), np.bool_)
    find_leaders(empty_index(units, rows, int(job.vectors().facts["n_signatures"])), job.tau, job.rule(), covered)
    kept, of_leaders = np.unique(row_of[~covered], return_inverse=True)
    out.put("covered", covered)
    for name, values in _take_prefixed(rows, kept)._asdict().items():
        out.put(name, values)
    leaders = Units(numbers, of_leaders.astype(np.int32), units.old, documents)
    for name, values in leaders._asdict().items():
        out.put(name, values if name == "row_of" else values[~covered])


def _rows_of(
    job: LeaderJob, files: Sequence[FoldedFile], documents: NDArray[np.int32]
) -> tuple[Prefixed, NDArray[np.int64]]:
    """Return the rows of some documents, ascending, and the document of each row."""
    parts = []
    for file in files:
        part = read_folded(job, file)
        at = np.minimum(np.searchsorted(documents, part.documents), len(documents) - 1)
        wanted = np.flatnonzero(documents[at] == part.documents)
        if len(wanted):
            parts.append(FoldedRows(_take_prefixed(part.rows, wanted), part.documents[wanted], part.repeated[wanted]))
    found = concatenated_rows(parts)
    return found.rows, found.documents


def _take_prefixed(rows: Prefixed, wanted: NDArray[np.int64]) -> Prefixed:
    """Return some rows, ascending."""
    indptr, entries = take_rows(rows.indptr, wanted)
    starts, tokens = take_rows(rows.starts, wanted)
    return Prefixed(
        indptr,
        rows.ids[entries],
        rows.counts[entries],
        rows.lengths[wanted],
        rows.shortest[wanted],
        rows.shared[wanted],
        starts,
        rows.tokens[tokens],
    )


@resumable("compared")
def compare(task: LeaderComparison, out: Writer) -> None:
    """Write the most similar leader of a round for the units of a file: those that are covered, and later ones."""
    job, known = task.job, task.job.result("units")
    covered = job.result("covered", task.round).mapped("covered", np.bool_)
    part = read_folded(job, task.file)
    at, row_of = _units_of(known.mapped("documents", np.int32), part.documents)
    numbers = known.mapped("order", np.int32)[at]
    compared = covered[numbers] | (numbers >= task.start)
    numbers, row_of = numbers[compared], row_of[compared].astype(np.int32)
    units = Units(numbers, row_of, known.mapped("old", np.bool_)[numbers], part.documents[row_of].astype(np.int32))
    leaders = job.leaders(task.round)
    found = nearest_leaders(units, part.rows, leaders, job.tau, job.rule(), both=job.both, threads=task.threads)
    some = found.number >= 0
    out.put("units", numbers[some])
    for name, values in found._asdict().items():
        out.put(name, values[some] if name in ("number", "similarity") else values)
