"""Truth in a file of its own: clusters, judged pairs, or the qrels of TREC."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.contracts import Collection, Shard
from spotsigs.errors import InputError, counted, reason, require
from spotsigs.formats.input_files import InputFile
from spotsigs.records import Document, IntArray, JudgedPairs, Skipped, Truth

COLUMNS = {2: "id, cluster", 3: "id, id, grade", 4: "the id, 0, id, grade of TREC"}
Row = tuple[int, list[str]]
"""Number of a line, and its columns."""


@dataclass(frozen=True, kw_only=True)
class WithTruth(Collection):
    """Documents of a collection with the truth of a file.

    Parameters
    ----------
    collection : Collection
        Documents.
    file : str
        Table without quotes, separated by tabs, or by blanks. Two columns: id and cluster. Three columns: id, id and
        grade; four columns: the same as TREC's qrels, whose second column is ignored. A grade above 0 is a duplicate,
        any other none; about pairs that the file does not have, nothing is known. A first line of names is ignored.
    unlabelled : str
        Pages without a cluster in the file: ``error``; ``drop``, they are left out; ``alone``, each is a story of its
        own.

    Raises
    ------
    InputError
        If the file is no such table, names a page twice, gives a pair two grades, names an unknown page, or has no
        cluster of a page and `unlabelled` is ``error``.
    """

    collection: Any
    file: str
    unlabelled: str = "error"
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        chosen = self.unlabelled in ("error", "drop", "alone")
        require(chosen, f"data.unlabelled must be error, drop or alone, got {self.unlabelled!r}")
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
    def idf_band(self) -> tuple[float, float]:  # type: ignore[override]
        """Band of the collection."""
        band: tuple[float, float] = self.collection.idf_band
        return band

    @property
    def site_pattern(self) -> str:
        """Pattern of the site in an id, if the collection has one."""
        return str(getattr(self.collection, "site_pattern", ""))

    @property
    def path(self) -> Any:
        """Path of the collection, if it has one."""
        return getattr(self.collection, "path", None)

    def shards(self) -> Sequence[Shard]:
        """Return the shards of the collection, without pages that have no label if these are left out."""
        shards: Sequence[Shard] = self.collection.shards()
        rows = _rows(self.file, self.digest)
        if self.unlabelled != "drop" or not self._clusters(rows):
            return shards
        labelled = frozenset(row[0] for _, row in rows)
        return [partial(_labelled, shard, labelled) for shard in shards]

    def sources(self) -> Sequence[Any]:
        """Return the files of the collection and that of the truth."""
        return [*self.collection.sources(), InputFile(Path(self.file).expanduser(), self.file)]

    def truth(self, doc_ids: Sequence[str], clusters: Iterable[str | None], skipped: Iterable[Skipped]) -> Truth | None:
        """Return the truth of the file; a judgement of a page that could not be read is left out."""
        number = {name: k for k, name in enumerate(doc_ids)}
        rows = _rows(self.file, self.digest)
        pairs = not self._clusters(rows)
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
        without = [name for name in doc_ids if name not in given]
        some = self.unlabelled != "error" or not without
        pages = f"{len(without):,} of {counted(len(doc_ids), 'page')} have no label in {self.file}"
        how = "leave them out by data.unlabelled=drop, or let each be a story of its own by data.unlabelled=alone"
        require(some, f"data.truth: {pages}, the first {next(iter(without), '')!r}; {how}")

    def _clusters(self, rows: Sequence[Row]) -> bool:
        """Return whether the file has clusters, one for each page."""
        if len(rows[0][1]) > 2:
            return False
        seen: dict[str, Row] = {}
        for number, row in rows:
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


def _labelled(shard: Shard, labelled: frozenset[str]) -> Iterator[Document | Skipped]:
    """Yield the records of a shard but the pages without a label."""
    return (record for record in shard() if isinstance(record, Skipped) or record.id in labelled)


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
