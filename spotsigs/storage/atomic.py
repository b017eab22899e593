"""Atomic writes of files and folders, also if a process is killed or two processes write the same."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from spotsigs.errors import InputError
from spotsigs.storage.locations import create_remote, is_remote

if TYPE_CHECKING:
    from filelock import FileLock

if sys.platform == "win32":  # temporary folders of killed processes are not deleted
    LOCK_EX = LOCK_NB = 0

    def flock(fd: int, operation: int, /) -> None:
        """Lock nothing."""

else:
    from fcntl import LOCK_EX, LOCK_NB, flock

log = logging.getLogger(__name__)

LOCK = ".lock"
"""Lock file of a store."""

_MARK = ".writing-"  # part of the name of a staging folder
_PROOF = ".spotsigs-temporary"  # file in it, which proves that this program created the folder
_CONTENT = "new"  # folder in it, which has what is written

_TEMPORARY: list[Path] = []
"""Paths that this process deletes when it ends: staging folders, lock files, and folders it created, if empty."""


@contextmanager
def staging_folder(path: Path) -> Iterator[Path]:
    """Create a temporary folder on the file system of `path`, from which files are renamed to that path.

    For a remote path it is in the temporary folder of this machine, from which files are uploaded. It is deleted when
    the block ends; the next process that writes to the same parent deletes the unlocked folder of a killed process. A
    process that is killed before it has written `_PROOF` leaves an empty folder, which nobody deletes.
    """
    if is_remote(path):
        path = Path(tempfile.gettempdir(), path.name)
    _make_folder(path.parent)
    remove_orphans(path.parent.resolve())
    folder, lock = _own_folder(path)
    with _temporary(folder):
        try:
            (folder / _PROOF).touch()
            content = folder / _CONTENT
            content.mkdir()
            yield content
        finally:
            _remove(folder)
            _release(lock)


def _make_folder(folder: Path) -> None:
    """Create a folder and those above it, but no staging folder of this process that another process has deleted.

    Made again it would lack the files that were written before, and what is left of them would be published. Each
    folder in it is created alone, so that the system refuses it without the folder above.

    Raises
    ------
    FileNotFoundError
        If the folder lies deeper in a staging folder that is gone.
    """
    above = [*reversed(folder.parents), folder]
    staged = [number for number, path in enumerate(above) if _MARK in path.name and path in _TEMPORARY]
    if not staged:
        folder.mkdir(parents=True, exist_ok=True)
        return
    for path in above[staged[-1] + 2 :]:  # without the staging folder and the folder of its content, which are there
        path.mkdir(exist_ok=True)


@contextmanager
def _temporary(path: Path) -> Iterator[None]:
    """List a path in the block, for `remove_temporary`."""
    _TEMPORARY.append(path)
    try:
        yield
    finally:
        _TEMPORARY.remove(path)


def remove_temporary() -> None:
    """Delete the temporary files of this process, which ends without leaving the blocks that would delete them."""
    for path in reversed(_TEMPORARY):
        if _MARK in path.name:
            _remove(path)
        with suppress(OSError):
            path.rmdir() if path.is_dir() else path.unlink()


def _try_lock(path: Path) -> tuple[FileLock, bool]:
    """Return the lock of a file, and whether it was acquired: no other process has it."""
    from filelock import FileLock, Timeout  # imported here: it takes 50 ms

    if path.is_file() and path.stat().st_size:  # which would be truncated
        raise InputError(f"{path} is needed as a lock, but has content; move it")
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return lock, False
    return lock, True


@contextmanager
def reserved(path: Path) -> Iterator[bool]:
    """Lock a path that need not exist, by a file next to it; yield False if another process has locked it.

    The lock file is deleted when the block ends.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    name = path.parent / f".{path.name[:100]}.spotsigs-lock"
    lock, acquired = _try_lock(name)
    if not acquired:
        yield False
        return
    with _temporary(name):
        try:
            yield True
        finally:
            with suppress(OSError):  # Windows deletes it when it is released
                name.unlink()
            lock.release()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path; the file written there replaces `path` when the block succeeds."""
    with staging_folder(path) as folder:
        temporary = folder / path.name
        yield temporary
        publish(temporary, path)


def publish(new: Path, path: Path, undo: ExitStack | None = None) -> None:
    """Rename a complete file or folder to its path, at once, until the stack moves it back; a file replaces another."""
    _make_folder(path.parent)
    os.replace(new, path)
    if undo is not None:
        undo.callback(os.replace, path, new)


def move_aside(path: Path, previous: Path, undo: ExitStack | None = None) -> None:
    """Move a file or folder, if there is one, to another path, until the stack moves it back."""
    if path.exists():
        publish(path, previous, undo)


def create(path: Path, content: bytes) -> None:
    """Write a small file unless it exists; of several concurrent processes, the first one writes it.

    On an object store without conditional writes, and a file system without hard links, the last one does.
    """
    if is_remote(path):
        create_remote(path, content)
        return
    with staging_folder(path) as folder:
        temporary = folder / path.name
        temporary.write_bytes(content)
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        except (OSError, NotImplementedError):
            publish(temporary, path)


def destination(path: Path) -> Path:
    """Return the final path of a path in a folder of `staging_folder`."""
    if is_remote(path):
        return path
    inside = zip(("", *path.parts), path.parts, strict=False)
    return Path(*(part for above, part in inside if _MARK not in part and not (_MARK in above and part == _CONTENT)))


def failed_path(error: OSError) -> Path | None:
    """Return the final path of the file of an error of the system, if the error names one."""
    return destination(Path(error.filename)) if isinstance(error.filename, str) else None


@contextmanager
def store_lock(folder: Path) -> Iterator[None]:
    """Lock a store, on every system and on network file systems with locks; other runs log that they wait.

    The lock is on the file ``.lock`` of the folder and ends with the process at the latest. Remote stores have none:
    there, claims are created and never replaced, see `spotsigs.storage.store.claim`.
    """
    if is_remote(folder):
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    lock, acquired = _try_lock(folder / LOCK)
    if not acquired:
        log.warning("waiting for another run that works on the store %s", folder)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Run the block in one process at a time, on a file system with locks; delete a folder created here if empty."""
    if sys.platform == "win32":
        with store_lock(folder):
            yield
        return
    exists, lock = folder.exists(), None
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # the process that had the lock deletes a folder that it created
            lock = _lock(folder, LOCK_EX)
            if lock is None or (folder.exists() and os.path.samestat(os.fstat(lock), folder.stat())):
                break
        _release(lock)
    with nullcontext() if exists else _temporary(folder):
        try:
            yield
        finally:
            if not exists:
                with suppress(OSError):
                    folder.rmdir()
            _release(lock)


