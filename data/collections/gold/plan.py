"""Plan of a collection: clusters, their sizes, stories and sites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from data.collections.gold.language import toml
from data.collections.gold.random_streams import Bag, Dice
from data.collections.gold.reports import SERIES, report
from data.collections.gold.sites import Site, sites
from data.collections.gold.stories import FIRST_DAY, SPAN, Lexicon, Story, date_of, make_lexicon, tell

OUTSIDE = 800
"""Number of stories that occur on front pages only."""
FOLLOW_UP = 9
"""Every ninth story is a follow-up of the previous one."""
MIN_SIZE = 2
MAX_CRAWLS = 16
"""Maximal number of crawls of a story on a site."""


@dataclass(frozen=True)
class Cluster:
    """Story with the sites that publish it, the strength of their edits (0 to 10), and the number of crawls of each."""

    name: str
    story: Story
    strength: int
    crawls: Sequence[tuple[Site, int]]


def plan(seed: int, pages: int, clusters: int) -> list[Cluster]:
    """Plan the clusters of a collection, in order of their names; the sum of their sizes is ``pages``."""
    dice = Dice(seed, "plan", pages, clusters)
    sizes = cluster_sizes(pages, clusters)
    n_reports = max(2, clusters * 14 // 68) if clusters > 3 else 0
    report_ranks = dice.sample(range(clusters // 3, clusters), n_reports)
    reports = iter([report_of(i, seed) for i in range(n_reports)])
    stories: list[Story] = []
    drafts = []
    for rank in dice.sample(range(clusters), clusters):
        if rank in report_ranks:
            story, strength = next(reports), dice.below(4)
        else:
            own = Dice(seed, "story", len(stories))
            earlier = stories[-1] if len(stories) % FOLLOW_UP == FOLLOW_UP - 1 else None
            day = earlier.day + own.between(1, 3) if earlier else own.below(SPAN)
            story = tell(earlier.topic if earlier else _topic(own), day, _length(own), own, earlier)
            stories.append(story)
            strength = own.below(own.between(2, 11))
        drafts.append((story, strength, sizes[rank]))
    result = []
    for number, (story, strength, size) in enumerate(drafts, 1):
        published = date_of(story.day)
        name = f"{number:0{len(str(clusters))}d}-{story.slug}-{published:%m%d}"
        result.append(Cluster(name, story, strength, spread(story, size, Dice(seed, "spread", number))))
    return result


def cluster_sizes(pages: int, clusters: int) -> list[int]:
    """Return heavy-tailed cluster sizes of at least two pages, largest first, with the sum ``pages``."""
    tail = [10_000_000 // ((rank + 10) * (rank + 30)) for rank in range(clusters + 1)]
    weights = [weight - tail[-1] for weight in tail[:-1]]
    spare = pages - MIN_SIZE * clusters
    sizes = [MIN_SIZE + spare * weight // sum(weights) for weight in weights]
    for i in range(pages - sum(sizes)):
        sizes[i % clusters] += 1
    return sizes


def spread(story: Story, size: int, dice: Dice, among: Sequence[Site] | None = None) -> list[tuple[Site, int]]:
    """Choose the sites that publish a story, among all or those given, and the number of crawls of each."""
    among = sites() if among is None else among
    desks = [site for site in among if story.slug in DESKS.get(site.key, ())]
    candidates = desks or list(among)
    low, high = dice.pick(((1, 3), (3, 8), (6, 14), (12, 24)))
    reach = min(size, len(candidates), max(dice.between(low, high), -(-size // (MAX_CRAWLS - 4))))
    chosen: list[Site] = []
    while len(chosen) < reach:
        site = Bag(candidates, [site.weight for site in candidates]).draw(dice)
        chosen.append(site)
        candidates = [other for other in candidates if other is not site]
    counts = [1] * reach
    most = max(MAX_CRAWLS, -(-size // reach))
    favourites = Bag.zipf(range(reach), 3)
    while sum(counts) < size:
        i = favourites.draw(dice)
        counts[i] += counts[i] < most
    return list(zip(chosen, counts, strict=True))


def outside_stories(seed: int) -> list[Story]:
    """Return short stories that occur as teasers only; those of a topic share a few sets of words."""
    result = []
    for i in range(OUTSIDE):
        dice = Dice(seed, "outside", i)
        topic = _topic(dice)
        lexicon = _shared_lexicon(topic, seed, dice.below(3))
        result.append(tell(topic, i * (SPAN + 12) // OUTSIDE - 4, 2, dice, lexicon=lexicon))
    return result


@lru_cache(maxsize=64)
def _shared_lexicon(topic: str, seed: int, number: int) -> Lexicon:
    return make_lexicon(topic, Dice(seed, "lexicon", topic, number))


DESKS = {site.key: {toml("reports.toml")[series]["slug"] for series in site.desks} for site in sites()}


def _topic(dice: Dice) -> str:
    return dice.pick([topic for topic in toml("words.toml") if topic != "general"])


def _length(dice: Dice) -> int:
    """Draw a story's length in paragraphs: briefs, news, features."""
    return dice.between(*dice.pick(((8, 14), (17, 26), (23, 35), (30, 52))))


def report_of(i: int, seed: int) -> Story:
    """Generate the i-th report: the weekdays of one series after the other, from Monday, February 27, 2006 on."""
    week, weekday = divmod(i, 5)
    rounds, series = divmod(week, len(SERIES))
    return report(SERIES[series], (date(2006, 2, 27) - FIRST_DAY).days + 7 * rounds + weekday, seed)
