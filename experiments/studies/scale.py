"""Run at scale: from generated pages to clusters within a memory budget, with memory over time."""

from __future__ import annotations

import csv
import logging
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from data.collections.synthetic import Synthetic, write_jsonl
from experiments.config import Settings
from experiments.harness.machine_load import QUIET, ForeignLoad, TracedMemory
from experiments.harness.study import Work, equally_exact
from experiments.show.figures import Panel, Point, draw_lines
from experiments.show.tables import Column, Table
from experiments.studies import more_workers
from experiments.studies.computed import RowsAndFacts
from experiments.studies.more_workers import MeasuredRun, run_command, runs_of
from spotsigs.clustering.clusters import cluster, cohesion
from spotsigs.clustering.decisions import decide
from spotsigs.clustering.in_memory import Matched
from spotsigs.clustering.tables import write_tables
from spotsigs.errors import require
from spotsigs.formats.jsonl import Jsonl
from spotsigs.method import Method
from spotsigs.outofcore.pipeline import Store, engine_within
from spotsigs.outofcore.vectorize import parse_memory
from spotsigs.reports.output_files import write_json
from spotsigs.signatures.idf import IdfFilter
from spotsigs.storage.exact_duplicates import Sameness
from spotsigs.workers.engines import end_workers
from spotsigs.workers.progress import Progress

STAGES = ("extract", "layout", "join", "clusters", "tables")
STAGE_OF = {"memory": "extract", "layout": "layout", "join": "join"}
"""Stage by the first word of its progress message."""

FEW = 200
"""Pages of the run that compiles, before those that are measured."""

SAMPLE_SECONDS = 0.2

COLUMNS = [
    Column(name="documents", title="Documents", form=",.0f"),
    Column(name="stage", title="Stage"),
    Column(name="seconds", title="Seconds", form=",.1f"),
    Column(name="core_seconds", title="Core seconds", form=",.1f"),
    Column(name="documents_a_second", title="Documents/s", form=",.0f"),
    Column(name="documents_a_core_second", title="Documents/core second", form=",.0f"),
    Column(name="megabytes_a_second", title="Input MB/s", form=",.1f"),
    Column(name="peak_mb", title="Peak MB, all processes", form=",.0f"),
]


def scale(work: Work, methods: Mapping[str, Method], *, documents: Sequence[int], memory: str) -> RowsAndFacts:
    """Run all stages on disk with each number of documents, and the command with one worker and with two.

    The memory of all processes is traced, and the wall time of the command on more workers is simulated.

    Parameters
    ----------
    documents : sequence of int
        Numbers of pages, each a run; WT10g has 1,171,960 after the paper's filters.
    memory : str
        Memory budget of all processes.
    """
    require(len(documents) > 0, "documents must have at least one number")
    for number in documents:
        require(number >= 1, f"documents must be at least 1, got {number}")
    budget, tau = parse_memory(memory), work.settings.method.threshold
    with TracedMemory(SAMPLE_SECONDS, Path(os.devnull)) as untraced:  # compiles
        matched, _ = _run(work.settings, _pages(work, FEW)[0], untraced, budget)
        _require_equal(matched, tau)
    runs = [_measured(work, number, budget) for number in documents]
    commands = more_workers.show(work, [_commands(work, number, memory) for number in documents])
    rows, notes = [row for run in runs for row in run["rows"]], [_note(run) for run in runs]
    stages = work.table(Table(caption="Throughput by stage", columns=COLUMNS, rows=rows, notes=notes), "stages")
    return RowsAndFacts(texts=[stages, *commands])


def _commands(work: Work, documents: int, memory: str) -> list[MeasuredRun]:
    """Run the command with one worker and with two, when its kernels are compiled."""
    folder = _pages(work, FEW)[0]
    run_command(folder / "pages", FEW, folder / "run", memory, 1)
    folder, _ = _pages(work, documents)
    work.finished.patience.wait()
    with ForeignLoad() as load:
        runs = runs_of(folder / "pages", documents, folder / "run", memory)
    if load.cores > QUIET:
        work.finished.contended.append(f"{documents} documents, the command")
    shutil.rmtree(folder)
    return runs


def _measured(work: Work, documents: int, budget: int) -> dict[str, Any]:
    """Run all stages, and draw the memory over time."""
    tau = work.settings.method.threshold
    folder, size = _pages(work, documents)
    work.finished.patience.wait()
    with ForeignLoad() as load, TracedMemory(SAMPLE_SECONDS, folder / "trace.csv") as memory:
        matched, clusters = _run(work.settings, folder, memory, budget)
    if load.cores > QUIET:
        work.finished.contended.append(f"{documents} documents")
    rows = stage_rows(folder / "trace.csv", documents, size)
    facts: dict[str, Any] = {
        "documents": documents,
        "input_bytes": size,
        "memory": budget,
        "peak_bytes": max(int(row["peak_mb"] * 1e6) for row in rows),
        "pairs": len(matched.pairs),
        "clusters": clusters,
        "tasks": matched.pairs.counters["tasks"],
        "counters": dict(matched.pairs.counters),
        "rows": rows,
        "join_in_memory_core_seconds": _require_equal(matched, tau),
        "tau": tau,
    }
    write_json(work.folder / f"scale-{documents}.json", facts)
    _draw(work, documents, read_trace(folder / "trace.csv"), budget)
    shutil.rmtree(folder)
    return facts


