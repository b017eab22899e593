"""What the join of two blocks costs, measured on their rows before it runs, and where to cut it.

Reading, packing and inverting grow with the rows; looking for partners grows with the *visits*: for each row, the rows
of admissible length with a signature of its prefix in theirs (see `bounds`), once for each such signature.
Rows of one length and a common vocabulary all visit each other: a few of them cost more than millions of others.

Visits are counted in one pass, without a visit being made, and bound the work from above, but for the little that rows
of one band add by sharing the longest prefix. Where the bound is not low enough to let the join run, a sample of the
rows is joined and what it does is counted. Work is a number of operations, not of seconds, so that every machine cuts
alike.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.matching.bounds import bounds
from spotsigs.matching.join_kernels import MAX_CLASSES, _frequency_class
from spotsigs.records import Vectors

A_CANDIDATE = 8
"""Work of a candidate, where a visit is 1: its meeting counted, its sketch compared."""

A_PAIR = 25
"""Work of a similar pair: listed, spread over copies, sorted, written."""

AN_ENTRY = 16
"""Work of an entry that is read, packed and inverted."""

MOST_WORK = 2**31
"""Work beyond which a task is split: about three seconds of a core."""

SHARE = 4
"""How much of a part's work must at least be that of its own rows, beside reading the other block again."""

SAMPLE = 64
"""Every so manieth row is joined to count the work of all."""

LONGEST = 1 << 16
"""Greatest length whose prefix is tabulated; a longer document is taken to have the same one."""


def limit(most: int, entries: int) -> int:
    """Return the work that a task of two blocks may have: `most`, or several times what reading them takes."""
    return max(most, SHARE * AN_ENTRY * entries)


def bound(a: Vectors, b: Vectors | None, tau: float) -> NDArray[np.int64]:
    """Bound the work of each row of a join.

    Every second visit at most makes a candidate, which is compared token by token at most.

    Parameters
    ----------
    a : Vectors
        Rows in ascending order of length.
    b : Vectors or None
        Rows that are not shorter, likewise, with the same ids; None for a join of `a` with itself.
    tau : float
        Similarity threshold.

    Returns
    -------
    ndarray of int64
        For each row of `b`; of `a` with itself, of its join with the rows before it.
    """
    later = a if b is None else b
    return visits(a, b, tau) * (1 + (A_CANDIDATE + later.lengths) // 2)


def counted(counters: Mapping[str, int], pairs: int, length: float) -> int:
    """Return the work that a join has done.

    Parameters
    ----------
    counters : mapping
        Of `spotsigs.matching.tight.self_join`, without ``postings`` and the others where nothing was joined.
    pairs : int
        How many it found.
    length : float
        Mean length of the rows.
    """
    candidates, verified = counters.get("candidates", 0), counters.get("verifications", 0)
    return int(counters.get("postings", 0) + A_CANDIDATE * candidates + length * verified + A_PAIR * pairs)


def cuts(work: NDArray[np.int64], parts: int) -> list[int]:
    """Cut rows into so many stretches of about equal work, none of them empty; return their edges."""
    behind = np.cumsum(work, dtype=np.float64)
    places = np.searchsorted(behind, behind[-1] * np.arange(1, parts) / parts, side="left") + 1
    return [0, *(int(place) for place in np.unique(places) if place < len(work)), len(work)]


def visits(a: Vectors, b: Vectors | None, tau: float) -> NDArray[np.int64]:
    """Count the visits of each row of `b` to rows of `a`, or of `a` to rows before it; see `bound`."""
    sides = [a] if b is None else [a, b]
    n_signatures = max(side.n_signatures for side in sides)
    frequencies = np.zeros(n_signatures, np.int64)
    for side in sides:
        frequencies += np.bincount(side.ids, minlength=n_signatures)
    classes = _classes(frequencies)
    del frequencies
    lengths = [np.minimum(side.lengths, LONGEST) for side in sides]
    tables = bounds(tau, int(max(part.max(initial=1) for part in lengths)))
    # a row is indexed for partners that are not shorter, and looks for partners that are not longer
    n = np.arange(len(tables.shortest))
    indexed = np.minimum(n - tables.least[2 * n] + tables.meetings, n)
    one = _in_prefix(a.indptr, a.ids, a.counts, indexed[lengths[0]], classes)
    later = sides[-1]
    other = _in_prefix(later.indptr, later.ids, later.counts, tables.probed[lengths[-1]].astype(np.int64), classes)
    met = np.zeros(n_signatures, np.int64)
    return np.asarray(
        _visit((a.indptr, a.ids, a.lengths, one), (later.indptr, later.ids, later.lengths, other), b is None, tau, met)
    )


@njit(cache=True, nogil=True)
def _classes(frequencies):  # type: ignore[no-untyped-def]
    classes = np.empty(len(frequencies), np.uint8)
    for s in range(len(frequencies)):
        classes[s] = _frequency_class(frequencies[s])
    return classes


@njit(cache=True, nogil=True)
def _in_prefix(indptr, ids, counts, sizes, classes):  # type: ignore[no-untyped-def]
    """Tell for each entry whether it is in its row's prefix: classes of rare signatures first, then by id."""
    inside = np.zeros(len(ids), np.bool_)
    tokens = np.empty(MAX_CLASSES, np.int64)
    for r in range(len(sizes)):
        left = sizes[r]
        tokens[:] = 0
        for k in range(indptr[r], indptr[r + 1]):
            tokens[classes[ids[k]]] += counts[k]
        last = 0
        while last < MAX_CLASSES - 1 and tokens[last] < left:
            left -= tokens[last]
            last += 1
        for k in range(indptr[r], indptr[r + 1]):
            own = classes[ids[k]]
            inside[k] = own < last or (own == last and left > 0)
            if own == last:
                left -= counts[k]
    return inside


@njit(cache=True, nogil=True)
def _visit(a, b, own, tau, met):  # type: ignore[no-untyped-def]
    """Count, with rows of `a` entering and leaving the table of those that the length of each row of `b` admits."""
    indptr_a, ids_a, lengths_a, indexed = a
    indptr, ids, lengths, probed = b
    found = np.zeros(len(lengths), np.int64)
    first = 0
    last = 0 if own else len(lengths_a)
    for k in range(indptr_a[last]):
        met[ids_a[k]] += indexed[k]
    for r in range(len(lengths)):
        while first < last and lengths_a[first] / max(lengths[r], 1) < tau:
            for k in range(indptr_a[first], indptr_a[first + 1]):
                met[ids_a[k]] -= indexed[k]
            first += 1
        for k in range(indptr[r], indptr[r + 1]):
            if probed[k]:
                found[r] += met[ids[k]]
        if own:
            for k in range(indptr_a[r], indptr_a[r + 1]):
                met[ids_a[k]] += indexed[k]
            last += 1
    return found
