"""Measure joins on the same vectors, and extraction: ``python -m benchmarks.bench [--collection ...] [--tool ...]``.

Every cell (collection, tool, tau, threads) runs in its own process with a time limit, see
`experiments.harness.finished_cells`, so that an interrupted run resumes. ``--tables`` writes the tables and the figure
again, from ``cells.csv`` of a previous run.
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
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from benchmarks import extraction
from benchmarks.join_tools import JOIN, OURS, PACKAGES, SKETCH_TAUS, TOOLS
from data.collections.wt10g_like import DOCUMENTS, LONG, Wt10gLike
from experiments.harness.finished_cells import CellTask, FinishedCells
from experiments.harness.machine_load import Patience
from experiments.harness.manifest import problems, record
from experiments.show.figures import Mark, Panel, Point, draw_lines
from experiments.show.tables import Column, Table, write_cells
from spotsigs.reports.output_files import read_json, write_json
from spotsigs.runs.provenance import provenance

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
"""Next smaller collection, from whose times the times of a collection are forecast."""
LIMIT_SECONDS = 90
"""Maximal seconds of a cell's process, including the preparation of its input."""
PATIENCE_SECONDS = 300.0
"""Seconds to wait for a quiet machine, for all cells of the whole benchmark together."""
PLOTTED = ("short 100k", "short 1.17M", "long 100k")


@dataclass(frozen=True, kw_only=True)
class ToolCell(CellTask):
    """A tool on a collection at a threshold, timed in a process of its own with so many threads."""

    alone: ClassVar[bool] = True

    collection: str
    tool: str
    tau: float
    threads: int
    limit: float | None = field(default=LIMIT_SECONDS, repr=False)

    def __call__(self) -> dict[str, Any]:
        """Measure the tool, see `benchmarks.join_tools.measure`; a tool that fails is not measured to its end."""
        drawn = COLLECTIONS[self.collection]
        given = {name: getattr(self, name) for name in ("tool", "tau", "threads")}
        given["collection"] = {"documents": drawn.documents, "mean_length": drawn.mean_length}
        names = ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.join_tools", json.dumps(given)],
            cwd=ROOT,
            env=os.environ | dict.fromkeys(names, str(self.threads)),  # before the libraries are imported
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
            return {"status": "failed", "reason": last, "unfinished": True}
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return result | {"process_seconds": time.perf_counter() - began}

    def identity(self) -> dict[str, str]:
        """Return all that identifies the cell besides the code, with its vectors and the versions of the tools."""
        code = Path(__file__).with_name("allpairs.cpp").read_bytes()
        more = {"vectors": repr(COLLECTIONS[self.collection]), "machine": str(machine()), "compiled": _sha256(code)}
        return super().identity() | more

    def modules(self) -> set[str]:
        """Return the modules of the tools, of the vectors and of the measurement."""
        return {"benchmarks.join_tools", "data.collections.wt10g_like"}


Done = dict[ToolCell, dict[str, Any]]
"""Results by cell; a cell that is not run has a ``reason``."""


def plan(collections: Sequence[str], tools: Sequence[str], taus: Sequence[float]) -> list[ToolCell]:
    """Return the cells: small collections first, for the forecast of larger ones, and our tools first in each."""
    return [
        ToolCell(collection=name, tool=tool, tau=tau, threads=threads)
        for name in COLLECTIONS
        for tool in TOOLS
        for threads in TOOLS[tool].threads
        for tau in (TOOLS[tool].taus if threads == max(TOOLS[tool].threads) else SKETCH_TAUS)
        if (name in collections or (not collections and name != TRIAL))
        and (tool in tools or not tools)
        and (tau in taus or not taus)
    ]


def measured(cell: ToolCell, done: Done, finished: FinishedCells) -> dict[str, Any]:
    """Return the result of a cell, or the reason why it is not run."""
    reason = too_slow(cell, done)
    if reason:
        return {"status": "omitted", "reason": reason}
    [result] = finished.of([cell], f"{cell.collection}, {cell.tool}, tau {cell.tau:g}")
    return {"status": "limit", "reason": f"> {result['over_s']:g} s"} if "over_s" in result else result


def too_slow(cell: ToolCell, done: Done) -> str:
    """Return the reason why a cell takes too long, or an empty string.

    Times grow at least with the size of the collection, since every tool reads its input.
    """
    for other, result in done.items():
        same = (other.collection, other.tool, other.threads) == (cell.collection, cell.tool, cell.threads)
        if same and other.tau > cell.tau and result["status"] in ("limit", "omitted"):
            return f"too slow at tau {other.tau}"
    smaller = SMALLER.get(cell.collection, "")
    before = done.get(replace(cell, collection=smaller), {"status": ""})
    if before["status"] in ("limit", "omitted"):
        return f"too slow on {smaller}"
    if before["status"] != "ok":
        return ""
    growth = COLLECTIONS[cell.collection].occurrences / COLLECTIONS[smaller].occurrences
    expected = growth * (before["seconds"] + before["prepare_seconds"])
    return f"> {LIMIT_SECONDS} s expected" if expected > LIMIT_SECONDS else ""


