"""Every experiment, through its configuration, on the small collection; cells, provenance, resumption."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hydra import compose, initialize_config_dir

from experiments.claims.facts import read_facts
from experiments.claims.judged_claims import judge_all
from experiments.claims.verdicts import Verdict
from experiments.config import GROUPS, quoted, settings
from experiments.studies.arithmetic import _violations, narrow_boundaries
from experiments.studies.figure4 import cosine_within
from experiments.studies.lcs_tables import Sets, site_of
from experiments.studies.partition_sizes import pairs_to_compare, partition_sizes
from experiments.studies.threads import thread_counts
from experiments.work.curves import Curve, judge
from experiments.work.extracted_collections import Source, read
from experiments.work.study import PAPER_BAND
from experiments.work.timing import cost, quotient, time_matcher
from spotsigs.engines import Serial
from spotsigs.evaluation.metrics import evaluate
from spotsigs.matching.algorithm1 import SpotSigs
from spotsigs.matching.partitions import partition_boundaries
from spotsigs.matching.prefix_join import SpotSigsTight, self_join
from spotsigs.records import ThresholdMatcher, Vectors
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.spots import SpotSignatures

ROOT = Path(__file__).parents[2]
CONF = ROOT / "conf"
EXPERIMENTS = sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))
STEP = "experiment.step=0.04"
FEW = ("workers=1", "engine=serial")


def settings_for(*overrides):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", list(overrides), return_hydra_config=True)
    return settings(config, {group: str(config.hydra.runtime.choices[group]) for group in GROUPS})


def run(experiment, results, *overrides):
    data = () if any(word.startswith("data") for word in overrides) else ("data=tiny",)
    chosen = settings_for(f"experiment={experiment}", f"experiment.results={results}", *data, *FEW, *overrides)
    with initialize_config_dir(str(CONF), version_base="1.3"):  # methods are composed while it runs
        return chosen.experiment(chosen)


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A results folder with the quick experiments on the small collection."""
    folder = tmp_path_factory.mktemp("results")
    for experiment, overrides in (
        ("figure4", ()),
        ("figure5", (STEP,)),
        ("chain_length", (STEP,)),
        ("exactness", ("experiment.collections=2", "experiment.documents=30")),
        ("partitions", ("data=wt10g_like", "data.documents=2000")),
        ("claims", ()),
    ):
        assert run(experiment, folder, *overrides)
    return folder


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_has_a_checked_configuration(experiment):
    chosen = settings_for(f"experiment={experiment}", "data=tiny")
    assert callable(chosen.experiment)
    assert chosen.names["experiment"] == experiment
    assert chosen.experiment.results == Path("results")


def test_all_names_every_experiment():
    everything = settings_for("experiment=all", "data=tiny").experiment
    named = {*everything.pages, *everything.vectors, "all", "claims", "report"}
    assert named >= set(EXPERIMENTS) - OTHERS


def test_everything_goes_to_a_folder_of_any_name(tmp_path):
    """As of a variant, which is named by what was overridden."""
    folder = tmp_path / "all" / "experiment.pages=-a+b,c'd"
    run("all", quoted(str(folder)), "experiment.pages=[]", "experiment.vectors=[]")
    assert (folder / "report.html").exists()


OTHERS: set[str] = {"scale", "threshold"}


class TestResults:
    def test_figures_come_in_five_files(self, results):
        for name in ("figure4/figure4", "figure5/figure5", "chain_length/chain_length", "partitions/partitions"):
            for suffix in ("svg", "png", "pdf", "csv", "json"):
                assert (results / f"{name}.{suffix}").stat().st_size > 0

    def test_tables_come_in_four_files(self, results):
        for suffix in ("csv", "md", "tex", "json"):
            assert (results / f"exactness/exactness.{suffix}").stat().st_size > 0

    def test_figure5_shows_what_a_run_measures(self, results):
        chosen = settings_for("data=tiny")
        stored = read(
            Source(collection=chosen.collection, text=chosen.text, signature=SpotSignatures()),
            results / "cells",
            Serial(),
        )
        corpus = stored.corpus(IdfFilter(idf_min=PAPER_BAND[0], idf_max=PAPER_BAND[1]))
        for point in rows(results / "figure5" / "figure5.csv"):
            if (point["panel"], point["series"]) == ("Jaccard", "SpotSigs"):
                quality = evaluate(SpotSigs(tau=float(point["x"]))(corpus), stored.truth(), resamples=0)
                assert float(point["y"]) == pytest.approx(quality.f1)
                assert float(point["low"]) <= float(point["y"]) <= float(point["high"])

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
        judged = {item.claim.fact: item for item in judge_all(results)}
        assert judged["exact in rational arithmetic"].verdict is Verdict.REPRODUCED
        assert judged["exact in floating point as printed"].verdict is Verdict.CONTRADICTED
        assert judged["NoPart / SpotSigs, tau 0.9"].verdict is Verdict.NOT_MEASURED
        assert "claims\n" in (results / "claims.md").read_text()

    def test_partitions_hold_every_document(self, results):
        points = rows(results / "partitions" / "partitions.csv")
        for series in ("lengths", "paper's boundaries", "prototype's boundaries", "bins of equal width"):
            assert sum(float(p["y"]) for p in points if p["series"] == series) == 2000


