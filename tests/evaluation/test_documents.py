"""Lost stories, duplicates that are left and B-cubed equal their definitions."""

import naive
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from spotsigs import Truth, evaluate
from spotsigs.clustering.clusters import ClusterMethod, cluster
from spotsigs.evaluation.documents import b_cubed, decided
from spotsigs.records import Pairs

LABELS = st.lists(st.tuples(st.none() | st.sampled_from("abcd"), st.booleans()), min_size=1, max_size=16)


@examples(200)
@given(LABELS)
def test_decisions_equal_their_definition(drawn):
    labels, kept = zip(*drawn, strict=True)
    truth = Truth.from_clusters(labels) or Truth(np.full(len(labels), -1, np.int32), ())
    found = decided(np.array(kept), truth)
    assert (found.stories, found.stories_lost, found.duplicates, found.duplicates_left) == naive.decided(kept, labels)
    assert found.stories + found.duplicates == len(labels)
    assert sum(kept) == found.stories - found.stories_lost + found.duplicates_left
    assert 0 <= found.lost <= 1
    assert 0 <= found.left <= 1


@examples(100)
@given(
    LABELS,
    st.sets(st.tuples(st.integers(0, 15), st.integers(0, 15)).filter(lambda edge: edge[0] < edge[1]), max_size=20),
    st.sampled_from(ClusterMethod),
)
def test_b_cubed_equals_its_definition_for_clusters_of_pairs(drawn, edges, method):
    labels = [label for label, _ in drawn]
    n = len(labels)
    edges = sorted(edge for edge in edges if edge[1] < n)
    i, j = np.array(edges, np.int64).reshape(-1, 2).T
    pairs = Pairs.build(i, j, np.ones(len(edges)), n)
    truth = Truth.from_clusters(labels) or Truth(np.full(n, -1, np.int32), ())
    clusters = cluster(pairs, clusters=method)
    precision, recall, f1 = b_cubed(clusters, truth)
    np.testing.assert_allclose((precision, recall), naive.b_cubed(clusters.labels.tolist(), labels))
    np.testing.assert_allclose(f1, 2 * precision * recall / (precision + recall))
    kept = np.isin(np.arange(n), clusters.representatives)
    quality = evaluate(pairs, truth, clusters, resamples=0)
    assert (quality.stories, quality.stories_lost, quality.duplicates, quality.duplicates_left) == naive.decided(
        kept.tolist(), labels
    )
    every = evaluate(pairs, truth, clusters, kept=np.ones(n, np.bool_), resamples=0)
    assert (every.stories_lost, every.duplicates_left) == (0, every.duplicates)


def test_a_chain_loses_stories_by_components_and_none_by_leaders():
    """Two false pairs connect three stories of three pages."""
    edges = [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (6, 7), (6, 8), (7, 8), (2, 3), (5, 6)]
    pairs = Pairs.build(*np.array(edges).T, np.ones(len(edges)), 9)
    truth = Truth.from_clusters([*"aaabbbccc"])
    lost = {
        method: evaluate(pairs, truth, cluster(pairs, clusters=method), resamples=0).stories_lost
        for method in ClusterMethod
    }
    assert lost == {ClusterMethod.components: 2, ClusterMethod.leaders: 0}
