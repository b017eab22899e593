"""Files and folders that appear whole or not at all, when a process is killed or two write the same as well."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from filelock import FileLock, Timeout

from spotsigs.storage.locations import create_remote, is_remote, put

if sys.platform == "win32":  # what a killed process leaves stays there
    LOCK_EX = LOCK_NB = 0

    def flock(fd: int, operation: int, /) -> None:
        """Lock nothing."""

else:
    from fcntl import LOCK_EX, LOCK_NB, flock

LOCK = ".lock"
"""File of a store that the run which works on it holds."""

_MARK = ".writing-"


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Give an empty folder on the file system of `path`, to rename things to that place from.

    For a place that is reached through fsspec it lies among this machine's temporary files, to upload things from.

    It is deleted when the block ends. A killed process leaves its own behind, without a lock: the next one that writes
    to the same parent removes it.

    Parameters
    ----------
    path : Path
        The place; its parents are made.

    Yields
    ------
    Path
    """
    if is_remote(path):
        path = Path(tempfile.gettempdir(), path.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_ones(path.parent.resolve())
    folder, lock = _own_folder(path)
    try:
        yield folder
    finally:
        _remove(folder)
        _release(lock)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary place beside `path`; what was written there appears at `path` when the block succeeds."""
    with beside(path) as folder:
        temporary = folder / path.name
        yield temporary
        if is_remote(path):
            put([temporary], path.parent)
        else:
            os.replace(temporary, path)


def create(path: Path, content: bytes) -> None:
    """Write a small file whole, unless there is one: of several who do that at once, the first one's stays.

    An object store that cannot tell, and a local file system without hard links, keeps that of the last one.
    """
    if is_remote(path):
        create_remote(path, content)
        return
    with beside(path) as folder:
        temporary = folder / path.name
        temporary.write_bytes(content)
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        except (OSError, NotImplementedError):
            os.replace(temporary, path)


def destination(path: Path) -> Path:
    """Return where a path that lies in a folder of `beside` is going to appear."""
    if is_remote(path):
        return path
    return Path(*(part for part in path.parts if _MARK not in part))


def place_of(error: OSError) -> Path | None:
    """Return where the file was going to appear of which the system complains, if it says which."""
    return destination(Path(error.filename)) if isinstance(error.filename, str) else None


@contextmanager
def alone(folder: Path, say: Callable[[str], object] = lambda sentence: None) -> Iterator[None]:
    """Let one run at a time work on a store: others wait, on every system and on network file systems that know locks.

    The lock is on the file ``.lock`` of the folder, which stays; it ends with the process at the latest. Remote places
    have none: there, what is claimed is created and never replaced, see `spotsigs.storage.store.claim`.

    Parameters
    ----------
    folder : Path
        The store.
    say : callable, optional
        Called if it has to wait.
    """
    if is_remote(folder):
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(f"waiting for another run that works on the store {folder}")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let one process at a time do what is in the block, where the file system knows locks."""
    if sys.platform == "win32":
        with alone(folder):
            yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    lock = _lock(folder, LOCK_EX)
    try:
        yield
    finally:
        _release(lock)


def is_empty(folder: Path) -> bool:
    """Whether a folder holds nothing, or nothing but what is being written or was left by a killed process."""
    return all(_MARK in path.name or path.name == LOCK for path in folder.iterdir())


def _own_folder(path: Path) -> tuple[Path, int | None]:
    while True:
        folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name[:100]}{_MARK}"))
        with suppress(FileNotFoundError, BlockingIOError):
            lock = _lock(folder, LOCK_EX | LOCK_NB)
            if folder.exists():
                return folder, lock
            _release(lock)  # another process took it for a left one before the lock was there


def _lock(folder: Path, how: int) -> int | None:
    """Return a lock that ends with the process at the latest; None on a file system without locks."""
    fd = None
    try:
        fd = os.open(folder, os.O_RDONLY)
        flock(fd, how)
    except (FileNotFoundError, BlockingIOError):
        _release(fd)
        raise
    except OSError:
        _release(fd)
        return None
    return fd


def _release(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


@cache
def _remove_left_ones(parent: Path) -> None:
    """Remove what killed processes left in a folder: what nobody locks. Once a process, for it lists the folder."""
    for left in parent.glob(f".*{_MARK}*"):
        with suppress(FileNotFoundError, BlockingIOError):
            lock = _lock(left, LOCK_EX | LOCK_NB) if sys.platform != "win32" else None
            if lock is not None:
                _remove(left)
                _release(lock)


def _remove(folder: Path) -> None:
    """Remove a folder, with a second try for what failed once; what stays even so goes with the next run."""
    for _ in range(2):
        shutil.rmtree(folder, ignore_errors=True)