class TestTiming:
    def stored(self, tmp_path, documents=2000):
        chosen = settings_for("data=wt10g_like", f"data.documents={documents}")
        return read(Source(collection=chosen.collection), tmp_path, Serial())

    def test_a_cell_has_times_memory_and_recall(self, tmp_path):
        stored = self.stored(tmp_path)
        matcher = SpotSigs(tau=0.9, threads=1)
        cell = time_matcher(stored=stored, idf_filter=None, matcher=matcher, repeats=2, base=SpotSigs(tau=1.0))
        vectors = stored.corpus().vectors
        assert cell["relative_recall"] == 1
        assert cell["total_ms"] > 0
        assert cell["documents"] == len(vectors) == 2000
        assert cell["memory_mib"] == pytest.approx((len(vectors.ids) * 10 + 2000 * 4) / 2**20)
        assert cell["peak_mb"] > 20
        assert min(cell["runs_ms"]) <= cell["total_ms"] <= max(cell["runs_ms"])
        assert cell["contended"] == all(cores > 0.2 for cores in cell["foreign_cores"])
        json.dumps(cell)

    def test_disturbed_times_give_no_ratio(self):
        clean = {"contended": False, "total_ms": 10.0, "runs_ms": [8.0, 10.0, 12.0], "sort_hash_ms": 4.0}
        assert quotient("x", clean | {"contended": True}, clean) is None
        ratio = quotient("x", clean | {"total_ms": 30.0, "runs_ms": [24.0, 30.0, 36.0]}, clean)
        assert (ratio.value, ratio.low, ratio.high) == (3.0, 2.0, 4.5)
        assert quotient("x", clean, clean, "sort_hash_ms").value == 1

    def test_a_stopped_run_gives_a_lower_bound(self):
        clean = {"contended": False, "total_ms": 10_000.0, "runs_ms": [10_000.0]}
        found = quotient("x", {"over_s": 60.0}, clean)
        assert (found.value, str(found)) == (6, "over 6")
        assert quotient("x", clean, {"over_s": 60.0}) is None
        assert cost({"over_s": 60.0})["total_ms"] == "over 60 s"

    def test_vectors_survive_the_file(self, tmp_path):
        stored = self.stored(tmp_path)
        drawn = stored.source.collection.vectors()
        kept = stored.corpus().vectors
        np.testing.assert_array_equal(kept.ids, drawn.ids)
        np.testing.assert_array_equal(kept.counts, drawn.counts)
        assert repr(stored) == repr(self.stored(tmp_path))
        assert str(tmp_path) not in repr(stored)


def test_a_changed_file_is_read_again(tmp_path):
    pages = tmp_path / "pages" / "one"
    pages.mkdir(parents=True)
    (pages / "a.html").write_text("<p>The first page is about the river and a bridge</p>")
    chosen = settings_for("data=folder", f"data.path={tmp_path / 'pages'}")
    source = Source(collection=chosen.collection, text=chosen.text, signature=SpotSignatures())
    first = read(source, tmp_path / "cells", Serial())
    assert read(source, tmp_path / "cells", Serial()).path == first.path
    (pages / "b.html").write_text("<p>The second page is about the sea and a ship</p>")
    second = read(source, tmp_path / "cells", Serial())
    assert second.checksum != first.checksum
    assert len(second.corpus(IdfFilter(idf_min=0)).vectors) == 2


