import hashlib
from functools import cache
from math import exp, log

import numpy as np
import pytest
from scipy.special import ndtr

from data.collections.wt10g_like import DOCUMENTS, LONG, MIN_SPOTS, OCCURRENCES, SHORT, SIGNATURES, Wt10gLike
from spotsigs.errors import InputError
from spotsigs.matching.prefix_join import self_join


@cache
def drawn(documents, **parameters):
    return Wt10gLike(documents=documents, **parameters).vectors()


def digest(vectors):
    state = hashlib.sha256()
    for array in (vectors.indptr, vectors.ids, vectors.counts, vectors.lengths):
        state.update(array.tobytes())
    return state.hexdigest()[:16]


def assert_in_order(vectors):
    starts = np.zeros(len(vectors.ids), bool)
    starts[vectors.indptr[:-1]] = True
    assert np.all((np.diff(vectors.ids) > 0) | starts[1:])
    assert vectors.counts.min() >= 1
    assert vectors.lengths.min() >= MIN_SPOTS
    assert np.array_equal(vectors.lengths, np.add.reduceat(vectors.counts, vectors.indptr[:-1]))


@pytest.mark.parametrize("documents", [100, 1000, 20_000])
def test_totals_are_exact(documents):
    collection, vectors = Wt10gLike(documents=documents), drawn(documents)
    assert len(vectors) == documents
    assert vectors.n_occurrences == collection.occurrences == documents * OCCURRENCES // DOCUMENTS
    assert len(np.unique(vectors.ids)) == collection.signatures == vectors.ids.max() + 1
    assert_in_order(vectors)


def test_same_seed_same_bytes():
    first, same, other = (digest(Wt10gLike(documents=3000, seed=seed).vectors()) for seed in (1, 1, 2))
    assert first == same != other
    assert first == "2115163dcb594497"


def test_long_variant():
    vectors = drawn(2000, mean_length=LONG)
    assert vectors.n_occurrences == 2000 * LONG
    assert_in_order(vectors)


def test_shape_is_as_documented():
    vectors = drawn(50_000)
    beyond = vectors.lengths - MIN_SPOTS
    assert 13 <= np.median(beyond) <= 15
    frequencies = vectors.document_frequencies
    # the band, softened by chance at its ends and by groups that share rare signatures
    assert np.quantile(frequencies, 0.05) > 0.5 * 50_000**0.25
    assert np.quantile(frequencies, 0.999) < 1.5 * 50_000**0.6
    pairs = self_join(vectors, 0.5)
    grouped = len(np.union1d(pairs.i, pairs.j)) / 50_000
    assert 0.25 < grouped < 0.31
    assert 0.08 < pairs.counters["copies"] / 50_000 < 0.15


def test_skewed_lengths_have_what_is_published():
    # of 1,274,812 documents with at least one spot signature (slides) 1,171,960 have five (paper), 21.36 on average
    mu, sigma = SHORT
    above = [ndtr((mu - log(bound)) / sigma) for bound in (0.5, 4.5)]
    assert above[1] / above[0] == pytest.approx(DOCUMENTS / 1_274_812, abs=1e-4)
    mean = exp(mu + sigma**2 / 2) * ndtr((mu + sigma**2 - log(4.5)) / sigma) / above[1]
    assert mean == pytest.approx(OCCURRENCES / DOCUMENTS, abs=0.01)
    vectors = drawn(50_000, skewed=True)
    assert vectors.n_occurrences == 50_000 * OCCURRENCES // DOCUMENTS
    assert_in_order(vectors)
    lengths = np.bincount(vectors.lengths)
    assert lengths[5:9].sum() > 5 * np.bincount(drawn(50_000).lengths)[5:9].sum()
    with pytest.raises(InputError, match="mean_length and skewed exclude each other"):
        Wt10gLike(mean_length=LONG, skewed=True)


def test_wider_band_holds_more_frequent_signatures():
    narrow, wide = drawn(20_000), drawn(20_000, idf_min=0.2)
    assert wide.document_frequencies.max() > 3 * narrow.document_frequencies.max()
    assert wide.n_occurrences == narrow.n_occurrences


@pytest.mark.long
def test_published_totals_at_full_scale():
    vectors = Wt10gLike(documents=DOCUMENTS).vectors()
    assert len(vectors) == DOCUMENTS == 1_171_960
    assert vectors.n_occurrences == OCCURRENCES == 25_033_143
    assert len(np.unique(vectors.ids)) == SIGNATURES == 86_579
    assert_in_order(vectors)
