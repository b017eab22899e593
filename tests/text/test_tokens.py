import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from naive import extract as naive
from strategies import examples

from spotsigs.errors import InputError
from spotsigs.text import tokens as module
from spotsigs.text.tokens import tokenize


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop, O'Neil!", "don t stop o neil"),
        ("state-of-the-art 3.5% U.S.", "state of the art 3 5 u s"),
        ("x_1 e\u0301te\u0301 naïve ŒUVRE", "x 1 e\u0301te\u0301 naïve œuvre"),
        ("ΟΔΟΣ ΟΔΟΣ. Σ", "οδος οδος σ"),
        ("İstanbul DİYARBAKIR", "i\u0307stanbul di\u0307yarbakir"),
        ("ⅣⅧ ½ ² ٣٤ १२", "٣٤ १२"),
        ("abc漢字x 漢 日本語", "abc 漢字 x 漢 日本 本語"),
        ("カー ﾊﾟﾝ 東京タワー が", "カー ﾊﾟ ﾟﾝ 東京 京タ タワ ワー が"),
        ("ประเทศ a ไ", "ปร ระ ะเ เท ทศ a ไ"),
        ("한국어 ქართული", "한국어 ქართული"),
        ("a\0b\ud800c\ufffdd\ufeffe", "a b c d e"),
        ("👍🏽 ok😀ok", "ok ok"),
        ("", ""),
        (" .,\u2019", ""),
    ],
)
def test_tokenize(text, words):
    assert tokenize(text).words == words.split() == naive.tokens(text)


@pytest.mark.compiled
def test_every_code_point_alone_and_between_letters():
    everything = [chr(code) for code in range(0x110000)]
    for text in (" ".join(everything), "a".join(everything)):
        assert tokenize(text).words == naive.tokens(text)


ALPHABET = st.one_of(
    st.sampled_from(
        "aAzZ09 '.-_:\0ßẞİıΣσςéÉǅ\u0301\u200d\xad’漢字々かがカー\u3099ﾊﾟไทย한१Ⅷ²😀\ufe0f\ud800\udfff\U0001e900"
    ),
    st.characters(),
)


@examples(200)
@given(st.text(ALPHABET, max_size=40))
def test_any_text(text):
    tokens = tokenize(text)
    assert tokens.words == naive.tokens(text)
    spans = [tokens.buffer[a:b].tobytes().decode() for a, b in zip(tokens.starts, tokens.ends, strict=True)]
    assert spans == tokens.words
    assert tokens.buffer.tobytes().decode() == ":".join(spans)
    assert (tokens.buffer.dtype, tokens.starts.dtype, tokens.ends.dtype) == (np.uint8, np.int32, np.int32)


def test_a_text_too_large_for_its_offsets(monkeypatch):
    monkeypatch.setattr(module, "_MAX_BYTES", 3)
    assert tokenize("abc").words == ["abc"]
    with pytest.raises(InputError, match="3 bytes, this one has 4"):
        tokenize("abcd")


def test_planes_that_are_not_looked_at_have_no_letters():
    edges = [place for span in module._PLANES for place in span]
    for first, last in zip([0, *edges[1::2]], [*edges[::2], 0x110000], strict=True):
        rest = np.arange(first, last, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
        assert regex.search(module.TOKEN_PATTERN, rest) is None
