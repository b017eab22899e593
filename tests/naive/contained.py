"""Reference implementation of contents: sets of hashes, and every two documents compared."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import xxhash

WORDS = 5


def phrase(words: Sequence[str], first: int) -> int:
    """Return 31 bits of the hash of the five words from a word on, fewer at the end."""
    return xxhash.xxh64_intdigest(":".join(words[first : first + WORDS]).encode()) >> 33


def contents(
    located: Sequence[tuple[int, int]], words: Sequence[str], compared: Collection[int], marked: bool
) -> tuple[set[int], set[int]]:
    """Return the phrases of a page, and its own ones, by the hashes and first words of its signatures.

    `compared` has the hashes of the signatures that are compared; a page without one has no phrases.
    """
    if not compared:
        return set(), set()
    upper = {signature >> 32 for signature in compared}
    everything = {phrase(words, first) for _, first in located}
    own = {phrase(words, first) for signature, first in located if signature >> 32 in upper}
    if marked and not own:
        own = {signature >> 33 for signature in compared if signature % 2}
    return everything | own, own


def contained(own: set[int], other: set[int]) -> float:
    """Return the fraction of a page's own phrases that another page has; 1 without any."""
    return sum(one in other for one in own) / len(own) if own else 1.0


def lower_bound(a: int, b: int, similarity: float, missing: Sequence[int], lengths: Sequence[int]) -> float:
    """Return the similarity if all signatures that are missing were different; of a page to itself, 1."""
    if a == b:
        return similarity
    shared = round((lengths[a] + lengths[b]) * similarity / (1 + similarity))
    return shared / max(lengths[a] + missing[a] + lengths[b] + missing[b] - shared, 1)


def may_remove(
    pages: Sequence[tuple[set[int], set[int]]],
    least: float,
    sections: Sequence[int],
    section_tau: float,
    bound: Callable[[int, int, float], float] = lambda a, b, similarity: similarity,
    least_bound: float = 0,
) -> Callable[[int, int, float], bool]:
    """Return whether one page may be removed for another one of some similarity."""

    def may(removed: int, kept: int, similarity: float) -> bool:
        certain = bound(removed, kept, similarity)
        apart = certain < section_tau and sections[removed] != 0 and sections[removed] == sections[kept]
        inside = removed == kept or contained(pages[removed][1], pages[kept][0]) >= least
        return certain >= least_bound and not apart and (least == 0 or inside)

    return may
