"""Verdicts on claims: measured values against published ones, by fixed rules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from experiments.claims.facts import Fact

INTRODUCTION = (
    "A claim gives a published value, or states that a quantity is on one side of a neutral point (0 for a "
    "difference, 1 for a ratio), or that something holds. The verdict follows from the measured value and "
    "its 95 % interval alone."
)

NOTES = (
    "Each row names the collection and the IDF band of its fact. Claims about quality are tested on "
    "newsframes and on republished, at the paper's band, [0.2, 0.85], or [0.4, 0.75] for I-Match; gold, which was "
    'generated, checks programs. "Best" compares each method at its own best '
    "threshold on the collection that evaluates it.",
    "A count of an algorithm or of the sources is compared itself. Any other value without an interval was measured "
    "once and is reproduced in direction at best. The interval of a ratio of times is the range over all "
    "pairs of runs; a run that was stopped gives a lower bound.",
)


class Verdict(Enum):
    """Outcome of a claim."""

    REPRODUCED = "reproduced"
    DIRECTION = "reproduced in direction only"
    INCONCLUSIVE = "inconclusive"
    NOT_REPRODUCED = "not reproduced"
    DEPENDS = "depends on the collection"
    CONTRADICTED = "contradicted"
    NOT_TESTABLE = "not testable here"
    NOT_MEASURED = "not measured yet"


RULES = {
    Verdict.REPRODUCED: (
        "the published value is near the measured one, and the whole interval is on the claimed side of the "
        "neutral point, if there is one. Near is a difference of at most the claim's tolerance, or a published "
        "value within an interval of at most four tolerances. Without a published value the side alone counts. "
        "A statement holds."
    ),
    Verdict.DIRECTION: (
        "not near, but the whole interval is on the claimed side. Also the best verdict for a count that the "
        "collection was generated with, and for a quality or a time that was measured once."
    ),
    Verdict.INCONCLUSIVE: "the interval contains the neutral point.",
    Verdict.CONTRADICTED: (
        "the whole interval is on the other side; a statement does not hold, or a value differs. Only claims "
        "about algorithms and errata of the sources can be contradicted: effectiveness is claimed of the "
        "authors' Gold Set, which was not published, and efficiency of their programs and machines."
    ),
    Verdict.NOT_REPRODUCED: "all else.",
    Verdict.DEPENDS: "the verdicts on two collections differ; both are given.",
    Verdict.NOT_TESTABLE: "the reason is given.",
}
"""Rules by the verdict that they lead to, in the order in which they are numbered."""


@dataclass(frozen=True, kw_only=True)
class About:
    """A value: ``published`` within ``tolerance``; ``neutral`` separates the directions of a claim that has one."""

    published: float
    tolerance: float
    neutral: float | None = None

    def judge(self, measured: Fact) -> Verdict:
        """Apply rules 1 to 5."""
        low, high = measured.interval
        inside = low <= self.published <= high and high - low <= 4 * self.tolerance
        near = inside or abs(measured.value - self.published) <= self.tolerance
        good = Verdict.REPRODUCED if near else Verdict.DIRECTION
        if self.neutral is None:
            return Verdict.REPRODUCED if near else Verdict.NOT_REPRODUCED
        return _by_side(low, high, self.neutral, _side(self.published, self.neutral), good)


@dataclass(frozen=True, kw_only=True)
class Direction:
    """A direction without a value: the quantity is above (or below) ``neutral``."""

    neutral: float
    above: bool = True

    def judge(self, measured: Fact) -> Verdict:
        """Apply rules 1, 3, 4 and 5."""
        low, high = measured.interval
        return _by_side(low, high, self.neutral, 1 if self.above else -1, Verdict.REPRODUCED)


@dataclass(frozen=True, kw_only=True)
class Equal:
    """Rule for a count or another exact value."""

    published: float

    def judge(self, measured: Fact) -> Verdict:
        """Apply rules 1 and 4."""
        return Verdict.REPRODUCED if measured.value == self.published else Verdict.CONTRADICTED


@dataclass(frozen=True, kw_only=True)
class Untestable:
    """No collection or program here can decide it."""

    reason: str

    def judge(self, measured: Fact) -> Verdict:
        """Apply rule 6, for any measured value."""
        return Verdict.NOT_TESTABLE


Rule = About | Direction | Equal | Untestable

HOLDS = Equal(published=1)


def _side(value: float, neutral: float) -> int:
    return 0 if math.isnan(value) else (value > neutral) - (value < neutral)


def _by_side(low: float, high: float, neutral: float, side: int, good: Verdict) -> Verdict:
    """Return ``good`` if the whole interval is on the claimed side, contradicted if it is on the other."""
    ends = {_side(low, neutral), _side(high, neutral)}
    if ends == {side}:
        return good
    if ends == {-side}:
        return Verdict.CONTRADICTED
    return Verdict.INCONCLUSIVE if low < high else Verdict.NOT_REPRODUCED
