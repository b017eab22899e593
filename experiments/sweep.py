"""Sweeps: compose all cells, run those without results, and end with a table and a figure."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus, setup_globals
from hydra.experimental.callback import Callback
from omegaconf import OmegaConf, open_dict, read_write

from experiments.config import changing, files, sentence, settings
from experiments.run_folders import COMPLETE, IDENTITY, is_finished, variant
from spotsigs.progress import SECONDS, log

if TYPE_CHECKING:
    from experiments.harness.cells import Cell
    from experiments.harness.sweep_cells import Ended, SweepCell

SWEEP = "SPOTSIGS_SWEEP"
"""Environment variable with the folder of the running sweep, which jobs in other processes inherit."""

JOBS = "jobs.jsonl"
"""File of the folder of a sweep that lists the finished jobs of other launchers."""


def launch(
    context: Any, task_function: Any, config: Any, job_overrides: Sequence[Sequence[str]], first: int
) -> Sequence[JobReturn]:
    """Run cells, given by their overrides and the number of the first, and print a line for each.

    The other parameters are objects of Hydra. The value of each returned job is the F1 of the cell.
    """
    from tqdm import tqdm

    from experiments.harness.sweep_cells import finished_before, run_cells

    setup_globals()
    before = HydraConfig.instance().cfg
    try:
        jobs = {
            number: _composed(context, task_function, config, number, words)
            for number, words in enumerate(job_overrides, first)
        }
    finally:
        HydraConfig.instance().cfg = before
    folders = {number: cell.run.output.folder for number, (cell, _) in jobs.items()}
    done = {number for number, (cell, _) in jobs.items() if is_finished(folders[number], cell.about)}
    missing = [cell for number, (cell, _) in jobs.items() if number not in done]
    inputs = Path(os.environ.get(SWEEP, config.hydra.sweep.dir)).absolute() / "inputs"
    returned = [job for _, job in jobs.values()]
    words = {number: _words(cell, job.overrides or ()) for number, (cell, job) in jobs.items()}
    common = set.intersection(*map(set, words.values())) if len(jobs) > 1 else set()
    names = {
        number: " ".join([word for word in typed if word not in common] or typed) for number, typed in words.items()
    }
    finished = (finished_before(number, folders[number]) for number in done)
    with tqdm(total=len(jobs), unit="cell", disable=None) as bar:
        running = run_cells(missing, inputs, missing[0].workers, _Beat(bar, names)) if missing else ()
        try:
            for count, ended in enumerate(chain(finished, running), 1):
                cell, job = jobs[ended.number]
                _end(context, cell, job, ended)
                bar.update()
                kept = ", finished before" if ended.number in done else ""
                line = f"{count}/{len(jobs)} {names[ended.number]}: {_figures(ended)}{kept}"
                bar.write(line, file=sys.stdout)
                sys.stdout.flush()
        except KeyboardInterrupt:
            count = sum(job.status is JobStatus.COMPLETED for job in returned)
            bar.write(f"{count} of {len(jobs)} cells are finished", file=sys.stdout)
            raise
    return returned


def _words(cell: SweepCell, overrides: Sequence[str]) -> list[str]:
    """Return the overrides of a cell with its threshold as it is applied, see `experiments.config.settings`."""
    tau = cell.method.tau
    return [f"tau={tau:g}" if word.startswith("tau=") and tau is not None else word for word in overrides]


class _Beat:
    """Shows the running cells and their seconds in the bar, without a terminal in a record of the log."""

    def __init__(self, bar: Any, names: Mapping[int, str]) -> None:
        self.bar, self.names, self.last = bar, names, monotonic()

    def __call__(self, running: Mapping[int, float]) -> None:
        shown = ", ".join(f"{self.names[number]} for {seconds:.0f} s" for number, seconds in running.items())
        if not self.bar.disable:
            self.bar.set_postfix_str(shown)
        elif monotonic() - self.last >= SECONDS:
            self.last = monotonic()
            log.info("running: %s", shown)


def _composed(
    context: Any, task_function: Any, config: Any, number: int, words: Sequence[str]
) -> tuple[SweepCell, JobReturn]:
    """Compose a cell and check its settings, as Hydra does before it calls a job."""
    from experiments.harness.sweep_cells import SweepCell, identity

    config = context.config_loader.load_sweep_config(config, list(words))
    with open_dict(config):
        config.hydra.job.id = config.hydra.job.num = number
    HydraConfig.instance().set_config(config)  # the name of the folder is resolved by it
    folder = Path(config.hydra.sweep.dir, config.hydra.sweep.subdir).absolute()
    with read_write(config.hydra.runtime), open_dict(config.hydra.runtime):
        config.hydra.runtime.output_dir = str(folder)
    HydraConfig.instance().set_config(config)
    task = OmegaConf.masked_copy(config, [key for key in config if key != "hydra"])
    typed: Any = OmegaConf.to_container(config.hydra.overrides.task)
    context.callbacks.on_job_start(config=config, task_function=task_function)
    chosen = settings(task)
    about = {**files(task, chosen), IDENTITY: identity(chosen.collection, chosen.method)}
    keys = {key: getattr(chosen, key) for key in ("method", "workers", "threads", "timing")}
    cell = SweepCell(number=number, run=chosen.run(folder), about=about, **keys)
    return cell, JobReturn(overrides=typed, cfg=task, hydra_cfg=config, working_dir=str(Path.cwd()))


def _end(context: Any, cell: SweepCell, job: JobReturn, ended: Ended) -> None:
    job.status = JobStatus.FAILED if ended.error else JobStatus.COMPLETED
    if ended.error is not None:
        job.return_value = ended.error
    else:
        job.return_value = None if ended.metrics is None else ended.metrics["f1"]
    context.callbacks.on_job_end(config=job.hydra_cfg, job_return=job, ended=ended)


def _figures(ended: Ended) -> str:
    if ended.error is not None:
        return sentence(ended.error)
    metrics = ended.metrics or {}
    quality = "" if metrics["f1"] is None else f"F1 {metrics['f1']:.3f}, "
    return f"{quality}{metrics['pairs']:,} pairs"


class SweepSummary(Callback):
    """Callback of Hydra around a sweep with any launcher: lists the jobs, and writes a table and a figure at the end.

    A sweeper that optimises maximises: the value of a job is its F1.
    """

    def on_multirun_start(self, config: Any, **_: Any) -> None:
        """Name the folder of the sweep by its overrides, and remove the list of an earlier sweep."""
        name = variant(changing(config.hydra.overrides.task, config.hydra.runtime.choices)) or "defaults"
        folder = Path(config.hydra.sweep.dir).absolute() / "sweeps" / name
        os.environ[SWEEP] = str(folder)
        (folder / JOBS).unlink(missing_ok=True)
        self.jobs: dict[int, dict[str, Any]] = {}
        self.ended: dict[int, Ended] = {}
        chosen = any(word.startswith("hydra.sweeper.direction=") for word in config.hydra.overrides.hydra)
        if "direction" in config.hydra.sweeper and not chosen:
            config.hydra.sweeper.direction = "maximize"

    def on_job_end(self, config: Any, job_return: Any = None, *, ended: Ended | None = None, **_: Any) -> None:
        """Store a job that has finished, with its figures; list one that another launcher runs in its process."""
        run = Path(config.hydra.runtime.output_dir)
        if SWEEP not in os.environ or not (run / COMPLETE).is_file():
            return
        number = config.hydra.job.num
        job = {"number": number, "words": list(config.hydra.overrides.task), "folder": str(run)}
        if ended is not None:
            self.jobs[number], self.ended[number] = job, ended
            return
        folder = Path(os.environ[SWEEP])
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / JOBS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(job) + "\n")

    def on_multirun_end(self, config: Any, **_: Any) -> None:
        """Write and print the table; draw the figure."""
        from experiments.harness.cells import write_cells
        from experiments.harness.sweep_cells import finished_before
        from experiments.show.sweep import swept_keys, write_sweep

        folder = Path(os.environ.pop(SWEEP))
        shutil.rmtree(folder / "inputs", ignore_errors=True)
        if (folder / JOBS).is_file():
            jobs = map(json.loads, (folder / JOBS).read_text(encoding="utf-8").splitlines())
            self.jobs |= {job["number"]: job for job in jobs}
        if not self.jobs:
            return
        finished = [job for _, job in sorted(self.jobs.items())]
        swept = swept_keys(finished)
        cells = [
            _cell(job, self.ended.get(job["number"]) or finished_before(job["number"], Path(job["folder"])), swept)
            for job in finished
        ]
        write_cells(folder, cells)
        print(write_sweep(folder, finished, cells))  # noqa: T201


def _cell(job: Mapping[str, Any], ended: Ended, swept: Sequence[str]) -> Cell:
    """Return the figures of a finished job, whose method is named by its swept choices."""
    from experiments.harness.cells import cell_of
    from experiments.show.sweep import typed

    words = typed(job)
    label = " ".join(f"{key}={words[key]}" for key in swept if key in words and key not in ("tau", "data", "seed"))
    return cell_of(ended.metrics or {}, label=label, **(ended.origin or {}))
