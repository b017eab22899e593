"""Algorithm 1 timed on a sample of its documents: the sample tells the work of the whole, and its pairs are right."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from data.collections.wt10g_like import Wt10gLike
from experiments.work import sampled_timing as sampled
from spotsigs.matching.algorithm1 import COUNTERS, SpotSigs
from spotsigs.records import Corpus

MATCHERS = {
    "SpotSigs": SpotSigs(tau=0.6, threads=2),
    "NoPart": SpotSigs(tau=0.6, threads=2, partitioning=False),
    "NoPrune": SpotSigs(tau=0.6, threads=2, partitioning=False, pruning=False),
}


@pytest.fixture(scope="module")
def vectors():
    return Wt10gLike(documents=6000, skewed=True).vectors()


def forced(monkeypatch, share):
    """Let the sample be of the given size, whatever the machine's speed."""
    probed = sampled._probed
    monkeypatch.setattr(sampled, "_probed", lambda *given: replace(probed(*given), wall=1.0))
    monkeypatch.setattr(sampled, "STRATA", 64)
    return 6000 * share / (64 * sampled.FEW)


def _stranger(pairs, row):
    """Return a document that makes no pair with the given one."""
    partners = {*pairs.j[pairs.i == row].tolist(), *pairs.i[pairs.j == row].tolist(), int(row)}
    return np.array([next(other for other in range(pairs.n) if other not in partners)], np.int32)


@pytest.mark.parametrize("name", MATCHERS)
def test_a_sample_tells_the_work_of_the_whole(name, vectors, monkeypatch):
    matcher = MATCHERS[name]
    whole = matcher(Corpus(vectors))
    found = sampled.sample(matcher, vectors, forced(monkeypatch, 0.3))
    assert found is not None
    assert found.share == pytest.approx(0.3, abs=0.02)
    for counter in ("candidates", "verifications", "lists_opened"):
        assert found.counters[counter] == pytest.approx(whole.counters[counter], rel=0.15)
    assert found.agrees(whole)
    assert len(found.i) > 100
    assert not replace(found, i=found.i[:0], j=found.j[:0]).agrees(whole)
    assert not replace(
        found, i=np.append(found.i, found.rows[0]), j=np.append(found.j, _stranger(whole, found.rows[0]))
    ).agrees(whole)


def test_pieces_that_hold_all_count_all(vectors):
    matcher = MATCHERS["SpotSigs"]
    index = matcher.index(vectors)
    n = len(index.rows) // 50 * 50
    pieces = sampled.sampled_blocks(n, 50, n // 50, np.random.default_rng(0))
    assert pieces == [(k * n // 50, (k + 1) * n // 50) for k in range(50)]
    probed = sampled._probed(matcher, index, [*pieces, (n, len(index.rows))], 2)
    whole = matcher(Corpus(vectors))
    assert dict(zip(COUNTERS, probed.counters.tolist(), strict=True)).items() <= whole.counters.items()
    assert np.array_equal(np.sort(probed.rows), np.sort(index.rows))


def test_what_fits_the_budget_is_not_sampled(vectors):
    assert sampled.sample(MATCHERS["SpotSigs"], vectors, 3600.0) is None


def test_pieces_lie_in_their_parts():
    for n, strata, size in [(1000, 10, 7), (1000, 10, 100), (64, 64, 1)]:
        pieces = sampled.sampled_blocks(n, strata, size, np.random.default_rng(3))
        for k, (start, stop) in enumerate(pieces):
            assert k * n // strata <= start
            assert stop - start == size
            assert stop <= (k + 1) * n // strata


def test_a_sampled_cell_is_like_any_other(tmp_path, monkeypatch):
    from experiments.work.extracted_collections import Source, read
    from experiments.work.timing import time_matcher
    from spotsigs.engines import Serial

    budget = forced(monkeypatch, 0.2)
    stored = read(Source(collection=Wt10gLike(documents=6000, skewed=True)), tmp_path, Serial())
    given = {"stored": stored, "idf_filter": None, "repeats": 1, "base": SpotSigs(tau=1.0)}
    cell = time_matcher(**given, matcher=MATCHERS["NoPrune"], budget=budget)
    whole = time_matcher(**given, matcher=MATCHERS["NoPrune"])
    assert cell.keys() == whole.keys() | {"agrees"}
    assert cell["agrees"]
    assert cell["probed"] == pytest.approx(0.2, abs=0.02)
    assert whole["probed"] == 1
    assert (cell["pairs"], cell["relative_recall"]) == (whole["pairs"], whole["relative_recall"])
    assert cell["runs_ms"][0] <= cell["total_ms"] <= cell["runs_ms"][-1]
    json.dumps(cell)
