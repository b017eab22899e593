"""Exact join: all similar pairs within a collection, or between two collections.

The join partitions by length and prunes an inverted index by the threshold, as SpotSigs does, with one-sided bounds:
each document probes only for documents that are not longer, in a band of lengths, and share several of its rarest
tokens. `spotsigs.matching.bounds` has the bounds with proofs, `spotsigs.matching.join_kernels` the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import take_rows
from spotsigs.contracts import ThreadedMatcher, ThresholdMatcher
from spotsigs.errors import as_flag, as_tau, require, shown
from spotsigs.records import Corpus, Measure, Overlap, Pairs, RowNumbers, Vectors, unchecked


@dataclass(frozen=True, kw_only=True)
class SpotSigsTight(ThreadedMatcher, ThresholdMatcher):
    """Exact multiset Jaccard join with tight one-sided bounds; it finds the pairs of `SpotSigs`, faster.

    Attributes
    ----------
    tau : float
        Similarity threshold in (0, 1].
    threads : int or None
        Threads of the kernels; None uses all cores.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, section 4 (length partitions, pruned inverted index).
    Bayardo, Ma, Srikant: Scaling up all pairs similarity search, WWW 2007 (prefixes).
    Wang, Li, Feng: Can we beat the prefix filtering? SIGMOD 2012 (several common tokens in longer prefixes).

    Deviations
    ----------
    Algorithm 1 visits every pair from both documents and breaks on a bound that is valid for one of them only; here
    only the longer document probes for the shorter one. Partitions overlap: each contains every possible partner of its
    documents, so no document probes a neighbouring partition.
    """

    exact: ClassVar[bool] = True
    verified: ClassVar[bool] = True
    label: ClassVar[str] = "SpotSigs (tight bounds)"
    measure: ClassVar[str] = Measure.jaccard

    def __call__(self, corpus: Corpus) -> Pairs:
        """Return the pairs of the corpus with similarity at least ``tau``."""
        return self_join(corpus.vectors, self.tau, threads=self.threads)


def self_join(
    vectors: Vectors, tau: float, *, threads: int | None = None, sets: bool = False, most: int | None = None
) -> Pairs:
    """Find all pairs of rows with Jaccard similarity at least ``tau``.

    Parameters
    ----------
    vectors : Vectors
        Collection; empty rows are in no pair.
    tau : float
        Similarity threshold in (0, 1]. A pair is reported iff its intersection divided by its union is at least
        ``tau`` in float64.
    threads : int, optional
        Threads of the kernels; one per available core if omitted. The result does not depend on it.
    sets : bool
        Compare sets instead of multisets: every count is replaced by 1.
    most : int, optional
        Pairs that may be listed; 2**31 if omitted.

    Returns
    -------
    Pairs
        Pairs with the wall seconds of each stage (``scan, copies, order, pack, postings, join, expand``, and their sums
        in the paper's columns ``sort_hash`` and ``cluster``) and the counters ``copies, postings, candidates,
        verifications``. Inverting and probing run concurrently: ``postings`` is the time of inverting divided by the
        number of threads, ``join`` the rest.

    Raises
    ------
    InputError
        If tau or threads is out of range, or there are more pairs than may be listed.
    """
    from spotsigs.matching.join_driver import Stages, empty_pairs, expand, group_equal_rows, search

    tau = _checked(tau, sets, vectors)
    # for longer rows the quotient may round to 1 although they are not equal
    copies_only = tau == 1 and int(vectors.lengths.max(initial=0)) < 2**52
    with Stages(threads, most) as stages:
        # at tau 1 the pairs are of equal rows; signatures are counted only if hashes of different rows collide
        [side] = group_equal_rows([vectors], sets, stages, count=not copies_only)
        if copies_only and side.collided:
            [side] = group_equal_rows([vectors], sets, stages)
        pieces = [empty_pairs(0) if copies_only and not side.collided else search(side, side, tau, stages)]
        i, j, similarity = expand(side, side, pieces.pop(), stages)  # pop() lets `expand` free them
    overlap = Overlap(np.diff(vectors.indptr) if sets else vectors.lengths)
    return Pairs(i, j, similarity, len(vectors), stages.seconds, stages.counters, overlap)


def _checked(tau: float, sets: bool, *collections: Vectors) -> float:
    for vectors in collections:
        require(isinstance(vectors, Vectors), f"a join needs Vectors, got {shown(vectors)}; see Vectors.from_csr")
    as_flag("sets", sets)
    return as_tau(tau)


def join(
    left: Vectors,
    right: Vectors,
    tau: float,
    *,
    threads: int | None = None,
    sets: bool = False,
    most: int | None = None,
) -> Pairs:
    """Find all pairs of a left and a right row with Jaccard similarity at least ``tau``.

    Parameters
    ----------
    left, right : Vectors
        Two collections with the same ids for the same signatures.
    tau, threads, sets, most : float, int, bool, int
        As in `self_join`.

    Returns
    -------
    Pairs
        Pairs of a row ``i`` of ``left`` and a row ``j`` of ``right``; seconds and counters as in `self_join`.

    Raises
    ------
    InputError
        As in `self_join`.
    """
    from spotsigs.matching.join_driver import Stages, expand, group_equal_rows, rows_with_partners, search

    tau = _checked(tau, sets, left, right)
    one, other = (left.as_sets(), right.as_sets()) if sets else (left, right)
    with Stages(threads, most) as stages:
        # most rows of two blocks of a crawl share little with the whole other block: to drop them costs one pass
        rows = rows_with_partners(one, other, tau, stages)
        one = some_rows(one, rows)
        partners = rows_with_partners(other, one, tau, stages)
        a, b = group_equal_rows([one, some_rows(other, partners)], False, stages)
        i, j, similarity = expand(a, b, search(a, b, tau, stages), stages)
        i, j = rows[i].astype(np.int32), partners[j].astype(np.int32)
    return Pairs(i, j, similarity, len(left), stages.seconds, stages.counters, n_right=len(right))


def some_rows(vectors: Vectors, rows: NDArray[np.int64]) -> Vectors:
    """Return some rows, ascending, without names."""
    if len(rows) == len(vectors):
        return vectors
    indptr, entries = take_rows(vectors.indptr, rows)
    return unchecked(
        Vectors,
        indptr=indptr,
        ids=vectors.ids[entries],
        counts=vectors.counts[entries],
        lengths=vectors.lengths[rows],
        doc_ids=RowNumbers(len(rows)),
        vocabulary=None,
    )
