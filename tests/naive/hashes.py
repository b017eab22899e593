"""Reference implementations of the hashing baselines: plain Python on sets, dicts and strings."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations, pairwise

Pair = tuple[int, int]
MASK = 2**64 - 1


def splitmix64(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def imatch(rows: Sequence[dict[int, int]], lexica: Sequence[set[int]], low: float, high: float) -> set[Pair]:
    """Return pairs with the same SHA-1 of their terms in the band, under any lexicon; a term is its own hash."""
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
    """Return Charikar's fingerprint of a row; a term is its own hash before mixing."""
    fingerprint = 0
    for b in range(bits):
        total = sum(count * weight[t] * (1 if splitmix64(t) >> b & 1 else -1) for t, count in row.items())
        fingerprint |= (total > 0) << b
    return fingerprint


def hamming_pairs(fingerprints: Sequence[int], radius: int) -> dict[Pair, int]:
    """Return all pairs of positions within the radius and their distance, by linear scan."""
    distances = {
        p: (fingerprints[p[0]] ^ fingerprints[p[1]]).bit_count() for p in combinations(range(len(fingerprints)), 2)
    }
    return {pair: distance for pair, distance in distances.items() if distance <= radius}


def lcs_length(a: Sequence[object], b: Sequence[object]) -> int:
    """Return the length of the LCS by dynamic programming."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def sketch(page: Sequence[str], other: Sequence[str], length: int) -> list[int]:
    """Return the positions of the tokens in runs of the given length that the other page shares."""
    if length == 0:
        return list(range(len(page)))
    runs = {tuple(other[q : q + length]) for q in range(len(other) - length + 1)}
    starts = [p for p in range(len(page) - length + 1) if tuple(page[p : p + length]) in runs]
    return sorted({p + k for p in starts for k in range(length)})


def trusted_similarity(
    matches: Sequence[tuple[int, int]], n_a: int, n_b: int, coherence: float, central: float
) -> float:
    """Return r of the trustable portion from the positions of the matched tokens, by trying every segment."""
    best, r = 0.0, 0.0
    for end, (last_a, last_b) in enumerate(matches):
        segments = []
        for start, (first_a, first_b) in enumerate(matches[: end + 1]):
            common = end - start + 1
            unmatched = last_a - first_a + 1 + last_b - first_b + 1 - 2 * common
            segments.append((common * (1 - coherence) - unmatched * coherence, start))
        score, start = max(segments)  # the shortest of equally good ones
        (first_a, first_b), common = matches[start], end - start + 1
        off_a, off_b = abs((first_a + last_a + 1) / 2 - n_a / 2), abs((first_b + last_b + 1) / 2 - n_b / 2)
        if score > best and off_a <= central * n_a / 2 and off_b <= central * n_b / 2:
            best = score
            size_a = max(last_a - first_a + 1, math.ceil(central * n_a))
            size_b = max(last_b - first_b + 1, math.ceil(central * n_b))
            r = common / (size_a + size_b - common)
    return r


def sentence_fingerprints(sentences: Sequence[str], buckets: int, smallest: int) -> list[int]:
    digests = {hashlib.md5(s.encode()).digest() for s in sentences}
    fingerprints = []
    for bucket in range(buckets):
        chosen = sorted(d for d in digests if int(d.hex(), 16) % buckets == bucket)[:smallest]
        if chosen:
            fingerprints.append(int(hashlib.md5(b"".join(chosen)).hexdigest()[:16], 16))
    return fingerprints


def perhaps_similar(fingerprints: Sequence[Sequence[int]], max_set: int) -> list[set[int]]:
    """Return the perhaps-similar sets of pages, given the fingerprints of each page."""
    holders: dict[int, list[int]] = defaultdict(list)
    for page, values in enumerate(fingerprints):
        for value in values:
            holders[value].append(page)
    sets = [{page} for page in range(len(fingerprints))]
    for _, pages in sorted(holders.items(), key=lambda item: (len(item[1]), item[0])):
        for x, y in pairwise(pages):
            a, b = (next(s for s in sets if page in s) for page in (x, y))
            if a is not b and len(a) + len(b) <= max_set:
                sets.remove(b)
                a |= b
    return sets
