"""One join serves several thresholds: the pairs, their order and their similarities are those of a join of its own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.imatch import IMatch
from baselines.lsh import Lsh
from baselines.lsh_native import LshNative
from baselines.simhash import SimHash
from spotsigs.in_memory import Joined
from spotsigs.matching.algorithm1 import SpotSigs
from spotsigs.matching.brute_force import BruteForce
from spotsigs.matching.containment import Containment
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.records import Corpus, Vectors

TAUS = (0.3, 0.44, 0.6, 1.0)
MATCHERS = [SpotSigs(), SpotSigsTight(), BruteForce(), Containment(), Lsh(), LshNative()]


@pytest.mark.parametrize("matcher", MATCHERS, ids=lambda matcher: matcher.label)
@given(rows=st.lists(st.dictionaries(st.integers(0, 8), st.integers(1, 3), max_size=6), min_size=2, max_size=12))
def test_cut_pairs_are_those_of_a_join_at_the_threshold(matcher, rows):
    corpus = Corpus(Vectors.from_counters(rows))
    joined = Joined(None, corpus)
    for tau in TAUS:
        once, alone = joined.distinct(matcher.at(tau)), matcher.at(tau)(corpus)
        for name in ("i", "j", "similarity"):
            assert np.array_equal(getattr(once, name), getattr(alone, name))


def test_it_joins_once_for_thresholds_that_ascend():
    ran = []

    class Counting(SpotSigsTight):
        def __call__(self, corpus):
            ran.append(self.tau)
            return super().__call__(corpus)

    joined = Joined(None, Corpus(Vectors.from_sets([{1, 2, 3}, {1, 2, 3}, {1, 2, 4}])))
    for tau in (0.4, 0.9, 0.4, 0.3):
        joined.distinct(Counting(tau=tau))
    joined.distinct(Counting(tau=0.9, threads=1))  # another method
    assert ran == [0.4, 0.3, 0.9]


def test_a_method_without_a_threshold_runs_once_and_an_unverified_one_each_time():
    ran = []

    class Each(SimHash):
        def __call__(self, corpus):
            ran.append("simhash")
            return super().__call__(corpus)

    class Lexicon(IMatch):
        def __call__(self, corpus):
            ran.append("imatch")
            return super().__call__(corpus)

    joined = Joined(None, Corpus(Vectors.from_sets([{1, 2, 3}, {1, 2, 3}, {1, 2, 4}])))
    for matcher in (Lexicon(), Lexicon(), Each(), Each()):
        joined.distinct(matcher)
    assert ran.count("imatch") == 1
    assert ran.count("simhash") == (1 if Each().threshold is None else 2)
