"""Cache of the results of an experiment's parts (cells), by content, so that an interrupted run resumes."""

from __future__ import annotations

import ast
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from tqdm import tqdm

from spotsigs.engines import Processes, end_with, end_workers
from spotsigs.output_files import write_json
from spotsigs.runs.provenance import provenance

ROOT = Path(__file__).parents[2]
PACKAGES = ("spotsigs", "baselines", "data", "experiments")
"""Packages of the checkout whose source affects results."""
SHOWN = 1_000
"""Characters of an argument that a table's provenance quotes."""
DATA_SUFFIXES = (".txt", ".toml", ".json", ".csv", ".html")  # suffixes of data files that modules read


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
    """

    function: Callable[..., dict[str, Any]]
    arguments: dict[str, Any]
    alone: bool = False
    limit: float | None = None

    def key(self) -> dict[str, Any]:
        """Return all that the result depends on: the call, its source code, the versions of libraries."""
        facts = _provenance()
        parts: dict[str, Any] = {
            "function": f"{self.function.__module__}.{self.function.__qualname__}",
            "arguments": {name: repr(value) for name, value in sorted(self.arguments.items())},
            "code": code_version(self.function, *self.arguments.values()),
            "versions": facts["versions"] | {"python": facts["python"]},
        }
        return parts | ({"machine": facts["machine"]} if self.alone else {})

    def __call__(self) -> dict[str, Any]:
        """Call the function."""
        return self.function(**self.arguments)


@dataclass(frozen=True, kw_only=True)
class Finished:
    """Result of a task with its provenance.

    Attributes
    ----------
    value : dict
        Return value of the function.
    record : dict
        Key, command, commit, versions and machine.
    """

    value: dict[str, Any]
    record: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Folder of cached results.

    Attributes
    ----------
    folder : Path
        Folder with one file for each cell, named by its key.
    workers : int
        Worker processes for tasks that may run concurrently.
    log : list of dict
        For every requested cell: file name, key, command, commit, and whether it is from a previous run (``kept``).
    """

    folder: Path
    workers: int = 8
    log: list[dict[str, Any]] = field(default_factory=list, compare=False, repr=False)

    def run(self, tasks: Sequence[Task], describe: str) -> list[dict[str, Any]]:
        """Return the value of every task, in order; only those without a cached result run.

        Concurrent tasks run first, on the workers. Tasks with ``alone`` follow, one at a time, each in a new process,
        so that the memory measured there is that of the task.

        Parameters
        ----------
        tasks : sequence of Task
            Tasks; equal ones run once.
        describe : str
            Label of the progress bar.

        Returns
        -------
        list of dict
        """
        paths = [self.path(task) for task in tasks]
        missing = {path: task for path, task in zip(paths, tasks, strict=True) if self._load(path, task) is None}
        with tqdm(total=len(tasks), initial=len(tasks) - len(missing), desc=describe, unit="cell", disable=None) as bar:
            for path, value in self._computed(missing):
                self._keep(path, missing[path], value)
                bar.update()
        finished = [self._loaded(path) for path in paths]
        self.log.extend(
            _brief(cell.record, kept=path not in missing) for path, cell in zip(paths, finished, strict=True)
        )
        return [cell.value for cell in finished]

    def path(self, task: Task) -> Path:
        """Return the path of the task's cached result."""
        digest = hashlib.sha256(json.dumps(task.key(), sort_keys=True).encode()).hexdigest()
        return self.folder / f"{task.function.__name__}-{digest[:24]}.json"

    def _computed(self, missing: dict[Path, Task]) -> Iterator[tuple[Path, dict[str, Any]]]:
        concurrent = {path: task for path, task in missing.items() if not task.alone}
        values = Processes(workers=self.workers).map(Task.__call__, concurrent.values())
        yield from zip(concurrent, values, strict=True)
        for path, task in missing.items():
            if task.alone:
                yield path, _fresh_process(task)

    def _keep(self, path: Path, task: Task, value: dict[str, Any]) -> None:
        write_json(path, {"record": _provenance() | {"key": task.key()}, "value": value})

    def _load(self, path: Path, task: Task) -> Finished | None:
        """Return a finished cell, or None if it is contended, ended at a lower limit or cannot be read."""
        try:
            cell = self._loaded(path)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        stopped = "over_s" in cell.value and (task.limit is None or task.limit > cell.value["over_s"])
        return None if stopped or cell.value.get("contended") else cell

    @staticmethod
    def _loaded(path: Path) -> Finished:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Finished(value=content["value"], record=content["record"] | {"cell": path.name})


