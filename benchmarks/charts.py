"""Tables, goals and a plot of the measurements: ``python -m benchmarks.charts`` writes them again.

From a folder with ``cells.csv``, ``extraction.csv``, ``startup.csv``, ``profile.csv`` and ``machine.csv`` it writes
``goals.csv``, ``crossing.csv``, ``bench.md``, ``bench.svg``, ``bench.png`` and, for a complete run, the tables in
``docs/performance.md``.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.compared_tools import JOIN, OURS, TOOLS
from benchmarks.inputs import COLLECTIONS
from experiments.show.figures import Panel, Point, draw_lines
from spotsigs.output_files import replacing

ROOT = Path(__file__).parents[1]
OUR_THREADS = 2
JOIN_STAGES = ("copies", "postings", "join", "expand")
STAGES = ("scan", "copies", "order", "pack", "postings", "join", "expand")
PLOTTED = ("short 100k", "short 1.17M", "long 100k")
SHOWN_COLUMNS = (("short 100k", 0.9), ("short 1.17M", 0.9), ("short 1.17M", 0.5), ("long 100k", 0.5))
PAGE = "docs/performance.md"
MARKERS = "<!-- bench: made by benchmarks/charts.py -->", "<!-- end of bench -->"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Measurements of a run, one data frame for each file; it is empty if the file is missing."""

    cells: pd.DataFrame
    extraction: pd.DataFrame
    startup: pd.DataFrame
    profile: pd.DataFrame
    machine: pd.DataFrame

    @classmethod
    def read(cls, folder: Path) -> Measured:
        """Read the data frames of a folder."""
        paths = {name: folder / f"{name}.csv" for name in cls.__dataclass_fields__}
        return cls(**{name: pd.read_csv(path) if path.exists() else pd.DataFrame() for name, path in paths.items()})

    def cell(self, where: str, tool: str, tau: float, threads: int | None = None) -> pd.Series | None:
        """Return a measured cell, or None; without `threads`, that with the most threads."""
        cells = self.cells
        at = (cells.collection == where) & (cells.tool == tool) & (cells.tau == tau) & (cells.status == "ok")
        found = cells[at if threads is None else at & (cells.threads == threads)]
        return None if found.empty else found.sort_values("threads").iloc[-1]

    def value(self, column: str, where: str, tool: str, tau: float, threads: int | None = None) -> float | None:
        """Return a value of a cell, or None if it is missing."""
        cell = self.cell(where, tool, tau, threads)
        return None if cell is None or pd.isna(cell[column]) else float(cell[column])


def ratio(above: float | None, below: float | None) -> float | None:
    """Return a quotient, or None if a part is missing."""
    return above / below if above is not None and below else None


# Measures of goals: functions of the measurements and the row of a goal.


def seconds(measured: Measured, goal: Any) -> float | None:
    """Return the seconds of a cell."""
    return measured.value("seconds", goal.where, goal.tool, goal.tau, OUR_THREADS)


def peak_mb(measured: Measured, goal: Any) -> float | None:
    """Return the peak memory of a cell's process."""
    return measured.value("peak_mb", goal.where, goal.tool, goal.tau, OUR_THREADS)


def times_ours(measured: Measured, goal: Any) -> float | None:
    """Return the ratio of a tool's seconds to ours on all threads."""
    ours = measured.value("seconds", goal.where, JOIN, goal.tau, OUR_THREADS)
    return ratio(measured.value("seconds", goal.where, goal.tool, goal.tau), ours)


def least_times_ours(measured: Measured, goal: Any) -> float | None:
    """Return the smallest such ratio over all thresholds."""
    rows = [goal._replace(tau=tau) for tau in TOOLS[goal.tool].taus]
    return min((q for q in (times_ours(measured, row) for row in rows) if q is not None), default=None)


def times_our_join(measured: Measured, goal: Any) -> float | None:
    """Return the ratio of the fastest of several tools to ours on one thread, without sorting the input."""
    ours = [
        measured.value(f"details.seconds.{stage}", goal.where, JOIN, goal.tau, 1)
        for stage in JOIN_STAGES
        if f"details.seconds.{stage}" in measured.cells
    ]
    peers = [measured.value("seconds", goal.where, tool, goal.tau) for tool in goal.tool.split("|")]
    known = [one for one in peers if one is not None]
    return ratio(min(known), math.fsum(one or 0.0 for one in ours)) if known and any(ours) else None


