"""Text lost equals its definition over sets of strings, within a bound of memory, and a run reports it."""

import json
import re
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import naive.text_lost
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import configured, ran
from stores import segments_of
from strategies import examples

import spotsigs.evaluation.text_lost
from baselines.shingles import Shingles
from spotsigs.arrays.csr import row_starts
from spotsigs.errors import spelled
from spotsigs.evaluation.text_lost import bits_for, text_lost
from spotsigs.options import as_option
from spotsigs.outofcore import text_lost_tasks
from spotsigs.outofcore.text_lost_tasks import StoredGrams
from spotsigs.records import Document, WordGrams
from spotsigs.runs.warnings import text_warning
from spotsigs.signatures.extract import GRAM_BITS, concatenate, extract_parts, extract_shard, grams_of
from spotsigs.text.visible import VisibleText
from spotsigs.workers.engines import Serial

WORDS = st.lists(st.sampled_from("a b c \u00c9t\u00e9 \u6771\u4eac\u90fd".split()), max_size=12).map(" ".join)
ENDS = [*"a. b!\u201d c?d A.\u00c9 \u6771\u3002\u4eac \u03a3. \uff01 e.2 \u0130\uff1f .".split(), "\n\n", "b\fa"]
SENTENCES = st.lists(st.sampled_from(["a", "\u00e9t\u00e9", *ENDS]), max_size=12).map(" ".join)


@given(pages=st.lists(st.tuples(WORDS | SENTENCES, st.booleans()), max_size=8))
@examples(300)
def test_it_is_that_of_sets_of_strings(pages):
    texts, kept = [text for text, _ in pages], [stays for _, stays in pages]
    actual = text_lost(grams_of(texts), np.array(kept, np.bool_))
    share, of_sentences, of_page = naive.text_lost.text_lost(texts, kept)
    assert (actual.share, actual.of_sentences, actual.one_in) == (share, of_sentences, 1)
    assert [None if np.isnan(value) else value for value in actual.of_page] == of_page
    assert actual.mostly_lost == sum(value is not None and value > 0.5 for value in of_page)


HASHES = st.one_of(st.integers(0, 9), st.integers(0, 2**64 - 1), st.integers(0, 63).map(lambda k: 2**k))


@given(
    pages=st.lists(st.tuples(st.sets(HASHES, max_size=12), st.booleans(), st.booleans()), max_size=8),
    most=st.integers(2, 40),
    in_cache=st.sampled_from([1, 4, 1000]),
)
@examples(200)
def test_any_hashes_are_counted_in_ranges_as_in_sets(pages, most, in_cache):
    """Batches of any number of pages; the hash 0, and any number of ranges."""
    rows, kept = [row for row, _, _ in pages], [stays for _, stays, _ in pages]
    edges = sorted({0, len(pages), *(k for k, page in enumerate(pages) if page[2])})
    batches = [
        WordGrams(
            row_starts(list(map(len, rows[a:b]))), np.array([h for row in rows[a:b] for h in sorted(row)], np.uint64)
        )
        for a, b in pairwise(edges)
    ]
    with patch.object(spotsigs.evaluation.text_lost, "RANGE_HASHES", in_cache):
        actual = text_lost(batches, np.array(kept, np.bool_), most_bytes=40 * most)
    one_in, share, of_sentences, of_page = naive.text_lost.of_hashes(rows, kept, most)
    assert (actual.one_in, actual.share, actual.of_sentences) == (one_in, share, of_sentences)
    assert [None if np.isnan(value) else value for value in actual.of_page] == of_page


def collection(n=60, words=400):
    """Return pages of which every third is a copy of the one before with another end, and which of them stay."""
    random = np.random.default_rng(1)
    pages = [" ".join(map(str, random.integers(0, 500, words))) for _ in range(n)]
    for k in range(2, n, 3):
        pages[k] = " ".join([*pages[k - 1].split()[:300], *pages[k].split()[300:]])
    return pages, np.arange(n) % 3 != 2


