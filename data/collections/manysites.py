"""Real stories in templates of many sites: two public collections of pages whose articles were marked by people."""

from __future__ import annotations

import csv
import gzip
import json
import logging
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, partial
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import urlopen

from selectolax.lexbor import LexborHTMLParser

from data.collections.fetching import decoded, replacing
from data.collections.gold.random_streams import Dice
from data.collections.newsframes import NewsFrames, deciding_files, prepared_frames, read_frames, with_prose
from data.collections.newsframes.assembly import equal_sizes
from data.collections.newsframes.frames import AnnotatedPage, Frame
from data.collections.newsframes.reuters_stories import NewsStory
from spotsigs.arrays.parallel import on_threads
from spotsigs.errors import InputError, require
from spotsigs.workers.progress import Progress

log = logging.getLogger(__name__)

FILES = Path(__file__).with_name("manysites.csv")
"""PageSource, path, size in bytes and SHA-256 of each file that is read."""
SERVER = "https://raw.githubusercontent.com"
CONNECTIONS = 8
"""Number of files that are fetched at the same time."""
TIMEOUT = 60
"""Seconds after which a server that does not answer is given up."""


class PageSource(NamedTuple):
    """Public collection of annotated pages: its repository on GitHub, the commit that is read, and its licence."""

    name: str
    repository: str
    commit: str
    licence: str

    @property
    def archive(self) -> str:
        """Name of a tar file with its files."""
        return f"{self.name}.tar"


WCXB = PageSource(
    "wcxb-dev",
    "Murrough-Foley/web-content-extraction-benchmark",
    "c039d5ee9f5a3a984a0e167e63aacd04e76e78a9",
    "CC BY 4.0",
)
SCRAPINGHUB = PageSource(
    "scrapinghub", "scrapinghub/article-extraction-benchmark", "4a3bc979f76c0df73cb95fe272e2fc1b96f9f010", "MIT"
)
SOURCES = (WCXB, SCRAPINGHUB)


class Listed(NamedTuple):
    """File of a source: its path in the repository, its size in bytes and its SHA-256."""

    source: str
    path: str
    size: int
    digest: str


class StorySizes(Enum):
    """Distribution of the pages over the stories."""

    equal = "equal"
    heavy_tailed = "heavy_tailed"


@dataclass(frozen=True, kw_only=True)
class ManySites(NewsFrames):
    """The stories of `NewsFrames` in one template of each of many sites, none of which `NewsFrames` has.

    ``docs/newsframes.md`` describes the rules for stories and templates. The templates are of the article pages of the
    development part of WCXB and of an article extraction benchmark; each file is compared with its checksum.

    Parameters
    ----------
    sites : int, optional
        Number of sites, which the seed draws from all; None uses all sites.
    sizes : StorySizes
        Each story has as many pages as another, or the numbers have the heavy tail of `NewsFrames`.
    archive : str, optional
        A folder with ``wcxb-dev.tar`` and ``scrapinghub.tar``, which are then read instead of being fetched.

    References
    ----------
    M. Foley, *WCXB: Web Content Extraction Benchmark*. Scrapinghub, *Article extraction benchmark*.
    """

    sites: int | None = None
    sizes: StorySizes = StorySizes.equal
    archive: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.sites is None or self.sites >= 1, f"sites must be at least 1, got {self.sites}")

    def parts(self) -> tuple[tuple[NewsStory, ...], tuple[Frame, ...]]:
        """Return the stories and the templates of the pages, before any drift."""
        return _parts(self)

    def counts(self, stories: int) -> list[int]:
        """Return the numbers of pages of so many stories, largest first, with the sum ``pages``."""
        return equal_sizes(self.pages, stories) if self.sizes is StorySizes.equal else super().counts(stories)

    def many_annotated_pages(self) -> Iterator[AnnotatedPage]:
        """Yield the pages with an annotated article of both sources, in order of their names."""
        for source, pages in ((WCXB, _wcxb_pages), (SCRAPINGHUB, _scrapinghub_pages)):
            yield from pages(self._contents(source))

    def _contents(self, source: PageSource) -> Mapping[str, bytes]:
        """Return the verified files of a source, by path."""
        if self.archive is not None:
            return _read_archive(Path(self.archive, source.archive), source)
        folder = Path(self.cache, "manysites", source.name)
        missing = [file for file in listed_files(source.name) if not _is_intact(folder / file.path, file)]
        if missing:
            if not self.accept_licence:
                raise InputError(_terms())
            _fetch(source, missing, folder)
        return {file.path: (folder / file.path).read_bytes() for file in listed_files(source.name)}


