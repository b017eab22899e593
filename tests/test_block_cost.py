"""Tasks of the join on disk are split by measured work: the same pairs, whatever the split."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.blocks import visits as naive_visits
from strategies import examples
from test_blocks import copies, triples

from spotsigs.crawl import block_cost
from spotsigs.crawl.block_join import BlockTask, join_blocks, join_store
from spotsigs.disk.store import opened, save_vectors
from spotsigs.engines import Processes, Serial
from spotsigs.matching.brute_force import BruteForce
from spotsigs.matching.tight import join, self_join
from spotsigs.records import Corpus, Vectors


def by_length(vectors):
    return vectors.take(np.argsort(vectors.lengths, kind="stable"))


def crowd(n, length=30, signatures=40, seed=1):
    """Return rows of one length from a small vocabulary: each shares signatures of its prefix with most others."""
    rng = np.random.default_rng(seed)
    ids = np.concatenate([rng.permutation(signatures)[:length] for _ in range(n)])
    return Vectors.from_csr(np.arange(0, length * n + 1, length), ids)


@examples(25)
@given(seed=st.integers(0, 10**6), tau=st.sampled_from([0.2, 0.44, 0.8, 1.0]), own=st.booleans())
def test_visits_equal_a_slow_count(seed, tau, own):
    rows = by_length(copies(seed, n=40))
    if own:
        assert block_cost.visits(rows, None, tau).tolist() == naive_visits(rows, None, tau)
    else:
        a, b = rows.take(np.arange(17)), rows.take(np.arange(17, 40))
        assert block_cost.visits(a, b, tau).tolist() == naive_visits(a, b, tau)


@pytest.mark.parametrize("tau", [0.3, 0.5, 0.8])
def test_the_bound_is_above_what_a_join_counts(tau):
    for rows in (crowd(400), by_length(copies(3, n=400, signatures=200)), crowd(300, length=120, signatures=150)):
        pairs = self_join(rows, tau, threads=1)
        work = block_cost.counted(pairs.counters, 0, float(rows.lengths.mean()))
        assert block_cost.bound(rows, None, tau).sum() >= work
        half = len(rows) // 2
        a, b = rows.take(np.arange(half)), rows.take(np.arange(half, len(rows)))
        found = join(a, b, tau, threads=1)
        work = block_cost.counted(found.counters, 0, float(a.lengths.mean()))
        assert block_cost.bound(a, b, tau).sum() >= work


@given(work=st.lists(st.integers(0, 1000), min_size=1, max_size=60), parts=st.integers(1, 20))
def test_cuts_cover_all_rows_once(work, parts):
    edges = block_cost.cuts(np.array(work), parts)
    assert (edges[0], edges[-1]) == (0, len(work))
    assert edges == sorted(set(edges))
    assert len(edges) - 1 <= parts
    largest = max(sum(work[a:b]) for a, b in pairwise(edges))
    assert largest <= sum(work) / parts + max(work) + 1e-6


def split_everything(monkeypatch):
    """Let tasks be split as soon as they have a few operations to do, however small their blocks."""
    monkeypatch.setattr("spotsigs.crawl.block_cost.SHARE", 0)


@examples(8)
@given(
    seed=st.integers(0, 10**6),
    tau=st.sampled_from([0.2, 0.44, 0.8, 1.0]),
    memory=st.sampled_from([20_000, 10**9]),
    most=st.sampled_from([30, 300, 3000]),
    new_from=st.sampled_from([0, 0, 40, 70]),
)
def test_split_tasks_give_the_pairs_of_one_join(tmp_path_factory, seed, tau, memory, most, new_from):
    folder = tmp_path_factory.mktemp("split")
    vectors = copies(seed)
    save_vectors(folder / "v", vectors)
    with pytest.MonkeyPatch.context() as patch:
        split_everything(patch)
        found = join_store(folder / "v", folder / "p", tau, Serial(), memory=memory, new_from=new_from, most=most)
    expected = [t for t in triples(BruteForce(tau=tau)(Corpus(vectors))) if t[1] >= new_from]
    assert triples(found.load()) == expected
    assert len(found) == len(expected)
    assert found.counters["split"] > 0 or most > 30 or tau == 1
    assert found.counters["tasks"] == len(found.folders) - found.counters["split"]


@pytest.mark.compiled
def test_a_crowd_becomes_parts_of_about_equal_work(tmp_path):
    vectors = crowd(3000)
    save_vectors(tmp_path / "v", vectors)
    place = tmp_path / "v"
    [one] = join_store(place, tmp_path / "one", 0.7, Serial(), memory=10**9).folders
    most = 6 * 10**6
    assert most > block_cost.SHARE * block_cost.AN_ENTRY * len(vectors.ids)
    found = join_store(place, tmp_path / "parts", 0.7, Serial(), memory=10**9, most=most)
    parts = opened(found.folders[0], "pairs").facts["parts"]
    assert len(parts) == len(found.folders) - 1 > 4
    assert [stop for _, stop, _ in parts[:-1]] == [start for start, _, _ in parts[1:]]
    # what was measured on a sample is what the parts do
    done = []
    for start, stop, _ in parts:
        before, rows = vectors.take(np.arange(start)), vectors.take(np.arange(start, stop))
        whole = self_join(rows, 0.7, threads=1)
        counts = [block_cost.counted(whole.counters, len(whole), 30)]
        if start:
            cross = join(before, rows, 0.7, threads=1)
            counts.append(block_cost.counted(cross.counters, len(cross), 30))
        done.append(sum(counts))
    assert max(done) < 1.6 * np.mean(done)
    told = [work for _, _, work in parts]
    assert max(told) <= 1.2 * most
    assert 0.5 < sum(told) / sum(done) < 2
    assert triples(found.load()) == triples(self_join(vectors, 0.7))
    assert len(found) == opened(one, "pairs").facts["pairs"]


def test_cheap_tasks_stay_whole(tmp_path):
    save_vectors(tmp_path / "v", copies(1, n=300))
    found = join_store(tmp_path / "v", tmp_path / "p", 0.5, Serial(), memory=60_000)
    assert found.counters["split"] == 0
    assert found.counters["tasks"] == len(found.folders) > 3


def files(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("engine", [Serial(), Processes(workers=2)])
def test_parts_are_the_same_files_for_every_engine_and_a_stopped_join_goes_on(tmp_path, engine):
    save_vectors(tmp_path / "v", crowd(1500))
    arguments = {"memory": 10**9, "most": 3_500_000}
    first = join_store(tmp_path / "v", tmp_path / "p", 0.7, Serial(), **arguments)
    assert first.counters["split"] == 1
    content = files(tmp_path / "p")

    class Stops:
        processes = 0

        def __init__(self):
            self.done = 0

        def map(self, function, tasks):
            for task in tasks:
                if self.done == 3:
                    raise KeyboardInterrupt
                self.done += 1
                yield function(task)

    with pytest.raises(KeyboardInterrupt):
        join_store(tmp_path / "v", tmp_path / "q", 0.7, Stops(), **arguments)
    kept = {p: p.stat().st_mtime_ns for p in (tmp_path / "q").rglob("i.npy")}
    assert len(kept) == 3
    join_store(tmp_path / "v", tmp_path / "q", 0.7, engine, **arguments)
    assert {
        p.relative_to(tmp_path / "q"): p.read_bytes() for p in (tmp_path / "q").rglob("*") if p.is_file()
    } == content
    assert all(p.stat().st_mtime_ns == time for p, time in kept.items())


def test_dear_tasks_come_first(tmp_path):
    save_vectors(tmp_path / "v", crowd(1500))
    order = []

    class Watches:
        processes = 0

        def map(self, function, tasks):
            for task in tasks:
                order.append(task)
                yield function(task)

    found = join_store(tmp_path / "v", tmp_path / "p", 0.7, Watches(), memory=10**9, most=3_500_000)
    work = {
        f"{found.folders[0]}-{k:04d}": w for k, (_, _, w) in enumerate(opened(found.folders[0], "pairs").facts["parts"])
    }
    told = [work[task.target] for task in order[1:]]
    assert len(told) > 2
    assert told == sorted(told, reverse=True)
    assert isinstance(order[0], BlockTask)
    assert join_blocks(order[0])["parts"]
