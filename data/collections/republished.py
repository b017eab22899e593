"""Documentation pages of many packages over several releases: pages that were really published again."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import ClassVar

from data.collections.fetching import archive, decoded, files
from data.collections.prepared import PreparedCollection
from spotsigs.errors import InputError, require
from spotsigs.workers.progress import progress

SOURCES = Path(__file__).with_name("republished.csv")
"""Releases: collection, site, generator of its pages, client, package, version, and the folder of the pages."""
SHORTEST, LARGEST = 600, 400_000
"""Fewest characters of visible text, most bytes, of a page."""
LEAST = 0.5
"""Least ratio of the lengths of two editions of a page."""

_NO_PAGE = """
index contents toc genindex py-modindex modindex modules search searchresults help help-doc redirect nav*
identifier*index* term*index* deprecated*index* bug*index* todo*index* metadata*index* link*index* group*index*
indices* index-* index_* *-tree *graph overview-* package-use package-frame allclasses* allpackages*
constant-values serialized-form deprecated* annotated* classes hierarchy* inherits* functions* globals* files
namespaces namespacemembers* pages examples deprecated-list *-members *-source *[-_]pysrc *-frame frames *_8h
*_8h_source *-menu toc-* glossary annotation-glossary api-index* object-tree *change* *releasenote* *release[-_]note*
*whatsnew* *whats_new* *history* *license* *licence* *copying* changes* news* releases* authors* credits* todo* thanks*
acknowledgments* acknowledgements* acknowledgment* acknowledgement*
""".split()
"""Names of pages that a generator makes from other pages, and of lists of changes, authors and licences."""
_NO_FOLDER = {"_modules", "_sources", "class-use", "src-html", "changelog", "release-notes", "node_modules"}


@dataclass(frozen=True)
class _Page:
    """A page of a release: its text's length and the words of its title and first heading."""

    release: int
    content: bytes
    length: int
    titles: tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Republished(PreparedCollection):
    """Documentation pages of several releases; editions of the same page are one cluster.

    A page's id is its site, its package with the version, and its path, separated by slashes. The site is a template:
    the documentation of one package by one generator. ``docs/republished.md`` describes the rules.

    Parameters
    ----------
    releases : str
        ``republished`` and ``republished2`` for many packages, ``manuals`` for an installation guide in nineteen
        languages and for three kinds of machines, whose sites are languages.
    sites : list of str, optional
        Sites to read; all by default.
    paths : int
        Most paths of a site that several releases contain, and three times the most of the others.
    cache, shard_bytes : str, int
        As in `PreparedCollection`.
    """

    site_pattern: ClassVar[str] = r"^([^/.]+)"

    releases: str = "republished"
    sites: list[str] | None = None
    paths: int = 30

    def __post_init__(self) -> None:
        known = list(dict.fromkeys(row["collection"] for row in listed_releases()))
        require(self.releases in known, f"releases must be one of {', '.join(known)}, got {self.releases!r}")
        unknown = set(self.sites or ()) - {
            row["site"] for row in listed_releases() if row["collection"] == self.releases
        }
        require(not unknown, f"{', '.join(sorted(unknown))} is no site of {self.releases}, see {SOURCES.name}")
        require(self.paths > 0, f"paths must be positive, got {self.paths}")

    def _identity(self) -> tuple[str, object]:
        return self.releases, [self.paths, self._releases()]

    def _releases(self) -> dict[str, list[dict[str, str]]]:
        releases: dict[str, list[dict[str, str]]] = defaultdict(list)
        for row in listed_releases():
            if row["collection"] == self.releases and (self.sites is None or row["site"] in self.sites):
                releases[row["site"]].append(row)
        return releases

    def _records(self) -> Iterator[dict[str, str]]:
        releases = self._releases()
        for site, rows in progress(releases.items(), f"preparing {self.releases}", len(releases), "sites"):
            yield from _site_records(site, rows, self.cache, self.paths)


