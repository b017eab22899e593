"""Pairs on disk to clusters, by tasks on an engine.

Five rounds, each task with inputs that it names and a result of its own, so that it can run again anywhere:

1. `unite`: the pairs of some files become a forest, of which the edges stay: at most one for each document.
2. `merge`: some forests become one, until one is left; its trees are the components of all pairs.
3. `sort_out`: the pairs of some files go to parts, all of a component to the same.
4. `judge`: no pair leads out of a part, so that a part is a collection of its own, grouped as in memory.
5. `collect`: what the parts say of a range of documents, in order.

Where the pairs fit into one task they are one part, and the first three rounds fall away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.row_blocks import flagged, gathered, own
from spotsigs.clustering.clusters import ClusterMethod, Cohesion, components, numbered
from spotsigs.clustering.decisions import Nearest
from spotsigs.clustering.grouping import Grouped, group
from spotsigs.engines import Engine
from spotsigs.outofcore.prefix_partition_join import PairFiles
from spotsigs.outofcore.prefix_partition_tasks import BYTES_A_PAIR
from spotsigs.outofcore.resumable_tasks import Checkpoints, append_parts, run
from spotsigs.records import Clusters, IntArray
from spotsigs.storage.locations import absolute, as_path
from spotsigs.storage.store import Reader, Writer, fingerprint, remove_tree

BYTES_JUDGED = 5 * BYTES_A_PAIR
"""What `judge` holds for each pair, if each is a cluster of its own."""

BYTES_COLLECTED = 64
"""What `collect` holds for each document."""

FORESTS = 16
"""Forests that become one at a time."""

ROUNDS = ("priority", "sources", "forests", "sorted", "pairs", "judged", "collected")
"""What the tasks leave until the last has ended."""

OF_ROWS: dict[str, Any] = {"heads": np.int32, "to_head": np.float64, "partner": np.int32, "similarity": np.float64}
"""What is known of each document: its representative, similarity to that, nearest partner, similarity to that."""

OF_CLUSTERS: dict[str, Any] = {
    "pairs": np.int64,
    "minimum": np.float64,
    "mean": np.float64,
    "apart": np.int32,
    "chain": np.bool_,
}
"""What is known of each cluster of several documents, see `spotsigs.clustering.clusters.Cohesion`."""


@dataclass(frozen=True, kw_only=True)
class Grouping(Checkpoints):
    """What all tasks know.

    Attributes
    ----------
    method : str
        What a cluster is.
    n : int
        Number of documents.
    memory : int
        Bytes that one task may hold.
    parts : int
        Parts of the pairs.
    ranges : int
        Ranges of documents.
    ordered : bool
        Whether documents have a priority.
    """

    method: str
    n: int
    memory: int
    parts: int
    ranges: int
    ordered: bool

    def edges(self) -> NDArray[np.int64]:
        """Return where the ranges of documents begin, and the end of the last."""
        return np.arange(self.ranges + 1) * self.n // self.ranges

    def pairs(self, folders: Iterable[str | Path], part: int | None = None) -> PairFiles:
        """Return pairs that a task reads."""
        return PairFiles(tuple(map(as_path, folders)), self.n, memory=self.memory // 2, part=part)


class PairShare(NamedTuple):
    """A task: the ``number``-th share of the files of pairs."""

    job: Grouping
    number: int
    folders: Sequence[str]


class Merge(NamedTuple):
    """A task: one forest of those from ``first`` to before ``last`` of a level."""

    job: Grouping
    level: int
    number: int
    first: int
    last: int


def group_files(
    pairs: PairFiles,
    folder: str | Path,
    engine: Engine,
    *,
    memory: int,
    clusters: str | ClusterMethod = ClusterMethod.components,
    priority: IntArray | None = None,
) -> Grouped:
    """Group documents by their pairs, as `spotsigs.clustering.grouping.group` does in one process.

    Parameters
    ----------
    pairs : PairFiles
        Near-duplicate pairs, in a place that all workers see.
    folder : str or Path
        Where what is found lies, in a folder for each method and priority. What a former call left there is kept.
    engine : Engine
        Where the tasks run; the result does not depend on it.
    memory : int
        Bytes that one task may hold.
    clusters : {"components", "anchored"}
        What a cluster is.
    priority : ndarray of int, shape (n,), optional
        The smallest value of a cluster is its representative.

    Returns
    -------
    Grouped
        What it says of documents is memory-mapped, but for labels and representatives: they are counted here.
    """
    method = ClusterMethod(clusters).value
    order = b"" if priority is None else xxhash.xxh3_128_digest(np.ascontiguousarray(priority).data)
    made_of = f"{[fingerprint(one) for one in pairs.folders]} {pairs.n} {method} {memory}".encode()
    job = Grouping(
        folder=absolute(as_path(folder) / f"clusters-{xxhash.xxh64_hexdigest(made_of + order)}"),
        method=method,
        n=pairs.n,
        memory=memory,
        parts=max(1, ceil(len(pairs) * BYTES_JUDGED / memory)),
        ranges=max(1, ceil(pairs.n * BYTES_COLLECTED / memory)),
        ordered=priority is not None,
    )
    job.checkpoint("groups", work=lambda out: _put_groups(job, pairs, priority, engine, out))
    for name in ROUNDS:
        remove_tree(job.path(name))
    return _groups(job.result("groups"))


def _put_groups(job: Grouping, pairs: PairFiles, priority: IntArray | None, engine: Engine, out: Writer) -> None:
    """Run the rounds, and write what the last one leaves behind one another."""
    if priority is not None:
        job.checkpoint("priority", work=lambda out: out.put("priority", np.asarray(priority, np.int64)))
    folders = [absolute(folder) for folder in pairs.folders]
    if job.parts > 1:
        folders = _by_part(job, folders, engine)
    job.checkpoint("sources", work=lambda out: out.strings("folders", folders))
    for _ in run(engine, judge, [(job, part) for part in range(job.parts)], "grouping"):
        pass
    for _ in run(engine, collect, [(job, k) for k in range(job.ranges)], "collecting"):
        pass
    readers = [job.result("collected", k) for k in range(job.ranges)]
    for name, kind in (OF_ROWS | {"first": np.int32} | OF_CLUSTERS).items():
        append_parts(out, name, kind, readers)


def _by_part(job: Grouping, folders: Sequence[str], engine: Engine) -> list[str]:
    """Send all pairs of a component to one part; return the folders of the sorted pairs."""
    shares = list(_shares(job, folders))
    count, level = len(list(run(engine, unite, shares, "uniting"))), 0
    while count > 1:
        merges = [
            Merge(job, level, k, k * FORESTS, min((k + 1) * FORESTS, count)) for k in range(ceil(count / FORESTS))
        ]
        count, level = len(list(run(engine, merge, merges, "merging"))), level + 1
    sent = run(engine, sort_out, [(share, level) for share in shares], "sorting")
    return [
        absolute(job.path("pairs", share.number, k)) for share, n in zip(shares, sent, strict=True) for k in range(n)
    ]


def _shares(job: Grouping, folders: Sequence[str]) -> Iterator[PairShare]:
    """Put files together whose pairs are worth a forest, and fit."""
    most = max(job.memory // (2 * BYTES_A_PAIR), job.n // 4)
    some: list[str] = []
    held = number = 0
    for folder in folders:
        size = len(job.pairs([folder]))
        if some and held + size > most:
            yield PairShare(job, number, tuple(some))
            some, held, number = [], 0, number + 1
        some.append(folder)
        held += size
    yield PairShare(job, number, tuple(some))


def unite(share: PairShare) -> None:
    """Leave a forest of the pairs of some files."""
    job = share.job
    edges = ((i, j) for i, j, _ in job.pairs(share.folders).chunks())
    job.checkpoint("forests", 0, share.number, work=lambda out: _put_forest(out, components(edges, job.n)))


def merge(task: Merge) -> None:
    """Leave one forest of some."""
    edges = (_edges(task.job, task.level, number) for number in range(task.first, task.last))
    task.job.checkpoint(
        "forests", task.level + 1, task.number, work=lambda out: _put_forest(out, components(edges, task.job.n))
    )


def _put_forest(out: Writer, roots: NDArray[np.int32]) -> None:
    """Write the edges of a forest: one for each document that is not the first of its tree."""
    with out.growing("documents", np.int32) as append_documents, out.growing("roots", np.int32) as append_roots:
        for some in flagged(~own(roots)):
            append_documents(some)
            append_roots(roots[some])


def _edges(job: Grouping, level: int, number: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    left = job.result("forests", level, number)
    return left.whole("documents", np.int32), left.whole("roots", np.int32)


def sort_out(task: tuple[PairShare, int]) -> int:
    """Send the pairs of some files to their parts; return how many stores they fill."""
    share, level = task
    return int(share.job.checkpoint("sorted", share.number, work=lambda out: _sort_out(share, level, out))["stores"])


def _sort_out(share: PairShare, level: int, out: Writer) -> None:
    job = share.job
    roots = components([_edges(job, level, 0)], job.n)
    out.facts["stores"] = 0
    for k, (i, j, similarity) in enumerate(job.pairs(share.folders).chunks()):
        to = roots[i] % job.parts
        order = np.argsort(to, kind="stable")
        sizes = np.bincount(to, minlength=job.parts)
        columns = {"i": i[order], "j": j[order], "similarity": similarity[order], "starts": row_starts(sizes)}
        job.checkpoint("pairs", share.number, k, work=partial(_put, columns))
        out.facts["stores"] = k + 1


def _put(columns: Mapping[str, NDArray[Any]], out: Writer) -> None:
    for name, values in columns.items():
        out.put(name, values)
    out.facts["pairs"] = len(columns["i"])


def judge(task: tuple[Grouping, int]) -> None:
    """Leave what the pairs of a part say of its documents."""
    job, part = task
    job.checkpoint("judged", part, work=lambda out: _judge(job, part, out))


def _judge(job: Grouping, part: int, out: Writer) -> None:
    pairs = job.pairs(job.result("sources").strings("folders"), part if job.parts > 1 else None)
    some = [np.unique(np.concatenate([i, j])) for i, j, _ in pairs.chunks()]
    rows = np.unique(np.concatenate([np.empty(0, np.int64), *some]))
    del some
    pairs = replace(pairs, n=len(rows), rows=rows)
    held = pairs.in_memory()
    priority = job.result("priority").take("priority", np.int64, rows) if job.ordered else None
    found = group(pairs if held is None else held, clusters=job.method, priority=priority)
    clusters, cohesion = found.clusters, found.cohesion
    first = rows[np.unique(clusters.labels, return_index=True)[1][cohesion.labels]]
    edges = job.edges()
    out.put("rows", rows.astype(np.int32))
    out.put("heads", rows[clusters.representatives[clusters.labels]].astype(np.int32))
    out.put("to_head", clusters.similarity_to_representative)
    out.put("partner", rows[found.nearest.partner].astype(np.int32))
    out.put("similarity", found.nearest.similarity)
    out.put("row_starts", np.searchsorted(rows, edges))
    out.put("first", first.astype(np.int32))
    for name in OF_CLUSTERS:
        out.put(f"cluster_{name}", getattr(cohesion, name))
    out.put("cluster_starts", np.searchsorted(first, edges))


def collect(task: tuple[Grouping, int]) -> None:
    """Leave what all parts say of a range of documents, and of the clusters that begin there."""
    job, number = task
    job.checkpoint("collected", number, work=lambda out: _collect(job, number, out))


def _collect(job: Grouping, number: int, out: Writer) -> None:
    start, stop = job.edges()[number : number + 2].tolist()
    n = stop - start
    alone = np.arange(start, stop, dtype=np.int32), np.ones(n), np.full(n, -1, np.int32), np.full(n, np.nan)
    of_rows = dict(zip(OF_ROWS, alone, strict=True))
    first: list[NDArray[Any]] = [np.empty(0, np.int32)]
    of_clusters: dict[str, list[NDArray[Any]]] = {name: [np.empty(0, kind)] for name, kind in OF_CLUSTERS.items()}
    for part in range(job.parts):
        left = job.result("judged", part)
        span = left.part("row_starts", np.int64, number, number + 2).tolist()
        places = left.part("rows", np.int32, *span) - start
        for name, kind in OF_ROWS.items():
            of_rows[name][places] = left.part(name, kind, *span)
        span = left.part("cluster_starts", np.int64, number, number + 2).tolist()
        first.append(left.part("first", np.int32, *span))
        for name, kind in OF_CLUSTERS.items():
            of_clusters[name].append(left.part(f"cluster_{name}", kind, *span))
    for name, values in of_rows.items():
        out.put(name, values)
    begins = np.concatenate(first)
    order = np.argsort(begins)
    out.put("first", begins[order])
    for name, parts in of_clusters.items():
        out.put(name, np.concatenate(parts)[order])


def _groups(found: Reader) -> Grouped:
    """Number the clusters: one count over all documents, so that no task can."""
    representatives, labels = numbered(found.whole("heads", np.int32))
    to_head, partner, similarity = (found.array(name, OF_ROWS[name]) for name in ("to_head", "partner", "similarity"))
    several = gathered(labels, found.array("first", np.int32))
    cohesion = Cohesion(several, **{name: found.array(name, kind) for name, kind in OF_CLUSTERS.items()})
    return Grouped(Clusters(labels, representatives, to_head), cohesion, Nearest(partner, similarity))
