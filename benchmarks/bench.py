"""Measure joins on the same vectors, and extraction: ``python -m benchmarks.bench [--collection ...] [--tool ...]``.

Every cell (collection, tool, tau, threads) runs in its own process with a time limit. Finished cells are cached, so an
interrupted run resumes. ``--tables`` writes the tables and the figure again, from ``cells.csv`` of a previous run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import extraction
from benchmarks.join_tools import JOIN, OURS, PACKAGES, SKETCH_TAUS, TOOLS
from data.collections.wt10g_like import DOCUMENTS, LONG, Wt10gLike
from experiments.harness.machine_load import Patience
from experiments.harness.manifest import problems, record
from experiments.harness.used_code import checksum_of
from experiments.show.figures import Mark, Panel, Point, draw_lines
from experiments.show.tables import Column, Table
from spotsigs.reports.output_files import read_json, write_json
from spotsigs.runs.provenance import provenance
from spotsigs.workers.progress import Progress

ROOT = Path(__file__).parents[1]
TRIAL = "short 20k"
"""Collection that is measured on request only."""
COLLECTIONS = {
    TRIAL: Wt10gLike(documents=20_000),
    "short 100k": Wt10gLike(documents=100_000),
    "long 100k": Wt10gLike(documents=100_000, mean_length=LONG),
    "short 1.17M": Wt10gLike(documents=DOCUMENTS),
}
SMALLER = {"long 100k": "short 100k", "short 1.17M": "short 100k"}
"""Next smaller collection, from whose times those of a collection are forecast."""
LIMIT_SECONDS = 90
"""Maximal seconds of a cell's process, including the preparation of its input."""
PATIENCE_SECONDS = 300.0
"""Seconds to wait for a quiet machine before a cell of the whole benchmark."""
CAPTION = (
    "Seconds from vectors in memory to verified pairs, by tool, on two threads where a tool has them; short: 21 "
    "signatures a document, long: 190; line: the threshold at which the paper's runtimes cross"
)
MODULES = (
    *("spotsigs.matching.prefix_join", "spotsigs.matching.algorithm1", "baselines.lsh_native"),
    *("data.collections.wt10g_like", "experiments.harness.machine_load"),
)
"""Modules of the measured functions, of the vectors, and of the measurement."""
PLOTTED = ("short 100k", "short 1.17M", "long 100k")


@dataclass(frozen=True)
class Cell:
    """Unit of measurement."""

    collection: str
    tool: str
    tau: float
    threads: int


def plan(collections: Sequence[str], tools: Sequence[str], taus: Sequence[float]) -> list[Cell]:
    """Return the cells: small collections first, for the forecast of larger ones, and our tools first in each."""
    return [
        Cell(name, tool, tau, threads)
        for name in COLLECTIONS
        for tool in TOOLS
        for threads in TOOLS[tool].threads
        for tau in (TOOLS[tool].taus if threads == max(TOOLS[tool].threads) else SKETCH_TAUS)
        if (name in collections or (not collections and name != TRIAL))
        and (tool in tools or not tools)
        and (tau in taus or not taus)
    ]


