"""How large a page may be: its body as stored, what that unpacks to, and its text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

MAX_PAGE = 256 << 20
"""Bytes of the largest page where no budget is given; more is taken for an attack."""

_largest = ContextVar("largest page", default=MAX_PAGE)


def largest_page() -> int:
    """Return how many bytes a page may have here: stored, unpacked, and as text."""
    return _largest.get()


@contextmanager
def pages_up_to(size: int) -> Iterator[None]:
    """Let pages have at most `size` bytes in this thread, and never more than `MAX_PAGE`."""
    token = _largest.set(min(size, MAX_PAGE))
    try:
        yield
    finally:
        _largest.reset(token)


def in_words(size: int) -> str:
    """Return a size as a message says it.

    Examples
    --------
    >>> in_words(256 << 20), in_words(1 << 19)
    ('256 MiB', '512 KiB')
    """
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
