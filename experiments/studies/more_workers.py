"""Runs of the command with one and two workers, and the simulation of more from the log of their tasks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from experiments.harness.schedule import CALLING_PROCESS, StageLog, planned, read_log, simulated, work_of
from experiments.harness.study import Work
from experiments.show.figures import Panel, Point, draw_lines
from experiments.show.tables import Column, Table
from spotsigs.arrays.parallel import all_cores
from spotsigs.errors import require

MEASURED = (1, 2)
"""Numbers of workers of the runs."""

SIMULATED = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)

PLANNED = (10**8, 10**9)
"""Numbers of pages of the plan."""

PLANNED_WORKERS = (16, 64, 256, 1000)

PAIRWISE = ("joining",)
"""Stages whose tasks are pairs of blocks: with n pages there are as many as n squared."""

WORKERS_COLUMNS = [
    Column(name="documents", title="Documents", form=",.0f"),
    Column(name="workers", title="Workers", form=",.0f"),
    Column(name="simulated_s", title="Simulated s", form=",.1f"),
    Column(name="measured_s", title="Measured s", form=",.1f"),
    Column(name="speedup", title="Speed-up", form=",.1f"),
    Column(name="calling_process_s", title="Calling process s", form=",.1f"),
]

PLAN_COLUMNS = [
    Column(name="stage", title="Stage"),
    Column(name="power", title="Power of pages", form=".2f"),
    *(
        Column(name=f"h_{pages}_{workers}", title=f"{pages:.0e}, {workers:,}", form=",.1f")
        for pages in PLANNED
        for workers in PLANNED_WORKERS
    ),
]


class MeasuredRun(NamedTuple):
    """A run of the command: its pages, workers, wall seconds, and the stages of its log."""

    documents: int
    workers: int
    seconds: float
    stages: list[StageLog]

    @property
    def outside(self) -> float:
        """Seconds that the log does not cover: the program starts and ends."""
        return max(self.seconds - sum(simulated(self.stages, self.workers).values()), 0.0)


def run_command(pages: Path, documents: int, folder: Path, memory: str, workers: int) -> MeasuredRun:
    """Run ``spotsigs dedup`` on a folder of pages within a budget."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = ["dedup", pages, "--out", folder / "copy", "--memory", memory, "--workers", workers]
    began = perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "spotsigs", *map(str, words)], capture_output=True, text=True, check=False
    )
    seconds = perf_counter() - began
    require(done.returncode == 0, f"spotsigs dedup failed: {done.stderr.strip()[-500:]}")
    stages = read_log(folder / "copy-results" / "tasks.parquet")
    shutil.rmtree(folder)
    return MeasuredRun(documents, workers, seconds, stages)


def runs_of(pages: Path, documents: int, folder: Path, memory: str) -> list[MeasuredRun]:
    """Run the command with each number of workers that the machine has cores for."""
    return [run_command(pages, documents, folder, memory, n) for n in MEASURED if n <= max(all_cores(), 1)]


def speedup_rows(runs: Sequence[MeasuredRun]) -> Iterator[dict[str, Any]]:
    """Yield the wall seconds by workers, simulated from the log of the run with one, and measured."""
    one = runs[0]
    alone = one.outside + sum(simulated(one.stages, 1).values())
    measured = {run.workers: run.seconds for run in runs}
    for workers in SIMULATED:
        stages = simulated(one.stages, workers)
        seconds = one.outside + sum(stages.values())
        yield {
            "documents": one.documents,
            "workers": workers,
            "simulated_s": seconds,
            "measured_s": measured.get(workers),
            "speedup": alone / seconds,
            "calling_process_s": one.outside + stages.get(CALLING_PROCESS, 0.0),
        }


def speedup_points(run: MeasuredRun) -> Iterator[Point]:
    """Yield the speed-up of each stage over the number of workers, and of the whole run."""
    panel = f"{run.documents:,} pages"
    alone = simulated(run.stages, 1)
    for workers in SIMULATED:
        stages = simulated(run.stages, workers)
        for name, seconds in stages.items():
            yield Point(panel=panel, series=name, x=workers, y=alone[name] / max(seconds, 1e-9))
        whole = (run.outside + sum(alone.values())) / (run.outside + sum(stages.values()))
        yield Point(panel=panel, series="whole run", x=workers, y=whole)


def powers_of(runs: Sequence[MeasuredRun]) -> dict[str, float]:
    """Return the power of the number of pages with which the work of each stage grows, from 1 to 2.

    It is measured between the two largest runs; the power of `PAIRWISE` stages is 2.
    """
    powers = dict.fromkeys(PAIRWISE, 2.0)
    if len(runs) > 1:
        small, large = runs[-2:]
        less, more = work_of(small.stages), work_of(large.stages)
        for label in more.keys() & less.keys() - powers.keys():
            power = np.log(more[label] / max(less[label], 1e-9)) / np.log(large.documents / small.documents)
            powers[label] = float(np.clip(power, 1.0, 2.0))
    return powers


def plan_rows(run: MeasuredRun, powers: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the hours of each stage for the numbers of `PLANNED`, and of all."""
    rows: dict[str, dict[str, Any]] = {
        label: {"stage": label, "power": powers.get(label, 1.0)} for label in work_of(run.stages)
    }
    total: dict[str, Any] = {"stage": "all", "power": None}
    for pages in PLANNED:
        for workers in PLANNED_WORKERS:
            column, times = f"h_{pages}_{workers}", pages / run.documents
            for label, seconds in planned(run.stages, times, workers, powers):
                rows[label][column] = seconds / 3600
            total[column] = sum(row[column] for row in rows.values())
    return [*rows.values(), total]


def show(work: Work, runs: Sequence[Sequence[MeasuredRun]]) -> list[str]:
    """Write the tables and the figure of the runs of some numbers of pages; return what to print."""
    rows = [row for of_pages in runs for row in speedup_rows(of_pages)]
    alone = [of_pages[0] for of_pages in runs]
    notes = ["Simulated: list scheduling of the tasks in the log of the run with one worker, in their order."]
    for row in rows:
        if row["measured_s"] and row["workers"] > 1:
            error = row["simulated_s"] / row["measured_s"] - 1
            notes.append(f"{row['documents']:,} pages, {row['workers']} workers: simulated {error:+.0%} of measured.")
    table = Table(caption="Wall time by number of workers", columns=WORKERS_COLUMNS, rows=rows, notes=notes)
    panels = [
        Panel(name=f"{run.documents:,} pages", x_label="workers", y_label="speed-up", x_log=True, y_log=True)
        for run in alone
    ]
    points = [point for run in alone for point in speedup_points(run)]
    caption = "Speed-up over workers, simulated from the log of tasks"
    work.figure("speedup", caption, partial(draw_lines, panels=panels, points=points))
    powers = powers_of(alone)
    known = work_of(alone[-1].stages)
    fast = sorted(label for label, power in powers.items() if power > 1.1 and label in known)
    plan = Table(
        caption=f"Hours for more pages, by workers, planned from the log of {alone[-1].documents:,} pages",
        columns=PLAN_COLUMNS,
        rows=plan_rows(alone[-1], powers),
        notes=[
            f"These stages grow faster than the pages: {', '.join(fast) or 'no stage'}. The power is measured "
            f"between the two largest runs; pairs of blocks ({', '.join(PAIRWISE)}) grow with the square."
        ],
    )
    return [work.table(table, "speedup"), work.table(plan, "plan")]
