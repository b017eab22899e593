"""Hashes of runs of contiguous tokens (shingles)."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.records import Tokens
from spotsigs.text.xxh64 import _xxh64


@njit(cache=True, nogil=True)
def _hash_shingles(
    buffer: NDArray[np.uint8], starts: NDArray[np.int32], ends: NDArray[np.int32], k: int
) -> NDArray[np.uint64]:
    """Return the XXH64 of every ``k`` contiguous tokens; the buffer stores the tokens joined by colons."""
    hashes = np.empty(len(starts) - k + 1, np.uint64)
    for i in range(len(hashes)):
        hashes[i] = _xxh64(buffer, starts[i], ends[i + k - 1])
    return hashes


def hash_shingles(tokens: Tokens, k: int) -> NDArray[np.uint64]:
    """Return the XXH64 of every ``k`` contiguous tokens joined by colons, in text order.

    Fewer than ``k`` tokens form one shingle, no tokens none: uint64, shape (max(n - k, 0) + 1,) or (0,).
    """
    if len(tokens) == 0:
        return np.empty(0, np.uint64)
    hashes: NDArray[np.uint64] = _hash_shingles(tokens.buffer, tokens.starts, tokens.ends, min(k, len(tokens)))
    return hashes
