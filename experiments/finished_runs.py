"""Finished runs: where each lies, one table of those of a sweep, and some side by side."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.show.tables import Column, Table
from spotsigs.errors import require
from spotsigs.output_files import read_json
from spotsigs.runs.comparison import COMPLETE, MEASURES, UNCHANGED_BY, differing, flat, parameters, run_row

LONGEST = 120
"""Characters of a folder's name that stay readable; the rest is a checksum."""

SWEEP = "SPOTSIGS_SWEEP"
"""Environment variable with the folder of the sweep under way, which its jobs inherit, in other processes too."""

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
    unnamed = {*UNCHANGED_BY, *leave_out}
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
    import yaml

    if not (folder / COMPLETE).is_file():
        return
    former, now = parameters(folder), dict(flat(yaml.safe_load(config)))
    changed = [f"{key} was {former[key]}, is {now[key]}" for key in former if now.get(key, former[key]) != former[key]]
    changed = [change for change in changed if change.partition(" ")[0] not in UNCHANGED_BY]
    require(
        not changed,
        f"{folder} holds a run of other defaults ({'; '.join(changed)}): move it away, or give this run another "
        "place with hydra.run.dir=",
    )


def score(folder: Path) -> float | None:
    """Return what a sweeper may optimise, the F1 of a finished run; None without truth."""
    path = folder / COMPLETE
    value = read_json(path)["f1"] if path.exists() else None
    return None if value is None else float(value)


def runs_table(folders: Sequence[Path], caption: str) -> Table:
    """Return runs side by side.

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
    figures = {*MEASURES, "folder"}
    keys = [key for key in dict.fromkeys(key for row in rows for key in row) if key not in figures]
    keys = [key for key in keys if key.partition(".")[0] not in UNCHANGED_BY]
    shown = set(differing(rows))
    columns = [Column(name=key, title=key if key in shown else "") for key in keys]
    known = [replace(c, title=c.title if any(row[c.name] is not None for row in rows) else "") for c in COLUMNS]
    return Table(caption=caption, columns=[*columns, *known, Column(name="folder")], rows=rows)


class Sweep:
    """Called by Hydra around a sweep: keeps ``runs.csv`` up to date after every run, and prints it at the end."""

    def __getattr__(self, name: str) -> Any:
        """Answer Hydra's other calls, which say nothing here."""
        if not name.startswith("on_"):
            raise AttributeError(name)
        return lambda **_: None

    def on_multirun_start(self, config: Any, **_: Any) -> None:
        """Name the sweep's folder after what is swept, and forget an earlier sweep of that name."""
        name = variant(config.hydra.overrides.task) or "defaults"
        folder = Path(config.hydra.sweep.dir).absolute() / "sweeps" / name
        os.environ[SWEEP] = str(folder)
        (folder / "runs.txt").unlink(missing_ok=True)

    def on_job_end(self, config: Any, **_: Any) -> None:
        """Put a run that has finished into the table."""
        run = Path(config.hydra.runtime.output_dir)
        if SWEEP in os.environ and (run / COMPLETE).is_file():
            folder = Path(os.environ[SWEEP])
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / "runs.txt").open("a", encoding="utf-8") as file:
                file.write(f"{run}\n")
            self._table(folder)

    def on_multirun_end(self, **_: Any) -> None:
        """Print the table."""
        folder = Path(os.environ.pop(SWEEP))
        table = self._table(folder)
        if table is not None:
            print(f"\n{table.text()}\n\nruns.csv with all parameters: {folder / 'runs.csv'}")  # noqa: T201

    def _table(self, folder: Path) -> Table | None:
        listed = folder / "runs.txt"
        if not listed.is_file():
            return None
        finished = [Path(line) for line in dict.fromkeys(listed.read_text(encoding="utf-8").splitlines())]
        table = runs_table(finished, f"{len(finished)} runs of the sweep {folder.name}")
        table.write(folder, "runs")
        return table
