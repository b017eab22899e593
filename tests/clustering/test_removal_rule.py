"""Which page may be removed for which: contents beside their reference, and the promise in every way to run."""

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_process import command
from naive import contained as naive
from runs import configured, deduplicated
from strategies import examples, is_long
from test_engines import available
from test_sections import WAYS

import spotsigs
from spotsigs.contracts import SignatureScheme
from spotsigs.errors import InputError
from spotsigs.method import Method
from spotsigs.records import Phrases
from spotsigs.signatures.contained import NO_RULE, contents_of, phrases_of
from spotsigs.signatures.extract import cutter, texts, texts_for
from spotsigs.text.tokens import tokenize
from spotsigs.workers.engines import Serial

WORDS = ["the", "a", "story", "of", "one", "two"]
TAU, LEAST = 0.44, 0.3


@st.composite
def pages(draw):
    """Draw words, the signatures of some of them, those that are compared, and whether shingles are marked."""
    words = draw(st.lists(st.sampled_from(WORDS), max_size=30))
    firsts = sorted(draw(st.sets(st.integers(0, len(words) - 1)))) if words else []
    some = st.integers(0, 5).map(lambda k: (k << 40) + k)
    located = [(draw(some), first) for first in firsts]
    compared = draw(st.sets(some | st.sampled_from([2**64 - 1, 1 << 33, (1 << 34) + 1])))
    return words, located, sorted(compared)


@examples(200, long=5000)
@given(st.lists(pages(), max_size=6), st.booleans(), st.integers(1, 2))
def test_contents_are_those_of_the_reference(drawn, marked, threads):
    entries = []
    for words, located, _ in drawn:
        signatures, firsts = (
            np.array(part, kind)
            for part, kind in zip(
                zip(*located, strict=True) if located else ((), ()), (np.uint64, np.int32), strict=True
            )
        )
        entries.append(phrases_of(signatures, firsts, tokenize(" ".join(words))))
    phrases = Phrases(np.cumsum([0, *map(len, entries)]), np.concatenate([np.empty(0, np.uint64), *entries]))
    indptr = np.cumsum([0, *(len(compared) for _, _, compared in drawn)])
    hashes = np.array([one for _, _, compared in drawn for one in compared], np.uint64)
    contents = contents_of(phrases, indptr, hashes, marked=marked, threads=threads)
    expected = [naive.contents(located, words, compared, marked) for words, located, compared in drawn]
    for r, (everything, own) in enumerate(expected):
        row = contents.hashes[contents.indptr[r] : contents.indptr[r + 1]].tolist()
        assert row == sorted(2 * one + (one in own) for one in everything)
    ends = [(a, b) for a in range(len(drawn)) for b in range(len(drawn))]
    a, b = np.array(ends, np.int64).reshape(-1, 2).T
    measured = NO_RULE._replace(contents=contents).contained(a, b)
    assert measured.tolist() == [1.0 if a == b else naive.contained(expected[a][1], expected[b][0]) for a, b in ends]


def sentence(rng, words):
    return [str(word) for word in rng.choice(words, 6)]


def told(sentences):
    return " ".join(f"the {' '.join(words)}." for words in sentences)


def reworded(rng, words, sentences):
    """Return sentences of the same spots whose skipped words are others, so that no run of words is the same."""
    return [[word if k % 2 else str(rng.choice(words)) for k, word in enumerate(said)] for said in sentences]


def stories(rng):
    """Return short stories, with versions whose text is the story's, in part, hardly, or as a part of theirs."""
    words = np.array([f"w{k}" for k in range(3000)])
    rows = []
    for k in range(12):
        story = [sentence(rng, words) for _ in range(40)]
        versions = {
            "a": story,
            "b": story[:36] + [sentence(rng, words) for _ in range(4)],
            "c": reworded(rng, words, story),
            "d": story[:20] + reworded(rng, words, story[20:]),
            "e": story[:8] + reworded(rng, words, story[8:]),
            "f": story[10:34],
        }
        rows += [{"id": f"{name}{k}", "text": told(version)} for name, version in versions.items()]
        rows += [rows[-1] | {"id": f"g{k}"}] * (k % 3 == 0)
    return [rows[k] for k in rng.permutation(len(rows))]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    rows = stories(np.random.default_rng(3))
    for name, part in {"all": rows, "old": rows[:35], "new": rows[35:]}.items():
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, part)) + "\n")
    return folder, rows


