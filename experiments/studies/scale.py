"""Run at scale: from generated pages to clusters within a memory budget, with memory over time and a plan."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any, ClassVar, NamedTuple

import numpy as np

from data.collections.synthetic import Synthetic, write_jsonl
from experiments.config import Experiment, Settings
from experiments.show.figures import Panel, Point
from experiments.show.tables import Column, Table
from experiments.work.machine_load import TracedMemory
from experiments.work.study import Work
from spotsigs.clustering.clusters import cluster, cohesion
from spotsigs.clustering.decisions import decide
from spotsigs.clustering.tables import write_tables
from spotsigs.engines import Engine, end_workers
from spotsigs.errors import require
from spotsigs.exact_duplicates import Sameness
from spotsigs.formats.jsonl import Jsonl
from spotsigs.in_memory import Matched
from spotsigs.outofcore.pipeline import Store, VectorSettings, fitting
from spotsigs.outofcore.prefix_partition_join import PairFiles
from spotsigs.outofcore.segments import Segments, extract_segments
from spotsigs.outofcore.vectorize import parse_memory
from spotsigs.output_files import read_json, write_json
from spotsigs.signatures.idf import IdfFilter

STAGES = ("extract", "layout", "join", "clusters", "tables")
STAGE_OF = {"memory": "extract", "layout": "layout", "join": "join"}
"""Stage by the first word of its progress message."""

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
PLANNED = (10**9, 2_530_000_000)
"""Numbers of pages of the extrapolation: a round one, and that of distributed-curator for 750 dollars."""

PAGE_BYTES = 50_000
"""Bytes of HTML of an average crawled page. The time of extraction grows with bytes, other times with pages."""

LONG_PAGES = 2_000
"""Number of pages of that size whose extraction is measured; each consists of several generated ones."""

PRICE = 0.04
"""Price of a core hour in dollars."""

PLAN = [
    Column(name="stage", title="Stage"),
    Column(name="exponent", title="Exponent", form=".2f"),
    *(
        Column(name=f"{name}_{documents}", title=f"{title}, {documents:.3g} pages".replace("e+0", " x 10^"), form=form)
        for documents in PLANNED
        for name, title, form in (("hours", "Core hours", ",.0f"), ("cost", "Dollars", ",.1f"))
    ),
]


@dataclass(frozen=True, kw_only=True)
class Scale(Experiment):
    """Pages to clusters on disk, with a trace of the memory of all processes and the throughput of each stage.

    Core hours of larger collections are planned from the two largest sizes that were run in the same folder.

    Attributes
    ----------
    results : Path
        Folder that receives ``scale/<documents>/``.
    documents : int
        Number of pages; WT10g has 1,171,960 after the paper's filters.
    memory : str
        Memory budget of all processes.
    verify : bool
        Join again in memory at the end, outside the budget, and compare all pairs.
    """

    reads: ClassVar[tuple[str, ...]] = (
        *("signature", "tau", "sets", "idf", "idf_min", "idf_max", "min_spots", "clusters", "keep"),
    )

    results: Path = Path("results")
    documents: int = 20_000
    memory: str = "2GB"
    verify: bool = True

    def __post_init__(self) -> None:
        require(self.documents >= 1, f"documents must be at least 1, got {self.documents}")
        parse_memory(self.memory)

    def __call__(self, settings: Settings) -> str:
        """Run all stages; return the tables."""
        work = Work.begin(self.results, settings)
        folder = work.folder / f"{self.documents:010d}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        size = _write_pages(Synthetic(documents=self.documents, seed=settings.seed), folder, settings.engine)
        with TracedMemory(SAMPLE_SECONDS, folder / "trace.csv") as memory:
            found, clusters = self._run(settings, folder, memory)
        rows = stage_rows(folder / "trace.csv", self.documents, size)
        facts: dict[str, Any] = {
            "documents": self.documents,
            "input_bytes": size,
            "memory": parse_memory(self.memory),
            "peak_bytes": max(int(row["peak_mb"] * 1e6) for row in rows),
            "pairs": len(found.pairs),
            "clusters": clusters,
            "occurrences": int(found.vectors.n_occurrences),
            "entries": len(found.vectors.ids),
            "segment_bytes": _bytes_below(folder / "store" / "segments"),
            "vector_bytes": _bytes_below(folder / "store" / "vectors"),
            "tasks": found.pairs.counters["tasks"],
            "counters": dict(found.pairs.counters),
            "rows": rows,
            "join_in_memory_core_seconds": _compare(found, settings.tau) if self.verify else None,
            "long_pages": self._extract_long(settings, folder),
            "tau": settings.tau,
        }
        write_json(folder / "scale.json", facts)
        self._draw(work, folder)
        shutil.rmtree(folder / "pages")
        shutil.rmtree(folder / "store")
        return _report(work, facts)

    def _run(self, settings: Settings, folder: Path, memory: TracedMemory) -> tuple[Matched[Segments, PairFiles], int]:
        """Run the stages from pages to tables."""
        budget = parse_memory(self.memory)

        def say(sentence: str) -> None:
            memory.stage = STAGE_OF.get(sentence.partition(":")[0], memory.stage)

        store = Store(
            folder=folder / "store",
            text=settings.text,
            scheme=settings.signature,
            engine=fitting(settings.engine, budget),
            memory=budget,
            say=say,
        )
        # the band of the experiment, whatever that of data=; without duplicates, to measure the join
        of = VectorSettings(idf_filter=IdfFilter(), sets=settings.sets, sameness=Sameness.off)
        found = store.match(Jsonl(path=str(folder / "pages")), settings.tau, of)
        pairs = found.pairs
        memory.stage = "clusters"
        clusters = cluster(pairs, clusters=settings.clusters)
        decisions = decide(pairs.chunks(), clusters, settings.keep, compared=found.compared())
        held = cohesion(clusters, pairs.chunks())
        memory.stage = "tables"
        end_workers()
        write_tables(folder, found.doc_ids, pairs, decisions, held)
        require(int(decisions.kept.sum()) == len(clusters.representatives), "one document of each cluster must stay")
        return found, int(np.count_nonzero(clusters.sizes > 1))

    def _extract_long(self, settings: Settings, folder: Path) -> dict[str, float]:
        """Measure the extraction of pages as long as crawled ones, which takes less time per byte than short ones."""
        pages = folder / "long"
        pages.mkdir()
        lines = _concatenated_pages(folder / "pages")
        for part in ("a", "b"):
            with (pages / f"{part}.jsonl").open("w", encoding="utf-8") as file:
                file.writelines(islice(lines, LONG_PAGES // 2))
        engine = fitting(settings.engine, parse_memory(self.memory))
        for trace in ("first.csv", "second.csv"):  # the first run starts the workers
            with TracedMemory(SAMPLE_SECONDS, folder / trace):
                extract_segments(
                    folder / f"segments-{trace}", Jsonl(path=str(pages)), settings.text, settings.signature, engine
                )
        found = {"bytes": _bytes_below(pages), "core_seconds": read_trace(folder / "second.csv")[-1].core_seconds}
        for used in (pages, folder / "segments-first.csv", folder / "segments-second.csv"):
            shutil.rmtree(used)
        for trace in ("first.csv", "second.csv"):
            (folder / trace).unlink()
        return found

    def _draw(self, work: Work, folder: Path) -> None:
        samples = read_trace(folder / "trace.csv")
        points = [Point(panel="", series=s.stage or "start", x=s.seconds, y=s.total / 1e6) for s in samples]
        budget = parse_memory(self.memory) / 1e6
        points += [Point(panel="", series="budget", x=seconds, y=budget) for seconds in (0.0, samples[-1].seconds)]
        panel = Panel(name="", x_label="seconds", y_label="MB, all processes", y_range=(0, 1.1 * budget))
        caption = f"Memory of all processes, {self.documents:,} pages under {self.memory}"
        work.lines(f"memory-{self.documents}", caption, [panel], points)


def _report(work: Work, facts: dict[str, Any]) -> str:
    """Write the stages of all sizes, and the plan; return both as text."""
    runs = sorted((read_json(path) for path in work.folder.glob("*/scale.json")), key=lambda run: run["documents"])
    rows = [row for run in runs for row in run["rows"]]
    note = (
        f"{facts['documents']:,} pages, {facts['input_bytes'] / 1e9:.2f} GB, {facts['pairs']:,} pairs, "
        f"{facts['clusters']:,} clusters; peak {facts['peak_bytes'] / 1e6:,.0f} MB of {facts['memory'] / 1e6:,.0f} MB"
    )
    core = facts["join_in_memory_core_seconds"]
    if core is not None:
        ratio = _seconds(facts, "join") / core if core else 0.0
        note += (
            f"; pairs equal to those of one join in memory, which takes {core:,.1f} core seconds: "
            f"{ratio:.1f} times as many on disk"
        )
    parts = [work.table(Table(caption="Throughput by stage", columns=COLUMNS, rows=rows, notes=[note]), "stages")]
    if len(runs) > 1:
        caption = f"Planned from the runs of {runs[-2]['documents']:,} and {runs[-1]['documents']:,} documents"
        note = (
            f"Extraction: core seconds a byte of pages of {PAGE_BYTES:,} bytes. Other stages: core "
            "seconds of the largest run, grown by the exponent between the two largest, at least 1. "
            f"{PRICE} dollars for a core hour."
        )
        parts.append(work.table(Table(caption=caption, columns=PLAN, rows=plan(runs), notes=[note]), "plan"))
    return "\n\n".join(parts)


def _write_pages(collection: Synthetic, folder: Path, engine: Engine) -> int:
    """Write the missing pages; return the bytes of all."""
    from tqdm import tqdm

    with tqdm(desc="writing", total=collection.documents, unit=" pages", disable=None, leave=False) as progress:
        for pages in write_jsonl(collection, folder / "pages", engine):
            progress.update(pages)
    return _bytes_below(folder / "pages")


def _concatenated_pages(folder: Path) -> Iterator[str]:
    """Concatenate the pages of a folder to pages of about `PAGE_BYTES`, as lines of JSON; the last may be shorter."""
    html: list[str] = []
    for path in sorted(folder.iterdir()):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                html.append(json.loads(line)["html"])
                if sum(map(len, html)) >= PAGE_BYTES:
                    yield json.dumps({"html": "".join(html)}) + "\n"
                    html = []
    if html:
        yield json.dumps({"html": "".join(html)}) + "\n"


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


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


def plan(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Extrapolate core hours and costs to `PLANNED` pages from the two largest runs; runs are sorted by size."""
    before, last = runs[-2:]
    rows: list[dict[str, Any]] = []
    for stage in STAGES:
        ratio = max(_seconds(last, stage), 1e-9) / max(_seconds(before, stage), 1e-9)
        exponent = max(1.0, float(np.log(ratio) / np.log(last["documents"] / before["documents"])))
        row: dict[str, Any] = {"stage": stage, "exponent": 1.0 if stage == "extract" else exponent}
        for documents in PLANNED:
            if stage == "extract":
                long = last["long_pages"]
                seconds = long["core_seconds"] / long["bytes"] * PAGE_BYTES * documents
            else:
                seconds = _seconds(last, stage) * (documents / last["documents"]) ** exponent
            row |= {f"hours_{documents}": seconds / 3600, f"cost_{documents}": seconds / 3600 * PRICE}
        rows.append(row)
    sums = {name: sum(row[name] for row in rows) for name in rows[0] if name not in ("stage", "exponent")}
    return [*rows, {"stage": "all", "exponent": None, **sums}]


def _seconds(run: dict[str, Any], stage: str) -> float:
    return next(float(row["core_seconds"]) for row in run["rows"] if row["stage"] == stage)


def _compare(found: Matched[Segments, PairFiles], tau: float) -> float:
    """Require that the pairs on disk equal those of a join in memory, bit for bit; return its core seconds."""
    from spotsigs.matching.prefix_join import self_join
    from spotsigs.records import Pairs, RowNumbers, Vectors

    vectors, pairs = found.vectors, found.pairs.load()
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
    expected = Pairs.build(found.rows[joined.i], found.rows[joined.j], joined.similarity, len(vectors))
    equal = all(np.array_equal(getattr(pairs, name), getattr(expected, name)) for name in ("i", "j", "similarity"))
    require(equal, "the pairs on disk differ from those of one join in memory: this is a fault of the program")
    return core
