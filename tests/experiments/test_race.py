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
import pandas as pd
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
    row = {
        "collection": "newsframes",
        "documents": 9,
        "tool": "rensa",
        "text": "whole page",
        "remark": remark,
        "cores": 2,
    }
    race.write([row], runs)
    stated = race.committed([row], runs, tmp_path, 1.5, {"newsframes": "2b"})
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


def test_a_tool_runs_on_few_documents_first_and_texts_are_extracted_once(tmp_path, monkeypatch):
    ran = []

    def timed(command, cores, log, limit):
        ran.append((command[3], Path(command[4]).name))
        (Path(command[5]) / "texts.jsonl").write_text("{}\n" * 99)
        return {"failed": False, "remark": "", "seconds": 1.0, "core_seconds": 1.0, "peak_mb": 1.0}

    monkeypatch.setattr(race, "timed", timed)
    monkeypatch.setattr(race, "evaluated", lambda path, out: {"kept": 7})
    monkeypatch.setattr(race, "write_collection", lambda name, path, size: path.write_text("{}\n" * 99))
    cells = list(race.cells_of("newsframes", None, ["SpotSigs", "rensa"], [0], tmp_path, 9.0))
    assert ran == [("main content", "newsframes.jsonl"), ("whole page", "newsframes.jsonl")]
    assert [(cell.tool, cell.text) for cell in cells] == [
        *(("SpotSigs", text) for text in ("HTML", "main content")),
        *(("rensa", text) for text in ("whole page", "main content")),
    ]
    results = [cell() for cell in cells]
    assert ran[2:4] == [("SpotSigs", "few.jsonl"), ("SpotSigs", "newsframes.jsonl")]
    assert [result["seconds"] for result in results] == [1.0, 2.0, 2.0, 2.0]
    rows = race.rows_of(cells, results, {"newsframes": 99})
    race.write(rows, tmp_path / "out")
    table = pd.read_csv(tmp_path / "out/cells.csv")
    assert table[["method", "kept", "documents"]].to_numpy().tolist()[0] == ["SpotSigs, HTML", 7, 99]
    assert len(table) == len((tmp_path / "out/race.csv").read_text().splitlines()) - 1 == 4


@pytest.mark.parametrize(
    ("facts", "finished"),
    [
        ({"remark": ""}, True),
        ({"remark": "contended"}, False),
        ({"remark": "failed: no", "failed": True}, False),
        ({"remark": "> 9 s", "failed": True}, True),
    ],
)
def test_a_failed_or_disturbed_run_is_measured_again(tmp_path, monkeypatch, facts, finished):
    times = {"failed": False, "seconds": 1.0, "core_seconds": 1.0, "peak_mb": 1.0}
    monkeypatch.setattr(race, "timed", lambda *_: times | facts)
    monkeypatch.setattr(race, "evaluated", lambda path, out: {"kept": 7})
    (tmp_path / "pages").write_text("{}\n")
    about = {"collection": "newsframes", "pages": "1a", "cores": (0,), "path": tmp_path / "pages", "work": tmp_path}
    value = race.ProgramCell(tool="rensa", text="whole page", **about)()
    assert (value["contended"], value["unfinished"]) == (facts["remark"] == "contended", "no" in facts["remark"])
    assert finished == (not value["contended"] and not value["unfinished"])
