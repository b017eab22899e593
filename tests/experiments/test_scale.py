"""Made-up pages, and runs at scale: deterministic, within the budget, resumable, and measured as they say."""

import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from strategies import is_long

from data.collections.synthetic import BLOCK, Synthetic, write_jsonl
from experiments.studies.scale import PLANNED, STAGES, growth, plan, read_trace, stage_rows
from spotsigs.engines import Serial
from spotsigs.errors import InputError
from spotsigs.output_files import read_json
from spotsigs.records import Document
from spotsigs.runs.provenance import TreeMemory

ROOT = Path(__file__).parents[2]


def test_pages_do_not_depend_on_order_or_shards():
    whole = Synthetic(documents=500, a_shard=500)
    parts = Synthetic(documents=500, a_shard=7)
    one, other = ([record for shard in c.shards() for record in shard()] for c in (whole, parts))
    assert one == other == [whole.page(k) for k in range(500)]
    assert len({page.id for page in one}) == 500
    assert all(isinstance(page, Document) for page in one)
    assert one != [Synthetic(documents=500, seed=1).page(k) for k in range(500)]
    stories = pd.Series([page.cluster for page in one]).value_counts()
    assert 2 < stories.max() <= BLOCK
    assert (stories == 1).sum() > 50
    lengths = np.array([len(page.content) for page in one])
    assert np.percentile(lengths, 95) > 2 * np.median(lengths)


def test_files_that_are_there_stay(tmp_path):
    pages = Synthetic(documents=90)
    written = write_jsonl(pages, tmp_path, Serial(), a_file=40)
    assert next(written) == 40
    [first] = tmp_path.iterdir()
    stamp = first.stat().st_mtime_ns
    assert list(write_jsonl(pages, tmp_path, Serial(), a_file=40)) == [40, 40, 10]
    assert first.stat().st_mtime_ns == stamp
    assert sum(len(path.read_text().splitlines()) for path in tmp_path.iterdir()) == 90


def test_what_is_planned_grows_from_the_two_largest_runs():
    def measured(documents, **seconds):
        rows = [{"stage": stage, "core_seconds": seconds.get(stage, documents / 1e4)} for stage in STAGES]
        long_pages = {"bytes": 10**8, "core_seconds": 4.0}
        return {"documents": documents, "input_bytes": 5000 * documents, "rows": rows, "long_pages": long_pages}

    rows = plan([measured(10**5, join=1.0, tables=10.0), measured(10**6, join=100.0, tables=10.0)])
    found = {row["stage"]: row for row in rows}
    assert {stage: round(row["exponent"], 6) for stage, row in found.items() if stage != "all"} == {
        "extract": 1, "layout": 1, "join": 2, "clusters": 1, "tables": 1,
    }  # fmt: skip
    assert PLANNED[0] == 10**9
    hours = {stage: row[f"hours_{10**9}"] for stage, row in found.items()}
    assert hours["extract"] == pytest.approx(1e9 * 50_000 / (1e8 / 4.0) / 3600)  # as long pages are extracted
    assert hours["join"] == pytest.approx(100 * 1e6 / 3600)
    assert hours["tables"] == pytest.approx(10 * 1e3 / 3600)
    assert hours["all"] == pytest.approx(sum(hours[stage] for stage in STAGES))
    assert found["all"][f"cost_{10**9}"] == pytest.approx(0.04 * hours["all"])


@pytest.mark.parametrize("wrong", [{"documents": 0}, {"words": 3}, {"seed": -1}, {"a_shard": 0}])
def test_parameters(wrong):
    with pytest.raises(InputError):
        Synthetic(**wrong)


