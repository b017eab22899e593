"""Sizes of the partitions of a skewed collection, as plotted in the slides."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from experiments.claims.facts import Fact
from experiments.harness.study import Work
from experiments.studies.computed import RowsAndFacts
from spotsigs.matching.partitions import Convention, partition_boundaries
from spotsigs.method import Method

LENGTHS, PARTITIONS = "by length", "by partition"
TAU, RHO = 0.75, 1000
"""Threshold of the slides, and the largest partition boundary."""
PAPER, EQUAL = "paper's boundaries", "bins of equal width"


def partitions(work: Work, methods: Mapping[str, Method]) -> RowsAndFacts:
    """Return the number of documents of each length, and in each partition and bin of equal width.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, slides, "Partitioning Effects"; the paper, section 4.2.
    """
    [method] = methods.values()
    lengths = work.read(method).prepare_join(method).corpus.vectors.lengths
    lengths = np.minimum(lengths[lengths > 0], RHO)
    edges = {f"{one.value}'s boundaries": partition_boundaries(TAU, RHO, one) for one in Convention}
    edges[EQUAL] = np.linspace(1, RHO + 1, len(edges[PAPER]), endpoint=False).astype(np.int64)
    sizes = {series: partition_sizes(lengths, starts) for series, starts in edges.items()}
    counted = [(LENGTHS, "lengths", np.arange(1, RHO + 1), np.bincount(lengths, minlength=RHO + 1)[1:])]
    counted += [(PARTITIONS, series, starts, sizes[series]) for series, starts in edges.items()]
    rows = [
        {"collection": work.settings.names["data"], "panel": panel, "series": series}
        | {"length": float(start), "documents": float(size)}
        for panel, series, starts, of in counted
        for start, size in zip(starts, of, strict=True)
        if size
    ]
    by_bins, by_partition = variation(sizes[EQUAL]), variation(sizes[PAPER])
    facts = [
        Fact(name="variation of documents by bins of equal width", value=by_bins),
        Fact(name="variation of documents by partition", value=by_partition),
        Fact(name="variation by bins of equal width - by partition", value=by_bins - by_partition),
        Fact(name="largest partition's share of the documents", value=float(sizes[PAPER].max() / len(lengths))),
        Fact(name="pairs left by partitioning", value=pairs_to_compare(sizes[PAPER])),
    ]
    return RowsAndFacts(rows, facts)


def partition_sizes(lengths: NDArray[np.int64], boundaries: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of documents in each partition, int64, shape (n_partitions,)."""
    return np.bincount(np.searchsorted(boundaries, lengths, side="right") - 1, minlength=len(boundaries))


def variation(sizes: NDArray[np.int64]) -> float:
    """Return the coefficient of variation of the sizes, 0 for equal sizes."""
    return float(sizes.std() / sizes.mean())


def pairs_to_compare(sizes: NDArray[np.int64]) -> float:
    """Return the fraction of all pairs that are in the same partition or in neighbouring ones."""
    sizes = sizes.astype(np.float64)
    n = sizes.sum()
    return float(((sizes * (sizes - 1) / 2).sum() + (sizes[1:] * sizes[:-1]).sum()) / (n * (n - 1) / 2))
