"""Every service of the system fails once: old results or new ones, a sentence, and the same bytes afterwards."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from functools import partial

import pytest
from faults import EVERY, NUMBERS, Denied, content, copied, denying, sweep
from in_process import ROOT, command, process
from stores import MEMORY, PARTS, match_on_disk, named, run, stories, written
from strategies import is_long

from spotsigs.errors import InputError
from spotsigs.outofcore.pipeline import Store, stored_segments
from spotsigs.storage import atomic
from spotsigs.storage.store import open_vectors
from spotsigs.workers.engines import Serial

TAU = 0.4


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """Return a folder with a finished store and two files of pages, and the pairs of the first and of both."""
    folder = tmp_path_factory.mktemp("before")
    rows = stories(40)
    written(folder / "old.jsonl", rows[:25])
    written(folder / "new.jsonl", rows[25:])
    (folder / "work").mkdir()
    pairs = work(folder, "old")
    shutil.copytree(folder / "work", folder / "done")
    both = work(folder, "new", add=True, at="done")
    return folder, pairs, both


def work(folder, name, *, add=False, at="work", base=None):
    """Match a file of pages into the store, and return the named pairs."""
    from spotsigs.formats.jsonl import Jsonl

    collection = Jsonl(path=str((base or folder) / f"{name}.jsonl"), shard_bytes=20_000)
    matched = match_on_disk(folder / at / "store", collection, *PARTS, TAU, Serial(), memory=MEMORY, add=add)
    return named(matched.pairs, matched.doc_ids)


def attempt(folder, denied, base):
    """Add the new pages while a call fails; return the outcome: pairs, or a sentence."""
    atomic.remove_orphans.cache_clear()
    with denying(denied):
        try:
            return work(folder, "new", add=True, base=base)
        except InputError as error:
            return str(error)


def check_denied(before, folder, number, at):
    """Fail one call, and check all that is promised; return what was called and what came of it."""
    base, _, both = before
    copied(base / "work", folder / "work")
    denied = Denied(folder / "work", at, number)
    outcome = attempt(folder, denied, base)
    called = denied.calls[at - 1]
    if isinstance(outcome, str):
        assert os.strerror(number) in outcome, (called, outcome)
        assert "\n" not in outcome
        assert ".writing-" not in outcome, (called, outcome)
    else:
        assert outcome == both, called  # a call that is not needed, such as one that deletes temporary files
    if (folder / "work" / "store" / "vectors" / "store.json").exists():
        n = len(open_vectors(folder / "work" / "store" / "vectors"))
        assert n in (25, 40), called  # the pages of before, or the new ones
    assert work(folder, "new", add=True, base=base) == both, called
    assert sorted(stored_segments(folder / "work" / "store").doc_ids) == sorted(f"p{k}" for k in range(40))
    assert content(folder / "work" / "store") == content(base / "done" / "store"), called
    return called[0], "refused" if isinstance(outcome, str) else "not needed"


def fail_calls(before, folder, number, every=1, first=0):
    base, _, both = before
    copied(base / "work", folder / "work")
    counting = Denied(folder / "work", 0)
    assert attempt(folder, counting, base) == both
    check = partial(check_denied, before, folder, number)
    return counting.kinds, sweep(counting, every, first, check, errno.errorcode[number])


def test_some_calls_of_a_run_fail_once(before, tmp_path):
    kinds, outcomes = fail_calls(before, tmp_path, errno.ENOSPC, every=17)
    assert set(kinds) >= {"write", "open", "mkdir", "replace"}
    assert sum(outcomes.values()) > 8


@pytest.mark.long
@pytest.mark.parametrize("number", NUMBERS)
def test_every_call_of_a_run_fails_once(before, tmp_path, number):
    kinds, outcomes = fail_calls(before, tmp_path, number, EVERY, NUMBERS.index(number))
    assert sum(outcomes.values()) >= sum(kinds.values()) // EVERY
    assert all(outcomes[call, "refused"] for call in ("write", "open", "mkdir"))


# limits

LIMITED = """
import resource, runpy, sys
limit = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
runpy.run_module("spotsigs", run_name="__main__")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory so")
def test_too_little_memory_is_a_sentence_or_enough(tmp_path):
    words = ("cluster", ROOT / "data/tiny", "--workers", 1, "--memory", "1GB", "--store", tmp_path / "store")
    words = (*words, "--out", tmp_path / "run")
    for megabytes in (3000, 1200) if is_long() else (1200,):
        done = process(megabytes << 20, *words, program=["-c", LIMITED])
        assert "build the store again" not in done.stderr
    done = command(*words)
    assert done.returncode == 0, done.stderr


def test_a_clock_that_runs_back(before, tmp_path, monkeypatch):
    """Neither the store nor its verification depends on the time."""
    base, _, both = before
    copied(base / "work", tmp_path / "work")
    for path in (tmp_path / "work").rglob("*"):
        os.utime(path, (2**32, 2**32))  # written in the year 2106
    monkeypatch.setattr("time.time", lambda: 0.0)
    monkeypatch.setattr("spotsigs.storage.store.time_ns", lambda: 0)
    assert work(tmp_path, "new", add=True, base=base) == both
    assert content(tmp_path / "work" / "store") == content(base / "done" / "store")


def test_a_read_only_store_can_be_compared_with_and_not_added_to(before, tmp_path, monkeypatch):
    """The superuser may write anywhere, so that the error of the system is injected."""
    base, _, _ = before
    copied(base / "work", tmp_path / "work")
    denied = Denied(tmp_path / "work", 1, errno.EROFS, last=10**9)
    page, store = written(tmp_path / "page.jsonl", stories(40)[3:4]), Store.open(tmp_path / "work" / "store")
    with denying(denied):
        assert len(run(tmp_path / "own", page, TAU, crossed=True, against=store).pairs)
    assert not denied.calls  # a comparison writes no file into its reference
    actual = attempt(tmp_path, denied, base)
    message = "cannot be written: Read-only file system; give another path"
    assert actual == f"the store {tmp_path / 'work' / 'store'} {message}"
