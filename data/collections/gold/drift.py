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
    """Replace each block around an article with probability ``drift`` by a new one of the same kind.

    Blocks are the links of menus and listings of towns, teasers, headlines, advertisements, comments, subscription
    pitches, and each line of the day's boxes. Keys and lengths of lists of the template's values stay.
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
