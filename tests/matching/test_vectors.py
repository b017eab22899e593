from collections import Counter

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from strategies import collections, signatures_of

from spotsigs.errors import InputError
from spotsigs.records import Vectors
from spotsigs.signatures.idf import Idf, IdfFilter


def scrambled(number):
    return (number * 0x9E3779B97F4A7C15 + 1) % 2**64


def signatures(documents):
    """Return signature multisets whose hashes are scrambled numbers."""
    return signatures_of(sorted((scrambled(s), c) for s, c in document.items()) for document in documents)


@given(
    documents=collections(),
    low=st.sampled_from([0.0, 0.2, 0.4]),
    high=st.sampled_from([0.75, 0.85, 1.0]),
    idf=st.sampled_from(Idf),
    min_spots=st.integers(1, 6),
    fewest=st.sampled_from([0, 4]),
)
def test_the_filter_keeps_the_band_and_long_enough_documents(documents, low, high, idf, min_spots, fewest):
    kept = IdfFilter(idf_min=low, idf_max=high, idf=idf, min_spots=min_spots, fewest=fewest)(signatures(documents))
    banded = len(documents) >= fewest
    wanted = naive.idf_band(documents, low, high, idf is Idf.prototype) if banded else documents
    wanted = [document if document.total() >= min_spots else Counter() for document in wanted]
    back = {scrambled(s): s for document in documents for s in document}
    rows = [kept.row(r) for r in range(len(kept))]
    assert [
        Counter({back[int(kept.vocabulary[i])]: int(c) for i, c in zip(*row, strict=True)}) for row in rows
    ] == wanted
    assert kept.lengths.tolist() == [document.total() for document in wanted]


@given(st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=6))
def test_from_csr_sorts_rows_and_adds_up_repeats(rows):
    ids = np.array([i for row in rows for i in row], np.int64)
    collection = Vectors.from_csr(np.cumsum([0, *map(len, rows)]), ids)
    for r, row in enumerate(rows):
        assert list(zip(*map(np.ndarray.tolist, collection.row(r)), strict=True)) == sorted(Counter(row).items())
    assert collection.lengths.tolist() == list(map(len, rows))


def test_take_reorders_rows():
    collection = Vectors.from_csr([0, 2, 2, 3], [1, 2, 7], [1, 2, 3], ["a", "b", "c"])
    taken = collection.take(np.array([2, 0]))
    assert taken.doc_ids == ("c", "a")
    assert taken.row(0)[0].tolist() == [7]
    assert taken.row(1)[1].tolist() == [1, 2]
    assert taken.lengths.tolist() == [3, 3]


@given(st.lists(st.dictionaries(st.one_of(st.text(max_size=2), st.integers(0, 5)), st.integers(0, 3)), max_size=6))
def test_counters_sets_and_matrices_are_the_same_rows(counters):
    features = list(dict.fromkeys(f for counter in counters for f in counter))
    dense = np.array([[counter.get(f, 0) for f in features] for counter in counters]).reshape(
        len(counters), len(features)
    )
    from_counters = Vectors.from_counters(map(Counter, counters))
    matrix = csr_array(dense)
    from_csr = Vectors.from_csr(matrix.indptr, matrix.indices, matrix.data)
    assert from_counters.lengths.tolist() == from_csr.lengths.tolist() == dense.sum(axis=1).tolist()
    from_sets = Vectors.from_sets([f for f, count in counter.items() for _ in range(count)] for counter in counters)
    assert from_sets.lengths.tolist() == (dense > 0).sum(axis=1).tolist()
    for vectors, counted in ((from_counters, dense), (from_csr, dense), (from_sets, dense > 0)):
        rows = [dict(zip(*map(np.ndarray.tolist, vectors.row(r)), strict=True)) for r in range(len(vectors))]
        shared = [[sum(min(a[f], b[f]) for f in a.keys() & b.keys()) for b in rows] for a in rows]
        wanted = np.minimum(counted[:, None].astype(int), counted[None].astype(int)).sum(axis=2)
        assert np.array_equal(np.reshape(shared, wanted.shape), wanted)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Vectors.from_sets(["a text"]), "row 0 is a str; give a set of features"),
        (lambda: Vectors.from_sets([{"a"}, Counter("a")]), "row 1 is a Counter; .*from_counters"),
        (lambda: Vectors.from_counters([{"a"}]), "row 0 is of type set; give a Counter"),
        (lambda: Vectors.from_counters([{"a": -1}]), "counts must be positive"),
        (lambda: Vectors.from_counters([{"a": 0.5}]), "counts must be a one-dimensional array of integers"),
    ],
)
def test_what_is_no_features_is_refused(build, message):
    with pytest.raises(InputError, match=message):
        build()
