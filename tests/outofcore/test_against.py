"""Pages compared with a reference: brute force, in memory, within a budget, on every engine, and with a store."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_process import command
from naive import against as naive
from strategies import examples
from test_engines import needs

from spotsigs import SpotSignatures, dedup, near_duplicates
from spotsigs.method import Method
from spotsigs.text.tokens import tokenize

SCHEME = SpotSignatures()
TABLES = ("pairs.parquet", "clusters.parquet", "clusters.csv", "kept.csv", "removed.csv")


@st.composite
def corpora(draw):
    """Draw pages and a reference of a few sentences, so that many are similar, equal or part of others."""
    sentence = st.integers(0, 9).map(lambda k: f"the w{k} is a v{k % 4} x{k % 3}. ")
    pages = st.lists(st.lists(sentence, max_size=7).map("".join), max_size=14)
    return draw(pages), draw(pages)


def page(text):
    return text, Counter(SCHEME(tokenize(text)).tolist())


NEAR = {"jaccard": (naive.resembles, naive.resembles), "containment": (naive.contains, naive.within)}


@examples(50, long=500)
@given(corpora(), st.sampled_from([0.3, 0.5, 2 / 3, 0.75, 1.0]), st.sampled_from(sorted(NEAR)), st.integers(1, 2))
def test_pages_compared_with_a_reference_are_those_of_brute_force(drawn, tau, measure, workers):
    (pages, reference), (near, alike) = drawn, (near(tau) for near in NEAR[measure])
    known, others = list(map(page, pages)), list(map(page, reference))
    method = Method.of(signature=SCHEME, measure=measure, duplicates="content", min_contained=0.0)
    pairs = near_duplicates(pages, tau, against=reference, method=method)
    assert list(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True)) == naive.crossed(known, others, near)
    assert (pairs.n, pairs.n_right) == (len(pages), len(reference))
    numbered = [{"text": text, "n": n} for n, text in enumerate(pages)]
    kept = [row["n"] for row in dedup(numbered, tau, against=reference, method=method)]
    assert kept == naive.kept(known, others, near, alike)


def stories(rng, n):
    """Draw pages of one to three of few sentences, each of which has enough spots; some pages are equal."""
    words = [f"w{k}" for k in range(200)]
    sentences = [" ".join(f"the {word}" for word in rng.choice(words, 20)) for _ in range(9)]
    return [". ".join(sentences[s] for s in rng.permutation(9)[: rng.integers(1, 4)]) for _ in range(n)]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Write an input of two shards and more as a folder, and a reference as CSV."""
    folder = tmp_path_factory.mktemp("inputs")
    texts = stories(np.random.default_rng(5), 60)
    (folder / "in").mkdir()
    for k, text in enumerate(texts[:40]):
        (folder / "in" / f"{k:02}.txt").write_text(text)
    pd.DataFrame({"id": [f"q{k}" for k in range(20)], "question": texts[40:]}).to_csv(folder / "tests.csv", index=False)
    return folder, texts[:40], texts[40:]


def ran(folder, out, *words):
    done = command(
        "dedup",
        "in",
        "--out",
        out,
        "--against",
        "tests.csv",
        "--against-text",
        "question",
        "--overwrite",
        "--language",
        "en",
        "--boilerplate",
        "keep",
        "--tau",
        0.4,
        *words,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    copies = {path.name: path.read_bytes() for path in (folder / out).glob("[!.]*")}
    return copies, {name: (folder / f"{out}-results" / name).read_bytes() for name in TABLES}, done.stdout


WAYS = {
    "processes": ("--workers", 2),
    "budget": ("--memory", "1GB", "--workers", 1),
    "budget, processes": ("--memory", "2GB", "--workers", 2),
    "dask": ("--engine", "dask", "--workers", 2),
    "budget, dask": ("--engine", "dask", "--workers", 2, "--memory", "3GB"),
}


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=needs("distributed") if "dask" in way else []) for way in WAYS]
)
def test_memory_budgets_and_engines_give_the_same_bytes(inputs, way):
    folder, pages, reference = inputs
    copies, tables, printed = ran(folder, "kept", "--workers", 1, "--engine", "serial")
    assert "20 documents of the reference, always kept" in printed
    known, others = ([(text, page(text)[1]) for text in texts] for texts in (pages, reference))
    kept = naive.kept(known, others, naive.resembles(0.4), naive.resembles(0.4))
    assert sorted(copies) == [f"{k:02}.txt" for k in kept]
    removed = pd.read_csv(folder / "kept-results" / "removed.csv")
    assert sorted(removed["doc"]) == [f"{k:02}.txt" for k in range(40) if k not in kept]
    named = removed["kept_instead_role"] == "reference"
    assert removed["kept_instead"].str.startswith("q").equals(named)
    assert removed["reason"].str.contains(" of the reference").equals(named)
    assert 0 < named.sum() < len(named)
    of_pairs, groups = (pd.read_parquet(folder / f"kept-results/{name}.parquet") for name in ("pairs", "clusters"))
    assert (of_pairs["role_a"] == "reference").equals(of_pairs["doc_a"].str.startswith("q"))
    assert not of_pairs["doc_b"].str.startswith("q").any()
    for name, role in (("doc", "role"), ("representative", "representative_role")):
        assert (groups[role] == "reference").equals(groups[name].str.startswith("q"))
    assert ran(folder, way, *WAYS[way])[:2] == (copies, tables)


