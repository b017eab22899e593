"""The compared joins find the same pairs, and the tables of the benchmark contain what was measured."""

from __future__ import annotations

import subprocess
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from benchmarks.bench import TRIAL, Bench, Cell, joins_table, plan, write_tables
from benchmarks.join_tools import TOOLS, UnavailableError, agreement
from data.collections.wt10g_like import Wt10gLike
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
    rows = []
    for name, value in seconds.items():
        tool, tau, where, threads = name.split(" | ")
        row = {"collection": where, "tool": tool, "tau": float(tau), "threads": int(threads), "status": "ok"}
        rows.append(row | {"seconds": value, "peak_mb": 100.0, "recall": 0.5, "contended": tool == "rensa"})
    rows.append(rows[0] | {"tool": "datasketch", "status": "limit", "reason": "> 90 s"})
    return pd.DataFrame(rows)


def test_the_table_compares_with_our_join():
    names = {"spotsigs_tight | 0.9 | short 100k | 2": 0.1, "rensa | 0.9 | short 100k | 2": 3.0}
    table = joins_table(cells(**names, **{"spotsigs | 0.5 | short 100k | 2": 2.0}), [])
    actual = {row["tool"]: row for row in table.rows}
    assert actual["spotsigs_tight"]["0.9"] == "0.1"
    assert actual["rensa"]["0.9"] == "3 (30×), recall 0.50 †"
    assert actual["spotsigs"]["0.5"] == "2"
    assert actual["datasketch"]["0.9"] == "> 90 s"
    assert [column.name for column in table.columns] == ["collection", "tool", "threads", "0.9", "0.5", "peak_mb"]


def test_tools_that_would_take_too_long_are_omitted(tmp_path):
    bench = Bench(tmp_path)
    ok = {"status": "ok", "seconds": 20.0, "prepare_seconds": 0.0, "contended": False}
    bench.done[Cell("short 100k", "datasketch", 0.9, 1)] = ok
    bench.measure(Cell("short 1.17M", "datasketch", 0.9, 1))
    bench.measure(Cell("short 1.17M", "datasketch", 0.5, 1))
    reasons = [result.get("reason") for result in bench.done.values()]
    assert reasons == [None, "> 90 s expected", "too slow at tau 0.9"]
    bench.done[Cell("short 100k", "rensa", 0.9, 2)] = {"status": "limit", "reason": "> 90 s"}
    bench.measure(Cell("long 100k", "rensa", 0.9, 2))
    assert bench.done[Cell("long 100k", "rensa", 0.9, 2)]["reason"] == "too slow on short 100k"


def test_finished_cells_are_read_and_their_seconds_counted(tmp_path):
    cell = Cell("short 20k", "spotsigs_tight", 0.9, 2)
    first, again, begun, run = Bench(tmp_path), Bench(tmp_path), [], subprocess.run

    def measured(command, **more):
        if "benchmarks.join_tools" not in command:
            return run(command, **more)
        begun.append(command)
        return subprocess.CompletedProcess(command, 0, '{"status": "ok", "contended": false}', "")

    with patch("subprocess.run", measured):
        first.measure(cell)
        again.measure(cell)
    assert len(begun) == 1
    assert again.done == first.done
    assert again.seconds == first.seconds > 0


def test_disturbed_and_failed_cells_are_named(tmp_path):
    bench = Bench(tmp_path)
    states = ({"status": "ok", "contended": True}, {"status": "failed"}, {"status": "limit"}, {"status": "omitted"})
    bench.done = {Cell("short 20k", "rensa", 0.9, threads): state for threads, state in enumerate(states)}
    assert bench.named(contended=True) == ["short 20k rensa 0.9 0"]
    assert bench.named(status="failed") == ["short 20k rensa 0.9 1"]


def test_the_plan_can_be_narrowed():
    assert len(plan([], [], [])) == len(set(plan([], [], []))) > 80
    assert plan([TRIAL], ["rensa"], [0.9]) == [Cell(TRIAL, "rensa", 0.9, 2)]
    assert not any(cell.collection == TRIAL for cell in plan([], [], []))


def test_the_committed_tables_are_those_of_the_committed_cells(tmp_path):
    committed = ROOT / "results/bench"
    (tmp_path / "cells.csv").write_bytes((committed / "cells.csv").read_bytes())
    (tmp_path / "machine.json").write_bytes((committed / "machine.json").read_bytes())
    write_tables(tmp_path)
    for name in ("bench.csv", "bench.md", "seconds.csv"):
        assert (tmp_path / name).read_bytes() == (committed / name).read_bytes()
    page = (ROOT / "docs/performance.md").read_text("utf-8")
    rows = pd.read_csv(committed / "bench.csv").query("tool == 'spotsigs_tight' and threads == 2")
    shown = rows.set_index("collection")
    for collection, tau in (
        ("short 100k", "0.9"),
        ("short 1.17M", "0.9"),
        ("short 1.17M", "0.5"),
        ("long 100k", "0.5"),
    ):
        assert f" {shown.loc[collection, tau]} |" in page
