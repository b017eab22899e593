"""Rules for verdicts on claims, from published and measured values only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from experiments.claims.facts import Fact

RULES = """\
A claim has a published value, or says that a quantity lies on one side of a *neutral* point (0 for a difference, 1 for
a ratio), or that something holds. The verdict follows from the measured value and its 95 % interval alone:

1. **reproduced**: the published value is near the measured one, and the whole interval lies on the claimed side of the
   neutral point, if there is one. Near is what differs by no more than the claim's tolerance, or lies in the interval
   if that is no wider than four tolerances: a wide interval proves nothing. Without a published value the side alone
   counts. A claim that something holds: it holds.
2. **reproduced in direction only**: not near, but the whole interval lies on the claimed side.
3. **contradicted**: the whole interval lies on the other side. A claim that something holds, or that a count is equal:
   it does not hold, or the count differs.
4. **not reproduced**: anything else.
5. **not testable here**: the reason is given.

A claim about effectiveness is one about the authors' Gold Set, which was not published: on another collection it is
reproduced or not, and never contradicted. The collection whose verdict counts is `newsframes`, real stories in real
frames; `results/matrix` has the same claims on others.

Where a value has no interval (counts), the value stands for it. Ratios of times have no interval either, but the range
over all pairs of runs, which takes its place; it is marked as such.
"""


class Verdict(Enum):
    """Verdict on a claim."""

    REPRODUCED = "reproduced"
    DIRECTION = "reproduced in direction only"
    NOT_REPRODUCED = "not reproduced"
    CONTRADICTED = "contradicted"
    NOT_TESTABLE = "not testable here"
    NOT_MEASURED = "not measured yet"


@dataclass(frozen=True, kw_only=True)
class About:
    """Rule for a value: ``published`` within ``tolerance``; ``neutral`` defines the direction, if there is one."""

    published: float
    tolerance: float
    neutral: float | None = None

    def judge(self, measured: Fact) -> Verdict:
        """Apply rules 1 to 4."""
        low, high = measured.interval
        inside = low <= self.published <= high and high - low <= 4 * self.tolerance
        near = inside or abs(measured.value - self.published) <= self.tolerance
        good = Verdict.REPRODUCED if near else Verdict.DIRECTION
        if self.neutral is None:
            return Verdict.REPRODUCED if near else Verdict.NOT_REPRODUCED
        return _beside(low, high, self.neutral, _side(self.published, self.neutral), good)


@dataclass(frozen=True, kw_only=True)
class Direction:
    """Rule for a direction: the quantity is above (or below) ``neutral``."""

    neutral: float
    above: bool = True

    def judge(self, measured: Fact) -> Verdict:
        """Apply rules 1, 3 and 4."""
        low, high = measured.interval
        return _beside(low, high, self.neutral, 1 if self.above else -1, Verdict.REPRODUCED)


@dataclass(frozen=True, kw_only=True)
class Equal:
    """Rule for a count or another exact value."""

    published: float

    def judge(self, measured: Fact) -> Verdict:
        """Apply rules 1 and 3."""
        return Verdict.REPRODUCED if measured.value == self.published else Verdict.CONTRADICTED


@dataclass(frozen=True, kw_only=True)
class Untestable:
    """Rule for a claim that is not testable."""

    reason: str

    def judge(self, measured: Fact) -> Verdict:
        """Apply rule 5."""
        return Verdict.NOT_TESTABLE


Rule = About | Direction | Equal | Untestable

HOLDS = Equal(published=1)


def _side(value: float, neutral: float) -> int:
    return 0 if math.isnan(value) else (value > neutral) - (value < neutral)


def _beside(low: float, high: float, neutral: float, side: int, good: Verdict) -> Verdict:
    """Return ``good`` if the whole interval is on the claimed side, contradicted if it is on the other."""
    ends = {_side(low, neutral), _side(high, neutral)}
    if ends == {side}:
        return good
    return Verdict.CONTRADICTED if ends == {-side} else Verdict.NOT_REPRODUCED
