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
    "A claim gives a published value with a tolerance, some with a neutral point (0 for a difference, 1 for a ratio) "
    "whose sides are its directions; or it states that a quantity is on one side of a limit (a neutral point, or a "
    "number that the claim or our reading of it names); or that something holds or is counted. The verdict follows "
    "from the measured value and its 95 % interval: **the first rule that applies decides**. Each row has the reason."
)

NOTES = (
    "*Near*: the measured value differs from the published one by at most the tolerance, and its interval is at most "
    "four tolerances wide. A wide interval alone is not near.",
    "Claims about algorithms and errata of the sources that rule 4 decides are **contradicted**. Others are **not "
    "reproduced**: effectiveness is claimed of the authors' Gold Set, which was not published, and efficiency of their "
    "programs and machines.",
    "A value without an interval, or with one of width 0, was measured once, unless it is of an algorithm or of the "
    f"sources. A time, or a ratio of times, that was measured once has an interval from it divided by {ONCE:g} to it "
    f"times {ONCE:g}; another value is its interval. The interval of a ratio of times is the range over all pairs "
    "of runs; a run that was stopped gives a lower bound, which is judged as the value.",
    "A claim about quality is tested on newsframes and on republished, at the paper's band, [0.2, 0.85], or "
    "[0.4, 0.75] for I-Match. Equal verdicts stay. If one is reproduced, if only in direction, and the other not "
    "reproduced, the claim **depends on the collection**. Else the weaker counts: inconclusive is weaker than "
    "reproduced in direction only, and not reproduced weaker than inconclusive.",
    '"Best" compares each method at its own best threshold on the collection that evaluates it. The caption of each '
    "experiment says what its intervals resample.",
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


RULES = (
    (Verdict.NOT_TESTABLE, "no collection here can decide it, for the reason given; so is quality on gold alone."),
    (Verdict.NOT_MEASURED, "there is no value, or it is not defined; the reason is given."),
    (
        Verdict.INCONCLUSIVE,
        "the interval contains or touches the neutral point or the limit. Without them: it contains values within the "
        "tolerance of the published one, and the value is not near; or it is near, and was measured once.",
    ),
    (
        Verdict.NOT_REPRODUCED,
        "the whole interval is on the other side of the neutral point or the limit. Without them: the whole interval "
        "is farther from the published value than the tolerance; a statement does not hold; a count differs.",
    ),
    (
        Verdict.DIRECTION,
        "the whole interval is on the claimed side, and the value is not near, or was measured once, or is a count "
        "that the collection was generated with.",
    ),
    (Verdict.REPRODUCED, "all else."),
)
"""Rules in the order in which they are applied, by the verdict that they lead to; `NOTES` define their words."""


Reasoned = tuple[Verdict, str]
"""Verdict with its reason in a few words."""


@dataclass(frozen=True, kw_only=True)
class About:
    """A value: ``published`` within ``tolerance``; ``neutral`` separates the directions of a claim that has one."""

    published: float
    tolerance: float
    neutral: float | None = None

    @property
    def sided(self) -> bool:
        """The claim has a direction."""
        return self.neutral is not None

    def judge(self, measured: Fact) -> Reasoned:
        """Apply rules 3 to 6 to a value that was measured several times."""
        low, high = measured.interval
        near = abs(measured.value - self.published) <= self.tolerance and high - low <= 4 * self.tolerance
        reason = f"{'near' if near else 'not near'} {self.published:g} ± {self.tolerance:g}"
        if self.neutral is not None:
            good = Verdict.REPRODUCED if near else Verdict.DIRECTION
            verdict, side = _by_side(low, high, self.neutral, _side(self.published, self.neutral), good)
            return verdict, f"{side}, {reason}" if verdict is good else side
        if near:
            return Verdict.REPRODUCED, reason
        if low <= self.published + self.tolerance and high >= self.published - self.tolerance:
            return Verdict.INCONCLUSIVE, f"{reason}, which the interval reaches"
        return Verdict.CONTRADICTED, reason


@dataclass(frozen=True, kw_only=True)
class Direction:
    """A direction without a value: the quantity is above (or below) ``limit``."""

    limit: float
    above: bool = True
    sided = True

    def judge(self, measured: Fact) -> Reasoned:
        """Apply rules 3, 4 and 6."""
        low, high = measured.interval
        return _by_side(low, high, self.limit, 1 if self.above else -1, Verdict.REPRODUCED)


@dataclass(frozen=True, kw_only=True)
class Equal:
    """Rule for a count or another exact value."""

    published: float
    sided = False

    def judge(self, measured: Fact) -> Reasoned:
        """Apply rules 4 and 6."""
        if measured.value == self.published:
            return Verdict.REPRODUCED, "equal"
        return Verdict.CONTRADICTED, "differs"


@dataclass(frozen=True, kw_only=True)
class Untested:
    """No collection or program here can decide it, or none was run (`measurable`)."""

    reason: str
    measurable: bool = False
    sided = False

    def judge(self, measured: Fact) -> Reasoned:
        """Apply rules 1 and 2, for any measured value."""
        return Verdict.NOT_MEASURED if self.measurable else Verdict.NOT_TESTABLE, self.reason


Rule = About | Direction | Equal | Untested

HOLDS = Equal(published=1)


def _side(value: float, neutral: float) -> int:
    return 0 if math.isnan(value) else (value > neutral) - (value < neutral)


def _by_side(low: float, high: float, neutral: float, side: int, good: Verdict) -> Reasoned:
    """Return ``good`` if the whole interval is on the claimed side, contradicted if it is on the other."""
    ends = {_side(low, neutral), _side(high, neutral)}
    if ends in ({1}, {-1}):
        words = f"{'above' if ends == {1} else 'below'} {neutral:g}"
        return (good if ends == {side} else Verdict.CONTRADICTED), words
    return Verdict.INCONCLUSIVE, f"the interval contains {neutral:g}" if low < high else f"equals {neutral:g}"


WEAKER = (Verdict.NOT_REPRODUCED, Verdict.INCONCLUSIVE, Verdict.DIRECTION, Verdict.REPRODUCED)
"""Verdicts on a collection, the weakest first."""


def of_both(verdicts: Collection[Verdict]) -> Verdict:
    """Return the verdict of a claim from those on its collections."""
    if len(set(verdicts)) == 1:
        return next(iter(verdicts))
    good = {Verdict.REPRODUCED, Verdict.DIRECTION} & set(verdicts)
    return Verdict.DEPENDS if good and Verdict.NOT_REPRODUCED in verdicts else min(verdicts, key=WEAKER.index)
