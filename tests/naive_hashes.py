"""Slow, obvious twins of the hashing baselines: plain Python on sets, dicts and strings."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from spotsigs.records import RowNumbers, Vectors

Pair = tuple[int, int]
MASK = 2**64 - 1


def vectors(rows: Sequence[dict[int, int]], vocabulary: Sequence[int] | None = None) -> Vectors:
    """Vectors whose row r counts each id of ``rows[r]``."""
    ids = [i for row in rows for i in sorted(row)]
    counts = [row[i] for row in rows for i in sorted(row)]
    indptr = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    lengths = np.array([sum(row.values()) for row in rows], dtype=np.int64)
    hashes = None if vocabulary is None else np.array(vocabulary, dtype=np.uint64)
    return Vectors(
        indptr, np.array(ids, dtype=np.int32), np.array(counts, dtype=np.int32), lengths, RowNumbers(len(rows)), hashes
    )


def splitmix64(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def imatch(rows: Sequence[dict[int, int]], lexica: Sequence[set[int]], low: float, high: float) -> set[Pair]:
    """Pairs with the same SHA-1 over their terms within the band, under any lexicon; a term is its own hash."""
    n = len(rows)
    df = Counter(term for row in rows for term in row)
    pairs: set[Pair] = set()
    for lexicon in lexica:
        buckets: dict[str, list[int]] = defaultdict(list)
        for r, row in enumerate(rows):
            terms = [
                t for t in sorted(row) if t in lexicon and n > 1 and low <= math.log(n / df[t]) / math.log(n) <= high
            ]
            if terms:
                buckets[hashlib.sha1(b"".join(t.to_bytes(8, "big") for t in terms)).hexdigest()].append(r)
        for bucket in buckets.values():
            pairs.update(combinations(bucket, 2))
    return pairs


def simhash(row: dict[int, int], weight: dict[int, int], bits: int) -> int:
    """Charikar's fingerprint of one row; a term is its own hash before mixing."""
    fingerprint = 0
    for b in range(bits):
        total = sum(count * weight[t] * (1 if splitmix64(t) >> b & 1 else -1) for t, count in row.items())
        fingerprint |= (total > 0) << b
    return fingerprint


def hamming_pairs(fingerprints: Sequence[int], radius: int) -> dict[Pair, int]:
    """Linear scan: all pairs of positions within the radius, with their distance."""
    distances = {
        p: (fingerprints[p[0]] ^ fingerprints[p[1]]).bit_count() for p in combinations(range(len(fingerprints)), 2)
    }
    return {pair: distance for pair, distance in distances.items() if distance <= radius}
