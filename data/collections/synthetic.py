"""Pages made for runs at scale: as many as wanted, cheaply, in any order, the same on every machine.

They are no English and judge no quality. What matters to time and memory is like a crawl's: lengths spread
log-normally, words are Zipf distributed, four in ten are function words, stories are copied with edits by a few or by
many sites, and each site has a frame of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from data.collections.downloads import replacing
from spotsigs.engines import Engine
from spotsigs.errors import require
from spotsigs.records import Collection, Document, Shard, Skipped

FUNCTION_WORDS = (
    "the a of and to in is was that for on with as it by at from an be are were have has had will would can could do "
    "does did not but or if they he she we this which their its"
).split()
CONTENT_WORDS = 60_000
SITES = 2000
BLOCK = 64
"""Places among which stories are dealt out, and so the most pages that one story has."""

DEAL = 10**9 + 7
"""A prime that scatters the pages of a story over the collection."""


@dataclass(frozen=True, kw_only=True)
class Synthetic(Collection):
    """A collection of made-up pages.

    Attributes
    ----------
    documents : int
        How many.
    words : int
        Median length of a story, in words.
    seed : int
        Not negative.
    a_shard : int
        Pages of a shard.
    """

    documents: int = 20_000
    words: int = 220
    seed: int = 2008
    a_shard: int = 1000

    def __post_init__(self) -> None:
        require(1 <= self.documents < DEAL, f"documents must lie in [1, {DEAL:,}), got {self.documents}")
        require(self.words >= 10, f"words must be at least 10, got {self.words}")
        require(self.seed >= 0, f"seed must not be negative, got {self.seed}")
        require(self.a_shard >= 1, f"a_shard must be at least 1, got {self.a_shard}")

    def shards(self) -> Sequence[Shard]:
        """Return the collection's shares."""
        edges = range(0, self.documents, self.a_shard)
        return [partial(_pages, self, start, min(start + self.a_shard, self.documents)) for start in edges]

    def page(self, number: int) -> Document:
        """Make a page.

        Parameters
        ----------
        number : int
            In ``range(documents)``.
        """
        place = number * DEAL % self.documents
        story, copy = _story(self.seed, *divmod(place, BLOCK))
        site = int(np.random.default_rng([self.seed, 1, number]).integers(SITES))
        text = _edited(self.seed, story, copy, self.words)
        frame = _frame(self.seed, site)
        content = f"<html><head><title>{story}</title></head><body>{frame}<div>{text}</div></body></html>"
        return Document(id=f"http://site{site}.example/{number}.html", content=content, cluster=str(story))


def write_jsonl(collection: Synthetic, folder: Path, engine: Engine, a_file: int = 20_000) -> Iterator[int]:
    """Write a collection as jsonl files; those that are there stay.

    Parameters
    ----------
    collection : Synthetic
        What to write.
    folder : Path
        Where to.
    engine : Engine
        Where the files are written.
    a_file : int
        Pages of a file.

    Returns
    -------
    iterator of int
        Pages of each file, when it is complete.
    """
    folder.mkdir(parents=True, exist_ok=True)
    starts = range(0, collection.documents, a_file)
    spans = [(start, min(start + a_file, collection.documents)) for start in starts]
    return engine.map(partial(_write_file, collection, folder), spans)


def _write_file(collection: Synthetic, folder: Path, span: tuple[int, int]) -> int:
    start, stop = span
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
    """Return the content words, and the cumulated probability of each word of any kind."""
    rng = np.random.default_rng([seed, 2])
    syllables = np.array([a + b for a in "bcdfghjklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")])
    words: dict[str, None] = {}
    while len(words) < CONTENT_WORDS:
        words.update(dict.fromkeys("".join(word) for word in rng.choice(syllables, (CONTENT_WORDS, 4)).tolist()))
    content = list(words)[:CONTENT_WORDS]
    weight = np.concatenate(
        [
            0.4 * _zipf(len(FUNCTION_WORDS), 0.8),
            0.6 * _zipf(CONTENT_WORDS, 1.0),
        ]
    )
    return np.array([*FUNCTION_WORDS, *content], dtype=object), np.cumsum(weight / weight.sum())


def _zipf(n: int, exponent: float) -> np.ndarray:
    weight = 1 / np.arange(1, n + 1) ** exponent
    return np.asarray(weight / weight.sum())


def _sentences(rng: np.random.Generator, seed: int, words: int) -> list[str]:
    """Make sentences of about twelve words."""
    vocabulary, chances = _vocabulary(seed)
    drawn = vocabulary[np.minimum(np.searchsorted(chances, rng.random(words)), len(vocabulary) - 1)].tolist()
    return [" ".join(drawn[at : at + 12]) + "." for at in range(0, words, 12)]


def _story(seed: int, block: int, place: int) -> tuple[int, int]:
    """Return the story at a place of a block, and which of its copies stands there."""
    ends = _deal(seed, block)
    number = int(np.searchsorted(ends, place, side="right"))
    return block * BLOCK + number, place - (int(ends[number - 1]) if number else 0)


@cache
def _deal_cached(seed: int, kind: int) -> np.ndarray:
    rng = np.random.default_rng([seed, 3, kind])
    sizes: list[int] = []
    while sum(sizes) < BLOCK:
        several = rng.random() < 0.25
        sizes.append(min(int(rng.zipf(1.7)) + 1, BLOCK) if several else 1)
    ends: np.ndarray = np.minimum(np.cumsum(sizes), BLOCK)
    return ends


def _deal(seed: int, block: int) -> np.ndarray:
    """Return where each story of a block ends; there are 997 ways to deal one."""
    return _deal_cached(seed, block % 997)


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
def _frame(seed: int, site: int) -> str:
    rng = np.random.default_rng([seed, 6, site])
    links = " ".join(f'<a href="/{k}">{text}</a>' for k, text in enumerate(_sentences(rng, seed, 72)))
    return f"<ul>{links}</ul>"
