"""Paths of stores: local folders, or URLs such as ``s3://bucket/store`` that fsspec can open.

A local path is a `pathlib.Path`, a URL a path of universal_pathlib with the same methods. This module has operations
that differ: remote files are copied instead of memory-mapped, uploaded instead of renamed, and not locked.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import xxhash

from spotsigs.errors import InputError

PIECE = 8 << 20
"""Bytes that are read or sent at a time."""

PARTS = 9_000
"""Parts of one upload; object stores allow 10,000."""

PRINTED = "-"
"""Path of a copy that is printed on standard output, as JSON lines."""

NOT_WRITTEN = "none"
"""Path of a copy that is not written, as of a run of which only the tables are wanted."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_CHECKSUMS = ("ETag", "etag", "md5Hash", "content_md5", "checksum")  # as fsspec's file systems call them
_TIMES = ("mtime", "LastModified", "last_modified", "modified", "created")
_CLOUD = ("fsspec", "upath", "s3fs")


def as_path(name: str | Path) -> Path:
    """Return the path of a local path, of ``file://...``, or of a URL of any file system that fsspec knows.

    Raises
    ------
    InputError
        If a library that the URL needs is not installed, or fsspec does not know it.
    """
    match = _URL.match(name) if isinstance(name, str) else None
    if match is None:
        path = Path(name) if isinstance(name, str) else name
        return path.expanduser() if isinstance(path, Path) and path.parts[:1] == ("~",) else path
    if match[1].lower() in ("file", "local"):
        return Path(str(name)[match.end() :])
    try:
        from fsspec import get_filesystem_class
        from fsspec.asyn import AsyncFileSystem
        from fsspec.config import conf
        from upath import UPath

        kind = get_filesystem_class(match[1])
        if issubclass(kind, AsyncFileSystem):  # other processes write there, too
            conf.setdefault(match[1], {}).setdefault("use_listings_cache", False)
        return cast(Path, UPath(str(name).rstrip("/")))
    except ImportError as error:
        missing = error.name in _CLOUD or any(word in str(error) for word in _CLOUD)
        raise InputError(
            f"{name} needs libraries that are not installed: "
            + ("pip install 'spotsigs[cloud]'" if missing else str(error))
        ) from None
    except ValueError as error:
        raise InputError(f"{name} cannot be reached: {error}") from None


def local_folder(name: str | Path) -> Path:
    """Return the path of a folder of this machine; refuse the URL of another one."""
    match = _URL.match(name) if isinstance(name, str) else None
    if match is not None and match[1].lower() not in ("file", "local"):
        raise InputError(f"{name} is not on this machine; name a local folder and copy it there afterwards")
    return as_path(name)


def is_remote(path: Path) -> bool:
    """Return whether a path is a URL of another file system."""
    return not isinstance(path, Path)


def absolute(path: str | Path) -> str:
    """Return a path as workers with another working directory name it."""
    path = as_path(path)
    return str(path) if is_remote(path) else os.path.abspath(path)  # links stay: what they lead to is never deleted


def require_reachable(path: Path) -> None:
    """Refuse a remote path whose bucket is missing or cannot be reached; the path may be empty or absent."""
    if not is_remote(path):
        return
    with _remote(path) as (system, key):
        try:
            system.info(key)
        except FileNotFoundError:
            bucket = key.lstrip("/").partition("/")[0]
            if _is_flat(path) and not system.exists(bucket):
                raise InputError(f"{path}: there is no bucket {bucket}; make it first") from None


def require_writable(folder: Path) -> None:
    """Refuse a remote folder in which no file can be written."""
    if is_remote(folder):
        require_reachable(folder)
        create_remote(probe := folder / ".spotsigs-can-write", b"")
        remove(probe)


