"""Exact duplicates are detected before signatures and filters, in memory, on disk, added later, and from Python."""

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_process import command
from runs import ran, same
from strategies import by_rows
from strategies import pairs_of as pairs_by_rows

from spotsigs import near_duplicates
from spotsigs.method import Method
from spotsigs.records import Document, DocumentColumns, Pairs, Signatures
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.storage.exact_duplicates import ExactDuplicates, Sameness
from spotsigs.text.checksums import checksums, squeezed

BRIDGE = "<p>The council has approved the plan for a new bridge that will be built by the spring.</p>"
FERRY = "<p>The ferry was late in the morning, and a crowd that had been waiting for an hour was cold.</p>"
TABLE = "<table><tr><td>12</td><td>13</td></tr></table>"  # no prose, so no signature


def folder(place, pages):
    place.mkdir(parents=True)
    for name, page in pages.items():
        (place / name).write_text(page)
    return f"data.path={place}"


def pairs_of(run):
    frame = pd.read_parquet(run / "pairs.parquet")
    return {(*sorted((a, b)), s) for a, b, s, *_ in frame.itertuples(index=False)}


def reasons(run):
    return dict(pd.read_csv(run / "removed.csv")[["doc", "reason"]].itertuples(index=False))


@given(st.data())
def test_exact_duplicates_and_their_pairs_are_those_of_brute_force(data):
    n = data.draw(st.integers(0, 12))
    content = data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    text = [data.draw(st.integers(0, 3)) if content.index(c) == k else None for k, c in enumerate(content)]
    text = [text[content.index(c)] for c in content]  # equal contents have equal texts; 0 is none
    exact_duplicates = ExactDuplicates.find(
        np.array([[c, 7] for c in content]).reshape(-1, 2).astype(np.uint64),
        lambda: np.array([[0, t] for t in text]).reshape(-1, 2).astype(np.uint64),
        n,
    )
    every, representatives = list(combinations(range(n), 2)), exact_duplicates.representatives.tolist()
    alike = {(a, b) for a, b in every if content[a] == content[b] or text[a] == text[b] > 0}
    assert {(a, b) for a, b in every if representatives[a] == representatives[b]} == alike
    assert representatives == [max([b for a, b in alike if a == k], default=k) for k in range(n)]
    assert exact_duplicates.first.tolist() == [representatives.index(r) for r in representatives]
    sites = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    on_site = list(zip(representatives, sites, strict=True))
    first_on_site = exact_duplicates.first_on_site(np.array(sites, np.uint64))
    assert first_on_site.tolist() == [on_site.index(both) == k for k, both in enumerate(on_site)]
    distinct = np.flatnonzero(exact_duplicates.distinct).tolist()
    joined = [pair for pair in combinations(distinct, 2) if data.draw(st.booleans())]
    similarity = {pair: 1 / (2 + k) for k, pair in enumerate(joined)}
    pairs = pairs_by_rows([(*pair, value) for pair, value in similarity.items()], n)
    wanted = {}
    for a, b in every:
        of_representatives = tuple(sorted((representatives[a], representatives[b])))
        if (a, b) in alike or of_representatives in similarity:
            wanted[a, b] = 1.0 if (a, b) in alike else similarity[of_representatives]
    spread = exact_duplicates.spread(pairs)
    assert by_rows(spread) == wanted
    assert (np.diff(spread.i.astype(np.int64) * n + spread.j) > 0).all()
    new_from, most = data.draw(st.integers(0, n)), data.draw(st.integers(1, 5))
    limits = {"most": most, "new_from": new_from}
    across = exact_duplicates.pairs_across(pairs.chunks(), **limits)
    further = [*exact_duplicates.pairs_within(**limits), *across]
    actual = [pair for i, j, s in further for pair in zip(i.tolist(), j.tolist(), s.tolist(), strict=True)]
    assert max(map(len, (i for i, _, _ in further)), default=0) <= most
    others = [(*pair, s) for pair, s in wanted.items() if pair not in similarity and pair[1] >= new_from]
    assert sorted(actual) == sorted(others)


@pytest.mark.parametrize(("one", "other"), [("a  b\n", " a\tb"), ("ß\ud800", "ß \ud800 "[0:1] + "\ud800")])
def test_texts_are_the_same_where_their_words_are(one, other):
    def of(content, text):
        return checksums(Document(id="", content=content), text)

    first, second = of(one, one), of(other, other)
    assert (first[2:] == second[2:]).all()
    assert (first[:2] == second[:2]).all() == (one == other)
    assert not of(b"<p>", " \n")[2:].any()
    assert (of("é", "")[:2] == of("é".encode(), "")[:2]).all()