def listed_releases() -> list[dict[str, str]]:
    """Return the rows of `SOURCES`."""
    with SOURCES.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _site_records(site: str, rows: Sequence[dict[str, str]], cache: str, most: int) -> Iterator[dict[str, str]]:
    """Yield id, cluster and HTML of a site's pages, ordered by path and release."""
    editions: dict[str, list[_Page]] = defaultdict(list)
    seen: set[bytes] = set()
    for number, row in enumerate(rows):
        package = archive(row["client"], row["package"], row["version"], cache)
        pages = list(_pages(package, row["root"], _others(row)))
        if not pages:
            raise InputError(f"{row['package']} {row['version']} contains no page under {row['root']}")
        for path, content in pages:
            page, digest = _page(number, content), sha256(content).digest()
            if page is not None and digest not in seen:
                seen.add(digest)
                editions[path].append(page)
    chosen: list[str] = []
    several = 0
    for path in sorted(editions, key=lambda path: sha256(f"{site}/{path}".encode()).digest()):
        again = len(editions[path]) > 1
        full = several >= most if again else len(chosen) - several >= most // 3
        if not full and not any(_moved(editions[path], editions[other]) for other in chosen):
            chosen.append(path)
            several += again
    for path in sorted(chosen):
        part = 0
        for k, edition in enumerate(editions[path]):
            if k:
                alike = _alike(editions[path][k - 1], edition)
                if alike == 1:  # doubtful
                    break
                part += alike == 0
            row = rows[edition.release]
            name = f"{site}/{row['package']}-{row['version']}/{path}"
            yield {"id": name, "cluster": f"{site}/{path}#{part}", "html": decoded(edition.content)}


def _others(row: dict[str, str]) -> list[str]:
    """Return the folders of a release's other sites inside the folder of one site."""
    same = (
        other["root"] for other in listed_releases() if all(other[key] == row[key] for key in ("package", "version"))
    )
    return [root for root in same if root != row["root"] and PurePosixPath(root).is_relative_to(row["root"])]


def _pages(package: Path, root: str, others: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield path below the root and content of a package's pages, without pages of other sites."""

    def wanted(name: str) -> bool:
        path = PurePosixPath(name)
        return (
            path.suffix.lower() in (".html", ".htm")
            and path.is_relative_to(root)
            and not any(path.is_relative_to(other) for other in others)
            and not _NO_FOLDER.intersection(path.parts)
            and not any(fnmatchcase(path.stem.lower(), name) for name in _NO_PAGE)
        )

    for name, content in files(package, wanted):
        yield PurePosixPath(name).relative_to(root).as_posix(), content


def _page(release: int, content: bytes) -> _Page | None:
    """Measure a page; None if it is too short, too large or no page."""
    from selectolax.lexbor import LexborHTMLParser

    if len(content) > LARGEST:
        return None
    tree = LexborHTMLParser(decoded(content))
    for node in tree.css("script, style, noscript"):
        node.decompose()
    length = len(" ".join(tree.body.text(separator=" ").split())) if tree.body else 0
    if length < SHORTEST:
        return None
    nodes = tree.css_first("title"), tree.css_first("h1, h2")
    titles = tuple(_words(node.text()) if node else "" for node in nodes)
    return _Page(release, content, length, (titles[0], titles[1]))


def _words(title: str) -> str:
    """Return the letters of a title, without the digits of versions and chapters."""
    return "".join(c for c in title.casefold() if c.isalpha())


def _alike(old: _Page, new: _Page) -> int:
    """Return how many of two conditions hold: the same title or heading, similar lengths."""
    titled = any(a == b != "" for a, b in zip(old.titles, new.titles, strict=True))
    sized = min(old.length, new.length) >= LEAST * max(old.length, new.length)
    return titled + sized


def _moved(path: Sequence[_Page], other: Sequence[_Page]) -> bool:
    """Return whether one path may be the other's page after a move: never in one release, and of one title."""
    apart = not {p.release for p in path} & {p.release for p in other}
    return apart and any(a.titles == b.titles != ("", "") for a in path for b in other)
