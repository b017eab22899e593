"""Cached results of experiments, and times of a quiet machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from folders import FOLDERS
from runs import configured, read

from experiments.harness import finished_cells
from experiments.harness import machine_load as measure
from experiments.harness.extracted_collections import Source, read_together
from experiments.harness.finished_cells import CellTask, FinishedCells, PatientProcesses
from experiments.harness.machine_load import ForeignLoad
from experiments.harness.timing import TimedCell, TimedExtraction, cost, quotient
from spotsigs.contracts import Matcher
from spotsigs.matching.algorithm1 import SpotSigs
from spotsigs.method import Method
from spotsigs.records import Pairs
from spotsigs.runs.result import Result
from spotsigs.runs.stages import Output, Run, compute
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.workers.engines import Serial

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Squared(CellTask):
    """Leaves a trace of every call, so that a test sees what was computed again."""

    number: int
    trace: Path
    seconds: float = 0

    def __call__(self):
        with self.trace.open("a") as file:
            file.write(f"{self.number}\n")
        time.sleep(self.seconds)
        return {"square": self.number * self.number}


@dataclass(frozen=True)
class Matched(CellTask):
    matcher: Matcher

    def __call__(self):
        return {}


@dataclass(frozen=True)
class Disturbed(CellTask):
    trace: Path

    def __call__(self):
        with self.trace.open("a") as file:
            file.write("run\n")
        return {"contended": len(self.trace.read_text().splitlines()) < 2}


@dataclass(frozen=True)
class Asleep(CellTask):
    alone = True

    seconds: float
    limit: float | None = field(default=None, repr=False)

    def __call__(self):
        time.sleep(self.seconds)
        return {"contended": False}


class TestFinishedCells:
    def tasks(self, trace, numbers):
        return [Squared(n, trace) for n in numbers]

    def test_finished_cells_are_not_computed_again(self, tmp_path):
        trace = tmp_path / "trace"
        finished = FinishedCells(folder=tmp_path / "cells", workers=1)
        assert [v["square"] for v in finished.of(self.tasks(trace, [3, 4]), "first")] == [9, 16]
        assert [v["square"] for v in finished.of(self.tasks(trace, [4, 5, 3, 5]), "more")] == [16, 25, 9, 25]
        assert Counter(trace.read_text().split()) == {"3": 1, "4": 1, "5": 1}
        assert [record["arguments"]["number"] for record in finished.log] == ["3", "4", "4", "5", "3", "5"]
        assert [record["kept"] for record in finished.log] == [False, False, True, False, True, False]
        [damaged] = self.tasks(trace, [3])
        finished.path(damaged).write_text("{")
        assert finished.of([damaged], "again") == [{"square": 9}]
        assert trace.read_text().split().count("3") == 2

    def test_workers_give_the_same(self, tmp_path):
        values = FinishedCells(folder=tmp_path / "cells", workers=2).of(
            self.tasks(tmp_path / "trace", range(6)), "pool"
        )
        assert [v["square"] for v in values] == [0, 1, 4, 9, 16, 25]

    def test_the_key_depends_on_attributes_and_code(self, tmp_path):
        one, other = self.tasks(tmp_path, [1, 2])
        assert one.key() != other.key()
        assert one.key() == self.tasks(tmp_path, [1])[0].key()
        assert Asleep(1, limit=2).key() == Asleep(1, limit=3).key()
        assert "machine" in Asleep(1).key().keys() - one.key().keys()
        of_lsh = Matched(configured("data=tiny", "matcher=lsh_native").method.matcher)
        assert of_lsh.key()["code"] != Matched(SpotSigs(tau=0.9)).key()["code"]

    def test_a_disturbed_time_does_not_count_as_finished(self, tmp_path):
        finished = FinishedCells(folder=tmp_path / "cells", workers=1)
        task = Disturbed(tmp_path / "trace")
        contended = [finished.of([task], "disturbed")[0]["contended"] for _ in range(3)]
        assert contended == [True, False, False]
        assert len((tmp_path / "trace").read_text().splitlines()) == 2

    def test_a_task_is_stopped_at_its_limit(self, tmp_path):
        finished = FinishedCells(folder=tmp_path / "cells", workers=1)

        def run(limit, seconds):
            return finished.of([Asleep(seconds, limit)], "alone")

        began = time.monotonic()
        assert run(1.0, 20) == run(0.5, 20) == [{"over_s": 1.0}]
        assert time.monotonic() - began < 15
        assert run(2.0, 20) == [{"over_s": 2.0}]

    def test_a_killed_run_continues(self, tmp_path):
        program = (
            "import sys; from pathlib import Path; sys.path[:0] = {folders!r}\n"
            "from experiments.harness.finished_cells import FinishedCells\n"
            "from test_cells import Squared\n"
            "tasks = [Squared(n, Path({trace!r}), .15) for n in range(8)]\n"
            "print(sum(v['square'] for v in FinishedCells(folder=Path({cells!r}), workers=1).of(tasks, 'slow')))\n"
        ).format(folders=[str(ROOT), *FOLDERS], trace=str(tmp_path / "trace"), cells=str(tmp_path / "cells"))
        first = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        while len(list((tmp_path / "cells").glob("Squared-*.json"))) < 3 and first.poll() is None:
            time.sleep(0.01)
        first.kill()
        first.wait()
        done = len(list((tmp_path / "cells").glob("Squared-*.json")))
        assert done < 8
        before = len((tmp_path / "trace").read_text().split())
        second = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert second.stdout.split() == [str(sum(n * n for n in range(8)))]
        assert len((tmp_path / "trace").read_text().split()) - before == 8 - done


def process_of(number):
    return number, os.getpid()


def busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return os.getpid()


class TestPatientProcesses:
    def test_short_tasks_start_no_workers(self):
        ended = list(PatientProcesses(workers=2).map(process_of, range(5)))
        assert ended == [(number, os.getpid()) for number in range(5)]

    def test_workers_run_the_rest_of_long_ones(self, monkeypatch):
        """The estimate is from the second task, since the first one loads the kernels."""
        estimated = []
        monkeypatch.setattr(finished_cells, "is_worth_a_pool", lambda costs, workers: not estimated.append(len(costs)))
        monkeypatch.setattr("spotsigs.workers.engines.all_cores", lambda: 2)
        numbers, processes = zip(*PatientProcesses(workers=2).map(process_of, range(6)), strict=True)
        assert (numbers, estimated) == (tuple(range(6)), [4])
        assert [process == os.getpid() for process in processes] == 2 * [True] + 4 * [False]

    def test_workers_for_later_tasks_start_while_tasks_run_that_take_as_long(self, monkeypatch):
        started = []
        monkeypatch.setattr(PatientProcesses, "start", lambda self, module: started.append(module))
        monkeypatch.setattr("spotsigs.workers.engines.all_cores", lambda: 2)
        monkeypatch.setattr(finished_cells, "START_SECONDS", 0.8)
        patient = PatientProcesses(workers=2, later="module")
        assert list(patient.map(busy, [0.01] * 6)) == [os.getpid()] * 6
        assert started == []
        assert list(patient.map(busy, [0.1] * 6)) == [os.getpid()] * 6
        assert started == ["module"]


@dataclass(frozen=True, kw_only=True)
class WithoutStages(Matcher):
    label = "without stages (unverified)"
    measure = "size"

    def __call__(self, corpus):
        same = np.flatnonzero(np.diff(corpus.vectors.lengths) == 0).astype(np.int32)
        return Pairs(same, same + 1, np.full(len(same), np.nan), len(corpus.vectors))


def stored_vectors(folder):
    return read(Source(collection=configured("data=wt10g_like", "data.documents=2000").collection), folder, Serial())


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return stored_vectors(tmp_path_factory.mktemp("stored"))


class TestTiming:
    @pytest.fixture(autouse=True)
    def short(self, monkeypatch):
        for name in ("BATCH_SECONDS", "ENOUGH_SECONDS", "PATIENCE_SECONDS"):
            monkeypatch.setattr(measure, name, 0.01)

    def test_a_cell_has_times_memory_and_recall(self, stored):
        matcher = SpotSigs(tau=0.9, threads=1)
        cell = TimedCell(stored=stored, method=Method(matcher=matcher), repeats=2, base=SpotSigs(tau=1.0))()
        vectors = stored.extracted().vectors
        assert cell["relative_recall"] == 1
        assert cell["total_ms"] > 0
        assert cell["documents"] == len(vectors) == 2000
        assert cell["memory_mib"] == pytest.approx((len(vectors.ids) * 10 + 2000 * 4) / 2**20)
        assert cell["peak_mb"] > 20
        assert min(cell["runs_ms"]) <= cell["total_ms"] <= max(cell["runs_ms"])
        assert cell["contended"] == all(cores > 0.2 for cores in cell["foreign_cores"])
        json.dumps(cell)

    def test_a_matcher_without_stages_has_the_time_of_the_whole(self, stored):
        """Its pairs have no seconds: the comparison of a plug-in ended with a KeyError."""
        cell = TimedCell(stored=stored, method=Method(matcher=WithoutStages()), repeats=1)()
        assert 0 == cell["sort_hash_ms"] < cell["cluster_ms"] == cell["total_ms"]

    def test_the_time_of_extraction(self):
        chosen = configured("data=tiny")
        source = Source(collection=chosen.collection, text=chosen.method.text, signature=SpotSignatures())
        assert TimedExtraction(source=source)()["parse_ms"] > 0

    def test_disturbed_times_give_no_ratio_and_stopped_runs_a_lower_bound(self):
        clean = {"contended": False, "total_ms": 10.0, "runs_ms": [8.0, 10.0, 12.0], "sort_hash_ms": 4.0}
        assert quotient("x", clean | {"contended": True}, clean) is None
        ratio = quotient("x", clean | {"total_ms": 30.0, "runs_ms": [24.0, 30.0, 36.0]}, clean)
        assert (ratio.value, ratio.low, ratio.high) == (3.0, 2.0, 4.5)
        assert quotient("x", clean, clean, "sort_hash_ms").value == 1
        ratio_of_stopped = quotient("x", {"over_s": 0.06}, clean)
        assert (ratio_of_stopped.value, str(ratio_of_stopped)) == (6, "over 6")
        assert quotient("x", clean, {"over_s": 60.0}) is None
        assert cost({"over_s": 60.0})["total_ms"] == "over 60 s"

    def test_vectors_are_read_as_they_were_written(self, stored, tmp_path):
        drawn, kept = stored.source.collection.vectors(), stored.extracted().vectors
        np.testing.assert_array_equal(kept.ids, drawn.ids)
        np.testing.assert_array_equal(kept.counts, drawn.counts)
        assert repr(stored) == repr(again := stored_vectors(tmp_path))
        assert str(tmp_path) not in repr(again)


def test_a_changed_file_is_read_again(tmp_path):
    pages = tmp_path / "pages" / "one"
    pages.mkdir(parents=True)
    (pages / "a.html").write_text("<p>The first page is about the river and a bridge</p>")
    chosen = configured("data=folder", f"data.path={tmp_path / 'pages'}")
    source = Source(collection=chosen.collection, text=chosen.method.text, signature=SpotSignatures())
    first = read(source, tmp_path / "cells", Serial())
    assert read(source, tmp_path / "cells", Serial()).path == first.path
    (pages / "b.html").write_text("<p>The second page is about the sea and a ship</p>")
    second = read(source, tmp_path / "cells", Serial())
    assert second.checksum != first.checksum
    assert len(second.signatures()) == 2


@pytest.mark.parametrize("schemes", [1, 2])
def test_stored_signatures_are_decided_as_those_of_a_run(tmp_path, schemes):
    """A page stays for its text in sweeps and experiments, too."""
    pages = [" ".join(f"the {name}{k} w{k} {name}{k} x{k} {name}{k} y{k}." for k in range(80)) for name in "ab"]
    (tmp_path / "pages.jsonl").write_text("".join(json.dumps({"id": str(k), "text": pages[k]}) + "\n" for k in (0, 1)))
    for least in (0, 0.3):
        chosen = configured("data=jsonl", f"data.path={tmp_path / 'pages.jsonl'}", f"min_contained={least}")
        source = Source.of(chosen.collection, chosen.method)
        others = [replace(source, signature=SpotSignatures(d=1))] * (schemes - 1)
        stored, *_ = read_together([source, *others], tmp_path / "cells", Serial())
        run = Run(collection=chosen.collection, data="pages", output=Output(folder=tmp_path))
        direct = compute(chosen.method, run).decisions
        matched = stored.prepare_join(chosen.method).match(chosen.method.matcher)
        of_store = Result.of(chosen.method, "pages", chosen.collection, matched).decisions
        assert direct.kept.tolist() == of_store.kept.tolist() == [True, least == 0.3]


def test_waiting_for_a_quiet_machine_is_told_once_and_has_an_end(monkeypatch, capsys):
    monkeypatch.setattr(measure.time, "sleep", lambda _: None)
    monkeypatch.setattr(measure.ForeignLoad, "__exit__", lambda load, *_: setattr(load, "cores", 1.5))
    clock = iter(range(0, 10_000, 100))
    monkeypatch.setattr(measure.time, "perf_counter", lambda: next(clock))
    patience = measure.Patience(600.0)
    for _ in range(3):
        patience.wait()
    assert patience.left <= 0
    [sentence] = capsys.readouterr().err.splitlines()
    assert sentence.startswith("other processes use 1.5 cores, and times are measured on a quiet machine: waiting")
    assert "up to 10 min in all; timing=now does not wait" in sentence


def test_foreign_load_is_that_of_the_machine_less_our_own(monkeypatch):
    busy, own = iter([10.0, 16.0]), iter([1.0, 3.0])
    monkeypatch.setattr(measure.psutil, "cpu_times", lambda: SimpleNamespace(user=next(busy), idle=1e9))
    monkeypatch.setattr(measure, "own_seconds", lambda: next(own))
    clock = iter([100.0, 104.0])
    monkeypatch.setattr(measure.time, "perf_counter", lambda: next(clock))
    with ForeignLoad() as load:
        pass
    assert load.cores == 1.0  # (6 busy - 2 of ours) / 4 seconds


def test_foreign_load_does_not_count_our_workers():
    worker = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        before, began = measure.own_seconds(), time.perf_counter()
        while measure.own_seconds() - before < 0.2:
            assert time.perf_counter() - began < 30, "the worker's CPU time is not counted as ours"
            time.sleep(0.05)
    finally:
        worker.kill()
        worker.wait()
