"""The compared joins find the same pairs, and the tables of the benchmark contain what was measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.bench import TRIAL, ToolCell, joins_table, measured, named, plan, rows, too_slow, write_tables
from benchmarks.join_tools import TOOLS, UnavailableError, agreement
from data.collections.wt10g_like import Wt10gLike
from experiments.harness.finished_cells import FinishedCells
from spotsigs.matching.prefix_join import self_join

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def vectors():
    return Wt10gLike(documents=600).vectors()


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("tau", [0.5, 0.9])
def test_tools_find_the_same_pairs(tool, tau, vectors):
    exact = self_join(vectors, tau)
    expected = set(zip(exact.i.tolist(), exact.j.tolist(), strict=True))
    try:
        i, j = TOOLS[tool].prepare(vectors)(tau, 1)
    except (ImportError, UnavailableError) as reason:
        pytest.skip(str(reason))
    actual = {(min(pair), max(pair)) for pair in zip(i.tolist(), j.tolist(), strict=True)}
    assert len(actual) == len(i)
    assert actual <= expected
    assert len(actual) >= (1.0 if TOOLS[tool].exact else 0.8) * len(expected) > 50


def test_agreement_counts_pairs_in_any_order(vectors):
    exact = self_join(vectors, 0.5)
    half = len(exact) // 2
    actual = agreement((exact.j[:half], exact.i[:half]), vectors, 0.5, "spotsigs")
    assert (actual["pairs"], actual["recall"], actual["precision"]) == (half, half / len(exact), 1.0)
    other = np.append(exact.i, 0), np.append(exact.j, len(vectors) - 1)
    assert agreement(other, vectors, 0.5, "spotsigs")["precision"] == len(exact) / (len(exact) + 1)


def cells(**seconds):
    """Return cells by name: ``{"tool | tau | collection | threads": seconds}``."""
    every = []
    for name, value in seconds.items():
        tool, tau, where, threads = name.split(" | ")
        row = {"collection": where, "method": tool, "tau": float(tau), "threads": int(threads), "status": "ok"}
        every.append(row | {"seconds": value, "peak_mb": 100.0, "recall": 0.5, "contended": tool == "rensa"})
    every.append(every[0] | {"method": "datasketch", "status": "limit", "reason": "> 90 s"})
    return pd.DataFrame(every)


def test_the_table_compares_with_our_join():
    names = {"spotsigs_tight | 0.9 | short 100k | 2": 0.1, "rensa | 0.9 | short 100k | 2": 3.0}
    table = joins_table(cells(**names, **{"spotsigs | 0.5 | short 100k | 2": 2.0}), [])
    actual = {row["tool"]: row for row in table.rows}
    assert actual["spotsigs_tight"]["0.9"] == "0.1"
    assert actual["rensa"]["0.9"] == "3 (30×), recall 0.50 †"
    assert actual["spotsigs"]["0.5"] == "2"
    assert actual["datasketch"]["0.9"] == "> 90 s"
    assert [column.name for column in table.columns] == ["collection", "tool", "threads", "0.9", "0.5", "peak_mb"]


def cell(collection, tool, tau, threads):
    return ToolCell(collection=collection, tool=tool, tau=tau, threads=threads)


def test_tools_that_would_take_too_long_are_omitted():
    ok = {"status": "ok", "seconds": 20.0, "prepare_seconds": 0.0, "contended": False}
    done = {cell("short 100k", "datasketch", 0.9, 1): ok}
    for tau, reason in ((0.9, "> 90 s expected"), (0.5, "too slow at tau 0.9")):
        larger = cell("short 1.17M", "datasketch", tau, 1)
        assert too_slow(larger, done) == reason
        done[larger] = {"status": "omitted", "reason": reason}
    done[cell("short 100k", "rensa", 0.9, 2)] = {"status": "limit", "reason": "> 90 s"}
    assert too_slow(cell("long 100k", "rensa", 0.9, 2), done) == "too slow on short 100k"
    assert too_slow(cell("long 100k", "rensa", 0.9, 1), done) == ""


def test_a_measured_cell_is_a_row_and_is_not_measured_again(tmp_path):
    one, finished = cell(TRIAL, "spotsigs_tight", 0.9, 1), FinishedCells(folder=tmp_path, workers=1)
    first = measured(one, {}, finished)
    assert first["status"] == "ok"
    assert first["process_seconds"] > first["seconds"] > 0
    path = finished.path(one)
    if first["contended"]:  # it would be measured again
        path.write_text(path.read_text().replace('"contended": true', '"contended": false'))
    again = measured(one, {}, FinishedCells(folder=tmp_path, workers=1))
    assert {**again, "contended": first["contended"]} == first
    [row] = rows({one: first})
    assert (row["collection"], row["method"], row["tau"], row["threads"]) == (TRIAL, "spotsigs_tight", 0.9, 1)
    assert row["pairs"] > 1000


def test_a_tool_that_fails_is_named_and_not_finished(tmp_path):
    unknown, finished = cell(TRIAL, "no such tool", 0.9, 1), FinishedCells(folder=tmp_path, workers=1)
    for _ in range(2):
        failed = measured(unknown, {}, finished)
        assert (failed["status"], failed["reason"]) == ("failed", "KeyError: 'no such tool'")
    assert [entry["kept"] for entry in finished.log] == [False, False]
    done = {cell("short 20k", "rensa", 0.9, 0): {"status": "ok", "contended": True}, unknown: failed}
    assert named(done, contended=True) == ["short 20k rensa 0.9 0"]
    assert named(done, status="failed") == ["short 20k no such tool 0.9 1"]


def test_the_plan_can_be_narrowed():
    assert len(plan([], [], [])) == len(set(plan([], [], []))) > 80
    assert plan([TRIAL], ["rensa"], [0.9]) == [cell(TRIAL, "rensa", 0.9, 2)]
    assert not any(each.collection == TRIAL for each in plan([], [], []))


def test_the_committed_tables_are_those_of_the_committed_cells(tmp_path):
    committed = ROOT / "results/bench"
    (tmp_path / "cells.csv").write_bytes((committed / "cells.csv").read_bytes())
    (tmp_path / "machine.json").write_bytes((committed / "machine.json").read_bytes())
    write_tables(tmp_path)
    for name in ("bench.csv", "bench.md", "seconds.csv"):
        assert (tmp_path / name).read_bytes() == (committed / name).read_bytes()
    page = (ROOT / "docs/performance.md").read_text("utf-8")
    table = pd.read_csv(committed / "bench.csv").query("tool == 'spotsigs_tight' and threads == 2")
    shown = table.set_index("collection")
    for collection, tau in (
        ("short 100k", "0.9"),
        ("short 1.17M", "0.9"),
        ("short 1.17M", "0.5"),
        ("long 100k", "0.5"),
    ):
        assert f" {shown.loc[collection, tau]} |" in page
