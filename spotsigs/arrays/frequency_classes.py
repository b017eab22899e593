"""Classes of document frequency, by which the join on disk orders signatures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

HIGHEST = 63


def rarity_classes(frequencies: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return 0 for a signature of at most one row, else two classes to each doubling of its rows; uint8."""
    mantissa, exponent = np.frexp(np.maximum(frequencies, 1))
    classes = 2 * exponent - 3 + (mantissa >= 0.75)
    return np.where(frequencies > 1, np.minimum(classes, HIGHEST), 0).astype(np.uint8)
