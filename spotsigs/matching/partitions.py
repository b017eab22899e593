"""Length partitions (paper, section 4.2)."""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.typing import NDArray

from spotsigs.errors import as_choice, as_count, as_flag, as_tau

MOST_RHO = 10**7
"""Largest boundary: lengths are tried one by one."""


class Convention(Enum):
    """Source of the partitions: the paper's formula or the authors' prototype."""

    paper = "paper"
    prototype = "prototype"


def partition_boundaries(
    tau: float, rho: int = 1000, convention: str | Convention = Convention.paper, *, exact: bool | None = None
) -> NDArray[np.int64]:
    """Return the smallest length of every partition.

    Partition ``k`` contains the lengths from ``p[k]`` up to but not including ``p[k + 1]``; the last one is open. Two
    similar documents are in the same partition or in neighbouring ones (condition (A)).

    Parameters
    ----------
    tau : float
        Similarity threshold in (0, 1].
    rho : int
        Largest boundary; all longer documents are in the last partition.
    convention : {"paper", "prototype"}
        ``paper``: ``p[k + 1]`` is the smallest integer with ``p[k + 1] - p[k] > (1 - tau) p[k + 1]`` (section 4.2).
        ``prototype``: closed buckets ``[last, i]`` for the smallest ``i`` with ``i - last > (1 - tau) i``, the next
        one starting at ``i + 1``, and one open bucket at the end. Only these yield the counts in section 5.1
        (501, 41 and 3 for tau 1.0, 0.9 and 0.1).
    exact : bool, optional
        Evaluate the inequality exactly (as ``p[k] / p[k + 1] < tau``), or in floating point as written. By default,
        the paper's formula is exact, and the prototype's is not, as in its code: 41 partitions instead of 40 at tau
        0.9.

    Returns
    -------
    ndarray of int64, shape (n_partitions,)
        Ascending, starting at 1.

    Raises
    ------
    InputError
        If tau is outside (0, 1], rho is not positive, or the convention is unknown.
    """
    tau = as_tau(tau)
    rho = as_count("rho", rho, most=MOST_RHO)
    convention = as_choice("convention", convention, Convention)
    exact = convention is Convention.paper if exact is None else as_flag("exact", exact)

    def too_far(low: int, high: int) -> bool:
        return not low / high >= tau if exact else high - low > (1 - tau) * high

    boundaries = [1]
    for length in range(2, rho + 1):
        if too_far(boundaries[-1], length):
            boundaries.append(length if convention is Convention.paper else length + 1)
    return np.asarray(boundaries, dtype=np.int64)
