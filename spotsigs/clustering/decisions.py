"""Documents to keep, and the reason for each removal.

With clusters of leaders, a page is removed only if a kept page reaches tau with it, and no two kept pages reach tau.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.arrays.arrow import concat_strings, in_words, numbers
from spotsigs.arrays.row_blocks import gathered, own
from spotsigs.clustering.dates import UNKNOWN, microseconds
from spotsigs.errors import InputError, require
from spotsigs.exact_duplicates import CONTENT, TEXT, Copies
from spotsigs.records import Clusters, FloatArray, IntArray, Pairs
from spotsigs.spelling import option
from spotsigs.storage.store import names


class Keep(Enum):
    """Order of priority in which documents are kept.

    ``first``: the order of the collection. ``longest``, ``newest``: those first, ties in order of the collection.
    ``none``: only documents without any near-duplicate are kept, so that the order has no effect.
    """

    first = "first"
    longest = "longest"
    newest = "newest"
    none = "none"


def priority(
    keep: Keep, n: int, lengths: IntArray | None = None, dates: Iterable[str | None] | None = None
) -> NDArray[np.int64] | None:
    """Return the priority of each document for `spotsigs.clustering.clusters.cluster`.

    Smaller values come first. The result is None for ``first`` and ``none``, the order of the collection; ``longest``
    needs the lengths of the n documents, ``newest`` their dates, see `spotsigs.clustering.dates`. A document without a
    date counts as the oldest.

    Raises
    ------
    InputError
        If lengths or dates are missing.
    """
    if keep is Keep.longest:
        if lengths is None:
            raise InputError(f"{option('keep', 'longest')} needs the documents' lengths")
        return -np.asarray(lengths, dtype=np.int64)
    if keep is Keep.newest:
        times = np.fromiter(map(microseconds, () if dates is None else dates), np.int64)
        known = times != UNKNOWN
        require(
            bool(known.any()),
            f"{option('keep', 'newest')} needs dates, and no document has one that can be read (give ISO 8601)",
        )
        times[~known] = times[known].min() - 1
        return -times
    return None


@dataclass(frozen=True)
class Decisions:
    """Documents that are kept and removed.

    Attributes
    ----------
    clusters : Clusters
        Clusters of near-duplicates; a representative is the document that is kept.
    keep : Keep
        The policy.
    kept : ndarray of bool, shape (n,)
        True for each kept document.
    partner : ndarray of int32, shape (n,)
        The document of the pair that removes a document: the kept one of its cluster if they are a pair, otherwise the
        most similar of all, the first of equals; -1 for a document without pairs.
    similarity : ndarray of float64, shape (n,)
        Similarity to the partner; NaN without one, or where the method has no similarity.
    copies : Copies
        Exact duplicates.
    compared : ndarray of bool, shape (n,)
        True for a document with enough signatures to be compared.
    """

    clusters: Clusters
    keep: Keep
    kept: NDArray[np.bool_]
    partner: NDArray[np.int32]
    similarity: FloatArray
    copies: Copies
    compared: NDArray[np.bool_]

    def instead(self, rows: IntArray) -> NDArray[np.int32]:
        """Return the kept row that replaces each removed one; -1 for kept rows, and with ``none``."""
        leaders = self.clusters.representatives[self.clusters.labels[rows]]
        return np.where((leaders == rows) | (self.keep is Keep.none), np.int32(-1), leaders)

    def reasons(self, rows: IntArray, doc_ids: Sequence[str]) -> Any:
        """Return one sentence for each removed row that states why it is removed, as an Arrow array of strings."""
        import pyarrow.compute as pc

        instead, partner = self.instead(rows), self.partner[rows]
        kept, other = names(doc_ids, np.where(instead < 0, 0, instead)), names(doc_ids, partner)
        percent = in_words(self.similarity[rows], lambda value: "" if np.isnan(value) else f" (similarity {value:.3f})")
        kinds = self.copies.kinds(rows, partner)
        pair = _by_kind(
            kinds,
            concat_strings("identical content: copy of ", other),
            concat_strings("identical text: copy of ", other),
            concat_strings("near-duplicate of ", other, percent),
        )
        through = _by_kind(kinds, concat_strings(" (identical content)"), concat_strings(" (identical text)"), percent)
        return pc.case_when(
            pc.make_struct(numbers(instead < 0), numbers(instead == partner)),
            concat_strings(pair, ", and no document that has one is kept"),
            concat_strings(pair, ", which is kept"),
            concat_strings("in one cluster with ", kept, ", which is kept, through ", other, through),
        )


def _by_kind(kinds: NDArray[np.int8], content: Any, text: Any, near: Any) -> Any:
    import pyarrow.compute as pc

    return pc.case_when(pc.make_struct(numbers(kinds == CONTENT), numbers(kinds == TEXT)), content, text, near)


Chunks = Iterable[tuple[IntArray, IntArray, FloatArray]]


def decide(
    pairs: Pairs | Chunks,
    clusters: Clusters,
    keep: Keep = Keep.first,
    *,
    earlier: NDArray[np.bool_] | None = None,
    copies: Copies | None = None,
    compared: NDArray[np.bool_] | None = None,
) -> Decisions:
    """Keep the representative of each cluster; with ``none``, each document without a pair.

    Parameters
    ----------
    pairs : Pairs, or iterable of (i, j, similarity)
        Near-duplicate pairs, or the chunks of a `PairFiles`.
    clusters : Clusters
        Grouped with the policy's `priority`.
    keep : Keep
        The policy.
    earlier : ndarray of bool, shape (m,), optional
        True for those of the first m documents that an earlier run has kept. Its decisions are final.
    copies : Copies, optional
        Exact duplicates; none by default.
    compared : ndarray of bool, shape (n,), optional
        True for each document with enough signatures to be compared; all by default.
    """
    n = len(clusters.labels)
    preferred = np.full(n, -1, np.int32) if keep is Keep.none else gathered(clusters.representatives, clusters.labels)
    partner, similarity = np.full(n, -1, np.int32), np.full(n, np.nan)
    for i, j, values in pairs.chunks() if isinstance(pairs, Pairs) else pairs:
        _take_partner(i, j, values, preferred, partner, similarity)
    kept = partner < 0 if keep is Keep.none else own(preferred)
    if earlier is not None:
        kept[: len(earlier)] = earlier
    copies = Copies.none(n) if copies is None else copies
    compared = np.ones(n, np.bool_) if compared is None else compared
    return Decisions(clusters, keep, kept, partner, similarity, copies, compared)


@njit(cache=True, nogil=True)
def _take_partner(i, j, values, preferred, partner, similarity):  # type: ignore[no-untyped-def]
    """Keep the pair with the preferred document of each row, otherwise the most similar, the first of equals."""
    for p in range(len(i)):
        for row, other in ((i[p], j[p]), (j[p], i[p])):
            if partner[row] >= 0 and partner[row] == preferred[row]:
                continue
            new, old = values[p], similarity[row]
            more = new > old or (np.isnan(old) and not np.isnan(new))
            equal = new == old or (np.isnan(old) and np.isnan(new))
            if partner[row] < 0 or other == preferred[row] or more or (equal and other < partner[row]):
                partner[row] = other
                similarity[row] = new