def words_apart(text):
    return " ".join(text.split()).encode("utf-8", "surrogatepass")


@given(st.text(st.one_of(st.sampled_from(" \t\n\x1c\x85\xa0\u2009\u3000ab"), st.characters(codec=None))))
def test_white_space_is_squeezed(text):
    assert squeezed(text).tobytes() == words_apart(text)


def test_every_code_point_is_white_space_or_is_not():
    for first in range(0, 0x110000, 0x1000):
        text = "|".join(chr(code) + chr(code) for code in range(first, first + 0x1000))
        assert squeezed(text).tobytes() == words_apart(text)


@pytest.mark.parametrize("page", [BRIDGE, TABLE])
@pytest.mark.parametrize("n", [2, 3, 60])
def test_any_number_of_copies_are_pairs(page, n):
    pairs = near_duplicates([page] * n)
    assert len(pairs) == n * (n - 1) // 2
    assert set(pairs.similarity.tolist()) == {1.0}
    assert len(near_duplicates([page, f"<b></b>{page}"], method=Method.of(duplicates="text"))) == 1
    paper = SpotSignatures()  # which has no signature of a page without stopwords
    of_content, off = (Method.of(duplicates=same, signature=paper) for same in ("content", "off"))
    assert len(near_duplicates([TABLE, f"<b></b>{TABLE}"], method=of_content)) == 0
    assert len(near_duplicates([TABLE] * n, method=off)) == 0


def test_pages_without_words_are_no_copies_but_of_their_bytes():
    assert len(near_duplicates(["<p></p>", "<div></div>", "", "<p></p>"])) == 1


def test_the_band_is_counted_over_distinct_pages_and_not_over_few():
    rng = np.random.default_rng(0)
    others = [" ".join(["the", *rng.choice([f"w{k}" for k in range(900)], 9), "a"] * 4) for _ in range(40)]
    near = [f"{FERRY} {BRIDGE} It is {word} now." for word in ("late", "dark")]
    band = Method.of(idf_min=0.2)
    alone = near_duplicates([*others, *near], method=band)
    assert [(int(i), int(j)) for i, j in zip(alone.i, alone.j, strict=True)] == [(40, 41)]
    # the signatures would be in most of the pages, were copies counted
    copied = near_duplicates([*others, *[near[0]] * 60, near[1]], method=band)
    assert len(copied) == 60 * 61 // 2
    off = near_duplicates([*others, *[near[0]] * 60, near[1]], method=Method.of(duplicates="off", idf_min=0.2))
    assert len(off) == 0
    few = near_duplicates(near, method=band), near_duplicates([*near, *others[:20]], method=band)  # no band
    assert [len(pairs) for pairs in few] == [1, 1]


@pytest.mark.parametrize(("choice", "n"), [("text", 10), ("content", 4), ("off", 1)])
def test_the_rule_for_exact_duplicates_is_an_option(tmp_path, choice, n):
    pages = {"a.html": BRIDGE, "b.html": BRIDGE, "c.html": f"<!-- c -->{BRIDGE}", "d.html": TABLE, "e.html": TABLE}
    pages |= {"f.html": f"<i></i>{TABLE}"}
    words = ["data=folder", folder(tmp_path / "in", pages), "engine=serial", f"duplicates={choice}"]
    ran(tmp_path / "memory", *words)
    ran(tmp_path / "disk", *words, "memory=1GB")
    assert same(tmp_path / "memory", tmp_path / "disk")
    actual = pairs_of(tmp_path / "memory")
    assert {s for _, _, s in actual} == {1.0}
    bridges = {("a.html", "b.html"), ("a.html", "c.html"), ("b.html", "c.html")}  # similar by signatures in any case
    tables = {
        "text": {("d.html", "e.html"), ("d.html", "f.html"), ("e.html", "f.html")},
        "content": {("d.html", "e.html")},
    }
    assert {pair[:2] for pair in actual} == bridges | tables.get(choice, set())


