"""Generation of pages: an article in its site's template, which consists of menus, a legal sentence and lists of names.

Some of the names keep their order for days, the others are reordered for each crawl; a few follow function words.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import shake_256
from typing import Any

from data.collections.gold.clusters import Cluster, plan
from data.collections.gold.edits import Version, edit
from data.collections.gold.language import Rules, Terminal, compile_rules, expand, fill, grammar, tidy, toml
from data.collections.gold.random_streams import Dice
from data.collections.gold.sites import Site, sites, template
from data.collections.gold.stories import (
    DAYS,
    MONTHS,
    Story,
    company_name,
    date_of,
    invent,
    make_lexicon,
    names,
    number_terminals,
    surname,
    title,
)

# Calibrated on published counts (docs/gold.md) before any detector ran on the pages.
NAMES, SHOWN = 700, 94
"""Number of names of a site, and percentage shown on a page."""
EDITION, EDITION_DAYS = 100, 4
"""Number of names whose order is constant, and days for which it is."""
SMALL_SHARE = 7
"""Percentage of names that follow a function word."""
SMALL = ("the", "a", "is", "the", "an", "was", "are", "the", "a", "will", "has", "the", "be", "can")
NAV, TOOLS, ADS, ADS_SHOWN = 16, 6, 40, 10
"""Number of links in a site's menu and next to its articles, of advertisements, and of those on a page."""
PLACES = 8
"""Slots of the templates for sentences, most of which are empty."""

Item = dict[str, str]
"""Fields of a link, list entry or advertisement, in HTML."""


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
        """Bytes of the page in the encoding of the site; characters that it lacks become character references."""
        return self.html.encode(self.site.encoding, errors="xmlcharrefreplace")


def generate(seed: int, pages: int, clusters: int) -> Iterator[GoldPage]:
    """Generate a collection page by page, in order of clusters and names."""
    templates = {site.key: SiteTemplate(site, seed) for site in sites()}
    for cluster in plan(seed, pages, clusters):
        for site, crawls in sorted(cluster.crawls, key=lambda pair: pair[0].key):
            yield from _crawled(templates[site.key], cluster, crawls, seed)


def _crawled(around: SiteTemplate, cluster: Cluster, crawls: int, seed: int) -> Iterator[GoldPage]:
    """Yield the pages of a story on a site; some sites update their version once."""
    site, story = around.site, cluster.story
    dice = Dice(seed, "versions", cluster.name, site.key)
    first = edit(story, site, cluster.strength, dice)
    updated = edit(story, site, cluster.strength, dice)
    update_at = dice.between(1, crawls) if dice.chance(10 + 4 * cluster.strength) else crawls
    for crawl in range(crawls):
        version = first if crawl < update_at else updated
        html = around.render(story, version, crawl, Dice(seed, "crawl", cluster.name, site.key, crawl))
        yield GoldPage(cluster.name, f"{site.key}-{crawl:02d}.html", site, version, html)


