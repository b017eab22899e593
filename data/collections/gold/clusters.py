"""Plan of the collection: clusters, their sizes, stories and sites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from data.collections.gold.language import toml
from data.collections.gold.random_streams import Bag, Dice
from data.collections.gold.reports import SERIES, report
from data.collections.gold.sites import Site, sites
from data.collections.gold.stories import FIRST_DAY, SPAN, Story, date_of, make_lexicon, make_story

# Calibrated on published counts (docs/gold.md) before any detector ran on the pages.
INVENTED = 24
"""Percentage of invented words in a story."""
LENGTHS = ((13, 19), (16, 25), (20, 29), (22, 33))
"""Ranges of the number of paragraphs after the lead, four equally likely kinds."""
STRENGTH = 2
"""Maximal strength of edits, of 10."""
REPORTS = 7
"""Number of daily reports in 68 clusters."""
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
    dice = Dice(seed, "listed plan", pages, clusters)
    sizes = cluster_sizes(pages, clusters)
    n_reports = max(2, clusters * REPORTS // 68) if clusters > 3 else 0
    report_ranks = dice.sample(range(clusters // 3, clusters), n_reports)
    reports = iter([_report(i, seed) for i in range(n_reports)])
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
        result.append(Cluster(name, story, strength, _spread(story, sizes[rank], Dice(seed, "listed spread", number))))
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


def _story(dice: Dice, earlier: Story | None) -> Story:
    """Generate a story, or a follow-up of an earlier one, with words of its own."""
    topic = earlier.topic if earlier else dice.pick([topic for topic in toml("words.toml") if topic != "general"])
    day = earlier.day + dice.between(1, 3) if earlier else dice.below(SPAN)
    lexicon = make_lexicon(topic, dice, INVENTED)
    return make_story(topic, day, dice.between(*dice.pick(LENGTHS)), dice, lexicon, earlier)


def _report(i: int, seed: int) -> Story:
    """Generate the i-th report: the weekdays of one series after the other, from Monday, February 27, 2006 on."""
    week, weekday = divmod(i, 5)
    rounds, series = divmod(week, len(SERIES))
    return report(SERIES[series], (date(2006, 2, 27) - FIRST_DAY).days + 7 * rounds + weekday, seed)


def _spread(story: Story, size: int, dice: Dice) -> list[tuple[Site, int]]:
    """Choose the sites that publish a story, and the number of crawls of each."""
    reports = toml("reports.toml")
    desks = [site for site in sites() if story.slug in {reports[series]["slug"] for series in site.desks}]
    candidates = desks or list(sites())
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
