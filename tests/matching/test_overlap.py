"""Signatures that decide a pair: exact sums of minima and maxima, for every matcher that states them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import ran
from strategies import MULTISETS, examples

from baselines.cosine import Cosine
from baselines.lsh_native import LshNative
from spotsigs import near_duplicates
from spotsigs.matching.algorithm1 import SpotSigs
from spotsigs.matching.brute_force import BruteForce
from spotsigs.matching.containment import Containment
from spotsigs.matching.prefix_join import SpotSigsTight, self_join
from spotsigs.records import Corpus, Measure, Overlap, Vectors

MATCHERS = [BruteForce, SpotSigs, SpotSigsTight, Containment, LshNative]


@pytest.mark.parametrize("matcher", MATCHERS)
@examples(60)
@given(MULTISETS, st.sampled_from([0.05, 1 / 3, 0.9]))
def test_sums_of_minima_and_maxima(matcher, documents, tau):
    pairs = matcher(tau=tau)(Corpus(Vectors.from_counters(documents)))
    expected = [
        (sum((documents[i] & documents[j]).values()), sum((documents[i] | documents[j]).values()))
        for i, j in zip(pairs.i.tolist(), pairs.j.tolist(), strict=True)
    ]
    assert list(zip(pairs.shared.tolist(), pairs.union.tolist(), strict=True)) == expected


@examples(300)
@given(st.integers(1, 2**47), st.integers(1, 2**47), st.data())
def test_exact_for_documents_of_any_length(a, b, data):
    shared = data.draw(st.integers(1, min(a, b)))
    i, j = np.array([0]), np.array([1])
    for measure, below in ((Measure.jaccard, a + b - shared), (Measure.containment, min(a, b))):
        actual = Overlap(np.array([a, b]), measure)(i, j, np.array([shared / below]))
        assert [int(number[0]) for number in actual] == [shared, a + b - shared]


def test_sets_are_counted_once():
    pairs = self_join(Vectors.from_counters([{1: 3, 2: 1}, {1: 2, 3: 4}]), 0.1, sets=True)
    assert pairs.to_pandas()[["shared", "union"]].to_numpy().tolist() == [[1, 3]]


def test_a_similarity_that_is_no_quotient_has_no_overlap():
    pairs = Cosine(tau=0.1)(Corpus(Vectors.from_counters([{1: 3, 2: 1}, {1: 2, 3: 4}, {5: 1}])))
    assert pairs.shared is None
    assert pairs.union is None
    assert list(pairs.to_pandas().columns) == ["doc_a", "doc_b", "similarity"]


BRIDGE = "The council has approved the plan for a new bridge that will be built by the end of the year."


def test_exact_duplicates_share_the_signatures_of_their_representative():
    pages = [BRIDGE, f"{BRIDGE} The mayor is a friend of the builder.", BRIDGE, "12 13", "12 13"]
    pairs = near_duplicates(pages, 0.3)
    rows = {tuple(row[:2]): row[2:] for row in pairs.to_pandas().to_numpy().tolist()}
    assert rows[0, 2][0] == 1
    assert rows[0, 2][1] == rows[0, 2][2] > 0
    assert rows[0, 1] == rows[1, 2]
    assert rows[3, 4][0] == 1
    assert rows[3, 4][1] == rows[3, 4][2]


def test_the_same_columns_in_memory_and_on_disk(tmp_path):
    (tmp_path / "pages").mkdir()
    for k, page in enumerate([BRIDGE, f"{BRIDGE} The mayor is a friend of the builder.", BRIDGE, "12 13", "12 13 "]):
        (tmp_path / "pages" / f"{k}.txt").write_text(page)
    words = ["data=folder", f"data.path={tmp_path / 'pages'}", "tau=0.3"]
    ran(tmp_path / "memory", *words)
    ran(tmp_path / "disk", *words, "memory=2GB", "engine=serial")
    ran(tmp_path / "cosine", *words, "matcher=cosine")
    memory, disk, none = (pd.read_parquet(tmp_path / name / "pairs.parquet") for name in ("memory", "disk", "cosine"))
    pd.testing.assert_frame_equal(memory, disk)
    assert (memory["shared"] > 0).sum() == 3
    assert none["shared"].isna().all()
