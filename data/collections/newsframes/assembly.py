"""Assembly of pages from stories and templates, and changes of templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from data.collections.gold.random_streams import Dice
from data.collections.newsframes.frames import LEAD_LETTERS, Frame, FramePiece
from data.collections.newsframes.reuters_stories import NewsStory, Text
from spotsigs.errors import require

FEWEST = 2
"""Minimal number of pages in a cluster."""


@dataclass(frozen=True)
class Placed:
    """Plan of a page: positions of a story, of one of its versions and of a template.

    ``id`` consists of cluster, slash, site, hyphen, number in the cluster, ``.html``.
    """

    id: str
    story: int
    version: int
    frame: int

    @property
    def cluster(self) -> str:
        """Name of the story."""
        return self.id.partition("/")[0]


def sizes(pages: int, clusters: int, seed: int) -> list[int]:
    """Return heavy-tailed random cluster sizes of at least two pages, largest first, with the sum ``pages``.

    Each size varies by a quarter around its expected value.
    """
    dice = Dice(seed, "newsframes sizes", pages, clusters)
    weights = [10_000_000 // ((rank + 5) * (rank + 100)) * dice.between(75, 125) for rank in range(clusters)]
    spare = pages - FEWEST * clusters
    result = [FEWEST + spare * weight // sum(weights) for weight in weights]
    for i in range(pages - sum(result)):
        result[i % clusters] += 1
    return sorted(result, reverse=True)


def equal_sizes(pages: int, clusters: int) -> list[int]:
    """Return cluster sizes with the sum ``pages`` that differ by one page at most, largest first."""
    size, larger = divmod(pages, clusters)
    return [size + 1] * larger + [size] * (clusters - larger)


def plan(stories: Sequence[NewsStory], frames: Sequence[Frame], counts: Sequence[int], seed: int) -> list[Placed]:
    """Plan a collection in order of ids, with the given numbers of pages, largest first, for stories in random order.

    A page uses one of the least used templates, but none that its version already uses. The versions of a story
    alternate.
    """
    dice = Dice(seed, "newsframes plan", sum(counts))
    uses = [0] * len(frames)
    placed = []
    for size, story in zip(counts, dice.sample(range(len(stories)), len(stories)), strict=True):
        versions = len(stories[story].versions)
        most = versions * len(frames)
        require(
            size <= most,
            f"pages must be fewer, or sites more: one story has {size} pages but only {most} combinations of versions "
            "and templates",
        )
        first = dice.below(versions)
        taken: set[tuple[int, int]] = set()
        for number in range(size):
            version = (first + number) % versions
            free = [i for i in range(len(frames)) if (i, version) not in taken]
            least = min(uses[i] for i in free)
            chosen = dice.pick([i for i in free if uses[i] == least])
            taken.add((chosen, version))
            uses[chosen] += 1
            name = f"{stories[story].name}/{frames[chosen].site}-{number:03d}.html"
            placed.append(Placed(name, story, version, chosen))
    return sorted(placed, key=lambda page: page.id)


def printed(frame: Frame, text: Text) -> str:
    """Return a page: the text in the slots of the template, its headline in headings, title and metas.

    The paragraphs are distributed evenly over the slots, in order; empty slots are dropped with their tags.
    """
    slots = [i for i, piece in enumerate(frame.pieces) if piece.kind == "slot"]
    n, k = len(text.paragraphs), min(len(slots), len(text.paragraphs))
    shares = {slots[j]: text.paragraphs[j * n // k : (j + 1) * n // k] for j in range(k)}
    lead = text.paragraphs[0][:LEAD_LETTERS].rsplit(" ", 1)[0] if text.paragraphs else ""
    return "".join(_piece(piece, shares.get(i, ()), text.headline, lead) for i, piece in enumerate(frame.pieces))


def _piece(piece: FramePiece, paragraphs: Sequence[str], headline: str, lead: str) -> str:
    if piece.kind == "headline":
        return piece.opening + escape(headline) + piece.closing
    if piece.kind == "lead":
        return escape(lead)
    if piece.kind != "slot":
        return piece.html
    if piece.opening.startswith("<p") or not paragraphs:
        return "\n".join(piece.opening + escape(text) + piece.closing for text in paragraphs)
    if len(paragraphs) == 1:
        return piece.opening + escape(paragraphs[0]) + piece.closing
    return piece.opening + "\n".join(f"<p>{escape(text)}</p>" for text in paragraphs) + piece.closing


def drifted(frame: Frame, others: Sequence[Frame], drift: float, dice: Dice) -> Frame:
    """Independently replace a fraction of a template's blocks by blocks of other pages.

    Half of the new blocks are from another page of the same site, if there is one, the others from any template.
    """
    siblings = [other for other in others if other.site == frame.site and other.name != frame.name and other.blocks]
    strangers = [other for other in others if other.site != frame.site and other.blocks]
    changed: dict[int, str] = {}
    for i in frame.blocks:
        if dice.chance(100 * drift):
            pool = siblings if siblings and dice.chance(50) else strangers
            if pool:
                donor = dice.pick(pool)
                changed[i] = donor.pieces[dice.pick(donor.blocks)].html
    return frame.with_blocks(changed)
