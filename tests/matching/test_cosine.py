from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, pairwise
from math import log, nextafter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import sets as naive
from strategies import examples

from baselines.cosine import (
    Cosine,
    Weighted,
    build_index,
    effective_lengths,
    inverse_document_frequencies,
    length_partitions,
    weigh,
)
from spotsigs.errors import InputError
from spotsigs.records import Corpus

TAUS = (0.1, 1 / 3, 0.44, 0.5, 0.8, 0.9, 0.99, 1.0)
documents_of = st.lists(st.dictionaries(st.integers(0, 12), st.integers(1, 5), max_size=8).map(Counter), max_size=14)
quick = examples(80)


def cosine(documents, tau, threads=1):
    return Cosine(tau=tau, threads=threads)(Corpus(naive.vectors_of(documents)))


@quick
@given(documents_of, st.sampled_from(TAUS))
def test_equals_its_definition_bit_by_bit(documents, tau):
    assert naive.found(cosine(documents, tau)) == naive.cosine_pairs(documents, tau)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("tau", TAUS)
def test_equals_its_definition_on_copies(seed, tau):
    documents = naive.copies(seed)
    wanted = naive.cosine_pairs(documents, tau)
    assert wanted
    assert naive.found(cosine(documents, tau, threads=2)) == wanted


@pytest.mark.parametrize(("n", "vocabulary", "longest"), [(400, 300, 12), (400, 3000, 60), (150, 800, 400)])
@pytest.mark.parametrize("tau", [0.2, 0.44, 0.7, 0.95])
def test_equals_a_dense_product(n, vocabulary, longest, tau):
    documents = naive.copies(n + longest, n, vocabulary, longest)
    dense = naive.dense_cosine(documents)
    found = naive.found(cosine(documents, tau, threads=2))
    i, j = np.triu_indices(n, 1)
    clear = np.abs(dense[i, j] - tau) > 1e-9
    wanted = {(a, b) for a, b in zip(i[clear].tolist(), j[clear].tolist(), strict=True) if dense[a, b] >= tau}
    unclear = set(zip(i[~clear].tolist(), j[~clear].tolist(), strict=True))
    assert len(wanted) > 10
    assert found.keys() - unclear == wanted
    np.testing.assert_allclose([found[pair] for pair in found], [dense[pair] for pair in found], rtol=1e-12)


def test_a_threshold_that_equals_a_similarity_keeps_the_pair():
    documents = naive.copies(7)
    for pair, similarity in naive.cosine_pairs(documents, 0.3).items():
        if similarity < 1:
            assert pair in naive.found(cosine(documents, similarity))
            assert pair not in naive.found(cosine(documents, nextafter(similarity, 2)))


def test_proportional_documents_have_similarity_one():
    documents = [
        Counter({1: 1, 2: 2, 3: 3}),
        Counter({1: 7, 2: 14, 3: 21}),
        Counter({1: 1, 2: 2, 3: 4}),
        Counter({5: 1}),
    ]
    assert naive.found(cosine(documents, 1.0)) == {(0, 1): 1.0}


@pytest.mark.parametrize(
    "documents",
    [[], [Counter({1: 2})], [Counter(), Counter()], [Counter({1: 1}), Counter()], [Counter({1: 1, 2: 3})] * 5],
    ids=["none", "one", "empty", "half", "identical: every signature has idf 0"],
)
def test_nothing_to_pair(documents):
    pairs = cosine(documents, 0.1)
    assert len(pairs) == 0
    assert pairs.n == len(documents)


def test_identical_documents_among_others():
    documents = [Counter({1: 3, 2: 1, 9: 2})] * 6 + [Counter({s: 1, 9: 1}) for s in range(20, 40)]
    found = naive.found(cosine(documents, 1.0))
    assert found == {(a, b): 1.0 for a in range(6) for b in range(a + 1, 6)}


def test_order_and_threads_do_not_matter():
    documents = naive.copies(11, n=200)
    order = np.random.default_rng(5).permutation(len(documents))
    wanted = naive.found(cosine(documents, 0.4))
    assert naive.found(cosine(documents, 0.4, threads=3)) == wanted
    assert naive.found(cosine([documents[x] for x in order], 0.4), order) == wanted


def test_idf_is_correctly_rounded():
    frequencies = np.array([0, 1, 2, 3, 500, 999, 1000])
    values = inverse_document_frequencies(frequencies, 1000)
    assert values[0] == 0.0
    assert values[-1] == 0.0
    assert values[1:].tolist() == [naive.log_ratio(1000, df) for df in frequencies[1:].tolist()]
    np.testing.assert_allclose(values[1:-1], [log(1000 / df) for df in frequencies[1:-1].tolist()], rtol=1e-12)


