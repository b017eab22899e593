"""The seven-step clustering of sketches as tasks for an engine: map, shuffle and reduce through files.

Each task names files, reads them, and leaves its result in files of its own, as in
`spotsigs.outofcore.prefix_partition_join`: nothing large passes through the engine, a task can run again anywhere, and
what is complete need not.

- *Map* (steps 1 and 2), a range of documents: its sketches, and its (shingle, document) pairs by bucket of shingles.
- *Reduce* (steps 3, 4 and 5), a bucket of shingles: the summed-up triplets of its groups, by range of documents.
- *Sum* (steps 5 and 6), a range of documents: the sums over all buckets, and of these the pairs that reach tau.

Step 7, the components, is `spotsigs.clustering.clusters.cluster` with ``components``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baselines.sketch.sketches import (
    Kind,
    Sketch,
    Sketches,
    aggregate,
    group_by_shingle,
    mixed,
    pair_counts,
    shards_of,
    shingle_document_pairs,
    sum_of_shards,
    super_shingles,
    triplets,
)
from spotsigs.arrays.csr import row_starts
from spotsigs.engines import Engine
from spotsigs.errors import InputError, require
from spotsigs.outofcore.prefix_partition_join import PairFiles
from spotsigs.outofcore.prefix_partition_tasks import read_block
from spotsigs.records import Vectors
from spotsigs.storage.locations import absolute, as_path, is_remote
from spotsigs.storage.store import Reader, claim, fingerprint, open_vectors, opened, writing

BYTES_A_VALUE = 64
"""What mapping or grouping holds for each value of a sketch: value, document, their sorted copies, and the order."""


@dataclass(frozen=True, kw_only=True)
class SketchJob:
    """One clustering: what its tasks must know.

    Attributes
    ----------
    store : str
        Place of the vectors, see `spotsigs.storage.store.save_vectors`.
    folder : str
        Place of the tasks' results.
    sketch : Sketch
        The method, on one thread.
    n : int
        Number of documents.
    documents : int
        Documents of a map task, and of a sum.
    buckets : int
        Reduce tasks.
    recount : bool
        Whether sums must count common values anew, see `Sketch.judged`.
    """

    store: str
    folder: str
    sketch: Sketch
    n: int
    documents: int
    buckets: int
    recount: bool = False

    @property
    def ranges(self) -> int:
        """Number of map tasks and of sums."""
        return -(-self.n // self.documents)

    def path(self, stage: str, task: int) -> Path:
        """Return where a task leaves its result."""
        return as_path(self.folder) / f"{stage}-{task:08d}"


def search_store(store: Path, folder: Path, engine: Engine, memory: int, sketch: Sketch) -> PairFiles:
    """Find the pairs of a store of vectors by sketches, cut so that each task holds at most ``memory`` bytes."""
    rows = len(open_vectors(store, verify=None))
    return cluster_sketches(store, folder, sketch, engine, **cut(sketch, rows, memory))


def cluster_sketches(
    store: str | Path,
    folder: str | Path,
    sketch: Sketch,
    engine: Engine,
    *,
    documents: int = 20_000,
    buckets: int = 16,
) -> PairFiles:
    """Find the pairs that `Sketch` finds in memory, with the same estimates.

    Parameters
    ----------
    store : str or Path
        Place of the vectors, on a file system that all workers see.
    folder : str or Path
        Place of the results. What a former call with the same arguments left complete is kept.
    sketch : Sketch
        The method.
    engine : Engine
        Where the tasks run; the result does not depend on it.
    documents : int
        Documents of a map task.
    buckets : int
        Ranges of shingles that are grouped apart.

    Returns
    -------
    PairFiles
        With the counters of `Sketch`.

    Raises
    ------
    InputError
        If the folder holds another clustering.
    """
    require(documents >= 1, f"documents must be at least 1, got {documents}")
    require(buckets >= 1, f"buckets must be at least 1, got {buckets}")
    stored = open_vectors(store, verify=None)
    job = SketchJob(
        store=absolute(store),
        folder=absolute(folder),
        sketch=replace(sketch, threads=1),
        n=len(stored),
        documents=documents,
        buckets=buckets,
    )
    cut = [documents, buckets]
    require(
        not claim(
            as_path(folder),
            "job.json",
            {"checksum": fingerprint(as_path(store)), "sketch": repr(job.sketch), "cut": cut},
        ),
        f"{folder} holds another clustering; give another place or delete it",
    )
    parts = list(engine.map(partial(map_documents, job), range(job.ranges)))
    reduced = list(engine.map(partial(reduce_shingles, job), range(buckets)))
    job = replace(job, recount=bool(sketch.super_shingles or any(facts["skipped_shingles"] for facts in reduced)))
    summed = list(engine.map(partial(sum_documents, job), range(job.ranges)))
    counters = {
        name: sum(facts[name] for facts in stage)
        for stage, names in (
            (parts, ("values",)),
            (reduced, ("shared_shingles", "triplets")),
            (summed, ("candidates",)),
            (reduced, ("skipped_shingles", "skipped_triplets")),
        )
        for name in names
    }
    return PairFiles(tuple(job.path("pairs", task) for task in range(job.ranges)), job.n, counters=counters)


def cut(sketch: Sketch, n: int, memory: int) -> dict[str, int]:
    """Return how many documents and buckets make tasks of about that number of bytes, beside what a bucket pairs.

    Parameters
    ----------
    sketch : Sketch
        The method.
    n : int
        Number of documents.
    memory : int
        Bytes for a task.

    Returns
    -------
    dict
        ``documents`` and ``buckets`` of `cluster_sketches`.
    """
    a_document = BYTES_A_VALUE * sketch.size
    documents = int(np.clip(memory // (2 * a_document), 100, 20_000))
    return {"documents": documents, "buckets": max(1, -(-4 * n * a_document // memory))}


def _done(place: Path, kind: str, make: Callable[[], dict[str, int]]) -> dict[str, int]:
    """Return the counts of a task, which runs unless its result is there."""
    try:
        return dict(opened(place, kind, verify=None).facts["counts"])
    except InputError:
        return make()


def map_documents(job: SketchJob, task: int) -> dict[str, int]:
    """Sketch a range of documents (step 1) and sort their shingles into buckets (step 2)."""

    def make() -> dict[str, int]:
        reader = opened(job.store, "vectors", verify=None)
        vectors, rows = read_block(reader, _span(job, task))
        sketches = _sketched(job, reader, vectors)
        keys = super_shingles(sketches, job.sketch.super_shingles) if job.sketch.super_shingles else sketches
        shingles, places = shingle_document_pairs(keys)
        bucket = (mixed(shingles) % np.uint64(job.buckets)).astype(np.int64)
        order = np.argsort(bucket, kind="stable")
        counts = {"values": len(shingles)}
        with writing(job.path("map", task), "sketches") as out:
            out.put("indptr", sketches.indptr)
            out.put("values", sketches.values)
            out.put("shingles", shingles[order])
            out.put("documents", rows[places[order]].astype(np.int32))
            out.put("edges", np.searchsorted(bucket[order], np.arange(job.buckets + 1)))
            out.facts = {"counts": counts}
        return counts

    return _done(job.path("map", task), "sketches", make)


def _sketched(job: SketchJob, reader: Reader, vectors: Vectors) -> Sketches:
    """Sketch some rows; of a remote vocabulary only what they use is read."""
    count = int(reader.facts["n_signatures"])
    if "vocabulary.npy" not in reader.facts["files"]:
        return job.sketch.sketches(replace(vectors, vocabulary=np.arange(count, dtype=np.uint64)))
    if not is_remote(reader.folder):
        return job.sketch.sketches(replace(vectors, vocabulary=reader.array("vocabulary", np.uint64)))
    used, ids = np.unique(vectors.ids, return_inverse=True)
    vocabulary = reader.take("vocabulary", np.uint64, used.astype(np.int64))
    sketches = job.sketch.sketches(replace(vectors, ids=ids.astype(np.int32), vocabulary=vocabulary))
    if job.sketch.kind is not Kind.permutations or not len(used):
        return sketches
    # these are positions and ids, and all rows must have the same ids
    positions, ids = np.divmod(sketches.values, np.uint64(len(used)))
    return sketches._replace(values=positions * np.uint64(count) + used[ids].astype(np.uint64))


def _span(job: SketchJob, task: int) -> tuple[int, int]:
    return task * job.documents, min((task + 1) * job.documents, job.n)


def _slice(reader: Reader, task: int, *columns: tuple[str, Any]) -> Iterator[NDArray[Any]]:
    """Read what a result holds for one task of the next stage."""
    start, stop = reader.part("edges", np.int64, task, task + 2).tolist()
    return (reader.part(name, kind, start, stop) for name, kind in columns)


def reduce_shingles(job: SketchJob, task: int) -> dict[str, int]:
    """Group a bucket by shingle (step 3), pair the documents of each group (step 4), and add up (step 5)."""

    def make() -> dict[str, int]:
        shingles, documents = [np.empty(0, np.uint64)], [np.empty(0, np.int32)]
        for number in range(job.ranges):
            reader = opened(job.path("map", number), "sketches", verify=None)
            values, rows = _slice(reader, task, ("shingles", np.uint64), ("documents", np.int32))
            shingles.append(values)
            documents.append(rows)
        groups, skipped = job.sketch.without_frequent(
            group_by_shingle(np.concatenate(shingles), np.concatenate(documents))
        )
        smaller, larger, common = sum_of_shards(aggregate(*triplets(shard)) for shard in shards_of(groups))
        counts = {"shared_shingles": len(groups.starts) - 1, "triplets": int(pair_counts(groups).sum()), **skipped}
        with writing(job.path("reduce", task), "triplets") as out:
            out.put("smaller", smaller)
            out.put("larger", larger)
            out.put("common", common)
            out.put("edges", np.searchsorted(smaller, np.arange(job.ranges + 1) * job.documents))
            out.facts = {"counts": counts}
        return counts

    return _done(job.path("reduce", task), "triplets", make)


def sum_documents(job: SketchJob, task: int) -> dict[str, int]:
    """Add up what all buckets have of a range of smaller documents (step 5), and keep what reaches tau (step 6)."""

    def make() -> dict[str, int]:
        columns = [("smaller", np.int32), ("larger", np.int32), ("common", np.int32)]
        parts = [
            list(_slice(opened(job.path("reduce", number), "triplets", verify=None), task, *columns))
            for number in range(job.buckets)
        ]
        smaller, larger, common = aggregate(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        counts = {"candidates": len(common)}
        rows, places = np.unique(np.concatenate([smaller, larger]), return_inverse=True)
        sketches = _sketches(job, rows)
        i, j, estimate = job.sketch.judged(
            sketches, places[: len(smaller)], places[len(smaller) :], common, recount=job.recount
        )
        with writing(job.path("pairs", task), "pairs") as out:
            out.put("i", rows[i].astype(np.int64))
            out.put("j", rows[j].astype(np.int64))
            out.put("similarity", estimate)
            out.facts = {"pairs": len(i), "counts": counts}
        return counts

    return _done(job.path("pairs", task), "pairs", make)


def _sketches(job: SketchJob, documents: NDArray[np.int32]) -> Sketches:
    """Return the sketches of some documents; their sizes alone where no estimate looks at the values."""
    place = np.empty(job.n, np.int64)
    rows = opened(job.store, "vectors", verify=None).part("rows", np.int64, 0, job.n)
    place[rows] = np.arange(job.n)
    wanted = place[documents]
    sizes, values = np.zeros(len(documents), np.int64), [np.empty(0, np.uint64)] * len(documents)
    filled = job.recount or job.sketch.kind is Kind.smallest
    for task in np.unique(wanted // job.documents).tolist():
        reader = opened(job.path("map", task), "sketches", verify=None)
        indptr = reader.array("indptr", np.int64)
        held = np.flatnonzero(wanted // job.documents == task)
        local = wanted[held] - task * job.documents
        sizes[held] = indptr[local + 1] - indptr[local]
        if filled:
            all_values = reader.array("values", np.uint64)
            for at, row in zip(held.tolist(), local.tolist(), strict=True):
                values[at] = np.array(all_values[indptr[row] : indptr[row + 1]])
    indptr = row_starts(sizes)
    return Sketches(indptr, np.concatenate([np.empty(0, np.uint64), *values]))
