"""Leaders without all pairs equal the leaders of all pairs by brute force."""

import tempfile
from collections import Counter
from functools import partial
from itertools import combinations
from pathlib import Path

import naive.contained
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import join as naive_join
from stores import save_contents, save_vectors
from strategies import TAUS, borderline_collections, by_rows, collections, examples, vectors_of

from spotsigs import cluster
from spotsigs.clustering.decisions import Keep, decide
from spotsigs.clustering.in_memory import counts_by
from spotsigs.clustering.leaders import LeaderOptions, leaders_of
from spotsigs.outofcore.leaders import leaders_on_disk
from spotsigs.records import MOST_PAIRS, Pairs, Vectors
from spotsigs.signatures.contained import NO_RULE, Contents
from spotsigs.storage.exact_duplicates import ExactDuplicates
from spotsigs.workers.engines import Serial

MEMORY = 10_000
"""Memory of a task in which a round has few rows."""


def sets_of(n, draw):
    """Draw sets of exact duplicates, by their last document."""
    label = draw(st.lists(st.integers(0, 2 * n), min_size=n, max_size=n))
    last = {name: k for k, name in enumerate(label)}
    return np.array([last[name] for name in label], np.int32)


def drawn_rule(documents, of, tau, texts, draw):
    """Draw sections of few documents each, what is missing, and contents of few phrases.

    Return the rule and its reference.
    """
    n = len(documents)
    rule, pages, sections = NO_RULE, [(set(), set())] * n, [0] * n
    missing, lengths = [0] * n, [documents[row].total() for row in of]
    if draw(st.booleans()):
        missing = draw(st.lists(st.sampled_from([0, 0, 1, 4, 30]), min_size=n, max_size=n))
        rule = rule._replace(missing=np.array(missing, np.int32), lengths=np.array(lengths, np.int32))
        rule = rule._replace(least_bound=draw(st.sampled_from([tau / 2, tau])))
    if draw(st.booleans()):
        sections = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
        section_tau = draw(st.sampled_from([tau / 2, 0.5, 0.7, 1.0]))
        rule = rule._replace(sections=np.array(sections, np.uint64), section_tau=section_tau)
    if texts and draw(st.booleans()):
        phrases = st.sets(st.integers(0, 7) | st.sampled_from([2**31 - 1]))
        own = draw(st.lists(phrases, min_size=n, max_size=n))
        pages = [(page | draw(phrases), page) for page in own]
        rows = [sorted(2 * one + (one in page) for one in every) for every, page in pages]
        hashes = np.array([one for row in rows for one in row], np.uint32)
        contents = Contents(np.cumsum([0, *map(len, rows)]), hashes)
        rule = rule._replace(contents=contents, least=draw(st.sampled_from([0.2, 0.5, 1.0])))
    bound = partial(naive.contained.lower_bound, missing=missing, lengths=lengths)
    may = naive.contained.may_remove(pages, rule.least, sections, rule.section_tau, bound, rule.least_bound)
    return rule, lambda removed, kept, similarity: may(of[removed], of[kept], similarity)


def all_pairs(documents, of, tau):
    """Return the pairs of all documents, which have what their representatives have."""
    rows = [documents[row] for row in of]
    near = {(i, j): s for i, j, s in naive_join.self_join(rows, tau)} if rows else {}
    near |= {(i, j): 1.0 for i, j in combinations(range(len(of)), 2) if of[i] == of[j]}
    ends = np.array(list(near), np.int64).reshape(-1, 2)
    return Pairs.build(ends[:, 0], ends[:, 1], np.array(list(near.values()), float), len(of))


def distinct(documents, of):
    """Return the vectors of the documents; the rows of exact duplicates are empty."""
    return vectors_of([row if of[k] == k else Counter() for k, row in enumerate(documents)])


def require_leaders(clusters, every, order, removed, may):
    """Require the leaders of the reference implementation."""
    gone = [] if removed is None else np.flatnonzero(removed).tolist()
    leaders = naive.leaders(by_rows(every), order, gone, may)
    assert clusters.representatives[clusters.labels].tolist() == [leaders[row] for row in range(len(clusters))]


def in_order(n, priority, removed):
    """Return the documents in order of priority, removed ones last."""
    return sorted(range(n), key=lambda k: (removed is not None and removed[k], 0 if priority is None else priority[k]))


def require_same(clusters, expected):
    for name in ("labels", "representatives", "similarity_to_representative"):
        np.testing.assert_array_equal(getattr(clusters, name), getattr(expected, name))


def require_same_on_disk(clusters, pairs, rows, tau, exact_duplicates, options, step=None):
    with tempfile.TemporaryDirectory() as folder:
        save_vectors(Path(folder, "v"), rows, exact_duplicates, step)
        contents = save_contents(Path(folder, "c"), options.rule.contents) if options.rule.least > 0 else None
        actual, listed = leaders_on_disk(
            Path(folder, "v"), Path(folder, "l"), tau, options, Serial(), memory=MEMORY, contents=contents
        )
    require_same(actual, clusters)
    assert by_rows(listed) == by_rows(pairs)
    assert listed.shared.tolist() == pairs.shared.tolist()


