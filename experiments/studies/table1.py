"""Table 1: every system on the gold collection, published and measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from experiments.claims.facts import Fact
from experiments.claims.published import published
from experiments.config import Experiment, Settings
from experiments.show.quality_figures import STEP, compared, thresholds
from experiments.show.tables import Column, Table
from experiments.work.curves import MEASURES, Curve, ends
from experiments.work.study import BAND, Line, Work, lines_of
from experiments.work.timing import quotient

PUBLISHED, AT_PAPER, AT_BEST = "published", "measured", "measured at its best tau"

TimedRows = dict[tuple[str, str], tuple[float | None, dict[str, Any]]]
"""Threshold and time by method and kind of row."""

QUALITY = [
    Column(name="precision", title="Prec.", form=".3f"),
    Column(name="recall", title="Rec.", form=".3f"),
    Column(name="f1", title="F1", form=".3f"),
    Column(name="f1_interval", title="F1, 95 %"),
    Column(name="macro_precision", title="Macro P", form=".3f"),
    Column(name="macro_recall", title="Macro R", form=".3f"),
    Column(name="macro_f1", title="Macro F1", form=".3f"),
    *(Column(name=f"{measure}_{end}", form="g") for measure in MEASURES for end in ("low", "high")),
    *(Column(name=f"macro_{measure}_{end}", form="g") for measure in MEASURES for end in ("low", "high")),
]

COLUMNS = [
    Column(name="method", title="Method"),
    Column(name="row", title="Row"),
    Column(name="idf", title="IDF"),
    Column(name="tau", title="τ", form="g"),
    Column(name="k", title="k", form=".0f"),
    Column(name="l", title="l", form=".0f"),
    Column(name="spots", title="#Spots", form=",.0f"),
    Column(name="mb", title="MB", form=".1f"),
    Column(name="sort_hash_ms", title="Sort/Hash (ms)", form=",.0f"),
    Column(name="cluster_ms", title="Clust. (ms)", form=",.0f"),
    Column(name="total_ms", title="Total (ms)", form=",.0f"),
    *QUALITY,
    Column(name="peak_mb", title="Peak MB", form=",.0f"),
    Column(name="pairs", form=",.0f"),
    Column(name="parse_ms", form=",.0f"),
    Column(name="contended"),
]


@dataclass(frozen=True, kw_only=True)
class Table1(Experiment):
    """Quality, memory and time of every system, at the paper's parameters and at its best threshold.

    Attributes
    ----------
    results : Path
        Folder that receives ``table1/``.
    methods : dict of str to str
        Rows by label, each as on the command line at the paper's threshold.
    step : float
        Distance between thresholds, a divisor of 1. One exact join at the lowest threshold serves all of them.
    repeats : int
        Number of timed runs; the median is reported.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, Table 1 and section 5.3.
    """

    results: Path = Path("results")
    methods: dict[str, str] = field(default_factory=dict)
    step: float = STEP
    repeats: int = 5

    def __call__(self, settings: Settings) -> str:
        """Write the table, and that of the same methods under the default IDF band; return both as text."""
        work = Work.begin(self.results, settings)
        lines = lines_of(self.methods, settings)
        curves = work.curves(lines, thresholds(self.step), "table1: quality")
        cells = self._timed(work, lines, curves)
        rows = self._rows(work, lines, curves, cells)
        caption = "Table 1: SpotSigs against the other systems"
        text = work.table(Table(caption=caption, columns=COLUMNS, rows=rows, notes=NOTES), "table1")
        beside, band_facts = self._default_band(work, lines)
        work.facts([*_quality_facts(rows, curves), *_cost_facts(rows, cells), *band_facts])
        return f"{text}\n\n{beside}"

    def _timed(self, work: Work, lines: Sequence[Line], curves: dict[str, Curve]) -> TimedRows:
        """Return the times of every method, by label and kind of row."""
        wanted = [(line, tau, row) for line in lines for tau, row in _thresholds(line, curves[line.label])]
        matchers = [(work.read(line.signature), line.idf_filter, line.matcher.at(tau)) for line, tau, _ in wanted]
        cells = work.times(matchers, self.repeats, "table1: times")
        return {(line.label, row): (tau, cell) for (line, tau, row), cell in zip(wanted, cells, strict=True)}

    def _rows(
        self, work: Work, lines: Sequence[Line], curves: dict[str, Curve], cells: TimedRows
    ) -> list[dict[str, Any]]:
        """Return, for each method, the published row on the collection it is about, and the measured ones."""
        of_gold = work.settings.names["data"] == "gold"
        printed = {str(row["method"]): row for row in published("table1")} if of_gold else {}
        rows: list[dict[str, Any]] = []
        for line in lines:
            if line.label in printed:
                paper = printed[line.label]
                idf = band_text(paper["idf_min"], paper["idf_max"])
                rows.append({"row": PUBLISHED, "idf": idf} | {k: v for k, v in paper.items() if k[:3] != "idf"})
            rows += [
                measured_row(line, tau, row, curves[line.label]) | _cost(cell) | _parse(work, line)
                for (label, row), (tau, cell) in cells.items()
                if label == line.label
            ]
        return rows

    def _default_band(self, work: Work, methods: Sequence[Line]) -> tuple[str, list[Fact]]:
        """Write the quality of the methods with a threshold under the lower IDF bound only."""
        lines = [line for line in methods if line.matcher.threshold is not None]
        both = [(line, replace(line, band=BAND, label=f"{line.label}, default band")) for line in lines]
        curves = work.curves([line for pair in both for line in pair], thresholds(self.step), "table1: default band")
        rows = [
            measured_row(line, curve.taus[curve.best], AT_BEST, curve) | {"method": paper.label}
            for paper, default in both
            for line, curve in ((paper, curves[paper.label]), (default, curves[default.label]))
        ]
        shown = [column for column in COLUMNS if column.name not in TIME_COLUMNS]
        caption = "The paper's IDF band beside this project's default, each at its best threshold"
        facts = [
            compared(f"{paper.label}: paper's band - default band, best F1", curves[paper.label], curves[default.label])
            for paper, default in both
        ]
        return work.table(Table(caption=caption, columns=shown, rows=rows), "default_band"), facts


TIME_COLUMNS = {"sort_hash_ms", "cluster_ms", "total_ms", "peak_mb", "parse_ms", "contended", "mb", "k", "l"}

NOTES = (
    "Measured on this machine; published on eight cores of 2008. Quality: micro averages over pairs, with 95 % "
    "intervals from resampled truth clusters, and macro averages over clusters. MB: the paper's lower bound of the "
    "data structures, whose MB are 2^20 bytes; peak MB: the whole process. Times: medians of quiet runs, n/a where "
    "others ran beside.",
)


def _thresholds(line: Line, curve: Curve) -> list[tuple[float | None, str]]:
    """Return the thresholds of a method, and the kind of row of each."""
    if not curve.taus:
        return [(None, AT_PAPER)]
    return [(line.matcher.threshold, AT_PAPER), (curve.taus[curve.best], AT_BEST)]


def measured_row(line: Line, tau: float | None, row: str, curve: Curve) -> dict[str, Any]:
    """Return a method's parameters and quality at a threshold as a row of the table."""
    at = 0 if tau is None else curve.at(tau)
    values: dict[str, Any] = {
        "method": line.label,
        "row": row,
        "idf": band_text(*line.band),
        "tau": tau,
        **dict(zip("kl", line.matcher.hash_tables, strict=True)),
        "spots": curve.cell["signatures"],
        "pairs": curve.cell["pairs"][at],
    }
    for prefix, means, resampled in (
        ("", curve.micro, curve.resampled),
        ("macro_", curve.macro, curve.macro_resampled),
    ):
        for m, measure in enumerate(MEASURES):
            low, high = ends(resampled[m, :, at])
            values |= {
                f"{prefix}{measure}": float(means[m, at]),
                f"{prefix}{measure}_low": float(low),
                f"{prefix}{measure}_high": float(high),
            }
    values["f1_interval"] = f"{values['f1_low']:.3f} to {values['f1_high']:.3f}"
    return values


