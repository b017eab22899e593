"""The manifest lists each committed result with its code, and partial runs replace none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.work.manifest import age, check, problems, read, record, write_rows
from spotsigs.runs.provenance import git

HEAD = git("rev-parse", "HEAD")
ABOUT = {
    "command": ["run.py", "experiment=figure4"],
    "commit": HEAD,
    "dirty": False,
    "machine": {"processor": "some", "cores": 2},
}
PRODUCERS = ("run.py experiment=", "make ")


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


def test_a_complete_run_replaces_and_says_how_to_undo(tmp_path, write):
    results = tmp_path / "results"
    assert "restores" not in write("first")
    said = write("second")
    assert f"`git checkout -- {results / 'figure4'} {results / 'manifest.csv'}` restores" in said
    [row] = read(results)
    assert (row.file, row.command, row.commit) == ("figure4/figure4.csv", "run.py experiment=figure4", HEAD)
    assert (row.seconds, row.inputs) == (1.5, '{"gold": "1a"}')
    assert check(results, PRODUCERS) == []


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
    assert check(results, PRODUCERS) == []


def test_a_clean_complete_run_has_no_problem():
    assert problems(ABOUT) == []


def test_violations_are_found(tmp_path, write):
    results = tmp_path / "results"
    write("first")
    [row] = read(results)
    (results / "figure4/figure4.csv").write_text("edited")
    (results / "figure4/more.svg").write_text("by hand")
    unknown = replace(row, file="gone.csv", commit="0" * 40)
    write_rows(results, [replace(row, command="notebook"), unknown])
    found = check(results, PRODUCERS)
    assert found[:2] == ["figure4/more.svg has no row", "gone.csv has a row and no file"]
    assert "figure4/figure4.csv is not the file that notebook wrote" in found
    assert "figure4/figure4.csv has no producer: notebook" in found
    shallow = git("rev-parse", "--is-shallow-repository") == "true"
    assert shallow or f"commit {'0' * 40} is not in the history of this one" in found


def test_the_age_counts_commits_of_code():
    assert age(HEAD) == 0
    assert age("0" * 40) is None