@lru_cache(maxsize=2)
def listed_files(source: str) -> tuple[Listed, ...]:
    """Return the files of a source that are read, in order of their paths."""
    with FILES.open(encoding="utf-8", newline="") as table:
        rows = [Listed(row["source"], row["path"], int(row["bytes"]), row["sha256"]) for row in csv.DictReader(table)]
    return tuple(sorted(row for row in rows if row.source == source))


def _terms() -> str:
    size = sum(file.size for source in SOURCES for file in listed_files(source.name))
    sources = " and ".join(f"{source.repository} ({source.licence})" for source in SOURCES)
    names = " and ".join(source.archive for source in SOURCES)
    return (
        f"data=manysites fetches {size / 1e6:.0f} MB of pages from {sources} on GitHub, and stories of Reuters-21578; "
        "the pages belong to their publishers, the stories to Reuters and Carnegie Group, who allow research; if you "
        f"may use them, repeat with data.accept_licence=true, or give a folder with {names} by data.archive="
    )


def _is_intact(path: Path, file: Listed) -> bool:
    return path.is_file() and path.stat().st_size == file.size and sha256(path.read_bytes()).hexdigest() == file.digest


def _fetch(source: PageSource, missing: list[Listed], folder: Path) -> None:
    """Fetch the missing files of a source; each is published when it is whole, so that a stopped run resumes."""
    size = sum(file.size for file in missing) / 1e6
    log.info("fetching %d files (%.0f MB) of %s, %s", len(missing), size, source.repository, source.licence)
    with (
        Progress(f"fetching {source.name}", len(missing), "files") as shown,
        closing(on_threads(partial(_fetch_into, source, folder), missing, CONNECTIONS)) as fetched,
    ):
        for _ in fetched:
            shown.advance()


def _fetch_into(source: PageSource, folder: Path, file: Listed) -> None:
    _fetch_file(source, file, folder / file.path)


