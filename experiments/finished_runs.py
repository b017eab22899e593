"""Finished runs: where each lies, one table of those of a sweep, and some side by side."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.show.tables import Column, Table
from spotsigs.errors import InputError, counted, require
from spotsigs.output_files import read_json
from spotsigs.runs.comparison import COMPLETE, MEASURES, flat
from spotsigs.runs.provenance import git

ROOT = Path(__file__).parents[1]
"""The checkout."""

SAME = ("page", "copy", "debug")
"""Keys that change nothing of a run's results."""

COMPARED = ("matcher", "signature", "tau")
"""Keys that the command after a run sweeps."""

LONGEST = 120
"""Characters of a folder's name that stay readable; the rest is a checksum."""

IDENTITY = "cell.json"
"""File of the folder ``.hydra`` of a cell: what its results depend on besides the configuration."""

SWEEP = "SPOTSIGS_SWEEP"
"""Environment variable with the folder of the running sweep, which its jobs inherit, in other processes too."""

JOBS = "jobs.jsonl"
"""File of the folder of a sweep that lists its finished jobs."""

COLUMNS = [Column(name=name, title=title, form=form) for name, (title, form) in MEASURES.items()]


def variant(overrides: Iterable[str], leave_out: Iterable[str] = ()) -> str:
    """Return a name for what was overridden: the same for the same overrides in any order, another for others.

    Parameters
    ----------
    overrides : iterable of str
        As on the command line.
    leave_out : iterable of str
        Keys that are named elsewhere.

    Returns
    -------
    str
        Fit for a folder on every system: ``idf_max=0.85+signature.d=1``.
    """
    unnamed = {*SAME, *leave_out}
    named = (override.lstrip("+") for override in overrides)
    words = sorted(_word(override) for override in named if override.partition("=")[0] not in unnamed)
    return _shortened("+".join(words))


def _word(override: str) -> str:
    """Return one override as a part of a name; a checksum tells those apart that only differ in what is left out."""
    plain = re.sub(r"[^a-z0-9_.=-]+", "-", override.lower()).strip("-")
    return plain if plain == override else f"{plain}-{_checksum(override)}"


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}-{_checksum(name)}"


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def require_same(folder: Path, config: str) -> None:
    """Refuse to replace a finished run of other defaults: its folder's name tells only what was overridden.

    Parameters
    ----------
    folder : Path
        Where the new run is going to lie.
    config : str
        Its whole configuration, as YAML.

    Raises
    ------
    InputError
        If a finished run lies there that was configured otherwise.
    """
    if not (folder / COMPLETE).is_file():
        return
    former, now = parameters(folder), dict(flat(_plain(config)))
    changed = [f"{key} was {former[key]}, is {now[key]}" for key in former if now.get(key, former[key]) != former[key]]
    changed = [change for change in changed if change.partition(" ")[0] not in SAME]
    require(
        not changed,
        f"{folder} holds a run of other defaults ({'; '.join(changed)}): move it away, or give this run another "
        "place with hydra.run.dir=",
    )


def replaced_results(since: float) -> str:
    """Return a line that names the committed results that were replaced since a time, and undoes that; else nothing.

    Parameters
    ----------
    since : float
        Seconds since the epoch.
    """
    if Path.cwd() != ROOT:  # the committed results are those of the checkout
        return ""
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ":(top)results") or ""
    paths = [ROOT / line[2:].strip().strip('"') for line in changed.splitlines()]
    new = [path.relative_to(ROOT) for path in paths if path.exists() and path.stat().st_mtime >= since]
    folders = sorted({Path(*path.parts[:2]).as_posix() for path in new})
    if not folders:
        return ""
    return f"{counted(len(new), 'committed file')} replaced; to undo: git restore {' '.join(folders)}"


def next_command(folder: Path, words: Sequence[str]) -> str:
    """Return the command that is worth typing after a finished run.

    Parameters
    ----------
    folder : Path
        Of the run.
    words : sequence of str
        The overrides of its command.
    """
    metrics = read_json(folder / COMPLETE)
    typed = [shlex.quote(word) for word in words if word.partition("=")[0] not in SAME]
    if metrics["f1"] is None:
        return f"next, to look at the clusters: {' '.join(['python run.py', *typed, 'page=true'])}"
    tau, others = metrics["tau"], [word for word in typed if word.partition("=")[0] not in COMPARED]
    low = tau is not None and metrics["recall"] < metrics["precision"] - 0.2  # a lower threshold reports more
    taus = [round(tau * part, 3) for part in (0.25, 0.5, 1)] if low else [0.3, 0.44, 0.6]
    swept = f"-m matcher=spotsigs,lsh,imatch signature=spotsigs,shingles3 tau={','.join(f'{tau:g}' for tau in taus)}"
    return f"next, to compare methods and thresholds: {' '.join(['python run.py', swept, *others])}"


def score(folder: Path) -> float | None:
    """Return what a sweeper may optimise, the F1 of a finished run; None without truth."""
    path = folder / COMPLETE
    value = read_json(path)["f1"] if path.exists() else None
    return None if value is None else float(value)


