"""The join on disk: the pairs of the join in memory for all collections, budgets and thresholds, in even tasks."""

import tracemalloc
from collections import Counter
from itertools import count, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.join import self_join as naive_join
from naive.prefix_partitions import partition_keys, rarity, required, shared
from stores import Elsewhere, StopsAt, edited_copies, save_vectors, segments_of
from strategies import TAUS, borderline_collections, collections, examples, is_long, triples, vectors_of

from spotsigs.clustering.clusters import cluster
from spotsigs.engines import Serial
from spotsigs.errors import InputError
from spotsigs.matching.bounds import prefixes, rarity_classes
from spotsigs.matching.brute_force import BruteForce
from spotsigs.matching.prefix_join import self_join
from spotsigs.outofcore import prefix_partition_tasks as tasks
from spotsigs.outofcore.prefix_partition_join import join_store
from spotsigs.outofcore.prefix_partition_tasks import BlockTask, JoinJob, cut_rows
from spotsigs.outofcore.vectorize import build_vectors
from spotsigs.records import Corpus, Signatures, Vectors
from spotsigs.signatures.idf import IdfFilter
from spotsigs.storage.store import open_vectors

SMALL = 20_000
LARGE = 10**9
BUDGETS = st.sampled_from([1_500, 6_000, 10**8])
KEYS = st.sampled_from([None, 1, 3, 1024])
"""Number of random partition keys of the signatures; None for hashes of the signatures."""


def joined(folder, rows, tau, memory, new_from=0, engine=None, key_of=None):
    save_vectors(folder / "v", rows, key_of=key_of)
    return join_store(folder / "v", folder / "p", tau, engine or Serial(), memory=memory, new_from=new_from)


@pytest.fixture(autouse=True)
def many_parts(monkeypatch):
    """Make parts as soon as there is anything to put into them, and split every task."""
    monkeypatch.setattr("spotsigs.outofcore.prefix_partition_tasks.LEAST_TOKENS", 16)
    monkeypatch.setattr("spotsigs.outofcore.prefix_partition_tasks.LEAST_WORK", 1)


def check(tmp_path_factory, documents, tau, memory, new_from, partition_keys):
    rows = vectors_of(documents)
    key_of = partition_keys and np.random.default_rng(partition_keys).integers(0, partition_keys, rows.n_signatures)
    pairs = joined(tmp_path_factory.mktemp("j"), rows, tau, memory, new_from, key_of=key_of)
    expected = naive_join(documents, tau)
    assert triples(pairs.load()) == [pair for pair in expected if pair[1] >= new_from]


@examples(20, long=400)
@given(
    documents=collections(largest=20), tau=st.sampled_from([0.01, 0.1, *TAUS]), memory=BUDGETS,
    new_from=st.integers(0, 9), partition_keys=KEYS,
)  # fmt: skip
def test_pairs_are_those_of_every_two_rows(tmp_path_factory, documents, tau, memory, new_from, partition_keys):
    check(tmp_path_factory, documents, tau, memory, new_from, partition_keys)


@examples(20, long=400)
@given(drawn=borderline_collections(), memory=BUDGETS, partition_keys=KEYS)
def test_pairs_at_the_threshold_are_found(tmp_path_factory, drawn, memory, partition_keys):
    check(tmp_path_factory, *drawn, memory, 0, partition_keys)


@examples(2, long=60)
@given(
    seed=st.integers(0, 10**6), tau=st.floats(0.02, 1.0), memory=st.sampled_from([150_000, 10**8]),
    new_from=st.sampled_from([0, 0, 90]),
)  # fmt: skip
def test_pairs_are_those_of_the_join_in_memory(tmp_path_factory, seed, tau, memory, new_from):
    """Rows so long that several shared units are required, skewed, with copies, in some forty parts."""
    tasks.LEAST_TOKENS = 250
    rng = np.random.default_rng(seed)
    signatures = rng.zipf(1.3, 20_000) % 3000
    documents = []
    for _ in range(120):
        if documents and rng.random() < 0.5:
            row = Counter(documents[rng.integers(len(documents))])
            for _ in range(rng.integers(0, 12)):
                row[int(rng.integers(3000))] += 1
        else:
            row = Counter(rng.choice(signatures, rng.integers(1, 250)).tolist())
        documents.append(row)
    rows = vectors_of(documents)
    actual = joined(tmp_path_factory.mktemp("j"), rows, tau, memory, new_from)
    assert triples(actual.load()) == [pair for pair in triples(self_join(rows, tau)) if pair[1] >= new_from]


