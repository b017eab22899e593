"""The cells of a sweep in worker processes: what cells share is read, extracted, filtered and joined once."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import forkserver, get_all_start_methods, get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import perf_counter
from typing import Any

from experiments.work.extracted_collections import Source, Stored, read_together
from spotsigs import progress
from spotsigs.arrays.parallel import all_cores
from spotsigs.errors import InputError
from spotsigs.exact_duplicates import Copies
from spotsigs.in_memory import Extracted
from spotsigs.outofcore.segments import source_of
from spotsigs.records import VectorCollection
from spotsigs.runs.pipeline import Reuse
from spotsigs.runs.runner import run
from spotsigs.runs.settings import Settings
from spotsigs.signatures.extract import refusal

ROOT = Path(__file__).parents[2]
CODE = ("spotsigs", "baselines", "data")
"""Packages whose files decide the result of a cell."""


@dataclass(frozen=True, kw_only=True)
class SweepCell:
    """One run of a sweep.

    Attributes
    ----------
    number : int
        Its position in the sweep.
    settings : Settings
        The checked configuration.
    folder : Path
        The folder of the run.
    about : mapping of str to str
        Files of the folder ``.hydra``, by name.
    """

    number: int
    settings: Settings
    folder: Path
    about: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A cell that has ended.

    Attributes
    ----------
    number : int
        Of the cell.
    text : str
        The summary of the run.
    error : Exception or None
        The reason of a failure.
    """

    number: int
    text: str = ""
    error: Exception | None = None


def identity(settings: Settings) -> str:
    """Return what the results of a cell depend on besides its configuration, as JSON: files of the input, code.

    A cell whose folder has the same configuration and identity is finished.
    """
    collection = settings.collection
    files = [] if isinstance(collection, VectorCollection) else source_of(collection, None, None)["files"]
    target = sys.modules[type(settings.matcher).__module__].__file__ or ""  # which can be a module of the user
    own = "" if Path(target).is_relative_to(ROOT) else hashlib.sha256(Path(target).read_bytes()).hexdigest()
    return json.dumps({"schema": 1, "files": files, "code": code_checksum(), "matcher": own}, indent=1) + "\n"


def code_checksum() -> str:
    """Return the SHA-256 of the files of code and of the word lists that decide the result of a cell."""
    global _CODE
    if _CODE is None:
        digest = hashlib.sha256()
        found = (path for package in CODE for path in (ROOT / package).rglob("*.*") if "cache" not in path.parts)
        for path in sorted(path for path in found if path.suffix in (".py", ".toml", ".txt")):
            digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
        _CODE = digest.hexdigest()
    return _CODE


_CODE: str | None = None


