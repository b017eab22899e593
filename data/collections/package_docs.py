"""Documentation of several releases of a Python package: real pages with clusters given by their paths."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path, PurePosixPath

from tqdm import tqdm

from data.collections.downloads import replacing
from data.collections.fetching import archive, decoded, files
from spotsigs.errors import InputError, require
from spotsigs.formats.input_files import SHARD_BYTES
from spotsigs.formats.jsonl import Jsonl
from spotsigs.formats.writers import Keep
from spotsigs.records import CopyableCollection, Shard

_FORM = 1  # of the prepared file; part of its name


@dataclass(frozen=True, kw_only=True)
class PackageDocs(CopyableCollection):
    """Documentation files of several releases; the same path in several releases is one cluster.

    pip fetches the source distributions from its configured index. They are verified against
    ``data/collections/registry.txt`` and read without unpacking. Files identical to an earlier one, of the same or
    another path, are omitted, since they are not near-duplicates but exact duplicates.

    Parameters
    ----------
    package : str
        Name of the package.
    versions : list of str
        Releases; the first of several equal files is kept.
    subfolder : str
        Folder of the documentation in the distribution.
    suffixes : list of str
        Suffixes of documentation files.
    media_type : str
        ``text/plain`` or ``text/html``.
    cache : str
        Folder of fetched distributions and prepared collections.
    shard_bytes : int
        Bytes of the prepared file in a shard.
    """

    package: str
    versions: list[str]
    subfolder: str = "docs"
    suffixes: list[str] = field(default_factory=lambda: [".txt", ".rst"])
    media_type: str = "text/plain"
    cache: str = "data/cache"
    shard_bytes: int = SHARD_BYTES

    def __post_init__(self) -> None:
        require(bool(self.versions), "versions must name at least one release")
        allowed = ("text/plain", "text/html")
        require(self.media_type in allowed, f"media_type must be one of {', '.join(allowed)}, got {self.media_type!r}")

    def shards(self) -> Sequence[Shard]:
        """Return the shards; the first call fetches and prepares the collection."""
        return Jsonl(path=str(self.prepare()), shard_bytes=self.shard_bytes).shards()

    def copy(self, folder: Path, keep: Keep) -> None:
        """Copy the prepared file without the removed documents; see `spotsigs.formats.writers.Copied`."""
        Jsonl(path=str(self.prepare())).copy(folder, keep)

    def prepare(self) -> Path:
        """Return the path of the collection as a jsonl file, which the first call writes.

        Raises
        ------
        InputError
            If a release cannot be fetched, differs from its checksum, or contains no documentation.
        """
        choices = {name: value for name, value in asdict(self).items() if name not in ("cache", "shard_bytes")}
        key = sha256(json.dumps([_FORM, choices], sort_keys=True).encode()).hexdigest()[:12]
        prepared = Path(self.cache, f"{self.package.lower()}-docs-{key}.jsonl")
        if prepared.exists():
            return prepared
        versions = tqdm(self.versions, f"fetching {self.package}", disable=None)
        archives = [archive("pip", self.package, version, self.cache) for version in versions]
        seen: set[bytes] = set()
        with replacing(prepared) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as out:
            for version, path_of_archive in zip(self.versions, archives, strict=True):
                kept = 0
                for name, content in sorted(files(path_of_archive, self._wanted)):
                    path = PurePosixPath(name).relative_to(self.subfolder).as_posix()
                    digest = sha256(content).digest()
                    if digest not in seen:
                        seen.add(digest)
                        kept += 1
                        out.write(self._line(version, path, content))
                if not kept:
                    raise InputError(
                        f"{path_of_archive.name} contains no new {' or '.join(self.suffixes)} under {self.subfolder}/"
                    )
        return prepared

    def _wanted(self, name: str) -> bool:
        path = PurePosixPath(name)
        return path.is_relative_to(self.subfolder) and name.endswith(tuple(self.suffixes))

    def _line(self, version: str, path: str, content: bytes) -> str:
        kind = "html" if self.media_type == "text/html" else "text"
        return (
            json.dumps({"id": f"{version}/{path}", "cluster": path, kind: decoded(content)}, ensure_ascii=False) + "\n"
        )
