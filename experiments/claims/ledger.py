"""Claims of the sources: statement, source, testing fact and rule, read from a data file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
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

SOURCES = {
    "paper": "claims of the paper",
    "errata": "statements in which the sources contradict another source or their own figures",
    "other": "claims of the slides, lectures and blogs about it and about related systems",
}
"""Where the claims are from; the claims of the paper are counted first, and apart."""

RULES = ("about", "above", "below", "equals", "holds", "untestable", "undecided")
"""Keys that state the rule of a claim."""


RETIRED = {
    "estimators": "def189b6",
    "lcs_tables": "88320b9d",
    "observations": "f646a0e9",
    "signatures": "74896885",
}
"""Studies that are finished and left the code, with the commit that made their results."""


def command_of(experiment: str) -> str:
    """Return the command that makes the results of an experiment; of a finished study, at its commit."""
    command = f"python run.py experiment={experiment}"
    return f"git checkout {RETIRED[experiment]} && {command}" if experiment in RETIRED else command


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Facts that test a claim, and the rule for the verdict, by the keys of ``claims.toml``, which explains them.

    Without an experiment, the claim is not testable.
    """

    experiment: str = ""
    fact: str = ""
    on: str = ""
    second: str = ""
    second_on: str = ""
    beside: str = ""
    beside_on: str = ""
    timed: bool = False
    rule: Rule

    @property
    def command(self) -> str:
        """Command that tests the claim."""
        return command_of(self.experiment) if self.experiment else ""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Checkable statement with its source and its test, by the keys of ``claims.toml``, which explains them."""

    kind: str
    where: str
    says: str
    published: str
    test: Evidence
    why: str = ""
    remark: str = ""
    key: bool = False

    @property
    def source(self) -> str:
        """Key of `SOURCES`."""
        if self.kind == "errata":
            return "errata"
        return "paper" if self.where.startswith("paper") else "other"


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
    rules = [name for name in RULES if name in entry]
    require(len(rules) == 1, f"claim {says!r} needs exactly one rule, has {', '.join(rules) or 'none'}")
    rule = _rule(rules[0], entry)
    of_test, of_claim = ({field.name for field in fields(each)} - {"rule", "test"} for each in (Evidence, Claim))
    unknown = ", ".join(sorted(entry.keys() - of_test - of_claim))
    require(not unknown, f"claim {says!r} has unknown keys: {unknown}")
    require(entry.get("kind") in KINDS, f"claim {says!r} has no kind; give one of {', '.join(KINDS)}")
    test = Evidence(rule=rule, **{key: value for key, value in entry.items() if key in of_test})
    return Claim(test=test, **{key: value for key, value in entry.items() if key in of_claim})


def _rule(name: str, entry: dict[str, Any]) -> Rule:
    """Remove the keys of a rule from the entry and return the rule."""
    value = entry.pop(name)
    if name == "about":
        return About(published=value, tolerance=entry.pop("tolerance"), neutral=entry.pop("neutral", None))
    if name in ("above", "below"):
        return Direction(limit=value, above=name == "above")
    if name in ("untestable", "undecided"):
        return Untested(reason=value, testable=name == "undecided")
    return HOLDS if name == "holds" else Equal(published=value)