def parameters(folder: Path) -> dict[str, Any]:
    """Return the whole configuration of a run, a value for each key in its dotted form."""
    path = folder / ".hydra" / "config.yaml"
    return dict(flat(_plain(path.read_text(encoding="utf-8")))) if path.exists() else {}


def _plain(text: str) -> Any:
    """Return the content of a YAML file, by libyaml where it is there, which is several times faster."""
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text).get_single_data()


def run_row(folder: Path) -> dict[str, Any]:
    """Return a run as a row: its choices, its whole configuration, its figures, and its folder."""
    if not (folder / COMPLETE).is_file():
        raise InputError(f"{folder} is not the folder of a finished run: it has no {COMPLETE}")
    metrics = read_json(folder / COMPLETE)
    choices = {group: metrics[group] for group in ("data", "text", "signature", "matcher")}
    measured = {name: metrics.get(name) for name in MEASURES}  # absent in runs of earlier versions
    tau = {} if metrics["tau"] is None else {"tau": metrics["tau"]}  # a suggested one is not in the configuration
    configured = {key if key not in measured else f"{key}=": value for key, value in parameters(folder).items()}
    times = {"contended": read_json(folder / "run.json")["contended"], "joined_at": metrics.get("joined_at")}
    return choices | configured | tau | measured | times | {"folder": str(folder)}


def runs_table(folders: Sequence[Path], caption: str) -> Table:
    """Return runs in one table.

    Parameters
    ----------
    folders : sequence of Path
        Folders of finished runs, in order.
    caption : str
        What they have in common.

    Returns
    -------
    Table
        The csv has every parameter; printed are those that differ, and the figures.
    """
    rows = [run_row(folder) for folder in folders]
    figures = MEASURES.keys() | {"contended", "joined_at", "folder"}
    keys = [key for key in dict.fromkeys(key for row in rows for key in row) if key not in figures]
    keys = [key for key in keys if key.partition(".")[0] not in SAME]
    differing = {key for key in keys if len({str(row.get(key)) for row in rows}) > 1}
    columns = [Column(name=key, title=key if key in differing else "") for key in keys]
    known = [replace(c, title=c.title if any(row[c.name] is not None for row in rows) else "") for c in COLUMNS]
    last = [Column(name=name) for name in ("contended", "joined_at", "folder")]
    return Table(caption=caption, columns=[*columns, *known, *last], rows=rows)


class Sweep:
    """Called by Hydra around a sweep, whichever launcher runs its jobs: lists them, and ends with a table and a figure.

    A sweeper that optimises maximises: the value of a job is its F1.
    """

    def __getattr__(self, name: str) -> Any:
        """Answer Hydra's other calls, which need nothing."""
        if not name.startswith("on_"):
            raise AttributeError(name)
        return lambda **_: None

    def on_multirun_start(self, config: Any, **_: Any) -> None:
        """Name the folder of the sweep by what is swept, and forget an earlier sweep of that name."""
        folder = (
            Path(config.hydra.sweep.dir).absolute() / "sweeps" / (variant(config.hydra.overrides.task) or "defaults")
        )
        os.environ[SWEEP] = str(folder)
        (folder / JOBS).unlink(missing_ok=True)
        given = any(word.startswith("hydra.sweeper.direction=") for word in config.hydra.overrides.hydra)
        if "direction" in config.hydra.sweeper and not given:
            config.hydra.sweeper.direction = "maximize"

    def on_job_end(self, config: Any, **_: Any) -> None:
        """List a job that has finished."""
        run = Path(config.hydra.runtime.output_dir)
        if SWEEP in os.environ and (run / COMPLETE).is_file():
            folder = Path(os.environ[SWEEP])
            folder.mkdir(parents=True, exist_ok=True)
            job = {"number": config.hydra.job.num, "words": list(config.hydra.overrides.task), "folder": str(run)}
            with (folder / JOBS).open("a", encoding="utf-8") as file:
                file.write(json.dumps(job) + "\n")

    def on_multirun_end(self, config: Any, **_: Any) -> None:
        """Write and print the table; draw the figure."""
        from experiments.show.sweep import write_sweep

        folder = Path(os.environ.pop(SWEEP))
        shutil.rmtree(folder / "inputs", ignore_errors=True)
        if not (folder / JOBS).is_file():
            return
        lines = (folder / JOBS).read_text(encoding="utf-8").splitlines()
        jobs = {job["number"]: job for job in map(json.loads, lines)}
        print(write_sweep(folder, [jobs[number] for number in sorted(jobs)]))  # noqa: T201


def is_finished(folder: Path, about: Mapping[str, str]) -> bool:
    """Return whether a folder has the results of a cell with the same configuration, input and code.

    Parameters
    ----------
    folder : Path
        Of the cell.
    about : mapping of str to str
        The files of its folder ``.hydra`` that a run would write.
    """
    path = folder / ".hydra" / IDENTITY
    if not ((folder / COMPLETE).is_file() and path.is_file() and path.read_text(encoding="utf-8") == about[IDENTITY]):
        return False
    before, now = parameters(folder), dict(flat(_plain(about["config.yaml"])))
    same = all(before.get(key) == now.get(key) for key in {*before, *now} - {"workers", "threads", "debug"})
    return same and now.get("copy") is None and now.get("query") is None
