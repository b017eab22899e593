"""What the race judges by: what was found, as it was written, against exact pairs and the truth."""

import importlib.util
import json
import sys

import naive
import numpy as np
import pytest

from benchmarks import end_to_end as race
from benchmarks.compared_joins import CONTESTANTS, _datatrove_groups, words5

PAGES = ["one two three four five six", "one two three four five seven", "eight", "one two three four five six"]


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.jsonl"
    rows = [
        {"id": name, "text": text, "cluster": name[0]}
        for name, text in zip(("a1", "a2", "b1", "a3"), PAGES, strict=True)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_chains_of_five_words():
    assert words5("One, two three four FIVE six.") == ["one two three four five", "two three four five six"]
    assert words5("short text") == ["short text"]
    assert words5(" .. ") == []


def test_exact_pairs_reach_the_threshold_of_the_contestant(texts):
    found = race.exact_pairs(texts, "rensa")
    assert list(zip(found.i.tolist(), found.j.tolist(), strict=True)) == [(0, 3)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pairs.csv", "doc_a,doc_b\na3,a1\na1,a3\na1,b1\n"),
        ("groups.csv", "doc,group\na1,7\nb1,8\na3,7\na2,9\n"),
    ],
)
def test_found_pairs_are_rows_each_once(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    i, j = race.found_pairs(tmp_path, {"a1": 0, "a2": 1, "b1": 2, "a3": 3})
    assert (0, 3) in set(zip(i.tolist(), j.tolist(), strict=True))
    assert len(i) == (2 if name == "pairs.csv" else 1)


def test_a_run_is_judged_against_its_own_threshold_and_the_truth(texts, tmp_path):
    (tmp_path / "pairs.csv").write_text("doc_a,doc_b\na1,a3\na1,b1\n")
    (tmp_path / "kept.jsonl").write_text('{"id": "a1"}\n{"id": "a2"}\n')
    facts = race.judged(texts, tmp_path, "rensa", lambda: race.exact_pairs(texts, "rensa"))
    assert (facts["pairs"], facts["clusters"], facts["kept"]) == (2, 1, 2)
    assert (facts["precision_tau"], facts["recall_tau"]) == (0.5, 1)
    assert (facts["precision"], facts["recall"]) == (0.5, pytest.approx(1 / 3))
    names = ("stories", "stories_lost", "duplicates", "duplicates_left")
    rows = [json.loads(line) for line in texts.read_text().splitlines()]
    wanted = naive.decided([row["id"] in ("a1", "a2") for row in rows], [row.get("cluster") for row in rows])
    assert tuple(facts[name] for name in names) == wanted


def test_a_process_is_timed_with_those_it_starts(tmp_path):
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'x = 0\\nwhile x < 2 * 10**7: x += 1'])"
    facts = race.timed([sys.executable, "-c", code], [0], tmp_path / "log")
    assert facts["remark"] == ""
    assert 0.2 < facts["core_seconds"] <= facts["seconds"]
    assert facts["peak_mb"] > 5
    assert race.timed([sys.executable, "-c", "raise ValueError('no')"], [0], tmp_path / "log")["remark"].startswith(
        "failed: ValueError: no"
    )


def test_a_run_that_takes_too_long_is_stopped(tmp_path):
    facts = race.timed([sys.executable, "-c", "import time; time.sleep(60)"], [0], tmp_path / "log", limit=0.3)
    assert facts["remark"] == "> 0.3 s"
    assert facts["seconds"] < 30


def test_clusters_of_datatrove_are_read_from_its_files(tmp_path):
    for rank, names in enumerate((["a", "b", "c"], ["d"], ["e", "f"])):
        texts = tmp_path / "texts" / f"{rank:05d}.jsonl"
        texts.parent.mkdir(exist_ok=True)
        texts.write_text("".join(json.dumps({"id": name}) + "\n" for name in names))
    (tmp_path / "remove").mkdir()
    (tmp_path / "remove" / "000000.clusters").write_bytes(np.array([0, 7, 2, 8], "<u4").tobytes())
    (tmp_path / "remove" / "000002.clusters").write_bytes(np.array([1, 7], "<u4").tobytes())
    assert list(_datatrove_groups(tmp_path)) == [("a", 7), ("c", 8), ("f", 7)]


@pytest.mark.parametrize("name", ["datasketch", "rensa"])
def test_contestants_keep_one_of_equal_texts(texts, tmp_path, name):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    CONTESTANTS[name].run(texts, tmp_path)
    kept = [json.loads(line)["id"] for line in (tmp_path / "kept.jsonl").read_text().splitlines()]
    assert kept == ["a1", "a2", "b1"]
    i, j = race.found_pairs(tmp_path, {"a1": 0, "a2": 1, "b1": 2, "a3": 3})
    assert (np.array([i, j]).T == [[0, 3]]).all()


def test_a_race_that_is_stopped_leaves_nobody_running(tmp_path, monkeypatch):
    def stop(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(race.time, "sleep", stop)
    told = tmp_path / "told"
    script = f"import os, time; open({str(told)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    before = {child.pid for child in race.psutil.Process().children(recursive=True)}
    with pytest.raises(KeyboardInterrupt):
        race.timed([sys.executable, "-c", script], [0], tmp_path / "log")
    left = [child for child in race.psutil.Process().children(recursive=True) if child.pid not in before]
    assert all(child.status() == race.psutil.STATUS_ZOMBIE or child.wait(5) is not None for child in left)


def test_rows_of_former_races_stay_but_for_those_run_again(tmp_path):
    row = {"collection": "synthetic", "documents": 200, "tool": "rensa", "seconds": 1.0, "remark": ""}
    for changed in ({}, {"documents": 100}, {"collection": "newsframes"}, {"tool": "SpotSigs"}, {"seconds": 2.0}):
        race.write(row | changed, tmp_path, 2)
    rows = json.loads((tmp_path / "race.json").read_text())["rows"]
    found = [(row["collection"], row["documents"], row["tool"], row["seconds"]) for row in rows]
    assert found == [
        ("newsframes", 200, "rensa", 1.0),
        ("synthetic", 100, "rensa", 1.0),
        ("synthetic", 200, "SpotSigs", 1.0),
        ("synthetic", 200, "rensa", 2.0),
    ]
    assert len((tmp_path / "race.csv").read_text().splitlines()) == 5
