from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import sets as naive
from strategies import MULTISETS, by_rows, examples, vectors_of

from baselines.sketch import Kind, Sketch, Sketches, common_values, super_shingles
from spotsigs.errors import InputError
from spotsigs.records import Corpus, Vectors

quick = examples(60)
KINDS = pytest.mark.parametrize("kind", list(Kind))


def run(sketch, documents):
    return sketch(Corpus(vectors_of(documents)))


def keys_of(sketch):
    size = sketch.size if sketch.kind is Kind.permutations else 1
    return np.random.default_rng(sketch.seed).integers(0, 2**64, size, dtype=np.uint64).tolist()


def naive_sketches(sketch, documents):
    keys = keys_of(sketch)
    if sketch.kind is Kind.permutations:
        return [naive.positions(set(document), keys) for document in documents]
    numbers = [{naive.permuted(s, keys[0]) for s in document} for document in documents]
    if sketch.kind is Kind.smallest:
        return [naive.smallest(n, sketch.size) for n in numbers]
    return [{n for n in of_document if n % sketch.modulus == 0} for of_document in numbers]


def naive_estimate(sketch, a, b):
    if sketch.kind is Kind.permutations:
        return len(a & b) / sketch.size
    if sketch.kind is Kind.smallest:
        return naive.resemblance_of_smallest(a, b, sketch.size)
    return len(a & b) / len(a | b)


def rows(sketches):
    edges = sketches.indptr.tolist()
    return [sketches.values[a:b].tolist() for a, b in pairwise(edges)]


class TestAgainstTheReference:
    @KINDS
    @quick
    @given(MULTISETS, st.integers(1, 6), st.integers(1, 4), st.integers(0, 9))
    def test_sketches(self, kind, documents, size, modulus, seed):
        sketch = Sketch(kind=kind, size=size, modulus=modulus, seed=seed, threads=2)
        vectors = vectors_of(documents)
        actual = rows(sketch.sketches(vectors))
        wanted = naive_sketches(sketch, documents)
        if kind is Kind.permutations:
            n = vectors.n_signatures
            wanted = [{position * n + shingle for position, shingle in values} for values in wanted]
        assert actual == [sorted(values) for values in wanted]

    @KINDS
    @quick
    @given(MULTISETS, st.integers(1, 6), st.sampled_from([0.1, 1 / 3, 0.5, 0.8, 1.0]))
    def test_pairs(self, kind, documents, size, tau):
        sketch = Sketch(kind=kind, size=size, modulus=2, tau=tau)
        sketches = naive_sketches(sketch, documents)
        common = naive.common_values(sketches)
        estimates = {pair: naive_estimate(sketch, sketches[pair[0]], sketches[pair[1]]) for pair in common}
        pairs = run(sketch, documents)
        assert by_rows(pairs) == {pair: e for pair, e in estimates.items() if e >= tau}
        assert pairs.counters["triplets"] == sum(common.values())
        assert pairs.counters["candidates"] == len(common)

    @pytest.mark.parametrize(("groups", "least"), [(6, 1), (6, 2), (3, 2), (12, 5)])
    def test_super_shingles(self, groups, least):
        documents = naive.edited_copies(8, n=200)
        sketch = Sketch(size=24, tau=0.01, super_shingles=groups, common_super_shingles=least)
        positions = [sorted(values) for values in naive_sketches(sketch, documents)]
        each = 24 // groups
        supers = [
            {(g, tuple(row[g * each : (g + 1) * each])) for g in range(groups)} if row else set() for row in positions
        ]
        common = naive.common_values(supers)
        wanted = {
            pair: len(set(positions[pair[0]]) & set(positions[pair[1]])) / 24
            for pair, shared in common.items()
            if shared >= least
        }
        assert wanted
        assert by_rows(run(sketch, documents)) == wanted
        higher = by_rows(run(replace(sketch, tau=0.7), documents))
        assert higher == {pair: e for pair, e in wanted.items() if e >= 0.7}


def test_too_frequent_shingles_are_refused():
    with pytest.raises(InputError, match=r"shared by 70,000 documents.*give an idf_min"):
        Sketch().inverted(Sketches(np.arange(70_001), np.zeros(70_000, np.uint64)))


def estimator_sd(kind, resemblance, union, size, modulus):
    """Return the theoretical standard deviation of an estimator for true resemblances and ``union`` shingles (>= 2).

    A permutation agrees with probability R: ``R (1 - R) / P``. The m smallest of a union of U shingles are a random
    subset of it: hypergeometric, ``R (1 - R) / m * (U - m) / (U - 1)``. So are the values divisible by n, whose number
    is binomial: the mean of the same over it, given that there is one.
    """
    if kind is Kind.permutations:
        spread = 1 / size
    elif kind is Kind.smallest:
        spread = _subset_variance(np.minimum(size, union), union)
    else:
        from scipy.stats import binom

        number = np.arange(1, union + 1)
        chance = binom.pmf(number, union, 1 / modulus)
        spread = float((chance * _subset_variance(number, union)).sum() / chance.sum())
    return np.sqrt(resemblance * (1 - resemblance) * spread)


def _subset_variance(taken, union):
    return (union - taken) / (union - 1) / taken


