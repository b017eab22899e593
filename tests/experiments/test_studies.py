"""Experiments are composed from `conf`: their methods, what they read, and methods that appear by themselves."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hydra import initialize_config_dir

from experiments.config import Experiment, _require_read, composed
from experiments.studies.quality import QualityCurves
from experiments.studies.systems import Systems
from experiments.studies.table2 import every_tau
from experiments.work.study import lines_of
from spotsigs.errors import InputError

ROOT = Path(__file__).parents[2]
CONF = ROOT / "conf"


@pytest.fixture
def conf(tmp_path):
    shutil.copytree(CONF, tmp_path / "conf")
    return tmp_path / "conf"


@pytest.mark.parametrize("path", sorted(CONF.glob("experiment/*.yaml")), ids=lambda path: path.stem)
def test_every_method_of_every_experiment_composes(path):
    experiment = yaml.safe_load(path.read_text(encoding="utf-8"))["experiment"]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        settings = composed(f"experiment={path.stem}")
        assert isinstance(settings.experiment, Experiment)
        for key in ("methods", "rivals"):
            methods = experiment.get(key, {})
            if isinstance(methods, dict) and path.stem != "systems":
                single = {label: every_tau(words)[0] for label, words in methods.items()}
                assert [line.label for line in lines_of(single, settings)] == list(methods)


def test_a_collection_that_cannot_be_fetched_is_left_out(conf, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where nothing was fetched
    monkeypatch.setattr("experiments.studies.systems.overrides", list)
    with initialize_config_dir(str(conf), version_base="1.3"):
        settings = composed("experiment=systems", "experiment.collections=[newsframes]", "data=tiny")
        with pytest.raises(InputError, match=r"newsframes is left out: .*accept_licence"):
            settings.experiment(settings)


@pytest.mark.long
def test_all_goes_on_without_what_must_be_fetched(tmp_path):
    words = ["experiment=all", "data=tiny", "experiment.pages=[figure4,density,arithmetic]", "experiment.vectors=[]"]
    words += [f"experiment.results={tmp_path / 'results'}", "data.path=" + str(ROOT / "data" / "tiny")]
    done = subprocess.run(
        [sys.executable, str(ROOT / "run.py"), *words], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "density is left out: " in done.stdout
    assert (tmp_path / "results" / "report.html").exists()


@pytest.mark.long
def test_a_matcher_appears_among_the_systems_by_itself(conf):
    (conf / "matcher" / "nearest_bits.yaml").write_text("_target_: baselines.simhash.SimHash\nradius: 2\n")
    with initialize_config_dir(str(conf), version_base="1.3"):
        settings = composed("experiment=systems", "data=tiny")
        systems = dict(settings.experiment._systems(settings))
    assert {"SpotSigs", "I-Match-S, randomised", "SimHash (unverified)"} <= systems.keys()
    [(setting, line)] = systems["SimHash (unverified)"]
    assert (setting, line.matcher.radius) == ("", 2)
    assert [setting for setting, _ in systems["SimHash"]] == [f"radius = {r}" for r in (3, 6, 9, 12, 15, 18)]
    assert [line.matcher.lexica for _, line in systems["I-Match, randomised"]] == [5, 10, 20]


def test_methods_take_the_seed_of_the_experiment():
    with initialize_config_dir(str(CONF), version_base="1.3"):
        settings = composed("experiment=table1", "seed=7")
        seeds = {
            line.label: getattr(line.matcher, "seed", None) for line in lines_of(settings.experiment.methods, settings)
        }
    assert seeds["LSH-S"] == seeds["I-Match"] == 7
    assert seeds["SpotSigs"] is None


@pytest.mark.parametrize("word", ["matcher=lsh_native", "signature=shingles1", "idf_min=0.9", "sets=true", "tau=0.3"])
def test_what_an_experiment_does_not_read_is_refused(word):
    with pytest.raises(
        InputError, match=rf"experiment=figure5 does not read {word.partition('=')[0]}; it reads .*data"
    ):
        _require_read(QualityCurves(), "figure5", ["data=tiny", word])


@pytest.mark.parametrize(
    "word", ["data.path=x", "+experiment.methods.Mine=matcher=mine", "seed=3", "hydra.verbose=true"]
)
def test_what_every_experiment_reads_is_taken(word):
    _require_read(Systems(), "systems", [word])


def test_an_override_that_is_not_read_ends_the_run():
    words = ["experiment=figure5", "matcher=lsh_native", "signature=shingles1", "idf_min=0.9", "sets=true"]
    done = subprocess.run([sys.executable, "run.py", *words], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert done.stderr.startswith("error: experiment=figure5 does not read matcher")
    assert len(done.stderr.splitlines()) == 1


def test_the_methods_of_the_guide_pass_the_linter():
    page = (ROOT / "docs/add-a-method.md").read_text(encoding="utf-8")
    modules = re.findall(r"^`(baselines/\w+\.py)`:\n\n```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(modules) == 2
    for name, code in modules:
        for check in (["check"], ["format", "--check"]):
            command = ["ruff", *check, "--stdin-filename", name, "-"]
            done = subprocess.run(
                [sys.executable, "-m", *command], cwd=ROOT, input=code, capture_output=True, text=True, timeout=60
            )
            assert done.returncode == 0, done.stdout + done.stderr
