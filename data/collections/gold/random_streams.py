"""Seeded random draws that are identical on every machine and version of Python."""

from __future__ import annotations

import hashlib
import random
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Generic, TypeVar

T = TypeVar("T")


class Dice:
    """Stream of random draws, which depends on its key only.

    It uses only `random.Random.random` with an integer seed, whose sequence the standard library guarantees, and one
    exact product of floats, so draws are identical on all machines.
    """

    def __init__(self, *key: int | str) -> None:
        digest = hashlib.blake2b("\0".join(map(str, key)).encode(), digest_size=8).digest()
        self.random = random.Random(int.from_bytes(digest, "big")).random

    def below(self, n: int) -> int:
        """Return an integer in ``[0, n)``."""
        return int(self.random() * n)

    def between(self, low: int, high: int) -> int:
        """Return an integer in ``[low, high]``."""
        return low + int(self.random() * (high - low + 1))

    def chance(self, percent: float) -> bool:
        """Return True with a probability of ``percent`` %."""
        return self.random() * 100 < percent

    def pick(self, items: Sequence[T]) -> T:
        """Return a random item; all are equally likely."""
        return items[int(self.random() * len(items))]

    def sample(self, items: Sequence[T], k: int) -> list[T]:
        """Return ``min(k, len(items))`` different items in random order."""
        pool = list(items)
        k = min(k, len(pool))
        for i in range(k):
            j = i + int(self.random() * (len(pool) - i))
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:k]


class Bag(Generic[T]):
    """Weighted random draws with integer weights."""

    def __init__(self, items: Sequence[T], weights: Sequence[int]) -> None:
        self.items = items
        self.bounds = list(accumulate(weights))

    @classmethod
    def zipf(cls, items: Sequence[T], shift: int = 2) -> Bag[T]:
        """Weight the item of rank r by ``1 / (r + shift)``, like words in text."""
        return cls(items, [1_000_000 // (rank + shift) for rank in range(len(items))])

    def draw(self, dice: Dice) -> T:
        """Return a random item."""
        return self.items[bisect_right(self.bounds, int(dice.random() * self.bounds[-1]))]
