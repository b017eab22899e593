"""Profile of the join: ``python -m benchmarks.profile [--collection "short 1.17M"] [--tau 0.9 0.5]``.

For each threshold, it lists the wall seconds of each stage, and the calls and core seconds of each kernel, in the
fastest of several runs. Kernels run concurrently, so their seconds add up to more than the wall time. The difference to
the number of threads times the wall time is Python, allocation and waiting.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import pandas as pd

from benchmarks.charts import STAGES, markdown
from benchmarks.inputs import COLLECTIONS
from spotsigs.matching import join_kernels
from spotsigs.matching.prefix_join import self_join


class Clock:
    """Core seconds and calls of each kernel."""

    def __init__(self) -> None:
        self.busy: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self._lock = Lock()

    def around(self, name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Return the kernel with timing."""

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
    """Time every kernel that the stages call, within the context."""
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


def measure(collection: str, tau: float, threads: int, repeats: int = 5) -> list[dict[str, Any]]:
    """Return stages and kernels of the fastest of several runs, after one that loads the kernels."""
    vectors = COLLECTIONS[collection].vectors()
    fastest, stages, best = math.inf, {}, Clock()
    for run in range(repeats + 1):
        with watched() as clock:
            began = time.perf_counter()
            seconds = self_join(vectors, tau, threads=threads).seconds
            wall = time.perf_counter() - began
        if run and wall < fastest:
            fastest, stages, best = wall, dict(seconds), clock
    about = {"collection": collection, "tau": tau, "threads": threads}
    rows = [{"part": "everything", "wall_seconds": fastest}]
    rows += [{"part": f"stage {stage}", "wall_seconds": stages[stage]} for stage in STAGES]
    rows += [{"part": name, "core_seconds": busy, "calls": best.calls[name]} for name, busy in best.busy.items()]
    return [about | row for row in rows]


def main() -> None:
    """Print the profile."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("--collection", choices=list(COLLECTIONS), default="short 1.17M")
    parser.add_argument("--tau", nargs="+", type=float, default=[0.9, 0.5])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    for tau in arguments.tau:
        rows = measure(arguments.collection, tau, arguments.threads, arguments.repeats)
        print(markdown(pd.DataFrame(rows).round(4)), end="\n\n")


if __name__ == "__main__":
    main()
