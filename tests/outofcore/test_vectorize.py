"""Segments and their layout by length equal what happens in memory."""

import json
import shutil
import tracemalloc
from collections import Counter
from dataclasses import replace
from itertools import chain, count, pairwise

import naive.extract as naive
import numpy as np
import pytest
from folders import contents
from hypothesis import given, settings
from hypothesis import strategies as st
from stores import Elsewhere, StopsAt, segments_of
from strategies import triples
from test_block_join import rarity
from test_store import change_versions

from spotsigs.errors import InputError
from spotsigs.formats.jsonl import Jsonl
from spotsigs.outofcore.block_join import join_store
from spotsigs.outofcore.segments import extract_segments
from spotsigs.outofcore.vectorize import build_vectors, parse_memory
from spotsigs.records import DocumentColumns, Signatures, Skipped
from spotsigs.signatures.extract import concatenate, extract, unique_ids
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.storage.exact_duplicates import ExactDuplicates
from spotsigs.text.visible import VisibleText
from spotsigs.workers.engines import Processes, Serial

MEMORY = 10**8


def batch(rng, n, names):
    rows = [np.unique(rng.integers(0, 30, rng.integers(0, 9)).astype(np.uint64) << np.uint64(59)) for _ in range(n)]
    hashes = np.concatenate([np.empty(0, np.uint64), *rows])
    return Signatures(
        DocumentColumns(
            tuple(rng.choice(names, n).tolist()), tuple(None if rng.random() < 0.5 else "c" for _ in range(n))
        ),
        indptr=np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64),
        hashes=hashes,
        counts=rng.integers(1, 4, len(hashes)).astype(np.int32),
    )


def rows_of(vectors, doc_ids):
    return [(doc_ids[r], *(a.tolist() for a in vectors.row(r)), int(vectors.lengths[r])) for r in range(len(vectors))]


@settings(max_examples=30)
@given(st.data())
def test_layout_equals_the_filter_in_memory(tmp_path_factory, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    sizes = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=4))
    batches = [batch(rng, n, ["a", "b", "a#2", "é"]) for n in sizes]
    chosen = IdfFilter(
        idf_min=data.draw(st.sampled_from([0.0, 0.2, 0.5])),
        idf_max=data.draw(st.sampled_from([0.85, 1.0])),
        min_spots=data.draw(st.integers(1, 4)),
        fewest=data.draw(st.sampled_from([0, 6])),
    )
    sets = data.draw(st.booleans())
    memory = data.draw(st.sampled_from([5000, MEMORY]))  # the smaller one needs several passes and spans
    folder = tmp_path_factory.mktemp("layout")
    stored = build_vectors(folder / "v", segments_of(batches, folder / "s"), chosen, memory=memory, sets=sets)
    whole = concatenate(batches)
    whole = replace(whole, documents=replace(whole.documents, ids=unique_ids(whole.doc_ids)))
    expected = chosen(whole).as_sets() if sets else chosen(whole)
    np.testing.assert_array_equal(stored.vectors.vocabulary, expected.vocabulary)
    names = [stored.doc_ids[row] for row in stored.rows]
    assert rows_of(stored.vectors, names) == [rows_of(expected, whole.doc_ids)[r] for r in stored.rows]
    assert stored.rows.tolist() == np.argsort(expected.lengths, kind="stable").tolist()
    assert classes_of(stored) == expected_classes(whole, stored)
    assert list(stored.doc_ids) == list(whole.doc_ids)


def classes_of(stored):
    """Return the class of each entry of a store."""
    return stored.store.array("classes", np.uint8).tolist()


def expected_classes(whole, stored, distinct=None):
    """Count over all documents that are no copies, whatever is left of them."""
    rows = [whole.hashes[a:b].tolist() for a, b in pairwise(whole.indptr.tolist())]
    rows = [row if distinct is None or distinct[r] else [] for r, row in enumerate(rows)]
    frequency = Counter(chain.from_iterable(rows))
    hashes = stored.vectors.vocabulary[stored.vectors.ids].tolist()
    return [rarity(frequency[h]) for h in hashes]


def test_classes_do_not_depend_on_cuts_and_do_not_count_copies(tmp_path, monkeypatch):
    monkeypatch.setattr("spotsigs.outofcore.vectorize.LEAST_ENTRIES", 100)
    batches = large_batches(np.random.default_rng(4))
    whole, exact_duplicates = concatenate(batches), ExactDuplicates.none(181)
    exact_duplicates = ExactDuplicates(
        exact_duplicates.content, np.where(np.arange(181) < 40, 90, exact_duplicates.representatives).astype(np.int32)
    )
    segments = segments_of(batches, tmp_path / "s")
    for memory in (13_000, MEMORY):
        more = {"memory": memory, "exact_duplicates": exact_duplicates}
        stored = build_vectors(tmp_path / f"{memory}", segments, IdfFilter(idf_min=0), **more)
        assert classes_of(stored) == expected_classes(whole, stored, exact_duplicates.distinct)
    assert contents(tmp_path / "13000") == contents(tmp_path / f"{MEMORY}")


