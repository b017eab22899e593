from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import sets as naive
from strategies import MULTISETS, by_rows, examples, vectors_of

from baselines import lsh_native
from baselines.lsh import Lsh, Scheme, occurrence_hashes
from baselines.lsh_native import LshNative, first_prime_above, linear_functions, min_hash, number_tokens, s_curve
from spotsigs.errors import InputError
from spotsigs.matching.verify import jaccard, similar_lengths, verified
from spotsigs.records import Corpus

quick = examples(60)


def run(matcher, documents):
    return matcher(Corpus(vectors_of(documents)))


def minima(documents, functions, first=None):
    vectors = vectors_of(documents)
    out = np.zeros((1, len(documents), len(functions.alpha)), np.uint32)
    min_hash(vectors, number_tokens(vectors) if first is None else first, functions, out, threads=1)
    return out[0]


class TestVerify:
    @quick
    @given(MULTISETS, st.sampled_from([0.2, 1 / 3, 0.5, 0.8, 1.0]))
    def test_all_pairs_give_the_exact_ones(self, documents, tau):
        both = [(i, j) for i in range(len(documents)) for j in range(len(documents)) if i != j]
        i, j = np.array(both, np.int64).reshape(-1, 2).T
        left = verified(vectors_of(documents), i, j, tau, threads=2)
        wanted = naive.jaccard_pairs(documents, tau)
        assert by_rows(left) == wanted
        assert left.candidates == len(both) // 2
        assert len(wanted) <= left.verifications <= left.candidates

    @quick
    @given(MULTISETS, st.integers(0, 2**32 - 1))
    def test_similarity_in_any_order(self, documents, seed):
        if documents:
            i, j = np.random.default_rng(seed).integers(0, len(documents), (2, 40))
            similarity = jaccard(vectors_of(documents), i, j, threads=2)
            assert similarity.tolist() == [naive.jaccard(documents[a], documents[b]) for a, b in zip(i, j, strict=True)]

    def test_a_borderline_pair_stays(self):
        documents = [Counter({1: 4}), Counter({1: 5})]
        left = verified(vectors_of(documents), np.array([0]), np.array([1]), 0.8)
        assert left.similarity.tolist() == [0.8]

    @quick
    @given(st.integers(1, 300), st.integers(1, 300), st.floats(0.01, 1))
    def test_lengths_prune_no_similar_pair(self, a, b, tau):
        best = min(a, b) / max(a, b)
        assert similar_lengths(np.array([a]), np.array([b]), best).all()
        assert similar_lengths(np.array([a]), np.array([b]), tau).all() == (best >= tau)


class TestMinHash:
    @quick
    @given(MULTISETS.filter(any), st.integers(0, 100))
    def test_equals_big_integers(self, documents, seed):
        first = number_tokens(vectors_of(documents))
        functions = linear_functions(7, int(first[-1]), seed)
        actual = minima(documents, functions)
        for r, document in enumerate(documents):
            if document:
                assert actual[r].tolist() == naive.min_hashes(document, first.tolist(), functions)

    @pytest.mark.parametrize("dimensions", [5, 1000, 89_000, 2**26, 2**31 - 2])
    def test_equals_big_integers_in_any_dimension(self, dimensions):
        rng = np.random.default_rng(dimensions)
        first = np.concatenate([np.unique(rng.integers(0, dimensions - 3, 30)), [dimensions]])
        documents = [Counter({s: 3}) for s in range(len(first) - 1)]
        documents.append(Counter(dict.fromkeys(range(len(first) - 1), 2)))
        functions = linear_functions(50, dimensions, 1)
        actual = minima(documents, functions, first)
        for r, document in enumerate(documents):
            assert actual[r].tolist() == naive.min_hashes(document, first.tolist(), functions)

    def test_functions_are_the_papers(self):
        functions = linear_functions(5000, 96, 3)
        assert functions.prime == 97
        assert functions.alpha.min() == 1
        assert functions.alpha.max() == 95
        assert functions.beta.min() == 0
        assert functions.beta.max() == 95
        assert linear_functions(3, 0, 1).prime == 2
        with pytest.raises(InputError, match=r"fewer than 2\*\*31"):
            linear_functions(1, 2**31, 1)

    def test_primes(self):
        primes = [p for p in range(2, 600) if all(p % d for d in range(2, p))]
        for n in range(500):
            assert first_prime_above(n) == min(p for p in primes if p > n)
        assert first_prime_above(2**31 - 2) == 2**31 - 1


