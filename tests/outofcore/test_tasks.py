"""Stages of tasks: their log, and results that a stopped run resumes."""

import tempfile
import time
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest

from spotsigs.arrays import parallel
from spotsigs.arrays.parallel import concatenated
from spotsigs.storage.tasks import Job, ToFile, in_caller, resumable, run_tasks, task_log
from spotsigs.workers.engines import Processes, Serial


class Block(NamedTuple):
    job: Job
    number: int


@resumable("doubled")
def double(block, out):
    out.put("values", np.full(1000, 2 * block.number))
    out.facts = {"double": 2 * block.number}


def wait(seconds):
    time.sleep(seconds)
    return seconds


@pytest.mark.parametrize("engine", [Serial(), Processes(workers=2)])
def test_the_log_has_each_task_and_the_work_around_the_stages(engine, tmp_path):
    seconds = [0.05, 0.01, 0.02]
    with task_log() as log:
        with in_caller("preparing"):
            time.sleep(0.03)
        assert list(run_tasks(engine, wait, seconds, "waiting")) == seconds
    log.write(tmp_path / "tasks.parquet")
    rows = pq.read_table(tmp_path / "tasks.parquet").to_pylist()
    tasks = [row for row in rows if row["task"] >= 0]
    assert [(row["stage"], row["task"]) for row in tasks] == [("waiting", k) for k in range(3)]
    assert [row["seconds"] for row in tasks] == pytest.approx(seconds, abs=0.2)
    assert all(row["seconds"] >= wanted for row, wanted in zip(tasks, seconds, strict=True))
    assert {row["after"] for row in tasks} == {tasks[0]["step"] - 1}
    [prepared] = [row for row in rows if row["stage"] == "preparing"]
    assert 0.03 <= prepared["seconds"] < 0.3
    assert prepared["core_seconds"] < prepared["seconds"]
    assert [row["after"] for row in rows] == [row["step"] - 1 for row in rows]
    assert sum(row["seconds"] for row in rows) >= 0.11


def test_tasks_whose_results_are_there_are_skipped_and_marked(tmp_path):
    job = Job(folder=str(tmp_path / "job"))
    job.begin({"of": "one"})
    assert [facts["double"] for facts in run_tasks(Serial(), double, [Block(job, k) for k in range(2)], "a")] == [0, 2]
    job.begin({"of": "one"})
    with task_log() as log:
        facts = list(run_tasks(Serial(), double, [Block(job, k) for k in range(3)], "a"))
    assert [one["double"] for one in facts] == [0, 2, 4]
    assert [step.resumed for step in log.steps if step.task >= 0] == [True, True, False]
    assert [step.written_bytes >= 8000 for step in log.steps if step.task >= 0] == [False, False, True]
    np.testing.assert_array_equal(job.result("doubled", 2).whole("values", np.int64), np.full(1000, 4))


def test_results_of_other_input_are_deleted(tmp_path):
    job = Job(folder=str(tmp_path / "job"))
    job.begin({"of": "one"})
    double(Block(job, 1))
    job.begin({"of": "two"})
    assert [path.name for path in (tmp_path / "job").iterdir()] == ["job.json"]


def arrays_of(number):
    """Return arrays of several types and sizes, empty ones too."""
    return {"a": np.full(50_000, number), "b": np.arange(number, dtype=np.int16), "names": ("x", number)}


@pytest.mark.parametrize("engine", [Serial(), Processes(workers=2)])
def test_arrays_of_workers_arrive_as_they_are_and_leave_no_file(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    results = list(run_tasks(engine, arrays_of, list(range(9)), "making", arrays=True))
    for number, result in enumerate(results):
        expected = arrays_of(number)
        assert result["names"] == expected["names"]
        for name in ("a", "b"):
            np.testing.assert_array_equal(result[name], expected[name])
            assert result[name].dtype == expected[name].dtype
            assert result[name].flags.aligned
            result[name][:1] = 0  # as of an array of this process
    assert not list(tmp_path.iterdir())


def test_arrays_are_sent_without_files_where_none_can_be_written(tmp_path):
    result = ToFile(arrays_of, str(tmp_path / "missing"), caller=0)(3)
    np.testing.assert_array_equal(result["a"], arrays_of(3)["a"])


def test_large_columns_are_concatenated_like_small_ones(monkeypatch):
    parts = [(np.arange(k, dtype=np.uint64), np.full(k, k, np.int32)) for k in (0, 5, 1, 300)]
    expected = concatenated(parts, (np.uint64, np.int32))
    monkeypatch.setattr(parallel, "LARGE", 0)
    for one, other in zip(concatenated(parts, (np.uint64, np.int32)), expected, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    assert concatenated([], (np.int16,))[0].dtype == np.int16
