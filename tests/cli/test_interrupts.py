"""Ctrl-C at any moment: no traceback, all results or none, and the same command works afterwards."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time

import pytest
from in_process import ROOT, process, started

from spotsigs.reports import terminal

TINY = ROOT / "data" / "tiny"
STOPPED = "stopped: finished results are complete, others are not written"
DEDUP = ("dedup", TINY, "--out", "kept", "--workers", 2)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no process groups")


PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}


def check_stopped(folder, run, sent, where):
    """Wait for a run that received a signal; repeat the command and return the exit code."""
    out, err = run.communicate(timeout=60)
    assert "Traceback" not in err, (where, err)
    assert run.returncode in (0, 128 + sent, -sent), (where, run.returncode, err)
    # a finished command that has yet to end, see `test_a_signal_ends_a_finished_command_at_once`
    if run.returncode == 0 or (run.returncode == -sent and "results:" in out):
        assert (folder / "kept-results" / "metrics.json").exists()
        assert "kept ->" in out
    else:
        assert not list(folder.iterdir()), where
        if run.returncode > 0:
            assert err.splitlines()[-1].startswith(STOPPED)
        again = started(*DEDUP, cwd=folder, **PIPES)
        _, err = again.communicate(timeout=120)
        assert again.returncode == 0, (where, err)
    assert sorted(path.name for path in folder.iterdir()) == ["kept", "kept-results"]
    return run.returncode


WAITS = """
import sys, time
import spotsigs.runs.runner as runner
from spotsigs.reports import terminal
terminal.FINISH_SECONDS = 2.0
name, *words = sys.argv[1:]
step = getattr(runner, name)
def waits(*given, **named):
    print("waiting", flush=True)
    sys.stdin.readline() or time.sleep(60)  # without a line, until the signal ends it
    return step(*given, **named)
setattr(runner, name, waits)
if __name__ == "__main__":
    from spotsigs.__main__ import main
    sys.argv[1:] = words
    main()
"""


def waiting(folder, step, *words):
    """Start a run that waits for a line at a step of `spotsigs.runs.runner`."""
    run = started(step, *(words or DEDUP), program=("-c", WAITS), cwd=folder, stdin=subprocess.PIPE, **PIPES)
    assert run.stdout.readline() == "waiting\n"
    return run


@pytest.mark.parametrize(
    ("step", "sent", "code"),
    [
        ("compute", signal.SIGINT, terminal.INTERRUPTED),
        ("prepare_copy", signal.SIGTERM, terminal.TERMINATED),
        ("publish_copy", signal.SIGINT, 0),  # results are published, and the signal is ignored
    ],
)
def test_a_signal_at_a_step(tmp_path, step, sent, code):
    run = waiting(tmp_path, step)
    (os.killpg if sent is signal.SIGINT else os.kill)(run.pid, sent)
    if code == 0:
        run.stdin.write("\n")
        run.stdin.flush()
    assert check_stopped(tmp_path, run, sent, step) == code


def test_an_interrupt_in_the_body_of_a_class_is_one(tmp_path):
    """Python 3.11 made a RuntimeError of it, which ended the command as a fault of the program."""
    code = """
from spotsigs.doors import cli

class Field:
    def __set_name__(self, owner, name):
        raise KeyboardInterrupt

cli.DO["dedup"] = lambda args: type("Corpus", (), {"texts": Field()})
cli.main()
"""
    run = started(*DEDUP, program=("-c", code), cwd=tmp_path, **PIPES)
    _, err = run.communicate(timeout=60)
    assert (run.returncode, err.strip().startswith(STOPPED)) == (terminal.INTERRUPTED, True), err


def test_a_signal_ends_a_finished_command_at_once(tmp_path):
    """A library that does not let the interpreter end: SIGINT and SIGTERM were ignored."""
    code = "import atexit, time\nfrom spotsigs.__main__ import main\natexit.register(time.sleep, 60)\nmain()\n"
    for number, sent in enumerate([signal.SIGINT, signal.SIGTERM]):
        words = ("dedup", TINY, "--out", f"kept{number}", "--workers", 1)
        run = started(*words, program=("-c", code), cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        while not run.stdout.readline().startswith("results:"):
            pass
        time.sleep(0.5)
        run.send_signal(sent)
        assert run.wait(timeout=20) == -sent
        assert (tmp_path / f"kept{number}-results" / "metrics.json").exists()


def test_sigterm_leaves_a_command_with_published_results_some_seconds(tmp_path):
    run = waiting(tmp_path, "discard_stores", *DEDUP, "--memory", "1GB")
    began = time.monotonic()
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=50) == 0
    assert time.monotonic() - began > 1
    assert (tmp_path / "kept-results" / "metrics.json").exists()
    assert (tmp_path / "kept").exists()


@pytest.mark.long
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_twenty_signals_at_random_times(tmp_path, sent):
    for _ in range(2):  # the first one compiles
        began = time.monotonic()
        assert started(*DEDUP, "--overwrite", cwd=tmp_path, **PIPES).wait(timeout=300) == 0
        duration = time.monotonic() - began
    rng = random.Random(29)
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        run = started(*DEDUP, cwd=folder, **PIPES)
        seconds = rng.uniform(0.03, 1.02) * duration
        time.sleep(seconds)
        (os.killpg if sent is signal.SIGINT else os.kill)(run.pid, sent)
        check_stopped(folder, run, sent, seconds)


def test_an_interrupt_waits_until_results_are_published():
    """It came between the copy and its tables: the copy was there, and the same command refused."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with terminal.uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with terminal.uninterrupted(ends_program=True):
            pass
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # a command is finished then
    finally:
        signal.signal(signal.SIGINT, previous)


def test_another_thread_can_publish_results():
    done = []
    thread = threading.Thread(target=terminal.uninterrupted()(lambda: done.append(True)))
    thread.start()
    thread.join()
    assert done == [True]


def test_a_second_run_with_the_same_copy_is_refused(tmp_path):
    """Both ended with code 0, and the copy of the first was gone."""
    run = waiting(tmp_path, "prepare_copy")
    second = process("dedup", TINY, "--out", "kept", "--results", "other", "--overwrite", cwd=tmp_path)
    assert second.returncode == 1
    assert second.stderr == "error: another run writes the copy kept; wait for it, or name another folder\n"
    assert run.communicate("\n", timeout=60)[1] == ""
    assert run.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "kept-results"]


def test_a_folder_that_another_program_fills_during_a_run_is_not_replaced(tmp_path):
    run = waiting(tmp_path, "prepare_copy")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "other").touch()
    _, err = run.communicate("\n", timeout=60)
    assert run.returncode == 1
    assert err.startswith("error: kept is not empty; name another folder")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["other"]


def test_a_kernel_that_a_signal_interrupts_while_it_is_compiled_prints_no_traceback():
    """LLVM calls back: the interrupt was printed as an exception that is ignored."""
    code = (
        "import ctypes, os, signal, time\nfrom spotsigs.reports import terminal\nterminal.end_on_interrupt()\n"
        "ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGINT) or time.sleep(9))()\ntime.sleep(9)\n"
    )
    done = process(program=("-c", code))
    assert (done.returncode, done.stderr) == (130, f"{STOPPED}; repeat the command to continue\n")
