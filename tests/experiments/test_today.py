"""The study beside what people use: its settings are theirs, and it runs on a small collection."""

from __future__ import annotations

import csv
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from baselines.lsh_native import LshNative
from baselines.shingles import Shingles
from data.collections.generated_sites import MadeTeasers
from experiments.studies.current_tools import FRAMED, TEXTS, rivals
from experiments.work.extracted_collections import Source, read
from spotsigs.engines import Serial
from spotsigs.signatures.extract import extract
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.visible import VisibleText, visible_text

ROOT = Path(__file__).parents[2]


def test_the_bands_are_those_that_text_dedup_chooses():
    """The least sum of the areas of false positives and negatives around the threshold .7 with 250 permutations."""
    below, above = np.linspace(0, 0.7, 500), np.linspace(0.7, 1, 500)
    errors = {
        (bands, rows): 0.7 * np.mean(1 - (1 - below**rows) ** bands) + 0.3 * np.mean((1 - above**rows) ** bands)
        for bands in range(1, 251)
        for rows in range(1, 250 // bands + 1)
    }
    assert min(errors, key=errors.__getitem__) == (25, 10)
    (line,) = [line for rival in rivals("main") for name, line in rival.single.items() if name.startswith("text-dedup")]
    assert isinstance(line.matcher, LshNative)
    assert line.matcher.hash_tables == (10, 25)


@pytest.mark.parametrize("text", TEXTS)
def test_every_method_has_its_settings(text):
    labels = [rival.label for rival in rivals(text)]
    assert len(set(labels)) == len(labels)
    assert (FRAMED in labels) == (text == "visible")
    lines = [line.label for rival in rivals(text) for line in rival.single.values()]
    assert len(set(lines)) == len(lines)
    assert all(rival.usual or rival.single for rival in rivals(text))


@dataclass(frozen=True, kw_only=True)
class Slow:
    """A text extractor that leaves a mark each time it is asked."""

    marks: Path

    def __call__(self, document):
        with self.marks.open("a") as file:
            file.write("x")
        return visible_text(document)


def test_a_text_is_extracted_once_for_all_signatures(tmp_path):
    text = Slow(marks=tmp_path / "marks")
    collection = MadeTeasers(sites=2, stories=2)
    for scheme in (SpotSignatures(), SpotSignatures(d=1, c=2), Shingles(k=5, sets=True)):
        kept = read(Source(collection=collection, text=text, signature=scheme), tmp_path, Serial())
        plain = extract(collection, VisibleText(), scheme, Serial())
        assert kept.signatures().hashes.tolist() == plain.hashes.tolist()
    assert 8 <= len(text.marks.read_text()) < 2 * 8  # and a trial page for each kind


def test_newsframes_is_left_out_where_nobody_accepts_its_licence(tmp_path):
    data = '"data=newsframes data.seed=5"'
    done = subprocess.run(
        [
            sys.executable, "run.py", "experiment=today", "workers=1", f"experiment.results={tmp_path}",
            f"experiment.collections=[{data}]", "experiment.drawn=[]", "experiment.timed=[]", "data=newsframes",
            f"data.cache={tmp_path}",
        ],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "newsframes is left out: the pages belong to their publishers" in done.stderr
    assert "data.accept_licence=true" in done.stderr


@pytest.mark.long
def test_all_of_it_on_a_small_collection(tmp_path):
    data = '"data=gold_versions data.seed=1 data.sites=2 data.stories=6"'
    done = subprocess.run(
        [
            sys.executable, "run.py", "experiment=today", "workers=2", f"experiment.results={tmp_path}",
            f"experiment.collections=[{data}]", f"experiment.drawn=[{data}]", f"experiment.timed=[{data}]",
            "experiment.timed_pages=5",
        ],
        cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with (tmp_path / "today" / "today.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for text in {row["text"] for row in rows}:
        for method in {row["method"] for row in rows if row["text"] == text}:
            some = {row["setting"]: float(row["f1"]) for row in rows if (row["text"], row["method"]) == (text, method)}
            best = [value for setting, value in some.items() if setting.startswith("best")]
            assert len(best) == 1
            joined = [value for setting, value in some.items() if " x " not in setting]
            assert best[0] >= max(joined)
