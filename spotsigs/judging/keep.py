"""Which documents of a cluster stay, and why the others go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.arrays.arrow import concat_strings, in_words, numbers
from spotsigs.copies import CONTENT, TEXT, Copies
from spotsigs.disk.store import names
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
    """Return what makes `spotsigs.judging.clusters.cluster` choose the document that stays as representative.

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
        times = [_microseconds(date) for date in dates or ()]
        require(any(time is not None for time in times), "keep=newest needs dates, and no document has one that is ISO")
        oldest = min(time for time in times if time is not None) - 1
        return -np.array([oldest if time is None else time for time in times], dtype=np.int64)
    return np.zeros(n, dtype=np.int64)


def _microseconds(date: str | None) -> int | None:
    try:
        moment = datetime.fromisoformat(date or "")
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


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
    copies : Copies
        Which documents are copies of which.
    compared : ndarray of bool, shape (n,)
        Whether a document had signatures to be compared by; where it had none, nobody knows what it is similar to.
    boilerplate : ndarray of bool, shape (n,)
        Whether that is because it says nothing but what many sites say.
    """

    kept: NDArray[np.bool_]
    instead: NDArray[np.int32]
    partner: NDArray[np.int32]
    similarity: FloatArray
    similarity_to_instead: FloatArray
    copies: Copies
    compared: NDArray[np.bool_]
    boilerplate: NDArray[np.bool_]

    def reasons(self, rows: IntArray, doc_ids: Sequence[str]) -> Any:
        """Say in one sentence each why documents were removed.

        Parameters
        ----------
        rows : ndarray of int, shape (n,)
            Removed documents.
        doc_ids : sequence of str
            Ids of all documents, by row.

        Returns
        -------
        pyarrow.Array of string, shape (n,)
        """
        import pyarrow.compute as pc

        instead, partner = self.instead[rows], self.partner[rows]
        alone = instead < 0
        direct = ~alone & ((instead == partner) | ~np.isnan(self.similarity_to_instead[rows]))
        instead = np.where(alone, 0, instead)
        kept, nearest = names(doc_ids, instead), names(doc_ids, partner)
        to_kept, to_nearest = _percent(self.similarity_to_instead[rows]), _percent(self.similarity[rows])
        of_kept, of_nearest = self.copies.kinds(rows, instead), self.copies.kinds(rows, partner)
        by_way = _by_kind(
            of_nearest, concat_strings(" (identical content)"), concat_strings(" (identical text)"), to_nearest
        )
        return pc.case_when(
            pc.make_struct(numbers(alone), numbers(direct)),
            concat_strings(_copy_or_near(of_nearest, nearest, to_nearest), ", and no document that has one is kept"),
            concat_strings(_copy_or_near(of_kept, kept, to_kept), ", which is kept"),
            concat_strings("in one cluster with ", kept, ", which is kept, by way of ", nearest, by_way),
        )


def _copy_or_near(kinds: NDArray[np.int8], others: Any, similarity: Any) -> Any:
    content, text = (
        concat_strings("identical content: copy of ", others),
        concat_strings("identical text: copy of ", others),
    )
    return _by_kind(kinds, content, text, concat_strings("near-duplicate of ", others, similarity))


def _by_kind(kinds: NDArray[np.int8], content: Any, text: Any, near: Any) -> Any:
    import pyarrow.compute as pc

    return pc.case_when(pc.make_struct(numbers(kinds == CONTENT), numbers(kinds == TEXT)), content, text, near)


def _percent(similarity: FloatArray) -> Any:
    return in_words(similarity, lambda value: "" if np.isnan(value) else f" (similarity {value:.3f})")


Chunks = Iterable[tuple[IntArray, IntArray, FloatArray]]


def decide(
    pairs: Pairs | Chunks,
    clusters: Clusters,
    keep: Keep = Keep.first,
    *,
    copies: Copies | None = None,
    compared: NDArray[np.bool_] | None = None,
    boilerplate: NDArray[np.bool_] | None = None,
) -> Decisions:
    """Decide which documents stay.

    Parameters
    ----------
    pairs : Pairs, or iterable of (i, j, similarity)
        Near-duplicate pairs, or what `spotsigs.crawl.block_join.PairFiles.chunks` gives.
    clusters : Clusters
        Grouped with the policy's `priority`.
    keep : Keep
        The policy.
    copies : Copies, optional
        Which documents are copies of which; none by default.
    compared : ndarray of bool, shape (n,), optional
        Whether each document had signatures to be compared by; all by default.
    boilerplate : ndarray of bool, shape (n,), optional
        Whether each document says nothing but what many sites say; none by default.

    Returns
    -------
    Decisions
        One document of each cluster stays, or with ``none`` only those that are alone in theirs.
    """
    n = len(clusters.labels)
    partner, similarity = _nearest(pairs.chunks() if isinstance(pairs, Pairs) else pairs, n)
    representative = clusters.representatives[clusters.labels]
    if keep is Keep.none:
        kept = clusters.sizes[clusters.labels] == 1
        instead = np.full(n, -1, dtype=np.int32)
    else:
        kept = representative == np.arange(n)
        instead = np.where(kept, -1, representative).astype(np.int32)
    to_instead = np.where(instead < 0, np.nan, clusters.similarity_to_representative)
    copies = Copies.none(n) if copies is None else copies
    compared = np.ones(n, np.bool_) if compared is None else compared
    boilerplate = np.zeros(n, np.bool_) if boilerplate is None else boilerplate
    return Decisions(kept, instead, partner, similarity, to_instead, copies, compared, boilerplate)


def _nearest(chunks: Chunks, n: int) -> tuple[NDArray[np.int32], FloatArray]:
    """Return each row's most similar partner, the first of equal ones, and that similarity."""
    partner, similarity = np.full(n, -1, np.int32), np.full(n, np.nan)
    for i, j, values in chunks:
        _take_nearer(i, j, values, partner, similarity)
    return partner, similarity


@njit(cache=True, nogil=True)
def _take_nearer(i, j, values, partner, similarity):  # type: ignore[no-untyped-def]
    for p in range(len(i)):
        for row, other in ((i[p], j[p]), (j[p], i[p])):
            new, old = values[p], similarity[row]
            nearer = new > old or (np.isnan(old) and not np.isnan(new))
            equal = new == old or (np.isnan(old) and np.isnan(new))
            if partner[row] < 0 or nearer or (equal and other < partner[row]):
                partner[row] = other
                similarity[row] = new
