"""Generated pages, and runs at scale: deterministic, and within the budget."""

import mmap
import time

import numpy as np
import pandas as pd
import pytest
from in_process import process

from data.collections.synthetic import BLOCK, Synthetic, write_jsonl
from experiments.harness.machine_load import TracedMemory
from experiments.studies.scale import read_trace, stage_rows
from spotsigs.errors import InputError
from spotsigs.records import Document
from spotsigs.reports.output_files import read_json
from spotsigs.workers.engines import Serial


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


@pytest.mark.parametrize("wrong", [{"documents": 0}, {"words": 3}, {"seed": -1}, {"a_shard": 0}])
def test_parameters(wrong):
    with pytest.raises(InputError):
        Synthetic(**wrong)


def test_memory_of_stages_is_traced(tmp_path, monkeypatch):
    monkeypatch.setattr("psutil.Process.children", lambda self, recursive: [])  # idle workers of earlier tests
    with TracedMemory(0.01, tmp_path / "trace.csv") as memory:
        memory.stage = "extract"
        with mmap.mmap(-1, 40_000_000) as fresh:  # an array might be in memory that earlier tests left
            fresh.write(b"1" * 40_000_000)
            time.sleep(0.5)
        memory.stage = "join"
    samples = read_trace(tmp_path / "trace.csv")
    assert {sample.stage for sample in samples} == {"", "extract", "join"}
    assert memory.peak_bytes == max(sample.total for sample in samples)
    largest = max(sample.total for sample in samples if sample.stage == "extract")
    assert largest - samples[0].total > 30_000_000
    lines = ["0.0,,1,100,0.0", "1.0,layout,1,100,1.0", "2.0,layout,1,200,3.0", "2.5,join,1,100,3.5"]
    (tmp_path / "trace.csv").write_text("\n".join(lines) + "\n")
    rows = {row["stage"]: row for row in stage_rows(tmp_path / "trace.csv", 300, 6_000_000)}
    assert (rows["layout"]["seconds"], rows["layout"]["core_seconds"]) == (2, 3)
    assert rows["layout"]["documents_a_second"] == pytest.approx(150)
    assert rows["layout"]["megabytes_a_second"] == pytest.approx(3)
    assert rows["all"]["seconds"] == pytest.approx(2.5)
    assert rows["tables"]["documents_a_second"] is None


@pytest.mark.long
def test_a_small_run(tmp_path):
    words = ["experiment=scale", "engine=serial", f"experiment.results={tmp_path}", "experiment.given.memory=1GB"]
    # a process of its own: its memory is what is measured
    done = process(*words, "experiment.given.documents=[600,700]", program=["run.py"])
    assert done.returncode == 0, done.stderr
    for documents in (600, 700):
        facts = read_json(tmp_path / f"scale/scale-{documents}.json")
        assert facts["peak_bytes"] < 10**9
        assert facts["pairs"] > 50
        assert all(row["seconds"] > 0 for row in facts["rows"])
    assert not (tmp_path / "scale/pages").exists()
    speedup = pd.read_csv(tmp_path / "scale" / "speedup.csv")
    assert speedup.workers.tolist() == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000] * 2
    assert speedup.groupby("documents").simulated_s.is_monotonic_decreasing.all()
    assert (speedup[speedup.workers == 1].measured_s > 0).all()
    assert pd.read_csv(tmp_path / "scale" / "plan.csv").iloc[-1]["stage"] == "all"
    assert (tmp_path / "scale" / "memory-600.svg").exists()
    assert "pairs equal to the pairs of one join in memory" in " ".join(done.stdout.split())
