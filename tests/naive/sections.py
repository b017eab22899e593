"""Reference implementation of sections: pages in one folder that begin with the same link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def counting(
    near: Mapping[tuple[int, int], float], sections: Sequence[object], tau: float
) -> dict[tuple[int, int], float]:
    """Return the pairs without those of one section below its threshold; a false value is no section."""
    return {(i, j): s for (i, j), s in near.items() if s >= tau or not sections[i] or sections[i] != sections[j]}
