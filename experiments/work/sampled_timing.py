"""Timing of Algorithm 1 on a sample of the documents, for cases in which all of them would take hours.

Two claims of the paper are about such times: NoPart and NoPrune against SpotSigs (Table 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.parallel import all_cores, over_blocks
from spotsigs.matching.algorithm1 import COUNTERS, Index, SpotSigs
from spotsigs.records import Pairs, Vectors
from spotsigs.runs.provenance import ForeignLoad

STRATA = 128
"""Number of strata, equal parts of the documents in order of length; the sample has one block of each."""

FEW = 4
"""Documents of each block in the pilot run, which estimates the cost of a document."""


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """Times of all documents, estimated from a sample of probing documents.

    Attributes
    ----------
    share : float
        Fraction of the documents that probed the index of all documents.
    sort_hash, cluster : float
        Seconds of building the complete index, and of probing, divided by ``share``.
    low, high : float
        95 % interval of ``cluster``, from the variance between blocks.
    counters : dict of str to int
        Counters of Algorithm 1, divided by ``share``.
    foreign : float
        Cores that other processes used.
    rows : ndarray of int64
        Probing documents.
    lengths : ndarray of int64
        Lengths of all documents of the collection.
    i, j : ndarray of int32
        Pairs found; ``i`` is in ``rows``.
    """

    share: float
    sort_hash: float
    cluster: float
    low: float
    high: float
    counters: dict[str, int]
    foreign: float
    rows: NDArray[np.int64]
    lengths: NDArray[np.int64]
    i: NDArray[np.int32]
    j: NDArray[np.int32]

    @property
    def total(self) -> float:
        """Seconds of indexing and probing."""
        return self.sort_hash + self.cluster

    def agrees(self, pairs: Pairs) -> bool:
        """Return whether the sample's pairs are a subset of `pairs` that contains all pairs it must find.

        Algorithm 1 always finds a pair from its shorter document; from the longer one its bounds may prune the pair.
        """
        inside = np.zeros(pairs.n, np.bool_)
        inside[self.rows] = True
        a, b = self.lengths[pairs.i], self.lengths[pairs.j]
        due = (inside[pairs.i] & (a <= b)) | (inside[pairs.j] & (b <= a))
        low, high = np.minimum(self.i, self.j).astype(np.int64), np.maximum(self.i, self.j)
        found, known = np.unique(low * pairs.n + high), pairs.i.astype(np.int64) * pairs.n + pairs.j
        return bool(np.isin(found, known).all() and np.isin(known[due], found).all())


def sampled_blocks(n: int, strata: int, size: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Draw a block of ``size`` consecutive ranks in each of ``strata`` equal parts of ``range(n)``.

    Parameters
    ----------
    n, strata, size : int
        ``strata * size`` must not exceed n.
    rng : Generator
        Generator of the positions.

    Returns
    -------
    list of (int, int)
        First rank, and the rank after the last.
    """
    edges = np.linspace(0, n, strata + 1).astype(np.int64)
    slack = np.diff(edges) - size
    starts = edges[:-1] + rng.integers(0, slack + 1)
    return [(int(start), int(start) + size) for start in starts]


def sample(matcher: SpotSigs, vectors: Vectors, budget: float, seed: int = 0) -> Sampled | None:
    """Probe with as many documents as the budget allows; return None if it allows all.

    A pilot run with a few documents of each block estimates the cost of a document.

    Parameters
    ----------
    matcher : SpotSigs
        Matcher with its threshold, ablations and threads.
    vectors : Vectors
        Collection, all documents of which are indexed.
    budget : float
        Wall seconds for probing.
    seed : int
        Seed of the positions of the blocks.

    Returns
    -------
    Sampled or None
    """
    began = perf_counter()
    index = matcher.index(vectors)
    sort_hash = perf_counter() - began
    n = len(index.rows)
    strata = min(STRATA, max(1, n // FEW))
    rng = np.random.default_rng(seed)
    threads = matcher.threads or all_cores()
    few = _probed(matcher, index, sampled_blocks(n, strata, min(FEW, n // strata), rng), threads)
    size = int(budget * few.looked_up / max(few.wall, 1e-9)) // strata
    if size * strata >= n:
        return None
    with ForeignLoad() as load:
        probed = _probed(matcher, index, sampled_blocks(n, strata, max(size, 1), rng), threads)
    factor = n / probed.looked_up
    spread = 1.96 * float(probed.seconds.std(ddof=1) / probed.seconds.mean()) / len(probed.seconds) ** 0.5
    return Sampled(
        share=1 / factor,
        sort_hash=sort_hash,
        cluster=probed.wall * factor,
        low=probed.wall * factor * max(0.0, 1 - spread),
        high=probed.wall * factor * (1 + spread),
        counters={name: round(int(c) * factor) for name, c in zip(COUNTERS, probed.counters, strict=True)},
        foreign=load.cores,
        rows=probed.rows,
        lengths=vectors.lengths,
        i=probed.i,
        j=probed.j,
    )


@dataclass(frozen=True, kw_only=True)
class _Probed:
    wall: float
    seconds: NDArray[np.float64]  # of each block
    counters: NDArray[np.int64]
    rows: NDArray[np.int64]
    i: NDArray[np.int32]
    j: NDArray[np.int32]

    @property
    def looked_up(self) -> int:
        return len(self.rows)


def _probed(matcher: SpotSigs, index: Index, pieces: list[tuple[int, int]], threads: int) -> _Probed:
    """Probe with the blocks in random order, which balances long documents over the threads."""
    order = np.random.default_rng(len(pieces)).permutation(len(pieces))

    def some(first: int, last: int) -> list[tuple[int, float, tuple]]:  # type: ignore[type-arg]
        done = []
        for piece in order[first:last].tolist():
            began = perf_counter()
            found = matcher.probe(index, *pieces[piece])
            done.append((piece, perf_counter() - began, found))
        return done

    began = perf_counter()
    done = sorted((item for part in over_blocks(some, len(pieces), threads) for item in part), key=lambda item: item[0])
    wall = perf_counter() - began
    return _Probed(
        wall=wall,
        seconds=np.array([seconds for _, seconds, _ in done]),
        counters=np.sum([found[3] for _, _, found in done], axis=0),
        rows=np.concatenate([index.rows[start:stop] for start, stop in pieces]),
        i=np.concatenate([found[0] for _, _, found in done]),
        j=np.concatenate([found[1] for _, _, found in done]),
    )
