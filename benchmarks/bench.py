"""Measure all tools on the same vectors: ``python -m benchmarks.bench [--collection ...] [--tool ...] [--tau ...]``.

Every cell (collection, tool, tau, threads) runs in its own process with a time limit. Finished cells are cached, so an
interrupted run resumes. A complete run measures cells again that other processes disturbed. `benchmarks.charts` writes
the tables and the plot.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from baselines.lsh_native import LshNative
from benchmarks import charts, extraction, profile, startup
from benchmarks.compared_tools import JOIN, OURS, PACKAGES, PEER_TAUS, PRODUCTS, SKETCH_TAUS, TOOLS
from benchmarks.inputs import COLLECTIONS, SMALLER
from benchmarks.measured_join import ARRAYS
from data.collections.wt10g_like import DOCUMENTS
from experiments.work.result_cache import code_version
from spotsigs.matching.algorithm1 import SpotSigs
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.output_files import read_json, write_json
from spotsigs.runs.provenance import provenance

ROOT = Path(__file__).parents[1]

LIMIT_SECONDS = 180
"""Maximal seconds of a cell's process, including the preparation of its input."""
BUDGET_MINUTES = 26
"""Minutes after which no cell starts; the remaining cells are marked as omitted."""
ATTEMPTS = 3
"""Maximal number of measurements of a contended cell."""
PROFILED, PROFILE_TAUS = ["short 1.17M"], (0.9, 0.5)
STEEPEST = 2.0
"""Maximal exponent of growth in the forecast of a tool's time on the next collection."""


@dataclass(frozen=True)
class Cell:
    """Unit of measurement."""

    collection: str
    tool: str
    tau: float
    threads: int


def plan(collections: list[str], tools: list[str], taus: list[float]) -> list[Cell]:
    """Return the cells: small collections first, for the forecast of larger ones, and our tools first in each."""
    cells = [
        Cell(name, tool, tau, threads)
        for name in COLLECTIONS
        for tool in TOOLS
        for threads in TOOLS[tool].threads
        for tau in TOOLS[tool].taus
        if (name in collections or not collections) and (tool in tools or not tools) and (tau in taus or not taus)
    ]
    return [cell for cell in cells if _is_selected(cell)]


def _is_selected(cell: Cell) -> bool:
    """Return whether a cell is part of a run; redundant ones are omitted to limit its time."""
    collection, tool = COLLECTIONS[cell.collection], TOOLS[cell.tool]
    single = cell.threads < max(tool.threads)
    if single or collection.documents <= 20_000 or (collection.mean_length and cell.tool != JOIN):
        return cell.tau in PEER_TAUS and not (collection.mean_length and cell.tool in PRODUCTS)
    return cell.tau == 0.9 or collection.documents < DOCUMENTS or tool.taus != SKETCH_TAUS


