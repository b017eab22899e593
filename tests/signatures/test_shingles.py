import numpy as np
import pytest
from hydra.utils import instantiate
from hypothesis import given
from hypothesis import strategies as st
from naive import extract as naive
from naive.extract import ROOT
from omegaconf import OmegaConf
from strategies import examples

from baselines.shingles import Shingles
from spotsigs.errors import InputError
from spotsigs.text.tokens import tokenize


@examples(100)
@given(
    st.lists(st.sampled_from(["a", "b", "rose", "is", "漢", "été"]), max_size=20),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from([None, 1, 2, 5]),
)
def test_any_words(words, k, sets, mod_p):
    scheme, text = Shingles(k=k, sets=sets, mod_p=mod_p), " ".join(words)
    expected = naive.shingles(words, k)
    expected = list(dict.fromkeys(expected)) if sets else expected
    expected = [s for s in expected if naive.hashed([s])[0] % (mod_p or 1) == 0]
    assert scheme.readable(text) == expected
    hashes = scheme(tokenize(text))
    assert hashes.dtype == np.uint64
    assert hashes.tolist() == naive.hashed(expected)


@pytest.mark.parametrize(("fields", "sentence"), [({"k": 0}, "k, .* got 0"), ({"mod_p": 0}, "mod_p .* got 0")])
def test_wrong_fields(fields, sentence):
    with pytest.raises(InputError, match=sentence):
        Shingles(**fields)


@pytest.mark.parametrize(("name", "k"), [("shingles", 4), ("shingles1", 1), ("shingles3", 3), ("tokens", 1)])
def test_configurations(name, k):
    assert instantiate(OmegaConf.load(ROOT / f"conf/signature/{name}.yaml")) == Shingles(k=k)
