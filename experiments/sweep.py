"""Sweeps: compose all cells, run those without results, and end with a table and a figure."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from hydra.core.utils import JobReturn, JobStatus, setup_globals
from hydra.experimental.callback import Callback

from experiments.choices import without_repeated_defaults
from experiments.config import sentence
from experiments.run_folders import COMPLETE, variant
from spotsigs.errors import counted
from spotsigs.workers.progress import Progress

if TYPE_CHECKING:
    from experiments.grid import Composer, GridCell
    from experiments.harness.cells import Cell

SWEEP = "SPOTSIGS_SWEEP"
"""Environment variable with the folder of the running sweep, which jobs in other processes inherit."""

JOBS = "jobs.jsonl"
"""File of the folder of a sweep that lists the finished jobs of other launchers."""


def launch(
    composer: Composer,
    context: Any,
    task_function: Any,
    config: Any,
    job_overrides: Sequence[Sequence[str]],
    first: int,
) -> Sequence[JobReturn]:
    """Run cells, given by their overrides and the number of the first, and print a line for each.

    The other parameters are objects of Hydra. The value of each returned job is the F1 of the cell.
    """
    setup_globals()
    started = partial(context.callbacks.on_job_start, task_function=task_function)
    cells = {cell.number: cell for cell in composer.cells(config, job_overrides, first, started)}
    jobs = {
        number: JobReturn(overrides=list(cell.words), hydra_cfg=config, working_dir=str(Path.cwd()))
        for number, cell in cells.items()
    }
    common = set.intersection(*(set(cell.typed) for cell in cells.values())) if len(cells) > 1 else set()
    inputs = Path(os.environ.get(SWEEP, config.hydra.sweep.dir)).absolute() / "inputs"
    with Progress("sweep", len(cells), "cells") as shown:
        try:
            for count, (number, row) in enumerate(_rows(list(cells.values()), inputs), 1):
                cell, job = cells[number], jobs[number]
                _end(job, row)
                context.callbacks.on_job_end(config=config, job_return=job, cell=cell, row=row)
                shown.advance()
                name = " ".join([word for word in cell.typed if word not in common] or cell.typed)
                kept = "" if cell.about else ", finished before"
                shown.write(f"{count}/{len(cells)} {name}: {_figures(row)}{kept}")
        except KeyboardInterrupt:
            done = sum(job.status is JobStatus.COMPLETED for job in jobs.values())
            shown.write(f"{done} of {len(cells)} cells are finished")
            raise
    return list(jobs.values())


def _rows(cells: Sequence[GridCell], inputs: Path) -> Iterator[tuple[int, Cell | Exception]]:
    """Yield the number and the figures, or the error, of each cell as it ends: first of those finished before."""
    from experiments.harness.extracted_collections import Source, read_together
    from experiments.harness.finished_cells import alone, called, is_worth_a_pool, spread

    missing = [cell for cell in cells if cell.about]
    yield from ((cell.number, finished_before(cell.folder)) for cell in cells if not cell.about)
    if not missing:
        return
    timing = any(cell.timing for cell in missing)
    groups: dict[str, list[GridCell]] = {}
    for cell in sorted(missing, key=lambda cell: cell.method.tau or 0):
        groups.setdefault(str(cell.number) if timing else cell.join_key, []).append(cell)
    sources = {cell.input_key: Source.of(cell.run.collection, cell.method) for cell in missing}
    plan = f"{counted(len(missing), 'cell')}, {counted(len(sources), 'reading')}, {counted(len(groups), 'join')}"
    sys.stdout.write(f"{plan}{', each alone' if timing else ''}\n")
    sys.stdout.flush()
    began = perf_counter()
    later = "" if timing or len(groups) < 2 else "experiments.evaluate"
    read = read_together(list(sources.values()), inputs, missing[0].run.engine, later=later)
    stored = dict(zip(sources, read, strict=True))
    seconds = perf_counter() - began
    costs = [_cost(group, stored[group[0].input_key]) for group in groups.values()]
    contended = not timing and is_worth_a_pool(costs, missing[0].workers)
    tasks = [_task(group, stored, seconds, contended=contended) for group in groups.values()]
    numbers = [[cell.number for cell in group] for group in groups.values()]
    ended: Iterator[tuple[int, Any]]
    if timing:
        ended = ((k, alone(task) or []) for k, task in enumerate(tasks))
    else:
        ended = spread(called, tasks, costs, missing[0].workers)
    for k, rows in ended:
        yield from zip(numbers[k], rows, strict=True)
        import_module("experiments.show.by_method")  # which draws the figure: loaded while workers run


def _task(group: Sequence[GridCell], stored: Mapping[str, Any], seconds: float, *, contended: bool) -> Any:
    """Return the cells of a group, which share a join, as a task."""
    from experiments.evaluate import RunCells, commit_of_code
    from spotsigs.arrays.parallel import all_cores

    processes = min(group[0].workers, all_cores())
    return RunCells(
        methods=[cell.method for cell in group],
        runs=[cell.run for cell in group],
        about=[cell.about for cell in group],
        stored=stored[group[0].input_key],
        seconds=seconds,
        threads=min(all_cores(), max(2, all_cores() // processes)) if contended else None,
        commit=commit_of_code(),
    )


def _cost(group: Sequence[GridCell], stored: Any) -> float:
    from experiments.evaluate import cost_of

    taus = [cell.method.tau for cell in group if cell.method.tau]
    return cost_of(stored, min(taus, default=1.0), len(group))


def finished_before(folder: Path) -> Cell:
    """Return the figures of a run that has finished."""
    from experiments.harness.cells import cell_of
    from spotsigs.reports.output_files import read_json

    about = read_json(folder / "run.json")
    return cell_of(read_json(folder / COMPLETE), **{key: about[key] for key in ("seed", "commit", "contended")})


def _end(job: JobReturn, row: Cell | Exception) -> None:
    failed = isinstance(row, Exception)
    job.status = JobStatus.FAILED if failed else JobStatus.COMPLETED
    job.return_value = row if isinstance(row, Exception) else row["f1"]


def _figures(row: Cell | Exception) -> str:
    if isinstance(row, Exception):
        return sentence(row)
    quality = "" if row["f1"] is None else f"F1 {row['f1']:.3f}, "
    return f"{quality}{row['pairs']:,} pairs"


class SweepSummary(Callback):
    """Callback of Hydra around a sweep with any launcher: lists the jobs, and writes a table and a figure at the end.

    A sweeper that optimises maximises: the value of a job is its F1.
    """

    def on_multirun_start(self, config: Any, **_: Any) -> None:
        """Name the folder of the sweep by its overrides, and remove the list of an earlier sweep."""
        if not any(word.startswith("experiment=") for word in config.hydra.overrides.task):  # which is refused
            sys.stderr.write("composing the cells of the sweep\n")
        name = (
            variant(without_repeated_defaults(config.hydra.overrides.task, config.hydra.runtime.choices)) or "defaults"
        )
        folder = Path(config.hydra.sweep.dir).absolute() / "sweeps" / name
        os.environ[SWEEP] = str(folder)
        (folder / JOBS).unlink(missing_ok=True)
        self.jobs: dict[int, dict[str, Any]] = {}
        self.rows: dict[int, Cell] = {}
        chosen = any(word.startswith("hydra.sweeper.direction=") for word in config.hydra.overrides.hydra)
        if "direction" in config.hydra.sweeper and not chosen:
            config.hydra.sweeper.direction = "maximize"

    def on_job_end(
        self, config: Any, job_return: Any = None, *, cell: GridCell | None = None, row: Any = None, **_: Any
    ) -> None:
        """Store the figures of a cell that has finished; list a job that another launcher runs in its process."""
        if SWEEP not in os.environ or isinstance(row, Exception):
            return
        if cell is not None:
            words = {"number": cell.number, "words": list(cell.words), "folder": str(cell.folder)}
            self.jobs[cell.number], self.rows[cell.number] = words, row
            return
        run, folder = Path(config.hydra.runtime.output_dir), Path(os.environ[SWEEP])
        if (run / COMPLETE).is_file():
            job = {"number": config.hydra.job.num, "words": list(config.hydra.overrides.task), "folder": str(run)}
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / JOBS).open("a", encoding="utf-8") as file:
                file.write(json.dumps(job) + "\n")

    def on_multirun_end(self, config: Any, **_: Any) -> None:
        """Print the table, write it with the cells, and draw the figure."""
        from experiments.show.sweep import swept_keys, typed, write_sweep

        folder = Path(os.environ.pop(SWEEP))
        shutil.rmtree(folder / "inputs", ignore_errors=True)
        if (folder / JOBS).is_file():
            jobs = map(json.loads, (folder / JOBS).read_text(encoding="utf-8").splitlines())
            self.jobs |= {job["number"]: job for job in jobs}
        if not self.jobs:
            return
        finished = [job for _, job in sorted(self.jobs.items())]
        swept = [key for key in swept_keys(finished) if key not in ("tau", "data", "seed")]
        cells = []
        for job in finished:
            row = self.rows.get(job["number"]) or finished_before(Path(job["folder"]))
            words = typed(job)
            label = " ".join(f"{key}={words[key]}" for key in swept if key in words)
            cells.append(row | {"method": label or row["method"]})
        for text in write_sweep(folder, finished, cells):
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
