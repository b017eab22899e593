"""Templates with a given density of spots, reached by exchanging blocks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import NamedTuple

from data.collections.gold.random_streams import Dice
from data.collections.newsframes.frames import Frame, visible
from data.collections.newsframes.reuters_stories import words
from spotsigs.signatures.spots import SpotSignatures

_ANTECEDENTS = frozenset(SpotSignatures().antecedents)
POOR = 0.02
"""Maximal spots per token of a block without prose."""
NEAREST = 20
"""Number of similar blocks among which the placebo draws."""


class _Block(NamedTuple):
    """Piece of text: markup, number of words and of antecedents."""

    html: str
    words: int
    spots: int


@cache
def _block(html: str) -> _Block:
    tokens = words(visible(html))
    return _Block(html, len(tokens), sum(token in _ANTECEDENTS for token in tokens))


def density(frame: Frame) -> float:
    """Return the spots per token of a template's visible text, without its article."""
    whole = _block(frame.bare())
    return whole.spots / whole.words if whole.words else 0.0


def with_density(
    frame: Frame, others: Sequence[Frame], target: float, dice: Dice, donors: Sequence[Donor] = ()
) -> Frame:
    """Exchange blocks of a template one by one until its spots have a given density.

    To raise the density, paragraphs of other sites' articles replace blocks without prose; to lower it, blocks without
    prose of other templates replace the blocks with most spots. New blocks have about as many words as those they
    replace, so the size of the template is preserved. The density is the closest to the target that the blocks allow.

    With `donors`, the same blocks are exchanged, but for blocks of other sites with about as many words and spots as
    those they replace: a placebo that keeps the density.
    """
    blocks_of = {i: _block(frame.pieces[i].html) for i in frame.blocks}
    _, tokens, spots = _block(frame.bare())
    strangers = [other for other in others if other.site != frame.site]
    changed: dict[int, str] = {}
    more = spots < target * tokens
    poor = [i for i in blocks_of if blocks_of[i].spots <= POOR * blocks_of[i].words and blocks_of[i].words]
    rich = sorted(
        (i for i in blocks_of if blocks_of[i].spots), key=lambda i: (blocks_of[i].spots / blocks_of[i].words, i)
    )
    waiting = dice.sample(poor, len(poor)) if more else rich
    while waiting and strangers and (spots < target * tokens) == more:
        place = waiting.pop()
        gone = [place]
        if more:
            text = _paragraph(strangers, dice)
            while waiting and sum(blocks_of[i].words for i in gone) < text.words:
                gone.append(waiting.pop())
            new = [text]
        else:
            new = _plain(strangers, blocks_of[place].words, dice)
        changed |= dict.fromkeys(gone, "")
        changed[place] = "<br>".join(part.html for part in new)
        tokens += sum(part.words for part in new) - sum(blocks_of[i].words for i in gone)
        spots += sum(part.spots for part in new) - sum(blocks_of[i].spots for i in gone)
    if donors:
        changed = {i: _alike(blocks_of[i], frame.site, donors, dice) for i in sorted(changed)}
    return frame.with_blocks(changed)


class Donor(NamedTuple):
    """Block that may replace another; donors are ordered by spots, then by words."""

    spots: int
    words: int
    site: str
    html: str


def donors_of(frames: Sequence[Frame]) -> list[Donor]:
    """Return the blocks with text of all templates, sorted."""
    blocks = ((frame.site, _block(frame.pieces[i].html)) for frame in frames for i in frame.blocks)
    return sorted({Donor(block.spots, block.words, site, block.html) for site, block in blocks if block.words})


def _alike(block: _Block, site: str, donors: Sequence[Donor], dice: Dice) -> str:
    """Draw one of the `NEAREST` donors of other sites that are next to a block in spots and words."""
    middle = bisect_left(donors, (block.spots, block.words))
    near = [donor for donor in donors[max(0, middle - NEAREST) : middle + NEAREST] if donor.site != site]
    near.sort(key=lambda donor: (abs(donor.spots - block.spots), abs(donor.words - block.words)))
    return dice.pick(near[:NEAREST]).html if near else block.html


def _paragraph(frames: Sequence[Frame], dice: Dice) -> _Block:
    while True:
        chosen = dice.pick(frames)
        if chosen.paragraphs:
            text = _block(escape(dice.pick(chosen.paragraphs)))
            if text.spots:
                return text


def _plain(frames: Sequence[Frame], size: int, dice: Dice) -> list[_Block]:
    """Draw blocks without spots with about the given number of words in total."""
    blocks: list[_Block] = []
    for _ in range(100 * size):
        if sum(part.words for part in blocks) >= size:
            break
        donor = dice.pick(frames)
        if donor.blocks:
            part = _block(donor.pieces[dice.pick(donor.blocks)].html)
            if part.words and not part.spots:
                blocks.append(part)
    return blocks
