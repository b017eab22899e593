"""Every experiment is composed from `conf` and runs on small collections; what runs are killed in resumes."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from folders import rows_of
from hydra import initialize_config_dir
from hydra.errors import HydraException, MissingConfigException
from in_process import front_door, process, started
from runs import configured

from experiments.choices import ChoiceNames
from experiments.claims.facts import read_facts
from experiments.claims.judged_claims import judge_all
from experiments.claims.verdicts import Verdict
from experiments.config import Experiment, Takes, all_takes, composed, method_of, methods_of, require_read, sentence
from experiments.evaluate import resampled_intervals
from experiments.harness.cells import cell_of
from experiments.studies.arithmetic import examples, narrow_boundaries, violations
from experiments.studies.comparison import MethodComparison
from experiments.studies.figure4 import cosine_within
from experiments.studies.partition_sizes import pairs_to_compare, partition_sizes
from experiments.studies.timed_methods import thread_counts
from spotsigs.errors import InputError
from spotsigs.matching.partitions import partition_boundaries
from spotsigs.options import plain
from spotsigs.records import Vectors
from spotsigs.runs.stages import Output, Run, compute

ROOT = Path(__file__).parents[2]
CONF = ROOT / "conf"
EXPERIMENTS = sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))
STEP = "experiment.step=0.04"


def run(experiment, results, *overrides):
    data = () if any(word.startswith("data") for word in overrides) else ("data=tiny",)
    few = ("workers=1", "engine=serial")
    chosen = configured(f"experiment={experiment}", f"experiment.results={results}", *data, *few, *overrides)
    with initialize_config_dir(str(CONF), version_base="1.3"):  # methods are composed while it runs
        return chosen.experiment(chosen)


def _first(choices):
    """Return the groups and keys of a method with the first values that it is swept over."""
    swept = {key: values[0] for key, values in choices.get("sweep", {}).items()}
    return {key: value for key, value in choices.items() if key != "sweep"} | swept


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A results folder with the quick experiments on the small collection."""
    folder = tmp_path_factory.mktemp("results")
    for experiment, overrides in (
        ("figure4", ()),
        ("figure5", (STEP,)),
        ("exactness", ("experiment.given.collections=2", "experiment.given.documents=30")),
        ("partitions", ("data=wt10g_like", "data.documents=2000")),
        ("claims", ()),
    ):
        assert run(experiment, folder, *overrides)
    return folder


