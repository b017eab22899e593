"""Tables of a run: pairs as Parquet, clusters, kept and removed documents as Parquet and CSV."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.arrow import (
    arrow_numbers,
    arrow_numbers_or_null,
    arrow_text,
    chosen_text,
    concatenated,
    lines,
    mapped_text,
    null_unless,
)
from spotsigs.arrays.row_blocks import flagged
from spotsigs.clustering.clusters import Cohesion
from spotsigs.clustering.decisions import Decisions
from spotsigs.records import Clusters, FloatArray, IntArray, Pairs
from spotsigs.signatures.languages import names_of_languages
from spotsigs.storage.atomic import replacing
from spotsigs.storage.store import arrow_names

KEPT_COLUMNS = ("doc", "compared", "language")
REMOVED_COLUMNS = ("doc", "kept_instead", "partner", "similarity", "lower_bound", "contained", "reason", "text_lost")
CLUSTER_COLUMNS = ("cluster", "representative", "size", "pairs", "min_similarity", "mean_similarity", "apart", "chain")
"""Columns of ``kept.csv``, ``removed.csv`` and ``clusters.csv``."""

NUMBERS = ("similarity", "lower_bound", "contained", "text_lost")
"""Columns of numbers among the first two."""

REFERENCE, PAGE = "reference", "page"
"""Roles of a document, in columns of the tables of a run with a reference."""

ROW_GROUP = 1 << 16
"""Rows of a row group, which is written at once: the bytes of a file do not depend on the chunks in memory."""

_FORMULA = ("=", "+", "@", "＝", "＋", "－", "＠", "-")
_SPECIAL = re.compile('[",\r\n]')
_PERHAPS_FORMULA = "^[^!-~]|^[=+@-]"  # begins all text that `harmless` changes: white space, wide forms, and more

LowerBounds = Callable[[IntArray, IntArray, FloatArray], FloatArray]
"""Function from pairs to the lower bounds of their similarities, as `spotsigs.clustering.in_memory.Matched` has it."""


def _similarities(i: IntArray, j: IntArray, similarity: FloatArray) -> FloatArray:
    """Return the similarities: the lower bounds of documents of which no signature is missing."""
    return similarity


class RowFacts(NamedTuple):
    """What tables have about documents and pairs besides the decisions."""

    new_from: int = 0  # first row that `kept` and `removed` list: the documents that are added to a store
    n_reference: int = 0  # the first rows are documents of a reference, which may have the id of another document
    lower_bounds: LowerBounds = _similarities
    languages: NDArray[np.uint16] | None = None  # `spotsigs.records.DocumentColumns.languages`
    text_lost: NDArray[np.float64] | None = None  # `spotsigs.evaluation.text_lost.TextLost.of_page`


NO_FACTS = RowFacts()


def write_tables(
    folder: Path,
    doc_ids: Sequence[str],
    pairs: Pairs,
    decisions: Decisions,
    cohesion: Cohesion,
    facts: RowFacts = NO_FACTS,
) -> None:
    """Write ``pairs.parquet``, ``clusters.parquet``, ``clusters.csv``, ``kept.csv`` and ``removed.csv``.

    If there are documents of a reference, each column of ids that can have one of them is followed, at the end of the
    table, by a column of roles.
    """
    n_reference = facts.n_reference
    write_pairs(folder / "pairs.parquet", doc_ids, pairs, n_reference, facts.lower_bounds)
    write_clusters(folder / "clusters.parquet", doc_ids, decisions.clusters, cohesion, n_reference)
    write_cluster_list(folder / "clusters.csv", doc_ids, decisions.clusters, cohesion, n_reference)
    write_lists(decisions, doc_ids, folder, facts)


def role_of(of_reference: bool) -> str:
    """Return the role of a document in the columns of roles."""
    return REFERENCE if of_reference else PAGE


def _roles(rows: NDArray[Any], n_reference: int) -> Any:
    """Return the roles of some rows as an Arrow array; null for a negative one."""
    return chosen_text((None, REFERENCE, PAGE), np.where(rows < 0, 0, np.where(rows < n_reference, 1, 2)))


def _with_roles(header: Sequence[str], names_of_roles: Sequence[str], n_reference: int) -> Sequence[str]:
    """Return the columns of a table, with the columns of roles if there is a reference."""
    return (*header, *names_of_roles) if n_reference else header


def write_pairs(
    path: str | Path,
    doc_ids: Sequence[str],
    pairs: Pairs,
    n_reference: int = 0,
    lower_bounds: LowerBounds = _similarities,
) -> None:
    """Write the columns of `pair_columns`: ``doc_a, doc_b, similarity, shared, union, lower_bound``.

    The terms of the quotient, ``shared`` and ``union``, are null if they are unknown. With a reference, ``role_a``
    is the role of the first document; the second one is never of the reference.
    """
    import pyarrow as pa

    kinds = {"doc_a": pa.string(), "doc_b": pa.string(), "similarity": pa.float64()}
    kinds |= {"shared": pa.int64(), "union": pa.int64(), "lower_bound": pa.float64()}
    kinds |= {"role_a": pa.string()} if n_reference else {}
    with _row_groups(path, pa.schema(kinds)) as append:
        for columns in pair_columns(doc_ids, pairs, n_reference, lower_bounds):
            append(columns)


def pair_columns(
    doc_ids: Sequence[str],
    pairs: Pairs,
    n_reference: int = 0,
    lower_bounds: LowerBounds = _similarities,
) -> Iterator[Sequence[Any]]:
    """Yield the columns of `write_pairs` as Arrow arrays, in blocks of rows."""
    import pyarrow as pa

    for i, j, similarity in pairs.chunks(ROW_GROUP):
        named, indices = np.unique(np.concatenate([i, j]), return_inverse=True)
        ids = arrow_names(doc_ids, named)
        a, b = (ids.take(arrow_numbers(part)) for part in np.split(indices, 2))
        terms = [pa.nulls(len(i), pa.int64())] * 2
        if pairs.overlap is not None:
            terms = [arrow_numbers(part) for part in pairs.overlap(i, j, similarity)]
        roles = [_roles(i, n_reference)] if n_reference else []
        yield a, b, arrow_numbers(similarity), *terms, arrow_numbers(lower_bounds(i, j, similarity)), *roles


def cluster_columns(doc_ids: Sequence[str], clusters: Clusters) -> Iterator[Sequence[Any]]:
    """Yield document, cluster and representative of each document as Arrow arrays, in blocks of rows."""
    for start in range(0, len(clusters), ROW_GROUP):
        labels = clusters.labels[start : start + ROW_GROUP]
        rows = np.arange(start, start + len(labels)), clusters.representatives[labels]
        documents, representatives = (arrow_names(doc_ids, part) for part in rows)
        yield documents, arrow_numbers(labels), representatives


def write_clusters(
    path: str | Path, doc_ids: Sequence[str], clusters: Clusters, cohesion: Cohesion, n_reference: int = 0
) -> None:
    """Write a row for each document: its cluster, the representative, and the cohesion of the cluster.

    The columns are ``doc, cluster, representative, similarity_to_representative`` of the document, and ``size,
    min_similarity, mean_similarity, chain`` of its cluster, see `spotsigs.clustering.clusters.Cohesion`; with a
    reference, ``role, representative_role``.
    """
    import pyarrow as pa

    kinds = {"doc": pa.string(), "cluster": pa.int32(), "representative": pa.string()}
    kinds |= {"similarity_to_representative": pa.float64(), "size": pa.int64()}
    kinds |= {"min_similarity": pa.float64(), "mean_similarity": pa.float64(), "chain": pa.bool_()}
    kinds |= {"role": pa.string(), "representative_role": pa.string()} if n_reference else {}
    with _row_groups(path, pa.schema(kinds)) as append:
        for start in range(0, len(clusters), ROW_GROUP):
            labels = clusters.labels[start : start + ROW_GROUP]
            of_cluster = cohesion.of(labels)
            rows, representatives = np.arange(start, start + len(labels)), clusters.representatives[labels]
            roles = [_roles(part, n_reference) for part in (rows, representatives)] if n_reference else []
            append(
                [
                    arrow_names(doc_ids, rows),
                    arrow_numbers(labels),
                    arrow_names(doc_ids, representatives),
                    arrow_numbers(clusters.similarity_to_representative[start : start + ROW_GROUP]),
                    arrow_numbers(clusters.sizes[labels].astype(np.int64)),
                    arrow_numbers(of_cluster.minimum),
                    arrow_numbers(of_cluster.mean),
                    arrow_numbers(of_cluster.chain),
                    *roles,
                ]
            )


@contextmanager
def _row_groups(path: str | Path, schema: Any) -> Iterator[Any]:
    """Yield a function that appends a row group to a new file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # pyarrow would take a path such as run:1 for a URL, and refuses one that is not UTF-8
    with (
        replacing(Path(path)) as temporary,
        temporary.open("wb") as file,
        pq.ParquetWriter(file, schema, compression="zstd") as out,
    ):
        yield lambda columns: out.write_table(pa.table(columns, schema=schema))


