"""Timing of a matcher on an otherwise idle machine, for the time and memory columns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from experiments.claims.facts import Fact
from experiments.harness.extracted_collections import Source, Stored
from experiments.harness.finished_cells import CellTask
from experiments.harness.machine_load import QUIET, ForeignLoad, timed
from experiments.show.tables import TIMES
from spotsigs.contracts import Matcher
from spotsigs.evaluation.metrics import relative_recall
from spotsigs.method import Method
from spotsigs.records import Corpus, Pairs
from spotsigs.runs.provenance import MIB, PeakMemory
from spotsigs.signatures.extract import extract, extract_shard
from spotsigs.workers.engines import Serial

FEW = 100  # documents in the run that loads the kernels


@dataclass(frozen=True, kw_only=True)
class TimedCell(CellTask):
    """Times, memory and pairs of a matcher, measured in a new process on an otherwise idle machine.

    A small part of the collection is matched first, to load the compiled kernels. A run during which other processes
    were active is repeated for a limited time; if no run was undisturbed, the result is marked as contended.
    """

    alone: ClassVar[bool] = True

    stored: Stored  # signatures or vectors to match
    method: Method  # method, with its threshold and threads; a collection of vectors is not filtered
    repeats: int  # least number of undisturbed runs, see `experiments.harness.machine_load.timed`
    base: Matcher | None = None  # matcher whose pairs are the recall base
    limit: float | None = field(default=None, repr=False)  # seconds after which it is stopped

    def __call__(self) -> dict[str, Any]:
        """Run the matcher several times.

        Returns
        -------
        dict
            ``sort_hash_ms, cluster_ms, total_ms`` (medians over the undisturbed runs), ``runs_ms`` (total of each run),
            ``foreign_cores`` (cores that other processes used, for each run), ``contended``, ``peak_mb`` (of this
            process), ``memory_mib`` (the paper's formula), ``pairs``, ``signatures``, ``documents``, ``occurrences``,
            ``counters``, and ``relative_recall`` with a base.
        """
        corpus, matcher = self.stored.prepare_join(self.method).corpus, self.method.matcher
        few = min(len(corpus.vectors), FEW)
        matcher(Corpus(corpus.vectors.take(np.arange(few)), lambda: islice(corpus.texts(), few)))
        with PeakMemory() as memory:
            times, pairs = _of_all(matcher, corpus, self.repeats)
        vectors = corpus.vectors
        return times | {
            "peak_mb": memory.peak_bytes / 1e6,
            "memory_mib": matcher.memory_bytes(vectors) / MIB,
            "pairs": len(pairs),
            "documents": len(vectors),
            "signatures": vectors.n_signatures,
            "occurrences": vectors.n_occurrences,
            "relative_recall": None if self.base is None else relative_recall(pairs, self.base(corpus)),
        }


@dataclass(frozen=True, kw_only=True)
class TimedExtraction(CellTask):
    """Milliseconds of reading and extracting a collection in one process, with loaded kernels."""

    alone: ClassVar[bool] = True

    source: Source

    def __call__(self) -> dict[str, Any]:
        """Return ``parse_ms``, and whether other processes were active."""
        scheme: Any = self.source.signature
        extract_shard(self.source.collection.shards()[0], self.source.text, scheme)
        with ForeignLoad() as load:
            began = time.perf_counter()
            extract(self.source.collection, self.source.text, scheme, Serial())
            seconds = time.perf_counter() - began
        return {"parse_ms": seconds * 1000, "contended": load.cores > QUIET}


def cost(cell: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of time and memory: no contended times, and "over n s" for a run that was stopped.

    ``measured_ms`` is the total time even if it is contended.
    """
    if "over_s" in cell:
        return {"total_ms": f"over {cell['over_s']:g} s", "contended": False}
    times = {name: None if cell["contended"] else cell[name] for name in TIMES}
    times |= {"mb": cell["memory_mib"], "peak_mb": cell["peak_mb"], "contended": cell["contended"]}
    return times | {"measured_ms": cell["total_ms"]}


def _of_all(matcher: Matcher, corpus: Corpus, repeats: int) -> tuple[dict[str, Any], Pairs]:
    """Return the times of complete runs, and the pairs."""
    last: list[Pairs] = []

    def run() -> Mapping[str, float]:
        last.clear()  # free the previous pairs first
        began = time.perf_counter()
        last.append(matcher(corpus))
        whole = {"sort_hash": 0.0, "cluster": time.perf_counter() - began}  # of a method that has no stages
        return {**whole, **last[0].seconds}

    timing = timed(run, repeats)
    totals = [(each["sort_hash"] + each["cluster"]) * 1000 for each in timing.results]
    return {
        "sort_hash_ms": statistics.median(each["sort_hash"] for each in timing.results) * 1000,
        "cluster_ms": statistics.median(each["cluster"] for each in timing.results) * 1000,
        "total_ms": statistics.median(totals),
        "runs_ms": totals,
        "foreign_cores": timing.foreign,
        "contended": timing.contended,
        "counters": dict(last[0].counters),
        "stage_seconds": dict(last[0].seconds),
    }, last[0]


def quotient(name: str, above: dict[str, Any], below: dict[str, Any], column: str = "total_ms") -> Fact | None:
    """Return the ratio of the times of two cells of `TimedCell` as a fact, or None if one of them is contended.

    If the first was stopped at its limit, the ratio is a lower bound. The interval of the ratio of total times is its
    range over pairs of runs, no confidence interval.
    """
    if "over_s" in below or below["contended"]:
        return None
    if "over_s" in above:
        least = above["over_s"] * 1000 / below["total_ms"]
        return Fact(name=name, value=least, text=f"over {least:.3g}")
    if above["contended"] or not below[column]:
        return None
    low = high = None
    if column == "total_ms" and min(below["runs_ms"]) > 0:
        low = min(above["runs_ms"]) / max(below["runs_ms"])
        high = max(above["runs_ms"]) / min(below["runs_ms"])
    return Fact(name=name, value=above[column] / below[column], low=low, high=high, over="runs" if low else "")
