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
from typing import Any, Self

import psutil

from spotsigs import __version__

MIB = 1024 * 1024

CODE = ("spotsigs", "baselines", "data", "experiments", "benchmarks", "hydra_plugins", "conf", "run.py")
"""Paths of a checkout whose files decide a result; results, tests and pages of documentation do not."""

LIBRARIES = ("numpy", "numba", "scipy", "pyarrow", "datasketch", "selectolax", "resiliparse", "regex", "xxhash")


class PeakMemory:
    """Largest resident memory of this process inside a ``with`` block, as the kernel of Linux records it.

    Elsewhere, it is the largest since the beginning of the process.
    """

    peak_bytes: int = 0  # the largest memory, in bytes, at the end of the block

    def __enter__(self) -> Self:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # resets the record
        return self

    def __exit__(self, *error: object) -> None:
        self.peak_bytes = peak_of_process()


class TreeMemory:
    """Largest memory of this process and all its workers inside a ``with`` block, added up, sampled each second.

    On Linux this is what the kernel cannot take back: pages of mapped files are not counted. A thread samples.
    """

    interval_seconds: float = 1.0
    peak_bytes: int = 0  # the largest sample, in bytes

    def __enter__(self) -> Self:
        self._record()
        self._done = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._sampler.join()
        self._record()

    def _record(self) -> None:
        self.peak_bytes = max(self.peak_bytes, memory_of_all()[0])

    def _sample(self) -> None:
        """Record the memory at intervals, in a thread."""
        while not self._done.wait(self.interval_seconds):
            self._record()


def peak_of_process() -> int:
    """Return the largest resident memory of this process, in bytes."""
    if peak := _status_of("self").get("VmHWM"):
        return peak
    try:
        import resource
    except ImportError:  # Windows
        return int(psutil.Process().memory_info().peak_wset)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def memory_of_all() -> tuple[int, int]:
    """Return the bytes of this process and its workers that the kernel cannot take back, and how many they are.

    Only files of these processes are read: psutil finds workers by a look at every process of the machine.
    """
    if not Path("/proc/self/task").exists():
        processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
        return sum(_resident(process) for process in processes), len(processes)
    found = [str(os.getpid())]
    for process in found:  # which grows
        found += _children(process)
    known = [_status_of(process) for process in found]
    return sum(one.get("RssAnon", 0) + one.get("RssShmem", 0) for one in known), sum(map(bool, known))


def _resident(process: psutil.Process) -> int:
    with suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0


def _children(process: str) -> list[str]:
    """Return the processes that the threads of a process have started."""
    children: list[str] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            with suppress(OSError):
                children += Path(f"/proc/{process}/task/{thread}/children").read_text().split()
    return children


def _status_of(process: str) -> dict[str, int]:
    """Return the sizes of a process on Linux, in bytes, by the names of the kernel; none if it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return {}
    sizes = (line.split() for line in lines if line.endswith(" kB"))
    return {name.rstrip(":"): int(size) * 1024 for name, size, _ in sizes}


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
    answer = git_bytes(*arguments)
    return None if answer is None else answer.decode().strip()


def git_bytes(*arguments: str, given: bytes = b"", seconds: float = 10) -> bytes | None:
    """Return what git prints, as `git` does, when it reads ``given``; None also if it takes more seconds."""
    try:
        answer = subprocess.run(
            ["git", *arguments],
            cwd=Path(__file__).parent,
            input=given,
            capture_output=True,
            timeout=seconds,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout


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
