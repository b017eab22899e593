from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import xxhash
from hydra.utils import instantiate
from hypothesis import given
from hypothesis import strategies as st
from naive import extract as naive
from naive.extract import ROOT
from omegaconf import OmegaConf
from strategies import examples

from baselines.shingles import Shingles
from spotsigs.errors import InputError
from spotsigs.signatures.spots import SpotSignatures, read_stopwords
from spotsigs.text import hashing
from spotsigs.text.tokens import tokenize

SENTENCE = (
    "At a rally to kick off a weeklong campaign for the South Carolina primary, Obama tried to set the record straight "
    "from an attack circulating widely on the Internet that is designed to play into prejudices against Muslims and "
    "fears of terrorism."
)


def xxh64(data):
    return int(hashing.xxh64(np.frombuffer(data, np.uint8), 0, len(data)))


def test_every_length_hashes_as_xxhash():
    data = np.random.default_rng(1).bytes(400)
    for size in range(len(data) + 1):
        assert xxh64(data[:size]) == xxhash.xxh64_intdigest(data[:size])


def test_the_papers_sentence():
    scheme = SpotSignatures(antecedents=["a", "an", "the", "is"], d=1, c=2)
    spots = """a:rally:kick a:weeklong:campaign the:south:carolina the:record:straight an:attack:circulating
        the:internet:designed is:designed:play"""
    assert scheme.readable(SENTENCE) == spots.split()
    assert scheme(tokenize(SENTENCE)).tolist() == naive.hashed(scheme.readable(SENTENCE))


def test_chains_slide_over_stopwords_and_antecedents():
    scheme = SpotSignatures(antecedents=["the", "said"], d=2, c=2)
    assert scheme.readable("the red of and said fox with a jump") == ["the:fox:jump", "said:jump"]
    assert SpotSignatures(antecedents=["said"], d=1, c=1, stopwords=None).readable("said said of x") == ["said:of"] * 2


def test_one_antecedent_may_have_several_chains():
    scheme = SpotSignatures(antecedents=["is(3,1)", "that( 5 , 2 )", "is (2,1)", "is(3,1)"], stopwords=None)
    assert scheme.readable("is w1 w2 w3 that") == ["is:w3", "is:w2"]
    chain_only = SpotSignatures(antecedents=["is(3,1)", "is"], d=1, c=2, stopwords=None, include_antecedent=False)
    assert chain_only.readable("is w1 w2 w3") == ["w3", "w1:w2"]


WORDS = ["the", "a", "is", "of", "and", "therefore", "thereafter", "thereaft", "x", "fox", "jumpsjumps", "漢字", "été"]


@examples(100)
@given(
    st.lists(st.sampled_from(WORDS), max_size=30),
    st.lists(st.tuples(st.sampled_from(WORDS), st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from([None, "prototype", "smart"]),
)
def test_any_words_under_any_spot_set(words, entries, include, stopwords):
    scheme = SpotSignatures(
        antecedents=[f"{w}({d},{c})" for w, d, c in entries], include_antecedent=include, stopwords=stopwords
    )
    chains = {}
    for word, d, c in dict.fromkeys(entries):
        chains.setdefault(naive.tokens(word)[0], []).append((d, c))
    stop = set(read_stopwords(stopwords)) if stopwords else set()
    expected = naive.spots(words, chains, stop, include)
    text = " ".join(words)
    assert scheme.readable(text) == expected
    hashes = scheme(tokenize(text))
    assert hashes.dtype == np.uint64
    assert hashes.tolist() == naive.hashed(expected)


def test_stopword_lists():
    lines = {
        name: (ROOT / f"spotsigs/signatures/stopwords/{name}.txt").read_text().split("\n")[:-1]
        for name in ("prototype", "smart")
    }
    assert [len(lines["prototype"]), len(lines["smart"])] == [363, 571]
    assert {"don", "t", "nbsp"} <= set(read_stopwords("prototype"))
    assert {"c", "s", "mon"} <= set(read_stopwords("smart"))
    everything = SpotSignatures(antecedents=["@smart(1,1)"], stopwords="smart")
    assert everything.readable("Unfortunately, the fox can't") == ["unfortunately:fox", "the:fox"]


@pytest.mark.parametrize("text", ["", "...", "the", "the the the", "fox", "the " * 1000])
def test_degenerate_texts(text):
    assert SpotSignatures().readable(text) == []
    assert SpotSignatures()(tokenize(text)).shape == (0,)


def test_long_runs_of_stopwords_take_linear_time():
    text = "the " * 200_000 + "fox"
    assert len(SpotSignatures(d=1, c=3)(tokenize(text))) == 200_000


@pytest.mark.parametrize("word", ["don't", "漢字漢", "!"])
def test_antecedents_are_single_tokens(word):
    with pytest.raises(InputError, match="is not one token but"):
        SpotSignatures(antecedents=[word])(tokenize("x"))


def test_a_scheme_is_a_value():
    scheme = SpotSignatures(d=3)
    assert SpotSignatures(d=3) == scheme != SpotSignatures()
    with pytest.raises(FrozenInstanceError):
        scheme.d = 1


@pytest.mark.parametrize("path", sorted((ROOT / "conf/signature").glob("spotsigs*.yaml")), ids=lambda path: path.stem)
def test_configurations(path):
    scheme = instantiate(OmegaConf.load(path), _convert_="object")
    assert all(type(entry) is str for entry in scheme.antecedents)
    assert scheme.readable("The cat that was in a box said: the dog is on top of it with the red ball.")
    if path.stem == "spotsigs":
        assert scheme == SpotSignatures()


@examples(100)
@given(
    st.lists(st.sampled_from(["a", "b", "rose", "is", "漢", "été"]), max_size=20),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from([None, 1, 2, 5]),
)
def test_shingles_of_any_words(words, k, sets, mod_p):
    scheme, text = Shingles(k=k, sets=sets, mod_p=mod_p), " ".join(words)
    expected = naive.shingles(words, k)
    expected = list(dict.fromkeys(expected)) if sets else expected
    expected = [s for s in expected if naive.hashed([s])[0] % (mod_p or 1) == 0]
    assert scheme.readable(text) == expected
    hashes = scheme(tokenize(text))
    assert hashes.dtype == np.uint64
    assert hashes.tolist() == naive.hashed(expected)


@pytest.mark.parametrize(("name", "k"), [("shingles", 4), ("shingles1", 1), ("shingles3", 3), ("tokens", 1)])
def test_configurations_of_shingles(name, k):
    assert instantiate(OmegaConf.load(ROOT / f"conf/signature/{name}.yaml")) == Shingles(k=k)
