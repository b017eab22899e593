"""Claims ledger: every checkable statement of the sources with its verdict."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.claims.facts import Fact, read_facts
from experiments.claims.ledger import CONTRADICTABLE, KINDS, Claim, ledger
from experiments.claims.verdicts import (
    HOLDS,
    INTRODUCTION,
    NOTES,
    ONCE,
    RULES,
    Reasoned,
    Untested,
    Verdict,
    of_both,
)
from spotsigs.output_files import replacing, write_csv

HEADER = (
    *("class", "claim", "where", "published", "on", "command"),
    *("measured", "low", "high", "verdict", "reason", "remark"),
)

MISSING = "not run yet, its collection is not at hand, or other processes disturbed its times"


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Claim with the measured fact and the verdict.

    Attributes
    ----------
    claim : Claim
        Claim.
    fact : Fact or None
        Measured fact; None without a measurement.
    second : Fact or None
        That of a second collection, which is tested alike.
    """

    claim: Claim
    fact: Fact | None
    second: Fact | None = None

    @property
    def verdict(self) -> Verdict:
        """Verdict of the claim's rule on the facts of its collections."""
        return of_both([verdict for verdict, _ in self.reasoned.values()])

    @property
    def reason(self) -> str:
        """The reason of the verdict; by collection if they differ or there are several."""
        reasons = [reason for _, reason in self.reasoned.values()]
        if len(set(reasons)) == 1:
            return reasons[0]
        return "; ".join(f"{on.partition(',')[0]}: {reason}" for on, (_, reason) in self.reasoned.items())

    @property
    def reasoned(self) -> dict[str, Reasoned]:
        """Verdict and reason on each collection that the claim was measured on."""
        if self.fact is None and not isinstance(self.claim.test.rule, Untested):
            return {self.claim.test.on: (Verdict.NOT_MEASURED, MISSING)}
        facts = {self.claim.test.on: self.fact or Fact(name="", value=math.nan), self.claim.test.second_on: self.second}
        return {on: self._judged(fact) for on, fact in facts.items() if fact is not None}

    def _judged(self, fact: Fact) -> Reasoned:
        if isinstance(self.claim.test.rule, Untested):
            return self.claim.test.rule.judge(fact)
        if self.generated:
            return Verdict.NOT_TESTABLE, "gold was generated: the value checks the program"
        if not math.isfinite(fact.value):
            return Verdict.NOT_MEASURED, "the value is not defined"
        contradictable = self.claim.kind in CONTRADICTABLE
        once = not contradictable and (fact.low is None or fact.low == fact.high)
        if once and self.claim.test.timed:
            fact = replace(fact, low=fact.value / ONCE, high=fact.value * ONCE)
        verdict, reason = self.claim.test.rule.judge(fact)
        if verdict is Verdict.CONTRADICTED:
            return (verdict if contradictable else Verdict.NOT_REPRODUCED), reason
        if verdict is Verdict.REPRODUCED and (self.claim.test.calibrated or once):
            why = "generated with this count" if self.claim.test.calibrated else "measured once"
            return (Verdict.DIRECTION if self.claim.test.rule.sided else Verdict.INCONCLUSIVE), f"{reason}; {why}"
        return verdict, reason

    @property
    def generated(self) -> bool:
        """The claim is about quality, and its fact is of generated pages, which check the program alone."""
        return self.claim.kind == "effectiveness" and self.claim.test.on.startswith("gold")

    @property
    def measured(self) -> str:
        """The measured value as text; in words if the claim is a statement."""
        if self.fact is None:
            return ""
        if self.claim.test.rule == HOLDS and not self.fact.text:
            return "holds" if self.fact.value == 1 else "does not hold"
        return str(self.fact)

    @property
    def failed(self) -> bool:
        """The claim does not hold here, or the measurement does not decide it."""
        others = (Verdict.REPRODUCED, Verdict.DIRECTION, Verdict.NOT_TESTABLE, Verdict.NOT_MEASURED)
        return self.verdict not in others

    @property
    def why(self) -> str:
        """Assumed reason, if the claim does not hold."""
        return self.claim.why if self.failed else ""

    @property
    def remark(self) -> str:
        """The fact of another collection, and further remarks."""
        second = f"On {self.claim.test.second_on} {self.second}." if self.second else ""
        return " ".join(filter(None, (second, self.claim.remark)))


def judge_all(results: Path) -> list[Judged]:
    """Return every claim with its facts in a results folder."""
    facts = {name: read_facts(results / name / "facts.csv") for name in {claim.test.experiment for claim in ledger()}}
    of_claims = ((claim, claim.test, facts[claim.test.experiment]) for claim in ledger())
    return [Judged(claim=claim, fact=of.get(test.fact), second=of.get(test.second)) for claim, test, of in of_claims]


def summary(judged: Sequence[Judged]) -> str:
    """Return the number of claims by class and verdict."""
    lines = [f"{len(judged)} claims"]
    for kind, name in KINDS.items():
        counts = Counter(item.verdict for item in judged if item.claim.kind == kind)
        listed = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
        if listed:
            lines.append(f"- {counts.total()} of {name}: {listed}")
    return "\n".join(lines)


def write_ledger(results: Path, judged: Sequence[Judged]) -> None:
    """Write ``claims.csv`` and ``claims.md``."""
    write_csv(results / "claims.csv", HEADER, map(_cells, judged))
    with replacing(results / "claims.md") as temporary:
        temporary.write_text(markdown(judged), encoding="utf-8")


def _cells(item: Judged) -> list[str | float | None]:
    fact, claim = item.fact, item.claim
    measured = (fact.value, fact.low, fact.high) if fact else (None, None, None)
    about = [claim.kind, claim.says, claim.where, claim.published, claim.test.on, claim.test.command]
    return [*about, *measured, item.verdict.value, item.reason, " ".join(filter(None, (item.why, item.remark)))]


def markdown(judged: Sequence[Judged]) -> str:
    """Return the ledger in Markdown: counts, rules, a row for each claim, and the claims that do not hold."""
    rows = [
        [
            str(number),
            item.claim.kind,
            item.claim.says,
            item.claim.where,
            item.claim.published,
            item.claim.test.on,
            item.measured,
            f"**{item.verdict.value}**: {item.reason}." + (f" {item.remark}" if item.remark else ""),
            f"`{item.claim.test.command}`" if item.claim.test.command else "",
        ]
        for number, item in enumerate(judged, start=1)
    ]
    titles = ["", "class", "claim", "where", "published", "on", "measured (95 % interval)", "verdict", "tested by"]
    table = "\n".join(
        f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in [titles, ["---"] * len(titles), *rows]
    )
    failed = "\n".join(f"- {text}" for text in failures(judged)) or "All claims hold."
    rules = "\n".join(f"{n}. **{verdict.value}**: {rule}" for n, (verdict, rule) in enumerate(RULES, start=1))
    parts = ["# Claims of the sources", summary(judged), INTRODUCTION, rules, *NOTES, table]
    return "\n\n".join([*parts, "## What does not hold here", failed]) + "\n"


def failures(judged: Sequence[Judged]) -> list[str]:
    """Return a sentence for each claim that does not hold, with the assumed reason."""
    return [
        f"{item.claim.says} ({item.claim.where}): published {item.claim.published}, measured {item.measured} "
        f"({item.claim.test.on}); {item.verdict.value}. {item.why}".rstrip()
        for item in judged
        if item.failed
    ]
