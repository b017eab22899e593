"""Pages of made sites in every way to run: the same bytes, and the decisions of brute force by the whole rule."""

import json
from collections import Counter
from functools import partial
from itertools import combinations

import naive
import naive.contained
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_process import command
from naive import join as naive_join
from stores import InMemory
from strategies import examples
from test_engines import available

from spotsigs.clustering.decisions import Keep
from spotsigs.method import Method
from spotsigs.outofcore import pipeline
from spotsigs.records import Document
from spotsigs.runs.stages import Output, Run, compute
from spotsigs.signatures.contained import LEAST_BOUND
from spotsigs.signatures.sections import SECTION_TAU

STOPWORDS = ("the", "a", "is", "was", "of", "has")


def sentence(rng):
    return " ".join(f"{rng.choice(STOPWORDS)} w{rng.integers(900)} w{rng.integers(900)}" for _ in range(7)) + "."


def pages(rng, n, sites):
    """Draw pages of sites, each with a menu: new stories, changed ones, parts of some, and exact duplicates."""
    menus = [[sentence(rng).rstrip(".") for _ in range(3)] for _ in range(sites)]
    rows, told = [], []
    for k in range(n):
        way, site, folder = rng.random(), int(rng.integers(sites)), "ab"[rng.integers(2)]
        story = [sentence(rng) for _ in range(rng.integers(3, 9))]
        if told and way < 0.7:
            story = list(told[rng.integers(len(told))])
            for _ in range(rng.integers(0, 5)):
                story[rng.integers(len(story))] = sentence(rng)
            story = story[: rng.integers(1, len(story) + 1)] if way < 0.15 else story
        told.append(story)
        links = "".join(f"<li><a href='/{folder}'>{one}</a></li>" for one in menus[site])
        said = "".join(f"<p>{one}</p>" for one in story)
        html = f"<html><body><ul>{links}</ul><div>{said}</div><div><a href='/'>about us</a></div></body></html>"
        if rows and way > 0.9:
            html = rows[rng.integers(len(rows))]["html"]
        rows.append({"id": f"http://host{site}.org/{folder}/{k}.html", "html": html})
    return rows


# brute force

PARTS = Counter()
"""How often each part of the rule has kept a page in the collections of this process."""


def features(matched):
    """Return the signatures, sections, missing signatures and phrases of each document, or its exact duplicates."""
    of, first, signatures = (
        matched.exact_duplicates.representatives.tolist(), matched.exact_duplicates.first, matched.signatures
    )  # fmt: skip
    rows = []
    for row in of:
        ids, counts = matched.vectors.row(row)
        rows.append(Counter(dict(zip(ids.tolist(), counts.tolist(), strict=True))))
    contents = matched.texts.contents()
    phrases = []
    for row in of:
        some = contents.hashes[contents.indptr[row] : contents.indptr[row + 1]].tolist()
        phrases.append(({one >> 1 for one in some}, {one >> 1 for one in some if one % 2}))
    return of, rows, signatures.sections[first].tolist(), signatures.missing[first].tolist(), phrases


def decided(method, matched):
    """Return the leader of each document by brute force, and the similarity of every pair."""
    of, rows, sections, missing, phrases = features(matched)
    near = {(i, j): s for i, j, s in naive_join.self_join(rows, method.tau)}
    near |= {(i, j): 1.0 for i, j in combinations(range(len(of)), 2) if of[i] == of[j]}
    bound = partial(naive.contained.lower_bound, missing=missing, lengths=[row.total() for row in rows])
    least = min(LEAST_BOUND, method.tau)
    whole = naive.contained.may_remove(phrases, method.min_contained, sections, SECTION_TAU, bound, least)

    def may(removed, kept, similarity):
        return of[removed] == of[kept] or whole(removed, kept, similarity)

    for (i, j), similarity in near.items():
        if of[i] != of[j] and not may(j, i, similarity):
            alike = sections[i] == sections[j] != 0 and bound(j, i, similarity) < SECTION_TAU
            PARTS["sections" if alike else "lower bound" if bound(j, i, similarity) < least else "contents"] += 1
    lengths = matched.main_lengths().tolist()
    order = sorted(range(len(of)), key=lambda k: -lengths[k] if method.keep is Keep.longest else 0)
    return naive.leaders(near, order, (), may), near, phrases


