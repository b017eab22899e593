"""Cells, curves, tables, figures, claims: the machinery of the experiments, on small drawn data."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from folders import FOLDERS

from experiments.claims.facts import Fact, read_facts, write_facts
from experiments.claims.judged_claims import Judged, failures, judge_all, markdown, summary, write_ledger
from experiments.claims.ledger import KINDS, _claim, ledger
from experiments.claims.published import published
from experiments.claims.verdicts import HOLDS, About, Direction, Equal, Untestable, Verdict
from experiments.show.figures import Mark, Panel, Point, draw_bars, draw_dots, draw_lines
from experiments.show.tables import Column, Table
from experiments.studies.printed_algorithm import algorithm1
from experiments.studies.quality import QualityCurves
from experiments.work import machine_load as measure
from experiments.work.curves import Curve, difference
from experiments.work.machine_load import ForeignLoad
from experiments.work.result_cache import Cells, Task, code_version
from spotsigs.errors import InputError
from spotsigs.evaluation.metrics import evaluate, tallies
from spotsigs.records import Pairs, Truth

ROOT = Path(__file__).parents[2]


def squared(*, number: int, trace: Path) -> dict:
    """Leave a trace of every call, so that a test sees what was done again."""
    with trace.open("a") as file:
        file.write(f"{number}\n")
    return {"square": number * number}


def disturbed(*, trace: Path) -> dict:
    with trace.open("a") as file:
        file.write("run\n")
    return {"contended": len(trace.read_text().splitlines()) < 2}


class TestCells:
    def tasks(self, trace, numbers):
        return [Task(function=squared, arguments={"number": n, "trace": trace}) for n in numbers]

    def test_finished_cells_are_not_done_again(self, tmp_path):
        trace = tmp_path / "trace"
        cells = Cells(folder=tmp_path / "cells", workers=1)
        assert [v["square"] for v in cells.run(self.tasks(trace, [3, 4]), "first")] == [9, 16]
        assert [v["square"] for v in cells.run(self.tasks(trace, [4, 5, 3, 5]), "more")] == [16, 25, 9, 25]
        assert Counter(trace.read_text().split()) == {"3": 1, "4": 1, "5": 1}
        assert [record["arguments"]["number"] for record in cells.log] == ["3", "4", "4", "5", "3", "5"]
        assert [record["kept"] for record in cells.log] == [False, False, True, False, True, False]

    def test_workers_give_the_same(self, tmp_path):
        trace = tmp_path / "trace"
        values = Cells(folder=tmp_path / "cells", workers=2).run(self.tasks(trace, range(6)), "pool")
        assert [v["square"] for v in values] == [0, 1, 4, 9, 16, 25]

    def test_a_damaged_cell_is_done_again(self, tmp_path):
        trace = tmp_path / "trace"
        cells = Cells(folder=tmp_path / "cells", workers=1)
        (task,) = self.tasks(trace, [7])
        cells.run([task], "once")
        cells.path(task).write_text("{")
        assert cells.run([task], "again") == [{"square": 49}]
        assert trace.read_text() == "7\n7\n"

    def test_the_key_tells_arguments_and_code(self, tmp_path):
        one, other = self.tasks(tmp_path, [1, 2])
        assert one.key() != other.key()
        assert one.key() == self.tasks(tmp_path, [1])[0].key()
        assert Task(function=algorithm1, arguments={}).key()["code"] != one.key()["code"]

    def test_a_disturbed_time_does_not_count_as_finished(self, tmp_path):
        trace = tmp_path / "trace"
        cells = Cells(folder=tmp_path / "cells", workers=1)
        task = Task(function=disturbed, arguments={"trace": trace})
        assert cells.run([task], "first") == [{"contended": True}]
        assert cells.run([task], "second") == [{"contended": False}]
        assert cells.run([task], "third") == [{"contended": False}]
        assert len(trace.read_text().splitlines()) == 2

    def test_a_task_is_stopped_at_its_limit(self, tmp_path):
        cells = Cells(folder=tmp_path / "cells", workers=1)

        def task(limit):
            return Task(function=asleep, arguments={"seconds": 20}, alone=True, limit=limit)

        began = time.monotonic()
        assert cells.run([task(1.0)], "stopped") == [{"over_s": 1.0}]
        assert time.monotonic() - began < 15
        assert cells.run([task(0.5)], "a lower limit") == [{"over_s": 1.0}]
        assert cells._load(cells.path(task(2.0)), task(2.0)) is None
        assert cells._load(cells.path(task(None)), task(None)) is None

    def test_a_killed_run_continues(self, tmp_path):
        program = (
            "import sys, time; from pathlib import Path; sys.path[:0] = {folders!r}\n"
            "from experiments.work.result_cache import Cells, Task\n"
            "from test_experiments import slow\n"
            "tasks = [Task(function=slow, arguments={{'number': n, 'trace': Path({trace!r})}}) for n in range(8)]\n"
            "print(sum(v['n'] for v in Cells(folder=Path({cells!r}), workers=1).run(tasks, 'slow')))\n"
        ).format(folders=[str(ROOT), *FOLDERS], trace=str(tmp_path / "trace"), cells=str(tmp_path / "cells"))
        first = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        while len(list((tmp_path / "cells").glob("slow-*.json"))) < 3 and first.poll() is None:
            time.sleep(0.01)
        first.kill()
        first.wait()
        done = len(list((tmp_path / "cells").glob("slow-*.json")))
        assert done < 8
        before = len((tmp_path / "trace").read_text().split())
        second = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert second.stdout.split() == ["28"]
        assert len((tmp_path / "trace").read_text().split()) - before == 8 - done


def asleep(*, seconds: float) -> dict:
    time.sleep(seconds)
    return {"contended": False}


def slow(*, number: int, trace: Path) -> dict:
    with trace.open("a") as file:
        file.write(f"{number}\n")
    time.sleep(0.15)
    return {"n": number}


def test_code_version_follows_imports_inside_functions():
    from experiments.work.result_cache import _closure

    names = {path.relative_to(ROOT).as_posix() for path in _closure("experiments.studies.arithmetic")}
    assert {
        "experiments/studies/arithmetic.py",
        "experiments/studies/printed_algorithm.py",
        "spotsigs/matching/partitions.py",
    } <= names
    assert code_version(algorithm1) == code_version(algorithm1, 3, "text")


def test_code_version_leaves_out_what_has_no_part_in_a_measurement():
    from experiments.work.result_cache import _closure

    names = {path.relative_to(ROOT).as_posix() for path in _closure("experiments.work.timing")}
    assert {"experiments/claims/facts.py", "spotsigs/signatures/stopwords/smart.txt"} <= names
    assert "spotsigs/api.py" not in names  # imported for type checkers only
    assert not [name for name in names if name.startswith("experiments/claims/paper/")]  # another module reads these


def test_every_data_file_belongs_to_the_module_that_names_it():
    from experiments.work.result_cache import DATA_SUFFIXES, _data_files

    rooms = [ROOT / room for room in ("spotsigs", "baselines", "data/collections", "data/formats", "experiments")]
    named = {path for room in rooms for module in room.rglob("*.py") for path in _data_files(module)}
    assert named == {path for room in rooms for path in room.rglob("*") if path.suffix in DATA_SUFFIXES}


def drawn_curve(seed=0, clusters=12, taus=(0.2, 0.4, 0.6)):
    rng = np.random.default_rng(seed)
    n = 120
    truth = Truth(rng.integers(0, clusters, n).astype(np.int32), tuple(map(str, range(clusters))))
    i, j = np.triu_indices(n, 1)
    same = truth.labels[i] == truth.labels[j]
    similarity = np.clip(rng.normal(np.where(same, 0.55, 0.15), 0.15), 0.01, 1)
    pairs = Pairs.build(i, j, similarity, n)
    counts = [tallies(pairs.at(tau), truth) for tau in taus]
    cell = {"taus": list(taus), "pairs": [len(pairs.at(tau)) for tau in taus], "signatures": 1}
    cell |= {name: [c[m].tolist() for c in counts] for m, name in enumerate(("true", "false", "missed"))}
    return Curve(json.loads(json.dumps(cell))), pairs, truth


class TestCurve:
    def test_averages_are_those_of_the_metrics(self):
        curve, pairs, truth = drawn_curve()
        for at, tau in enumerate(curve.taus):
            quality = evaluate(pairs.at(tau), truth, resamples=0)
            np.testing.assert_allclose(curve.micro[:, at], [quality.precision, quality.recall, quality.f1])
            np.testing.assert_allclose(
                curve.macro[:, at], [quality.macro_precision, quality.macro_recall, quality.macro_f1]
            )

    def test_intervals_agree_with_the_metrics_bootstrap(self):
        curve, pairs, truth = drawn_curve()
        intervals = evaluate(pairs.at(0.4), truth).intervals
        at = curve.at(0.4)
        np.testing.assert_allclose(curve.interval("f1")[:, at], intervals["f1"], atol=0.02)

    def test_best_and_difference(self):
        curve, _, _ = drawn_curve()
        assert curve.micro[2, curve.best] == max(curve.micro[2])
        value, low, high = difference(curve, curve.best, curve, curve.best)
        assert (value, low, high) == (0, 0, 0)
        value, low, high = difference(curve, curve.best, curve, 0)
        assert low <= value <= high
        assert value > 0
        with pytest.raises(ValueError, match=r"tau=0\.5 is not among"):
            curve.at(0.5)


class TestTable:
    table = Table(
        caption="What & why",
        columns=[Column(name="a", title="Name"), Column(name="x", title="τ", form=".2f"), Column(name="hidden")],
        rows=[
            {"a": "50 % | _more_", "x": 0.4412, "hidden": 1},
            {"a": "none", "x": None},
            {"a": "nan", "x": float("nan")},
        ],
        notes=["A note."],
    )

    def test_three_forms(self, tmp_path):
        self.table.write(tmp_path, "t")
        assert (tmp_path / "t.csv").read_text().splitlines()[:2] == ["a,x,hidden", "50 % | _more_,0.4412,1"]
        markdown = (tmp_path / "t.md").read_text()
        assert "| 50 % \\| _more_ | 0.44 |" in markdown
        assert "| none | n/a |" in markdown
        tex = (tmp_path / "t.tex").read_text()
        assert r"50 \% | \_more\_ & 0.44 \\" in tex
        assert r"\caption{What \& why}" in tex
        assert r"$\tau$" in tex
        assert "A note." in self.table.text()


POINTS = [
    Point(panel=panel, series=series, x=x, y=y + x / 10, low=y, high=y + 0.2)
    for panel in ("left", "right")
    for series, y in (("one", 0.2), ("two", 0.5))
    for x in (0.2, 0.4, 0.6)
]
PANELS = [Panel(name=name, x_label="tau", y_label="F1", y_range=(0, 1)) for name in ("left", "right")]


class TestFigures:
    @pytest.mark.parametrize("draw", [draw_lines, draw_dots, draw_bars])
    def test_same_bytes_again(self, tmp_path, draw):
        for folder in ("a", "b"):
            (tmp_path / folder).mkdir()
            draw(tmp_path / folder / "figure", PANELS[0] if draw is draw_bars else PANELS, POINTS)
        for suffix in ("svg", "png", "pdf", "csv"):
            first, second = ((tmp_path / folder / f"figure.{suffix}").read_bytes() for folder in ("a", "b"))
            assert first == second
            assert len(first) > 200
        assert (tmp_path / "a" / "figure.png").read_bytes().startswith(b"\x89PNG")
        assert b"</svg>" in (tmp_path / "a" / "figure.svg").read_bytes()
        narrow = {"figure-narrow.svg"} if draw is not draw_bars else set()
        assert {path.name for path in (tmp_path / "a").iterdir()} == narrow | {
            f"figure.{s}" for s in ("svg", "png", "pdf", "csv")
        }

    def test_published_values_are_drawn(self, tmp_path):
        marked = [replace(panel, marks=[Mark(label="the paper's", x=0.4, y=0.94)]) for panel in PANELS]
        drawn = []
        for name, panels in (("plain", PANELS), ("marked", marked)):
            draw_lines(tmp_path / name, panels, POINTS)
            drawn.append((tmp_path / f"{name}.png").read_bytes())
        assert drawn[0] != drawn[1]


class TestVerdicts:
    @pytest.mark.parametrize(
        ("rule", "fact", "verdict"),
        [
            (About(published=0.94, tolerance=0.03), (0.92, 0.90, 0.93), Verdict.REPRODUCED),
            (About(published=0.94, tolerance=0.03), (0.89, 0.84, 0.95), Verdict.REPRODUCED),
            (About(published=0.94, tolerance=0.03), (0.75, 0.50, 0.99), Verdict.NOT_REPRODUCED),
            (About(published=0.25, tolerance=0.03, neutral=0), (0.24, -0.01, 0.5), Verdict.INCONCLUSIVE),
            (About(published=0.25, tolerance=0.03, neutral=0), (0.24, 0.2, 0.3), Verdict.REPRODUCED),
            (About(published=0.94, tolerance=0.03), (0.85, 0.80, 0.90), Verdict.NOT_REPRODUCED),
            (About(published=0.25, tolerance=0.03, neutral=0), (0.10, 0.05, 0.15), Verdict.DIRECTION),
            (About(published=0.25, tolerance=0.03, neutral=0), (0.02, -0.05, 0.1), Verdict.INCONCLUSIVE),
            (About(published=0.25, tolerance=0.03, neutral=0), (-0.1, -0.2, -0.05), Verdict.CONTRADICTED),
            (About(published=0.01, tolerance=0.03, neutral=0), (-0.01, -0.02, -0.005), Verdict.CONTRADICTED),
            (About(published=0.4, tolerance=0.1, neutral=1), (3.0, None, None), Verdict.CONTRADICTED),
            (Direction(neutral=0), (0.1, 0.05, 0.2), Verdict.REPRODUCED),
            (Direction(neutral=0), (0.1, -0.05, 0.2), Verdict.INCONCLUSIVE),
            (Direction(neutral=0.05, above=False), (0.02, None, None), Verdict.REPRODUCED),
            (Direction(neutral=0.05, above=False), (0.2, None, None), Verdict.CONTRADICTED),
            (Equal(published=41), (41, None, None), Verdict.REPRODUCED),
            (Equal(published=41), (49, None, None), Verdict.CONTRADICTED),
            (HOLDS, (0, None, None), Verdict.CONTRADICTED),
            (Untestable(reason="why"), (1, None, None), Verdict.NOT_TESTABLE),
        ],
    )
    def test_rules(self, rule, fact, verdict):
        value, low, high = fact
        assert rule.judge(Fact(name="x", value=value, low=low, high=high)) is verdict

    def test_facts_survive_the_file(self, tmp_path):
        facts = [Fact(name="a", value=1 / 3, low=0.1, high=0.5), Fact(name="b, with comma", value=True, text="yes")]
        write_facts(tmp_path / "facts.csv", facts)
        back = read_facts(tmp_path / "facts.csv")
        assert back["a"] == facts[0]
        assert (back["b, with comma"].value, back["b, with comma"].text) == (1.0, "yes")
        assert read_facts(tmp_path / "none.csv") == {}


class TestLedger:
    def test_claims_are_distinct_and_located(self):
        claims = ledger()
        assert len(claims) >= 25
        assert len({(claim.where, claim.says) for claim in claims}) == len(claims)
        for claim in claims:
            assert claim.published
            assert claim.where
            assert (ROOT / "conf" / "experiment" / f"{claim.experiment}.yaml").exists() == bool(claim.experiment)
            assert bool(claim.fact) == bool(claim.experiment)
            assert claim.experiment or isinstance(claim.rule, Untestable)
            assert claim.on
            assert bool(claim.second) == bool(claim.second_on)
            assert claim.second != claim.fact or not claim.fact

    def test_a_claim_without_one_rule_is_refused(self):
        entry = {"kind": "errata", "where": "x", "says": "y", "published": "1", "experiment": "e", "fact": "f"}
        assert _claim(entry | {"about": 1.0, "tolerance": 0.1}).rule == About(published=1.0, tolerance=0.1)
        assert _claim(entry | {"below": 4}).rule == Direction(neutral=4, above=False)
        for bad in (
            {},
            {"about": 1.0, "tolerance": 0.1, "holds": True},
            {"equals": 1, "because": "z"},
            {"equals": 1, "kind": "z"},
        ):
            with pytest.raises(InputError, match="claim 'y'"):
                _claim(entry | bad)

    def test_what_fails_is_listed_with_the_reason(self, tmp_path):
        (tmp_path / "arithmetic").mkdir()
        fact = Fact(name="LSH-S memory by the stated formula", value=290.8)
        write_facts(tmp_path / "arithmetic" / "facts.csv", [fact])
        (told,) = failures(judge_all(tmp_path))
        assert "published 180, measured 291 (none: arithmetic); not reproduced. The printed figures come out" in told

    def test_nothing_measured_gives_no_verdict(self, tmp_path):
        judged = judge_all(tmp_path)
        assert {item.verdict for item in judged} == {Verdict.NOT_MEASURED, Verdict.NOT_TESTABLE}

    def test_verdicts_come_from_the_facts(self, tmp_path):
        (tmp_path / "arithmetic").mkdir()
        for count, verdict in ((501, Verdict.REPRODUCED), (1000, Verdict.CONTRADICTED)):
            name = "partitions at tau 1, paper"
            write_facts(tmp_path / "arithmetic" / "facts.csv", [Fact(name=name, value=count)])
            (item,) = (item for item in judge_all(tmp_path) if item.claim.fact == name)
            assert item.verdict is verdict
        write_ledger(tmp_path, judge_all(tmp_path))
        text = (tmp_path / "claims.md").read_text()
        assert "1 contradicted" in text
        assert "python run.py experiment=arithmetic" in text
        assert len((tmp_path / "claims.csv").read_text().splitlines()) == len(ledger()) + 1

    def test_no_other_collection_contradicts_a_claim_about_the_gold_set(self):
        claim = next(claim for claim in ledger() if claim.fact == "newsframes: SpotSigs - 1-Shingles, Jaccard")
        worse = Fact(name=claim.fact, value=-0.2, low=-0.3, high=-0.1)
        assert claim.rule.judge(worse) is Verdict.CONTRADICTED
        assert Judged(claim=claim, fact=worse).verdict is Verdict.NOT_REPRODUCED

    def test_neither_pages_nor_machines_of_ours_contradict_a_claim_about_others(self):
        for claim in ledger():
            if claim.rule == HOLDS or isinstance(claim.rule, Untestable):
                continue
            for value in (-1e9, 1e9):
                verdict = Judged(claim=claim, fact=Fact(name=claim.fact, value=value)).verdict
                assert verdict is not Verdict.CONTRADICTED or claim.kind in ("algorithm", "errata"), claim.says

    def test_a_count_that_the_collection_was_generated_with_is_a_direction_at_best(self):
        calibrated = [claim for claim in ledger() if claim.calibrated]
        assert len(calibrated) == 3
        for claim in calibrated:
            fact = Fact(name=claim.fact, value=claim.rule.published)
            assert Judged(claim=claim, fact=fact).verdict is Verdict.DIRECTION

    def test_the_claims_have_four_classes(self):
        assert {claim.kind for claim in ledger()} == set(KINDS)

    def test_a_bar_in_a_claim_does_not_break_the_table(self):
        claim = ledger()[0]
        text = markdown([Judged(claim=claim, fact=Fact(name="x", value=1, text="a|b"))])
        assert "a/b" in text
        assert (
            summary([Judged(claim=claim, fact=None)]) == "1 claims\n- 1 of algorithm and exactness: 1 not measured yet"
        )


class TestPrinted:
    def test_the_papers_example(self):
        documents = [Counter({1: 5, 2: 4, 3: 4}), Counter({1: 8, 2: 4}), Counter({1: 4, 2: 5, 3: 5})]
        found = algorithm1(documents, 0.8)
        assert found.pairs == {(0, 2)}
        assert found.comparisons[0] == 1

    def test_the_smallest_case_that_floating_point_loses(self):
        from fractions import Fraction

        documents = [Counter({1: 4}), Counter({1: 4, 2: 1})]
        assert algorithm1(documents, Fraction(4, 5)).pairs == {(0, 1)}
        assert algorithm1(documents, 0.8).pairs == set()


def test_published_figures():
    table = published("table1")
    assert [row["method"] for row in table] == ["SpotSigs", "1-Shingles", "3-Shingles", "LSH-S", "I-Match", "I-Match-S"]
    assert table[0]["f1"] == 0.94
    assert table[0]["k"] is None
    assert {len(published(name)) for name in ("table2", "lcs_table1", "lcs_table2")} == {7, 3, 4}


def test_foreign_load_is_what_the_machine_was_busy_with_beyond_our_own_work(monkeypatch):
    busy, own = iter([10.0, 16.0]), iter([1.0, 3.0])
    monkeypatch.setattr(measure, "_busy_seconds", lambda: next(busy))
    monkeypatch.setattr(measure, "own_seconds", lambda: next(own))
    clock = iter([100.0, 104.0])
    monkeypatch.setattr(measure.time, "perf_counter", lambda: next(clock))
    with ForeignLoad() as load:
        pass
    assert load.cores == 1.0  # (6 busy - 2 of ours) / 4 seconds


def test_foreign_load_does_not_count_our_workers():
    worker = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        before, began = measure.own_seconds(), time.perf_counter()
        while measure.own_seconds() - before < 0.2:
            assert time.perf_counter() - began < 30, "the worker's CPU time is not counted as ours"
            time.sleep(0.05)
    finally:
        worker.kill()
        worker.wait()


def test_a_curve_study_compares_with_the_best_of_the_others():
    curves = {name: drawn_curve(seed)[0] for seed, name in enumerate("abc")}
    best = {name: float(np.nanmax(np.nan_to_num(curve.micro[2]))) for name, curve in curves.items()}
    study = QualityCurves(
        methods=dict.fromkeys("abc", ""),
        undrawn=["c"],
        comparisons={"a - the best other": ["a", "b", "c"], "a / b - 1": ["a", "b"]},
        relative=["a / b - 1"],
        spread="range",
    )
    facts = {fact.name.removeprefix("gold: "): fact for fact in study._facts("gold", curves)}
    listed = [f"{label}: best {what}" for label in "abc" for what in ("F1", "tau")]
    assert list(facts) == [*listed, "a - the best other", "a / b - 1", "range"]
    assert facts["a - the best other"].value == pytest.approx(best["a"] - max(best["b"], best["c"]))
    assert facts["a / b - 1"].value == pytest.approx(best["a"] / best["b"] - 1)
    assert facts["range"].value == pytest.approx(abs(best["a"] - best["b"]))
    assert facts["range"].low <= facts["range"].value


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"undrawn": ["c"]}, "undrawn must name methods, got .'c'."),
        ({"comparisons": {"x": ["a", "c"]}}, "'x' names .'c'.; the curves are .'a', 'b'."),
        ({"comparisons": {"x": ["a"]}}, "'x' needs at least two curves"),
        ({"relative": ["x"]}, "relative and at must name comparisons"),
        ({"at": {"x": 0.44}}, "relative and at must name comparisons"),
        ({"panels": {"P": ""}, "comparisons": {"x": ["a", "b"]}}, "the curves are .'a, P', 'b, P'."),
    ],
)
def test_a_curve_study_checks_its_labels(wrong, says):
    with pytest.raises(InputError, match=says):
        QualityCurves(methods={"a": "", "b": ""}, **wrong)
