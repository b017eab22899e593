"""Reference implementations of Cosine, LSH-S and the sketches: dictionaries, big integers, textbook definitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal, localcontext
from functools import cache
from itertools import combinations
from math import gcd, sqrt

import numpy as np

from naive import Multiset, jaccard, pairs_of  # noqa: F401
from naive import similar_pairs as jaccard_pairs  # noqa: F401


@cache
def log_ratio(n: int, df: int) -> float:
    with localcontext() as context:
        context.prec = 60
        return float((Decimal(n) / Decimal(df)).ln())


def weighted(documents: Sequence[Multiset]) -> list[dict[int, float]]:
    """Return TF·IDF weights in order of ids, with counts divided by their common divisor."""
    frequency = Counter(s for document in documents for s in document)
    rows = []
    for document in documents:
        kept = {s: document[s] for s in sorted(document) if frequency[s] < len(documents)}
        divisor = gcd(*kept.values())
        rows.append({s: (c // divisor) * log_ratio(len(documents), frequency[s]) for s, c in kept.items()})
    return rows


def cosine(a: dict[int, float], b: dict[int, float]) -> float:
    product, aa, bb = 0.0, 0.0, 0.0
    for s in a:
        aa += a[s] * a[s]
        if s in b:
            product += a[s] * b[s]
    for s in b:
        bb += b[s] * b[s]
    return min(1.0, product / sqrt(aa * bb))


def cosine_pairs(documents: Sequence[Multiset], tau: float) -> dict[tuple[int, int], float]:
    return pairs_of(weighted(documents), tau, lambda a, b: cosine(a, b) if a and b else 0.0)


def tokens(document: Multiset, first: Sequence[int]) -> list[int]:
    return [first[s] + z for s, c in document.items() for z in range(c)]


def min_hashes(document: Multiset, first: Sequence[int], functions) -> list[int]:
    """Return the smallest value of each linear function, in big integers."""
    coefficients = zip(functions.alpha.tolist(), functions.beta.tolist(), strict=True)
    return [min((a * x + b) % functions.prime for x in tokens(document, first)) for a, b in coefficients]


def colliding_pairs(signatures: dict[int, list[int]], k: int, tables: int) -> tuple[set[tuple[int, int]], int]:
    """Return the pairs with the same k-tuple in at least one table, and the number of buckets."""
    pairs, buckets = set(), 0
    for t in range(tables):
        table: dict[tuple[int, ...], list[int]] = {}
        for document, signature in signatures.items():
            table.setdefault(tuple(signature[t * k : (t + 1) * k]), []).append(document)
        buckets += len(table)
        for members in table.values():
            pairs |= set(combinations(sorted(members), 2))
    return pairs, buckets


def permuted(shingle: int, key: int) -> int:
    x, bits = shingle ^ key, 2**64 - 1
    x = ((x ^ (x >> 33)) * 0xFF51AFD7ED558CCD) & bits
    x = ((x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53) & bits
    return x ^ (x >> 33)


def smallest(numbers: set[int], m: int) -> set[int]:
    return set(sorted(numbers)[:m])


def positions(shingles: set[int], keys: Sequence[int]) -> set[tuple[int, int]]:
    """Return (position, shingle with the smallest number under the permutation) for each key."""
    if not shingles:
        return set()
    return {(f, min(shingles, key=lambda s, key=key: permuted(s, key))) for f, key in enumerate(keys)}


def resemblance_of_smallest(a: set[int], b: set[int], m: int) -> float:
    union = smallest(a | b, m)
    return len(union & a & b) / len(union)


def common_values(sketches: Sequence[set]) -> Counter:
    """Return the number of common values by pair."""
    every = combinations(enumerate(sketches), 2)
    return +Counter({(i, j): len(a & b) for (i, a), (j, b) in every})


def edited_copies(seed: int, n: int = 120, vocabulary: int = 400, longest: int = 40) -> list[Multiset]:
    """Return random documents with rare and frequent signatures, half of them edited copies, one of them empty."""
    rng = np.random.default_rng(seed)
    texts: list[list[int]] = []
    for _ in range(n - 1):
        if texts and rng.random() < 0.5:
            text = list(texts[rng.integers(len(texts))])
            for _ in range(rng.integers(0, 1 + len(text) // 2)):
                text[rng.integers(len(text))] = int(vocabulary * rng.random() ** 2)
        else:
            text = (vocabulary * rng.random(rng.integers(1, longest)) ** 2).astype(int).tolist()
        texts.append(text)
    return [Counter(text) for text in [*texts, []]]
