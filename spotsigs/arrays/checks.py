"""Checks of the arrays of records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.errors import require, shown


def require_array(name: str, values: Any, kinds: str, length: int | None = None) -> None:
    """Check the kind of a one-dimensional array and, if given, its length."""
    array = isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in kinds
    require(array, f"{name} must be a one-dimensional array of numbers, got {_described(values)}")
    require(length is None or len(values) == length, f"{name} has {len(values)} entries where {length} are needed")


def _described(values: Any) -> str:
    return f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else shown(values)


def require_between(name: str, values: NDArray[Any], least: int, stop: int) -> None:
    """Check that the values are in ``[least, stop)``."""
    if len(values):
        low, high = int(values.min()), int(values.max())
        require(least <= low and high < stop, f"{name} must be in [{least}, {stop:,}), got {low} to {high:,}")


def require_iterable(name: str, rows: Any) -> None:
    """Check that the argument is an iterable of rows, not a text or a mapping."""
    listed = isinstance(rows, Iterable) and not isinstance(rows, str | bytes | Mapping)
    require(listed, f"{name} must be an iterable with one entry a row, got {shown(rows)}")
