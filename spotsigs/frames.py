"""Frame-aware suppression: a page's spots without those that belong to its site's frame.

Pages that share links and not their main part stand in the same frame, and what else they share is the frame's. There
are two passes over a collection. The first finds each page's neighbours, pages whose links are alike, by an exact set
join. The second chooses its mates among them, drops what it shares with enough of them, and narrows what is left to the
main part. All that follows, IDF, vectors, matching, works on plain multisets as ever, so that matching stays exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.errors import require
from spotsigs.frame_kernels import Links, Portraits, portray, search, suppress
from spotsigs.kernels import all_cores, joined, over_blocks
from spotsigs.records import Signatures, Tokens
from spotsigs.regions import LINK, DensestRegion, outline_of

_BLOCK_PAGES = 2048


@dataclass(frozen=True, kw_only=True)
class FramedSpots(DensestRegion):
    """Spot signatures of what a page says itself: its site's frame suppressed, its main part kept.

    1. Neighbours of a page are other pages whose sets of links have a Jaccard similarity of at least ``alike``: a
       sample of at most ``sample``, those first in an order given by their content. Exact copies count once.
    2. Mates are the neighbours whose main parts (`spotsigs.regions`) have a similarity below ``alike``: they share the
       frame only. Main parts that are alike, but not the same (similarity below 1/2), still belong to mates if at least
       four neighbours of different content agree: if at most a ``share`` of the spots that any of them has in common
       with the page is missing in some of them. Versions of one text differ from one another in what they share.
    3. A spot that at least a ``share`` of the mates has is the frame's and is dropped.
    4. The page's main part is found once more, where each dropped spot counts -1, and what lies outside is dropped. A
       page without mates keeps its main part as it is.

    The result depends neither on the order of the documents nor on threads. Text without links has neither neighbours
    nor anything to narrow it: all its spots stay.

    Attributes
    ----------
    d, c, antecedents, stopwords, include_antecedent
        As in `DensestRegion`.
    alike : float
        Jaccard similarity in (0, 1/2) from which two sets are alike.
    share : float
        Part in (0, 1) of a page's mates that makes a spot the frame's.
    sample : int
        Neighbours that are looked at, at least 1.
    """

    label: ClassVar[str] = "SpotSigs, framed"

    alike: float = 0.1
    share: float = 1 / 3
    sample: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.alike < 0.5, f"alike, a Jaccard similarity, must lie in (0, 0.5), got {self.alike}")
        require(0 < self.share < 1, f"share, of a page's mates, must lie in (0, 1), got {self.share}")
        require(self.sample >= 1, f"sample, of a page's neighbours, must be at least 1, got {self.sample}")

    def outline(self, tokens: Tokens) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Return what `refine` needs of a page: the hashes and kinds of its spots and links, in text order."""
        return outline_of(self, tokens)

    def refine(self, outlines: Signatures, *, threads: int | None = None) -> Signatures:
        """Turn the outlines of a whole collection into signatures.

        Parameters
        ----------
        outlines : Signatures
            Rows of `outline`: hashes in text order, kinds in place of counts.
        threads : int, optional
            All cores where omitted.

        Returns
        -------
        Signatures
            The same documents with the spots that stay.
        """
        found = find_neighbours(outlines, self.alike, self.sample, threads=threads)
        return suppressed(outlines, found, self.alike, self.share, threads=threads)


@dataclass(frozen=True)
class Neighbours:
    """Pages whose links are alike, a sample for each page.

    Attributes
    ----------
    keys : ndarray of uint64, shape (n,)
        Hash of each page's outline, by which pages are ordered; equal for exact copies.
    indptr : ndarray of int64, shape (n + 1,)
        Row ``r`` lies at ``indptr[r]:indptr[r + 1]``.
    pages : ndarray of int32
        Row numbers of the neighbours, ascending by key, of exact copies the first.
    """

    keys: NDArray[np.uint64]
    indptr: NDArray[np.int64]
    pages: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.keys)

    def of(self, page: int) -> NDArray[np.int32]:
        """Return the neighbours of a page."""
        return self.pages[self.indptr[page] : self.indptr[page + 1]]


