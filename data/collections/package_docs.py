"""Documentation of several releases of a Python package: real pages with clusters given by their paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import PurePosixPath

from data.collections.fetching import archive, decoded, files
from data.collections.prepared import PreparedCollection
from spotsigs.errors import InputError, require
from spotsigs.workers.progress import progress


@dataclass(frozen=True, kw_only=True)
class PackageDocs(PreparedCollection):
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
    cache, shard_bytes : str, int
        As in `PreparedCollection`.
    """

    package: str
    versions: list[str]
    subfolder: str = "docs"
    suffixes: list[str] = field(default_factory=lambda: [".txt", ".rst"])
    media_type: str = "text/plain"

    def __post_init__(self) -> None:
        require(bool(self.versions), "versions must name at least one release")
        allowed = ("text/plain", "text/html")
        require(self.media_type in allowed, f"media_type must be one of {', '.join(allowed)}, got {self.media_type!r}")

    def _identity(self) -> tuple[str, object]:
        choices = {name: value for name, value in asdict(self).items() if name not in ("cache", "shard_bytes")}
        return f"{self.package.lower()}-docs", choices

    def _records(self) -> Iterator[dict[str, str]]:
        versions = progress(self.versions, f"fetching {self.package}", len(self.versions), "versions")
        archives = [archive("pip", self.package, version, self.cache) for version in versions]
        column = "html" if self.media_type == "text/html" else "text"
        seen: set[bytes] = set()
        for version, package in zip(self.versions, archives, strict=True):
            before = len(seen)
            for name, content in sorted(files(package, self._wanted)):
                digest = sha256(content).digest()
                if digest not in seen:
                    seen.add(digest)
                    path = PurePosixPath(name).relative_to(self.subfolder).as_posix()
                    yield {"id": f"{version}/{path}", "cluster": path, column: decoded(content)}
            if len(seen) == before:
                raise InputError(f"{package.name} contains no new {' or '.join(self.suffixes)} under {self.subfolder}/")

    def _wanted(self, name: str) -> bool:
        return PurePosixPath(name).is_relative_to(self.subfolder) and name.endswith(tuple(self.suffixes))