@examples(15, long=400)
@given(documents=collections(largest=20), tau=st.sampled_from(TAUS), memory=BUDGETS)
def test_rows_share_as_many_prefix_tokens_as_the_proof_requires(tmp_path_factory, documents, tau, memory):
    """Pairs share at least what the reference implementation counts, and similar ones enough to be compared."""
    folder = tmp_path_factory.mktemp("j")
    distinct = [Counter(dict(row)) for row in {tuple(sorted(document.items())) for document in documents} if row]
    distinct.sort(key=lambda row: sum(row.values()))
    rows = vectors_of(distinct)
    save_vectors(folder / "v", rows)
    paths = {"store": str(folder / "v"), "checksum": str(folder), "folder": str(folder / "p")}
    job = JoinJob(**paths, tau=tau, new_from=0, memory=memory)
    spans = tasks.make_plan(job, rows.indptr, rows.lengths)
    if not spans:
        return
    blocks = [BlockTask(job, k) for k in range(spans)]
    parts = tasks.cut_parts(job, sum(map(tasks.sample, blocks)))
    tokens = sum(tasks.shuffle(block)["tokens"] for block in blocks)
    searches, results = tasks.first_candidate_tasks(job, parts, tokens), []
    total = Counter()
    while len(results) < len(searches):
        first = len(results)
        results += map(tasks.find_candidates, searches[first:])
        searches += tasks.further_candidate_tasks(searches, results, first)
    for task in searches:
        left = job.result("candidates", task.number)
        for pair, n in zip(
            left.array("pairs", np.uint64).tolist(), left.array("shared", np.uint8).tolist(), strict=True
        ):
            total[pair >> 32, pair & 0xFFFFFFFF] += n
    similar = naive_join(distinct, tau)
    for pair, n in shared(distinct, tau).items():
        if pair in total or pair in {(i, j) for i, j, _ in similar}:  # others differ in their sketches
            assert total[pair] >= n
    assert all(total[i, j] >= required(sum(distinct[i].values()), tau) for i, j, _ in similar)


def test_classes_and_bounds_are_those_of_their_definitions():
    frequencies = np.arange(5000)
    assert rarity_classes(frequencies).tolist() == [rarity(f) for f in frequencies.tolist()]
    assert rarity_classes(np.array([2**31, 2**62])).tolist() == [61, 63]
    for tau in (*TAUS, 0.07, 0.999):
        lengths = np.arange(1, 150)
        assert prefixes(tau, lengths, 255)[1].tolist() == [required(n, tau) for n in lengths.tolist()]
        assert (np.diff(prefixes(tau, np.arange(1, 10**5), 255)[1]) >= 0).all()


def some(rng, low, high, n):
    """Draw about n distinct signatures; choosing without replacement would shuffle them all."""
    return np.unique(rng.integers(low, high, n))


def csr(rows):
    return Vectors.from_csr(np.cumsum([0, *map(len, rows)]), np.concatenate(rows))


def one_signature_in_half_of_the_rows(rng):
    """Short rows, so that it is in their prefixes."""
    rows = [some(rng, 1, 30_000, rng.integers(2, 6)) for _ in range(6000)]
    return csr([np.append(row, 0) if r % 2 else row for r, row in enumerate(rows)])


def many_copies_of_one_page(rng):
    page = rng.choice(30_000, 40, replace=False)
    rows = [page if r % 3 == 0 else some(rng, 0, 30_000, 40) for r in range(2000)]
    return csr(rows)


def one_site_with_a_third_of_the_pages(rng):
    """A template of 12 signatures from 60, and other text on each page."""
    rows = [some(rng, 60, 30_000, rng.integers(10, 40)) for _ in range(4000)]
    return csr([np.append(rng.permutation(60)[:12], row) if r % 10 < 3 else row for r, row in enumerate(rows)])


def one_length_and_few_signatures(rng):
    few = [rng.choice(300, 40, replace=False) for _ in range(1300)]
    return csr([*few, *(40 * np.arange(300, 340) + rng.integers(0, 40, 40) for _ in range(700))])


