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


def of_hashes(
    pages: Sequence[set[int]], kept: Sequence[bool], most: int
) -> tuple[int, float, float, list[float | None]]:
    """Return of how many hashes one is counted, so that no more than `most` are, and the figures of `text_lost`.

    A hash is drawn if it begins with enough zero bits; one that kept pages repeat counts once. 5-grams are even.
    """
    for bits in range(65):
        drawn = [{one for one in page if one < 2 ** (64 - bits)} for page in pages]
        stays = set().union(*(page for page, stays in zip(drawn, kept, strict=True) if stays))
        if len(stays) + sum(len(page) for page, stays in zip(drawn, kept, strict=True) if not stays) <= most:
            break
    grams = [{one for one in page if one % 2 == 0} for page in drawn]
    of_sentences, _ = _lost([page - own for page, own in zip(drawn, grams, strict=True)], kept)
    share, of_page = _lost(grams, kept)
    return 2**bits, share, of_sentences, of_page
