"""Fetched files: their checksums, and how they appear whole or not at all."""

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
def _registry() -> dict[str, list[str]]:
    rows = (line.split() for line in REGISTRY.read_text(encoding="utf-8").splitlines())
    return {row[0]: row[1:] for row in rows if row and not row[0].startswith("#")}


def registered(name: str) -> str | None:
    """Return the SHA-256 that ``data/collections/registry.txt`` gives for a file, None where it has none."""
    return _registry()[name][0] if name in _registry() else None


def registry_row(name: str) -> tuple[str, str, str]:
    """Return checksum, licence and address of a file of ``data/collections/registry.txt``."""
    checksum, licence, source = _registry()[name]
    return checksum, licence, source


def file_sha256(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary place beside `path`; what was written there appears at `path` when the block succeeds."""
    try:
        with atomic.replacing(path) as temporary:
            yield temporary
    except OSError as error:
        if error.errno in (EACCES, EPERM, EROFS, ENOSPC, EDQUOT, ENOTDIR):
            place = atomic.destination(path)
            raise InputError(f"{place} cannot be written: {reason(error)}; give another place") from error
        raise