def large_batches(rng, sizes=(60, 1, 0, 80, 40)):
    """Rows of few lengths, so that some lengths must be cut by batch."""
    names = [f"d{k}" for k in range(400)]
    return [batch(rng, n, names) for n in sizes]


@pytest.mark.long
def test_layout_may_stop_at_any_task(tmp_path, monkeypatch):
    monkeypatch.setattr("spotsigs.outofcore.vectorize.LEAST_ENTRIES", 150)
    rng = np.random.default_rng(4)
    segments = segments_of(large_batches(rng), tmp_path / "s")
    chosen, copied = IdfFilter(idf_min=0.1), ExactDuplicates.none(181)
    copied = ExactDuplicates(copied.content, np.where(np.arange(181) == 3, 90, copied.representatives).astype(np.int32))
    more = {"memory": MEMORY, "exact_duplicates": copied}
    build_vectors(tmp_path / "v", segments, chosen, **more)
    expected, stops = contents(tmp_path / "v"), 0
    for last in count():
        try:
            build_vectors(tmp_path / "w", segments, chosen, **more, engine=StopsAt(last), facts={})
        except KeyboardInterrupt:
            stops += 1
            done = contents(tmp_path / "w-in-the-making")
            build_vectors(tmp_path / "w", segments, chosen, **more, engine=StopsAt(-1))
        else:
            break
        assert contents(tmp_path / "w") == expected
        assert last == 0 or len(done) > last
        assert not (tmp_path / "w-in-the-making").exists()
        shutil.rmtree(tmp_path / "w")
    assert stops > 8


@pytest.mark.parametrize("left_by", ["other arguments", "unknown arguments", "another version"])
def test_results_of_other_tasks_are_not_used(tmp_path, left_by, monkeypatch):
    """Nor results without a description, whose folder was deleted during a run."""
    segments = segments_of(large_batches(np.random.default_rng(4)), tmp_path / "s")
    chosen = IdfFilter(idf_min=0.5 if left_by == "other arguments" else 0)
    with monkeypatch.context() as former:
        former.setattr("spotsigs.outofcore.vectorize.rarity_classes", lambda frequencies: np.zeros_like(frequencies))
        with pytest.raises(KeyboardInterrupt):
            build_vectors(tmp_path / "v", segments, chosen, memory=MEMORY, engine=StopsAt(2))
    assert (tmp_path / "v-in-the-making" / "tallied").exists()
    if left_by == "unknown arguments":
        (tmp_path / "v-in-the-making" / "job.json").unlink()
    if left_by == "another version":
        change_versions(tmp_path / "v-in-the-making")
    build_vectors(tmp_path / "v", segments, IdfFilter(idf_min=0), memory=MEMORY)
    build_vectors(tmp_path / "w", segments, IdfFilter(idf_min=0), memory=MEMORY)
    assert contents(tmp_path / "v") == contents(tmp_path / "w")


