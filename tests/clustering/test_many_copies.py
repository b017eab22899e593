"""Copies of one page make more pairs than any matcher reserves room for at first."""

from collections import Counter
from itertools import combinations

import pytest
from strategies import by_rows, vectors_of

from baselines.cosine import Cosine
from baselines.imatch import IMatch
from baselines.lcs.lcs_method import Lcs
from baselines.simhash import SimHash
from spotsigs.records import Corpus

COPIES = 70  # 2,415 pairs
PAGE = Counter({7 * s: 1 + s % 3 for s in range(12)})
MATCHERS = [Cosine(tau=0.9, threads=1), IMatch(idf_min=0.0, idf_max=0.5), SimHash(threads=1, blocks=0), Lcs()]
"""Methods that `test_contract.py` does not run on identical documents alone."""


@pytest.mark.parametrize("matcher", MATCHERS, ids=lambda matcher: type(matcher).__name__)
def test_every_pair_is_found(matcher):
    others = [Counter({1000 + 9 * k + s: 5 for s in range(9)}) for k in range(COPIES)]
    texts = ["Twelve words of one page that was copied again and again. It does not end."] * COPIES
    texts += [f"Word{k} thing{k} stands{k} alone{k} here{k} and{k} there{k}." for k in range(COPIES)]
    pairs = matcher(Corpus(vectors_of([PAGE] * COPIES + others), lambda: iter(texts)))
    assert set(by_rows(pairs)) == set(combinations(range(COPIES), 2))
