"""Peak memory and provenance of a run."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from spotsigs import __version__

MIB = 1024 * 1024

CODE = ("spotsigs", "baselines", "data", "experiments", "benchmarks", "hydra_plugins", "conf", "run.py")
"""Paths of a checkout whose files decide a result; results, tests and pages of documentation do not."""

LIBRARIES = ("numpy", "numba", "scipy", "pyarrow", "datasketch", "selectolax", "resiliparse", "regex", "xxhash")


class PeakMemory:
    """Largest resident memory of this process inside a ``with`` block, sampled every few milliseconds.

    Attributes
    ----------
    peak_bytes : int
        The largest sample, in bytes.
    """

    interval_seconds: float = 0.005
    peak_bytes: int = 0

    def __enter__(self) -> Self:
        self._process = psutil.Process()
        self._record()
        self._done = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._sampler.join()
        self._record()

    def _record(self) -> None:
        self.peak_bytes = max(self.peak_bytes, self._process.memory_info().rss)

    def _sample(self) -> None:
        """Record the memory every few milliseconds, in a thread."""
        while not self._done.wait(self.interval_seconds):
            self._record()


class TreeMemory(PeakMemory):
    """Largest resident memory of this process and all its workers inside a ``with`` block, added up.

    Pages that processes share are counted for each of them, so that the sum is an upper bound. It is at least the
    largest memory of this process since its beginning, that of the detection of formats and thresholds included.
    """

    interval_seconds: float = 0.05

    def __enter__(self) -> Self:
        self.peak_bytes = peak_of_process()
        return super().__enter__()

    def _record(self) -> None:
        self.peak_bytes = max(self.peak_bytes, memory_of_all()[0])


def peak_of_process() -> int:
    """Return the largest resident memory of this process since its beginning, in bytes."""
    try:
        import resource
    except ImportError:  # Windows
        return int(psutil.Process().memory_info().peak_wset)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def memory_of_all() -> tuple[int, int]:
    """Return the resident bytes of this process and its workers, and the number of these processes."""
    process = psutil.Process()
    total, processes = process.memory_info().rss, 1
    for worker in process.children(recursive=True):
        with suppress(psutil.Error):
            total += worker.memory_info().rss
            processes += 1
    return total, processes


def provenance() -> dict[str, Any]:
    """Return the command, commit, versions and machine of this run.

    Returns
    -------
    dict
        ``commit`` is None outside a checkout. ``dirty`` is true if code of the checkout, tracked or not, differs from
        the commit. ``plugins`` has the version of each package that adds a choice by an entry point.
    """
    checkout = git("ls-files", "--error-unmatch", Path(__file__).name) is not None
    return {
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "commit": git("rev-parse", "HEAD") if checkout else None,
        "dirty": checkout and bool(_changed_code()),
        "python": platform.python_version(),
        "versions": {"spotsigs": __version__} | {name: _version(name) for name in LIBRARIES},
        "plugins": _plugins(),
        "machine": {
            "system": platform.platform(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_bytes": psutil.virtual_memory().total,
        },
    }


@cache
def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


@cache
def _plugins() -> dict[str, str]:
    points = importlib.metadata.entry_points()
    ours = (point for group in points.groups if group.startswith("spotsigs.") for point in points.select(group=group))
    return {point.dist.name: point.dist.version for point in ours if point.dist is not None}


def _changed_code() -> str | None:
    """Return the lines of ``git status`` about changed and new files that decide a result."""
    root = Path(__file__).parents[2]
    code = [f":(top){path}" for path in CODE if (root / path).exists()]
    return git("status", "--porcelain", "--untracked-files=all", "--", *code, ":(top,exclude)data/cache")


def git(*arguments: str) -> str | None:
    """Return git's answer about the checkout that contains this module; None without git or checkout."""
    try:
        answer = subprocess.run(
            ["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


@cache
def _processor() -> str:
    """Return the processor's name from ``/proc/cpuinfo``, or from the platform where there is no such file."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor()
    )