def test_removed_pages_have_a_reason_and_kept_ones_whether_they_were_compared(tmp_path):
    kinds = (TABLE, TABLE, f"<i></i>{TABLE}", BRIDGE, f"{BRIDGE}<p>It is late.</p>")
    pages = {f"{k}.html": page for k, page in enumerate(kinds, start=1)}
    words = ["data=folder", folder(tmp_path / "in", pages), "engine=serial", "tau=0.3"]
    text = ran(tmp_path / "run", *words)
    near = reasons(tmp_path / "run")
    assert near.pop("5.html").startswith("near-duplicate of 4.html (similarity 0.")
    assert near == {
        "2.html": "identical content: copy of 1.html, which is kept",
        "3.html": "identical text: copy of 1.html, which is kept",
    }
    assert (tmp_path / "run/kept.csv").read_text() == "doc,compared,language\n1.html,no,\n4.html,yes,en\n"
    assert "2 exact duplicates: 1 of identical content, 1 of identical text" in text
    assert "3 documents with too few visible words or signatures to be compared: see kept.csv" in text
    ran(tmp_path / "none", *words, "keep=none")
    alone = "identical content: copy of 2.html; no document that has a near-duplicate is kept"
    assert reasons(tmp_path / "none")["1.html"] == alone


@pytest.mark.parametrize("boilerplate", ["keep", "remove"])
def test_added_copies_give_the_pairs_of_a_run_over_everything(tmp_path, boilerplate):
    rng = np.random.default_rng(1)
    kinds = [BRIDGE, f"{BRIDGE} The spring is late.", FERRY, TABLE, f"<i></i>{FERRY}", f" {TABLE}"]
    pages = {f"{k:02}.html": kinds[rng.integers(len(kinds))] for k in range(30)}
    rows = [json.dumps({"id": name, "html": page}) for name, page in pages.items()]
    base = ["data=jsonl", "engine=serial", "tau=0.3", f"boilerplate={boilerplate}"]
    for k, part in enumerate((rows[:18], rows[18:25], rows[25:])):
        (tmp_path / f"{k}.jsonl").write_text("\n".join(part))
        (tmp_path / f"all{k}.jsonl").write_text("\n".join(rows[: (18, 25, 30)[k]]))
        ran(
            tmp_path / f"add{k}",
            *base,
            f"data.path={tmp_path / f'{k}.jsonl'}",
            f"store={tmp_path / 's'}",
            "add=true",
            "memory=1GB",
        )
        ran(tmp_path / f"full{k}", *base, f"data.path={tmp_path / f'all{k}.jsonl'}")
        fresh = {json.loads(row)["id"] for row in part}
        wanted = {pair for pair in pairs_of(tmp_path / f"full{k}") if {pair[0], pair[1]} & fresh}
        assert pairs_of(tmp_path / f"add{k}") == wanted
        assert wanted


def test_a_page_is_compared_with_a_store_by_its_bytes_and_by_its_text(tmp_path):
    pages = {"1.html": TABLE, "2.html": f"<i></i>{TABLE}", "3.html": BRIDGE, "4.html": BRIDGE}
    pages |= {"5.html": f"{BRIDGE} The end is near."}
    folder(tmp_path / "in", pages)
    words = ("--store", "s", "--tau", 0.3, "--workers", 1, "--boilerplate", "keep")
    assert command("pairs", "in", *words, cwd=tmp_path).returncode == 0
    for page, expected in ((TABLE, ["1.html", "2.html"]), (BRIDGE, ["3.html", "4.html", "5.html"])):
        (tmp_path / "page").write_text(page)
        done = command("pairs", "page", "--against", "s", "--workers", 1, cwd=tmp_path)
        actual = [line.split("\t") for line in done.stdout.splitlines()[1:]]
        assert [row[:2] for row in actual] == [[name, "page"] for name in expected]
        assert [float(row[2]) for row in actual[:2]] == [1, 1]
        assert all(0.3 <= float(row[2]) < 1 for row in actual[2:])


def test_copies_beyond_what_can_be_listed_are_refused_in_a_sentence():
    n = 70_000
    digests = np.ones((n, 4), np.uint64)
    documents = DocumentColumns(("",) * n, digests=digests)
    signatures = Signatures(documents, np.zeros(n + 1, np.int64), np.empty(0, np.uint64), np.empty(0, np.int32))
    exact_duplicates = ExactDuplicates.among(signatures, Sameness.text)
    none = np.empty(0, np.int32)
    with pytest.raises(Exception, match=r"2,449,965,000 pairs .* keep one of each set of identical documents"):
        exact_duplicates.spread(Pairs(none, none, np.empty(0), n))
