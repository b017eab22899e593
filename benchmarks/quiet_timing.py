"""Repeated runs of a function, of which those without load by other processes count."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from experiments.harness.machine_load import QUIET, ForeignLoad

BATCH_SECONDS = 0.5
"""Minimal seconds of a batch of runs, long enough to measure the load of other processes."""
ENOUGH_SECONDS = 1.5
"""Total seconds of undisturbed runs; a longer run is not repeated."""
PATIENCE_SECONDS = 4.0
"""Seconds of disturbed runs after which the result is contended."""


class Timing(NamedTuple):
    """Seconds of the undisturbed runs, or of all if there are none (``contended``), and the result of the last one."""

    seconds: list[float]
    contended: bool
    result: Any


def timed(run: Callable[[], Any]) -> Timing:
    """Run a function in batches, up to the limit of undisturbed or of disturbed seconds."""
    quiet: list[float] = []
    disturbed: list[float] = []
    result = None
    while sum(quiet) < ENOUGH_SECONDS and sum(disturbed) < PATIENCE_SECONDS:
        batch: list[float] = []
        with ForeignLoad() as load:
            while sum(batch) < BATCH_SECONDS:
                result = None  # free the previous result first
                began = time.perf_counter()
                result = run()
                batch.append(time.perf_counter() - began)
        (quiet if load.cores <= QUIET else disturbed).extend(batch)
    return Timing(quiet or disturbed, not quiet, result)
