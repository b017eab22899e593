"""Signature vectors with WT10g's published totals, for timing matchers at the paper's scale.

The paper's Table 2 uses the TREC WT10g crawl, which cannot be redistributed. The published totals determine most of the
cost of a join: 1,171,960 documents of at least five spot signatures, 25,033,143 occurrences, 86,579 distinct
signatures, an IDF band of [0.4, 0.75]. `Wt10gLike` draws vectors (not pages) with exactly these totals; all other
properties are drawn from the distributions in ``docs/wt10g_like.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.contracts import VectorCollection
from spotsigs.errors import require
from spotsigs.records import RowNumbers, Vectors

DOCUMENTS = 1_171_960
OCCURRENCES = 25_033_143
SIGNATURES = 86_579
MIN_SPOTS = 5
SINGLE_PAGE_MEDIAN = 14.0 / (OCCURRENCES / DOCUMENTS - MIN_SPOTS)  # of the occurrences beyond the first five
SHORT = 2.65368, 0.82092
"""Mean and deviation of the logarithm of lengths that are skewed to short documents, see ``docs/wt10g_like.md``."""

LONG = 190.0
"""Mean occurrences of the long variant."""

GROUPED = 0.3
GROUP_EXPONENT = 2.2
LARGEST_GROUP = 500
REPEATED = 0.1
EDIT_SHARES = (0.3, 0.4, 0.2, 0.1)
EDIT_RATES = (0.0, 0.1, 0.35, 0.7)


@dataclass(frozen=True, kw_only=True)
class Wt10gLike(VectorCollection):
    """Seeded signature vectors with WT10g's totals, scaled to any number of documents.

    Totals scale as follows: occurrences in proportion to ``documents`` (and to ``mean_length``), distinct signatures
    with the square root of the occurrences, document frequencies within the IDF band of the scaled collection.

    Attributes
    ----------
    documents : int
        Number of rows; 1,171,960 yields the published totals exactly.
    seed : int
        Seed; the same seed yields the same vectors on every machine.
    mean_length : float, optional
        Mean occurrences of a document; the published 21.36 if omitted, `LONG` for the benchmarks' long documents.
    skewed : bool
        Draw lengths skewed to short documents, as in the sources, instead of around a typical length.
    idf_min, idf_max : float
        Band of the document frequencies: ``documents ** (1 - idf_max)`` to ``documents ** (1 - idf_min)``.
        The paper's is [0.4, 0.75]; 0.2 admits signatures sixteen times as frequent at full scale.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, section 5.4 and Table 2 (totals and band).
    """

    documents: int = 100_000
    seed: int = 20080720
    mean_length: float | None = None
    skewed: bool = False
    idf_min: float = 0.4
    idf_max: float = 0.75

    def __post_init__(self) -> None:
        require(10 <= self.documents <= 2**31 - 1, f"documents must be in [10, 2**31 - 1], got {self.documents}")
        require(self.seed >= 0, f"seed must not be negative, got {self.seed}")
        require(
            self.mean_length is None or 10 <= self.mean_length <= 10_000,
            f"mean_length must be in [10, 10000], got {self.mean_length}",
        )
        require(
            self.mean_length is None or not self.skewed,
            "mean_length and skewed exclude each other, as the skew is fitted to the published mean; leave one out",
        )
        require(
            0 <= self.idf_min < self.idf_max <= 1,
            f"the IDF band needs 0 <= idf_min < idf_max <= 1, got [{self.idf_min}, {self.idf_max}]",
        )

    @property
    def occurrences(self) -> int:
        """Sum of all counts."""
        if self.mean_length is None:
            return self.documents * OCCURRENCES // DOCUMENTS
        return round(self.documents * self.mean_length)

    @property
    def signatures(self) -> int:
        """Number of distinct signatures."""
        share: float = (self.occurrences / OCCURRENCES) ** 0.5
        return min(round(SIGNATURES * share), self.occurrences // 4)

    def vectors(self) -> Vectors:
        """Draw the collection.

        Returns
        -------
        Vectors
            Multisets in ``documents`` rows in random order, with random ids.
        """
        rng = np.random.Generator(np.random.PCG64(self.seed))
        sizes = self._group_sizes(rng)
        grouped = int(sizes.sum())
        guide = _guide(self._frequencies())
        lengths = self._lengths(rng, len(sizes) + self.documents - grouped)
        n_edits = grouped - len(sizes)
        kind = rng.choice(4, size=n_edits, p=EDIT_SHARES)
        low = np.array([0.0, *EDIT_RATES[:-1]])[kind]
        rates = np.where(kind == 0, 0.0, low + (np.array(EDIT_RATES)[kind] - low) * rng.random(n_edits))
        state = rng.integers(1, 2**63, size=1, dtype=np.uint64)

        # an edit at most duplicates an occurrence
        capacity = max(self.occurrences, 2 * int(np.repeat(lengths[: len(sizes)], sizes).sum()) + MIN_SPOTS * grouped)
        tokens = np.empty(capacity, np.int32)
        starts = np.zeros(self.documents + 1, np.int64)
        _draw_groups(sizes, lengths, rates, guide, state, tokens, starts)
        singles = lengths[len(sizes) :]
        _adjust_total(singles, self.occurrences - int(starts[grouped]), rng)
        starts[grouped + 1 :] = starts[grouped] + np.cumsum(singles)
        _draw_singles(grouped, guide, state, tokens, starts)
        _adjust_vocabulary(tokens[: starts[-1]], int(starts[grouped]), self.signatures, state)

        order = rng.permutation(self.documents)
        names = rng.permutation(self.signatures).astype(np.int32)
        indptr, ids, counts = _assemble(order, names, tokens, starts)
        return Vectors(indptr, ids, counts, np.diff(starts)[order], RowNumbers(self.documents))

    def _group_sizes(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw power-law sizes of near-duplicate groups up to the grouped fraction of the documents."""
        support = np.arange(2, min(LARGEST_GROUP, max(2, self.documents // 20)) + 1)
        weights = support**-GROUP_EXPONENT
        target = round(GROUPED * self.documents)
        sizes = rng.choice(support, size=target // 2 + 1, p=weights / weights.sum())
        upto = np.cumsum(sizes)
        whole = int(np.searchsorted(upto, target, side="right"))
        return sizes[:whole].astype(np.int64)

    def _lengths(self, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        """Draw lengths: five plus a log-normal of the published mean, or a log-normal truncated at five."""
        if self.skewed:
            mu, sigma = SHORT
            drawn = np.rint(np.exp(mu + sigma * rng.standard_normal(2 * n + 100))).astype(np.int64)
            return drawn[drawn >= MIN_SPOTS][:n]
        mean = self.occurrences / self.documents - MIN_SPOTS
        median = mean * SINGLE_PAGE_MEDIAN
        sigma = (2 * np.log(mean / median)) ** 0.5
        lengths: NDArray[np.int64] = np.rint(median * np.exp(sigma * rng.standard_normal(n))).astype(np.int64)
        return MIN_SPOTS + lengths

    def _frequencies(self) -> NDArray[np.float64]:
        """Return target occurrences of each signature: a power law over the IDF band with the right mean."""
        mean = self.occurrences / self.signatures
        low = min(self.documents ** (1 - self.idf_max), mean / 2)
        high = max(self.documents ** (1 - self.idf_min), mean * 2)
        ranks = (np.arange(self.signatures) + 0.5) / self.signatures

        def quantiles(a: float) -> NDArray[np.float64]:
            # density x**-(a + 1) on [low, high], so the survival function is proportional to x**-a
            return np.asarray((low**-a + ranks * (high**-a - low**-a)) ** (-1 / a))

        steep, flat = 8.0, -0.99
        for _ in range(60):
            a = (steep + flat) / 2
            a = a if abs(a) > 1e-9 else 1e-9
            steep, flat = (steep, a) if quantiles(a).mean() > mean else (a, flat)
        return quantiles(a)


class _Guide(NamedTuple):
    """Table for weighted draws in constant time: cumulative integer weights and a start index by leading bits."""

    cumulative: NDArray[np.uint64]
    first: NDArray[np.int32]
    shift: int


def _guide(weights: NDArray[np.float64]) -> _Guide:
    """Scale the weights to a total just below 2**48 and index the cumulative sums by their leading 18 bits."""
    whole = np.floor(weights / weights.sum() * 2.0**47).astype(np.uint64) + np.uint64(1)
    cumulative = np.cumsum(whole, dtype=np.uint64)
    shift = int(cumulative[-1]).bit_length() - 18
    slots = np.arange((int(cumulative[-1]) >> shift) + 1, dtype=np.uint64) << np.uint64(shift)
    return _Guide(cumulative, np.searchsorted(cumulative, slots, side="right").astype(np.int32), shift)


@njit(cache=True)
def _next(state: Any) -> Any:
    """Advance the SplitMix64 generator in ``state[0]``."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True)
def _uniform(state: Any) -> Any:
    return (_next(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True)
def _below(state: Any, n: Any) -> Any:
    """Draw an integer in [0, n) for n < 2**31."""
    return np.int64(((_next(state) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(cache=True)
def _signature(guide: Any, state: Any) -> Any:
    cumulative, first, shift = guide
    total = cumulative[-1]
    while True:
        x = _next(state) >> np.uint64(16)
        if x < total:
            break
    s = first[np.int64(x >> np.uint64(shift))]
    while cumulative[s] <= x:
        s += 1
    return s


@njit(cache=True)
def _draw_document(length: Any, guide: Any, state: Any, tokens: Any, at: Any) -> Any:
    """Write a new document of ``length`` occurrences at ``tokens[at:]``; some repeat an earlier occurrence."""
    for k in range(length):
        if k > 0 and _uniform(state) < REPEATED:
            tokens[at + k] = tokens[at + _below(state, k)]
        else:
            tokens[at + k] = _signature(guide, state)
    return at + length


@njit(cache=True)
def _draw_groups(sizes: Any, lengths: Any, rates: Any, guide: Any, state: Any, tokens: Any, starts: Any) -> None:
    """Draw each group's original and its edited members; an edit drops, replaces or inserts an occurrence."""
    row, member, at = 0, 0, 0
    for g in range(len(sizes)):
        origin = at
        at = _draw_document(lengths[g], guide, state, tokens, at)
        end = at
        row += 1
        starts[row] = at
        for _ in range(sizes[g] - 1):
            begin = at
            rate = rates[member]
            member += 1
            for k in range(origin, end):
                if rate > 0.0 and _uniform(state) < rate:
                    edit = _below(state, 3)
                    if edit > 0:
                        tokens[at] = _signature(guide, state)
                        at += 1
                    if edit < 2:
                        continue
                tokens[at] = tokens[k]
                at += 1
            if at - begin < MIN_SPOTS:
                at = _draw_document(MIN_SPOTS - (at - begin), guide, state, tokens, at)
            row += 1
            starts[row] = at


@njit(cache=True)
def _draw_singles(row: Any, guide: Any, state: Any, tokens: Any, starts: Any) -> None:
    """Draw the documents from ``row`` on, whose positions are known."""
    for r in range(row, len(starts) - 1):
        _draw_document(starts[r + 1] - starts[r], guide, state, tokens, starts[r])


def _adjust_total(lengths: NDArray[np.int64], total: int, rng: np.random.Generator) -> None:
    """Lengthen or shorten random documents by one until the sum of the lengths is ``total``."""
    while (missing := total - int(lengths.sum())) != 0:
        able = np.arange(len(lengths)) if missing > 0 else np.flatnonzero(lengths > MIN_SPOTS)
        require(len(able) > 0, "the collection is too small for WT10g's distributions; increase data.documents")
        chosen = rng.permutation(able)[: abs(missing)]
        lengths[chosen] += np.sign(missing)


@njit(cache=True)
def _adjust_vocabulary(tokens: Any, begin: Any, n: Any, state: Any) -> None:
    """Give every signature an occurrence, which replaces one of a signature with several in ungrouped documents."""
    seen = np.zeros(n, np.int64)
    for t in tokens:
        seen[t] += 1
    for s in range(n):
        while seen[s] == 0:
            k = begin + _below(state, len(tokens) - begin)
            if seen[tokens[k]] > 1:
                seen[tokens[k]] -= 1
                tokens[k] = s
                seen[s] = 1


@njit(cache=True)
def _assemble(order: Any, names: Any, tokens: Any, starts: Any) -> Any:
    """Rename signatures, reorder documents, and sort and count each row."""
    n = len(order)
    indptr = np.zeros(n + 1, np.int64)
    ids = np.empty(starts[n], np.int32)
    counts = np.empty(starts[n], np.int32)
    at = 0
    for r in range(n):
        row = np.sort(names[tokens[starts[order[r]] : starts[order[r] + 1]]])
        for k in range(len(row)):
            if k > 0 and row[k] == row[k - 1]:
                counts[at - 1] += 1
            else:
                ids[at] = row[k]
                counts[at] = 1
                at += 1
        indptr[r + 1] = at
    return indptr, ids[:at].copy(), counts[:at].copy()
