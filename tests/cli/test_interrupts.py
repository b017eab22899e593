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


def interrupt_at(folder, seconds, sent=signal.SIGINT):
    """Send a signal to a run and its workers at a time, as a terminal does; repeat the command."""
    words = ("dedup", TINY, "--out", "kept", "--workers", 2)
    run = started(folder, *words)
    time.sleep(seconds)
    began = time.monotonic()
    (os.killpg if sent is signal.SIGINT else os.kill)(run.pid, sent)
    out, err = run.communicate(timeout=60)
    assert time.monotonic() - began < 6, (seconds, err)
    assert "Traceback" not in err, (seconds, err)
    assert run.returncode in (0, 128 + sent, -sent), (seconds, run.returncode, err)
    if run.returncode == 0:
        assert finished(folder) == (True, True)
        assert "kept ->" in out
    else:
        assert not list(folder.iterdir()), seconds
        if run.returncode > 0:
            assert err.splitlines()[-1] == terminal.STOPPED
        again = started(folder, *words)
        _, err = again.communicate(timeout=120)
        assert again.returncode == 0, (seconds, err)
    assert sorted(path.name for path in folder.iterdir()) == ["kept", "kept-results"]
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
    for share, sent in ((0.05, signal.SIGINT), (0.5, signal.SIGINT), (0.6, signal.SIGTERM), (0.97, signal.SIGINT)):
        interrupt_at(tmp_path / "run", share * duration, sent)


@pytest.mark.long
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_twenty_signals_at_random_times(tmp_path, duration, sent):
    (tmp_path / "run").mkdir()
    rng = random.Random(29)
    codes = [interrupt_at(tmp_path / "run", rng.uniform(0.03, 1.02) * duration, sent) for _ in range(20)]
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


WAITS = """
import sys, time
import spotsigs.runs.runner as runner
write = runner.prepare_copy
def waits(*given, **named):
    print("copying", flush=True)
    sys.stdin.readline()
    write(*given, **named)
runner.prepare_copy = waits
from spotsigs.cli import main
main(sys.argv[1:])
"""


def waiting(tmp_path, *words):
    """Start a run that waits for a line before it writes its copy."""
    run = subprocess.Popen(
        [sys.executable, "-c", WAITS, "dedup", str(TINY), "--out", "kept", "--workers", "1", *words], cwd=tmp_path,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert run.stdout.readline() == "copying\n"
    return run


def test_a_second_run_with_the_same_copy_is_refused(tmp_path):
    """Both ended with code 0, and the copy of the first was gone."""
    run = waiting(tmp_path)
    second = started(tmp_path, "dedup", TINY, "--out", "kept", "--results", "other", "--overwrite")
    _, err = second.communicate(timeout=60)
    assert (second.returncode, err.splitlines()) == (
        1, ["error: another run writes the copy kept; wait for it, or name another folder"],
    )  # fmt: skip
    assert run.communicate("\n", timeout=60)[1] == ""
    assert run.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "kept-results"]


def test_a_folder_that_another_program_fills_during_a_run_is_not_replaced(tmp_path):
    run = waiting(tmp_path)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "own").touch()
    _, err = run.communicate("\n", timeout=60)
    assert run.returncode == 1
    assert err.startswith("error: kept is not empty; name another folder")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["own"]


def test_a_kernel_that_a_signal_interrupts_while_it_is_compiled_prints_no_traceback():
    """LLVM calls back: the interrupt was printed as an exception that is ignored."""
    code = (
        "import ctypes, os, signal, time\nfrom spotsigs import terminal\nterminal.end_on_interrupt()\n"
        "ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGINT) or time.sleep(9))()\ntime.sleep(9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, f"{terminal.STOPPED}\n")
