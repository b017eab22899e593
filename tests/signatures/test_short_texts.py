"""Short texts: compared by all of their shingles, which differ by the signs that carry meaning."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import extract as naive
from strategies import examples

import spotsigs
from spotsigs.options import TAU
from spotsigs.signatures.languages import IN_SHINGLES
from spotsigs.signatures.spots import FEWEST, SHINGLE_TOKENS, SpotSignatures
from spotsigs.text.hashing import hash_shingles, hash_signed_shingles
from spotsigs.text.tokens import tokenize

ALWAYS, BY_DIGITS, DASHES = "+<=>×∪∩€$#%😀", "*/^.,:", "-\u2010\u2013\u2212"
WORDS = ["the", "a", "12", "4", "x2", "naïve", "漢字", "c"]
GAPS = st.text(st.sampled_from([*ALWAYS, *BY_DIGITS, *DASHES, " ", "|", "~", "!", "'", ";"]), max_size=3)


def meaning(gap: str, following: str) -> str:
    """Return the signs of a gap that carry meaning before a word."""
    by_digits = following[:1].isdecimal()
    return "".join(
        "-" if sign in DASHES else sign for sign in gap if sign in ALWAYS or (by_digits and sign in BY_DIGITS + DASHES)
    )


@examples(200)
@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6),
    *(st.lists(GAPS, min_size=7, max_size=7) for _ in range(2)),
    st.integers(1, 4),
)
def test_shingles_differ_where_their_words_or_signs_do(words, one, two, k):
    size = min(k, len(words))
    hashes = []
    for gaps in (one, two):
        text = " ".join([gaps[0], *(f"{word} {gap}" for word, gap in zip(words, gaps[1:], strict=False))])
        signs = [meaning(gap, word) for gap, word in zip(gaps, [*words, ""], strict=False)]
        tokens = tokenize(text)
        assert tokens.words == words == naive.tokens(text)
        plain = hash_shingles(tokens, k)
        signed = hash_signed_shingles(tokens, k)
        for i, (without, hash_) in enumerate(zip(plain, signed, strict=True)):
            assert (without == hash_) == (not any(signs[i : i + size + 1]))
        hashes.append([(h, signs[i : i + size + 1]) for i, h in enumerate(signed)])
    for (first, its_signs), (second, other_signs) in zip(*hashes, strict=True):
        assert (first == second) == (its_signs == other_signs)


@pytest.mark.parametrize(
    ("text", "other", "equal"),
    [
        ("12-4", "12\u22124", True),
        ("12-4", "12+4", False),
        ("12-4", "12 - 4", True),
        ("12-4", "12 4", False),
        ("well-known", "well known", True),
        ("1.5", "1,5", False),
        ("Home | About", "Home About", True),
        ("€5", "$5", False),
        ("A ∪ B", "A ∩ B", False),
        ("C++ is", "C# is", False),
        ("-12", "12", False),
        ("good 😀", "good 😡", False),
        ("a < b", "a > b", False),
        ("a.b", "a b", True),
        ("5 cm²", "5 cm³", False),
    ],
)
def test_signs_that_carry_meaning(text, other, equal):
    one, two = (hash_signed_shingles(tokenize(each), 8).tolist() for each in (text, other))
    assert (one == two) == equal


ITEMS = [
    [f"What is 12 {sign} 4?" for sign in "+-*/"],
    [f"The price of the ticket is {sign}5 and it will be sent to you" for sign in "€$£¥"],
    [f"{name} is the best language of all for the work that we do" for name in ("C", "C++", "C#")],
    [f"Return the {word} of the list, which is the first" for word in ("length", "sum", "mean", "first", "last")],
    ["the cat is on the mat", "on the mat is the cat", "the mat is on the cat"],
]


@pytest.mark.parametrize("texts", ITEMS)
@pytest.mark.parametrize("boilerplate", ["auto", "keep", "main_content"])
def test_short_texts_of_similarity_1_are_the_same(texts, boilerplate):
    rows = [{"text": text} for text in [*texts, texts[0].upper(), f" {texts[1]}  "]]
    assert len(spotsigs.dedup(rows, tau=1, method=spotsigs.Method.of(boilerplate=boilerplate))) == len(texts)


def test_short_texts_are_cut_into_all_of_their_shingles():
    scheme = SpotSignatures(language="auto")
    sentence = "The council has approved the plan for a bridge"
    tokens = tokenize(sentence)
    assert scheme(tokens).tolist() == (hash_shingles(tokens, SHINGLE_TOKENS) | IN_SHINGLES).tolist()
    assert scheme.readable(sentence) == naive.shingles(naive.tokens(sentence), SHINGLE_TOKENS)
    long = tokenize(". ".join([sentence] * FEWEST))
    assert not np.any(scheme(long) & IN_SHINGLES)
    paper = SpotSignatures()
    assert paper(tokens).tolist() == naive.hashed(paper.readable(sentence))


VERBS, NAMES = "Return Compute Store Find Copy Close".split(), "table server reader cluster window packet".split()
SENTENCES = {
    "sentences": "{verb} the {name} of the {other} before it is used by the {last} of {k} callers.",
    "errors": "<h1>{k} {name}</h1><p>The {other} was not found on the server of the {last}.",
}


@pytest.mark.parametrize("kind", SENTENCES)
def test_a_short_text_is_removed_only_for_one_that_shares_its_words(kind):
    rng = np.random.default_rng(7)
    texts = [
        SENTENCES[kind].format(verb=rng.choice(VERBS), name=a, other=b, last=c, k=400 + rng.integers(20))
        for a, b, c in rng.choice(NAMES, (300, 3))
    ]
    kept = spotsigs.dedup(texts)
    assert 20 < len(kept) < len(set(texts))

    def shingles(text):
        return set(naive.shingles(naive.tokens(naive.visible_text(text)), SHINGLE_TOKENS))

    of_kept = list(map(shingles, kept))
    for text in set(texts) - set(kept):
        own = shingles(text)
        assert max(len(own & other) / len(own | other) for other in of_kept) >= TAU