def exists(path: Path) -> bool:
    """Return whether a file exists now."""
    if not is_remote(path):
        return path.exists()
    with _remote(path) as (system, key):
        system.invalidate_cache(key)
        try:
            return bool(system.info(key)["type"] == "file")
        except FileNotFoundError:
            return False


def read(path: Path) -> bytes:
    """Return the bytes of a file; raise FileNotFoundError if there is none."""
    if not is_remote(path):
        if stat.S_ISFIFO(path.stat().st_mode):  # reading it would wait for a writer
            raise InputError(f"{path} is no regular file; delete it")
        return path.read_bytes()
    with _remote(path) as (system, key):
        return bytes(system.cat_file(key))


def checksum(path: Path) -> str:
    """Return the XXH3 checksum of a file, 128 bits in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, xxhash.xxh3_128).hexdigest()


def size_and_checksum(path: Path) -> tuple[int, str]:
    """Return size and checksum of a file, which identify its content.

    A remote file has the checksum that its storage states, if there is one. A file that cannot be read has none.
    """
    try:
        if not is_remote(path):
            state = _state_of(path)
            if state not in _KNOWN:
                remember_checksum(path, [checksum_of_range(path, *span) for span in unread_spans(path)])
            return state[1], _KNOWN[state]
        with _remote(path) as (system, key):
            info = system.info(key)
            value = next((str(info[name]) for name in _CHECKSUMS if info.get(name)), None)
            return int(info.get("size") or 0), value or checksum(path)
    except OSError:
        return -1, "cannot be read"


_KNOWN: dict[tuple[Any, ...], str] = {}
"""Checksums of local files that this process knows, by their states."""

SPAN = 1 << 28
"""Bytes of a file of which one task computes the checksum."""


def unread_spans(path: Path) -> list[tuple[int, int]]:
    """Cut a local file into ranges of `SPAN`, at least one; return none if its checksum is known."""
    state = _state_of(path)
    if state in _KNOWN:
        return []
    return [(start, min(start + SPAN, state[1])) for start in range(0, max(state[1], 1), SPAN)]


def checksum_of_range(path: Path, start: int, stop: int) -> str:
    """Return the XXH3 checksum of a range of a file, 128 bits in hexadecimal digits."""
    digest = xxhash.xxh3_128()
    with path.open("rb") as file:
        file.seek(start)
        while start < stop and (block := file.read(min(stop - start, 1 << 20))):
            digest.update(block)
            start += len(block)
    return digest.hexdigest()


def remember_checksum(path: Path, parts: Sequence[str]) -> None:
    """Keep the checksum of a local file, which is computed from the checksums of its ranges."""
    whole = parts[0] if len(parts) == 1 else xxhash.xxh3_128_hexdigest("".join(parts).encode())
    _KNOWN[_state_of(path)] = whole


def _state_of(path: Path) -> tuple[Any, ...]:
    facts = path.stat()
    return path, facts.st_size, facts.st_dev, facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns


def fetch(path: Path, target: Path) -> None:
    """Copy a remote file to a local one; raise FileNotFoundError if there is none."""
    with _remote(path) as (system, key):
        system.get_file(key, str(target))


def sizes(folder: Path) -> dict[str, int]:
    """Return the size of each file of a folder; none if the folder is missing."""
    of_files: dict[str, int] = {}
    if not is_remote(folder):
        with suppress(FileNotFoundError, NotADirectoryError):
            for path in folder.iterdir():
                with suppress(OSError):  # another process is writing its store
                    of_files[path.name] = path.stat().st_size
        return of_files
    with _remote(folder) as (system, key), suppress(FileNotFoundError):
        system.invalidate_cache(key)
        for entry in system.ls(key, detail=True):
            of_files[entry["name"].rstrip("/").rpartition("/")[2]] = int(entry["size"] or 0)
    return of_files


def files_below(root: Path, pattern: str | None = None) -> list[str]:
    """Return the names of all remote files below a path, or of those that match a URL with wildcards.

    The path itself, if it is a file, has the empty name.
    """
    with _remote(root) as (system, key):
        top = key.rstrip("/")
        if pattern is None:
            keys = system.find(top)
        else:
            from fsspec.core import url_to_fs

            files = system.glob(url_to_fs(pattern)[1], detail=True)
            keys = [key for key, facts in files.items() if facts["type"] == "file"]
    return [str(key)[len(top) :].lstrip("/") for key in keys]


def remote_states(root: Path) -> dict[str, list[Any]]:
    """Return the size of each remote file below a path, and the checksum or the time that changes with its content."""
    with _remote(root) as (system, key):
        top = key.rstrip("/")
        system.invalidate_cache()
        files = system.find(top, detail=True)
        return {
            str(name)[len(top) :].lstrip("/"): [
                int(facts.get("size") or 0),
                next((str(facts[kind]) for kind in (*_CHECKSUMS, *_TIMES) if facts.get(kind)), ""),
            ]
            for name, facts in files.items()
        }


def put(sources: Sequence[Path], folder: Path) -> None:
    """Upload local files into a folder and delete them here; on an object store each appears when it is complete."""
    with _remote(folder) as (system, key):
        _make_folder(folder)
        for source in sources:
            block = max(PIECE, -(-source.stat().st_size // PARTS))
            with source.open("rb") as file, system.open(f"{key}/{source.name}", "wb", block_size=block) as out:
                shutil.copyfileobj(file, out, PIECE)
            source.unlink()


def upload(folder: Path, target: Path, last: str = "") -> set[str]:
    """Upload the files below a local folder, and one of them last; return their names. They are deleted here.

    If that fails, what was uploaded is deleted, as far as the storage can be reached.
    """
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    with ExitStack() as undo:
        for name in sorted(names, key=lambda name: (name == last, name)):
            put([folder / name], (target / name).parent)
            undo.callback(remove, target / name)
        undo.pop_all()
    return names


def create_remote(path: Path, content: bytes) -> None:
    """Write a small remote file unless it exists, on a storage with conditional writes such as S3."""
    with _remote(path) as (system, key):
        _make_folder(path.parent)
        try:
            system.pipe_file(key, content, mode="create")
        except FileExistsError:
            return
        except (TypeError, NotImplementedError):
            system.pipe_file(key, content)


def write_remote(path: Path, content: bytes) -> None:
    """Write a small remote file, which replaces a previous one."""
    with _remote(path) as (system, key):
        _make_folder(path.parent)
        system.pipe_file(key, content)


def remove(path: Path, *, recursive: bool = False) -> None:
    """Delete a remote path, if it exists."""
    with _remote(path) as (system, key):
        with suppress(FileNotFoundError):
            system.rm(key, recursive=recursive)
        system.invalidate_cache()


def _make_folder(folder: Path) -> None:
    if not _is_flat(folder):
        cast(Any, folder).fs.makedirs(cast(Any, folder).path, exist_ok=True)


def _is_flat(path: Path) -> bool:
    """Return whether a path is in a bucket, where folders need not be created."""
    from upath.implementations.cloud import CloudPath

    return isinstance(path, CloudPath)


@contextmanager
def _remote(path: Path) -> Iterator[tuple[Any, str]]:
    """Yield the file system and the key of a remote path; turn errors of all storage libraries into `InputError`."""
    try:
        yield cast(Any, path).fs, str(cast(Any, path).path)
    except (InputError, FileNotFoundError):
        raise
    except Exception as error:
        raise InputError(f"{path} {_fault(error)}") from error


def _fault(error: Exception) -> str:
    line = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    if "Credential" in type(error).__name__:
        return (
            f"needs credentials: {line}; give them as the tools of that storage expect them, for example in "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, to every worker"
        )
    if isinstance(error, PermissionError):
        return f"denies access: {line}"
    return f"cannot be reached: {line}; what is complete there is kept, and the same command resumes"