@pytest.mark.long
def test_the_calling_process_stores_none_of_the_entries(tmp_path):
    """Twenty times the signatures on as many pages: no more memory than blocks that are merged, and looked through."""
    peaks = []
    for entries in (10, 200):
        draws = np.random.default_rng(1).integers(0, 500, (2000, entries)).astype(np.uint64)
        hashes = (draws + np.arange(entries, dtype=np.uint64) * np.uint64(2**64 // entries)).ravel()
        indptr, ones = np.arange(0, len(hashes) + 1, entries), np.ones(len(hashes), np.int32)
        rows = Signatures(DocumentColumns(tuple(map(str, range(2000)))), indptr, hashes, ones)
        folder = tmp_path / str(entries)
        segments = segments_of([rows] * 10, folder / "s")
        build_vectors(folder / "warm", segments, IdfFilter(), memory=2 * 10**6, engine=Elsewhere())
        tracemalloc.start()
        build_vectors(folder / "v", segments, IdfFilter(), memory=2 * 10**6, engine=Elsewhere())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(peaks) < peaks[0] + 4 * 2**20 < 8 * len(hashes) * 10


@given(names=st.lists(st.sampled_from(["a", "a#2", "a#3", "b", "b#2"]), max_size=12), cut=st.integers(0, 12))
def test_ids_are_made_unique(tmp_path_factory, names, cut):
    def signatures(part):
        none, n = np.empty(0), len(part)
        return Signatures(DocumentColumns(tuple(part)), np.zeros(n + 1, np.int64), none.astype("u8"), none.astype("i4"))

    parts = segments_of([signatures(names[:cut]), signatures(names[cut:])], tmp_path_factory.mktemp("ids"))
    assert tuple(parts.doc_ids) == unique_ids(names) == naive.unique_ids(names)


def pages(path, n, seed=1):
    rng = np.random.default_rng(seed)
    words = ["the", "a", "is", "cat", "dog", "was", "house", "tree", "to", "river", "has", "moon"]
    texts = [" ".join(rng.choice(words, 60)) for _ in range(n)]
    lines = [json.dumps({"id": f"p{k % 40}", "text": text, "cluster": "c"}) for k, text in enumerate(texts)]
    path.write_text("\n".join([*lines, "broken"]))
    return Jsonl(path=str(path), shard_bytes=2000)


@pytest.mark.parametrize("engine", [Serial(), Processes(workers=2)])
def test_extraction_to_segments_equals_extraction_in_memory(tmp_path, engine):
    collection = pages(tmp_path / "x.jsonl", 60)
    segments = extract_segments(tmp_path / "s", collection, VisibleText(), SpotSignatures(), engine)
    expected = extract(collection, VisibleText(), SpotSignatures(), Serial())
    assert len(segments.folders) == len(collection.shards()) > 3
    for name in ("hashes", "counts"):
        blocks = [getattr(block, name) for block in segments.read(name)]
        np.testing.assert_array_equal(np.concatenate(blocks), getattr(expected, name))
    assert tuple(segments.doc_ids) == expected.doc_ids
    assert tuple(segments.skipped) == expected.skipped == (Skipped(expected.skipped[0].id, expected.skipped[0].reason),)


def test_extraction_resumes(tmp_path):
    collection = pages(tmp_path / "x.jsonl", 60)
    with pytest.raises(KeyboardInterrupt):
        extract_segments(tmp_path / "s", collection, VisibleText(), SpotSignatures(), StopsAt(2))
    done = {p: p.stat().st_mtime_ns for p in (tmp_path / "s").glob("*/hashes.npy")}
    assert len(done) == 2
    extract_segments(tmp_path / "s", collection, VisibleText(), SpotSignatures(), Serial())
    assert all(p.stat().st_mtime_ns == time for p, time in done.items())


def test_extraction_refuses_a_folder_of_another_one(tmp_path):
    collection = pages(tmp_path / "x.jsonl", 20)
    extract_segments(tmp_path / "s", collection, VisibleText(), SpotSignatures(), Serial())
    with pytest.raises(InputError, match=r"another extraction \(its scheme differ\)"):
        extract_segments(tmp_path / "s", collection, VisibleText(), SpotSignatures(d=1), Serial())
    pages(tmp_path / "x.jsonl", 21)
    with pytest.raises(InputError, match=r"another extraction \(its .*files differ\)"):
        extract_segments(tmp_path / "s", collection, VisibleText(), SpotSignatures(), Serial())
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(InputError, match="is not empty; give another path"):
        extract_segments(tmp_path / "full", collection, VisibleText(), SpotSignatures(), Serial())


def test_layout_refuses_more_signatures_than_numbers(tmp_path, monkeypatch):
    segments = segments_of([batch(np.random.default_rng(1), 50, ["a"])], tmp_path / "s")
    monkeypatch.setattr("spotsigs.outofcore.vectorize.MOST_SIGNATURES", 3)
    with pytest.raises(
        InputError, match="distinct signatures are inside the band, and their numbers end at 3; a narrower IDF"
    ):
        build_vectors(tmp_path / "v", segments, IdfFilter(idf_min=0), memory=10**9)
    assert not (tmp_path / "v").exists()


def test_ids_are_wide_if_there_are_too_many_and_the_same(tmp_path, monkeypatch):
    """The pairs as well."""
    segments = segments_of(large_batches(np.random.default_rng(4)), tmp_path / "s")
    made, pairs = {}, {}
    for name in ("narrow", "parameter", "number"):
        if name == "number":
            monkeypatch.setattr("spotsigs.outofcore.vectorize.MOST_NARROW", made["narrow"].vectors.n_signatures - 1)
        wide = name == "parameter"
        made[name] = build_vectors(tmp_path / name, segments, IdfFilter(idf_min=0), memory=MEMORY, wide=wide)
        joined = join_store(tmp_path / name, tmp_path / f"pairs-{name}", 0.2, Serial(), memory=MEMORY)
        pairs[name] = triples(joined)
    assert made["narrow"].vectors.ids.dtype == np.int32
    assert len(pairs["narrow"]) > 10
    for name in ("parameter", "number"):
        assert made[name].vectors.ids.dtype == np.int64
        assert pairs[name] == pairs["narrow"]
        for column in ("indptr", "ids", "counts", "lengths", "vocabulary"):
            one, other = (getattr(made[which].vectors, column) for which in ("narrow", name))
            np.testing.assert_array_equal(one, other)


def test_the_filter_in_memory_refuses_more_signatures_than_numbers(monkeypatch):
    rows = batch(np.random.default_rng(1), 50, ["a"])
    distinct = len(np.unique(rows.hashes))
    for most in (distinct - 1, distinct):
        monkeypatch.setattr("spotsigs.signatures.idf.MOST_IDS", most)
        if most == distinct:
            assert IdfFilter(idf_min=0)(rows).n_signatures == distinct
            continue
        with pytest.raises(InputError, match=f"more than {most} distinct signatures, which is the limit in memory"):
            IdfFilter(idf_min=0)(rows)


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2 * 10**9), ("1.5 g", 15 * 10**8), ("512MiB", 2**29), (10**8, 10**8), ("1tib", 2**40)]
)
def test_memory_sizes(text, size):
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["lots", "2XB", "-1GB", ""])
def test_memory_sizes_that_are_none(text):
    with pytest.raises(InputError, match="memory must be"):
        parse_memory(text)
