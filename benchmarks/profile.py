"""Where the join's time goes: ``python -m benchmarks.profile [--collection "short 1.17M"] [--tau 0.9 0.5]``.

Prints, for each threshold, the wall seconds of each stage and, of every kernel, how often it was called and how many
seconds of a core it took; of the fastest of several runs. Kernels run side by side, so these add up to more than the
wall, and what is missing to the number of threads times the wall is Python, allocation and waiting.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import pandas as pd

from benchmarks.inputs import COLLECTIONS
from benchmarks.report import markdown
from spotsigs import join_kernels
from spotsigs.join import self_join
from spotsigs.records import Vectors


class Clock:
    """Core seconds and calls by kernel."""

    def __init__(self) -> None:
        self.busy: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self._lock = Lock()

    def around(self, name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Return the kernel, timed."""

        def timed(*arguments: Any) -> Any:
            began = time.thread_time()
            result = kernel(*arguments)
            spent = time.thread_time() - began
            with self._lock:
                self.busy[name] = self.busy.get(name, 0.0) + spent
                self.calls[name] = self.calls.get(name, 0) + 1
            return result

        return timed


@contextmanager
def watched() -> Iterator[Clock]:
    """Time every kernel that the stages call."""
    clock = Clock()
    kernels = {name: one for name, one in vars(join_kernels).items() if hasattr(one, "py_func")}
    public = {name: one for name, one in kernels.items() if not name.startswith("_")}
    try:
        for name, kernel in public.items():
            setattr(join_kernels, name, clock.around(name, kernel))
        yield clock
    finally:
        for name, kernel in public.items():
            setattr(join_kernels, name, kernel)


def profile(vectors: Vectors, tau: float, threads: int, repeats: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return stages and kernels of the fastest of several runs."""
    best: tuple[float, Any, Clock] | None = None
    for _ in range(repeats + 1):  # the first loads the kernels
        pairs = None
        with watched() as clock:
            began = time.perf_counter()
            pairs = self_join(vectors, tau, threads=threads)
            wall = time.perf_counter() - began
        if best is None or wall < best[0]:
            best = wall, pairs.seconds, clock
    assert best is not None
    wall, seconds, clock = best
    stages = pd.DataFrame([{"tau": tau, "threads": threads, "wall": round(wall, 4)} | _rounded(seconds)])
    rows = [
        {"tau": tau, "kernel": name, "calls": clock.calls[name], "core_seconds": round(busy, 4)}
        for name, busy in clock.busy.items()
    ]
    return stages, pd.DataFrame(rows, columns=["tau", "kernel", "calls", "core_seconds"])


def _rounded(seconds: Any) -> dict[str, float]:
    return {stage: round(one, 4) for stage, one in seconds.items() if stage not in ("sort_hash", "cluster")}


def main() -> None:
    """Profile and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("--collection", choices=list(COLLECTIONS), default="short 1.17M")
    parser.add_argument("--tau", nargs="+", type=float, default=[0.9, 0.5])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    vectors = COLLECTIONS[arguments.collection].vectors()
    for tau in arguments.tau:
        for table in profile(vectors, tau, arguments.threads, arguments.repeats):
            print(markdown(table), end="\n\n")


if __name__ == "__main__":
    main()
