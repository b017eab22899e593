"""Frames with more or less prose in them: blocks exchanged until spots are as dense as wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape

from data.collections.gold.random_streams import Dice
from data.collections.newsframes.frames import Frame, visible
from data.collections.newsframes.reuters_stories import words
from spotsigs.signatures.spots import SpotSignatures

_ANTECEDENTS = frozenset(SpotSignatures().antecedents)
POOR = 0.02
"""Spots per token of a block without prose, at most."""


@dataclass(frozen=True)
class _Held:
    """A piece of text: its markup, its words and the antecedents among them."""

    html: str
    words: int
    spots: int


def spots(tokens: Sequence[str]) -> int:
    """Return how many words are antecedents of the paper's best set, each of which begins a spot signature."""
    return sum(token in _ANTECEDENTS for token in tokens)


@cache
def _held(html: str) -> _Held:
    tokens = words(visible(html))
    return _Held(html, len(tokens), spots(tokens))


def density(frame: Frame) -> float:
    """Return the spots per token of a frame's visible text, without its article."""
    tokens = words(visible(frame.bare()))
    return spots(tokens) / len(tokens) if tokens else 0.0


def with_density(frame: Frame, others: Sequence[Frame], target: float, dice: Dice) -> Frame:
    """Exchange blocks of a frame, one after another, until its spots are as dense as wanted.

    For more spots, blocks without prose make room for paragraphs of articles of other sites; for fewer, the blocks
    with most spots make room for blocks without prose of other frames. What comes in has about as many words as what
    goes out, so that frames stay as large as they are.

    Parameters
    ----------
    frame : Frame
        Whose blocks are exchanged.
    others : sequence of Frame
        Where blocks and paragraphs come from.
    target : float
        Spots per token of the frame.
    dice : Dice
        The frame's own.

    Returns
    -------
    Frame
        As near to the target as its blocks allow.
    """
    held = {i: _held(frame.pieces[i].html) for i in frame.blocks}
    whole = _held(frame.bare())
    tokens, found = whole.words, whole.spots
    strangers = [other for other in others if other.site != frame.site]
    changed: dict[int, str] = {}
    more = found < target * tokens
    poor = [i for i in held if held[i].spots <= POOR * held[i].words and held[i].words]
    rich = sorted((i for i in held if held[i].spots), key=lambda i: (held[i].spots / held[i].words, i))
    waiting = dice.sample(poor, len(poor)) if more else rich
    while waiting and strangers and (found < target * tokens) == more:
        place = waiting.pop()
        gone = [place]
        if more:
            text = _paragraph(strangers, dice)
            while waiting and sum(held[i].words for i in gone) < text.words:
                gone.append(waiting.pop())
            new = [text]
        else:
            new = _plain(strangers, held[place].words, dice)
        changed |= dict.fromkeys(gone, "")
        changed[place] = "<br>".join(part.html for part in new)
        tokens += sum(part.words for part in new) - sum(held[i].words for i in gone)
        found += sum(part.spots for part in new) - sum(held[i].spots for i in gone)
    return frame.with_blocks(changed)


def _paragraph(frames: Sequence[Frame], dice: Dice) -> _Held:
    """Draw a paragraph of some frame's own article."""
    while True:
        chosen = dice.pick(frames)
        if chosen.paragraphs:
            text = _held(escape(dice.pick(chosen.paragraphs)))
            if text.spots:
                return text


def _plain(frames: Sequence[Frame], size: int, dice: Dice) -> list[_Held]:
    """Draw blocks without spots, of about that number of words in all."""
    found: list[_Held] = []
    for _ in range(100 * size):
        if sum(part.words for part in found) >= size:
            break
        donor = dice.pick(frames)
        if donor.blocks:
            part = _held(donor.pieces[dice.pick(donor.blocks)].html)
            if part.words and not part.spots:
                found.append(part)
    return found
