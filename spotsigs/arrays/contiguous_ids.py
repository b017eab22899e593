"""Numbers without gaps for the ids that occur, by one bit for each id that could."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values, ascending: `np.unique` hashes integers first, which takes a hundred times as long."""
    ascending = np.sort(values)
    first: NDArray[np.bool_] = np.concatenate([np.ones(min(len(values), 1), bool), ascending[1:] != ascending[:-1]])
    return np.compress(first, ascending)


def renumbered(parts: Sequence[NDArray[np.int32]], n_ids: int) -> tuple[list[NDArray[np.int32]], int]:
    """Number the ids that occur in any of several arrays from 0, in their order.

    Parameters
    ----------
    parts : sequence of ndarray of int32
        Ids.
    n_ids : int
        Number above all of them; a fifth of a byte is held for each.

    Returns
    -------
    parts : list of ndarray of int32
        The new numbers.
    n : int
        How many there are.
    """
    words = np.zeros((n_ids + 63) >> 6, np.uint64)
    for ids in parts:
        _mark(ids, words)
    before = np.zeros(len(words) + 1, np.int32)
    np.cumsum(np.bitwise_count(words), dtype=np.int32, out=before[1:])
    found = [np.empty(len(ids), np.int32) for ids in parts]
    for ids, numbers in zip(parts, found, strict=True):
        _rank(ids, words, before, numbers)
    return found, int(before[-1])


@njit(cache=True, nogil=True)
def _mark(ids, words):  # type: ignore[no-untyped-def]
    for value in ids:
        words[value >> 6] |= np.uint64(1) << np.uint64(value & 63)


@njit(cache=True, nogil=True)
def _rank(ids, words, before, numbers):  # type: ignore[no-untyped-def]
    for k, value in enumerate(ids):
        lower = words[value >> 6] & ((np.uint64(1) << np.uint64(value & 63)) - np.uint64(1))
        numbers[k] = before[value >> 6] + _ones(lower)


@njit(cache=True, nogil=True)
def _ones(word):  # type: ignore[no-untyped-def]
    """Return how many bits are set, counted in pairs, then fours, then bytes."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int32((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
