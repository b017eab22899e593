"""A similarity threshold without labels: the valley between unrelated pairs and near-duplicates.

Similarities of unrelated pages pile up near 0 and those of copies near 1; between them lies a valley wherever the pages
decide at all. It is looked for on a logarithmic scale, on which the two hills are about equally wide.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spotsigs.errors import require

FLOOR = 0.03
"""Similarities below this say nothing about the valley: pages that share a phrase."""

BINS = 48
FEWEST = 20
"""Fewer pairs than this make no histogram."""

FEW_BELOW = 0.1
"""Part of all pairs below the valley, at most, for which no hill is asked there."""

NOISE = 1.0
"""A valley is at least so deep: twice the standard deviation of the square root of a count."""

LOWEST_PEAK = 0.25
"""Near-duplicates' similarities peak above this; those of pages that share a frame below."""

LEAST_SEPARATION = 0.5
"""Share of the variance that lies between the two sides, at least."""

DEFAULT = 0.25
"""Threshold of signatures without templates where the similarities suggest none; docs/boilerplate.md has the reasons.

Plain signatures have no default: what templates add to their similarity differs from site to site.
"""

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
        where there is no threshold.
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

    def falling_back(self) -> Suggestion:
        """Return this histogram with the default of signatures without templates, and the reason for it."""
        return replace(self, tau=DEFAULT, reason=f"tau={DEFAULT:g} is the default without templates: {self.reason}")

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
    """Suggest a threshold: the bottom of the deepest valley of the smoothed histogram of log similarities.

    A valley is as deep as the square root of the lower of the highest points on its two sides exceeds that of its
    bottom: the noise of a count's square root is the same for all counts. It must be half as high as that side, deeper
    than the noise, half of the variance must lie between its sides, and what lies above must peak at a similarity of
    1/4 at least: below, pages share a frame. Of several valleys the one counts whose depth times separation is largest.
    Where hardly a pair lies below, no hill is asked for there, and the choice matters little.

    Parameters
    ----------
    similarities : ndarray of float64, shape (m,)
        Of all pairs that reach ``floor``; lower ones, and NaN, are left out.
    floor : float
        In (0, 1): where the histogram begins.

    Returns
    -------
    Suggestion

    Raises
    ------
    InputError
        If the floor lies outside (0, 1), or a similarity above 1.

    References
    ----------
    N. Otsu, "A Threshold Selection Method from Gray-Level Histograms", IEEE Trans. SMC 9(1), 1979: the separation.
    """
    require(0 < floor < 1, f"floor must lie in (0, 1), got {floor}")
    values = np.asarray(similarities, dtype=np.float64)
    values = values[values >= floor]
    require(not len(values) or float(values.max()) <= 1, "a similarity above 1 has no place in the histogram")
    edges = np.exp(np.linspace(np.log(floor), 0, BINS + 1))
    edges[0], edges[-1] = floor, 1.0
    counts = np.histogram(values, bins=edges)[0].astype(np.int64)

    def refused(reason: str) -> Suggestion:
        return Suggestion(None, reason, float("nan"), edges, counts, np.empty(0), np.empty(0, np.int64))

    if len(values) < FEWEST:
        return refused(f"only {len(values)} pairs reach {floor:g}, too few for a histogram ({FEWEST} are needed)")
    if np.count_nonzero(counts) == 1:
        return refused(f"all {len(values):,} similarities lie in one bin, so there is no valley")
    smooth = _smoothed(counts)
    first, last = _deepest(counts, smooth)
    low, valley = float(smooth[:first].max(initial=0)), float(smooth[first])
    peak = last + int(np.argmax(smooth[last:]))
    high, below = float(smooth[peak]), int(counts[:first].sum())
    hill = high if below <= FEW_BELOW * len(values) else min(low, high)
    if valley > hill / 2 or np.sqrt(hill) - np.sqrt(valley) < NOISE:
        return refused(
            f"no valley: the deepest place of the histogram ({valley:.1f} pairs a bin) is no gap beside the lower of "
            f"its hills ({hill:.1f})"
        )
    if edges[peak + 1] <= LOWEST_PEAK:
        return refused(f"what lies above the valley peaks at a similarity of {edges[peak]:.2f}: that of a shared frame")
    tau = float(np.sqrt(edges[first] * edges[last + 1]))
    separation = _separation(counts, first, last)
    if separation < LEAST_SEPARATION:
        return refused(f"only {separation:.0%} of the variance of log similarity lies between the sides of the valley")
    around = np.array([step * tau for step in _STEPS if step * tau <= 1])
    pairs = np.array([np.count_nonzero(values >= limit) for limit in around], np.int64)
    reason = (
        f"tau={tau:.3f} lies in the valley ({valley:.1f} pairs a bin) between hills of {low:.1f} and {high:.1f}; "
        f"{separation:.0%} of the variance of log similarity lies between the two sides"
    )
    return Suggestion(tau, reason, separation, edges, counts, around, pairs)


def _deepest(counts: NDArray[np.int64], smooth: NDArray[np.float64]) -> tuple[int, int]:
    """Return the first and last bin of the valley whose depth times separation is largest."""
    left = np.maximum.accumulate(np.append(0.0, smooth))[:-1]
    right = np.maximum.accumulate(np.append(smooth, 0.0)[::-1])[::-1][1:]
    lower = np.minimum(left, right)
    if not (lower > smooth).any():  # no hill on the left at all: before the first pair, or the slope's foot
        lower = right
    depth = np.maximum(np.sqrt(lower) - np.sqrt(smooth), 0.0)
    worth = depth * [_separation(counts, k, k) for k in range(len(counts))]
    first = last = int(np.argmax(worth))
    while first > 0 and smooth[first - 1] == smooth[last]:
        first -= 1
    while last + 1 < len(smooth) and smooth[last + 1] == smooth[first]:
        last += 1
    return first, last


def _separation(counts: NDArray[np.int64], first: int, last: int) -> float:
    """Return the share of the variance of the bins' places that lies between the sides of a stretch's middle."""
    places = np.arange(len(counts)) + 0.5
    middle, n = (first + last + 1) / 2, counts.sum()
    mean = float(counts @ places) / n
    variance = float(counts @ (places - mean) ** 2)
    between = 0.0
    for side in (places < middle, places >= middle):
        size = int(counts[side].sum())
        between += size * (float(counts[side] @ places[side]) / size - mean) ** 2 if size else 0.0
    return between / variance


def _smoothed(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a moving average over five bins with weights 1 4 6 4 1, mirrored at the ends."""
    padded = np.pad(counts.astype(np.float64), 2, mode="symmetric")
    return np.convolve(padded, np.array([1, 4, 6, 4, 1]) / 16, mode="valid")
