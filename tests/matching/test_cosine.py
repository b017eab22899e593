from __future__ import annotations

from math import log, nextafter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import sets as naive
from strategies import MULTISETS, by_rows, examples, vectors_of

from baselines.cosine import Cosine, inverse_document_frequencies
from spotsigs.records import Corpus

TAUS = (0.1, 1 / 3, 0.44, 0.5, 0.8, 0.9, 0.99, 1.0)
quick = examples(80)


def cosine(documents, tau, threads=1):
    return Cosine(tau=tau, threads=threads)(Corpus(vectors_of(documents)))


@quick
@given(MULTISETS, st.sampled_from(TAUS))
def test_equals_its_definition_bit_by_bit(documents, tau):
    assert by_rows(cosine(documents, tau)) == naive.cosine_pairs(documents, tau)


@pytest.mark.parametrize(("n", "vocabulary", "longest"), [(400, 3000, 60), (150, 800, 400)])
def test_many_documents_equal_it_as_well(n, vocabulary, longest):
    documents = naive.edited_copies(n + longest, n, vocabulary, longest)
    expected = naive.cosine_pairs(documents, 0.44)
    assert len(expected) > 10
    assert by_rows(cosine(documents, 0.44, threads=2)) == expected


def test_a_threshold_that_equals_a_similarity_keeps_the_pair():
    documents = naive.edited_copies(7)
    for pair, similarity in naive.cosine_pairs(documents, 0.3).items():
        if similarity < 1:
            assert pair in by_rows(cosine(documents, similarity))
            assert pair not in by_rows(cosine(documents, nextafter(similarity, 2)))


def test_idf_is_correctly_rounded():
    frequencies = np.array([0, 1, 2, 3, 500, 999, 1000])
    values = inverse_document_frequencies(frequencies, 1000)
    assert values[0] == 0.0
    assert values[-1] == 0.0
    assert values[1:].tolist() == [naive.log_ratio(1000, df) for df in frequencies[1:].tolist()]
    np.testing.assert_allclose(values[1:-1], [log(1000 / df) for df in frequencies[1:-1].tolist()], rtol=1e-12)
