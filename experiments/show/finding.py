"""The finding of the study of signatures, in the words of ``docs/protocol.md``, from its facts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.claims.facts import Fact, read_facts

NOT_RUN = "The study of [the protocol](docs/protocol.md) was not run yet with this code."
REMOVED = "template removed"
"""Treatment of the second sentence; a table has the others."""
ARTICLE = "article"
"""Treatment that only one collection knows: an upper bound, which decides nothing."""


def finding(results: Path) -> list[str]:
    """Return sentences on what holds on pages that the project did not generate, and what does not transfer.

    The list has one sentence if the study was not run.
    """
    facts = read_facts(results / "signatures" / "facts.csv")
    tested = {name for name, _ in _tests(facts, "H1")}
    collections = [name for name in dict.fromkeys(fact.partition(":")[0] for fact in facts) if name in tested]
    if not collections:
        return [NOT_RUN]
    whole = _tests(facts, "H1")[0][1]
    others = list(dict.fromkeys(treatment for _, treatment in _tests(facts, "H3") if treatment != ARTICLE))
    leads, same = (
        _joined([_lead(facts, name, treatment, hypothesis) for name in collections])
        for treatment, hypothesis in ((whole, "H1"), (REMOVED, "H2"))
    )
    return [
        f"F1 of spots less the best of words and shingles, whole pages: {leads}.",
        f"Template removed, one text for all: {same}{_lowest(facts, collections, others)}.",
        _conclusion(facts, collections, whole, others),
        _cause(facts),
        *transfer(results),
    ]


def _lowest(facts: Mapping[str, Fact], collections: Sequence[str], treatments: Sequence[str]) -> str:
    """Return the lowest lead of other treatments with one text for all, if it is below those of template removal."""
    leads = {(name, of): facts[f"{name}: lead of spots, {of}"] for name in collections for of in treatments}
    (name, treatment), lead = min(leads.items(), key=lambda item: item[1].value)
    if lead.value >= min(other.value for (_, of), other in leads.items() if of == REMOVED):
        return ""
    words = _lead(facts, name, treatment, "H2")[1]
    decided = "" if words == "undecided" else f", {words}"
    return f"; lowest: {_code(name)}, {treatment}, {_number(lead)}{decided}"


def _conclusion(facts: Mapping[str, Fact], collections: Sequence[str], whole: str, others: Sequence[str]) -> str:
    implicit, nothing = [], []
    for name in collections:
        removal = outcome(facts, "H1", name, whole) == "spots lead"
        if removal and all(outcome(facts, "H3", name, treatment) == "larger" for treatment in others):
            implicit.append(name)
            if all(outcome(facts, "H2", name, treatment).startswith("equal") for treatment in others):
                nothing.append(name)
    rest = [name for name in collections if name not in implicit]
    parts = []
    if implicit:
        parts.append(f"Spots are implicit removal of boilerplate on {_listed(implicit)}")
        parts.append(
            f", and add nothing once it is gone on {_listed(nothing)}"
            if nothing
            else "; that they add nothing once it is gone is shown on none"
        )
    if rest:
        parts.append(
            ("; " if parts else "") + f"that spots are implicit removal of boilerplate is not shown on {_listed(rest)}"
        )
    text = "".join(parts)
    return f"**{text[0].upper()}{text[1:]}.**"


def _cause(facts: Mapping[str, Fact]) -> str:
    outcomes = {name: fact.text.partition(", ")[2] for name, fact in facts.items() if name.startswith("H4: ")}
    if outcomes and set(outcomes.values()) == {"smaller"}:
        return "Dense templates are a cause: blocks of constant density reduce the lead over each rival less (H4)."
    return "Dense templates are not shown to be the cause (H4)."


def transfer(results: Path) -> list[str]:
    """Return a sentence on what does not transfer between collections; none if it was not measured."""
    facts = read_facts(results / "observations" / "facts.csv")
    fact = facts.get("observation 3: corrected p")
    if fact is None:
        return []
    costs = [fact for name, fact in facts.items() if name.startswith("observation 3: ") and " to " in name]
    costs.sort(key=lambda fact: fact.value)
    verdict = "No threshold transfers" if fact.text.endswith("holds") else "That no threshold transfers is undecided"
    return [f"{verdict}: the best of one costs {_number(costs[0])} to {_number(costs[-1])} on another."]


def outcome(facts: Mapping[str, Fact], hypothesis: str, collection: str, treatment: str) -> str:
    """Return the corrected outcome of a test in the words of the protocol."""
    return facts[f"{hypothesis}: {collection}, {treatment}: corrected p"].text.partition(", ")[2]


def _tests(facts: Mapping[str, Fact], hypothesis: str) -> list[tuple[str, str]]:
    """Return the collection and the treatment of each test of a hypothesis."""
    pattern = re.compile(rf"{hypothesis}: (.+), (.+): corrected p")
    return [(match[1], match[2]) for match in map(pattern.fullmatch, facts) if match]


def _lead(facts: Mapping[str, Fact], name: str, treatment: str, hypothesis: str) -> tuple[str, str]:
    words = outcome(facts, hypothesis, name, treatment)
    if hypothesis == "H2" and words == "undecided":
        words = outcome(facts, "H2, difference", name, treatment)
    elif hypothesis == "H2" and outcome(facts, "H2, difference", name, treatment) != "undecided":
        words = "differ by less than .02"
    return f"{_code(name)} {_number(facts[f'{name}: lead of spots, {treatment}'])}", words


def _joined(leads: Sequence[tuple[str, str]]) -> str:
    """Return differences with their outcomes; an outcome of all is named once."""
    outcomes = dict.fromkeys(words for _, words in leads)
    if len(outcomes) == 1:
        return f"{', '.join(lead for lead, _ in leads)}: {next(iter(outcomes))}"
    return "; ".join(", ".join(lead) for lead in leads)


def _number(fact: Fact) -> str:
    """Return a difference with its interval, as in +.131 (+.058 to +.198)."""
    return "{} ({} to {})".format(*map(signed, (fact.value, *fact.interval)))


def signed(value: float) -> str:
    """Return a difference with three decimals and its sign."""
    return f"{value:+.3f}".replace("0.", ".", 1).replace("-", "−")


def _code(name: str) -> str:
    return f"`{name}`"


def _listed(names: Sequence[str]) -> str:
    *first, last = map(_code, names)
    return f"{', '.join(first)} and {last}" if first else last
