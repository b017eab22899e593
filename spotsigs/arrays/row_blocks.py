"""Columns of a whole collection, gone through a span at a time.

NumPy turns the indices of a gather or a count into 64-bit numbers first: eight bytes an entry beside the columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Entry = TypeVar("Entry", bound=np.generic)
IntArray = NDArray[np.integer[Any]]

SPAN = 1 << 16
"""Entries at a time: few enough that what they take besides is nothing, and enough that the loop is."""


def spans(n: int) -> Iterator[slice]:
    """Cut ``range(n)`` into spans, in order."""
    return (slice(start, min(start + SPAN, n)) for start in range(0, n, SPAN))


def gathered(values: NDArray[Entry], places: IntArray) -> NDArray[Entry]:
    """Return ``values[places]``.

    Parameters
    ----------
    values : ndarray
        In memory or mapped.
    places : ndarray of int, shape (n,)
        Indices of values, in memory or mapped.

    Returns
    -------
    ndarray of the type of ``values``, shape (n,)
    """
    out = np.empty(len(places), values.dtype)
    for span in spans(len(places)):
        out[span] = values[places[span]]
    return out


def scattered(values: NDArray[Entry], places: IntArray) -> NDArray[Entry]:
    """Return the values in another order: ``out[places] = values``, where the places are a permutation."""
    out = np.empty(len(values), values.dtype)
    for span in spans(len(values)):
        out[places[span]] = values[span]
    return out


def tally(labels: IntArray, k: int) -> NDArray[np.int32]:
    """Return how often each of ``range(k)`` is among fewer than 2**31 labels, int32, shape (k,)."""
    out = np.zeros(k, np.int32)
    for span in spans(len(labels)):
        np.add.at(out, labels[span], 1)
    return out


def own(places: IntArray) -> NDArray[np.bool_]:
    """Return whether each place names itself: ``places == range(n)``, bool, shape (n,)."""
    out = np.empty(len(places), np.bool_)
    for span in spans(len(places)):
        out[span] = places[span] == np.arange(span.start, span.stop)
    return out


def flagged(flags: NDArray[np.bool_], first: int = 0) -> Iterator[NDArray[np.int64]]:
    """Yield the numbers of the flags that are set, from the one numbered ``first`` on, some at a time, in order."""
    for span in spans(len(flags)):
        if span.stop > first:
            start = max(span.start, first)
            found = start + np.flatnonzero(flags[start : span.stop])
            if len(found):
                yield found
