"""Stores: the data that is read again, and the data that is refused."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stores import save_vectors
from strategies import examples

from spotsigs.records import DocumentColumns, Signatures, Skipped, Vectors
from spotsigs.storage.store import load_signatures, open_vectors, opened, save_signatures, sealed, writing


def some_vectors(n=50, seed=1):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 9, n)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    ids = rng.integers(0, 40, indptr[-1])
    doc_ids = [f"dé/{k}" for k in range(n)]
    return Vectors.from_csr(indptr, ids, rng.integers(1, 5, len(ids)), doc_ids, np.arange(40, dtype=np.uint64))


def rows_of(vectors, doc_ids, rows):
    return [(doc_ids[row], *map(np.ndarray.tolist, vectors.row(r)), vectors.lengths[r]) for r, row in enumerate(rows)]


@pytest.mark.parametrize("n", [0, 1, 50])
def test_vectors_are_read_by_length(tmp_path, n):
    vectors = some_vectors(n)
    save_vectors(tmp_path / "x", vectors)
    store = open_vectors(tmp_path / "x")
    assert len(store) == n
    assert np.all(np.diff(store.vectors.lengths) >= 0)
    assert sorted(store.rows.tolist()) == list(range(n))
    expected = rows_of(vectors, vectors.doc_ids, range(n))
    assert rows_of(store.vectors, store.doc_ids, store.rows) == [expected[r] for r in store.rows]
    assert list(store.doc_ids) == list(vectors.doc_ids)
    assert store.vectors.n_signatures == vectors.n_signatures
    for array in (store.vectors.ids, store.vectors.counts, store.vectors.indptr):
        assert not array.flags.writeable
    ties = np.diff(store.vectors.lengths) == 0
    assert np.all(np.diff(store.rows)[ties] > 0)


@examples(30)
@given(names=st.lists(st.text(max_size=9), max_size=9))
def test_any_names_are_read_as_they_were_written(tmp_path_factory, names):
    folder = tmp_path_factory.mktemp("names") / "x"
    with writing(folder, "names") as store:
        store.strings("names", names)
    actual = opened(folder, "names").strings("names")
    assert list(actual) == names
    assert list(actual[1:]) == names[1:]
    assert [actual[-1 - k] for k in range(len(names))] == names[::-1]
    with pytest.raises(IndexError):
        actual[len(names)]


def test_signatures_are_read_as_they_were_written(tmp_path):
    sections = np.array([5, 2**64 - 1], dtype=np.uint64)
    signatures = Signatures(
        DocumentColumns(("a", "b"), ("", None), sections=sections),
        indptr=np.array([0, 2, 3]),
        hashes=np.array([1, 2**64 - 1, 7], dtype=np.uint64),
        counts=np.array([1, 2, 3], dtype=np.int32),
        skipped=(Skipped("x", "why"),),
    )
    save_signatures(tmp_path / "x", signatures)
    actual = load_signatures(tmp_path / "x")
    for one, other in ((actual, signatures), (actual.documents, signatures.documents)):
        for name in {"ids", "clusters", "skipped"} & set(type(one).__slots__):
            assert getattr(one, name) == getattr(other, name)
        for name in {"indptr", "hashes", "counts", "sections", "digests", "tokens"} & set(type(one).__slots__):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    some = load_signatures(tmp_path / "x", "counts", "skipped")
    assert (some.counts.tolist(), some.skipped, len(some)) == ([1, 2, 3], signatures.skipped, 2)
    assert (len(some.hashes), some.doc_ids, some.documents.clusters) == (0, (), ())


def test_a_store_that_fails_does_not_replace_the_previous_one(tmp_path):
    def fail():
        with writing(tmp_path / "x", "vectors") as store:
            store.put("rows", np.arange(3))
            raise RuntimeError

    save_vectors(tmp_path / "x", some_vectors(5))
    with pytest.raises(RuntimeError):
        fail()
    assert len(open_vectors(tmp_path / "x")) == 5
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def change_versions(root):
    """Let all results below a folder be of another version."""
    for path in root.rglob("store.json"):
        facts = json.loads(path.read_text()) | {"version": 3}
        facts.pop("seal")
        path.write_bytes(sealed(facts))
