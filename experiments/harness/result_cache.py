"""Cache of the results of an experiment's tasks, by content, so that an interrupted run resumes."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

from experiments.evaluate import START_SECONDS, alone, spread
from experiments.harness.machine_load import Patience
from experiments.harness.used_code import checksum_of, modules_of
from spotsigs.reports.output_files import read_json, write_json
from spotsigs.runs.provenance import provenance
from spotsigs.workers.progress import Progress

ATTEMPTS = 3
"""Runs of a task whose times other processes disturb."""
SHOWN = 1_000
"""Characters of an argument that a table's provenance quotes."""

LOG = logging.getLogger(__name__)

_provenance = cache(provenance)


@dataclass(frozen=True, kw_only=True)
class Task:
    """Call whose result is cached.

    Attributes
    ----------
    function : callable
        Module-level function that returns a dict of plain values (numbers, strings, lists, dicts).
    arguments : dict
        Keyword arguments; their ``repr`` is part of the key and must identify them.
    alone : bool
        True if the result contains times. It is then measured while no other task runs, valid for this machine only,
        and finished only if no other process disturbed it (``contended`` is false).
    limit : float or None
        Wall seconds after which a task with ``alone`` is stopped; its result is then ``{"over_s": limit}``. A result
        within the limit serves any limit: it is not part of the key.
    cost : float
        Estimated seconds, by which tasks are spread.
    """

    function: Callable[..., dict[str, Any]]
    arguments: dict[str, Any]
    alone: bool = False
    limit: float | None = None
    cost: float = START_SECONDS

    def key(self) -> dict[str, Any]:
        """Return all that the result depends on: the call, the source code, the versions of libraries."""
        facts, module = _provenance(), self.function.__module__
        parts: dict[str, Any] = {
            "function": f"{module}.{self.function.__qualname__}",
            "arguments": {name: repr(value) for name, value in sorted(self.arguments.items())},
            "code": checksum_of(*sorted({module, *modules_of(*self.arguments.values())})),
            "versions": facts["versions"] | {"python": facts["python"]},
        }
        return parts | ({"machine": facts["machine"]} if self.alone else {})

    def __call__(self) -> dict[str, Any]:
        """Call the function."""
        return self.function(**self.arguments)


@dataclass(frozen=True, kw_only=True)
class ResultCache:
    """Folder of cached results.

    Attributes
    ----------
    folder : Path
        Folder with one file for each result, named by its key.
    workers : int
        Worker processes for tasks that may run concurrently.
    patience : Patience
        How long tasks with ``alone`` wait for a quiet machine; they then run up to `ATTEMPTS` times.
    log : list of dict
        For every requested result: file name, key, command, commit, and whether it is from a previous run (``kept``).
    contended : list of str
        File names of the requested results whose times other processes disturbed.
    """

    folder: Path
    workers: int = 8
    patience: Patience = field(default_factory=lambda: Patience(0.0), compare=False, repr=False)
    log: list[dict[str, Any]] = field(default_factory=list, compare=False, repr=False)
    contended: list[str] = field(default_factory=list, compare=False, repr=False)

    def run(self, tasks: Sequence[Task], describe: str) -> list[dict[str, Any]]:
        """Return the value of every task, in order; only those without a cached result run.

        Concurrent tasks run first, on the workers. Tasks with ``alone`` follow, one at a time, each in a new process,
        so that the memory measured there is that of the task. Equal tasks run once; `describe` labels the progress bar.
        """
        paths = [self.path(task) for task in tasks]
        missing = {path: task for path, task in zip(paths, tasks, strict=True) if not _is_finished(path, task)}
        began = perf_counter()
        with Progress(describe, len(tasks), "cells", done=len(tasks) - len(missing)) as shown:
            for path, value in self._computed(missing):
                write_json(path, {"record": _provenance() | {"key": missing[path].key()}, "value": value})
                shown.advance()
        if missing:
            LOG.info("%s: %d cells, %.0f s", describe, len(missing), perf_counter() - began)
        results = [read_json(path) for path in paths]
        self.log.extend(
            _brief(path, cell["record"], path not in missing) for path, cell in zip(paths, results, strict=True)
        )
        self.contended.extend(
            path.name for path, cell in zip(paths, results, strict=True) if cell["value"].get("contended")
        )
        return [cell["value"] for cell in results]

    def path(self, task: Task) -> Path:
        """Return the path of the task's cached result."""
        digest = hashlib.sha256(json.dumps(task.key(), sort_keys=True).encode()).hexdigest()
        return self.folder / f"{task.function.__name__}-{digest[:24]}.json"

    def _computed(self, missing: dict[Path, Task]) -> Iterator[tuple[Path, dict[str, Any]]]:
        paths = [path for path, task in missing.items() if not task.alone]
        tasks = [missing[path] for path in paths]
        costs = [task.cost for task in tasks]
        yield from ((paths[number], value) for number, value in spread(Task.__call__, tasks, costs, self.workers))
        for path, task in missing.items():
            if task.alone:
                yield path, self._undisturbed(task)

    def _undisturbed(self, task: Task) -> dict[str, Any]:
        """Run a task in a new process, again if other processes disturbed it and there is patience."""
        for _ in range(ATTEMPTS if self.patience.left > 0 else 1):
            self.patience.wait()
            stopped = {"over_s": task.limit}
            result: dict[str, Any] = alone(task, task.limit) or stopped
            if not result.get("contended"):
                break
        return result


def _is_finished(path: Path, task: Task) -> bool:
    """Return whether a cell can be read, was not contended and was not stopped at a lower limit."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))["value"]
        stopped = "over_s" in value and (task.limit is None or task.limit > value["over_s"])
        return not stopped and not value.get("contended")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def _brief(path: Path, record: dict[str, Any], kept: bool) -> dict[str, Any]:
    """Return the provenance of a cell, without versions and machine, which equal those of the experiment.

    A long argument, such as a list of documents, is replaced by its checksum: the cell's own file has all of it.
    """
    key = record["key"]
    return {
        "cell": path.name,
        "function": key["function"],
        "arguments": {name: _shortened(value) for name, value in key["arguments"].items()},
        "code": key["code"],
        "command": record["command"],
        "commit": record["commit"],
        "kept": kept,
    }


def _shortened(text: str) -> str:
    if len(text) <= SHOWN:
        return text
    return f"{len(text):,} characters, SHA-256 {hashlib.sha256(text.encode()).hexdigest()}"
