from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap
from strategies import examples

from spotsigs import cluster, evaluate, relative_recall
from spotsigs.clustering.clusters import ClusterMethod
from spotsigs.evaluation import metrics
from spotsigs.evaluation.documents import count_stories, of_stories, resampled_documents
from spotsigs.records import Pairs, Truth

LABELS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=25)


def pairs_within(labels):
    labels = np.asarray(labels)
    i, j = np.triu_indices(len(labels), 1)
    same = labels[i] == labels[j]
    return Pairs.build(i[same], j[same], np.ones(same.sum()), len(labels))


pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")  # 0 / 0 is NaN, and no one is warned


@given(LABELS)
def test_macro_averages_equal_their_definitions(drawn):
    wanted, reported = map(np.array, zip(*drawn, strict=True))
    quality = evaluate(pairs_within(reported), Truth.from_clusters(map(str, wanted)), resamples=0)
    precisions, recalls, f1s = [], [], []
    for label in set(wanted.tolist()):
        members = np.flatnonzero(wanted == label)
        if len(members) < 2:
            continue
        inside = sum(reported[a] == reported[b] for a in members for b in members if a < b)
        touching = sum(reported[a] == reported[b] for a in members for b in np.flatnonzero(wanted != label))
        missed = len(members) * (len(members) - 1) / 2 - inside
        recalls.append(inside / (inside + missed))
        f1s.append(2 * inside / (2 * inside + touching + missed))
        if inside + touching:
            precisions.append(inside / (inside + touching))
    expected = [np.mean(values) if values else np.nan for values in (precisions, recalls, f1s)]
    np.testing.assert_allclose([quality.macro.precision, quality.macro.recall, quality.macro.f1], expected)


def test_documents_of_no_cluster_share_the_last_tally():
    truth = Truth.from_clusters(["a", "a", "b", None, None])
    pairs = Pairs.build(np.array([0, 0, 2, 3]), np.array([1, 2, 3, 4]), np.ones(4), 5)
    true, false, missed = metrics.tallies(pairs, truth)
    assert (true.tolist(), false.tolist(), missed.tolist()) == ([1, 0, 0], [0.5, 1, 1.5], [0, 0, 0])


def test_relative_recall_of_a_single_pair_and_of_rows_whose_product_needs_64_bits():
    n = 100_000
    base = Pairs.build(np.array([n - 2]), np.array([n - 1]), np.ones(1), n)
    assert relative_recall(base, base) == 1
    assert relative_recall(Pairs.build(np.array([n - 3]), np.array([n - 1]), np.ones(1), n), base) == 0
    assert np.isnan(relative_recall(base, base.at(2)))


def drawn_truth(documents=60, clusters=12, seed=3):
    rng = np.random.default_rng(seed)
    truth = Truth.from_clusters(str(label) for label in rng.integers(0, clusters, documents))
    return pairs_within(rng.integers(0, clusters, documents).tolist()), truth


def test_intervals_are_percentiles_of_a_seeded_bootstrap_over_clusters_and_stories():
    pairs, truth = drawn_truth(400, 80)
    intervals = evaluate(pairs, truth, resamples=2000).intervals
    assert intervals == evaluate(pairs, truth, resamples=2000).intervals
    assert list(intervals) == [*metrics.MEASURES, *metrics.MACRO, *metrics.OF_DOCUMENTS]
    clusters = cluster(pairs)
    kept = np.zeros(400, bool)
    kept[clusters.representatives] = True

    def of_documents(*samples, axis):
        of_samples = np.moveaxis(np.stack(samples), 0, -2)  # (..., 4, stories)
        flat = of_samples.reshape(-1, *of_samples.shape[-2:])
        whole = [resampled_documents(table, np.ones((1, table.shape[1])))[:, 0] for table in flat]
        return np.moveaxis(np.reshape(whole, (*of_samples.shape[:-2], 5)), -1, 0)

    counted, by_story = metrics.tallies(pairs, truth), of_stories(kept, clusters, truth)
    for table, averages, names in (
        (counted, lambda *samples, axis: metrics.micro_averages(*samples), metrics.MEASURES),
        (counted, lambda *samples, axis: metrics.macro_averages(*samples), metrics.MACRO),
        (by_story, of_documents, metrics.OF_DOCUMENTS),
    ):
        low, high = bootstrap(
            table,
            averages,
            paired=True,
            vectorized=True,
            n_resamples=2000,
            method="percentile",
            rng=np.random.default_rng(0),
        ).confidence_interval
        for m, name in enumerate(names):
            np.testing.assert_allclose(intervals[name], (low[m], high[m]), atol=(high[m] - low[m]) / 6)