class TestTables:
    @quick
    @given(MULTISETS, st.integers(0, 100), st.integers(1, 3), st.integers(1, 5))
    def test_equal_dictionaries_of_tuples(self, documents, seed, k, tables):
        pairs = run(LshNative(tau=0.3, k=k, l=tables, seed=seed, threads=2), documents)
        vectors = vectors_of(documents)
        first = number_tokens(vectors).tolist()
        functions = linear_functions(k * tables, first[-1], seed)
        signatures = {r: naive.min_hashes(d, first, functions) for r, d in enumerate(documents) if d}
        colliding, buckets = naive.colliding_pairs(signatures, k, tables)
        exact = naive.jaccard_pairs(documents, 0.3)
        assert by_rows(pairs) == {pair: s for pair, s in exact.items() if pair in colliding}
        assert pairs.counters["candidates"] == len(colliding)
        assert pairs.counters["buckets"] == buckets

    def test_in_groups(self, monkeypatch):
        documents = naive.edited_copies(3)
        whole = run(LshNative(tau=0.3), documents)
        monkeypatch.setattr(lsh_native, "MINIMA_BYTES", 5 * len(documents) * 6 * 4)
        parts = run(LshNative(tau=0.3), documents)
        assert by_rows(whole) == by_rows(parts)
        assert whole.counters == parts.counters

    def test_chains_lead_through_each_bucket(self):
        minima = np.zeros((300, 6), np.uint32)
        minima[:, 5] = np.arange(300) % 7
        lengths = np.ones(300, np.int64)
        lengths[3] = 0  # an empty document has no min-hash
        chains = np.full((300, 2), -1, np.int32)
        assert lsh_native.link_buckets(minima, lengths, chains[:, 0]) == 7
        wanted = [*range(7, 300), *[-1] * 7]
        wanted[3] = -1
        assert chains[:, 0].tolist() == wanted
        assert (chains[:, 1] == -1).all()

    def test_equal_hashes_of_different_tuples_stay_apart(self):
        """Two first elements whose hashes agree in the upper half, and second elements that even out the lower."""
        first = np.random.default_rng(0).integers(0, 2**32, 400_000, dtype=np.uint64)
        hashed = (np.uint64(0x9E3779B97F4A7C15) ^ first) * np.uint64(0xBF58476D1CE4E5B9)
        hashed ^= hashed >> np.uint64(29)
        upper = hashed >> np.uint64(32)
        order = np.argsort(upper)
        first_of_two = int(np.flatnonzero(upper[order][1:] == upper[order][:-1])[0])
        a, b = order[first_of_two], order[first_of_two + 1]
        assert first[a] != first[b]
        minima = np.array([[first[a], 0], [first[b], hashed[a] ^ hashed[b]], [first[a], 0]], np.uint32)
        chains = np.full((3, 1), -1, np.int32)
        assert lsh_native.link_buckets(minima, np.ones(3, np.int64), chains[:, 0]) == 2
        assert chains[:, 0].tolist() == [2, -1, -1]


