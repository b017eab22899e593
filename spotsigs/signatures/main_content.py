"""The main content of a page: the part where prose outweighs links, found on one page alone.

A page is reduced to its outline: its signatures and its links in text order. The main content is the segment of the
outline with the largest sum, where a signature in running text counts 1 and a link counts negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xxhash
from numpy.typing import NDArray

from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.types import Bytes, Int32s, Int64s, UInt64s
from spotsigs.contracts import SignatureScheme
from spotsigs.records import Tokens
from spotsigs.text.hashing import xxh64

TEXT, LINKED, LINK = range(3)
"""Kinds of an outline's entries: a signature in running text, one whose first token is in a link, and a link.

Links of weight w, which depends on the page, have the kind ``LINK + w - 1``.
"""

SHINGLE = -1
"""Kind of a shingle of the whole text, which is no part of the main content."""

Located = tuple[UInt64s, Int32s]
"""Hashes and first tokens of signatures, see `spotsigs.contracts.SignatureScheme.located`."""

LINK_TOKENS = 4
"""A link weighs as much as the signatures of so many tokens of the page's running text, rounded down, at least 1."""


@kernel
def heaviest(gains: Int64s) -> tuple[int, int]:
    """Return the segment of largest sum: the first of the shortest, then extended to the right over zeros.

    If no gain is positive, the segment is everything.
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


@kernel
def own_gains(kinds: Int32s) -> Int64s:
    """Return the gain of each entry: 1 in running text, 0 in a link and for a shingle, minus its weight for a link."""
    gains = np.zeros(len(kinds), np.int64)
    for i in range(len(kinds)):
        gains[i] = LINKED - kinds[i] if kinds[i] >= TEXT else 0
    return gains


@kernel
def _outline(
    buffer: Bytes, starts: Int32s, ends: Int32s, links: Int32s, firsts: Int32s, signatures: UInt64s, site: np.uint64
) -> tuple[UInt64s, Int32s]:
    """Return hashes and kinds of signatures and links in text order, a link before the signature at its first token."""
    room = len(firsts) + len(starts)
    hashes, kinds = np.empty(room, np.uint64), np.empty(room, np.int32)
    n, at, i, text_tokens, text_signatures = 0, 0, 0, 0, 0
    while i < len(starts):
        stop = i + 1
        if links[i] != 0:
            while stop < len(starts) and links[stop] == links[i]:
                stop += 1
            hashes[n], kinds[n] = xxh64(buffer, starts[i], ends[stop - 1]) ^ site, LINK
            n += 1
        text_tokens += links[i] == 0
        while at < len(firsts) and firsts[at] < stop:
            hashes[n], kinds[n] = signatures[at], LINKED if links[i] != 0 else TEXT
            text_signatures += links[i] == 0
            n, at = n + 1, at + 1
        i = stop
    weight = max(LINK_TOKENS * text_signatures // max(text_tokens, 1), 1)
    for k in range(n):
        if kinds[k] == LINK:
            kinds[k] = LINK + weight - 1
    return hashes[:n].copy(), kinds[:n].copy()


def outline_of(
    scheme: SignatureScheme, tokens: Tokens, site: str = "", located: Located | None = None
) -> tuple[UInt64s, Int32s]:
    """Return hashes and kinds of a page's signatures and links, in text order; links of different sites are different.

    A hash is the XXH64 of a signature, or of a link's tokens; a kind is `TEXT`, `LINKED`, or at least `LINK`. The
    signatures are ``located`` by the scheme, unless that has been done.
    """
    signatures, firsts = scheme.located(tokens) if located is None else located
    links = np.zeros(len(tokens), np.int32) if tokens.links is None else tokens.links
    of_site = np.uint64(xxhash.xxh64_intdigest(site.encode()) if site else 0)
    entries: tuple[UInt64s, Int32s] = _outline(
        tokens.buffer, tokens.starts, tokens.ends, links, firsts, signatures, of_site
    )
    return entries


@dataclass(frozen=True, kw_only=True)
class MainContent(SignatureScheme):
    """Signatures of a page's main content, found without other pages.

    The main content is the segment of the page with the largest sum, where a signature in running text adds 1 at its
    first token, a signature in a link 0, and a link subtracts its weight. Signatures that begin inside are kept. A text
    without links is kept whole, and so is a page without any signature in running text.

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
    prose is balanced by the gain of links, not by the mean of the page, which would cut into a text without links.
    """

    label: ClassVar[str] = "main content"
    marked: ClassVar[bool] = True

    signature: SignatureScheme

    def __call__(self, tokens: Tokens) -> NDArray[np.uint64]:
        """Return the hash of every signature inside the main content, in text order."""
        return self.located(tokens)[0]

    def located(self, tokens: Tokens) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Return the hash and the first token of each of these signatures."""
        hashes, firsts = self.signature.located(tokens)
        inside = self._inside(tokens)
        return hashes[inside], firsts[inside]

    def language_of(self, tokens: Tokens) -> str | None:
        """Return the language of the signatures of a text."""
        return self.signature.language_of(tokens)

    def readable(self, text: str) -> list[str]:
        """Return the signatures of a plain text in readable form; without links, all are kept."""
        return self.signature.readable(text)

    def chains(self, tokens: Tokens) -> list[list[int]] | None:
        """Return the numbers of the tokens of each of these signatures."""
        chains = self.signature.chains(tokens)
        return chains and [chain for chain, kept in zip(chains, self._inside(tokens), strict=True) if kept]

    def _inside(self, tokens: Tokens) -> NDArray[np.bool_]:
        _, kinds = outline_of(self.signature, tokens)
        start, stop = heaviest(own_gains(kinds))
        inside = np.zeros(len(kinds), np.bool_)
        inside[start:stop] = True
        of_signatures: NDArray[np.bool_] = inside[kinds < LINK]
        return of_signatures