def test_a_curve_needs_truth(tmp_path):
    chosen = settings_for("data=wt10g_like", "data.documents=100")
    stored = read(Source(collection=chosen.collection), tmp_path, Serial())
    with pytest.raises(ValueError, match="has no truth"):
        judge(stored=stored, idf_filter=IdfFilter(), matcher=SpotSigs(), taus=[0.5])


def test_timing_experiments_refuse_pages(tmp_path):
    with pytest.raises(ValueError, match="data=wt10g_like"):
        run("table2", tmp_path)


def test_rows_of_table2_can_be_left_out(tmp_path):
    given = ("data=wt10g_like", "data.documents=2000")
    left = run(
        "table2",
        tmp_path,
        *given,
        "experiment.without=[NoPrune,NoPart,SpotSigs,'SpotSigs, global order','LSH-S (native)']",
    )
    measured = {row["method"] for row in rows(tmp_path / "table2" / "table2.csv") if row["row"] != "published"}
    assert measured == {"I-Match-S", "SpotSigs, tight bounds"}
    assert "NoPrune" not in left
    with pytest.raises(ValueError, match="no row is named NoPurne; the rows are I-Match-S, "):
        run("table2", tmp_path, *given, "experiment.without=[NoPurne]")


def test_cosine_within_is_the_mean_over_pairs():
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
        wanted = [unit[a] @ unit[b] for a in members for b in members if a < b]
        assert mean == pytest.approx(np.mean(wanted)) if wanted else np.isnan(mean)


def test_sets_are_judged_as_the_slides_define():
    truth = np.array([0, 0, 0, 1, 1, -1, -1], np.int32)
    sites = np.array([0, 1, 0, 0, 0, 0, 1])
    found = Sets.of(np.array([0, 0, 1, 0, 1, 2, 2]), truth, sites)
    assert found.precision().tolist() == [2 / 3, 1 / 2, 1 / 2]
    whole = Sets.of(truth.astype(np.int64), truth, sites)
    split = Sets.of(np.arange(7), truth, sites)
    assert whole.recall(whole, split).tolist() == [1, 3, 2]
    assert whole.recall(split, whole).tolist() == [1, 1 / 3, 1 / 2]
    assert site_of("cluster/herald-012.html") == "herald"
    assert site_of("https://news.example/a-b.html") == "news.example"


def test_partition_sizes_and_pairs():
    sizes = partition_sizes(np.array([1, 1, 2, 5, 9]), np.array([1, 2, 4]))
    assert sizes.tolist() == [2, 1, 2]
    assert pairs_to_compare(sizes) == pytest.approx((1 + 0 + 1 + 2 + 2) / 10)


def test_the_report_of_a_folder_without_results(tmp_path):
    run("report", tmp_path, "experiment.each=0")
    page = (tmp_path / "report.html").read_text()
    assert "not measured yet" in page
    assert 'id="inspector"' not in page


@pytest.mark.long
def test_everything_on_small_collections_killed_and_continued(tmp_path):
    """The whole of `experiment=all` from the command line: killed in the middle, continued, and the same results."""
    command = [
        sys.executable,
        str(ROOT / "run.py"),
        "experiment=all",
        f"experiment.results={tmp_path / 'results'}",
        "experiment.pages=[figure4,figure5,chain_length]",
        "experiment.vectors=[partitions]",
        "experiment.documents=3000",
        "data=tiny",
        "workers=2",
        "debug=true",
    ]
    cells = tmp_path / "results" / "cells"
    first = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    while len(list(cells.glob("judge-*.json"))) < 2:
        assert first.poll() is None
        time.sleep(0.05)
    os.killpg(first.pid, 9)
    first.wait()
    before = {path.name: path.stat().st_mtime_ns for path in cells.iterdir() if not path.name.startswith(".")}
    assert not (tmp_path / "results" / "figure5" / "figure5.svg").exists()
    second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "Wall time of each experiment" in second.stdout
    after = {path.name: path.stat().st_mtime_ns for path in cells.iterdir()}
    assert {name: after[name] for name in before} == before
    assert len(after) > len(before)
    assert (tmp_path / "results" / "report.html").exists()
    times = rows(tmp_path / "results" / "all" / "times.csv")
    assert [row["experiment"] for row in times] == [
        *("figure4", "figure5", "chain_length", "partitions", "claims", "report", "all")
    ]
    assert int(times[1]["kept"]) + int(times[0]["kept"]) >= 1
    assert read_facts(tmp_path / "results" / "figure4" / "facts.csv")["clusters"].value == 8


