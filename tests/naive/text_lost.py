"""Reference implementation of text lost: sets of strings."""

from __future__ import annotations

from collections.abc import Sequence

from naive.extract import shingles, tokens


def text_lost(pages: Sequence[str], kept: Sequence[bool]) -> tuple[float, list[float | None]]:
    """Return the fraction of all distinct word 5-grams in no kept page, and that of each removed page."""
    sets = [set(shingles(tokens(page), 5)) for page in pages]
    there = set().union(*(own for own, stays in zip(sets, kept, strict=True) if stays))
    everything = set().union(*sets)
    of_page = [None if stays or not own else len(own - there) / len(own) for own, stays in zip(sets, kept, strict=True)]
    return len(everything - there) / max(len(everything), 1), of_page
