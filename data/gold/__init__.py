"""The built-in collection: generated news pages that have the descriptive figures of the paper's Gold Set."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from spotsigs.errors import InputError, require
from spotsigs.records import Document, Shard, Skipped

SHARD_BYTES = 3_000_000
"""Content a shard holds, at least, but for the last."""


@dataclass(frozen=True, kw_only=True)
class Gold:
    """Near-duplicate news pages: stories as many sites print them, each site in its own frame and encoding.

    The pages are generated once and kept as files, one sub-folder a cluster as in the original; from then on they are
    read back. ``docs/gold.md`` says what is modelled and how it was calibrated. A page's file name is its site's, a
    hyphen and the number of the crawl.

    Parameters
    ----------
    seed : int
        Same seed, same bytes, on every machine.
    pages : int
        Pages; at least two a cluster.
    clusters : int
        Stories. Four or more include daily reports that differ in their figures only.
    cache : Path
        Folder under which generated collections are kept.

    References
    ----------
    Theobald, Siddharth, Paepcke, SIGIR 2008, section 5.3: 2,160 pages in 68 clusters, 102 MB, mean Cosine 0.64.

    Deviations
    ----------
    The Gold Set was never published; this one shares its description and none of its text.
    """

    seed: int = 2008
    pages: int = 2160
    clusters: int = 68
    cache: Path = Path("data/cache")

    def __post_init__(self) -> None:
        require(self.seed >= 0, f"seed must not be negative, got {self.seed}")
        require(self.clusters >= 1, f"clusters must be at least 1, got {self.clusters}")
        require(
            self.pages >= 2 * self.clusters,
            f"pages must be at least {2 * self.clusters}, two for each of {self.clusters} clusters, got {self.pages}",
        )

    def shards(self) -> Sequence[Shard]:
        """Return the pages in the order of their paths, in shares of about 3 MB; the first call generates them."""
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
        """Return the folder of the pages, generated where it is missing: all of it or nothing."""
        target = Path(self.cache) / f"gold-{self.seed}-{self.pages}-{self.clusters}-{_version()}"
        if target.is_dir():
            return target
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cache must be a folder that can be written, {self.cache} cannot: {error.strerror}"
            ) from error
        with tempfile.TemporaryDirectory(prefix=f"{target.name}.", dir=target.parent) as unfinished:
            pages = Path(unfinished) / "pages"
            self._write(pages)
            try:
                pages.rename(target)
            except OSError:
                if not target.is_dir():  # otherwise another process was first, with the same bytes
                    raise
        return target

    def _write(self, folder: Path) -> None:
        from tqdm import tqdm

        from data.gold.pages import generate

        pages = generate(self.seed, self.pages, self.clusters)
        for page in tqdm(pages, total=self.pages, desc="generating gold", unit="page", leave=False, disable=None):
            path = folder / page.cluster / page.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(page.content)


def _read(folder: Path, ids: Sequence[str]) -> Iterator[Document | Skipped]:
    for name in ids:
        yield Document(id=name, content=(folder / name).read_bytes(), cluster=name.partition("/")[0])


def _version() -> str:
    """Return a fingerprint of the generator: its code, words, grammar, sites and frames."""
    here = Path(__file__).parent
    digest = hashlib.blake2b(digest_size=4)
    for path in sorted(here.rglob("*"), key=lambda path: path.relative_to(here).as_posix()):
        if path.suffix in {".py", ".toml", ".html"}:
            digest.update(path.relative_to(here).as_posix().encode() + path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()
