"""Sections of README.md and of the pages of evidence that are written from the results.

``python -m experiments.show.pages`` writes the text between ``<!--results:NAME-->`` and ``<!--end-->`` again; a test
compares it.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.claims.facts import read_facts
from experiments.claims.published import published
from experiments.claims.verdicts import Verdict
from experiments.show.finding import finding as _finding
from spotsigs import __version__
from spotsigs.options import OPTIONS, Door
from spotsigs.options import plain as as_typed
from spotsigs.reports.output_files import read_json, write_text

ROOT = Path(__file__).parents[2]
CITATION = ROOT / "CITATION.cff"
PAGES = (
    "README.md",
    "docs/reproduction.md",
    "docs/performance.md",
    "docs/scaling.md",
    "docs/citing.md",
    "docs/reference-options.md",
)
SECTION = re.compile(r"(<!--results:(\w+)-->\n)(.*?)(<!--end-->)", re.DOTALL)
SHOWN = ("newsframes", "republished")
"""Collections of the table of best F1."""
PROGRAMS = {"LSH-S": "LSH-S (native)"}
"""Labels of the programs that were measured, by the paper's names of the methods."""
JOINS = (("short 100k", 0.9), ("short 1.17M", 0.9), ("short 1.17M", 0.5), ("long 100k", 0.5))
"""Columns of the table of joins."""
WIDTH = 125
"""Characters of a line of a page."""


def plain(value: float, digits: int = 3) -> str:
    """Return a fraction without a leading zero, as in .829."""
    return f"{value:.{digits}f}".removeprefix("0")


def percent(value: float) -> str:
    """Return a fraction in percent."""
    return f"{value:.1%}".replace("%", " %")


def _markdown_table(titles: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [titles, ["---"] * len(titles), *rows]) + "\n"


def table1(results: Path) -> str:
    """Return the published and the measured row of SpotSigs."""
    rows = pd.read_csv(results / "table1/table1.csv", dtype=object, keep_default_na=False)
    lines = []
    for which in ("published", "measured"):
        row = rows[(rows.method == "SpotSigs") & (rows.row == which)].iloc[0]
        figures = [f"{float(row[name]):.3f}" for name in ("precision", "recall", "f1")]
        spots, mb = f"{float(row.spots):,.0f}", f"{float(row.mb):.1f}"
        lines.append([f"SpotSigs, {which}", row.idf, f"{float(row.tau):g}", spots, mb, *figures])
    titles = ["", "IDF", "tau", "#Spots", "MB", "Prec.", "Rec.", "F1"]
    return f"```text\n{pd.DataFrame(lines, columns=titles).to_string(index=False)}\n```\n"


def best_f1(results: Path) -> str:
    """Return the best F1 of each method of Table 1, published and measured."""
    facts = read_facts(results / "quality/facts.csv")
    rows = []
    for row in published("table1"):
        method = PROGRAMS.get(str(row["method"]), str(row["method"]))
        cells = [method, plain(row["f1"], 2)]
        for name in SHOWN:
            f1, tau = (facts.get(f"{name}: {method}: best {what}") for what in ("F1", "tau"))
            at = f" at {tau.value:g}".replace("0.", ".") if tau else ""
            cells.append("n/a" if f1 is None else plain(f1.value) + at)
        rows.append(cells)
    return _markdown_table(["", "published", *(f"`{name}`" for name in SHOWN)], rows)


def decisions(results: Path) -> str:
    """Return what the default of the command and MinHash lose and leave."""
    table = pd.read_csv(results / "practice/settings.csv").set_index(["collection", "method", "text"])
    rows = []
    for collection in dict.fromkeys(table.index.get_level_values("collection")):
        if collection == "gold":  # generated
            continue
        cells = [f"`{collection}`"]
        for method, text in (("spotsigs dedup", "whole page"), ("MinHash 14 x 8", "trafilatura")):
            row = table.loc[(collection, method, text)]
            cells += [percent(row["lost"]), percent(row["left"])]
        rows.append(cells)
    return _markdown_table(["", "`spotsigs dedup`: lost", "left", "MinHash 14 x 8, trafilatura: lost", "left"], rows)


