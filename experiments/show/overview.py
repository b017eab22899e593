"""Overview of a results folder: the key claims, and every table and figure with its command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.claims.judged_claims import Judged, summary
from experiments.claims.ledger import command_of
from experiments.show.tables import Column, Table
from spotsigs.reports.output_files import read_json

FINDING = "What the reproduction finds is in [README](../README.md#what-the-reproduction-finds).\n"
UNLISTED = ("cells", "runs", "variants", "threshold")
"""Subfolders of the results that are not committed."""
FILES = (
    "`python run.py experiment=all` writes every table and figure below ([how](../docs/reproduction.md)), and "
    "`experiment=claims` writes this page. `make bench` and `make race` write `bench/` and `race/` "
    "([how](../benchmarks/README.md)). The `.json` of each table and figure states its command, commit, "
    "machine, seeds and inputs. `python -m experiments.harness.manifest` states which results are current, and since "
    "when the code of the others has changed. A time during which other processes ran is n/a. Folders of runs "
    "(`runs/`) and finished cells (`cells/`) are not committed."
)


def overview(results: Path, judged: Sequence[Judged]) -> str:
    """Return the overview in Markdown; images and tables are relative links."""
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
    note = f"All [claims](claims.md):\n\n{summary(judged)}"
    claims = _table("Key claims of the paper", list(key[0]), key, note)
    return "\n".join(["# Results\n", FINDING, claims, *_files(results)])


def _files(results: Path) -> list[str]:
    tables, figures = [], []
    for path in sorted(results.glob("*/*.json")):
        about = {} if path.parent.name in UNLISTED else read_json(path)
        name = path.relative_to(results).with_suffix("")
        command = f"`{command_of(str(about.get('experiment')))}`"
        if "table" in about:
            tables.append({"table": f"[{about['table']['caption']}]({name}.md)", "command": command})
        elif "figure" in about:
            caption = about["figure"]["caption"]
            figures.append(f"![{path.stem}]({name}.svg)\n\n{caption}: {command}\n")
    return [_table("Tables", ["table", "command"], tables, FILES), *figures]


def _table(caption: str, names: Sequence[str], rows: Sequence[dict[str, str]], *notes: str) -> str:
    columns = [Column(name=name, title=name.capitalize() if name.islower() else name) for name in names]
    return Table(caption=caption, columns=columns, rows=rows, notes=notes).markdown()
