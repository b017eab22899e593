"""Edits of a wire story by a site."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from data.collections.gold.random_streams import Dice
from data.collections.gold.sites import Site
from data.collections.gold.stories import ArticleTable, Paragraph, ProseWriter, Story, names

Block = Paragraph | ArticleTable


@dataclass(frozen=True)
class Version:
    """Version of a story on a site, as HTML fragments."""

    headline: str
    byline: str
    credit: str
    paragraphs: Sequence[str]


def edit(story: Story, site: Site, strength: int, dice: Dice) -> Version:
    """Edit a story for a site, with a strength from 0 (none) to 10 (cut, reordered and localised)."""
    lead: Block = story.leads[dice.chance(3 * strength)]
    blocks = _cut(story.paragraphs, strength, dice)
    blocks = [_shorten(block) if dice.chance(3 * strength) else block for block in blocks]
    blocks = _rearrange(blocks, strength, dice)
    local = ProseWriter(story.lexicon, story.cast, dice, here=site.town)
    for _ in range(dice.below(2 + strength // 2) if strength else 0):
        blocks.insert(dice.between(1, len(blocks)), local.paragraph("local"))
    if site.style.pages:
        blocks = blocks[: site.style.pages]
    slots = {
        "agency": names("agency_short")[story.agency],
        "agency_long": names("agency")[story.agency],
        "town": story.cast.towns[0],
        "Town": story.cast.towns[0],
        "TOWN": story.cast.towns[0].upper(),
        "state": story.cast.state,
        "name": story.reporter,
    }
    paragraphs = [site.style.block(block) for block in [lead, *blocks]]
    if site.style.dateline:
        paragraphs[0] = f"{site.style.markup(site.style.dateline.format(**slots))} {paragraphs[0]}"
    headline = story.headlines[min(dice.below(len(story.headlines)), dice.below(2 + strength // 2))]
    return Version(
        site.style.headline(headline),
        site.style.markup(site.style.byline.format(**slots)),
        site.style.markup(site.style.credit.format(**slots)),
        paragraphs,
    )


def _cut(paragraphs: Sequence[Block], strength: int, dice: Dice) -> list[Block]:
    """Drop paragraphs at the end, and some others."""
    keep = len(paragraphs)
    if dice.chance(10 + 6 * strength):
        keep = max(2, keep * dice.between(100 - 7 * strength, 100) // 100)
    return [block for i, block in enumerate(paragraphs[:keep]) if i == 0 or not dice.chance(2 * strength)]


def _shorten(block: Block) -> Block:
    """Drop the last sentence of a paragraph, or the end of its only one."""
    if isinstance(block, ArticleTable):
        return block
    if len(block) > 1:
        return block[:-1]
    main, _, tail = block[0].partition("|")
    return (main + "." if tail else main,)


def _rearrange(blocks: list[Block], strength: int, dice: Dice) -> list[Block]:
    """Swap, merge and split paragraphs."""
    result: list[Block] = []
    for block in blocks:
        last = result[-1] if result else None
        if last is not None and dice.chance(2 * strength):
            result.insert(-1, block)
        elif isinstance(last, tuple) and isinstance(block, tuple) and dice.chance(strength):
            result[-1] = last + block
        elif isinstance(block, tuple) and len(block) > 1 and dice.chance(2 * strength):
            result += [block[:1], block[1:]]
        else:
            result.append(block)
    return result