class SiteTemplate:
    """Values of a site's template: constant values, values of a day, and values of a crawl."""

    def __init__(self, site: Site, seed: int) -> None:
        self.site, self.seed = site, seed
        self._days: dict[int, dict[str, Any]] = {}
        self._editions: dict[int, tuple[Sequence[Item], Sequence[Item]]] = {}
        dice = Dice(seed, "site", site.key)
        self._lexicon = make_lexicon("cityhall", dice)
        self._phone = f"555-{dice.between(100, 199):04d}"
        self._constants = {
            "site": site,
            "nav": [self._link(dice) for _ in range(NAV)],
            "towns": [self._link(dice) for _ in range(site.towns)],
            "tools": [self._link(dice) for _ in range(TOOLS)],
            "legal": [site.style.markup(text) for text in self._boilerplate("legal", 1, dice)] + [""] * PLACES,
            "pitches": [""] * PLACES,
        }
        self._ads = [self._ad(text) for text in self._boilerplate("ad", ADS, dice)]
        dice = Dice(seed, "listed names", site.key)
        self._names = [self._named(invent(dice), dice) for _ in range(NAMES)]

    def render(self, story: Story, version: Version, crawl: int, dice: Dice) -> str:
        """Return the page of a crawl: the article with the surroundings of that day."""
        day = story.day + crawl // 3
        if day not in self._days:
            self._days[day] = self._of_the_day(day)
        values = (
            self._constants | self._article(story, version) | self._days[day] | self._of_the_crawl(story, day, dice)
        )
        return template(self.site.template).render(values)

    def _article(self, story: Story, version: Version) -> dict[str, Any]:
        site, dice = self.site, Dice(self.seed, "art", self.site.key, story.slug, story.day)
        captions = [site.style.markup(caption) for caption in dice.sample(story.captions, 3)]
        date = date_of(story.day)
        return {
            "headline": version.headline,
            "byline": version.byline,
            "credit": version.credit,
            "paragraphs": [_linked(story, p) for p in version.paragraphs] if site.style.links else version.paragraphs,
            "kicker": title(story.topic),
            "caption": captions[0],
            "captions": captions,
            "photo": dice.between(10_000, 99_999),
            "photographer": site.style.markup(f"{dice.pick(names('women'))} {surname(dice)}"),
            "date": f"{DAYS[date.weekday()]}, {MONTHS[date.month - 1]} {date.day}, {date.year}",
            "time": f"{_clock(dice)} {dice.pick(('a.m.', 'p.m.'))}",
            "path": f"/{story.topic}/{date.year}/{date.month:02d}/{date.day:02d}/{story.slug}.html",
            "reporter_line": site.style.markup(f"{story.reporter} can be reached at {self._phone}."),
        }

    def _of_the_day(self, day: int) -> dict[str, Any]:
        local, common = Dice(self.seed, "day", self.site.key, day), Dice(self.seed, "day", day)
        low = local.between(20, 55)
        ticker = []
        for name in names("company")[:12]:
            direction = common.pick(("up", "dn"))
            value = f"{common.between(9, 99)}.{common.between(0, 99):02d}"
            change = f"{'+-'[direction == 'dn']}{common.between(0, 3)}.{common.between(1, 99):02d}"
            ticker.append({"name": name, "value": value, "direction": direction, "change": change})
        return {
            "weather": {"sky": self._phrase("sky", local), "low": low, "high": low + local.between(6, 24)},
            "ticker": ticker,
            "poll": {
                "question": self.site.style.markup(self._phrase("poll", local)),
                "options": ("Yes", "No", "Not sure"),
            },
        }

    def _of_the_crawl(self, story: Story, day: int, dice: Dice) -> dict[str, Any]:
        ordered, others = self._edition(story.day // EDITION_DAYS)
        shown = [item for item in others if dice.chance(SHOWN)]
        shown = dice.sample(shown, len(shown))
        dice.random()  # this draw and those below belong to the stream with which the collection was published
        date, serial = date_of(day), dice.between(1_000_000, 9_999_999)
        dice.random()
        dice.random()
        dice.random()
        return {
            "teasers": shown[:8],
            "headlines": [*ordered, *shown[8:]],
            "ads": dice.sample(self._ads, ADS_SHOWN),
            "fetched": f"{date.month}/{date.day}/{date.year} {_clock(dice)}:{dice.between(0, 59):02d}",
            "serial": serial,
            "state_blob": b64encode(shake_256(str(serial).encode()).digest(2_400)).decode(),
        }

    def _edition(self, number: int) -> tuple[Sequence[Item], Sequence[Item]]:
        """Return the names whose order is constant in an edition, and all others."""
        if number not in self._editions:
            plain = [item for item in self._names if " " not in item["headline"]]
            ordered = Dice(self.seed, "edition", self.site.key, number).sample(plain, EDITION)
            chosen = {item["url"] for item in ordered}
            self._editions[number] = ordered, [item for item in self._names if item["url"] not in chosen]
        return self._editions[number]

    def _named(self, name: str, dice: Dice) -> Item:
        """Return an entry of a list, in the form of headlines and teasers."""
        small = dice.pick(SMALL) + " " if dice.chance(SMALL_SHARE) else ""
        label = small + title(name)
        return {"headline": label, "summary": "", "section": label, "url": f"/index/{name}/"}

    def _link(self, dice: Dice) -> Item:
        label = title(invent(dice))
        return {"label": label, "url": f"/{label.lower()}/"}

    def _ad(self, text: str) -> Item:
        heading, _, line = text.partition("|")
        target = heading.lower().replace(" ", "").replace(",", "")
        url = f"http://ads.example/click?to={target}&amp;from={self.site.key}"
        return {"title": self.site.style.markup(heading), "line": self.site.style.markup(line), "url": url}

    def _boilerplate(self, rule: str, k: int, dice: Dice) -> list[str]:
        """Return ``k`` different texts of a rule of boilerplate.toml."""
        rules, terminals = _boilerplate_rules(), self._terminals(dice)
        return [tidy(fill(parts, rules, terminals, dice)) for parts in dice.sample(rules[rule].items, k)]

    def _phrase(self, rule: str, dice: Dice) -> str:
        return tidy(expand(rule, _boilerplate_rules(), self._terminals(dice), dice))

    def _terminals(self, dice: Dice) -> dict[str, Terminal]:
        site = self.site
        own = {"site": site.name, "owner": site.owner, "domain": site.domain, "here": site.town, "state": site.state}
        return {
            **{symbol: partial(bag.draw, dice) for symbol, bag in self._lexicon.items()},
            **number_terminals(dice),
            **{symbol: partial(str, text) for symbol, text in own.items()},
            "phone": lambda: self._phone,
            "company": lambda: company_name(dice),
            "yield": lambda: f"{dice.between(3, 7)}.{dice.between(10, 99)}",
        }


@cache
def _boilerplate_rules() -> Rules:
    return {**grammar(), **compile_rules(toml("boilerplate.toml"))}


def _linked(story: Story, html: str) -> str:
    """Link the story's town and first person in a paragraph."""
    for name in (story.cast.towns[0], story.cast.people[0].surname):
        html = html.replace(name, f'<A href="/topics/{name.replace(" ", "_")}">{name}</A>', 1)
    return html


def _clock(dice: Dice) -> str:
    return f"{dice.between(1, 12)}:{dice.between(0, 59):02d}"