def find_neighbours(outlines: Signatures, alike: float, most: int, *, threads: int | None = None) -> Neighbours:
    """Find, for each page, the first other pages in the order of the keys whose links are alike.

    An exact set join over links with a threshold, stopped at each page's first so many results.

    Parameters
    ----------
    outlines : Signatures
        See `FramedSpots.refine`.
    alike : float
        Least Jaccard similarity of two pages' sets of links.
    most : int
        Neighbours a page, at most.
    threads : int, optional
        All cores where omitted.

    Returns
    -------
    Neighbours
    """
    keys = _keys(outlines, threads)
    distinct, copy_of = _distinct(keys)
    links = _links(outlines, distinct, threads)
    indptr, found = _search(links, links, np.arange(len(distinct), dtype=np.int32), alike, most, threads)
    return Neighbours(keys, *_spread(indptr, distinct[found].astype(np.int32), copy_of))


def update_neighbours(
    old: Neighbours, outlines: Signatures, alike: float, most: int, *, threads: int | None = None
) -> tuple[Neighbours, NDArray[np.int64]]:
    """Find the neighbours after pages have been added, looking only at pairs with a new page.

    Parameters
    ----------
    old : Neighbours
        Of the first pages, found with the same ``alike`` and ``most``.
    outlines : Signatures
        Of all pages, the old ones first.
    alike, most, threads
        As in `find_neighbours`.

    Returns
    -------
    neighbours : Neighbours
        What `find_neighbours` gives for all pages.
    affected : ndarray of int64
        Old pages whose neighbours are others now: those that must be refined again. All other old pages keep their
        signatures.
    """
    n_old = len(old)
    keys = np.concatenate([old.keys, _keys(outlines, threads, first=n_old)])
    distinct, copy_of = _distinct(keys)
    is_new = distinct >= n_old
    links = _links(outlines, distinct, threads)
    fresh = _take(links, np.flatnonzero(is_new))
    nowhere = np.full(len(distinct), np.count_nonzero(is_new), np.int32)
    indptr, found = _search(_take(links, np.flatnonzero(~is_new)), fresh, nowhere, alike, most, threads)
    added = distinct[is_new][found].astype(np.int32)
    ranks = np.flatnonzero(is_new).astype(np.int32)
    new_indptr, new_found = _search(fresh, links, ranks, alike, most, threads)
    lists: list[NDArray[np.int32]] = [np.empty(0, np.int32)] * len(distinct)
    for k, page in enumerate(distinct[~is_new].tolist()):
        both = np.concatenate([old.of(page), added[indptr[k] : indptr[k + 1]]])
        lists[np.flatnonzero(~is_new)[k]] = both[np.argsort(keys[both], kind="stable")][:most]
    for k, rank in enumerate(ranks.tolist()):
        lists[rank] = distinct[new_found[new_indptr[k] : new_indptr[k + 1]]].astype(np.int32)
    sizes = np.array([len(pages) for pages in lists], np.int64)
    joined = np.concatenate([np.empty(0, np.int32), *lists])
    found_all = Neighbours(keys, *_spread(np.concatenate([[0], np.cumsum(sizes)]), joined, copy_of))
    changed = [page for page in range(n_old) if not np.array_equal(old.of(page), found_all.of(page))]
    return found_all, np.array(changed, np.int64)