class TestBound:
    """No similar pair is pruned by the effective length; what docs/cosine_bound.md says about it holds."""

    def check(self, documents, tau):
        weighted = weigh(naive.vectors_of(documents))
        index = build_index(weighted, tau)
        rank = {row: r for r, row in enumerate(index.rows.tolist())}
        partition = np.searchsorted(index.partitions, index.lengths, side="right") - 1
        similar = naive.cosine_pairs(documents, tau)
        for i, j in similar:
            a, b = rank[i], rank[j]  # both have a rank: their shared signatures weigh enough
            assert index.lengths[a] <= index.reaches[b]
            assert index.lengths[b] <= index.reaches[a]
            assert abs(partition[a] - partition[b]) <= 1  # condition (A) of the paper
            assert index.first[max(a, b)] <= min(a, b)
        return index, similar

    @quick
    @given(documents_of, st.sampled_from(TAUS))
    def test_no_similar_pair_is_pruned(self, documents, tau):
        self.check(documents, tau)

    @pytest.mark.parametrize("tau", TAUS)
    def test_no_similar_copy_is_pruned(self, tau):
        _, similar = self.check(naive.copies(2, longest=90), tau)
        assert similar

    @pytest.mark.parametrize("tau", [0.3, 0.5, 0.8, 0.9])
    def test_equal_weights_give_the_lengths_of_sets(self, tau):
        """Then the length is |d|, the reach |d| / tau**2, and neither can be smaller: a subset attains it."""
        sizes = np.arange(1, 60)
        ids = np.concatenate([np.arange(size) for size in sizes]).astype(np.int32)
        weighted = Weighted(
            np.cumsum([0, *sizes]), ids, np.full(len(ids), 3.0), 9.0 * sizes, np.bincount(ids, minlength=60)
        )
        lengths, reaches = effective_lengths(weighted, np.ones(60, dtype=bool), tau * (1 - 1e-12))
        np.testing.assert_allclose(lengths, sizes, rtol=1e-12)
        np.testing.assert_allclose(reaches, sizes / tau**2, rtol=1e-11)

    def test_partitions_of_sets_are_the_papers_with_tau_squared(self):
        tau = Fraction(9, 10)
        lengths = np.arange(1, 1001, dtype=float)
        boundaries = [1]
        for length in range(2, 1001):
            if Fraction(boundaries[-1], length) < tau * tau:
                boundaries.append(length)
        reaches = np.array([float(length / (tau * tau)) for length in range(1, 1001)]) * (1 + 1e-12)
        assert length_partitions(lengths, reaches).tolist() == boundaries

    @quick
    @given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 25)), min_size=1, max_size=20))
    def test_partitions_of_any_reaches(self, intervals):
        """Whoever reaches each other lies in neighbouring partitions, and no partition could begin earlier."""
        lengths = np.array(sorted(float(length) for length, _ in intervals))
        reaches = np.array([length + further for length, (_, further) in zip(lengths, intervals, strict=True)])
        boundaries = length_partitions(lengths, reaches)
        own = np.searchsorted(boundaries, lengths, side="right") - 1
        for a, b in combinations(range(len(lengths)), 2):
            if lengths[b] <= reaches[a]:
                assert own[b] - own[a] <= 1
        assert boundaries[0] == lengths[0]
        for low, high in pairwise(boundaries):
            assert high == lengths[lengths > reaches[lengths <= low].max()].min()

    def test_the_reach_holds_against_the_worst_partner(self):
        """Climb towards the most similar unit vector under a cap on its weights: it never exceeds the bound."""
        rng = np.random.default_rng(3)
        for _ in range(100):
            x = np.sort(rng.exponential(size=rng.integers(2, 12)))[::-1]
            x /= np.linalg.norm(x)
            tau = rng.uniform(0.2, 1)
            weighted = Weighted(
                np.array([0, len(x)]), np.arange(len(x), dtype=np.int32), x, np.array([x @ x]), np.full(len(x), 2)
            )
            _, reaches = effective_lengths(weighted, np.ones(len(x), dtype=bool), tau)
            cap = reaches[0] ** -0.5 * (1 - 1e-9)  # weights just below what the reach demands
            y = np.minimum(x, cap)
            for _ in range(200):
                y = np.minimum(y + 0.1 * x, cap)
                y /= max(1.0, np.linalg.norm(y))
            assert x @ y < tau

    def test_a_document_of_signatures_of_its_own_has_no_partner(self):
        documents = [Counter([*range(10), 90]), Counter({90: 1}), Counter({91: 1})]
        index = build_index(weigh(naive.vectors_of(documents)), 0.5)
        assert index.rows.tolist() == [1]


def test_pruning_prunes():
    documents = naive.copies(1, n=600, vocabulary=3000)
    counters = [cosine(documents, tau).counters for tau in (0.3, 0.6, 0.9)]
    for name in ("indexed", "postings", "candidates", "verifications"):
        values = [counter[name] for counter in counters]
        assert values == sorted(values, reverse=True)
    assert counters[-1]["verifications"] < 600 * 599 / 2 / 100
    assert counters[-1]["indexed"] < sum(map(len, documents)) / 3
    assert counters[-1]["partitions"] >= 3


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"tau": 0.0}, "tau must lie in"),
        ({"tau": 1.1}, "tau must lie in"),
        ({"threads": 0}, "threads must be at least"),
    ],
)
def test_bad_parameters(parameters, sentence):
    with pytest.raises(InputError, match=sentence):
        Cosine(**parameters)
