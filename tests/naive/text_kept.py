"""Reference implementation of pages that stay for their text: sets, and every two pages compared."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

RARE = 4


def limit(n: int, share: float) -> float:
    """Return how many of n sampled grams a page may lose: one standard error more than the share."""
    return share * n + sqrt(n * share * (1 - share))


def lost(pages: Sequence[set[int]], page: int, distinct: set[int], stays: set[int]) -> int:
    """Return how many grams of a page are in at most four distinct pages, and in none that stays."""
    rare = [gram for gram in pages[page] if sum(gram in pages[other] for other in distinct) <= RARE]
    return sum(not any(gram in pages[other] for other in stays) for gram in rare)


def text_kept(
    pages: Sequence[set[int]], kept: Sequence[bool], of: Sequence[int], order: Sequence[int], share: float, old: int = 0
) -> set[int]:
    """Return the removed documents that stay: `of` has the representative of each, whose grams count for its set."""
    distinct, stays, for_text = set(of), {of[row] for row, stays in enumerate(kept) if stays}, set()
    for row in order:
        page = of[row]
        if row < old or kept[row] or page in stays:
            continue
        if lost(pages, page, distinct, stays) > limit(len(pages[page]), share):
            stays.add(page)
            for_text.add(row)
    return for_text
