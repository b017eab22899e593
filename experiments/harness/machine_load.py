"""The machine during measurements: repeated runs, cores that other processes use, and memory over time."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import psutil

from spotsigs.runs.provenance import TreeMemory, memory_of_all

QUIET = 0.2
"""Most cores that other processes may use while a time is measured."""
BATCH_SECONDS = 0.5
"""Minimal seconds of a batch of runs, long enough to measure the load of other processes."""
ENOUGH_SECONDS = 1.5
"""Total seconds of undisturbed runs."""
LONG_SECONDS = 5.0
"""Seconds of an undisturbed run that is not repeated."""
PATIENCE_SECONDS = 2.0
"""Seconds of disturbed runs after which the result is contended."""


class ForeignLoad:
    """Cores that other processes kept busy inside a ``with`` block."""

    cores: float = 0.0  # 0 on a quiet machine
    # CPU seconds of this process and of its children, without those that ended and were not waited for
    own_seconds: float = 0.0

    def __enter__(self) -> Self:
        self._began, self._busy, self._own = time.perf_counter(), _busy_seconds(), own_seconds()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        elapsed = time.perf_counter() - self._began
        self.own_seconds = own_seconds() - self._own
        foreign = (_busy_seconds() - self._busy) - self.own_seconds
        self.cores = max(0.0, foreign) / max(elapsed, 1e-9)


def _busy_seconds() -> float:
    spent = psutil.cpu_times()
    return float(sum(getattr(spent, kind, 0.0) for kind in ("user", "nice", "system", "irq", "softirq", "steal")))


def own_seconds() -> float:
    """Return the CPU seconds of this process and of its workers, dead or alive."""
    spent = os.times()
    total = spent.user + spent.system + spent.children_user + spent.children_system
    for worker in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            total += sum(worker.cpu_times()[:2])
    return total


class Timing(NamedTuple):
    """Seconds and results of the undisturbed runs, or of all if there are none (``contended``).

    ``foreign`` has the cores that other processes used, for each batch.
    """

    seconds: list[float]
    results: list[Any]
    contended: bool
    foreign: list[float]


def timed(run: Callable[[], Any], repeats: int = 1) -> Timing:
    """Run a function in batches until enough runs were undisturbed, or the time of disturbed ones is over.

    Enough are `repeats` runs of together `ENOUGH_SECONDS`, or a long run. Return something small: all results are kept.
    """
    quiet: list[tuple[float, Any]] = []
    disturbed: list[tuple[float, Any]] = []
    foreign = []
    while True:
        batch: list[tuple[float, Any]] = []
        with ForeignLoad() as load:
            while sum(seconds for seconds, _ in batch) < BATCH_SECONDS:
                began = time.perf_counter()
                result = run()
                batch.append((time.perf_counter() - began, result))
        foreign.append(load.cores)
        (quiet if load.cores <= QUIET else disturbed).extend(batch)
        total = sum(seconds for seconds, _ in quiet)
        enough = len(quiet) >= repeats and total >= ENOUGH_SECONDS
        if enough or any(seconds >= LONG_SECONDS for seconds, _ in quiet):
            break
        if sum(seconds for seconds, _ in disturbed) >= PATIENCE_SECONDS:
            break
    counted = quiet or disturbed
    return Timing([seconds for seconds, _ in counted], [result for _, result in counted], not quiet, foreign)


class Patience:
    """Seconds to wait for a quiet machine, for all times of a run together.

    The first wait is announced on standard error.
    """

    def __init__(self, seconds: float) -> None:
        self.left, self._is_told = seconds, False

    def wait(self) -> None:
        """Wait until other processes use hardly any of the machine for a second, or no time is left."""
        while self.left > 0:
            began = time.perf_counter()
            with ForeignLoad() as load:
                time.sleep(min(1.0, self.left))
            if load.cores > QUIET:
                self._tell(load.cores)
                time.sleep(min(5.0, max(0.0, self.left - 1)))
            self.left -= time.perf_counter() - began
            if load.cores <= QUIET:
                return

    def _tell(self, cores: float) -> None:
        if not self._is_told:
            busy = f"other processes use {cores:.1f} cores, and times are measured on a quiet machine"
            rest = f"waiting for it, up to {max(1, round(self.left / 60))} min in all; timing=now does not wait"
            sys.stderr.write(f"{busy}: {rest}\n")
        self._is_told = True


class TracedMemory(TreeMemory):
    """Memory of all processes inside a ``with`` block; each sample is written to a csv file.

    Its columns are seconds, stage, processes, bytes and processor seconds, without a header.
    """

    def __init__(self, interval_seconds: float, trace: Path) -> None:
        self.interval_seconds, self._trace = interval_seconds, trace
        self._stage, self._recording, self._began = "", threading.Lock(), time.perf_counter()

    @property
    def stage(self) -> str:
        """Name of the current stage in later samples; setting it takes a sample at once."""
        return self._stage

    @stage.setter
    def stage(self, name: str) -> None:
        if name != self._stage:
            self._record()
            self._stage = name
            self._record()

    def _record(self) -> None:
        with self._recording, self._trace.open("a", encoding="utf-8") as file:
            total, processes = memory_of_all()
            self.peak_bytes = max(self.peak_bytes, total)
            seconds = time.perf_counter() - self._began
            file.write(f"{seconds:.3f},{self._stage},{processes},{total},{own_seconds():.2f}\n")
