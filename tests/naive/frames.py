"""Slow, obvious twins of links, regions and frames: plain Python on lists and sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from naive import extract

LINK_MARK, LINK_END_MARK, BLOCK_MARK = "\x1e", "\x1f", "\f"
TEXT, LINKED, LINK = range(3)


def links(text: str) -> list[int]:
    """The link of each token of a marked text: that of its first character."""
    of_character: list[int] = []
    last, inside = 0, False
    for character in text:
        if character in (LINK_MARK, LINK_END_MARK):
            inside = character == LINK_MARK
            last += inside
        else:
            last += character == BLOCK_MARK and inside
            of_character += [last if inside else 0] * len(character.lower())
    plain = text.replace(LINK_MARK, "").replace(LINK_END_MARK, "").lower()
    return [of_character[at] for at in _token_starts(plain)]


def _token_starts(lowered: str) -> list[int]:
    """The places where `extract.tokens` finds its words."""
    starts = []
    for run in extract.RUN.finditer(lowered):
        at = run.start()
        for part in extract.UNSPACED.finditer(lowered, run.start(), run.end()):
            starts += [at] * (part.start() > at)
            starts += range(part.start(), max(part.end() - 1, part.start() + 1))
            at = part.end()
        starts += [at] * (run.end() > at)
    return starts


def heaviest(gains: Sequence[int]) -> tuple[int, int]:
    """The segment of largest sum: the first of the shortest, extended over zeros; everything if none is positive."""
    n = len(gains)
    sums = {(i, j): sum(gains[i:j]) for i in range(n) for j in range(i + 1, n + 1)}
    best = max(sums.values(), default=0)
    if best <= 0:
        return 0, n
    stop = min(j for (i, j), total in sums.items() if total == best)
    start = max(i for (i, j), total in sums.items() if total == best and j == stop)
    while stop < n and gains[stop] == 0:
        stop += 1
    return start, stop


Entry = tuple[int, int]  # of an outline: hash and kind


class Rules(NamedTuple):
    """What decides which neighbours are mates."""

    alike: float
    share: float
    anywhere: bool = True
    per_spot: bool = True
    around: bool = True
    travels: bool = True


class Page(NamedTuple):
    """What is compared of a page: its outline, its spots, those of its main part."""

    outline: Sequence[Entry]
    spots: set[int]
    main: set[int]


def framed(
    outlines: Sequence[Sequence[Entry]],
    keys: Sequence[int],
    rules: Rules,
    most: int,
    many: int | None = None,
    chance: float | None = None,
) -> list[dict[int, int]]:
    """Frame-aware suppression page by page: neighbours, mates, votes, what is of frames, the main part, boilerplate."""
    pages = [Page(page, {h for h, kind in page if kind != LINK}, main_part(page)) for page in outlines]
    links = [{h for h, kind in page if kind == LINK} for page in outlines]
    near = neighbours(links, pages, keys, rules, most)
    suspected = []
    for page, others in zip(pages, near, strict=True):
        found = mates(page, [pages[other] for other in others], rules)
        votes = {spot: sum(spot in mate.spots for mate in found) for spot in page.spots}
        enough = max(min(FEWEST_VOTES, len(found)), rules.share * len(found))
        suspected.append({spot for spot in page.spots if found and votes[spot] >= enough})
    of_frames = {
        spot
        for spot in set().union(*suspected)
        if sum(spot in own for own in suspected) >= rules.share * sum(spot in page.spots for page in pages)
    }
    stretches = [_left(page, of_frames) for page in outlines]
    return [_counted(page) for page in (said(stretches, rules.share, many, chance) if many else stretches)]


def said(pages: Sequence[list[list[int]]], share: float, many: int, chance: float | None) -> list[list[list[int]]]:
    """The pages' stretches, without those that consist of what many pages have beside what is their own.

    None of a page of whose spots more than a number of pages are expected to have all by chance.
    """
    on = [{spot for stretch in page for spot in stretch} for page in pages]
    having = {spot: sum(spot in spots for spots in on) for spots in on for spot in spots}
    frequent = {spot: n for spot, n in having.items() if n >= many}
    aside = {spot: sum(spot in on[k] and stands_aside(spot, page, frequent, share) for k, page in enumerate(pages))
             for spot in frequent}  # fmt: skip
    alone = {
        spot: sum(
            spot in on[k] and not any(frequent.get(h, 0) <= share * n for stretch in page for h in stretch)
            for k, page in enumerate(pages)
        )
        for spot, n in frequent.items()
    }
    boilerplate = {
        spot
        for spot, n in frequent.items()
        if n - alone[spot] - aside[spot] <= share * (n - alone[spot]) and aside[spot] >= alone[spot]
    }
    left = [
        [s for s in page if sum(spot not in boilerplate for spot in s) > share * len(s)] if boilerplate else page
        for page in pages
    ]
    n = sum(bool(page) for page in pages)

    def unlikely(page: list[list[int]]) -> float:
        return sum(math.log(n / frequent.get(spot, many - 1)) for spot in sorted({h for s in page for h in s}))

    least = math.log(n / chance) if chance and n else 0
    return [page if least <= 0 or unlikely(page) >= least else [] for page in left]


def stands_aside(spot: int, page: list[list[int]], frequent: dict[int, int], share: float) -> bool:
    """Most of the page is its own, and hardly anything of the stretches that the spot stands in."""

    def own(spots: Sequence[int]) -> int:
        return sum(frequent.get(other, 0) <= share * frequent[spot] for other in spots)

    everything = [other for stretch in page for other in stretch]
    return 2 * own(everything) > len(everything) and all(
        own(stretch) <= share * len(stretch) for stretch in page if spot in stretch
    )


FEWEST_VOTES, CERTAIN, LOOKED, WALKED, SAME = 2, 5, 64, 2048, 0.5


def main_part(outline: Sequence[Entry]) -> set[int]:
    """The spots in running text inside the heaviest segment."""
    start, stop = main_segment(outline)
    return {h for h, kind in outline[start:stop] if kind == TEXT}


def main_segment(outline: Sequence[Entry]) -> tuple[int, int]:
    """The heaviest segment, where text adds 1 and a link -1."""
    return heaviest([{TEXT: 1, LINKED: 0, LINK: -1}[kind] for _, kind in outline])


def set_jaccard(a: set[int], b: set[int]) -> float:
    """The similarity of two sets; of two empty ones, 1."""
    return len(a & b) / len(a | b) if a | b else 1.0


def main_jaccard(a: Page, b: Page, anywhere: bool) -> float:
    """The similarity of two main parts, whose spots count wherever the other page has them, or in its main part."""
    both = (a.main & b.spots) | (b.main & a.spots) if anywhere else a.main & b.main
    return len(both) / len(a.main | b.main) if a.main | b.main else 1.0


def neighbours(
    links: Sequence[set[int]], pages: Sequence[Page], keys: Sequence[int], rules: Rules, most: int
) -> list[list[int]]:
    """Pages of other content whose links are alike, and half as much as the most alike, in the circle of the keys."""
    circle = [page for _, page in sorted({key: page for page, key in reversed(list(enumerate(keys)))}.items())]
    sightings: dict[int, list[int]] = {}
    for page in circle:
        for spot in pages[page].spots:
            sightings.setdefault(spot, []).append(page)
    travelling = [
        {
            spot
            for spot in pages[page].main
            if any(set_jaccard(own, links[sightings[spot][k]]) < rules.alike for k in (0, -1))
        }
        for page, own in enumerate(links)
    ]

    def say_something_else(a: int, b: int) -> bool:
        similarity = main_jaccard(pages[a], pages[b], rules.anywhere)
        if not SAME <= similarity < 1:
            return similarity < SAME
        if not (rules.travels and rules.around and share_a_frame(pages[a], pages[b], rules)):
            return False
        return all(own_travels(pages[p], pages[q], travelling[p], rules) for p, q in ((a, b), (b, a)))

    found = []
    for page, own in enumerate(links):
        at = circle.index(keys.index(keys[page]))
        after = circle[at + 1 :] + circle[:at]
        step = {other: k for k, other in enumerate(after)}
        similarity = {other: set_jaccard(own, links[other]) for other in candidates(links, own, after, most)}
        ranked = sorted(similarity, key=lambda other: (-similarity[other], step[other]))
        looked = [other for other in ranked if similarity[other] >= rules.alike][:LOOKED]
        others = [other for other in looked if say_something_else(page, other)]
        best = max((similarity[other] for other in others), default=0)
        found.append(sorted((other for other in others if similarity[other] >= best / 2), key=step.__getitem__)[:most])
    return found


def own_travels(page: Page, other: Page, travelling: set[int], rules: Rules) -> bool:
    """Nearly all of a main part that another page does not have travels, and hardly any of what both have."""
    common = page.main & (other.spots if rules.anywhere else other.main)
    own = page.main - common
    return (
        len(own) > 0
        and len(own - travelling) <= rules.share * len(own)
        and len(common & travelling) <= rules.share * len(common)
    )


def candidates(links: Sequence[set[int]], own: set[int], after: Sequence[int], most: int) -> set[int]:
    """The first pages, of those that come after a page, which have a link of it, for each of its links."""
    width = max(most, WALKED // len(own)) if own else 0
    return {other for link in own for other in [page for page in after if link in links[page]][:width]}


def mates(page: Page, near: Sequence[Page], rules: Rules) -> list[Page]:
    """The neighbours that share the frame and not the content."""
    similarity = [main_jaccard(page, other, rules.anywhere) for other in near]
    certain = [other for other, value in zip(near, similarity, strict=True) if not rules.alike <= value < SAME]
    doubtful = [other for other, value in zip(near, similarity, strict=True) if rules.alike <= value < SAME]
    witnesses: list[Page] = []
    for other in doubtful:
        if all(main_jaccard(other, witness, rules.anywhere) < SAME for witness in witnesses):
            witnesses.append(other)
    agreed = len(witnesses) > 1 and agree(page, witnesses, rules)
    return certain + [other for other in doubtful if agreed or (rules.around and share_a_frame(page, other, rules))]


def agree(page: Page, witnesses: Sequence[Page], rules: Rules) -> bool:
    """Pages of different content share nearly the same with a main part, or most of it, around the rest."""
    has = [witness.spots if rules.anywhere else witness.main for witness in witnesses]
    votes = {spot: sum(spot in theirs for theirs in has) for spot in page.spots}
    n, main = len(witnesses), len(page.main)
    at_most = rules.share * min(n - 1, CERTAIN - 1) / (CERTAIN - 1)
    some, every = sum(votes[s] > 0 for s in page.main), sum(votes[s] == n for s in page.main)
    if some - every <= at_most * some and main - every >= rules.share * main:
        return True
    core = {spot for spot in page.main if n - votes[spot] <= rules.share * n}
    if not rules.per_spot or main - len(core) < rules.share * main:
        return False
    shared, inside = sum(votes[spot] for spot in page.main), sum(votes[spot] for spot in core)
    if shared - inside > at_most * shared:
        return False
    return not rules.around or around(page, votes, n, rules.share)[1]


def share_a_frame(a: Page, b: Page, rules: Rules) -> bool:
    """On both pages, what they share stands around the text."""
    for page, other in ((a, b), (b, a)):
        has = other.spots if rules.anywhere else other.main
        in_one, apart = around(page, {spot: int(spot in has) for spot in page.spots}, 1, rules.share)
        if not (in_one and apart):
            return False
    return True


def around(page: Page, votes: dict[int, int], n: int, share: float) -> tuple[bool, bool]:
    """Whether one stretch holds nearly all of the page's own spots, and whether shared ones stand apart from them."""
    stretches: list[list[str]] = [[]]
    links = 0
    start, stop = main_segment(page.outline)
    for h, kind in page.outline[start:stop]:
        links = links + 1 if kind == LINK else 0
        if links == 2:
            stretches.append([])
        if kind == TEXT:
            shared = n - votes[h] <= share * n
            stretches[-1].append("shared" if shared else "own" if votes[h] <= share * n else "neither")
    own = [stretch.count("own") for stretch in stretches]
    mixed = sum(min(stretch.count("own"), stretch.count("shared")) for stretch in stretches)
    return sum(own) - max(own) <= share * sum(own), sum(own) > 0 and mixed <= share * sum(own)


def _left(outline: Sequence[Entry], dropped: set[int]) -> list[list[int]]:
    """The spots that stay, in stretches: two links since the last of them begin another one."""
    gains = []
    for h, kind in outline:
        gains.append(-1 if kind == LINK or h in dropped else int(kind == TEXT))
    start, stop = heaviest(gains)
    stretches: list[list[int]] = []
    links = 2
    for h, kind in outline[start:stop]:
        if kind == LINK:
            links += 1
        elif h not in dropped:
            if links >= 2:
                stretches.append([])
            stretches[-1].append(h)
            links = 0
    return stretches


def _counted(stretches: Sequence[Sequence[int]]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for stretch in stretches:
        for h in stretch:
            counts[h] = counts.get(h, 0) + 1
    return dict(sorted(counts.items()))
