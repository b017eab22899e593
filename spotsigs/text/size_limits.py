"""How large a page may be: its body as stored, what that unpacks to, and its text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from spotsigs.errors import InputError

MAX_PAGE = 256 << 20
"""Bytes of the largest page where no budget is given; more is taken for an attack."""

BUDGET_PAGE = 8 << 20
"""Bytes of the largest page within a memory budget: the same for every budget, so that none changes the results."""

BYTES_A_BYTE = 32
"""Memory that a byte of a page takes at most, from its body to its signatures.

31.3 were measured, for marked text that one emoji makes four bytes wide; 16 for ordinary text.
"""

MARK = 8
"""Bytes of text that an element of a page, a value of JSON and a field of CSV are counted for: what one of them holds
beside its text, up to 250 bytes, by `BYTES_A_BYTE`."""

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


def weight(content: bytes, marks: bytes = b"<", again: int = 0) -> int:
    """Return the size of what is parsed, with `MARK` bytes for each of the characters that make it hold more.

    `again` is how many elements the parser makes beside those that the page has tags for.
    """
    return len(content) + MARK * (again + sum(content.count(marks[k : k + 1]) for k in range(len(marks))))


def outweighs(content: bytes, marks: bytes = b"<", again: int = 0) -> bool:
    """Whether a page is larger than it may be, each of its elements counted for `MARK` bytes."""
    most = largest_page()
    if (1 + MARK) * len(content) + MARK * again <= most:  # nearly all pages: were every character one that counts
        return False
    return weight(content, marks, again) > most


def require_room(content: bytes, marks: bytes = b"<", again: int = 0) -> None:
    """Refuse a page that `outweighs` what it may have."""
    if outweighs(content, marks, again):
        found = weight(content, marks, again)
        raise InputError(
            f"the page is larger than {in_words(largest_page())}: {len(content) / 2**20:.1f} MiB of text, and its tags "
            f"count for {(found - len(content)) / 2**20:.1f} MiB"
        )


def in_words(size: int) -> str:
    """Return a size as a message says it.

    Examples
    --------
    >>> in_words(256 << 20), in_words(1 << 19)
    ('256 MiB', '512 KiB')
    """
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
