import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import hashes as naive
from strategies import by_rows, examples, vectors_of

from baselines.simhash import SimHash, Weights, choose_blocks, near_fingerprints
from spotsigs.records import Corpus

quick = examples(100)
rows_of_terms = st.lists(st.dictionaries(st.integers(0, 30), st.integers(1, 4), max_size=8), max_size=16)


@st.composite
def close_fingerprints(draw):
    """Draw fingerprints of some width around a few centres, so that every radius finds pairs."""
    bits = draw(st.integers(8, 64))
    centres = draw(st.lists(st.integers(0, 2**bits - 1), min_size=1, max_size=3))
    flips = st.lists(st.integers(0, bits - 1), max_size=6)
    members = draw(st.lists(st.tuples(st.sampled_from(centres), flips), max_size=25))
    return bits, [centre ^ sum(1 << b for b in set(flip)) for centre, flip in members]


def distances(fingerprints, radius, bits, blocks, threads=1):
    i, j, distance = near_fingerprints(np.array(fingerprints, dtype=np.uint64), radius, bits, blocks, threads)
    pairs = [(min(a, b), max(a, b)) for a, b in zip(i.tolist(), j.tolist(), strict=True)]
    assert len(pairs) == len(set(pairs))
    return dict(zip(pairs, distance.tolist(), strict=True))


@quick
@given(close_fingerprints(), st.integers(0, 7), st.integers(0, 5), st.integers(1, 2))
def test_tables_equal_a_linear_scan(case, radius, extra, threads):
    bits, fingerprints = case
    expected = naive.hamming_pairs(fingerprints, radius)
    assert distances(fingerprints, radius, bits, min(radius + 1 + extra, bits), threads) == expected
    assert distances(fingerprints, radius, bits, 0, threads) == expected


@pytest.mark.compiled
def test_tables_equal_a_scan_on_many_fingerprints():
    rng = np.random.default_rng(3)
    fingerprints = rng.integers(0, 2**64, 4000, dtype=np.uint64)[rng.integers(0, 4000, 6000)]
    for _ in range(5):
        fingerprints ^= np.uint64(1) << rng.integers(0, 64, 6000).astype(np.uint64)
    scan = distances(fingerprints, 6, 64, 0, threads=2)
    assert len(scan) > 400
    assert distances(fingerprints, 6, 64, 7, threads=2) == scan
    assert distances(fingerprints, 6, 64, 9) == scan


@quick
@given(rows_of_terms, st.sampled_from(Weights), st.sampled_from([8, 33, 64]))
def test_fingerprints_equal_naive(rows, weights, bits):
    n = len(rows)
    df = {t: sum(t in row for row in rows) for t in range(31)}
    weight = dict.fromkeys(df, 1)
    if weights is Weights.tfidf and n > 1:
        weight = {t: round(math.log(n / max(k, 1)) / math.log(n) * 2**20) for t, k in df.items()}
    vectors = vectors_of(rows, range(31))
    fingerprints = SimHash(weights=weights, bits=bits, threads=2, radius=3).fingerprints(vectors)
    assert fingerprints.tolist() == [naive.simhash(row, weight, bits) for row in rows]


@quick
@given(rows_of_terms, st.integers(0, 7), st.sampled_from([None, 0, 8]))
def test_pairs_equal_naive(rows, radius, blocks):
    vectors = vectors_of(rows)
    matcher = SimHash(radius=radius, bits=16, blocks=blocks)
    near = naive.hamming_pairs(matcher.fingerprints(vectors).tolist(), radius)
    pairs = matcher(Corpus(vectors))
    expected = {(i, j): 1 - d / 16 for (i, j), d in near.items() if rows[i] and rows[j]}
    assert by_rows(pairs) == expected
    assert pairs.n == len(rows)


def test_similar_documents_have_near_fingerprints():
    rng = np.random.default_rng(0)
    base = [dict.fromkeys(rng.choice(20_000, 200, replace=False).tolist(), 1) for _ in range(50)]
    copies = []
    for row in base:
        words = list(row)
        copies.append(dict.fromkeys([*words[:190], *rng.integers(20_000, 30_000, 10).tolist()], 1))
    fingerprints = SimHash().fingerprints(vectors_of(base + copies))
    of_copies = np.bitwise_count(fingerprints[:50] ^ fingerprints[50:])
    strangers = np.bitwise_count(fingerprints[:49] ^ fingerprints[1:50])
    # Charikar: a bit differs with probability angle / pi; cosine .95 gives 64 * .101 bits, cosine ~0 gives 32.
    assert abs(of_copies.mean() - 64 * math.acos(0.95) / math.pi) < 1.2
    assert abs(strangers.mean() - 32) < 2


def test_blocks_are_chosen_by_cost():
    assert choose_blocks(2_160, 10) == 0
    assert choose_blocks(1_000_000, 3) == 4
    assert choose_blocks(1_000_000, 10) > 11
    assert choose_blocks(0, 3) == 0
    assert choose_blocks(1_000_000, 40) == 0
