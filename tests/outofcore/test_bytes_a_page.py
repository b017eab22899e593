"""Bytes of the calling process for each page once the pairs are on disk."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from stores import on_disk

from spotsigs.arrays import row_blocks as spans
from spotsigs.clustering.clusters import ClusterMethod, cluster, cohesion
from spotsigs.clustering.decisions import Keep, decide, priority
from spotsigs.clustering.tables import write_tables
from spotsigs.outofcore.pipeline import BYTES_A_RESULT
from spotsigs.records import Overlap, Pairs
from spotsigs.storage.exact_duplicates import ExactDuplicates
from spotsigs.storage.store import opened, writing

FEW, MANY = 100_000, 200_000
TASK = 20_000
"""Pairs of a run, and pairs that are read at a time."""


def pairs_on_disk(folder, i, j, n):
    pairs = on_disk(folder, Pairs(i, j, np.full(len(i), 0.5), n), -(-len(i) // TASK), np.random.default_rng(1), TASK)
    return replace(pairs, overlap=Overlap(np.ones(n, np.int32)))


def alone(n):
    return np.empty(0, np.int64), np.empty(0, np.int64)


def twos(n):
    return np.arange(0, n, 2), np.arange(1, n, 2)


def chain(n):
    return np.arange(n - 1), np.arange(1, n)


def peak_of(folder, make, method, keep, n):
    """Return the peak of bytes in use while pairs become clusters, decisions and tables."""
    folder.mkdir()
    pairs = pairs_on_disk(folder / "pairs", *make(n), n)
    with writing(folder / "vectors", "vectors") as out:
        out.put("doc_ids.text", np.full(n, ord("x"), np.uint8))
        out.put("doc_ids.offsets", np.arange(n + 1))
        out.facts = {"rows": n, "n_signatures": 0}
    names = opened(folder / "vectors", "vectors").strings("doc_ids")
    exact_duplicates = ExactDuplicates.none(n)
    tracemalloc.start()
    order = priority(keep, n, np.arange(n) if keep is Keep.longest else None)
    clusters = cluster(pairs, clusters=method, priority=order)
    del order
    together = cohesion(clusters, pairs)
    decisions = decide(pairs, clusters, keep, exact_duplicates=exact_duplicates, compared=np.ones(n, np.bool_))
    write_tables(folder, names, pairs, decisions, together)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    arrays = (exact_duplicates.representatives, exact_duplicates.content, pairs.overlap.lengths)
    return peak + sum(array.nbytes for array in arrays)


@pytest.mark.parametrize(
    ("make", "method", "keep"),
    [
        (alone, ClusterMethod.leaders, Keep.first),
        (twos, ClusterMethod.leaders, Keep.first),
        pytest.param(twos, ClusterMethod.components, Keep.longest, marks=pytest.mark.long),
        pytest.param(chain, ClusterMethod.leaders, Keep.none, marks=pytest.mark.long),
    ],
)
def test_bytes_a_page(tmp_path, make, method, keep):
    peak_of(tmp_path / "warm", make, method, keep, 1000)  # kernels, which are compiled at first
    few = peak_of(tmp_path / "few", make, method, keep, FEW)
    # what else is alive in this process for a moment only adds: the least of some peaks is the peak of the stages
    peaks = (peak_of(tmp_path / f"many-{k}", make, method, keep, MANY) for k in range(3))
    assert any((many - few) / (MANY - FEW) <= BYTES_A_RESULT for many in peaks)


def test_what_is_computed_a_span_at_a_time_equals_numpy(monkeypatch):
    monkeypatch.setattr(spans, "SPAN", 7)
    random = np.random.default_rng(3)
    for n in (0, 1, 7, 50):
        values, positions = random.random(n), random.permutation(n).astype(np.int32)
        back = np.empty(n)
        back[positions] = values
        np.testing.assert_array_equal(spans.gathered(values, positions), values[positions])
        np.testing.assert_array_equal(spans.scattered(values, positions), back)
        labels = random.integers(0, 5, n).astype(np.int32)
        np.testing.assert_array_equal(spans.tally(labels, 5), np.bincount(labels, minlength=5))
        np.testing.assert_array_equal(spans.is_identity(positions), positions == np.arange(n))
        flags = values < 0.5
        for first in (0, 3, n):
            rows = np.concatenate([np.empty(0, np.int64), *spans.flagged(flags, first)])
            np.testing.assert_array_equal(rows, [row for row in np.flatnonzero(flags) if row >= first])
