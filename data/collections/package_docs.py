"""Documentation of several releases of a Python package: real pages with clusters given by their paths."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path, PurePosixPath

from tqdm import tqdm

from data.collections.downloads import file_sha256, registered, replacing
from spotsigs.errors import InputError, require
from spotsigs.formats.input_files import SHARD_BYTES
from spotsigs.formats.jsonl import Jsonl
from spotsigs.formats.writers import Keep
from spotsigs.records import CopyableCollection, Shard

_LOGGER = logging.getLogger(__name__)
_FORM = 1  # of the prepared file; part of its name

# pip cannot fetch a source distribution without asking its build backend for metadata. This stand-in answers from the
# metadata the distribution already carries, so that no code of the package runs and nothing is installed for it.
_BACKEND = """
import email, pathlib, shutil, sys
def get_requires_for_build_wheel(config_settings=None):
    return []
def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = email.message_from_bytes(pathlib.Path("PKG-INFO").read_bytes())
    name = info["Name"].replace("-", "_") + "-" + info["Version"] + ".dist-info"
    pathlib.Path(metadata_directory, name).mkdir()
    shutil.copy("PKG-INFO", pathlib.Path(metadata_directory, name, "METADATA"))
    return name
__legacy__ = sys.modules[__name__]
"""


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
        archives = [self._archive(v) for v in tqdm(self.versions, f"fetching {self.package}", disable=None)]
        seen: set[bytes] = set()
        with replacing(prepared) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as out:
            for version, archive in zip(self.versions, archives, strict=True):
                kept = 0
                for path, content in sorted(_members(archive, self.subfolder, tuple(self.suffixes))):
                    digest = sha256(content).digest()
                    if digest not in seen:
                        seen.add(digest)
                        kept += 1
                        out.write(self._line(version, path, content))
                if not kept:
                    raise InputError(
                        f"{archive.name} contains no new {' or '.join(self.suffixes)} under {self.subfolder}/"
                    )
        return prepared

    def _line(self, version: str, path: str, content: bytes) -> str:
        try:
            text = content.decode()
        except UnicodeDecodeError:
            text = content.decode("cp1252", "replace")
        kind = "html" if self.media_type == "text/html" else "text"
        return json.dumps({"id": f"{version}/{path}", "cluster": path, kind: text}, ensure_ascii=False) + "\n"

    def _archive(self, version: str) -> Path:
        """Return the verified source distribution of a release, fetched if it is missing."""
        path = Path(self.cache, "sdists", f"{self.package}-{version}.tar.gz".lower())
        known = registered(path.name)
        if not path.exists():
            with replacing(path) as temporary:
                _fetch(self.package, version, known, temporary, path)
        digest = file_sha256(path)
        if known is None:
            _LOGGER.warning("registry.txt has no checksum of %s; this copy's SHA-256 is %s", path.name, digest)
        elif digest != known:
            raise InputError(
                f"{path} has SHA-256 {digest}, data/collections/registry.txt lists {known}; delete it to fetch it again"
            )
        return path


def _members(archive: Path, subfolder: str, suffixes: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the documentation files of a distribution."""
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                parts = PurePosixPath(member.name).parts
                below = PurePosixPath(*parts[1:])
                wanted = below.is_relative_to(subfolder) and below.name.endswith(suffixes) and ".." not in below.parts
                if member.isfile() and wanted:
                    file = tar.extractfile(member)
                    yield below.relative_to(subfolder).as_posix(), file.read() if file else b""
    except (tarfile.TarError, EOFError, OSError) as error:
        raise InputError(f"{archive} cannot be read as a source distribution: {error}") from error


def _fetch(package: str, version: str, known: str | None, target: Path, path: Path) -> None:
    """Download a source distribution with pip to `target`; `path` is its final path, for messages."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        backend = Path(folder, "backend", "setuptools")
        backend.mkdir(parents=True)
        Path(backend, "__init__.py").touch()
        Path(backend, "build_meta.py").write_text(_BACKEND, encoding="utf-8")
        wanted = Path(folder, "requirements.txt")
        wanted.write_text(f"{package}=={version}" + (f" --hash=sha256:{known}" if known else ""), encoding="utf-8")
        fetched = Path(folder, "fetched")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:"]
        command += ["--no-build-isolation", "--ignore-requires-python", "--disable-pip-version-check", "--retries=1"]
        environment = os.environ | {
            "PYTHONPATH": str(backend.parent.resolve()),
            "PIP_USE_PEP517": "1",
            "PIP_NO_INPUT": "1",
        }
        run = subprocess.run(
            [*command, "--dest", str(fetched), "--requirement", str(wanted)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        found = list(fetched.glob("*.tar.gz")) if run.returncode == 0 else []
        if not found:
            messages = run.stderr.splitlines() or ["it found no .tar.gz"]
            errors = [line for line in messages if line.startswith("ERROR") and "from versions" not in line]
            raise InputError(
                f"pip could not fetch the source distribution of {package} {version} (is there a network?): "
                f"{(errors or messages)[-1][:300]}; or save a copy of it as {path}"
            )
        os.replace(found[0], target)