def claims(results: Path) -> str:
    """Return the number of the paper's claims by verdict."""
    table = pd.read_csv(results / "claims.csv")
    counts = Counter(table.verdict[table.source == "paper"])
    listed = ", ".join(f"{counts[verdict.value]} {verdict.value}" for verdict in Verdict if counts[verdict.value])
    said = (
        f"`results/claims.md` judges {counts.total()} claims of the paper by one rule, which compares the 95 % "
        f"interval of the measured value with the claim's limit: {listed}."
    )
    return f"{textwrap.fill(said, WIDTH)}\n"


def speed(results: Path) -> str:
    """Return the times of both exact joins and of LSH at full scale, from the experiment of Table 2."""
    rows = pd.read_csv(results / "table2/table2.csv")
    total = rows[(rows.row == "measured") & (rows.tau == 0.9)].set_index("method").total_ms
    methods = ("SpotSigs, tight bounds", "LSH-S (native)", "SpotSigs")
    tight, lsh, algorithm = (f"{float(total[method]) / 1000:.3g}" for method in methods)
    said = (
        "The vectors of `short 1.17M` are also timed by `python run.py experiment=table2`, which adds the two stages "
        "of the paper's Table 2, sorting or hashing and clustering, in runs of its own, so that its seconds differ "
        f"from this table's. At τ = .9, `spotsigs_tight` takes {tight} seconds there, `lsh_native` {lsh}, and "
        f"`spotsigs`, which is Algorithm 1 as the paper prints it, {algorithm}. README states these."
    )
    return f"{textwrap.fill(said, WIDTH)}\n"


def joins(results: Path) -> str:
    """Return the seconds of each join, on two threads if the tool has them, with ratios to ours."""
    cells = pd.read_csv(results / "bench/cells.csv").rename(columns={"tool": "method"})
    cells = cells.sort_values("threads", kind="stable")
    recalls = {(row.method, row.collection, row.tau): row.recall for row in cells.itertuples()}
    seconds: dict[str, dict[tuple[str, float], float]] = {}
    for row in cells[cells.status == "ok"].itertuples():
        seconds.setdefault(row.method, {})[row.collection, row.tau] = row.seconds
    approximate = {tool for (tool, *_), recall in recalls.items() if recall < 1}
    ours = seconds["spotsigs_tight"]
    rows = []
    for tool, of in seconds.items():
        known = [_join_cell(of.get(at), ours[at], recalls.get((tool, *at)), tool in approximate) for at in JOINS]
        if any(cell != "–" for cell in known):
            rows.append([tool, *(known if tool != "spotsigs_tight" else [f"{ours[at]:.3g}" for at in JOINS])])
    return _markdown_table(["", *(f"{name}, tau {tau:g}" for name, tau in JOINS)], rows)


def _join_cell(seconds: float | None, ours: float, recall: Any, approximate: bool) -> str:
    if seconds is None:
        return "–"
    return f"{seconds:.3g} ({seconds / ours:.3g}×)" + (f", recall {recall:.2f}" if approximate else "")


def race(results: Path) -> str:
    """Return what each tool loses and leaves, and its core seconds."""
    rows = pd.read_csv(results / "race/race.csv", keep_default_na=False).to_dict("records")
    collections = list(dict.fromkeys(row["collection"] for row in rows))
    keys = dict.fromkeys((row["tool"], row["text"]) for row in rows)
    by_key = {(row["collection"], row["tool"], row["text"]): row for row in rows}
    titles = ["", "text"]
    for name in collections:
        titles += [f"`{name}`: lost", "left", "core s"]
    lines = []
    for tool, text in keys:
        cells = [tool, text]
        for name in collections:
            row = by_key.get((name, tool, text))
            if row is None or row["kept"] == "":
                cells += [""] * 3
            else:
                lost, left, seconds = (float(row[figure]) for figure in ("lost", "left", "core_seconds"))
                cells += [percent(lost), percent(left), f"{seconds:.0f}"]
        lines.append(cells)
    return _markdown_table(titles, lines)


