"""Every service of the system fails once while the command is used: old results or new ones, and a sentence."""

from __future__ import annotations

import errno
import os
import re
import shutil
from pathlib import Path

import pytest
from faults import EVERY, NUMBERS, Denied, copied, denying, sweep
from in_process import ROOT, command
from test_bad_input import content
from test_full_disk import files

from experiments.config import sentence
from spotsigs.errors import InputError
from spotsigs.reports.output_files import publishing, write_json
from spotsigs.storage import atomic

PAGES = (ROOT / "data/tiny", "--engine", "serial")
PAGE = ("inspect", *PAGES, "--no-open", "--out", "{here}/run")
WITHIN = {
    "in memory": PAGE,
    "within a budget": (*PAGE, "--memory", "1GB"),
    "with a copy": ("dedup", *PAGES, "--out", "{here}/copy", "--results", "{here}/run"),
}


class Vanishing(Denied):
    """Delete the folder at a call, as another process may."""

    def __call__(self, name, path):
        at, self.at = self.at, 0
        super().__call__(name, path)
        if at and len(self.calls) >= at:
            shutil.rmtree(self.below, ignore_errors=True)
        else:
            self.at = at


def ran(here, denied, way):
    """Run the command while a call fails; return its code, its sentences, and what it has left."""
    atomic.remove_orphans.cache_clear()
    words = [str(word).format(here=here) for word in way]
    with denying(denied):
        done = command(*words)
    return done.returncode, [line for line in done.stderr.splitlines() if line.startswith(("error", "Traceback"))]


@pytest.fixture
def both(tmp_path):
    """Return a folder with the results of a previous run, and a function to the files of the new one."""
    base = tmp_path / "base"
    assert ran(base, Denied(base, 0), (*PAGE, "--tau", "0.9")) == (0, [])

    def undisturbed(more):
        counting = Denied(copied(base, tmp_path / "here"), 0)
        assert ran(tmp_path / "here", counting, more) == (0, [])
        return counting, files(tmp_path / "here")

    return base, undisturbed


def check_call(both, here, denied, more, new):
    """Fail one call of a run, and check all that is promised; return what came of it."""
    base, _ = both
    copied(base, here)
    old = content(here)
    code, lines = ran(here, denied, more)
    called = denied.calls[denied.at - 1]
    if code == 0:
        assert files(here) == new, called
        outcome = "not needed"
    else:
        assert (code, len(lines)) == (1, 1), (called, lines)
        assert re.fullmatch(rf"error: .*{re.escape(os.strerror(denied.number))}.*", lines[0]), (called, lines)
        assert ".writing-" not in lines[0], (called, lines)
        left = content(here)
        assert {name: left.get(name) for name in old} == old, called
        assert not (here / "copy").exists(), called
        outcome = "refused"
    shutil.rmtree(here / "copy", ignore_errors=True)
    assert ran(here, Denied(here, 0), more) == (0, []), called
    assert files(here) == new, called
    return called[0], outcome


def fail_calls(both, here, number, way, every, first=0):
    counting, new = both[1](WITHIN[way])

    def check(at):
        return check_call(both, here, Denied(here, at, number), WITHIN[way], new)

    return sweep(counting, every, first, check, f"{way}, {errno.errorcode[number]}")


def test_some_calls_of_the_command_fail_once(both, tmp_path):
    outcomes = fail_calls(both, tmp_path / "here", errno.ENOSPC, "with a copy", 70)
    assert any(outcome == "refused" for _, outcome in outcomes)


