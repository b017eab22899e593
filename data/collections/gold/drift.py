"""Frames that change from fetch to fetch: a share of a page's short blocks is replaced, independently on each page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.collections.gold.random_streams import Dice
from data.collections.gold.stories import ProseWriter, Story, town_name

if TYPE_CHECKING:
    from data.collections.gold.newsroom import Newsroom

LINKS = ("nav", "towns")
LISTS = ("teasers", "headlines", "ads", "comments", "pitches")


def drifted(newsroom: Newsroom, shown: dict[str, Any], story: Story, drift: float, dice: Dice) -> dict[str, Any]:
    """Replace a share of the blocks around an article by others of their kind that were never shown before.

    Parameters
    ----------
    newsroom : Newsroom
        Whose page it is.
    shown : dict
        What its template is given.
    story : Story
        The page's, which comments are about.
    drift : float
        Share in [0, 1]: each block is replaced with this probability. Blocks are the links of menus and listings of
        towns, teasers, headlines, advertisements, comments, subscription pitches, and each line of the day's boxes.
    dice : Dice
        Stream of this page alone.

    Returns
    -------
    dict
        The same keys, lists of the same lengths.
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
