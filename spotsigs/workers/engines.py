"""Engines that run tasks: one interface, one code path, the same result."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from itertools import chain, islice
from typing import Any, TypeVar

from spotsigs.arrays.kernel_cache import step_marker
from spotsigs.arrays.parallel import all_cores
from spotsigs.errors import InputError, as_count, did_you_mean, either, option, require, shown

LOOPBACK = "127.0.0.1"
"""Address of clusters on this machine: they unpickle what they receive, so that no other machine may send."""

WINDOW = 16
"""Tasks a worker that are submitted at a time: results come in task order, and a slow task must not stop the others."""

ATTEMPTS = 3
"""Times that a task is submitted again after its worker died."""

_LOOK_SECONDS = 1.0
"""Seconds between two checks of a worker that its parent is running."""

_ONE_THREAD = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

DASK_HERE: dict[str, Any] = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.nanny.pre-spawn-environ": _ONE_THREAD,
}
"""Settings of a Dask cluster on this machine.

What only a dashboard would show, 50 to 100 times a second, is not measured: that took three quarters of the processor
seconds of a cluster without tasks. Workers allocate memory as any process does: Dask lets them return each free block
of 64 KB to the system at once, which provides it again.
"""

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An engine runs tasks, which name their input."""

    @property
    def processes(self) -> int:
        """Concurrent worker processes; 0 if all tasks run in the calling process."""
        return 0

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Generator[Result, None, None]:
        """Yield ``function(task)`` for every task, in task order; if closed early, cancel the tasks that wait."""
        yield from map(function, tasks)


class Serial(Engine):
    """All tasks in this process, one after the other: for debugging and small collections."""


@dataclass(frozen=True, kw_only=True)
class WorkerEngine(Engine):
    """An engine with worker processes: the base of those below."""

    workers: int = 8  # most worker processes

    def __post_init__(self) -> None:
        as_count("workers", self.workers)