def _fetch_file(source: PageSource, file: Listed, path: Path) -> None:
    address = f"{SERVER}/{source.repository}/{source.commit}/{quote(file.path)}"
    try:
        with urlopen(address, timeout=TIMEOUT) as answer:  # SERVER has the scheme
            content = answer.read()
    except HTTPError as error:
        raise InputError(f"{address} answers {error.code} {error.reason}; {_way_out(source)}") from error
    except (OSError, HTTPException) as error:
        problem = f"{address} cannot be fetched (is there a network?): {error}"
        raise InputError(f"{problem}; {_way_out(source)}") from error
    if sha256(content).hexdigest() != file.digest:
        raise InputError(f"{address} has other bytes than {FILES.name} lists; {_way_out(source)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _way_out(source: PageSource) -> str:
    return f"repeat the command, which fetches what is missing, or give a folder with {source.archive} by data.archive="


def _read_archive(path: Path, source: PageSource) -> dict[str, bytes]:
    """Return the listed files of a tar file, which must have their checksums."""
    wanted = {file.path: file for file in listed_files(source.name)}
    contents: dict[str, bytes] = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and member.name in wanted:
                    opened = archive.extractfile(member)
                    contents[member.name] = opened.read() if opened else b""
    except (tarfile.TarError, EOFError, OSError) as error:
        raise InputError(f"{path}, named by data.archive=, cannot be read as a tar file: {error}") from error
    for name, file in wanted.items():
        require(name in contents, f"{path} lacks {name}; it must be of {source.repository} at {source.commit}")
        intact = sha256(contents[name]).hexdigest() == file.digest
        require(intact, f"{path}: {name} has other bytes than {FILES.name} lists")
    return contents


def _wcxb_pages(contents: Mapping[str, bytes]) -> Iterator[AnnotatedPage]:
    """Yield the article pages of WCXB; its annotations name the address, the title and the text of the article."""
    for path in sorted(contents):
        if path.startswith("dev/ground-truth/"):
            name = Path(path).stem
            annotation = json.loads(contents[path])
            truth = annotation["ground_truth"]
            html = decoded(gzip.decompress(contents[f"dev/html/{name}.html.gz"]))
            yield AnnotatedPage(
                _site(annotation["url"]),
                f"wcxb-{name}",
                html,
                truth.get("title") or "",
                truth.get("main_content") or "",
            )


def _scrapinghub_pages(contents: Mapping[str, bytes]) -> Iterator[AnnotatedPage]:
    """Yield the news pages of the article extraction benchmark, which has no headlines: the page's title is used."""
    annotations: dict[str, Any] = json.loads(contents["ground-truth.json"])
    for name, annotation in sorted(annotations.items()):
        html = decoded(gzip.decompress(contents[f"html/{name}.html.gz"]))
        yield AnnotatedPage(
            _site(annotation["url"]), f"sh-{name[:12]}", html, _title(html), annotation.get("articleBody") or ""
        )


def _title(html: str) -> str:
    """Return the title that a page gives to other sites, or else the title of its window."""
    tree = LexborHTMLParser(html)
    for node in tree.css("meta[property='og:title']"):
        if node.attributes.get("content"):
            return str(node.attributes["content"])
    titles = tree.css("head > title")
    return titles[0].text(strip=True) if titles else ""


def _site(address: str) -> str:
    return (urlsplit(address).hostname or address).lower().removeprefix("www.")


@lru_cache(maxsize=2)
def _parts(collection: ManySites) -> tuple[tuple[NewsStory, ...], tuple[Frame, ...]]:
    news = NewsFrames(path=collection.path, accept_licence=collection.accept_licence, cache=collection.cache)
    stories, known = news.parts()
    rules = [*deciding_files("frames"), Path(__file__), FILES]
    prepared = prepared_frames(collection.cache, "manysites", rules, collection.many_annotated_pages)
    frames = one_of_each_site(read_frames(prepared), {frame.site for frame in known})
    if collection.sites is not None:
        require(
            collection.sites <= len(frames),
            f"sites must be at most {len(frames)}, the number of sites with a template, got {collection.sites}",
        )
        frames = sorted(Dice(collection.seed, "manysites sites").sample(frames, collection.sites), key=_by_site)
    if collection.prose is not None:
        return stories, with_prose(frames, collection.prose, collection.placebo, collection.seed)
    return stories, tuple(frames)


def one_of_each_site(frames: tuple[Frame, ...], excluded: set[str]) -> list[Frame]:
    """Return the first template of each site, in order of sites, without the excluded sites and their subdomains.

    A site whose host is a subdomain of another site's is left out, too: the two may share a template.
    """
    first: dict[str, Frame] = {}
    for frame in sorted(frames, key=lambda frame: (frame.site, frame.name)):
        first.setdefault(frame.site, frame)
    first.pop("", None)  # a page whose address is unknown
    hosts = excluded | set(first)
    above = {host for host in hosts if any(parent in hosts for parent in _parents(host))}
    covered = {parent for host in excluded for parent in _parents(host)} | excluded | above
    return [frame for site, frame in first.items() if site not in covered]


def _parents(host: str) -> list[str]:
    """Return the domains that a host is a subdomain of, without the top level."""
    labels = host.split(".")
    return [".".join(labels[i:]) for i in range(1, len(labels) - 1)]


def _by_site(frame: Frame) -> str:
    return frame.site
