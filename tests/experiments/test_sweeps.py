"""Sweeps share what their cells have in common, continue, and end with the paper's table and a figure."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from in_process import front_door, started
from omegaconf import OmegaConf
from runs import planned

from experiments.claims.published import published_row
from experiments.show import sweep
from experiments.show.table1_row import ROW
from experiments.show.tables import Column, Table

ROOT = Path(__file__).parents[2]
SWEEP = ("-m", "data=tiny", "matcher=spotsigs,lsh", "tau=0.3,0.6", "engine=serial")


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    done = front_door(*SWEEP, f"hydra.sweep.dir={folder}", COLUMNS="200")  # times of any length fit
    assert done.returncode == 0, done.stderr
    return done, folder


BROKEN = """
from dataclasses import dataclass
from spotsigs.contracts import ThresholdMatcher
from spotsigs.errors import InputError

@dataclass(frozen=True, kw_only=True)
class Broken(ThresholdMatcher):
    label = "Broken"
    measure = "jaccard"

    def __call__(self, corpus):
        raise InputError("no pairs today")
"""


class TestSweep:
    def test_a_cell_has_the_files_of_a_single_run(self, swept, tmp_path):
        _, folder = swept
        done = front_door("data=tiny", "matcher=spotsigs", "tau=0.6", "engine=serial", f"hydra.run.dir={tmp_path}")
        assert done.returncode == 0, done.stderr
        cell = folder / "tiny/spotsigs/spotsigs/tau=0.6+engine=serial"
        files = sorted(path.name for path in tmp_path.iterdir() if path.suffix in (".csv", ".parquet"))
        assert len(files) > 4
        for name in files:
            assert (cell / name).read_bytes() == (tmp_path / name).read_bytes(), name
        swept_metrics, alone = (json.loads((path / "metrics.json").read_text()) for path in (cell, tmp_path))
        assert {key for key in swept_metrics if swept_metrics[key] != alone[key]} <= {
            *("joined_at", "counters", "stage_seconds", "peak_mb"),
            *("parse_ms", "sort_hash_ms", "cluster_ms", "total_ms"),
        }
        assert (swept_metrics["joined_at"], alone["joined_at"]) == (0.3, None)
        hydra = sorted(path.name for path in (cell / ".hydra").iterdir())
        assert hydra == ["cell.json", "config.yaml", "hydra.yaml", "overrides.yaml"]

    def test_it_prints_a_line_for_each_cell_and_a_table(self, swept):
        done, folder = swept
        counted = [line[:3] for line in done.stdout.splitlines() if line[1:4] == "/4 "]
        assert counted == ["1/4", "2/4", "3/4", "4/4"]
        table = done.stdout[done.stdout.index("4 cells of") :].splitlines()
        assert table[0] == "4 cells of tiny: matcher=spotsigs, lsh; signature=spotsigs; tau=0.3, 0.6"
        assert table[2].split()[:2] == ["matcher", "tau"]
        assert table[2].split()[-4:] == ["Prec.", "Rec.", "F1", "Best"]
        [csv] = folder.glob("sweeps/*/sweep.csv")
        rows = pd.read_csv(csv)
        runs = [json.loads((csv.parent / run / "metrics.json").read_text()) for run in rows["folder"]]
        for key in ("f1", "stories_lost", "duplicates_left", "bcubed_f1"):
            assert rows[key].tolist() == [run[key] for run in runs]
        assert {"precision_low", "f1_high"} <= set(rows.columns)
        written = json.loads(csv.with_suffix(".json").read_text())
        assert (written["caption"], [row["f1"] for row in written["rows"]]) == (table[0], rows["f1"].tolist())
        cells = pd.read_parquet(csv.with_name("cells.parquet"))
        cell_rows = [[f"matcher={name}", tau] for name in ("spotsigs", "lsh") for tau in (0.3, 0.6)]
        assert cells[["method", "tau"]].to_numpy().tolist() == cell_rows
        best = rows[rows["best"] == "*"]
        assert best["f1"].tolist() == rows.groupby("matcher", sort=False)["f1"].max().tolist()

    def test_it_draws_its_quality(self, swept):
        _, folder = swept
        [points] = folder.glob("sweeps/*/quality.csv")
        drawn = pd.read_csv(points)
        assert set(drawn["series"]) == {"F1", "precision", "recall"}
        assert set(drawn["panel"]) == {"spotsigs", "lsh"}
        assert {path.suffix for path in points.parent.glob("quality.*")} >= {".svg", ".png"}
        assert not (points.parent / "inputs").exists()

    def test_the_same_command_again_runs_only_cells_of_other_code(self, swept):
        _, folder = swept
        before = {path: path.stat().st_mtime_ns for path in folder.glob("tiny/**/metrics.json")}
        identity = folder / "tiny/spotsigs/lsh/tau=0.3+engine=serial/.hydra/cell.json"
        identity.write_text(identity.read_text().replace('"code": "', '"code": "0'))
        done = front_door(*SWEEP, f"hydra.sweep.dir={folder}")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("finished before") == 3
        changed = [path for path, time in before.items() if path.stat().st_mtime_ns != time]
        assert changed == [identity.parents[1] / "metrics.json"]

    def test_a_finished_sweep_keeps_its_files_until_the_code_changes(self, swept, monkeypatch):
        _, folder = swept
        [figure] = folder.glob("sweeps/*/quality.png")
        written = []
        for commit in ("first", "first", "second"):
            about = {"command": [*written], "commit": commit, "dirty": False}
            monkeypatch.setattr(sweep, "provenance", lambda about=about: about)
            done = front_door(*SWEEP, f"hydra.sweep.dir={folder}")
            assert done.returncode == 0, done.stderr
            assert "4 cells of tiny" in done.stdout
            files = [figure, figure.with_name("sweep.csv"), figure.with_name("cells.parquet")]
            written.append([path.stat().st_mtime_ns for path in files])
        assert written[0] == written[1]
        assert all(now > before for now, before in zip(written[2], written[1], strict=True))

    def test_it_says_something_before_the_cells_are_composed(self, swept):
        done, _ = swept
        assert done.stderr.startswith("composing the cells of the sweep\n")

    def test_defaults_that_are_typed_change_nothing(self, swept):
        _, folder = swept
        typed = ("workers=8", "text=visible", "seed=2008", "idf_max=auto", "keep=first", "threads=null")
        done = front_door(*SWEEP, *typed, f"hydra.sweep.dir={folder}")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("finished before") == 4
        assert len(list(folder.glob("sweeps/*"))) == 1

    def test_an_error_of_one_cell_does_not_stop_the_others(self, tmp_path, monkeypatch):
        (tmp_path / "broken.py").write_text(BROKEN)
        monkeypatch.syspath_prepend(tmp_path)
        targets = "matcher._target_=spotsigs.matching.brute_force.BruteForce,broken.Broken"
        done = front_door("-m", "data=tiny", targets, f"hydra.sweep.dir={tmp_path / 'out'}")
        assert done.returncode == 1
        assert "no pairs today" in done.stderr
        assert len(list(tmp_path.glob("out/tiny/**/metrics.json"))) == 1

    @pytest.mark.skipif(sys.platform == "win32", reason="signals")
    def test_timed_cells_run_alone_and_continue_where_they_were_stopped(self, tmp_path):
        command = ("-m", "data=tiny", "tau=0.3,0.6", "timing=true", "engine=serial", f"hydra.sweep.dir={tmp_path}")
        first = started(*command, program=["run.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert first.stdout.readline() == "2 cells, 1 reading, 2 joins, each alone\n"
        assert first.stdout.readline().startswith("1/2 tau=0.3")
        first.send_signal(signal.SIGINT)
        out, err = first.communicate(timeout=60)
        assert first.returncode == 130
        assert "of 2 cells are finished" in out
        assert err.endswith(f"repeat `python run.py {' '.join(command)}` to continue\n")
        assert list(tmp_path.glob("tiny/spotsigs/spotsigs/tau=0.3*/metrics.json"))
        again = front_door(*command)
        assert again.returncode == 0, again.stderr
        assert again.stdout.count("finished before") >= 1
        assert "2 cells of tiny" in again.stdout
        assert "Total(msec)*" not in again.stdout
        runs = [path.parent for path in tmp_path.glob("tiny/**/metrics.json")]
        assert len(runs) == 2
        for run in runs:
            assert json.loads((run / "metrics.json").read_text())["joined_at"] is None
            assert json.loads((run / "run.json").read_text())["contended"] is False


ROWS = [
    {"matcher": name, "signature": signature, "tau": tau, "row": row, "idf": f"[{tau}, 0.85]", "k": k, "l": 32}
    | {"signatures": 56311 + k, "memory_mib": 14 + tau, "sort_hash_ms": 3000 + k, "cluster_ms": 6000 + k}
    | {"total_ms": 9519 + k, "precision": 0.9996, "recall": 0.1234, "f1": 0.2345, "best": ""}
    for name, signature in (("spotsigs", "spotsigs"), ("lsh_native", "shingles3"))
    for tau, row, k in ((0.3, "measured", 5), (0.44, "published", 6))
]


class TestPrintedTable:
    @pytest.mark.parametrize("width", [80, 120, 200])
    def test_it_fits_the_terminal_and_has_every_figure_of_quality(self, width):
        swept = ["matcher", "signature", "tau"]
        columns = [Column(name=key, title=key, form="g" if key == "tau" else "") for key in swept]
        columns += [Column(name="row", title="Row")]
        columns += [Column(name=key, title=title, form=form) for title, (key, form) in ROW.items() if key != "tau"]
        named = ["matcher", "signature"]
        text = Table(caption="4 cells", columns=columns, rows=ROWS, notes=["* a note " * 30], named=named).text(width)
        assert max(map(len, text.splitlines())) <= width
        for figure in ("1.000", ".123", ".234"):
            assert text.count(figure) == 4
        for title in ("Prec.", "Rec.", "F1", "tau"):
            assert title in text
        assert ("In all rows: l 32" in text) == (width < 200)
        assert ("\nmatcher=lsh_native signature=shingles3\n" in text) == (width == 80)


@pytest.mark.long
class TestOtherPlugins:
    """The examples of docs/reproduction.md."""

    def test_optuna_maximises_f1(self, tmp_path):
        pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
        choices = ("hydra/sweeper=optuna", "hydra.sweeper.n_trials=4", "hydra.sweeper.n_jobs=1")
        done = front_door("-m", "data=tiny", *choices, "tau=interval(0.2,0.9)", f"hydra.sweep.dir={tmp_path}")
        assert done.returncode == 0, done.stderr
        best = OmegaConf.load(tmp_path / "optimization_results.yaml").best_value
        actual = [json.loads(path.read_text())["f1"] for path in tmp_path.glob("tiny/**/metrics.json")]
        assert len(actual) == 4
        assert best == max(actual) > min(actual)

    def test_joblib_runs_cells_side_by_side(self, tmp_path):
        pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
        done = front_door(*SWEEP, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", f"hydra.sweep.dir={tmp_path}")
        assert done.returncode == 0, done.stderr
        assert "4 cells of tiny" in done.stdout


RUN = {
    "data": "gold",
    "signature": "spotsigs",
    "matcher": "spotsigs",
    "tau": 0.44,
    "idf_min": 0.2,
    "idf_max": 0.85,
}


OTHER = [{"data": "newsframes"}, {"matcher": "spotsigs_tight"}, {"tau": 0.45}, {"idf_max": 1}]


class TestPublishedRow:
    def test_a_run_of_table_1_has_its_row(self):
        row = published_row(RUN, ["matcher=spotsigs", "tau=0.44", "data.seed=5"])
        assert row is not None
        assert (row["f1"], row["signatures"], row["memory_mib"]) == (0.94, 6848, 2.5)
        imatch = published_row(RUN | {"matcher": "imatch", "tau": None, "idf_min": 0.4, "idf_max": 0.75}, [])
        assert imatch is not None
        assert imatch["method"] == "I-Match-S"
        vectors = published_row(RUN | {"data": "wt10g_scale", "tau": 0.9}, [])
        assert vectors is not None
        assert vectors["total_ms"] == 17136

    @pytest.mark.parametrize(
        ("other", "overrides"),
        [
            *((other, []) for other in OTHER),
            *(({}, [word]) for word in ("signature.d=1", "boilerplate=remove", "data.pages=200")),
        ],
    )
    def test_another_run_has_none(self, other, overrides):
        assert published_row(RUN | other, overrides) is None


class TestBand:
    @pytest.mark.parametrize(
        ("words", "band"),
        [(["data=tiny"], (0.2, 1)), (["data=gold"], (0.2, 0.85)), (["data=gold", "idf_max=1"], (0.2, 1))],
    )
    def test_it_belongs_to_the_collection_and_the_user_wins(self, tmp_path, words, band):
        assert planned(tmp_path, *words)[0].band == band


DIRTY = """
from pathlib import Path
from spotsigs.runs.provenance import provenance
for path in ("results/README.md", "baselines/mine.py", "run.py"):
    before = Path(path).read_bytes() if Path(path).exists() else None
    Path(path).write_bytes((before or b"") + b"\\n")
    print(provenance()["dirty"])
    Path(path).write_bytes(before) if before else Path(path).unlink()
"""


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no git checkout")
def test_changed_and_new_code_is_dirty_and_results_are_not(tmp_path):
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{ROOT}", str(tmp_path / "clone")], check=True)
    command = [sys.executable, "-c", DIRTY]
    done = subprocess.run(command, cwd=tmp_path / "clone", capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True"]
