"""Which documents of a cluster stay, and why the others go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.arrays.arrow import concat_strings, in_words, numbers
from spotsigs.arrays.row_blocks import gathered, spans
from spotsigs.clustering.dates import UNKNOWN, microseconds
from spotsigs.errors import InputError, require
from spotsigs.exact_duplicates import CONTENT, TEXT, Copies
from spotsigs.records import Clusters, FloatArray, IntArray, Pairs
from spotsigs.storage.store import names


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
    keep: Keep, n: int, lengths: IntArray | None = None, dates: Iterable[str | None] | None = None
) -> NDArray[np.int64] | None:
    """Return what makes `spotsigs.clustering.clusters.cluster` choose the document that stays as representative.

    Parameters
    ----------
    keep : Keep
        The policy.
    n : int
        Number of documents.
    lengths : ndarray of int, shape (n,), optional
        For ``longest``.
    dates : iterable of (str or None), optional
        For ``newest``, see `spotsigs.clustering.dates`; a document without a date counts as the oldest.

    Returns
    -------
    ndarray of int64, shape (n,), or None
        The smallest value of a cluster stays; None for ``first`` and ``none``, where order is all that counts.

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
        times = np.fromiter(map(microseconds, () if dates is None else dates), np.int64)
        known = times != UNKNOWN
        require(bool(known.any()), "keep=newest needs dates, and no document has one that can be read (give ISO 8601)")
        times[~known] = times[known].min() - 1
        return -times
    return None


@dataclass(frozen=True)
class Decisions:
    """What stays and what goes.

    Attributes
    ----------
    clusters : Clusters
        Which documents belong together; a representative is the one that stays.
    keep : Keep
        The policy.
    kept : ndarray of bool, shape (n,)
        Whether each document stays.
    partner : ndarray of int32, shape (n,)
        The most similar document of the pairs, the first of equal ones; -1 for a document without pairs.
    similarity : ndarray of float64, shape (n,)
        Similarity to the partner; NaN without one, or where the method has no similarity.
    copies : Copies
        Which documents are copies of which.
    compared : ndarray of bool, shape (n,)
        Whether a document had signatures to be compared by; where it had none, nobody knows what it is similar to.
    boilerplate : ndarray of bool, shape (n,)
        Whether that is because it says nothing but what many sites say.
    """

    clusters: Clusters
    keep: Keep
    kept: NDArray[np.bool_]
    partner: NDArray[np.int32]
    similarity: FloatArray
    copies: Copies
    compared: NDArray[np.bool_]
    boilerplate: NDArray[np.bool_]

    def instead(self, rows: IntArray) -> NDArray[np.int32]:
        """Return the row that stays in place of each removed one; -1 for what stays, and where nothing stays."""
        heads = self.clusters.representatives[self.clusters.labels[rows]]
        return np.where((heads == rows) | (self.keep is Keep.none), np.int32(-1), heads)

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

        instead, partner = self.instead(rows), self.partner[rows]
        alone = instead < 0
        similarity = self.clusters.similarity_to_representative[rows]
        direct = ~alone & ((instead == partner) | ~np.isnan(similarity))
        instead = np.where(alone, 0, instead)
        kept, nearest = names(doc_ids, instead), names(doc_ids, partner)
        to_kept, to_nearest = _percent(similarity), _percent(self.similarity[rows])
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


@dataclass(frozen=True)
class Nearest:
    """The nearest partner of each document.

    Attributes
    ----------
    partner : ndarray of int32, shape (n,)
        The most similar document of the pairs, the first of equal ones; -1 for a document without pairs.
    similarity : ndarray of float64, shape (n,)
        Similarity to the partner; NaN without one, or where the method has no similarity.
    """

    partner: NDArray[np.int32]
    similarity: FloatArray

    @classmethod
    def among(cls, chunks: Chunks, n: int) -> Nearest:
        """Find it among the pairs of n documents."""
        partner, similarity = np.full(n, -1, np.int32), np.full(n, np.nan)
        for i, j, values in chunks:
            _take_nearer(i, j, values, partner, similarity)
        return cls(partner, similarity)


def decide(
    pairs: Pairs | Chunks | Nearest,
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
    pairs : Pairs, or iterable of (i, j, similarity), or Nearest
        Near-duplicate pairs, the chunks of a `PairFiles`, or what is already known of them.
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
    if not isinstance(pairs, Nearest):
        pairs = Nearest.among(pairs.chunks() if isinstance(pairs, Pairs) else pairs, n)
    if keep is Keep.none:
        kept = gathered(clusters.sizes == 1, clusters.labels)
    else:
        kept = np.zeros(n, np.bool_)
        for span in spans(len(clusters.representatives)):
            kept[clusters.representatives[span]] = True
    copies = Copies.none(n) if copies is None else copies
    compared = np.ones(n, np.bool_) if compared is None else compared
    boilerplate = np.zeros(n, np.bool_) if boilerplate is None else boilerplate
    return Decisions(clusters, keep, kept, pairs.partner, pairs.similarity, copies, compared, boilerplate)


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