def growth(measured: Measured, goal: Any) -> float | None:
    """Return the exponent with which seconds grow with occurrences from one collection to another."""
    small, large = goal.where.split("|")
    more = ratio(*(measured.value("seconds", where, goal.tool, goal.tau, OUR_THREADS) for where in (large, small)))
    return math.log(more) / math.log(COLLECTIONS[large].occurrences / COLLECTIONS[small].occurrences) if more else None


def mb_per_s(measured: Measured, goal: Any) -> float | None:
    """Return the speed of a step of extraction."""
    steps = measured.extraction
    found = steps[steps.step == goal.where] if len(steps) else steps
    return None if found.empty else float(found.mb_per_s.iloc[0])


def linear_share(measured: Measured, goal: Any) -> float | None:
    """Return the speed of a step in several processes, divided by their number and the speed in one."""
    steps, one = measured.extraction, mb_per_s(measured, goal)
    found = steps[steps.step.str.startswith(f"{goal.where}, ")] if len(steps) else steps
    if found.empty or one is None:
        return None
    processes = int(re.findall(r"\d+", found.step.iloc[0])[0])
    return float(found.mb_per_s.iloc[0]) / processes / one


def startup(measured: Measured, goal: Any) -> float | None:
    """Return the seconds of a start-up."""
    return None if measured.startup.empty else float(measured.startup.seconds.iloc[0])


MEASURES: dict[str, Callable[[Measured, Any], float | None]] = {
    one.__name__: one
    for one in (
        seconds, peak_mb, times_ours, least_times_ours, times_our_join, growth, mb_per_s, linear_share, startup,
    )
}  # fmt: skip


def reaches(value: float, sense: str, goal: float) -> bool:
    """Return whether a value reaches a goal."""
    return {">=": value >= goal, "<=": value <= goal, ">": value > goal}[sense]


def goals(measured: Measured) -> pd.DataFrame:
    """Return each goal with the measured value and a verdict."""
    listed = pd.read_csv(Path(__file__).with_name("goals.csv"), keep_default_na=False, dtype={"tau": "string"})
    rows = []
    for goal in listed.itertuples(index=False):
        goal = goal._replace(tau=float(goal.tau) if goal.tau else math.nan)
        value = MEASURES[goal.measure](measured, goal) if len(measured.cells) else None
        verdict = "not measured" if value is None else "met" if reaches(value, goal.sense, goal.value) else "missed"
        verdict += " †" if value is not None and _disturbed(measured, goal) else ""
        row = {"goal": goal.goal, "wanted": f"{goal.sense} {goal.value:g} {goal.unit}".strip()}
        rows.append(row | {"measured": "" if value is None else shown(value), "verdict": verdict})
    return pd.DataFrame(rows)


def _disturbed(measured: Measured, goal: Any) -> bool:
    """Return whether other processes disturbed a measurement that a goal may depend on."""
    if goal.measure in ("mb_per_s", "linear_share", "startup"):
        return bool((measured.startup if goal.measure == "startup" else measured.extraction).contended.any())
    cells = measured.cells
    at = cells.collection.isin(goal.where.split("|")) & cells.tool.isin([*goal.tool.split("|"), JOIN])
    return bool((cells[at & ((cells.tau == goal.tau) | math.isnan(goal.tau))].contended == True).any())  # noqa: E712


def crossing(measured: Measured, where: str = "short 1.17M") -> pd.DataFrame:
    """Return seconds of our three matchers by threshold, and the thresholds at which each exact one crosses LSH.

    The paper's curves cross at tau 0.78. Crossings are interpolated on the logarithm of the quotient; without any, the
    column states which matcher is always faster.
    """
    taus = sorted(TOOLS["lsh_native"].taus)
    rows = []
    for tool in ("spotsigs", JOIN):
        times = {tau: measured.value("seconds", where, tool, tau) for tau in taus}
        hashed = {tau: measured.value("seconds", where, "lsh_native", tau) for tau in taus}
        logs = [(tau, math.log(q)) for tau in taus if (q := ratio(hashed[tau], times[tau]))]
        crosses = [
            a + (b - a) * low / (low - high) for (a, low), (b, high) in pairwise(logs) if (low < 0) != (high < 0)
        ]
        always = "" if not logs or crosses else "never: always faster" if logs[0][1] > 0 else "never: always slower"
        row = {"tool": tool} | {f"{tau:g}": None if times[tau] is None else shown(times[tau]) for tau in taus}
        rows.append(row | {"crosses lsh_native at": ", ".join(f"{tau:.2f}" for tau in crosses) or always})
    row = {"tool": "lsh_native"} | {f"{tau:g}": None if hashed[tau] is None else shown(hashed[tau]) for tau in taus}
    return pd.DataFrame([*rows, row])


