"""The one call for pages in memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spotsigs.copies import Copies, Sameness
from spotsigs.engines import Serial
from spotsigs.errors import InputError, require
from spotsigs.matching.containment import Containment
from spotsigs.matching.tight import SpotSigsTight
from spotsigs.records import Collection, Corpus, Document, Pairs, Shard, SignatureScheme, Skipped
from spotsigs.signatures.extract import extract
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.visible import VisibleText

LOOKS_LIKE_A_TAG = re.compile(r"<[!/a-zA-Z][^<>]{0,1000}>")


def near_duplicates(
    pages: Iterable[str | bytes],
    tau: float = 0.44,
    *,
    signature: SignatureScheme | None = None,
    idf_min: float = 0.2,
    idf_max: float = 1.0,
    min_spots: int = 1,
    copies: Sameness | str = Sameness.text,
    measure: str = "jaccard",
    threads: int | None = None,
) -> Pairs:
    """Find all near-duplicate pairs among pages: exactly those whose multiset Jaccard, or containment, reaches tau.

    Parameters
    ----------
    pages : iterable of str or bytes
        HTML, where something looks like a tag, or plain text; bytes are decoded by declaration or detection.
    tau : float
        Similarity threshold in (0, 1].
    signature : SignatureScheme, optional
        Spot signatures with the paper's best parameters by default.
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
        ``pairs.i``, ``pairs.j`` are positions in ``pages``.

    Raises
    ------
    InputError
        If tau lies outside (0, 1], there is no such measure, a page is neither str nor bytes, or ``copies`` is none of
        the three.

    Examples
    --------
    >>> page = "The council has approved the plan for a new bridge that will be built by the spring."
    >>> pairs = near_duplicates([page, "Sport: a win for the home side in the rain.", page + " It is late."], tau=0.44)
    >>> [(int(i), int(j)) for i, j in zip(pairs.i, pairs.j)]
    [(0, 2)]
    """
    if isinstance(pages, (str, bytes)):
        raise InputError("pages must be an iterable of pages, got a single one; put it into a list")
    try:
        sameness = Sameness(copies)
    except ValueError:
        raise InputError(f"copies must be 'text', 'content' or 'off', got {copies!r}") from None
    matchers: dict[str, type[SpotSigsTight | Containment]] = {"jaccard": SpotSigsTight, "containment": Containment}
    require(measure in matchers, f"measure must be one of {', '.join(matchers)}, got {measure!r}")
    keep = IdfFilter(idf_min=idf_min, idf_max=idf_max, min_spots=min_spots)
    scheme = signature or SpotSignatures()
    signatures = extract(_InMemory(tuple(pages)), VisibleText(), scheme, Serial(), sameness=sameness)
    found = Copies.among(signatures, sameness)
    return found.spread(matchers[measure](tau=tau, threads=threads)(Corpus(keep(signatures, found))))


@dataclass(frozen=True)
class _InMemory(Collection):
    pages: tuple[str | bytes, ...]

    def shards(self) -> list[Shard]:
        return [self._documents]

    def _documents(self) -> Iterator[Document | Skipped]:
        for number, page in enumerate(self.pages):
            if not isinstance(page, (str, bytes)):
                raise InputError(f"page {number} is a {type(page).__name__}; give str or bytes")
            sample = page if isinstance(page, str) else page.decode("latin-1")
            html = LOOKS_LIKE_A_TAG.search(sample) is not None
            yield Document(id=str(number), content=page, media_type="text/html" if html else "text/plain")
