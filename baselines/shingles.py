"""Shingling (Broder et al. 1997): all windows of k contiguous tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.errors import require
from spotsigs.records import Tokens
from spotsigs.tokens import tokenize
from spotsigs.xxh64 import _xxh64


@njit(cache=True, nogil=True)
def _hash_windows(buffer: NDArray[np.uint8], starts: NDArray[np.int32], ends: NDArray[np.int32]) -> NDArray[np.uint64]:
    hashes = np.empty(len(starts), np.uint64)
    for i in range(len(starts)):
        hashes[i] = _xxh64(buffer, starts[i], ends[i])
    return hashes


@dataclass(frozen=True, kw_only=True)
class Shingles:
    """The k-shingling of a document, as a multiset; a document of fewer tokens has one shingle of all of them.

    Attributes
    ----------
    k : int
        Tokens of a shingle; 1 gives single tokens.
    sets : bool
        Count every shingle of a document once, as the resemblance of the lecture slides does.
    mod_p : int or None
        Keep the shingles whose hash is 0 modulo this, about one of ``mod_p``; None keeps all.

    References
    ----------
    A. Broder, S. Glassman, M. Manasse, G. Zweig, "Syntactic clustering of the Web", Computer Networks 29, 1997.

    Deviations
    ----------
    Shingles are hashed by XXH64 instead of Rabin fingerprints.
    """

    label: ClassVar[str] = "Shingles"

    k: int = 3
    sets: bool = False
    mod_p: int | None = None

    def __post_init__(self) -> None:
        require(self.k >= 1, f"k must be at least 1, got {self.k}")
        require(self.mod_p is None or self.mod_p >= 1, f"mod_p must be at least 1, got {self.mod_p}")

    def __call__(self, tokens: Tokens) -> NDArray[np.uint64]:
        """Return the hash of every kept shingle, in text order."""
        if len(tokens) == 0:
            return np.empty(0, np.uint64)
        k = min(self.k, len(tokens))
        hashes = _hash_windows(tokens.buffer, tokens.starts[: len(tokens) - k + 1], tokens.ends[k - 1 :])
        return hashes[self._kept(hashes)]

    def readable(self, text: str) -> list[str]:
        """Return the same shingles as tokens joined by colons.

        Examples
        --------
        >>> Shingles(k=2).readable("My name is Inigo")
        ['my:name', 'name:is', 'is:inigo']
        """
        tokens = tokenize(text)
        words = tokens.words
        if not words:
            return []
        k = min(self.k, len(words))
        hashes = _hash_windows(tokens.buffer, tokens.starts[: len(words) - k + 1], tokens.ends[k - 1 :])
        return [":".join(words[at : at + k]) for at in np.flatnonzero(self._kept(hashes)).tolist()]

    def _kept(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        kept = np.ones(len(hashes), dtype=bool)
        if self.sets:
            kept[:] = False
            kept[np.unique(hashes, return_index=True)[1]] = True
        if self.mod_p is not None:
            kept &= hashes % np.uint64(self.mod_p) == 0
        return kept