def estimator_table(kind, *, union, trials, size, modulus, seed=2008):
    """Return bias and spread of an estimator next to theory, over ``trials`` pairs for each resemblance.

    There is one row for each of the resemblances 0.1, 0.2, …, 0.9: ``resemblance, trials`` (in which the estimator was
    defined), ``mean, sd, theory_sd``.
    """
    sketch = Sketch(kind=kind, size=size, modulus=modulus, seed=seed)
    rows = []
    for tenth in range(1, 10):
        vectors, resemblance = _pairs_of_resemblance(tenth / 10, union, trials)
        sketches = sketch.sketches(vectors)
        i = np.arange(0, 2 * trials, 2)
        estimate = sketch.estimates(sketches, i, i + 1, common_values(sketches, i, i + 1))
        estimate = estimate[~np.isnan(estimate)]
        row = {"resemblance": resemblance, "trials": float(len(estimate)), "mean": float(estimate.mean())}
        theory = float(estimator_sd(kind, np.float64(resemblance), union, size, modulus))
        rows.append(row | {"sd": float(estimate.std(ddof=1)), "theory_sd": theory})
    return rows


def _pairs_of_resemblance(resemblance, union, trials):
    """Return documents, two after two, whose pairs have about the given resemblance."""
    common = round(resemblance * union)
    left = (union - common) // 2
    first = np.arange(common + left)
    second = np.concatenate([np.arange(common), np.arange(common + left, union)])
    both = np.concatenate([first, second])
    ids = (np.arange(trials)[:, None] * union + both).astype(np.int32).ravel()
    sizes = np.tile([len(first), len(second)], trials)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return Vectors(indptr, ids, np.ones_like(ids), sizes, range(2 * trials)), common / union


class TestEstimators:
    @pytest.mark.compiled
    @KINDS
    def test_unbiased_and_as_spread_as_in_theory(self, kind):
        """Means within four standard errors, standard deviations within four of theirs."""
        table = pd.DataFrame(estimator_table(kind, union=300, trials=1500, size=60, modulus=6))
        error = table["theory_sd"] / np.sqrt(table["trials"])
        assert (np.abs(table["mean"] - table["resemblance"]) <= 4 * error).all()
        assert (np.abs(table["sd"] / table["theory_sd"] - 1) <= 4 / np.sqrt(2 * table["trials"])).all()
        assert table["resemblance"].tolist() == pytest.approx([x / 10 for x in range(1, 10)])
        assert (table["trials"] == 1500).all()

    @pytest.mark.compiled
    def test_few_values_leave_the_estimate_undefined_not_biased(self):
        table = pd.DataFrame(estimator_table(Kind.modulo, union=40, trials=3000, size=200, modulus=30))
        assert (table["trials"] < 2500).all()
        assert (np.abs(table["mean"] - table["resemblance"]) <= 4 * table["theory_sd"] / np.sqrt(table["trials"])).all()

    def test_theory_on_all_outcomes(self):
        """Sketches that keep every value know the resemblance; one value is a coin toss."""
        r = np.array([0.3])
        assert estimator_sd(Kind.smallest, r, 50, 50, 1) == 0
        assert estimator_sd(Kind.smallest, r, 50, 99, 1) == 0
        assert estimator_sd(Kind.modulo, r, 50, 1, 1) == pytest.approx(0)
        for kind in (Kind.smallest, Kind.permutations):
            assert estimator_sd(kind, r, 50, 1, 1) == pytest.approx(np.sqrt(0.21))
        subsets = [len(set(chosen) & set(range(3))) / 4 for chosen in combinations(range(10), 4)]
        assert estimator_sd(Kind.smallest, r, 10, 4, 1) == pytest.approx(np.std(subsets))

    def test_a_sketch_that_keeps_everything_is_exact(self):
        documents = [Counter(set(document)) for document in naive.edited_copies(3)]
        for sketch in (Sketch(kind=Kind.smallest, size=1000, tau=0.3), Sketch(kind=Kind.modulo, modulus=1, tau=0.3)):
            assert by_rows(run(sketch, documents)) == naive.jaccard_pairs(documents, 0.3)


@KINDS
class TestEveryKind:
    def test_sketches_belong_to_hashes_not_to_ids(self, kind):
        """Other documents of the collection change ids, but no estimate."""
        documents = naive.edited_copies(6, n=40)
        hashes = np.sort(np.random.default_rng(1).integers(0, 2**64, 1200, dtype=np.uint64))
        sketch = Sketch(kind=kind, size=20, modulus=3, tau=0.2)
        few = sketch(Corpus(vectors_of(documents, hashes[::3])))
        shifted = [Counter({3 * s: c for s, c in document.items()}) for document in documents]
        many = sketch(Corpus(vectors_of(shifted, hashes)))
        assert len(few) > 0
        assert by_rows(few) == by_rows(many)


def test_no_super_shingles_of_nothing():
    empty = Sketches(np.zeros(4, np.int64), np.empty(0, np.uint64))
    assert super_shingles(empty, 3).indptr.tolist() == [0, 0, 0, 0]
    assert len(run(Sketch(size=6, super_shingles=3), [Counter(), Counter()])) == 0
