"""Arrow arrays made from buffers: ``pyarrow.array`` and ``pyarrow.scalar`` import pandas, half a second for one row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def arrow_numbers(values: NDArray[Any]) -> Any:
    """Return numbers or booleans as an Arrow array, without a copy if Arrow stores them alike."""
    import pyarrow as pa

    kind = pa.from_numpy_dtype(values.dtype)
    stored = np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(stored)])


def as_ndarray(array: Any) -> NDArray[Any]:
    """Return an Arrow array of numbers without missing ones as an ndarray, without a copy."""
    kind = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return np.empty(0, kind)
    return np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]


def arrow_text(values: Iterable[str | None]) -> Any:
    """Return strings as an Arrow array; None is null."""
    import pyarrow as pa

    given = list(values)
    encoded = [b"" if value is None else value.encode() for value in given]
    ends = np.cumsum([0, *map(len, encoded)])
    stored = pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))
    return pa.LargeStringArray.from_buffers(len(encoded), *stored, _bitmap(given)).cast(pa.string())


def tab_separated(columns: Sequence[Any], cell: Callable[[Any], str]) -> str:
    """Return the rows of Arrow arrays as tab-separated lines, each value by a function, which gets None for null."""
    import pyarrow.compute as pc

    cells = []
    for column, end in zip(columns, ["\t"] * (len(columns) - 1) + ["\n"], strict=True):
        coded = column.dictionary_encode(null_encoding="encode")
        cells.append(arrow_text(cell(value) + end for value in coded.dictionary.to_pylist()).take(coded.indices))
    rows = pc.binary_join_element_wise(*cells, arrow_text([""])[0])
    ends = np.frombuffer(rows.buffers()[1], np.int32)
    return str(rows.buffers()[2][: int(ends[len(rows)])], "utf-8") if len(rows) else ""


def arrow_numbers_or_null(values: Sequence[float | None]) -> Any:
    """Return numbers as an Arrow array of float64; None is null."""
    import pyarrow as pa

    stored = pa.py_buffer(np.array(values, np.float64))
    return pa.Array.from_buffers(pa.float64(), len(values), [_bitmap(values), stored])


def _bitmap(values: Sequence[Any]) -> Any:
    """Return which values are known as a bitmap; None if all are."""
    import pyarrow as pa

    known = np.array([value is not None for value in values], bool)
    return None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
