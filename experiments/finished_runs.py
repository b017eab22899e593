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
from spotsigs.errors import InputError, require
from spotsigs.output_files import read_json

SAME = ("page", "copy", "debug")
"""Keys that change nothing of a run's results."""

LONGEST = 120
"""Characters of a folder's name that stay readable; the rest is a checksum."""

COMPLETE = "metrics.json"
SWEEP = "SPOTSIGS_SWEEP"
"""Environment variable with the folder of the sweep under way, which its jobs inherit, in other processes too."""

MEASURES = [
    Column(name="documents", title="Documents", form=",.0f"),
    Column(name="signatures", title="#Spots", form=",.0f"),
    Column(name="pairs", title="Pairs", form=",.0f"),
    Column(name="clusters", title="Clusters", form=",.0f"),
    Column(name="largest_cluster", title="Largest", form=",.0f"),
    Column(name="precision", title="Prec.", form=".3f"),
    Column(name="recall", title="Rec.", form=".3f"),
    Column(name="f1", title="F1", form=".3f"),
    Column(name="macro_f1", title="Macro F1", form=".3f"),
    Column(name="stories_lost", title="Lost", form=",.0f"),
    Column(name="duplicates_left", title="Left", form=",.0f"),
    Column(name="bcubed_f1", title="B-cubed F1", form=".3f"),
    Column(name="total_ms", title="Total (ms)", form=",.0f"),
    Column(name="peak_mb", title="Peak MB", form=",.0f"),
]


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
    import yaml

    if not (folder / COMPLETE).is_file():
        return
    former, now = parameters(folder), dict(_flat(yaml.safe_load(config)))
    changed = [f"{key} was {former[key]}, is {now[key]}" for key in former if now.get(key, former[key]) != former[key]]
    changed = [change for change in changed if change.partition(" ")[0] not in SAME]
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


def parameters(folder: Path) -> dict[str, Any]:
    """Return the whole configuration of a run, a value for each key in its dotted form."""
    import yaml

    path = folder / ".hydra" / "config.yaml"
    return dict(_flat(yaml.safe_load(path.read_text(encoding="utf-8")))) if path.exists() else {}


def _flat(node: Any, prefix: str = "") -> Iterable[tuple[str, Any]]:
    if not isinstance(node, dict):
        yield prefix, ", ".join(map(str, node)) if isinstance(node, list) else node
        return
    for key, value in node.items():
        refers = isinstance(value, str) and value.startswith("${")  # to another key, which is in the table
        if key != "_target_" and not refers:
            yield from _flat(value, f"{prefix}.{key}" if prefix else str(key))


def run_row(folder: Path) -> dict[str, Any]:
    """Return a run as a row: its choices, its whole configuration, its figures, and where it lies."""
    if not (folder / COMPLETE).is_file():
        raise InputError(f"{folder} is not the folder of a finished run: it holds no {COMPLETE}")
    metrics = read_json(folder / COMPLETE)
    choices = {group: metrics[group] for group in ("data", "text", "signature", "matcher")}
    measured = {column.name: metrics.get(column.name) for column in MEASURES}  # absent in runs of earlier versions
    tau = {} if metrics["tau"] is None else {"tau": metrics["tau"]}  # a suggested one is not in the configuration
    configured = {key if key not in measured else f"{key}=": value for key, value in parameters(folder).items()}
    return choices | configured | tau | measured | {"folder": str(folder)}


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
    figures = {column.name for column in MEASURES} | {"folder"}
    keys = [key for key in dict.fromkeys(key for row in rows for key in row) if key not in figures]
    keys = [key for key in keys if key.partition(".")[0] not in SAME]
    differing = {key for key in keys if len({str(row.get(key)) for row in rows}) > 1}
    columns = [Column(name=key, title=key if key in differing else "") for key in keys]
    known = [replace(c, title=c.title if any(row[c.name] is not None for row in rows) else "") for c in MEASURES]
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


def compared(runs: Sequence[str]) -> str:
    """Return finished runs side by side: what was configured differently, the figures, and which pairs each reports.

    Parameters
    ----------
    runs : sequence of str
        Folders of finished runs, two or more.

    Returns
    -------
    str
        For the terminal; nothing is written.

    Raises
    ------
    InputError
        If there are fewer than two, or one is not the folder of a finished run.
    """
    if len(runs) < 2:
        raise InputError('name the folders of two or more runs, as in experiment.runs=\'["one","other"]\'')
    folders = [Path(run) for run in runs]
    table = runs_table(folders, f"{len(folders)} runs side by side")
    names = [f"{number}: {folder}" for number, folder in enumerate(folders, 1)]
    numbered = [{"run": number, **row} for number, row in enumerate(table.rows, 1)]
    shown = replace(table, columns=[Column(name="run", title="Run", form="d"), *table.columns], rows=numbered)
    return "\n".join(["", shown.text(), "", *names, "", _in_common(folders)])


def _in_common(folders: Sequence[Path]) -> str:
    """Return how many pairs the runs share with the first, and the largest difference of a similarity."""
    first, *others = (_similarities(folder) for folder in folders)
    lines = []
    for number, other in enumerate(others, 2):
        both = first.keys() & other.keys()
        line = f"pairs of runs 1 and {number}: {len(both):,} in both, {len(first) - len(both):,} only in 1, "
        line += f"{len(other) - len(both):,} only in {number}"
        apart = max((abs(first[pair] - other[pair]) for pair in both), default=0.0)
        lines.append(line + (f"; similarities differ by {apart:.3f} at most" if apart > 0 else ""))
    return "\n".join(lines)


def _similarities(folder: Path) -> dict[tuple[str, str], float]:
    """Return the pairs that a run reported."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "pairs.parquet")
    a, b, similarity = (table[name].to_pylist() for name in ("doc_a", "doc_b", "similarity"))
    return dict(zip(zip(a, b, strict=True), similarity, strict=True))
