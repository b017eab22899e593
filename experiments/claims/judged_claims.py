"""Claims ledger: every checkable statement of the sources with its verdict."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.claims.facts import Fact, read_facts
from experiments.claims.ledger import KINDS, SOURCES, Claim, ledger
from experiments.claims.verdicts import HOLDS, NOTES, ONCE, RULE, Reasoned, Untested, Verdict, of_both
from spotsigs.reports.output_files import replacing, write_csv

HEADER = (
    *("source", "class", "claim", "where", "published", "on", "command"),
    *("measured", "low", "high", "verdict", "reason", "remark"),
)

MISSING = "not run yet, its collection is not at hand, or other processes disturbed its times"


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Claim with the measured fact and the verdict."""

    claim: Claim
    fact: Fact | None  # measured fact; None without a measurement
    second: Fact | None = None  # measured fact of a second collection, which is judged alike
    beside: Fact | None = None  # measured fact of another collection, which is shown and not judged

    @property
    def verdict(self) -> Verdict:
        """Verdict of the claim's rule on the facts of its collections."""
        return of_both([verdict for verdict, _ in self.reasoned.values()])

    @property
    def reason(self) -> str:
        """The reason of the verdict; by collection if there are several with different reasons."""
        reasons = [reason for _, reason in self.reasoned.values()]
        if len(set(reasons)) == 1:
            return reasons[0]
        listed = "; ".join(f"{on.partition(',')[0]}: {reason}" for on, (_, reason) in self.reasoned.items())
        verdicts = {verdict for verdict, _ in self.reasoned.values()}
        depends = {Verdict.REPRODUCED, Verdict.NOT_REPRODUCED} <= verdicts
        return f"depends on the collection; {listed}" if depends else listed

    @property
    def reasoned(self) -> dict[str, Reasoned]:
        """Verdict and reason on each collection that the claim was measured on."""
        rule = self.claim.test.rule
        if isinstance(rule, Untested):
            return {self.claim.test.on: rule.judge(self.fact or Fact(name="", value=math.nan))}
        if self.fact is None:
            return {self.claim.test.on: (Verdict.NOT_DECIDED, MISSING)}
        facts = {self.claim.test.on: self.fact, self.claim.test.second_on: self.second}
        return {on: self._judged(fact) for on, fact in facts.items() if fact is not None}

    def _judged(self, fact: Fact) -> Reasoned:
        if self.generated:
            return Verdict.NOT_TESTABLE, "gold was generated: the value checks the program"
        if not math.isfinite(fact.value):
            return Verdict.NOT_DECIDED, "the value is not defined"
        if self.claim.test.timed and (fact.low is None or fact.low == fact.high):
            fact = replace(fact, low=fact.value / ONCE, high=fact.value * ONCE)
            verdict, reason = self.claim.test.rule.judge(fact)
            return verdict, f"{reason}; measured once"
        return self.claim.test.rule.judge(fact)

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
        """The claim is not reproduced, or not decided."""
        return self.verdict not in (Verdict.REPRODUCED, Verdict.NOT_TESTABLE)

    @property
    def why(self) -> str:
        """Assumed reason, if the claim does not hold."""
        return self.claim.why if self.failed else ""

    @property
    def remark(self) -> str:
        """The facts of other collections, and further remarks."""
        test = self.claim.test
        shown = {test.second_on: self.second, test.beside_on: self.beside}
        facts = [f"On {on} {fact}." for on, fact in shown.items() if fact is not None]
        return " ".join(filter(None, (*facts, self.claim.remark)))


def judge_all(results: Path) -> list[Judged]:
    """Return every claim with its facts in a results folder."""
    facts = {name: read_facts(results / name / "facts.csv") for name in {claim.test.experiment for claim in ledger()}}
    of_claims = ((claim, claim.test, facts[claim.test.experiment]) for claim in ledger())
    return [
        Judged(claim=claim, fact=of.get(test.fact), second=of.get(test.second), beside=of.get(test.beside))
        for claim, test, of in of_claims
    ]


def summary(judged: Sequence[Judged]) -> str:
    """Return the number of claims by source and verdict, the paper's first."""
    lines = []
    for source, name in SOURCES.items():
        items = [item for item in judged if item.claim.source == source]
        if items:
            lines.append(f"- {len(items)} {name}: {counted_verdicts(items)}")
    return "\n".join(lines)


def counted_verdicts(judged: Sequence[Judged]) -> str:
    """Return the number of claims by verdict in words."""
    counts = Counter(item.verdict for item in judged)
    return ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])


def write_ledger(results: Path, judged: Sequence[Judged]) -> None:
    """Write ``claims.csv`` and ``claims.md``."""
    write_csv(results / "claims.csv", HEADER, map(_cells, judged))
    with replacing(results / "claims.md") as temporary:
        temporary.write_text(markdown(judged), encoding="utf-8")


def _cells(item: Judged) -> list[str | float | None]:
    fact, claim = item.fact, item.claim
    measured = (fact.value, fact.low, fact.high) if fact else (None, None, None)
    about = [claim.source, claim.kind, claim.says, claim.where, claim.published, claim.test.on, claim.test.command]
    return [*about, *measured, item.verdict.value, item.reason, " ".join(filter(None, (item.why, item.remark)))]


def markdown(judged: Sequence[Judged]) -> str:
    """Return the ledger in Markdown: counts, rules, a row for each claim, and the claims that do not hold."""
    rows = [
        [
            str(number),
            KINDS[item.claim.kind],
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
    failed = "\n".join(f"- {text}" for text in failures(judged)) or "All claims are reproduced."
    parts = ["# Claims of the sources", summary(judged), RULE, *NOTES, table]
    return "\n\n".join([*parts, "## What is not reproduced, or not decided", failed]) + "\n"


def failures(judged: Sequence[Judged]) -> list[str]:
    """Return a sentence for each claim that is not reproduced or not decided, with the assumed reason."""
    return [
        f"{item.claim.says} ({item.claim.where}): published {item.claim.published}, measured {item.measured} "
        f"({item.claim.test.on}); {item.verdict.value}. {item.why}".rstrip()
        for item in judged
        if item.failed
    ]