@pytest.fixture(scope="module")
def reference(inputs):
    """The similarity of all pairs, and the function by which fraction one page is contained in another one."""
    folder, rows = inputs
    assert command("pairs", "all.jsonl", "--out", "pairs", "--tau", TAU, cwd=folder).returncode == 0
    columns = pd.read_parquet(folder / "pairs/pairs.parquet", columns=["doc_a", "doc_b", "similarity"])
    near = {frozenset(ends): value for *ends, value in columns.itertuples(index=False)}
    method = Method.of(tau=TAU, min_contained=LEAST, duplicates="off")
    collection = configured("data=jsonl", f"data.path={folder / 'all.jsonl'}").collection
    signatures = method.extract(collection, Serial()).signatures
    contents = {}
    for r, text in enumerate(texts(collection, texts_for(method.signature, method.text))):
        tokens = cutter(method.signature)(text)
        hashes, firsts = method.signature.located_in_outline(tokens)
        compared = signatures.hashes[signatures.indptr[r] : signatures.indptr[r + 1]].tolist()
        words = text.replace(".", "").split()
        located = list(zip(hashes.tolist(), firsts.tolist(), strict=True))
        contents[rows[r]["id"]] = naive.contents(located, words, compared, True)
    return near, lambda a, b: naive.contained(contents[a][1], contents[b][0])


def require_promise(ids, kept, reference, old=frozenset()):
    """Each removed page reaches both numbers with a kept page; no kept one with a kept one before it, unless old."""
    near, contained = reference
    names = [*sorted(old), *(name for name in ids if name not in old)]

    def may(removed, other):
        return near.get(frozenset((removed, other)), 0) >= TAU and contained(removed, other) >= LEAST

    for k, name in enumerate(names):
        if name in old:
            continue
        if name not in kept:
            assert any(may(name, other) for other in kept if other != name)
        else:
            assert not any(may(name, other) for other in names[:k] if other in kept)


def ids_of(rows):
    return [row["id"] for row in rows]


def ran(folder, out, read, *words):
    kept, tables, printed = deduplicated(folder, out, read, "--tau", TAU, *words)
    return set(kept), tables, printed


@pytest.mark.parametrize("clusters", ["leaders", "components"])
def test_every_way_to_run_decides_alike_and_keeps_the_promise(inputs, reference, clusters):
    folder, rows = inputs
    words = ("--clusters", clusters)
    kept, tables, _ = ran(folder, "one", "all", "--workers", 1, "--engine", "serial", *words)
    plain, _, _ = ran(folder, "plain", "all", "--min-contained", 0, *words)
    assert len(plain) + 12 <= len(kept) < len(rows) - 24
    if clusters == "leaders":
        require_promise(ids_of(rows), kept, reference)
        removed = pd.read_csv(folder / "one-results/removed.csv")
        assert removed["contained"].tolist() == [
            round(reference[1](doc, instead), 4)
            for doc, instead in zip(removed["doc"], removed["kept_instead"], strict=True)
        ]
        assert removed["contained"].min() >= LEAST
    assert {row["id"] for row in spotsigs.dedup(rows, TAU, method=Method.of(clusters=clusters))} == kept
    for way in [*list(WAYS)[:3], *(list(WAYS)[3:] if is_long() and available("distributed") else [])]:
        assert ran(folder, "other", "all", *words, *WAYS[way])[1] == tables, way


