"""Facts and figures are views of rows, as a study declares them."""

from __future__ import annotations

import pytest

from experiments.views import View, facts_of


def row(of, tau=None, threads=1, **figures):
    times = {"total_ms": 10.0, "runs_ms": [9.0, 10.0, 12.0], "sort_hash_ms": 4.0, "contended": False}
    return {"collection": "v", "of": of, "method": of, "tau": tau, "threads": threads, **times, **figures}


def stopped(of, tau, seconds=60.0):
    return {"collection": "v", "of": of, "method": of, "tau": tau, "threads": 1, "contended": False, "over_s": seconds}


def facts(declared, *rows):
    return {fact.name: fact for fact in facts_of(declared, list(rows))}


def test_a_ratio_of_times_has_the_range_over_runs():
    slow = row("B", 0.9, total_ms=30.0, runs_ms=[27.0, 36.0], sort_hash_ms=8.0)
    declared = {"{method} / A, tau {tau:g}": {"of": {"of": "B"}, "over": {"of": "A"}}}
    actual = facts(declared, row("A", 0.9), slow, row("B", 1.0))
    [(name, fact)] = actual.items()  # A has no row at 1
    assert (name, fact.value, fact.low, fact.high) == ("B / A, tau 0.9", 3.0, 27 / 12, 36 / 9)
    hashing = {"hash": {"of": {"of": "B"}, "over": {"of": "A"}, "column": "sort_hash_ms"}}
    assert facts(hashing, row("A", 0.9), slow)["hash"].value == 2


def test_stopped_runs_are_lower_bounds_and_disturbed_ones_no_facts():
    declared = {"x": {"of": {"of": "B"}, "over": {"of": "A"}}}
    assert str(facts(declared, row("A", 0.9), stopped("B", 0.9))["x"]) == "over 6e+03"
    assert facts(declared, stopped("A", 0.9), row("B", 0.9)) == {}
    assert facts(declared, row("A", 0.9, contended=True), row("B", 0.9)) == {}


def test_a_speed_up_divides_by_the_row_and_becomes_a_column():
    rows = [row("A", 0.9, 1, total_ms=30.0, runs_ms=[30.0]), row("A", 0.9, 4, total_ms=10.0, runs_ms=[10.0])]
    declared = {
        "{method} on {threads}": {"over": {"threads": 1}, "inverse": True, "into": "speed_up"},
        "{method}, of a linear one": {
            "of": {"threads": "highest"},
            "over": {"threads": 1},
            "inverse": True,
            "per": "threads",
        },
    }
    actual = facts(declared, *rows)
    assert {name: fact.value for name, fact in actual.items()} == {"A on 4": 3.0, "A, of a linear one": 0.75}
    assert [one["speed_up"] for one in rows] == [1.0, 3.0]


def test_the_lowest_row_and_one_figure_of_all():
    rows = [row("A", tau, pairs=7) for tau in (0.2, 0.9, 1.0)] + [row("B", 0.9, pairs=7), stopped("C", 0.9)]
    lowest = {"g": {"of": {"of": "A", "tau": "lowest"}, "over": {"tau": 1.0}, "column": "pairs"}}
    assert facts(lowest, *rows)["g"].value == 1
    same = {"s": {"of": {"tau": 0.9}, "column": "pairs", "same": True}}
    assert facts(same, *rows)["s"].value == 1
    assert facts(same, *rows, row("D", 0.9, pairs=8))["s"].value == 0
    assert facts(same, *rows[:2]) == {}  # one method alone
    assert facts({"{of} {tau:g}": {"of": {"of": ["A", "B"], "tau": [0.9]}, "column": "pairs"}}, *rows).keys() == {
        "A 0.9",
        "B 0.9",
    }


def test_a_mean_over_seeds_has_their_range_and_a_value_is_reached_for_good():
    rows = [row("exact", l=None, recall=0.8, seed=1)]
    recalls = {2: (0.2, 0.4), 4: (0.8, 0.8), 8: (0.7, 0.9), 16: (0.8, 0.8)}
    rows += [row("lsh", l=tables, recall=r, seed=s) for tables, two in recalls.items() for s, r in enumerate(two)]
    relative = {"of": {"of": "lsh"}, "over": {"of": "exact", "l": None}, "column": "recall", "mean": "seed"}
    actual = facts({"l = {l}": relative}, *rows)
    assert {name: fact.value for name, fact in actual.items()} == pytest.approx(
        {"l = 2": 0.375, "l = 4": 1, "l = 8": 1, "l = 16": 1}
    )
    assert actual["l = 2"].interval == pytest.approx((0.25, 0.5))
    reached = {"column": "l", "at_least": 0.999, "value": 32, "text": "more than 16"}
    assert facts({"r": relative | {"reached": reached}}, *rows)["r"].value == 4
    never = facts({"r": relative | {"reached": reached | {"at_least": 1.1}}}, *rows)["r"]
    assert (never.value, str(never)) == (32, "more than 16")


def test_a_figure_has_means_with_ranges_and_level_lines(tmp_path):
    rows = [{"collection": "c", "of": "lsh", "l": tables, "recall": r} for tables, r in ((2, 0.2), (2, 0.4), (4, 0.6))]
    rows.append({"collection": "c", "of": "exact", "l": None, "recall": 0.8})
    lines = {"mean": "seed", "computed": ["exact"]}
    view = View(x="l", y={"Recall": "recall"}, lines=lines, axes={"x_label": "l", "y_label": ""})
    points = {(point.series, point.x): point for point in view.points(rows)}
    assert points["lsh", 2].y == pytest.approx(0.3)
    assert (points["lsh", 2].low, points["lsh", 2].high) == (0.2, 0.4)
    assert (points["lsh", 4].y, points["lsh", 4].low) == (0.6, None)
    assert [points["exact", x].y for x in (2, 4)] == [0.8, 0.8]
    view.draw(tmp_path / "f", rows)
    assert (tmp_path / "f.svg").stat().st_size > 0


def test_a_panel_has_attributes_of_its_own(tmp_path):
    rows = [{"collection": "c", "of": "a", "tau": tau, "seconds": 1.0, "recall": 0.5} for tau in (0.2, 0.9)]
    rows.append({"collection": "c", "of": "a", "tau": 1.0, "recall": 0.4})  # a disturbed time
    view = View(
        y={"Runtime": "seconds", "Recall": "recall"},
        panel="{measure}",
        axes={"x_label": "tau", "y_label": "", "of": {"Runtime": {"y_log": True}}},
    )
    assert [point.panel for point in view.points(rows)] == ["Runtime", "Recall", "Runtime", "Recall", "Recall"]
    view.draw(tmp_path / "f", rows)
    assert (tmp_path / "f.csv").read_text().count("Runtime") == 2
