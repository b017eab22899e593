"""Resumable tasks: each names its inputs and writes a result of its own, so that it can run again on any worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from spotsigs.engines import Engine
from spotsigs.errors import InputError
from spotsigs.progress import progress
from spotsigs.storage.locations import as_path
from spotsigs.storage.store import Reader, Writer, opened, writing


@dataclass(frozen=True, kw_only=True)
class Job:
    """Tasks with common settings.

    Attributes
    ----------
    folder : str
        Path or URL of the results, which all workers can read and write.
    """

    folder: str

    def path(self, *names: object) -> Path:
        """Return the path of a result."""
        return as_path(self.folder).joinpath(*map(str, names))

    def result(self, kind: str, *names: object) -> Reader:
        """Open a result."""
        return opened(self.path(kind, *names), kind)

    def checkpoint(self, kind: str, *names: object, work: Callable[[Writer], None]) -> dict[str, Any]:
        """Write a result unless it is complete; return its facts."""
        try:
            return self.result(kind, *names).facts
        except InputError:
            with writing(self.path(kind, *names), kind) as out:
                work(out)
            return out.facts


Task = TypeVar("Task")
Result = TypeVar("Result")


def resumable(kind: str) -> Callable[[Callable[[Any, Writer], None]], Callable[[Any], dict[str, Any]]]:
    """Let a function that writes the result of a task run only if the result is not complete, and return its facts.

    A task has a ``job``, and a ``number`` among the tasks of its kind.
    """

    def decorate(work: Callable[[Any, Writer], None]) -> Callable[[Any], dict[str, Any]]:
        @wraps(work)
        def run_or_skip(task: Any) -> dict[str, Any]:
            job: Job = task.job
            return job.checkpoint(kind, task.number, work=lambda out: work(task, out))

        return run_or_skip

    return decorate


def run_tasks(engine: Engine, function: Callable[[Task], Result], tasks: Sequence[Task], name: str) -> Iterator[Result]:
    """Run the tasks of a round with a progress bar."""
    return progress(engine.map(function, tasks), name, len(tasks), "tasks")
