"""The one call for pages in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from warnings import warn

import numpy as np

from spotsigs.clustering.clusters import cluster
from spotsigs.clustering.decisions import Keep, decide, priority
from spotsigs.defaults import IDF_MAX, IDF_MIN, TAU
from spotsigs.engines import Serial
from spotsigs.errors import InputError, require
from spotsigs.exact_duplicates import Sameness
from spotsigs.formats.python_objects import LOOKS_LIKE_A_TAG, Given, given
from spotsigs.in_memory import Matched, match_in_memory
from spotsigs.matching.containment import Containment
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.records import Collection, Document, Pairs, Shard, Signatures, SignatureScheme, Skipped
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.languages import AUTO
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.visible import VisibleText


def near_duplicates(
    pages: Any,
    tau: float = TAU,
    *,
    text: str = "text",
    id: str = "id",  # noqa: A002 - the name that such columns have
    signature: SignatureScheme | None = None,
    language: str = AUTO,
    idf_min: float = IDF_MIN,
    idf_max: float = IDF_MAX,
    min_spots: int = 1,
    copies: Sameness | str = Sameness.text,
    measure: str = "jaccard",
    threads: int | None = None,
) -> Pairs:
    """Find all near-duplicate pairs among pages: exactly those whose multiset Jaccard, or containment, reaches tau.

    Parameters
    ----------
    pages : iterable of str, bytes or dict, pandas or polars frame or series, pyarrow Table or array, datasets.Dataset
        HTML, where something looks like a tag, or plain text; bytes are decoded by declaration or detection.
    tau : float
        Similarity threshold in (0, 1].
    text : str
        Column with the content, where pages has columns or consists of dicts.
    id : str
        Column with the pages' names, by which errors and warnings call them; numbers from 0 where there is no ``id``.
    signature : SignatureScheme, optional
        Spot signatures with the paper's best parameters by default.
    language : str
        Where no signature is given: ``en``, ``de``, ``fr``, … (see `spotsigs.signatures.languages.languages`), whose
        stopwords anchor the signatures. ``auto``: that of each page; pages without known stopwords are compared by
        shingles of three tokens.
    idf_min, idf_max : float, optional
        Band of normalised IDF that is kept, counted over distinct pages. Fewer than 32 of them have no band, see
        `spotsigs.signatures.idf.FEWEST`: their document frequencies say nothing yet.
    min_spots : int
        Pages with fewer signatures left have no near-duplicates but their copies.
    copies : {"text", "content", "off"}
        Pages that are pairs of similarity 1 whatever their signatures: those of identical content or visible text,
        those of identical content, or none.
    measure : str
        ``jaccard``, or ``containment``: the intersection over the smaller page, which finds a teaser in its article.
    threads : int, optional
        Threads of the join; all cores by default.

    Returns
    -------
    Pairs
        ``pairs.i``, ``pairs.j`` are positions in ``pages``. A page that cannot be read is in no pair, with a warning.

    Raises
    ------
    InputError
        If tau lies outside (0, 1], there is no such measure or language, a page is neither str nor bytes,
        ``copies`` is none of the three, or there is no column of the name that `text` or `id` gives.

    Examples
    --------
    >>> page = "The council has approved the plan for a new bridge that will be built by the spring."
    >>> pairs = near_duplicates([page, "Sport: a win for the home side in the rain.", page + " It is late."], tau=0.44)
    >>> [(int(i), int(j)) for i, j in zip(pairs.i, pairs.j)]
    [(0, 2)]
    """
    band = IdfFilter(idf_min=idf_min, idf_max=idf_max, min_spots=min_spots)
    scheme = signature or SpotSignatures(language=language)
    return _found(given(pages, text), id, tau, scheme, band, copies, measure, threads).pairs


def _found(
    have: Given,
    name: str,
    tau: float,
    scheme: SignatureScheme,
    band: IdfFilter,
    copies: Sameness | str,
    measure: str,
    threads: int | None,
) -> Matched[Signatures, Pairs]:
    try:
        sameness = Sameness(copies)
    except ValueError:
        raise InputError(f"copies must be 'text', 'content' or 'off', got {copies!r}") from None
    matchers: dict[str, type[SpotSigsTight | Containment]] = {"jaccard": SpotSigsTight, "containment": Containment}
    require(measure in matchers, f"measure must be one of {', '.join(matchers)}, got {measure!r}")
    matcher = matchers[measure](tau=tau, threads=threads)
    names = have.column(name)
    require(names is not None or name == "id", f"pages has no column {name!r}; name one by id=")
    pages = _Pages(tuple(have.pages), names or range(len(have.pages)))
    found = match_in_memory(pages, VisibleText(), scheme, band, matcher, Serial(), sameness=sameness)
    if not found.skipped:
        return found
    unreadable = {int(record.id): record.reason for record in found.skipped}
    first, why = next(iter(unreadable.items()))
    many = f"{len(unreadable)} pages cannot be read and are" if len(unreadable) > 1 else "a page cannot be read and is"
    warn(f"{many} compared with no other; {pages.names[first]!r}: {why}", stacklevel=3)
    pages = replace(pages, pages=tuple("" if k in unreadable else page for k, page in enumerate(pages.pages)))
    return match_in_memory(pages, VisibleText(), scheme, band, matcher, Serial(), sameness=sameness, strict=True)


def dedup(
    pages: Any,
    tau: float = TAU,
    *,
    text: str = "text",
    id: str = "id",  # noqa: A002 - the name that such columns have
    keep: str | Keep = Keep.first,
    date: str = "date",
    signature: SignatureScheme | None = None,
    language: str = AUTO,
    idf_min: float = IDF_MIN,
    idf_max: float = IDF_MAX,
    min_spots: int = 1,
    copies: Sameness | str = Sameness.text,
    measure: str = "jaccard",
    threads: int | None = None,
) -> Any:
    """Return what was given without near-duplicates: one page of each group stays.

    Parameters
    ----------
    pages : iterable of str, bytes or dict, pandas or polars frame or series, pyarrow Table or array, datasets.Dataset
        What holds the pages; as in `near_duplicates`.
    tau : float
        Similarity threshold in (0, 1].
    text : str
        Column with the content, where pages has columns or consists of dicts.
    id : str
        Column with the pages' names, by which errors and warnings call them; numbers from 0 where there is no ``id``.
    keep : {"first", "longest", "newest", "none"}
        Which page of a group stays: ``longest`` is the one of most signatures, as in the command; ``none``: only pages
        without a near-duplicate.
    date : str
        Column with ISO 8601 dates, for ``newest``.
    signature, language, idf_min, idf_max, min_spots, copies, measure, threads : optional
        As in `near_duplicates`.

    Returns
    -------
    same as pages
        A list for a list, a frame for a frame, an iterator for an iterator. A page that cannot be read stays, with a
        warning.

    Raises
    ------
    InputError
        As `near_duplicates`, or if there are no dates for ``newest``.

    Examples
    --------
    >>> page = "The council has approved the plan for a new bridge that will be built by the spring."
    >>> dedup([{"text": page, "n": 1}, {"text": page + " It is late.", "n": 2}])[0]["n"]
    1
    """
    have = given(pages, text)
    policy = Keep(keep)
    band = IdfFilter(idf_min=idf_min, idf_max=idf_max, min_spots=min_spots)
    scheme = signature or SpotSignatures(language=language)
    found = _found(have, id, tau, scheme, band, copies, measure, threads)
    dates = have.column(date) if policy is Keep.newest else None
    days = None if dates is None else [None if day is None else str(day) for day in dates]
    order = priority(policy, found.pairs.n, found.signatures.occurrences(), days)
    decisions = decide(found.pairs, cluster(found.pairs, priority=order), policy)
    return have.take(np.flatnonzero(decisions.kept).tolist())


@dataclass(frozen=True)
class _Pages(Collection):
    pages: tuple[str | bytes, ...]
    names: Sequence[Any]

    def shards(self) -> list[Shard]:
        return [self._documents]

    def _documents(self) -> Iterator[Document | Skipped]:
        for number, page in enumerate(self.pages):
            if not isinstance(page, (str, bytes)):
                raise InputError(f"page {self.names[number]!r} is a {type(page).__name__}; give str or bytes")
            sample = page if isinstance(page, str) else page.decode("latin-1")
            html = LOOKS_LIKE_A_TAG.search(sample) is not None
            yield Document(id=str(number), content=page, media_type="text/html" if html else "text/plain")
