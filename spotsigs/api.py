"""Functions for pages in Python objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, starmap
from typing import Any, NamedTuple, TypeVar, cast
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from spotsigs import defaults
from spotsigs.arrays.row_blocks import gathered
from spotsigs.clustering.clusters import ClusterMethod, cluster
from spotsigs.clustering.decisions import UNKNOWN, Keep, decide, microseconds, priority
from spotsigs.clustering.leaders import leaders_of
from spotsigs.contracts import Collection, CollectionScheme, Shard, SignatureScheme
from spotsigs.engines import Serial
from spotsigs.errors import InputError, as_choice, counted, did_you_mean, either, require, shown
from spotsigs.exact_duplicates import Sameness
from spotsigs.formats.python_objects import LOOKS_LIKE_A_TAG, InputPage, InputPages, input_pages, present
from spotsigs.in_memory import Matched, match_in_memory
from spotsigs.matching.containment import Containment
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.records import Corpus, Document, Pairs, Signatures, Skipped
from spotsigs.runs.pipeline import suggested
from spotsigs.runs.settings import AUTO
from spotsigs.signatures.boilerplate import Boilerplate, with_boilerplate
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.visible import VisibleText

PagesT = TypeVar("PagesT")

BATCH = 256
"""Pages that are read before their texts are dropped and the progress bar moves."""

LISTED = 5
"""Pages that a warning names."""

MATCHERS: dict[str, type[SpotSigsTight | Containment]] = {"jaccard": SpotSigsTight, "containment": Containment}
"""Matchers by the names that ``measure=`` takes."""


def near_duplicates(
    pages: Any,
    tau: float | str | None = None,
    *,
    text: str = "text",
    html: str = "html",
    id: str = "id",  # noqa: A002 - the usual name of such columns
    signature: SignatureScheme | str | None = None,
    language: str = defaults.LANGUAGE,
    boilerplate: Boilerplate | str | None = None,
    idf_min: float = defaults.IDF_MIN,
    idf_max: float = defaults.IDF_MAX,
    min_spots: int = 1,
    copies: Sameness | str = defaults.COPIES,
    measure: str = defaults.MEASURE,
    threads: int | None = None,
) -> Pairs:
    """Find all near-duplicate pairs among pages: exactly those whose similarity reaches tau.

    Parameters
    ----------
    pages : iterable of str, bytes or dict, pandas or polars frame or series, pyarrow Table or array, datasets.Dataset
        HTML or plain text; bytes are decoded by the declared or detected encoding. The texts of an iterator's pages
        are not stored.
    tau : float or "auto", optional
        Similarity threshold in (0, 1], or ``auto`` for the one that the similarities of the pages suggest. By default
        .25 if templates are removed and one of the first pages has a link, .44 otherwise.
    text, html : str
        Columns with the content, if pages has columns or consists of dicts; the HTML if a row has both. Text that
        contains a tag is read as HTML.
    id : str
        Column with the names of the pages for warnings and errors; positions if there is none.
    signature : SignatureScheme or str, optional
        Signature scheme, or the name of one: ``spotsigs``, spot signatures with the paper's best parameters.
    language : str
        Without a scheme, the language whose stopwords begin the signatures, see
        `spotsigs.signatures.languages.languages`. ``auto`` detects that of each page; a page without known stopwords is
        compared by shingles of three tokens.
    boilerplate : {"auto", "remove", "keep", "main_content"}, optional
        Treatment of the text around the main content, see `spotsigs.signatures.boilerplate.Boilerplate`. By default
        ``auto``; ``keep`` for a scheme of your own.
    idf_min, idf_max : float
        Band of normalised IDF that is kept. Document frequencies are counted over distinct pages; fewer than 32 of them
        have no band, see `spotsigs.signatures.idf.FEWEST`.
    min_spots : int
        A page with fewer remaining signatures has no near-duplicates but its exact duplicates.
    copies : {"text", "content", "off"}
        Exact duplicates, pairs of similarity 1 whatever their signatures: pages of the same content or visible text,
        of the same content, or none.
    measure : {"jaccard", "containment"}
        Multiset Jaccard similarity, or the intersection divided by the smaller page, which finds a teaser in its
        article.
    threads : int, optional
        Threads of the join; all cores by default.

    Returns
    -------
    Pairs
        ``pairs.i`` and ``pairs.j`` are positions in ``pages``. A page that is missing (None, NaN) or cannot be read is
        in no pair, and a warning lists it.

    Raises
    ------
    InputError
        If an option is out of range, there is no column with pages, or a page is neither text nor bytes.

    Examples
    --------
    >>> page = "The council has approved the plan for a new bridge that will be built by the spring."
    >>> pairs = near_duplicates([page, "Sport: a win for the home side in the rain.", page + " It is late."], tau=0.44)
    >>> [(int(i), int(j)) for i, j in zip(pairs.i, pairs.j)]
    [(0, 2)]
    """
    method = _Method(
        matcher=_matcher(tau, measure, threads),
        tau=tau,
        scheme=_scheme(signature, language, boilerplate),
        band=IdfFilter(idf_min=idf_min, idf_max=idf_max, min_spots=min_spots),
        sameness=as_choice("copies", copies, Sameness),
    )
    return method.find(input_pages(pages, kept=False, text=text, html=html, id=id), id).pairs()


def dedup(
    pages: PagesT,
    tau: float | str | None = None,
    *,
    text: str = "text",
    html: str = "html",
    id: str = "id",  # noqa: A002 - the usual name of such columns
    keep: str | Keep = defaults.KEEP,
    date: str = "date",
    clusters: str | ClusterMethod = defaults.CLUSTERS,
    signature: SignatureScheme | str | None = None,
    language: str = defaults.LANGUAGE,
    boilerplate: Boilerplate | str | None = None,
    idf_min: float = defaults.IDF_MIN,
    idf_max: float = defaults.IDF_MAX,
    min_spots: int = 1,
    copies: Sameness | str = defaults.COPIES,
    measure: str = defaults.MEASURE,
    threads: int | None = None,
) -> PagesT:
    """Return the pages without near-duplicates, in the type that they have.

    Parameters
    ----------
    pages, tau, text, … : optional
        As in `near_duplicates`. Rows of an iterator are stored with their contents in a temporary file.
    keep : {"first", "longest", "newest", "none"}
        Page of a cluster that is kept: the first, the one of most signatures, or the newest; ``none`` keeps only pages
        without a near-duplicate.
    date : str
        Column with dates, for ``newest``: ISO 8601, or as in HTTP headers. A warning lists pages without one.
    clusters : str
        How pairs become clusters, see `spotsigs.cluster`.

    Returns
    -------
    same type as pages
        A list for a list, a frame for a frame, a generator for an iterator. A page that is missing or cannot be read is
        kept, and a warning lists it.

    Raises
    ------
    InputError
        As `near_duplicates`, or if no page has a date for ``newest``.

    Examples
    --------
    >>> page = "The council has approved the plan for a new bridge that will be built by the spring."
    >>> dedup([{"text": page, "n": 1}, {"text": page + " It is late.", "n": 2}])[0]["n"]
    1
    """
    policy = as_choice("keep", keep, Keep)
    way = as_choice("clusters", clusters, ClusterMethod)
    method = _Method(
        matcher=_matcher(tau, measure, threads),
        tau=tau,
        scheme=_scheme(signature, language, boilerplate),
        band=IdfFilter(idf_min=idf_min, idf_max=idf_max, min_spots=min_spots),
        sameness=as_choice("copies", copies, Sameness),
    )
    have = input_pages(pages, text=text, html=html, id=id, date=date)
    # leaders need no list of all pairs, which grows with the squares of the sizes of clusters
    listed = way is not ClusterMethod.leaders or not isinstance(method.matcher, SpotSigsTight)
    found = method.find(have, id, listed=listed)
    dates = found.dates(have.column(date)) if policy is Keep.newest else None
    matched = found.matched
    lengths = matched.signatures.occurrences()[matched.copies.representatives]
    order = priority(policy, len(lengths), lengths, dates)
    if listed:
        groups, found_pairs = cluster(matched.pairs, clusters=way, priority=order), matched.pairs
    else:
        more: dict[str, Any] = {"priority": order, "both": policy is Keep.none, "threads": found.matcher.threads}
        groups, found_pairs = leaders_of(matched.vectors, found.matcher.tau, matched.copies, **more)
    decisions = decide(found_pairs, groups, policy)
    kept = np.ones(found.n, np.bool_)
    kept[found.positions] = decisions.kept
    return cast(PagesT, have.take(np.flatnonzero(kept).tolist()))


@dataclass(frozen=True, kw_only=True)
class _Method:
    """The options of a call, checked."""

    matcher: SpotSigsTight | Containment
    tau: float | str | None
    scheme: SignatureScheme
    band: IdfFilter
    sameness: Sameness

    def find(self, have: InputPages, name: str, *, listed: bool = True) -> _Found:
        """Match the pages, or only extract their signatures; warn about those that cannot be read."""
        matcher = self.matcher
        if self.tau is None:
            pages = iter(have.pages)
            first = list(islice(pages, defaults.PROBED))
            have = replace(have, pages=chain(first, pages))
            removes = isinstance(self.scheme, CollectionScheme)
            matcher = matcher.at(defaults.tau((page.content for page in first), removes))

        def match(corpus: Corpus) -> Pairs | None:
            nonlocal matcher
            if self.tau == AUTO:
                matcher = matcher.at(suggested(corpus.vectors, self.scheme).tau)
            return matcher(corpus) if listed else None

        matched = match_in_memory(
            _Pages(have, name), VisibleText(), self.scheme, self.band, match, Serial(), sameness=self.sameness
        )
        names = have.column(name)
        if matched.skipped:
            skipped = {int(record.id): record.reason for record in matched.skipped}
            _warn("cannot be read, compared with no other page and kept", skipped, names)
        positions = np.array([int(number) for number in matched.doc_ids], np.int64)
        return _Found(matched, matcher, positions, len(positions) + len(matched.skipped), names)


def _matcher(tau: Any, measure: Any, threads: Any) -> SpotSigsTight | Containment:
    """Return the matcher of a measure; if a threshold is to be suggested, with the default one."""
    default = tau is None or isinstance(tau, str)
    require(not default or tau in (None, AUTO), f"tau must be a number in (0, 1], or {AUTO!r}, got {shown(tau)}")
    return matcher_of("measure", measure)(tau=defaults.TAU if default else tau, threads=threads)


def matcher_of(option: str, measure: Any) -> type[SpotSigsTight | Containment]:
    """Return the matcher of a measure; the option is named in the error for an unknown one."""
    known = isinstance(measure, str) and measure in MATCHERS
    message = f"{option} must be {either(map(repr, MATCHERS))}, got {shown(measure)}{did_you_mean(measure, MATCHERS)}"
    require(known, message)
    return MATCHERS[measure]


def _scheme(signature: Any, language: str, boilerplate: Any) -> SignatureScheme:
    """Return the signature scheme with its treatment of boilerplate; a scheme of the caller's reads whole pages."""
    own = isinstance(signature, SignatureScheme)
    known = own or signature is None or (isinstance(signature, str) and signature == "spotsigs")
    require(known, f"signature must be a SignatureScheme or 'spotsigs', got {shown(signature)}")
    if boilerplate is None:
        boilerplate = Boilerplate.keep if own else defaults.BOILERPLATE
    scheme = signature if own else SpotSignatures(language=language)
    return with_boilerplate(scheme, as_choice("boilerplate", boilerplate, Boilerplate))


