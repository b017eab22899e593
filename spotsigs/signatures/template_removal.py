"""Frame-aware suppression: a page's spots without those that belong to its site's frame.

Pages that share links and not their main part stand in the same frame, and what else they share is the frame's. There
are two passes over a collection. The first finds each page's neighbours, pages whose links are alike, in the lists of
pages that have a link, and lets its mates among them vote on what is frame. The second drops that and narrows what is
left to the main part. All that follows, IDF, vectors, matching, works on plain multisets as ever, so that matching
stays exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.arrays.contiguous_ids import distinct
from spotsigs.arrays.csr import row_starts, take_rows
from spotsigs.arrays.parallel import all_cores, concatenated, over_blocks
from spotsigs.errors import require
from spotsigs.records import CollectionScheme, Signatures, SignatureScheme, Tokens
from spotsigs.signatures.idf import FEWEST
from spotsigs.signatures.main_content import LINK, DensestRegion, MainContent, outline_of
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.signatures.template_kernels import (
    PageFeatures,
    PageLinks,
    Rules,
    Sightings,
    Worth,
    among,
    count_among,
    count_aside,
    count_buckets,
    count_main,
    first_and_last,
    in_full_buckets,
    main_spots,
    page_features,
    search,
    suppress,
    vote,
)
from spotsigs.storage.store import concatenated_on_disk

LOOKED = 64
"""Pages that are looked at to find a page's neighbours: those whose links are most alike."""

WALKED = 2048
"""Entries in the lists of a page's links, all together, that hold its candidates: what few links may cost."""

MANY = 8
"""So many pages must have kept a spot before it can be boilerplate: fewer may be copies of one text."""

_BLOCK_PAGES = 2048

_FEWEST_AT_ONCE = 1 << 16
"""Spots, at least, whose first and last pages are looked for at once."""

_MOST_BUCKETS = 26
"""Bits of the table in which spots are counted before the frequent ones are counted exactly."""

_NONE = np.empty(0, np.uint64)

UNSEEN = Sightings(_NONE, np.empty(0, np.int32), np.empty(0, np.int32))
"""No spot stands anywhere else."""

ALL = Worth(_NONE, 0.0, _NONE, np.empty(0, np.int64), 1, 1, 0.0)
"""All that is left stays."""