class TestConfiguration:
    @pytest.mark.parametrize("name", EXPERIMENTS)
    def test_every_method_composes(self, name):
        methods = yaml.safe_load((CONF / f"experiment/{name}.yaml").read_text(encoding="utf-8"))["experiment"]
        with initialize_config_dir(str(CONF), version_base="1.3"):
            chosen = composed(f"experiment={name}", "data=tiny")
            assert isinstance(chosen.experiment, Experiment)
            assert chosen.experiment.results == Path("results")
            single = {
                label: {key: value[0] if isinstance(value, list) else value for key, value in _first(choices).items()}
                for label, choices in methods.get("methods", {}).items()
            }
            assert list(methods_of(single, chosen, **methods.get("fixed", {}))) == list(single)

    def test_one_label_is_one_program(self):
        """A label has one matcher in all tables: two programs of one system have two labels."""
        matchers_of = {}
        for name in EXPERIMENTS:
            study = yaml.safe_load((CONF / f"experiment/{name}.yaml").read_text(encoding="utf-8"))["experiment"]
            for label, choices in study.get("methods", {}).items():
                matchers_of.setdefault(label, set()).add(choices.get("matcher", "spotsigs"))
        assert {label: matchers for label, matchers in matchers_of.items() if len(matchers) > 1} == {}

    def test_a_fixed_key_cannot_be_set_by_a_method(self):
        """The panel's matcher replaced the method's, whose curve had another method's name."""
        with initialize_config_dir(str(CONF), version_base="1.3"):
            chosen = composed("experiment=figure5", "data=tiny")
            mine = replace(chosen.experiment, methods={**chosen.experiment.methods, "Mine": {"matcher": "brute_force"}})
            with pytest.raises(InputError, match=r"methods.Mine sets matcher: brute_force, and the experiment fixes"):
                mine(replace(chosen, experiment=mine))
            with pytest.raises(MissingConfigException, match="same_length"):
                method_of({"matcher": "same_length"}, chosen)
            with pytest.raises(InputError, match=r"methods.Mine has no key 'limit'"):
                method_of({"limit": 1}, chosen, label="Mine")
            with pytest.raises(InputError, match=r"methods.Mine must be a mapping"):
                method_of("matcher=lsh", chosen, label="Mine")

    @pytest.mark.parametrize("value", ["matcher=same_length", "'matcher=same_length'", "lsh", "[lsh]"])
    def test_a_method_that_is_a_text_is_one_sentence_with_the_way_out(self, value):
        key = "experiment.methods.Mine"
        with (
            initialize_config_dir(str(CONF), version_base="1.3"),
            pytest.raises((HydraException, InputError)) as refused,
        ):
            composed("experiment=figure5", "data=tiny", f"+{key}={value}")
        assert sentence(refused.value) == f"error: {key} must be a mapping, as in '+{key}={{matcher: lsh, tau: 0.4}}'"

    def test_all_names_every_experiment(self):
        everything = configured("experiment=all", "data=tiny").experiment
        named = {*everything.pages, *everything.vectors, "all", "claims"}
        assert named | {"scale", "compare"} == set(EXPERIMENTS)

    def test_methods_take_the_seed_of_the_experiment(self):
        with initialize_config_dir(str(CONF), version_base="1.3"):
            chosen = composed("experiment=table1", "seed=7")
            methods = methods_of(chosen.experiment.methods, chosen)
        seeds = {label: getattr(method.matcher, "seed", None) for label, method in methods.items()}
        assert seeds["LSH-S"] == seeds["I-Match"] == 7
        assert seeds["SpotSigs"] is None

    @pytest.mark.parametrize("word", ["matcher=lsh_native", "signature=shingles1", "idf_min=0.9", "sets=true"])
    def test_what_an_experiment_does_not_read_is_refused(self, word):
        refused = rf"experiment=figure5 does not read {word.partition('=')[0]}; it reads .*data"
        with pytest.raises(InputError, match=refused):
            require_read(MethodComparison(), "figure5", ["data=tiny", word])

    @pytest.mark.parametrize(
        "word", ["data.path=x", "+experiment.methods.Mine=matcher=mine", "seed=3", "hydra.verbose=true"]
    )
    def test_what_every_experiment_reads_is_taken(self, word):
        require_read(MethodComparison(), "figure5", [word])

    def test_an_added_method_has_the_band_of_the_others(self):
        """It had another one, under a caption that names the paper's."""
        with initialize_config_dir(str(CONF), version_base="1.3"):
            settings = composed("experiment=quality", "data=tiny", "+experiment.methods.Mine={signature: shingles3}")
            methods, _ = settings.experiment.composed(settings)
        assert methods["Mine"].idf_filter == methods["SpotSigs"].idf_filter
        assert methods["I-Match"].idf_filter.idf_max == 0.75

    def test_an_override_that_is_not_read_ends_the_run(self):
        words = ["experiment=figure5", "matcher=lsh_native", "signature=shingles1", "idf_min=0.9", "sets=true"]
        done = front_door(*words)
        assert done.returncode == 1
        assert done.stderr.startswith("error: experiment=figure5 does not read matcher")
        assert len(done.stderr.splitlines()) == 1


class TestResults:
    def test_figures_have_five_files_and_tables_four(self, results):
        names = dict.fromkeys(("figure4", "figure5", "partitions"), "svg png pdf csv json")
        names["exactness"] = "csv md tex json"
        for name, suffixes in names.items():
            for suffix in suffixes.split():
                assert (results / name / f"{name}.{suffix}").stat().st_size > 0

    def test_cells_have_every_figure_of_a_run_and_figure5_is_a_view_of_them(self, results):
        cells = pd.read_parquet(results / "figure5" / "cells.parquet")
        assert len(cells) == len(rows_of(results / "figure5" / "cells.csv")) == 6 * 25
        assert cells.groupby(["collection", "method", "tau"]).size().max() == 1
        rows = rows_of(results / "figure5/figure5.csv")
        drawn = {(row["panel"], row["series"], float(row["x"])): float(row["y"]) for row in rows}
        chosen = configured("data=tiny", "idf_min=0.2", "idf_max=0.85", "duplicates=off", "tau=0.44")
        run = Run(collection=chosen.collection, data="tiny", output=Output(folder=Path()))
        result = compute(chosen.method, run)
        intervals = result.metrics["intervals"] | resampled_intervals(chosen.collection, result)
        expected = cell_of(result.described(ChoiceNames()) | {"intervals": intervals}, seed=2008, commit=None)
        assert cells.columns.tolist() == [*expected, "data_seed"]
        for cell in cells.to_dict("records"):
            name, _, panel = cell["method"].partition(", ")
            assert drawn[f"{panel}, tiny", name, cell["tau"]] == pytest.approx(np.nan_to_num(cell["f1"]))
            if (cell["method"], cell["tau"]) == ("SpotSigs, Jaccard", 0.44):
                for name in ("f1", "f1_low", "lost_high", "macro_f1_low", "bcubed_recall", "idf_max", "collection"):
                    assert cell[name] == expected[name]
        assert set(cells["program"]) == {"SpotSigs (tight bounds)", "Cosine"}

    def test_provenance_names_command_commit_machine_seed_and_cells(self, results):
        about = json.loads((results / "figure5" / "figure5.json").read_text())
        assert {"command", "commit", "versions", "machine", "seed", "inputs", "cells"} <= about.keys()
        assert about["experiment"] == "figure5"
        for cell in about["cells"]:
            assert (results / "cells" / cell["cell"]).exists()
            assert cell["arguments"]["taus"].startswith("[0.04, 0.08, 0.12")

    def test_cells_are_used_again(self, results):
        before = {path.name: path.stat().st_mtime_ns for path in (results / "cells").iterdir()}
        figure = (results / "figure5" / "figure5.svg").read_bytes()
        run("figure5", results, STEP)
        assert {path.name: path.stat().st_mtime_ns for path in (results / "cells").iterdir()} == before
        assert (results / "figure5" / "figure5.svg").read_bytes() == figure

    def test_the_ledger_judges_what_ran(self, results):
        judged = {item.claim.test.fact: item for item in judge_all(results)}
        assert judged["exact in rational arithmetic"].verdict is Verdict.REPRODUCED
        assert judged["NoPart / SpotSigs, tau 0.9"].verdict is Verdict.NOT_DECIDED
        assert "claims of the paper: 1 reproduced" in (results / "claims.md").read_text()

    def test_partitions_contain_every_document(self, results):
        points = rows_of(results / "partitions" / "partitions.csv")
        for series in ("lengths", "paper's boundaries", "prototype's boundaries", "bins of equal width"):
            assert sum(float(p["y"]) for p in points if p["series"] == series) == 2000


