import hashlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import hashes as naive
from strategies import by_rows, examples, vectors_of

from baselines.hashing import group_rows, pairs_across, pairs_within
from baselines.imatch import IMatch
from spotsigs.errors import InputError
from spotsigs.records import Corpus

rows_of_terms = st.lists(st.dictionaries(st.integers(0, 12), st.integers(1, 3), max_size=6), max_size=14)
quick = examples(100)


def agreement_probability(changed, lexica, share):
    """Return the probability that two documents agree under at least one lexicon (Kolcz et al. 2004).

    ``changed`` terms are in one of the documents only. A randomised lexicon, a fraction ``share`` of all terms, hides
    the difference if it contains none of them. Lexicon 0 contains all terms.
    """
    return 1.0 if changed == 0 else 1.0 - (1.0 - (1.0 - share) ** changed) ** (lexica - 1)


def run(matcher, rows, vocabulary=None):
    return matcher(Corpus(vectors_of(rows, vocabulary)))


@quick
@given(rows_of_terms, st.sampled_from([(0.0, 1.0), (0.4, 0.75), (0.2, 0.9)]))
def test_one_lexicon_equals_naive(rows, band):
    pairs = run(IMatch(idf_min=band[0], idf_max=band[1]), rows)
    assert set(by_rows(pairs)) == naive.imatch(rows, [set(range(13))], *band)
    assert np.isnan(pairs.similarity).all()


@quick
@given(rows_of_terms, st.integers(0, 3))
def test_several_lexica_equal_naive(rows, seed):
    matcher = IMatch(idf_min=0, idf_max=1, lexica=4, lexicon_share=0.5, seed=seed)
    lexica = [set(np.flatnonzero(matcher.in_lexicon(np.arange(13, dtype=np.uint64), k)).tolist()) for k in range(4)]
    assert lexica[0] == set(range(13))
    assert set(by_rows(run(matcher, rows))) == naive.imatch(rows, lexica, 0.0, 1.0)


def test_sha1_of_a_hand_made_example():
    # Four documents: term 7 in two of them has idf log(4/2)/log(4) = 0.5, the others 1 or 0.
    rows = [{0: 1, 1: 2, 2: 1}, {1: 5, 2: 1}, {2: 1, 3: 1}, {2: 4}]
    vocabulary = [2**63 + 5, 7, 9, 1]
    matcher = IMatch(idf_min=0.4, idf_max=0.75)
    (labels,) = matcher.bucket_labels(vectors_of(rows, vocabulary))
    assert labels.tolist() == [0, 0, -1, -1]
    # The bytes that are hashed, for the whole band: the hashes ascending (7, 9, 2**63 + 5), 8 bytes big-endian each.
    hashed = []
    original = hashlib.sha1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashlib, "sha1", lambda data, **kw: (hashed.append(bytes(data)), original(data, **kw))[1])
        list(IMatch(idf_min=0, idf_max=1).bucket_labels(vectors_of(rows[:1] + rows[2:], vocabulary)))
    assert hashed[0] == bytes.fromhex("000000000000000700000000000000098000000000000005")
    assert hashlib.sha1(hashed[0]).hexdigest() == "ee7b60b70fb661ac0be8fe899d615fcbc9fe83e7"


def test_order_of_documents_and_ids_does_not_matter():
    rng = np.random.default_rng(5)
    hashes = rng.integers(0, 2**63, 40).tolist()
    rows = [dict.fromkeys(rng.choice(40, 5, replace=False).tolist(), 1) for _ in range(15)] * 2
    matcher = IMatch(idf_min=0, idf_max=1, lexica=5)
    before = set(by_rows(run(matcher, rows, hashes)))
    documents, terms = rng.permutation(30), rng.permutation(40)
    place = np.argsort(terms)
    moved = [{int(place[t]): c for t, c in rows[d].items()} for d in documents]
    assert set(by_rows(run(matcher, moved, [hashes[t] for t in terms]), documents)) == before


def test_gain_of_several_lexica():
    # 320 pairs of documents with 40 terms in common; in 300 of them one document has one term more.
    rows = []
    for pair in range(320):
        words = range(pair * 100, pair * 100 + 41)
        rows += [dict.fromkeys(words[:40], 1), dict.fromkeys(words if pair < 300 else words[:40], 1)]
    vectors = vectors_of(rows)
    numbers = [
        len(IMatch(idf_min=0, idf_max=1, lexica=lexica, lexicon_share=0.67)(Corpus(vectors))) for lexica in range(1, 9)
    ]
    assert numbers == sorted(numbers)
    assert numbers[0] == 20
    for lexica, n in enumerate(numbers, start=1):  # recall grows by the theory, within three standard errors
        p = agreement_probability(1, lexica, 0.67)
        assert abs((n - numbers[0]) / 300 - p) <= 3 * math.sqrt(p * (1 - p) / 300) + 1e-9


def test_agreement_probability():
    assert agreement_probability(0, 1, 0.67) == 1
    assert agreement_probability(3, 1, 0.67) == 0
    assert agreement_probability(1, 2, 0.75) == pytest.approx(0.25)
    assert agreement_probability(2, 3, 0.5) == pytest.approx(1 - 0.75**2)


def test_too_many_pairs_are_refused():
    rows, indptr = group_rows(np.zeros(70_000, dtype=np.int64))
    with pytest.raises(InputError, match=r"2,449,965,000 pairs"):
        pairs_within(rows, indptr)
    zero = np.zeros(1, dtype=np.int64)
    with pytest.raises(InputError, match=r"4,900,000,000 pairs"):
        pairs_across(rows, indptr, zero, zero)


@quick
@given(st.lists(st.integers(-1, 4), max_size=20), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=6))
def test_pairs_of_groups(labels, groups):
    rows, indptr = group_rows(np.array([*labels, 4], dtype=np.int64))
    members = [[r for r, label in enumerate([*labels, 4]) if label == g] for g in range(5)]
    i, j = pairs_within(rows, indptr)
    expected = sorted((a, b) for group in members for a in group for b in group if a < b)
    assert sorted(zip(i.tolist(), j.tolist(), strict=True)) == expected
    g, h = np.array(groups, dtype=np.int64).reshape(-1, 2).T
    i, j, source = pairs_across(rows, indptr, g, h)
    expected = [(a, b, p) for p, (x, y) in enumerate(groups) for a in members[x] for b in members[y]]
    assert list(zip(i.tolist(), j.tolist(), source.tolist(), strict=True)) == expected
