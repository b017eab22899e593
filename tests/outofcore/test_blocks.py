"""The join of blocks on disk gives the pairs of one join in memory, whatever the budget, the engine and the split."""

import itertools
from collections import Counter
from dataclasses import fields

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stores import StopsAt, save_vectors, segments_of
from strategies import examples

from spotsigs.clustering.clusters import ClusterMethod, Cohesion, cluster, cohesion
from spotsigs.clustering.decisions import Keep, decide
from spotsigs.clustering.parquet_tables import write_pairs
from spotsigs.engines import Processes, Serial
from spotsigs.errors import InputError
from spotsigs.matching.brute_force import BruteForce
from spotsigs.outofcore.prefix_partition_join import PairFiles, join_store, query
from spotsigs.outofcore.prefix_partition_tasks import cut_rows
from spotsigs.outofcore.vectorize import build_vectors
from spotsigs.records import Corpus, Signatures, Vectors
from spotsigs.signatures.idf import IdfFilter
from spotsigs.storage.store import open_vectors

SMALL = 20_000
LARGE = 10**9


def copies(seed, n=80, signatures=60):
    """Return rows of which many are altered copies of others."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        if rows and rng.random() < 0.6:
            row = Counter(rows[rng.integers(len(rows))])
            for _ in range(rng.integers(0, 4)):
                row[int(rng.integers(signatures))] += 1
        else:
            row = Counter(rng.integers(0, signatures, rng.integers(0, 25)).tolist())
        rows.append(row)
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    ids = [s for row in rows for s in row]
    return Vectors.from_csr(indptr, ids, [row[s] for row in rows for s in row], [f"d{k}" for k in range(n)])


def triples(pairs):
    return list(zip(pairs.i.tolist(), pairs.j.tolist(), pairs.similarity.tolist(), strict=True))


@examples(10, long=200)
@given(
    seed=st.integers(0, 10**6),
    tau=st.sampled_from([0.2, 0.44, 0.7, 0.8, 1.0]),
    memory=st.sampled_from([SMALL, 60_000, LARGE]),
)
def test_blocks_equal_brute_force(tmp_path_factory, seed, tau, memory):
    folder = tmp_path_factory.mktemp("blocks")
    vectors = copies(seed)
    save_vectors(folder / "v", vectors)
    found = join_store(folder / "v", folder / "p", tau, Serial(), memory=memory)
    expected = BruteForce(tau=tau)(Corpus(vectors))
    assert triples(found.load()) == triples(expected)
    assert len(found) == len(expected)
    assert (found.counters["tasks"] > 6) == (memory < LARGE)
    chunks = list(found.within(2000).chunks())
    assert [t for i, j, s in chunks for t in zip(i.tolist(), j.tolist(), s.tolist(), strict=True)] == triples(expected)
    assert len(chunks) > 1 or len(expected) < 60


@examples(10, long=200)
@given(
    seed=st.integers(0, 10**6),
    tau=st.sampled_from([0.3, 0.8]),
    new_from=st.integers(0, 81),
    memory=st.sampled_from([SMALL, LARGE]),
)
def test_new_against_old_equals_the_full_join(tmp_path_factory, seed, tau, new_from, memory):
    folder = tmp_path_factory.mktemp("new")
    vectors = copies(seed)
    save_vectors(folder / "v", vectors)
    found = join_store(folder / "v", folder / "p", tau, Serial(), memory=memory, new_from=new_from)
    expected = BruteForce(tau=tau)(Corpus(vectors))
    assert triples(found.load()) == [t for t in triples(expected) if t[1] >= new_from]


def signatures_of(vectors, rows):
    part = vectors.take(np.asarray(rows, dtype=np.int64))
    hashes = (part.ids.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    order = np.concatenate(
        [
            np.empty(0, np.int64),
            *(a + np.argsort(hashes[a:b]) for a, b in zip(part.indptr, part.indptr[1:], strict=False)),
        ]
    )
    return Signatures(tuple(part.doc_ids), (None,) * len(rows), part.indptr, hashes[order], part.counts[order])


@pytest.mark.parametrize("seed", range(3))
def test_added_documents_are_filtered_with_the_whole(tmp_path, seed):
    vectors = copies(seed)
    chosen = IdfFilter(idf_min=0.3, idf_max=0.9)
    old = segments_of([signatures_of(vectors, range(50))], tmp_path / "old")
    new = segments_of([signatures_of(vectors, range(50, 80))], tmp_path / "new")
    build_vectors(tmp_path / "v", old + new, chosen, memory=LARGE)
    found = join_store(tmp_path / "v", tmp_path / "p", 0.4, Serial(), memory=SMALL, new_from=50)
    expected = BruteForce(tau=0.4)(Corpus(chosen(signatures_of(vectors, range(80)))))
    assert triples(found.load()) == [t for t in triples(expected) if t[1] >= 50]
    assert len(found) > 0


@pytest.mark.parametrize("seed", range(5))
def test_query_finds_what_a_join_finds(tmp_path, seed):
    vectors = copies(seed)
    whole = signatures_of(vectors, range(80))
    build_vectors(tmp_path / "v", segments_of([whole], tmp_path / "s"), IdfFilter(idf_min=0.2), memory=LARGE)
    stored = open_vectors(tmp_path / "v")
    expected = BruteForce(tau=0.5)(Corpus(IdfFilter(idf_min=0.2)(whole)))
    for row in range(0, 80, 7):
        span = slice(whole.indptr[row], whole.indptr[row + 1])
        rows, similarity = query(tmp_path / "v", whole.hashes[span], whole.counts[span], 0.5, memory=SMALL)
        partners = {b if a == row else a: s for a, b, s in triples(expected) if row in (a, b)}
        if stored.vectors.lengths[stored.rows == row][0]:
            partners[row] = 1.0
        assert dict(zip(rows.tolist(), similarity.tolist(), strict=True)) == partners
        assert rows.tolist() == sorted(rows.tolist())
    strange = np.arange(1, 50, dtype=np.uint64)
    assert len(query(tmp_path / "v", strange, np.ones(49, np.int32), 0.5, memory=LARGE)[0]) == 0


def test_unseen_signatures_of_a_page_count_against_it(tmp_path):
    hashes = np.arange(1, 9, dtype=np.uint64)
    batch = Signatures(("a",), (None,), np.array([0, 8]), hashes, np.ones(8, np.int32))
    build_vectors(tmp_path / "v", segments_of([batch], tmp_path / "s"), IdfFilter(idf_min=0), memory=LARGE)
    page = np.concatenate([hashes, np.array([100, 101], np.uint64)])
    assert query(tmp_path / "v", page, np.ones(10, np.int32), 0.5, memory=LARGE)[1].tolist() == [0.8]


@pytest.mark.parametrize("engine", [Serial(), Processes(workers=2)])
def test_clusters_and_table_equal_those_in_memory(tmp_path, engine):
    vectors = copies(3)
    save_vectors(tmp_path / "v", vectors)
    found = join_store(tmp_path / "v", tmp_path / "p", 0.6, engine, memory=SMALL)
    pairs = BruteForce(tau=0.6)(Corpus(vectors))
    for method, priority in itertools.product(ClusterMethod, (None, -vectors.lengths)):
        ours = cluster(found.within(3000), priority=priority, clusters=method)
        theirs = cluster(pairs, clusters=method, priority=priority)
        for name in ("labels", "representatives", "similarity_to_representative"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
        one, other = cohesion(ours, found.within(3000).chunks()), cohesion(theirs, pairs.chunks())
        for column in fields(Cohesion):
            np.testing.assert_array_equal(getattr(one, column.name), getattr(other, column.name))
        for keep in (Keep.longest, Keep.none):
            left, right = decide(found.within(3000).chunks(), ours, keep), decide(pairs, theirs, keep)
            for column in ("kept", "partner", "similarity"):
                np.testing.assert_array_equal(getattr(left, column), getattr(right, column))
            rows = np.arange(len(vectors))
            np.testing.assert_array_equal(left.instead(rows), right.instead(rows))


def test_the_table_of_pairs_is_the_same_file_for_any_budget(tmp_path, monkeypatch):
    monkeypatch.setattr("spotsigs.clustering.parquet_tables.ROW_GROUP", 7)
    vectors = copies(3)
    save_vectors(tmp_path / "v", vectors)
    found = join_store(tmp_path / "v", tmp_path / "p", 0.6, Serial(), memory=SMALL)
    pairs = BruteForce(tau=0.6)(Corpus(vectors))
    write_pairs(tmp_path / "memory.parquet", vectors.doc_ids, pairs.chunks(), pairs.overlap)
    for budget in (2_000, 12_000, LARGE):
        write_pairs(tmp_path / "disk.parquet", vectors.doc_ids, found.within(budget).chunks(), found.overlap)
        assert (tmp_path / "disk.parquet").read_bytes() == (tmp_path / "memory.parquet").read_bytes()
    table = pq.read_table(tmp_path / "disk.parquet").to_pandas()
    assert table.equals(pairs.to_pandas(vectors.doc_ids).astype(table.dtypes.to_dict()))
    assert pq.ParquetFile(tmp_path / "disk.parquet").num_row_groups > 1


def test_a_join_goes_on_where_it_stopped(tmp_path):
    vectors = copies(4)
    save_vectors(tmp_path / "v", vectors)
    with pytest.raises(KeyboardInterrupt):
        join_store(tmp_path / "v", tmp_path / "p", 0.5, StopsAt(3), memory=SMALL)
    found = join_store(tmp_path / "v", tmp_path / "p", 0.5, Serial(), memory=SMALL)
    assert triples(found.load()) == triples(BruteForce(tau=0.5)(Corpus(vectors)))
    with pytest.raises(InputError, match="contains the pairs of another join"):
        join_store(tmp_path / "v", tmp_path / "p", 0.6, Serial(), memory=SMALL)
    save_vectors(tmp_path / "v", copies(5))
    with pytest.raises(InputError, match="contains the pairs of another join"):
        join_store(tmp_path / "v", tmp_path / "p", 0.5, Serial(), memory=SMALL)


def test_blocks_of_rows_fit_the_budget(tmp_path):
    save_vectors(tmp_path / "v", copies(6, n=200))
    indptr = open_vectors(tmp_path / "v").vectors.indptr
    edges = cut_rows(indptr, 3, 5_000, 64, 120)
    assert edges[0] == 3
    assert edges[-1] == 200
    size = 64 * np.diff(indptr[edges]) + 120 * np.diff(edges)
    assert size.max() <= 5_000
    assert (size[:-1] + 64 * np.diff(indptr)[edges[1:-1]] + 120 > 5_000).all()
    assert cut_rows(indptr, 0, 1, 64, 120).tolist() == list(range(201))


def test_nothing_to_join(tmp_path):
    save_vectors(tmp_path / "v", Vectors.from_csr([0, 0, 0], []))
    found = join_store(tmp_path / "v", tmp_path / "p", 0.5, Serial(), memory=SMALL)
    assert len(found.load()) == 0
    assert len(cluster(found.within(SMALL)).sizes) == 2
    assert isinstance(found, PairFiles)
