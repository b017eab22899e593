"""Arrow arrays made from buffers: ``pyarrow.array`` and ``pyarrow.scalar`` import pandas, half a second for one row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def numbers(values: NDArray[Any]) -> Any:
    """Return numbers or booleans as an Arrow array, without a copy if Arrow stores them alike."""
    import pyarrow as pa

    kind = pa.from_numpy_dtype(values.dtype)
    stored = np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(stored)])


def values(array: Any) -> NDArray[Any]:
    """Return an Arrow array of numbers without missing ones as an ndarray, without a copy."""
    kind = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return np.empty(0, kind)
    return np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]


def text(values: Iterable[str]) -> Any:
    """Return strings as an Arrow array."""
    import pyarrow as pa

    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)])
    array = pa.LargeStringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))
    return array.cast(pa.string())
