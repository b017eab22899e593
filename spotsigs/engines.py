"""Where tasks run: one interface, one code path, the same result."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from spotsigs.errors import require
from spotsigs.kernels import all_cores

Task = TypeVar("Task")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runs tasks that carry only what is needed to find their input."""

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield ``function(task)`` for every task, in task order."""
        ...


@dataclass(frozen=True, kw_only=True)
class Serial:
    """Everything in this process, one task after the other: for debugging and small collections."""

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield ``function(task)`` for every task, in task order."""
        return map(function, tasks)


@dataclass(frozen=True, kw_only=True)
class Processes:
    """Worker processes of this machine, in a reusable loky pool.

    Attributes
    ----------
    workers : int
        Processes; for extraction no more than there are cores.
    """

    workers: int = 8

    def __post_init__(self) -> None:
        require(self.workers >= 1, f"workers must be at least 1, got {self.workers}")

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield ``function(task)`` for every task, in task order.

        The first task runs in this process, so that compiled kernels lie in the cache before workers look for them,
        and a single task starts no pool. Never more than two tasks a worker are under way.
        """
        tasks = iter(tasks)
        for task in tasks:
            yield function(task)
            break
        waiting = list(_take(tasks, 1))
        workers = min(self.workers, all_cores())
        if not waiting or workers == 1:
            yield from map(function, [*waiting, *tasks])
            return
        yield from _in_order(_executor(workers), function, [*waiting], tasks, 2 * workers)


def _take(tasks: Iterator[Task], n: int) -> Iterator[Task]:
    for _, task in zip(range(n), tasks, strict=False):
        yield task


def _executor(workers: int) -> Any:
    from joblib.externals.loky import get_reusable_executor

    one_thread = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return get_reusable_executor(max_workers=workers, env=one_thread, timeout=60)


def _in_order(
    executor: Any, function: Callable[[Task], Result], first: list[Task], rest: Iterator[Task], window: int
) -> Iterator[Result]:
    futures = deque(executor.submit(function, task) for task in [*first, *_take(rest, window - len(first))])
    try:
        while futures:
            yield futures.popleft().result()
            futures.extend(executor.submit(function, task) for task in _take(rest, 1))
    finally:
        for future in futures:
            future.cancel()