def shown(value: float) -> str:
    """Return a number with three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def markdown(table: pd.DataFrame) -> str:
    """Return a Markdown table; missing values are empty."""
    rows = [list(table.columns), ["---"] * table.shape[1], *table.to_numpy(object).tolist()]
    lines = [
        ["" if value is None or value != value else str(value).replace("|", "\\|") for value in row] for row in rows
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def wide(cells: pd.DataFrame, text: Callable[[Any], str]) -> pd.DataFrame:
    """Return a table with one row for each tool and one column for each threshold."""
    several = len(cells.threads.unique()) > 1
    named = pd.DataFrame(
        {
            "tool": [_label(row) if several else row.tool for row in cells.itertuples()],
            "tau": [f"{tau:g}" for tau in cells.tau],
            "text": [text(row) for row in cells.itertuples()],
        }
    )
    table = named.pivot(index="tool", columns="tau", values="text").fillna("–")
    order = list(dict.fromkeys(named.tool))
    return table.loc[order, sorted(table.columns, key=float)].reset_index()


def _label(row: Any) -> str:
    return f"{row.tool}, {row.threads} thread{'s' * (row.threads > 1)}"


def _timed(measured: Measured, row: Any) -> str:
    """Return seconds, their ratio to ours, and a mark if other processes disturbed them."""
    if row.status != "ok":
        return str(row.reason)
    ours = measured.value("seconds", row.collection, JOIN, row.tau, OUR_THREADS)
    own = row.tool == JOIN and row.threads == OUR_THREADS
    times = "" if own or not ours else f" ({shown(row.seconds / ours)}×)"
    return f"{shown(row.seconds)}{times if ours else ''}{' †' if row.contended is True else ''}"


def _share(value: Any) -> str:
    return "–" if value is None or value != value else f"{value:.4f}".rstrip("0").rstrip(".")


def document(measured: Measured) -> str:
    """Return all tables as one page."""
    cells = measured.cells
    done = cells[cells.status == "ok"]
    exact = [tool for tool in dict.fromkeys(done.tool) if TOOLS[tool].exact and tool != JOIN]
    equal = done[done.tool.isin(exact)]
    same = int(((equal.recall == 1) & (equal.precision == 1)).sum())
    parts = [
        "# Benchmark",
        "One run, the same vectors for all, verified pairs. Seconds from vectors in memory (peers: from their own form "
        "of input) to pairs; medians of repeated runs. In brackets: how many times `spotsigs_tight` on two threads. "
        f"How it is measured, and what each tool is: `benchmarks/README.md`. {_contended(done)}",
        f"Of {len(equal)} cells of the other exact tools ({', '.join(exact)}), {same} have exactly our pairs.",
        markdown(measured.machine.rename(columns={measured.machine.columns[0]: "machine"}))
        if len(measured.machine)
        else "",
        "## Goals",
        markdown(goals(measured)),
        "## SpotSigs against LSH",
        "Seconds at 1.17 M documents, two threads. The paper's curves cross at tau 0.78.",
        markdown(crossing(measured)),
    ]
    for where in dict.fromkeys(cells.collection):
        one, finished = cells[cells.collection == where], done[done.collection == where]
        parts += [f"## {where}", "Seconds.", markdown(wide(one, lambda row: _timed(measured, row)))]
        if len(finished):
            others = finished[finished.tool != JOIN]
            parts += ["Peak memory of the process, MB.", markdown(wide(finished, lambda row: f"{row.peak_mb:,.0f}"))]
            parts += ["Recall.", markdown(wide(others, lambda row: _share(row.recall)))] if len(others) else []
    parts += ["## Stages of spotsigs_tight", "Seconds.", markdown(stages(done))]
    parts += ["## Profile", "Stages: wall seconds. Kernels: seconds of a core.", markdown(profiled(measured.profile))]
    parts += ["## Extraction"]
    parts += [markdown(measured.extraction.map(_brief)), "## Start-up", markdown(measured.startup.map(_brief))]
    return "\n\n".join(part for part in parts if part) + "\n"


def _brief(value: Any) -> Any:
    return shown(value) if isinstance(value, float) else value


def _contended(done: pd.DataFrame) -> str:
    disturbed = int(done.contended.astype(bool).sum())
    return f"{disturbed} of {len(done)} cells, marked †, were disturbed by other processes." if disturbed else ""


def stages(done: pd.DataFrame) -> pd.DataFrame:
    """Return the seconds of each stage of our join."""
    ours = done[(done.tool == JOIN) & done.tau.isin([0.5, 0.7, 0.9, 1.0])]
    named = {
        stage: ours[column].map(shown, na_action="ignore")
        for stage in STAGES
        if (column := f"details.seconds.{stage}") in ours
    }
    return pd.DataFrame({"collection": ours.collection, "tau": ours.tau, "threads": ours.threads, **named})


def compared_table(measured: Measured) -> str:
    """Return seconds and recall of each tool by collection and threshold."""
    rows = []
    for tool in TOOLS:
        row: dict[str, str] = {"": f"**{tool}**" if tool == JOIN else tool}
        for where, tau in SHOWN_COLUMNS:
            cell = measured.cell(where, tool, tau)
            row[f"{where}, tau {tau:g}"] = "–" if cell is None else _seconds_and_recall(measured, cell)
        rows.append(row)
    return markdown(pd.DataFrame(rows))


def _seconds_and_recall(measured: Measured, cell: Any) -> str:
    found = "" if TOOLS[cell.tool].exact else f", recall {cell.recall:.2f}"
    return f"{_timed(measured, cell)}{found}"


def performance_tables(measured: Measured) -> str:
    """Return the tables of ``docs/performance.md``."""
    done = measured.cells[measured.cells.status == "ok"]
    parts = [_contended(done), compared_table(measured), _verdicts(measured)]
    return "\n\n".join(part for part in parts if part)


def _verdicts(measured: Measured) -> str:
    verdicts = goals(measured).verdict.str.startswith("met")
    return f"{verdicts.sum()} of {len(verdicts)} [goals](../results/bench/goals.csv) are met."


def profiled(profile: pd.DataFrame) -> pd.DataFrame:
    """Return wall seconds of stages and core seconds of kernels, one column for each threshold."""
    if profile.empty:
        return profile
    parts = list(dict.fromkeys(profile.part))
    seconds = profile.wall_seconds.fillna(profile.core_seconds).map(shown)
    table = profile.assign(
        of=[f"{where}, tau {tau:g}" for where, tau in zip(profile.collection, profile.tau, strict=True)],
        seconds=seconds,
    ).pivot(index="part", columns="of", values="seconds")
    return table.loc[parts].reset_index()


def with_table(page: str, table: str) -> str:
    """Return a page with the table between its markers."""
    begin, end = MARKERS
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n\n{table}\n\n{end}{rest.partition(end)[2]}" if rest else page


def _rank(column: pd.Series) -> pd.Series:
    return column.map({tool: position for position, tool in enumerate(TOOLS)}) if column.name == "tool" else column


def plot(measured: Measured, path: Path) -> None:
    """Draw seconds over the threshold, one panel for each collection and one line for each tool."""
    cells = measured.cells
    names = [name for name in PLOTTED if ((cells.collection == name) & (cells.status == "ok")).any()]
    names = names or list(dict.fromkeys(cells[cells.status == "ok"].collection))[: len(PLOTTED)]
    done = cells[(cells.status == "ok") & cells.collection.isin(names)]
    points = [
        Point(panel=row.collection, series=_label(row) if row.tool in OURS else row.tool, x=row.tau, y=row.seconds)
        for row in done.sort_values(["tool", "threads", "tau"], key=_rank).itertuples()
    ]
    panels = [Panel(name=name, x_label="tau", y_label="seconds", y_log=True, guides=[0.78]) for name in names]
    if points:
        draw_lines(path, panels, points)


def write_csvs(folder: Path, **frames: pd.DataFrame | pd.Series) -> None:
    """Write data frames as csv files."""
    for name, frame in frames.items():
        with replacing(folder / f"{name}.csv") as temporary:
            frame.to_csv(temporary, index=isinstance(frame, pd.Series), header=True, lineterminator="\n")


def write(folder: Path) -> None:
    """Write the tables and the plot of a folder's measurements."""
    measured = Measured.read(folder)
    write_csvs(folder, goals=goals(measured), crossing=crossing(measured))
    with replacing(folder / "bench.md") as temporary:
        temporary.write_text(document(measured), encoding="utf-8")
    plot(measured, folder / "bench")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the tables and the plot again, and those of the documentation."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.charts", description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "results/bench")
    folder = parser.parse_args(arguments).folder
    write(folder)
    if folder == ROOT / "results/bench":
        page = (ROOT / PAGE).read_text("utf-8")
        with replacing(ROOT / PAGE) as temporary:
            temporary.write_text(with_table(page, performance_tables(Measured.read(folder))), "utf-8")


if __name__ == "__main__":
    main()
