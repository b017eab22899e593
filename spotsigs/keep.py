"""Which documents of a cluster stay, and why the others go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from spotsigs.errors import InputError, require
from spotsigs.records import Clusters, FloatArray, IntArray, Pairs


class Keep(Enum):
    """Which document of a cluster stays.

    ``first``: the first one of the collection. ``longest``, ``newest``: that one, ties going to the first. ``none``:
    no document that has a near-duplicate.
    """

    first = "first"
    longest = "longest"
    newest = "newest"
    none = "none"


def priority(
    keep: Keep, n: int, lengths: IntArray | None = None, dates: Sequence[str | None] | None = None
) -> NDArray[np.int64]:
    """Return what makes `spotsigs.clusters.cluster` choose the document that stays as representative.

    Parameters
    ----------
    keep : Keep
        The policy.
    n : int
        Number of documents.
    lengths : ndarray of int, shape (n,), optional
        For ``longest``.
    dates : sequence of (str or None), optional
        ISO 8601, for ``newest``; a document without a date counts as the oldest.

    Returns
    -------
    ndarray of int64, shape (n,)
        The smallest value of a cluster stays.

    Raises
    ------
    InputError
        If lengths or dates are missing.
    """
    if keep is Keep.longest:
        if lengths is None:
            raise InputError("keep=longest needs the documents' lengths")
        return -np.asarray(lengths, dtype=np.int64)
    if keep is Keep.newest:
        times = [_seconds(date) for date in dates or ()]
        require(any(time is not None for time in times), "keep=newest needs dates, and no document has one that is ISO")
        oldest = min(time for time in times if time is not None) - 1
        return -np.array([oldest if time is None else time for time in times], dtype=np.int64)
    return np.zeros(n, dtype=np.int64)


def _seconds(date: str | None) -> int | None:
    try:
        moment = datetime.fromisoformat(date or "")
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())


@dataclass(frozen=True)
class Decisions:
    """What stays and what goes.

    Attributes
    ----------
    kept : ndarray of bool, shape (n,)
        Whether each document stays.
    instead : ndarray of int32, shape (n,)
        The row that stays in place of a removed one; -1 for what stays, and where nothing stays.
    partner : ndarray of int32, shape (n,)
        The most similar document of the pairs, the first of equal ones; -1 for a document without pairs.
    similarity : ndarray of float64, shape (n,)
        Similarity to the partner; NaN without one, or where the method has no similarity.
    similarity_to_instead : ndarray of float64, shape (n,)
        NaN where that pair was not reported.
    """

    kept: NDArray[np.bool_]
    instead: NDArray[np.int32]
    partner: NDArray[np.int32]
    similarity: FloatArray
    similarity_to_instead: FloatArray

    def reason(self, row: int, doc_ids: Sequence[str]) -> str:
        """Say in one sentence why a removed document was removed."""
        partner = doc_ids[int(self.partner[row])]
        if self.instead[row] < 0:
            return f"near-duplicate of {partner}{_percent(self.similarity[row])}, and no document that has one is kept"
        instead = doc_ids[int(self.instead[row])]
        if self.instead[row] == self.partner[row] or not np.isnan(self.similarity_to_instead[row]):
            return f"near-duplicate of {instead}{_percent(self.similarity_to_instead[row])}, which is kept"
        return f"in one cluster with {instead}, which is kept, by way of {partner}{_percent(self.similarity[row])}"


def _percent(similarity: float) -> str:
    return "" if np.isnan(similarity) else f" (similarity {similarity:.3f})"


def decide(pairs: Pairs, clusters: Clusters, keep: Keep = Keep.first) -> Decisions:
    """Decide which documents stay.

    Parameters
    ----------
    pairs : Pairs
        Near-duplicate pairs.
    clusters : Clusters
        Grouped with the policy's `priority`.
    keep : Keep
        The policy.

    Returns
    -------
    Decisions
        One document of each cluster stays, or with ``none`` only those that are alone in theirs.
    """
    n = len(clusters.labels)
    partner, similarity = _nearest(pairs, n)
    representative = clusters.representatives[clusters.labels]
    if keep is Keep.none:
        kept = clusters.sizes[clusters.labels] == 1
        instead = np.full(n, -1, dtype=np.int32)
    else:
        kept = representative == np.arange(n)
        instead = np.where(kept, -1, representative).astype(np.int32)
    to_instead = np.where(instead < 0, np.nan, clusters.similarity_to_representative)
    return Decisions(kept, instead, partner, similarity, to_instead)


def _nearest(pairs: Pairs, n: int) -> tuple[NDArray[np.int32], FloatArray]:
    """Return each row's most similar partner and that similarity."""
    rows = np.concatenate([pairs.i, pairs.j])
    others = np.concatenate([pairs.j, pairs.i])
    values = np.concatenate([pairs.similarity, pairs.similarity])
    order = np.lexsort((others, -np.nan_to_num(values, nan=-1.0), rows))
    rows, first = np.unique(rows[order], return_index=True)
    partner = np.full(n, -1, dtype=np.int32)
    similarity = np.full(n, np.nan)
    partner[rows] = others[order][first]
    similarity[rows] = values[order][first]
    return partner, similarity
