"""Algorithm 1 timed on a sample of its documents, where all of them would take hours."""

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
"""Pieces of the sample: one from each of as many equal parts of the documents in order of length."""

FEW = 4
"""Documents of a piece that are looked up to learn what a document costs."""


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """Times of the whole, estimated from a sample of the documents that are looked up.

    Attributes
    ----------
    share : float
        Of the documents that were looked up, each among all documents.
    sort_hash, cluster : float
        Seconds: of the index, which is that of the whole, and of the look-ups, multiplied by 1 / share.
    low, high : float
        95 % interval of ``cluster``, from the differences between the pieces.
    counters : dict of str to int
        Multiplied by 1 / share, too.
    foreign : float
        Cores that other processes used meanwhile.
    rows : ndarray of int64
        The documents that were looked up.
    lengths : ndarray of int64
        Of all documents of the collection.
    i, j : ndarray of int32
        Pairs that were found, ``i`` among the rows.
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
        """Seconds of both."""
        return self.sort_hash + self.cluster

    def agrees(self, pairs: Pairs) -> bool:
        """Return whether all of these are among the given pairs, and all of those that must be found here are.

        Algorithm 1 finds a pair from its shorter document for certain; from the longer one its bounds may pass it over.
        """
        inside = np.zeros(pairs.n, np.bool_)
        inside[self.rows] = True
        a, b = self.lengths[pairs.i], self.lengths[pairs.j]
        due = (inside[pairs.i] & (a <= b)) | (inside[pairs.j] & (b <= a))
        low, high = np.minimum(self.i, self.j).astype(np.int64), np.maximum(self.i, self.j)
        found, known = np.unique(low * pairs.n + high), pairs.i.astype(np.int64) * pairs.n + pairs.j
        return bool(np.isin(found, known).all() and np.isin(known[due], found).all())


def spans(n: int, strata: int, size: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return a piece of ``size`` neighbouring ranks in each of ``strata`` equal parts of ``range(n)``.

    Parameters
    ----------
    n, strata, size : int
        ``strata * size`` must not exceed n.
    rng : Generator
        Of the places.

    Returns
    -------
    list of (int, int)
        First rank and the one after the last.
    """
    edges = np.linspace(0, n, strata + 1).astype(np.int64)
    room = np.diff(edges) - size
    starts = edges[:-1] + rng.integers(0, room + 1)
    return [(int(start), int(start) + size) for start in starts]


def sample(matcher: SpotSigs, vectors: Vectors, budget: float, seed: int = 0) -> Sampled | None:
    """Look up the documents that the budget allows; None if it allows them all.

    What a document costs is learnt from a few of every piece first.

    Parameters
    ----------
    matcher : SpotSigs
        With its threshold, ablations and threads.
    vectors : Vectors
        The whole collection, all of which is indexed.
    budget : float
        Wall seconds for the look-ups.
    seed : int
        Of the places of the pieces.

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
    few = _probed(matcher, index, spans(n, strata, min(FEW, n // strata), rng), threads)
    size = int(budget * few.looked_up / max(few.wall, 1e-9)) // strata
    if size * strata >= n:
        return None
    with ForeignLoad() as load:
        probed = _probed(matcher, index, spans(n, strata, max(size, 1), rng), threads)
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
    seconds: NDArray[np.float64]  # of each piece
    counters: NDArray[np.int64]
    rows: NDArray[np.int64]
    i: NDArray[np.int32]
    j: NDArray[np.int32]

    @property
    def looked_up(self) -> int:
        return len(self.rows)


def _probed(matcher: SpotSigs, index: Index, pieces: list[tuple[int, int]], threads: int) -> _Probed:
    """Look up the pieces in random order, so that no thread is left with the long documents."""
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
