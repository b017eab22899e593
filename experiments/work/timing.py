"""Timing of a matcher on an otherwise idle machine, for the time and memory columns."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from experiments.claims.facts import Fact
from experiments.work.extracted_collections import Stored
from experiments.work.sampled_timing import sample
from spotsigs.evaluation.metrics import relative_recall
from spotsigs.matching.algorithm1 import SpotSigs
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.records import Corpus, Matcher, Pairs, Vectors
from spotsigs.runs.provenance import MIB, QUIET, ForeignLoad, PeakMemory
from spotsigs.signatures.idf import IdfFilter

PATIENCE_SECONDS = 10.0  # maximal time of waiting for an idle machine
FEW = 100  # documents in the run that loads the kernels
LONG_SECONDS = 5.0  # a run this long is not repeated
ATTEMPTS = 2  # at timing a sample, if other processes are active


def time_matcher(
    *,
    stored: Stored,
    idf_filter: IdfFilter | None,
    matcher: Matcher,
    repeats: int,
    base: Matcher | None = None,
    budget: float | None = None,
) -> dict[str, Any]:
    """Run a matcher several times and return the median times, the memory and the counts.

    The caller runs this function in a new process on an otherwise idle machine. A small part of the collection is
    matched first, to load the compiled kernels. A run during which other processes were active is repeated for a
    limited time; if no run was undisturbed, the result is marked as contended.

    Parameters
    ----------
    stored : Stored
        Signatures or vectors to match.
    idf_filter : IdfFilter or None
        Filter of signatures; None for a collection of vectors.
    matcher : Matcher
        Matcher, with its threshold and threads.
    repeats : int
        Number of undisturbed runs; a long run is not repeated.
    base : Matcher, optional
        Matcher whose pairs are the recall base.
    budget : float, optional
        Maximal seconds of Algorithm 1. If it would take longer, it is timed on a sample of the documents (see
        `experiments.work.sampled_timing`), and its pairs are those of the tight join, to which those of the sample are
        compared.

    Returns
    -------
    dict
        ``sort_hash_ms, cluster_ms, total_ms`` (medians over the undisturbed runs), ``runs_ms`` (total of each run),
        ``foreign_cores`` (cores that other processes used, for each run), ``contended``, ``peak_mb`` (of this process),
        ``memory_mib`` (the paper's formula), ``pairs``, ``signatures``, ``documents``, ``occurrences``, ``counters``,
        ``probed`` (fraction of the documents that probed the index), ``agrees`` (whether a sample's pairs are those of
        the tight join), and ``relative_recall`` with a base.
    """
    corpus = stored.corpus(idf_filter)
    _load_kernels(matcher, corpus)
    with PeakMemory() as memory:
        sampling = budget is not None and isinstance(matcher, SpotSigs)
        sampled = _of_a_sample(matcher, corpus.vectors, budget) if sampling else None
        times, pairs = sampled or _of_all(matcher, corpus, repeats)
    if pairs is None:
        sample_found = times.pop("sampled")
        pairs = SpotSigsTight(tau=matcher.tau, threads=matcher.threads)(corpus)
        times["agrees"] = sample_found.agrees(pairs)
    vectors = corpus.vectors
    return times | {
        "peak_mb": memory.peak_bytes / 1e6,
        "memory_mib": matcher.memory_bytes(vectors) / MIB,
        "pairs": len(pairs),
        "documents": len(vectors),
        "signatures": vectors.n_signatures,
        "occurrences": vectors.n_occurrences,
        "relative_recall": None if base is None else relative_recall(pairs, base(corpus)),
    }


def _load_kernels(matcher: Matcher, corpus: Corpus) -> None:
    """Match a few documents, which loads the compiled kernels."""
    few = min(len(corpus.vectors), FEW)
    matcher(Corpus(corpus.vectors.take(np.arange(few)), lambda: islice(corpus.texts(), few)))


def _of_all(matcher: Matcher, corpus: Corpus, repeats: int) -> tuple[dict[str, Any], Pairs]:
    """Return the times of complete runs, and the pairs."""
    runs = _quiet_runs(matcher, corpus, repeats)
    quiet = [run for run in runs if run.foreign <= QUIET]
    counted = quiet or runs
    pairs = runs[-1].pairs
    return {
        "sort_hash_ms": statistics.median(run.pairs.seconds["sort_hash"] for run in counted) * 1000,
        "cluster_ms": statistics.median(run.pairs.seconds["cluster"] for run in counted) * 1000,
        "total_ms": statistics.median(run.total for run in counted) * 1000,
        "runs_ms": [run.total * 1000 for run in counted],
        "foreign_cores": [run.foreign for run in runs],
        "contended": not quiet,
        "counters": dict(pairs.counters),
        "stage_seconds": dict(pairs.seconds),
        "probed": 1.0,
        "agrees": True,
    }, pairs


def _of_a_sample(matcher: SpotSigs, vectors: Vectors, budget: float) -> tuple[dict[str, Any], None] | None:
    """Return the times estimated from a sample, or None if all documents fit the budget."""
    for _ in range(ATTEMPTS):
        found = sample(matcher, vectors, budget)
        if found is None:
            return None
        if found.foreign <= QUIET:
            break
    ends = [(found.sort_hash + end) * 1000 for end in (found.low, found.high)]
    return {
        "sort_hash_ms": found.sort_hash * 1000,
        "cluster_ms": found.cluster * 1000,
        "total_ms": found.total * 1000,
        "runs_ms": [ends[0], found.total * 1000, ends[1]],
        "foreign_cores": [found.foreign],
        "contended": found.foreign > QUIET,
        "counters": found.counters,
        "stage_seconds": {"sort_hash": found.sort_hash, "cluster": found.cluster},
        "probed": found.share,
        "sampled": found,
    }, None


@dataclass(frozen=True)
class _Run:
    pairs: Pairs
    foreign: float

    @property
    def total(self) -> float:
        return self.pairs.seconds["sort_hash"] + self.pairs.seconds["cluster"]


def _quiet_runs(matcher: Matcher, corpus: Corpus, repeats: int) -> list[_Run]:
    """Repeat until enough runs were undisturbed or the time limit is reached."""
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
    """Return the ratio of the times of two cells as a fact, or None if one of them is contended.

    Parameters
    ----------
    name : str
        Name of the fact.
    above, below : dict
        Results of `time_matcher`.
    column : str
        Key of the time. The interval of the total's ratio is its range over pairs of runs, no confidence interval.

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
    return Fact(name=name, value=above[column] / below[column], low=low, high=high, over="runs" if low else "")