def test_a_sample_estimates_it_within_its_memory():
    pages, kept = collection()
    exact = text_lost(grams_of(pages), kept)
    sampled = text_lost(grams_of(pages), kept, most_bytes=40 * 8_000)
    assert (exact.one_in, sampled.one_in) == (1, 4)
    assert sampled.share == pytest.approx(exact.share, abs=0.03)
    assert np.nanmean(sampled.of_page) == pytest.approx(np.nanmean(exact.of_page), abs=0.05)
    assert np.nanmean(exact.of_page) == pytest.approx(104 / 396, abs=0.02)


@pytest.mark.parametrize("hashes", [1, 2, 3, 50, 1000])
def test_any_memory_ends(hashes):
    pages, kept = collection(9)
    assert 0 <= text_lost(grams_of(pages), kept, most_bytes=40 * hashes).share <= 1


def test_repeated_pages_need_no_more_memory():
    pages = ["one two three four five six"] * 5_000
    kept = np.ones(len(pages), np.bool_)
    actual = text_lost(grams_of(pages), kept, most_bytes=40 * 100)
    assert (actual.share, actual.one_in, actual.mostly_lost) == (0, 1, 0)


@pytest.mark.parametrize("n", [1, 3])
def test_other_pages_than_those_judged_have_no_measure(n):
    assert text_lost(grams_of(["a page", "another"]), np.ones(n, np.bool_)) is None


def test_a_run_with_a_copy_reports_it(tmp_path):
    printed = ran(tmp_path / "copied", "data=tiny", "tau=0.3", f"copy={tmp_path / 'copy'}")
    figures = json.loads((tmp_path / "copied/metrics.json").read_text())
    assert 0 < figures["text_lost"] < 1
    shares = f"{100 * figures['text_lost']:.1f} %, {100 * figures['sentences_lost']:.1f} % of the sentences"
    assert f"text lost: {shares}; {figures['removed_mostly_lost']} removed page" in printed
    of_page = pd.read_csv(tmp_path / "copied/removed.csv")["text_lost"]
    assert figures["removed_mostly_lost"] == (of_page > 0.5).sum()
    assert of_page.between(0, 1).all()
    on_disk = ran(tmp_path / "disk", "data=tiny", "tau=0.3", "memory=1GB", f"copy={tmp_path / 'other'}")
    assert re.findall("text lost.*", on_disk) == re.findall("text lost.*", printed)


def test_a_run_without_a_copy_does_not_read_again(tmp_path):
    assert "text lost" not in ran(tmp_path, "data=tiny", "tau=0.3")
    assert json.loads((tmp_path / "metrics.json").read_text())["text_lost"] is None
    assert pd.read_csv(tmp_path / "removed.csv")["text_lost"].isna().all()


@pytest.mark.parametrize(
    ("lost", "mostly", "removed", "message"),
    [
        (0.06, 0, 100, "6.0 % of the text is in no kept page"),
        (0.04, 2, 100, "most of the text of 2 of 100 removed pages is in no kept page"),
    ],
)
def test_lost_text_is_warned_about(lost, mostly, removed, message):
    method = configured("data=tiny").method
    actual = text_warning(method.at(0.25), lost, mostly, removed)
    assert spelled(actual, as_option) == f"warning: {message}; give a higher threshold, as in --tau 0.35"
    assert text_warning(method.at(0.25), lost, mostly, 99) == ""
    assert text_warning(method.at(0.95), lost, mostly, removed) == ""
    assert text_warning(method.at(0.25), 0.05, 1, removed) == ""


def shard_of(pages):
    return lambda: (Document(id=str(k), content=f"<p>{page}") for k, page in enumerate(pages))


