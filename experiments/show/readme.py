"""Update the results in README.md: ``python -m experiments.show.readme``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from experiments.claims.facts import Fact, read_facts
from experiments.claims.judged_claims import judge_all
from experiments.claims.published import published
from experiments.claims.verdicts import Verdict
from spotsigs.output_files import replacing

COUNTED = {
    Verdict.REPRODUCED: "{} are reproduced",
    Verdict.DIRECTION: "{} in direction only",
    Verdict.NOT_REPRODUCED: "{} are not reproduced",
    Verdict.INCONCLUSIVE: "{} are inconclusive",
    Verdict.CONTRADICTED: "{} are contradicted",
    Verdict.NOT_TESTABLE: "{} cannot be tested here",
    Verdict.NOT_MEASURED: "{} were not measured",
}


def table(facts: Mapping[str, Fact]) -> str:
    """Return the rows of Table 1: published F1, and the best F1 on each collection with its threshold."""
    names = list(dict.fromkeys(name.partition(":")[0] for name in facts))
    rows = [["", "published", *(f"`{name}`" for name in names)], ["---"] * (len(names) + 2)]
    for row in published("table1"):
        method = str(row["method"])
        rows.append([method, _short(float(row["f1"] or 0), 2), *(_cell(facts, name, method) for name in names)])
    return (
        "\n".join("| " + " | ".join(row) + " |" for row in rows).replace("|  |", "| |").replace("| --- ", "|---") + "\n"
    )


def _cell(facts: Mapping[str, Fact], name: str, method: str) -> str:
    f1, tau = facts[f"{name}: {method}: best F1"], facts.get(f"{name}: {method}: best tau")
    return _short(f1.value, 3) + (f" at {_short(round(tau.value, 2))}" if tau else "")


def _short(value: float, digits: int | None = None) -> str:
    return (f"{value:g}" if digits is None else f"{value:.{digits}f}").removeprefix("0")


def counts(results: Path) -> str:
    """Return the number of claims of each verdict, as half a sentence."""
    judged = judge_all(results)
    found = Counter(item.verdict for item in judged)
    *parts, last = (words.format(found[verdict]) for verdict, words in COUNTED.items() if found[verdict])
    return f"Of [{len(judged)} claims](results/claims.md) of the sources, {', '.join(parts)} and {last}"


def written(text: str, results: Path) -> str:
    """Return the text of README.md with the table and the counts of the results.

    Parameters
    ----------
    text : str
        Text of README.md.
    results : Path
        Folder with the results of ``quality`` and those by which claims are evaluated.

    Returns
    -------
    str
    """
    facts = read_facts(results / "quality" / "facts.csv")
    text = re.sub(r"(?m)^\| \| published \|(?:.*\n)(?:\|.*\n)+", lambda _: table(facts), text)
    return re.sub(r"Of \[\d+ claims\].*?(?=; each has its verdict)", lambda _: counts(results), text)


if __name__ == "__main__":
    readme = Path("README.md")
    new = written(readme.read_text(encoding="utf-8"), Path("results"))
    with replacing(readme) as temporary:
        temporary.write_text(new, encoding="utf-8")
