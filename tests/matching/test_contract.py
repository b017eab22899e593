"""What every matcher and every signature scheme promises; a new YAML is tested the moment it exists."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import ClassVar

import naive
import numpy as np
import pytest
from hydra import compose, initialize_config_dir

from baselines.shingles import Shingles
from experiments.config import build
from spotsigs import tokenize
from spotsigs.matching.brute_force import BruteForce
from spotsigs.records import Pairs
from spotsigs.testing import check_matcher, check_signature_scheme, corpus_of, news

CONF = Path(__file__).parents[2] / "conf"
TAUS = (1 / 3, 0.44, 0.5, 1.0)


def choices(group):
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def built(group, choice, *overrides):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", ["data=tiny", f"{group}={choice}", *overrides])
    return build(config[group], group)


@pytest.mark.parametrize("choice", choices("matcher"))
class TestEveryMatcher:
    def test_it_keeps_the_contract(self, choice):
        check_matcher(built("matcher", choice))

    @pytest.mark.parametrize("tau", TAUS)
    def test_exact_ones_equal_the_definition_and_verified_ones_are_part_of_it(self, choice, tau):
        matcher = built("matcher", choice, f"tau={tau}")
        definitions = {
            "jaccard": naive.similar_pairs,
            "cosine": naive.cosine_pairs,
            "containment": naive.contained_pairs,
        }
        if matcher.measure not in definitions or not matcher.verified:
            pytest.skip(f"its measure is {matcher.measure}: its own tests compare it with its definition")
        texts = news(5)
        wanted = definitions[matcher.measure]([Counter(tokenize(text).words) for text in texts], tau)
        pairs = matcher(corpus_of(texts))
        found = dict(zip(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True), pairs.similarity.tolist(), strict=True))
        assert found.keys() <= wanted.keys()
        np.testing.assert_allclose([found[pair] for pair in found], [wanted[pair] for pair in found], rtol=1e-12)
        if matcher.exact:
            assert found.keys() == wanted.keys()


@pytest.mark.parametrize("choice", choices("signature"))
def test_every_signature_scheme_keeps_the_contract(choice):
    check_signature_scheme(built("signature", choice))


class Broken(BruteForce):
    """Breaks one part of the contract, by name."""

    part: ClassVar[str] = ""

    def __call__(self, corpus):
        pairs = super().__call__(corpus)
        rows = {
            "last": slice(None, -1),  # an exact matcher that misses a pair
            "none": slice(0, 0),
        }[self.part]
        return Pairs.build(pairs.i[rows], pairs.j[rows], pairs.similarity[rows], pairs.n, pairs.seconds)


@pytest.mark.parametrize(("part", "message"), [("last", "depend|missing|differ|order"), ("none", "no pair")])
def test_a_broken_matcher_is_found(part, message, monkeypatch):
    monkeypatch.setattr(Broken, "part", part)
    with pytest.raises(AssertionError, match=message):
        check_matcher(Broken(tau=0.44))


class Shifted(Shingles):
    """Breaks the contract: the readable form lacks the first signature."""

    def readable(self, text):
        return super().readable(text)[1:]


def test_a_broken_signature_scheme_is_found():
    with pytest.raises(AssertionError, match="readable"):
        check_signature_scheme(Shifted(k=1))