def pairs_of_similarity(tenths, pairs, seed, multisets=False):
    """Documents of which each two in turn have a Jaccard of ``tenths / 10``, no two pairs sharing anything."""
    rng = np.random.default_rng(seed)
    # 10 units of signatures: `tenths` in common, the others in one of the two.
    names = rng.permutation(pairs * 40).reshape(pairs, 40).tolist()
    documents = []
    for row in names:
        units = [Counter(row[4 * u : 4 * u + 4]) for u in range(10)]
        if multisets:  # the same four signatures in every unit: only the counts distinguish documents
            units = [Counter({row[s]: 1 for s in range(4)})] * 10
        common, rest = units[:tenths], units[tenths:]
        left = rest if multisets else rest[::2]
        right = [] if multisets else rest[1::2]
        documents += [sum(common + left, Counter()), sum(common + right, Counter())]
    return documents


class TestRecall:
    PAIRS = 600

    def recall(self, matcher, documents):
        pairs = by_rows(run(matcher, documents))
        return sum((2 * p, 2 * p + 1) in pairs for p in range(self.PAIRS)) / self.PAIRS

    @pytest.mark.parametrize("multisets", [False, True], ids=["sets", "multisets"])
    @pytest.mark.parametrize("tenths", [3, 4, 5, 6, 7, 8])
    def test_both_follow_the_s_curve(self, tenths, multisets):
        documents = pairs_of_similarity(tenths, self.PAIRS, tenths, multisets)
        assert {naive.jaccard(*documents[p : p + 2]) for p in range(0, 2 * self.PAIRS, 2)} == {tenths / 10}
        expected = float(s_curve(6, 32, tenths / 10))
        native, datasketch = (self.recall(method(tau=tenths / 10), documents) for method in (LshNative, Lsh))
        # Four standard errors, and half a pair.
        error = (expected * (1 - expected) / self.PAIRS) ** 0.5
        assert abs(native - expected) <= 4 * error + 0.5 / self.PAIRS
        assert abs(datasketch - expected) <= 4 * error + 0.5 / self.PAIRS
        assert abs(native - datasketch) <= 4 * 2**0.5 * error + 0.5 / self.PAIRS

    @pytest.mark.parametrize("scheme", list(Scheme))
    def test_every_scheme(self, scheme):
        documents = pairs_of_similarity(5, self.PAIRS, 1)
        error = (0.4 * 0.6 / self.PAIRS) ** 0.5
        assert abs(self.recall(Lsh(tau=0.5, scheme=scheme), documents) - 0.4) <= 4 * error


def test_the_s_curve_is_the_published_one():
    assert np.round(s_curve(6, 32, [0.44, 0.5, 0.6, 0.7]), 2).tolist() == [0.21, 0.40, 0.78, 0.98]
    assert s_curve(6, 32, [0.0, 1.0]).tolist() == [0.0, 1.0]
    assert s_curve(1, 1, 0.3) == pytest.approx(0.3)
    similarity = np.linspace(0, 1, 11)
    np.testing.assert_allclose(s_curve(6, 32, similarity), 1 - (1 - similarity**6) ** 32, atol=1e-12)
    with pytest.raises(InputError, match="similarities must be in"):
        s_curve(6, 32, 1.5)


def test_occurrences_are_hashed_apart():
    documents = naive.edited_copies(4)
    vectors = vectors_of(documents)
    hashes = occurrence_hashes(vectors)
    occurrences = [(s, z) for d in documents for s in sorted(d) for z in range(d[s])]
    number = {pair: position for position, pair in enumerate(dict.fromkeys(occurrences))}
    assert len(set(hashes.tolist())) == len(number)
    hash_of = dict(zip(occurrences, hashes.tolist(), strict=True))
    assert hash_of == {pair: hashes[occurrences.index(pair)] for pair in number}


def test_bands_that_datasketch_would_refuse():
    with pytest.raises(InputError, match="datasketch takes no fewer bands"):
        Lsh(l=1)
    assert by_rows(run(LshNative(l=1, k=1), [Counter({1: 1}), Counter({1: 1})])) == {(0, 1): 1.0}
