"""On full and read-only file systems: one sentence, previous results, and the same bytes once there is space."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from in_process import ROOT, command
from test_bad_input import content, former, front_door, results  # noqa: F401 - fixtures
from test_crashes import crawl  # noqa: F401 - a fixture

KIB = 1024
SPACE = 64 << 20


class Disk:
    """A file system of a fixed size."""

    def __init__(self, root):
        self.root = root
        self._filler = root / "filler"

    def leave(self, kib):
        """Fill the disk but for some KiB."""
        self._filler.unlink(missing_ok=True)
        free = os.statvfs(self.root)
        with self._filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - kib * KIB)

    def make_space(self):
        self._filler.unlink()

    def protect(self, option):
        subprocess.run(["mount", "-o", f"remount,{option}", str(self.root)], check=True)


@pytest.fixture
def disk(tmp_path):
    root = tmp_path / "disk"
    root.mkdir()
    try:
        command = ["mount", "-t", "tmpfs", "-o", f"size={SPACE}", "tmpfs", str(root)]
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    try:
        yield Disk(root)
    finally:
        subprocess.run(["umount", "--lazy", str(root)], check=True)


TINY = ROOT / "data" / "tiny"


def finished(*words):
    done = command(*words)
    assert done.returncode == 0, done.stderr


def refused(done, message):
    """Check that a run ended with one sentence; `done` is its exit code, its output and its errors."""
    code, out, err = done
    assert code == 1, out
    *before, last = err.splitlines()
    assert not [line for line in before if line.startswith(("error", "Traceback"))], err
    assert re.fullmatch(f"error: {message}", last), last
    assert ".writing-" not in last


def refused_command(words, message):
    done = command(*words)
    refused((done.returncode, done.stdout, done.stderr), message)


def files(folder):
    """Return what must not differ between runs, and that no half-written thing is left."""
    assert not [path for path in Path(folder).rglob("*") if ".writing-" in path.name]
    kinds = (".parquet", ".csv", ".html")  # the log of tasks has times
    named = content(Path(folder)).items()
    return {name: data for name, data in named if name.suffix in kinds and name.name != "tasks.parquet"}


def pages_of(copy):
    """Return the files of a copy without its manifest, which has times."""
    return {name: data for name, data in content(copy).items() if name.name != ".spotsigs-copy.json"}


def mostly_long(*values, quick):
    """Return parameters of which the quick tests take one."""
    return [pytest.param(value, marks=[] if value == quick else [pytest.mark.long]) for value in values]


FULL = r"No space left on device"
ADVICE = r"(give another path|choose another folder with (hydra\.run\.dir=|--out))"
WITHIN = ("--memory", "1GB")
RUNS = [((), kib) for kib in (0, 12, 60, 200, 400)]
RUNS += [(WITHIN, kib) for kib in (0, 100, 1000, 2000, 3000, 3600)]


@pytest.mark.parametrize("case", mostly_long(*RUNS, quick=(WITHIN, 1000)))
def test_a_run(case, disk, crawl, tmp_path):  # noqa: F811
    """Within a budget, finished parts of the new run may be there, too."""
    more, kib = case
    choices = "--no-open", "--engine", "serial"
    words = ["inspect", crawl, *choices, *more, "--out"]
    finished(*words, tmp_path / "undisturbed")
    run = disk.root / "run"
    finished("inspect", TINY, *choices, "--out", run)
    before = content(run)
    disk.leave(kib)
    message = rf"(the store )?{re.escape(str(run))}\S* cannot be written( or read)?: {FULL}; {ADVICE}"
    refused_command([*words, run], message)
    after = content(run)
    assert after == before or (more == WITHIN and {name: after[name] for name in before} == before)
    disk.make_space()
    finished(*words, run)
    assert files(run) == files(tmp_path / "undisturbed")


@pytest.mark.parametrize("kib", mostly_long(0, 100, quick=100))
def test_a_copy(kib, results, disk, crawl, tmp_path):  # noqa: F811
    words = ["dedup", crawl, "--engine", "serial", "--out"]
    finished(*words, tmp_path / "copy", "--results", tmp_path / "undisturbed")
    before = content(results)
    disk.leave(kib)
    copy = disk.root / "copy"
    message = rf"the copy {re.escape(str(copy))} cannot be written: {FULL}; name another folder"
    refused_command([*words, copy, "--results", results], message)
    assert content(results) == before
    assert not copy.exists()
    disk.make_space()
    finished(*words, copy, "--results", results)
    assert pages_of(copy) == pages_of(tmp_path / "copy")
    assert files(results) == files(tmp_path / "undisturbed")


@pytest.mark.parametrize("kib", mostly_long(0, 24, quick=None))
def test_a_table(kib, disk, tmp_path):
    def words(folder):
        chosen = ["experiment=chain_length", "data=tiny", "experiment.step=0.25", "engine=serial"]
        return [*chosen, f"experiment.results={folder}", f"hydra.run.dir={folder}/run"]

    assert front_door(*words(tmp_path / "undisturbed"))[0] == 0
    disk.leave(kib)
    message = rf"(the store )?{re.escape(str(disk.root))}\S* cannot be written: {FULL}; {ADVICE}"
    refused(front_door(*words(disk.root)), message)
    disk.make_space()
    assert front_door(*words(disk.root))[0] == 0
    tables, expected = (
        {
            name: data for name, data in files(folder / "chain_length").items() if name.stem != "cells"
        }  # which have times
        for folder in (disk.root, tmp_path / "undisturbed")
    )
    assert tables == expected != {}


@pytest.mark.parametrize("memory", mostly_long((), WITHIN, quick=()))
def test_a_read_only_mount(memory, disk, tmp_path):
    run = disk.root / "run"
    words = ["cluster", TINY, "--engine", "serial", *memory, "--out"]
    finished(*words, run, "--tau", "0.3")
    before = content(disk.root)
    disk.protect("ro")
    message = rf"\S* cannot be written: Read-only file system; {ADVICE}"
    refused_command([*words, run], re.escape(str(run)) + message)
    new = disk.root / "new" / "run"
    refused_command([*words, new], re.escape(str(new.parent)) + message)
    assert content(disk.root) == before
    disk.protect("rw")
    finished(*words, run)
    finished(*words, tmp_path / "undisturbed")
    assert files(run) == files(tmp_path / "undisturbed")
