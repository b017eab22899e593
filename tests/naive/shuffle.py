"""Slow twin of the join on disk: where signatures live, which rows meet, signature by signature and pair by pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from naive.join import Multiset, least_overlap


def rarity(frequency: int) -> int:
    """0 for one row, else two classes to each doubling."""
    doublings = frequency.bit_length() - 1
    return 0 if frequency <= 1 else 2 * doublings - 1 + (frequency >= 3 * 2**doublings / 2)


def home(document: int, place: int) -> int:
    """A hash of ten bits of a document's number, and of how many times 4,096 signatures of it stand before this one."""
    x = (document * 0x9E3779B97F4A7C15 + (place // 4096) * 0xD6E8FEB86659FD93) % 2**64
    return ((x ^ x >> 32) * 0xD6E8FEB86659FD93 % 2**64) >> 54


def homes(documents: Iterable[Iterable[int]]) -> dict[int, int]:
    """Return for each signature the home of the first document that has it."""
    found: dict[int, int] = {}
    for number, signatures in enumerate(documents):
        for place, signature in enumerate(signatures):
            found.setdefault(signature, home(number, place))
    return found


def meetings_of(length: int, tau: float) -> int:
    """How many meetings a pair needs whose shorter row has this length."""
    shortest = next(b for b in range(1, length + 1) if b / length >= tau)
    return max(min(2 + length // 96, least_overlap(tau, length + shortest)), 1)


def met(rows: Sequence[Multiset], tau: float) -> dict[tuple[int, int], int]:
    """Return the meetings of each pair of rows, given by length, that has some.

    Row ``b`` stands before row ``a``. A meeting is a signature inside the prefixes that the lengths of both ask for,
    with the lower of its weights there.
    """
    frequency = Counter(signature for row in rows for signature in row)
    places: list[dict[int, int]] = []
    for row in rows:
        place, found = 0, {}
        for signature in sorted(row, key=lambda s: (rarity(frequency[s]), s)):
            found[signature] = place
            place += row[signature]
        places.append(found)
    result: dict[tuple[int, int], int] = {}
    for a, long in enumerate(rows):
        for b, short in enumerate(rows[:a]):
            one, other = sum(long.values()), sum(short.values())
            if not other or other / one < tau:
                continue
            least, k = least_overlap(tau, one + other), meetings_of(other, tau)
            total = 0
            for signature in long.keys() & short.keys():
                left, right = one - least + k - places[a][signature], other - least + k - places[b][signature]
                total += max(0, min(long[signature], short[signature], left, right))
            if total:
                result[b, a] = total
    return result
