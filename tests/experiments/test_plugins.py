"""Methods of other packages: by class name, or as choices of an entry point."""

from __future__ import annotations

import json
import os
import sys

import pytest
from in_process import ROOT, front_door, process

MODULE = """
from dataclasses import dataclass
from typing import ClassVar
from spotsigs.matching.brute_force import BruteForce

@dataclass(frozen=True, kw_only=True)
class Mine(BruteForce):
    label: ClassVar[str] = "My matcher"
    k: int = 3
    l: int = 7
"""

POINTS = "[spotsigs.matcher]\nmine = mine:Mine\nmissing = mine:Missing\n"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder on the path with an installed package of one module and its entry points."""
    about = tmp_path / "site" / "mine-1.0.dist-info"
    about.mkdir(parents=True)
    (about.parent / "mine.py").write_text(MODULE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(about.parent))
    yield about.parent
    sys.modules.pop("mine", None)


def installed(site, folder, *words):
    """Run in a fresh process, which reads the entry points as it starts."""
    words = ("data=tiny", "tau=0.5", f"hydra.run.dir={folder / 'run'}", *words)
    path = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])}
    return process(*words, program=[str(ROOT / "run.py")], cwd=folder, environment=path)


def by_class(site, folder, *words):
    return front_door("data=tiny", "tau=0.5", "engine=serial", f"hydra.run.dir={folder / 'run'}", *words)


@pytest.mark.parametrize(
    ("run", "words"),
    [(installed, ["matcher=mine", "matcher.k=4"]), (by_class, ["matcher._target_=mine.Mine", "+matcher.k=4"])],
    ids=["point", "class"],
)
def test_a_matcher_of_another_package_takes_its_own_parameters(site, tmp_path, run, words):
    done = run(site, tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert "My matcher" in done.stdout
    actual = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert (actual["tau"], actual["k"], actual["l"]) == (0.5, 4, 7)


def test_a_parameter_that_the_class_lacks_is_refused(site, tmp_path):
    done = by_class(site, tmp_path, "matcher._target_=mine.Mine", "matcher.rho=3")
    assert done.returncode == 1
    assert "matcher.rho: Mine has no such parameter; it has" in done.stderr
    assert "k" in done.stderr


def test_an_entry_point_without_its_class_is_one_sentence(site, tmp_path):
    done = installed(site, tmp_path, "matcher=missing")
    assert done.returncode == 1
    assert "Missing" in done.stderr
    assert "Traceback" not in done.stderr
