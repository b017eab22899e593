from collections import Counter
from fractions import Fraction
from itertools import combinations

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import TAUS, borderline_collections, by_rows, collections, triples, vectors_of

from baselines.cosine import Cosine
from baselines.imatch import IMatch
from baselines.lcs.lcs_method import Lcs
from baselines.lsh import Lsh
from baselines.lsh_native import LshNative
from baselines.simhash import SimHash
from spotsigs.clustering.in_memory import SharedJoin
from spotsigs.matching.algorithm1 import COUNTERS, SpotSigs
from spotsigs.matching.brute_force import BruteForce
from spotsigs.matching.containment import Containment
from spotsigs.matching.partitions import Convention
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.records import Corpus, Vectors

VARIANTS = {
    "brute_force": BruteForce,
    "paper": SpotSigs,
    "prototype": lambda **keys: SpotSigs(convention=Convention.prototype, **keys),
    "nopart": lambda **keys: SpotSigs(partitioning=False, **keys),
    "noprune": lambda **keys: SpotSigs(partitioning=False, pruning=False, **keys),
    "tight": SpotSigsTight,
    "short rho": lambda **keys: SpotSigs(rho=3, **keys),
}


def similarities(matcher, documents):
    return by_rows(matcher(Corpus(vectors_of(documents))))


@pytest.mark.parametrize("variant", VARIANTS)
@given(documents=collections(), tau=st.sampled_from(TAUS), threads=st.sampled_from([1, 3]))
def test_every_exact_matcher_returns_all_similar_pairs(variant, documents, tau, threads):
    matcher = VARIANTS[variant](tau=tau, threads=threads)
    assert similarities(matcher, documents) == naive.similar_pairs(documents, tau)


@pytest.mark.parametrize("variant", VARIANTS)
@given(drawn=borderline_collections())
def test_borderline_pairs_are_decided_as_in_rational_arithmetic(variant, drawn):
    documents, tau = drawn
    exactly = naive.similar_pairs_exactly(documents, Fraction(tau).limit_denominator(100))
    assert set(similarities(VARIANTS[variant](tau=tau, threads=1), documents)) == exactly


def test_the_worked_example_of_section_432():
    example = vectors_of([Counter({1: 5, 2: 4, 3: 4}), Counter({1: 8, 2: 4}), Counter({1: 4, 2: 5, 3: 5})])
    assert example.lengths.tolist() == [13, 12, 14]
    matcher = SpotSigs(tau=0.8, partitioning=False, threads=1)
    pairs = matcher(Corpus(example))
    assert (pairs.i.tolist(), pairs.j.tolist(), pairs.similarity.tolist()) == ([0], [2], [12 / 15])
    index = matcher.index(example)
    rank = index.rows.tolist().index(0)
    only_d1 = dict(zip(COUNTERS, matcher.probe(index, rank, rank + 1)[3].tolist(), strict=True))
    assert only_d1["verifications"] == 1  # a single Jaccard computation
    assert only_d1["lists_opened"] == 1  # and the processing stops after the first list
    assert only_d1["probe_breaks"] == 1


def test_counters_grow_as_partitioning_and_pruning_go():
    rng = np.random.default_rng(7)
    rows = [rng.integers(0, 200, rng.integers(5, 60)) for _ in range(400)]
    collection = Vectors.from_csr(np.cumsum([0, *map(len, rows)]), np.concatenate(rows))
    verifications = [
        VARIANTS[name](tau=0.8, threads=2)(Corpus(collection)).counters["verifications"]
        for name in ("paper", "nopart", "noprune")
    ]
    assert verifications[0] <= verifications[1] < verifications[2]


COPIES = 70  # 2,415 pairs
PAGE = Counter({7 * s: 1 + s % 3 for s in range(12)})
PAIR_COPIES = [Cosine(tau=0.9, threads=1), IMatch(idf_min=0.0, idf_max=0.5), SimHash(threads=1, blocks=0), Lcs()]
"""Methods that `test_contract.py` does not run on identical documents alone."""


@pytest.mark.parametrize("matcher", PAIR_COPIES, ids=lambda matcher: type(matcher).__name__)
def test_every_pair_of_many_copies_is_reported(matcher):
    others = [Counter({1000 + 9 * k + s: 5 for s in range(9)}) for k in range(COPIES)]
    texts = ["Twelve words of one page that was copied again and again. It does not end."] * COPIES
    texts += [f"Word{k} thing{k} stands{k} alone{k} here{k} and{k} there{k}." for k in range(COPIES)]
    pairs = matcher(Corpus(vectors_of([PAGE] * COPIES + others), lambda: iter(texts)))
    assert set(by_rows(pairs)) == set(combinations(range(COPIES), 2))


# one join for several thresholds

JOINED = [SpotSigs(), SpotSigsTight(), BruteForce(), Containment(), Lsh(), LshNative()]
THREE = Corpus(Vectors.from_sets([{1, 2, 3}, {1, 2, 3}, {1, 2, 4}]))


@pytest.mark.parametrize("matcher", JOINED, ids=lambda matcher: matcher.label)
@given(rows=st.lists(st.dictionaries(st.integers(0, 8), st.integers(1, 3), max_size=6), min_size=2, max_size=12))
def test_cut_pairs_are_those_of_a_join_at_the_threshold(matcher, rows):
    corpus = Corpus(Vectors.from_counters(rows))
    joined = SharedJoin(None, corpus)
    for tau in (0.3, 0.44, 0.6, 1.0):
        assert triples(joined.match_distinct(matcher.at(tau))) == triples(matcher.at(tau)(corpus))


def counting(kind):
    """Return a matcher of a kind, and the list of the thresholds of its joins."""
    joins = []

    class Counting(kind):
        def __call__(self, corpus):
            joins.append(self.threshold)
            return super().__call__(corpus)

    return Counting, joins


def test_it_joins_once_for_thresholds_that_ascend():
    (tight, joins), joined = counting(SpotSigsTight), SharedJoin(None, THREE)
    for tau in (0.4, 0.9, 0.4, 0.3):
        joined.match_distinct(tight(tau=tau))
    joined.match_distinct(tight(tau=0.9, threads=1))  # another method
    assert joins == [0.4, 0.3, 0.9]


def test_a_method_without_a_threshold_runs_once_and_an_unverified_one_each_time():
    (lexicon, once), (simhash, each), joined = counting(IMatch), counting(SimHash), SharedJoin(None, THREE)
    for matcher in (lexicon(), lexicon(), simhash(), simhash()):
        joined.match_distinct(matcher)
    assert (len(once), len(each)) == (1, 1 if SimHash().threshold is None else 2)