def test_ends_are_percentiles_over_the_first_axis():
    values = np.arange(1001.0)
    np.testing.assert_allclose(metrics.percentile_interval(values), [25, 975])
    np.testing.assert_allclose(metrics.percentile_interval(np.stack([values, 2 * values], 1)), [[25, 50], [975, 1950]])


def test_a_value_that_one_sample_in_twenty_does_not_define_has_an_interval_and_at_more_none():
    values = np.arange(1000.0)
    values[:50] = np.nan
    assert not np.isnan(metrics.percentile_interval(values)).any()
    values[50] = np.nan
    assert np.isnan(metrics.percentile_interval(values)).all()


def test_three_clusters_have_no_intervals_and_four_have():
    for clusters, known in ((3, False), (4, True)):
        labels = [number // 2 for number in range(2 * clusters)]
        intervals = evaluate(pairs_within(labels), Truth.from_clusters(map(str, labels))).intervals
        assert ("recall" in intervals) is known


def test_pairs_in_chunks_are_evaluated_as_at_once():
    pairs, truth = drawn_truth()
    whole = metrics.tallies(pairs, truth)
    assert min(whole[0].sum(), whole[1].sum()) > 5
    np.testing.assert_array_equal(metrics.tallies(replace(pairs, chunk_size=7), truth), whole)
    clusters = cluster(pairs)
    assert repr(evaluate(replace(pairs, chunk_size=7), truth, clusters)) == repr(evaluate(pairs, truth, clusters))


def test_intervals_do_not_depend_on_how_many_samples_are_drawn_at_once(monkeypatch):
    pairs, truth = drawn_truth()
    expected = evaluate(pairs, truth).intervals
    monkeypatch.setattr(metrics, "DRAWN_AT_ONCE", 100)
    assert evaluate(pairs, truth).intervals == expected


def test_a_cluster_occurs_a_poisson_number_of_times_in_a_sample():
    samples = metrics.drawn([3, 1, 6], 4000)
    np.testing.assert_allclose(samples.mean(0), [3, 1, 6], atol=0.1)
    np.testing.assert_allclose(samples.var(0), [3, 1, 6], rtol=0.1)
    assert metrics.drawn([3, 1]).shape == (1000, 2)
    assert (metrics.drawn([3, 1, 6]) == metrics.drawn([3, 1, 6])).all()


def test_resampled_averages_are_those_of_the_clusters_that_are_drawn():
    rng = np.random.default_rng(5)
    two = tuple(rng.integers(0, 4, (2, 7)).astype(float) for _ in range(3))
    two[0][:, 2] = two[2][:, 2] = 0  # a cluster without pairs does not count,
    two[1][:, 2] = 3  # whatever was reported of it
    samples = metrics.drawn(np.ones(7), 20)
    averages = metrics.resampled_micro(two, samples)
    assert averages.shape == (3, 20, 2)
    np.testing.assert_allclose(metrics.resampled_micro(tuple(tally[1] for tally in two), samples), averages[:, :, 1])
    for sample, weights in enumerate(samples.astype(int)):
        repeated = [np.repeat(tally, weights, axis=1) for tally in two]
        np.testing.assert_allclose(averages[:, sample], metrics.micro_averages(*repeated))


def test_clusters_without_names_count():
    true, _, missed = metrics.tallies(pairs_within([0, 1, 2]), Truth(np.array([0, 2, 2], np.int32), ("a",)))
    assert (true.tolist(), missed.tolist()) == ([0, 0, 0, 0], [0, 0, 1, 0])


def test_no_interval_of_what_a_sample_leaves_undefined():
    """Some samples draw no cluster with pairs."""
    pairs, truth = pairs_within([0, 0, 1, 2]), Truth.from_clusters([*"aabb"])
    assert "precision" not in evaluate(pairs, truth).intervals
    alone = evaluate(pairs_within(range(5)), Truth.from_clusters([*"abcde"])).intervals
    assert alone.keys() == {*metrics.BCUBED, "lost"}
    assert evaluate(*drawn_truth(), resamples=0).intervals == {}


@examples(200)
@given(st.lists(st.tuples(st.none() | st.sampled_from("abcd"), st.booleans()), min_size=1, max_size=16))
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
