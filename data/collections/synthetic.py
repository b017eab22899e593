"""Generated pages for runs at scale: any number, in any order, identical on every machine.

The text is not English, and the pages are not for evaluating quality. Properties that affect time and memory are those
of a crawl: log-normal lengths, Zipf-distributed words, 40 % function words, stories that several sites copy with edits,
and one template for each site.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from data.collections.fetching import replacing
from spotsigs.contracts import Collection, Shard
from spotsigs.errors import require
from spotsigs.records import Document, Skipped
from spotsigs.workers.engines import Engine

FUNCTION_WORDS = (
    "the a of and to in is was that for on with as it by at from an be are were have has had will would can could do "
    "does did not but or if they he she we this which their its"
).split()
CONTENT_WORDS = 60_000
SITES = 2000
BLOCK = 64
"""Number of pages in a block, to which stories are assigned; the maximal number of pages of a story."""

STRIDE = 10**9 + 7
"""Prime that distributes the pages of a story over the collection."""

LAYOUTS = 997
"""Number of different layouts of a block."""


@dataclass(frozen=True, kw_only=True)
class Synthetic(Collection):
    """Collection of generated pages.

    Attributes
    ----------
    documents : int
        Number of pages.
    words : int
        Median length of a story, in words.
    seed : int
        Seed, not negative.
    a_shard : int
        Number of pages in a shard.
    """

    documents: int = 20_000
    words: int = 220
    seed: int = 2008
    a_shard: int = 1000

    def __post_init__(self) -> None:
        require(1 <= self.documents < STRIDE, f"documents must be in [1, {STRIDE:,}), got {self.documents}")
        require(self.words >= 10, f"words must be at least 10, got {self.words}")
        require(self.seed >= 0, f"seed must not be negative, got {self.seed}")
        require(self.a_shard >= 1, f"a_shard must be at least 1, got {self.a_shard}")

    def shards(self) -> Sequence[Shard]:
        """Return the shards of the collection."""
        edges = range(0, self.documents, self.a_shard)
        return [partial(_pages, self, start, min(start + self.a_shard, self.documents)) for start in edges]

    def page(self, number: int) -> Document:
        """Generate the page of a number in ``range(documents)``."""
        position = number * STRIDE % self.documents
        story, copy = _story(self.seed, *divmod(position, BLOCK))
        site = int(np.random.default_rng([self.seed, 1, number]).integers(SITES))
        text = _edited(self.seed, story, copy, self.words)
        template = _template(self.seed, site)
        content = f"<html><head><title>{story}</title></head><body>{template}<div>{text}</div></body></html>"
        return Document(id=f"http://site{site}.example/{number}.html", content=content, cluster=str(story))


def write_jsonl(collection: Synthetic, folder: Path, engine: Engine, a_file: int = 20_000) -> Iterator[int]:
    """Write a collection as jsonl files of ``a_file`` pages; keep existing ones; yield the number of pages of each."""
    folder.mkdir(parents=True, exist_ok=True)
    starts = range(0, collection.documents, a_file)
    ranges = [(start, min(start + a_file, collection.documents)) for start in starts]
    return engine.map(partial(_write_file, collection, folder), ranges)


def _write_file(collection: Synthetic, folder: Path, rows: tuple[int, int]) -> int:
    start, stop = rows
    path = folder / f"{start:010d}-{stop:010d}.jsonl"
    if not path.exists():
        with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            for page in map(collection.page, range(start, stop)):
                file.write(json.dumps({"id": page.id, "html": page.content}) + "\n")
    return stop - start


def _pages(collection: Synthetic, start: int, stop: int) -> Iterator[Document | Skipped]:
    return map(collection.page, range(start, stop))


@cache
def _vocabulary(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all words, and their cumulative probabilities."""
    rng = np.random.default_rng([seed, 2])
    syllables = np.array([a + b for a in "bcdfghjklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")])
    words: dict[str, None] = {}
    while len(words) < CONTENT_WORDS:
        words.update(dict.fromkeys("".join(word) for word in rng.choice(syllables, (CONTENT_WORDS, 4)).tolist()))
    content = list(words)[:CONTENT_WORDS]
    weight = np.concatenate([0.4 * _zipf(len(FUNCTION_WORDS), 0.8), 0.6 * _zipf(CONTENT_WORDS, 1.0)])
    return np.array([*FUNCTION_WORDS, *content], dtype=object), np.cumsum(weight / weight.sum())


def _zipf(n: int, exponent: float) -> np.ndarray:
    weight = 1 / np.arange(1, n + 1) ** exponent
    return np.asarray(weight / weight.sum())


def _sentences(rng: np.random.Generator, seed: int, words: int) -> list[str]:
    vocabulary, chances = _vocabulary(seed)
    drawn = vocabulary[np.minimum(np.searchsorted(chances, rng.random(words)), len(vocabulary) - 1)].tolist()
    return [" ".join(drawn[at : at + 12]) + "." for at in range(0, words, 12)]


def _story(seed: int, block: int, position: int) -> tuple[int, int]:
    """Return the story at a position of a block, and the number of its copy."""
    ends = _story_ends(seed, block % LAYOUTS)
    number = int(np.searchsorted(ends, position, side="right"))
    return block * BLOCK + number, position - (int(ends[number - 1]) if number else 0)


@cache
def _story_ends(seed: int, layout: int) -> np.ndarray:
    rng = np.random.default_rng([seed, 3, layout])
    sizes: list[int] = []
    while sum(sizes) < BLOCK:
        several = rng.random() < 0.25
        sizes.append(min(int(rng.zipf(1.7)) + 1, BLOCK) if several else 1)
    ends: np.ndarray = np.minimum(np.cumsum(sizes), BLOCK)
    return ends


def _edited(seed: int, story: int, copy: int, words: int) -> str:
    rng = np.random.default_rng([seed, 4, story])
    length = int(np.clip(words * np.exp(0.8 * rng.standard_normal()), 24, 20 * words))
    sentences = _sentences(rng, seed, length)
    if copy:
        edits = np.random.default_rng([seed, 5, story, copy])
        share = edits.beta(0.6, 3)
        fresh = np.flatnonzero(edits.random(len(sentences)) < share).tolist()
        for at, sentence in zip(fresh, _sentences(edits, seed, 12 * len(fresh)), strict=True):
            sentences[at] = sentence
    return "".join(f"<p>{' '.join(sentences[at : at + 4])}</p>" for at in range(0, len(sentences), 4))


@cache
def _template(seed: int, site: int) -> str:
    rng = np.random.default_rng([seed, 6, site])
    links = " ".join(f'<a href="/{k}">{text}</a>' for k, text in enumerate(_sentences(rng, seed, 72)))
    return f"<ul>{links}</ul>"
