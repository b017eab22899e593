"""The race measures whole programs, and compares the documents that a tool keeps with the truth."""

import csv
import importlib.util
import json
import re
import sys
from collections import Counter
from pathlib import Path

import naive
import numpy as np
import pytest

from benchmarks import end_to_end as race
from benchmarks.dedup_tools import TOOLS, datatrove_groups, words5, write_decisions
from experiments.harness import manifest

FIVE = "one two three four five"
TEXTS = {"a1": f"{FIVE} six", "a2": f"{FIVE} seven", "b1": "eight", "a3": f"{FIVE} six"}


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.jsonl"
    rows = [{"id": name, "text": text, "cluster": name[0]} for name, text in TEXTS.items()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def decisions(folder):
    with (folder / "decisions.csv").open(newline="") as file:
        return {row["doc"]: (row["group"], row["kept"] == "True") for row in csv.DictReader(file)}


def test_chains_of_five_words():
    assert words5("One, two three four FIVE six.") == ["one two three four five", "two three four five six"]
    assert words5("short text") == ["short text"]
    assert words5(" .. ") == []


def test_decisions_are_compared_with_the_truth(texts, tmp_path):
    write_decisions(tmp_path, kept=["a1", "a2"], groups=[("a1", 7), ("a3", 7), ("b1", 7)])
    assert decisions(tmp_path) == {"a1": ("7", True), "a3": ("7", False), "b1": ("7", False), "a2": ("only a2", True)}
    facts = race.evaluated(texts, tmp_path)
    kept = [name in ("a1", "a2") for name in TEXTS]
    names = ("stories", "stories_lost", "duplicates", "duplicates_left")
    assert tuple(facts[name] for name in names) == naive.decided(kept, [name[0] for name in TEXTS])
    assert (facts["kept"], facts["largest_group"]) == (2, 3)
    group = {"a1": 1, "a3": 1, "b1": 1, "a2": 2}
    shared = Counter((group[name], name[0]) for name in TEXTS)
    of_group, of_story = Counter(group.values()), Counter(name[0] for name in TEXTS)
    precision = np.mean([shared[group[name], name[0]] / of_group[group[name]] for name in TEXTS])
    recall = np.mean([shared[group[name], name[0]] / of_story[name[0]] for name in TEXTS])
    assert (facts["b_cubed_precision"], facts["b_cubed_recall"]) == pytest.approx((precision, recall))


def test_a_document_that_a_tool_drops_without_counting_is_lost(texts, tmp_path):
    write_decisions(tmp_path, kept=["a1"], groups=[("a1", 0), ("a2", 0), ("a3", 0)])
    facts = race.evaluated(texts, tmp_path)
    assert (facts["stories_lost"], facts["largest_group"], facts["b_cubed_f1"]) == (1, 3, 1)


def test_a_process_is_timed_with_those_it_starts(tmp_path):
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'x = 0\\nwhile x < 2 * 10**7: x += 1'])"
    facts = race.timed([sys.executable, "-c", code], [0], tmp_path / "log")
    assert not facts["failed"]
    assert 0.2 < facts["core_seconds"] <= facts["seconds"]
    assert facts["peak_mb"] > 5
    facts = race.timed([sys.executable, "-c", "raise ValueError('no')"], [0], tmp_path / "log")
    assert facts["remark"].startswith("failed: ValueError: no")


@pytest.mark.parametrize(("waited_for", "remark"), [(0, ""), (1000, "contended")])
def test_children_that_no_process_waits_for_are_not_other_processes(tmp_path, monkeypatch, waited_for, remark):
    class Load(race.ForeignLoad):
        def __exit__(self, *error):
            self.cores, self.own_seconds = race.QUIET + 1e-6, waited_for

    monkeypatch.setattr(race, "ForeignLoad", Load)
    code = "import time\nwhile time.process_time() < 0.5: pass"
    assert race.timed([sys.executable, "-c", code], [0], tmp_path / "log")["remark"] == remark


def test_a_run_that_takes_too_long_is_stopped(tmp_path):
    facts = race.timed([sys.executable, "-c", "import time; time.sleep(60)"], [0], tmp_path / "log", limit=0.3)
    assert (facts["failed"], facts["remark"]) == (True, "> 0.3 s")
    assert facts["seconds"] < 30


def test_clusters_of_datatrove_are_read_from_its_files(tmp_path):
    (tmp_path / "texts").mkdir()
    for rank, names in enumerate((["a", "b", "c"], ["d"], ["e", "f"])):
        lines = "".join(json.dumps({"id": name}) + "\n" for name in names)
        (tmp_path / "texts" / f"{rank:03d}.jsonl").write_text(lines)
    (tmp_path / "remove").mkdir()
    (tmp_path / "remove" / "000000.clusters").write_bytes(np.array([0, 7, 2, 8], "<u4").tobytes())
    (tmp_path / "remove" / "000002.clusters").write_bytes(np.array([1, 7], "<u4").tobytes())
    assert list(datatrove_groups(tmp_path)) == [("a", 7), ("c", 8), ("f", 7)]


