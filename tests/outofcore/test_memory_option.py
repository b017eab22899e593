"""Runs of ``run.py`` within a memory budget: the files of runs in memory, additions to stores, and queries."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import naive.extract
import pandas as pd
import pytest
from archives import warc_record
from runs import configured, ran, same
from test_engines import needs

from spotsigs.errors import InputError
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.signatures.spots import SpotSignatures

ROOT = Path(__file__).parents[2]
TINY = ROOT / "data" / "tiny"


@pytest.mark.parametrize("choices", [[], ["keep=longest", "sets=true"], ["clusters=components", "keep=none"]])
def test_a_run_on_disk_writes_the_files_of_a_run_in_memory(tmp_path, choices):
    words = ["data=tiny", "matcher=spotsigs_tight", "tau=0.25", "engine=serial", "page=true", *choices]
    ran(tmp_path / "memory", *words)
    text = ran(tmp_path / "disk", *words, "memory=1GB")
    assert same(tmp_path / "memory", tmp_path / "disk")
    assert (tmp_path / "memory/clusters.html").read_bytes() == (tmp_path / "disk/clusters.html").read_bytes()
    one, other = (json.loads((tmp_path / name / "metrics.json").read_text()) for name in ("memory", "disk"))
    equal = "documents documents_matched signatures occurrences pairs clusters f1 macro_f1 memory_mib giant_chains"
    equal += " documents_few_signatures documents_few_tokens"
    assert {key: one[key] for key in equal.split()} == {key: other[key] for key in equal.split()}
    shas = [json.loads((tmp_path / name / "run.json").read_text())["input_sha256"] for name in ("memory", "disk")]
    assert shas[0] == shas[1]
    assert "memory: 1,000 MB, of which" in text
    assert " documents, each task within " in text
    assert "of 1,000 MB" in text.split("peak memory of all processes")[1]
    assert not list((tmp_path / "disk").glob("store-*"))


@pytest.mark.parametrize("more", [["engine=serial"], ["engine=serial", "memory=1GB"], ["workers=2", "memory=1GB"]])
def test_pages_judged_by_less_than_a_tenth_of_their_tokens_are_counted(tmp_path, more):
    lists = [" ".join(f"w{k}" for k in range(n)) for n in (36, 37, 200, 400)]
    pages = [*(f"the plan will be approved: {words}" for words in [*lists, lists[-1]]), lists[0], "the plan " * 90]
    rows = [{"id": str(k), "text": page} for k, page in enumerate(pages)]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    base = ["data=jsonl", f"data.path={tmp_path / 'x.jsonl'}", "idf_min=0", "idf_max=1"]
    printed = ran(tmp_path / "run", *base, *more)
    expected, scheme = 0, SpotSignatures()
    antecedents = {word: [(scheme.d, scheme.c)] for word in scheme.antecedents}
    for words in map(naive.extract.tokens, pages):
        n = len(naive.extract.spots(words, antecedents, set()))
        expected += 0 < 4 * n < len(words) / 10
    assert 0 < expected < len(pages)
    assert json.loads((tmp_path / "run/metrics.json").read_text())["documents_few_tokens"] == expected
    assert f"{expected} documents judged by less than a tenth of their tokens" in printed


@pytest.mark.parametrize("dated", [range(0, 40, 2), range(40)])
def test_the_newest_is_kept_on_disk_too(tmp_path, dated):
    pages = sorted(TINY.rglob("*.html"))
    rows = [{"id": str(k), "html": page.read_text("utf-8", "replace")} for k, page in enumerate(pages)]
    for k in dated:
        rows[k % len(rows)]["date"] = f"2008-07-{1 + 7 * k % 28:02}T00:00:00Z"
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["data=jsonl", f"data.path={tmp_path / 'x.jsonl'}", "tau=0.25", "engine=serial", "keep=newest"]
    ran(tmp_path / "memory", *words)
    ran(tmp_path / "disk", *words, "memory=1GB")
    assert same(tmp_path / "memory", tmp_path / "disk")
    ran(tmp_path / "first", *words, "keep=first")
    assert not same(tmp_path / "memory", tmp_path / "first", ["kept.csv"])


def split_tiny(tmp_path):
    """Return two folders of the small collection: every third page is new."""
    for number, path in enumerate(sorted(path for path in TINY.rglob("*") if path.is_file())):
        target = tmp_path / ("new" if number % 3 == 2 else "old") / path.relative_to(TINY)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return tmp_path / "old", tmp_path / "new"


def test_new_against_old_and_one_page(tmp_path):
    old, new = split_tiny(tmp_path)
    base = ["data=folder", "tau=0.25", "engine=serial", "memory=1GB", f"store={tmp_path / 'store'}"]
    ran(tmp_path / "1", *base, f"data.path={old}")
    text = ran(tmp_path / "2", *base, f"data.path={new}", "add=true", f"copy={tmp_path / 'copy'}", "page=true")
    assert "15 new documents; only pairs with at least one are reported" in text
    is_new = {path.relative_to(new).as_posix() for path in new.rglob("*") if path.is_file()}
    full = ran(tmp_path / "3", "data=folder", "tau=0.25", f"data.path={TINY}", "engine=serial")
    assert "45 documents" in full
    tables = (pd.read_parquet(tmp_path / run / "pairs.parquet") for run in "23")
    added, every = ({(frozenset(row[:2]), row[2]) for row in table.itertuples(index=False)} for table in tables)
    assert added == {pair for pair in every if pair[0] & is_new} != set()
    kept = set(pd.read_csv(tmp_path / "2/kept.csv")["doc"])
    assert kept < is_new
    assert {path.relative_to(tmp_path / "copy").as_posix() for path in (tmp_path / "copy").rglob("[!.]*.*")} == kept


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (["memory=2"], "memory=2 is too little for 1 process, .* give at least 644MB"),
        (["memory=much"], "memory must be a size such as 2GB"),
        (["memory=100MB"], "is too little for 1 process, whose code alone takes 375 MB; give"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, choices, message):
    with pytest.raises(InputError, match=message):
        ran(tmp_path / "x", "data=tiny", "engine=serial", *choices)
    assert not (tmp_path / "x" / "metrics.json").exists()


def test_standard_input_for_several_workers(tmp_path):
    pages = [(path.name, path.read_bytes()) for path in sorted(TINY.rglob("*.html"))]
    content = b"".join(warc_record(f"http://x/{name}", page) for name, page in pages)
    words = ["cluster", "-", "--format", "warc", "--workers", "2", "--out", str(tmp_path / "run"), "--memory", "2GB"]
    done = subprocess.run([sys.executable, "-m", "spotsigs", *words], input=content, cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["documents"] == len(pages) > 20
    assert metrics["pairs"] > 20


MATCHERS = sorted(path.stem for path in (ROOT / "conf" / "matcher").glob("*.yaml"))
ENGINES = {"serial": "", "processes": "loky", "dask": "distributed"}
"""Modules that the engines need."""


@pytest.mark.parametrize(
    "engine", [pytest.param(name, marks=needs(module) if module else ()) for name, module in ENGINES.items()]
)
@pytest.mark.parametrize("matcher", MATCHERS)
def test_every_matcher_on_disk_is_what_it_is_in_memory_or_refused(tmp_path, matcher, engine):
    words = ["data=tiny", "tau=0.3", f"matcher={matcher}"]
    on_disk = [f"engine={engine}", "workers=2", "memory=2GB"]
    if not isinstance(configured(*words).method.matcher, SpotSigsTight):
        with pytest.raises(InputError, match="has no form for vectors on disk"):
            ran(tmp_path / "run", *words, *on_disk)
        return
    for tau in (0.3, 0.8):
        words[1] = f"tau={tau}"
        memory, disk = tmp_path / f"memory-{tau}", tmp_path / f"disk-{tau}"
        ran(memory, *words, "engine=serial")
        ran(disk, *words, *on_disk)
        assert same(memory, disk)
        assert pd.read_parquet(disk / "pairs.parquet")["similarity"].min() >= tau
        assert json.loads((disk / "metrics.json").read_text())["tau"] == tau


def test_quality_on_disk_needs_no_more_than_a_chunk_of_the_pairs(tmp_path, monkeypatch):
    words = ["data=tiny", "tau=0.1", "engine=serial"]
    ran(tmp_path / "memory", *words)
    monkeypatch.setattr("spotsigs.outofcore.pipeline.PASSING", 1 << 20)  # a handful of pairs at a time
    ran(tmp_path / "disk", *words, "memory=1GB")
    one, other = (json.loads((tmp_path / name / "metrics.json").read_text()) for name in ("memory", "disk"))
    names = [name for name in one if name.startswith(("precision", "recall", "f1", "macro", "bcubed", "intervals"))]
    assert len(names) > 6
    assert {name: one[name] for name in names} == {name: other[name] for name in names}
