"""Statements that need no collection: partition counts, memory formula, worked examples, consistency."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.claims.facts import Fact
from experiments.claims.published import published
from experiments.harness.printed_algorithm import algorithm1, similarity
from experiments.harness.study import Work
from experiments.studies.computed import RowsAndFacts
from spotsigs.matching.algorithm1 import COUNTERS, SpotSigs
from spotsigs.matching.partitions import partition_boundaries
from spotsigs.method import Method
from spotsigs.records import Vectors
from spotsigs.runs.provenance import MIB
from spotsigs.signatures import spots
from spotsigs.signatures.spots import SpotSignatures

DOCUMENTS, OCCURRENCES = 1_171_960, 25_033_143
SLIDES_SERIES = {0: 1, 1: 3, 2: 6, 3: 10, 7: 43, 8: 59}

OBAMA = (
    "At a rally to kick off a weeklong campaign for the South Carolina primary, Obama tried to set the record straight "
    "from an attack circulating widely on the Internet that is designed to play into prejudices against Muslims and "
    "fears of terrorism."
)
OBAMA_SPOTS = "a:rally:kick a:weeklong:campaign the:south:carolina the:record:straight an:attack:circulating "
OBAMA_SPOTS += "the:internet:designed is:designed:play"


def arithmetic(work: Work, methods: Mapping[str, Method]) -> RowsAndFacts:
    """Return the statements of the sources that are computed without data, and a row for each partition count."""
    rows = [
        {
            "tau": tau,
            "published": count,
            "paper": len(partition_boundaries(tau)),
            "prototype": len(partition_boundaries(tau, convention="prototype")),
            "prototype_exact": len(partition_boundaries(tau, convention="prototype", exact=True)),
        }
        for tau, count in ((1.0, 501), (0.9, 41), (0.1, 3))
    ]
    return RowsAndFacts(rows, [*_partitions(), *_memory(), *_lsh_tables(), *examples(), *_against_itself()])


def _partitions() -> list[Fact]:
    facts = [
        Fact(
            name=f"partitions at tau {tau:g}, {convention}", value=len(partition_boundaries(tau, convention=convention))
        )
        for tau in (1.0, 0.9, 0.1)
        for convention in ("paper", "prototype")
    ]
    for tau, convention in ((0.7, "paper"), (0.75, "prototype")):
        series = partition_boundaries(tau, convention=convention)
        same = all(series[k] == length for k, length in SLIDES_SERIES.items())
        listed = ", ".join(map(str, series[:9]))
        facts.append(Fact(name=f"the slides' series at tau {tau:g}, {convention}", value=same, text=listed))
    for convention in ("paper", "prototype"):
        broken = [violations(partition_boundaries(tau, convention=convention), tau) for tau in TAUS]
        for condition, violated in zip("AB", map(sum, zip(*broken, strict=True)), strict=True):
            facts.append(Fact(name=f"condition ({condition}) is violated, {convention}", value=violated))
    return [*facts, _minimality(0.9)]


def _lsh_tables() -> list[Fact]:
    """Return how many more tables longer keys need for one recall, by the S-curve ``1 - (1 - s ** k) ** l``."""
    tables = {k: math.log(1 - 0.9) / math.log(1 - 0.5**k) for k in (3, 6)}
    name = "LSH tables for a recall of 0.9 at similarity 0.5, with k = 6, over those with k = 3"
    return [Fact(name=name, value=tables[6] / tables[3], text=f"{tables[6]:.0f} / {tables[3]:.0f}")]


TAUS = (0.1, 0.3, 0.44, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def violations(boundaries: NDArray[np.int64], tau: float, longest: int = 999) -> tuple[int, int]:
    """Count pairs of lengths that violate conditions (A) and (B).

    (A): similar lengths are in the same or neighbouring partitions. (B): lengths in one partition are similar. Lengths
    are at most 999, since the conditions are stated for lengths below rho.
    """
    lengths = np.arange(1, longest + 1)
    place = np.searchsorted(boundaries, lengths, side="right") - 1
    apart = place[None, :] - place[:, None]
    upper = np.triu(np.ones((longest, longest), bool))
    exact = Fraction(str(tau))
    similar = lengths[:, None] * exact.denominator >= exact.numerator * lengths[None, :]
    return int(np.count_nonzero(upper & similar & (apart > 1))), int(np.count_nonzero(upper & ~similar & (apart == 0)))


def narrow_boundaries(tau: float, rho: int = 1000) -> NDArray[np.int64]:
    """Return boundaries of narrower partitions than the formula's, which keep conditions (A) and (B), too.

    Each boundary is the smallest that keeps (A): above all lengths similar to those before the previous boundary.
    """
    exact = Fraction(str(tau))
    boundaries = [1, 2]
    while (following := max(int((boundaries[-1] - 1) / exact) + 1, boundaries[-1] + 1)) <= rho:
        boundaries.append(following)
    return np.array(boundaries, np.int64)


def _minimality(tau: float) -> Fact:
    """Return how many more partitions than the formula's keep (A) and (B), which condition (C) excludes."""
    narrow, formula = narrow_boundaries(tau), partition_boundaries(tau)
    more = len(narrow) - len(formula) if violations(narrow, tau) == (0, 0) else 0
    text = f"{len(formula)} partitions by the formula, {len(formula) + more} keep (A) and (B)"
    return Fact(name=f"condition (C): further partitions that keep (A) and (B), tau {tau:g}", value=more, text=text)


