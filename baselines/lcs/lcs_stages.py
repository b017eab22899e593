"""Cost and quality of each stage of the LCS method: the rows of the authors' Table 2, on any collection."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from baselines.lcs.lcs_method import Lcs, Pages
from spotsigs.records import Corpus, Truth


class Stage(NamedTuple):
    """One row: a stage of the slides, the remaining work, and the quality of its sets of at least two documents.

    ``seconds`` of comparing the pages, without reading, are extrapolated from a sample of pairs if ``estimated``;
    ``comparisons`` are pairs that need an LCS; ``precision`` is `set_precision`, NaN without truth or sets.
    """

    stage: str
    seconds: float
    estimated: bool
    comparisons: int
    sets: int
    precision: float


def lcs_stages(
    matcher: Lcs, corpus: Corpus, truth: Truth | None = None, sample: int = 300, seed: int = 0
) -> list[Stage]:
    """Return one row for each stage: none, perhaps-similar sets, filtered sketches, trustable portion.

    The first two rows compare all pairs of complete pages, in the collection and in each perhaps-similar set, estimated
    by a seeded sample of pairs; the others compare pages with representatives only. The third row uses the plain r, the
    last one the trustable portion, at the matcher's tau.
    """
    matcher = replace(matcher, divide=True, sketch=max(matcher.sketch, 1), members=False)
    pages = matcher.read(corpus)
    n = len(pages.indptr) - 1
    labels = matcher.perhaps_similar(pages)
    whole = replace(matcher, sketch=0, trust=False, threads=1)
    rng = np.random.default_rng(seed)
    rows = []
    for stage, sets in (("without stage one", np.zeros(n, dtype=np.int64)), ("after stage one", labels)):
        pairs, mean = _pair_cost(whole, pages, sets, sample, rng)
        count, precision = set_precision(_by_document(sets, pages, len(corpus.vectors)), truth)
        rows.append(Stage(stage, pairs * mean, True, pairs, count, precision))
    for stage, trust in (("after stage two", False), ("after stage three", True)):
        start = perf_counter()
        result = replace(matcher, trust=trust).compare(pages, labels)
        seconds = perf_counter() - start
        # With representatives only, every pair is (representative, member) of a set.
        similar = np.arange(n)
        similar[result.b] = result.a
        count, precision = set_precision(_by_document(similar, pages, len(corpus.vectors)), truth)
        rows.append(Stage(stage, seconds, False, result.comparisons, count, precision))
    return rows


def set_precision(labels: NDArray[np.int64], truth: Truth | None) -> tuple[int, float]:
    """Return the number of sets of at least two documents, and their precision as the slides define it, or NaN.

    The precision of a set is the largest fraction of its documents in the same true cluster. All sets have the same
    weight. Documents without a cluster are similar to themselves only; those of label -1 are in no set.

    References
    ----------
    L. Huang, L. Wang and X. Li, lecture slides, "Measurement for quality".
    """
    documents = np.flatnonzero(labels >= 0)
    sizes = np.bincount(labels[documents], minlength=1)
    sets = np.flatnonzero(sizes > 1)
    if truth is None or len(sets) == 0:
        return len(sets), float("nan")
    clusters = np.where(truth.labels >= 0, truth.labels, len(truth.labels) + np.arange(len(truth.labels)))
    cells, counts = np.unique(np.stack([labels[documents], clusters[documents]]), axis=1, return_counts=True)
    largest = np.zeros(len(sizes), dtype=np.int64)
    np.maximum.at(largest, cells[0], counts)
    return len(sets), float(np.mean(largest[sets] / sizes[sets]))


def _by_document(labels: NDArray[np.int64], pages: Pages, n: int) -> NDArray[np.int64]:
    """Return the label of each document from that of its page; -1 for a document without tokens."""
    out = np.full(n, -1, dtype=np.int64)
    out[pages.rows] = np.repeat(labels, np.diff(pages.row_indptr))
    return out


def _pair_cost(
    matcher: Lcs, pages: Pages, labels: NDArray[np.int64], sample: int, rng: np.random.Generator
) -> tuple[int, float]:
    """Return the number of pairs of pages within the sets, and the mean seconds of a sample of comparisons."""
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels, minlength=1)
    pairs = sizes * (sizes - 1) // 2
    total = int(pairs.sum())
    if total == 0:
        return 0, 0.0
    chosen = np.searchsorted(np.cumsum(pairs), rng.integers(0, total, sample), side="right")
    first = rng.integers(0, sizes[chosen])
    second = (first + 1 + rng.integers(0, sizes[chosen] - 1)) % sizes[chosen]
    positions = np.sort(np.stack([first, second]), axis=0) + (np.cumsum(sizes) - sizes)[chosen]
    sets = list(order[positions].T)
    matcher.compare_sets(pages, sets[:1])  # compile before timing
    start = perf_counter()
    matcher.compare_sets(pages, sets)
    return total, (perf_counter() - start) / sample
