import operator
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import edges, pairs_of

from spotsigs import InputError, cluster
from spotsigs.clustering.clusters import GIANT, ClusterMethod, cohesion
from spotsigs.records import Pairs


@given(st.sets(edges(12), max_size=20), st.sampled_from(ClusterMethod), st.integers(1, 5), st.randoms())
def test_cohesion_equals_its_definition(edges, method, cut, random):
    edges = sorted(edges)
    values = [random.choice([0.3, 0.5, 0.7, np.nan]) for _ in edges]
    i, j = np.array(edges, np.int64).reshape(-1, 2).T
    pairs = Pairs.build(i, j, np.array(values, float), 12)
    clusters = cluster(pairs, clusters=method)
    cohesions = cohesion(clusters, replace(pairs, chunk_size=cut))
    assert cohesions.labels.tolist() == np.flatnonzero(clusters.sizes > 1).tolist()
    actual = cohesions.of(np.arange(len(clusters.sizes)))
    for label, representative in enumerate(clusters.representatives.tolist()):
        members = set(np.flatnonzero(clusters.labels == label).tolist())
        inside = [(e, s) for e, s in zip(edges, values, strict=True) if set(e) <= members]
        known = [s for _, s in inside if s == s]
        assert actual.pairs[label] == len(inside)
        np.testing.assert_equal(actual.minimum[label], min(known, default=np.nan))
        total = reduce(operator.add, known, 0.0)  # one after the other; sum() compensates since Python 3.12
        np.testing.assert_equal(actual.mean[label], total / len(known) if known else np.nan)
        others = (tuple(sorted((member, representative))) for member in members - {representative})
        assert actual.apart[label] == sum(edge not in edges for edge in others)
        assert not actual.chain[label]


def test_giant_chains():
    chain = [(k, k + 1) for k in range(GIANT - 1)]
    short = [(30 + k, 31 + k) for k in range(GIANT - 2)]
    whole = [(a, b) for a in range(60, 60 + GIANT) for b in range(a + 1, 60 + GIANT)]
    for method, expected in (("components", [True, False, False]), ("leaders", [])):
        clusters = cluster(pairs_of(chain + short + whole, 100, 0.5), clusters=method)
        cohesions = cohesion(clusters, pairs_of(chain + short + whole, 100, 0.5))
        assert cohesions.of(clusters.labels[[0, 30, 60]]).chain.tolist() == (expected or [False] * 3)


def test_priority_chooses_the_representative():
    clusters = cluster(pairs_of([(0, 1), (1, 2)], 12, 0.5), clusters="components", priority=-np.arange(12))
    assert clusters.representatives[clusters.labels[0]] == 2
    assert clusters.similarity_to_representative[:3].tolist()[1:] == [0.5, 1.0]
    assert np.isnan(clusters.similarity_to_representative[0])  # connected through row 1 only
    led = cluster(pairs_of([(0, 1), (1, 2)], 12, 0.5), priority=-np.arange(12))
    assert led.representatives[led.labels[:3]].tolist() == [0, 2, 2]


def test_clusters_read_as_the_label_of_each_row():
    clusters = cluster(pairs_of([(0, 2)], 3, 0.5), n=3)
    assert list(clusters) == [0, 1, 0]
    assert np.asarray(clusters).tolist() == [0, 1, 0]
    assert len(clusters) == 3


def test_bad_arguments_are_refused():
    with pytest.raises(InputError, match="too small"):
        cluster(pairs_of([(0, 5)], 12), n=3)
    with pytest.raises(InputError, match="components"):
        cluster(pairs_of([], 12), clusters="chains")
    with pytest.raises(InputError, match="priority"):
        cluster(pairs_of([], 12), priority=np.arange(3))
