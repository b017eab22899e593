import unicodedata
from itertools import groupby, pairwise

import numpy as np
import pytest
import stopwordsiso
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from naive import extract as naive
from naive import templates
from strategies import examples

from spotsigs.errors import InputError
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text import tokens as module
from spotsigs.text.tokens import tokenize


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop, O'Neil!", "don t stop o neil"),
        ("state-of-the-art 3.5% U.S.", "state of the art 3 5 u s"),
        ("x_1 e\u0301te\u0301 naïve ŒUVRE", "x 1 été naïve œuvre"),
        ("ΟΔΟΣ ΟΔΟΣ. Σ", "οδος οδος σ"),
        ("İstanbul DİYARBAKIR", "i\u0307stanbul di\u0307yarbakir"),
        ("ⅣⅧ ½ m² ﬁn ٣٤ १२", "ivviii 1 2 m2 fin ٣٤ १२"),
        ("abc漢字x 漢 日本語", "abc 漢字 x 漢 日本 本語"),
        ("カー ﾊﾟﾝ 東京タワー が", "カー パン 東京 京タ タワ ワー が"),
        ("ประเทศ a ไ", "ปร ระ ะเ เท ทศ a ไ"),
        ("한국어 ქართული", "한국어 ქართული"),
        ("a\0b\ud800c\ufffdd\ufeffe", "a b c de"),
        ("co\xado\u200bp\u2060 ❤\ufe0f a\u034fb", "coop ab"),
        ("ｗｉｄｅ ｶﾞ 한국 \u1112\u1161\u11ab\u3131", "wide ガ 한국 한\u1100"),
        ("ភាសា ລາວ မြန် ꦗꦮ", "ភា ាស សា ລາ າວ မြ ြန န် ꦗꦮ"),
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


def test_every_form_in_the_table():
    numbers, offsets, forms = module.character_forms()
    for code in np.flatnonzero(numbers >= 0).tolist():
        form = forms[offsets[numbers[code]] : offsets[numbers[code] + 1]].tobytes().decode()
        assert form == naive.normalized(chr(code))
        assert not templates.joins(chr(code))


