"""Verdicts on claims: a measured value, its interval and the limit that a claim names, by one rule."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from experiments.claims.facts import Fact

ONCE = 1.5
"""Factor by which a time that was measured once is uncertain; repeated ones here vary by up to 1.4."""


class Verdict(Enum):
    """Outcome of a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NOT_DECIDED = "not decided"
    NOT_TESTABLE = "not testable"


RULE = (
    "A claim is **reproduced** if the whole 95 % interval of the measured value is on the claimed side of the claim's "
    "limit, **not reproduced** if the whole interval is on the other side, and **not decided** if the interval "
    "contains the limit. A claim is **not testable** if only the authors' own pages, files or machines could decide it."
)
"""The rule that decides every claim."""

NOTES = (
    "The limit of a difference is 0, that of a ratio is 1; a claim that names only a value has two limits, the value "
    "less and plus a tolerance. Where a claim has a direction and a value, the direction decides, and the remark "
    "states whether the value is near the published one. A count or a statement is its own interval.",
    f"A time that was measured once is uncertain by a factor of {ONCE:g}. The interval of a ratio of times is the "
    "range over all pairs of runs; a run that was stopped gives a lower bound, which is judged as the value.",
    "Quality is measured on newsframes, at the paper's IDF band. Some claims are measured on republished as well, and "
    "a claim that is reproduced on one and not reproduced on the other is not decided, because it depends on the "
    "collection. Other claims show republished beside the verdict, because the paper's band drops every signature in "
    "fewer than four pages, and the clusters of republished have two or three pages.",
    '"Best" compares each method at its own best threshold on the collection that evaluates it. The caption of each '
    "experiment states what its intervals resample.",
)

Reasoned = tuple[Verdict, str]
"""Verdict with its reason in a few words."""


@dataclass(frozen=True, kw_only=True)
class About:
    """A value: ``published`` within ``tolerance``; ``neutral`` is the limit of a claim that has a direction."""

    published: float
    tolerance: float
    neutral: float | None = None

    def judge(self, measured: Fact) -> Reasoned:
        """Compare the interval with the neutral point, or with the range of the published value."""
        low, high = self.published - self.tolerance, self.published + self.tolerance
        near = f"{'near' if low <= measured.value <= high else 'not near'} {self.published:g} ± {self.tolerance:g}"
        if self.neutral is not None:
            verdict, side = beside_limit(measured.interval, self.neutral, above=self.published > self.neutral)
            return verdict, f"{side}, {near}" if verdict is Verdict.REPRODUCED else side
        least, most = measured.interval
        if low <= least and most <= high:
            return Verdict.REPRODUCED, near
        if most < low or high < least:
            return Verdict.NOT_REPRODUCED, near
        return Verdict.NOT_DECIDED, f"{near}; the interval contains a limit"


@dataclass(frozen=True, kw_only=True)
class Direction:
    """A direction without a value: the quantity is above (or below) ``limit``."""

    limit: float
    above: bool = True

    def judge(self, measured: Fact) -> Reasoned:
        """Compare the interval with the limit."""
        return beside_limit(measured.interval, self.limit, above=self.above)


@dataclass(frozen=True, kw_only=True)
class Equal:
    """Rule for a count or another exact value."""

    published: float

    def judge(self, measured: Fact) -> Reasoned:
        """Compare the value with the published one."""
        if measured.value == self.published:
            return Verdict.REPRODUCED, "equal"
        return Verdict.NOT_REPRODUCED, "differs"


@dataclass(frozen=True, kw_only=True)
class Untested:
    """A claim that no measurement here decides: only the authors could (`testable` is false), or nobody has yet."""

    reason: str
    testable: bool = False

    def judge(self, measured: Fact) -> Reasoned:
        """Return the reason, for any measured value."""
        return Verdict.NOT_DECIDED if self.testable else Verdict.NOT_TESTABLE, self.reason


Rule = About | Direction | Equal | Untested

HOLDS = Equal(published=1)


def beside_limit(interval: tuple[float, float], limit: float, *, above: bool) -> Reasoned:
    """Return the verdict of an interval and a limit that the quantity is claimed to be above, or else below."""
    low, high = interval
    if low > limit:
        return Verdict.REPRODUCED if above else Verdict.NOT_REPRODUCED, f"above {limit:g}"
    if high < limit:
        return Verdict.NOT_REPRODUCED if above else Verdict.REPRODUCED, f"below {limit:g}"
    return Verdict.NOT_DECIDED, f"the interval contains {limit:g}" if low < high else f"equals {limit:g}"


def of_both(verdicts: Collection[Verdict]) -> Verdict:
    """Return the verdict of a claim from its verdicts on one or two collections."""
    different = set(verdicts)
    return next(iter(different)) if len(different) == 1 else Verdict.NOT_DECIDED