def suppressed(
    outlines: Signatures,
    neighbours: Neighbours,
    alike: float,
    share: float,
    *,
    threads: int | None = None,
) -> Signatures:
    """Drop from every page the spots of its frame and those outside its main part.

    Parameters
    ----------
    outlines : Signatures
        See `FramedSpots.refine`.
    neighbours : Neighbours
        Of all pages.
    alike, share : float
        See `FramedSpots`.
    threads : int, optional
        All cores where omitted.

    Returns
    -------
    Signatures
    """
    pages = portraits(outlines, threads)
    parts = _over_pages(
        lambda first, last: suppress(pages, neighbours.indptr, neighbours.pages, alike, share, first, last),
        len(outlines),
        threads,
    )
    sizes, hashes, counts, _ = joined(parts, (np.int64, np.uint64, np.int32, np.int32))
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return replace(outlines, indptr=indptr, hashes=hashes, counts=counts)


def portraits(outlines: Signatures, threads: int | None = None) -> Portraits:
    """Return what the second pass compares of each page."""
    indptr, hashes, kinds = outlines.indptr, outlines.hashes, outlines.counts
    parts = _over_pages(lambda first, last: portray(indptr, hashes, kinds, first, last), len(outlines), threads)
    sizes, spots, is_main = joined(parts, (np.int64, np.uint64, np.bool_))
    return Portraits(indptr, hashes, kinds, np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), spots, is_main)


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


def _keys(outlines: Signatures, threads: int | None, first: int = 0) -> NDArray[np.uint64]:
    parts = _over_pages(
        lambda start, stop: (
            _hash_outlines(outlines.indptr, outlines.hashes, outlines.counts, first + start, first + stop),
        ),
        len(outlines) - first,
        threads,
    )
    keys: NDArray[np.uint64] = joined(parts, (np.uint64,))[0]
    return keys


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
def _sort_rows(indptr, ids, first, last):  # type: ignore[no-untyped-def]
    for row in range(first, last):
        ids[indptr[row] : indptr[row + 1]].sort()


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


def _links(outlines: Signatures, pages: NDArray[np.int64], threads: int | None) -> Links:
    """Number the links of some pages, rarest first, equally rare ones by hash."""
    from spotsigs.vectors import dense_ids

    indptr, hashes, kinds = outlines.indptr, outlines.hashes, outlines.counts
    parts = _over_pages(
        lambda first, last: _distinct_links(indptr, hashes, kinds, pages, first, last), len(pages), threads
    )
    sizes, links = joined(parts, (np.int64, np.uint64))
    ids, vocabulary = dense_ids(links)
    del links, parts
    order = np.argsort(np.bincount(ids, minlength=len(vocabulary)), kind="stable")
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    ids = place[ids]
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    over_blocks(lambda first, last: _sort_rows(indptr, ids, first, last), len(pages), threads)
    return Links(indptr, ids, *_invert(indptr, ids, len(order)))


def _take(links: Links, rows: NDArray[np.int64]) -> Links:
    """Return the links of some pages, numbered as before."""
    sizes = links.indptr[rows + 1] - links.indptr[rows]
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    ids = links.ids[np.arange(indptr[-1]) + np.repeat(links.indptr[rows] - indptr[:-1], sizes)]
    return Links(indptr, ids, *_invert(indptr, ids, len(links.posting_indptr) - 1))


def _search(
    left: Links, right: Links, ranks: NDArray[np.int32], alike: float, most: int, threads: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    parts = _over_pages(
        lambda first, last: search(left, right, ranks, alike, most, first, last), len(left.indptr) - 1, threads
    )
    sizes, found = joined(parts, (np.int64, np.int32))
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), found


def _spread(
    indptr: NDArray[np.int64], values: NDArray[np.int32], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the given rows of a CSR, in the given order."""
    sizes = indptr[rows + 1] - indptr[rows]
    spread = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return spread, values[np.arange(spread[-1]) + np.repeat(indptr[rows] - spread[:-1], sizes)]


def _over_pages(kernel: Callable[[int, int], Any], n: int, threads: int | None) -> list[Any]:
    """Run a kernel over blocks of pages, of about two thousand each in a large collection."""
    threads = all_cores() if threads is None else threads
    return over_blocks(kernel, n, threads, blocks_a_thread=max(8, -(-n // (threads * _BLOCK_PAGES))))
