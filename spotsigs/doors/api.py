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

from spotsigs import defaults
from spotsigs.arrays.row_blocks import gathered
from spotsigs.clustering.clusters import ClusterMethod
from spotsigs.clustering.decisions import BY_SCORE, Keep, is_unordered
from spotsigs.clustering.decisions import keep_by as by_score
from spotsigs.clustering.in_memory import Matched
from spotsigs.compile import prepare, steps_of
from spotsigs.contracts import Collection, Shard, SignatureScheme
from spotsigs.errors import InputError, counted, require, shown
from spotsigs.formats.python_objects import InputPage, InputPages, input_pages, is_html, present
from spotsigs.method import Method
from spotsigs.records import Document, IntArray, Pairs, Skipped
from spotsigs.signatures.boilerplate import Boilerplate
from spotsigs.spelling import ELSEWHERE
from spotsigs.storage.exact_duplicates import Sameness
from spotsigs.workers.engines import Engine, engine_of

PagesT = TypeVar("PagesT")

BATCH = 256
"""Pages that are read before their texts are dropped and the progress bar moves."""

LISTED = 5
"""Pages that a warning names."""

CallT = TypeVar("CallT", bound=Callable[..., Any])


def _states_where(function: CallT) -> CallT:
    """State in the TypeError for a parameter that a function lacks where it is."""
    lacks = ELSEWHERE.keys() - inspect.signature(function).parameters.keys()

    @wraps(function)
    def called(*args: Any, **given: Any) -> Any:
        for name in given.keys() & lacks:
            raise TypeError(f"{function.__name__}() does not take {name}=; {ELSEWHERE[name]}")
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
    signature: SignatureScheme | str | None = None,
    language: str = defaults.LANGUAGE,
    boilerplate: Boilerplate | str | None = None,
    idf_min: float = defaults.IDF_MIN,
    idf_max: float = defaults.IDF_MAX,
    min_spots: int = 1,
    duplicates: Sameness | str = defaults.DUPLICATES,
    measure: str = defaults.MEASURE,
    threads: int | None = None,
    workers: int = 1,
    engine: str = "processes",
    address: str | None = None,
) -> Pairs:
    """Find all near-duplicate pairs among pages: exactly those whose similarity reaches tau.

    Parameters
    ----------
    pages : iterable of str, bytes or dict, pandas or polars frame or series, pyarrow Table or array, datasets.Dataset
        HTML or plain text; bytes are decoded by the declared or detected encoding. The texts of an iterator's pages
        are not stored.
    tau : float, optional
        Similarity threshold in (0, 1]. By default .25 if templates are removed and one of the first pages has a link,
        .44 otherwise.
    against : as pages, optional
        Reference: only pairs of a page with one of its pages are found. With ``measure="containment"``, the
        intersection is divided by the signatures of the latter: the page contains it.
    text, html : str
        Columns with plain text and with HTML, if pages has columns or consists of dicts; the HTML if a row has both. A
        page that is in no column is read as HTML if it contains a tag.
    id : str
        Column with the names of the pages for warnings and errors; positions if there is none.
    signature : SignatureScheme or str, optional
        Signature scheme, or the name of one: ``spotsigs``, spot signatures with the paper's best parameters.
    language : str
        Without a scheme, the language whose stopwords begin the signatures, see
        `spotsigs.signatures.languages.languages`. ``auto`` detects that of each page; a page with few or no spot
        signatures is compared by shingles.
    boilerplate : {"auto", "remove", "keep", "main_content"}, optional
        Treatment of the text around the main content, see `spotsigs.signatures.boilerplate.Boilerplate`. By default
        ``auto``; ``keep`` for a scheme of your own.
    idf_min, idf_max : float
        Band of normalised IDF that is kept. Document frequencies are counted over distinct pages; fewer than 32 of them
        have no band, see `spotsigs.signatures.idf.FEWEST`.
    min_spots : int
        A page with fewer remaining signatures has no near-duplicates but its exact duplicates.
    duplicates : {"text", "content", "off"}
        Exact duplicates, pairs of similarity 1 whatever their signatures: pages of the same content or visible text,
        of the same content, or none.
    measure : {"jaccard", "containment"}
        Multiset Jaccard similarity, or the intersection divided by the smaller page, which finds a teaser in its
        article.
    threads : int, optional
        Threads of the join; all cores by default.
    workers : int
        Worker processes of the extraction, which receive the pages in batches.
    engine : {"processes", "serial", "dask", "ray"}
        Where the extraction runs.
    address : str, optional
        Address of a running cluster of dask or ray, such as ``tcp://head:8786``.

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
    """
    method = Method.of(
        signature=signature, language=language, boilerplate=boilerplate, idf_min=idf_min, idf_max=idf_max,
        min_spots=min_spots, duplicates=duplicates, measure=measure, tau=tau, threads=threads,
    )  # fmt: skip
    runs = engine_of(engine, workers=workers, address=address)
    columns = {"text": text, "html": html, "id": id}
    given = _Pages(input_pages(pages, columns, kept=False), columns, against)
    return _match(method, given, runs, tau is None).pairs()


