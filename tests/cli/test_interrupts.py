"""Ctrl-C at any moment: no traceback, results in place or none, and the same command works afterwards."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from spotsigs import terminal
from spotsigs.spelling import command_spelling

ROOT = Path(__file__).parents[2]
TINY = ROOT / "data" / "tiny"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no process groups")


def started(cwd, *words):
    return subprocess.Popen(
        [sys.executable, "-m", "spotsigs", *map(str, words)], cwd=cwd, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def finished(path):
    return (path / "kept-results" / "metrics.json").exists(), (path / "kept").exists()


def interrupt_at(folder, seconds):
    """Interrupt a run and its workers at a time, as a terminal does; repeat the command."""
    words = ("dedup", TINY, "--out", "kept", "--workers", 2)
    run = started(folder, *words)
    time.sleep(seconds)
    began = time.monotonic()
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert time.monotonic() - began < 6, (seconds, err)
    assert "Traceback" not in err, (seconds, err)
    assert finished(folder) in ((True, True), (False, False)), seconds
    assert run.returncode in (0, 130, -signal.SIGINT), (seconds, run.returncode, err)
    if run.returncode == 0:
        assert finished(folder) == (True, True)
        assert "kept ->" in out
    else:
        assert finished(folder) == (False, False), seconds
        again = started(folder, *words)
        _, err = again.communicate(timeout=120)
        assert again.returncode == 0, (seconds, err)
    assert not list(folder.glob(".*.writing-*"))
    shutil.rmtree(folder)
    folder.mkdir()
    return run.returncode


@pytest.fixture
def duration(tmp_path):
    """Seconds of an undisturbed run."""
    (tmp_path / "whole").mkdir()
    for _ in range(2):  # the first one compiles
        began = time.monotonic()
        run = started(tmp_path / "whole", "dedup", TINY, "--out", "kept", "--workers", 2, "--overwrite")
        _, err = run.communicate(timeout=300)
        assert run.returncode == 0, err
    return time.monotonic() - began


def test_some_interrupts(tmp_path, duration):
    (tmp_path / "run").mkdir()
    for share in (0.05, 0.5, 0.97):
        interrupt_at(tmp_path / "run", share * duration)


@pytest.mark.long
def test_twenty_interrupts_at_random_times(tmp_path, duration):
    (tmp_path / "run").mkdir()
    rng = random.Random(29)
    codes = [interrupt_at(tmp_path / "run", rng.uniform(0.03, 1.02) * duration) for _ in range(20)]
    sys.stdout.write(f"{duration:.1f} s a run; exit codes {codes}\n")


def test_an_interrupt_waits_until_results_are_in_place():
    """It came between the copy and its tables: the copy was there, and the same command refused."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with terminal.uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with command_spelling(), terminal.uninterrupted():
            pass
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # a command is finished then
    finally:
        signal.signal(signal.SIGINT, former)


def test_another_thread_can_put_results_in_place():
    done = []

    def work():
        with terminal.uninterrupted():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
