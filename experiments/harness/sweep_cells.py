"""The cells of a sweep in worker processes, which share extracted signatures, vectors and joins."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing import forkserver, get_all_start_methods, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import perf_counter
from typing import Any

from experiments.harness.extracted_collections import Source, Stored, read_together
from experiments.harness.result_cache import checksum_of_module, code_checksum
from spotsigs.arrays.parallel import all_cores
from spotsigs.contracts import VectorCollection
from spotsigs.errors import InputError
from spotsigs.method import Method
from spotsigs.outofcore.segments import source_of
from spotsigs.output_files import read_json
from spotsigs.runs.provenance import provenance
from spotsigs.runs.runner import execute
from spotsigs.runs.stages import Run, joined_of
from spotsigs.storage.manifest import COMPLETE


@dataclass(frozen=True, kw_only=True)
class SweepCell:
    """A run of a sweep: its number, method and run, their root keys, and the files of its folder ``.hydra`` by name.

    Its settings are not in it: to read them, each worker process would import Hydra.
    """

    number: int
    method: Method
    run: Run
    workers: int
    threads: int | None
    timing: bool
    about: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A cell that has ended.

    Attributes
    ----------
    number : int
        Number of the cell.
    metrics : dict, optional
        Figures of the run.
    origin : dict, optional
        Seed and commit of the run, and whether other cells ran at the same time (``contended``).
    error : Exception, optional
        Error of the run.
    """

    number: int
    metrics: dict[str, Any] | None = None
    origin: dict[str, Any] | None = None
    error: Exception | None = None


def finished_before(number: int, folder: Path) -> Ended:
    """Return a cell that another process has run into a folder."""
    about = read_json(folder / "run.json")
    origin = {key: about[key] for key in ("seed", "commit", "contended")}
    return Ended(number=number, metrics=read_json(folder / COMPLETE), origin=origin)


def identity(collection: Any, method: Method) -> str:
    """Return the dependencies of a cell besides its configuration, as JSON: files of the input, code.

    A cell whose folder has the same configuration and identity is finished.
    """
    files = [] if isinstance(collection, VectorCollection) else source_of(collection, None, None)["files"]
    matcher = checksum_of_module(type(method.matcher).__module__)  # which can be a module of the user
    return json.dumps({"schema": 1, "files": files, "code": code_checksum(), "matcher": matcher}, indent=1) + "\n"


@dataclass(frozen=True, kw_only=True)
class Group:
    """Cells that run in one process, by ascending threshold, so that the first join serves the others."""

    cells: Sequence[SweepCell]
    extracted: tuple[Stored, float] | None  # with the seconds of extraction; None: a cell extracts itself
    threads: int | None  # threads of a kernel if the user sets no number; None: the group runs alone
    commit: str | None  # of the code


Beat = Callable[[Mapping[int, float]], None]
"""Function of the numbers of the running cells, each with its seconds so far."""


