"""How much of the text of a page another page contains, and which page may be removed for which.

A *phrase* is the five words from the first word of a signature on, fewer at the end of a text. The text of a page is
represented by its phrases. Its *own* phrases are at the signatures that are compared: in its main content, without the
template. A page is *contained* in another one by the fraction of its own phrases that the other page has
anywhere. Phrases are runs of words, while signatures skip words, so that they are evidence of their own.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.parallel import concatenated, over_blocks
from spotsigs.arrays.types import Bytes, Int32s, UInt64s
from spotsigs.records import FloatArray, IntArray, Phrases, Tokens
from spotsigs.signatures.languages import IN_SHINGLES
from spotsigs.text.hashing import xxh64

PHRASE_WORDS = 5
"""Words of a phrase."""


@kernel
def _hash_phrases(buffer: Bytes, starts: Int32s, ends: Int32s, firsts: Int32s, signatures: UInt64s) -> UInt64s:
    entries = np.empty(len(firsts), np.uint64)
    for k in range(len(firsts)):
        last = min(firsts[k] + PHRASE_WORDS, len(starts)) - 1
        phrase = xxh64(buffer, starts[firsts[k]], ends[last])
        entries[k] = phrase >> np.uint64(32) << np.uint64(32) | signatures[k] >> np.uint64(32)
    entries.sort()
    n = 0
    for k in range(len(entries)):
        if n == 0 or entries[k] != entries[n - 1]:
            entries[n] = entries[k]
            n += 1
    return entries[:n].copy()


def phrases_of(signatures: UInt64s, firsts: Int32s, tokens: Tokens) -> UInt64s:
    """Return the entries of `Phrases` of a text, by the hash and the first token of each of its signatures."""
    entries: UInt64s = _hash_phrases(tokens.buffer, tokens.starts, tokens.ends, firsts, signatures)
    return entries


class Contents(NamedTuple):
    """Phrases of n documents in CSR form; the phrases of exact duplicates are stored once."""

    indptr: NDArray[np.int64]  # (n + 1,)
    hashes: NDArray[np.uint32]  # 31 bits of each phrase, ascending; the lowest bit is 1 for the document's own


@kernel
def _contents(
    starts: Any, entries: Any, indptr: Any, signatures: Any, marked: Any, begin: Any, end: Any
) -> tuple[Any, Any]:
    sizes = np.zeros(end - begin, np.int64)
    out = np.empty(starts[end] - starts[begin] + indptr[end] - indptr[begin], np.uint32)
    n = 0
    for r in range(begin, end):
        first, low, high = n, indptr[r], indptr[r + 1]
        some = False
        for k in range(starts[r], starts[r + 1] if high > low else starts[r]):
            own = _has(signatures, low, high, entries[k] & np.uint64(0xFFFFFFFF))
            some |= own
            out[n] = np.uint32(entries[k] >> np.uint64(33)) << np.uint32(1) | np.uint32(own)
            n += 1
        for k in range(low, high if marked and not some else low):
            if signatures[k] & IN_SHINGLES:
                out[n] = np.uint32(signatures[k] >> np.uint64(33)) << np.uint32(1) | np.uint32(1)
                n += 1
        row = np.sort(out[first:n])
        n = first
        for k in range(len(row)):
            if n > first and out[n - 1] >> np.uint32(1) == row[k] >> np.uint32(1):
                out[n - 1] |= row[k]
            else:
                out[n] = row[k]
                n += 1
        sizes[r - begin] = n - first
    return sizes, out[:n].copy()


@kernel
def _has(signatures: Any, low: Any, high: Any, wanted: Any) -> Any:
    """Return whether a row of ascending hashes has one with these upper 32 bits."""
    while low < high:
        middle = (low + high) // 2
        if signatures[middle] >> np.uint64(32) < wanted:
            low = middle + 1
        else:
            high = middle
    return low < len(signatures) and signatures[low] >> np.uint64(32) == wanted


def contents_of(
    phrases: Phrases, indptr: NDArray[np.int64], signatures: UInt64s, *, marked: bool, threads: int | None = None
) -> Contents:
    """Return the phrases of documents, and which of them are at a signature that is compared.

    Parameters
    ----------
    phrases : Phrases
        Phrases of all signatures of the n documents.
    indptr : ndarray of int64, shape (n + 1,)
        Row ``r`` of the signatures is ``indptr[r]:indptr[r + 1]``; a document without one has no phrases.
    signatures : ndarray of uint64
        Hashes of the signatures that are compared, ascending within a row.
    marked : bool
        Hashes of shingles have the bit `IN_SHINGLES`. A document none of whose phrases is its own, but which is
        compared by shingles, has these in their place.
    threads : int, optional
        One per available core by default.
    """
    task = partial(_contents, phrases.indptr, phrases.entries, indptr, signatures, marked)
    sizes, hashes = concatenated(over_blocks(task, len(indptr) - 1, threads), (np.int64, np.uint32))
    return Contents(row_starts(sizes), hashes)


class RemovalRule(NamedTuple):
    """Which document may be removed for which, besides the threshold; both are given by their representatives.

    A removed document is contained in the kept one by a fraction of at least ``least``, the lower bound of their
    similarity is at least ``least_bound``, and, if both are of one section, this bound is at least ``section_tau``.
    """

    sections: NDArray[np.uint64]  # (n,), see `spotsigs.signatures.sections.sections_of`; or empty
    section_tau: float  # 0 without sections
    contents: Contents
    least: float  # 0 if contents do not count
    missing: Int32s  # (n,) signatures that are missing of each document; or empty
    lengths: Int32s  # (n,) signatures that each document is compared by; or empty
    of_shorter: bool  # similarities are shares of the shorter document, as of containment
    least_bound: float  # 0 if no signature is missing

    def counts(self, removed: IntArray, kept: IntArray, similarity: FloatArray) -> NDArray[np.bool_]:
        """Return which documents may be removed for others; all arrays have shape (m,)."""
        out = np.empty(len(similarity), np.bool_)
        _count(self, removed, kept, similarity, out)
        return out

    def contained(self, removed: IntArray, kept: IntArray) -> FloatArray:
        """Return by which fraction documents are contained in others; all arrays have shape (m,)."""
        out = np.empty(len(removed), np.float64)
        _measure(self.contents, removed, kept, out)
        return out

    def lower_bounds(self, a: IntArray, b: IntArray, similarity: FloatArray) -> FloatArray:
        """Return the lower bounds of the similarities of documents; all arrays have shape (m,)."""
        out = np.empty(len(similarity), np.float64)
        _bound(self, a, b, similarity, out)
        return out


LEAST_BOUND = 0.25
"""Least lower bound of the similarity of two pages of which one is removed, or tau if that is less."""

NO_RULE = RemovalRule(
    np.empty(0, np.uint64),
    0.0,
    Contents(np.zeros(1, np.int64), np.empty(0, np.uint32)),
    0.0,
    np.empty(0, np.int32),
    np.empty(0, np.int32),
    False,
    0.0,
)
"""Every document may be removed for every other one that reaches the threshold with it."""


@kernel
def may_remove(rule: RemovalRule, removed: Any, kept: Any, similarity: Any) -> Any:
    """Return whether a document may be removed for another one of some similarity."""
    bound = lower_bound(rule, removed, kept, similarity)
    if bound < rule.least_bound:
        return False
    if bound < rule.section_tau and rule.sections[removed] == rule.sections[kept] and rule.sections[kept] != 0:
        return False
    return rule.least <= 0 or contained(rule.contents, removed, kept) >= rule.least


@kernel
def lower_bound(rule: RemovalRule, a: Any, b: Any, similarity: Any) -> Any:
    """Return the similarity of two documents if all signatures that are missing of them were different.

    The quotient's terms are recovered as by `spotsigs.records.Overlap`.
    """
    if len(rule.missing) == 0 or a == b:
        return similarity
    one, other = np.int64(rule.lengths[a]), np.int64(rule.lengths[b])
    missing_one, missing_other = np.int64(rule.missing[a]), np.int64(rule.missing[b])
    if rule.of_shorter:
        shared = np.rint(similarity * min(one, other))
        return shared / max(min(one + missing_one, other + missing_other), 1)
    shared = np.rint((one + other) * (similarity / (1 + similarity)))
    return shared / max(one + missing_one + other + missing_other - shared, 1)


@kernel
def contained(contents: Contents, a: Any, b: Any) -> Any:
    """Return the fraction of the own phrases of document ``a`` that ``b`` has; 1 if ``a`` has none, or is ``b``."""
    if a == b:
        return 1.0
    indptr, hashes = contents.indptr, contents.hashes
    q, end, shared, total = indptr[b], indptr[b + 1], 0, 0
    for p in range(indptr[a], indptr[a + 1]):
        if hashes[p] & np.uint32(1) == 0:
            continue
        wanted = hashes[p] >> np.uint32(1)
        while q < end and hashes[q] >> np.uint32(1) < wanted:
            q += 1
        total += 1
        shared += q < end and hashes[q] >> np.uint32(1) == wanted
    return shared / total if total else 1.0


@kernel
def _count(rule: RemovalRule, removed: Any, kept: Any, similarity: Any, out: Any) -> None:
    for p in range(len(out)):
        out[p] = may_remove(rule, removed[p], kept[p], similarity[p])


@kernel
def _measure(contents: Contents, removed: Any, kept: Any, out: Any) -> None:
    for p in range(len(out)):
        out[p] = contained(contents, removed[p], kept[p])


@kernel
def _bound(rule: RemovalRule, a: Any, b: Any, similarity: Any, out: Any) -> None:
    for p in range(len(out)):
        out[p] = lower_bound(rule, a[p], b[p], similarity[p])
