"""The command ``python run.py``, as a user types it."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest
from in_process import command, front_door, process

import spotsigs
from spotsigs.reports.terminal import COMPILING


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return front_door("data=tiny", "matcher=spotsigs", "tau=0.44", f"hydra.run.dir={folder}"), folder


def test_a_run_prints_the_row_in_the_papers_columns_and_what_to_do_next(finished):
    result, folder = finished
    assert result.returncode == 0, result.stderr
    header = next(line for line in result.stdout.splitlines() if "IDF" in line).split()
    assert " ".join(header) == "IDF tau k l #Spots MB Sort/Hash(msec) Clust.(msec) Total(msec) Prec. Rec. F1"
    assert f"results: {folder}" in result.stdout
    lines = result.stdout.split("\n\n")
    metrics = json.loads((folder / "metrics.json").read_text())
    lists = [pd.read_csv(folder / f"{name}.csv") for name in ("removed", "kept")]
    assert [metrics["removed"], metrics["kept"]] == [len(listed) for listed in lists]
    answer = f"{metrics['documents']} pages, {metrics['removed']} removed"
    assert lines[0].strip().startswith(answer)
    assert lines[0].endswith(f"{metrics['kept']} kept -> {folder}/kept.csv")
    assert 0 < metrics["removed"] == metrics["documents"] - metrics["kept"]
    assert "of the pairs of duplicates, 84.6 % are reported" in result.stdout
    assert "next, to compare methods and thresholds: python run.py -m " in result.stdout


def test_the_interval_states_what_its_samples_draw(finished, tmp_path):
    result, folder = finished
    low, high = json.loads((folder / "metrics.json").read_text())["intervals"]["f1"]
    stated = f"F1 95 % interval {low:.3f} to {high:.3f}"
    assert f"{stated} (stories resampled, and sites where they are known)" in result.stdout
    pages = [f"the plan of {k} is a bridge of the town in a year of the council" for k in range(4)]
    rows = [{"id": f"{k}-{n}", "text": page, "cluster": str(k)} for k, page in enumerate(pages) for n in range(2)]
    (tmp_path / "pages.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = command("dedup", "pages.jsonl", "--out", "copy", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "(clusters resampled)" in done.stdout


def test_a_run_writes_its_folder(finished):
    _, folder = finished
    metrics = json.loads((folder / "metrics.json").read_text())
    promised = (
        "documents, signatures, pairs, precision, recall, f1, macro_precision, macro_recall, macro_f1, memory_mib, "
        "peak_mb, parse_ms, sort_hash_ms, cluster_ms, total_ms, tau, data, signature, matcher"
    )
    assert set(promised.split(", ")) <= metrics.keys()
    assert [metrics[key] for key in ("data", "signature", "matcher", "tau")] == ["tiny", "spotsigs", "spotsigs", 0.44]
    pairs = pd.read_parquet(folder / "pairs.parquet")
    assert list(pairs.columns) == ["doc_a", "doc_b", "similarity", "shared", "union", "lower_bound"]
    assert (pairs["shared"] / pairs["union"] == pairs["similarity"]).all()
    assert (pairs["lower_bound"] == pairs["similarity"]).all()
    assert len(pairs) == metrics["pairs"] > 0
    clusters = pd.read_parquet(folder / "clusters.parquet")
    columns = "doc cluster representative similarity_to_representative size min_similarity mean_similarity chain"
    assert list(clusters.columns) == columns.split()
    assert len(clusters) == metrics["documents"]
    run = json.loads((folder / "run.json").read_text())
    assert {"command", "commit", "versions", "machine", "seed", "input_sha256", "contended"} <= run.keys()
    assert (run["method"], run["versions"]["spotsigs"]) == (metrics["method"], spotsigs.__version__)
    assert (folder / ".hydra" / "config.yaml").exists()
    assert not list(folder.glob(".*.[0-9]*"))  # no temporary file is left


@pytest.mark.parametrize(
    "word", ["memory=2GB", "store=x", "page=true", "copy=x", "query=x", "against=x", "strict=true", "add=true"]
)
def test_keys_of_production_name_the_command(word):
    done = front_door(word)
    assert done.returncode == 1
    assert re.match(rf"error: {word.split('=')[0]} is no key of run.py: `spotsigs ", done.stderr)


def test_a_range_of_thresholds_has_the_decimals_that_it_names(tmp_path):
    """The sum 0.1 + 0.1 + 0.1 is more than 0.3, and would lose the pairs of similarity 0.3."""
    done = front_door("-m", "data=tiny", "tau=range(0.1,0.35,0.1)", f"hydra.sweep.dir={tmp_path}")
    assert done.returncode == 0, done.stderr
    taus = {json.loads(path.read_text())["tau"] for path in tmp_path.rglob("metrics.json")}
    assert taus == {0.1, 0.2, 0.3}


def test_a_single_run_imports_neither_plots_nor_frames(tmp_path):
    code = (
        "import runpy, sys; sys.argv = ['run.py', 'data=tiny', sys.argv[1]]; sys.path.insert(0, '');"
        "runpy.run_path('run.py', run_name='__main__');"
        "print({'matplotlib', 'pandas', 'scipy.stats', 'jinja2', 'joblib', 'datasketch', 'fsspec'}"
        " & set(sys.modules))"
    )
    for _ in range(2):  # the first run may need the compiler, which imports more
        imported = process(f"hydra.run.dir={tmp_path}", program=("-c", code)).stdout.splitlines()[-1]
        if imported == "set()":
            break
    assert imported == "set()"


def test_a_run_prints_once_that_it_compiles(tmp_path):
    code = (
        "import sys; from spotsigs.reports.terminal import announce_compilation; announce_compilation(sys.stdout);"
        "from numba import njit; one = njit(lambda x: x); one(1); one(1.0); one(1)"
    )
    assert process(program=("-c", code)).stdout.splitlines() == [COMPILING]


def test_an_experiment_that_is_refused_ends_with_its_sentence_alone(tmp_path):
    refused = front_door("experiment=figure5", "+experiment.methods.Mine={matcher: lsh}", f"hydra.run.dir={tmp_path}")
    assert refused.returncode == 1
    takes, sentence = refused.stderr.splitlines()
    assert takes.startswith("figure5 takes about 2 min")
    assert sentence.startswith("error: experiment.methods.Mine sets matcher: lsh, and the experiment fixes")
