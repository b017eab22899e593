"""Pages in Python objects: lists, data frames, tables, data sets and iterators of dicts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from spotsigs.errors import InputError, did_you_mean, require, shown

_ELEMENTS = """a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big blink
    blockquote body br button canvas caption center cite code col colgroup data datalist dd del details dfn dialog dir
    div dl dt em embed fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup
    hr html i iframe img input ins kbd keygen label legend li link main map mark marquee menu meta meter nav nobr
    noembed noframes noscript object ol optgroup option output p param picture plaintext pre progress q rb rp rt rtc
    ruby s samp script search section select slot small source span strike strong style sub summary sup svg table tbody
    td template textarea tfoot th thead time title tr track tt u ul var video wbr xmp"""
_ELEMENT = f"(?:{'|'.join(sorted(_ELEMENTS.split(), key=len, reverse=True))})"
_BEGINS_AS_HTML = re.compile(
    rf"\A\ufeff?\s*+(?:<!--.{{0,10000}}?-->\s*+)?(?:<!doctype\s++html\b|<\?xml\s|<{_ELEMENT}(?:\s[^<>]*+|/)?>)",
    re.IGNORECASE | re.DOTALL,
)
_END_TAG = re.compile(rf"</{_ELEMENT}\s*+>", re.IGNORECASE)

NAMES = {"text": "text", "html": "html", "id": "id", "date": "date"}
"""Usual names of the columns; one that the caller names must exist."""

_FRAMES = {  # the attribute that has the names of the columns
    "pandas.DataFrame": "columns",
    "polars.DataFrame": "columns",
    "pyarrow.Table": "column_names",
    "pyarrow.RecordBatch": "column_names",
    "datasets.Dataset": "column_names",
}
_SERIES = ("pandas.Series", "polars.Series", "pyarrow.ChunkedArray", "numpy.ndarray")


def is_html(content: str | bytes) -> bool:
    """Return whether a page that is in no column is HTML.

    It begins with a document type, an XML declaration or the tag of an element of HTML, or has the end tag of one. A
    text with ``vector<int>``, ``<ann@example.org>`` or a lone ``<b>`` is text.
    """
    text = content if isinstance(content, str) else content.decode("latin-1").removeprefix("ï»¿")
    return _BEGINS_AS_HTML.match(text) is not None or _END_TAG.search(text) is not None


class InputPage(NamedTuple):
    """The content of a page, None where it is missing, of any type; and whether it is HTML.

    The column of a row decides, as in the command. ``html`` is None for a page that is in no column.
    """

    content: Any
    html: bool | None


@dataclass(frozen=True)
class InputPages:
    """The pages of the input, which are read once, in order, and functions that return its other parts."""

    pages: Iterable[InputPage]
    n: int | None  # number of pages; None if it is known only after reading
    column: Callable[[str], Sequence[Any] | None]  # of ids or dates, by name, after reading; None without one
    take: Callable[[list[int]], Any]  # some rows, as an object of the type of the input


def input_pages(pages: Any, columns: Mapping[str, str], *, kept: bool = True) -> InputPages:
    """Return the pages of a list, frame, table, data set or iterator.

    Parameters
    ----------
    pages : iterable of str, bytes or dict, pandas or polars frame or series, pyarrow Table or array, datasets.Dataset
        The input; named tuples, as ir_datasets returns them, are read like dicts.
    columns : mapping of str to str
        Names of columns, or keys of the dicts, by `NAMES`.
    kept : bool
        Whether rows will be taken from it, so that rows of an iterator stay in memory.

    Raises
    ------
    InputError
        If it is a single page or a dict, has no column with pages or no column that the caller names, or has several
        columns of one name.
    """
    for option, name in columns.items():
        named = isinstance(name, (str, int)) and not isinstance(name, bool)
        require(named, f"{option} must be the name of a column, got {shown(name)}")
    if isinstance(pages, (str, bytes, bytearray)):
        raise InputError("pages must be an iterable of pages, got a single one; put it into a list")
    kind = f"{type(pages).__module__.partition('.')[0]}.{type(pages).__name__}"
    if isinstance(pages, Mapping):
        parts = (
            "its splits; give one of them" if kind == "datasets.DatasetDict" else "its keys; give list(pages.values())"
        )
        raise InputError(f"pages is a {type(pages).__name__}, which iterates over {parts}")
    if kind == "polars.LazyFrame":
        raise InputError("pages is a LazyFrame; give pages.collect()")
    wanted = NAMES | dict(columns)
    if kind in _FRAMES:
        return _frame(pages, list(getattr(pages, _FRAMES[kind])), wanted)
    if kind in _SERIES or (kind.startswith("pyarrow.") and "Array" in kind):
        listed = [InputPage(present(value), None) for value in _values(pages)]
        return InputPages(listed, len(listed), lambda _: None, partial(_taken, pages))
    if not isinstance(pages, Iterable):
        raise InputError(
            f"pages is a {type(pages).__name__}, which contains no pages; give a list, frame, table or data set"
        )
    if not isinstance(pages, (Iterator, Sequence, set, frozenset)):
        pages = list(pages) if hasattr(pages, "__len__") else iter(pages)
    rows = _Rows(pages, wanted, kept)
    return InputPages(rows, None if isinstance(pages, Iterator) else len(pages), rows.column, rows.take)


def present(value: Any) -> Any:
    """Return a value, None for the missing values of pandas and for NaN."""
    missing = type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    return None if missing else value


def _page(html: Any, text: Any) -> InputPage:
    """Return the content of a row that may have both columns: the column of HTML counts if it is not empty."""
    html, text = present(html), present(text)
    empty = isinstance(html, (str, bytes)) and len(html) == 0
    use_text = html is None or (empty and text is not None)
    return InputPage(text, False) if use_text else InputPage(html, True)


def _frame(pages: Any, names: list[Any], wanted: Mapping[str, Any]) -> InputPages:
    for option, name in wanted.items():
        require(names.count(name) <= 1, f"pages has {names.count(name)} columns named {name!r}; rename all but one")
        if name != NAMES[option] and name not in names:
            known = ", ".join(map(str, names))
            raise InputError(f"pages has no column {name!r}; name one by {option}=; its columns are {known}")
    _require_content(wanted, names)

    def column(name: str) -> Sequence[Any] | None:
        return _values(pages[name]) if name in names else None

    nothing = [None] * len(pages)
    html, text = (column(wanted[option]) or nothing for option in ("html", "text"))
    listed = [_page(*contents) for contents in zip(html, text, strict=True)]
    return InputPages(listed, len(listed), column, partial(_taken, pages))


def _require_content(wanted: Mapping[str, Any], names: Iterable[Any]) -> None:
    names = list(names)
    if wanted["text"] not in names and wanted["html"] not in names:
        raise InputError(
            f"pages has neither a column {wanted['text']!r} nor {wanted['html']!r}; name one by text= or html=; its "
            f"columns are {', '.join(map(str, names))}{did_you_mean(wanted['text'], map(str, names))}"
        )


def _values(column: Any) -> list[Any]:
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(column)


def _taken(pages: Any, rows: list[int]) -> Any:
    """Return some rows of a frame, table, data set, series or array."""
    numbers = np.array(rows, np.int64)
    if hasattr(pages, "iloc"):
        return pages.iloc[numbers]
    if type(pages).__module__.startswith("datasets"):
        return pages.select(numbers)
    return _slices(pages, rows) if type(pages).__module__.startswith("pyarrow") else pages[numbers]


def _slices(pages: Any, rows: list[int]) -> Any:
    """Return some rows of an Arrow object as slices, because Arrow has no function that takes rows of every type."""
    import pyarrow as pa

    edges = np.flatnonzero(np.diff(rows, prepend=-2) != 1).tolist()
    parts = [pages.slice(rows[a], b - a) for a, b in pairwise([*edges, len(rows)])] or [pages.slice(0, 0)]
    if isinstance(pages, pa.Table):
        return pa.concat_tables(parts)
    if isinstance(pages, pa.ChunkedArray):
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks], pages.type)
    if isinstance(pages, pa.RecordBatch):
        columns = [pa.concat_arrays([part.column(k) for part in parts]) for k in range(pages.num_columns)]
        return pa.RecordBatch.from_arrays(columns, schema=pages.schema)
    return pa.concat_arrays(parts)


class _Rows:
    """Pages that are read one by one: contents, dicts or named tuples. The first row decides which."""

    def __init__(self, pages: Iterable[Any], wanted: Mapping[str, Any], kept: bool) -> None:
        self._pages, self._wanted = pages, wanted
        self._kept: list[Any] | None = [] if isinstance(pages, Iterator) and kept else None
        self._columns: dict[str, list[Any]] = {wanted[option]: [] for option in ("id", "date")}
        self._seen: set[str] = set()

    def __iter__(self) -> Iterator[InputPage]:
        first: Mapping[Any, Any] | None = None
        for number, row in enumerate(self._pages):
            fields = row._asdict() if hasattr(row, "_asdict") else row
            is_table = isinstance(fields, Mapping)
            if number == 0:
                first = fields if is_table else None
            alike = is_table == (first is not None)
            require(alike, f"page {number} is a {type(row).__name__}, unlike the first one; give rows of one type")
            if self._kept is not None:
                self._kept.append(row)
            yield self._content(fields) if is_table else InputPage(present(row), None)
        if first is not None:
            self._require_columns(first)

    def _content(self, fields: Mapping[Any, Any]) -> InputPage:
        for name, values in self._columns.items():
            values.append(present(fields.get(name)))
        self._seen.update(name for name in self._wanted.values() if name in fields)
        return _page(fields.get(self._wanted["html"]), fields.get(self._wanted["text"]))

    def _require_columns(self, first: Mapping[Any, Any]) -> None:
        for option, name in self._wanted.items():
            if name not in self._seen and name != NAMES[option]:
                keys = ", ".join(map(str, first))
                raise InputError(f"no row has a key {name!r}; name one by {option}=; the first has {keys}")
        if not self._seen & {self._wanted["text"], self._wanted["html"]}:
            _require_content(self._wanted, first)

    def column(self, name: str) -> list[Any] | None:
        """Return a column of ids or dates; None where no row has it."""
        return self._columns.get(name) if name in self._seen else None

    def take(self, rows: list[int]) -> Any:
        """Return some rows: an iterator of an iterator, else a list, tuple or set."""
        if self._kept is not None:
            return map(self._kept.__getitem__, rows)
        listed = self._pages if isinstance(self._pages, Sequence) else list(self._pages)
        stay = [listed[row] for row in rows]
        return type(self._pages)(stay) if type(self._pages) in (tuple, set, frozenset) else stay  # type: ignore[call-arg]
