"""Shingles of all of a text: the unit in which a passage is found within a longer text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spotsigs.contracts import SignatureScheme
from spotsigs.errors import as_count
from spotsigs.records import Tokens
from spotsigs.text.hashing import hash_signed_shingles
from spotsigs.text.tokens import tokenize


@dataclass(frozen=True, kw_only=True)
class TextShingles(SignatureScheme):
    """Every ``k`` contiguous tokens of a text, however short; they differ by signs that carry meaning, too.

    A passage of at least ``k`` tokens that a longer text quotes has the same shingles there, but for those at its ends
    next to which the longer text has such a sign. Spot signatures of a short passage are few, and may end beyond it.

    The hash of a shingle without such signs is the XXH64 of its readable form, which does not show signs.

    Attributes
    ----------
    k : int
        Tokens of a shingle, 1 to 1000.
    """

    label: ClassVar[str] = "text shingles"

    k: int = 5

    def __post_init__(self) -> None:
        as_count("k, the tokens of a shingle,", self.k, most=1000)

    def __call__(self, tokens: Tokens) -> NDArray[np.uint64]:
        """Return the hash of every shingle, in text order."""
        return hash_signed_shingles(tokens, self.k)

    def located(self, tokens: Tokens) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Return the hash and the first token of every shingle, in the same order."""
        hashes = self(tokens)
        return hashes, np.arange(len(hashes), dtype=np.int32)

    def readable(self, text: str) -> list[str]:
        """Return every shingle of a plain text as its tokens, joined by colons, in the same order.

        Examples
        --------
        >>> TextShingles(k=2).readable("The quick, brown fox")
        ['the:quick', 'quick:brown', 'brown:fox']
        """
        tokens = tokenize(text)
        words = tokens.words
        return [":".join(words[k] for k in chain) for chain in self.chains(tokens)]

    def chains(self, tokens: Tokens) -> list[list[int]]:
        """Return the numbers of the tokens of each shingle, in the same order."""
        size = min(self.k, len(tokens))
        return [list(range(i, i + size)) for i in range(len(tokens) - size + 1)] if size else []
