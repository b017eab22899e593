"""Trigram language model with interpolated Kneser-Ney smoothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

DISCOUNT = 0.75
_BITS = 21  # of a word's number; three of them fill an int64

IntArray = NDArray[np.int64]


class Trigrams:
    """Model of the words of documents.

    Parameters
    ----------
    documents : sequence of sequence of str
        Words of each document.
    vocabulary : sequence of str
        Known words; all others are one unknown word.

    References
    ----------
    S. F. Chen, J. Goodman. An empirical study of smoothing techniques for language modeling. 1999.
    """

    def __init__(self, documents: Sequence[Sequence[str]], vocabulary: Sequence[str]) -> None:
        self._numbers = {word: number for number, word in enumerate(vocabulary, 2)}  # 0: unknown; 1: border
        self._size = len(self._numbers) + 2
        rows = np.concatenate([self._trigrams(words) for words in documents])
        keys, counts = np.unique(_packed(rows), return_counts=True)
        pairs, continued = np.unique(keys & (1 << 2 * _BITS) - 1, return_counts=True)
        words, ended = np.unique(pairs & (1 << _BITS) - 1, return_counts=True)
        self._levels = [(keys, counts), (pairs, continued), (words, ended)]
        self._contexts = [_by_context(keys >> _BITS, counts), _by_context(pairs >> _BITS, continued)]

    def _trigrams(self, words: Sequence[str]) -> IntArray:
        """Return the numbers of the words and of the end, each with the two numbers before it, shape (n, 3)."""
        numbers = np.array([1, 1, *(self._numbers.get(word, 0) for word in words), 1], np.int64)
        return np.lib.stride_tricks.sliding_window_view(numbers, 3)

    def log_probabilities(self, words: Sequence[str]) -> NDArray[np.float64]:
        """Return the natural logarithm of the probability of each word and of the end of the document."""
        keys = _packed(self._trigrams(words))
        single, ended = self._levels[2]
        total = ended.sum()
        found = _looked_up(keys & (1 << _BITS) - 1, single, ended)
        probability = np.maximum(found - DISCOUNT, 0) / total + DISCOUNT * len(single) / total / self._size
        for level in (1, 0):
            masked = keys & (1 << (3 - level) * _BITS) - 1
            counts = _looked_up(masked, *self._levels[level])
            contexts, totals, kinds = self._contexts[level]
            n = _looked_up(masked >> _BITS, contexts, totals)
            distinct = _looked_up(masked >> _BITS, contexts, kinds)
            known = np.maximum(n, 1)
            mixed = np.maximum(counts - DISCOUNT, 0) / known + DISCOUNT * distinct / known * probability
            probability = np.where(n > 0, mixed, probability)
        return np.log(probability)


def _packed(rows: IntArray) -> IntArray:
    return rows[:, 0] << 2 * _BITS | rows[:, 1] << _BITS | rows[:, 2]


def _by_context(contexts: IntArray, counts: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the distinct contexts, the sum of the counts of each, and its number of distinct words."""
    distinct, rows, kinds = np.unique(contexts, return_inverse=True, return_counts=True)
    return distinct, np.bincount(rows, counts).astype(np.int64), kinds


def _looked_up(wanted: IntArray, keys: IntArray, values: IntArray) -> IntArray:
    """Return the value of each wanted key, 0 if there is none; the keys are sorted."""
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], 0)


def perplexity(train: Sequence[Sequence[str]], test: Sequence[Sequence[str]], vocabulary: Sequence[str]) -> float:
    """Return the perplexity per word of test documents under a model of the training documents."""
    model = Trigrams(train, vocabulary)
    return float(np.exp(-np.concatenate([model.log_probabilities(words) for words in test]).mean()))


def frequent_words(documents: Sequence[Sequence[str]]) -> list[str]:
    """Return the words that occur at least twice, the most frequent first."""
    counts = Counter(word for words in documents for word in words)
    return [word for word, count in counts.most_common() if count > 1]
