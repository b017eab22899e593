"""A similarity threshold without labels: the valley between unrelated pairs and near-duplicates.

Similarities of unrelated pages are near 0 and similarities of copies near 1, with a valley in between if the pages
decide at all. The histogram has logarithms, in which the two peaks are about equally wide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotsigs.errors import counted, require

FLOOR = 0.03
"""Lower similarities are left out, because they are of pages that share a phrase."""

BINS = 48
FEWEST = 20
"""Fewer pairs than this make no histogram."""

FEW_BELOW = 0.1
"""Largest fraction of all pairs below the valley for which no peak is required there."""

NOISE = 1.0
"""Least depth of a valley: twice the standard deviation of the square root of a count."""

LOWEST_PEAK = 0.25
"""Similarities of near-duplicates peak above this; similarities of pages that share a template peak below."""

LEAST_SEPARATION = 0.5
"""Least fraction of the variance that is between the two sides."""


@dataclass(frozen=True)
class Suggestion:
    """A threshold with its evidence, or the reason why there is none.

    Attributes
    ----------
    tau : float or None
        Bottom of the valley; None if there is none.
    reason : str
        One sentence: why this threshold, or why none.
    separation : float
        Otsu's criterion in [0, 1]: the fraction of the variance of the logarithms that is between the two sides; NaN
        without a threshold.
    edges : ndarray of float64, shape (bins + 1,)
        Similarities that bound the histogram's bins, equidistant on a logarithmic scale, ascending to 1.
    counts : ndarray of int64, shape (bins,)
        Pairs in each bin; a pair on an edge belongs to the bin above it, similarity 1 to the last.
    """

    tau: float | None
    reason: str
    separation: float
    edges: NDArray[np.float64]
    counts: NDArray[np.int64]


def suggest(similarities: NDArray[np.float64], floor: float = FLOOR) -> Suggestion:
    """Suggest a threshold: the bottom of the deepest valley of the smoothed histogram of log similarities.

    Each side of a valley has a highest point; the lower of the two is the lower peak. The depth of the valley is the
    square root of the count at its lower peak minus the square root of the count at its bottom, because the noise of a
    count's square root is the same for all counts. A valley is at most half as high as its lower peak and deeper than
    the noise, half of the variance is between its sides, and the similarities above it peak at 1/4 or more: lower
    similarities are of pages that share a template. The valley whose depth times separation is largest is chosen. If
    hardly a pair is below it, no peak is required there.

    Parameters
    ----------
    similarities : ndarray of float64, shape (m,)
        Similarities of all pairs that reach ``floor``; lower ones, and NaN, are left out.
    floor : float
        Beginning of the histogram, in (0, 1).

    Raises
    ------
    InputError
        If the floor is outside (0, 1), or a similarity above 1.

    References
    ----------
    N. Otsu, "A Threshold Selection Method from Gray-Level Histograms", IEEE Trans. SMC 9(1), 1979: the separation.
    """
    require(0 < floor < 1, f"floor must be in (0, 1), got {floor}")
    values = np.asarray(similarities, dtype=np.float64)
    values = values[values >= floor]
    require(not len(values) or float(values.max()) <= 1, "similarities must not exceed 1")
    edges = np.exp(np.linspace(np.log(floor), 0, BINS + 1))
    edges[0], edges[-1] = floor, 1.0
    counts = np.histogram(values, bins=edges)[0].astype(np.int64)
    tau, separation, reason = _valley(values, counts, edges)
    return Suggestion(tau, reason, separation, edges, counts)


def _valley(
    values: NDArray[np.float64], counts: NDArray[np.int64], edges: NDArray[np.float64]
) -> tuple[float | None, float, str]:
    """Return the bottom of the valley, its separation, and a sentence about it; None and NaN if there is none."""
    none, nan = None, float("nan")
    if len(values) < FEWEST:
        few = counted(len(values), "pair")
        return none, nan, f"only {few} of similarity {edges[0]:g} or more; a histogram needs {FEWEST}"
    if np.count_nonzero(counts) == 1:
        return none, nan, f"all {len(values):,} similarities are in one bin, so there is no valley"
    smooth = _smoothed(counts)
    first, last = _deepest(counts, smooth)
    low, valley = float(smooth[:first].max(initial=0)), float(smooth[first])
    peak = last + int(np.argmax(smooth[last:]))
    high, below = float(smooth[peak]), int(counts[:first].sum())
    height = high if below <= FEW_BELOW * len(values) else min(low, high)
    if valley > height / 2 or np.sqrt(height) - np.sqrt(valley) < NOISE:
        shallow = f"no valley: the lowest point of the histogram ({valley:.1f} pairs a bin) is not far enough below the"
        return none, nan, f"{shallow} lower of its peaks ({height:.1f})"
    if edges[peak + 1] <= LOWEST_PEAK:
        return (
            none,
            nan,
            f"similarities above the valley peak at {edges[peak]:.2f}, as pages with a shared template have it",
        )
    separation = _separation(counts, first, last)
    between = f"{separation:.0%} of the variance of log similarity is between the"
    if separation < LEAST_SEPARATION:
        return none, nan, f"only {between} sides of the valley"
    tau = float(np.sqrt(edges[first] * edges[last + 1]))
    peaks = f"is in the valley ({valley:.1f} pairs a bin) between peaks of {low:.1f} and {high:.1f}"
    return tau, separation, f"tau={tau:.3f} {peaks}; {between} two sides"


def _deepest(counts: NDArray[np.int64], smooth: NDArray[np.float64]) -> tuple[int, int]:
    """Return the first and last bin of the valley whose depth times separation is largest."""
    left = np.maximum.accumulate(np.append(0.0, smooth))[:-1]
    right = np.maximum.accumulate(np.append(smooth, 0.0)[::-1])[::-1][1:]
    lower = np.minimum(left, right)
    if not (lower > smooth).any():  # no peak on the left: the valley precedes the first pair, or ends the slope
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
    """Return the fraction of the variance of the pairs' bins that is between the two sides of a valley's middle."""
    mass, centres = counts / counts.sum(), np.arange(len(counts)) + 0.5
    above = centres >= (first + last + 1) / 2
    mean, size = float(mass @ centres), float(mass[above].sum())
    if not 0 < size < 1:
        return 0.0
    between = (float(mass[above] @ centres[above]) - size * mean) ** 2 / (size * (1 - size))  # Otsu's criterion
    return between / float(mass @ (centres - mean) ** 2)


def _smoothed(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a moving average over five bins with weights 1 4 6 4 1, mirrored at the ends."""
    padded = np.pad(counts.astype(np.float64), 2, mode="symmetric")
    return np.convolve(padded, np.array([1, 4, 6, 4, 1]) / 16, mode="valid")
