"""Generated pages of many sites: with shared consent texts, and with teasers of articles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from data.collections.gold.edits import edit
from data.collections.gold.language import toml
from data.collections.gold.newsroom import Newsroom
from data.collections.gold.plan import outside_stories
from data.collections.gold.random_streams import Dice
from data.collections.gold.sites import Site, sites
from data.collections.gold.stories import SPAN, Story, tell
from spotsigs.errors import require
from spotsigs.records import Collection, Document, Shard, Skipped

STRENGTH = 3
"""Strength of the edits of each copy of a story, of 10."""

CONSENT = (
    "We and the partners who work with us store information on a device, such as a cookie, and have access to it. "
    "The data is used for ads that are of interest to you, for the measurement of the ads and of the content, and to "
    "develop the products. You can give a consent to the processing that is described above, or you can have a look "
    "at the details and refuse. The choice is valid for the site only, and it can be changed at any time in the "
    "settings. Some of the processing of the data may not be in need of a consent, but you have a right to object.",
    "The website is using cookies so that the visit is as pleasant as it can be. A cookie is a small file that is "
    "kept on the computer and that is read when the page is opened again. Some of the cookies are needed for the "
    "page to work, the others are for a statistic of the visits and for the services of social networks. By a click "
    "on the button you are saying that the cookies are welcome, and the banner will be gone until the next visit in "
    "a year. In the policy there is a list of all the cookies and of the firms that are behind them.",
    "Please enable JavaScript and disable any ad blocker to continue. The security of the site is checked by a "
    "service before the page is shown, which is to see that a human is at the browser and not a robot. It may take a "
    "few seconds, and it is done by itself. If the message is there after the page was loaded again, the browser is "
    "too old or an extension is in the way of the check. The number below is of use to the owner of the site, who "
    "can be told what was done when the page was blocked.",
)
"""Three texts that sites use from common platforms."""


@dataclass(frozen=True, kw_only=True)
class MadeConsent(Collection):
    """One page per site, each with one of three consent texts, and some pages of such a text alone.

    Every story occurs on two sites, in different versions.

    Parameters
    ----------
    seed : int
        Seed; the same seed yields the same bytes.
    sites : int
        Number of sites.
    blocked : int
        Number of additional pages with the consent text only, each in its own cluster.
    """

    seed: int = 1
    sites: int = 40
    blocked: int = 10

    def __post_init__(self) -> None:
        _require_sites(self.sites)
        require(0 <= self.blocked <= self.sites, f"blocked must be between 0 and {self.sites}, got {self.blocked}")

    def shards(self) -> Sequence[Shard]:
        """Return one shard, which generates all pages."""
        return [partial(_consented, self)]


@dataclass(frozen=True, kw_only=True)
class MadeTeasers(Collection):
    """Articles on sites, and the beginning of each on another site, as shown before a paywall.

    Parameters
    ----------
    seed : int
        Seed; the same seed yields the same bytes.
    sites, stories : int
        Number of sites, and of articles of each. Each site also has the teasers of the next site's articles.
    part : float
        Fraction in (0, 1] of an article's paragraphs in its teaser, at least one paragraph.
    """

    seed: int = 1
    sites: int = 8
    stories: int = 12
    part: float = 0.3

    def __post_init__(self) -> None:
        _require_sites(self.sites)
        require(self.stories >= 1, f"stories, of a site, must be at least 1, got {self.stories}")
        require(0 < self.part <= 1, f"part, of an article, must lie in (0, 1], got {self.part}")

    def shards(self) -> Sequence[Shard]:
        """Return one shard, which generates all pages."""
        return [partial(_teased, self)]


def _require_sites(n: int) -> None:
    require(n >= 2, f"sites must be at least 2, got {n}")


def _chosen(seed: int, n: int) -> list[Site]:
    """Return ``n`` sites; after those of the built-in collection, further ones with the same templates."""
    known = Dice(seed, "made sites").sample(sites(), len(sites()))
    made = [known[k % len(known)] for k in range(n)]
    return [
        site if k < len(known) else replace(site, key=f"{site.key}-{k // len(known) + 1}")
        for k, site in enumerate(made)
    ]


def _story(seed: int, number: int) -> Story:
    dice = Dice(seed, "made story", number)
    topic = dice.pick([topic for topic in toml("words.toml") if topic != "general"])
    return tell(topic, dice.below(SPAN), dice.between(6, 30), dice)


def _consented(collection: MadeConsent) -> Iterator[Document | Skipped]:
    seed, outside = collection.seed, outside_stories(collection.seed)
    for number, site in enumerate(_chosen(seed, collection.sites)):
        story = _story(seed, number // 2)
        dice = Dice(seed, "made consent", site.key)
        newsroom = Newsroom(site, seed, [story, *outside])
        html = newsroom.render(story, edit(story, site, STRENGTH, dice), 0, dice)
        text = CONSENT[number % len(CONSENT)]
        banner = f'<div><a href="/policy">Policy</a> <a href="/settings">Settings</a><p>{text}</p></div>'
        cluster = f"story-{number // 2:02d}"
        yield Document(
            id=f"{cluster}/{site.key}.html", content=html.replace("</body>", f"{banner}</body>"), cluster=cluster
        )
        if number < collection.blocked:
            alone = f"<html><head><title>{site.key}</title></head><body>{banner}</body></html>"
            yield Document(id=f"blocked/{site.key}.html", content=alone, cluster=f"blocked-{number:02d}")


def _teased(collection: MadeTeasers) -> Iterator[Document | Skipped]:
    seed, chosen = collection.seed, _chosen(collection.seed, collection.sites)
    n, outside = collection.stories, outside_stories(collection.seed)
    stories = [[_story(seed, k * n + i) for i in range(n)] for k in range(len(chosen))]
    for k, site in enumerate(chosen):
        newsroom = Newsroom(site, seed, stories[k] + outside)
        for owner, is_teaser in ((k, False), ((k + 1) % len(chosen), True)):
            for number, story in enumerate(stories[owner]):
                name = f"{chosen[owner].key}-{number:02d}"
                version = edit(story, chosen[owner], 0, Dice(seed, "made article", name))
                if is_teaser:
                    some = max(1, round(collection.part * len(version.paragraphs)))
                    version = replace(version, paragraphs=version.paragraphs[:some])
                kind = "teaser" if is_teaser else "article"
                html = newsroom.render(story, version, 0, Dice(seed, "made crawl", name, kind))
                yield Document(id=f"{name}/{site.key}-{kind}.html", content=html, cluster=name)
