"""Stages of tasks: the one way to run work on workers, with progress, a log, and results that a stopped run resumes.

A stage is a function and its tasks, which any worker can run in any order. ``run_tasks(engine, function, tasks, name)``
yields the results in task order. A task names its input, as paths of files, and returns a few numbers; tasks of a run
in memory return arrays.

A `resumable` function writes what it computes into a store of its own: complete with checksums, or absent. It is
skipped if the store is there. A `Job` is the folder of such results::

    class Batch(NamedTuple):
        job: Job
        number: int

    @resumable("counted")
    def count(batch: Batch, out: Writer) -> None:
        out.put("totals", ...)
        out.facts = {"rows": ...}

    job.begin({"input": fingerprint(store)})
    facts = list(run_tasks(engine, count, [Batch(job, k) for k in range(n)], "counting"))
    totals = job.result("counted", 0).whole("totals", np.int64)

Inside `task_log`, each task is recorded with its seconds and bytes, and so is the work of the calling process before,
between and after the stages. A stage waits for the step before it. When a step ends, a record of the log states its
name, documents and seconds.
"""

from __future__ import annotations

import logging
import mmap
import os
import pickle
import socket
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from itertools import accumulate
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import psutil

from spotsigs.arrays.arrow import arrow_numbers, arrow_text
from spotsigs.errors import InputError, counted
from spotsigs.storage.atomic import replacing, staging_folder
from spotsigs.storage.locations import as_path, exists
from spotsigs.storage.store import Reader, Writer, claim, opened, remove_tree, writing
from spotsigs.workers.engines import Engine, Processes
from spotsigs.workers.progress import progress

log = logging.getLogger(__name__)
if log.level == logging.NOTSET:
    log.setLevel(logging.WARNING)  # a program that wants a record for each stage sets INFO

JOB = "job.json"
"""File of a job's folder with the identity of its input."""

TASKS = 16
"""Least number of tasks of a stage on a large collection, so that workers have equal work."""

LEAST_ENTRIES = 1 << 18
"""Entries of a task below which another one would cost more than it saves."""