def the_first_document_has_most_signatures(rng):
    """And has them before all others, whose tokens have its partition keys."""
    return csr([rng.permutation(30_000)[:25_000], *(some(rng, 0, 30_000, 40) for _ in range(2000))])


SKEWS = (
    one_signature_in_half_of_the_rows, many_copies_of_one_page, one_site_with_a_third_of_the_pages,
    one_length_and_few_signatures, the_first_document_has_most_signatures,
)  # fmt: skip


def keys_of(rows):
    keys = partition_keys(rows.ids[a:b].tolist() for a, b in pairwise(rows.indptr.tolist()))
    return [keys.get(signature, 0) for signature in range(rows.n_signatures)]


WHERE = {"first document": keys_of, "one key": lambda rows: np.zeros(rows.n_signatures)}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("make", SKEWS)
def test_no_task_has_three_times_the_mean(make, where, tmp_path, monkeypatch):
    monkeypatch.setattr("spotsigs.outofcore.prefix_partition_tasks.LEAST_WORK", 5000)
    monkeypatch.setattr("spotsigs.outofcore.prefix_partition_tasks.LEAST_TOKENS", 2500)
    rows = make(np.random.default_rng(5))
    actual = joined(tmp_path, rows, 0.5, 2 * 10**6, key_of=WHERE[where](rows))
    loaded, expected = actual.load(), self_join(rows, 0.5)
    for column in ("i", "j", "similarity"):
        np.testing.assert_array_equal(getattr(loaded, column), getattr(expected, column))
    assert actual.counters["searches"] > 3
    assert actual.counters["work_most"] <= 3 * actual.counters["work_mean"]
    assert actual.counters["visits_most"] <= max(3 * actual.counters["work_mean"], 5000)


def test_a_join_may_stop_at_any_task(tmp_path):
    rng = np.random.default_rng(3)
    rows = csr([np.sort(rng.choice(16, 8, replace=False)) for _ in range(30)])
    expected = triples(joined(tmp_path, rows, 0.5, 8_000).load())
    files = {p.name: p.read_bytes() for p in (tmp_path / "p").rglob("*.npy")}
    assert len(expected) > 3
    stops, step = 0, 1 if is_long() else 5
    for last in count(step=step):
        folder = tmp_path / f"{last}"
        try:
            join_store(tmp_path / "v", folder, 0.5, StopsAt(last), memory=8_000)
        except KeyboardInterrupt:
            stops += 1
            join_store(tmp_path / "v", folder, 0.5, Serial(), memory=8_000)
        else:
            break
        assert {p.name: p.read_bytes() for p in folder.rglob("*.npy")} == files
    assert stops > 15 // step
    names = {p.name for p in (tmp_path / "p").iterdir()}
    assert not names & {"plan", "parts", "shuffled", "candidates", "verified"}


def test_near_duplicates_share_a_partition(tmp_path, monkeypatch):
    """Each of 300 stories three times, with a tenth of it changed, and signatures of all: 40 parts."""
    monkeypatch.setattr("spotsigs.outofcore.prefix_partition_tasks.LEAST_TOKENS", 300)
    rng, rows = np.random.default_rng(3), []
    stories = np.arange(300 * 40).reshape(300, 40)
    for story in stories[np.tile(rng.permutation(300), 3)]:
        rows.append(np.concatenate([story[rng.random(40) < 0.9], rng.integers(20_000, 20_100, 4)]))
    rows = csr([np.unique(row) for row in rows])
    candidates_of = {}
    for name, key_of in (("partition_keys", keys_of(rows)), ("numbers", None)):
        (tmp_path / name).mkdir()
        pairs = joined(tmp_path / name, rows, 0.5, 10**8, key_of=key_of)
        assert len(pairs) >= 900
        assert pairs.counters["parts"] > 30
        candidates_of[name] = pairs.counters["candidates"] / len(pairs)
    assert candidates_of["partition_keys"] < 2
    assert candidates_of["numbers"] > 3