class _Found(NamedTuple):
    """Pairs of the pages that could be read."""

    matched: Matched[Signatures, Pairs]
    matcher: SpotSigsTight | Containment
    positions: NDArray[np.int64]  # of the pages that could be read among all pages, ascending
    n: int  # number of all pages
    names: Sequence[Any] | None  # of all pages

    def pairs(self) -> Pairs:
        """Return the pairs with positions among all pages."""
        pairs = self.matched.pairs
        if len(self.positions) == self.n:
            return pairs
        i, j = (gathered(self.positions, rows).astype(np.int32) for rows in (pairs.i, pairs.j))
        overlap = pairs.overlap
        if overlap is not None:
            lengths = np.zeros(self.n, np.int64)
            lengths[self.positions] = overlap.lengths
            overlap = replace(overlap, lengths=lengths)
        return replace(pairs, i=i, j=j, n=self.n, overlap=overlap)

    def dates(self, column: Sequence[Any] | None) -> list[str | None] | None:
        """Return the dates of the pages that could be read; warn about dates that cannot be."""
        if column is None:
            return None
        rows = self.positions.tolist()
        dates = [None if present(column[row]) is None else str(column[row]) for row in rows]
        unreadable = {
            row: f"the date {date!r} cannot be read"
            for row, date in zip(rows, dates, strict=True)
            if date and microseconds(date) == UNKNOWN
        }
        if unreadable:
            _warn(f"{'is' if len(unreadable) == 1 else 'are'} taken as the oldest", unreadable, self.names)
        return dates


