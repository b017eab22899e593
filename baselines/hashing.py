"""Helpers of the hashing baselines: mixed term hashes, and the pairs within and across buckets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spotsigs.errors import InputError
from spotsigs.records import Vectors

PAIR_LIMIT = 2**31
"""Maximal number of pairs, because the pairs of a bucket grow with the square of its size."""


def term_hashes(vectors: Vectors) -> NDArray[np.uint64]:
    """Return the 64-bit hash of each signature id, or the id itself if the vectors have no vocabulary."""
    if vectors.vocabulary is not None:
        return vectors.vocabulary
    return np.arange(vectors.n_signatures, dtype=np.uint64)


def splitmix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the splitmix64 output (increment and finaliser) of each value, a bijection on 64 bits.

    References
    ----------
    G. L. Steele, D. Lea and C. H. Flood. Fast splittable pseudorandom number generators. OOPSLA 2014.
    """
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def group_rows(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows sorted by label, and the CSR starts of the labels; rows with a negative label are dropped."""
    order = np.argsort(labels, kind="stable")
    rows = order[np.searchsorted(labels[order], 0) :]
    indptr = np.searchsorted(labels[rows], np.arange(labels.max(initial=-1) + 2))
    return rows, indptr


def pairs_within(rows: NDArray[np.int64], indptr: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all pairs ``i < j`` of rows in the same group of `group_rows`; refuse more than 2**31 pairs."""
    ends = np.repeat(indptr[1:], np.diff(indptr))
    partners = ends - np.arange(1, len(rows) + 1)
    _check(int(partners.sum()))
    first = np.repeat(np.arange(len(rows)), partners)
    second = first + 1 + _ramp(partners)
    return rows[first], rows[second]


def pairs_across(
    rows: NDArray[np.int64], indptr: NDArray[np.int64], g: NDArray[np.int64], h: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the products of the rows of each pair of groups ``(g[p], h[p])``, in either order, and the p of each pair.

    More than 2**31 pairs are refused.
    """
    sizes = np.diff(indptr)
    products = sizes[g] * sizes[h]
    _check(int(products.sum()))
    source = np.repeat(np.arange(len(g)), products)
    left, right = np.divmod(_ramp(products), sizes[h][source])
    return rows[indptr[g][source] + left], rows[indptr[h][source] + right], source


def _ramp(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 0, 1, …, size - 1 for each size, concatenated."""
    return np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _check(total: int) -> None:
    if total > PAIR_LIMIT:
        raise InputError(f"the fingerprints agree on {total:,} pairs, more than 2**31; choose a narrower setting")
