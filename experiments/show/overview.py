"""Overview of a results folder: the finding, ten claims, two figures, and a list of all with their commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.claims.judged_claims import Judged, summary
from experiments.claims.ledger import command_of
from experiments.show.finding import finding
from experiments.show.tables import Column, Table
from spotsigs.reports.output_files import read_json

FINDING = (
    "Spot signatures help where few sites supply the pages. Their *lead* is their F1 on whole pages less the F1 of the "
    "best of words, 3-shingles and 5-shingles, each at its best threshold. {} With few sites, nearly all false pairs "
    "are two pages of one site, because they share its template. For the same reason, removing templates raises the F1 "
    "of words on news by more than the choice of any signature does.\n\n"
    "The matching algorithm is exact, as the paper claims, and with tight bounds it is also the fastest that was "
    "measured. The paper's upper bound of IDF raises F1 where clusters are large and lowers it where they are small. "
    "[What was found](../docs/reproduction.md#what-was-found) has all that is decided, with its numbers.\n"
)
FIGURES = ("sites/lead_over_sites", "figure5/figure5")
"""The figures that are shown; all others are linked."""
ALIKE = "; exact duplicates are compared like all pages (duplicates=off)"
"""End of the captions of earlier results, which the page states once."""
UNLISTED = ("cells", "runs", "variants", "threshold")
"""Subfolders of the results that are not committed."""
FILES = (
    "- `python run.py experiment=all` writes every table and figure of this list, and `experiment=claims` writes this "
    "page ([how](../docs/reproduction.md)). A finished study has left the code; its command begins with the commit "
    "that has it.\n"
    "- `make bench` and `make race` write `bench/` and `race/` ([how](../benchmarks/README.md)).\n"
    "- The `.json` of each table and figure states its command, commit, machine, seeds and inputs.\n"
    "- A result is current until a commit changes code that it uses, whether or not its numbers would change. A change "
    "of comments and docstrings is none. The last column has the state at the time when this page was written, and how "
    "many files have changed; `python -m experiments.harness.manifest` prints the present state.\n"
    "- If other processes ran during a measurement, its time is n/a.\n"
    "- Folders of runs (`runs/`) and finished cells (`cells/`) are not committed.\n"
    "- Exact duplicates are compared like all pages (duplicates=off) wherever a result of the paper is repeated."
)


def overview(results: Path, judged: Sequence[Judged], states: Mapping[str, str]) -> str:
    """Return the overview in Markdown; images and tables are relative links.

    The state of each folder of results is whether they are current, see `experiments.harness.manifest.states`.
    """
    key = [
        {
            "claim": item.claim.says,
            "published": item.claim.published,
            "measured": f"{item.measured or 'n/a'} on {item.claim.test.on}"
            + (f"; {item.second} on {item.claim.test.second_on.rstrip(',')}" if item.second else ""),
            "verdict": item.verdict.value,
            "command": f"`{item.claim.test.command}`",
        }
        for item in judged
        if item.claim.key
    ]
    note = (
        "Published and measured values are differences or ratios where a claim compares two methods. "
        f"All [claims](claims.md):\n\n{summary(judged)}"
    )
    claims = _captioned_table("Ten claims of the paper", list(key[0]), key, note)
    return "\n".join(
        ["# Results\n", FINDING.format(finding(results)), claims, *_shown(results), _index(results, states)]
    )


def _shown(results: Path) -> list[str]:
    """Return the figures of `FIGURES` that exist, each above its caption."""
    made = [name for name in FIGURES if (results / f"{name}.json").exists()]
    return [f"![{Path(name).name}]({name}.svg)\n\n{_about(results / f'{name}.json')[0]}\n" for name in made]


def _index(results: Path, states: Mapping[str, str]) -> str:
    """Return a table of all tables and figures, with the command and the state of each."""
    rows = []
    for path in sorted(results.glob("*/*.json")):
        if path.parent.name in UNLISTED:
            continue
        caption, suffix = _about(path)
        if caption:
            name = path.relative_to(results).with_suffix(suffix).as_posix()
            command = f"`{command_of(path.parent.name)}`"
            state = states.get(path.parent.name, "unknown")
            rows.append({"result": f"[{caption.partition(';')[0]}]({name})", "command": command, "state": state})
    return _captioned_table("All tables and figures", ["result", "command", "state"], rows, FILES)


def _about(path: Path) -> tuple[str, str]:
    """Return the caption of a table or figure, and the suffix of the file that shows it; empty for other files."""
    about = read_json(path)
    for kind, suffix in (("table", ".md"), ("figure", ".svg")):
        if kind in about:
            return about[kind]["caption"].replace(ALIKE, ""), suffix
    return "", ""


def _captioned_table(caption: str, names: Sequence[str], rows: Sequence[dict[str, str]], *notes: str) -> str:
    columns = [Column(name=name, title=name.capitalize() if name.islower() else name) for name in names]
    return Table(caption=caption, columns=columns, rows=rows, notes=notes).markdown()
