"""The methods the sources compare, with the parameters they give them."""

from __future__ import annotations

from typing import Any

from spotsigs.experiments.work.study import IMATCH_BAND, PAPER_BAND, Line
from spotsigs.matching.algorithm1 import SpotSigs
from spotsigs.signatures.spots import SpotSignatures

PAPER_TAU = {"SpotSigs": 0.44, "1-Shingles": 0.4, "3-Shingles": 0.4, "LSH-S": 0.44}
"""Threshold of each method's row in Table 1."""

K, L = 6, 32
"""LSH's parameters (section 5.3.3)."""


def spotsigs(label: str = "SpotSigs", band: tuple[float, float] = PAPER_BAND, **signature: Any) -> Line:
    """Spot signatures, multi-set Jaccard, Algorithm 1; ``signature`` overrides the paper's best scheme."""
    return Line(label=label, signature=SpotSignatures(**signature), matcher=SpotSigs(), band=band)


def shingles(k: int, band: tuple[float, float] = PAPER_BAND) -> Line:
    """All k-grams of the page, multi-set Jaccard, the same matcher (section 5.3.1)."""
    from spotsigs.baselines.shingles import Shingles

    return Line(label=f"{k}-Shingles", signature=Shingles(k=k), matcher=SpotSigs(), band=band)


def cosine(line: Line) -> Line:
    """Return the line's signatures under Cosine with TF·IDF weights (Figure 5, right)."""
    from spotsigs.baselines.cosine import Cosine

    return Line(label=line.label, signature=line.signature, matcher=Cosine(), band=line.band)


def lsh_s(seed: int, *, l: int = L, native: bool = False, label: str = "LSH-S") -> Line:  # noqa: E741
    """LSH over spot signatures, candidates verified: by datasketch, or on this project's kernels."""
    from spotsigs.baselines.lsh import Lsh
    from spotsigs.baselines.lsh_native import LshNative

    matcher = LshNative(k=K, l=l, seed=seed) if native else Lsh(k=K, l=l, seed=seed)
    return Line(label=label, signature=SpotSignatures(), matcher=matcher)


def i_match(seed: int, **parameters: Any) -> Line:
    """SHA-1 over the terms of middling IDF."""
    from spotsigs.baselines.imatch import IMatch
    from spotsigs.baselines.shingles import Shingles

    return Line(label="I-Match", signature=Shingles(k=1), matcher=IMatch(seed=seed, **parameters), band=IMATCH_BAND)


def i_match_s(seed: int, **parameters: Any) -> Line:
    """I-Match over spot signatures."""
    from spotsigs.baselines.imatch import IMatch

    matcher = IMatch(seed=seed, **parameters)
    return Line(label="I-Match-S", signature=SpotSignatures(), matcher=matcher, band=IMATCH_BAND)


def table1_lines(seed: int) -> list[Line]:
    """Return the methods of Table 1, in its order."""
    return [spotsigs(), shingles(1), shingles(3), lsh_s(seed), i_match(seed), i_match_s(seed)]
