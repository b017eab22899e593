"""The built-in collection: generated news pages with the published statistics of the paper's Gold Set."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from spotsigs.contracts import Collection, Shard
from spotsigs.errors import InputError, reason, require
from spotsigs.records import Document, Skipped
from spotsigs.storage.atomic import publish
from spotsigs.workers.progress import progress

SHARD_BYTES = 3_000_000
"""Minimal bytes of a shard, except the last."""


@dataclass(frozen=True, kw_only=True)
class Gold(Collection):
    """Near-duplicate news pages: lightly edited stories in site templates that consist of lists of names.

    Each site has its own template and encoding. The pages are generated on first use and cached, one sub-folder for
    each cluster as in the original. ``docs/gold.md`` describes the model and its calibration on the published counts. A
    file name is the site, a hyphen and the number of the crawl.

    Parameters
    ----------
    seed : int
        Seed; the same seed yields the same bytes on every machine.
    cache : Path
        Folder of generated collections.
    pages : int
        Number of pages, at least two for each cluster.
    clusters : int
        Number of stories. Four or more include daily reports that differ only in their figures.

    References
    ----------
    Theobald, Siddharth, Paepcke, SIGIR 2008, section 5.3: 2,160 pages in 68 clusters, 102 MB, mean Cosine 0.64.

    Deviations
    ----------
    The Gold Set is not public that we found; this collection shares its statistics but none of its text.
    """

    site_pattern: ClassVar[str] = r"/(.+)-[0-9]+\.html$"

    seed: int = 2008
    cache: Path = Path("data/cache")
    pages: int = 2160
    clusters: int = 68

    def __post_init__(self) -> None:
        require(self.seed >= 0, f"seed must not be negative, got {self.seed}")
        require(self.clusters >= 1, f"clusters must be at least 1, got {self.clusters}")
        require(
            self.pages >= 2 * self.clusters,
            f"pages must be at least {2 * self.clusters}, two for each of {self.clusters} clusters, got {self.pages}",
        )

    def shards(self) -> Sequence[Shard]:
        """Return the pages in order of their paths, in shards of about 3 MB; the first call generates them."""
        folder = self.folder()
        shards, ids, size = [], [], 0
        for path in sorted(folder.glob("*/*.html")):
            ids.append(path.relative_to(folder).as_posix())
            size += path.stat().st_size
            if size >= SHARD_BYTES:
                shards.append(partial(_read, folder, tuple(ids)))
                ids, size = [], 0
        return [*shards, partial(_read, folder, tuple(ids))] if ids else shards

    def folder(self) -> Path:
        """Return the folder of the pages; a missing one is generated and appears when it is complete."""
        target = Path(self.cache) / f"gold-{self.seed}-{self.pages}-{self.clusters}-{_version()}"
        if target.is_dir():
            return target
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cache must be a writable folder, {self.cache} is not: {reason(error)}") from error
        with tempfile.TemporaryDirectory(prefix=f"{target.name}.", dir=target.parent) as unfinished:
            pages = Path(unfinished) / "pages"
            self._write(pages)
            try:
                publish(pages, target)
            except OSError:
                if not target.is_dir():  # another process may have generated the same pages
                    raise
        return target

    def _write(self, folder: Path) -> None:
        from data.collections.gold.pages import generate

        pages = generate(self.seed, self.pages, self.clusters)
        for page in progress(pages, "generating gold", self.pages, "pages"):
            path = folder / page.cluster / page.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(page.content)


def _read(folder: Path, ids: Sequence[str]) -> Iterator[Document | Skipped]:
    for name in ids:
        yield Document(id=name, content=(folder / name).read_bytes(), cluster=name.partition("/")[0])


def _version() -> str:
    """Return a fingerprint of the generator: its code, words, grammar, sites and templates."""
    here = Path(__file__).parent
    digest = hashlib.blake2b(digest_size=4)
    for path in sorted(here.rglob("*"), key=lambda path: path.relative_to(here).as_posix()):
        if path.suffix in {".py", ".toml", ".html"}:
            digest.update(path.relative_to(here).as_posix().encode() + path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()
