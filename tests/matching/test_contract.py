"""What every matcher and every signature scheme promises; a new YAML is tested the moment it exists."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import naive
import numpy as np
import pytest
import xxhash
from hydra import compose, initialize_config_dir

from experiments.config import build
from spotsigs import tokenize
from spotsigs.records import Corpus, Signatures
from spotsigs.signatures.idf import IdfFilter

CONF = Path(__file__).parents[2] / "conf"
TAUS = (1 / 3, 0.44, 0.5, 1.0)


def choices(group):
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def built(group, choice, *overrides):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", ["data=tiny", f"{group}={choice}", *overrides])
    return build(config[group], group)


def news(seed, n=60):
    """Return texts of which half are edited copies of earlier ones, some exact, one empty."""
    rng = np.random.default_rng(seed)
    words = [f"word{w}" for w in range(80)]
    texts = []
    for _ in range(n - 1):
        if texts and rng.random() < 0.5:
            copy = texts[rng.integers(len(texts))].split(" ")
            for _ in range(rng.integers(0, 5)):
                copy[rng.integers(len(copy))] = words[rng.integers(80)]
            texts.append(" ".join(copy))
        else:
            sentences = [" ".join(rng.choice(words, rng.integers(3, 8))) + "." for _ in range(rng.integers(1, 9))]
            texts.append(" ".join(sentences))
    return [*texts, ""]


def corpus_of(texts, order=None):
    """Return the corpus of single tokens of the texts, in the given order."""
    order = range(len(texts)) if order is None else order
    texts = [texts[x] for x in order]
    rows = [Counter(xxhash.xxh64_intdigest(word.encode()) for word in tokenize(text).words) for text in texts]
    signatures = Signatures(
        tuple(map(str, order)),
        (None,) * len(texts),
        np.cumsum([0, *map(len, rows)]),
        np.array([h for row in rows for h in sorted(row)], np.uint64),
        np.array([row[h] for row in rows for h in sorted(row)], np.int32),
    )
    return Corpus(IdfFilter(idf_min=0)(signatures), lambda: iter(texts))


def named(pairs, order=None):
    """Return similarity by pair of document numbers, whatever the row order."""
    order = np.arange(pairs.n) if order is None else np.asarray(order)
    ends = np.sort(np.stack([order[pairs.i], order[pairs.j]], axis=1), axis=1)
    return {tuple(pair): similarity for pair, similarity in zip(ends.tolist(), pairs.similarity.tolist(), strict=True)}


def assert_same(a, b):
    assert a.keys() == b.keys()
    np.testing.assert_array_equal([a[pair] for pair in a], [b[pair] for pair in a])


@pytest.mark.parametrize("choice", choices("matcher"))
class TestEveryMatcher:
    def test_says_what_it_is(self, choice):
        matcher = built("matcher", choice)
        assert isinstance(matcher.exact, bool)
        assert isinstance(matcher.verified, bool)
        assert matcher.label
        assert matcher.measure
        if not matcher.verified:
            assert "unverified" in matcher.label
        pickle.loads(pickle.dumps(matcher))

    @pytest.mark.parametrize("seed", [1, 2])
    def test_pairs_are_ordered_unique_and_repeatable(self, choice, seed):
        corpus = corpus_of(news(seed))
        matcher = built("matcher", choice)
        pairs = matcher(corpus)
        assert np.all(pairs.i < pairs.j)
        assert np.all(np.diff(pairs.i.astype(np.int64) * pairs.n + pairs.j) > 0)
        assert np.all(np.isnan(pairs.similarity) | ((pairs.similarity >= 0) & (pairs.similarity <= 1)))
        assert len(pairs) > 0
        assert {"sort_hash", "cluster"} <= pairs.seconds.keys()
        assert_same(named(pairs), named(matcher(corpus)))

    def test_document_order_does_not_matter(self, choice):
        texts = news(3)
        order = np.random.default_rng(0).permutation(len(texts))
        matcher = built("matcher", choice)
        assert_same(named(matcher(corpus_of(texts))), named(matcher(corpus_of(texts, order)), order))

    def test_threads_do_not_matter(self, choice):
        matcher = built("matcher", choice)
        if "threads" not in {field.name for field in fields(matcher)}:
            pytest.skip("has no threads")
        corpus = corpus_of(news(4))
        assert_same(named(replace(matcher, threads=1)(corpus)), named(replace(matcher, threads=3)(corpus)))

    @pytest.mark.parametrize("tau", TAUS)
    def test_exact_ones_equal_brute_force_and_verified_ones_are_part_of_it(self, choice, tau):
        matcher = built("matcher", choice, f"tau={tau}")
        twins = {"jaccard": naive.similar_pairs, "cosine": naive.cosine_pairs, "containment": naive.contained_pairs}
        if matcher.measure not in twins or not matcher.verified:
            pytest.skip(f"its measure is {matcher.measure}: it has a twin of its own")
        texts = news(5)
        documents = [Counter(tokenize(text).words) for text in texts]
        wanted = twins[matcher.measure](documents, tau)
        found = named(matcher(corpus_of(texts)))
        assert found.keys() <= wanted.keys()
        np.testing.assert_allclose([found[pair] for pair in found], [wanted[pair] for pair in found], rtol=1e-12)
        if matcher.exact:
            assert found.keys() == wanted.keys()

    @pytest.mark.parametrize(
        "texts", [[], ["one page here."], ["", "", ""], ["two pages here.", ""]], ids=["none", "one", "empty", "half"]
    )
    def test_nothing_to_pair(self, choice, texts):
        pairs = built("matcher", choice)(corpus_of(texts))
        assert len(pairs) == 0
        assert pairs.n == len(texts)

    def test_identical_documents_are_found(self, choice):
        texts = ["the same sentence stands here. and then another one follows it."] * 5
        texts += [f"page{x} number{x} is{x} all{x} alone{x} here{x}." for x in range(20)]
        found = named(built("matcher", choice)(corpus_of(texts)))
        everyone = {(a, b) for a in range(5) for b in range(a + 1, 5)}
        assert everyone <= found.keys()


@pytest.mark.parametrize("choice", choices("signature"))
class TestEverySignature:
    TEXTS = (
        "",
        "word",
        "It is said that the council has approved the plan for a new bridge that will be built by the end of the year.",
        "Don't you think it is time? 東京は大きい。 สวัสดี ünïcödé İstanbul ΟΔΟΣ 12½ x² the",
        "the " * 50,
    )

    @pytest.mark.parametrize("text", TEXTS)
    def test_hashes_are_those_of_the_readable_form(self, choice, text):
        scheme = built("signature", choice)
        assert scheme(tokenize(text)).tolist() == [xxhash.xxh64_intdigest(s.encode()) for s in scheme.readable(text)]

    def test_it_survives_the_way_to_a_worker(self, choice):
        scheme = built("signature", choice)
        assert scheme.label
        tokens = tokenize(self.TEXTS[2])
        assert pickle.loads(pickle.dumps(scheme))(tokens).tolist() == scheme(tokens).tolist()

    def test_prose_has_signatures(self, choice):
        assert len(built("signature", choice)(tokenize(self.TEXTS[2]))) > 0
