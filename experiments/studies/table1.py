"""Table 1: every system on the gold collection, published and measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiments.claims.facts import Fact
from experiments.claims.published import published
from experiments.config import Experiment, Settings, methods_of
from experiments.harness.curves import MEASURES, STEP, Curve, thresholds
from experiments.harness.study import Work
from experiments.harness.timing import cost, quotient
from experiments.show.tables import Column, Table
from spotsigs.method import Method

PUBLISHED, AT_PAPER, AT_BEST = "published", "measured", "measured at its best tau"

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
    Column(name="precision", title="Prec.", form=".3f"),
    Column(name="recall", title="Rec.", form=".3f"),
    Column(name="f1", title="F1", form=".3f"),
    Column(name="f1_interval", title="F1, 95 %"),
    Column(name="difference", title="F1 − published", form="+.3f"),
    Column(name="macro_f1", title="Macro F1", form=".3f"),
    Column(name="peak_mb", title="Peak MB", form=",.0f"),
    *(Column(name=f"{measure}_{end}", form="g") for measure in MEASURES for end in ("low", "high")),
    Column(name="pairs", form=",.0f"),
    Column(name="parse_ms", form=",.0f"),
    Column(name="contended"),
]

NOTES = (
    "Measured on this machine; published on eight cores of 2008. Quality: micro averages over pairs, with 95 % "
    "intervals from resampled truth clusters; macro F1: averaged over clusters. MB: the paper's lower bound of the "
    "data structures, in units of 2^20 bytes; peak MB: the whole process. Times: medians of quiet runs, n/a if other "
    "processes were active.",
)


@dataclass(frozen=True, kw_only=True)
class Table1(Experiment):
    """Quality, memory and time of every system, at the paper's parameters and at its best threshold.

    Attributes
    ----------
    methods : dict of str to dict
        Rows by label, each at the paper's threshold.
    step : float
        Distance between thresholds, a divisor of 1. One exact join at the lowest threshold serves all of them.
    repeats : int
        Number of timed runs; the median is reported.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, Table 1 and section 5.3.
    """

    methods: dict[str, dict[str, Any]] = field(default_factory=dict)
    step: float = STEP
    repeats: int = 5

    def __call__(self, settings: Settings) -> str:
        """Write the table and the facts; return the table as text."""
        work = Work.begin(self.results, settings)
        methods = methods_of(self.methods, settings, **self.fixed)
        taus = thresholds(self.step, *(method.tau for method in methods.values()))
        curves = work.curves(methods, taus, "table1: quality")
        wanted = [(label, *at) for label, method in methods.items() for at in _settings(method, curves[label])]
        times = work.times([methods[label].at(tau) for label, tau, _ in wanted], self.repeats, "table1: times")
        cells = {(label, row): cell for (label, _, row), cell in zip(wanted, times, strict=True)}
        of_gold = settings.names["data"] == "gold"  # published values are about that collection
        printed = {str(row["method"]): row for row in published("table1")} if of_gold else {}
        rows: list[dict[str, Any]] = []
        for label, tau, row in wanted:
            method, paper = methods[label], printed.get(label)
            if paper and row == AT_PAPER:
                rows.append(paper | {"row": PUBLISHED, "idf": band_text(paper["idf_min"], paper["idf_max"])})
            measured = {"method": label, "row": row} | _measured(method, tau, curves[label]) | cost(cells[label, row])
            measured["parse_ms"] = work.parse_ms(method)
            measured["difference"] = measured["f1"] - float(paper["f1"] or 0) if paper else None
            rows.append(measured)
        work.facts([*_quality_facts(rows, curves), *_cost_facts(rows, cells)])
        caption = "Table 1: SpotSigs against the other systems"
        return work.table(Table(caption=caption, columns=COLUMNS, rows=rows, notes=NOTES), "table1")


def _settings(method: Method, curve: Curve) -> list[tuple[float | None, str]]:
    """Return the thresholds of a method, and the kind of row of each."""
    if not curve.taus:
        return [(None, AT_PAPER)]
    return [(method.tau, AT_PAPER), (curve.taus[curve.best], AT_BEST)]


def _measured(method: Method, tau: float | None, curve: Curve) -> dict[str, Any]:
    """Return a method's parameters and quality at a threshold as a row of the table."""
    at = 0 if tau is None else curve.at(tau)
    values: dict[str, Any] = {
        "idf": band_text(*method.band),
        "tau": tau,
        **{name: getattr(method.matcher, name, None) for name in "kl"},
        "spots": curve.cells[at]["signatures"],
        "pairs": curve.cells[at]["pairs"],
        "macro_f1": float(curve.values("macro_f1")[at]),
    }
    for measure in MEASURES:
        low, high = curve.interval(measure)[:, at]
        values |= {
            measure: float(curve.values(measure)[at]),
            f"{measure}_low": float(low),
            f"{measure}_high": float(high),
        }
    values["f1_interval"] = f"{values['f1_low']:.3f} to {values['f1_high']:.3f}"
    return values


def _quality_facts(rows: Sequence[dict[str, Any]], curves: dict[str, Curve]) -> Iterator[Fact]:
    """Yield each method's quality at the paper's parameters, and its best threshold."""
    for row in rows:
        if row["row"] == AT_PAPER:
            for measure, name in (("precision", "precision"), ("recall", "recall"), ("f1", "F1")):
                curve = curves[row["method"]]
                if row[measure] == row[measure]:
                    at = curve.at(row["tau"]) if curve.taus else 0
                    yield curve.fact(f"{row['method']}: {name}", measure, at)
            yield Fact(name=f"{row['method']}: macro F1", value=row["macro_f1"])
    for label, curve in curves.items():
        if curve.taus:
            yield Fact(name=f"{label}: best tau", value=curve.taus[curve.best])


def _cost_facts(rows: Sequence[dict[str, Any]], cells: dict[tuple[str, str], dict[str, Any]]) -> Iterator[Fact]:
    """Yield the ratios of times, sizes and memory; times are at each method's best threshold."""
    measured = {row["method"]: row for row in rows if row["row"] == AT_PAPER}
    ours = measured["SpotSigs"]
    for label, row in measured.items():
        if label == "SpotSigs" or not ours["spots"]:
            continue
        yield Fact(name=f"{label} / SpotSigs, distinct signatures", value=row["spots"] / ours["spots"])
        yield Fact(name=f"{label} / SpotSigs, MB", value=row["mb"] / ours["mb"])
        best = AT_BEST if (label, AT_BEST) in cells else AT_PAPER
        time = quotient(f"{label} / SpotSigs, total time", cells[label, best], cells["SpotSigs", AT_BEST])
        if time:
            yield time
    parse = [row["parse_ms"] for row in measured.values()]
    if None not in parse:
        yield Fact(name="longest / shortest parse time", value=max(parse) / min(parse))


def band_text(low: Any, high: Any) -> str:
    """Return an IDF band in the format of the paper."""
    return f"[{low:g}, {high:g}]"
