"""Shingles: k-grams of contiguous tokens, as compared by Broder; single tokens for k = 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spotsigs.contracts import SignatureScheme
from spotsigs.errors import require
from spotsigs.records import Tokens
from spotsigs.text.hashing import hash_shingles
from spotsigs.text.tokens import tokenize


@dataclass(frozen=True, kw_only=True)
class Shingles(SignatureScheme):
    """Every ``k`` contiguous tokens, in canonical form ``w1:w2:w3``, hashed by XXH64.

    A document of fewer than ``k`` tokens has one shingle of all its tokens, an empty document none.

    Attributes
    ----------
    k : int
        Tokens in a shingle, at least 1.
    sets : bool
        Count repeated shingles once.
    mod_p : int or None
        Keep the shingles whose hash is 0 modulo ``mod_p``, about one in ``mod_p``; None keeps all.

    Raises
    ------
    InputError
        If a field is out of range.

    References
    ----------
    A. Z. Broder, S. C. Glassman, M. S. Manasse, G. Zweig, "Syntactic Clustering of the Web", Computer Networks and
    ISDN Systems 29, 1997: shingles, resemblance, and the selection by value modulo a number.

    Deviations
    ----------
    Fingerprints are XXH64 instead of Rabin's, so ``mod_p`` keeps other shingles than Broder's code, with the same
    probability. Broder compares sets; the default here are multisets, as in the SpotSigs paper.
    """

    label: ClassVar[str] = "Shingles"

    k: int = 3
    sets: bool = False
    mod_p: int | None = None

    def __post_init__(self) -> None:
        require(self.k >= 1, f"k, the tokens of a shingle, must be at least 1, got {self.k}")
        require(self.mod_p is None or self.mod_p >= 1, f"mod_p must be at least 1 or null, got {self.mod_p}")

    def _selected(self, tokens: Tokens) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
        """Return the hash of every shingle, and the positions of the selected ones in text order."""
        if len(tokens) == 0:
            return np.empty(0, np.uint64), np.empty(0, np.intp)
        hashes = hash_shingles(tokens, self.k)
        rows = np.sort(np.unique(hashes, return_index=True)[1]) if self.sets else np.arange(len(hashes))
        if self.mod_p is not None:
            rows = rows[hashes[rows] % np.uint64(self.mod_p) == 0]
        return hashes, rows

    def __call__(self, tokens: Tokens) -> NDArray[np.uint64]:
        """Return the XXH64 of every shingle, in text order."""
        hashes, rows = self._selected(tokens)
        return hashes[rows]

    def located(self, tokens: Tokens) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Return the hash and the first token of every shingle, in the same order."""
        hashes, rows = self._selected(tokens)
        return hashes[rows], rows.astype(np.int32)

    def readable(self, text: str) -> list[str]:
        """Return every shingle of a plain text in canonical form, in the same order.

        Examples
        --------
        >>> Shingles(k=2).readable("You killed my father.")
        ['you:killed', 'killed:my', 'my:father']
        """
        tokens = tokenize(text)
        words = tokens.words
        return [":".join(words[row : row + self.k]) for row in self._selected(tokens)[1].tolist()]