def _warn(what: str, reasons: Mapping[int, str], names: Sequence[Any] | None) -> None:
    """Warn about some pages, the first of which are listed."""
    listed = [
        f"{number if names is None or names[number] is None else names[number]!r}: {reason}"
        for number, reason in islice(reasons.items(), LISTED)
    ]
    more = f"; and {len(reasons) - LISTED:,} more" if len(reasons) > LISTED else ""
    warn(f"{counted(len(reasons), 'page')} {what}; {'; '.join(listed)}{more}", stacklevel=4)


class _Pages(Collection):
    """The pages of the input, read once; as a sequence, its shards, of which one is in memory at a time."""

    def __init__(self, have: InputPages, name: str) -> None:
        self.have, self.name, self.pages = have, name, have.n

    def shards(self) -> Any:
        """Return the collection itself, which yields the shards."""
        return self

    def __len__(self) -> int:
        return 0  # not known before reading

    def __iter__(self) -> Iterator[Shard]:
        numbered = iter(enumerate(self.have.pages))
        while batch := list(islice(numbered, BATCH)):
            yield partial(starmap, self._document, batch)

    def _document(self, number: int, page: InputPage) -> Document | Skipped:
        content, html = page
        if content is None:
            return Skipped(str(number), "the page is missing (None)")
        if not isinstance(content, (str, bytes)):
            names = self.have.column(self.name)
            name = number if names is None else repr(names[number])
            raise InputError(f"page {name} is a {type(content).__name__}; give str or bytes")
        sample = content if isinstance(content, str) else content.decode("latin-1")
        html = html or LOOKS_LIKE_A_TAG.search(sample) is not None
        return Document(id=str(number), content=content, media_type="text/html" if html else "text/plain")
