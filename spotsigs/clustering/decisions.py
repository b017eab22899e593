"""Documents to keep, and the reason for each removal.

With clusters of leaders, a page is removed only if a kept page reaches tau with it and may replace it, see
`spotsigs.signatures.contained.RemovalRule`. Of two kept pages, the later one in order of priority may not be removed
for the other one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import Enum
from math import isnan, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.arrow import arrow_numbers, chosen_text, concatenated, mapped_text, null_unless
from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.row_blocks import gathered, is_identity
from spotsigs.clustering.clusters import Counts, every_pair
from spotsigs.errors import InputError, flag, option, require
from spotsigs.records import Clusters, FloatArray, IntArray, Pairs
from spotsigs.signatures.contained import RemovalRule
from spotsigs.storage.exact_duplicates import ExactDuplicates

UNKNOWN = int(np.iinfo(np.int64).min)
"""Value for a date that is missing or cannot be read."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PARTS = re.compile(r"(\d{4})(?:-?(\d\d))?")
_TIMESTAMP = re.compile(r"(\d{8})(\d{6})(?:\d{3})?")


class Keep(Enum):
    """Order of priority in which documents are kept.

    ``first``: the order of the collection. ``longest``, ``newest``, and by a score in place of the date ``largest`` and
    ``smallest``: those first, ties in order of the collection. ``none``: only documents without any near-duplicate are
    kept, so that the order has no effect.
    """

    first = "first"
    longest = "longest"
    newest = "newest"
    largest = "largest"
    smallest = "smallest"
    none = "none"


_EXACT = 2.0**53  # float64 has all integers below it

BY_SCORE = (Keep.largest, Keep.smallest)
"""Orders by the number in the column of dates."""


def keep_by(column: str) -> tuple[Keep, str]:
    """Return the order and the column of scores; a hyphen before its name puts the smallest first."""
    return (Keep.smallest, column[1:]) if column.startswith("-") else (Keep.largest, column)


def priority(
    keep: Keep, n: int, lengths: IntArray | None = None, dates: Iterable[str | None] | None = None
) -> NDArray[np.int64] | None:
    """Return the priority of each document for `spotsigs.clustering.clusters.cluster`.

    Smaller values come first. The result is None for ``first`` and ``none``, the order of the collection; ``longest``
    needs the lengths of the n documents, ``newest`` their dates, see `microseconds`, ``largest`` and ``smallest`` their
    scores in place of dates. A document without a date or a score comes last.

    Raises
    ------
    InputError
        If lengths, dates or scores are missing.
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
    if keep in BY_SCORE:
        texts = list(() if dates is None else dates)
        scores = np.fromiter(map(score, texts), np.float64, len(texts))
        known = ~np.isnan(scores)
        if (np.abs(scores[known]) >= _EXACT).any():
            scores = _ranks(texts, scores)
        require(
            bool(known.any()),
            f"{option('keep', keep.value)} needs scores, and no document has one that is a number; "
            f"{flag('keep_by')} names their column",
        )
        bits = (scores + 0.0).view(np.int64)  # no negative zero
        ascending = bits ^ ((bits >> 63) & np.iinfo(np.int64).max)  # ordered as the numbers are
        return np.where(known, ascending if keep is Keep.smallest else -ascending, np.iinfo(np.int64).max)
    return None


def _ranks(texts: Sequence[str | None], scores: FloatArray) -> FloatArray:
    """Return the ranks of scores of which some are integers that float64 would round; NaN where one is missing."""
    exact = [_integer(text, number) for text, number in zip(texts, scores.tolist(), strict=True)]
    order = {number: rank for rank, number in enumerate(sorted({number for number in exact if number == number}))}
    return np.array([order.get(number, nan) for number in exact])


def _integer(text: str | None, number: float) -> float:
    """Return the integer that a text is, or its number as a float."""
    try:
        return int(text or "")
    except ValueError:
        return number


def score(text: str | None) -> float:
    """Return a score as a number; NaN if it is missing or none."""
    try:
        return float(text or "nan")
    except ValueError:
        return nan


def microseconds(date: str | None) -> int:
    """Return a date in microseconds since 1970, or `UNKNOWN`.

    Parameters
    ----------
    date : str or None
        ISO 8601 with or without time and zone, the 14 digits of an archive, a year, a year and month, or the form of
        HTTP headers and mail. A time without a zone is in UTC.

    Examples
    --------
    >>> microseconds("Thu, 01 Jan 1970 00:00:01 GMT") == microseconds("1970-01-01T01:00:01+01:00") == 1_000_000
    True
    """
    moment = _moment((date or "").strip())
    if moment is None:
        return UNKNOWN
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _moment(date: str) -> datetime | None:
    if match := _TIMESTAMP.fullmatch(date):
        date = f"{match[1]}T{match[2]}"
    elif match := _PARTS.fullmatch(date):
        date = f"{match[1]}-{match[2] or '01'}-01"
    for form in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return form(date)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def is_unordered(keep: Keep, date: str | None) -> bool:
    """Return whether a date cannot be read, or a score is missing or no number."""
    return isnan(score(date)) if keep in BY_SCORE else bool(date) and microseconds(date) == UNKNOWN


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
    exact_duplicates : ExactDuplicates
        Exact duplicates.
    compared : ndarray of bool, shape (n,)
        True for a document with enough signatures to be compared.
    contained : ndarray of float64, shape (n,)
        Fraction of the text of a removed document that the document which replaces it contains, see
        `spotsigs.signatures.contained`; NaN for the others, and where it is unknown.
    in_sections : bool
        Some documents are in sections, whose threshold is above the threshold of other pairs.
    """

    clusters: Clusters
    keep: Keep
    kept: NDArray[np.bool_]
    partner: NDArray[np.int32]
    similarity: FloatArray
    exact_duplicates: ExactDuplicates
    compared: NDArray[np.bool_]
    contained: FloatArray
    in_sections: bool = False

    def measured(self, rule: RemovalRule) -> Decisions:
        """Return the decisions with the fraction of each removed document that the kept one contains."""
        rows = np.flatnonzero(~self.kept)
        instead = self.replacements(rows)
        rows, instead = rows[instead >= 0], instead[instead >= 0]
        of, contained = self.exact_duplicates.representatives, self.contained.copy()
        contained[rows] = rule.contained(of[rows], of[instead])
        return replace(self, contained=contained)

    def replacements(self, rows: IntArray) -> NDArray[np.int32]:
        """Return the kept row that replaces each removed one; -1 for kept rows, and with ``none``."""
        leaders = self.clusters.representatives[self.clusters.labels[rows]]
        return np.where((leaders == rows) | (self.keep is Keep.none), np.int32(-1), leaders)

    def reasons(self, rows: IntArray, kept_names: Any, partner_names: Any) -> Any:
        """Return one sentence for each removed row, by the names of its kept document and of its partner.

        Names and sentences are Arrow arrays.
        """
        import pyarrow as pa

        instead, partner = self.replacements(rows), self.partner[rows]
        kinds = self.exact_duplicates.kinds(rows, partner)
        through = (instead >= 0) & (instead != partner)
        similarity = np.where(kinds == 0, self.similarity[rows], nan)
        sentences = concatenated(
            chosen_text(_BEGINNINGS, np.where(through, len(_IDENTICAL), kinds)),
            null_unless(through, kept_names),
            chosen_text(("", ", which is kept, through "), through),
            partner_names,
            chosen_text(_IDENTICAL, np.where(through, kinds, 0)),
            mapped_text(arrow_numbers(similarity), _similarity_in_words),
            chosen_text(_ENDS, np.where(through, 0, np.where(instead >= 0, 1, 2))),
        )
        return sentences.cast(pa.string())


