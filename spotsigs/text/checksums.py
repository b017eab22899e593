"""Checksums of a page's content and text, which identify exact duplicates."""

from __future__ import annotations

from functools import cache
from hashlib import blake2b

import numpy as np

from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.types import Bytes, UInt64s
from spotsigs.records import Document
from spotsigs.storage.exact_duplicates import WORDS
from spotsigs.text.tokens import code_point

_SPACE = 32
_LAST = 0x3000
"""Largest code point that is white space: the ideographic space."""


@cache
def _is_space() -> Bytes:
    """Return 1 for each code point that ``str.split`` treats as white space, else 0; shape (0x3001,)."""
    return np.array([chr(code).isspace() for code in range(_LAST + 1)], np.uint8)


@kernel
def _squeeze(text: Bytes, is_space: Bytes, out: Bytes) -> int:
    """Write the words of a UTF-8 text, separated by single spaces; return the number of bytes written."""
    n, at = 0, int(np.int64(0))  # a literal compiles what is called twice
    owed = np.int64(0)  # whether a space precedes the next word
    while at < len(text):
        if text[at] < 0x80:  # branch-free: word boundaries are unpredictable
            space = np.int64(is_space[text[at]])
            out[n] = _SPACE
            n += int(owed & (1 - space))
            out[n] = text[at]
            n, at = n + int(1 - space), at + 1
            owed = space & np.int64(n > 0)
            continue
        code, after = code_point(text, at)
        if code <= _LAST and is_space[code]:
            owed = np.int64(n > 0)
        else:
            if owed:
                out[n] = _SPACE
                n += 1
            for k in range(at, after):
                out[n] = text[k]
                n += 1
            owed = np.int64(0)
        at = after
    return n


def squeezed(text: str) -> Bytes:
    """Return ``" ".join(text.split())`` in UTF-8, with the error handler ``surrogatepass``, uint8, shape (n_bytes,)."""
    data = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    out = np.empty(len(data) + 1, np.uint8)
    return out[: _squeeze(data, _is_space(), out)]


def checksums(document: Document, text: str) -> UInt64s:
    """Return the checksums by which exact duplicates are detected: of the content and of the text.

    Contents are equal if their bytes are; a string is compared in UTF-8. Texts are equal if their words are; white
    space between words is ignored. Empty contents and texts without words are equal to none.

    Returns
    -------
    ndarray of uint64, shape (4,)
        Two words for the content and two for the text; 0 if the content is empty, or the text has no words.
    """
    content = document.content
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    size = 8 * WORDS
    digests = [
        blake2b(part, digest_size=size, usedforsecurity=False).digest() if len(part) else bytes(size)
        for part in (data, squeezed(text).data)
    ]
    return np.frombuffer(b"".join(digests), np.uint64)
