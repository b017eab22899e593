"""Exactness of Algorithm 1: as printed in floating point, in rational arithmetic, and in this project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from experiments.claims.facts import Fact
from experiments.harness.finished_cells import START_SECONDS, spread
from experiments.harness.printed_algorithm import Multiset, algorithm1, similarity
from experiments.harness.study import Work
from experiments.studies.computed import RowsAndFacts
from spotsigs.errors import require
from spotsigs.matching.algorithm1 import SpotSigs
from spotsigs.method import Method
from spotsigs.records import Corpus, Vectors

TAUS = (0.3, 0.44, 0.6, 0.7, 0.8, 0.9, 1.0)


def exactness(work: Work, methods: Mapping[str, Method], *, collections: int, documents: int) -> RowsAndFacts:
    """Return the pairs that Algorithm 1 misses on random collections with many borderline pairs, by threshold.

    Parameters
    ----------
    collections, documents : int
        Number of random collections for each threshold, and of documents in a collection.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, sections 1.1, 4.2, 4.3 ("no false negatives nor positives").
    """
    require(collections >= 1, f"collections must be at least 1, got {collections}")
    require(documents >= 2, f"documents must be at least 2, got {documents}")
    at = partial(count_losses, collections=collections, documents=documents, seed=work.settings.seed)
    found = dict(spread(at, TAUS, [START_SECONDS] * len(TAUS), work.settings.workers))
    rows = [{"tau": tau} | found[number] for number, tau in enumerate(TAUS)]
    total = {name: sum(row[name] for row in rows) for name in rows[0]}
    facts = [
        Fact(name="exact in floating point as printed", value=total["lost_floating"] + total["false"] == 0),
        Fact(name="exact in rational arithmetic", value=total["lost_rational"] + total["false"] == 0),
        Fact(name="this project's Algorithm 1 is exact", value=total["lost_here"] + total["false"] == 0),
        Fact(name="pairs", value=total["pairs"]),
        Fact(name="lost in floating point as printed", value=total["lost_floating"]),
    ]
    return RowsAndFacts(rows, facts)


def count_losses(tau: float, *, collections: int, documents: int, seed: int) -> dict[str, Any]:
    """Count the missed and the wrong pairs of each variant of Algorithm 1 at a threshold."""
    exact_tau = Fraction(str(tau))
    counts = Counter[str]()
    for number in range(collections):
        drawn = random_collection(np.random.default_rng([seed, number]), documents)
        wanted = {
            (i, j) for (i, a), (j, b) in combinations(enumerate(drawn), 2) if similarity(a, b, exact_tau) >= exact_tau
        }
        variants = {
            "lost_floating": algorithm1(drawn, tau).pairs,
            "lost_rational": algorithm1(drawn, exact_tau).pairs,
            "lost_here": _pairs_of_program(drawn, tau),
        }
        counts["pairs"] += len(wanted)
        for name, pairs_of_variant in variants.items():
            counts[name] += len(wanted - pairs_of_variant)
            counts["false"] += len(pairs_of_variant - wanted)
    return {name: counts[name] for name in ("pairs", "lost_floating", "lost_rational", "lost_here", "false")}


def random_collection(rng: np.random.Generator, n: int) -> list[Multiset]:
    """Draw multisets of 1 to about 25 of 40 signatures; half of them are edited copies of earlier ones."""
    documents: list[Multiset] = []
    for _ in range(n):
        if documents and rng.random() < 0.5:
            copy = Counter(documents[rng.integers(len(documents))])
            for _ in range(rng.integers(0, 4)):
                copy[int(rng.integers(40))] += int(rng.integers(-2, 3))
            document = +copy
        else:
            document = Counter(rng.integers(0, 40, size=rng.integers(2, 25)).tolist())
        documents.append(document or Counter([int(rng.integers(40))]))
    return documents


def _pairs_of_program(documents: list[Multiset], tau: float) -> set[tuple[int, int]]:
    indptr = np.cumsum([0, *map(len, documents)])
    ids = [signature for document in documents for signature in sorted(document)]
    counts = [document[signature] for document in documents for signature in sorted(document)]
    pairs = SpotSigs(tau=tau, threads=1)(Corpus(Vectors.from_csr(indptr, np.array(ids), np.array(counts))))
    return set(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True))