class Bench:
    """Benchmark run with its finished cells."""

    def __init__(self, cache: Path, patience: float = 0) -> None:
        self.cache, self.patience = cache, Patience(patience)
        self.done: dict[Cell, dict[str, Any]] = {}

    def measure(self, cell: Cell) -> None:
        """Read a cell from the cache, measure it, or store the reason for its omission."""
        path = self.cache / f"{_key(cell)}.json"
        reason = self._too_slow(cell)
        if path.exists():
            self.done[cell] = read_json(path)
        elif reason:
            self.done[cell] = {"status": "omitted", "reason": reason}
        else:
            self.patience.wait()
            began = time.perf_counter()
            self.done[cell] = _run(cell)
            self.done[cell]["process_seconds"] = time.perf_counter() - began
            if self.done[cell]["status"] == "limit" or self.done[cell].get("contended") is False:
                write_json(path, self.done[cell])

    def rows(self) -> list[dict[str, Any]]:
        """Return each cell with its result."""
        return [asdict(cell) | result for cell, result in self.done.items()]

    @property
    def seconds(self) -> float:
        """Seconds of all processes, those of earlier runs included."""
        return float(sum(result.get("process_seconds", 0.0) for result in self.done.values()))

    def named(self, **has: Any) -> list[str]:
        """Return the names of the cells whose results have these values."""
        cells = (cell for cell, result in self.done.items() if has.items() <= result.items())
        return [" ".join(map(str, asdict(cell).values())) for cell in cells]

    def _too_slow(self, cell: Cell) -> str:
        """Return the reason why a cell takes too long, or an empty string.

        Times grow at least with the size of the collection, since every tool reads its input.
        """
        for other, result in self.done.items():
            same = (other.collection, other.tool, other.threads) == (cell.collection, cell.tool, cell.threads)
            if same and other.tau > cell.tau and result["status"] in ("limit", "omitted"):
                return f"too slow at tau {other.tau}"
        smaller = SMALLER.get(cell.collection, "")
        before = self.done.get(Cell(smaller, cell.tool, cell.tau, cell.threads), {"status": ""})
        if before["status"] in ("limit", "omitted"):
            return f"too slow on {smaller}"
        if before["status"] != "ok":
            return ""
        growth = COLLECTIONS[cell.collection].occurrences / COLLECTIONS[smaller].occurrences
        expected = growth * (before["seconds"] + before["prepare_seconds"])
        return f"> {LIMIT_SECONDS} s expected" if expected > LIMIT_SECONDS else ""


def compile_kernels() -> None:
    """Run our tools on the smallest collection, so that no cell compiles within its limit."""
    for tool in OURS:
        _run(Cell(TRIAL, tool, 0.9, 2), limit=None)


