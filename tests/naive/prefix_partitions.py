"""Reference implementation of the join on disk: partition keys, and the weight that rows share in their prefixes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from naive.join import Multiset, least_overlap


def rarity(frequency: int) -> int:
    """0 for one row, else two classes to each doubling."""
    doublings = frequency.bit_length() - 1
    return 0 if frequency <= 1 else 2 * doublings - 1 + (frequency >= 3 * 2**doublings / 2)


def key(document: int, rank: int) -> int:
    """Return ten bits of a hash of a document's number and of the rank of a signature in it, divided by 4,096."""
    x = (document * 0x9E3779B97F4A7C15 + (rank // 4096) * 0xD6E8FEB86659FD93) % 2**64
    return ((x ^ x >> 32) * 0xD6E8FEB86659FD93 % 2**64) >> 54


def partition_keys(documents: Iterable[Iterable[int]]) -> dict[int, int]:
    """Return for each signature the key of the first document that contains it."""
    keys: dict[int, int] = {}
    for number, signatures in enumerate(documents):
        for rank, signature in enumerate(signatures):
            keys.setdefault(signature, key(number, rank))
    return keys


def required(length: int, tau: float) -> int:
    """Return the weight that a similar pair shares, by the length of its shorter row."""
    shortest = next(b for b in range(1, length + 1) if b / length >= tau)
    return max(min(2 + length // 96, least_overlap(tau, length + shortest)), 1)


def shared(rows: Sequence[Multiset], tau: float) -> dict[tuple[int, int], int]:
    """Return the weight that each pair of rows, given by length, shares in the prefixes, if any.

    Row ``b`` precedes row ``a``. A signature counts if it is inside the prefixes that the lengths of both require, with
    the lower of its weights there.
    """
    frequency = Counter(signature for row in rows for signature in row)
    positions: list[dict[int, int]] = []
    for row in rows:
        position, of_row = 0, {}
        for signature in sorted(row, key=lambda s: (rarity(frequency[s]), s)):
            of_row[signature] = position
            position += row[signature]
        positions.append(of_row)
    result: dict[tuple[int, int], int] = {}
    for a, long in enumerate(rows):
        for b, short in enumerate(rows[:a]):
            one, other = sum(long.values()), sum(short.values())
            if not other or other / one < tau:
                continue
            least, k = least_overlap(tau, one + other), required(other, tau)
            total = 0
            for signature in long.keys() & short.keys():
                left, right = one - least + k - positions[a][signature], other - least + k - positions[b][signature]
                total += max(0, min(long[signature], short[signature], left, right))
            if total:
                result[b, a] = total
    return result
