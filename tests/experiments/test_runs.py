"""Runs have folders of their own, sweeps end with a table, and committed results are the reproduction's alone."""

from __future__ import annotations

import json
import os
import shutil
import sys
from types import ModuleType
from typing import ClassVar

import pytest
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from in_process import ROOT, front_door, process

from experiments.run_folders import require_same, variant
from spotsigs.errors import InputError


class Best(Sweeper):
    """Sweeper that runs two thresholds, one after the other, and stores what they return."""

    values: ClassVar[list[float]] = []

    def setup(self, *, hydra_context, task_function, config):
        self.config = config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments):
        for number, tau in enumerate((0.3, 0.9)):
            [job] = self.launcher.launch([(*arguments, f"tau={tau}")], initial_job_idx=number)
            self.values.append(job.return_value)


def test_a_run_returns_its_f1_to_a_sweeper(tmp_path, monkeypatch):
    module = ModuleType("hydra_plugins.best")
    module.Best = Best
    monkeypatch.setitem(sys.modules, module.__name__, module)
    ConfigStore.instance().store(group="hydra/sweeper", name="best", node={"_target_": "hydra_plugins.best.Best"})
    monkeypatch.setattr(Best, "__module__", module.__name__)
    Plugins.instance().register(Best)
    done = front_door("-m", "data=tiny", "hydra/sweeper=best", "engine=serial", f"hydra.sweep.dir={tmp_path}")
    assert done.returncode == 0, done.stderr
    actual = {path.parent.name: json.loads(path.read_text())["f1"] for path in tmp_path.glob("tiny/**/metrics.json")}
    assert Best.values == [actual["tau=0.3+engine=serial"], actual["tau=0.9+engine=serial"]]
    assert Best.values[0] > Best.values[1]


class TestVariant:
    def test_order_does_not_count_and_values_do(self):
        assert variant(["b=2", "a=1"]) == variant(["a=1", "b=2"]) == "a=1+b=2"
        names = ["data.path=a/b", "data.path=a-b", "data.path=A-b", "data.path=a/c", "data.path=" + 300 * "x"]
        assert len({variant([name]) for name in names}) == len(names)
        assert all(len(variant([name])) < 200 for name in names)
        assert not set(variant(names)) & set('/\\:*?"<>| ')

    def test_what_changes_no_result_is_left_out(self):
        assert variant(["debug=true", "data=tiny", "tau=0.3"], ["data", "tau"]) == ""


class TestCommittedResults:
    @pytest.fixture
    def checkout(self, tmp_path):
        """A folder from which the experiments' default paths are safe to write to."""
        shutil.copytree(ROOT / "data" / "tiny", tmp_path / "data" / "tiny")
        (tmp_path / "results" / "figure4").mkdir(parents=True)
        (tmp_path / "results" / "figure4" / "figure4.csv").write_text("committed\n")
        return tmp_path

    def test_another_configuration_writes_to_another_folder(self, checkout):
        done = front_door("experiment=figure4", "data=tiny", "workers=2", cwd=checkout)
        assert done.returncode == 0, done.stderr
        assert (checkout / "results/figure4/figure4.csv").read_text() == "committed\n"
        folder = checkout / "results/variants/data=tiny/figure4"
        assert "(tiny)" in json.loads((folder / "figure4.json").read_text())["figure"]["caption"]

    def test_the_reproductions_configuration_is_no_variant(self):
        done = front_door("experiment=table1", "workers=3", "--cfg", "job", "--resolve", "-p", "experiment")
        assert "results: results\n" in done.stdout, done.stderr


class TestTruth:
    @pytest.fixture
    def mirror(self, tmp_path):
        for source in sorted((ROOT / "data/tiny").rglob("*.html")):
            target = tmp_path / "pages" / f"host{len(source.name) % 3}.example" / f"{source.parent.name}-{source.name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        return tmp_path / "pages"

    def test_folders_of_a_mirror_are_no_truth(self, mirror, tmp_path):
        done = front_door("data=folder", f"data.path={mirror}", "engine=serial", f"hydra.run.dir={tmp_path / 'run'}")
        assert done.returncode == 0, done.stderr
        header = next(line for line in done.stdout.splitlines() if "IDF" in line)
        assert "Prec." not in header
        assert "F1" not in header
        assert "data.clusters=folders" in done.stdout
        assert json.loads((tmp_path / "run" / "metrics.json").read_text())["f1"] is None

    def test_on_request_they_are(self, mirror, tmp_path):
        done = front_door(
            "data=folder", f"data.path={mirror}", "data.clusters=folders", f"hydra.run.dir={tmp_path / 'run'}"
        )
        assert done.returncode == 0, done.stderr
        assert "Prec." in next(line for line in done.stdout.splitlines() if "IDF" in line)


def test_a_changed_default_does_not_replace_a_previous_run(tmp_path):
    previous = tmp_path / "tau=0.44"
    (previous / ".hydra").mkdir(parents=True)
    (previous / ".hydra" / "config.yaml").write_text("tau: 0.44\nidf_max: 0.85\nmatcher: {tau: '${tau}'}\n")
    same = "tau: 0.44\nidf_max: 0.85\npage: true\nmatcher: {tau: '${tau}'}\nnew_key: 1\n"
    other = same.replace("0.85", "1.0")
    require_same(previous, other)  # it has no finished run
    (previous / "metrics.json").write_text("{}")
    require_same(previous, same)
    with pytest.raises(InputError, match=r"idf_max was 0.85, is 1.0\): move it away, or choose .* hydra.run.dir="):
        require_same(previous, other)


# methods of other packages: by class name, or as choices of an entry point

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
