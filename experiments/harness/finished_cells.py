"""Cells of studies and benchmarks: spread over worker processes or measured alone, and kept once they are finished."""

from __future__ import annotations

import hashlib
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, ClassVar, TypeVar

from experiments.harness.machine_load import Patience
from experiments.harness.used_code import checksum_of, modules_of
from spotsigs.reports.output_files import read_json, write_json
from spotsigs.runs.provenance import provenance
from spotsigs.workers.engines import Processes, run_alone
from spotsigs.workers.progress import Progress

START_SECONDS = 4.0
"""Core seconds that the start of two worker processes takes: fewer are not worth a pool."""
ATTEMPTS = 3
"""Runs of a cell whose times other processes disturb."""
SHOWN = 1_000
"""Characters of an attribute that a table's provenance quotes."""

LOG = logging.getLogger(__name__)

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")

_provenance = cache(provenance)


class CellTask(ABC):
    """Base of the frozen dataclasses that compute cells; their attributes identify what they compute.

    Attributes
    ----------
    alone : bool
        True if the cells contain times. They are then measured while no other task runs, valid for this machine only,
        and finished only if no other process disturbed them (``contended`` is false).
    limit : float or None
        Wall seconds after which cells that run alone are stopped; the result is then ``{"over_s": limit}``. A result
        within the limit serves any limit, so that a dataclass which has it as a field leaves it out of its ``repr``.
    cost : float
        Estimated seconds, by which tasks are spread.
    """

    alone: ClassVar[bool] = False
    limit: float | None = None

    @property
    def cost(self) -> float:
        """Estimated seconds."""
        return START_SECONDS

    @abstractmethod
    def __call__(self) -> dict[str, Any]:
        """Return the cells as plain values: numbers, texts, lists, dicts; of a failure as ``unfinished``."""

    def identity(self) -> dict[str, str]:
        """Return all that identifies the cells besides the code, by name."""
        return {each.name: repr(getattr(self, each.name)) for each in fields(self) if each.repr}  # type: ignore[arg-type]

    def modules(self) -> set[str]:
        """Return the modules whose code computes the cells."""
        values = (getattr(self, each.name) for each in fields(self))  # type: ignore[arg-type]
        return {type(self).__module__, *modules_of(*values)}

    def key(self) -> dict[str, Any]:
        """Return all that the cells depend on: attributes, source code, versions of libraries, of times the machine."""
        about = _provenance()
        parts = {
            "cell": f"{type(self).__module__}.{type(self).__qualname__}",
            "arguments": self.identity(),
            "code": checksum_of(*sorted(self.modules())),
            "versions": about["versions"] | {"python": about["python"]},
        }
        return parts | ({"machine": about["machine"]} if self.alone else {})


@dataclass(frozen=True, kw_only=True)
class FinishedCells:
    """Folder of finished cells, so that an interrupted study or benchmark resumes."""

    folder: Path  # folder with one file for each task, named by its key
    workers: int = 8  # worker processes for tasks that may run concurrently
    # How long cells that run alone wait for a quiet machine; they then run up to `ATTEMPTS` times.
    patience: Patience = field(default_factory=lambda: Patience(0.0), compare=False, repr=False)
    # For every requested task: file name, key, command, commit, and whether it is from a previous run (``kept``).
    log: list[dict[str, Any]] = field(default_factory=list, compare=False, repr=False)
    # File names of the requested cells whose times other processes disturbed.
    contended: list[str] = field(default_factory=list, compare=False, repr=False)

    def of(self, tasks: Sequence[CellTask], describe: str) -> list[dict[str, Any]]:
        """Return the cells of every task, in order; only tasks that are not finished run.

        Concurrent tasks run first, on the workers. Those with ``alone`` follow, one at a time, each in a new process,
        so that no other task uses the memory measured there. Equal tasks run once; `describe` labels the progress bar.
        """
        paths = [self.path(task) for task in tasks]
        missing = {path: task for path, task in zip(paths, tasks, strict=True) if not _is_finished(path, task)}
        began = perf_counter()
        with Progress(describe, len(tasks), "tasks", done=len(tasks) - len(missing)) as shown:
            for path, value in self._computed(missing):
                write_json(path, {"record": _provenance() | {"key": missing[path].key()}, "value": value})
                shown.advance()
        if missing:
            LOG.info("%s: %d tasks, %.0f s", describe, len(missing), perf_counter() - began)
        results = [read_json(path) for path in paths]
        self.log.extend(
            _brief(path, result["record"], path not in missing) for path, result in zip(paths, results, strict=True)
        )
        self.contended.extend(
            path.name for path, result in zip(paths, results, strict=True) if result["value"].get("contended")
        )
        return [result["value"] for result in results]

    def path(self, task: CellTask) -> Path:
        """Return the path of the finished cells of a task."""
        digest = hashlib.sha256(json.dumps(task.key(), sort_keys=True).encode()).hexdigest()
        return self.folder / f"{type(task).__name__}-{digest[:24]}.json"

    def _computed(self, missing: dict[Path, CellTask]) -> Iterator[tuple[Path, dict[str, Any]]]:
        paths = [path for path, task in missing.items() if not task.alone]
        tasks = [missing[path] for path in paths]
        costs = [task.cost for task in tasks]
        yield from ((paths[number], value) for number, value in spread(called, tasks, costs, self.workers))
        for path, task in missing.items():
            if task.alone:
                yield path, self._undisturbed(task)

    def _undisturbed(self, task: CellTask) -> dict[str, Any]:
        """Run a task in a new process, again if other processes disturbed it and there is patience."""
        for _ in range(ATTEMPTS if self.patience.left > 0 else 1):
            self.patience.wait()
            stopped = {"over_s": task.limit}
            result: dict[str, Any] = alone(task, task.limit) or stopped
            if not result.get("contended"):
                break
        return result


