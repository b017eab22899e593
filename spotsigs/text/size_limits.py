"""Limits of the size of a page (stored, unpacked, and as text), and of what a format requires to unpack at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from spotsigs.errors import InputError

MAX_PAGE = 256 << 20
"""Bytes of the largest page without a memory budget; larger pages count as attacks."""

BUDGET_PAGE = 8 << 20
"""Bytes of the largest page within a memory budget: the same for every budget, so that none changes the results."""

BYTES_A_BYTE = 32
"""Memory that a byte of a page takes at most, from its body to its signatures.

Measured: 31.3 for marked text with an emoji, which Python stores in four bytes a character; 16 for ordinary text.
"""

MARK = 8
"""Bytes added for an element of a page, a value of JSON or a field of CSV: the memory that one uses in addition to its
text, up to 250 bytes, divided by `BYTES_A_BYTE`."""

MAX_UNIT = 2 * MAX_PAGE
"""Bytes of the largest unit that is unpacked at once, whatever the budget."""

_limits = ContextVar("limits", default=(MAX_PAGE, MAX_UNIT))


def largest_page() -> int:
    """Return the largest number of bytes of a page: stored, unpacked, and as text."""
    return _limits.get()[0]


def largest_unit() -> int:
    """Return the largest number of bytes that are unpacked at once where a format requires it."""
    return _limits.get()[1]


@contextmanager
def page_size_limit(size: int, unit: int = 0) -> Iterator[None]:
    """Limit pages to `size` bytes in this thread, and units to `unit` bytes, but not to less than two pages."""
    token = _limits.set((min(size, MAX_PAGE), min(max(unit, 2 * size), MAX_UNIT)))
    try:
        yield
    finally:
        _limits.reset(token)


def outweighs(content: bytes, marks: bytes = b"<", again: int = 0) -> bool:
    """Return whether a page is too large: its bytes, `MARK` for each of some characters, and for `again` elements."""
    most = largest_page()
    if (1 + MARK) * len(content) + MARK * again <= most:  # nearly all pages: even if every character counted
        return False
    return len(content) + MARK * (again + sum(content.count(mark) for mark in marks)) > most


def require_within_limit(content: bytes, marks: bytes = b"<", again: int = 0) -> None:
    """Refuse a page that `outweighs` the limit."""
    if outweighs(content, marks, again):
        raise InputError(
            f"the page is larger than {in_words(largest_page())}: {len(content) / 2**20:.1f} MiB of text, and each of "
            f"its tags counts for {MARK} bytes"
        )


def in_words(size: int) -> str:
    """Return a size as messages show it, for example ``256 MiB``."""
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
