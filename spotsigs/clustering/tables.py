"""Tables of a run: all of them, and those in CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.arrow import concat_strings, in_words, numbers, text
from spotsigs.arrays.row_blocks import flagged
from spotsigs.clustering.clusters import Cohesion
from spotsigs.clustering.decisions import Decisions
from spotsigs.clustering.parquet_tables import write_clusters, write_pairs
from spotsigs.records import Clusters, IntArray, PairChunks
from spotsigs.storage.atomic import replacing
from spotsigs.storage.store import names

KEPT = ("doc", "compared")
REMOVED = ("doc", "kept_instead", "partner", "similarity", "reason")
LISTED = ("cluster", "representative", "size", "pairs", "min_similarity", "mean_similarity", "apart", "chain")
"""Columns of ``kept.csv``, ``removed.csv`` and ``clusters.csv``."""

Columns = Sequence[Any]
"""Arrow arrays of strings: some rows of all columns."""

_FORMULA = ("=", "+", "@", "＝", "＋", "－", "＠", "-")
_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))  # that of regular expressions is ASCII in Arrow
_ARROW_FORMULA = f"^([{_SPACE}]*[{''.join(_FORMULA)}]|[\t\r\n])"

_ROWS = 1 << 14  # that are written at a time: far fewer than fit into the 2 GB of one array of strings


def write_tables(
    folder: Path,
    doc_ids: Sequence[str],
    pairs: PairChunks,
    decisions: Decisions,
    cohesion: Cohesion,
    *,
    new_from: int = 0,
) -> None:
    """Write ``pairs.parquet``, ``clusters.parquet``, ``clusters.csv``, ``kept.csv`` and ``removed.csv``.

    Parameters
    ----------
    folder : Path
        Folder of the files.
    doc_ids : sequence of str
        Ids of the documents, by row.
    pairs : Pairs, or spotsigs.outofcore.prefix_partition_join.PairFiles
        Near-duplicate pairs.
    decisions, cohesion
        Results of `decide` and `spotsigs.clustering.clusters.cohesion` for these pairs.
    new_from : int
        First row that ``kept.csv`` and ``removed.csv`` list: that of the first document added to a store.
    """
    write_pairs(folder / "pairs.parquet", doc_ids, pairs.chunks(), pairs.overlap)
    write_clusters(folder / "clusters.parquet", doc_ids, decisions.clusters, cohesion)
    write_cluster_list(folder / "clusters.csv", doc_ids, decisions.clusters, cohesion)
    write_lists(decisions, doc_ids, folder, new_from=new_from)


def write_lists(decisions: Decisions, doc_ids: Sequence[str], folder: str | Path, *, new_from: int = 0) -> None:
    """Write ``kept.csv`` and ``removed.csv``.

    ``kept.csv`` states for each kept document whether it was ``compared``: ``no`` if it has too few signatures to have
    near-duplicates. ``removed.csv`` has, for each removed document, the kept one that replaces it, the partner of the
    pair that removes it, their similarity, and the reason. The arguments are those of `write_tables`.
    """
    folder = Path(folder)
    kept = ([names(doc_ids, rows), _compared(decisions, rows)] for rows in flagged(decisions.kept, new_from))
    write_table(folder / "kept.csv", KEPT, kept)
    removed = (_removed(decisions, doc_ids, rows) for rows in flagged(~decisions.kept, new_from))
    write_table(folder / "removed.csv", REMOVED, removed)


def _compared(decisions: Decisions, rows: IntArray) -> Any:
    return in_words(decisions.compared[rows], lambda compared: "yes" if compared else "no")


def _removed(decisions: Decisions, doc_ids: Sequence[str], rows: IntArray) -> list[Any]:
    import pyarrow.compute as pc

    instead = decisions.instead(rows)
    return [
        names(doc_ids, rows),
        pc.if_else(numbers(instead < 0), text([""])[0], names(doc_ids, np.maximum(instead, 0))),
        names(doc_ids, decisions.partner[rows]),
        in_words(decisions.similarity[rows], _number),
        decisions.reasons(rows, doc_ids),
    ]


def write_cluster_list(path: Path, doc_ids: Sequence[str], clusters: Clusters, cohesion: Cohesion) -> None:
    """Write a row for each cluster of several documents, the largest first."""
    rows = (_listed(doc_ids, clusters, cohesion, some) for some in _largest_first(clusters, cohesion))
    write_table(path, LISTED, rows)


def _largest_first(clusters: Clusters, cohesion: Cohesion) -> Iterator[NDArray[np.int64]]:
    """Yield the indices of the clusters in `cohesion`, the largest first, in batches."""
    sizes = clusters.sizes[cohesion.labels]
    larger = np.flatnonzero(sizes > 2)
    larger = larger[np.argsort(-sizes[larger], kind="stable")]
    batches = (larger[start : start + _ROWS] for start in range(0, len(larger), _ROWS))
    return chain(batches, flagged(sizes == 2))  # most clusters have two documents and are in order already


def _listed(doc_ids: Sequence[str], clusters: Clusters, cohesion: Cohesion, rows: IntArray) -> list[Any]:
    """Return the columns of ``clusters.csv`` for some clusters of `cohesion`."""
    labels = cohesion.labels[rows]
    return [
        in_words(labels, str),
        names(doc_ids, clusters.representatives[labels]),
        in_words(clusters.sizes[labels], str),
        in_words(cohesion.pairs[rows], str),
        in_words(cohesion.minimum[rows], _number),
        in_words(cohesion.mean[rows], _number),
        in_words(cohesion.apart[rows], str),
        in_words(cohesion.chain[rows], lambda chain: str(chain).lower()),
    ]


def _number(value: float) -> str:
    return "" if np.isnan(value) else repr(value)


def write_table(path: Path, header: Sequence[str], batches: Iterable[Columns]) -> None:
    """Write batches of rows of Arrow strings as CSV, with formulas quoted, see `harmless`."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(f"{','.join(header)}\n".encode())
        for columns in batches:
            cells = [_quoted(_harmless(column), alone=len(columns) == 1) for column in columns]
            rows = concat_strings(*list(chain.from_iterable((cell, ",") for cell in cells))[:-1], "\n")
            file.write(rows.buffers()[2])  # the lines of the batch


def _quoted(cells: Any, *, alone: bool) -> Any:
    """Quote cells with special characters, and an empty cell that is a whole line."""
    import pyarrow.compute as pc

    special = pc.match_substring_regex(cells, '[",\r\n]' + "|^$" * alone)
    if not pc.any(special).as_py():
        return cells
    return pc.if_else(special, concat_strings('"', pc.replace_substring(cells, '"', '""'), '"'), cells)


def _harmless(cells: Any) -> Any:
    import pyarrow.compute as pc

    formula = pc.match_substring_regex(cells, _ARROW_FORMULA)
    return pc.if_else(formula, concat_strings("'", cells), cells) if pc.any(formula).as_py() else cells


def harmless(cell: str) -> str:
    """Quote text that a spreadsheet would run as a formula, wide forms and leading white space included.

    Examples
    --------
    >>> harmless("=cmd()"), harmless(" +1"), harmless("page.html")
    ("'=cmd()", "' +1", 'page.html')
    """
    return f"'{cell}" if cell.lstrip().startswith(_FORMULA) or cell.startswith(("\t", "\r", "\n")) else cell
