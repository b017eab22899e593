"""Pairs and clusters as Parquet: the same bytes for any size of the chunks in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.arrow import numbers
from spotsigs.clustering.clusters import Cohesion
from spotsigs.records import Clusters, Overlap
from spotsigs.storage.atomic import replacing
from spotsigs.storage.store import names

ROW_GROUP = 1 << 16
"""Rows of a row group, which is written at once."""

Columns = tuple[NDArray[Any], ...]


def write_pairs(
    path: str | Path, doc_ids: Sequence[str], chunks: Iterable[Columns], overlap: Overlap | None = None
) -> None:
    """Write the columns ``doc_a, doc_b, similarity``, and the quotient's terms: ``shared, union``, null if unknown.

    The chunks are those of `spotsigs.records.PairChunks`.
    """
    import pyarrow as pa

    kinds = {"doc_a": pa.string(), "doc_b": pa.string(), "similarity": pa.float64()}
    schema = pa.schema(kinds | {"shared": pa.int64(), "union": pa.int64()})
    with _growing(path, schema) as append:
        for i, j, similarity in _regrouped(chunks, ROW_GROUP):
            named, indices = np.unique(np.concatenate([i, j]), return_inverse=True)
            ids = names(doc_ids, named)
            a, b = (ids.take(numbers(part)) for part in np.split(indices, 2))
            numbers_of_signatures = [pa.nulls(len(i), pa.int64())] * 2
            if overlap is not None:
                numbers_of_signatures = [numbers(part) for part in overlap(i, j, similarity)]
            append([a, b, numbers(similarity), *numbers_of_signatures])


def write_clusters(path: str | Path, doc_ids: Sequence[str], clusters: Clusters, cohesion: Cohesion) -> None:
    """Write a row for each document: its cluster, the representative, and the cohesion of the cluster.

    The columns are ``doc, cluster, representative, similarity_to_representative`` of the document, and ``size,
    min_similarity, mean_similarity, chain`` of its cluster, see `spotsigs.clustering.clusters.Cohesion`.
    """
    import pyarrow as pa

    texts = ("doc", "representative")
    kinds = {"cluster": pa.int32(), "size": pa.int64(), "chain": pa.bool_()}
    columns = (
        "doc, cluster, representative, similarity_to_representative, size, min_similarity, mean_similarity, chain"
    ).split(", ")
    schema = pa.schema([(name, pa.string() if name in texts else kinds.get(name, pa.float64())) for name in columns])
    with _growing(path, schema) as append:
        n = len(clusters.labels)
        for start in range(0, n, ROW_GROUP):
            span = slice(start, min(start + ROW_GROUP, n))
            labels = clusters.labels[span]
            held = cohesion.of(labels)
            append(
                [
                    names(doc_ids, np.arange(span.start, span.stop)),
                    numbers(labels),
                    names(doc_ids, clusters.representatives[labels]),
                    numbers(clusters.similarity_to_representative[span]),
                    numbers(clusters.sizes[labels].astype(np.int64)),
                    numbers(held.minimum),
                    numbers(held.mean),
                    numbers(held.chain),
                ]
            )


@contextmanager
def _growing(path: str | Path, schema: Any) -> Iterator[Any]:
    """Yield a function that appends a row group to a new file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with replacing(Path(path)) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as out:
        yield lambda columns: out.write_table(pa.table(columns, schema=schema))


def _regrouped(chunks: Iterable[Columns], size: int) -> Iterator[Columns]:
    """Cut columns in chunks of any length into chunks of equal length; the last one may be shorter."""
    waiting: list[Columns] = []
    held = 0
    for chunk in chunks:
        start = 0
        while start < len(chunk[0]):
            part = tuple(column[start : start + size - held] for column in chunk)
            waiting.append(part)
            held += len(part[0])
            start += len(part[0])
            if held == size:
                yield _merged(waiting)
                waiting, held = [], 0
    if held:
        yield _merged(waiting)


def _merged(parts: Sequence[Columns]) -> Columns:
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))