_IDENTICAL = ("", " (identical text)", " (identical content)")
"""Words for the kinds of pairs by their numbers: near-duplicates, `TEXT` and `CONTENT`."""

_BEGINNINGS = ("near-duplicate of ", "identical text: copy of ", "identical content: copy of ", "in one cluster with ")
_ENDS = ("", ", which is kept", "; no document that has a near-duplicate is kept")


def _similarity_in_words(similarity: float) -> str:
    return "" if isnan(similarity) else f" (similarity {similarity:.3f})"


def decide(
    pairs: Pairs,
    clusters: Clusters,
    keep: Keep = Keep.first,
    *,
    counts: Counts = every_pair,
    earlier: NDArray[np.bool_] | None = None,
    exact_duplicates: ExactDuplicates | None = None,
    compared: NDArray[np.bool_] | None = None,
) -> Decisions:
    """Keep the representative of each cluster; with ``none``, each document without a pair.

    Parameters
    ----------
    pairs : Pairs
        Near-duplicate pairs.
    clusters : Clusters
        Grouped with the policy's `priority`.
    keep : Keep
        The policy.
    counts : callable
        As in `spotsigs.clustering.clusters.cluster`: a pair has an effect if one of its documents may be removed for
        the other one.
    earlier : ndarray of bool, shape (m,), optional
        For each of the first m documents, whether an earlier run has kept it. Its decisions are final.
    exact_duplicates : ExactDuplicates, optional
        Exact duplicates; none by default.
    compared : ndarray of bool, shape (n,), optional
        True for each document with enough signatures to be compared; all by default.
    """
    n = len(clusters.labels)
    preferred = np.full(n, -1, np.int32) if keep is Keep.none else gathered(clusters.representatives, clusters.labels)
    partner, similarity = np.full(n, -1, np.int32), np.full(n, np.nan)
    for i, j, values in pairs.chunks():
        some = counts(i, j, values) | counts(j, i, values)
        _take_partner(i[some], j[some], values[some], preferred, partner, similarity)
    kept = partner < 0 if keep is Keep.none else is_identity(preferred)
    if earlier is not None:
        kept[: len(earlier)] = earlier
    exact_duplicates = ExactDuplicates.none(n) if exact_duplicates is None else exact_duplicates
    compared = np.ones(n, np.bool_) if compared is None else compared
    return Decisions(clusters, keep, kept, partner, similarity, exact_duplicates, compared, np.full(n, np.nan))


@kernel
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
