"""The join on disk: the pairs of brute force for all collections, budgets and thresholds, in blocks of rows."""

import tracemalloc
from collections import Counter
from itertools import count, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import prefixes as naive_prefixes
from naive.join import self_join as naive_join
from stores import Elsewhere, StopsAt, edited_copies, save_vectors, segments_of
from strategies import TAUS, borderline_collections, collections, examples, is_long, triples, vectors_of

from spotsigs.clustering.clusters import cluster
from spotsigs.errors import InputError
from spotsigs.matching.bounds import rarity_classes
from spotsigs.matching.brute_force import BruteForce
from spotsigs.matching.join_driver import Stages, rows_with_partners
from spotsigs.matching.prefix_index import bounds_of
from spotsigs.matching.prefix_join import self_join
from spotsigs.outofcore import pair_files
from spotsigs.outofcore.block_join import cut_blocks, join_store, pairs_of_blocks
from spotsigs.outofcore.folded_rows import FoldedFile, RowJob, fold, read_folded
from spotsigs.outofcore.vectorize import build_vectors
from spotsigs.records import Corpus, DocumentColumns, Signatures, Vectors
from spotsigs.signatures.idf import IdfFilter
from spotsigs.workers.engines import Serial

SMALL = 20_000
LARGE = 10**9
BUDGETS = st.sampled_from([4_000, 10_000, 10**8])


STEPS = st.sampled_from([None, 1, 2**30, 2**31 + 11])
"""Steps between ids of 64 bits, in which they are up to 2**40; of a power of two, all share a bit of an index."""


def joined(folder, rows, tau, memory, new_from=0, engine=None, step=None):
    save_vectors(folder / "v", rows, step=step)
    return join_store(folder / "v", folder / "p", tau, engine or Serial(), memory=memory, new_from=new_from)


def check(tmp_path_factory, documents, tau, memory, new_from, step=None):
    pairs = joined(tmp_path_factory.mktemp("j"), vectors_of(documents), tau, memory, new_from, step=step)
    expected = naive_join(documents, tau)
    assert triples(pairs) == [pair for pair in expected if pair[1] >= new_from]


@examples(20, long=400)
@given(
    documents=collections(largest=20), tau=st.sampled_from([0.01, 0.1, *TAUS]), memory=BUDGETS,
    new_from=st.integers(0, 9), step=STEPS,
)  # fmt: skip
def test_pairs_are_those_of_every_two_rows(tmp_path_factory, documents, tau, memory, new_from, step):
    check(tmp_path_factory, documents, tau, memory, new_from, step)


@examples(20, long=400)
@given(drawn=borderline_collections(), memory=BUDGETS)
def test_pairs_at_the_threshold_are_found(tmp_path_factory, drawn, memory):
    check(tmp_path_factory, *drawn, memory, 0)


@examples(2, long=60)
@given(
    seed=st.integers(0, 10**6), tau=st.floats(0.02, 1.0), memory=st.sampled_from([150_000, 10**8]),
    new_from=st.sampled_from([0, 0, 90]), step=st.sampled_from([None, 2**28, 2**28 + 3]),
)  # fmt: skip
def test_pairs_are_those_of_the_join_in_memory(tmp_path_factory, seed, tau, memory, new_from, step):
    """Rows so long that several shared units are required, skewed, with copies."""
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
    actual = joined(tmp_path_factory.mktemp("j"), rows, tau, memory, new_from, step=step)
    assert triples(actual) == [pair for pair in triples(self_join(rows, tau)) if pair[1] >= new_from]


def test_classes_are_those_of_their_definition():
    frequencies = np.arange(5000)
    assert rarity_classes(frequencies).tolist() == [rarity(f) for f in frequencies.tolist()]
    assert rarity_classes(np.array([2**31, 2**62])).tolist() == [61, 63]


def rarity(frequency):
    """Return 0 for at most one row, else two classes to each doubling."""
    if frequency <= 1:
        return 0
    doublings = frequency.bit_length() - 1
    return min(2 * doublings - 1 + (frequency >= 1.5 * 2**doublings), 63)


def folded(folder, rows, tau, memory, new_from=0):
    """Return the files of folded rows, and the rows of each."""
    save_vectors(folder / "v", rows)
    paths = {"store": str(folder / "v"), "folder": str(folder / "p")}
    job = RowJob(**paths, checksum="", tau=tau, new_from=new_from, memory=memory)
    files = fold(job, Serial())
    return files, [read_folded(job, file) for file in files]


@examples(30, long=400)
@given(documents=collections(largest=20), tau=st.sampled_from([0.1, *TAUS]), memory=BUDGETS, new_from=st.integers(0, 9))
def test_rows_are_folded_once(tmp_path_factory, documents, tau, memory, new_from):
    """Rows that share enough with all others, without what no other row has, with the prefix by its definition."""
    frequency = Counter(s for document in documents for s in document)
    found = {}
    for file, part in zip(
        *folded(tmp_path_factory.mktemp("j"), vectors_of(documents), tau, memory, new_from), strict=True
    ):
        rows, before = part.rows, None
        assert rows.lengths.tolist() == sorted(rows.lengths.tolist())
        assert (rows.lengths[0], rows.lengths[-1], len(rows.ids)) == (file.shortest, file.longest, file.entries)
        for r, d in enumerate(part.documents.tolist()):
            span = slice(rows.indptr[r], rows.indptr[r + 1])
            shared = dict(zip(rows.ids[span].tolist(), rows.counts[span].tolist(), strict=True))
            assert shared == {s: count for s, count in documents[d].items() if frequency[s] > 1}
            length, tokens = sum(documents[d].values()), rows.tokens[rows.starts[r] : rows.starts[r + 1]].tolist()
            size = bounds_of(np.array([length]), tau)[2][0]
            expected = naive_prefixes.prefix(documents[d], {s: rarity(f) for s, f in frequency.items()}, size)
            assert [(t >> 24, t >> 8 & 0xFFFF, t & 0xFF) for t in tokens] == expected
            assert file.new == (d >= new_from)
            assert part.repeated[r] == ((length, shared) == before)
            before, found[d] = (length, shared), shared
    for d, document in enumerate(documents):
        if d not in found:
            assert (
                sum(n for s, n in document.items() if frequency[s] > 1) / max(sum(document.values()), 1) < tau
                or not document
            )