def _run(cell: Cell, limit: float | None = LIMIT_SECONDS) -> dict[str, Any]:
    collection = COLLECTIONS[cell.collection]
    drawn = {"documents": collection.documents, "mean_length": collection.mean_length}
    names = ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.join_tools", json.dumps(asdict(cell) | {"collection": drawn})],
            cwd=ROOT,
            env=os.environ | dict.fromkeys(names, str(cell.threads)),
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"status": "limit", "reason": f"> {LIMIT_SECONDS} s"}
    if done.returncode != 0:
        return {"status": "failed", "reason": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _key(cell: Cell) -> str:
    """Return a hash of all that a cell's result depends on: its parameters, code, libraries and machine."""
    files = ("join_tools.py", "allpairs.cpp", "requirements.txt")
    checksums = [_sha256(Path(__file__).with_name(name).read_bytes()) for name in files]
    parts = [asdict(cell), repr(COLLECTIONS[cell.collection]), checksum_of(*MODULES), checksums, machine()]
    return _sha256(json.dumps(parts, sort_keys=True).encode())[:24]


def machine() -> dict[str, str]:
    """Return the machine and the versions of libraries."""
    about = provenance()
    versions = {"python": about["python"]}
    for package in ("numpy", "numba", *PACKAGES):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return {key: str(about["machine"][key]) for key in ("processor", "cores", "system")} | versions


def _timed(cells: pd.DataFrame, row: Any) -> str:
    """Return seconds, the ratio to our join on two threads, and the recall of a tool that is not exact."""
    if row.status != "ok":
        return str(row.reason)
    at = (cells.collection == row.collection) & (cells.tau == row.tau) & (cells.tool == JOIN) & (cells.threads == 2)
    ours = cells[at & (cells.status == "ok")]
    is_ours = row.tool == JOIN and row.threads == 2
    ratio = "" if is_ours or ours.empty else f" ({row.seconds / ours.seconds.iloc[0]:.3g}×)"
    recall = "" if TOOLS[row.tool].exact else f", recall {row.recall:.2f}"
    return f"{row.seconds:.3g}{ratio}{recall}{' †' if row.contended is True else ''}"


def joins_table(cells: pd.DataFrame, about: Sequence[str]) -> Table:
    """Return the seconds of each tool on each collection, a column for each threshold."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in cells.itertuples():
        start = {"collection": row.collection, "tool": row.tool, "threads": row.threads}
        line = rows.setdefault(tuple(start.values()), start)
        line[f"{row.tau:g}"] = _timed(cells, row)
        if row.status == "ok":
            line["peak_mb"] = max(line.get("peak_mb", 0.0), row.peak_mb)
    names = [Column(name=name, title=name) for name in ("collection", "tool", "threads")]
    taus = [Column(name=f"{tau:g}", title=f"tau {tau:g}") for tau in sorted(set(cells.tau), reverse=True)]
    columns = [*names, *taus, Column(name="peak_mb", title="peak MB", form=",.0f")]
    notes = [
        "In brackets: how many times the seconds of `spotsigs_tight` on two threads. A tool without a recall is exact. "
        "†: other processes kept a fifth of a core busy.",
        *about,
    ]
    return Table(
        caption="Seconds from vectors in memory to verified pairs", columns=columns, rows=[*rows.values()], notes=notes
    )


def write_tables(folder: Path) -> None:
    """Write the table, the figure and, for the committed run, the table of the documentation."""
    cells = pd.read_csv(folder / "cells.csv")
    cells = cells[cells.tool.isin(TOOLS)]
    about = read_json(folder / "machine.json") if (folder / "machine.json").exists() else {}
    joins_table(cells, [", ".join(f"{name} {value}" for name, value in about.items())]).write(folder, "bench")
    done = cells[cells.status == "ok"]
    names = [name for name in PLOTTED if name in set(done.collection)] or list(dict.fromkeys(done.collection))
    points = [
        Point(
            panel=row.collection,
            series=f"{row.tool}, one thread" if row.tool == JOIN and row.threads == 1 else row.tool,
            x=row.tau,
            y=row.seconds,
        )
        for row in done[done.collection.isin(names)].sort_values(["tool", "threads", "tau"]).itertuples()
    ]
    panels = [
        Panel(name=name, x_label="tau", y_label="seconds", y_log=True, marks=[Mark(label="", x=0.78)]) for name in names
    ]
    if points:
        draw_lines(folder / "seconds", panels, points, CAPTION)


def main() -> None:
    """Measure the cells and write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description=__doc__)
    parser.add_argument("--collection", nargs="*", default=[], choices=list(COLLECTIONS), help="only these")
    parser.add_argument("--tool", nargs="*", default=[], choices=list(TOOLS), help="only these")
    parser.add_argument("--tau", nargs="*", default=[], type=float, help="only these")
    parser.add_argument("--out", type=Path, help="folder; results/bench, or results/runs/bench for a part of the run")
    parser.add_argument("--tables", action="store_true", help="only write the tables and the figure again")
    arguments = parser.parse_args()
    chosen = arguments.collection, arguments.tool, arguments.tau
    partial = any(chosen)
    committed = not (arguments.out or partial)
    written = ROOT / "results/runs/bench.writing"
    out = arguments.out or (ROOT / "results/runs/bench" if partial else ROOT / "results/bench")
    if not arguments.tables:
        out = written if committed else out
        shutil.rmtree(written, ignore_errors=True)
        compile_kernels()
        bench = Bench(ROOT / "results/cells/bench", 0 if partial else PATIENCE_SECONDS)
        cells = list(plan(*chosen))
        with Progress("measuring", len(cells), "cells") as shown:
            for cell in cells:
                shown.advance(0, note=f"{cell.collection}, {cell.tool}, tau {cell.tau}")
                bench.measure(cell)
                shown.advance()
        out.mkdir(parents=True, exist_ok=True)
        pd.json_normalize(bench.rows()).to_csv(out / "cells.csv", index=False, lineterminator="\n")
        write_json(out / "machine.json", machine())
        if not arguments.tool:
            began = time.perf_counter()
            documents = extraction.pages(few=partial)
            speeds = pd.DataFrame(extraction.measure(documents))
            speeds.to_csv(out / "extraction.csv", index=False, lineterminator="\n")
            seconds = bench.seconds + time.perf_counter() - began
    write_tables(out)
    print((out / "bench.md").read_text("utf-8"))
    if out == written:
        disturbed = bench.named(contended=True) + [f"extraction, {step}" for step in speeds.step[speeds.contended]]
        reasons = problems(provenance(), contended=disturbed, failed=bench.named(status="failed"))
        inputs = {name: _sha256(repr(collection).encode()) for name, collection in COLLECTIONS.items()}
        inputs["PackageDocs"] = _sha256(b"".join(page.content for page in documents))
        print(record(ROOT / "results", "bench", written, seconds=seconds, inputs=inputs, reasons=reasons))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    main()
