"""Templates that change between crawls: each page independently replaces a fraction of its short blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.collections.gold.random_streams import Dice
from data.collections.gold.stories import ProseWriter, Story, town_name

if TYPE_CHECKING:
    from data.collections.gold.newsroom import Newsroom

LINKS = ("nav", "towns")
LISTS = ("teasers", "headlines", "ads", "comments", "pitches")


def drifted(newsroom: Newsroom, shown: dict[str, Any], story: Story, drift: float, dice: Dice) -> dict[str, Any]:
    """Replace a fraction of the blocks around an article by new ones of the same kind.

    Parameters
    ----------
    newsroom : Newsroom
        Generator of the site's pages.
    shown : dict
        Values for the template.
    story : Story
        Story of the page, which comments refer to.
    drift : float
        Probability in [0, 1] of replacing a block. Blocks are the links of menus and listings of
        towns, teasers, headlines, advertisements, comments, subscription pitches, and each line of the day's boxes.
    dice : Dice
        Random stream of the page.

    Returns
    -------
    dict
        Values with the same keys and lists of the same lengths.
    """
    writer = ProseWriter(story.lexicon, story.cast, dice, here=newsroom.site.town)

    def fresh(kind: str, old: Any) -> Any:
        if not dice.chance(100 * drift):
            return old
        if kind in LINKS:
            return newsroom.link(town_name(dice))
        if kind == "ads":
            return newsroom.fresh_ad(dice)
        if kind == "comments":
            return {**old, "text": newsroom.site.markup(" ".join(writer.paragraph("comment")))}
        if kind == "pitches":
            return newsroom.site.markup(newsroom.boilerplate("pitch", 1, dice)[0])
        return newsroom.teaser(dice.below(len(newsroom.news)))

    changed = {kind: [fresh(kind, item) for item in shown[kind]] for kind in (*LINKS, *LISTS)}
    boxes = []
    for kind, box in zip(newsroom.site.boxes, shown["boxes"], strict=True):
        lines = newsroom.box(kind, dice)["lines"]
        boxes.append(
            {
                **box,
                "lines": [
                    new if dice.chance(100 * drift) else old for new, old in zip(lines, box["lines"], strict=True)
                ],
            }
        )
    return shown | changed | {"boxes": boxes}