def _memory() -> list[Fact]:
    return [
        Fact(name="LSH-S memory by the stated formula", value=(OCCURRENCES * 6 + 33 * DOCUMENTS * 4) / MIB),
        Fact(name="SpotSigs memory by the stated formula", value=(OCCURRENCES * 10 + 4 * DOCUMENTS) / MIB),
        Fact(name="LSH-S memory, min-hashes and ids of 1 byte", value=(OCCURRENCES * 6 + 33 * DOCUMENTS) / MIB),
        Fact(name="SpotSigs memory, 14 bytes an occurrence", value=(OCCURRENCES * 14 + 4 * DOCUMENTS) / MIB),
    ]


def examples() -> list[Fact]:
    """Return the numbers of the paper's worked examples."""
    scheme = SpotSignatures(antecedents=["a", "an", "the", "is"], d=1, c=2)
    three = [Counter({1: 5, 2: 4, 3: 4}), Counter({1: 8, 2: 4}), Counter({1: 4, 2: 5, 3: 5})]
    product = SpotSigs(tau=0.8, partitioning=False)  # "all three documents are mapped into the same partition"
    index = product.index(Vectors.from_counters(three))
    rank = int(np.flatnonzero(index.rows == 0)[0])
    i, j, similarities, work = product.probe(index, rank, rank + 1)
    pairs = [*zip(i.tolist(), j.tolist(), similarities.tolist(), strict=True)]
    printed = algorithm1(three, Fraction(4, 5))
    as_printed = printed.comparisons[0] == 1 and (0, 2) in printed.pairs
    single = float(work[COUNTERS.index("verifications")]) if pairs == [(0, 2, 0.8)] and as_printed else 0.0
    slides = similarity(three[0], Counter({2: 5, 3: 5}), Fraction(1))
    return [
        Fact(name="extraction example", value=scheme.readable(OBAMA) == OBAMA_SPOTS.split()),
        Fact(name="deduplication example: computations for d1", value=single),
        Fact(name="the slides' deduplication example: similarity", value=float(slides)),
    ]


def _against_itself() -> list[Fact]:
    stopwords = Path(spots.__file__).with_name("stopwords").joinpath("prototype.txt").read_text("utf-8").splitlines()
    f1 = {str(row["method"]): float(row["f1"] or 0) for row in published("table1")}
    return [
        Fact(name="published gain over 1-Shingles, relative to it", value=f1["SpotSigs"] / f1["1-Shingles"] - 1),
        Fact(name="published F1 of 3-Shingles in Table 1", value=f1["3-Shingles"]),
        Fact(name="published gain by Cosine, relative to 3-Shingles", value=0.89 / 0.53 - 1),
        Fact(name="seconds to parse WT10g, blog", value=300),
        Fact(name="precision of simhash, abstract of the LCS paper", value=0.71),
        Fact(name="words of the prototype's stopword list", value=len(stopwords)),
    ]
