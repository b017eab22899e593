"""The tables of a run, by tasks on an engine: each writes a range of rows, and the calling process joins the parts.

Rows of ``pairs.parquet`` and of ``clusters.csv`` are cut by their places in these tables, those of the others by
documents. A table of one range is written by the calling process. The bytes are those that
`spotsigs.clustering.tables.write_tables` writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from spotsigs.clustering.clusters import Cohesion
from spotsigs.clustering.decisions import Decisions, Keep
from spotsigs.clustering.parquet_tables import ROW_GROUP, write_clusters, write_pairs
from spotsigs.clustering.tables import (
    KEPT,
    LISTED,
    REMOVED,
    Columns,
    head,
    kept,
    largest_first,
    lines,
    listed,
    parts,
    removed,
    write_cluster_list,
    write_lists,
)
from spotsigs.engines import Engine
from spotsigs.errors import require
from spotsigs.exact_duplicates import Copies
from spotsigs.outofcore.prefix_partition_join import PairFiles
from spotsigs.outofcore.resumable_tasks import Rounds, pieces, run
from spotsigs.records import Clusters, Measure, Overlap
from spotsigs.storage.atomic import alone, replacing
from spotsigs.storage.locations import absolute, as_path
from spotsigs.storage.parquet_concat import join_files
from spotsigs.storage.store import Reader, Writer, fingerprint, opened, remove_tree

RANGE = 4 * ROW_GROUP
"""Rows of a table that a task writes: whole row groups, so that the ranges do not show."""

KINDS: dict[str, Any] = {
    "labels": np.int32,
    "representatives": np.int32,
    "to_representative": np.float64,
    "sizes": np.int32,
    "kept": np.bool_,
    "partner": np.int32,
    "similarity": np.float64,
    "content": np.int32,
    "stands": np.int32,
    "compared": np.bool_,
    "boilerplate": np.bool_,
    "several": np.int32,
    "pairs": np.int64,
    "minimum": np.float64,
    "mean": np.float64,
    "apart": np.int32,
    "chain": np.bool_,
}
"""What the tables are made of beside names and pairs: of documents, of clusters, and of clusters of several."""


@dataclass(frozen=True, kw_only=True)
class Tables(Rounds):
    """What all tasks know.

    Attributes
    ----------
    vectors, checksum : str
        The store with the names, and what tells it from others.
    keep : Keep
        The policy.
    n, listed : int
        Documents, and clusters of several.
    new_from : int
        The first document of ``kept.csv``.
    measure : Measure, optional
        What the similarities of pairs are quotients of.
    memory : int
        Bytes of pairs that may be in memory at a time.
    size : int
        Rows of a range.
    """

    vectors: str
    checksum: str
    keep: Keep
    n: int
    listed: int
    new_from: int
    measure: Measure | None
    memory: int
    size: int


class TablePart(NamedTuple):
    """A task: the ``number``-th range of the rows of some tables."""

    job: Tables
    of: str
    number: int

    def rows(self, length: int) -> range:
        """Return the range."""
        return range(length)[self.number * self.job.size : (self.number + 1) * self.job.size]


def write_tables_by_ranges(
    folder: Path,
    doc_ids: Sequence[str],
    pairs: PairFiles,
    decisions: Decisions,
    cohesion: Cohesion,
    *,
    store: str | Path,
    engine: Engine,
    new_from: int = 0,
    say: Callable[[str], object] = lambda sentence: None,
) -> None:
    """Write the tables of a matched collection, see `spotsigs.clustering.tables.write_tables`.

    Parameters
    ----------
    folder : Path
        Where to.
    doc_ids : sequence of str
        Ids of the documents, by row, as they are in the store.
    pairs : PairFiles
        Near-duplicate pairs.
    decisions : Decisions
        From `spotsigs.clustering.decisions.decide`.
    cohesion : Cohesion
        Of the same clusters.
    store : str or Path
        The store of the collection, which all workers see; parts of tables lie there until they are joined.
    engine : Engine
        Where the tasks run.
    new_from : int
        ``kept.csv`` and ``removed.csv`` list the documents from this row on.
    say : callable, optional
        Called with a sentence where another run has the store.
    """
    sizes = {"pairs": len(pairs), "clusters": len(cohesion.labels), "documents": len(decisions.kept)}
    some = {of: ceil(size / RANGE) for of, size in sizes.items() if size > RANGE}
    if some:
        with alone(as_path(store), say):
            job = _job(as_path(store), pairs, decisions, cohesion, new_from)
            tasks = [TablePart(job, of, k) for of in some for k in range(some[of])]
            for _ in run(engine, write_part, tasks, "writing"):
                pass
            for of, count in some.items():
                _JOIN[of](folder, [job.left("part", of, k) for k in range(count)])
            _found.cache_clear()
            remove_tree(job.path())
    if "pairs" not in some:
        write_pairs(folder / "pairs.parquet", doc_ids, pairs.chunks(), pairs.overlap)
    if "clusters" not in some:
        write_cluster_list(folder / "clusters.csv", doc_ids, decisions.clusters, cohesion)
    if "documents" not in some:
        write_clusters(folder / "clusters.parquet", doc_ids, decisions.clusters, cohesion)
        write_lists(decisions, doc_ids, folder, new_from=new_from)


def _job(store: Path, pairs: PairFiles, decisions: Decisions, cohesion: Cohesion, new_from: int) -> Tables:
    """Put what the calling process knows where the tasks see it."""
    columns, checksum = _columns(decisions, cohesion), fingerprint(store / "vectors")
    made_of = [checksum, *map(fingerprint, pairs.folders), str(new_from), decisions.keep.value]
    content = xxhash.xxh3_64(" ".join(made_of).encode())
    for values in columns.values():
        content.update(np.ascontiguousarray(values).data)
    job = Tables(
        folder=absolute(store / f"tables-{content.hexdigest()}"),
        vectors=absolute(store / "vectors"),
        checksum=checksum,
        keep=decisions.keep,
        n=len(decisions.kept),
        listed=len(cohesion.labels),
        new_from=new_from,
        measure=None if pairs.overlap is None else pairs.overlap.measure,
        memory=pairs.memory,
        size=RANGE,
    )

    def put(out: Writer) -> None:
        for name, values in columns.items():
            out.put(name, values)
        if pairs.overlap is not None:
            out.put("lengths", pairs.overlap.lengths)
            out.facts["lengths"] = pairs.overlap.lengths.dtype.str
        out.strings("folders", map(absolute, pairs.folders))
        with out.growing("order", np.int64) as append:
            for places in largest_first(decisions.clusters, cohesion):
                append(places)
        with out.growing("spans", np.int64) as append, out.growing("before", np.int64) as append_before:
            for spans, before in pairs.cut(job.size):
                append(spans.ravel())
                append_before(np.array([before]))

    job.leave("columns", work=put)
    return job


def _columns(decisions: Decisions, cohesion: Cohesion) -> dict[str, NDArray[Any]]:
    clusters, copies = decisions.clusters, decisions.copies
    values = (
        *(clusters.labels, clusters.representatives, clusters.similarity_to_representative, clusters.sizes),
        *(decisions.kept, decisions.partner, decisions.similarity, copies.content, copies.stands),
        *(decisions.compared, decisions.boilerplate),
        *(cohesion.labels, cohesion.pairs, cohesion.minimum, cohesion.mean, cohesion.apart, cohesion.chain),
    )
    return dict(zip(KINDS, values, strict=True))


class _Found(NamedTuple):
    """What a task reads: memory-mapped, so that a process holds what its ranges look at."""

    store: Reader
    doc_ids: Sequence[str]
    decisions: Decisions
    cohesion: Cohesion


@lru_cache(1)
def _found(job: Tables) -> _Found:
    store, names = job.left("columns"), opened(job.vectors, "vectors", verify=False)
    changed = fingerprint(names.folder) != job.checksum
    require(not changed, f"another run changed the store {names.folder}; give the same command again")
    of = {name: store.array(name, kind) for name, kind in KINDS.items()}
    clusters = Clusters(of["labels"], of["representatives"], of["to_representative"])
    vars(clusters)["sizes"] = of["sizes"]  # where the property keeps them once they are counted
    decisions = Decisions(
        clusters=clusters,
        keep=job.keep,
        copies=Copies(of["content"], of["stands"]),
        **{name: of[name] for name in ("kept", "partner", "similarity", "compared", "boilerplate")},
    )
    several = ("pairs", "minimum", "mean", "apart", "chain")
    cohesion = Cohesion(of["several"], **{name: of[name] for name in several})
    return _Found(store, names.strings("doc_ids"), decisions, cohesion)


def write_part(task: TablePart) -> None:
    """Leave a range of the rows of some tables, each as bytes."""
    task.job.leave("part", task.of, task.number, work=lambda out: _PUT[task.of](task, out))


def _put_documents(task: TablePart, out: Writer) -> None:
    _, doc_ids, decisions, cohesion = _found(task.job)
    rows, file = task.rows(task.job.n), BytesIO()
    write_clusters(file, doc_ids, decisions.clusters, cohesion, rows)
    out.put("clusters", np.frombuffer(file.getbuffer(), np.uint8))
    new = range(max(rows.start, task.job.new_from), max(rows.stop, task.job.new_from))
    _put_lines(out, "kept", kept(decisions, doc_ids, new))
    _put_lines(out, "removed", removed(decisions, doc_ids, new))


def _put_clusters(task: TablePart, out: Writer) -> None:
    store, doc_ids, decisions, cohesion = _found(task.job)
    rows = task.rows(task.job.listed)
    order = store.part("order", np.int64, rows.start, rows.stop)
    _put_lines(out, "listed", listed(doc_ids, decisions.clusters, cohesion, parts(order)))


def _put_pairs(task: TablePart, out: Writer) -> None:
    job, file = task.job, BytesIO()
    store, doc_ids, _, _ = _found(job)
    folders = store.strings("folders")
    [before] = store.part("before", np.int64, task.number, task.number + 1).tolist()
    size = 2 * len(folders)
    spans = store.part("spans", np.int64, task.number * size, (task.number + 1) * size).reshape(-1, 2)
    pairs = PairFiles(tuple(map(as_path, folders)), job.n, memory=job.memory, spans=spans)
    overlap = None
    if job.measure is not None:
        overlap = Overlap(store.array("lengths", store.facts["lengths"]), job.measure)
    write_pairs(file, doc_ids, _between(pairs.chunks(), before, before + job.size), overlap)
    out.put("pairs", np.frombuffer(file.getbuffer(), np.uint8))


def _between(chunks: Iterator[tuple[Any, ...]], first: int, last: int) -> Iterator[tuple[Any, ...]]:
    """Yield the pairs of these places in the order of all that come."""
    place = 0
    for chunk in chunks:
        span = slice(max(first - place, 0), max(last - place, 0))
        yield tuple(column[span] for column in chunk)
        place += len(chunk[0])


def _put_lines(out: Writer, name: str, batches: Iterator[Columns]) -> None:
    with out.growing(name, np.uint8) as append:
        for line in lines(batches):
            append(np.frombuffer(line, np.uint8))


def _join_documents(folder: Path, found: Sequence[Reader]) -> None:
    _join_row_groups(folder / "clusters.parquet", found, "clusters")
    _join_lines(folder / "kept.csv", found, "kept", KEPT)
    _join_lines(folder / "removed.csv", found, "removed", REMOVED)


def _join_row_groups(path: Path, found: Sequence[Reader], name: str) -> None:
    with replacing(path) as temporary, temporary.open("wb") as file:
        join_files((part.whole(name, np.uint8).tobytes() for part in found), file)


def _join_lines(path: Path, found: Sequence[Reader], name: str, header: Sequence[str]) -> None:
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(head(header))
        for part in found:
            for piece in pieces(part, name, np.uint8):
                file.write(piece.data)


_PUT: dict[str, Callable[[TablePart, Writer], None]] = {
    "pairs": _put_pairs,
    "clusters": _put_clusters,
    "documents": _put_documents,
}
_JOIN: dict[str, Callable[[Path, Sequence[Reader]], None]] = {
    "pairs": lambda folder, found: _join_row_groups(folder / "pairs.parquet", found, "pairs"),
    "clusters": lambda folder, found: _join_lines(folder / "clusters.csv", found, "listed", LISTED),
    "documents": _join_documents,
}
