import resource
from collections import Counter
from fractions import Fraction
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import join as naive
from scipy import sparse
from strategies import TAUS, collections, examples, triples, vectors_of

import spotsigs
from data.collections.wt10g_like import LONG, Wt10gLike
from spotsigs.errors import InputError
from spotsigs.matching import join_driver as join_stages
from spotsigs.matching import join_kernels
from spotsigs.matching.bounds import bounds
from spotsigs.matching.prefix_join import SpotSigsTight, join, self_join
from spotsigs.records import Corpus, Vectors

repeatable = examples(40)


def drawn(seed, n=60):
    """A larger collection: groups of edited copies over universes from tiny to large, short and long documents."""
    rng = np.random.default_rng(seed)
    universe, mean = rng.choice([3, 6, 12, 30, 200, 5000]), rng.choice([2, 5, 12, 40, 150])
    documents = []
    for _ in range(n):
        if documents and rng.random() < 0.6:
            document = Counter(documents[rng.integers(len(documents))])
            for _ in range(rng.integers(max(2, mean // 4))):
                if document and rng.random() < 0.5:
                    document[sorted(document)[rng.integers(len(document))]] -= 1
                    document = +document
                else:
                    document[int(rng.integers(universe))] += 1
        else:
            document = Counter(rng.integers(universe, size=rng.integers(2 * mean)).tolist())
        documents.append(document)
    return documents


@repeatable
@given(documents=collections(), tau=st.sampled_from(TAUS), threads=st.sampled_from([1, 3]), sets=st.booleans())
def test_small_collections_equal_the_reference(documents, tau, threads, sets):
    expected = naive.self_join(naive.as_sets(documents) if sets else documents, tau)
    assert triples(self_join(vectors_of(documents), tau, threads=threads, sets=sets)) == expected


@repeatable
@given(seed=st.integers(0, 2**32), tau=st.sampled_from((0.05, 0.6, 0.7, *TAUS)), threads=st.sampled_from([1, 2, 5]))
def test_larger_collections_equal_the_reference(seed, tau, threads):
    documents = drawn(seed)
    assert triples(self_join(vectors_of(documents), tau, threads=threads)) == naive.self_join(documents, tau)


@repeatable
@given(seed=st.integers(0, 2**32), tau=st.sampled_from((0.05, 0.6, *TAUS)), cut=st.integers(0, 60))
def test_left_right_join_equals_the_reference(seed, tau, cut):
    documents = drawn(seed)
    left, right = documents[:cut], documents[cut:]
    assert triples(join(vectors_of(left), vectors_of(right), tau, threads=2)) == naive.join(left, right, tau)


@repeatable
@given(
    share=st.sampled_from([(1, 3), (11, 25), (1, 2), (4, 5), (7, 10), (9, 10), (12, 15), (1, 1)]),
    scale=st.integers(1, 30),
    left=st.floats(0, 1),
    off=st.integers(-1, 1),
)
def test_borderline_pairs_are_decided_as_in_rational_arithmetic(share, scale, left, off):
    overlap, union = max(1, share[0] * scale + off), share[1] * scale
    rest = max(0, union - overlap)
    ours = round(left * rest)
    a = Counter(range(overlap)) + Counter(range(1000, 1000 + ours))
    b = Counter(range(overlap)) + Counter(range(2000, 2000 + rest - ours))
    similar = Fraction(overlap, overlap + rest) >= Fraction(*share)
    # the frequent document makes the shared signatures common, so that they come last in the order
    documents = [a, b, *(Counter(range(k, overlap)) for k in range(0, overlap, 7) if overlap > 40)]
    actual = {(i, j) for i, j, _ in triples(self_join(vectors_of(documents), share[0] / share[1], threads=1))}
    assert ((0, 1) in actual) == similar


@pytest.mark.parametrize("n", [0, 1, 2, 300])
def test_copies(n):
    documents = [Counter({3: 2, 5: 1})] * n
    pairs = self_join(vectors_of(documents), 0.9, threads=2)
    assert triples(pairs) == [(i, j, 1.0) for i, j in combinations(range(n), 2)]
    assert pairs.counters["copies"] == max(n - 1, 0)


def test_rows_without_signatures_are_in_no_pair():
    documents = [Counter(), Counter({1: 1}), Counter(), Counter({1: 1}), Counter()]
    assert triples(self_join(vectors_of(documents), 0.1)) == [(1, 3, 1.0)]
    assert triples(self_join(vectors_of([Counter()] * 3), 0.1)) == []
    assert triples(join(vectors_of([Counter()] * 3), vectors_of(documents), 0.1)) == []


@pytest.mark.parametrize("tau", [0.5, 1.0])
def test_colliding_hashes_lose_nothing(tau, monkeypatch):
    scan = join_kernels.scan_rows

    def colliding(rows, lengths, limit, begin, end, hashes, *counts):
        scan(rows, lengths, limit, begin, end, hashes, *counts)
        hashes[begin:end] &= np.uint64(1)

    monkeypatch.setattr(join_kernels, "scan_rows", colliding)
    documents = drawn(5)
    assert triples(self_join(vectors_of(documents), tau)) == naive.self_join(documents, tau)


@pytest.mark.parametrize("tau", [0.3, 0.5, 0.9])
def test_rows_that_are_not_written_out_are_compared_directly(tau, monkeypatch):
    monkeypatch.setattr(join_stages, "LONGEST", 20)
    documents = drawn(21)
    assert sum(sum(document.values()) > 20 for document in documents) > 10
    assert triples(self_join(vectors_of(documents), tau)) == naive.self_join(documents, tau)
    actual = join(vectors_of(documents[:25]), vectors_of(documents[25:]), tau)
    assert triples(actual) == naive.join(documents[:25], documents[25:], tau)
    monkeypatch.setattr(join_stages, "LONGEST", 2**22)
    monkeypatch.setattr(join_stages, "LEAST_TOKENS", 200)
    twice = [Counter({s: 40 * c for s, c in document.items()}) for document in documents]
    assert triples(self_join(vectors_of(twice), tau)) == naive.self_join(twice, tau)


@pytest.mark.compiled
def test_documents_of_many_thousand_occurrences():
    rng = np.random.default_rng(8)
    base = Counter(rng.integers(30_000, size=24_000).tolist())
    documents = [base, Counter({7: 9000}), Counter({7: 10_000}), Counter(range(20_000, 29_000))]
    documents += [base - Counter(rng.integers(30_000, size=cut).tolist()) for cut in (100, 4000, 12_000)]
    documents += [Counter(dict.fromkeys(range(4), 300000)), Counter(dict.fromkeys(range(5), 299000))]
    expected = naive.self_join(documents, 0.5)
    for tau in (0.5, 0.8, 0.9):
        assert triples(self_join(vectors_of(documents), tau)) == [pair for pair in expected if pair[2] >= tau]


def test_counters_of_shared_tokens_are_reset():
    rng = np.random.default_rng(1)
    documents = [Counter(rng.choice(600, size=300, replace=False).tolist()) for _ in range(900)]
    assert bounds(0.4, 300).probed[300] * len(documents) > 2 * 2**16  # so 16-bit counters are reset twice
    pairs = self_join(vectors_of(documents), 0.4, threads=1)
    matrix = np.zeros((len(documents), 600), np.int64)
    for r, document in enumerate(documents):
        matrix[r, list(document)] = 1
    overlap = matrix @ matrix.T
    i, j = np.nonzero(np.triu(overlap / (600 - overlap) >= 0.4, 1))
    assert len(i) > 50
    assert np.array_equal(pairs.i, i)
    assert np.array_equal(pairs.j, j)


def test_more_pairs_than_a_threads_buffer_holds():
    documents = [Counter([*range(60), 100 + k]) for k in range(420)]
    pairs = self_join(vectors_of(documents), 0.9, threads=1)
    assert len(pairs) == 420 * 419 // 2 > 2**16
    assert set(pairs.similarity) == {60 / 62}
    assert np.all(np.diff(pairs.i.astype(np.int64) * 420 + pairs.j) > 0)


def test_more_pairs_than_can_be_listed_are_refused(monkeypatch):
    monkeypatch.setattr("spotsigs.records.MOST_PAIRS", 100)
    with pytest.raises(InputError, match="190 pairs are similar, more than the 100"):
        self_join(vectors_of([Counter({1: 1})] * 20), 1.0)
    with pytest.raises(InputError, match="more than the 100"):
        self_join(vectors_of([Counter([*range(60), 100 + k]) for k in range(20)]), 0.9)


def test_more_pairs_than_fit_into_memory_are_refused_before_they_fill_it(monkeypatch):
    n, available = 20_000, 10**9
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=available, total=2 * available))
    refused = pytest.raises(InputError, match=r"pairs are similar, more than the 12,500,000 that fit into 1,000 MB")
    alike = np.hstack([np.tile(np.arange(9), (n, 1)), np.arange(100, 100 + n)[:, None]])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with refused:
        spotsigs.near_duplicates(["the story was told"] * n, method=spotsigs.Method.of(threads=1))
    with refused:
        self_join(Vectors.from_csr(np.arange(n + 1) * 10, alike.ravel()), 0.8, threads=2)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < before + available


@pytest.mark.parametrize("sparse_ids", [[0, 5, 2**31 - 1], [2**30, 2**30 + 1, 2**31 - 2]])
def test_ids_anywhere_below_two_to_the_31(sparse_ids):
    a, b, c = sparse_ids
    documents = [Counter({a: 2, b: 1}), Counter({a: 2, b: 1, c: 1}), Counter({c: 4})]
    assert triples(self_join(vectors_of(documents), 0.7)) == [(0, 1, 0.75)]
    assert triples(join(vectors_of(documents[:1]), vectors_of(documents[1:]), 0.7)) == [(0, 0, 0.75)]


def test_result_and_counters_do_not_depend_on_threads():
    collection = Wt10gLike(documents=5000).vectors()
    one = self_join(collection, 0.5, threads=1)
    assert len(one) > 1000
    for threads in (2, 3, 8):
        other = self_join(collection, 0.5, threads=threads)
        assert triples(other) == triples(one)
        assert other.counters == one.counters


def test_new_against_old_is_the_part_of_the_full_join():
    collection = Wt10gLike(documents=4000).vectors()
    old, new = collection.take(np.arange(3000)), collection.take(np.arange(3000, 4000))
    full = [(i, j - 3000, s) for i, j, s in triples(self_join(collection, 0.6)) if i < 3000 <= j]
    actual = join(old, new, 0.6)
    assert triples(actual) == full
    assert triples(join(new, old, 0.6)) == sorted((j, i, s) for i, j, s in full)
    assert (actual.n, actual.n_right) == (3000, 1000)
    assert len(actual.at(0.9)) == sum(s >= 0.9 for *_, s in full)
    assert actual.to_pandas(right=list(map(str, range(1000)))).iloc[0]["doc_b"] == str(full[0][1])


def test_a_matcher_reports_its_times_and_counters():
    pairs = SpotSigsTight(tau=0.6, threads=2)(Corpus(Wt10gLike(documents=2000).vectors()))
    stages = {"scan", "copies", "order", "pack", "postings", "join", "expand"}
    assert set(pairs.seconds) == stages | {"sort_hash", "cluster"}
    assert pairs.seconds["cluster"] == pytest.approx(pairs.seconds["join"] + pairs.seconds["expand"])
    whole = pairs.seconds["sort_hash"] + pairs.seconds["cluster"]
    assert sum(pairs.seconds[stage] for stage in stages) == pytest.approx(whole)
    counters = pairs.counters
    assert counters["postings"] > counters["candidates"] >= counters["verifications"] > 0 < counters["copies"]
    assert pairs.n == 2000


def product_pairs(collection, tau):
    """Similar pairs by a sparse product over numbered occurrences, in blocks of rows."""
    rows = np.repeat(np.arange(len(collection)), np.diff(collection.indptr))
    entry = np.repeat(np.arange(len(rows)), collection.counts)
    occurrence = np.arange(len(entry)) - np.repeat(np.cumsum(collection.counts) - collection.counts, collection.counts)
    tokens = collection.ids[entry].astype(np.int64) * (collection.counts.max() + 1) + occurrence
    names, columns = np.unique(tokens, return_inverse=True)
    matrix = sparse.csr_array((np.ones(len(columns), np.int32), (rows[entry], columns)), (len(collection), len(names)))
    blocks = []
    for begin in range(0, len(collection), 2000):
        product = (matrix[begin : begin + 2000] @ matrix.T).tocoo()
        i, j = product.row.astype(np.int64) + begin, product.col.astype(np.int64)
        similarity = product.data / (collection.lengths[i] + collection.lengths[j] - product.data)
        keep = (i < j) & (similarity >= tau)
        order = np.lexsort((j[keep], i[keep]))
        blocks.append((i[keep][order], j[keep][order], similarity[keep][order]))
    return map(np.concatenate, zip(*blocks, strict=True))


def assert_equals_the_product(collection, taus):
    i, j, similarity = product_pairs(collection, min(taus))
    for tau in taus:
        pairs = self_join(collection, tau, threads=2)
        keep = similarity >= tau
        assert len(pairs) == keep.sum() > 0
        assert np.array_equal(pairs.i, i[keep])
        assert np.array_equal(pairs.j, j[keep])
        assert np.array_equal(pairs.similarity, similarity[keep])


@pytest.mark.compiled
def test_equals_a_sparse_product_on_20_000_documents():
    assert_equals_the_product(Wt10gLike(documents=20_000).vectors(), [0.5, 0.9, 1.0])


@pytest.mark.long
def test_equals_a_sparse_product_on_100_000_documents():
    assert_equals_the_product(Wt10gLike(documents=100_000, seed=1).vectors(), [0.3, 0.5, 0.7, 0.9])


@pytest.mark.long
def test_equals_a_sparse_product_on_long_documents():
    assert_equals_the_product(Wt10gLike(documents=5000, mean_length=LONG).vectors(), [0.3, 0.5, 0.7, 0.9])
