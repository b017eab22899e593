"""Arrow arrays made from buffers: ``pyarrow.array`` and ``pyarrow.scalar`` import pandas, half a second for one row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
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
    texts = ["" if value is None else value for value in given]
    content = "".join(texts)
    lengths = map(len, texts if content.isascii() else map(str.encode, texts))
    ends = np.cumsum(np.fromiter(chain([0], lengths), np.int64, len(texts) + 1))
    known = np.array([value is not None for value in given] if None in given else [], bool)
    stored = pa.py_buffer(ends), pa.py_buffer(content.encode())
    return pa.LargeStringArray.from_buffers(len(texts), *stored, _bitmap(known)).cast(pa.string())


def chosen_text(texts: Sequence[str | None], numbers: NDArray[Any]) -> Any:
    """Return one of a few texts for each row, by its number, as an Arrow array; None is null."""
    return arrow_text(texts).take(arrow_numbers(numbers.astype(np.int32)))


def null_unless(flags: NDArray[np.bool_], column: Any) -> Any:
    """Return an Arrow array with null in the rows whose flag is not set."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(arrow_numbers(flags), column, pa.nulls(len(column), column.type))


def mapped_text(column: Any, text: Callable[[Any], str]) -> Any:
    """Return a text for each value of an Arrow array by a function, which gets None for null.

    The function is called once for each distinct value.
    """
    coded = column.dictionary_encode(null_encoding="encode")
    return arrow_text(map(text, coded.dictionary.to_pylist())).take(coded.indices)


def concatenated(*parts: Any) -> Any:
    """Return the parts of each row as one text, without the parts that are null, as an Arrow array of large strings.

    A part is an Arrow array of texts, or a string for all rows.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    of_rows = [arrow_text([part])[0] if isinstance(part, str) else part for part in (*parts, "")]  # "" between parts
    return pc.binary_join_element_wise(*(part.cast(pa.large_string()) for part in of_rows), null_handling="replace")


def lines(columns: Sequence[Any], separator: str) -> memoryview:
    """Return the rows of Arrow arrays of texts as lines in UTF-8, with a separator between the cells; null is empty."""
    first, *others = columns
    rows = concatenated(first, *chain.from_iterable((separator, column) for column in others), "\n")
    _, ends, content = rows.buffers()
    return memoryview(content)[: np.frombuffer(ends, np.int64)[len(rows)]] if len(rows) else memoryview(b"")


def tab_separated(columns: Sequence[Any], cell: Callable[[Any], str]) -> str:
    """Return the rows of Arrow arrays as tab-separated lines, each value by a function, which gets None for null."""
    return str(lines([mapped_text(column, cell) for column in columns], "\t"), "utf-8")


def arrow_numbers_or_null(values: NDArray[Any]) -> Any:
    """Return numbers as an Arrow array of float64; NaN is null."""
    import pyarrow as pa

    stored = pa.py_buffer(np.ascontiguousarray(values, np.float64))
    return pa.Array.from_buffers(pa.float64(), len(values), [_bitmap(~np.isnan(values)), stored])


def _bitmap(known: NDArray[np.bool_]) -> Any:
    """Return which values are known as a bitmap; None if all are."""
    import pyarrow as pa

    return None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
