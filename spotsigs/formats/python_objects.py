"""Pages in whatever holds them: lists, frames, tables, data sets, iterators of dicts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spotsigs.errors import InputError

LOOKS_LIKE_A_TAG = re.compile(r"<[!/a-zA-Z][^<>]{0,1000}>")
"""Text with a match is read as HTML where no media type is known."""


@dataclass(frozen=True)
class Given:
    """What was given, as a list of pages.

    Attributes
    ----------
    pages : sequence of (str or bytes)
        Their contents; empty where a row has none.
    column : callable
        ``(name) -> list``, another column; None where there is none.
    take : callable
        ``(rows) -> same kind``: some rows of what was given, in order.
    """

    pages: Sequence[str | bytes]
    column: Callable[[str], Sequence[Any] | None]
    take: Callable[[list[int]], Any]


def given(pages: Any, text: str = "text") -> Given:
    """Return the pages of a list, frame, table or data set.

    Parameters
    ----------
    pages : iterable of str, bytes or dict, pandas or polars frame or series, pyarrow Table or array, datasets.Dataset
        What holds the pages; named tuples, as ir_datasets gives them, are like dicts.
    text : str
        Column, or key of the dicts, with the content.

    Returns
    -------
    Given

    Raises
    ------
    InputError
        If it is a single page, a dict, or has no such column.
    """
    if isinstance(pages, (str, bytes)):
        raise InputError("pages must be an iterable of pages, got a single one; put it into a list")
    kind = f"{type(pages).__module__.partition('.')[0]}.{type(pages).__name__}"
    if isinstance(pages, Mapping):
        what = (
            "its splits; give one of them" if kind == "datasets.DatasetDict" else "its keys; give list(pages.values())"
        )
        raise InputError(f"pages is a {type(pages).__name__}, which iterates over {what}")
    if kind == "polars.LazyFrame":
        raise InputError("pages is a LazyFrame; give pages.collect()")
    if kind in ("pandas.Series", "polars.Series", "pyarrow.ChunkedArray") or (
        kind.startswith("pyarrow.") and "Array" in kind
    ):
        values = pages.to_list() if hasattr(pages, "to_list") else pages.to_pylist()
        take = (lambda rows: pages.iloc[rows]) if kind == "pandas.Series" else _taker(pages)
        return Given(_contents(values), lambda _: None, take)
    names = _column_names(pages, kind)
    if names is not None:
        if text not in names:
            raise InputError(
                f"pages has no column {text!r}; name one by text=; its columns are {', '.join(map(str, names))}"
            )
        return Given(
            _contents(_values(pages[text])), lambda name: _values(pages[name]) if name in names else None, _taker(pages)
        )
    if not isinstance(pages, Iterable):
        raise InputError(
            f"pages is a {type(pages).__name__}, which holds no pages; give a list, frame, table or data set"
        )
    return _rows(pages, text)


def _column_names(pages: Any, kind: str) -> list[Any] | None:
    if kind in ("pandas.DataFrame", "polars.DataFrame"):
        return list(pages.columns)
    if kind in ("pyarrow.Table", "datasets.Dataset"):
        return list(pages.column_names)
    return None


def _values(column: Any) -> list[Any]:
    for name in ("to_pylist", "to_list"):
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(column)


def _taker(pages: Any) -> Callable[[list[int]], Any]:
    if hasattr(pages, "iloc"):
        return lambda rows: pages.iloc[rows]
    if hasattr(pages, "select") and hasattr(pages, "column_names") and not hasattr(pages, "schema"):
        return lambda rows: pages.select(rows)
    if type(pages).__module__.startswith("pyarrow"):
        return lambda rows: pages.take(_arrow_rows(rows))
    return lambda rows: pages[rows]


def _arrow_rows(rows: list[int]) -> Any:
    import pyarrow as pa

    return pa.array(rows, pa.int64())


def _rows(pages: Iterable[Any], text: str) -> Given:
    """Return pages that come one by one: contents, or dicts or named tuples with one."""
    rows = list(pages)
    dicts = [row._asdict() if hasattr(row, "_asdict") else row for row in rows]
    is_table = bool(dicts) and all(isinstance(row, Mapping) for row in dicts)
    if is_table and not any(text in row for row in dicts):
        raise InputError(f"no row has a key {text!r}; name one by text=; the first has {', '.join(map(str, dicts[0]))}")
    contents = [row.get(text) for row in dicts] if is_table else rows

    def take(kept: list[int]) -> Any:
        stay = [rows[k] for k in kept]
        if isinstance(pages, Iterator):
            return iter(stay)
        return tuple(stay) if isinstance(pages, tuple) else stay

    def column(name: str) -> list[Any] | None:
        return [row.get(name) for row in dicts] if is_table and any(name in row for row in dicts) else None

    return Given(_contents(contents) if is_table else contents, column, take)


def _contents(values: Sequence[Any]) -> list[Any]:
    """Return contents; what is missing (None, NaN) is an empty page, which is like no other."""
    return ["" if value is None or value != value else value for value in values]
