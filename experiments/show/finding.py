"""What the study of the number of sites found, in the words that the second part of docs/protocol.md fixed before."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from experiments.claims.facts import Fact, read_facts

FOLDERS = ("sites", "sites_density", "sites_templates")
UNKNOWN = "How this lead depends on the number of sites is not measured yet."
_LEAD = re.compile(r"lead of spots, (\d+) sites, \[0\.2, 1\]")


def finding(results: Path) -> str:
    """Return the finding in whole sentences, with tested hypotheses alone.

    Parameters
    ----------
    results : Path
        Folder of all results; results of hypotheses that were not measured may be missing.
    """
    whole_pages, *others = (read_facts(results / folder / "facts.csv") for folder in FOLDERS)
    leads = {int(match[1]): fact for name, fact in whole_pages.items() if (match := _LEAD.fullmatch(name))}
    facts = dict(whole_pages)
    for known in others:  # the leads after template removal have the same names as the leads of whole pages
        facts |= {name: fact for name, fact in known.items() if name.startswith("hypothesis ")}
    if not leads:
        return UNKNOWN
    few, many = min(leads), max(leads)
    measured = f"it is {_with_interval(leads[few])} with {few} sites and {_with_interval(leads[many])} with {many}"
    if not _holds(facts, "1"):
        return f"That it falls with the number of sites that supply the pages is not shown: {measured}."
    sentences = [f"The lead of spot signatures falls with the number of sites that supply the pages: {measured}."]
    if _holds(facts, "2"):
        sentences.append(f"With {many} sites, spot signatures and the best of the others are equal within .02.")
    if _holds(facts, "5b"):
        sentences.append("Both the number of sites and the density of antecedents in templates are causes.")
    elif _holds(facts, "5a"):
        sentences.append("The number of sites is the cause; an effect of the density of antecedents is not shown.")
    if _holds(facts, "6"):
        sentences.append("Once templates are removed, they are equal within .02 with every number of sites.")
    return " ".join(sentences)


def _holds(facts: Mapping[str, Fact], step: str) -> bool:
    verdict = facts.get(f"hypothesis {step}: verdict")
    return verdict is not None and verdict.text == "holds"


def _with_interval(fact: Fact) -> str:
    value, low, high = (_signed(each) for each in (fact.value, *fact.interval))
    return f"{value} F1 ({low} to {high})"


def _signed(value: float) -> str:
    """Return a difference of F1 as in +.123, with a minus that is none of a hyphen."""
    return f"{value:+.3f}".replace("0.", ".", 1).replace("-", "−")
