"""Reference implementation of a comparison with a reference: every two pages, in loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from naive import Multiset, jaccard

Page = tuple[str, Multiset]
Near = Callable[[Page, Page], bool]
"""A page is its text, by which exact duplicates are detected, and its signatures."""


def equal(one: Page, other: Page) -> bool:
    """Return whether two pages are exact duplicates."""
    return one[0] == other[0] != ""


def resembles(tau: float) -> Near:
    """Return whether two pages are equal or reach tau."""
    return lambda one, other: equal(one, other) or jaccard(one[1], other[1]) >= tau


def contains(tau: float) -> Near:
    """Return whether a page is equal to another one, or contains tau of it."""
    return lambda page, part: equal(page, part) or _shared(page, part) / max(part[1].total(), 1) >= tau


def within(tau: float) -> Near:
    """Return whether two pages are equal, or the longer one contains tau of the shorter one."""
    return lambda one, other: contains(tau)(*sorted((one, other), key=lambda page: -page[1].total()))


def _shared(one: Page, other: Page) -> int:
    return Counter(one[1] & other[1]).total()


def crossed(pages: Sequence[Page], reference: Sequence[Page], near: Near) -> list[tuple[int, int]]:
    """Return the numbers of each page and of each page of the reference that it is near."""
    return [(i, j) for i, page in enumerate(pages) for j, other in enumerate(reference) if near(page, other)]


def kept(pages: Sequence[Page], reference: Sequence[Page], near: Near, alike: Near) -> list[int]:
    """Return the numbers of the pages that are near no page of the reference and alike no page that is kept before."""
    stays: list[int] = []
    for i, page in enumerate(pages):
        if not any(near(page, other) for other in reference) and not any(alike(page, pages[k]) for k in stays):
            stays.append(i)
    return stays
