"""One measurement of a join in a process of its own: ``python -m benchmarks.cell '{"tool": ..., ...}'``."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.join_tools import JOIN, TOOLS, Found, Run, UnavailableError
from data.collections.wt10g_like import Wt10gLike
from experiments.work.machine_load import QUIET, ForeignLoad
from spotsigs.matching.prefix_join import self_join
from spotsigs.records import Vectors

BATCH_SECONDS = 0.5
"""Minimal seconds of a batch of runs, long enough to measure the load of other processes."""
ENOUGH_SECONDS = 1.5
"""Total seconds of undisturbed runs; a longer run is not repeated."""
PATIENCE_SECONDS = 4.0
"""Seconds of disturbed runs after which the cell is contended."""


def measure(tool: str, vectors: Vectors, tau: float, threads: int) -> dict[str, Any]:
    """Run a tool and compare its pairs with those of our exact join."""
    try:
        began = time.perf_counter()
        run = TOOLS[tool].prepare(vectors)
        prepared = time.perf_counter() - began
        TOOLS[tool].prepare(Wt10gLike(documents=200).vectors())(0.7, threads)  # loads compiled kernels
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak memory
        before = _resident("VmRSS")
        batches, found = _timed(run, tau, threads)
    except (UnavailableError, ImportError) as reason:
        return {"status": "unavailable", "reason": str(reason)}
    quiet = [batch for batch in batches if batch["foreign_cores"] <= QUIET]
    seconds = [one for batch in quiet or batches for one in batch["seconds"]]
    return {
        "status": "ok",
        "contended": not quiet,
        "seconds": float(np.median(seconds)),
        "least_seconds": min(one for batch in batches for one in batch["seconds"]),
        "runs": len(seconds),
        "prepare_seconds": prepared,
        "peak_mb": _resident("VmHWM"),
        "before_mb": before,
        **agreement(found, vectors, tau, tool),
    }


def _timed(run: Run, tau: float, threads: int) -> tuple[list[dict[str, Any]], Any]:
    """Run in batches up to the time limit of undisturbed or disturbed ones; return them and the last result."""
    batches: list[dict[str, Any]] = []
    spent = {True: 0.0, False: 0.0}
    found = None
    while spent[True] < ENOUGH_SECONDS and spent[False] < PATIENCE_SECONDS:
        seconds: list[float] = []
        with ForeignLoad() as load:
            while sum(seconds) < BATCH_SECONDS:
                found = None  # free the previous result first
                began = time.perf_counter()
                found = run(tau, threads)
                seconds.append(time.perf_counter() - began)
        batches.append({"foreign_cores": load.cores, "seconds": seconds})
        spent[load.cores <= QUIET] += sum(seconds)
    return batches, found


def agreement(found: Found, vectors: Vectors, tau: float, tool: str) -> dict[str, Any]:
    """Compare pairs with the exact ones."""
    if tool == JOIN:
        return {"pairs": len(found[0]), "recall": None, "precision": None}
    exact, n = self_join(vectors, tau), len(vectors)
    i, j = found
    reported = np.unique(np.minimum(i, j).astype(np.int64) * n + np.maximum(i, j))
    shared = len(np.intersect1d(exact.i.astype(np.int64) * n + exact.j, reported, assume_unique=True))
    recall, precision = shared / max(len(exact), 1), shared / max(len(reported), 1)
    return {"pairs": len(reported), "recall": recall, "precision": precision}


def _resident(field: str) -> float:
    """Return the memory of this process in MB, on Linux: VmRSS is the current value, VmHWM the peak."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith(field)).split()[1]) * 1024 / 1e6


if __name__ == "__main__":
    cell = json.loads(sys.argv[1])
    vectors = Wt10gLike(**cell["collection"]).vectors()
    print(json.dumps(measure(cell["tool"], vectors, cell["tau"], cell["threads"])))
    sys.stdout.flush()
    os._exit(0)  # skip freeing millions of Python objects, which can take as long as the run
