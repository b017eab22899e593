"""A similarity threshold without labels: the valley between unrelated pairs and near-duplicates.

Similarities of unrelated pages pile up near 0 and those of copies near 1; between them lies a valley wherever the pages
decide at all. It is looked for on a logarithmic scale, on which the two hills are about equally wide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotsigs.errors import require

FLOOR = 0.03
"""Similarities below this say nothing about the valley: pages that share a phrase."""

BINS = 48
FEWEST = 20
"""Fewer pairs than this make no histogram."""

_STEPS = (0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 2.0)


@dataclass(frozen=True)
class Suggestion:
    """A threshold with its evidence, or the reason why there is none.

    Attributes
    ----------
    tau : float or None
        Bottom of the valley; None where there is none.
    reason : str
        One sentence: why this threshold, or why none.
    separation : float
        Otsu's criterion in [0, 1]: the share of the variance of the logarithms that lies between the two sides; NaN
        where there are not two sides.
    edges : ndarray of float64, shape (bins + 1,)
        Similarities that bound the histogram's bins, equally far apart on a logarithmic scale, ascending to 1.
    counts : ndarray of int64, shape (bins,)
        Pairs in each bin; a pair on an edge belongs to the bin above it, similarity 1 to the last.
    around : ndarray of float64, shape (m,)
        Thresholds around ``tau``, ascending; empty where there is none.
    pairs : ndarray of int64, shape (m,)
        Pairs that reach each of them.
    """

    tau: float | None
    reason: str
    separation: float
    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    around: NDArray[np.float64]
    pairs: NDArray[np.int64]

    def __str__(self) -> str:
        """Return the reason, the histogram, and the number of pairs around the threshold, as lines of text."""
        highest = max(int(self.counts.max(initial=0)), 1)
        lines = [self.reason, ""]
        for k in range(len(self.counts)):
            bar = "#" * round(40 * np.log1p(self.counts[k]) / np.log1p(highest))
            chosen = self.tau is not None and self.edges[k] <= self.tau < self.edges[k + 1]
            lines.append(f"{self.edges[k]:6.3f} {self.counts[k]:>10,} {bar}{' <- tau' if chosen else ''}".rstrip())
        lines += ["", *(f"tau {tau:.3f}: {n:,} pairs" for tau, n in zip(self.around, self.pairs, strict=True))]
        return "\n".join(lines).rstrip() + "\n"


def suggest(similarities: NDArray[np.float64], floor: float = FLOOR) -> Suggestion:
    """Suggest a threshold: the bottom of the valley that Otsu's split of the logarithms points at.

    The logarithms are split in two where the variance between the sides is largest. The threshold is the lowest point
    of the smoothed histogram between the highest points of the two sides, the middle of it where that is a stretch. It
    is refused unless the lower hill is at least twice as high as the valley and stands out of its counting noise.

    Parameters
    ----------
    similarities : ndarray of float64, shape (m,)
        Of all pairs that reach ``floor``; lower ones, and NaN, are left out.
    floor : float
        In (0, 1): where the histogram begins.

    Returns
    -------
    Suggestion

    References
    ----------
    N. Otsu, "A Threshold Selection Method from Gray-Level Histograms", IEEE Trans. SMC 9(1), 1979.
    """
    require(0 < floor < 1, f"floor must lie in (0, 1), got {floor}")
    values = np.asarray(similarities, dtype=np.float64)
    values = values[values >= floor]
    require(not len(values) or float(values.max()) <= 1, "a similarity above 1 has no place in the histogram")
    edges = np.exp(np.linspace(np.log(floor), 0, BINS + 1))
    edges[0], edges[-1] = floor, 1.0
    counts = np.histogram(values, bins=edges)[0].astype(np.int64)

    def refused(reason: str, separation: float = float("nan")) -> Suggestion:
        return Suggestion(None, reason, separation, edges, counts, np.empty(0), np.empty(0, np.int64))

    if len(values) < FEWEST:
        return refused(f"only {len(values)} pairs reach {floor:g}, too few for a histogram ({FEWEST} are needed)")
    split, separation = _otsu(counts)
    if split == 0:
        return refused(f"all {len(values):,} similarities lie in one bin, so there is no valley")
    low, high, bottom, tau = _valley(counts, edges, split)
    hill, valley = min(low, high), bottom
    if valley > hill / 2 or hill - valley < 2 * np.sqrt(hill):
        return refused(
            f"no valley: the histogram's lower hill ({hill:.1f} pairs a bin) does not stand out of its lowest point "
            f"before it ({valley:.1f})",
            separation,
        )
    around = np.array([step * tau for step in _STEPS if step * tau <= 1])
    pairs = np.array([np.count_nonzero(values >= limit) for limit in around], np.int64)
    reason = (
        f"tau={tau:.3f} lies in the valley ({valley:.1f} pairs a bin) between hills of {low:.1f} and {high:.1f}; "
        f"{separation:.0%} of the variance of log similarity lies between the two sides"
    )
    return Suggestion(tau, reason, separation, edges, counts, around, pairs)


def _otsu(counts: NDArray[np.int64]) -> tuple[int, float]:
    """Return the first bin of the upper side, and the share of the variance between the sides; 0 for one bin alone."""
    n = counts.sum()
    places = np.arange(len(counts))
    mean = float(counts @ places) / n
    variance = float(counts @ (places - mean) ** 2) / n
    below = np.cumsum(counts)[:-1]
    parted = (below > 0) & (below < n)
    if not parted.any():
        return 0, float("nan")
    lower = np.cumsum(counts * places)[:-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        between = (mean * below - lower) ** 2 / (below * (n - below))
    between = np.where(parted, between, 0.0)
    best = int(np.argmax(between))
    return best + 1, float(between[best] / variance) if variance > 0 else float("nan")


def _valley(counts: NDArray[np.int64], edges: NDArray[np.float64], split: int) -> tuple[float, float, float, float]:
    """Return the heights of the two hills and of the valley between them, and the similarity of its bottom."""
    smooth = _smoothed(counts)
    low = int(np.argmax(smooth[:split]))
    high = split + int(np.argmax(smooth[split:]))
    between = smooth[low : high + 1]
    bottom = float(between.min())
    lowest = low + np.flatnonzero(between <= bottom * (1 + 1e-9))
    first = last = int(lowest[np.argmin(np.abs(lowest + 0.5 - split))])  # of several stretches, the one at the split
    while first - 1 in lowest:
        first -= 1
    while last + 1 in lowest:
        last += 1
    return float(smooth[low]), float(smooth[high]), bottom, float(np.sqrt(edges[first] * edges[last + 1]))


def _smoothed(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a moving average over five bins with weights 1 4 6 4 1, mirrored at the ends."""
    padded = np.pad(counts.astype(np.float64), 2, mode="symmetric")
    return np.convolve(padded, np.array([1, 4, 6, 4, 1]) / 16, mode="valid")