def test_memory_of_stages_is_traced(tmp_path, monkeypatch):
    monkeypatch.setattr("psutil.Process.children", lambda self, recursive: [])  # idle workers of earlier tests
    with TreeMemory(0.01, tmp_path / "trace.csv") as memory:
        memory.stage = "extract"
        with mmap.mmap(-1, 40_000_000) as fresh:  # an array might lie in memory that earlier tests left
            fresh.write(b"1" * 40_000_000)
            time.sleep(0.5)
        memory.stage = "join"
    samples = read_trace(tmp_path / "trace.csv")
    assert {sample.stage for sample in samples} == {"", "extract", "join"}
    assert memory.peak_bytes == max(sample.total for sample in samples)
    largest = max(sample.total for sample in samples if sample.stage == "extract")
    assert largest - samples[0].total > 30_000_000
    with (tmp_path / "trace.csv").open("a") as file:
        file.write("0.0,join,1,100,0.0\n0.5,join,1,100,0.5\n1.5,layout,1,200,2.5\n1.7,la")  # a second attempt, killed
    rows = {row["stage"]: row for row in stage_rows(tmp_path / "trace.csv", 300, 6_000_000)}
    assert rows["layout"]["seconds"] == pytest.approx(1)
    assert rows["layout"]["core_seconds"] == pytest.approx(2)
    assert rows["layout"]["documents_a_second"] == pytest.approx(300)
    assert rows["layout"]["megabytes_a_second"] == pytest.approx(6)
    assert rows["all"]["seconds"] == pytest.approx(samples[-1].seconds + 1.5, abs=1e-6)
    assert rows["tables"]["documents_a_second"] is None


@pytest.mark.long
def test_a_small_run_and_its_growth(tmp_path):
    asked = ["experiment=scale", "engine=serial", f"experiment.results={tmp_path}", "experiment.memory=1GB"]
    for size in (300, 300, 600) if is_long() else (300, 600):
        more = [f"experiment.documents={size}", f"experiment.keep={str(size == 300).lower()}"]
        command = [sys.executable, "run.py", *asked, *more]  # a process of its own: its memory is what is measured
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        told = done.stdout
        facts = read_json(tmp_path / "scale" / f"{size:010d}" / "scale.json")
        assert facts["equal_to_memory"] is True
        assert facts["peak_bytes"] < 10**9
        pairs = pd.read_parquet(tmp_path / "scale" / f"{size:010d}" / "pairs.parquet")
        assert len(pairs) == facts["pairs"] > 50
        assert (tmp_path / "scale" / f"{size:010d}" / "store").exists() == (size == 300)
        assert (tmp_path / "scale" / f"memory-{size}.svg").exists()
    assert "Growth from 300 to 600 documents" in told
    assert "pairs equal to those of one join in memory" in told


def test_exponents():
    def run(n):
        rows = [
            {"stage": stage, "core_seconds": n**2 / 1e6} for stage in "extract layout join clusters tables all".split()
        ]
        return {
            "documents": n,
            "rows": rows,
            "pairs": n,
            "segment_bytes": 5 * n,
            "vector_bytes": n**1.5,
            "tasks": 0,
        } | {"peak_bytes": 7}

    found = {row["quantity"]: row["exponent"] for row in growth([run(10), run(100), run(1000)])}
    assert found["core seconds of join"] == pytest.approx(2)
    assert found["bytes of signatures"] == pytest.approx(1)
    assert found["bytes of vectors"] == pytest.approx(1.5)
    assert found["peak bytes"] == pytest.approx(0)
    assert found["tasks of the join"] is None


@pytest.mark.long
def test_a_killed_run_goes_on(tmp_path):
    command = [sys.executable, str(ROOT / "run.py"), "experiment=scale", "workers=2", "debug=true"]
    command += [f"experiment.results={tmp_path}", "experiment.documents=20000", "experiment.keep=true"]
    folder = tmp_path / "scale" / "0000020000"
    first = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    while len(list(folder.glob("store/segments/000000/*/store.json"))) < 3:
        assert first.poll() is None
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    done = {path: path.stat().st_mtime_ns for path in folder.glob("store/segments/000000/*/store.json")}
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "pairs equal to those of one join in memory" in result.stdout
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in done.items())
    assert read_json(folder / "scale.json")["peak_bytes"] < 2 * 10**9
