"""Articles of the built-in collection, for use in real templates."""

from __future__ import annotations

from functools import lru_cache

from data.collections.gold.edits import edit
from data.collections.gold.listed import plan
from data.collections.gold.random_streams import Dice
from data.collections.newsframes.frames import visible
from data.collections.newsframes.reuters_stories import NewsStory, Text

_LIKE_GOLD = (2160, 68)


@lru_cache(maxsize=1)
def generated(seed: int) -> tuple[NewsStory, ...]:
    """Return the stories of ``data=gold`` in the versions of their sites.

    Parameters
    ----------
    seed : int
        Seed of `data.collections.gold.Gold`.
    """
    stories = []
    for cluster in plan(seed, *_LIKE_GOLD):
        texts = []
        for site, _ in sorted(cluster.crawls, key=lambda pair: pair[0].key):
            dice = Dice(seed, "versions", cluster.name, site.key)
            version = edit(cluster.story, site, cluster.strength, dice)
            paragraphs = tuple(" ".join(visible(html).split()) for html in version.paragraphs)
            texts.append(Text(f"{cluster.name}/{site.key}", " ".join(visible(version.headline).split()), paragraphs))
        stories.append(NewsStory(cluster.name, tuple(texts)))
    return tuple(stories)
