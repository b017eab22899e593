"""Other measures inside perhaps-similar sets: Cosine, an edit distance, a Kullback-Leibler divergence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from baselines.cosine import weigh
from baselines.hashing import group_rows, pairs_within
from baselines.lcs.lcs_method import Lcs, Pages
from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.parallel import bit_count, over_blocks
from spotsigs.contracts import ThreadedMatcher, ThresholdMatcher
from spotsigs.records import Corpus, FloatArray, Pairs


class SetComparison(Enum):
    """Similarity of two pages.

    ``cosine``: of TF·IDF vectors of signatures, as in `Cosine`. ``edit``: ``1 - D / (|A| + |B|)``, with D the least
    number of tokens to insert and delete. ``divergence``: one minus the Jensen-Shannon divergence in bits of the
    distributions of signatures, the mean of the Kullback-Leibler divergences from both to their mean.
    """

    cosine = "cosine"
    edit = "edit"
    divergence = "divergence"


@dataclass(frozen=True, kw_only=True)
class SetMeasure(ThreadedMatcher, ThresholdMatcher):
    """All pairs of at least tau inside the perhaps-similar sets of stage one of `Lcs`.

    The LCS authors compare their method with Cosine after the same division (68 hours to divide, 534 to compare).

    Attributes
    ----------
    tau : float
        Similarity threshold in (0, 1].
    compare : SetComparison
        Similarity of two pages.
    buckets, smallest, max_set : int
        As in `Lcs`.
    threads : int or None
        Threads over blocks of pairs; None uses all cores.

    References
    ----------
    Cosine: L. Huang, L. Wang and X. Li, lecture slides, Table 1. Edit distance: K. Radinsky, lecture slides.
    Kullback-Leibler: M. Theobald, J. Siddharth and A. Paepcke, slides. Bit-parallel LCS: H. Hyyrö, AWOCA 2004.

    Deviations
    ----------
    The slides give neither the weights nor the threshold of their Cosine, nor the kind of edit distance. The
    Kullback-Leibler divergence is infinite if one page lacks a signature of the other; that to their mean is not.
    """

    measure: ClassVar[str] = "similarity inside sets"
    verified: ClassVar[bool] = True
    label: ClassVar[str] = "Inside perhaps-similar sets"
    reads_texts: ClassVar[bool] = True

    compare: SetComparison = SetComparison.cosine
    buckets: int = 7
    smallest: int = 3
    max_set: int = 5000

    def __call__(self, corpus: Corpus) -> Pairs:
        """Return the pairs of pages of at least tau; pages of equal tokens are pairs of similarity 1."""
        start = perf_counter()
        lcs = Lcs(buckets=self.buckets, smallest=self.smallest, max_set=self.max_set)
        pages = lcs.read(corpus)
        a, b = pairs_within(*group_rows(lcs.perhaps_similar(pages)))
        divided = perf_counter()
        similarity = self._similarities(corpus, pages, a, b)
        keep = similarity >= self.tau
        return Pairs.build(
            *pages.documents(a[keep], b[keep], similarity[keep]),
            len(corpus.vectors),
            seconds={"sort_hash": divided - start, "cluster": perf_counter() - divided},
            counters={"candidates": len(a)},
        )

    def _similarities(self, corpus: Corpus, pages: Pages, a: NDArray[np.int64], b: NDArray[np.int64]) -> FloatArray:
        similarity = np.empty(len(a))
        row = pages.rows[pages.row_indptr[:-1]]
        weighted = weigh(corpus.vectors)
        names, numbers = np.unique(pages.tokens, return_inverse=True)

        def block(start: int, stop: int) -> None:
            first, second, out = a[start:stop], b[start:stop], similarity[start:stop]
            if self.compare is SetComparison.edit:
                _edit(pages.indptr, numbers, len(names), first, second, out)
            elif self.compare is SetComparison.cosine:
                rows = weighted.indptr, weighted.ids, weighted.values
                _cosine(*rows, weighted.squares, row[first], row[second], out)
            else:
                vectors = corpus.vectors
                _divergence(vectors.indptr, vectors.ids, vectors.counts, vectors.lengths, row[first], row[second], out)

        over_blocks(block, len(a), self.threads)
        return similarity


@kernel
def _edit(indptr, tokens, n_tokens, a, b, out_similarity):  # type: ignore[no-untyped-def]
    """Write the edit similarity of pairs of pages, by the bit-parallel LCS of Hyyrö (2004); tokens are numbered.

    Bit ``p`` of ``state`` is 0 if position ``p`` of the first page ends a longer common subsequence than ``p - 1``.
    """
    local = np.full(n_tokens, -1, np.int64)  # row of the masks of each token of page `current`
    current, masks, state = -1, np.empty((0, 0), np.uint64), np.empty(0, np.uint64)
    for pair in range(len(a)):
        if a[pair] != current:
            if current >= 0:
                local[tokens[indptr[current] : indptr[current + 1]]] = -1
            current = a[pair]
            size = indptr[current + 1] - indptr[current]
            masks, state = np.zeros((size, (size + 63) // 64), np.uint64), np.empty((size + 63) // 64, np.uint64)
            for p in range(size):
                token = tokens[indptr[current] + p]
                if local[token] < 0:
                    local[token] = p
                masks[local[token], p // 64] |= np.uint64(1) << np.uint64(p % 64)
        state[:] = ~np.uint64(0)
        for p in range(indptr[b[pair]], indptr[b[pair] + 1]):
            if local[tokens[p]] >= 0:
                _advance(state, masks[local[tokens[p]]])
        common = 0
        for word in state:
            common += 64 - bit_count(word)
        out_similarity[pair] = (
            2 * common / (indptr[current + 1] - indptr[current] + indptr[b[pair] + 1] - indptr[b[pair]])
        )


@kernel
def _advance(out_state, mask):  # type: ignore[no-untyped-def]
    """Add ``state & mask`` to the state, with carries, and keep the bits outside of the mask."""
    carry = np.uint64(0)
    for word in range(len(mask)):
        old = out_state[word]
        added = old + (old & mask[word])
        new = added + carry
        carry = np.uint64((added < old) | (new < added))
        out_state[word] = new | (old & ~mask[word])


@kernel
def _cosine(indptr, ids, values, squares, i, j, out_similarity):  # type: ignore[no-untyped-def]
    """Write the Cosine of pairs of rows, products summed in the order of the ids; 0 for an empty row."""
    for pair in range(len(i)):
        x, y = indptr[i[pair]], indptr[j[pair]]
        product = 0.0
        while x < indptr[i[pair] + 1] and y < indptr[j[pair] + 1]:
            here, there = ids[x], ids[y]
            if here == there:
                product += values[x] * values[y]
            x += here <= there
            y += there <= here
        norm = np.sqrt(squares[i[pair]] * squares[j[pair]])
        out_similarity[pair] = min(1.0, product / norm) if norm > 0 else 0.0


@kernel
def _divergence(indptr, ids, counts, lengths, i, j, out_similarity):  # type: ignore[no-untyped-def]
    """Write one minus the Jensen-Shannon divergence of pairs of rows; 0 for an empty row.

    A signature of one page alone adds half of its probability to the divergence, so the sum needs shared ones only.
    """
    for pair in range(len(i)):
        x, y = indptr[i[pair]], indptr[j[pair]]
        agreement = 0.0
        while x < indptr[i[pair] + 1] and y < indptr[j[pair] + 1]:
            here, there = ids[x], ids[y]
            if here == there:
                p, q = counts[x] / lengths[i[pair]], counts[y] / lengths[j[pair]]
                agreement += (p + q - p * np.log2(2 * p / (p + q)) - q * np.log2(2 * q / (p + q))) / 2
            x += here <= there
            y += there <= here
        out_similarity[pair] = min(1.0, agreement)