@examples(150)
@given(st.data(), st.sampled_from(TAUS) | st.none())
def test_leaders_are_those_of_all_pairs(data, tau):
    documents, tau = (data.draw(collections(20)), tau) if tau else data.draw(borderline_collections())
    n = len(documents)
    of = sets_of(n, data.draw)
    priority = data.draw(
        st.none() | st.lists(st.integers(0, 5), min_size=n, max_size=n).map(lambda v: np.array(v, int))
    )
    removed = data.draw(st.none() | st.lists(st.booleans(), min_size=n, max_size=n).map(np.bool_))
    keep, threads = data.draw(st.sampled_from(Keep)), data.draw(st.integers(1, 2))
    every, none = all_pairs(documents, of, tau), keep is Keep.none
    rule, may = drawn_rule(documents, of, tau, not none, data.draw)
    counts = counts_by(rule, of)
    order = {"priority": priority, "removed": removed}
    expected = cluster(every, **order, counts=counts)
    require_leaders(expected, every, in_order(n, priority, removed), removed, may)
    options = LeaderOptions(**order, rule=rule, both=none)
    rows, exact_duplicates = distinct(documents, of), ExactDuplicates(of, of)
    clusters, pairs = leaders_of(rows, tau, options, exact_duplicates=exact_duplicates, threads=threads)
    require_same(clusters, expected)
    assert by_rows(pairs).items() <= by_rows(every).items()
    if data.draw(st.integers(0, 9)) == 9:  # stores take most of the time
        step = data.draw(st.sampled_from([None, 2**30, 2**31 + 11]))  # ids of 64 bits
        require_same_on_disk(clusters, pairs, rows, tau, exact_duplicates, options, step)
    decided, wanted = decide(pairs, clusters, keep), decide(every, expected, keep, counts=counts)
    if not none or removed is None:  # only old documents are removed, and their decisions are final
        np.testing.assert_array_equal(decided.kept, wanted.kept)
    gone = ~decided.kept
    if not none:
        assert len(pairs) == gone.sum()
        np.testing.assert_array_equal(decided.partner[gone], wanted.partner[gone])
        np.testing.assert_array_equal(decided.similarity[gone], wanted.similarity[gone])
    counters = [documents[row] for row in of]
    shared = [(counters[i] & counters[j]).total() for i, j in by_rows(pairs)]
    assert pairs.shared.tolist() == shared


@examples(150)
@given(st.data(), st.sampled_from(TAUS))
def test_leaders_among_added_documents_are_those_of_the_pairs_with_one(data, tau):
    documents = data.draw(collections(20))
    n = len(documents)
    of, new_from = sets_of(n, data.draw), data.draw(st.integers(0, n))
    removed = np.array([data.draw(st.booleans()) for _ in range(new_from)] + [False] * (n - new_from), bool)
    priority = np.array([-1] * new_from + [data.draw(st.integers(0, 5)) for _ in range(n - new_from)], int)
    every = all_pairs(documents, of, tau)
    new = every.j >= new_from
    every = Pairs.build(every.i[new], every.j[new], every.similarity[new], n)
    order, keep = {"priority": priority, "removed": removed}, data.draw(st.sampled_from(Keep))
    rule, may = drawn_rule(documents, of, tau, keep is not Keep.none, data.draw)
    counts = counts_by(rule, of)
    expected = cluster(every, **order, counts=counts)
    require_leaders(expected, every, in_order(n, priority, removed), removed, may)
    options = LeaderOptions(**order, rule=rule, new_from=new_from, both=keep is Keep.none)
    rows, exact_duplicates = distinct(documents, of), ExactDuplicates(of, of)
    clusters, pairs = leaders_of(rows, tau, options, exact_duplicates=exact_duplicates)
    require_same(clusters, expected)
    if data.draw(st.integers(0, 4)) == 4:
        require_same_on_disk(clusters, pairs, rows, tau, exact_duplicates, options)
    assert by_rows(pairs).items() <= by_rows(every).items()
    decided = decide(pairs, clusters, keep, earlier=~removed[:new_from])
    wanted = decide(every, expected, keep, counts=counts, earlier=~removed[:new_from])
    np.testing.assert_array_equal(decided.kept, wanted.kept)


@pytest.mark.parametrize("identical", [True, False])
def test_a_cluster_with_more_pairs_than_can_be_listed_is_decided(identical):
    n = 70_000
    assert n * (n - 1) // 2 > MOST_PAIRS
    rows = np.hstack([np.tile(np.arange(9), (n, 1)), np.arange(100, 100 + n)[:, None]])
    last = np.full(n, n - 1 if identical else 0, np.int32)
    exact_duplicates = ExactDuplicates(last, last) if identical else None
    vectors = Vectors.from_csr(np.arange(n + 1) * 10, rows.ravel())
    clusters, pairs = leaders_of(vectors, 0.8, LeaderOptions(), exact_duplicates=exact_duplicates)
    assert clusters.representatives.tolist() == [0]
    assert pairs.i.tolist() == [0] * (n - 1)
    assert set(pairs.similarity.tolist()) == {1.0 if identical else 9 / 11}
