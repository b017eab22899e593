"""The evaluator: two tasks that turn extracted pages and a method into cells, with one join for all thresholds.

`RunCells` also writes the files of a run, for ``run.py`` and sweeps; `QualityCells` returns samples of the bootstrap,
for studies and comparisons. Both are called in any process, see `experiments.harness.finished_cells.spread`.
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
from spotsigs.records import FloatArray, Pairs, Truth
from spotsigs.runs.provenance import provenance
from spotsigs.runs.result import Result
from spotsigs.runs.runner import execute
from spotsigs.runs.stages import Run

ALL_REPORTED = (0.0,)
"""A threshold that all reported pairs reach, in place of several; see `PairsOfLevels.of`."""

JOIN_SECONDS = 4e-7
"""Estimated core seconds of a join at threshold 1, for each distinct signature of a page; lower ones take longer."""
CELL_SECONDS = 0.1
"""Estimated core seconds in which a cell is evaluated."""
LOWEST_TAU = 0.05
"""Threshold below which joins take hardly longer."""


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
    averages = crossed_averages(PairsOfLevels.of(matched.pairs, truth, levels, ALL_REPORTED), levels.drawn(RESAMPLES))
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
        stored, method = self.stored, _on_one_thread(self.method)
        require(
            method.tau is not None or not self.taus, f"{method.matcher.label} has no threshold to draw a curve over"
        )
        join, truth = stored.prepare_join(method), stored.truth(judged=True)
        levels = Levels.of(truth, sites_of(stored.source.collection, stored.signatures().doc_ids))
        drawn = levels.drawn(RESAMPLES)
        cells: list[dict[str, Any]] = []
        samples: list[FloatArray] = []
        reported: list[Pairs] = []
        taus: list[float | None] = [*self.taus] or [None]
        for tau in taus:
            at_tau = method.at(tau)
            matched = join.match(at_tau.matcher)
            pairs = PairsOfLevels.of(matched.pairs, truth, levels, ALL_REPORTED)
            averages = crossed_averages(pairs, drawn)[..., 0]
            cell = Result.of(at_tau, self.data, stored.source.collection, matched, truth=truth).described(ChoiceNames())
            cell["intervals"] |= intervals_of(averages)
            cells.append(cell)
            samples.append(averages)
            reported.append(matched.pairs)
        crossed = np.round(np.stack(samples, axis=-1), 6).tolist()
        value = {"cells": cells, "sited": levels.sited, "crossed": crossed, "best": None}
        if self.listed:
            best = reported[int(np.argmax([np.nan_to_num(float(cell["f1"])) for cell in cells]))]
            value["best"] = [best.i.tolist(), best.j.tolist()]
        return value | (self._in_comparison(join, reported, truth, levels) if self.compared else {})

    def _in_comparison(
        self, join: SharedJoin, reported: Sequence[Pairs], truth: Truth, levels: Levels
    ) -> dict[str, list[float]]:
        """Return F1 in the samples of a comparison, at thresholds chosen on other pages and at the method's own."""
        method = _on_one_thread(self.method)
        if method.matcher.nested and self.taus:  # the pairs at the lowest threshold have those at all others
            every = [PairsOfLevels.of(reported[0], truth, levels, self.taus)]
        else:
            every = [PairsOfLevels.of(pairs, truth, levels, ALL_REPORTED) for pairs in reported]
        default = PairsOfLevels.of(join.match(method.matcher).pairs, truth, levels, ALL_REPORTED)
        return {"held_out": held_out_f1(every).tolist(), "default": f1_of_samples(default).tolist()}


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
        cells = zip(self.methods, self.runs, self.about, strict=True)
        return [self._run(method, run, about, join) for method, run, about in cells]

    def _run(self, method: Method, run: Run, about: Mapping[str, str], join: SharedJoin) -> Cell | Exception:
        contended = self.threads is not None
        if self.threads is not None and getattr(method.matcher, "threads", 1) is None:  # the user set no number
            method = replace(method, matcher=method.matcher.with_threads(self.threads))
        try:
            intervals = partial(resampled_intervals, run.collection)
            result = execute(method, run, contended=contended, join=join, about=about, intervals=intervals)
            return cell_of(result.described(run.spelling), seed=run.seed, commit=self.commit, contended=contended)
        except Exception as error:  # noqa: BLE001 - the other cells run
            return _sent(error)


def cost_of(stored: Stored, tau: float, count: int) -> float:
    """Return the estimated seconds of a join at its lowest threshold and of the `count` cells that share it.

    They decide the order of the joins, and whether worker processes are started.
    """
    return JOIN_SECONDS * stored.occurrences / max(tau, LOWEST_TAU) + CELL_SECONDS * count


def _on_one_thread(method: Method) -> Method:
    """Return a method whose kernels use one thread, since tasks run side by side."""
    return replace(method, matcher=method.matcher.with_threads(1))


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