@dataclass(frozen=True, kw_only=True, repr=False)
class FramedSpots(DensestRegion, CollectionScheme):
    """Spot signatures of what a page says itself: its site's frame suppressed, its main part kept.

    1. Neighbours of a page are other pages whose sets of links have a Jaccard similarity of at least ``alike``, and of
       half of the largest that was found, and whose main parts are not the same: a sample of at most ``sample``, those
       next to the page in an order given by their content, of each of its links' pages. Exact copies count once. Main
       parts with a similarity of at least 1/2 are the same, unless what is the pages' own travels and what they share
       stays and stands around it, on both: a spot travels if the first or the last page in that order that has it
       stands in another frame, its links not ``alike``. All but a ``share`` of the own spots of the main part must
       travel, at most a ``share`` of the others, and both stand apart as for the second reason below.
    2. Mates are the neighbours whose main parts (`.densest`) have a similarity below ``alike``, where a spot of a main
       part counts wherever the other page has it, or of at least 1/2: they share the frame only. Main parts that are
       alike, but not the same, still belong to mates for one of two reasons. A frame stands around the text, edits
       stand within it, and two links in a row separate stretches of a main part.

       - Several neighbours of different content agree: at most a ``share`` of the spots that any of them has in common
         with the page is missing in some of them (of two neighbours, a quarter of that, of three a half). Or at most as
         much of what each of them has lies outside the core, which all but a ``share`` of them have, and core and the
         page's own spots, which at most a ``share`` of them have, stand apart: the fewer of both, summed over
         stretches, are at most a ``share`` of the own ones. At least a ``share`` of the main part is the page's own.
       - On both pages what the two share and what they do not stand apart in the same sense, and all but a ``share`` of
         the page's own spots stand in one stretch.
    3. A page's mates say that a spot is the frame's if at least a ``share`` of them have it, and two of them where
       there are two. It is the frame's, and is dropped on all pages, if so say those of at least a ``share`` of the
       pages that have it.
    4. The page's main part is found once more, where each dropped spot counts -1, and what lies outside is dropped. A
       page without mates keeps its main part but for what is dropped everywhere.
    5. Boilerplate of many sites, whose spots at least `MANY` pages keep, stands aside from what these say themselves:
       most of what a page keeps is its own, which at most a ``share`` of the spot's pages have, and at most a ``share``
       of the stretches with the spot. It does so on all but a ``share`` of the pages with anything of their own, and
       these are at least as many as those with nothing else. Stretches are dropped of which all but a ``share`` are
       boilerplate.
    6. Where ``chance`` is given, what is left must carry a pair. If spots were spread by chance, each over as many
       pages as it is on (at least ``MANY - 1``), at most ``chance`` pages must be expected to have all of a page's. A
       page with less keeps none. Fewer than 32 pages, whose document frequencies say nothing, keep what they have.

    The result depends neither on the order of the documents nor on threads. Text without links has neither neighbours
    nor anything to narrow it: all its spots stay that are not dropped everywhere.

    Attributes
    ----------
    d, c, antecedents, stopwords, include_antecedent, language : int, int, sequence of str, sequence of str, bool, str
        As in `spotsigs.signatures.main_content.DensestRegion`.
    alike : float
        Jaccard similarity in (0, 1/2) from which two sets are alike.
    share : float
        Part in (0, 1) of a page's mates that makes a spot the frame's.
    sample : int
        Neighbours that are looked at, at least 1.
    chance : float, optional
        Pages, at most, that are expected to have all that is left of a page by chance. It costs the pairs of stubs,
        real copies of hardly a word, so that nothing is asked where it is omitted.
    """

    label: ClassVar[str] = "SpotSigs, framed"

    alike: float = 0.1
    share: float = 1 / 3
    sample: int = 16
    chance: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.alike < 0.5, f"alike, a Jaccard similarity, must lie in (0, 0.5), got {self.alike}")
        require(0 < self.share < 1, f"share, of a page's mates, must lie in (0, 1), got {self.share}")
        require(self.sample >= 1, f"sample, of a page's neighbours, must be at least 1, got {self.sample}")
        require(
            self.chance is None or self.chance > 0, f"chance, expected pages, must be greater than 0, got {self.chance}"
        )

    @property
    def rules(self) -> Rules:
        """What decides which neighbours are mates."""
        return Rules(self.alike, self.share)

    def outline(self, tokens: Tokens) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Return what `refine` needs of a page: the hashes and kinds of its spots and links, in text order."""
        return outline_of(SpotSignatures(**{f.name: getattr(self, f.name) for f in fields(SpotSignatures)}), tokens)

    def refine(self, outlines: Signatures, *, threads: int | None = None, scratch: Path | None = None) -> Signatures:
        """Turn the outlines of a whole collection into signatures.

        Parameters
        ----------
        outlines : Signatures
            Rows of `outline`: hashes in text order, kinds in place of counts.
        threads : int, optional
            All cores where omitted.
        scratch : Path, optional
            Folder for what is larger than memory: features, votes and signatures are memory-mapped files there.

        Returns
        -------
        Signatures
            The same documents with the spots that stay.
        """
        blocks = PageBlocks(threads, scratch)
        pages = features_of(outlines, blocks)
        suspected = find_frames(outlines, pages, self.rules, self.sample, blocks)
        dropped = spots_of_frames(pages, suspected, self.share, blocks)
        return said(outlines, pages, dropped, self.share, self.chance, blocks)


@dataclass(frozen=True, kw_only=True)
class TemplateRemoval(CollectionScheme):
    """Signatures of any scheme without those that a page shares with the template of its site.

    Attributes
    ----------
    signature : SignatureScheme
        Source of the signatures.
    """

    label: ClassVar[str] = "templates removed"

    signature: SignatureScheme

    @property
    def name(self) -> str:
        """The name of the signatures, with what is done to them."""
        return f"{self.signature.name}, {self.label}"

    @property
    def tells_languages(self) -> bool:
        """Whether hashes tell shingles from spots."""
        return self.signature.tells_languages

    def __call__(self, tokens: Tokens) -> NDArray[np.uint64]:
        """Return the hashes of a page that is a collection of its own: those of its main content."""
        return MainContent(signature=self.signature)(tokens)

    def readable(self, text: str) -> list[str]:
        """Return the signatures of a plain text in readable form."""
        return self.signature.readable(text)

    def outline(self, tokens: Tokens) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Return the hashes and kinds of the page's signatures and links, in text order, for `refine`."""
        return outline_of(self.signature, tokens)

    def refine(self, outlines: Signatures, *, threads: int | None = None, scratch: Path | None = None) -> Signatures:
        """Turn the outlines of a whole collection into signatures."""
        return FramedSpots().refine(outlines, threads=threads, scratch=scratch)