def scale(results: Path) -> str:
    """Return the stages of the largest run, and the joins of all."""
    runs = sorted(
        (read_json(path) for path in (results / "scale").glob("scale-*.json")), key=lambda run: run["documents"]
    )
    if not runs:
        return "(not run yet with this code)\n"
    largest = runs[-1]
    stages = [
        [row["stage"], *(f"{row[name]:,.1f}" for name in ("seconds", "core_seconds")), f"{row['peak_mb']:,.0f}"]
        for row in largest["rows"]
    ]
    sizes = [
        [
            f"{run['documents']:,}",
            f"{_join(run):,.1f}",
            f"{run['join_in_memory_core_seconds']:,.1f}",
            f"{_join(run) / max(run['join_in_memory_core_seconds'], 0.1):.1f}",
            f"{run['peak_bytes'] / 1e6:,.0f}",
            f"{run['tasks']:,}",
        ]
        for run in runs
    ]
    return (
        f"{largest['documents']:,} pages ({largest['input_bytes'] / 1e9:.0f} GB), {largest['memory'] / 1e9:g} GB for "
        "all processes, whose core seconds are added:\n\n"
        + _markdown_table(["stage", "seconds", "core seconds", "peak MB, all processes"], stages)
        + f"\n{largest['pairs']:,} pairs in {largest['clusters']:,} clusters, the same pairs as in memory.\n\n"
        + _markdown_table(["pages", "join on disk, core seconds", "in memory", "ratio", "peak MB", "tasks"], sizes)
    )


def finding(results: Path) -> str:
    """Return what the study of the number of sites found."""
    return f"{textwrap.fill(_finding(results), WIDTH)}\n"


def _join(run: Mapping[str, Any]) -> float:
    return float(next(row["core_seconds"] for row in run["rows"] if row["stage"] == "join"))


def version(_: Path) -> str:
    """Return the reference of the version as BibTeX."""
    cited = CITATION.read_text(encoding="utf-8")
    [year] = re.findall(r"^date-released: (\d+)", cited, re.MULTILINE)
    return (
        "```bibtex\n@software{spotsigs,\n  author  = {{The SpotSigs reproduction's authors}},\n"
        "  title   = {{SpotSigs}: a reproduction, and an exact near-duplicate detector},\n"
        f"  year    = {{{year}}},\n  version = {{{__version__}}},\n}}\n```\n"
    )


def runs(results: Path) -> str:
    """Return when, where and at which commits the listed results were made, and how long it took."""
    files = pd.read_csv(results / "manifest.csv")
    made = files.assign(name=files.file.str.partition("/")[0]).drop_duplicates("name")
    rows = []
    for commit, of in made.groupby("commit", sort=False):
        names = ", ".join(f"`{name}`" for name in of.name)
        hours, machines = f"{of.seconds.sum() / 3600:.1f}", ", ".join(sorted(set(of.machine)))
        rows.append([f"`{commit[:8]}`", str(of.date.max()), names, hours, machines])
    return _markdown_table(["commit", "date", "results", "hours", "machine"], rows)


def options(_: Path) -> str:
    """Return every option with its name, its values and its default in each door."""
    rows = []
    for option in OPTIONS:
        command, function, key = (option.defaults.get(door, ABSENT) for door in Door)
        form = f" {option.form}" if option.form else ""
        typed = f"`{option.typed}{form}`" if command is not ABSENT else ""
        called = ", ".join(f"`{name}({option.name}={function!r})`" for name in option.functions)
        written = f"`{option.name}={as_typed(key)}`" if key is not ABSENT else ""
        notes = [f"In {door.value}: {option.notes[door]}" for door in Door if option.notes.get(door)]
        rows.append([cell.replace("|", "\\|") for cell in (typed, called, written, " ".join([option.help, *notes]))])
    return _markdown_table(["command", "functions", "run.py", "what it does"], rows)


ABSENT = object()
"""Default of an option that a door lacks."""

SECTIONS: dict[str, Callable[[Path], str]] = {
    each.__name__: each
    for each in (table1, best_f1, finding, decisions, claims, speed, joins, race, scale, version, runs, options)
}
"""Functions from the folder of results to a section, by its name."""


def written(page: str, results: Path) -> str:
    """Return the text of a page with its sections written from the results."""
    return SECTION.sub(lambda match: match[1] + SECTIONS[match[2]](results) + match[4], page)


def cited(text: str) -> str:
    """Return the text of the citation file with the version."""
    return re.sub(r"^version: .*$", f"version: {__version__}", text, flags=re.MULTILINE)


def main() -> None:
    """Write the sections of all pages, and the version into the citation file."""
    write_text(CITATION, cited(CITATION.read_text(encoding="utf-8")))
    for name in PAGES:
        path = ROOT / name
        write_text(path, written(path.read_text(encoding="utf-8"), ROOT / "results"))


if __name__ == "__main__":
    main()
