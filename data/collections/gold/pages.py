"""Generation of the pages of each crawl, site and story."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from data.collections.gold.edits import Version, edit
from data.collections.gold.newsroom import Newsroom
from data.collections.gold.plan import Cluster, outside_stories, plan
from data.collections.gold.random_streams import Dice
from data.collections.gold.sites import Site, sites


@dataclass(frozen=True)
class GoldPage:
    """Page of the collection; ``cluster`` is its folder, ``name`` its file name, ``version`` its article."""

    cluster: str
    name: str
    site: Site
    version: Version
    html: str

    @property
    def content(self) -> bytes:
        """Bytes of the page in the encoding of the site."""
        return self.site.encode(self.html)


def generate(seed: int, pages: int, clusters: int, drift: float = 0.0) -> Iterator[GoldPage]:
    """Generate a collection page by page, in order of clusters and names, with a `drift` of the templates."""
    layout = plan(seed, pages, clusters)
    news = [cluster.story for cluster in layout] + outside_stories(seed)
    newsrooms = {site.key: Newsroom(site, seed, news, drift) for site in sites()}
    for cluster in layout:
        for site, crawls in sorted(cluster.crawls, key=lambda pair: pair[0].key):
            yield from crawled(newsrooms[site.key], cluster, crawls, seed)


def crawled(newsroom: Newsroom, cluster: Cluster, crawls: int, seed: int) -> Iterator[GoldPage]:
    """Yield the pages of a story on a site; some sites update their version once."""
    site, story = newsroom.site, cluster.story
    dice = Dice(seed, "versions", cluster.name, site.key)
    first = edit(story, site, cluster.strength, dice)
    updated = edit(story, site, cluster.strength, dice)
    update_at = dice.between(1, crawls) if dice.chance(10 + 4 * cluster.strength) else crawls
    for crawl in range(crawls):
        version = first if crawl < update_at else updated
        html = newsroom.render(story, version, crawl, Dice(seed, "crawl", cluster.name, site.key, crawl))
        yield GoldPage(cluster.name, f"{site.key}-{crawl:02d}.html", site, version, html)