@_states_where
def dedup(
    pages: PagesT,
    tau: float | None = None,
    *,
    against: Any = None,
    text: str = "text",
    html: str = "html",
    id: str = "id",  # noqa: A002 - the usual name of such columns
    keep: str | Keep = defaults.KEEP,
    date: str = "date",
    keep_by: str | None = None,
    min_contained: float | None = None,
    clusters: str | ClusterMethod = defaults.CLUSTERS,
    signature: SignatureScheme | str | None = None,
    language: str = defaults.LANGUAGE,
    boilerplate: Boilerplate | str | None = None,
    idf_min: float = defaults.IDF_MIN,
    idf_max: float = defaults.IDF_MAX,
    min_spots: int = 1,
    duplicates: Sameness | str = defaults.DUPLICATES,
    measure: str = defaults.MEASURE,
    threads: int | None = None,
    workers: int = 1,
    engine: str = "processes",
    address: str | None = None,
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
    keep : {"first", "longest", "newest", "none"}
        Page of a cluster that is kept: the first, the one of most signatures, or the newest; ``none`` keeps only pages
        without a near-duplicate.
    date : str
        Column with dates, for ``newest``: ISO 8601, or as in HTTP headers. A warning lists pages without one.
    keep_by : str, optional
        Column with a score: the page of the largest is kept, or with a hyphen before the name (``"-score"``) of the
        smallest, ties in the order of the pages. A warning lists pages whose score is missing or no number; they come
        last.
    min_contained : float, optional
        Remove a page only if the kept page contains at least this fraction of its text, see
        `spotsigs.signatures.contained`; at 0, `tau` alone decides. The default is .3, and 0 for a `signature` that does
        not locate its signatures.
    clusters : str
        How pairs become clusters, see `spotsigs.cluster`.
    signature, language, boilerplate, … : optional
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
    """
    if keep_by is not None:
        require(isinstance(keep_by, str), f"keep_by must be the name of a column, got {shown(keep_by)}")
        require(keep in (defaults.KEEP, Keep.first), "keep_by= decides which page is kept; leave out keep=")
        keep, date = by_score(keep_by)
    located = not isinstance(signature, SignatureScheme) or signature.locates
    method = Method.of(
        signature=signature, language=language, boilerplate=boilerplate, idf_min=idf_min, idf_max=idf_max,
        min_spots=min_spots, duplicates=duplicates, measure=measure, tau=tau, threads=threads, clusters=clusters,
        keep=keep,
        min_contained=(defaults.MIN_CONTAINED if located else 0.0) if min_contained is None else min_contained,
    )  # fmt: skip
    runs = engine_of(engine, workers=workers, address=address)
    columns = {"text": text, "html": html, "id": id}
    source = input_pages(pages, columns | {"date": date})
    result = _match(method, _Pages(source, columns, against), runs, tau is None, listed=False)
    decisions, _ = result.method.decide(result.matched, dates=result.dates(date))
    kept = np.ones(result.n, np.bool_)
    kept[result.positions] = decisions.kept[result.matched.new_from :]
    return cast(PagesT, source.take(np.flatnonzero(kept).tolist()))


def _match(method: Method, given: _Pages, engine: Engine, default_tau: bool, *, listed: bool = True) -> _PagePairs:
    """Match the pages, if wanted at the default threshold of their kind; warn about those that cannot be read."""
    if default_tau:
        pages = iter(given.source.pages)
        first = list(islice(pages, defaults.PROBED))
        given.source = replace(given.source, pages=chain(first, pages))
        pages_of_html = (page.content for page in first if _is_html(page))
        method = method.at(defaults.tau(pages_of_html, method.removes_templates))
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
    matched: Matched[Pairs]
    positions: IntArray  # of the pages that could be read among all pages, ascending
    referenced: IntArray  # of those of the reference
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
        for number, reason in islice(reasons.items(), LISTED)
    ]
    more = f"; and {len(reasons) - LISTED:,} more" if len(reasons) > LISTED else ""
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
