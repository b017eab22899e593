"""The language model of the practice study is Kneser-Ney's by its recursive definition."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from experiments.work.ngram_model import DISCOUNT, Trigrams, frequent_words, perplexity


def smoothed(documents, vocabulary, context, word):
    """Return the Kneser-Ney probability of a word by its recursive definition."""
    known = ["?", "#", *vocabulary]
    padded = [["#", "#", *(w if w in vocabulary else "?" for w in words), "#"] for words in documents]
    grams = [tuple(words[k : k + 3]) for words in padded for k in range(len(words) - 2)]
    counts = {gram: grams.count(gram) for gram in grams}
    levels = [{pair: len({g for g in counts if g[1:] == pair}) for pair in {g[1:] for g in counts}}, {}]
    levels[1] = {pair[1:]: len({p for p in levels[0] if p[1:] == pair[1:]}) for pair in levels[0]}

    def probability(table, rest, history):
        mine = {gram: count for gram, count in table.items() if gram[:-1] == history}
        lower = probability(rest[0], rest[1:], history[1:]) if rest else 1 / len(known)
        if not mine:
            return lower
        total = sum(mine.values())
        return max(mine.get((*history, word), 0) - DISCOUNT, 0) / total + DISCOUNT * len(mine) / total * lower

    return probability(counts, levels, context)


words = st.lists(st.sampled_from("abcd"), max_size=6)


@examples(40)
@given(st.lists(words, min_size=1, max_size=4), words)
def test_probabilities_are_those_of_kneser_ney(train, test):
    vocabulary = frequent_words(train)
    numbered = [w if w in vocabulary else "?" for w in test]
    padded = ["#", "#", *numbered, "#"]
    expected = [log(smoothed(train, vocabulary, tuple(padded[k : k + 2]), padded[k + 2])) for k in range(len(test) + 1)]
    model = Trigrams(train, vocabulary)
    assert model.log_probabilities(test) == pytest.approx(expected)
    assert perplexity(train, [test], vocabulary) == pytest.approx(exp(-np.mean(expected)))


def test_probabilities_add_up_to_one():
    train = [list("abcabd"), list("abba")]
    vocabulary = frequent_words(train)
    model = Trigrams(train, vocabulary)
    for context in ("ab", "ba", "dd"):
        ends = [*vocabulary, "unknown"]
        total = sum(np.exp(model.log_probabilities([*context, word])[2]) for word in ends)
        assert total + np.exp(model.log_probabilities(list(context))[2]) == pytest.approx(1)
