"""Claims of the sources: statement, source, testing fact and rule, read from a data file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from experiments.claims.published import PAPER
from experiments.claims.verdicts import HOLDS, About, Direction, Equal, Rule, Untested
from spotsigs.errors import require

KINDS = {
    "algorithm": "algorithm and exactness",
    "effectiveness": "effectiveness",
    "efficiency": "efficiency",
    "errata": "errata of the sources",
}
"""The classes of claims."""

RULE_KEYS = ("about", "above", "below", "equals", "holds", "untestable", "unmeasured")
"""Keys that state the rule of a claim."""

CONTRADICTABLE = ("algorithm", "errata")
"""Classes that a measurement here can contradict: the others are about the authors' pages, programs and machines."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Checkable statement.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    where : str
        Source and section.
    says : str
        Statement.
    published : str
        Published value, as printed.
    experiment : str
        Experiment whose fact tests the claim; empty if the claim is not testable.
    fact : str
        The fact's name.
    on : str
        Collection and IDF band of the fact.
    second : str
        Fact of a second collection, tested by the same rule.
    second_on : str
        Collection of the further fact.
    calibrated : bool
        The collection was generated with the published count, so that the direction alone is a result.
    timed : bool
        The fact is a time or a ratio of times.
    rule : Rule
        Rule for the verdict.
    why : str
        Assumed reason, shown only if the claim does not hold.
    remark : str
        Further remark, always shown.
    key : bool
        One of the claims of ``results/README.md``.
    """

    kind: str
    where: str
    says: str
    published: str
    experiment: str = ""
    fact: str = ""
    on: str = ""
    second: str = ""
    second_on: str = ""
    calibrated: bool = False
    timed: bool = False
    rule: Rule
    why: str = ""
    remark: str = ""
    key: bool = False

    @property
    def command(self) -> str:
        """Command that tests the claim."""
        return f"python run.py experiment={self.experiment}" if self.experiment else ""


@cache
def ledger() -> tuple[Claim, ...]:
    """Return all claims of ``experiments/claims/paper/claims.toml``, in order.

    Raises
    ------
    InputError
        If a claim does not have exactly one rule, or has an unknown key.
    """
    entries = tomllib.loads((PAPER / "claims.toml").read_text(encoding="utf-8"))["claim"]
    return tuple(parsed_claim(dict(entry)) for entry in entries)


def parsed_claim(entry: dict[str, Any]) -> Claim:
    """Return the claim of an entry of the ledger; raise InputError unless it has one rule."""
    says = entry.get("says")
    rules = [
        name for name in ("about", "above", "below", "equals", "holds", "untestable", "unmeasured") if name in entry
    ]
    require(len(rules) == 1, f"claim {says!r} needs exactly one rule, has {', '.join(rules) or 'none'}")
    rule = _rule(rules[0], entry)
    known = set(Claim.__dataclass_fields__) - {"rule"}
    require(entry.keys() <= known, f"claim {says!r} has unknown keys: {', '.join(sorted(entry.keys() - known))}")
    require(entry.get("kind") in KINDS, f"claim {says!r} has no kind; give one of {', '.join(KINDS)}")
    return Claim(rule=rule, **entry)


def _rule(name: str, entry: dict[str, Any]) -> Rule:
    """Remove the keys of a rule from the entry and return the rule."""
    value = entry.pop(name)
    if name == "about":
        return About(published=value, tolerance=entry.pop("tolerance"), neutral=entry.pop("neutral", None))
    if name in ("above", "below"):
        return Direction(limit=value, above=name == "above")
    if name in ("untestable", "unmeasured"):
        return Untested(reason=value, measurable=name == "unmeasured")
    return HOLDS if name == "holds" else Equal(published=value)