class TestAll:
    def test_every_experiment_states_what_it_takes(self, tmp_path, capsys):
        everything = configured("experiment=all", "data=tiny").experiment
        with initialize_config_dir(str(CONF), version_base="1.3"):
            named = [*everything.pages, *everything.vectors]
            takes = {name: Takes(**composed(f"experiment={name}", "data=tiny").experiment.takes) for name in named}
        assert all(one.minutes > 0 < one.memory_gb for one in takes.values())
        assert takes["figure5"].downloads == ["newsframes", "republished"]
        whole = all_takes(takes.values())
        assert whole.minutes == pytest.approx(sum(one.minutes for one in takes.values()))
        assert str(whole).startswith(f"about {whole.minutes / 60:.1f} hours on two cores, {whole.memory_gb:g} GB")
        assert str(Takes(minutes=90)).startswith("about 1.5 hours on two cores")
        run("all", tmp_path, "experiment.pages=[arithmetic]", "experiment.vectors=[]")
        printed = capsys.readouterr().err
        assert "2 of 2 experiments, those without results of this commit, take about 1 min on two cores" in printed
        assert "arithmetic: about 1 min" in printed

    def test_a_folder_of_any_name_is_taken(self, tmp_path):
        """As of a variant, which is named by what was overridden."""
        folder = tmp_path / "all" / "experiment.pages=-a+b,c'd"
        run("all", plain(str(folder)), "experiment.pages=[]", "experiment.vectors=[]")
        assert (folder / "README.md").read_text().startswith("# Results\n")

    @pytest.mark.long
    def test_it_continues_without_what_must_be_fetched(self, tmp_path):
        words = ["experiment=all", "experiment.pages=[partitions,arithmetic]"]
        words += ["experiment.vectors=[]", f"experiment.results={tmp_path / 'results'}"]
        done = process(*words, program=[str(ROOT / "run.py")], cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "partitions is left out: " in done.stdout
        assert (tmp_path / "results" / "README.md").exists()

    @pytest.mark.long
    def test_killed_and_continued_it_has_the_same_results(self, tmp_path):
        words = [
            *("experiment=all", "experiment.pages=[figure4,figure5,chain_length]", "experiment.vectors=[]"),
            *("data=tiny", "workers=2", "debug=true", f"experiment.results={tmp_path / 'results'}"),
        ]
        cells = tmp_path / "results" / "cells"
        first = started(*words, program=["run.py"], start_new_session=True)
        while len(list(cells.glob("QualityCells-*.json"))) < 2:
            assert first.poll() is None
            time.sleep(0.05)
        os.killpg(first.pid, 9)
        first.wait()
        before = {path.name: path.stat().st_mtime_ns for path in cells.iterdir() if not path.name.startswith(".")}
        assert not (tmp_path / "results" / "figure5" / "figure5.svg").exists()
        assert process(*words, program=["run.py"]).returncode == 0
        after = {path.name: path.stat().st_mtime_ns for path in cells.iterdir()}
        assert {name: after[name] for name in before} == before
        assert len(after) > len(before)
        assert (tmp_path / "results" / "README.md").exists()
        assert read_facts(tmp_path / "results" / "figure4" / "facts.csv")["clusters"].value == 8


class TestTimes:
    def test_they_are_those_of_vectors(self, tmp_path):
        with pytest.raises(ValueError, match="data=wt10g_like"):
            run("table2", tmp_path)

    def test_table2_has_a_row_for_each_threshold(self, tmp_path):
        tight = {"matcher": "spotsigs_tight", "tau": [1.0, 0.9]}
        few = {"I-Match-S": {"matcher": "imatch"}, "SpotSigs, tight bounds": tight}
        chosen = configured("experiment=table2", "data=wt10g_like", "data.documents=2000")
        with initialize_config_dir(str(CONF), version_base="1.3"):
            replace(chosen.experiment, methods=few, results=tmp_path)(chosen)
        measured = [row for row in rows_of(tmp_path / "table2" / "table2.csv") if row["row"] != "published"]
        assert [row["method"] for row in measured] == ["I-Match-S", *2 * ["SpotSigs, tight bounds"]]
        assert [row["tau"] for row in measured] == ["", "1.0", "0.9"]

    @pytest.mark.long
    def test_table1_has_every_column_of_the_paper(self, tmp_path, monkeypatch):
        monkeypatch.setenv("COLUMNS", "250")  # a narrow terminal has what rows share in the caption
        printed = run("table1", tmp_path, STEP, "experiment.table.times.repeats=1")
        for column in ("IDF", "τ", "#Spots", "MB", "Sort/Hash (ms)", "Clust. (ms)", "Total (ms)", "Prec.", "Rec."):
            assert column in printed
        table = rows_of(tmp_path / "table1" / "table1.csv")
        measured = next(row for row in table if row["row"] == "measured")
        assert float(measured["f1_low"]) <= float(measured["f1"]) <= float(measured["f1_high"])
        assert float(measured["peak_mb"]) > 20

    @pytest.mark.long
    def test_threads_start_with_one(self, tmp_path):
        assert run("threads", tmp_path, "data=wt10g_like", "data.documents=2000", "threads=2")
        rows = rows_of(tmp_path / "threads" / "threads.csv")
        methods = ("SpotSigs", "SpotSigs, tight bounds", "LSH-S (native)")
        assert {(row["method"], row["threads"]) for row in rows} == {(m, n) for m in methods for n in ("1", "2")}
        assert {float(row["speed_up"]) for row in rows if row["threads"] == "1" and row["speed_up"]} <= {1.0}

    def test_threads_are_doubled_up_to_the_cores(self):
        assert [thread_counts(cores) for cores in (1, 2, 6, 8)] == [[1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8]]


class TestFormulas:
    def test_cosine_within_is_the_mean_over_pairs(self):
        rng = np.random.default_rng(5)
        dense = rng.poisson(0.7, (12, 9))
        indptr = np.concatenate([[0], np.cumsum((dense > 0).sum(1))])
        vectors = Vectors.from_csr(indptr, np.nonzero(dense)[1], dense[dense > 0])
        labels = np.array([0, 0, 0, 1, 1, 1, 1, 2, -1, -1, 0, 1], np.int32)
        weights = dense * np.log(12 / np.maximum((dense > 0).sum(0), 1))
        norms = np.linalg.norm(weights, axis=1)
        unit = weights / np.where(norms > 0, norms, 1)[:, None]
        for label, mean in enumerate(cosine_within(vectors, labels)):
            members = np.flatnonzero(labels == label)
            expected = [unit[a] @ unit[b] for a in members for b in members if a < b]
            assert mean == pytest.approx(np.mean(expected)) if expected else np.isnan(mean)

    def test_partition_sizes_and_pairs(self):
        sizes = partition_sizes(np.array([1, 1, 2, 5, 9]), np.array([1, 2, 4]))
        assert sizes.tolist() == [2, 1, 2]
        assert pairs_to_compare(sizes) == pytest.approx((1 + 0 + 1 + 2 + 2) / 10)

    def test_the_worked_examples(self):
        facts = {fact.name: fact.value for fact in examples()}
        assert facts["extraction example"] == facts["deduplication example: computations for d1"] == 1

    @pytest.mark.parametrize("tau", [0.1, 0.44, 0.5, 0.8, 0.9, 1.0])
    def test_narrower_partitions_than_the_formulas_lose_no_pair(self, tau):
        boundaries = narrow_boundaries(tau)
        assert len(boundaries) >= len(partition_boundaries(tau))
        assert violations(boundaries, tau) == (0, 0)