def _brief(record: dict[str, Any], *, kept: bool) -> dict[str, Any]:
    """Return the provenance of a cell, without versions and machine, which equal those of the experiment.

    A long argument, such as a list of documents, is replaced by its checksum: the cell's own file has all of it.
    """
    key = record["key"]
    short = {name: value if len(value) <= SHOWN else _checksum(value) for name, value in key["arguments"].items()}
    return {
        "cell": record["cell"],
        "function": key["function"],
        "arguments": short,
        "code": key["code"],
        "command": record["command"],
        "commit": record["commit"],
        "kept": kept,
    }


def _checksum(text: str) -> str:
    return f"{len(text):,} characters, SHA-256 {hashlib.sha256(text.encode()).hexdigest()}"


def _fresh_process(task: Task) -> dict[str, Any]:
    from loky import ProcessPoolExecutor

    end_workers()  # idle workers of a sweep use memory
    executor = ProcessPoolExecutor(max_workers=1, initializer=end_with, initargs=(os.getpid(),))
    try:
        result: dict[str, Any] = executor.submit(task).result(task.limit)
        return result
    except TimeoutError:
        return {"over_s": task.limit}
    finally:
        executor.shutdown(wait=True, kill_workers=True)


@lru_cache(maxsize=1)
def _provenance() -> dict[str, Any]:
    return provenance()


def code_version(*objects: Any) -> str:
    """Return a hash of the project's source code that objects depend on.

    Parameters
    ----------
    *objects : object
        Functions, and dataclass instances with their fields. Other objects depend on no code.

    Returns
    -------
    str
        SHA-256 of the modules that define them, all project modules that these import, and their data files.
    """
    modules: set[str] = set()
    for item in objects:
        modules |= _modules_of(item)
    files = sorted({path for module in modules for path in _closure(module)})
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _modules_of(item: Any) -> set[str]:
    if isinstance(item, (list, tuple)):
        return set().union(*map(_modules_of, item))
    if is_dataclass(item) and not isinstance(item, type):
        return {type(item).__module__}.union(*(_modules_of(getattr(item, part.name)) for part in fields(item)))
    return {item.__module__} if callable(item) else set()


@cache
def _closure(module: str) -> frozenset[Path]:
    """Return the files of a project module and of all modules it imports, at the top or inside a function."""
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        path = _file_of(waiting.pop())
        if path is None or path in found:
            continue
        found.update({path}, _data_files(path))
        waiting.extend(_imports(path))
    return frozenset(found)


def _data_files(module: Path) -> Iterator[Path]:
    """Yield the data files of a module: those in its folder whose file or folder the module names."""
    source = module.read_text(encoding="utf-8")
    for named in module.parent.iterdir():
        if f'"{named.name}' in source:
            yield from (path for path in [named, *named.rglob("*")] if path.suffix in DATA_SUFFIXES and path.is_file())


def _imports(path: Path) -> Iterator[str]:
    waiting: list[ast.AST] = [ast.parse(path.read_bytes())]
    while waiting:
        node = waiting.pop()
        only_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        waiting.extend(node.orelse if only_types else ast.iter_child_nodes(node))  # type: ignore[attr-defined]
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _file_of(module: str) -> Path | None:
    if module.split(".")[0] not in PACKAGES:
        return None
    path = ROOT.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)
