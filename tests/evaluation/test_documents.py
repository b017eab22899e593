"""Lost stories, duplicates that are left and B-cubed equal their definitions."""

import naive
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from spotsigs import Truth, evaluate
from spotsigs.clustering.clusters import ClusterMethod, cluster
from spotsigs.evaluation.documents import count_stories
from spotsigs.records import Pairs

LABELS = st.lists(st.tuples(st.none() | st.sampled_from("abcd"), st.booleans()), min_size=1, max_size=16)


@examples(200)
@given(LABELS)
def test_decisions_equal_their_definition(drawn):
    labels, kept = zip(*drawn, strict=True)
    truth = Truth.from_clusters(labels) or Truth(np.full(len(labels), -1, np.int32), ())
    of = count_stories(np.array(kept), truth)
    assert (of.stories, of.stories_lost, of.duplicates, of.duplicates_left) == naive.decided(kept, labels)
    assert of.stories + of.duplicates == len(labels)
    assert sum(kept) == of.stories - of.stories_lost + of.duplicates_left
    assert 0 <= of.lost <= 1
    assert 0 <= of.left <= 1


def test_a_chain_loses_stories_by_components_and_none_by_leaders():
    """Two false pairs connect three stories of three pages."""
    edges = [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (6, 7), (6, 8), (7, 8), (2, 3), (5, 6)]
    pairs = Pairs.build(*np.array(edges).T, np.ones(len(edges)), 9)
    truth = Truth.from_clusters([*"aaabbbccc"])
    lost = {
        method: evaluate(pairs, truth, cluster(pairs, clusters=method), resamples=0).documents.stories_lost
        for method in ClusterMethod
    }
    assert lost == {ClusterMethod.components: 2, ClusterMethod.leaders: 0}
