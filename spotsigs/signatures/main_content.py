"""The main part of a page: where prose outweighs links, found on one page alone.

A page is seen as its outline: its spots and its links in text order. Its main part is the maximal-sum segment of that
sequence, where a spot in running text counts 1, a spot in a link 0 and a link -1. Text without links is all main part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.records import SignatureScheme, Tokens
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.xxh64 import _xxh64

TEXT, LINKED, LINK = range(3)
"""Kinds of an outline's entries: a spot in running text, a spot whose antecedent lies in a link, a link."""


@njit(cache=True, nogil=True)
def heaviest(gains: NDArray[np.int64]) -> tuple[int, int]:
    """Return the segment of largest sum: the first of the shortest, then extended to the right over zeros.

    Where no gain is positive, everything.
    """
    best, start, stop = 0, 0, len(gains)
    total, begin = 0, 0
    for i in range(len(gains)):
        if total <= 0:
            total, begin = 0, i
        total += gains[i]
        if total > best:
            best, start, stop = total, begin, i + 1
    while stop < len(gains) and gains[stop] == 0:
        stop += 1
    return start, stop


@njit(cache=True, nogil=True)
def own_gains(kinds: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return what each entry of an outline adds to a segment: 1 for a spot in running text, -1 for a link."""
    gains = np.zeros(len(kinds), np.int64)
    for i in range(len(kinds)):
        gains[i] = (kinds[i] == TEXT) - np.int64(kinds[i] == LINK)
    return gains


@njit(cache=True, nogil=True)
def _outline(
    buffer: NDArray[np.uint8],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    links: NDArray[np.int32],
    firsts: NDArray[np.int32],
    spots: NDArray[np.uint64],
) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Return the hashes and kinds of spots and links in text order, a link before the spot at its first token."""
    hashes, kinds = np.empty(len(firsts) + len(starts), np.uint64), np.empty(len(firsts) + len(starts), np.int32)
    n, spot, i = 0, 0, 0
    while i < len(starts):
        stop = i + 1
        if links[i] != 0:
            while stop < len(starts) and links[stop] == links[i]:
                stop += 1
            hashes[n], kinds[n] = _xxh64(buffer, starts[i], ends[stop - 1]), LINK
            n += 1
        while spot < len(firsts) and firsts[spot] < stop:
            hashes[n], kinds[n] = spots[spot], LINKED if links[i] != 0 else TEXT
            n, spot = n + 1, spot + 1
        i = stop
    return hashes[:n].copy(), kinds[:n].copy()


def no_links(tokens: Tokens) -> NDArray[np.int32]:
    """Return the tokens' links, none where the text does not say."""
    return np.zeros(len(tokens), np.int32) if tokens.links is None else tokens.links


def outline_of(scheme: SignatureScheme, tokens: Tokens) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Return a page's signatures and links, in text order.

    Parameters
    ----------
    scheme : SignatureScheme
        Source of the signatures.
    tokens : Tokens
        Tokens of one document, with their links.

    Returns
    -------
    hashes : ndarray of uint64, shape (n,)
        XXH64 of each signature, or of a link's tokens.
    kinds : ndarray of int32, shape (n,)
        `TEXT`, `LINKED` or `LINK`.
    """
    signatures, firsts = scheme.located(tokens)
    found: tuple[NDArray[np.uint64], NDArray[np.int32]] = _outline(
        tokens.buffer, tokens.starts, tokens.ends, no_links(tokens), firsts, signatures
    )
    return found


@dataclass(frozen=True, kw_only=True)
class MainContent(SignatureScheme):
    """Signatures of a page's main content, found without other pages.

    The main content is the maximal-sum segment of the page, where a signature outside links adds 1 at its first token
    and a link adds -1. Signatures that begin inside are kept. A text without links is kept whole, and so is a page
    without any signature outside links.

    Attributes
    ----------
    signature : SignatureScheme
        Source of the signatures.

    References
    ----------
    J. Pasternack, D. Roth, "Extracting Article Text from the Web with Maximum Subsequence Segmentation", WWW 2009.

    Deviations
    ----------
    Pasternack and Roth score tokens by a classifier that was trained on tags; here nothing is trained. The weight of
    prose is balanced by that of links, not by the mean of the page, which would cut into a text without links.
    """

    label: ClassVar[str] = "main content"
    marked: ClassVar[bool] = True

    signature: SignatureScheme

    @property
    def name(self) -> str:
        """The name of the signatures, with what is done to them."""
        return f"{self.signature.name}, {self.label}"

    @property
    def tells_languages(self) -> bool:
        """Whether hashes tell shingles from spots."""
        return self.signature.tells_languages

    def __call__(self, tokens: Tokens) -> NDArray[np.uint64]:
        """Return the hash of every signature inside the main content, in text order."""
        return self.located(tokens)[0]

    def located(self, tokens: Tokens) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Return the hash and the first token of the same signatures."""
        hashes, firsts = self.signature.located(tokens)
        inside = self._inside(tokens)
        return hashes[inside], firsts[inside]

    def readable(self, text: str) -> list[str]:
        """Return the signatures of a plain text in readable form: it has no links, so that all are kept."""
        return self.signature.readable(text)

    def chains(self, tokens: Tokens) -> list[list[int]] | None:
        """Return the numbers of the tokens that make each of the same signatures."""
        chains = self.signature.chains(tokens)
        return chains and [chain for chain, kept in zip(chains, self._inside(tokens), strict=True) if kept]

    def _inside(self, tokens: Tokens) -> NDArray[np.bool_]:
        _, kinds = outline_of(self.signature, tokens)
        start, stop = heaviest(own_gains(kinds))
        inside = np.zeros(len(kinds), np.bool_)
        inside[start:stop] = True
        of_signatures: NDArray[np.bool_] = inside[kinds != LINK]
        return of_signatures


@dataclass(frozen=True, kw_only=True, repr=False)
class DensestRegion(SpotSignatures):
    """Spot signatures of a page's main content, see `MainContent`."""

    label: ClassVar[str] = "SpotSigs, densest region"
    marked: ClassVar[bool] = True

    d: int = 1
    c: int = 2

    def located(self, tokens: Tokens) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Return the hash and the antecedent's token of every spot signature inside."""
        hashes, firsts = super().located(tokens)
        inside = self._inside(tokens)
        return hashes[inside], firsts[inside]

    def chains(self, tokens: Tokens) -> list[list[int]]:
        """Return the numbers of the tokens that make each of the same signatures."""
        return [chain for chain, kept in zip(super().chains(tokens), self._inside(tokens), strict=True) if kept]

    def _inside(self, tokens: Tokens) -> NDArray[np.bool_]:
        hashes, firsts = super().located(tokens)
        kinds = _outline(tokens.buffer, tokens.starts, tokens.ends, no_links(tokens), firsts, hashes)[1]
        start, stop = heaviest(own_gains(kinds))
        inside = np.zeros(len(kinds), np.bool_)
        inside[start:stop] = True
        of_signatures: NDArray[np.bool_] = inside[kinds != LINK]
        return of_signatures
