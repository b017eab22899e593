"""Any methods compared on any collections: choices, figures, differences, lists of pairs, and sentences."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from folders import rows_of
from hydra import initialize_config_dir
from in_process import ROOT, front_door

from experiments.harness.method_choices import chosen_methods
from experiments.harness.timing import cost
from spotsigs.errors import InputError

FEW = ("experiment=compare", "experiment.step=0.1", "experiment.table.times.repeats=0", "workers=1", "engine=serial")


def compared(folder, *words):
    done = front_door(*FEW, f"experiment.results={folder}", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    mine = "{mine: {matcher: lsh_native, matcher.k: 2, signature: shingles3}}"
    printed = compared(folder, "data=tiny", f"methods=[spotsigs, shingles1, imatch, {mine}, {{again: {{tau: 0.35}}}}]")
    return printed, folder / "compare"


def test_the_table_has_each_method_at_its_best_and_default_threshold(results):
    printed, folder = results
    table = pd.read_csv(folder / "compare.csv")
    cells = pd.read_parquet(folder / "cells.parquet").set_index(["method", "tau"])
    methods = ["spotsigs", "shingles1", "imatch, shingles1", "imatch, spotsigs", "mine", "again"]
    assert {*table["method"]} == {*methods} == {*cells.index.get_level_values(0)}
    for name, of in table.groupby("method"):
        assert sorted(of["at"]) in (["best", "default"], ["best = default"])
        assert of.loc[of["at"] != "default", "f1"].item() == cells.loc[name, "f1"].max()
        default = of.loc[of["at"] != "best"].iloc[0]
        assert default["tau"] == pytest.approx(0.35 if name == "again" else 0.44) or name.startswith("imatch")
        for row in of.itertuples():
            cell = cells.loc[name].loc[[row.tau]].iloc[0]
            assert (row.f1, row.lost, row.left, row.bcubed_f1) == tuple(cell[["f1", "lost", "left", "bcubed_f1"]])
    best = table[table["at"] != "default"]
    assert best["f1"].is_monotonic_decreasing
    caption = "Methods on tiny (45 pages, IDF [0.2, 1]), all with text=visible, boilerplate=keep, duplicates=text"
    assert caption in " ".join(printed.split())
    assert "Unjudged" not in printed
    for name in ("compare.md", "compare.tex", "compare.json", "curves.png", "curves.svg", "curves.csv"):
        assert (folder / name).stat().st_size > 0


def test_differences_are_paired_and_corrected(results):
    table = pd.read_csv(results[1] / "compare.csv").set_index(["method", "at"])
    same = table.loc["again", "best"]
    assert (same["difference"], same["difference_low"], same["difference_high"], same["p_holm"]) == (0, 0, 0, 1)
    worse = table.loc["imatch, spotsigs", "best = default"]
    base = table.loc["spotsigs", "best"]
    assert worse["difference"] == pytest.approx(worse["f1_held_out"] - base["f1_held_out"])
    assert 0 < base["f1_held_out"] <= base["f1"]
    default, of_base = table.loc["shingles1", "default"], table.loc["spotsigs", "default"]
    assert default["difference"] == pytest.approx(default["f1"] - of_base["f1"])
    assert worse["difference_low"] <= worse["difference"] <= worse["difference_high"] < 0
    assert worse["p"] < worse["p_holm"] < 0.05
    assert worse["gap"].endswith(")")
    assert table["gap"].str.endswith(" n.s.").equals(table["p_holm"] >= 0.05)
    tested = table["p"].dropna().sort_values()
    assert table.loc[tested.index[0], "p_holm"] == pytest.approx(min(1, tested.iloc[0] * len(tested)))


def test_lists_have_the_pairs_of_the_runs(results, tmp_path):
    """The pairs that a method misses are the pairs of the truth that its own run does not report."""
    table = pd.read_csv(results[1] / "compare.csv")
    tau = table.loc[(table["method"] == "shingles1") & (table["at"] == "best"), "tau"].item()
    words = ("data=tiny", "signature=shingles1", f"tau={tau}", "engine=serial", f"hydra.run.dir={tmp_path / 'run'}")
    assert front_door(*words).returncode == 0
    pairs = pd.read_parquet(tmp_path / "run" / "pairs.parquet")
    reported = {frozenset(pair) for pair in pairs.iloc[:, :2].itertuples(index=False)}
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    listed = [row for row in rows_of(results[1] / "pairs.csv") if row["method"] == "shingles1"]
    missed = [row for row in listed if row["list"] == "misses"]
    assert 0 < len(missed) <= metrics["positive_pairs"] - metrics["true_pairs"]
    for row in listed:
        assert (frozenset((row["a"], row["b"])) in reported) == (row["list"] == "finds alone")
        assert (row["truth"] == "true") == (row["a"].split("/")[0] == row["b"].split("/")[0])
        assert row["first_line_a"]
    by = [int(row["found_by_others"]) for row in missed]
    assert by == sorted(by, reverse=True)
    assert f"{by[0]} of 5 others find it" in (results[1] / "pairs.md").read_text()


def test_several_collections_and_judged_pairs(tmp_path):
    path, pairs = tmp_path / "own.jsonl", tmp_path / "pairs.tsv"
    texts = {"a1": "the bridge of the city is a bridge that will be built by the end of the year and the next one"}
    texts |= {
        "a2": texts["a1"] + " or so",
        "a3": texts["a1"] + " again",
        "b": "a win in the rain is a win and the team is proud of it",
        "c": "x",
    }
    path.write_text("".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items()))
    pairs.write_text("a1\ta2\t1\na1\tb\t0\n")
    mine = f"{{mine: {{data: jsonl, data.path: {path}, data.truth: {pairs}}}}}"
    printed = compared(tmp_path / "results", f"collections=[tiny, {mine}]", "methods=[spotsigs, brute_force]")
    table = pd.read_csv(tmp_path / "results" / "compare" / "compare.csv")
    assert table["collection"].unique().tolist() == ["tiny", "mine"]
    assert {*table.loc[table["collection"] == "mine", "positive_pairs"]} == {1}
    assert "Unjudged" in (tmp_path / "results" / "compare" / "compare.md").read_text()
    assert "curves_mine.svg" in printed
    listed = rows_of(tmp_path / "results" / "compare" / "pairs.csv")
    assert {row["truth"] for row in listed if row["collection"] == "mine"} <= {"true", "false", "unjudged"}
    assert "mine (5 pages, IDF [0.2, 1])" in " ".join(printed.split())
    assert "(gold)" not in printed
    assert "Unjudged: reported pairs that nobody judged" in " ".join(printed.split())
    assert "nan" not in printed


def test_one_method_alone_is_compared(tmp_path):
    printed = compared(tmp_path, "data=tiny", "methods=[shingles1]")
    table = pd.read_csv(tmp_path / "compare" / "compare.csv")
    assert table["gap"].unique().tolist() == ["baseline"]
    assert "curves.svg" in printed


def test_the_usual_collections_are_not_those_of_data(tmp_path):
    words = ("experiment=figure5", "data=tiny", "experiment.step=0.5", "workers=1", "engine=serial")
    done = front_door(*words, f"experiment.results={tmp_path}")
    assert done.returncode == 0, done.stderr
    assert "figure5 evaluates data=tiny alone; its usual collections take about" in done.stderr
    assert {*pd.read_csv(tmp_path / "figure5" / "cells.csv")["collection"]} == {"tiny"}


class TestChoices:
    def chosen(self, *named, omitted=()):
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            return chosen_methods(list(named) or None, omitted, {"imatch": ["shingles1", "spotsigs"]})

    def test_all_matchers_and_signatures_but_variants(self):
        methods = self.chosen(omitted=["spotsigs_the"])
        assert next(iter(methods)) == "spotsigs"
        assert "spotsigs_the" not in methods
        assert methods["cosine"] == {"matcher": "cosine", "signature": "spotsigs"}
        assert methods["shingles3"] == {"matcher": "spotsigs", "signature": "shingles3"}
        assert methods["imatch, shingles1"] == {"matcher": "imatch", "signature": "shingles1"}

    @pytest.mark.parametrize(
        ("named", "sentence"),
        [
            (["lsh", "spotsig"], "methods: spotsig is no matcher or signature; did you mean 'spotsigs'.; there are "),
            (["lsh", {"lsh": {}}], "methods has lsh twice; give each a label"),
            ([{"mine": "lsh"}], r"methods must be a list such as '\[spotsigs, lsh, .*', got"),
        ],
    )
    def test_a_wrong_choice_is_one_sentence(self, named, sentence):
        with pytest.raises(InputError, match=sentence):
            self.chosen(*named)

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (["methods=[lsh]", "data=tiny"], "methods= is a key of experiment=compare; a run has matcher=, data="),
            ([*FEW, "data=wt10g_like"], "data=wt10g_like has vectors without pages, and no truth"),
            *(
                ([*FEW, "data=tiny", *words], sentence)
                for words, sentence in {
                    ("methods=[lsh]", "timing=soon"): "timing must be true, false or now, got 'soon'",
                    ("methods=[lsh]", "experiment.table.baseline=lhs"): "'lhs' is not compared; did you mean 'lsh'",
                    ("methods=[{mine: {k: 3}}]",): "experiment.methods.mine has no key 'k'; a method has text",
                    ("methods=lsh",): "methods must be a list such as",
                    ("experiment.step=0.3",): "step must divide 1, as 0.02 does, got 0.3",
                }.items()
            ),
        ],
    )
    def test_a_wrong_word_ends_the_run(self, tmp_path, words, sentence):
        done = front_door(*words, *([f"experiment.results={tmp_path}"] if FEW[0] in words else []))
        assert done.returncode == 1
        assert sentence in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_time_is_printed_with_its_disturbance(tmp_path):
    from experiments.studies.compared_methods import shown_seconds

    quiet = {"sort_hash_ms": 1, "cluster_ms": 2, "total_ms": 3, "memory_mib": 1, "peak_mb": 2, "contended": False}
    assert shown_seconds(cost(quiet)) == 0.003
    assert shown_seconds(cost(quiet | {"contended": True})) == "0.00†"
    assert shown_seconds(cost({"over_s": 60})) == "over 60 s"
    assert shown_seconds({}) is None
    assert np.isfinite(cost(quiet)["measured_ms"])