@given(pages=st.lists(WORDS, max_size=8), grams=st.integers(1, 60), most=st.sampled_from([1, 1000, 10**9]))
@examples(100)
def test_extraction_keeps_the_grams_of_each_text_or_a_sample_by_hash(pages, grams, most):
    parts = list(extract_parts(shard_of(pages), VisibleText(), Shingles(), grams=grams, most=most))
    of_text = [batch.hashes.tolist() for batch in grams_of(pages)]
    actual = [part.grams.hashes[a:b].tolist() for part in parts for a, b in pairwise(part.grams.indptr.tolist())]
    bits = np.repeat([part.grams.bits for part in parts], [len(part) for part in parts])
    assert actual == [[h for h in row if h >> 64 - int(b) == 0] for row, b in zip(of_text, bits, strict=True)]
    assert all(len(part.grams.hashes) <= grams or part.grams.bits == GRAM_BITS for part in parts)
    if sum(map(len, of_text)) <= grams:
        assert not bits.any()
    whole = concatenate(parts).grams
    assert whole.hashes.tolist() == [h for row in of_text for h in row if h >> 64 - whole.bits == 0]
    assert len(whole.indptr) == len(pages) + 1


def test_batches_with_samples_of_different_size_are_counted_alike():
    pages, kept = collection()
    halves = [grams_of(pages[:30]), (batch.drawn(3) for batch in grams_of(pages[30:]))]
    actual = text_lost(chain(*halves), kept)
    same = text_lost((batch.drawn(3) for batch in grams_of(pages)), kept)
    assert (actual.share, actual.one_in) == (same.share, 8)
    np.testing.assert_array_equal(actual.of_page, same.of_page)


def test_a_store_of_a_run_without_a_copy_gives_the_same(tmp_path):
    words = ("data=tiny", "tau=0.3", "memory=1GB", "boilerplate=remove", f"store={tmp_path / 'store'}")
    ran(tmp_path / "first", *words)
    printed = ran(tmp_path / "again", *words, f"copy={tmp_path / 'copy'}")
    fresh = ran(tmp_path / "fresh", *words[:4], f"copy={tmp_path / 'other'}")
    assert re.findall("text lost.*", printed) == re.findall("text lost.*", fresh) != []


@given(
    pages=st.lists(st.tuples(WORDS | SENTENCES, st.booleans()), max_size=8),
    cuts=st.lists(st.integers(0, 8), max_size=3),
    most=st.integers(2, 60),
    bits=st.integers(0, 3),
    task=st.integers(1, 20),
)
@examples(60)
def test_tasks_count_the_same_sample_as_one_process(pages, cuts, most, bits, task):
    """Segments with samples of different size, tasks and ranges of any number."""
    kept = np.array([stays for _, stays in pages], np.bool_)
    edges = [0, *sorted(min(cut, len(pages)) for cut in cuts), len(pages)]
    with TemporaryDirectory() as folder, patch.object(text_lost_tasks, "LEAST_HASHES", 1):
        parts = []
        for k, (start, stop) in enumerate(pairwise(edges)):
            texts = [text for text, _ in pages[start:stop]]
            part = extract_shard(shard_of(texts), VisibleText(), Shingles(), grams=10**6)
            parts.append(replace(part, grams=part.grams.drawn(bits * (k % 2))))
        stored = StoredGrams(segments_of(parts, folder), Path(folder, "lost"), Serial(), 64 * task)
        actual = stored.text_lost(kept, most)
        assert not Path(folder, "lost").exists()
    drawn = actual.one_in.bit_length() - 1
    samples = [part.grams.drawn(drawn) for part in parts]
    expected = text_lost(samples, kept)
    assert (actual.share, actual.of_sentences, actual.one_in) == (expected.share, expected.of_sentences, 1 << drawn)
    np.testing.assert_array_equal(actual.of_page, expected.of_page)
    known = [(len(part.grams.hashes), part.grams.bits) for part in parts]
    assert drawn == bits_for(known, most) >= max(own for _, own in known)
    assert sum(size >> drawn - own for size, own in known) <= most


def test_a_store_of_other_pages_has_no_measure(tmp_path):
    part = extract_shard(shard_of(["a page"]), VisibleText(), Shingles(), grams=10)
    stored = StoredGrams(segments_of([part], tmp_path), tmp_path / "lost", Serial(), 10**6)
    assert stored.text_lost(np.ones(2, np.bool_), 10) is None