@dataclass(frozen=True, kw_only=True)
class Processes(WorkerEngine):
    """Worker processes of this machine, no more than there are cores, in a reusable loky pool."""

    @property
    def processes(self) -> int:
        """Worker processes; a single one would only add the cost of a process."""
        if multiprocessing.current_process().daemon:  # a worker of a pool, which may start none
            return 0
        workers = min(self.workers, all_cores())
        return workers if workers > 1 else 0

    def start(self, module: str) -> None:
        """Start the workers, which import a module of the tasks to come while this process does something else."""
        for _ in range(self.processes):
            _executor(self.processes).submit(_import, module)

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Generator[Result, None, None]:
        """Yield ``function(task)`` for every task, in task order.

        A single task starts no pool. If the kernels of the function are in no cache, the first task runs alone, so
        that the other workers find them there.
        """
        workers = self.processes
        if not workers:
            yield from map(function, tasks)
            return
        tasks = iter(tasks)
        waiting = list(islice(tasks, 2))
        if not waiting or (len(waiting) < 2 and not _POOL):
            yield from map(function, waiting)
            return

        def on_workers(some: Iterator[Task]) -> Generator[Result, None, None]:
            def submit(task: Task) -> Any:
                return _executor(workers).submit(function, task)

            return in_task_order(submit, some, WINDOW * workers, interrupted=_kill_workers)

        if not _is_compiled(name := _name_of(function)):
            yield from on_workers(iter(waiting[:1]))
            _mark_compiled(name)
            del waiting[:1]
        yield from on_workers(chain(waiting, tasks))

    def as_ended(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Generator[tuple[int, Result], None, None]:
        """Yield the number and the result of each task as it ends; tasks begin in their order.

        Tasks that were running or waiting when a worker died run again.
        """
        from concurrent.futures import as_completed
        from concurrent.futures.process import BrokenProcessPool

        workers, broken = self.processes, 0
        if not workers:
            yield from enumerate(map(function, tasks))
            return
        waiting = dict(enumerate(tasks))
        while waiting:
            futures = {_executor(workers).submit(function, task): number for number, task in waiting.items()}
            try:
                for future in as_completed(futures):
                    result = future.result()
                    del waiting[futures[future]]
                    broken = 0
                    yield futures[future], result
            except BrokenProcessPool as error:
                broken += 1
                if broken > ATTEMPTS:
                    message = f"a worker process died {broken} times: is there enough memory? ({_first_line(error)})"
                    raise InputError(message) from error
            except KeyboardInterrupt:  # a pool would wait for the tasks of its workers
                _kill_workers()
                raise
            finally:
                for future in futures:
                    future.cancel()


_COMPILED: set[str] = set()
"""Functions that this process has run on workers, whose kernels are compiled."""

_PACKAGE = f"{__name__.partition('.')[0]}."
"""Beginning of the names of this package's functions, whose compiled kernels have markers, see `step_marker`."""


def _name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function, without what wraps it."""
    called: Any = function
    while inner := getattr(called, "func", None):  # of a partial function, or a measured one
        called = inner
    return f"{called.__module__}.{called.__qualname__}"


def _is_compiled(name: str) -> bool:
    """Return whether this process has run a function on workers, or any process of this machine one of this package."""
    return name in _COMPILED or (name.startswith(_PACKAGE) and step_marker(name).exists())


def _mark_compiled(name: str) -> None:
    _COMPILED.add(name)
    if name.startswith(_PACKAGE):
        with suppress(OSError):
            step_marker(name).touch()


def _executor(workers: int) -> Any:
    from loky import get_reusable_executor

    # a worker that was idle for so long ends and is replaced on demand, which a user need not know
    warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
    pool = get_reusable_executor(
        max_workers=workers, env=_ONE_THREAD, timeout=300, initializer=begin_work, initargs=(os.getpid(), os.getcwd())
    )
    _POOL[:] = [pool]
    return pool


def _import(module: str) -> None:
    """Import a module without returning it, because a worker cannot send a module back."""
    import_module(module)


_POOL: list[Any] = []
"""The pool of `Processes`, once it has been used."""


def end_workers() -> None:
    """Shut down the pool of `Processes`, if there is one, when its tasks have ended; a later task starts another."""
    while _POOL:
        _POOL.pop().shutdown()


def _kill_workers() -> None:
    while _POOL:
        _POOL.pop().shutdown(kill_workers=True)


def run_alone(function: Callable[[], Result], limit: float | None = None) -> Result:
    """Return the result of a function in a new process, which is killed then.

    Raises
    ------
    TimeoutError
        After a limit of seconds.
    """
    from loky import ProcessPoolExecutor

    end_workers()  # idle ones use memory
    executor = ProcessPoolExecutor(max_workers=1, initializer=begin_work, initargs=(os.getpid(), os.getcwd()))
    try:
        result: Result = executor.submit(function).result(limit)
        return result
    finally:
        executor.shutdown(kill_workers=True)


def begin_work(parent: int, folder: str) -> None:
    """Prepare this process, a worker of a parent, which ends within two seconds of it: a thread checks every second.

    Paths of tasks are relative to the working folder of the parent. A pool with other arguments is replaced, so a
    parent that has changed its folder gets other workers. A terminal interrupts all processes of a command. The parent
    decides what ends then, so workers ignore it.
    """
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    """End this worker when its parent has ended."""
    import psutil

    try:  # on Windows the id of a parent stays; elsewhere another process adopts its children
        is_running = psutil.Process(parent).is_running if sys.platform == "win32" else lambda: os.getppid() == parent
        while is_running():
            time.sleep(_LOOK_SECONDS)
    finally:
        os._exit(1)


@dataclass(frozen=True, kw_only=True)
class Dask(WorkerEngine):
    """Workers of a Dask cluster: a running one by its address, or one on this machine.

    Tasks name files, which all workers must be able to read. A task whose worker dies runs again on another one.

    Attributes
    ----------
    workers : int
        Processes of a cluster on this machine; `WINDOW` times as many tasks are submitted at a time.
    address : str or None
        Scheduler of a running cluster, for example ``tcp://head:8786``; for Slurm, the one that dask-jobqueue starts.
        None starts a cluster on this machine.
    """

    address: str | None = None

    @property
    def processes(self) -> int:
        """Worker processes; on this machine no more than there are cores."""
        return self.workers if self.address is not None else min(self.workers, all_cores())

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Generator[Result, None, None]:
        """Yield ``function(task)`` for every task, in task order."""
        submit = self._connect()
        results: Any = in_task_order(partial(submit, function), iter(tasks), WINDOW * self.workers)
        with closing(results):
            while True:
                try:
                    result, error = next(results)
                except StopIteration:
                    return
                except InputError:
                    raise
                except Exception as lost:
                    message = f"Dask could not run a task ({_first_line(lost)}); give the same command again"
                    raise InputError(message) from lost
                if error is not None:
                    raise error
                yield result

    @cache  # noqa: B019 - one client for each address until the process ends
    def _connect(self) -> Callable[[Any, Any], Any]:
        """Return a function that submits a call of `_caught` and returns its future."""
        scratch = tempfile.mkdtemp(prefix="spotsigs-dask-")
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)  # after the workers have ended: Dask leaves it
        try:
            distributed = import_module("distributed")
        except ImportError:
            message = f"{option('engine', 'dask')} needs distributed: pip install 'spotsigs[dask]'"
            raise InputError(message) from None
        settings = import_module("dask.config")
        settings.set(temporary_directory=scratch)
        cluster: Any = self.address
        if cluster is None:
            settings.set(DASK_HERE)
            cluster = distributed.LocalCluster(
                host=LOOPBACK,
                n_workers=self.processes,
                threads_per_worker=1,
                dashboard_address=None,
                env=_ONE_THREAD,
            )
        try:
            client = distributed.Client(cluster, timeout=20)
        except (OSError, ValueError) as error:
            raise InputError(f"no Dask scheduler answers at {self.address}: {error}") from error
        return partial(client.submit, _caught, pure=False)


def _caught(function: Callable[[Task], Result], task: Task) -> tuple[Result | None, Exception | None]:
    """Return the result of a task or its error, which engines would repeat, wrap or name with their own traceback."""
    try:
        return function(task), None
    except Exception as error:  # noqa: BLE001
        return None, error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def in_task_order(
    submit: Callable[[Task], Any],
    tasks: Iterator[Task],
    window: int,
    interrupted: Callable[[], object] | None = None,
) -> Generator[Result, None, None]:
    """Yield results in task order; tasks that were submitted when a worker died are submitted again.

    At most ``window`` tasks are submitted at a time; ``interrupted`` is called when Ctrl-C ends the iteration.
    """
    from concurrent.futures.process import BrokenProcessPool

    waiting: deque[tuple[Task, Any]] = deque()
    broken = 0
    try:
        waiting.extend((task, _submitted(submit, task)) for task in islice(tasks, window))
        while waiting:
            try:
                result = waiting[0][1].result()
            except BrokenProcessPool as error:
                broken += 1
                if broken > ATTEMPTS:
                    message = f"a worker process died {broken} times: is there enough memory? ({_first_line(error)})"
                    raise InputError(message) from error
                waiting = deque((task, _submit_again(submit, task, future)) for task, future in waiting)
                continue
            broken = 0
            waiting.popleft()
            yield result
            waiting.extend((task, _submitted(submit, task)) for task in islice(tasks, 1))
    except KeyboardInterrupt:  # a pool would wait for the tasks of its workers
        if interrupted is not None:
            interrupted()
        raise
    finally:
        for _, future in waiting:
            future.cancel()


def _submit_again(submit: Callable[[Task], Any], task: Task, future: Any) -> Any:
    """Return the future of a task that a dying worker may have interrupted: the same one if it has a result."""
    done = future.done() and not future.cancelled() and future.exception() is None
    return future if done else _submitted(submit, task)


def _submitted(submit: Callable[[Task], Any], task: Task) -> Any:
    """Return the future of a task; a worker that died during the submission is reported in task order."""
    from concurrent.futures import Future
    from concurrent.futures.process import BrokenProcessPool

    try:
        return submit(task)
    except BrokenProcessPool as error:
        future: Future[Any] = Future()
        future.set_exception(error)
        return future


ENGINES: dict[str, type[Engine]] = {
    "processes": Processes,
    "serial": Serial,
    "dask": Dask,
}
"""Engines by name."""


def engine_of(name: str, *, workers: int, address: str | None = None) -> Engine:
    """Return an engine by its name.

    Raises
    ------
    InputError
        If there is no such engine, or an address is given for one that has none.
    """
    if not isinstance(name, str) or name not in ENGINES:
        close = did_you_mean(name, ENGINES)
        raise InputError(f"{option('engine')} must be {either(ENGINES)}, got {shown(name)}{close}")
    engine = ENGINES[name]
    known = address is None or isinstance(address, str)
    require(known, f"{option('address')} must be the address of a cluster, got {shown(address)}")
    if issubclass(engine, Dask):
        return engine(workers=workers, address=address)
    require(address is None, f"{option('address')} is the address of a Dask cluster; set {option('engine')}")
    return engine(workers=workers) if issubclass(engine, WorkerEngine) else engine()