def rows(done: Done) -> list[dict[str, Any]]:
    """Return the cells as rows, see `experiments.harness.cells`."""
    return [
        {"collection": cell.collection, "method": cell.tool, "tau": cell.tau, "threads": cell.threads, **result}
        for cell, result in done.items()
    ]


def named(done: Done, **has: Any) -> list[str]:
    """Return the names of the cells whose results have these values."""
    cells = (cell for cell, result in done.items() if has.items() <= result.items())
    return [f"{cell.collection} {cell.tool} {cell.tau} {cell.threads}" for cell in cells]


def compile_kernels() -> None:
    """Run our tools on the smallest collection, so that no cell compiles within its limit."""
    for tool in OURS:
        ToolCell(collection=TRIAL, tool=tool, tau=0.9, threads=2)()


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
    at = (cells.collection == row.collection) & (cells.tau == row.tau) & (cells.method == JOIN) & (cells.threads == 2)
    ours = cells[at & (cells.status == "ok")]
    is_ours = row.method == JOIN and row.threads == 2
    ratio = "" if is_ours or ours.empty else f" ({row.seconds / ours.seconds.iloc[0]:.3g}×)"
    recall = "" if TOOLS[row.method].exact else f", recall {row.recall:.2f}"
    return f"{row.seconds:.3g}{ratio}{recall}{' †' if row.contended is True else ''}"


def joins_table(cells: pd.DataFrame, about: Sequence[str]) -> Table:
    """Return the seconds of each tool on each collection, a column for each threshold."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in cells.itertuples():
        start = {"collection": row.collection, "tool": row.method, "threads": row.threads}
        line = rows.setdefault(tuple(start.values()), start)
        line[f"{row.tau:g}"] = _timed(cells, row)
        if row.status == "ok":
            line["peak_mb"] = max(line.get("peak_mb", 0.0), row.peak_mb)
    names = [Column(name=name, title=name) for name in ("collection", "tool", "threads")]
    taus = [Column(name=f"{tau:g}", title=f"tau {tau:g}") for tau in sorted(set(cells.tau), reverse=True)]
    columns = [*names, *taus, Column(name="peak_mb", title="peak MB", form=",.0f")]
    notes = [
        "In brackets: how many times the seconds of `spotsigs_tight` on two threads. A tool without a recall is exact. "
        "†: other processes kept a fifth of a core busy. The collections have 21 signatures a document (short) or 190 "
        "(long). The line in the figure is the threshold at which the paper's runtimes cross.",
        *about,
    ]
    return Table(
        caption="Seconds from vectors in memory to verified pairs", columns=columns, rows=[*rows.values()], notes=notes
    )


def read_cells(folder: Path) -> pd.DataFrame:
    """Return the cells of a folder; the committed ones have a column ``tool`` for the method."""
    cells = pd.read_csv(folder / "cells.csv").rename(columns={"tool": "method"})
    return cells[cells.method.isin(TOOLS)]


def write_tables(folder: Path) -> None:
    """Write the table, the figure and, for the committed run, the table of the documentation."""
    cells = read_cells(folder)
    about = read_json(folder / "machine.json") if (folder / "machine.json").exists() else {}
    joins_table(cells, [", ".join(f"{name} {value}" for name, value in about.items())]).write(folder, "bench")
    done = cells[cells.status == "ok"]
    names = [name for name in PLOTTED if name in set(done.collection)] or list(dict.fromkeys(done.collection))
    points = [
        Point(
            panel=row.collection,
            series=f"{row.method}, one thread" if row.method == JOIN and row.threads == 1 else row.method,
            x=row.tau,
            y=row.seconds,
        )
        for row in done[done.collection.isin(names)].sort_values(["method", "threads", "tau"]).itertuples()
    ]
    panels = [
        Panel(name=name, x_label="tau", y_label="seconds", y_log=True, marks=[Mark(label="", x=0.78)]) for name in names
    ]
    if points:
        draw_lines(folder / "seconds", panels, points)


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
        patience = Patience(0 if partial else PATIENCE_SECONDS)
        finished = FinishedCells(folder=ROOT / "results/cells", workers=1, patience=patience)
        done: Done = {}
        for cell in plan(*chosen):
            done[cell] = measured(cell, done, finished)
        write_cells(out, rows(done))
        write_json(out / "machine.json", machine())
        if not arguments.tool:
            began = time.perf_counter()
            documents = extraction.pages(few=partial)
            speeds = pd.DataFrame(extraction.measure(documents))
            speeds.to_csv(out / "extraction.csv", index=False, lineterminator="\n")
            seconds = sum(result.get("process_seconds", 0.0) for result in done.values()) + time.perf_counter() - began
    write_tables(out)
    print((out / "bench.md").read_text("utf-8"))
    if out == written:
        disturbed = named(done, contended=True) + [f"extraction, {step}" for step in speeds.step[speeds.contended]]
        reasons = problems(provenance(), contended=disturbed, failed=named(done, status="failed"))
        inputs = {name: _sha256(repr(collection).encode()) for name, collection in COLLECTIONS.items()}
        inputs["PackageDocs"] = _sha256(b"".join(page.content for page in documents))
        print(record(ROOT / "results", "bench", written, seconds=seconds, inputs=inputs, reasons=reasons))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    main()