def write_cluster_list(
    path: Path, doc_ids: Sequence[str], clusters: Clusters, cohesion: Cohesion, n_reference: int = 0
) -> None:
    """Write a row for each cluster of several documents, the largest first."""
    header = _with_roles(CLUSTER_COLUMNS, ("representative_role",), n_reference)
    with csv_blocks(path, header) as append:
        for columns in _cluster_rows(doc_ids, clusters, cohesion, n_reference):
            append(columns)


def _cluster_rows(
    doc_ids: Sequence[str], clusters: Clusters, cohesion: Cohesion, n_reference: int
) -> Iterator[Sequence[Any]]:
    sizes = clusters.sizes[cohesion.labels]
    larger = np.flatnonzero(sizes > 2)
    larger = larger[np.argsort(-sizes[larger], kind="stable")]
    # most clusters have two documents and are in order already
    for rows in chain(np.split(larger, range(ROW_GROUP, len(larger), ROW_GROUP)), flagged(sizes == 2)):
        labels = cohesion.labels[rows]
        representatives = clusters.representatives[labels]
        yield (
            arrow_numbers(labels),
            arrow_names(doc_ids, representatives),
            arrow_numbers(sizes[rows]),
            arrow_numbers(cohesion.pairs[rows]),
            arrow_numbers_or_null(cohesion.minimum[rows]),
            arrow_numbers_or_null(cohesion.mean[rows]),
            arrow_numbers(cohesion.apart[rows]),
            arrow_numbers(cohesion.chain[rows]),
            *([_roles(representatives, n_reference)] if n_reference else []),
        )


