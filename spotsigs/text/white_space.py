"""White space of a text: how much of it lies between words, nobody sees."""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.text.tokens import code_point

_SPACE = 32
_LAST = 0x3000
"""The greatest code point that is white space, the ideographic space."""


@cache
def _is_space() -> NDArray[np.uint8]:
    """Return which code points are white space to ``str.split``, shape (0x3001,)."""
    return np.array([chr(code).isspace() for code in range(_LAST + 1)], np.uint8)


@njit(cache=True, nogil=True)
def _squeeze(text: NDArray[np.uint8], is_space: NDArray[np.uint8], out: NDArray[np.uint8]) -> int:
    """Write the words of a text in UTF-8 with one space between them; return the size."""
    n, at, owed = 0, 0, np.int64(0)  # a space between what is written and the next word
    while at < len(text):
        if text[at] < 0x80:  # without branches: the ends of words cannot be predicted
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


def squeezed(text: str) -> NDArray[np.uint8]:
    """Return the words of a text, one space between them, none before the first and behind the last.

    Parameters
    ----------
    text : str
        Lone surrogates are kept.

    Returns
    -------
    ndarray of uint8, shape (n_bytes,)
        ``" ".join(text.split())`` in UTF-8, as ``surrogatepass`` encodes.
    """
    data = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    out = np.empty(len(data) + 1, np.uint8)
    return out[: _squeeze(data, _is_space(), out)]