def is_empty(folder: Path) -> bool:
    """Return whether a folder has no files except a lock and temporary folders."""
    return all(_MARK in path.name or path.name == LOCK for path in folder.iterdir())


def _own_folder(path: Path) -> tuple[Path, int | None]:
    while True:
        folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name[:100]}{_MARK}"))
        with suppress(FileNotFoundError, BlockingIOError):
            lock = _lock(folder, LOCK_EX | LOCK_NB)
            if folder.exists():
                return folder, lock
            _release(lock)  # another process deleted it before it was locked


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
def remove_orphans(parent: Path) -> None:
    """Delete the temporary folders of killed processes, which are not locked; once a process for each parent.

    A folder of the user may have such a name; ours contain the file `_PROOF`.
    """
    for orphan in parent.glob(f".*{_MARK}*"):
        if orphan.is_symlink() or not (orphan / _PROOF).is_file():
            continue
        with suppress(FileNotFoundError, BlockingIOError):
            lock = _lock(orphan, LOCK_EX | LOCK_NB) if sys.platform != "win32" else None
            if lock is not None:
                _remove(orphan)
                _release(lock)


def _remove(folder: Path) -> None:
    """Delete a folder, in two attempts; the next run deletes what remains."""
    for _ in range(2):
        shutil.rmtree(folder, ignore_errors=True)