@given(
    lengths=st.lists(st.integers(0, 60), max_size=30).map(sorted), tau=st.sampled_from(TAUS),
    new=st.lists(st.booleans(), min_size=30, max_size=30), memory=st.sampled_from([600, 2_000, 10**6]),
)  # fmt: skip
def test_every_two_rows_that_can_be_similar_are_in_one_pair_of_blocks(lengths, tau, new, memory):
    n = len(lengths)
    files = [FoldedFile(k, new[k], 1, length, length, length, length) for k, length in enumerate(lengths) if length]
    met = Counter()
    for a, b in pairs_of_blocks(cut_blocks(files, memory=memory, bytes_an_entry=8), tau):
        one, other = ([file.number for file in block.files] for block in (a, b))
        met.update({(min(x, y), max(x, y)) for x in one for y in other if x != y})
    for x in range(n):
        for y in range(x + 1, n):
            wanted = new[x] or new[y]
            if lengths[x] and wanted and lengths[x] / lengths[y] >= tau:
                assert met[x, y] == 1
            elif not wanted:
                assert met[x, y] == 0


@examples(40)
@given(left=collections(), right=collections(), tau=st.sampled_from([0.1, *TAUS]))
def test_rows_that_share_too_little_with_the_other_side_are_dropped(left, right, tau):
    a, b = vectors_of(left), vectors_of(right)
    with Stages(2) as stages:
        kept = rows_with_partners(a, b, tau, stages).tolist()
    union = {s for document in right for s in document}
    for r, document in enumerate(left):
        length, shared = sum(document.values()), sum(n for s, n in document.items() if s in union)
        partner = next((m for m in range(1, length + 1) if m / length >= tau), 0)
        enough = length and any(o / (length + partner - o) >= tau for o in range(min(shared, partner) + 1))
        assert (r in kept) >= bool(enough)
        assert r not in kept or length


def csr(rows):
    return Vectors.from_csr(np.cumsum([0, *map(len, rows)]), np.concatenate(rows))


def written(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.npy")}


def test_a_join_may_stop_at_any_task(tmp_path):
    rng = np.random.default_rng(3)
    rows = csr([np.sort(rng.choice(16, 8, replace=False)) for _ in range(30)])
    expected = triples(joined(tmp_path, rows, 0.5, 4_000))
    files = written(tmp_path / "p")
    assert len(expected) > 3
    stops, step = 0, 1 if is_long() else 5
    for last in count(step=step):
        folder = tmp_path / f"{last}"
        try:
            join_store(tmp_path / "v", folder, 0.5, StopsAt(last), memory=4_000)
        except KeyboardInterrupt:
            stops += 1
            join_store(tmp_path / "v", folder, 0.5, Serial(), memory=4_000)
        else:
            break
        assert written(folder) == files
    assert stops > 15 // step
    names = {p.name for p in (tmp_path / "p").iterdir()}
    assert names == {"job.json", "pairs"}


@pytest.mark.long
def test_the_calling_process_stores_none_of_the_rows(tmp_path, monkeypatch):
    """Many more rows in about as many tasks: a few numbers for each document, and none of its six signatures."""
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
    rows = [np.sort(rng.choice(22, 20, replace=False)) for _ in range(150)]
    expected = triples(self_join(csr([*rows, *rows[:20]]), 0.7))
    sizes, write_run = [], pair_files.write_run

    def recorded(path, *columns):
        sizes.append(len(columns[0]))
        write_run(path, *columns)

    monkeypatch.setattr(pair_files, "write_run", recorded)
    pairs = joined(tmp_path, csr([*rows, *rows[:20]]), 0.7, 100_000)
    assert triples(pairs) == expected
    assert len(pairs) > 10_000
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
    return Signatures(DocumentColumns(tuple(part.doc_ids)), part.indptr, hashes[order], part.counts[order])


@pytest.mark.parametrize("seed", range(2))
def test_added_documents_are_filtered_with_the_whole(tmp_path, seed):
    vectors = edited_copies(seed)
    chosen = IdfFilter(idf_min=0.3, idf_max=0.9)
    old = segments_of([signatures_of(vectors, range(50))], tmp_path / "old")
    new = segments_of([signatures_of(vectors, range(50, 80))], tmp_path / "new")
    build_vectors(tmp_path / "v", old + new, chosen, memory=LARGE)
    actual = join_store(tmp_path / "v", tmp_path / "p", 0.4, Serial(), memory=SMALL, new_from=50)
    expected = BruteForce(tau=0.4)(Corpus(chosen(signatures_of(vectors, range(80)))))
    assert triples(actual) == [t for t in triples(expected) if t[1] >= 50]
    assert len(actual) > 0


def test_nothing_to_join(tmp_path):
    save_vectors(tmp_path / "v", Vectors.from_csr([0, 0, 0], []))
    actual = join_store(tmp_path / "v", tmp_path / "p", 0.5, Serial(), memory=SMALL)
    assert len(actual) == 0
    assert len(cluster(actual).sizes) == 2
