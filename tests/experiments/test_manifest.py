"""The manifest lists each committed result with its code, and partial runs replace none."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from folders import contents
from hydra import initialize_config_dir
from runs import configured

from experiments.harness import study
from experiments.harness.manifest import (
    changed_code,
    changed_since,
    check,
    code_of,
    is_current,
    problems,
    read,
    record,
    since,
    state,
    write_rows,
)
from experiments.studies.computed import ComputedStudy
from spotsigs.errors import InputError
from spotsigs.runs.provenance import git

ROOT = Path(__file__).parents[2]

HEAD = git("rev-parse", "HEAD")
MACHINE = {"processor": "some", "cores": 2}
ABOUT = {"command": ["run.py", "experiment=figure4"], "commit": HEAD, "dirty": False, "machine": MACHINE}


@pytest.fixture
def write(tmp_path):
    """Write results of an experiment into a folder of runs, and record them."""

    def written(content, **more):
        folder = tmp_path / "results/runs/figure4.writing"
        folder.mkdir(parents=True)
        (folder / "figure4.csv").write_text(content)
        more = {"seconds": 1.5, "inputs": {"gold": "1a"}, "about": ABOUT} | more
        return record(tmp_path / "results", "figure4", folder, **more)

    return written


def test_a_complete_run_replaces_and_prints_how_to_undo(tmp_path, write):
    results = tmp_path / "results"
    assert problems(ABOUT) == []
    assert "restores" not in write("first")
    printed = write("second")
    assert f"`git checkout -- {results / 'figure4'} {results / 'manifest.csv'}` restores" in printed
    [row] = read(results)
    assert (row.file, row.command, row.commit) == ("figure4/figure4.csv", "run.py experiment=figure4", HEAD)
    assert (row.seconds, row.inputs) == (1.5, '{"gold": "1a"}')
    assert check(results) == []


@pytest.mark.parametrize(
    ("reasons", "text"),
    [
        (problems(ABOUT, left_out=["newsframes"]), "newsframes is left out"),
        (problems(ABOUT, contended=["LSH-S"]), "disturbed the times of LSH-S"),
        (problems(ABOUT | {"dirty": True}), "differs from its commit"),
        (problems(ABOUT | {"commit": None}), "in no checkout"),
    ],
)
def test_other_runs_replace_nothing(tmp_path, write, reasons, text):
    results = tmp_path / "results"
    write("first")
    before = (results / "manifest.csv").read_bytes()
    assert text in write("partial", reasons=reasons)
    assert (results / "figure4/figure4.csv").read_text() == "first"
    assert (results / "variants/figure4/figure4.csv").read_text() == "partial"
    assert (results / "manifest.csv").read_bytes() == before
    assert check(results) == []


def test_violations_are_detected(tmp_path, write):
    results = tmp_path / "results"
    write("first")
    [row] = read(results)
    (results / "figure4/figure4.csv").write_text("edited")
    (results / "figure4/more.svg").write_text("by hand")
    unknown = replace(row, file="gone.csv", commit="0" * 40)
    write_rows(results, [replace(row, command="notebook"), unknown])
    actual = check(results)
    assert actual[:2] == ["figure4/more.svg has no row", "gone.csv has a row and no file"]
    assert "figure4/figure4.csv is not the file that notebook wrote" in actual
    assert "figure4/figure4.csv has no producer: notebook" in actual
    shallow = git("rev-parse", "--is-shallow-repository") == "true"
    assert shallow or f"commit {'0' * 40} is not in the history of this one" in actual


def test_the_committed_results_are_those_of_their_commits():
    rows = read(ROOT / "results")
    assert check(ROOT / "results") == []
    assert all(row.date and row.machine and row.seconds > 0 for row in rows)
    shallow = git("rev-parse", "--is-shallow-repository") == "true"
    assert shallow or None not in [changed_code(row.commit) for row in rows]


def test_results_whose_code_has_not_changed_are_current(tmp_path, write, monkeypatch):
    results = tmp_path / "results"
    write("first")
    for about in ({"dirty": True}, {"commit": "0" * 40}, {}):
        monkeypatch.setattr("experiments.harness.manifest.provenance", lambda about=about: ABOUT | about)
        assert is_current(results, "figure4") == ("dirty" not in about)
    rows = read(results)
    write_rows(results, [replace(row, commit="0" * 40) for row in rows])
    assert not is_current(results, "figure4")
    write_rows(results, rows)
    assert not is_current(results, "figure5")
    (results / "figure4/figure4.csv").write_text("edited")
    assert not is_current(results, "figure4")


def test_an_experiment_uses_its_methods_and_collections_and_no_command():
    code = code_of("figure5")
    used = ("conf/experiment/figure5.yaml", "baselines/cosine.py", "experiments/studies/comparison.py")
    assert {*used, "data/collections/republished.py", "conf/data/newsframes.yaml"} <= {*code}
    assert not {"spotsigs/doors/cli.py", "experiments/main.py", "baselines/lsh.py"} & {*code}
    assert state("figure5", HEAD) == "current"
    assert state("figure5", "0" * 40) == "unknown"
    assert state("signatures", HEAD) == "finished study"


def test_a_benchmark_uses_what_it_imports_and_the_command_that_it_runs():
    joins, programs = {*code_of("bench")}, {*code_of("race")}
    assert {"benchmarks/join_tools.py", "spotsigs/matching/join_kernels.py"} <= joins
    assert {"benchmarks/dedup_tools.py", "spotsigs/doors/cli.py", "spotsigs/text/visible.py"} <= programs
    assert not any(name.startswith("conf/") for name in joins | programs)


def test_a_result_is_current_after_changes_of_words_alone(tmp_path, monkeypatch):
    def run_git(*words):
        given = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words]
        return subprocess.run(given, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    def commit(text, date):
        (tmp_path / "experiments").mkdir(exist_ok=True)
        (tmp_path / "experiments/study.py").write_text(text)
        run_git("add", ".")
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"{date}T12:00:00")
        run_git("commit", "--quiet", "--message", text)
        changed_since.cache_clear()
        return run_git("rev-parse", "HEAD")

    def run_git_bytes(*words, given, seconds):
        answer = subprocess.run(
            ["git", *words], cwd=tmp_path, input=given, timeout=seconds, check=True, capture_output=True
        )
        return answer.stdout

    monkeypatch.setattr("experiments.harness.manifest.git", run_git)
    monkeypatch.setattr("experiments.harness.manifest.git_bytes", run_git_bytes)
    run_git("init", "--quiet")
    first = commit('"""Words."""\nSIZE = 1\n', "2026-01-01")
    commit('"""Other words."""\nSIZE = 1  # a comment\n', "2026-01-02")
    assert changed_code(first) == []
    commit("SIZE = 2\n", "2026-01-03")
    commit('SIZE = 2\n"""Words of a constant."""\n', "2026-01-04")
    assert changed_code(first) == ["experiments/study.py"]
    assert changed_code(first, ["experiments/another.py"]) == []
    assert since(first, ["experiments/study.py"]) == "2026-01-03"


def test_commits_of_other_histories_are_unknown():
    assert changed_code(HEAD) == []
    assert changed_code("0" * 40) is None


class TestRunsOfAnExperiment:
    @pytest.fixture
    def results(self, tmp_path, monkeypatch):
        """The folder ``results`` of a checkout without changes, with committed files."""
        shutil.copytree(ROOT / "results/figure4", tmp_path / "results/figure4")
        (tmp_path / "results/figure4/old.csv").write_text("of an earlier version")
        monkeypatch.setattr(study, "provenance", lambda: ABOUT)
        chosen = configured("experiment=figure4", "data=tiny", "engine=serial", "workers=1")
        shutil.copytree(ROOT / "data/tiny", tmp_path / "data/tiny")
        monkeypatch.chdir(tmp_path)
        self.chosen = chosen
        return Path("results")

    def run(self, then=lambda work: None):
        """Run Figure 4, and `then` a function of its state."""

        class Own(ComputedStudy):
            def __call__(self, settings):
                text = super().__call__(settings)
                then(settings.work)
                return text

        mine = replace(self.chosen, experiment=Own(**vars(self.chosen.experiment) | {"results": Path("results")}))
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            return study.run(mine)

    def test_a_complete_one_replaces_all_files(self, results):
        printed = self.run()
        assert "results/figure4/figure4.svg" in printed
        assert "`git checkout -- results/figure4` restores" in printed
        assert not (results / "figure4/old.csv").exists()
        assert check(results) == []
        assert {row.inputs.count("Tiny") for row in read(results)} == {1}
        assert list((results / "runs").iterdir()) == []

    @pytest.mark.parametrize(
        ("then", "reason"),
        [
            (lambda work: work.leave_out("newsframes", InputError("not fetched")), "newsframes is left out"),
            (lambda work: work.finished.contended.append("TimedCell-1.json"), "the times of TimedCell-1.json"),
        ],
    )
    def test_a_partial_or_disturbed_one_is_a_variant(self, results, then, reason):
        before = contents(results / "figure4")
        printed = self.run(then)
        assert reason in printed
        assert "results/variants/figure4/figure4.svg" in printed
        assert (results / "variants/figure4/figure4.csv").exists()
        assert contents(results / "figure4") == before
        assert not (results / "manifest.csv").exists()

    def test_other_overrides_are_a_variant(self, results, monkeypatch):
        monkeypatch.setattr(study, "changed", lambda: ["experiment=figure4", "seed=3", "experiment.results=results"])
        before = contents(results / "figure4")
        assert "seed=3 is not the default configuration" in self.run()
        assert contents(results / "figure4") == before

    def test_an_interrupted_one_writes_nothing(self, results):
        def interrupt(work):
            assert (work.folder / "figure4.csv").exists()
            raise KeyboardInterrupt

        before = contents(results / "figure4")
        with pytest.raises(KeyboardInterrupt):
            self.run(interrupt)
        assert contents(results / "figure4") == before
        assert not (results / "variants").exists()
        assert list((results / "runs").iterdir()) == []