def run_cells(cells: Sequence[SweepCell], inputs: Path, workers: int, beat: Beat) -> Iterator[Ended]:
    """Run cells in worker processes and yield each as it ends; call `beat` each second without an end.

    Cells that differ in their threshold alone share a process and one join. With ``timing=true`` each cell runs in a
    process of its own, one after the other, and shares the extracted signatures of the folder `inputs` alone.
    """
    timing = any(cell.timing for cell in cells)
    context = _context({type(cell.method.matcher).__module__ for cell in cells})
    extracted = _extracted(cells, inputs)
    groups: dict[str, list[SweepCell]] = {}
    for cell in cells:
        key = str(cell.number) if timing else f"{cell.run.collection!r} {cell.method.join_key()}"
        groups.setdefault(key, []).append(cell)
    processes = 1 if timing else min(workers, len(groups))
    commit = provenance()["commit"]
    tasks = [
        Group(
            cells=sorted(cells_of_group, key=lambda cell: cell.method.tau or 0),
            extracted=extracted.get(_input_key(cells_of_group[0])),
            threads=None if processes == 1 else min(all_cores(), max(2, all_cores() // processes)),
            commit=commit,
        )
        for cells_of_group in groups.values()
    ]
    yield from _in_processes(tasks, processes, context, beat)


def _input_key(cell: SweepCell) -> str:
    return f"{cell.run.collection!r} {cell.method.extraction_key()}"


def _extracted(cells: Sequence[SweepCell], inputs: Path) -> dict[str, tuple[Stored, float]]:
    """Extract each collection once for each text and signature scheme; return the stores and the seconds."""
    wanted = {_input_key(cell): cell for cell in cells if not isinstance(cell.run.collection, VectorCollection)}
    if not wanted:
        return {}
    sources = [Source.of(one.run.collection, one.method) for one in wanted.values()]
    began = perf_counter()
    stored = read_together(sources, inputs, next(iter(wanted.values())).run.engine)
    seconds = perf_counter() - began
    return {key: (collection, seconds) for key, collection in zip(wanted, stored, strict=True)}


def run_group(group: Group) -> Iterator[Ended]:
    """Run the cells of a group and yield each as it ends."""
    joined = None
    if group.extracted is not None:
        stored, seconds = group.extracted
        joined = stored.joined(group.cells[0].method, seconds)
    for cell in group.cells:
        method = cell.method
        if cell.threads is None and group.threads is not None:
            method = replace(method, matcher=method.matcher.with_threads(group.threads))
        try:
            contended = group.threads is not None
            joined = joined or joined_of(method, cell.run)
            result = execute(method, cell.run, contended=contended, joined=joined, about=cell.about)
            origin = {"seed": cell.run.seed, "commit": group.commit, "contended": contended}
            yield Ended(number=cell.number, metrics=result.metrics, origin=origin)
        except Exception as error:  # noqa: BLE001 - the other cells run
            yield Ended(number=cell.number, error=error)


def _context(modules: Iterable[str]) -> Any:
    """Return the context that starts processes: on most systems a server that imports the modules once, and forks."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context: Any = get_context("forkserver")
    context.set_forkserver_preload([__name__, "pyarrow.parquet", "scipy.sparse.csgraph", *modules])
    resource_tracker.ensure_running()  # it would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited: its parent alone ends it by Ctrl-C
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return context


def _in_processes(groups: Sequence[Group], processes: int, context: Any, beat: Beat) -> Iterator[Ended]:
    """Run each group in a fresh process, so that the memory measured there is its own; yield each cell that ends."""
    waiting: deque[Group] = deque(groups)
    running: dict[Any, tuple[Any, dict[int, float]]] = {}  # the earliest begin of each unfinished cell
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(sender, waiting[0]))
                process.start()
                sender.close()
                running[receiver] = process, dict.fromkeys((c.number for c in waiting.popleft().cells), perf_counter())
            ready: list[Any] = wait(list(running), 1.0)
            if not ready:
                firsts = [next(iter(unfinished.items()), None) for _, unfinished in running.values()]
                beat({number: perf_counter() - began for number, began in filter(None, firsts)})
            for receiver in ready:
                process, unfinished = running[receiver]
                try:
                    ended = receiver.recv()
                except EOFError:
                    del running[receiver]
                    process.join()
                    died = InputError(f"a worker process ended before its cells, with exit code {process.exitcode}")
                    yield from (Ended(number=number, error=died) for number in sorted(unfinished))
                else:
                    unfinished.pop(ended.number)
                    running[receiver] = process, dict.fromkeys(unfinished, perf_counter())
                    yield ended
    finally:
        for process, _ in running.values():
            process.kill()


def _work(sender: Connection, group: Group) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for ended in run_group(group):
        try:
            sender.send(ended)
        except (TypeError, AttributeError, ValueError):  # an error that cannot be pickled
            sender.send(Ended(number=ended.number, error=InputError(f"{type(ended.error).__name__}: {ended.error}")))
    sender.close()
    sys.stdout.flush()
    os._exit(0)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