def task_size(total: int, least: int, most: int | None = None) -> int:
    """Return the work of a task of a stage: one of `TASKS` equal parts, at least ``least``, but at most ``most``."""
    size = max(-(-total // TASKS), least)
    return size if most is None else max(1, min(most, size))


def in_the_making(store: Path) -> Path:
    """Return the path of the results of the tasks that write a store, next to it."""
    return store.with_name(f"{store.name}-in-the-making")


@dataclass(frozen=True, kw_only=True)
class Job:
    """Tasks with common settings."""

    folder: str  # path or URL of the results, which all workers can read and write

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Keep the results of a stopped run with the same facts, its input and settings; delete any other results."""
        folder = self.path()
        if not exists(folder / JOB) or claim(folder, JOB, facts):
            remove_tree(folder)
            claim(folder, JOB, facts)

    def path(self, *names: object) -> Path:
        """Return the path of a result."""
        return as_path(self.folder).joinpath(*map(str, names))

    def result(self, kind: str, *names: object) -> Reader:
        """Open a result."""
        return opened(self.path(kind, *names), kind)

    def checkpoint(self, kind: str, *names: object, work: Callable[[Writer], None]) -> dict[str, Any]:
        """Write a result unless it is complete; return its facts."""
        try:
            facts = self.result(kind, *names).facts
        except InputError:
            with writing(self.path(kind, *names), kind) as out:
                work(out)
            return out.facts
        mark_resumed()
        return facts


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


def run_tasks(
    engine: Engine,
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    name: str,
    unit: str = "tasks",
    *,
    arrays: bool = False,
    rows: int | Callable[[Result], int] = 0,
) -> Generator[Result, None, None]:
    """Run the tasks of a stage, and yield their results in task order; if closed early, cancel the tasks that wait.

    Parameters
    ----------
    engine : Engine
        Where the tasks run.
    function : callable
        Function of a module, or a partial one, from a task to its result.
    tasks : sequence
        Names of input and settings, which are sent to the workers.
    name : str
        Name of the stage in the progress and in the log.
    unit : str
        Plural of what a task is in the progress.
    arrays : bool
        The results have arrays: worker processes write them into files, which this process maps. They are neither
        pickled nor sent through a pipe.
    rows : int or callable
        Documents of the stage for the log, or a function from a result to the documents of its task.
    """
    with ExitStack() as stack:
        called: Callable[[Task], Any] = function
        if arrays and isinstance(engine, Processes) and engine.processes:
            folder = stack.enter_context(staging_folder(Path(tempfile.gettempdir(), "spotsigs-arrays")))
            called = ToFile(function, str(folder), os.getpid())
        record = stack.enter_context(_stage(name, 0 if callable(rows) else rows))
        done = stack.enter_context(closing(engine.map(TimedFunction(called), tasks)))
        for returned, measure in progress(done, name, len(tasks), unit):
            result = returned.mapped() if isinstance(returned, InFile) else returned
            record(measure, rows(result) if callable(rows) else 0)
            yield result


LEAST_SECONDS = 0.001
"""Wall seconds of the shortest work of the calling process between two stages that the log states."""

LEAST_BYTES = 1 << 16
"""Bytes of arrays below which a result is sent as it is."""


@dataclass(frozen=True)
class InFile:
    """A pickled result without its arrays, which are in a file, and the sizes of these."""

    content: bytes
    path: Path
    sizes: list[int]

    def mapped(self) -> Any:
        """Return the result; its arrays are parts of the file, which has no name from then on."""
        with self.path.open("rb") as file:
            whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
        with suppress(OSError):  # Windows deletes it with its folder
            self.path.unlink()
        ends = [*accumulate(map(_padded, self.sizes), initial=0)]
        return pickle.loads(self.content, buffers=[whole[k : k + n] for k, n in zip(ends, self.sizes, strict=False)])


@dataclass(frozen=True)
class ToFile(Generic[Task, Result]):
    """A function that returns the arrays of its result in a file, unless they are few or the disk is full."""

    func: Callable[[Task], Result]
    folder: str
    caller: int

    def __call__(self, task: Task) -> Result | InFile:
        """Call the function."""
        result = self.func(task)
        if os.getpid() == self.caller:
            return result
        buffers: list[pickle.PickleBuffer] = []
        content = pickle.dumps(result, 5, buffer_callback=buffers.append)
        parts = [buffer.raw() for buffer in buffers]
        sizes = [part.nbytes for part in parts]
        if sum(sizes) < LEAST_BYTES:
            return result
        try:
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                for part in parts:
                    file.write(part)
                    file.write(bytes(_padded(part.nbytes) - part.nbytes))
        except OSError:
            return result
        return InFile(content, Path(file.name), sizes)


def _padded(size: int) -> int:
    """Return a size as a multiple of 64 bytes, so that the next array in a file is aligned."""
    return -(-size // 64) * 64


class TaskMeasure(NamedTuple):
    """What a task used: wall and processor seconds, bytes of its reads and writes, and where it ran.

    ``resumed`` is true for a task whose result was there. The system counts the bytes of calls that read and write;
    memory-mapped files need no such calls. The bytes are 0 on a system that does not count them.
    """

    seconds: float
    core_seconds: float
    read_bytes: int
    written_bytes: int
    resumed: bool
    process: tuple[str, int]


@dataclass(frozen=True)
class TimedFunction(Generic[Task, Result]):
    """A function that returns its result with a `TaskMeasure`; `func` names the function as in `functools.partial`."""

    func: Callable[[Task], Result]

    def __call__(self, task: Task) -> tuple[Result, TaskMeasure]:
        """Call the function."""
        _THIS_TASK.resumed = False
        read, written = _transferred()
        began, core = perf_counter(), process_time()
        result = self.func(task)
        seconds, core = perf_counter() - began, process_time() - core
        read_now, written_now = _transferred()
        bytes_moved = read_now - read, written_now - written
        return result, TaskMeasure(seconds, core, *bytes_moved, _THIS_TASK.resumed, _this_process())


class _ThisTask(threading.local):
    resumed = False


_THIS_TASK = _ThisTask()


def mark_resumed() -> None:
    """Record that the result of the task that runs now was there."""
    _THIS_TASK.resumed = True


def _transferred() -> tuple[int, int]:
    """Return the bytes that this process has read and written."""
    try:
        counted: Any = psutil.Process().io_counters()
    except (AttributeError, OSError, psutil.Error):  # macOS, or a container that hides them
        return 0, 0
    return getattr(counted, "read_chars", counted.read_bytes), getattr(counted, "write_chars", counted.write_bytes)


def _this_process() -> tuple[str, int]:
    return socket.gethostname(), os.getpid()


class Step(NamedTuple):
    """A row of the log: a task, or work of the calling process.

    Attributes
    ----------
    step : int
        Number of the step. All tasks of a stage are one step.
    stage : str
        Name of the stage, or of the work of the calling process.
    task : int
        Number of the task in its stage; -1 for the work of the calling process.
    after : int
        Step that has to end before this one begins; -1 for the first.
    in_caller : bool
        The calling process did it.
    seconds, core_seconds : float
        Wall and processor seconds. The calling process works during a stage as well; there, both are its processor
        seconds.
    read_bytes, written_bytes : int
        See `TaskMeasure`.
    resumed : bool
        The result was there.
    rows : int
        Documents of the task, or of the whole step where its tasks do not count them; 0 if none were counted.
    """

    step: int
    stage: str
    task: int
    after: int
    in_caller: bool
    seconds: float
    core_seconds: float
    read_bytes: int
    written_bytes: int
    resumed: bool
    rows: int


@dataclass
class TaskLog:
    """The steps of a run."""

    steps: list[Step] = field(default_factory=list)
    _next: int = 0
    _mark: tuple[float, float, int, int] = field(default_factory=lambda: _readings())

    def record_caller(self, name: str, rows: int = 0) -> None:
        """Record what the calling process has done since the last step."""
        seconds, core, read, written = (now - then for now, then in zip(_readings(), self._mark, strict=True))
        number = self._begin()
        self._end(Step(number, name, -1, number - 1, True, seconds, core, int(read), int(written), False, rows))
        _announce(name, seconds, core, rows)

    @contextmanager
    def stage(self, name: str, rows: int = 0) -> Iterator[Callable[[TaskMeasure, int], object]]:
        """Record a stage; yield a function that records a task and its documents, called in task order."""
        self.record_caller(f"before {name}")
        number, began, here, own = self._begin(), _readings(), _this_process(), 0.0
        measures: list[tuple[TaskMeasure, int]] = []
        try:
            yield lambda measure, rows: measures.append((measure, rows))
        finally:
            for k, (measure, of_task) in enumerate(measures):
                in_caller = measure.process == here
                own += measure.core_seconds * in_caller
                self.steps.append(Step(number, name, k, number - 1, in_caller, *measure[:5], of_task))
            core = max(process_time() - began[1] - own, 0.0)
            self._end(Step(number, name, -1, number - 1, True, core, core, 0, 0, False, rows))
        tasks = {"tasks": len(measures), "resumed": sum(measure.resumed for measure, _ in measures)}
        core += sum(measure.core_seconds for measure, _ in measures)
        _announce(name, perf_counter() - began[0], core, rows + sum(of_task for _, of_task in measures), **tasks)

    def write(self, path: Path) -> None:
        """Write the steps as a Parquet file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = dict(zip(Step._fields, zip(*self.steps, strict=True), strict=True))
        arrays = {
            name: arrow_text(of) if name == "stage" else arrow_numbers(np.array(of)) for name, of in columns.items()
        }
        with replacing(path) as temporary:
            pq.write_table(pa.table(arrays), temporary, compression="zstd")

    def _begin(self) -> int:
        self._next += 1
        return self._next - 1

    def _end(self, step: Step) -> None:
        self.steps.append(step)
        self._mark = _readings()


def _readings() -> tuple[float, float, int, int]:
    return perf_counter(), process_time(), *_transferred()


_LOG: ContextVar[TaskLog | None] = ContextVar("spotsigs task log", default=None)


@contextmanager
def task_log() -> Iterator[TaskLog]:
    """Record all stages of the block, and the work of the calling process around them."""
    steps = TaskLog()
    token = _LOG.set(steps)
    try:
        yield steps
    finally:
        steps.record_caller("after the last stage")
        _LOG.reset(token)


@contextmanager
def in_caller(name: str, rows: int = 0) -> Iterator[None]:
    """Record the block as work of the calling process, by its name, with the number of its documents."""
    steps = _LOG.get()
    if steps is not None:
        steps.record_caller(f"before {name}")
    yield
    if steps is not None:
        steps.record_caller(name, rows)


@contextmanager
def _stage(name: str, rows: int) -> Iterator[Callable[[TaskMeasure, int], object]]:
    steps = _LOG.get()
    if steps is None:
        yield lambda measure, rows: None
        return
    with steps.stage(name, rows) as record:
        yield record


def _announce(name: str, seconds: float, core_seconds: float, rows: int, **tasks: int) -> None:
    """Log that a step has ended, unless there was nothing to do."""
    if tasks.get("tasks") == 0 or (seconds < LEAST_SECONDS and not rows and not tasks):
        return
    counts = {**tasks, "rows": rows} if rows else tasks
    times = {"seconds": round(seconds, 3), "core_seconds": round(core_seconds, 3)}
    known = [counted(rows, "document")] if rows else []
    if tasks:
        known.append(counted(tasks["tasks"], "task") + (f", {tasks['resumed']:,} resumed" if tasks["resumed"] else ""))
    known.append(f"{seconds:.2f} s, {core_seconds:.2f} core s")
    log.info("%s: %s", name, ", ".join(known), extra={"facts": {"stage": name, **counts, **times}})