@pytest.mark.long
def test_table1_has_every_column_of_the_paper(tmp_path):
    told = run("table1", tmp_path, STEP, "experiment.repeats=1")
    for column in ("IDF", "τ", "#Spots", "MB", "Sort/Hash (ms)", "Clust. (ms)", "Total (ms)", "Prec.", "Rec.", "F1"):
        assert column in told
    table = rows(tmp_path / "table1" / "table1.csv")
    assert [row["method"] for row in table if row["row"] == "published"] == [
        *("SpotSigs", "1-Shingles", "3-Shingles", "LSH-S", "I-Match", "I-Match-S")
    ]
    ours = next(row for row in table if row["row"] == "measured")
    assert float(ours["f1_low"]) <= float(ours["f1"]) <= float(ours["f1_high"])
    assert float(ours["peak_mb"]) > 20
    assert float(ours["difference"]) == pytest.approx(float(ours["f1"]) - 0.94)


def test_curve_of_a_matcher_without_threshold(tmp_path):
    from baselines.imatch import IMatch

    chosen = settings_for("data=tiny")
    stored = read(
        Source(collection=chosen.collection, text=chosen.text, signature=SpotSignatures()), tmp_path, Serial()
    )
    cell = judge(stored=stored, idf_filter=IdfFilter(), matcher=IMatch(), taus=[])
    curve = Curve(cell)
    assert curve.taus == []
    assert curve.micro.shape == (3, 1)
    with pytest.raises(ValueError, match="no threshold to draw a curve over"):
        judge(stored=stored, idf_filter=IdfFilter(), matcher=replace(IMatch()), taus=[0.5])


@dataclass(frozen=True, kw_only=True)
class Unverified(ThresholdMatcher):
    """The pairs of the exact join, without saying how similar they are."""

    label = "Unverified"

    def __call__(self, corpus):
        found = self_join(corpus.vectors, self.tau)
        return replace(found, similarity=np.ones(len(found)))


def test_an_unverified_matcher_runs_at_each_threshold_of_its_curve(tmp_path):
    """The guide's own method is one: it once ended every comparison of systems."""
    chosen = settings_for("data=tiny")
    stored = read(
        Source(collection=chosen.collection, text=chosen.text, signature=SpotSignatures()), tmp_path, Serial()
    )
    cells = [
        judge(stored=stored, idf_filter=IdfFilter(), matcher=matcher, taus=[0.2, 0.5, 0.8])
        for matcher in (Unverified(), SpotSigsTight())
    ]
    assert cells[0]["pairs"] == cells[1]["pairs"]
    assert cells[0]["true"] == cells[1]["true"]
    assert len(set(cells[0]["pairs"])) == 3


def test_the_worked_examples_come_out_of_the_product():
    from experiments.studies.arithmetic import _examples

    facts = {fact.name: fact.value for fact in _examples()}
    assert facts["extraction example"] == facts["deduplication example: computations for d1"] == 1


@pytest.mark.parametrize("tau", [0.1, 0.44, 0.5, 0.8, 0.9, 1.0])
def test_narrower_partitions_than_the_formulas_lose_no_pair(tau):
    boundaries = narrow_boundaries(tau)
    assert len(boundaries) >= len(partition_boundaries(tau))
    assert _violations(boundaries, tau) == (0, 0)


@pytest.mark.long
def test_threads_start_with_one(tmp_path):
    given = ("data=wt10g_like", "data.documents=2000", "threads=2")
    assert run("threads", tmp_path, *given)
    found = rows(tmp_path / "threads" / "threads.csv")
    methods = ("SpotSigs", "SpotSigs, tight bounds", "LSH-S (native)")
    assert {(row["method"], row["threads"]) for row in found} == {(m, n) for m in methods for n in ("1", "2")}
    assert {float(row["speed_up"]) for row in found if row["threads"] == "1" and row["speed_up"]} <= {1.0}


def test_threads_are_doubled_up_to_the_cores():
    assert [thread_counts(cores) for cores in (1, 2, 6, 8)] == [[1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8]]
