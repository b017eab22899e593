"""Several runs on one store at once, and workers whose parent ends in any way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import psutil
import pytest
from in_process import started
from runs import logged
from stores import run, stories, written
from test_engines import needs

from spotsigs.storage.atomic import store_lock
from spotsigs.storage.store import claim


def test_a_run_that_waits_for_a_store_logs_it(tmp_path):
    collection = written(tmp_path / "x.jsonl", stories(20))
    with logged() as lines:
        with store_lock(tmp_path / "store"):
            other = threading.Thread(target=run, args=(tmp_path / "store", collection))
            other.start()
            until = time.monotonic() + 60
            while not lines[1:] and time.monotonic() < until:
                time.sleep(0.01)
            assert lines[1:] == [f"waiting for another run that works on the store {tmp_path / 'store'}"]
            assert not (tmp_path / "store" / "segments").exists()
        other.join()
    assert (tmp_path / "store" / "vectors" / "store.json").exists()


@pytest.mark.parametrize("remote", [False, True])
def test_of_two_claims_the_first_one_stays(remote, tmp_path, monkeypatch):
    """Both have looked before either has written, as without a lock."""
    if remote:
        pytest.importorskip("upath")
    from spotsigs.storage import locations

    folder = locations.as_path(f"memory://claims-{os.getpid()}/x") if remote else tmp_path / "x"
    assert claim(folder, "facts.json", {"who": "one"}) == []
    monkeypatch.setattr(locations, "exists", lambda path: False)
    monkeypatch.setattr("spotsigs.storage.store.is_empty", lambda path: True)
    monkeypatch.setattr(locations, "sizes", lambda path: {})
    assert claim(folder, "facts.json", {"who": "two"}) == ["who"]
    assert claim(folder, "facts.json", {"who": "one"}) == []


# parents that end

WORKING = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
from spotsigs.workers.engines import Dask, Processes

def work(task):
    import os, time
    print(f"{os.getpid()}\\n", end="", flush=True)  # one write, even with PYTHONUNBUFFERED: others write there, too
    time.sleep(0.2 if task < 4 else 600)
    return task

if __name__ == "__main__":
    engine = {"processes": Processes, "dask": Dask}[sys.argv[1]](workers=2)
    for task in engine.map(work, range(12)):
        print(f"done {task}\\n", end="", flush=True)
"""

ENGINES = [
    "processes", pytest.param("dask", marks=needs("distributed"))
]  # fmt: skip


@pytest.fixture
def working(request, tmp_path):
    """Start a process whose workers work, and yield it and all that it has started."""
    with (tmp_path / "out").open("w") as out:
        process = started("-c", WORKING, request.param, program=(), stdout=out, stderr=out, start_new_session=True)
    children = []
    try:
        until = time.monotonic() + 120
        while "done 3" not in (tmp_path / "out").read_text() and time.monotonic() < until:
            assert process.poll() is None, (tmp_path / "out").read_text()
            time.sleep(0.1)
        time.sleep(1)
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) >= 2
        yield process, children
    finally:
        for one in [process, *children]:
            with suppress(psutil.Error, ProcessLookupError):
                one.kill()
        process.wait()


def check_listeners(processes):
    listening = []
    for one in processes:
        with suppress(psutil.Error):
            connections = [each for each in one.net_connections("inet") if each.status == psutil.CONN_LISTEN]
            listening += [(one.name(), connection.laddr.ip) for connection in connections]
    assert {address for _, address in listening} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}, listening


ENDINGS = [
    pytest.param(number, whole, marks=[] if (number, whole) == ("SIGKILL", False) else [pytest.mark.long])
    for whole in (False, True)
    for number in ("SIGTERM", "SIGHUP", "SIGINT", "SIGKILL")
    if not (whole and number == "SIGKILL")  # no process remains
]


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize(("number", "whole"), ENDINGS)
@pytest.mark.parametrize("working", ENGINES, indirect=True)
def test_no_worker_outlives_its_parent_by_five_seconds(working, number, whole):
    """The signal goes to the parent, or to its whole group, as a terminal's does; none listens to other machines."""
    process, children = working
    check_listeners([psutil.Process(process.pid), *children])
    (os.killpg if whole else os.kill)(process.pid, signal.Signals[number])
    process.wait(timeout=30)
    _, alive = psutil.wait_procs(children, timeout=5)
    assert alive == []


MEASURING = """
import sys, time
from pathlib import Path
from dataclasses import dataclass
from experiments.harness.finished_cells import CellTask, FinishedCells

@dataclass(frozen=True)
class Measured(CellTask):
    alone = True

    def __call__(self):
        print("measuring", flush=True)
        time.sleep(600)

if __name__ == "__main__":
    FinishedCells(folder=Path(sys.argv[1])).of([Measured()], "alone")
"""


@pytest.mark.timeout(120)
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_the_process_of_a_measurement_ends_with_its_parent(tmp_path):
    process = started("-c", MEASURING, tmp_path, program=(), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "measuring\n"
        children = psutil.Process(process.pid).children(recursive=True)
        assert children
        process.kill()
        _, alive = psutil.wait_procs(children, timeout=5)
        assert alive == []
    finally:
        process.kill()
        process.communicate()


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize("number", ["SIGTERM", "SIGHUP", "SIGINT"])
@pytest.mark.parametrize("working", ["processes"], indirect=True)
def test_a_signal_to_a_worker_ends_nothing_else_or_everything(working, number, tmp_path):
    process, children = working
    workers = [child for child in children if "resource_tracker" not in " ".join(child.cmdline())]
    before = (tmp_path / "out").read_text().count("\n")
    workers[0].send_signal(signal.Signals[number])
    until = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < until:
        if (tmp_path / "out").read_text().count("\n") > before:
            return  # the task runs again
        time.sleep(0.1)
    if number == "SIGINT" and process.poll() is None:
        assert all(worker.is_running() for worker in workers)  # the terminal's signal is the parent's to answer
        return
    assert process.poll() is not None
    _, alive = psutil.wait_procs(children, timeout=5)
    assert alive == []
