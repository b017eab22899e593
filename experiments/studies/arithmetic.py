"""Statements that need no collection: partition counts, memory formula, worked examples, consistency."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from experiments.claims.facts import Fact
from experiments.claims.published import published
from experiments.config import Experiment, Settings
from experiments.show.tables import Column, Table
from experiments.studies.printed_algorithm import algorithm1, similarity
from experiments.work.study import Work
from spotsigs.matching.algorithm1 import COUNTERS, SpotSigs
from spotsigs.matching.partitions import partition_boundaries
from spotsigs.records import Vectors
from spotsigs.runs.provenance import MIB

DOCUMENTS, OCCURRENCES = 1_171_960, 25_033_143
SLIDES_SERIES = {0: 1, 1: 3, 2: 6, 3: 10, 7: 43, 8: 59}

OBAMA = (
    "At a rally to kick off a weeklong campaign for the South Carolina primary, Obama tried to set the record straight "
    "from an attack circulating widely on the Internet that is designed to play into prejudices against Muslims and "
    "fears of terrorism."
)
OBAMA_SPOTS = "a:rally:kick a:weeklong:campaign the:south:carolina the:record:straight an:attack:circulating "
OBAMA_SPOTS += "the:internet:designed is:designed:play"


@dataclass(frozen=True, kw_only=True)
class Arithmetic(Experiment):
    """Statements of the sources that are computed without data.

    Attributes
    ----------
    results : Path
        Folder that receives ``arithmetic/``.
    """

    results: Path = Path("results")

    def __call__(self, settings: Settings) -> str:
        """Write the facts and a table of the partition counts; return the table as text."""
        work = Work.begin(self.results, settings)
        work.facts([*_partitions(), *_memory(), *_examples(), *_hashing(), *_against_itself()])
        columns = [
            Column(name="tau", title="τ", form="g"),
            Column(name="published", title="Published", form=",.0f"),
            Column(name="paper", title="The paper's formula", form=",.0f"),
            Column(name="prototype", title="The prototype's buckets", form=",.0f"),
            Column(name="prototype_exact", title="The same, exact arithmetic", form=",.0f"),
        ]
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
        return work.table(Table(caption="Partitions for ρ = 1,000", columns=columns, rows=rows), "partition_counts")


def _partitions() -> list[Fact]:
    facts = []
    for tau in (1.0, 0.9, 0.1):
        for convention in ("paper", "prototype"):
            count = len(partition_boundaries(tau, convention=convention))
            facts.append(Fact(name=f"partitions at tau {tau:g}, {convention}", value=count))
    exact = len(partition_boundaries(0.9, convention="prototype", exact=True))
    facts.append(Fact(name="partitions at tau 0.9, prototype in exact arithmetic", value=exact))
    for tau in (0.7, 0.75):
        for convention in ("paper", "prototype"):
            series = partition_boundaries(tau, convention=convention)
            same = all(series[k] == length for k, length in SLIDES_SERIES.items())
            listed = ", ".join(map(str, series[:9]))
            facts.append(Fact(name=f"the slides' series at tau {tau:g}, {convention}", value=same, text=listed))
    for convention in ("paper", "prototype"):
        violated = [sum(counts) for counts in zip(*(_violations(tau, convention) for tau in TAUS), strict=True)]
        facts.append(Fact(name=f"condition (A) is violated, {convention}", value=violated[0]))
        facts.append(Fact(name=f"condition (B) is violated, {convention}", value=violated[1]))
    return facts


TAUS = (0.1, 0.3, 0.44, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def _violations(tau: float, convention: str, longest: int = 999) -> tuple[int, int]:
    """Count pairs of lengths that violate conditions (A) and (B).

    (A): similar lengths are in the same or neighbouring partitions. (B): lengths in one partition are similar. Lengths
    are at most 999, since the conditions are stated for lengths below rho.
    """
    lengths = np.arange(1, longest + 1)
    place = np.searchsorted(partition_boundaries(tau, convention=convention), lengths, side="right") - 1
    apart = place[None, :] - place[:, None]
    upper = np.triu(np.ones((longest, longest), bool))
    exact = Fraction(str(tau))
    similar = lengths[:, None] * exact.denominator >= exact.numerator * lengths[None, :]
    return int(np.count_nonzero(upper & similar & (apart > 1))), int(np.count_nonzero(upper & ~similar & (apart == 0)))


def _memory() -> list[Fact]:
    return [
        Fact(name="LSH-S memory by the stated formula", value=(OCCURRENCES * 6 + 33 * DOCUMENTS * 4) / MIB),
        Fact(name="SpotSigs memory by the stated formula", value=(OCCURRENCES * 10 + 4 * DOCUMENTS) / MIB),
        Fact(name="I-Match-S memory at 44 bytes a document", value=44 * DOCUMENTS / MIB),
        Fact(name="LSH-S memory, min-hashes and ids of 1 byte", value=(OCCURRENCES * 6 + 33 * DOCUMENTS) / MIB),
        Fact(name="SpotSigs memory, 14 bytes an occurrence", value=(OCCURRENCES * 14 + 4 * DOCUMENTS) / MIB),
        Fact(
            name="LSH-S - SpotSigs, by the stated formula",
            value=(OCCURRENCES * 6 + 33 * DOCUMENTS * 4 - OCCURRENCES * 10 - 4 * DOCUMENTS) / MIB,
        ),
    ]


def _examples() -> list[Fact]:
    from baselines.lcs.myers import longest_common_subsequence
    from baselines.shingles import Shingles
    from spotsigs.signatures.spots import SpotSignatures

    scheme = SpotSignatures(antecedents=["a", "an", "the", "is"], d=1, c=2)
    three = [Counter({1: 5, 2: 4, 3: 4}), Counter({1: 8, 2: 4}), Counter({1: 4, 2: 5, 3: 5})]
    found = algorithm1(three, Fraction(4, 5))
    product = SpotSigs(tau=0.8, partitioning=False)  # "all three documents are mapped into the same partition"
    index = product.index(Vectors.from_counters(three))
    rank = int(np.flatnonzero(index.rows == 0)[0])
    i, j, similarities, work = product.probe(index, rank, rank + 1)
    single = work[COUNTERS.index("verifications")], [*zip(i.tolist(), j.tolist(), similarities.tolist(), strict=True)]
    slides = similarity(three[0], Counter({2: 5, 3: 5}), Fraction(1))
    shingles = Shingles(k=4).readable("My name is Inigo Montoya. You killed my father. Prepare to die")
    first, second = (np.array([*map(ord, word)], np.uint64) for word in ("abcabba", "cbabac"))
    common = longest_common_subsequence(first, second)
    length = 0 if common is None else len(common[0])
    return [
        Fact(name="extraction example", value=scheme.readable(OBAMA) == OBAMA_SPOTS.split()),
        Fact(name="deduplication example: computations for d1", value=float(single[0])),
        Fact(name="deduplication example: computations for d1, as printed", value=found.comparisons[0]),
        Fact(name="deduplication example: pair d1, d3", value=single[1] == [(0, 2, 0.8)] and (0, 2) in found.pairs),
        Fact(name="deduplication example: similarity", value=float(similarity(three[0], three[2], Fraction(1)))),
        Fact(name="the slides' deduplication example: similarity", value=float(slides)),
        Fact(name="4-shingles of the example", value=len(set(shingles))),
        Fact(name="LCS of the example", value=length),
        Fact(name="r of the example", value=length / (7 + 6 - length)),
        Fact(name="min-hash example", value=_min_hashes() == [(1, 2), (0, 0)]),
    ]


def _min_hashes() -> list[tuple[int, int]]:
    """Return the slots of the two columns in the lecture slides under h(x) = x mod 5 and g(x) = 2x + 1 mod 5."""
    columns = ((1, 3, 4), (2, 3, 5))
    return [(min(x % 5 for x in column), min((2 * x + 1) % 5 for x in column)) for column in columns]


def _hashing() -> list[Fact]:
    from baselines.lsh_native import s_curve

    points = s_curve(6, 32, [0.44, 0.5, 0.6, 0.7])
    return [
        Fact(name=f"LSH finds a pair of similarity {x:g}", value=float(y))
        for x, y in zip((0.44, 0.5, 0.6, 0.7), points.tolist(), strict=True)
    ]


def _against_itself() -> list[Fact]:
    rows = {str(row["method"]): row for row in published("table1")}
    f1 = {method: float(row["f1"] or 0) for method, row in rows.items()}
    times = {(str(row["method"]), row["tau"]): float(row["total_ms"] or 0) for row in published("table2")}
    ours, words, shingles = f1["SpotSigs"], f1["1-Shingles"], f1["3-Shingles"]
    return [
        Fact(name="published gain over 1-Shingles, relative to it", value=ours / words - 1),
        Fact(name="published gain over 1-Shingles, relative to SpotSigs", value=1 - words / ours),
        Fact(name="published F1 of 3-Shingles in Table 1", value=shingles),
        Fact(name="published gain by Cosine, relative to 3-Shingles", value=0.89 / 0.53 - 1),
        Fact(name="published LSH-S / SpotSigs at tau 1", value=times["LSH-S", 1.0] / times["SpotSigs", 1.0]),
        Fact(name="published LSH-S / SpotSigs at tau 0.9", value=times["LSH-S", 0.9] / times["SpotSigs", 0.9]),
        Fact(name="published F1 agree with precision and recall", value=all(map(_f1_agrees, rows.values()))),
        Fact(
            name="published recall of LSH-S / SpotSigs",
            value=_number(rows["LSH-S"], "recall") / _number(rows["SpotSigs"], "recall"),
        ),
        Fact(name="seconds to parse WT10g, blog", value=300),
        Fact(name="LCS slides: recall of LCS against Cosine", value=1.86 / 1.19),
    ]


def _number(row: dict[str, str | float | None], column: str) -> float:
    return float(row[column] or 0)


def _f1_agrees(row: dict[str, str | float | None]) -> bool:
    """Return whether the printed F1 is that of some precision and recall that round to the printed ones."""
    p, r, f1 = (_number(row, column) for column in ("precision", "recall", "f1"))
    ends = [2 * (p + e) * (r + e) / (p + r + 2 * e) for e in (-0.005, 0.005)]
    return ends[0] - 0.005 <= f1 <= ends[1] + 0.005
