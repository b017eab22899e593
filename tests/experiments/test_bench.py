"""The benchmark's tools find the same pairs, and its tables say what was measured."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import charts
from benchmarks import measured_join as cell
from benchmarks.bench import Bench, Cell, plan
from benchmarks.compared_tools import TOOLS, UnavailableError
from data.collections.wt10g_like import Wt10gLike
from spotsigs.matching.prefix_join import self_join

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def vectors():
    return Wt10gLike(documents=600).vectors()


@pytest.mark.parametrize("tool", [name for name, tool in TOOLS.items() if not tool.flags])
@pytest.mark.parametrize("tau", [0.5, 0.9])
def test_tools_find_the_same_pairs(tool, tau, vectors):
    exact = self_join(vectors, tau)
    expected = set(zip(exact.i.tolist(), exact.j.tolist(), strict=True))
    try:
        i, j = TOOLS[tool].prepare(vectors)(tau, 1)
    except (ImportError, UnavailableError) as reason:
        pytest.skip(str(reason))
    found = {(min(pair), max(pair)) for pair in zip(i.tolist(), j.tolist(), strict=True)}
    assert len(found) == len(i)
    assert found <= expected
    assert len(found) >= (1.0 if TOOLS[tool].exact else 0.8) * len(expected) > 50


def test_agreement_counts_pairs_in_any_order(vectors):
    exact = self_join(vectors, 0.5)
    half = len(exact) // 2
    told = cell._agreement((exact.j[:half], exact.i[:half]), vectors, 0.5, "spotsigs")
    assert (told["pairs"], told["recall"], told["precision"]) == (half, half / len(exact), 1.0)
    flags = np.ones(len(vectors), np.bool_)
    told = cell._agreement(flags, vectors, 0.5, "rensa, flags only")
    assert told["recall"] == 1.0
    assert told["precision"] == len(np.union1d(exact.i, exact.j)) / len(vectors)


def measured(**seconds):
    """Cells by name: ``{"tool at tau in collection on threads": seconds}``."""
    rows = []
    for name, value in seconds.items():
        tool, tau, where, threads = name.split(" | ")
        row = {"collection": where, "tool": tool, "tau": float(tau), "threads": int(threads), "status": "ok"}
        row |= {"seconds": value, "peak_mb": 100.0, "recall": 1.0, "precision": 1.0, "contended": False, "reason": None}
        row |= {f"details.seconds.{stage}": value / 10 for stage in charts.STAGES}
        rows.append(row)
    empty = pd.DataFrame()
    return charts.Measured(cells=pd.DataFrame(rows), extraction=empty, startup=empty, profile=empty, machine=empty)


def verdicts(found):
    table = charts.goals(found)
    return dict(zip(table.goal, zip(table.measured, table.verdict, strict=True), strict=True))


def test_goals_are_judged_by_what_was_measured():
    found = measured(
        **{
            "spotsigs_tight | 0.9 | short 1.17M | 2": 0.4,
            "spotsigs_tight | 0.5 | short 1.17M | 2": 1.2,
            "spotsigs_tight | 0.5 | short 1.17M | 1": 2.0,
            "spotsigs_tight | 0.5 | short 100k | 2": 0.1,
            "rensa | 0.9 | short 1.17M | 2": 60.0,
            "lsh_native | 0.9 | short 1.17M | 2": 4.0,
            "lsh_native | 0.5 | short 1.17M | 2": 1.2,
            "PPJoin (our C++) | 0.5 | short 1.17M | 1": 8.0,
            "AllPairs (our C++) | 0.5 | short 1.17M | 1": 4.0,
        }
    )
    judged = verdicts(found)
    assert judged["everything, 2 threads, 1.17 M, tau .9"] == ("0.4", "missed")
    assert judged["everything, 2 threads, 1.17 M, tau .5"] == ("1.2", "met")
    assert judged["everything, 2 threads, 1.17 M, tau .7"] == ("", "not measured")
    assert judged["rensa, 1.17 M, tau .9"] == ("150", "met")
    assert judged["lsh_native, 1.17 M, at the least favourable tau from .3 on"] == ("1", "missed")
    assert judged["best C++ join, one thread each, indexing in both, 1.17 M, tau .5"] == ("5", "missed")
    exponent = math.log(12) / math.log(1_171_960 / 100_000)
    assert judged["growth exponent, 100k to 1.17 M, tau .5"] == (f"{exponent:.3g}", "met")
    assert all(state == "not measured" for _, state in verdicts(measured(**{"rensa | 1 | x | 2": 1.0})).values())


def test_curves_cross_where_the_faster_one_changes():
    curves = {}
    for tau, exact, hashed in ((0.4, 8.0, 4.0), (0.5, 4.0, 4.0), (0.7, 2.0, 4.0), (0.9, 1.0, 4.0)):
        curves[f"spotsigs | {tau} | short 1.17M | 2"] = exact
        curves[f"lsh_native | {tau} | short 1.17M | 2"] = hashed
        curves[f"spotsigs_tight | {tau} | short 1.17M | 2"] = exact / 100
    told = charts.crossing(measured(**curves)).set_index("tool")["crosses lsh_native at"]
    assert told["spotsigs"] == "0.50"
    assert told["spotsigs_tight"] == "never: always faster"


def test_tools_that_would_take_too_long_are_not_asked(tmp_path):
    bench = Bench(tmp_path, tmp_path, minutes=1)
    for where, seconds in (("short 20k", 2.0), ("short 100k", 20.0)):
        result = {"status": "ok", "seconds": seconds, "prepare_seconds": 0.0, "contended": False}
        bench.done[Cell(where, "scipy", 0.9, 1)] = result
    expected = bench._expected_seconds(Cell("short 1.17M", "scipy", 0.9, 1))
    assert expected == pytest.approx(20 * 11.7196**1.4307, rel=1e-3)
    assert bench._too_slow(Cell("short 1.17M", "scipy", 0.9, 1)) == "> 180 s expected"
    assert bench._too_slow(Cell("short 1.17M", "rensa", 0.9, 1)) == ""
    bench.done[Cell("short 1.17M", "rensa", 0.9, 2)] = {"status": "limit", "reason": "> 180 s"}
    assert bench._too_slow(Cell("short 1.17M", "rensa", 0.5, 2)) == "too slow at tau 0.9"


def test_the_plan_can_be_narrowed():
    assert len(plan([], [], [])) == len(set(plan([], [], []))) > 200
    assert plan(["long 20k"], ["rensa"], [0.9]) == [Cell("long 20k", "rensa", 0.9, 2)]


def test_a_table_stands_between_its_markers():
    begin, end = charts.MARKERS
    assert charts.with_table(f"a\n{begin}\nold\n{end}\nb", "new") == f"a\n{begin}\n\nnew\n\n{end}\nb"
    assert charts.with_table("no markers", "new") == "no markers"


def test_the_page_shows_the_last_whole_run():
    page, folder = (ROOT / charts.PAGE).read_text("utf-8"), ROOT / "results/bench"
    assert all(page.count(marker) == 1 for marker in charts.MARKERS)
    if not (folder / "cells.csv").exists():
        assert not page.partition(charts.MARKERS[0])[2].partition(charts.MARKERS[1])[0].strip()
        return
    measured = charts.Measured.read(folder)
    assert charts.with_table(page, charts.performance_tables(measured)) == page
    assert (folder / "bench.md").read_text("utf-8") == charts.document(measured)


def test_everything_is_written(tmp_path):
    found = measured(**{"spotsigs_tight | 0.9 | short 100k | 2": 0.1, "rensa | 0.9 | short 100k | 2": 3.0})
    charts.write_csvs(tmp_path, cells=found.cells)
    charts.write(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "cells.csv",
        "goals.csv",
        "crossing.csv",
        "bench.md",
        "bench.csv",
        "bench.svg",
        "bench.png",
        "bench.pdf",
    }
    assert "| rensa | 3 (30×) |" in (tmp_path / "bench.md").read_text()
