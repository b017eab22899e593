"""Generation of a site's pages: stories with their surroundings."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import cache, partial
from hashlib import shake_256
from typing import Any

from data.collections.gold import assets
from data.collections.gold.drift import drifted
from data.collections.gold.edits import Version
from data.collections.gold.language import Rules, Terminal, compile_rules, expand, fill, grammar, tidy, toml
from data.collections.gold.random_streams import Dice
from data.collections.gold.sites import Site, frame
from data.collections.gold.stories import (
    DAYS,
    MONTHS,
    SPAN,
    ProseWriter,
    Story,
    company_name,
    date_of,
    make_lexicon,
    names,
    number_terminals,
    surname,
    title,
    town_name,
)

KILOBYTE = 1_000
"""Bytes in a kilobyte of style and script of sites.toml."""
FRONT_PAGE = 34
"""Number of stories on a front page."""

Item = dict[str, str]
"""Fields of a link, teaser, advertisement or comment in HTML."""


class Newsroom:
    """Generator of a site's pages: its constant parts, and those of a day.

    ``news`` are all stories, for teasers; ``drift`` is that of `data.collections.gold.drift`.
    """

    def __init__(self, site: Site, seed: int, news: Sequence[Story], drift: float = 0.0) -> None:
        self.site, self.seed, self.news, self.drift = site, seed, news, drift
        self._teasers: dict[int, Item] = {}
        self._days: dict[int, dict[str, Any]] = {}
        self._front_pages: dict[int, list[int]] = {}
        self._threads: dict[str, list[Item]] = {}
        dice = Dice(seed, "site", site.key)
        self._lexicon = make_lexicon("cityhall", dice)
        self._phone = f"555-{dice.between(100, 199):04d}"
        self.constants = self._constants(dice)
        self._ads = [self._ad(text) for text in self.boilerplate("ad", 40, dice)]

    def render(self, story: Story, version: Version, crawl: int, dice: Dice) -> str:
        """Return the page of a crawl: the article with the surroundings of that day."""
        day = story.day + crawl // 3
        if day not in self._days:
            self._days[day] = self._of_the_day(day)
        shown = self.constants | self._article(story, version) | self._days[day]
        shown |= self._around(story, day, crawl, dice)
        if self.drift:
            shown = drifted(self, shown, story, self.drift, dice)  # last, so that all else is the same as without drift
        return frame(self.site.frame).render(shown)

    def _constants(self, dice: Dice) -> dict[str, Any]:
        site = self.site
        sections = toml("boilerplate.toml")["sections"].strip().split("\n")
        return {
            "site": site,
            "nav": [self.link(label) for label in [sections[0], *dice.sample(sections[1:], site.nav)][: site.nav]],
            "towns": [self.link(town_name(dice)) for _ in range(site.towns)],
            "tools": [self.link(label) for label in toml("boilerplate.toml")["tools"].strip().split("\n")],
            "legal": [site.markup(text) for text in self.boilerplate("legal", site.legal, dice)],
            "pitches": [site.markup(text) for text in self.boilerplate("pitch", site.pitches, dice)],
            "css": assets.css(dice, site.css * KILOBYTE),
            "js": assets.js(dice, site.js * KILOBYTE),
            "tail_js": assets.js(dice, KILOBYTE),
        }

    def _article(self, story: Story, version: Version) -> dict[str, Any]:
        site, dice = self.site, Dice(self.seed, "art", self.site.key, story.slug, story.day)
        paragraphs = [self._linked(story, p) for p in version.paragraphs] if site.links else version.paragraphs
        captions = [site.markup(caption) for caption in dice.sample(story.captions, 3)]
        date = date_of(story.day)
        return {
            "headline": version.headline,
            "byline": version.byline,
            "credit": version.credit,
            "paragraphs": paragraphs,
            "pull": paragraphs[min(2, len(paragraphs) - 1)].partition(". ")[0],
            "kicker": title(story.topic),
            "caption": captions[0],
            "captions": captions,
            "photo": dice.between(10_000, 99_999),
            "photographer": site.markup(f"{dice.pick(names('women'))} {surname(dice)}"),
            "date": f"{DAYS[date.weekday()]}, {MONTHS[date.month - 1]} {date.day}, {date.year}",
            "time": f"{_clock(dice)} {dice.pick(('a.m.', 'p.m.'))}",
            "path": f"/{story.topic}/{date.year}/{date.month:02d}/{date.day:02d}/{story.slug}.html",
            "reporter_line": site.markup(f"{story.reporter} can be reached at {self._phone}."),
        }

    def _of_the_day(self, day: int) -> dict[str, Any]:
        local, common = Dice(self.seed, "day", self.site.key, day), Dice(self.seed, "day", day)
        low = local.between(20, 55)
        ticker = [
            {
                "name": name,
                "value": f"{common.between(9, 99)}.{common.between(0, 99):02d}",
                "direction": direction,
                "change": f"{'+-'[direction == 'dn']}{common.between(0, 3)}.{common.between(1, 99):02d}",
            }
            for name in names("company")[:12]
            for direction in [common.pick(("up", "dn"))]
        ]
        return {
            "weather": {"sky": self._phrase("sky", local), "low": low, "high": low + local.between(6, 24)},
            "ticker": ticker,
            "boxes": [self.box(kind, local) for kind in self.site.boxes],
            "poll": {"question": self.site.markup(self._phrase("poll", local)), "options": ("Yes", "No", "Not sure")},
        }

    def _around(self, story: Story, day: int, crawl: int, dice: Dice) -> dict[str, Any]:
        """Return the parts that change between crawls: teasers, headlines, advertisements, comments."""
        site = self.site
        front = [i for i in self.front_page(day) if self.news[i] is not story]
        teasers = [self.teaser(i) for i in dice.sample(front[: site.teasers[1] + 4], dice.between(*site.teasers))]
        date, serial = date_of(day), dice.between(1_000_000, 9_999_999)
        low, high = site.comments
        so_far = low + (high - low) * min(crawl + dice.below(3), 9) // 9
        return {
            "teasers": teasers,
            "headlines": [self.teaser(i) for i in front[::-1][: dice.between(*site.headlines)]],
            "ads": dice.sample(self._ads, dice.between(*site.ads)),
            "comments": self._thread(story)[:so_far],
            "fetched": f"{date.month}/{date.day}/{date.year} {_clock(dice)}:{dice.between(0, 59):02d}",
            "serial": serial,
            "state_blob": b64encode(shake_256(str(serial).encode()).digest(2_400)).decode(),
        }

    def box(self, kind: str, dice: Dice) -> dict[str, Any]:
        """Return the listings of a day: names and numbers with few stopwords."""
        box = toml("boilerplate.toml")["boxes"][kind]
        rules, terminals = {**_boilerplate_rules(), **compile_rules({"item": box["item"]})}, self._terminals(dice)
        items = [self.site.markup(tidy(expand("item", rules, terminals, dice))) for _ in range(self.site.box_items)]
        return {"title": self.site.markup(box["title"]), "lines": items}

    def front_page(self, day: int) -> list[int]:
        """Return the numbers of the stories on the front page of a day, in order."""
        if day not in self._front_pages:
            latest = min(day, SPAN + 8)  # there are no later stories
            recent = [i for i, story in enumerate(self.news) if latest - 4 <= story.day <= latest]
            self._front_pages[day] = Dice(self.seed, "front", self.site.key, day).sample(recent, FRONT_PAGE)
        return self._front_pages[day]

    def teaser(self, i: int) -> Item:
        """Return the site's teaser of a story, by its number."""
        if i not in self._teasers:
            story, dice = self.news[i], Dice(self.seed, "teaser", self.site.key, i)
            prose = [block for block in (story.leads[0], *story.paragraphs) if isinstance(block, tuple)]
            sentences = [sentence for block in prose[:3] for sentence in block]
            summary = " ".join(sentences[: 1 + dice.chance(30)]).replace("|", "")
            if dice.chance(30):
                summary = " ".join(summary.split(" ")[: dice.between(12, 26)]) + " ..."
            self._teasers[i] = {
                "headline": self.site.headline(dice.pick(story.headlines[:3])),
                "summary": self.site.markup(summary),
                "section": title(story.topic),
                "url": f"/{story.topic}/{story.slug}-{story.day}/",
            }
        return self._teasers[i]

    def _thread(self, story: Story) -> list[Item]:
        """Return all comments on a story on this site."""
        key = f"{story.slug} {story.day}"
        if key not in self._threads:
            dice = Dice(self.seed, "thread", self.site.key, key)
            writer = ProseWriter(story.lexicon, story.cast, dice, here=self.site.town)
            date = date_of(story.day)
            self._threads[key] = [
                {
                    "user": dice.pick(names("handle")) + dice.pick(names("handle")) + str(dice.between(1, 99)),
                    "when": f"{MONTHS[date.month - 1]} {date.day}, {_clock(dice)}",
                    "text": self.site.markup(" ".join(writer.paragraph("comment"))),
                }
                for _ in range(self.site.comments[1])
            ]
        return self._threads[key]

    def _linked(self, story: Story, html: str) -> str:
        """Link the story's town and first person in a paragraph."""
        for name in (story.cast.towns[0], story.cast.people[0].surname):
            html = html.replace(name, f'<A href="/topics/{name.replace(" ", "_")}">{name}</A>', 1)
        return html

    def link(self, label: str) -> Item:
        """Return a link of a menu."""
        return {"label": self.site.markup(label), "url": f"/{label.lower().replace(' ', '-').replace('&', 'and')}/"}

    def _ad(self, text: str) -> Item:
        heading, _, line = text.partition("|")
        target = heading.lower().replace(" ", "").replace(",", "")
        url = f"http://ads.example/click?to={target}&amp;from={self.site.key}"
        return {"title": self.site.markup(heading), "line": self.site.markup(line), "url": url}

    def fresh_ad(self, dice: Dice) -> Item:
        """Return an advertisement that is not among the site's own."""
        return self._ad(self.boilerplate("ad", 1, dice)[0])

    def boilerplate(self, rule: str, k: int, dice: Dice) -> list[str]:
        """Return ``k`` different texts of a boilerplate rule."""
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
            "surname": lambda: surname(dice),
            "anytown": lambda: town_name(dice),
            "fullname": lambda: f"{dice.pick(names(dice.pick(('women', 'men'))))} {surname(dice)}",
            "age": lambda: str(dice.between(19, 97)),
            "points": lambda: str(dice.between(0, 60)),
            "cents": lambda: str(dice.between(19, 89)),
            "yield": lambda: f"{dice.between(3, 7)}.{dice.between(10, 99)}",
        }


@cache
def _boilerplate_rules() -> Rules:
    return {**grammar(), **compile_rules(toml("boilerplate.toml")["rules"])}


def _clock(dice: Dice) -> str:
    return f"{dice.between(1, 12)}:{dice.between(0, 59):02d}"
