"""Rows of features in compressed sparse form, checked and brought into order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.row_blocks import spans
from spotsigs.errors import InputError, require

INT32_MAX = np.iinfo(np.int32).max


def normalise_csr(indptr: Any, ids: Any, counts: Any) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Check CSR arrays as `Vectors.from_csr` takes them, sort each row by id and add up repeated ids."""
    indptr = as_array("indptr", indptr).astype(np.int64)
    ids = as_array("ids", ids)
    counts = np.ones(len(ids), np.int32) if counts is None else as_array("counts", counts)
    require_csr(indptr, ids, counts)
    require(bool(np.all(np.diff(indptr) >= 0)), "indptr must not decrease")
    return _sorted_rows(indptr, ids.astype(np.int32), counts.astype(np.int32))


def require_csr(indptr: NDArray[Any], ids: NDArray[Any], counts: NDArray[Any]) -> None:
    """Refuse arrays whose ends do not fit each other, and ids or counts out of range."""
    require(len(indptr) >= 1 and indptr[0] == 0, "indptr must start with 0 (one more entry than there are rows)")
    require(int(indptr[-1]) == len(ids), f"indptr ends at {indptr[-1]}, but there are {len(ids):,} ids")
    require(len(counts) == len(ids), f"counts has {len(counts)} entries for {len(ids)} ids; give one per id")
    if len(ids):
        require(
            ids.min() >= 0 and ids.max() <= INT32_MAX,
            f"ids must be in [0, 2**31), got {ids.min()} to {ids.max()}; number your features contiguously",
        )
        require(
            counts.min() >= 1 and counts.max() <= INT32_MAX,
            f"counts must be positive and below 2**31, got {counts.min()} to {counts.max()}",
        )


def as_array(name: str, values: Any, kinds: str = "iu") -> NDArray[Any]:
    """Return values as a one-dimensional array of integers, or of other NumPy kinds, or raise `InputError`."""
    what = "integers" if kinds == "iu" else "numbers"
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        raise InputError(f"{name} must be a one-dimensional array of {what}, got nested sequences") from None
    if array.size == 0 and array.ndim == 1 and array.dtype.kind in "fiu":
        return array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in kinds:
        raise InputError(f"{name} must be a one-dimensional array of {what}, got {array.dtype} of shape {array.shape}")
    return array


def require_rows(indptr: NDArray[Any], ids: NDArray[Any], counts: NDArray[Any], lengths: NDArray[Any]) -> None:
    """Refuse offsets that decrease, rows whose ids do not ascend, and lengths that are not sums of counts.

    One block of rows is checked at a time, so that no array of the size of the entries is made.
    """
    for span in spans(len(lengths)):
        starts = indptr[span.start : span.stop + 1]
        require(bool((starts[1:] >= starts[:-1]).all()) and int(starts[0]) >= 0, "indptr must not decrease")
        require(int(starts[-1]) <= len(ids), "indptr must not decrease")
        entries = slice(int(starts[0]), int(starts[-1]))
        local = (starts - starts[0]).astype(np.int64)
        rising = _is_sorted_within(local, ids[entries])
        require(rising, "ids must ascend within each row; Vectors.from_csr sorts them")
        sums = row_sums(local, counts[entries])
        require(bool((sums == lengths[span]).all()), "lengths must be the sums of the counts of each row")


def _is_sorted_within(indptr: NDArray[Any], ids: NDArray[Any]) -> bool:
    """Return whether the ids of each row ascend without repeats; the offsets must be valid."""
    rising = np.ones(len(ids), dtype=bool)
    np.greater(ids[1:], ids[:-1], out=rising[1:])
    rising[indptr[:-1][indptr[1:] > indptr[:-1]]] = True
    return bool(rising.all())


def _sorted_rows(
    indptr: NDArray[np.int64], ids: NDArray[np.int32], counts: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    if _is_sorted_within(indptr, ids):
        return indptr, ids, counts
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((ids, rows))
    rows, ids = rows[order], ids[order]
    first = np.ones(len(ids), dtype=bool)
    first[1:] = (ids[1:] != ids[:-1]) | (rows[1:] != rows[:-1])
    totals = np.add.reduceat(counts[order].astype(np.int64), np.flatnonzero(first))
    require(int(totals.max()) <= INT32_MAX, "the counts of one id in one row add up to more than 2**31 - 1")
    sizes = np.bincount(rows[first], minlength=len(indptr) - 1)
    return row_starts(sizes), ids[first], totals.astype(np.int32)


def row_starts(sizes: Any) -> NDArray[np.int64]:
    """Return the offsets of contiguous rows of some sizes, and the end of the last one."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def take_rows(indptr: NDArray[np.int64], rows: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the offsets of some rows when they are stored contiguously, and the entries of which they consist."""
    starts = row_starts(indptr[rows + 1] - indptr[rows])
    return starts, np.arange(starts[-1]) + np.repeat(indptr[rows] - starts[:-1], np.diff(starts))


def row_sums(indptr: NDArray[np.int64], counts: NDArray[Any]) -> NDArray[np.int64]:
    """Return the sum of the counts of each row, int64, shape (n,)."""
    return np.diff(row_starts(counts)[indptr])
