"""Truth of a user's pages: labels of the pages, or a file of clusters, judged pairs, or the qrels of TREC."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.contracts import Collection, Shard
from spotsigs.errors import InputError, counted, reason, require
from spotsigs.formats.file_collection import FileCollection
from spotsigs.formats.input_files import InputFile
from spotsigs.records import Document, IntArray, JudgedPairs, Skipped, Truth

COLUMNS = {2: "id, cluster", 3: "id, id, grade", 4: "the id, 0, id, grade of TREC"}
SITED = ["id", "cluster", "site"]
"""First line of a table whose third column is the site of each page."""
Row = tuple[int, list[str]]
"""Number of a line, and its columns."""


@dataclass(frozen=True, kw_only=True)
class WithTruth(Collection):
    """Documents of a collection with the truth of a file, or with their own labels.

    Parameters
    ----------
    collection : Collection
        Documents.
    file : str
        Table without quotes, separated by tabs, or by blanks. Two columns: id and cluster; below the first line
        ``id cluster site``, three: the site, too. Three columns otherwise: id, id and grade; four columns: the same as
        TREC's qrels, whose second column is ignored. A grade above 0 is a duplicate, any other none; about pairs that
        the file does not have, nothing is known. Any other first line of names is ignored. If empty, the labels of the
        pages are the truth.
    unlabelled : str
        Pages without a cluster: ``error``; ``drop``, they are left out; ``alone``, each is a story of its own.

    Raises
    ------
    InputError
        If the file is no such table, names a page twice, gives a pair two grades, names an unknown page, or has no
        cluster of a page and `unlabelled` is ``error``.
    """

    collection: Any
    file: str = ""
    unlabelled: str = "error"
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        chosen = self.unlabelled in ("error", "drop", "alone")
        require(chosen, f"data.unlabelled must be error, drop or alone, got {self.unlabelled!r}")
        if not self.file:
            object.__setattr__(self, "digest", "")
            return
        try:
            content = Path(self.file).expanduser().read_bytes()
            content.decode()
        except OSError as error:
            raise InputError(f"data.truth: {self.file} cannot be read: {reason(error)}") from error
        except UnicodeDecodeError as error:
            raise InputError(f"data.truth: {self.file} is not UTF-8, at byte {error.start}") from error
        object.__setattr__(self, "digest", hashlib.sha256(content).hexdigest())
        rows = _rows(self.file, self.digest)
        if self._clusters(rows):
            return
        pairs = [tuple(sorted(row[:2])) for _, row in self._judged(rows)]
        selves, twice = sum(a == b for a, b in pairs), len(pairs) - len({*pairs})
        if selves:
            sys.stderr.write(f"{self.file}: {counted(selves, 'pair')} of a page with itself is ignored\n")
        if twice:
            sys.stderr.write(f"{self.file}: {twice:,} of {len(pairs):,} lines repeat a pair, which counts once\n")

    @property
    def site_pattern(self) -> str:
        """Pattern of the site in an id, if the collection has one."""
        return str(getattr(self.collection, "site_pattern", ""))

    @property
    def path(self) -> Any:
        """Path of the collection, if it has one."""
        return getattr(self.collection, "path", None)

    @property
    def sites(self) -> Mapping[str, str]:
        """Site of each page by its id, if the file has a column of sites."""
        rows = _rows(self.file, self.digest) if self.file else []
        return {row[0]: row[2] for _, row in rows[1:]} if _is_sited(rows) else {}

    def without_pages(self, skipped: Sized) -> str | None:
        """Return what the collection returns."""
        text: str | None = self.collection.without_pages(skipped)
        return text

    def shards(self) -> Sequence[Shard]:
        """Return the shards of the collection, without pages that have no label if these are left out."""
        shards: Sequence[Shard] = self.collection.shards()
        if not self.file:
            return [partial(_labelled, shard, None) for shard in shards] if self.unlabelled == "drop" else shards
        rows = _rows(self.file, self.digest)
        if self.unlabelled != "drop" or not self._clusters(rows):
            return shards
        labelled = frozenset(row[0] for _, row in (rows[1:] if _is_sited(rows) else rows))
        return [partial(_labelled, shard, labelled) for shard in shards]

    def sources(self) -> Sequence[Any]:
        """Return the files of the collection and the file of the truth."""
        if not self.file:
            return list(self.collection.sources())
        return [*self.collection.sources(), InputFile(Path(self.file).expanduser(), self.file)]

    def truth(self, doc_ids: Sequence[str], clusters: Iterable[str | None], skipped: Iterable[Skipped]) -> Truth | None:
        """Return the truth of the file; a judgement of a page that could not be read is left out."""
        if not self.file:
            truth: Truth | None = self.collection.truth(doc_ids, clusters, skipped)
            return truth
        number = {name: k for k, name in enumerate(doc_ids)}
        rows = _rows(self.file, self.digest)
        pairs = not self._clusters(rows)
        rows = rows[1:] if _is_sited(rows) else rows
        named = {name: line for line, row in reversed(rows) for name in (row[:2] if pairs else row[:1])}
        unread = {record.id.partition(" (")[0] for record in skipped}
        unknown = sorted((line, name) for name, line in named.items() if name not in number and name not in unread)
        if unknown:
            line, name = unknown[0]
            raise InputError(
                f"data.truth: {self.file} names {counted(len(unknown), 'page')} that the collection does not have, the "
                f"first {name!r} in line {line}; its ids are such as {next(iter(doc_ids), '')!r}"
            )
        if not pairs:
            given = {row[0]: row[1] for _, row in rows}
            self._require_labels(doc_ids, given)
            return Truth.from_clusters(given.get(name) for name in doc_ids)
        judged = [(number[a], number[b], same) for _, (a, b, same) in self._judged(rows) if a in number and b in number]
        i, j, positive = (np.array(column) for column in zip(*judged, strict=True)) if judged else np.empty((3, 0), int)
        return truth_of_pairs(i.astype(np.int64), j.astype(np.int64), positive.astype(bool), len(doc_ids))

    def _require_labels(self, doc_ids: Sequence[str], given: Mapping[str, str]) -> None:
        """Refuse labels of a part of the pages, and ids that several pages have."""
        for name in doc_ids:
            base, _, number = name.rpartition("#")
            twice = number.isdigit() and name not in given and base in given
            require(
                not twice, f"data.truth: {base!r} is the id of several pages, so that {self.file} cannot label them"
            )
        if self.unlabelled == "error":
            labels = [given.get(name) for name in doc_ids]
            require_all_labels(doc_ids, labels, f"data.truth: {{}} have no label in {self.file}")

    def _clusters(self, rows: Sequence[Row]) -> bool:
        """Return whether the file has clusters, one for each page."""
        if len(rows[0][1]) > 2 and not _is_sited(rows):
            return False
        seen: dict[str, Row] = {}
        for number, row in rows[1:] if _is_sited(rows) else rows:
            line, earlier = seen.setdefault(row[0], (number, row))
            require(
                line == number,
                f"data.truth: line {number} of {self.file} gives {row[0]!r} the cluster {row[1]!r}, and line {line} "
                f"gives it {earlier[1]!r}; delete one",
            )
        return True

    def _judged(self, rows: Sequence[Row]) -> Iterator[tuple[int, tuple[str, str, bool]]]:
        """Yield the line, both ids, and whether they are duplicates; both directions count once."""
        seen: dict[tuple[str, ...], tuple[int, bool]] = {}
        for number, (one, other, grade) in rows:
            value = _grade(grade)
            require(value is not None, f"data.truth: the grade {grade!r} in line {number} of {self.file} is no number")
            same = bool(value and value > 0)
            line, earlier = seen.setdefault(tuple(sorted((one, other))), (number, same))
            require(
                earlier == same or one == other,
                f"data.truth: lines {line} and {number} of {self.file} contradict each other about {one!r} and "
                f"{other!r}; delete one",
            )
            yield number, (one, other, same)


def require_all_labels(
    doc_ids: Sequence[str], labels: Sequence[str | None], fault: str = "data: {} have no label"
) -> None:
    """Refuse labels of a part of the pages; the fault is a sentence with a place for their number."""
    without = [name for name, label in zip(doc_ids, labels, strict=True) if label is None]
    if without and len(without) < len(labels):
        pages = fault.format(f"{len(without):,} of {counted(len(doc_ids), 'page')}")
        how = "leave them out by data.unlabelled=drop, or let each be a story of its own by data.unlabelled=alone"
        raise InputError(f"{pages}, the first {without[0]!r}; {how}")


def truth_of(
    collection: Any, doc_ids: Sequence[str], clusters: Iterable[str | None], skipped: Iterable[Skipped]
) -> Truth | None:
    """Return the truth of a collection, see `spotsigs.contracts.Collection.truth`.

    Raises
    ------
    InputError
        If the user's own files have labels for a part of their pages.
    """
    labels = list(clusters)
    if isinstance(collection, FileCollection):
        require_all_labels(doc_ids, labels)
    truth: Truth | None = collection.truth(doc_ids, labels, skipped)
    return truth


def read_truth(collection: Any) -> Truth | None:
    """Return the truth of a collection, whose pages are read, but not parsed."""
    records = [record for shard in collection.shards() for record in shard()]
    documents = [record for record in records if isinstance(record, Document)]
    ids, clusters = [document.id for document in documents], [document.cluster for document in documents]
    return truth_of(collection, ids, clusters, [record for record in records if isinstance(record, Skipped)])


def _labelled(shard: Shard, labelled: frozenset[str] | None) -> Iterator[Document | Skipped]:
    """Yield the records of a shard but the pages without a label, of their own unless a set has the ids of others."""
    for record in shard():
        if isinstance(record, Skipped) or (record.cluster is not None if labelled is None else record.id in labelled):
            yield record


def _is_sited(rows: Sequence[Row]) -> bool:
    """Return whether the first line of a table names a column of sites."""
    return bool(rows) and [word.lower() for word in rows[0][1]] == SITED


@lru_cache(maxsize=2)
def _rows(file: str, digest: str) -> list[Row]:
    """Return the lines of a file with some content that are not empty, all with as many columns as the first."""
    lines = Path(file).expanduser().read_text(encoding="utf-8-sig").splitlines()
    separator = "\t" if any("\t" in line for line in lines[:1]) else None
    rows = [(number, line.split(separator)) for number, line in enumerate(lines, 1) if line.strip()]
    require(bool(rows), f"data.truth: {file} is empty; a line has {', or '.join(COLUMNS.values())}")
    count = len(rows[0][1])
    for number, row in rows:
        require(
            len(row) == count and count in COLUMNS,
            f"data.truth: line {number} of {file} has {counted(len(row), 'column')}; every line has two "
            f"({COLUMNS[2]}), three ({COLUMNS[3]}) or four ({COLUMNS[4]}), separated by tabs, or by blanks",
        )
    if _is_sited(rows):
        return rows
    if count == 4:
        rows = [(number, [row[0], row[2], row[3]]) for number, row in rows]
    first = rows[0][1]
    headed = _grade(first[2]) is None if count > 2 else [word.lower() for word in first] == ["id", "cluster"]
    return rows[1:] if headed and len(rows) > 1 else rows


def _grade(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def truth_of_pairs(i: IntArray, j: IntArray, positive: NDArray[np.bool_], n: int) -> Truth:
    """Return the truth of judged pairs of n rows; pairs of a row with itself and repeated ones count once.

    Raises
    ------
    InputError
        If a pair is judged both positive and negative.
    """
    from scipy.sparse import coo_array  # read here, as it takes a fifth of a second of each start
    from scipy.sparse.csgraph import connected_components

    apart = i != j
    first, last = np.minimum(i, j)[apart].astype(np.int64), np.maximum(i, j)[apart].astype(np.int64)
    keys, at = np.unique(first * n + last, return_index=True)
    judged = JudgedPairs(keys, positive[apart][at])
    same, _ = judged.of(first, last, n)
    require(not np.any(same != positive[apart]), "a pair of documents is judged both positive and negative")
    edges = coo_array((np.ones(same.sum()), (first[same], last[same])), shape=(n, n))
    _, components = connected_components(edges, directed=False)
    known = np.zeros(n, np.bool_)
    known[first] = known[last] = True
    numbered, labels = np.unique(components[known], return_inverse=True)
    cluster_of = np.full(n, -1, np.int32)
    cluster_of[known] = labels
    return Truth(cluster_of, tuple(map(str, range(len(numbered)))), judged)
