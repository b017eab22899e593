"""Exact duplicates: pages of identical content or identical visible text, found before signatures are compared.

Exact duplicates are pairs of similarity 1, whatever their signatures. Each set of them has one representative. Only
representatives have signatures, count in document frequencies and are joined; their pairs apply to the whole set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.row_blocks import gathered, is_identity, tally
from spotsigs.records import FloatArray, IntArray, PairArrays, Pairs, Signatures, require_listable

WORDS = 2
"""Number of 64-bit words in a checksum: 128 bits of BLAKE2b, for which no collision can be forged."""

CONTENT, TEXT = 2, 1
"""Kinds of exact duplicates: identical content, and identical text only."""


class Sameness(Enum):
    """Criterion for exact duplicates.

    ``text``: identical content or identical visible text. ``content``: identical content. ``off``: none; documents are
    compared by their signatures only.
    """

    text = "text"
    content = "content"
    off = "off"


@dataclass(frozen=True)
class ExactDuplicates:
    """Sets of exact duplicates.

    The last document of a set is its representative. If documents are added to a store, a set with an added document is
    thus joined again. If a template is removed, the representative has the signatures of the `first` document.
    """

    content: NDArray[np.int32]  # by document, the last one with the same content
    representatives: NDArray[np.int32]  # by document, its representative: the last one with the same content or text

    @classmethod
    def none(cls, n: int) -> ExactDuplicates:
        """Return `n` documents without exact duplicates."""
        alone = np.arange(n, dtype=np.int32)
        return cls(alone, alone)

    @classmethod
    def find(
        cls,
        contents: NDArray[np.uint64],
        texts: Callable[[], NDArray[np.uint64]],
        n: int,
        sameness: Sameness = Sameness.text,
    ) -> ExactDuplicates:
        """Find the exact duplicates among `n` documents.

        `contents` are the `checksums` of the contents, uint64, shape (n, 2), without rows if they were not computed;
        `texts` returns the checksums of the texts, and is called after the contents are compared.
        """
        if sameness is Sameness.off or len(contents) != n:
            return cls.none(n)
        content: NDArray[np.int32] = np.arange(n, dtype=np.int32)
        known = _in_question(contents, contents.any(axis=1))
        content[known] = known[_last_of_equal(contents[known])]
        del contents
        if sameness is Sameness.content:
            return cls(content, content)
        checksums = texts()
        has_text = checksums.any(axis=1)
        has_text &= content == np.arange(n, dtype=np.int32)
        rows = _in_question(checksums, has_text)
        last: NDArray[np.int32] = np.arange(n, dtype=np.int32)
        last[rows] = rows[_last_of_equal(checksums[rows])]
        return cls(content, last[content])

    @classmethod
    def among(cls, signatures: Signatures, sameness: Sameness = Sameness.text) -> ExactDuplicates:
        """Find the exact duplicates among documents whose signatures are in memory."""
        digests = signatures.documents.digests
        return cls.find(digests[:, :WORDS], lambda: digests[:, WORDS:], len(signatures), sameness)

    def __len__(self) -> int:
        return len(self.representatives)

    @cached_property
    def distinct(self) -> NDArray[np.bool_]:
        """Mask of the representatives, bool, shape (n,)."""
        return is_identity(self.representatives)

    @cached_property
    def first(self) -> NDArray[np.int32]:
        """First document of the set of each document, int32, shape (n,)."""
        n = len(self)
        first = np.empty(n, np.int32)
        first[self.representatives[::-1]] = np.arange(n - 1, -1, -1, dtype=np.int32)  # the last value is stored
        return gathered(first, self.representatives)

    def first_on_site(self, sites: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return whether each document is the first of its set on its site, bool, shape (n,).

        Parameters
        ----------
        sites : ndarray of uint64, shape (n,)
            Sites of the documents, see `spotsigs.signatures.sites.sites_of`.
        """
        alone: NDArray[np.bool_] = np.ones(len(self), np.bool_)
        rows = np.flatnonzero(gathered(tally(self.representatives, len(self)), self.representatives) > 1)
        rows = rows[np.lexsort((sites[rows], self.representatives[rows]))]  # stable: ascending within a set and a site
        of, site = self.representatives[rows], sites[rows]
        alone[rows[1:]] = (of[1:] != of[:-1]) | (site[1:] != site[:-1])
        return alone

    @property
    def any(self) -> bool:
        """True if there is an exact duplicate."""
        return not bool(self.distinct.all())

    @cached_property
    def _sets(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The sets by representative: the start of each, and their members, ascending."""
        indptr = np.zeros(len(self) + 1, np.int32)
        np.cumsum(tally(self.representatives, len(self)), dtype=np.int32, out=indptr[1:])
        return indptr, np.argsort(self.representatives, kind="stable").astype(np.int32)

    def members(self, document: int) -> NDArray[np.int32]:
        """Return the documents that a representative represents, ascending and including itself."""
        indptr, members = self._sets
        return members[indptr[document] : indptr[document + 1]]

    def kinds(self, documents: IntArray, others: IntArray) -> NDArray[np.int8]:
        """Return whether each document is an exact duplicate of another: `CONTENT`, `TEXT`, or 0."""
        content = self.content[documents] == self.content[others]
        text = self.representatives[documents] == self.representatives[others]
        kinds: NDArray[np.int8] = np.where(content, CONTENT, np.where(text, TEXT, 0)).astype(np.int8)
        return kinds

    def pairs_within(self, *, most: int = 1 << 20, new_from: int = 0) -> Iterator[PairArrays]:
        """Yield the pairs of exact duplicates, ``i < j`` in any order.

        At most `most` pairs are in memory at a time; only pairs with a document of at least `new_from` are yielded.
        """
        indptr, members = self._sets
        sizes = np.diff(indptr)
        after = np.repeat(indptr[1:], sizes)  # first, the end of the set of each member; minus its position,
        after -= np.arange(1, len(members) + 1, dtype=np.int32)  # the number of members after it
        for index, step in _flat(after, most):
            yield from _wanted(members[index], members[index + 1 + step], np.ones(len(index)), new_from)

    def pairs_across(
        self, chunks: Iterable[PairArrays], *, most: int = 1 << 20, new_from: int = 0
    ) -> Iterator[PairArrays]:
        """Yield the pairs that exact duplicates add to some pairs of their representatives, as `pairs_within`."""
        indptr, members = self._sets
        sizes = np.diff(indptr)
        for i, j, similarity in chunks:
            products = sizes[i].astype(np.int64) * sizes[j]
            products[products == 1] = 0
            for pair, step in _flat(products, most):
                down, across = np.divmod(step, sizes[j[pair]])
                a, b = members[indptr[i[pair]] + down], members[indptr[j[pair]] + across]
                new = (a != i[pair]) | (b != j[pair])
                yield from _wanted(a[new], b[new], similarity[pair][new], new_from)

    def spread(self, pairs: Pairs) -> Pairs:
        """Return the pairs of all documents, by the pairs of their representatives; refuse more than can be listed."""
        if not self.any:
            return pairs
        sizes = np.bincount(self.representatives, minlength=len(self))
        total = int((sizes[pairs.i] * sizes[pairs.j]).sum()) + int((sizes * (sizes - 1) // 2).sum())
        require_listable(total)
        chunks = [(pairs.i, pairs.j, pairs.similarity), *self.pairs_within(), *self.pairs_across(pairs.chunks())]
        i, j, similarity = (np.concatenate(column) for column in zip(*chunks, strict=True))
        known = pairs.overlap
        overlap = None if known is None else replace(known, lengths=known.lengths[self.representatives])
        return Pairs.build(i, j, similarity, pairs.n, pairs.seconds, pairs.counters, overlap)


def _in_question(digests: NDArray[np.uint64], known: Any) -> NDArray[np.int64]:
    """Return the known rows whose first word occurs in another row, the only candidates for equality."""
    ordered = digests[known, 0]
    ordered.sort()
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    del ordered
    if not len(twice):
        return np.empty(0, np.int64)
    indices = np.minimum(np.searchsorted(twice, digests[:, 0]), len(twice) - 1)
    rows: NDArray[np.int64] = np.flatnonzero((twice[indices] == digests[:, 0]) & known)
    return rows


def _last_of_equal(digests: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Return the last row that equals each row, int32."""
    order = np.lexsort(digests.T)  # stable: equal rows remain in order
    ordered = digests[order]
    ends = np.append((ordered[1:] != ordered[:-1]).any(axis=1), True)[: len(order)]
    del ordered
    last = np.empty(len(order), np.int32)
    last[order] = np.repeat(order[ends], np.diff(np.flatnonzero(ends), prepend=-1))
    return last


def _flat(counts: IntArray, most: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield batches of positions, each repeated by its count, and the number of each repetition."""
    ends = np.cumsum(counts)
    for start in range(0, int(ends[-1]) if len(ends) else 0, most):
        flat = np.arange(start, min(start + most, int(ends[-1])))
        index = np.searchsorted(ends, flat, side="right")
        yield index, flat - ends[index] + counts[index]


def _wanted(i: IntArray, j: IntArray, similarity: FloatArray, new_from: int) -> Iterator[PairArrays]:
    """Yield the pairs that have a new document, with ``i < j``."""
    low, high = np.minimum(i, j).astype(np.int64), np.maximum(i, j).astype(np.int64)
    new = high >= new_from
    if new.any():
        yield low[new], high[new], similarity[new]
