"""Verdicts on claims: measured values against published ones, by fixed rules."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from experiments.claims.facts import Fact

ONCE = 1.5
"""Factor by which a time that was measured once is uncertain; repeated ones here vary by up to 1.4."""

INTRODUCTION = (
    "A claim gives a published value, or states that a quantity is on one side of a neutral point (0 for a "
    "difference, 1 for a ratio), or that something holds. The verdict follows from the measured value and "
    "its 95 % interval alone; each row has the reason."
)

NOTES = (
    "Each row names the collection and the IDF band of its fact. Claims about quality are tested on "
    "newsframes and on republished, at the paper's band, [0.2, 0.85], or [0.4, 0.75] for I-Match; gold, which was "
    'generated, checks programs. "Best" compares each method at its own best '
    "threshold on the collection that evaluates it. The caption of each experiment says what its intervals resample.",
    "Of two collections the weaker verdict counts, in the order of the rules 1, 2, 3 and 5.",
    "A value without an interval was measured once, unless it is a count of an algorithm or of the sources. A time "
    f"that was measured once is uncertain by a factor of {ONCE:g}. The interval of a ratio of times is the range over "
    "all pairs of runs; a run that was stopped gives a lower bound.",
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
    Verdict.DEPENDS: "reproduced, if only in direction, on one collection, and not reproduced on the other.",
    Verdict.NOT_TESTABLE: "the reason is given.",
}
"""Rules by the verdict that they lead to, in the order in which they are numbered."""


Reasoned = tuple[Verdict, str]
"""Verdict with its reason in a few words."""


@dataclass(frozen=True, kw_only=True)
class About:
    """A value: ``published`` within ``tolerance``; ``neutral`` separates the directions of a claim that has one."""

    published: float
    tolerance: float
    neutral: float | None = None

    def judge(self, measured: Fact) -> Reasoned:
        """Apply rules 1 to 5."""
        low, high = measured.interval
        inside = low <= self.published <= high and high - low <= 4 * self.tolerance
        near = abs(measured.value - self.published) <= self.tolerance or inside
        reason = f"{'near' if near else 'not near'} {self.published:g} ± {self.tolerance:g}"
        if self.neutral is None:
            return (Verdict.REPRODUCED if near else Verdict.NOT_REPRODUCED), reason
        good = Verdict.REPRODUCED if near else Verdict.DIRECTION
        verdict, side = _by_side(low, high, self.neutral, _side(self.published, self.neutral), good)
        return verdict, f"{side}, {reason}" if verdict is good else side


@dataclass(frozen=True, kw_only=True)
class Direction:
    """A direction without a value: the quantity is above (or below) ``neutral``."""

    neutral: float
    above: bool = True

    def judge(self, measured: Fact) -> Reasoned:
        """Apply rules 1, 3, 4 and 5."""
        low, high = measured.interval
        return _by_side(low, high, self.neutral, 1 if self.above else -1, Verdict.REPRODUCED)


@dataclass(frozen=True, kw_only=True)
class Equal:
    """Rule for a count or another exact value."""

    published: float

    def judge(self, measured: Fact) -> Reasoned:
        """Apply rules 1 and 4."""
        if measured.value == self.published:
            return Verdict.REPRODUCED, "equal"
        return Verdict.CONTRADICTED, "differs"


@dataclass(frozen=True, kw_only=True)
class Untestable:
    """No collection or program here can decide it."""

    reason: str

    def judge(self, measured: Fact) -> Reasoned:
        """Apply rule 7, for any measured value."""
        return Verdict.NOT_TESTABLE, self.reason


Rule = About | Direction | Equal | Untestable

HOLDS = Equal(published=1)


def _side(value: float, neutral: float) -> int:
    return 0 if math.isnan(value) else (value > neutral) - (value < neutral)


def _by_side(low: float, high: float, neutral: float, side: int, good: Verdict) -> Reasoned:
    """Return ``good`` if the whole interval is on the claimed side, contradicted if it is on the other."""
    ends = {_side(low, neutral), _side(high, neutral)}
    if ends in ({1}, {-1}):
        words = f"{'above' if ends == {1} else 'below'} {neutral:g}"
        return (good if ends == {side} else Verdict.CONTRADICTED), words
    contains = f"the interval contains {neutral:g}"
    return (Verdict.INCONCLUSIVE, contains) if low < high else (Verdict.NOT_REPRODUCED, f"equals {neutral:g}")


WEAKER = (Verdict.NOT_REPRODUCED, Verdict.INCONCLUSIVE, Verdict.DIRECTION, Verdict.REPRODUCED)
"""Verdicts on a collection, the weakest first."""


def of_both(verdicts: Collection[Verdict]) -> Verdict:
    """Return the verdict of a claim from those on its collections."""
    if len(set(verdicts)) == 1:
        return next(iter(verdicts))
    held = {Verdict.REPRODUCED, Verdict.DIRECTION} & set(verdicts)
    return Verdict.DEPENDS if held and Verdict.NOT_REPRODUCED in verdicts else min(verdicts, key=WEAKER.index)
