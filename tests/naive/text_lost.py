"""Reference implementation of text lost: sets of strings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from naive.extract import shingles, tokens

END = re.compile("[.!?](?![0-9A-Za-z])|[\u3002\uff01\uff1f\f]|\n(?=\n)")


def sentences(page: str) -> set[tuple[str, ...]]:
    """Return the tokens of each sentence that has one."""
    return {tuple(words) for part in END.split(page.lower()) if (words := tokens(part))}


def text_lost(pages: Sequence[str], kept: Sequence[bool]) -> tuple[float, float, list[float | None]]:
    """Return the fraction of all distinct word 5-grams in no kept page, of sentences, and of each removed page."""
    share, of_page = _lost([set(shingles(tokens(page), 5)) for page in pages], kept)
    return share, _lost([sentences(page) for page in pages], kept)[0], of_page


def _lost(sets: Sequence[set], kept: Sequence[bool]) -> tuple[float, list[float | None]]:
    of_kept = set().union(*(grams for grams, stays in zip(sets, kept, strict=True) if stays))
    everything = set().union(*sets)
    removed = [set() if stays else grams for grams, stays in zip(sets, kept, strict=True)]
    of_page = [len(grams - of_kept) / len(grams) if grams else None for grams in removed]
    return len(everything - of_kept) / max(len(everything), 1), of_page