@examples(5, long=300)
@given(
    seed=st.integers(0, 10**9),
    tau=st.sampled_from([0.1, 0.25, 0.4, 0.6]),
    keep=st.sampled_from([Keep.first, Keep.longest]),
    budget=st.sampled_from([20_000, 100_000, 10**8]),
    n=st.integers(1, 30),
)
def test_decisions_are_those_of_brute_force_in_memory_and_on_disk(tmp_path_factory, seed, tau, keep, budget, n):
    rng, folder = np.random.default_rng(seed), tmp_path_factory.mktemp("run")
    rows = pages(rng, n, 3)
    collection = InMemory(tuple(Document(id=row["id"], content=row["html"]) for row in rows), 3)
    method, output = Method.of(tau=tau, keep=keep), Output(folder=folder, listed=False)
    result = compute(method, Run(collection=collection, data="made", output=output))
    leaders, near, phrases = decided(method, result.matched)
    decisions = result.decisions
    assert decisions.kept.tolist() == [leaders[k] == k for k in range(n)]
    for k in np.flatnonzero(~decisions.kept).tolist():
        kept = leaders[k]
        assert decisions.partner[k] == kept
        assert decisions.similarity[k] == near[min(k, kept), max(k, kept)]
        of = result.matched.exact_duplicates.representatives
        inside = 1.0 if of[k] == of[kept] else naive.contained.contained(phrases[k][1], phrases[kept][0])
        assert decisions.contained[k] == inside
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "data_budget", lambda memory, workers=0: budget)
        patch.setattr(pipeline, "BYTES_A_DOCUMENT", 1)
        patch.setattr(pipeline, "BYTES_A_RESULT", 1)
        for pairs in (False, True):
            output = Output(folder=folder / f"disk-{pairs}", listed=pairs)
            stored = compute(method, Run(collection=collection, data="made", output=output, memory=10**9))
            gone = ~decisions.kept  # a kept page has a partner if all pairs are listed
            for name in ("kept", "compared"):
                np.testing.assert_array_equal(getattr(stored.decisions, name), getattr(decisions, name))
            for name in ("partner", "similarity", "contained"):
                np.testing.assert_array_equal(getattr(stored.decisions, name)[gone], getattr(decisions, name)[gone])
            if pairs:
                listed = stored.matched.pairs
                every = zip(listed.i.tolist(), listed.j.tolist(), listed.similarity.tolist(), strict=True)
                assert [*every] == [(*ends, near[ends]) for ends in sorted(near)]


# every way to run

BUDGETS = (90_000, 200_000, 10**6, 10**7, 10**9)
"""Bytes for the data of a process: from a few documents above what their order takes to all at once."""

IN_MEMORY = {f"{n} workers": ("--workers", n) for n in (1, 2, 3)} | {"dask": ("--engine", "dask", "--workers", 2)}
ON_DISK = {
    **{f"{budget} bytes": ("--workers", 1, "--memory", "1GB") for budget in BUDGETS},
    **{f"on disk, {n} workers": ("--workers", n, "--memory", "3GB") for n in (1, 2, 3)},
    "on disk, dask": ("--engine", "dask", "--workers", 2, "--memory", "3GB"),
}
TABLES = {".csv", ".parquet", ".jsonl"}


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    """Write 600 pages in 12 files, and the last third of these again as the pages that are added."""
    folder, rows = tmp_path_factory.mktemp("crawl"), pages(np.random.default_rng(7), 600, 8)
    for name, parts in (("all", range(12)), ("old", range(8)), ("new", range(8, 12))):
        (folder / name).mkdir()
        for part in parts:
            lines = (json.dumps(row) for row in rows[part * 50 : (part + 1) * 50])
            (folder / name / f"{part:02}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def ran(crawl, folder, verb, *words):
    done = command(verb, *words, cwd=crawl)
    assert done.returncode == 0, done.stderr
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.suffix in TABLES and path.name != "tasks.parquet" and "store" not in path.parts
    }


def of_all(crawl, folder, way):
    """Return the bytes of the copy and of the tables of `dedup`, and of all pairs and leaders."""
    copy = ran(crawl, folder, "dedup", "all", "--out", folder / "kept", *way)
    return copy | ran(crawl, folder, "pairs", "all", "--out", folder / "pairs", *way)


def of_added(crawl, folder, way):
    """Return the bytes of the copies and tables of two batches that are added to a store."""
    words = ("--store", folder / "store", *way)
    first = ran(crawl, folder, "dedup", "old", "--out", folder / "old", *words)
    return first | ran(crawl, folder, "dedup", "new", "--out", folder / "new", "--add", *words)


def of_reference(crawl, folder, way):
    """Return the bytes of the copy and tables of pages that are compared with a reference."""
    return ran(crawl, folder, "dedup", "new", "--out", folder / "new", "--against", "old", *way)


CASES = {
    of_all: IN_MEMORY | ON_DISK,
    of_added: ON_DISK,
    of_reference: IN_MEMORY | ON_DISK,
}
EXPECTED = {}


def expected_of(crawl, case, folder):
    """Return the bytes of the first way, which is in memory with a worker unless pages are added."""
    if case not in EXPECTED:
        EXPECTED[case] = case(crawl, folder, next(iter(CASES[case].values())))
        assert EXPECTED[case]
    return EXPECTED[case]


@pytest.mark.long
@pytest.mark.parametrize(
    ("case", "way"),
    [pytest.param(case, way, id=f"{case.__name__}, {way}") for case, ways in CASES.items() for way in ways],
)
def test_every_way_to_run_gives_the_same_bytes(crawl, tmp_path, monkeypatch, case, way):
    if "dask" in way and not available("distributed"):
        pytest.skip("needs distributed")
    expected = expected_of(crawl, case, tmp_path / "expected")
    if way.endswith(" bytes"):
        budget = int(way.split()[0])
        monkeypatch.setattr(pipeline, "data_budget", lambda memory, workers=0: budget)
    actual = case(crawl, tmp_path / "actual", CASES[case][way])
    assert actual.keys() == expected.keys()
    assert [name for name in actual if actual[name] != expected[name]] == []
