"""Generator of `data.collections.gold.Gold`, calibrated on published counts: light edits, templates without prose.

The template of a site consists of menus, a legal sentence, and long lists of names. Some of the names keep their order
for days, the others are reordered for each crawl. A few names follow function words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from data.collections.gold.edits import Version
from data.collections.gold.language import toml
from data.collections.gold.newsroom import Item, Newsroom
from data.collections.gold.pages import GoldPage, crawled
from data.collections.gold.plan import FOLLOW_UP, Cluster, cluster_sizes, report_of, spread
from data.collections.gold.random_streams import Dice
from data.collections.gold.sites import Site, sites
from data.collections.gold.stories import SPAN, Story, date_of, invent, make_lexicon, tell, title

# Calibrated with `data.collections.statistics` before any detector ran on the pages.
SITES, LARGE, LARGE_WEIGHT, SMALL_WEIGHT = 16, 8, 14, 4
"""Number of sites, of large ones, and percentage of stories on a large and on a small site."""
INVENTED = 24
"""Percentage of invented words in a story."""
LENGTHS = ((13, 19), (16, 25), (20, 29), (22, 33))
"""Ranges of the number of paragraphs after the lead, four equally likely kinds."""
STRENGTH = 2
"""Maximal strength of edits, of 10."""
REPORTS = 7
"""Number of daily reports in 68 clusters."""
NAMES, SHOWN = 700, 94
"""Number of names of a site, and percentage shown on a page."""
EDITION, EDITION_DAYS = 100, 4
"""Days for which the order of names is constant."""
SMALL_SHARE = 7
"""Percentage of names that follow a function word."""
SMALL = ("the", "a", "is", "the", "an", "was", "are", "the", "a", "will", "has", "the", "be", "can")
NAV, TOOLS = 16, 6
"""Number of links in a site's menu and next to its articles."""
PLACES = 8
"""Slots of the templates for sentences, most of which are empty."""

_WITHOUT_LISTS = ("leaflet", "mailarchive", "printview")


@cache
def carriers() -> tuple[Site, ...]:
    """Return the participating sites: those with most readers whose templates have lists."""
    listed = [site for site in sites() if site.frame not in _WITHOUT_LISTS]
    ranked = sorted(listed, key=lambda site: (-site.weight, site.key))[:SITES]
    return tuple(replace(site, weight=LARGE_WEIGHT if i < LARGE else SMALL_WEIGHT) for i, site in enumerate(ranked))


def plan(seed: int, pages: int, clusters: int) -> list[Cluster]:
    """Plan a collection; parameters and result are those of `data.collections.gold.plan.plan`."""
    dice = Dice(seed, "listed plan", pages, clusters)
    sizes = cluster_sizes(pages, clusters)
    n_reports = max(2, clusters * REPORTS // 68) if clusters > 3 else 0
    report_ranks = dice.sample(range(clusters // 3, clusters), n_reports)
    reports = iter([report_of(i, seed) for i in range(n_reports)])
    stories: list[Story] = []
    result = []
    for number, rank in enumerate(dice.sample(range(clusters), clusters), 1):
        if rank in report_ranks:
            story, strength = next(reports), 0
        else:
            own = Dice(seed, "listed story", len(stories))
            story = _story(own, stories[-1] if len(stories) % FOLLOW_UP == FOLLOW_UP - 1 else None)
            stories.append(story)
            strength = own.below(STRENGTH + 1)
        name = f"{number:0{len(str(clusters))}d}-{story.slug}-{date_of(story.day):%m%d}"
        crawls = spread(story, sizes[rank], Dice(seed, "listed spread", number), carriers())
        result.append(Cluster(name, story, strength, crawls))
    return result


def _story(dice: Dice, earlier: Story | None) -> Story:
    """Generate a story, or a follow-up of an earlier one, with words of its own."""
    topic = earlier.topic if earlier else dice.pick([topic for topic in toml("words.toml") if topic != "general"])
    day = earlier.day + dice.between(1, 3) if earlier else dice.below(SPAN)
    lexicon = make_lexicon(topic, dice, INVENTED)
    return tell(topic, day, dice.between(*dice.pick(LENGTHS)), dice, earlier, lexicon)


class Listed(Newsroom):
    """Generator of the pages of a site whose template consists of lists."""

    def __init__(self, site: Site, seed: int) -> None:
        bare = replace(site, boxes=(), comments=(0, 0), ads=(10, 10), pitches=0, legal=1)
        super().__init__(bare, seed, ())
        dice = Dice(seed, "listed names", site.key)
        self._names = [self._named(invent(dice), dice) for _ in range(NAMES)]
        self._editions: dict[int, tuple[Sequence[Item], Sequence[Item]]] = {}

    def _named(self, name: str, dice: Dice) -> Item:
        """Return an entry of a list, in the form of headlines and teasers."""
        small = dice.pick(SMALL) + " " if dice.chance(SMALL_SHARE) else ""
        label = small + title(name)
        return {"headline": label, "summary": "", "section": label, "url": f"/index/{name}/"}

    def _constants(self, dice: Dice) -> dict[str, Any]:
        site = self.site
        return {
            "site": site,
            "nav": [self.link(title(invent(dice))) for _ in range(NAV)],
            "towns": [self.link(title(invent(dice))) for _ in range(site.towns)],
            "tools": [self.link(title(invent(dice))) for _ in range(TOOLS)],
            "legal": [site.markup(text) for text in self.boilerplate("legal", 1, dice)] + [""] * PLACES,
            "pitches": [""] * PLACES,
            "css": "",
            "js": "",
            "tail_js": "",
        }

    def _article(self, story: Story, version: Version) -> dict[str, Any]:
        return super()._article(story, version) | {"pull": ""}

    def _around(self, story: Story, day: int, crawl: int, dice: Dice) -> dict[str, Any]:
        ordered, others = self._edition(story.day // EDITION_DAYS)
        shown = [item for item in others if dice.chance(SHOWN)]
        shown = dice.sample(shown, len(shown))
        lists = {"teasers": shown[:8], "headlines": [*ordered, *shown[8:]]}
        return super()._around(story, day, crawl, dice) | lists

    def _edition(self, number: int) -> tuple[Sequence[Item], Sequence[Item]]:
        """Return the names whose order is constant in an edition, and all others."""
        if number not in self._editions:
            plain = [item for item in self._names if " " not in item["headline"]]
            ordered = Dice(self.seed, "edition", self.site.key, number).sample(plain, EDITION)
            chosen = {item["url"] for item in ordered}
            self._editions[number] = ordered, [item for item in self._names if item["url"] not in chosen]
        return self._editions[number]


def generate(seed: int, pages: int, clusters: int) -> Iterator[GoldPage]:
    """Generate a collection page by page; parameters are those of `data.collections.gold.pages.generate`.

    Yields
    ------
    GoldPage
    """
    newsrooms = {site.key: Listed(site, seed) for site in carriers()}
    for cluster in plan(seed, pages, clusters):
        for site, crawls in sorted(cluster.crawls, key=lambda pair: pair[0].key):
            yield from crawled(newsrooms[site.key], cluster, crawls, seed)
