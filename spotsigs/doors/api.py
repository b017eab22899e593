"""Functions for pages in Python objects."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from functools import partial, wraps
from itertools import chain, islice, repeat, starmap
from types import NoneType
from typing import Any, NamedTuple, TypeVar, cast
from warnings import warn

import numpy as np

from spotsigs.arrays.row_blocks import gathered
from spotsigs.clustering.decisions import BY_SCORE, Keep, is_unordered
from spotsigs.clustering.decisions import keep_by as by_score
from spotsigs.clustering.in_memory import Matched
from spotsigs.compile import prepare, steps_of
from spotsigs.contracts import Collection, Shard
from spotsigs.errors import InputError, as_choice, as_tau, counted, require, shown
from spotsigs.formats.python_objects import InputPage, InputPages, input_pages, is_html, present
from spotsigs.method import BY_SCORE_NOTE, Method
from spotsigs.options import PROBED, Door, default_tau, elsewhere
from spotsigs.records import Document, IntArray, Pairs, Skipped
from spotsigs.workers.engines import Engine, engine_of

PagesT = TypeVar("PagesT")

BATCH = 256
"""Pages that are read before their texts are dropped and the progress bar moves."""

MOST_LISTED = 5
"""Pages that a warning names."""

CallT = TypeVar("CallT", bound=Callable[..., Any])


def _states_where(function: CallT) -> CallT:
    """State in the TypeError for a parameter that a function lacks where it is."""
    parameters = inspect.signature(function).parameters

    @wraps(function)
    def called(*args: Any, **given: Any) -> Any:
        for name in given.keys() - parameters.keys():
            if there := elsewhere(name, Door.function):
                raise TypeError(f"{function.__name__}() does not take {name}=; {there}")
        return function(*args, **given)

    return cast(CallT, called)


@_states_where
def near_duplicates(
    pages: Any,
    tau: float | None = None,
    *,
    against: Any = None,
    text: str = "text",
    html: str = "html",
    id: str = "id",  # noqa: A002 - the usual name of such columns
    method: Method | None = None,
    workers: int = 1,
    engine: Engine | str = "processes",
) -> Pairs:
    """Find all near-duplicate pairs among pages: exactly those whose similarity reaches tau.

    Parameters
    ----------
    pages : iterable of str, bytes or dict, pandas or polars frame or series, pyarrow Table or array, datasets.Dataset
        HTML or plain text; bytes are decoded by the declared or detected encoding. The texts of an iterator's pages
        are not stored.
    tau : float, optional
        Similarity threshold in (0, 1]. The default is the threshold of `method`. If that has none, it is .25 if
        templates are removed and one of the first pages has a link, and .44 otherwise.
    against : as pages, optional
        Reference: only pairs of a page with one of its pages are found. With the measure containment, the
        intersection is divided by the signatures of the latter: the page contains it.
    text, html : str
        Columns with plain text and with HTML, if pages has columns or consists of dicts; the HTML if a row has both. A
        page that is in no column is read as HTML if it contains a tag.
    id : str
        Column with the names of the pages for warnings and errors; positions if there is none.
    method : Method, optional
        Signatures, measure and all other choices, made by `spotsigs.Method.of`. The default is ``Method.of()``.
    workers : int
        Worker processes of the extraction, which receive the pages in batches.
    engine : {"processes", "serial", "dask"} or Engine
        Where the extraction runs. A running cluster is given by an engine with its address, such as
        ``spotsigs.workers.engines.Dask(workers=4, address="tcp://head:8786")``.

    Returns
    -------
    Pairs
        ``pairs.i`` and ``pairs.j`` are positions in ``pages``. A page that is missing (None, NaN) or cannot be read is
        in no pair, and a warning lists it. With a reference, ``pairs.j`` are positions in ``against``.

    Raises
    ------
    InputError
        If an option is out of range, there is no column with pages, a page is neither text nor bytes, or there are
        pages and none can be read.

    Examples
    --------
    >>> page = "The council has approved the plan for a new bridge that will be built by the spring."
    >>> pairs = near_duplicates([page, "Sport: a win for the home side in the rain.", page + " It is late."], tau=0.44)
    >>> [(int(i), int(j)) for i, j in zip(pairs.i, pairs.j)]
    [(0, 2)]

    A teaser in its article, found by containment:

    >>> pairs = near_duplicates([page[:60], page], method=Method.of(measure="containment", language="en", tau=0.8))
    >>> [(int(i), int(j)) for i, j in zip(pairs.i, pairs.j)]
    [(0, 1)]
    """
    chosen = replace(_method(method, tau), min_contained=0.0)  # lists all pairs
    runs = _engine(engine, workers)
    columns = {"text": text, "html": html, "id": id}
    given = _Pages(input_pages(pages, columns, kept=False), columns, against)
    return _match(chosen, given, runs).pairs()


@_states_where
def dedup(
    pages: PagesT,
    tau: float | None = None,
    *,
    against: Any = None,
    text: str = "text",
    html: str = "html",
    id: str = "id",  # noqa: A002 - the usual name of such columns
    date: str = "date",
    keep: str | Keep | None = None,
    keep_by: str | None = None,
    method: Method | None = None,
    workers: int = 1,
    engine: Engine | str = "processes",
) -> PagesT:
    """Return the pages without near-duplicates, in the type that they have.

    Parameters
    ----------
    pages, tau : optional
        As in `near_duplicates`. Rows of an iterator are stored with their contents in a temporary file.
    against : as pages, optional
        Reference, such as a test set. A page that reaches tau with one of its pages is removed; these are not returned.
    text, html, id : str
        As in `near_duplicates`.
    date : str
        Column with dates, for ``newest``: ISO 8601, or as in HTTP headers. A warning lists pages without one.
    keep : {"first", "longest", "newest", "none"}, optional
        Page of a cluster that is kept: the first, the one of most signatures, or the newest; ``none`` keeps only pages
        without a near-duplicate. The default is the choice of `method`, which is ``first`` if it was not given.
    keep_by : str, optional
        Column with a score: the page of the largest is kept, or with a hyphen before the name (``"-score"``) of the
        smallest, ties in the order of the pages. A warning lists pages whose score is missing or no number; they come
        last.
    method : Method, optional
        Signatures, clusters, the rule for the text and all other choices, made by `spotsigs.Method.of`. The default is
        ``Method.of()``.
    workers, engine : optional
        As in `near_duplicates`.

    Returns
    -------
    same type as pages
        A list for a list, a frame for a frame, a generator for an iterator. A page that is missing or cannot be read is
        kept, and a warning lists it.

    Raises
    ------
    InputError
        As `near_duplicates`, or if no page has a date for ``newest`` or a score for `keep_by`.

    Examples
    --------
    >>> page = "The council has approved the plan for a new bridge that will be built by the spring."
    >>> dedup([{"text": page, "n": 1}, {"text": page + " It is late.", "n": 2}])[0]["n"]
    1

    Pages of one language, of which a page is removed only if the kept page has half of its text:

    >>> len(dedup([page, page + " It is late."], method=Method.of(language="en", min_contained=0.5)))
    1
    """
    chosen = _method(method, tau)
    if keep_by is not None:
        require(isinstance(keep_by, str), f"keep_by must be the name of a column, got {shown(keep_by)}")
        require(keep in (None, "first", Keep.first), "keep_by= decides which page is kept; leave out keep=")
        keep, date = by_score(keep_by)
    if keep is not None:
        chosen = replace(chosen, keep=as_choice("keep", keep, Keep, BY_SCORE_NOTE))
    runs = _engine(engine, workers)
    columns = {"text": text, "html": html, "id": id}
    source = input_pages(pages, columns | {"date": date})
    result = _match(chosen, _Pages(source, columns, against), runs, listed=False)
    decisions, _ = result.method.decide(result.matched, dates=result.dates(date))
    kept = np.ones(result.n, np.bool_)
    kept[result.positions] = decisions.kept[result.matched.new_from :]
    return cast(PagesT, source.take(np.flatnonzero(kept).tolist()))


def _method(method: Method | None, tau: float | None) -> Method:
    """Return a method at a threshold; without one, the default method."""
    known = method is None or isinstance(method, Method)
    require(known, f"method must be a Method, as spotsigs.Method.of makes it, got {shown(method)}")
    chosen = Method.of() if method is None else method
    return chosen if tau is None else chosen.at(as_tau(tau))


def _engine(engine: Engine | str, workers: int) -> Engine:
    return engine if isinstance(engine, Engine) else engine_of(engine, workers=workers)


def _match(method: Method, given: _Pages, engine: Engine, *, listed: bool = True) -> _PagePairs:
    """Match the pages; warn about pages that cannot be read. If nobody chose a threshold, the pages decide."""
    if method.chooses_tau:
        pages = iter(given.source.pages)
        first = list(islice(pages, PROBED))
        given.source = replace(given.source, pages=chain(first, pages))
        pages_of_html = (page.content for page in first if _is_html(page))
        method = method.at(default_tau(pages_of_html, method.removes_templates))
    prepare(steps_of(method, listed=listed))
    matched = method.match(given, engine, listed=listed)
    for source, of_reference in ((given.reference, True), (given.source, False)):
        skipped = {int(record.id): record.reason for record in matched.skipped if record.of_reference == of_reference}
        if skipped and source is not None:
            effect = "of the reference cannot be read" if of_reference else _UNREAD
            _warn(effect, skipped, source.column(given.name))
    numbers = np.array(list(map(int, matched.doc_ids)), np.int64)
    old, new = np.split(numbers, [matched.n_reference])
    return _PagePairs(method, matched, new, old, len(new) + len(skipped), given)


_UNREAD = "cannot be read, compared with no other page and kept"


class _PagePairs(NamedTuple):
    """Pairs of the pages that could be read."""

    method: Method
    matched: Matched
    positions: IntArray  # of the pages that could be read among all pages, ascending
    referenced: IntArray  # of the pages of the reference that could be read
    n: int  # number of all pages
    given: _Pages

    def pairs(self) -> Pairs:
        """Return the pairs with positions among all pages."""
        pairs = self.matched.pairs
        if self.given.reference is not None:
            pairs = pairs.where(pairs.i < len(self.referenced))  # none, if no page of the reference can be read
            page, other = self.positions[pairs.j - len(self.referenced)], self.referenced[pairs.i]
            order = np.lexsort((other, page))
            page, other = (part[order].astype(np.int32) for part in (page, other))
            n_right = int(self.given.reference.n or 0)
            return Pairs(page, other, pairs.similarity[order], self.n, pairs.seconds, n_right=n_right)
        if len(self.positions) == self.n:
            return pairs
        i, j = (gathered(self.positions, rows).astype(np.int32) for rows in (pairs.i, pairs.j))
        overlap = pairs.overlap
        if overlap is not None:
            lengths = np.zeros(self.n, np.int64)
            lengths[self.positions] = overlap.lengths
            overlap = replace(overlap, lengths=lengths)
        return replace(pairs, i=i, j=j, n=self.n, overlap=overlap)

    def dates(self, name: str) -> list[str | None] | None:
        """Return the dates or scores of the pages that could be read, for an order by them; warn about others."""
        keep, source = self.method.keep, self.given.source
        column = source.column(name) if keep in (Keep.newest, *BY_SCORE) else None
        if column is None:
            return None
        rows = self.positions.tolist()
        dates: list[str | None] = [None if present(column[row]) is None else str(column[row]) for row in rows]
        kind, order = ("score", "last") if keep in BY_SCORE else ("date", "as the oldest")
        unreadable = {
            row: f"the {kind} {date!r} cannot be read"
            for row, date in zip(rows, dates, strict=True)
            if is_unordered(keep, date)
        }
        if unreadable:
            are = "is" if len(unreadable) == 1 else "are"
            _warn(f"{are} taken {order}", unreadable, source.column(self.given.name))
        return [*repeat(None, self.matched.new_from), *dates]


def _warn(what: str, reasons: Mapping[int, str], names: Sequence[Any] | None) -> None:
    """Warn about some pages, the first of which are listed."""
    listed = [
        f"{number if names is None or names[number] is None else names[number]!r}: {reason}"
        for number, reason in islice(reasons.items(), MOST_LISTED)
    ]
    more = f"; and {len(reasons) - MOST_LISTED:,} more" if len(reasons) > MOST_LISTED else ""
    warn(f"{counted(len(reasons), 'page')} {what}; {'; '.join(listed)}{more}", stacklevel=5)


class _Pages(Collection):
    """The pages of the reference and the input, read once; as a sequence, shards, few of which are in memory."""

    def __init__(self, source: InputPages, columns: dict[str, str], against: Any) -> None:
        self.source, self.name = source, columns["id"]
        pages = list(against) if isinstance(against, Iterator) else against
        self.reference = None if pages is None else input_pages(pages, columns, kept=False)

    @property
    def reference_shards(self) -> int:
        """Return the number of shards of the reference."""
        return 0 if self.reference is None else -(-int(self.reference.n or 0) // BATCH)

    def shards(self) -> Any:
        """Return the collection itself, which yields the shards."""
        return self

    def without_pages(self, skipped: Sized) -> str | None:
        """Return the parameters that name the columns of pages; None if there is no page."""
        return "give other pages, or name their column by text= or html=" if skipped else None

    def __len__(self) -> int:
        return 0  # not known before reading

    def __iter__(self) -> Iterator[Shard]:
        for source in (self.source,) if self.reference is None else (self.reference, self.source):
            numbered = iter(enumerate(source.pages))
            while batch := list(islice(numbered, BATCH)):
                yield partial(starmap, _document, [self._checked(*page, source) for page in batch])

    def _checked(self, number: int, page: InputPage, source: InputPages) -> tuple[int, InputPage]:
        """Return a page with its number; its content must be text or bytes."""
        if not isinstance(page.content, (str, bytes, NoneType)):
            names = source.column(self.name)
            name = number if names is None else repr(names[number])
            raise InputError(f"page {name} is a {type(page.content).__name__}; give str or bytes")
        return number, page


def _is_html(page: InputPage) -> bool:
    """Return whether a page is HTML by its column, or by its content if it is in none."""
    known = page.html is not None or not isinstance(page.content, (str, bytes))
    return bool(page.html) if known else is_html(page.content)


def _document(number: int, page: InputPage) -> Document | Skipped:
    if page.content is None:
        return Skipped(str(number), "the page is missing (None)")
    media_type = "text/html" if _is_html(page) else "text/plain"
    return Document(id=str(number), content=page.content, media_type=media_type)