def write_lists(decisions: Decisions, doc_ids: Sequence[str], folder: str | Path, facts: RowFacts = NO_FACTS) -> None:
    """Write ``kept`` and ``removed``, each as CSV and as Parquet, where ids are as they are and empty cells are null.

    ``kept.csv`` states for each kept document whether it was ``compared``: ``no`` if it has too few signatures to have
    near-duplicates, and the language by which it is read, if any. ``removed.csv`` has, for each removed document, the
    kept one that replaces it, the partner of the pair that removes it, their similarity and its lower bound, the
    fraction of its text that the kept one contains, the reason, and the fraction of its text that no kept page
    contains; both fractions are empty if unknown. With a reference, it has the roles of the kept one and of the
    partner.
    """
    _write_list(Path(folder) / "kept", KEPT_COLUMNS, _kept_rows(decisions, doc_ids, facts))
    removed = _with_roles(REMOVED_COLUMNS, ("kept_instead_role", "partner_role"), facts.n_reference)
    rows = _removed_rows(decisions, doc_ids, facts)
    _write_list(Path(folder) / "removed", removed, rows)


def _write_list(path: Path, header: Sequence[str], blocks: Iterator[Sequence[Any]]) -> None:
    """Write Arrow columns in blocks of rows as Parquet and as CSV."""
    import pyarrow as pa

    schema = pa.schema([(name, pa.float64() if name in NUMBERS else pa.string()) for name in header])
    with (
        _row_groups(path.with_suffix(".parquet"), schema) as append_group,
        csv_blocks(path.with_suffix(".csv"), header) as append_lines,
    ):
        for columns in blocks:
            append_group(columns)
            append_lines(columns)


