"""Reference implementations of links, main content and template removal: plain Python on lists and sets."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import regex

from naive import extract

LINK_MARK, LINK_END_MARK, BLOCK_MARK = "\x1e", "\x1f", "\f"
SHINGLE, TEXT, LINKED, LINK = range(-1, 3)


def links(text: str) -> list[int]:
    """The link of each token of a marked text, which is the link of its first character."""
    clusters: list[list] = []  # characters that are normalized together, with the link of the first
    last, inside = 0, False
    for character in text:
        if character in (LINK_MARK, LINK_END_MARK):
            inside = character == LINK_MARK
            last += inside
            continue
        last += character == BLOCK_MARK and inside
        if regex.match(r"\p{Default_Ignorable_Code_Point}", character):
            continue
        if clusters and joins(character):
            clusters[-1][0] += character
        else:
            clusters.append([character, last if inside else 0])
    formed = [(unicodedata.normalize("NFKC", cluster), link) for cluster, link in clusters]
    of_character = [link for form, link in formed for _ in form.lower()]
    plain = "".join(form for form, _ in formed).lower()
    return [of_character[at] for at in _token_starts(plain)]


def joins(character: str) -> bool:
    """Whether a character may form one with the character before it."""
    first = unicodedata.normalize("NFKD", character)[0]
    return regex.match(r"[\P{CCC=0}\p{NFKC_QC=Maybe}]", first) is not None


def _token_starts(lowered: str) -> list[int]:
    """Positions of the words of `extract.tokens`."""
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
    """Return the segment of largest sum: the first of the shortest, extended over zeros; else everything."""
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


class Page(NamedTuple):
    """The parts of a page that are compared: outline, links, signatures, and the signatures of its main content."""

    outline: Sequence[Entry]
    links: set[int]
    signatures: set[int]
    main: set[int]
    key: int


OTHER_CONTENT, SAME_TEMPLATE, COMPARED, WALKED, EACH_LINK, FLOOR, FEWEST = 0.5, 0.75, 32, 1024, 16, 4, 12
UNKNOWN_TEMPLATE, CONTAINED = 0.25, 0.75


class Remaining(NamedTuple):
    """The counts of a page's signatures, what is missing of them, and the part of all in the main content."""

    counts: dict[int, int]
    missing: int
    fraction: float


def without_templates(outlines: Sequence[Sequence[Entry]], keys: Sequence[int]) -> list[Remaining]:
    """Template removal page by page: siblings, votes, the main content, what is missing of a small remainder."""
    return [remaining(page, *template(page, *of)) for page, of in with_siblings(outlines, keys)]


def unknown_templates(outlines: Sequence[Sequence[Entry]], keys: Sequence[int]) -> list[bool]:
    """Whether the template of each page is unknown."""
    return [unknown for _, (_, unknown) in with_siblings(outlines, keys)]


def with_siblings(
    outlines: Sequence[Sequence[Entry]], keys: Sequence[int]
) -> list[tuple[Page, tuple[list[Page], bool]]]:
    """Each page, its siblings, and whether its template is unknown."""
    pages = [
        Page(outline, {h for h, k in outline if k >= LINK}, {h for h, k in outline if k < LINK}, main(outline), key)
        for outline, key in zip(outlines, keys, strict=True)
    ]
    circle = [page for _, page in sorted({page.key: page for page in reversed(pages)}.items())]
    return [(page, siblings(page, circle)) for page in pages]


def gain(kind: int) -> int:
    """What an entry adds to a segment."""
    return 0 if kind == SHINGLE else LINKED - kind


def main(outline: Sequence[Entry]) -> set[int]:
    """The signatures in running text inside the heaviest segment."""
    start, stop = heaviest([gain(kind) for _, kind in outline])
    return {h for h, kind in outline[start:stop] if kind == TEXT}


def set_jaccard(a: set[int], b: set[int]) -> float:
    """The similarity of two sets; of two empty ones, 1."""
    return len(a & b) / len(a | b) if a | b else 1.0


def content_similarity(a: Page, b: Page) -> float:
    """The similarity of two main contents, whose signatures count wherever the other page has them."""
    both = (a.main & b.signatures) | (b.main & a.signatures)
    return len(both) / len(a.main | b.main) if a.main | b.main else 1.0


def is_digest(page: Page, other: Page) -> bool:
    """Whether a page has nearly all of the main content of another."""
    return len(page.main & other.signatures) > CONTAINED * len(page.main)


def siblings(page: Page, circle: Sequence[Page]) -> tuple[list[Page], bool]:
    """Pages of the same template with other content, and whether there are only pages of similar content."""
    at = [other.key for other in circle].index(page.key)
    after = [*circle[at + 1 :], *circle[:at]]
    width = max(EACH_LINK, WALKED // max(len(page.links), 1))
    candidates = {k for link in page.links for k in [k for k, q in enumerate(after) if link in q.links][:width]}
    likeness = {k: set_jaccard(page.links, after[k].links) for k in candidates}
    compared = sorted(candidates, key=lambda k: (-likeness[k], k))[:COMPARED]
    others = [k for k in compared if content_similarity(page, after[k]) < OTHER_CONTENT * likeness[k]]
    quoting = [k for k in others if len(page.main) >= FEWEST and is_digest(page, after[k])]

    def of_template(pages: list[int]) -> list[int]:
        best = max((likeness[k] for k in pages), default=0)
        return [k for k in pages if likeness[k] >= SAME_TEMPLATE * best]

    chosen = of_template(others)
    chosen = [] if len(chosen) == 1 and chosen[0] in quoting else chosen
    unknown = not chosen and max(likeness.values(), default=0) >= UNKNOWN_TEMPLATE
    return [after[k] for k in chosen], unknown


def template(page: Page, others: Sequence[Page], unknown: bool) -> tuple[set[int], bool]:
    """The signatures that more than half of the siblings have, and whether the template is unknown."""
    votes = {h: sum(h in other.signatures for other in others) for h in page.signatures}
    return {h for h, n in votes.items() if 2 * n > len(others)}, unknown


def remaining(page: Page, dropped: set[int], unknown: bool) -> Remaining:
    """The main content without the template, counted; the shingles without it if there is little main content."""
    gains = [-1 if TEXT <= kind < LINK and h in dropped else gain(kind) for h, kind in page.outline]
    start, stop = heaviest(gains)
    left = [h for h, kind in page.outline[start:stop] if TEXT <= kind < LINK and h not in dropped]
    fraction = len(left) / max(sum(TEXT <= kind < LINK for _, kind in page.outline), 1)
    shingles = [h for h, kind in page.outline if kind == SHINGLE and h not in dropped]
    has_links = any(kind >= LINK for _, kind in page.outline)
    spots = [h for h in left if not (has_links and h & 1)]
    left = shingles if len(spots) < FEWEST and shingles else left
    start, stop = heaviest([gain(kind) for _, kind in page.outline])
    missing = -(-sum(kind == TEXT for _, kind in page.outline[start:stop]) // FLOOR) - len(left)
    missing = max(missing, len(left)) if unknown else missing
    counts = {h: left.count(h) for h in sorted(set(left))}
    return Remaining(counts, max(missing, 0) if left else 0, fraction)