def test_of_results_that_cannot_all_be_published_none_are(tmp_path):
    """Any rename of a publication fails: previous results are restored, with those that the new ones do not have."""
    base, here = tmp_path / "base", tmp_path / "here"
    (base / "sub").mkdir(parents=True)
    for name in ("a.csv", "sub/b.csv", "old.csv", "last.json"):
        (base / name).write_text("former")
    (base / "run.json").write_text('{"command": [], "commit": "former", "versions": {}}')
    refused = 0
    for at in range(1, 100):
        denied = Denied(copied(base, here), at, errno.EIO)
        try:
            with denying(denied), publishing(here, "run.json", "last.json", ["old.csv"]) as new:
                (new / "sub").mkdir()
                for name in ("run.json", "a.csv", "sub/b.csv", "c.csv", "last.json"):
                    (new / name).write_text("new")
        except (InputError, OSError):
            assert content(here) == content(base), denied.calls[-1]
            refused += denied.calls[at - 1][0] == "replace"
        else:
            assert (here / "c.csv").read_text() == "new"
            assert not (here / "old.csv").exists()
        if len(denied.calls) < at:
            break
    assert refused == 9  # four previous files are moved away, five new ones are moved in


def test_a_published_file_remains_if_its_staging_folder_cannot_be_removed_at_first(tmp_path):
    """A folder to write in that cannot be removed at first is removed all the same."""
    here = tmp_path / "here"
    here.mkdir()
    atomic.remove_orphans(here.resolve())

    def written(at):
        with denying(denied := Denied(here, at)), atomic.replacing(here / "a.csv") as new:
            new.write_text(f"failing {at}")
        assert files(here) == {Path("a.csv"): f"failing {at}".encode()}
        return denied.calls

    calls = written(0)
    assert calls[-1][0] == "rmdir"
    assert len(written(len(calls))) == len(calls) + 1


def test_a_store_that_cannot_be_removed_at_the_end_is_no_fault(both, tmp_path):
    """The results stand on their own: where the run's own store stays, the next run removes it."""
    here, more = tmp_path / "here", WITHIN["within a budget"]
    counting, new = both[1](more)
    last = [at for at, (name, path) in enumerate(counting.calls, 1) if name == "replace" and "store-" in path][-1]
    copied(both[0], here)
    assert ran(here, Denied(here, last, errno.EACCES), more) == (0, [])
    assert files(here) == new
    assert list((here / "run").glob("store-*"))
    assert ran(here, Denied(here, 0), more) == (0, [])
    assert not list((here / "run").glob("store-*"))


def test_a_sentence_names_the_final_path_and_not_the_staging_folder():
    error = OSError(errno.EIO, "no", "/there/.results.writing-a/.removed.csv.writing-b/removed.csv")
    assert sentence(error) == f"error: /there/removed.csv: {os.strerror(errno.EIO)}"


@pytest.mark.long
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("way", WITHIN)
def test_every_call_of_the_command_fails_once(both, tmp_path, number, way):
    fail_calls(both, tmp_path / "here", number, way, EVERY, NUMBERS.index(number))


def test_results_whose_folder_vanishes_between_two_files_are_not_published(tmp_path):
    """A staging folder that was made again would have the second file alone."""
    here = tmp_path / "run"

    def write_two():
        with publishing(here, "run.json", "metrics.json", ()) as new:
            write_json(new / "run.json", {})
            shutil.rmtree(here)
            write_json(new / "metrics.json", {})

    with pytest.raises(InputError, match="cannot be written: No such file"):
        write_two()
    assert not here.exists()


@pytest.mark.long
@pytest.mark.parametrize("every", [110, 3])
def test_a_folder_that_vanishes_is_a_sentence_or_made_again(both, tmp_path, every):
    more = WITHIN["within a budget"]
    counting, new = both[1](more)
    here = tmp_path / "here"
    for at in range(1, len(counting.calls) + 1, every):
        copied(both[0], here)
        code, lines = ran(here, Vanishing(here, at), more)
        assert code == 0 or (code == 1 and len(lines) == 1 and lines[0].startswith("error: ")), (at, lines)
        again = ran(here, Denied(here, 0), more)
        assert again == (0, []), (at, lines, again)
        assert files(here) == new
