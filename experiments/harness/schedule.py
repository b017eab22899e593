"""Wall time of a run on more workers, simulated from the log of its tasks."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

CALLING_PROCESS = "calling process"
"""Name of the work that no worker shares."""


class StageLog(NamedTuple):
    """A step of a run: the seconds of its tasks, in their order, and the seconds of the calling process meanwhile."""

    name: str
    tasks: Sequence[float]
    caller: float

    @property
    def label(self) -> str:
        """The name of the stage; all work between stages has one name."""
        return self.name if self.tasks else CALLING_PROCESS


def read_log(path: Path) -> list[StageLog]:
    """Return the stages of a ``tasks.parquet``, see `spotsigs.storage.tasks.Step`, each after the one before."""
    rows = pq.read_table(path).to_pylist()
    stages = []
    for _, group in groupby(rows, key=lambda row: row["step"]):
        steps = list(group)
        tasks = [row["seconds"] for row in steps if row["task"] >= 0]
        stages.append(StageLog(steps[0]["stage"], tasks, sum(row["seconds"] for row in steps if row["task"] < 0)))
    return stages


def makespan(tasks: Iterable[float], workers: int) -> float:
    """Return the seconds until all tasks have ended: each begins, in order, on the first worker that is free."""
    free = [0.0] * workers
    for seconds in tasks:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def simulated(stages: Iterable[StageLog], workers: int) -> dict[str, float]:
    """Return the wall seconds of each stage, by its label: at least what the calling process takes meanwhile."""
    seconds: dict[str, float] = {}
    for stage in stages:
        wall = max(makespan(stage.tasks, workers), stage.caller)
        seconds[stage.label] = seconds.get(stage.label, 0.0) + wall
    return seconds


def work_of(stages: Iterable[StageLog]) -> dict[str, float]:
    """Return the seconds of all tasks of each stage together, and of the calling process between stages."""
    seconds: dict[str, float] = {}
    for stage in stages:
        seconds[stage.label] = seconds.get(stage.label, 0.0) + (sum(stage.tasks) if stage.tasks else stage.caller)
    return seconds


def planned(
    stages: Iterable[StageLog], times: float, workers: int, powers: Mapping[str, float]
) -> Iterator[tuple[str, float]]:
    """Yield the wall seconds of each stage with so many times the pages.

    The work of a stage grows with the power of its label, 1 by default. Blocks keep their size, so that there are more
    tasks and no longer ones. A stage takes at least its share of the work on each worker, and its longest task.
    """
    of_label: dict[str, list[StageLog]] = {}
    for stage in stages:
        of_label.setdefault(stage.label, []).append(stage)
    for label, parts in of_label.items():
        growth = times ** powers.get(label, 1.0)
        work = growth * sum(sum(part.tasks) for part in parts)
        longest = max((max(part.tasks, default=0.0) for part in parts), default=0.0)
        caller = growth * sum(part.caller for part in parts)
        yield label, max(work / workers + longest, caller)