def run_cells(cells: Sequence[SweepCell], inputs: Path, workers: int) -> Iterator[Ended]:
    """Run cells in worker processes and yield each as it ends.

    Cells that differ in their threshold alone share a process and one join. With ``timing=true`` each cell runs in a
    process of its own, one after the other, and shares the extracted signatures alone.

    Parameters
    ----------
    cells : sequence of SweepCell
        All that are to run.
    inputs : Path
        Folder for extracted signatures.
    workers : int
        Processes at a time.

    Yields
    ------
    Ended
    """
    timing = any(cell.settings.timing for cell in cells)
    context = _context({type(cell.settings.matcher).__module__ for cell in cells})
    extracted = _extracted(cells, inputs)
    groups: dict[str, list[SweepCell]] = {}
    for cell in cells:
        alone = timing or cell.settings.memory is not None or cell.settings.query is not None
        groups.setdefault(str(cell.number) if alone else _group_key(cell.settings), []).append(cell)
    processes = 1 if timing else min(workers, len(groups))
    tasks = [
        Group(
            cells=sorted(found, key=lambda cell: cell.settings.matcher.threshold or 0),
            extracted=extracted.get(_input_key(found[0].settings)),
            threads=None if processes == 1 else min(all_cores(), max(2, all_cores() // processes)),
        )
        for found in groups.values()
    ]
    yield from _in_processes(tasks, processes, context)


def _input_key(settings: Settings) -> str:
    return repr((settings.collection, settings.text, settings.signature, settings.copies, settings.strict))


def _group_key(settings: Settings) -> str:
    """Return what the cells of one join have in common."""
    return repr((_input_key(settings), settings.idf_filter, settings.sets, settings.matcher.at(1.0), settings.auto))


@dataclass(frozen=True, kw_only=True)
class Group:
    """Cells that run in one process.

    Attributes
    ----------
    cells : sequence of SweepCell
        By ascending threshold, so that the first join serves the others.
    extracted : (Stored, float) or None
        Signatures and the seconds of their extraction; None where a cell reads the input itself.
    threads : int or None
        Threads of a kernel, where the user gave no number.
    """

    cells: Sequence[SweepCell]
    extracted: tuple[Stored, float] | None
    threads: int | None

    def __call__(self) -> Iterator[Ended]:
        """Run the cells and yield each as it ends."""
        reuse = Reuse(extracted=self._signatures())
        for cell in self.cells:
            settings = cell.settings
            if settings.threads is None and self.threads is not None:
                settings = replace(settings, matcher=settings.matcher.with_threads(self.threads))
            try:
                contended = self.threads is not None
                text = run(settings, cell.folder, contended=contended, reuse=reuse, about=cell.about)
                yield Ended(number=cell.number, text=text)
            except Exception as error:  # noqa: BLE001 - the other cells run
                yield Ended(number=cell.number, error=error)

    def _signatures(self) -> Extracted | None:
        if self.extracted is None:
            return None
        stored, seconds = self.extracted
        signatures = stored.signatures()
        return Extracted(signatures, Copies.among(signatures, stored.source.sameness), seconds)


def _extracted(cells: Sequence[SweepCell], inputs: Path) -> dict[str, tuple[Stored, float]]:
    """Extract each collection once for each text and signature scheme."""
    wanted = {
        _input_key(cell.settings): cell.settings
        for cell in cells
        if cell.settings.memory is None
        and cell.settings.query is None
        and not isinstance(cell.settings.collection, VectorCollection)
    }
    if not wanted:
        return {}
    progress.doing("reading and extracting")
    sources = [
        Source(collection=one.collection, text=one.text, signature=one.signature, sameness=one.copies)
        for one in wanted.values()
    ]
    began = perf_counter()
    stored = read_together(sources, inputs, next(iter(wanted.values())).engine, code_checksum())
    seconds = perf_counter() - began
    for one, found in zip(wanted.values(), stored, strict=True):
        skipped = found.signatures().skipped
        if one.strict and skipped:
            raise refusal(skipped[0])
    return {key: (found, seconds) for key, found in zip(wanted, stored, strict=True)}


def _context(modules: Iterable[str]) -> Any:
    """Return what starts processes; on most systems forks of a server, which imports the modules once and now."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context: Any = get_context("forkserver")
    context.set_forkserver_preload([__name__, "pyarrow.parquet", "scipy.sparse.csgraph", *modules])
    forkserver.ensure_running()
    return context


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the file of the program from the processes that start, which would import all of it and need none."""
    main = sys.modules["__main__"]
    hidden = {name: vars(main)[name] for name in ("__file__", "__spec__") if name in vars(main)}
    try:
        vars(main).update(dict.fromkeys(hidden))
        yield
    finally:
        vars(main).update(hidden)


def _in_processes(tasks: Sequence[Group], processes: int, context: Any) -> Iterator[Ended]:
    """Run groups, each in a fresh process so that the memory measured there is its own; yield each cell that ends."""
    waiting, running = deque(tasks), {}
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                here, there = context.Pipe()
                process = context.Process(target=_work, args=(there, waiting[0]))
                with _without_main():
                    process.start()
                there.close()
                running[here] = process, {cell.number for cell in waiting.popleft().cells}
            for connection in wait(list(running)):
                process, unfinished = running[connection]  # type: ignore[index]
                try:
                    ended = connection.recv()  # type: ignore[union-attr]
                except EOFError:
                    del running[connection]  # type: ignore[arg-type]
                    process.join()
                    died = InputError(f"a worker process ended before its cells, with exit code {process.exitcode}")
                    yield from (Ended(number=number, error=died) for number in sorted(unfinished))
                else:
                    unfinished.discard(ended.number)
                    yield ended
    finally:
        for process, _ in running.values():
            process.kill()


def _work(connection: Connection, group: Group) -> None:
    """Run a group in this process and send each cell that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    threading.Thread(target=_end_with_parent, args=(connection,), daemon=True).start()
    for ended in group():
        try:
            connection.send(ended)
        except (TypeError, AttributeError, ValueError):  # an error that cannot be pickled
            connection.send(
                Ended(number=ended.number, error=InputError(f"{type(ended.error).__name__}: {ended.error}"))
            )
    connection.close()
    sys.stdout.flush()
    os._exit(0)


def _end_with_parent(connection: Connection) -> None:
    """End this process when the other end of the connection is closed."""
    with suppress(EOFError, OSError):
        connection.recv()
    os._exit(1)
