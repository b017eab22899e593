"""Archives of sites: several pages per site in one template, some of them versions of one another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from data.collections.gold.edits import edit
from data.collections.gold.language import toml
from data.collections.gold.newsroom import Newsroom
from data.collections.gold.pages import GoldPage
from data.collections.gold.plan import outside_stories
from data.collections.gold.random_streams import Dice
from data.collections.gold.sites import Site, sites
from data.collections.gold.stories import SPAN, ArticleTable, Paragraph, ProseWriter, Story, tell

STRENGTH = 3
"""Strength of the further edits of each version, of 10."""
CRAWLS_APART = 6
"""Number of crawls between versions: two days, in which the surroundings change."""


def generate_archives(seed: int, n_sites: int, stories: int, versions: int, rewritten: float) -> Iterator[GoldPage]:
    """Generate a collection in order of sites and stories; the cluster of a page is its story.

    No two sites share a story. A story has 1 to ``versions`` pages, all numbers equally likely; each version rewrites a
    fraction of the paragraphs.
    """
    chosen = sorted(Dice(seed, "archive").sample(sites(), n_sites), key=lambda site: site.key)
    archives = {site.key: [_own_story(seed, site, i) for i in range(stories)] for site in chosen}
    outside = outside_stories(seed)
    for site in chosen:
        newsroom = Newsroom(site, seed, archives[site.key] + outside)
        for number, story in enumerate(archives[site.key]):
            name = f"{site.key}-{number:0{len(str(stories - 1))}d}-{story.slug}"
            dice = Dice(seed, "archive versions", name)
            version = story
            for k in range(1 + dice.below(versions)):
                if k:
                    version = _rewritten(version, site, rewritten, dice)
                printed = edit(version, site, STRENGTH, dice)
                html = newsroom.render(story, printed, CRAWLS_APART * k, Dice(seed, "crawl", name, k))
                yield GoldPage(name, f"{site.key}-{k:02d}.html", site, printed, html)


def _own_story(seed: int, site: Site, number: int) -> Story:
    """Generate a story of one site."""
    dice = Dice(seed, "archive story", site.key, number)
    topic = dice.pick([topic for topic in toml("words.toml") if topic != "general"])
    return tell(topic, dice.below(SPAN), dice.between(6, 30), dice)


def _rewritten(story: Story, site: Site, share: float, dice: Dice) -> Story:
    """Replace a fraction of a story's paragraphs by new ones with the same people and words."""
    writer = ProseWriter(story.lexicon, story.cast, dice, here=site.town)
    paragraphs: list[Paragraph | ArticleTable] = [
        writer.paragraph("middle") if dice.chance(100 * share) else old for old in story.paragraphs
    ]
    return replace(story, paragraphs=tuple(paragraphs))