ALPHABET = st.one_of(
    st.sampled_from(
        "aAzZ09 '.-_:\0ßẞİıΣσςéÉǅ\u0301"
        "\u0323\u00b4\u1100\u1161\u11a8ﾡﾣ\u0f73ｶﾞ™ﬁ\xa0…កាꦗ\u200d\xad’漢字々かがカー\u3099ﾊﾟไทย한१Ⅷ²😀\ufe0f\ud800\udfff\U0001e900"
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


@examples(300)
@given(
    st.text(
        st.sampled_from("aAÉe ก\u0e38\u0e48\u0301\u093c\u094dक\u064b\u0651\ufb1dﬁ\u200d\u2122.Σ\u0344\u0958"),
        max_size=8,
    )
)
def test_marks_in_and_out_of_order(text):
    assert tokenize(text).words == naive.tokens(text)


def test_a_text_too_large_for_its_offsets(monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 3)
    assert tokenize("abc").words == ["abc"]
    with pytest.raises(InputError, match="3 bytes, this one has 4"):
        tokenize("abcd")


# other languages, against the Unicode data of the standard library and the lists of stopwordsiso

ALPHABETS = {
    "de": "abcdefghilmnoprstuäöüßÄẞ",
    "fr": "abcdeilmnoprstuéèêëàçîïôœæÉÇ",
    "tr": "abcdeğıiİIklmnoöprsşştuüyz",
    "el": "αβγδεήίιλμνοόπρσςτυωΣΑ",
    "ru": "абвгдеёжийклмнопрстуыьэюяЁЙ",
    "ar": "ابتثجحخدرسشصطعغفقكلمنهويءآةى\u064b\u064e\u0651\u0640٠٣٩",
    "fa": "ابپتجچدرسشفکگلمنوهی\u200c۰۵",
    "he": "אבגדהוזחטיכלמנסעפצקרשתםן\u05b0\u05b8",
    "hi": "अआइकखगचजतदनपबमयरलवसहक़\u093c\u093e\u093f\u0940\u0947\u094b\u094d\u0902\u200d०१",
    "ko": "가나다라마바사아자차카는이을를에서가",
    "vi": "abcdđeghiklmnoơpqrstuưvxyạảấầẩễịọốộớủứ\u0301\u0323",
    "zh": "的一是不了人我在有他这中大来上国漢字々〇",
    "ja": "のにはをたがで東京日本語カタナラーぁっヾﾊﾟﾝ\u3099",
    "km": "កខគងចជតថទធនបពមយរលវសហអាិីុូួើេែោំះ\u17d2",
    "lo": "ກຂຄງຈຊດຕຖທນບປພມຢຣລວສຫອະາິີຸູເແໂ່້",
    "my": "ကခဂငစဆတထနပဖဗမယရလဝသဟအာိီုူေံ့းျြွှ်",
    "jv": "ꦲꦤꦕꦫꦏꦢꦠꦱꦮꦭꦥꦝꦗꦪꦚꦩꦒꦧꦛꦔꦶꦸꦺꦴ꧀",
    "th": "กขคงจชดตถทนบปพมยรลวสหอะาิีุเแโไ่้์ๆ",
}
UNSPACED_LANGUAGES = {"zh", "ja", "th", "km", "lo", "my", "jv"}
STOPS = " \n,.!?’'-…«»。、，！؟،।॥״"
UNSPACED_NAMES = (
    "CJK UNIFIED IDEOGRAPH",
    "IDEOGRAPHIC",
    "HIRAGANA",
    "KATAKANA",
    "HALFWIDTH KATAKANA",
    "THAI ",
    "KHMER ",
)
UNSPACED_NAMES += ("LAO ", "MYANMAR ", "JAVANESE ")


def cut_by_unicode_data(text):
    """Return the tokens of a text: its categories and names are the standard library's."""
    kinds = []
    shown = text.replace("\u200c", "").replace("\u200d", "")
    for character in unicodedata.normalize("NFKC", shown).lower():
        name, category = unicodedata.name(character, ""), unicodedata.category(character)
        letter = category[0] in "LM" or category == "Nd"
        kinds.append((letter and name.removeprefix("COMBINING ").startswith(UNSPACED_NAMES), letter, character))
    tokens = []
    for (unspaced, letter), run in groupby(kinds, key=lambda kind: kind[:2]):
        word = "".join(character for _, _, character in run)
        if unspaced and len(word) > 1:
            tokens += map("".join, pairwise(word))
        elif letter:
            tokens.append(word)
    return tokens


@st.composite
def texts_of(draw, language):
    """Draw a text in the letters of a language, rich in its stopwords."""
    known = [] if language in UNSPACED_LANGUAGES else sorted(stopwordsiso.stopwords(language))[::7]
    word = st.text(ALPHABETS[language], min_size=1, max_size=7) | st.sampled_from(known or ["a"])
    pieces = draw(st.lists(st.tuples(word, st.sampled_from(STOPS)), min_size=1, max_size=25))
    return "".join(piece for both in pieces for piece in both)


@pytest.mark.parametrize("language", ALPHABETS)
@examples(60)
@given(st.data())
def test_tokens_of_a_language_by_unicode_data(language, data):
    text = data.draw(texts_of(language))
    assert tokenize(text).words == cut_by_unicode_data(text)


@pytest.mark.parametrize("language", sorted(set(ALPHABETS) - UNSPACED_LANGUAGES))
def test_spots_of_a_language_by_its_list_of_stopwords(language):
    listed = {token for word in stopwordsiso.stopwords(language) for token in cut_by_unicode_data(word)}
    scheme = SpotSignatures(language=language, d=1, c=2)

    @examples(40)
    @given(texts_of(language))
    def check(text):
        words = cut_by_unicode_data(text)
        chains = [
            [word, *[later for later in words[k + 1 :] if later not in listed][:2]]
            for k, word in enumerate(words)
            if word in listed
        ]
        expected = [":".join(chain) for chain in chains if len(chain) > 1]
        assert scheme.readable(text) == expected
        assert scheme(tokenize(text)).tolist() == [xxhash.xxh64_intdigest(spot.encode()) for spot in expected]

    check()
