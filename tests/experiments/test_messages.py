"""Mistakes of a run end with a sentence, before they make a result that nobody wants."""

from __future__ import annotations

import json

import pytest
from in_process import front_door

from experiments.run_folders import next_command

IGNORES = "_target_: spotsigs.matching.prefix_join.SpotSigsTight\ntau: 0.6\n"


def failed(*words, **more):
    done = front_door(*words, **more)
    assert done.returncode == 1, done.stdout
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    return done.stderr


def test_a_method_that_ignores_the_threshold_is_an_error(tmp_path):
    (tmp_path / "matcher").mkdir()
    (tmp_path / "matcher" / "mine.yaml").write_text(IGNORES)
    said = failed(
        "--config-dir", str(tmp_path), "data=tiny", "matcher=mine", "tau=0.9", f"hydra.run.dir={tmp_path / 'x'}"
    )
    assert said.startswith("error: matcher=mine runs at the threshold 0.6, not at tau=0.9: write `tau: ${tau}`")
    assert not (tmp_path / "x" / "metrics.json").exists()


def test_a_threshold_of_the_environment_is_a_number(tmp_path):
    words = ("data=tiny", "engine=serial", f"hydra.run.dir={tmp_path}")
    done = front_door(*words, "tau=${oc.env:TAU_OF_TEST,0.5}")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "metrics.json").read_text())["tau"] == 0.5


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("~matcher", "~matcher leaves out what every run needs; give another choice, as in matcher=..."),
        ("hydra/launcher=submitit_slurm", "`pip install hydra-submitit_slurm-launcher` may add it"),
    ],
)
def test_habits_of_hydra_get_a_sentence(word, sentence):
    assert sentence in failed("data=tiny", word)


PAGES = {"a": "x", "b": "x", "c": "y"}


def labelled(folder, lines, ids=PAGES, *words):
    texts = "".join(
        json.dumps({"id": name, "text": f"the {text} of the city is a bridge"}) + "\n" for name, text in ids
    )
    (folder / "own.jsonl").write_text(texts)
    (folder / "labels.tsv").write_text(lines)
    given = (
        f"data.path={folder / 'own.jsonl'}",
        f"data.truth={folder / 'labels.tsv'}",
        f"hydra.run.dir={folder / 'run'}",
    )
    return front_door("data=jsonl", *given, "engine=serial", *words)


def test_labels_of_a_part_of_the_pages_name_the_way_out(tmp_path):
    done = labelled(tmp_path, "a\t1\nb\t1\n", PAGES.items())
    assert done.returncode == 1
    assert "1 of 3 pages have no label" in done.stderr
    assert "data.unlabelled=drop" in done.stderr
    for word, pages in (("data.unlabelled=drop", 2), ("data.unlabelled=alone", 3)):
        done = labelled(tmp_path, "a\t1\nb\t1\n", PAGES.items(), word)
        assert done.returncode == 0, done.stderr
        assert json.loads((tmp_path / "run" / "metrics.json").read_text())["documents"] == pages


def own(folder, rows, *words):
    """Run pages whose labels are in their own column."""
    lines = [json.dumps({"id": name, "text": f"the {name} of the city is a bridge"} | more) for name, more in rows]
    (folder / "own.jsonl").write_text("\n".join(lines))
    return front_door("data=jsonl", f"data.path={folder / 'own.jsonl'}", "engine=serial", *words)


def test_labels_of_a_part_of_the_pages_in_a_column_name_the_way_out(tmp_path):
    rows = [("a", {"cluster": "1"}), ("b", {"cluster": "1"}), ("c", {})]
    folder = f"hydra.run.dir={tmp_path / 'run'}"
    done = own(tmp_path, rows, folder)
    assert done.returncode == 1
    assert "data: 1 of 3 pages have no label, the first 'c'; leave them out by data.unlabelled=drop" in done.stderr
    assert not (tmp_path / "run" / "metrics.json").exists()
    for word, pages in (("data.unlabelled=drop", 2), ("data.unlabelled=alone", 3)):
        done = own(tmp_path, rows, word, f"hydra.run.dir={tmp_path / str(pages)}")
        assert done.returncode == 0, done.stderr
        assert json.loads((tmp_path / str(pages) / "metrics.json").read_text())["documents"] == pages


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("a", {}), ("b", {})], "the collection has no truth to evaluate against; data.truth= names a file"),
        ([("a", {"cluster": "1"}), ("b", {})], "data: 1 of 2 pages have no label"),
    ],
)
def test_a_comparison_checks_the_truth_before_it_extracts(tmp_path, rows, said):
    done = own(tmp_path, rows, "experiment=compare", f"experiment.results={tmp_path / 'results'}")
    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.glob("results/cells/input-*")) == []


def test_help_has_the_parameters_of_the_choices():
    done = front_door("matcher=lsh_native", "--help")
    assert "matcher=lsh_native, override with matcher.key=value:\n" in done.stdout
    assert "  tau: ${tau}" in done.stdout


def test_repeated_ids_are_errors(tmp_path):
    done = labelled(tmp_path, "a\t1\nb\t1\nc\t2\na\t1\n", PAGES.items())
    assert "line 4" in done.stderr
    assert "delete one" in done.stderr
    done = labelled(tmp_path, "a\t1\nb\t1\n", [("a", "x"), ("b", "x"), ("b", "y")])
    assert "'b' is the id of several pages" in done.stderr


def test_the_next_command_compares_the_own_method_and_can_be_typed(tmp_path):
    said = next_command(True, ["data=tiny", "matcher=mine", "matcher.k=2", "signature.d=1", "idf_max=0.9"])
    assert said.endswith(
        "-m matcher=mine,spotsigs,lsh,imatch signature=spotsigs,shingles3 tau=0.3,0.44,0.6 data=tiny idf_max=0.9"
    )
