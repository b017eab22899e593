"""The contract of every matcher and every signature scheme; a new YAML file is tested as soon as it exists."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import ClassVar

import naive
import numpy as np
import pytest
import xxhash
from hydra import compose, initialize_config_dir
from naive.sets import cosine_pairs, edited_copies
from strategies import by_rows, vectors_of
from test_matcher import VARIANTS as EXACT

from baselines.cosine import Cosine
from baselines.imatch import IMatch
from baselines.lcs.lcs_method import Lcs
from baselines.lsh import Lsh
from baselines.lsh_native import LshNative
from baselines.shingles import Shingles
from baselines.simhash import SimHash, Weights
from baselines.sketch import Kind, Sketch
from experiments.config import build
from spotsigs import tokenize
from spotsigs.errors import InputError
from spotsigs.matching.brute_force import BruteForce
from spotsigs.matching.containment import Containment
from spotsigs.records import Corpus, Pairs
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.testing import check_matcher, check_signature_scheme, corpus_of, news

CONF = Path(__file__).parents[2] / "conf"
TAUS = (1 / 3, 0.44, 0.5, 1.0)


def choices(group):
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


@cache
def built(group, choice):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", ["data=tiny", f"{group}={choice}"])
    return build(config[group], group)


TEXTS = news(5)
DEFINITIONS = {"jaccard": naive.similar_pairs, "cosine": cosine_pairs, "containment": naive.contained_pairs}


@cache
def defined(measure, tau):
    return DEFINITIONS[measure]([Counter(tokenize(text).words) for text in TEXTS], tau)


@pytest.mark.parametrize("choice", choices("matcher"))
class TestEveryMatcher:
    def test_it_keeps_the_contract(self, choice):
        check_matcher(built("matcher", choice), any_order=choice != "substrings")

    def test_exact_ones_equal_the_definition_and_verified_ones_are_part_of_it(self, choice):
        matcher = built("matcher", choice)
        if matcher.measure not in DEFINITIONS or not matcher.verified:
            pytest.skip(f"its measure is {matcher.measure}: its own tests compare it with its definition")
        corpus = corpus_of(TEXTS)
        for tau in TAUS:
            wanted, actual = defined(matcher.measure, tau), by_rows(matcher.at(tau)(corpus))
            assert actual.keys() <= wanted.keys()
            np.testing.assert_allclose([actual[pair] for pair in actual], [wanted[pair] for pair in actual], rtol=1e-12)
            if matcher.exact:
                assert actual.keys() == wanted.keys()


MOST = [
    *(kind(tau=0.5) for kind in EXACT.values()),
    Cosine(tau=0.1),
    IMatch(idf_min=0, idf_max=1, lexica=3),
    Lsh(),
    LshNative(),
    *(SimHash(weights=weights, radius=63) for weights in Weights),
    *(Sketch(kind=kind, modulus=1, tau=0.01) for kind in Kind),
]
"""Methods with the parameters that find most pairs."""

SEEDED = [
    Lsh(tau=0.2, k=3, l=4),
    LshNative(tau=0.2, k=3, l=4),
    *(Sketch(kind=k, size=20, modulus=3, tau=0.2) for k in Kind),
]
UNSEEDED = [Cosine(tau=0.4), *(SimHash(weights=weights, radius=radius) for weights in Weights for radius in (3, 12))]


@pytest.mark.parametrize("matcher", MOST, ids=repr)
@pytest.mark.parametrize("documents", [[], [{1: 2}], [{}, {}], [{}, {}, {}], [{1: 1}, {}], [{}, {1: 1}, {}]], ids=str)
def test_nothing_to_pair(matcher, documents):
    pairs = matcher(Corpus(vectors_of(list(map(Counter, documents)))))
    assert (len(pairs), pairs.n) == (0, len(documents))


@pytest.mark.parametrize("n", [2, 9, 100])
@pytest.mark.parametrize(
    "matcher",
    [m.at(1.0) if m.threshold is not None else m for m in MOST if not isinstance(m, (Cosine, IMatch))],
    ids=repr,
)
def test_identical_documents_all_pair(matcher, n):
    pairs = matcher(Corpus(vectors_of([Counter({1: 4, 7: 1})] * n)))
    assert by_rows(pairs) == dict.fromkeys(combinations(range(n), 2), 1.0)


@pytest.mark.parametrize("matcher", SEEDED + UNSEEDED, ids=repr)
def test_order_and_threads_do_not_matter_and_the_seed_does(matcher):
    documents = edited_copies(6)
    order = np.random.default_rng(5).permutation(len(documents))
    wanted = by_rows(matcher(Corpus(vectors_of(documents))))
    assert wanted
    assert by_rows(matcher.with_threads(3)(Corpus(vectors_of(documents)))) == wanted
    assert by_rows(matcher(Corpus(vectors_of([documents[x] for x in order]))), order) == wanted
    if matcher in SEEDED:
        assert by_rows(replace(matcher, seed=1)(Corpus(vectors_of(documents)))) != wanted


WRONG = [
    *(
        (kind, {"tau": tau}, "tau must be in")
        for kind in (Lsh, LshNative, Sketch, Cosine, Containment, Lcs)
        for tau in (0.0, 1.1)
    ),
    *(
        (kind, {"threads": 0}, "threads must be at least")
        for kind in (Lsh, LshNative, Sketch, SimHash, Cosine, Containment, Lcs)
    ),
    *((kind, {"seed": -1}, "seed must") for kind in (Lsh, LshNative, Sketch, IMatch)),
    *((kind, {"k": 0}, "k must be at least 1") for kind in (Lsh, LshNative)),
    *((kind, {"l": 0}, "l must be at least") for kind in (Lsh, LshNative)),
    (Sketch, {"size": 0}, "size must be at least 1"),
    (Sketch, {"modulus": 0}, "modulus must be at least 1"),
    (Sketch, {"super_shingles": 7}, "super_shingles=7 must divide size=200"),
    (Sketch, {"super_shingles": 4, "kind": Kind.smallest}, "super_shingles need kind=permutations"),
    (Sketch, {"super_shingles": 4, "common_super_shingles": 5}, r"must be in \[1, 4\]"),
    (Sketch, {"super_shingles": -1}, "must not be negative"),
    (SimHash, {"bits": 65}, "bits"),
    *((SimHash, {"radius": radius}, "radius") for radius in (64, -1)),
    (SimHash, {"blocks": 3}, "blocks"),
    (IMatch, {"idf_min": 0.8}, "idf_min"),
    (IMatch, {"idf_max": 1.2}, "idf_max"),
    *((IMatch, {name: value}, name) for name, value in (("lexica", 0), ("lexicon_share", 1.0))),
    *((Lcs, {name: value}, name) for name, value in (("buckets", 0), ("smallest", 0), ("max_set", 1), ("sketch", -1))),
    *((Lcs, {name: value}, name) for name, value in (("coherence", 1.0), ("central", 0.0))),
    (Shingles, {"k": 0}, "k, .* got 0"),
    (Shingles, {"mod_p": 0}, "mod_p .* got 0"),
    (SpotSignatures, {"d": 0}, r"spot distance, must be in \[1, 1000\], got 0"),
    (SpotSignatures, {"c": 0}, r"chain length, must be in \[1, 1000\], got 0"),
    (SpotSignatures, {"antecedents": []}, "give at least one word"),
    *((SpotSignatures, {"antecedents": [word]}, "neither a word nor of the form") for word in ("the(2", "")),
    (SpotSignatures, {"antecedents": ["the(0,3)"]}, r"got \(0,3\)"),
    (SpotSignatures, {"antecedents": ["@nowhere"]}, "no stopword list 'nowhere': give one of prototype, smart, or"),
    (SpotSignatures, {"stopwords": "nowhere"}, "no stopword list 'nowhere'"),
]


@pytest.mark.parametrize(("kind", "wrong", "message"), WRONG)
def test_bad_parameters(kind, wrong, message):
    with pytest.raises(InputError, match=message):
        kind(**wrong)


SIGNED = "text_shingles"
"""A scheme whose hashes have signs, which its readable form does not show."""


@pytest.mark.parametrize("choice", [choice for choice in choices("signature") if choice != SIGNED])
def test_every_signature_scheme_keeps_the_contract(choice):
    check_signature_scheme(built("signature", choice))


@pytest.mark.parametrize(
    "text", ["", "one two", "Don't you think it is time? 東京は大きい。 สวัสดี ünïcödé İstanbul the"]
)
def test_signed_shingles_keep_it_where_there_are_no_signs(text):
    scheme = built("signature", SIGNED)
    hashes, firsts = scheme.located(tokenize(text))
    readable = [xxhash.xxh64_intdigest(shingle.encode()) for shingle in scheme.readable(text)]
    assert hashes.tolist() == scheme(tokenize(text)).tolist() == readable
    assert firsts.tolist() == [chain[0] for chain in scheme.chains(tokenize(text))]
    signed = [scheme(tokenize(f"the sum {sign} of two small numbers")).tolist() for sign in "+-€"]
    assert all(a != b for k, a in enumerate(signed) for b in signed[:k])


class Broken(BruteForce):
    """An exact matcher that misses pairs."""

    stop: ClassVar[int] = 0

    def __call__(self, corpus):
        pairs, rows = super().__call__(corpus), slice(self.stop)
        return Pairs.build(pairs.i[rows], pairs.j[rows], pairs.similarity[rows], pairs.n, pairs.seconds)


@pytest.mark.parametrize(("stop", "message"), [(-1, "depend|missing|differ|order"), (0, "no pair")])
def test_an_exact_matcher_that_misses_pairs_is_detected(stop, message, monkeypatch):
    monkeypatch.setattr(Broken, "stop", stop)
    with pytest.raises(AssertionError, match=message):
        check_matcher(Broken(tau=0.44))


class Shifted(Shingles):
    def readable(self, text):
        return super().readable(text)[1:]


def test_a_readable_form_without_the_first_signature_is_detected():
    with pytest.raises(AssertionError, match="readable"):
        check_signature_scheme(Shifted(k=1))
