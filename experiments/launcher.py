"""Hydra's launcher of a sweep: it composes all cells first, and runs together what they share."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus, setup_globals
from omegaconf import OmegaConf, open_dict, read_write

from experiments.config import files, moved, sentence, settings
from experiments.finished_runs import COMPLETE, IDENTITY, SWEEP, is_finished, require_same, score
from experiments.work.cells import Ended, SweepCell, identity, run_cells
from spotsigs.output_files import read_json


def launch(
    context: Any, task_function: Any, config: Any, job_overrides: Sequence[Sequence[str]], first: int
) -> Sequence[JobReturn]:
    """Run cells.

    Parameters
    ----------
    context, task_function, config : object
        Of Hydra.
    job_overrides : sequence of sequence of str
        Of each cell.
    first : int
        Number of the first.

    Returns
    -------
    sequence of JobReturn
        In the order of the cells; the value of each is its F1.
    """
    from tqdm import tqdm

    setup_globals()
    before = HydraConfig.instance().cfg
    try:
        jobs = [_job(context, task_function, config, first + k, words) for k, words in enumerate(job_overrides)]
    finally:
        HydraConfig.instance().cfg = before
    done = {job.cell.number for job in jobs if is_finished(job.cell.folder, job.cell.about)}
    missing = [job.cell for job in jobs if job.cell.number not in done]
    inputs = Path(os.environ.get(SWEEP, config.hydra.sweep.dir)).absolute() / "inputs"
    with tqdm(total=len(jobs), unit="cell", disable=None) as bar:
        ended = chain(
            (Ended(number=number) for number in done),
            run_cells(missing, inputs, missing[0].settings.workers) if missing else (),
        )
        try:
            for count, cell in enumerate(ended, 1):
                job = jobs[cell.number - first]
                _end(context, job, cell)
                bar.update()
                kept = ", finished before" if cell.number in done else ""
                bar.write(f"{count}/{len(jobs)} {_words(job, jobs)}: {_said(job.cell, cell)}{kept}", file=sys.stdout)
                sys.stdout.flush()
        except KeyboardInterrupt:
            finished = sum(job.returned.status is JobStatus.COMPLETED for job in jobs)
            bar.write(f"{finished} of {len(jobs)} cells are finished; the same command continues", file=sys.stdout)
            raise
    return [job.returned for job in jobs]


@dataclass(frozen=True, kw_only=True)
class SweepJob:
    """A cell and what Hydra knows of it."""

    config: Any
    returned: JobReturn
    cell: SweepCell


def _end(context: Any, job: SweepJob, ended: Ended) -> None:
    """Record the end of a job, as Hydra does."""
    job.returned.status = JobStatus.FAILED if ended.error else JobStatus.COMPLETED
    if ended.error is not None:
        job.returned.return_value = ended.error
    elif job.cell.settings.query is None:
        job.returned.return_value = score(job.cell.folder)
    context.callbacks.on_job_end(config=job.config, job_return=job.returned)


def _said(cell: SweepCell, ended: Ended) -> str:
    """Return the main figures of a cell, or its error."""
    if ended.error is not None:
        return sentence(ended.error)
    if cell.settings.query is not None:
        return ended.text
    metrics = read_json(cell.folder / COMPLETE)
    quality = "" if metrics["f1"] is None else f"F1 {metrics['f1']:.3f}, "
    return f"{quality}{metrics['pairs']:,} pairs"


def _words(job: SweepJob, jobs: Sequence[SweepJob]) -> str:
    """Return the overrides of a job that not all jobs have."""
    words = [list(one.returned.overrides or ()) for one in jobs]
    common = set.intersection(*map(set, words)) if len(words) > 1 else set()
    own = list(job.returned.overrides or ())
    return " ".join([word for word in own if word not in common] or own)


def _job(context: Any, task_function: Any, config: Any, number: int, words: Sequence[str]) -> SweepJob:
    """Compose a cell and check its settings, as Hydra does before it calls a job."""
    config = context.config_loader.load_sweep_config(config, list(words))
    with open_dict(config):
        config.hydra.job.id = config.hydra.job.num = number
    HydraConfig.instance().set_config(config)
    folder = Path(config.hydra.sweep.dir, config.hydra.sweep.subdir).absolute()
    with read_write(config.hydra.runtime), open_dict(config.hydra.runtime):
        config.hydra.runtime.output_dir = str(folder)
    HydraConfig.instance().set_config(config)
    task = OmegaConf.masked_copy(config, [key for key in config if key != "hydra"])
    given: Any = OmegaConf.to_container(config.hydra.overrides.task)
    returned = JobReturn(overrides=given, cfg=task, hydra_cfg=config, working_dir=str(Path.cwd()))
    context.callbacks.on_job_start(config=config, task_function=task_function)
    chosen = settings(task)
    about = {**files(task, chosen), IDENTITY: identity(chosen)}
    if not moved():
        require_same(folder, about["config.yaml"])
    return SweepJob(
        config=config,
        returned=returned,
        cell=SweepCell(number=number, settings=chosen, folder=folder, about=about),
    )