class Bench:
    """Benchmark run: its finished cells, and forecasts for the others."""

    def __init__(self, kept: Path, scratch: Path, minutes: float) -> None:
        self.kept, self.scratch, self.minutes = kept, scratch, minutes
        self.deadline = time.monotonic() + 60 * minutes
        self.done: dict[Cell, dict[str, Any]] = {}
        self._folders: dict[str, Path] = {}

    def measure(self, cell: Cell) -> None:
        """Read a cell from the cache, measure it, or store the reason for its omission."""
        path = self._path(cell)
        result = read_json(path) if path.exists() else None
        if result is None and time.monotonic() > self.deadline:
            result = {"status": "omitted", "reason": "the time was over"}
        elif result is None:
            reason = self._too_slow(cell)
            result = {"status": "too slow", "reason": reason} if reason else self._run(cell)
        self._keep(cell, result)

    def _keep(self, cell: Cell, result: dict[str, Any]) -> None:
        self.done[cell] = result
        if result["status"] == "limit" or (result["status"] == "ok" and not result["contended"]):
            write_json(self._path(cell), result)

    def _path(self, cell: Cell) -> Path:
        return self.kept / f"{_key(cell)}.json"

    def measure_again(self) -> None:
        """Measure contended cells again; of two contended runs the faster one is kept."""
        for cell, before in self.done.items():
            if before.get("contended") and time.monotonic() < self.deadline:
                again = self._run(cell)
                if again["status"] == "ok" and (not again["contended"] or again["seconds"] < before["seconds"]):
                    self._keep(cell, again)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each cell with its result."""
        for cell, result in self.done.items():
            yield asdict(cell) | result

    def _run(self, cell: Cell) -> dict[str, Any]:
        request = asdict(cell) | {"collection": str(self._folder(cell.collection))}
        command = [sys.executable, "-m", "benchmarks.measured_join", json.dumps(request)]
        names = ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
        environment = os.environ | dict.fromkeys(names, str(cell.threads))
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return {"status": "limit", "reason": f"> {LIMIT_SECONDS} s"}
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            return {"status": "failed", "reason": lines[-1]}
        return dict(json.loads(done.stdout.splitlines()[-1]))

    def _too_slow(self, cell: Cell) -> str:
        """Return the reason why a cell takes too long, or an empty string."""
        for other, result in self.done.items():
            same = (other.collection, other.tool, other.threads) == (cell.collection, cell.tool, cell.threads)
            if same and other.tau > cell.tau and result["status"] in ("limit", "too slow"):
                return f"too slow at tau {other.tau}"
        return f"> {LIMIT_SECONDS} s expected" if self._expected_seconds(cell) > LIMIT_SECONDS else ""

    def _expected_seconds(self, cell: Cell) -> float:
        """Return the expected seconds of a cell from the two next smaller collections, or 0 if unknown.

        The exponent of growth between these collections is measured, and at least 1, since tools read their input.
        """
        smaller = SMALLER.get(cell.collection)
        if smaller is None:
            return 0.0
        small = self._seconds(cell, smaller)
        smallest = self._seconds(cell, SMALLER.get(smaller, ""))
        if small is None:
            status = self.done.get(Cell(smaller, cell.tool, cell.tau, cell.threads), {"status": ""})["status"]
            return math.inf if status in ("limit", "too slow") else 0.0
        steps = _ratio(cell.collection, smaller)
        exponent = 1.0
        if smallest is not None:
            exponent = math.log(small / smallest) / math.log(_ratio(smaller, SMALLER[smaller]))
        return float(small * steps ** min(max(exponent, 1.0), STEEPEST))

    def _seconds(self, cell: Cell, collection: str) -> float | None:
        result = self.done.get(Cell(collection, cell.tool, cell.tau, cell.threads))
        return None if result is None or result["status"] != "ok" else result["seconds"] + result["prepare_seconds"]

    def _folder(self, name: str) -> Path:
        """Return the folder with the arrays of a collection, which are generated on first use."""
        if name not in self._folders:
            folder = self.scratch / name.replace(" ", "-")
            folder.mkdir()
            vectors = COLLECTIONS[name].vectors()
            for array in ARRAYS:
                np.save(folder / f"{array}.npy", getattr(vectors, array))
            self._folders[name] = folder
        return self._folders[name]


def _ratio(larger: str, smaller: str) -> float:
    return COLLECTIONS[larger].occurrences / COLLECTIONS[smaller].occurrences


def _key(cell: Cell) -> str:
    """Return a hash of all that a cell's result depends on: its parameters, code, libraries and machine."""
    ours = {"spotsigs_tight": SpotSigsTight, "spotsigs": SpotSigs, "lsh_native": LshNative}
    code = code_version(ours.get(cell.tool, SpotSigsTight)(), COLLECTIONS[cell.collection])
    files = ("measured_join.py", "compared_tools.py") + (
        () if cell.tool in OURS else ("allpairs.cpp", "requirements.txt")
    )
    own = [hashlib.sha256(Path(__file__).with_name(name).read_bytes()).hexdigest() for name in files]
    parts = [asdict(cell), repr(COLLECTIONS[cell.collection]), code, own, machine()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


@cache
def machine() -> dict[str, str]:
    """Return the machine and the versions of libraries."""
    from importlib.metadata import PackageNotFoundError, version

    about = provenance()

    def installed(package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            return "not installed"

    return {
        "processor": about["machine"]["processor"],
        "cores": str(about["machine"]["cores"]),
        "system": about["machine"]["system"],
        "python": about["python"],
        **{package: installed(package) for package in ("numpy", "numba", *PACKAGES)},
    }


def main() -> None:
    """Measure the cells and write the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description=__doc__)
    parser.add_argument("--collection", nargs="*", default=[], choices=list(COLLECTIONS), help="only these")
    parser.add_argument("--tool", nargs="*", default=[], choices=list(TOOLS), help="only these")
    parser.add_argument("--tau", nargs="*", default=[], type=float, help="only these")
    parser.add_argument("--budget", type=float, default=BUDGET_MINUTES, help="minutes, after which no cell is started")
    parser.add_argument("--out", type=Path, help="folder; results/bench, or results/runs/bench for a part of the run")
    arguments = parser.parse_args()
    chosen = arguments.collection, arguments.tool, arguments.tau
    out = arguments.out or ROOT / ("results/runs/bench" if any(chosen) else "results/bench")
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(ROOT / "results/cells/bench", Path(scratch), arguments.budget)
        with tqdm(plan(*chosen), unit="cell", disable=None) as bar:
            for cell in bar:
                bar.set_description(f"{cell.collection}, {cell.tool}, tau {cell.tau}")
                bench.measure(cell)
        for _ in range(0 if any(chosen) else ATTEMPTS - 1):
            bench.measure_again()
    other: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "extraction": lambda: extraction.measure(few=any(chosen)),
        "startup": startup.measure,
        "profile": lambda: [
            row
            for name in arguments.collection or PROFILED
            for tau in PROFILE_TAUS
            for row in profile.measure(name, tau, charts.OUR_THREADS)
        ],
    }
    others = {} if arguments.tool else {name: pd.DataFrame(measured()) for name, measured in other.items()}
    charts.write_csvs(out, cells=pd.json_normalize(list(bench.rows())), machine=pd.Series(machine()), **others)
    charts.main(["--folder", str(out)])
    print(out / "bench.md")


if __name__ == "__main__":
    main()
