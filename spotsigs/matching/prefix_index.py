"""Rows with prefixes, and inverted indexes of them: the arrays of `spotsigs.matching.prefix_kernels`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.parallel import concatenated, distinct, over_blocks
from spotsigs.matching import prefix_kernels as kernels
from spotsigs.matching.bounds import least_overlap, prefixes
from spotsigs.matching.join_kernels import Rows
from spotsigs.matching.prefix_kernels import MAX_SHARED, Indexed, Lists, Prefixed, Units
from spotsigs.signatures.contained import NO_RULE, RemovalRule

BITS_A_TOKEN = 8
"""Bits of an index for each token at least, unless there are fewer signatures than bits."""

EXACT = 2**48
"""Length up to which bounds are exact. The prefix of a longer row is the whole row, of any partner."""


def prefixed(
    rows: Rows,
    lengths: NDArray[np.int64],
    classes: NDArray[np.uint8],
    tau: float,
    rule: RemovalRule = NO_RULE,
    documents: NDArray[np.int64] | None = None,
    *,
    threads: int | None = None,
) -> Prefixed:
    """Return rows with their prefixes, by the class of frequency of each entry.

    Prefixes are of the pairs that the rule allows; the rows are of the ``documents``, by default of all in order.
    """
    shortest, shared, sizes = bounds_of(lengths, tau)
    if rule.least_bound > 0:
        missing = rule.missing if documents is None else rule.missing[documents]
        # the overlap is at least this fraction of what the row and what is missing of it have together
        overlap = np.floor(rule.least_bound * (lengths + missing)).astype(np.int64) - 1
        sizes = np.maximum(np.minimum(sizes, lengths - overlap + shared), 0)
    select = partial(kernels.select_prefixes, rows, lengths, classes, sizes)
    numbers, tokens = concatenated(over_blocks(select, len(lengths), threads), (np.int64, np.uint64))
    return Prefixed(*rows, lengths, shortest, shared, row_starts(numbers), tokens)


def bounds_of(lengths: NDArray[np.int64], tau: float) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the bounds of `spotsigs.matching.bounds.prefixes` for each row of some length."""
    known = distinct(lengths)
    bounds = [np.where(known > EXACT, 1, bound) for bound in prefixes(tau, np.clip(known, 1, EXACT), MAX_SHARED)]
    bounds[2] = np.where(known > EXACT, known, bounds[2])
    at = np.searchsorted(known, lengths)
    shortest, shared, sizes = (bound[at] for bound in bounds)
    return shortest, shared, sizes


def units_for_longer(rows: Prefixed, tau: float) -> NDArray[np.int64]:
    """Return the units of weight of the prefix of each row that partners which are not shorter share with it."""
    known = distinct(rows.lengths)
    within = np.clip(known, 1, EXACT)
    _, shared, _ = prefixes(tau, within, MAX_SHARED)
    sizes = np.where(known > EXACT, known, within - least_overlap(tau, 2 * within) + shared)
    return sizes[np.searchsorted(known, rows.lengths)]


def empty_index(
    units: Units, rows: Prefixed, n_signatures: int, *, listed: NDArray[np.int64] | None = None, ascending: bool = False
) -> Indexed:
    """Return an index without postings that has capacity for all units.

    Parameters
    ----------
    units, rows : Units, Prefixed
        Units, and their rows.
    n_signatures : int
        Signatures of the collection.
    listed : ndarray of int64, optional
        Units of weight of each row that are listed; its whole prefix by default.
    ascending : bool
        Units will be listed in ascending order of length.
    """
    listed = np.full(len(rows.lengths), np.iinfo(np.int64).max) if listed is None else listed
    bits = 64
    while bits < min(n_signatures, BITS_A_TOKEN * len(rows.tokens)):
        bits *= 2
    marks = np.zeros(bits // 32, np.uint64)  # two words for each 64 bits
    kernels.mark_signatures(units, rows, listed, marks)
    lists = int(marks[-1]) + int(marks[-2]).bit_count()
    bounds = np.zeros(2 * lists, np.int64)
    capacity = kernels.count_postings(units, rows, listed, marks, bounds)
    postings = np.empty(4 * capacity, np.int32)  # the system allocates only the pages that are written
    return Indexed(units, rows, listed, Lists(marks, bounds, postings, ascending))


def full_index(units: Units, rows: Prefixed, n_signatures: int, *, listed: NDArray[np.int64] | None = None) -> Indexed:
    """Return an index of all units, whose lists ascend by length, then by unit."""
    index = empty_index(units, rows, n_signatures, listed=listed, ascending=True)
    kernels.list_units(index, np.argsort(rows.lengths[units.row_of], kind="stable"))
    return index


def as_units(rows: Prefixed) -> Units:
    """Return the rows as units of their own."""
    numbers: Any = np.arange(len(rows.lengths), dtype=np.int32)
    return Units(numbers, numbers, np.zeros(len(numbers), np.bool_), numbers)