def _kept_rows(decisions: Decisions, doc_ids: Sequence[str], facts: RowFacts) -> Iterator[Sequence[Any]]:
    languages = facts.languages
    if languages is None or len(languages) != len(decisions.kept):  # of a store of an earlier release, or of vectors
        languages = np.zeros(len(decisions.kept), np.uint16)
    for rows in flagged(decisions.kept, facts.new_from):
        distinct, numbers = np.unique(languages[rows], return_inverse=True)
        compared = chosen_text(("no", "yes"), decisions.compared[rows])
        yield arrow_names(doc_ids, rows), compared, chosen_text(names_of_languages(distinct), numbers)


def _removed_rows(decisions: Decisions, doc_ids: Sequence[str], facts: RowFacts) -> Iterator[Sequence[Any]]:
    import pyarrow as pa

    n_reference, text_lost = facts.n_reference, facts.text_lost
    for rows in flagged(~decisions.kept, facts.new_from):
        instead, partner = decisions.replacements(rows), decisions.partner[rows]
        kept, partners = (arrow_names(doc_ids, part) for part in (np.maximum(instead, 0), partner))
        similarity = decisions.similarity[rows]
        in_words = [_names_with_roles(*known, n_reference) for known in ((kept, instead), (partners, partner))]
        yield (
            arrow_names(doc_ids, rows),
            null_unless(instead >= 0, kept),
            partners,
            arrow_numbers_or_null(similarity),
            arrow_numbers_or_null(facts.lower_bounds(rows, partner, similarity)),
            arrow_numbers_or_null(decisions.contained[rows].round(4)),
            decisions.reasons(rows, *in_words),
            pa.nulls(len(rows), pa.float64()) if text_lost is None else arrow_numbers_or_null(text_lost[rows].round(4)),
            *([_roles(part, n_reference) for part in (instead, partner)] if n_reference else []),
        )


def _names_with_roles(names_of_rows: Any, rows: NDArray[Any], n_reference: int) -> Any:
    """Return names as sentences have them: documents of a reference are followed by their role."""
    return concatenated(names_of_rows, chosen_text(("", " of the reference"), rows < n_reference))


@contextmanager
def csv_blocks(path: Path, header: Sequence[str]) -> Iterator[Any]:
    """Yield a function that appends blocks of rows, Arrow arrays of several columns, to a new file of CSV.

    `write_csv` writes the same lines from rows. Booleans are ``true`` and ``false``.
    """
    with replacing(path) as temporary, temporary.open("wb") as file:

        def append(columns: Sequence[Any]) -> None:
            file.write(lines([_cells(column) for column in columns], ","))

        append([arrow_text([name]) for name in header])
        yield append


def _cells(column: Any) -> Any:
    """Return an Arrow array as cells of CSV, the same as `_cell` makes of each value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):
        return mapped_text(column, _cell)  # Arrow writes some floats in other digits than Python
    cells = column.cast(pa.large_string())
    if not pa.types.is_string(column.type):
        return cells
    unsafe = pc.match_substring_regex(cells, _PERHAPS_FORMULA)
    as_text = arrow_text(map(harmless, cells.filter(unsafe).to_pylist())).cast(cells.type)
    cells = pc.replace_with_mask(cells, unsafe, as_text)
    special = pc.match_substring_regex(cells, _SPECIAL.pattern)
    quoted = concatenated('"', pc.replace_substring(cells.filter(special), '"', '""'), '"')
    return pc.replace_with_mask(cells, special, quoted)


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write rows under a header: None as an empty cell, formulas quoted, see `harmless`."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        for row in chain([header], rows):
            line = ",".join(map(_cell, row))
            file.write(line + "\n" if line else '""\n')


def _cell(value: Any) -> str:
    if not isinstance(value, str):
        return "" if value is None else str(value)
    cell = harmless(value)
    return '"' + cell.replace('"', '""') + '"' if _SPECIAL.search(cell) else cell


def harmless(cell: str) -> str:
    """Quote text that a spreadsheet would run as a formula, wide forms and leading white space included.

    Examples
    --------
    >>> harmless("=cmd()"), harmless(" +1"), harmless("page.html")
    ("'=cmd()", "' +1", 'page.html')
    """
    return f"'{cell}" if cell.lstrip().startswith(_FORMULA) or cell.startswith(("\t", "\r", "\n")) else cell
