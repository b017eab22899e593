"""Whole tools, from files to kept documents, as a user runs them: ``make race``, or ``make race SIZE=300`` to try it.

Finished cells are kept, see `experiments.harness.finished_cells`, so that a stopped race continues; a complete one
replaces ``results/race``. Trials write ``results/runs/race-trial``.

Each run is a process on the same cores. The tool runs once before on a few documents, which compiles and fills caches.
Seconds are wall time; core seconds and peak memory are of all its processes together (shared pages counted once, where
the system reports them). The text of pages is extracted once for all tools that read text, and their times include the
extraction. The documents that a tool keeps are compared with the truth.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import psutil

from benchmarks.dedup_tools import TOOLS, documents
from data.collections.newsframes import NewsFrames
from data.collections.package_docs import PackageDocs
from experiments.harness.finished_cells import CellTask, FinishedCells
from experiments.harness.machine_load import QUIET, ForeignLoad, Patience
from experiments.harness.manifest import checksum, problems, record
from experiments.show.tables import Column, Table, write_cells
from spotsigs.arrays.parallel import all_cores
from spotsigs.errors import InputError
from spotsigs.evaluation.documents import b_cubed, count_stories
from spotsigs.records import Clusters, Document, Truth
from spotsigs.reports.output_files import write_json
from spotsigs.runs.provenance import provenance

ROOT = Path(__file__).parents[1]
LIMIT_SECONDS = 180.0
"""Seconds after which a run is stopped, ten times what most take."""
SAMPLE_SECONDS = 0.2

Row = dict[str, Any]

PATIENCE_SECONDS = 300.0
"""Seconds to wait for a quiet machine, for all runs on whole collections together."""
FEW = 60
"""Documents of the run that compiles."""

COLUMNS = [
    Column(name="collection", title="collection"),
    Column(name="documents", title="documents", form=","),
    Column(name="tool", title="tool"),
    Column(name="text", title="text"),
    Column(name="kept", title="kept", form=","),
    Column(name="stories_lost", title="stories lost", form=","),
    Column(name="lost", title="of all", form=".1%"),
    Column(name="duplicates_left", title="duplicates left", form=","),
    Column(name="left", title="of all", form=".1%"),
    Column(name="b_cubed_precision", title="B³ precision", form=".3f"),
    Column(name="b_cubed_recall", title="B³ recall", form=".3f"),
    Column(name="b_cubed_f1", title="B³ F1", form=".3f"),
    Column(name="largest_group", title="largest group", form=","),
    Column(name="seconds", title="seconds", form=",.1f"),
    Column(name="core_seconds", title="core seconds", form=",.1f"),
    Column(name="peak_mb", title="peak MB", form=",.0f"),
    Column(name="remark", title="remark"),
]
NOTES = [
    "Stories lost: truth clusters, single documents included, of which the tool keeps none. Duplicates left: kept "
    "documents beyond the first of each story. B³: averages over documents of the tool's own groups; a document in no "
    "group is a group of its own. Text: the part of a page that the tool reads; main content is extracted by "
    "trafilatura with its defaults. A run marked contended shared the machine: its seconds are too high.",
]


def newsframes(size: int | None) -> Iterator[Any]:
    """Yield pages of data=newsframes with a seed on which nothing was developed."""
    collection = NewsFrames(seed=5, accept_licence=True, pages=max(size or 2160, 2000))
    return (document for shard in collection.shards() for document in shard())


def package_docs_html(size: int | None) -> Iterator[Any]:
    """Yield the HTML documentation of four releases of SQLAlchemy; equal paths are one story."""
    versions = ["1.2.19", "1.3.24", "1.4.54", "2.0.36"]
    html: dict[str, Any] = {"suffixes": [".html"], "media_type": "text/html", "cache": str(ROOT / "data/cache")}
    collection = PackageDocs(package="SQLAlchemy", versions=versions, subfolder="doc", **html)
    pages = [document for shard in collection.shards() for document in shard()]
    return iter(pages if size is None else sorted(pages, key=lambda page: str(page.cluster)))


COLLECTIONS: dict[str, Callable[[int | None], Iterator[Any]]] = {
    each.__name__: each for each in (newsframes, package_docs_html)
}


def write_collection(name: str, path: Path, size: int | None) -> None:
    """Write a collection as JSON lines."""
    documents = (document for document in COLLECTIONS[name](size) if isinstance(document, Document))
    with path.open("w", encoding="utf-8") as file:
        for page in islice(documents, size):
            content = page.content if isinstance(page.content, str) else page.content.decode(page.charset or "utf-8")
            file.write(json.dumps({"id": page.id, "html": content, "cluster": page.cluster}) + "\n")


def timed(arguments: Sequence[str], cores: Sequence[int], log: Path, limit: float = LIMIT_SECONDS) -> dict[str, Any]:
    """Run a command on some cores; return its seconds, core seconds, peak memory and a remark on a failure."""
    seconds: dict[int, float] = {}
    peak = 0
    began = time.perf_counter()
    with ForeignLoad() as load, log.open("wb") as output:
        pin = partial(os.sched_setaffinity, 0, cores) if hasattr(os, "sched_setaffinity") else None
        process = subprocess.Popen(
            arguments, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, preexec_fn=pin, start_new_session=True
        )
        main = psutil.Process(process.pid)
        try:
            while process.poll() is None:
                memory = 0
                with suppress(psutil.Error):
                    for one in [main, *main.children(recursive=True)]:
                        with suppress(psutil.Error):
                            memory += _memory(one)
                            times = one.cpu_times()
                            seconds[one.pid] = times.user + times.system
                peak = max(peak, memory)
                if time.perf_counter() - began > limit:
                    _end(main)
                time.sleep(SAMPLE_SECONDS)
        finally:  # also when the race is stopped
            _end(main)
    elapsed = time.perf_counter() - began
    unseen = max(
        0.0, sum(seconds.values()) - load.own_seconds
    )  # of children of a fork server, which no process waits for
    remark = "contended" if load.cores - unseen / elapsed > QUIET else ""
    if process.returncode:
        last = log.read_text("utf-8", "replace").strip().splitlines()[-1:]
        remark = f"> {limit:,g} s" if elapsed > limit else f"failed: {' '.join(last)[:200]}"
    return {
        "seconds": elapsed,
        "core_seconds": sum(seconds.values()),
        "peak_mb": peak / 1e6,
        "failed": bool(process.returncode),
        "remark": remark,
    }


def _end(process: psutil.Process) -> None:
    with suppress(psutil.Error):
        for one in [*process.children(recursive=True), process]:
            with suppress(psutil.Error):
                one.kill()


def _memory(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except (AttributeError, psutil.Error):
        return int(process.memory_info().rss)


def evaluated(path: Path, out: Path) -> dict[str, Any]:
    """Return the quality of the decisions that a tool has written, by the truth of its input."""
    rows = [(document["id"], document.get("cluster")) for document in documents(path)]
    truth = Truth.from_clusters(name for _, name in rows)
    with (out / "decisions.csv").open(newline="", encoding="utf-8") as file:
        decisions = {row["doc"]: row for row in csv.DictReader(file)}
    kept = np.array([name in decisions and decisions[name]["kept"] == "True" for name, _ in rows])
    names = [f"group {decisions[name]['group']}" if name in decisions else f"only {name}" for name, _ in rows]
    _, first, labels, sizes = np.unique(names, return_index=True, return_inverse=True, return_counts=True)
    groups = Clusters(labels.astype(np.int32), first.astype(np.int32), np.ones(len(rows)))
    facts: dict[str, Any] = {"kept": int(kept.sum()), "largest_group": int(sizes.max())}
    if truth is not None:
        quality = count_stories(kept, truth)
        facts |= asdict(quality) | {"lost": quality.lost, "left": quality.left}
        measures = b_cubed(groups, truth)
        facts |= dict(zip(("b_cubed_precision", "b_cubed_recall", "b_cubed_f1"), measures, strict=True))
    return facts


@dataclass(frozen=True, kw_only=True)
class ProgramCell(CellTask):
    """A tool on a text of the pages of a collection, from files to decisions, on pinned cores."""

    alone: ClassVar[bool] = True

    # Names of the collection, of the tool in `benchmarks.dedup_tools.TOOLS`, and of the part of a page that it reads
    collection: str
    tool: str
    text: str
    pages: str  # checksum of the pages
    cores: Sequence[int]  # cores of its process
    path: Path = field(repr=False)  # pages, or their texts, as JSON lines
    work: Path = field(repr=False)  # folder for its output
    # Seconds, core seconds and peak memory of the extraction of the texts; empty for HTML
    before: dict[str, Any] = field(default_factory=dict, repr=False)
    stop: float = LIMIT_SECONDS  # seconds after which it is stopped

    def __call__(self) -> dict[str, Any]:
        """Run the tool, after a run on a few documents that compiles and fills caches; return figures and times."""
        self.work.mkdir(parents=True, exist_ok=True)
        few = self.work / "few.jsonl"
        few.write_text("".join(islice(self.path.open(encoding="utf-8"), FEW)), encoding="utf-8")
        run_program(self.tool, few, self.work, self.cores, self.stop)
        facts = run_program(self.tool, self.path, self.work, self.cores, self.stop)
        if not facts["failed"]:
            facts |= evaluated(self.path, self.work / "out")
        if self.before:
            facts |= {name: facts[name] + self.before[name] for name in ("seconds", "core_seconds")}
            facts["peak_mb"] = max(facts["peak_mb"], self.before["peak_mb"])
            facts["remark"] = facts["remark"] or self.before["remark"]
        slow = facts["remark"].startswith(">")
        return facts | {"contended": facts["remark"] == "contended", "unfinished": facts["failed"] and not slow}

    def modules(self) -> set[str]:
        """Return the modules of the programs and of the measurement."""
        return {"benchmarks.end_to_end", "benchmarks.dedup_tools", "spotsigs.doors.cli"}


def run_program(name: str, path: Path, work: Path, cores: Sequence[int], limit: float) -> dict[str, Any]:
    """Run a tool, or the extraction of a text, in an empty folder ``out``; return what `timed` returns."""
    out = work / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    command = [sys.executable, "-m", "benchmarks.dedup_tools", name, str(path), str(out)]
    return timed(command, cores, work / f"{name}.log", limit)


def cells_of(
    name: str, size: int | None, tools: Sequence[str], cores: Sequence[int], work: Path, limit: float
) -> Iterator[ProgramCell]:
    """Yield the cells of a collection; the texts of its pages are extracted once."""
    pages = work / f"{name}.jsonl"
    if not pages.exists():
        write_collection(name, pages, size)
    texts: dict[str, tuple[Path, dict[str, Any]]] = {"HTML": (pages, {})}
    about: dict[str, Any] = {"collection": name, "pages": checksum(pages), "cores": tuple(cores), "stop": limit}
    for tool in tools:
        for text in TOOLS[tool].texts:
            if text not in texts:
                folder = work / name / text
                facts = run_program(text, pages, folder, cores, limit)
                if facts["failed"]:
                    raise InputError(f"{text} of {name} cannot be extracted: {facts['remark']}")
                texts[text] = folder / "out" / "texts.jsonl", facts
            path, before = texts[text]
            yield ProgramCell(tool=tool, text=text, path=path, work=work / name / "program", before=before, **about)


def rows_of(cells: Sequence[ProgramCell], results: Sequence[Mapping[str, Any]], sizes: Mapping[str, int]) -> list[Row]:
    """Return the rows of the table: a cell each, with the number of documents of its collection."""
    about = provenance()
    shared = {key: about[key] for key in ("commit", "dirty")}
    rows = []
    for cell, result in zip(cells, results, strict=True):
        row = {"collection": cell.collection, "documents": sizes[cell.collection], "tool": cell.tool, "text": cell.text}
        plain = {key: round(value, 3) if isinstance(value, float) else value for key, value in result.items()}
        rows.append(row | plain | shared | {"cores": len(cell.cores)})
    return rows


def write(rows: Sequence[Row], folder: Path) -> None:
    """Write the cells, and the table that is a view of them."""
    folder.mkdir(parents=True, exist_ok=True)
    write_cells(folder, [{"method": f"{row['tool']}, {row['text']}"} | row for row in rows])
    settings = [f"{name}: {tool.settings}." for name, tool in TOOLS.items()]
    caption = f"From files to kept documents, {rows[0]['cores']} cores"
    Table(caption=caption, columns=COLUMNS, rows=rows, notes=[*NOTES, " ".join(settings)]).write(folder, "race")
    write_json(folder / "race.json", provenance())


WHOLE = (list(COLLECTIONS), list(TOOLS), None)
"""Values of the options of a complete race."""


def committed(rows: Sequence[Row], folder: Path, results: Path, seconds: float, inputs: Mapping[str, str]) -> str:
    """Replace the committed results by a copy of the results of a complete race; return a sentence."""
    names: dict[str, list[str]] = {"contended": [], "failed": []}
    for row in rows:
        names.get(row["remark"].partition(":")[0], []).append(f"{row['tool']} on {row['text']}, {row['collection']}")
    reasons = problems(provenance(), **names)
    copy = results / "runs/race.writing"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    return record(results, "race", copy, seconds=seconds, inputs=inputs, reasons=reasons)


def main() -> None:
    """Run the tools and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.end_to_end", description=__doc__)
    parser.add_argument("--collection", nargs="+", choices=COLLECTIONS, default=list(COLLECTIONS))
    parser.add_argument("--tool", nargs="+", choices=list(TOOLS), default=list(TOOLS))
    parser.add_argument("--size", type=int, help="documents of each collection")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, help="seconds after which a run is stopped")
    parser.add_argument("--work", type=Path, help="folder for inputs and outputs that remains; temporary if omitted")
    parser.add_argument("--out", type=Path, help="folder of the table; results/runs/race, or race-trial for a part")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that no tool runs on
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(all_cores()))
    cores = usable[: chosen.cores]
    partial = [f"--{name}" for name in ("collection", "tool", "size") if getattr(chosen, name) not in WHOLE]
    runs, began = ROOT / "results/runs", time.perf_counter()
    out = chosen.out or runs / ("race-trial" if partial else "race")
    patience = Patience(0.0 if chosen.size else PATIENCE_SECONDS)
    finished = FinishedCells(folder=ROOT / "results/cells", workers=1, patience=patience)
    cells: list[ProgramCell] = []
    results: list[dict[str, Any]] = []
    inputs: dict[str, str] = {}
    sizes: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        work = chosen.work or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        for name in chosen.collection:
            try:
                for cell in cells_of(name, chosen.size, chosen.tool, cores, work, chosen.limit):
                    inputs[name] = cell.pages
                    sizes[name] = sum(1 for _ in documents(work / f"{name}.jsonl"))
                    [result] = finished.of([cell], f"{cell.tool} on {cell.text}, {name}")
                    cells.append(cell)
                    results.append(result)
                    write(rows_of(cells, results, sizes), out)  # after each tool: a race takes long
            except InputError as error:
                partial.append(name)
                print(f"{name} is omitted: {error}", flush=True)
    if (out / "race.md").exists():
        print((out / "race.md").read_text("utf-8"))
    if not chosen.out and not partial:
        rows = rows_of(cells, results, sizes)
        print(committed(rows, out, ROOT / "results", time.perf_counter() - began, inputs))


if __name__ == "__main__":
    main()