def _cost(time: dict[str, Any]) -> dict[str, Any]:
    """Return the time and memory columns; contended times are None."""
    clean = not time["contended"]
    return {
        "mb": time["memory_mib"],
        "peak_mb": time["peak_mb"],
        "contended": time["contended"],
        **{name: time[name] if clean else None for name in ("sort_hash_ms", "cluster_ms", "total_ms")},
    }


def _parse(work: Work, line: Line) -> dict[str, Any]:
    seconds = work.parse_seconds(line.signature)
    return {"parse_ms": None if seconds is None else seconds * 1000}


def _quality_facts(rows: Sequence[dict[str, Any]], curves: dict[str, Curve]) -> list[Fact]:
    """Return each method's quality at the paper's parameters, and its best threshold."""
    facts = []
    for row in rows:
        if row["row"] != AT_PAPER:
            continue
        for measure, name in (("precision", "precision"), ("recall", "recall"), ("f1", "F1"), ("macro_f1", "macro F1")):
            low, high = row[f"{measure}_low"], row[f"{measure}_high"]
            if row[measure] == row[measure]:
                facts.append(Fact(name=f"{row['method']}: {name}", value=row[measure], low=low, high=high))
    for label, curve in curves.items():
        if curve.taus:
            facts.append(Fact(name=f"{label}: best tau", value=curve.taus[curve.best]))
    return facts


def _cost_facts(rows: Sequence[dict[str, Any]], cells: TimedRows) -> list[Fact]:
    """Return the ratios of times, sizes and memory for the claims; times are at each method's best threshold."""
    measured = {row["method"]: row for row in rows if row["row"] == AT_PAPER}
    ours = measured["SpotSigs"]
    facts = []
    for label, row in measured.items():
        if label == "SpotSigs" or not ours["spots"]:
            continue
        facts.append(Fact(name=f"{label} / SpotSigs, distinct signatures", value=row["spots"] / ours["spots"]))
        facts.append(Fact(name=f"{label} / SpotSigs, MB", value=row["mb"] / ours["mb"]))
        best = AT_BEST if (label, AT_BEST) in cells else AT_PAPER
        time = quotient(f"{label} / SpotSigs, total time", cells[label, best][1], cells["SpotSigs", AT_BEST][1])
        facts += [time] if time else []
    parse = [row["parse_ms"] for row in measured.values()]
    if None not in parse:
        facts.append(Fact(name="longest / shortest parse time", value=max(parse) / min(parse)))
    return facts


def band_text(low: Any, high: Any) -> str:
    """Return an IDF band in the format of the paper."""
    return f"[{low:g}, {high:g}]"
