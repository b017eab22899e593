"""Measurement of a cell in its own process: ``python -m benchmarks.measured_join '{"tool": ..., ...}'``."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.compared_tools import JOIN, TOOLS, Run, UnavailableError
from data.collections.wt10g_like import Wt10gLike
from spotsigs.matching.prefix_join import self_join
from spotsigs.records import RowNumbers, Vectors
from spotsigs.runs.provenance import QUIET, ForeignLoad

BATCH_SECONDS = 0.5
"""Minimal seconds of a batch of runs, long enough to measure the load of other processes."""
ENOUGH_SECONDS = 1.5
"""Total seconds of undisturbed runs; a longer run is not repeated."""
PATIENCE_SECONDS = 4.0
"""Seconds of disturbed runs after which the cell is contended."""
ARRAYS = ("indptr", "ids", "counts", "lengths")


def measure(tool: str, collection: str, tau: float, threads: int) -> dict[str, Any]:
    """Run a tool on a collection and compare its pairs with those of our exact join."""
    arrays = {name: np.load(Path(collection, f"{name}.npy")) for name in ARRAYS}
    vectors = Vectors(**arrays, doc_ids=RowNumbers(len(arrays["lengths"])))
    try:
        began = time.perf_counter()
        run = TOOLS[tool].prepare(vectors)
        prepared = time.perf_counter() - began
        TOOLS[tool].prepare(Wt10gLike(documents=200).vectors())(0.7, threads)  # loads compiled kernels
        _forget_peak()
        before = _resident("VmRSS")
        batches, found = _timed(run, tau, threads)
    except (UnavailableError, ImportError) as reason:
        return {"status": "unavailable", "reason": str(reason)}
    peak = _resident("VmHWM")
    quiet = [batch for batch in batches if batch["foreign_cores"] <= QUIET]
    seconds = [one for batch in quiet or batches for one in batch["seconds"]]
    return {
        "status": "ok",
        "contended": not quiet,
        "seconds": float(np.median(seconds)),
        "least_seconds": min(one for batch in batches for one in batch["seconds"]),
        "runs": len(seconds),
        "prepare_seconds": prepared,
        "peak_mb": peak,
        "before_mb": before,
        **_agreement(found, vectors, tau, tool),
        "details": getattr(run, "details", {}),
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


def _agreement(found: Any, vectors: Vectors, tau: float, tool: str) -> dict[str, Any]:
    """Compare with the exact pairs, or flags with the rows that are in a pair."""
    n = len(vectors)
    if tool == JOIN:
        return {"pairs": len(found[0]), "recall": None, "precision": None}
    exact = self_join(vectors, tau)
    if TOOLS[tool].flags:
        paired = np.zeros(n, np.bool_)
        paired[exact.i] = paired[exact.j] = True
        shared, expected, reported = int((found & paired).sum()), int(paired.sum()), int(found.sum())
    else:
        i, j = found
        keys = np.unique(np.minimum(i, j).astype(np.int64) * n + np.maximum(i, j))
        reported, expected = len(keys), len(exact)
        shared = len(np.intersect1d(exact.i.astype(np.int64) * n + exact.j, keys, assume_unique=True))
    return {"pairs": reported, "recall": shared / max(expected, 1), "precision": shared / max(reported, 1)}


def _forget_peak() -> None:
    """Reset the peak memory of this process, if the system can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _resident(field: str) -> float:
    """Return the memory of this process in MB: VmRSS is the current value, VmHWM the peak."""
    with suppress(OSError):
        status = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in status if line.startswith(field)).split()[1]) * 1024 / 1e6
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


if __name__ == "__main__":
    cell = json.loads(sys.argv[1])
    print(json.dumps(measure(cell["tool"], cell["collection"], cell["tau"], cell["threads"])))
    sys.stdout.flush()
    os._exit(0)  # skip freeing millions of Python objects, which can take as long as the run
