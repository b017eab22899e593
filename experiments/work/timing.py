"""One matcher timed with the machine to itself: the work behind the time and memory columns."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from spotsigs.experiments.claims.facts import Fact
from spotsigs.experiments.run.provenance import QUIET, ForeignLoad, PeakMemory
from spotsigs.experiments.work.extracted import Stored
from spotsigs.judging.metrics import relative_recall
from spotsigs.records import Corpus, Matcher, Pairs
from spotsigs.signatures.idf import IdfFilter

MIB = 1024 * 1024
PATIENCE_SECONDS = 10.0  # how long a cell waits for a quiet machine
FEW = 100  # documents of the run that loads the kernels
LONG_SECONDS = 5.0  # a run this long is not repeated


def time_matcher(
    *, stored: Stored, idf_filter: IdfFilter | None, matcher: Matcher, repeats: int, base: Matcher | None = None
) -> dict[str, Any]:
    """Match several times and return the median times, the memory and the counts.

    The caller gives this function a fresh process and an otherwise idle machine. A small part of the collection is
    matched first, so that compiled kernels are loaded. A repeat beside which other processes were busy is done again
    while patience lasts; if no quiet one remains the result says so.

    Parameters
    ----------
    stored : Stored
        What is matched.
    idf_filter : IdfFilter or None
        Which signatures take part; None for a collection of vectors.
    matcher : Matcher
        With its threshold and threads.
    repeats : int
        Quiet runs wanted; one suffices if it takes long.
    base : Matcher, optional
        Its pairs are the recall base.

    Returns
    -------
    dict
        ``sort_hash_ms, cluster_ms, total_ms`` (medians over the quiet runs), ``runs_ms`` (the total of each run),
        ``foreign_cores`` (of each run), ``contended``, ``peak_rss_mib`` (this process, from its start),
        ``memory_mib`` (the paper's formula), ``pairs``, ``signatures``, ``documents``, ``occurrences``, ``counters``,
        and ``relative_recall`` with a base.
    """
    corpus = stored.corpus(idf_filter)
    few = min(len(corpus.vectors), FEW)
    matcher(Corpus(corpus.vectors.take(np.arange(few)), lambda: islice(corpus.texts(), few)))
    with PeakMemory() as memory:
        runs = _quiet_runs(matcher, corpus, repeats)
    quiet = [run for run in runs if run.foreign <= QUIET]
    counted = quiet or runs
    pairs = runs[-1].pairs
    vectors = corpus.vectors
    return {
        "sort_hash_ms": statistics.median(run.pairs.seconds["sort_hash"] for run in counted) * 1000,
        "cluster_ms": statistics.median(run.pairs.seconds["cluster"] for run in counted) * 1000,
        "total_ms": statistics.median(run.total for run in counted) * 1000,
        "runs_ms": [run.total * 1000 for run in counted],
        "foreign_cores": [run.foreign for run in runs],
        "contended": not quiet,
        "peak_rss_mib": memory.peak_bytes / MIB,
        "memory_mib": matcher.memory_bytes(vectors) / MIB,
        "pairs": len(pairs),
        "documents": len(vectors),
        "signatures": vectors.n_signatures,
        "occurrences": vectors.n_occurrences,
        "counters": dict(pairs.counters),
        "stage_seconds": dict(pairs.seconds),
        "relative_recall": None if base is None else relative_recall(pairs, base(corpus)),
    }


@dataclass(frozen=True)
class _Run:
    pairs: Pairs
    foreign: float

    @property
    def total(self) -> float:
        return self.pairs.seconds["sort_hash"] + self.pairs.seconds["cluster"]


def _quiet_runs(matcher: Matcher, corpus: Corpus, repeats: int) -> list[_Run]:
    """Run until enough runs were quiet, or patience ends."""
    runs: list[_Run] = []
    waited = 0.0
    while True:
        with ForeignLoad() as load:
            pairs = matcher(corpus)
        runs.append(_Run(pairs, load.cores))
        quiet = sum(run.foreign <= QUIET for run in runs)
        if quiet >= repeats or (quiet and runs[-1].total >= LONG_SECONDS):
            return runs
        if load.cores > QUIET:
            if waited >= PATIENCE_SECONDS or len(runs) >= 3 * repeats:
                return runs
            waited += max(runs[-1].total, 0.5)
            time.sleep(0.5)


def quotient(name: str, above: dict[str, Any], below: dict[str, Any], column: str = "total_ms") -> Fact | None:
    """Return the ratio of two cells' times as a fact; None if other processes disturbed one of them.

    Parameters
    ----------
    name : str
        The fact's name.
    above, below : dict
        Cells of `time_matcher`.
    column : str
        Which time; the interval of the total's ratio is its range over all pairs of runs, not a confidence interval.

    Returns
    -------
    Fact or None
    """
    if above["contended"] or below["contended"] or not below[column]:
        return None
    low = high = None
    if column == "total_ms" and min(below["runs_ms"]) > 0:
        low = min(above["runs_ms"]) / max(below["runs_ms"])
        high = max(above["runs_ms"]) / min(below["runs_ms"])
    return Fact(name=name, value=above[column] / below[column], low=low, high=high)
