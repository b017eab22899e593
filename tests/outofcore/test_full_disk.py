"""On full and read-only file systems: one sentence, previous results, and the same bytes once there is space."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
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


def refused(words, message):
    code, out, err = front_door(*words)
    assert code == 1, out
    lines = [line for line in err.splitlines() if "pages" not in line and "its usual collections" not in line]
    assert len(lines) == 1, err
    assert re.fullmatch(f"error: {message}", lines[0]), lines[0]
    assert ".writing-" not in lines[0]


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
ADVICE = r"(give another path|choose another folder with hydra\.run\.dir=)"
WITHIN = ("+data.shard_bytes=300_000", "memory=1GB")
RUNS = [(("page=true",), kib) for kib in (0, 12, 60, 200, 400)]
RUNS += [(WITHIN, kib) for kib in (0, 100, 1000, 2000, 3000, 3600)]


@pytest.mark.parametrize("case", mostly_long(*RUNS, quick=(WITHIN, 1000)))
def test_a_run(case, disk, crawl, tmp_path):  # noqa: F811
    """Within a budget, finished parts of the new run may be there, too."""
    more, kib = case
    words = ["data=jsonl", f"data.path={crawl}", "engine=serial", *more]
    assert front_door(*words, f"hydra.run.dir={tmp_path}/undisturbed")[0] == 0
    run = disk.root / "run"
    assert front_door("data=tiny", "engine=serial", "page=true", f"hydra.run.dir={run}")[0] == 0
    before = content(run)
    disk.leave(kib)
    message = rf"(the store )?{re.escape(str(run))}\S* cannot be written( or read)?: {FULL}; {ADVICE}"
    refused([*words, f"hydra.run.dir={run}"], message)
    after = content(run)
    assert after == before or (more == WITHIN and {name: after[name] for name in before} == before)
    disk.make_space()
    assert front_door(*words, f"hydra.run.dir={run}")[0] == 0
    assert files(run) == files(tmp_path / "undisturbed")


@pytest.mark.parametrize("kib", mostly_long(0, 100, quick=100))
def test_a_copy(kib, results, disk, crawl, tmp_path):  # noqa: F811
    words = ["data=jsonl", f"data.path={crawl}", "engine=serial", f"hydra.run.dir={results}"]
    assert front_door(*words[:-1], f"copy={tmp_path}/copy", f"hydra.run.dir={tmp_path}/undisturbed")[0] == 0
    before = content(results)
    disk.leave(kib)
    copy = disk.root / "copy"
    message = rf"the copy {re.escape(str(copy))} cannot be written: {FULL}; name another folder"
    refused([*words, f"copy={copy}"], message)
    assert content(results) == before
    assert not copy.exists()
    disk.make_space()
    assert front_door(*words, f"copy={copy}")[0] == 0
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
    refused(words(disk.root), message)
    disk.make_space()
    assert front_door(*words(disk.root))[0] == 0
    tables, expected = (
        {
            name: data for name, data in files(folder / "chain_length").items() if name.stem != "cells"
        }  # which have times
        for folder in (disk.root, tmp_path / "undisturbed")
    )
    assert tables == expected != {}


@pytest.mark.parametrize("memory", mostly_long((), ("memory=1GB",), quick=()))
def test_a_read_only_mount(memory, disk, tmp_path):
    run = disk.root / "run"
    words = ["data=tiny", "engine=serial", *memory, f"hydra.run.dir={run}"]
    assert front_door(*words, "tau=0.3")[0] == 0
    before = content(disk.root)
    disk.protect("ro")
    message = rf"\S* cannot be written: Read-only file system; {ADVICE}"
    refused(words, re.escape(str(run)) + message)
    new = disk.root / "new" / "run"
    refused([*words[:-1], f"hydra.run.dir={new}"], re.escape(str(new.parent)) + message)
    assert content(disk.root) == before
    disk.protect("rw")
    assert front_door(*words)[0] == 0
    assert front_door(*words[:-1], f"hydra.run.dir={tmp_path}/undisturbed")[0] == 0
    assert files(run) == files(tmp_path / "undisturbed")
