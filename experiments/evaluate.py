"""The evaluator of cells: a collection is read once, joined once for all thresholds, and each cell evaluated.

Joins are spread over worker processes, the largest first; what is timed runs alone, in a process of its own.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from data.truth import truth_of
from experiments.choices import ChoiceNames
from experiments.harness.cells import Cell, cell_of
from experiments.harness.extracted_collections import Stored
from experiments.harness.finished_cells import CellTask
from experiments.resample import (
    RESAMPLES,
    Levels,
    PairsOfLevels,
    crossed_averages,
    f1_of_samples,
    held_out_f1,
    sites_of,
)
from spotsigs.clustering.in_memory import SharedJoin
from spotsigs.contracts import VectorCollection
from spotsigs.errors import InputError, require
from spotsigs.evaluation.metrics import MEASURES, Interval, percentile_interval
from spotsigs.method import Method
from spotsigs.records import FloatArray
from spotsigs.runs.provenance import provenance
from spotsigs.runs.result import Result
from spotsigs.runs.runner import execute
from spotsigs.runs.stages import Run


def resampled_intervals(collection: Any, result: Result) -> dict[str, Interval]:
    """Return the intervals of precision, recall and F1 over stories, and over sites where they are known.

    Raises
    ------
    InputError
        If the user's own files have labels for a part of their pages.
    """
    matched = result.matched
    if isinstance(collection, VectorCollection):
        return {}
    truth = truth_of(collection, matched.doc_ids, matched.signatures.clusters, matched.skipped)
    if truth is None:
        return {}
    levels = Levels.of(truth, sites_of(collection, matched.doc_ids))
    averages = crossed_averages(PairsOfLevels.of(matched.pairs, truth, levels, [0.0]), levels.drawn(RESAMPLES))
    return intervals_of(averages[..., 0])


def intervals_of(averages: FloatArray) -> dict[str, Interval]:
    """Return the 95 % intervals of samples of precision, recall and F1, shape (3, samples)."""
    low, high = percentile_interval(averages.T).tolist()
    return {name: (low[k], high[k]) for k, name in enumerate(MEASURES)}


@dataclass(frozen=True, kw_only=True)
class QualityCells(CellTask):
    """Cells of a method at several thresholds, with their quality.

    One join serves all thresholds of a nested matcher, see `spotsigs.clustering.in_memory.SharedJoin`.
    """

    stored: Stored  # signatures of a collection with truth
    method: Method  # method; its threshold is replaced
    taus: Sequence[float]  # thresholds, ascending; empty for a matcher without one
    data: str  # name of the collection
    listed: bool = False  # return the pairs at the best threshold
    compared: bool = False  # return F1 in the samples of a comparison

    @property
    def cost(self) -> float:
        """Estimated seconds."""
        taus = self.taus or [self.method.tau or 1.0]
        return cost_of(self.stored, min(taus), len(taus))

    def __call__(self) -> dict[str, Any]:
        """Evaluate the method at each threshold.

        Returns
        -------
        dict
            ``cells``: the figures at each threshold, see `spotsigs.runs.result.Result.described`; ``crossed``:
            precision, recall and F1 in bootstrap samples, shape (3, samples, thresholds), from which their intervals
            are computed; ``sited``: whether the samples draw sites; ``best``: if `listed`, the pairs ``(i, j)`` at the
            best threshold; if `compared`, F1 in the samples of `experiments.resample.held_out_f1`: ``held_out``, at
            thresholds chosen on other pages, and ``default``, at the threshold of the method.
        """
        stored, method, taus = self.stored, self.method, self.taus
        join, truth = stored.prepare_join(method), stored.truth(judged=True)
        thresholds: list[float | None] = list(taus) or [None]
        has_curve = method.tau is not None or thresholds == [None]
        require(has_curve, f"{method.matcher.label} has no threshold to draw a curve over")
        serial = replace(method, matcher=method.matcher.with_threads(1))
        levels = Levels.of(truth, sites_of(stored.source.collection, stored.signatures().doc_ids))
        drawn = levels.drawn(RESAMPLES)
        cells, crossed, apart, best = [], [], [], None
        for tau in thresholds:
            matched = join.match(serial.at(tau).matcher)
            apart.append(PairsOfLevels.of(matched.pairs, truth, levels, [0.0]))
            crossed.append(crossed_averages(apart[-1], drawn)[..., 0])
            result = Result.of(serial.at(tau), self.data, stored.source.collection, matched, truth=truth)
            cells.append(result.described(ChoiceNames()))
            cells[-1]["intervals"] |= intervals_of(crossed[-1])
            if self.listed and (best is None or np.nan_to_num(cells[-1]["f1"]) > best[0]):
                best = np.nan_to_num(cells[-1]["f1"]), matched.pairs
        value = {"cells": cells, "sited": levels.sited, "crossed": np.round(np.stack(crossed, axis=-1), 6).tolist()}
        if self.compared:
            if method.matcher.nested and taus:
                lowest = join.match(serial.at(thresholds[0]).matcher)
                apart = [PairsOfLevels.of(lowest.pairs, truth, levels, taus)]
            own = PairsOfLevels.of(join.match(serial.matcher).pairs, truth, levels, [0.0])
            value |= {"held_out": held_out_f1(apart).tolist(), "default": f1_of_samples(own).tolist()}
        return value | {"best": None if best is None else [best[1].i.tolist(), best[1].j.tolist()]}


@dataclass(frozen=True, kw_only=True)
class RunCells:
    """Cells that share a join and write the files of a run each; called in any process."""

    # Method and run of each cell, by ascending threshold.
    methods: Sequence[Method]
    runs: Sequence[Run]
    about: Sequence[Mapping[str, str]]  # files of the folder ``.hydra`` of each
    stored: Stored  # signatures or vectors of the collection
    seconds: float  # wall seconds of their extraction
    threads: int | None  # threads of a kernel if the user sets no number; None if no other cells run at the same time
    commit: str | None  # commit of the code

    def __call__(self) -> list[Cell | Exception]:
        """Run the cells; return the figures of each, or its error."""
        join = self.stored.prepare_join(self.methods[0], self.seconds)
        return [self._run(k, join) for k in range(len(self.runs))]

    def _run(self, k: int, join: SharedJoin) -> Cell | Exception:
        method, run, contended = self.methods[k], self.runs[k], self.threads is not None
        if self.threads is not None and getattr(method.matcher, "threads", 1) is None:
            method = replace(method, matcher=method.matcher.with_threads(self.threads))
        try:
            intervals = partial(resampled_intervals, run.collection)
            result = execute(method, run, contended=contended, join=join, about=self.about[k], intervals=intervals)
            return cell_of(result.described(run.spelling), seed=run.seed, commit=self.commit, contended=contended)
        except Exception as error:  # noqa: BLE001 - the other cells run
            return _sent(error)


def cost_of(stored: Stored, tau: float, count: int) -> float:
    """Return the estimated seconds of a join at a threshold, which grow with the signatures, and of its cells."""
    return 4e-7 * stored.occurrences / max(tau, 0.05) + 0.1 * count


def _sent(error: Exception) -> Exception:
    """Return an error that another process can send."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - of any class
        return InputError(f"{type(error).__name__}: {error}")
    return error


def commit_of_code() -> str | None:
    """Return the commit of the code."""
    commit: str | None = provenance()["commit"]
    return commit