@pytest.mark.long
def test_the_calling_process_stores_none_of_the_rows(tmp_path, monkeypatch):
    """Many more rows in about as many tasks: a few numbers for each document, and none of its six signatures."""
    monkeypatch.setattr("spotsigs.outofcore.prefix_partition_tasks.LEAST_TOKENS", 10**7)
    monkeypatch.setattr("spotsigs.outofcore.prefix_partition_tasks.LEAST_WORK", 10**8)
    monkeypatch.setattr("spotsigs.storage.store.TICK", 0)  # so that the first join has checked the store
    peaks, sizes = [], (10_000, 400_000)
    for n in sizes:
        ids = np.random.default_rng(1).integers(0, 10**6, 6 * n)
        folder = tmp_path / str(n)
        folder.mkdir()
        save_vectors(folder / "v", Vectors.from_csr(np.arange(0, 6 * n + 1, 6), ids))
        join_store(folder / "v", folder / "warm", 0.95, Elsewhere(), memory=n * 400)
        tracemalloc.start()
        actual = join_store(folder / "v", folder / "p", 0.9, Elsewhere(), memory=n * 400)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert actual.counters["tasks"] < 100
    assert np.diff(peaks) / np.diff(sizes) < 24 < 6 * 8


def test_more_pairs_than_can_be_listed_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("spotsigs.records.MOST_PAIRS", 100)
    with pytest.raises(InputError, match="105 pairs are similar, more than the 100 that can be listed"):
        joined(tmp_path, csr([np.arange(5)] * 15), 0.5, 10**6)


def test_pairs_beyond_the_budget_pass_in_spans_of_rows(tmp_path, monkeypatch):
    """Rows of one length, each like all others, of which some are copies: no slice of pairs fits."""
    rng = np.random.default_rng(3)
    monkeypatch.setattr(tasks, "PIECE", 100)
    rows = [np.sort(rng.choice(22, 20, replace=False)) for _ in range(150)]
    expected = triples(self_join(csr([*rows, *rows[:20]]), 0.7))
    pairs = joined(tmp_path, csr([*rows, *rows[:20]]), 0.7, 100_000)
    assert triples(pairs.load()) == expected
    assert len(pairs) > 10_000
    sizes = [len(np.load(folder / "i.npy")) for folder in pairs.folders]
    assert len(sizes) > 5
    assert max(sizes) <= 2**10


@pytest.mark.parametrize("changed", ["tau", "vectors"])
def test_pairs_of_another_join_are_refused(tmp_path, changed):
    joined(tmp_path, edited_copies(4), 0.5, SMALL)
    with pytest.raises(InputError, match="contains the pairs of another join"):
        joined(tmp_path, edited_copies(5 if changed == "vectors" else 4), 0.6 if changed == "tau" else 0.5, SMALL)


def signatures_of(vectors, rows):
    part = vectors.take(np.asarray(rows, dtype=np.int64))
    hashes = (part.ids.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    by_row = (a + np.argsort(hashes[a:b]) for a, b in pairwise(part.indptr))
    order = np.concatenate([np.empty(0, np.int64), *by_row])
    return Signatures(tuple(part.doc_ids), (None,) * len(rows), part.indptr, hashes[order], part.counts[order])


@pytest.mark.parametrize("seed", range(2))
def test_added_documents_are_filtered_with_the_whole(tmp_path, seed):
    vectors = edited_copies(seed)
    chosen = IdfFilter(idf_min=0.3, idf_max=0.9)
    old = segments_of([signatures_of(vectors, range(50))], tmp_path / "old")
    new = segments_of([signatures_of(vectors, range(50, 80))], tmp_path / "new")
    build_vectors(tmp_path / "v", old + new, chosen, memory=LARGE)
    actual = join_store(tmp_path / "v", tmp_path / "p", 0.4, Serial(), memory=SMALL, new_from=50)
    expected = BruteForce(tau=0.4)(Corpus(chosen(signatures_of(vectors, range(80)))))
    assert triples(actual.load()) == [t for t in triples(expected) if t[1] >= 50]
    assert len(actual) > 0


def test_blocks_of_rows_fit_the_budget(tmp_path):
    save_vectors(tmp_path / "v", edited_copies(6, n=200))
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
    actual = join_store(tmp_path / "v", tmp_path / "p", 0.5, Serial(), memory=SMALL)
    assert len(actual.load()) == 0
    assert len(cluster(actual.within(SMALL)).sizes) == 2
