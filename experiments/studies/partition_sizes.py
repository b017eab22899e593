"""Sizes of the partitions of a skewed collection, as plotted in the slides."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings, method_of
from experiments.harness.study import Work
from experiments.show.figures import Panel, Point, draw_lines
from spotsigs.matching.partitions import Convention, partition_boundaries

CAPTION = (
    "Partitioning effects (slides): documents by length, and documents in each partition and in as many bins of equal "
    "width"
)
LENGTHS, PARTITIONS = "by length", "by partition"
TAU, RHO = 0.75, 1000
"""Threshold of the slides, and the largest partition boundary."""
PAPER, EQUAL = "paper's boundaries", "bins of equal width"


@dataclass(frozen=True, kw_only=True)
class Partitions(Experiment):
    """Documents by length, and documents in each partition.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, slides, "Partitioning Effects"; the paper, section 4.2.
    """

    def __call__(self, settings: Settings) -> str:
        """Draw both distributions; return a summary."""
        work = Work.begin(self.results, settings)
        method = method_of({}, settings, **self.fixed)
        lengths = work.read(method).prepare_join(method).corpus.vectors.lengths
        lengths = lengths[lengths > 0]
        per_length = np.bincount(np.minimum(lengths, RHO))[1:]
        filled = np.flatnonzero(per_length)
        points = [Point(panel=LENGTHS, series="lengths", x=float(n + 1), y=float(per_length[n])) for n in filled]
        edges = {f"{one.value}'s boundaries": partition_boundaries(TAU, RHO, one) for one in Convention}
        edges[EQUAL] = np.linspace(1, RHO + 1, len(edges[PAPER]), endpoint=False).astype(np.int64)
        sizes = {series: partition_sizes(np.minimum(lengths, RHO), starts) for series, starts in edges.items()}
        points += [
            Point(panel=PARTITIONS, series=series, x=float(start), y=float(size))
            for series, starts in edges.items()
            for start, size in zip(starts, sizes[series], strict=True)
            if size
        ]
        logs: dict[str, Any] = {"y_label": "documents", "x_log": True, "y_log": True}
        panels = [
            Panel(name=LENGTHS, x_label="spot signatures in a document", **logs),
            Panel(name=PARTITIONS, x_label="smallest length of the partition", **logs),
        ]
        drawn = work.figure(
            "partitions", CAPTION, partial(draw_lines, panels=panels, points=points, computed=["lengths"])
        )
        by_bins, by_partition = variation(sizes[EQUAL]), variation(sizes[PAPER])
        facts = [
            Fact(name="variation of documents by bins of equal width", value=by_bins),
            Fact(name="variation of documents by partition", value=by_partition),
            Fact(name="variation by bins of equal width - by partition", value=by_bins - by_partition),
            Fact(name="largest partition's share of the documents", value=float(sizes[PAPER].max() / len(lengths))),
            Fact(name="pairs left by partitioning", value=pairs_to_compare(sizes[PAPER])),
        ]
        return f"Partitions at tau {TAU:g}: {work.facts(facts)}; {drawn}"


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
