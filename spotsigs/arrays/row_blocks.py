"""Operations on columns of a whole collection, in blocks.

NumPy converts the indices of a gather or a count to 64 bits first, eight bytes an entry for the whole column.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Entry = TypeVar("Entry", bound=np.generic)
IntArray = NDArray[np.integer[Any]]

SPAN = 1 << 16
"""Entries of a block: temporaries are small, and the loop costs little."""


def spans(n: int) -> Iterator[slice]:
    """Cut ``range(n)`` into blocks, in order."""
    return (slice(start, min(start + SPAN, n)) for start in range(0, n, SPAN))


def gathered(values: NDArray[Entry], indices: IntArray) -> NDArray[Entry]:
    """Return ``values[indices]``; both may be mapped."""
    out = np.empty(len(indices), values.dtype)
    for span in spans(len(indices)):
        out[span] = values[indices[span]]
    return out


def scattered(values: NDArray[Entry], indices: IntArray) -> NDArray[Entry]:
    """Return ``out`` with ``out[indices] = values``, where the indices are a permutation."""
    out = np.empty(len(values), values.dtype)
    for span in spans(len(values)):
        out[indices[span]] = values[span]
    return out


def tally(labels: IntArray, k: int) -> NDArray[np.int32]:
    """Return the number of occurrences of each of ``range(k)`` in fewer than 2**31 labels, int32, shape (k,)."""
    out = np.zeros(k, np.int32)
    for span in spans(len(labels)):
        np.add.at(out, labels[span], 1)
    return out


def is_identity(indices: IntArray) -> NDArray[np.bool_]:
    """Return ``indices == range(n)``, bool, shape (n,)."""
    out = np.empty(len(indices), np.bool_)
    for span in spans(len(indices)):
        out[span] = indices[span] == np.arange(span.start, span.stop)
    return out


def flagged(flags: NDArray[np.bool_], first: int = 0) -> Iterator[NDArray[np.int64]]:
    """Yield the indices of the flags that are set, from ``first`` on, in blocks."""
    for span in spans(len(flags)):
        if span.stop > first:
            start = max(span.start, first)
            positions = start + np.flatnonzero(flags[start : span.stop])
            if len(positions):
                yield positions
