"""What the hashing baselines share: mixed term hashes, and the pairs that lie in and across buckets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spotsigs.errors import InputError
from spotsigs.records import Vectors

PAIR_LIMIT = 2**31
"""Most pairs that are written out: a bucket's pairs are quadratic, and row numbers are 32-bit."""


def term_hashes(vectors: Vectors) -> NDArray[np.uint64]:
    """Return the 64-bit hash behind each signature id, or the id itself where the vectors carry no vocabulary.

    Returns
    -------
    ndarray of uint64, shape (n_signatures,)
    """
    if vectors.vocabulary is not None:
        return vectors.vocabulary
    return np.arange(vectors.n_signatures, dtype=np.uint64)


def splitmix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the splitmix64 output (increment and finaliser) of each value, a bijection on 64 bits.

    Parameters
    ----------
    x : ndarray of uint64

    Returns
    -------
    ndarray of uint64, same shape

    References
    ----------
    G. L. Steele, D. Lea and C. H. Flood. Fast splittable pseudorandom number generators. OOPSLA 2014.
    """
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def group_rows(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort rows by label, those with a negative label left out.

    Parameters
    ----------
    labels : ndarray of int64, shape (n,)

    Returns
    -------
    rows : ndarray of int64
        Row numbers, by label and then by number.
    indptr : ndarray of int64, shape (labels.max() + 2,)
        The rows of label ``g`` lie at ``indptr[g]:indptr[g + 1]``.
    """
    order = np.argsort(labels, kind="stable")
    rows = order[np.searchsorted(labels[order], 0) :]
    indptr = np.searchsorted(labels[rows], np.arange(labels.max(initial=-1) + 2))
    return rows, indptr


def pairs_within(rows: NDArray[np.int64], indptr: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all pairs of rows of the same group, as `group_rows` gives them.

    Returns
    -------
    i, j : ndarray of int64
        ``i < j``.

    Raises
    ------
    InputError
        If there are more than 2**31 such pairs.
    """
    ends = np.repeat(indptr[1:], np.diff(indptr))
    partners = ends - np.arange(1, len(rows) + 1)
    _check(int(partners.sum()))
    first = np.repeat(np.arange(len(rows)), partners)
    second = first + 1 + _ramp(partners)
    return rows[first], rows[second]


def pairs_across(
    rows: NDArray[np.int64], indptr: NDArray[np.int64], g: NDArray[np.int64], h: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each pair of groups ``(g[p], h[p])``, every row of the one with every row of the other.

    Returns
    -------
    i, j : ndarray of int64
        Row numbers, not oriented.
    source : ndarray of int64
        The ``p`` that each row pair comes from.

    Raises
    ------
    InputError
        If there are more than 2**31 such pairs.
    """
    sizes = np.diff(indptr)
    products = sizes[g] * sizes[h]
    _check(int(products.sum()))
    source = np.repeat(np.arange(len(g)), products)
    left, right = np.divmod(_ramp(products), sizes[h][source])
    return rows[indptr[g][source] + left], rows[indptr[h][source] + right], source


def _ramp(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 0, 1, …, size - 1 for each size, one after the other."""
    return np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _check(total: int) -> None:
    if total > PAIR_LIMIT:
        raise InputError(f"the fingerprints agree on {total:,} pairs, more than 2**31; choose a narrower setting")