def called(task: Callable[[], ResultT]) -> ResultT:
    """Return the result of a task."""
    return task()


def spread(
    function: Callable[[TaskT], ResultT], tasks: Sequence[TaskT], costs: Sequence[float], workers: int
) -> Iterator[tuple[int, ResultT]]:
    """Yield the number and the result of each task as it ends, the largest first, on worker processes.

    Without a pool, one after the other in this process, if the seconds that it saves are fewer than its start takes.
    """
    order = sorted(range(len(tasks)), key=lambda number: -costs[number])
    if not is_worth_a_pool(costs, workers):
        yield from ((number, function(tasks[number])) for number in order)
        return
    ended = Processes(workers=workers).as_ended(function, [tasks[number] for number in order])
    yield from ((order[number], result) for number, result in ended)


def is_worth_a_pool(costs: Sequence[float], workers: int) -> bool:
    """Return whether worker processes save more of these estimated seconds than their start takes."""
    processes = Processes(workers=workers).processes
    in_parallel = max([*costs, sum(costs) / max(processes, 1)], default=0.0)
    return processes > 1 and sum(costs) - in_parallel > START_SECONDS / 2


@dataclass(frozen=True, kw_only=True)
class PatientProcesses(Processes):
    """Worker processes that are started only if they save more time than their start takes.

    The first two tasks run in the calling process: one loads the kernels, and the other shows what a task takes. If
    the others are too short for a pool, but long enough to start one for later tasks meanwhile, it starts.
    """

    later: str = ""  # module of tasks that run on the workers later; none if it is empty

    def map(self, function: Callable[[TaskT], ResultT], tasks: Iterable[TaskT]) -> Generator[ResultT, None, None]:
        """Yield ``function(task)`` for every task, in task order."""
        waiting, seconds = list(tasks), 0.0
        for task in waiting[:2]:
            began = process_time()
            result = function(task)
            seconds = process_time() - began
            yield result
        rest = waiting[2:]
        if is_worth_a_pool([seconds] * len(rest), self.workers):
            yield from super().map(function, rest)
            return
        if self.later and seconds * len(rest) > START_SECONDS / 4:
            self.start(self.later)
        yield from map(function, rest)


def alone(task: Callable[[], ResultT], limit: float | None = None) -> ResultT | None:
    """Return the result of a task in a new process; None if it was stopped after a limit of seconds."""
    try:
        return run_alone(task, limit)
    except TimeoutError:
        return None


def _is_finished(path: Path, task: CellTask) -> bool:
    """Return whether cells can be read, did not fail, were not contended and were not stopped at a lower limit."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))["value"]
        stopped = "over_s" in value and (task.limit is None or task.limit > value["over_s"])
        return not (stopped or value.get("contended") or value.get("unfinished"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def _brief(path: Path, record: dict[str, Any], kept: bool) -> dict[str, Any]:
    """Return the provenance of cells, without versions and machine, which the experiment has as well.

    A long attribute, such as a list of documents, is replaced by its checksum: the file of the cells has all of it.
    """
    key = record["key"]
    return {
        "cell": path.name,
        "kind": key["cell"],
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
