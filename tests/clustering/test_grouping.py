"""Clusters of pairs on disk are those of the same pairs in memory, however they are cut and wherever tasks run."""

from dataclasses import fields

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from spotsigs.clustering.clusters import ClusterMethod
from spotsigs.clustering.grouping import group
from spotsigs.engines import Processes, Serial
from spotsigs.outofcore import cluster_tasks as grouping
from spotsigs.outofcore.prefix_partition_join import PairFiles
from spotsigs.records import Pairs
from spotsigs.storage.store import writing

LARGE = 10**9


def on_disk(folder, pairs, files, rng):
    """Deal pairs out to files, as the tasks of a join leave them: each sorted."""
    which = rng.integers(0, files, len(pairs))
    folders = [folder / f"{number:08d}" for number in range(files)]
    for number, one in enumerate(folders):
        own = which == number
        with writing(one, "pairs") as out:
            out.put("i", pairs.i[own].astype(np.int64))
            out.put("j", pairs.j[own].astype(np.int64))
            out.put("similarity", pairs.similarity[own])
            out.facts = {"pairs": int(own.sum())}
    return PairFiles(tuple(folders), pairs.n)


def random_pairs(rng, n, m):
    i, j = rng.integers(0, n, (2, m))
    some = i != j
    i, j = np.minimum(i, j)[some], np.maximum(i, j)[some]
    return Pairs.build(i, j, (1 + (i * 7 + j * 13) % 9) / 10, n)


def assert_equal(one, other):
    for record in fields(one):
        for column in fields(getattr(one, record.name)):
            ours, theirs = (getattr(getattr(groups, record.name), column.name) for groups in (one, other))
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)


@examples(15, long=400)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 60),
    m=st.integers(0, 90),
    files=st.integers(1, 9),
    memory=st.sampled_from([500, 3_000, 20_000, LARGE]),
    forests=st.integers(2, 4),
    method=st.sampled_from(ClusterMethod),
    ordered=st.booleans(),
)
def test_groups_equal_those_in_memory(tmp_path_factory, seed, n, m, files, memory, forests, method, ordered):
    rng = np.random.default_rng(seed)
    pairs = random_pairs(rng, n, m)
    priority = rng.integers(0, 5, n) if ordered else None
    folder = tmp_path_factory.mktemp("groups")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "FORESTS", forests)
        found = grouping.group_files(
            on_disk(folder, pairs, files, rng), folder, Serial(), memory=memory, clusters=method, priority=priority
        )
    assert_equal(found, group(pairs, clusters=method, priority=priority))
    if method is ClusterMethod.components:
        sets = {frozenset(np.flatnonzero(found.clusters.labels == label).tolist()) for label in found.clusters.labels}
        assert sets == set(map(frozenset, naive.components(n, list(zip(pairs.i, pairs.j, strict=True)))))


class Counting:
    """An engine that counts the tasks of each kind, and stops before one of them."""

    processes = 0

    def __init__(self, stop=None):
        self.tasks, self.stop = [], stop

    def map(self, function, tasks):
        for task in tasks:
            if len(self.tasks) == self.stop:
                raise KeyboardInterrupt
            self.tasks.append(function.__name__)
            yield function(task)


def test_what_is_stopped_goes_on_and_what_is_done_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(grouping, "FORESTS", 2)
    rng = np.random.default_rng(5)
    pairs = random_pairs(rng, 50, 80)
    files, expected = on_disk(tmp_path, pairs, 8, rng), group(pairs)

    def found(engine):
        return grouping.group_files(files, tmp_path / "store", engine, memory=2000)

    for stop in (0, 4, 8, 20):
        with pytest.raises(KeyboardInterrupt):
            found(Counting(stop))
    whole = Counting()
    assert_equal(found(whole), expected)
    kinds = ("unite", "merge", "sort_out", "judge", "collect")
    assert list(dict.fromkeys(whole.tasks)) == list(kinds)
    assert whole.tasks.count("unite") == whole.tasks.count("sort_out") > 4
    assert whole.tasks.count("merge") > 3  # in two rounds at least
    assert min(whole.tasks.count(kind) for kind in ("judge", "collect")) > 1
    again = Counting(0)
    assert_equal(found(again), expected)
    [folder] = (tmp_path / "store").iterdir()
    assert [path.name for path in folder.iterdir()] == ["groups"]
    (folder / "groups" / "heads.npy").write_bytes(b"damaged")
    assert_equal(found(Serial()), expected)


def test_few_pairs_are_grouped_by_two_tasks_on_any_engine(tmp_path):
    rng = np.random.default_rng(6)
    pairs = random_pairs(rng, 50, 80)
    files = on_disk(tmp_path, pairs, 3, rng)
    engine = Counting()
    assert_equal(grouping.group_files(files, tmp_path / "few", engine, memory=LARGE), group(pairs))
    assert engine.tasks == ["judge", "collect"]
    many = grouping.group_files(files, tmp_path / "many", Processes(workers=2), memory=5000)
    assert_equal(many, group(pairs))


def test_a_part_larger_than_the_budget_passes_in_pieces(tmp_path):
    """All in one component, so that one part has all pairs, and its task cannot hold them."""
    rng = np.random.default_rng(7)
    near = [(k, k + step) for k in range(200) for step in (1, 2, 3)]
    i, j = np.array(near).T
    pairs = Pairs.build(i, j, rng.random(len(i)).round(2), 203)
    for method in ClusterMethod:
        priority = rng.integers(0, 9, 203)
        files = on_disk(tmp_path / method.value, pairs, 3, rng)
        found = grouping.group_files(
            files, tmp_path / "store", Serial(), memory=60_000, clusters=method, priority=priority
        )
        assert_equal(found, group(pairs, clusters=method, priority=priority))