@pytest.mark.parametrize("name", ["datasketch", "rensa", "SpotSigs", "SimHash"])
def test_tools_keep_one_of_equal_texts(texts, tmp_path, name):
    if name in ("datasketch", "rensa") and importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    TOOLS[name].run(texts, tmp_path)
    actual = decisions(tmp_path)
    assert [doc for doc, (_, kept) in sorted(actual.items()) if kept] == ["a1", "a2", "b1"]
    assert actual["a3"][0] == actual["a1"][0]


def test_a_stopped_race_stops_its_tool(tmp_path, monkeypatch):
    def stop(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(race.time, "sleep", stop)
    before = {child.pid for child in race.psutil.Process().children(recursive=True)}
    with pytest.raises(KeyboardInterrupt):
        race.timed([sys.executable, "-c", "import time; time.sleep(60)"], [0], tmp_path / "log")
    started = [child for child in race.psutil.Process().children(recursive=True) if child.pid not in before]
    assert all(child.status() == race.psutil.STATUS_ZOMBIE or child.wait(5) is not None for child in started)


def test_rows_of_previous_races_are_kept_unless_they_ran_again(tmp_path, monkeypatch):
    row = {"collection": "package_docs_html", "documents": 200, "tool": "rensa", "text": "whole page", "seconds": 1.0}
    other = {"tool": "SpotSigs", "text": "HTML"}
    for changed in ({}, {"documents": 100}, {"collection": "newsframes"}, other, {"seconds": 2.0}):
        race.write(row | changed, tmp_path, 2)
    rows = json.loads((tmp_path / "race.json").read_text())["rows"]
    actual = [(row["collection"], row["documents"], row["tool"], row["seconds"]) for row in rows]
    assert actual == [
        ("newsframes", 200, "rensa", 1.0),
        ("package_docs_html", 100, "rensa", 1.0),
        ("package_docs_html", 200, "SpotSigs", 1.0),
        ("package_docs_html", 200, "rensa", 2.0),
    ]
    assert len((tmp_path / "race.csv").read_text().splitlines()) == 5
    monkeypatch.setattr(race, "provenance", lambda: ABOUT)
    race.write(row, tmp_path, 2)
    [left] = race.rows_of(tmp_path)
    assert left["commit"] == ABOUT["commit"]


MACHINE = {"processor": "some", "cores": 2}
ABOUT = {"command": ["end_to_end.py"], "commit": "1a" * 20, "dirty": False, "machine": MACHINE}


@pytest.mark.parametrize(
    ("remark", "reason"),
    [("", None), ("> 180 s", None), ("contended", "disturbed the times of rensa"), ("failed: no", "rensa.*failed")],
)
def test_a_race_replaces_results_if_no_row_is_contended_or_failed(tmp_path, monkeypatch, remark, reason):
    for module in (race, manifest):
        monkeypatch.setattr(module, "provenance", lambda: ABOUT)
    runs = tmp_path / "runs/race"
    row = {"collection": "newsframes", "documents": 9, "tool": "rensa", "text": "whole page", "remark": remark}
    race.write(row, runs, 2)
    stated = race.committed(runs, tmp_path, 1.5, {"newsframes": "2b"})
    assert runs.exists()
    assert (tmp_path / "race").exists() == (reason is None)
    assert (tmp_path / "variants/race/race.json").exists() == (reason is not None)
    rows = {row.file: row for row in manifest.read(tmp_path)}
    if reason:
        assert re.search(reason, stated)
        assert rows == {}
    else:
        assert rows["race/race.json"].commit == ABOUT["commit"]
        assert (rows["race/race.json"].seconds, rows["race/race.json"].inputs) == (1.5, '{"newsframes": "2b"}')
        assert manifest.PRODUCERS[2] == rows["race/race.json"].command


def test_a_tool_runs_on_few_documents_once(tmp_path, monkeypatch):
    ran = []

    def timed(command, cores, log, limit, patience):
        ran.append((command[3], Path(command[4]).name))
        (Path(command[5]) / "texts.jsonl").write_text("{}\n" * 99)
        return {"failed": False, "remark": "", "seconds": 1.0, "core_seconds": 1.0, "peak_mb": 1.0}

    monkeypatch.setattr(race, "timed", timed)
    monkeypatch.setattr(race, "evaluated", lambda path, out: {})
    monkeypatch.setattr(race, "write_collection", lambda name, path, size: path.write_text("{}\n" * 99))
    warm = set()
    for name in race.COLLECTIONS:
        list(race.Race(name, None, [0], tmp_path, 9.0, warm).rows(["SpotSigs", "rensa"], set()))
    assert Counter(ran)["SpotSigs", "few.jsonl"] == Counter(ran)["rensa", "few.jsonl"] == 1
    assert Counter(tool for tool, _ in ran)["rensa"] == 5