def test_a_store_is_a_reference_with_its_method(inputs):
    """The store is only read, and its documents are compared as documents of its files are."""
    folder, _, _ = inputs
    words = ("--workers", 1, "--tau", 0.3, "--boilerplate", "keep", "--language", "en")
    made = command("pairs", "tests.csv", "--text", "question", "--store", "tests.store", *words, cwd=folder)
    assert made.returncode == 0, made.stderr
    before = {path: path.stat().st_mtime_ns for path in Path(folder, "tests.store").rglob("*")}
    listed = command("pairs", "in", "--against", "tests.csv", "--against-text", "question", *words, cwd=folder)
    stored = command("pairs", "in", "--against", "tests.store", "--workers", 1, cwd=folder)
    assert stored.returncode == 0, stored.stderr
    assert stored.stdout == listed.stdout
    rows = [line.split("\t") for line in stored.stdout.splitlines()[1:]]
    assert rows
    assert all(one.startswith("q") and not other.startswith("q") for one, other, *_ in rows)
    assert {path: path.stat().st_mtime_ns for path in Path(folder, "tests.store").rglob("*")} == before
    other = command("pairs", "in", "--against", "tests.store", "--boilerplate", "remove", cwd=folder)
    assert "tests.store was made with --boilerplate keep; give the same" in other.stderr
    far = command("pairs", "in", "--against", "tests.store", "--measure", "containment", cwd=folder)
    assert "SpotSigs, containment has no form for vectors on disk" in far.stderr


def test_an_input_is_its_own_reference(inputs):
    """Names, files and identities are the same on both sides."""
    folder, pages, _ = inputs
    for more in ((), ("--memory", "1GB")):
        done = command("pairs", "in", "--against", "in", "--workers", 1, *more, cwd=folder)
        pairs = {tuple(line.split("\t")[:2]) for line in done.stdout.splitlines()[1:]}
        assert {(f"{k:02}.txt", f"{k:02}.txt") for k in range(len(pages))} < pairs == {pair[::-1] for pair in pairs}


@pytest.mark.parametrize("more", [(), ("--memory", "1GB")])
def test_an_id_is_no_role(tmp_path, more):
    """Ids of pages and of the reference can be equal, and begin as they like."""
    texts = stories(np.random.default_rng(7), 12)
    ids = [f"reference:{k}" if k % 2 else f"{k}" for k in range(12)]
    for name, broken in (("in", "p"), ("old", "q")):
        rows = [{"id": i, "text": text} for i, text in zip(ids, texts, strict=True)] + [{"id": broken, "text": 7}]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    done = command("dedup", "in.jsonl", "--against", "old.jsonl", "--out", "kept", "--workers", 1, *more, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    removed = pd.read_csv(tmp_path / "kept-results/removed.csv", dtype=str)
    assert removed["doc"].tolist() == ids
    assert removed["kept_instead_role"].tolist() == ["reference"] * 12
    assert set(removed["kept_instead"]) <= set(ids)
    assert not pd.read_csv(tmp_path / "kept-results/kept.csv")["doc"].isin(ids).any()
    skipped = pd.read_csv(tmp_path / "kept-results/skipped.csv")
    assert skipped["doc"].str[0].tolist() == ["q", "p"]
    assert skipped["role"].tolist() == ["reference", "page"]
    alone = command("dedup", "in.jsonl", "--out", "alone", "--workers", 1, *more, cwd=tmp_path)
    assert alone.returncode == 0, alone.stderr
    assert pd.read_csv(tmp_path / "alone-results/kept.csv")["doc"].isin(ids).all()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--against", "none"), "none does not exist; give a file, a folder or a pattern"),
        (("--against", "empty.jsonl"), "the reference has no readable document; give another one"),
        (("--against", "empty.jsonl", "--memory", "1GB"), "the reference has no readable document; give another one"),
        (("--against", "in", "--store", "s"), "a store of the input is not kept with --against; leave out --store"),
        (("--against-text", "x"), "--against-text needs a reference: name it with --against REFERENCE"),
        (("--against", "in", "--against-text", "x"), "which has no columns; leave out --text"),
    ],
)
def test_a_reference_that_cannot_be_used(inputs, words, sentence):
    folder, *_ = inputs
    (folder / "empty.jsonl").write_text(json.dumps({"id": "x", "text": 7}) + "\n")
    done = command("pairs", "in", "--workers", 1, *words, cwd=folder)
    assert done.returncode == 1
    assert sentence in done.stderr


def test_unreadable_pages_of_a_reference_are_listed():
    with pytest.warns(UserWarning, match=r"1 page of the reference cannot be read; 1: the page is missing"):
        pairs = near_duplicates(["the plan is a bridge", None], against=["the town", None, "the plan is a bridge"])
    assert (pairs.i.tolist(), pairs.j.tolist(), pairs.n, pairs.n_right) == ([0], [2], 2, 3)
    assert dedup(["the plan is a bridge", "a town"], against=iter(["the plan is a bridge"])) == ["a town"]
    assert dedup(["the plan is a bridge", "a town"], against=[]) == ["the plan is a bridge", "a town"]
