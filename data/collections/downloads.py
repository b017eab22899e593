"""Checksums and atomic replacement of fetched files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EDQUOT, ENOSPC, ENOTDIR, EPERM, EROFS
from functools import cache
from hashlib import file_digest
from pathlib import Path

from spotsigs.errors import InputError, reason
from spotsigs.storage import atomic

REGISTRY = Path(__file__).parent / "registry.txt"


@cache
def _registry() -> dict[str, str]:
    rows = (line.split() for line in REGISTRY.read_text(encoding="utf-8").splitlines())
    return {row[0]: row[1] for row in rows if row and not row[0].startswith("#")}


def registered(name: str) -> str | None:
    """Return the SHA-256 of a file in ``data/collections/registry.txt``, or None if the file is not listed."""
    return _registry().get(name)


def registered_name(stem: str, suffixes: tuple[str, ...]) -> str | None:
    """Return the name of the registered file that consists of a stem and one of the suffixes, or None."""
    return next((stem + suffix for suffix in suffixes if stem + suffix in _registry()), None)


def file_sha256(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


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