def _run(settings: Settings, folder: Path, memory: TracedMemory, budget: int) -> tuple[Matched, int]:
    """Run all stages on disk; return what they match, and the number of clusters of several pages."""

    class StageRecorder(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            memory.stage = STAGE_OF.get(record.getMessage().partition(":")[0], memory.stage)

    log = logging.getLogger(Store.__module__)
    log.setLevel(logging.INFO)
    recorder = StageRecorder()
    log.addHandler(recorder)
    # the band of the experiment, whatever band data= has; without duplicates, to measure the join
    method = replace(settings.method, idf_filter=IdfFilter(), duplicates=Sameness.off)
    store = Store(
        folder=folder / "store",
        method=replace(method, matcher=equally_exact(method.matcher)),
        engine=engine_within(settings.engine, budget),
        memory=budget,
    )
    try:
        matched = store.match(Jsonl(path=str(folder / "pages")))
    finally:
        log.removeHandler(recorder)  # the next run has a trace of its own
    pairs = matched.pairs
    memory.stage = "clusters"
    clusters = cluster(pairs, clusters=settings.method.clusters)
    decisions = decide(pairs, clusters, settings.method.keep, compared=matched.compared())
    inside = cohesion(clusters, pairs)
    memory.stage = "tables"
    end_workers()
    write_tables(folder, matched.doc_ids, pairs, decisions, inside)
    require(int(decisions.kept.sum()) == len(clusters.representatives), "one document of each cluster must stay")
    return matched, int(np.count_nonzero(clusters.sizes > 1))


def _draw(work: Work, documents: int, samples: list[TraceLine], budget: int) -> None:
    mb = budget / 1e6
    points = [Point(panel="", series=s.stage or "start", x=s.seconds, y=s.total / 1e6) for s in samples]
    points += [Point(panel="", series="budget", x=seconds, y=mb) for seconds in (0.0, samples[-1].seconds)]
    panel = Panel(name="", x_label="seconds", y_label="MB, all processes", y_range=(0, 1.1 * mb))
    caption = f"Memory of all processes, {documents:,} pages under {mb:,.0f} MB"
    work.figure(f"memory-{documents}", caption, partial(draw_lines, panels=[panel], points=points))


def _note(run: dict[str, Any]) -> str:
    core = run["join_in_memory_core_seconds"]
    on_disk = next(row["core_seconds"] for row in run["rows"] if row["stage"] == "join")
    return (
        f"{run['documents']:,} pages, {run['input_bytes'] / 1e9:.2f} GB, {run['pairs']:,} pairs, "
        f"{run['clusters']:,} clusters; peak {run['peak_bytes'] / 1e6:,.0f} MB of {run['memory'] / 1e6:,.0f} MB; pairs "
        f"equal to the pairs of one join in memory, which takes {core:,.1f} core seconds: "
        f"{on_disk / max(core, 1e-9):.1f} times as many on disk."
    )


def _pages(work: Work, documents: int) -> tuple[Path, int]:
    """Write pages into an empty folder; return it, and their bytes."""
    folder, collection = work.folder / "pages", Synthetic(documents=documents, seed=work.settings.seed)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with Progress("writing", documents, "pages") as shown:
        for pages in write_jsonl(collection, folder / "pages", work.settings.engine):
            shown.advance(pages)
    return folder, sum(path.stat().st_size for path in (folder / "pages").rglob("*") if path.is_file())


class TraceLine(NamedTuple):
    """Line of a trace: wall and processor seconds since the start, stage, resident bytes of all processes."""

    seconds: float
    stage: str
    total: int
    core_seconds: float


def read_trace(path: Path) -> list[TraceLine]:
    """Return the samples of a trace of `TracedMemory`."""
    with path.open(encoding="utf-8") as file:
        return [TraceLine(float(row[0]), row[1], int(row[3]), float(row[4])) for row in csv.reader(file)]


def stage_rows(path: Path, documents: int, size: int) -> list[dict[str, Any]]:
    """Return seconds, throughput and peak memory of each stage of a trace and of the total."""
    samples = read_trace(path)
    wall, core, peaks = (dict.fromkeys((*STAGES, "all"), 0.0) for _ in range(3))
    before = samples[0]  # at 0 seconds
    for sample in samples:
        for name in (sample.stage if sample.stage in wall else STAGES[0], "all"):
            wall[name] += sample.seconds - before.seconds
            core[name] += sample.core_seconds - before.core_seconds
            peaks[name] = max(peaks[name], sample.total)
        before = sample
    return [
        {
            "documents": documents,
            "stage": stage,
            "seconds": wall[stage],
            "core_seconds": core[stage],
            "documents_a_second": documents / wall[stage] if wall[stage] else None,
            "documents_a_core_second": documents / core[stage] if core[stage] else None,
            "megabytes_a_second": size / 1e6 / wall[stage] if wall[stage] else None,
            "peak_mb": peaks[stage] / 1e6,
        }
        for stage in wall
    ]


def _require_equal(matched: Matched, tau: float) -> float:
    """Require that the pairs on disk equal the pairs of a join in memory, bit for bit; return its core seconds."""
    from spotsigs.matching.prefix_join import self_join
    from spotsigs.records import Pairs, RowNumbers, Vectors

    vectors, pairs = matched.vectors, matched.pairs
    whole = Vectors(
        np.array(vectors.indptr),
        np.array(vectors.ids),
        np.array(vectors.counts),
        np.array(vectors.lengths),
        RowNumbers(len(vectors)),
    )
    began = process_time()
    joined = self_join(whole, tau)
    core = process_time() - began
    expected = Pairs.build(matched.rows[joined.i], matched.rows[joined.j], joined.similarity, len(vectors))
    equal = all(np.array_equal(getattr(pairs, name), getattr(expected, name)) for name in ("i", "j", "similarity"))
    require(equal, "the pairs on disk differ from the pairs of one join in memory: this is a fault of the program")
    return core