@pytest.mark.parametrize("keep", ["longest", "none"])
def test_the_order_of_the_pages_is_that_of_keep(inputs, reference, keep):
    folder, rows = inputs
    kept, tables, _ = ran(folder, f"by-{keep}", "all", "--keep", keep, "--workers", 1)
    if keep == "none":
        assert kept == ran(folder, "plain", "all", "--keep", keep, "--min-contained", 0)[0]
    else:
        count = {row["id"]: row["text"].count("the") for row in rows}
        require_promise(sorted(ids_of(rows), key=lambda name: -count[name]), kept, reference)
    assert ran(folder, "other", "all", "--keep", keep, *WAYS["budget"])[1] == tables


def test_added_pages_keep_the_promise(inputs, reference, tmp_path):
    folder, rows = inputs
    store = ("--store", tmp_path / "store", "--workers", 1)
    old, _, _ = ran(folder, "old", "old", *store)
    require_promise(ids_of(rows[:35]), old, reference)
    new, _, _ = ran(folder, "new", "new", *store, "--add")
    assert new < set(ids_of(rows[35:]))
    require_promise([*sorted(old), *ids_of(rows[35:])], old | new, reference, old=old)


def test_pages_of_a_reference_keep_the_promise(inputs, reference, tmp_path):
    folder, rows = inputs
    old = set(ids_of(rows[:35]))
    kept, _, _ = ran(folder, "kept", "new", "--against", "old.jsonl", "--workers", 1)
    require_promise([*sorted(old), *ids_of(rows[35:])], old | kept, reference, old=old)
    assert {row["id"] for row in spotsigs.dedup(rows[35:], TAU, against=rows[:35])} == kept
    ran(folder, "stored", "old", "--store", tmp_path / "store", "--workers", 1)
    assert ran(folder, "kept", "new", "--against", tmp_path / "store", "--memory", "1GB")[0] == kept


def test_a_page_that_contains_one_of_a_reference_is_removed(inputs):
    item = told([[f"a{k}", f"b{k}", f"c{k}", f"d{k}", f"e{k}", f"f{k}"] for k in range(30)])
    page = f"{item} {told([[f'x{k}', f'y{k}', f'z{k}', f'u{k}', f'v{k}', f'w{k}'] for k in range(150)])}"
    assert spotsigs.dedup([page], 0.8, against=[item], method=Method.of(measure="containment")) == []
    assert spotsigs.dedup([item, page], 0.8, method=Method.of(measure="containment")) == [item, page]


def test_a_store_without_phrases_is_named(inputs, tmp_path):
    folder, _ = inputs
    words = ("--store", tmp_path / "store", "--workers", 1)
    command("dedup", "old.jsonl", *words, "--min-contained", 0, "--out", tmp_path / "o", cwd=folder)
    done = command("dedup", "new.jsonl", *words, "--add", "--min-contained", 0.6, "--out", tmp_path / "k", cwd=folder)
    assert done.returncode == 1
    assert "--min-contained 0.6 needs the phrases of the documents, which " in done.stderr
    assert "has not; give --min-contained 0, or make the store again" in done.stderr


@dataclass(frozen=True, kw_only=True)
class Words(SignatureScheme):
    """Words, whose positions the scheme does not report."""

    label = "words"

    def readable(self, text):
        return text.split()


def test_a_scheme_without_positions_has_no_rule_by_default():
    pages = ["one two three four", "one two three four five", "another page"]
    assert spotsigs.dedup(pages, 0.6, method=Method.of(signature=Words())) == [pages[0], pages[2]]
    with pytest.raises(InputError, match=r"Words does not locate its signatures; .* min_contained=0 are possible"):
        spotsigs.dedup(pages, 0.6, method=Method.of(signature=Words(), min_contained=0.5))


@pytest.mark.parametrize("least", [-1, 1.5, float("nan"), "much"])
def test_a_fraction_is_a_number_up_to_one(least):
    with pytest.raises(InputError, match=r"^min_contained must be a number in \[0, 1\], got "):
        Method.of(min_contained=least)
