"""Slow, obvious twins of links, regions and frames: plain Python on lists and sets."""

from __future__ import annotations

from collections.abc import Sequence

from tests import naive_extract

LINK_MARK, LINK_END_MARK, BLOCK_MARK = "\x1e", "\x1f", "\f"
TEXT, LINKED, LINK = range(3)


def links(text: str) -> list[int]:
    """The link of each token of a marked text: that of its first character."""
    of_character: list[int] = []
    last, inside = 0, False
    for character in text:
        if character in (LINK_MARK, LINK_END_MARK):
            inside = character == LINK_MARK
            last += inside
        else:
            last += character == BLOCK_MARK and inside
            of_character += [last if inside else 0] * len(character.lower())
    plain = text.replace(LINK_MARK, "").replace(LINK_END_MARK, "").lower()
    return [of_character[at] for at in _token_starts(plain)]


def _token_starts(lowered: str) -> list[int]:
    """The places where `naive_extract.tokens` finds its words."""
    starts = []
    for run in naive_extract.RUN.finditer(lowered):
        at = run.start()
        for part in naive_extract.UNSPACED.finditer(lowered, run.start(), run.end()):
            starts += [at] * (part.start() > at)
            starts += range(part.start(), max(part.end() - 1, part.start() + 1))
            at = part.end()
        starts += [at] * (run.end() > at)
    return starts


def heaviest(gains: Sequence[int]) -> tuple[int, int]:
    """The segment of largest sum: the first of the shortest, extended over zeros; everything if none is positive."""
    n = len(gains)
    sums = {(i, j): sum(gains[i:j]) for i in range(n) for j in range(i + 1, n + 1)}
    best = max(sums.values(), default=0)
    if best <= 0:
        return 0, n
    stop = min(j for (i, j), total in sums.items() if total == best)
    start = max(i for (i, j), total in sums.items() if total == best and j == stop)
    while stop < n and gains[stop] == 0:
        stop += 1
    return start, stop