@dataclass(frozen=True)
class PageBlocks:
    """How kernels run over pages.

    Attributes
    ----------
    threads : int or None
        None takes all cores.
    scratch : Path or None
        Folder for large results, memory-mapped; None keeps them in memory.
    """

    threads: int | None = None
    scratch: Path | None = None

    def __call__(self, kernel: Callable[[int, int], tuple[NDArray[Any], ...]], n: int) -> list[Any]:
        """Return the kernel's results over blocks of pages, of about two thousand each in a large collection."""
        return over_blocks(kernel, n, self.at_once, blocks_a_thread=max(8, -(-n // (self.at_once * _BLOCK_PAGES))))

    @property
    def at_once(self) -> int:
        """Blocks that run at the same time."""
        return all_cores() if self.threads is None else self.threads

    def columns(
        self, kernel: Callable[[int, int], tuple[NDArray[Any], ...]], n: int, *dtypes: Any, of: int | None = None
    ) -> list[NDArray[Any]]:
        """Return the kernel's results over all pages, column by column; on disk in blocks of so many, one by one."""
        if self.scratch is None:
            return concatenated(self(kernel, n), dtypes)
        step = _BLOCK_PAGES if of is None else of
        blocks = (kernel(first, min(first + step, n)) for first in range(0, n, step))
        return concatenated_on_disk(blocks, dtypes, self.scratch)


IN_MEMORY = PageBlocks()
"""All cores, everything in memory."""


def find_neighbours(
    outlines: Signatures, pages: PageFeatures, rules: Rules, most: int, blocks: PageBlocks = IN_MEMORY
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Find, for each page, others whose links are alike: at least half as much as those most alike of other content.

    Pages stand in a circle, in the order of their keys. Candidates are the pages that come next, of those that have a
    link of the page, for each of its links; how many of each is limited, so that what a page costs does not grow with
    the collection.

    Parameters
    ----------
    outlines : Signatures
        See `FramedSpots.refine`.
    pages : PageFeatures
        Of the same documents.
    rules : Rules
        Their ``alike`` is the least Jaccard similarity of two pages' sets of links.
    most : int
        Neighbours a page, at most: those next in the circle.
    blocks : PageBlocks
        How kernels run.

    Returns
    -------
    indptr : ndarray of int64, shape (n + 1,)
        Row ``r`` lies at ``indptr[r]:indptr[r + 1]``.
    neighbours : ndarray of int32
        Row numbers, those next in the circle of keys first; of exact copies the first row.
    """
    rows, place_of = _distinct(_keys(outlines, blocks))
    links = _links(outlines, rows, blocks)

    def searched(places: NDArray[np.int64], seen: Sightings) -> list[NDArray[Any]]:
        parts = blocks(
            lambda first, last: search(pages, links, rules, most, LOOKED, WALKED, seen, places[first:last]), len(places)
        )
        return concatenated(parts, (np.int64, np.int32, np.bool_, np.int32))

    sizes, found, in_doubt, others = searched(np.arange(len(rows)), UNSEEN)
    doubtful = np.flatnonzero(in_doubt)
    if len(doubtful):
        seen = see(pages, links, place_of, distinct(np.concatenate([doubtful, others])), blocks)
        more_sizes, more_found, _, _ = searched(doubtful, seen)
        sizes, found = np.concatenate([sizes, more_sizes]), np.concatenate([found, more_found])
        row_of = np.arange(len(rows))
        row_of[doubtful] = np.arange(len(rows), len(sizes))  # what is found again takes the place of the first
        place_of = row_of[place_of]
    indptr, entries = take_rows(row_starts(sizes), place_of)
    return indptr, rows[found[entries]].astype(np.int32)


def see(
    pages: PageFeatures,
    links: PageLinks,
    place_of: NDArray[np.int64],
    some: NDArray[np.int64],
    blocks: PageBlocks = IN_MEMORY,
) -> Sightings:
    """Find the first and the last page in the circle that has a spot, for each spot of some pages' main parts.

    Spots are gone through in ranges of their hashes, each with as many as there are links: what is held for a link
    while links are numbered suffices for a spot.

    Parameters
    ----------
    pages : PageFeatures
        Of all documents.
    links : PageLinks
        Of the distinct ones, by place.
    place_of : ndarray of int64, shape (n,)
        Each document's place in the circle.
    some : ndarray of int64
        Places, ascending.
    blocks : PageBlocks
        How kernels run.

    Returns
    -------
    Sightings
        Without the spots of one page only.
    """
    rows = links.rows[some]
    at_once = max(_FEWEST_AT_ONCE, len(links.ids))
    n_ranges = max(-(-count_main(pages, rows) // at_once), blocks.at_once)

    def sighted(first: int, last: int) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int32]]:
        lowest, highest = (np.uint64(k) for k in ((first << 64) // n_ranges, ((last << 64) // n_ranges) - 1))
        spots = distinct(main_spots(pages, rows, lowest, highest))
        begins, ends = first_and_last(pages, place_of, spots, lowest, highest)
        elsewhere = begins != ends
        return spots[elsewhere], begins[elsewhere], ends[elsewhere]

    return Sightings(*blocks.columns(sighted, n_ranges, np.uint64, np.int32, np.int32, of=1))


def find_frames(
    outlines: Signatures, pages: PageFeatures, rules: Rules, most: int, blocks: PageBlocks = IN_MEMORY
) -> NDArray[np.bool_]:
    """Find the neighbours of all pages and let their mates vote.

    Parameters
    ----------
    outlines : Signatures
        See `FramedSpots.refine`.
    pages : PageFeatures
        Of the same documents.
    rules, most
        See `FramedSpots`; ``most`` is its ``sample``.
    blocks : PageBlocks
        How kernels run.

    Returns
    -------
    ndarray of bool
        For each page's distinct spots, in the order of its features: whether its mates say that it is the frame's.
    """
    indptr, neighbours = find_neighbours(outlines, pages, rules, most, blocks)
    [suspected] = blocks.columns(
        lambda first, last: (vote(pages, indptr, neighbours, rules, first, last),), len(outlines), np.bool_
    )
    return suspected


def spots_of_frames(
    pages: PageFeatures, suspected: NDArray[np.bool_], share: float, blocks: PageBlocks = IN_MEMORY
) -> NDArray[np.bool_]:
    """Tell which spots belong to frames: on enough of the pages that have them, their mates say so.

    Parameters
    ----------
    pages : PageFeatures
        Of all documents.
    suspected : ndarray of bool
        For each page's distinct spots: whether its own mates say that it is the frame's.
    share : float
        Part of a spot's pages that suffices.
    blocks : PageBlocks
        How kernels run.

    Returns
    -------
    ndarray of bool
        For each page's distinct spots: whether they belong to frames. The same spot does so on every page or on none.
    """
    n = len(pages.indptr) - 1

    def suspects_of(first: int, last: int) -> tuple[NDArray[np.uint64]]:
        span = slice(pages.spot_indptr[first], pages.spot_indptr[last])
        return (distinct(pages.spots[span][suspected[span]]),)

    suspects = distinct(np.concatenate([np.empty(0, np.uint64), *(part[0] for part in blocks(suspects_of, n))]))
    parts = over_blocks(
        lambda first, last: count_among(pages, suspects, suspected, first, last), n, blocks.threads, blocks_a_thread=1
    )
    having, saying = (sum(part[k] for part in parts) for k in (0, 1))
    frame = suspects[saying >= share * having] if len(suspects) else suspects
    return blocks.columns(lambda first, last: (among(pages, frame, first, last),), n, np.bool_)[0]


def said(
    outlines: Signatures,
    pages: PageFeatures,
    dropped: NDArray[np.bool_],
    share: float,
    chance: float | None = None,
    blocks: PageBlocks = IN_MEMORY,
) -> Signatures:
    """Return what pages say themselves: without frames, what lies outside their main parts, and what is worth nothing.

    Parameters
    ----------
    outlines : Signatures
        See `FramedSpots.refine`.
    pages : PageFeatures
        Of the same documents.
    dropped : ndarray of bool
        Of each page's distinct spots, from `spots_of_frames`.
    share, chance : float
        See `FramedSpots`.
    blocks : PageBlocks
        How kernels run.

    Returns
    -------
    Signatures
    """
    left = suppressed(outlines, pages, dropped, blocks)
    worth = weigh(pages, dropped, left, share, chance, blocks)
    if not len(worth.boilerplate) and not worth.least:
        return left
    return suppressed(outlines, pages, dropped, blocks, worth)


def weigh(
    pages: PageFeatures,
    dropped: NDArray[np.bool_],
    left: Signatures,
    share: float,
    chance: float | None = None,
    blocks: PageBlocks = IN_MEMORY,
) -> Worth:
    """Find the boilerplate of many sites, prose that their pages have beside what they say, and count frequent spots.

    Parameters
    ----------
    pages : PageFeatures
        Of all documents.
    dropped : ndarray of bool
        Of each page's distinct spots, from `spots_of_frames`.
    left : Signatures
        What is left of the same documents without frames.
    share, chance : float
        See `FramedSpots`.
    blocks : PageBlocks
        How kernels run.

    Returns
    -------
    Worth
    """
    spots, frequencies = _frequent(left.hashes, blocks)
    parts = over_blocks(
        lambda first, last: count_aside(pages, dropped, spots, frequencies, share, first, last),
        len(left) if len(spots) else 0,
        blocks.threads,
        blocks_a_thread=1,
    )
    aside, alone = (sum((part[k] for part in parts), np.zeros(len(spots), np.int64)) for k in (0, 1))
    speaking = frequencies - alone
    boilerplate = spots[(speaking - aside <= share * speaking) & (aside >= alone)]
    n = int(np.count_nonzero(np.diff(left.indptr)))
    least = math.log(n / chance) if chance is not None and n >= FEWEST else 0.0
    return Worth(boilerplate, share, spots, frequencies, MANY - 1, n, least)


def _frequent(hashes: NDArray[np.uint64], blocks: PageBlocks) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the hashes that occur at least `MANY` times, ascending, and how often each does."""
    buckets = np.zeros(1 << min(max(len(hashes), 1).bit_length(), _MOST_BUCKETS), np.uint8)
    count_buckets(hashes, buckets, MANY)
    step = _BLOCK_PAGES << 6

    def candidates(first: int, last: int) -> NDArray[np.uint64]:
        some = hashes[first * step : last * step]
        found: NDArray[np.uint64] = some[in_full_buckets(some, buckets, MANY)]
        return found

    n_steps = -(-len(hashes) // step)
    found = blocks(lambda first, last: (distinct(candidates(first, last)),), n_steps)
    spots = distinct(np.concatenate([np.empty(0, np.uint64), *(part[0] for part in found)]))
    frequencies = np.zeros(len(spots), np.int64)
    for k in range(n_steps):  # one after the other: what occurs often would fill the memory
        frequencies += np.bincount(np.searchsorted(spots, candidates(k, k + 1)), minlength=len(spots))
    many = frequencies >= MANY
    return spots[many], frequencies[many]


def suppressed(
    outlines: Signatures,
    pages: PageFeatures,
    dropped: NDArray[np.bool_],
    blocks: PageBlocks = IN_MEMORY,
    worth: Worth = ALL,
) -> Signatures:
    """Drop from every page the spots of frames, those outside its main part, and what is worth nothing.

    Parameters
    ----------
    outlines : Signatures
        See `FramedSpots.refine`.
    pages : PageFeatures
        Of the same documents.
    dropped : ndarray of bool
        Of each page's distinct spots, from `spots_of_frames`.
    blocks : PageBlocks
        How kernels run.
    worth : Worth
        From `weigh`; by default all that is left stays.

    Returns
    -------
    Signatures
    """
    sizes, hashes, counts, says_nothing = blocks.columns(
        lambda first, last: suppress(pages, dropped, worth, first, last),
        len(outlines),
        np.int64,
        np.uint64,
        np.int32,
        np.bool_,
    )
    indptr = row_starts(sizes)
    return replace(outlines, indptr=indptr, hashes=hashes, counts=counts, boilerplate=says_nothing)


def features_of(outlines: Signatures, blocks: PageBlocks = IN_MEMORY) -> PageFeatures:
    """Return what the second pass compares of each page."""
    indptr, hashes, kinds = outlines.indptr, outlines.hashes, outlines.counts
    sizes, *columns = blocks.columns(
        lambda first, last: page_features(indptr, hashes, kinds, first, last),
        len(outlines),
        *(np.int64, np.uint64, np.bool_, np.int64, np.int64),
    )
    return PageFeatures(indptr, hashes, kinds, row_starts(sizes), *columns)


@njit(cache=True, nogil=True)
def _hash_outlines(indptr, hashes, kinds, first, last):  # type: ignore[no-untyped-def]
    """Return one hash for each outline, its entries in order; the multipliers are SplitMix64's."""
    keys = np.empty(last - first, np.uint64)
    for page in range(first, last):
        key = np.uint64(indptr[page + 1] - indptr[page])
        for i in range(indptr[page], indptr[page + 1]):
            key = (key ^ hashes[i] ^ np.uint64(kinds[i])) + np.uint64(0x9E3779B97F4A7C15)
            key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            key ^= key >> np.uint64(31)
        keys[page - first] = key
    return keys


def _keys(outlines: Signatures, blocks: PageBlocks) -> NDArray[np.uint64]:
    def hashed(first: int, last: int) -> tuple[NDArray[np.uint64]]:
        return (_hash_outlines(outlines.indptr, outlines.hashes, outlines.counts, first, last),)

    return blocks.columns(hashed, len(outlines), np.uint64)[0]


def _distinct(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first page of each key in the order of the keys, and the place of each page's key in that order."""
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return first, place


@njit(cache=True, nogil=True)
def _distinct_links(indptr, hashes, kinds, pages, first, last):  # type: ignore[no-untyped-def]
    """Return how many distinct links some pages have, and these."""
    sizes, room = np.empty(last - first, np.int64), 0
    for k in range(first, last):
        room += indptr[pages[k] + 1] - indptr[pages[k]]
    links, n = np.empty(room, np.uint64), 0
    for k in range(first, last):
        begin = n
        own = hashes[indptr[pages[k]] : indptr[pages[k] + 1]]
        for link in np.sort(own[kinds[indptr[pages[k]] : indptr[pages[k] + 1]] == LINK]):
            if n == begin or links[n - 1] != link:
                links[n] = link
                n += 1
        sizes[k - first] = n - begin
    return sizes, links[:n].copy()


@njit(cache=True, nogil=True)
def _invert(indptr, ids, n_ids):  # type: ignore[no-untyped-def]
    """Return the rows of each id, ascending."""
    starts = np.zeros(n_ids + 1, np.int64)
    for i in ids:
        starts[i + 1] += 1
    starts = np.cumsum(starts)
    at, rows = starts[:-1].copy(), np.empty(len(ids), np.int32)
    for row in range(len(indptr) - 1):
        for i in ids[indptr[row] : indptr[row + 1]]:
            rows[at[i]] = row
            at[i] += 1
    return starts, rows


def _links(outlines: Signatures, pages: NDArray[np.int64], blocks: PageBlocks) -> PageLinks:
    """Number the links of some pages, by hash."""
    from spotsigs.signatures.idf import dense_ids

    indptr, hashes, kinds = outlines.indptr, outlines.hashes, outlines.counts
    parts = blocks(lambda first, last: _distinct_links(indptr, hashes, kinds, pages, first, last), len(pages))
    sizes, links = concatenated(parts, (np.int64, np.uint64))
    del parts
    ids, vocabulary = dense_ids(links)
    del links
    indptr = row_starts(sizes)
    return PageLinks(pages, indptr, ids, *_invert(indptr, ids, len(vocabulary)))
