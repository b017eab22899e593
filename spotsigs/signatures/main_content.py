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

from spotsigs.records import Tokens
from spotsigs.signatures.spots import _FIRST_ANTECEDENT, SpotSignatures, _chain, _content_from
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
def _firsts(
    roles: NDArray[np.int32],
    first_chain: NDArray[np.int32],
    distances: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Return the antecedent's token of every spot, in the order of `spotsigs.signatures.spots._hash_spots`."""
    spots = 0
    for role in roles:
        if role >= _FIRST_ANTECEDENT:
            spots += first_chain[role - _FIRST_ANTECEDENT + 1] - first_chain[role - _FIRST_ANTECEDENT]
    firsts, n = np.empty(spots, np.int32), 0
    content = _content_from(roles)
    members = np.empty(min(lengths.max(), len(roles)), np.int32)
    for i in range(len(roles)):
        antecedent = roles[i] - _FIRST_ANTECEDENT
        if antecedent < 0:
            continue
        for chain in range(first_chain[antecedent], first_chain[antecedent + 1]):
            if _chain(content, i, distances[chain], lengths[chain], members) > 0:
                firsts[n] = i
                n += 1
    return firsts[:n]


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


def outline_of(scheme: SpotSignatures, tokens: Tokens) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Return a page's spots and links, in text order.

    Parameters
    ----------
    scheme : SpotSignatures
        What the spots are.
    tokens : Tokens
        Of one document, with their links.

    Returns
    -------
    hashes : ndarray of uint64, shape (n,)
        XXH64 of each spot signature, or of a link's tokens.
    kinds : ndarray of int32, shape (n,)
        `TEXT`, `LINKED` or `LINK`.
    """
    spots, table = scheme._spots(tokens)
    if table is None:
        firsts = np.arange(len(spots), dtype=np.int32)
    else:
        firsts = _firsts(table.words.roles_of(tokens), table.first_chain, table.distances, table.lengths)
    found: tuple[NDArray[np.uint64], NDArray[np.int32]] = _outline(
        tokens.buffer, tokens.starts, tokens.ends, no_links(tokens), firsts, spots
    )
    return found


@dataclass(frozen=True, kw_only=True, repr=False)
class DensestRegion(SpotSignatures):
    """Spot signatures of a page's densest region, found without looking at other pages.

    The region is the maximal-sum segment of the page, where a signature outside links adds 1 at its antecedent and a
    link adds -1 at its first token: where prose outweighs navigation. Signatures whose antecedent lies inside are
    kept. A text without links is kept whole, and so is a page without any signature outside links.

    Attributes
    ----------
    d, c : int
        Spot distance 1 and chain length 2: on short pages more signatures survive an edit than with the paper's.
    antecedents, stopwords, include_antecedent, language : sequence of str, sequence of str, bool, str
        As in `spotsigs.signatures.spots.SpotSignatures`.

    References
    ----------
    J. Pasternack, D. Roth, "Extracting Article Text from the Web with Maximum Subsequence Segmentation", WWW 2009.

    Deviations
    ----------
    Pasternack and Roth score tokens by a classifier that was trained on tags; here nothing is trained. Against prose
    stand links, not the mean of the page, which would cut into a text that has none.
    """

    label: ClassVar[str] = "SpotSigs, densest region"
    marked: ClassVar[bool] = True

    d: int = 1
    c: int = 2

    def __call__(self, tokens: Tokens) -> NDArray[np.uint64]:
        """Return the hash of every spot signature inside the region, in text order."""
        return super().__call__(tokens)[self._inside(tokens)]

    def chains(self, tokens: Tokens) -> list[list[int]]:
        """Return the numbers of the tokens that make each of these signatures."""
        return [chain for chain, kept in zip(super().chains(tokens), self._inside(tokens), strict=True) if kept]

    def _inside(self, tokens: Tokens) -> NDArray[np.bool_]:
        """Return for each spot whether it lies inside."""
        _, kinds = outline_of(self, tokens)
        start, stop = heaviest(own_gains(kinds))
        inside = np.zeros(len(kinds), np.bool_)
        inside[start:stop] = True
        of_spots: NDArray[np.bool_] = inside[kinds != LINK]
        return of_spots
