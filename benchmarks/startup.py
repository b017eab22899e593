"""Seconds from the start of ``python run.py`` to the first page read."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from spotsigs.runs.provenance import QUIET, ForeignLoad

ROOT = Path(__file__).parents[1]

RUNS = 7

# Run run.py as from the command line, and print the time when the first page is opened.
_PROGRAM = """
import os, runpy, sys, time

def watch(event, arguments):
    path, mode = map(str, arguments[:2]) if event == "open" else ("", "")
    if mode.startswith("r") and path.endswith(".html") and "cache" in path:
        os.write(1, f"\\n{time.time()}".encode())
        os._exit(0)

sys.addaudithook(watch)
sys.argv = ["run.py", *sys.argv[1:]]
sys.path.insert(0, "")
runpy.run_path("run.py", run_name="__main__")
"""


def measure() -> list[dict[str, Any]]:
    """Return the median of several runs, after one that generates the pages and compiles the kernels."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _PROGRAM, f"hydra.run.dir={folder}"]
        _seconds(command)
        runs = []
        for _ in range(RUNS):
            with ForeignLoad() as load:
                seconds = _seconds(command)
            runs.append((load.cores, seconds))
    quiet = [seconds for cores, seconds in runs if cores <= QUIET]
    counted = quiet or [seconds for _, seconds in runs]
    return [
        {
            "run": "python run.py",
            "seconds": statistics.median(counted),
            "least_seconds": min(seconds for _, seconds in runs),
            "contended": not quiet,
        }
    ]


def _seconds(command: list[str]) -> float:
    began = time.time()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return float(done.stdout.splitlines()[-1]) - began
