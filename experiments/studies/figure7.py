"""Figure 7: runtime and relative recall over the threshold, SpotSigs against LSH-S."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from experiments.claims.facts import Fact
from experiments.claims.published import published
from experiments.config import Experiment, Settings, method_of
from experiments.harness.study import Work
from experiments.harness.timing import quotient
from experiments.show.figures import Mark, Panel, Point, draw_lines
from experiments.studies.table2 import require_vectors, vector_times

OURS, NATIVE = "SpotSigs", "LSH-S (native)"
SECONDS, RATIO, RECALL = "Runtime", "LSH-S over SpotSigs", "Relative recall"

Cells = dict[tuple[str, float], dict[str, Any]]
"""Results of `experiments.harness.timing.time_matcher` by method and threshold."""
Ratios = dict[float, Fact | None]
"""Ratios of the times of both methods by threshold; None if other processes were active."""

TICKS = (0.1, 0.2, 0.5, 1, 2, 3)

CAPTION = (
    "Figure 7: runtime with the range over runs, its ratio, and recall of the pairs of I-Match-S; stars are published "
    "values, of 2008 and eight cores, whose curves cross at 0.78"
)


@dataclass(frozen=True, kw_only=True)
class Figure7(Experiment):
    """Seconds and relative recall of SpotSigs and LSH-S over tau, on vectors with WT10g's totals.

    Every point is timed; none is derived from the join at another threshold.

    Attributes
    ----------
    methods : dict of str to dict
        Curves by label.
    taus : list of float
        Thresholds, ascending.
    limit : float
        Seconds after which a method is stopped; it is not run at lower thresholds then.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, Figure 7 and section 5.4.1.
    """

    methods: dict[str, dict[str, Any]] = field(default_factory=dict)
    taus: list[float] = field(default_factory=lambda: [0.2, 0.4, 0.6, 0.78, 0.9, 1.0])
    limit: float = 120.0

    def __call__(self, settings: Settings) -> str:
        """Draw time, ratio and relative recall; return the crossing of the curves and the path."""
        require_vectors(settings)
        work = Work.begin(self.results, settings)
        cells: Cells = {}
        for label, choices in self.methods.items():
            cells |= reversed([*self._curve(work, label, choices)])
        stopped = sorted(key for key, cell in cells.items() if "over_s" in cell)
        over = "".join(
            f"; {label} takes over {self.limit:g} s at τ = {tau:g} and is not run below" for label, tau in stopped
        )
        counts = [len(cell["runs_ms"]) for cell in cells.values() if "over_s" not in cell]
        over += f"; a time is the median of {min(counts)} to {max(counts)} runs" if counts else ""
        ratios = {
            tau: quotient(f"{NATIVE} / {OURS}, tau {tau:g}", cells[NATIVE, tau], cell)
            for (label, tau), cell in cells.items()
            if label == OURS and "over_s" not in cell
        }
        facts = list(_facts(cells, ratios))
        drawn = work.figure(draw_lines, "figure7", CAPTION + over, self._panels(), list(_points(cells, ratios)))
        work.facts(facts)
        listed = "; ".join(f"{fact.name}: {fact}" for fact in facts if "from which" in fact.name)
        return f"Figure 7: {listed or 'times were disturbed by other processes'}{over}; {drawn}"

    def _curve(
        self, work: Work, label: str, choices: dict[str, Any]
    ) -> Iterator[tuple[tuple[str, float], dict[str, Any]]]:
        """Time a method at descending thresholds, up to the first at which it is stopped."""
        for tau in reversed(self.taus):
            method = method_of(choices, work.settings, label=label, **self.fixed, tau=tau)
            cell = vector_times(work, method, f"figure7: {label}, tau {tau:g}", self.limit)
            yield (label, float(tau)), cell
            if "over_s" in cell:
                return

    def _panels(self) -> list[Panel]:
        low, ticks = min(self.taus) - 0.05, (0.2, 0.4, 0.6, 0.8, 1)
        taus: dict[str, Any] = {"x_label": "similarity threshold τ", "x_range": (low, 1.05), "x_ticks": ticks}
        wider = taus | {"x_range": (low, 1.6)}  # for the labels of the stars
        seconds, recalls, ratios = _published("total_ms", 1000), _published("relative_recall", 1), _published_ratios()
        return [
            Panel(name=SECONDS, y_label="seconds", y_log=True, marks=seconds, **taus),
            Panel(name=RATIO, y_label="ratio of runtimes", y_log=True, y_ticks=TICKS, marks=ratios, **wider),
            Panel(name=RECALL, y_label="fraction that is found", y_range=(0.9, 1.005), marks=recalls, **taus),
        ]


def _points(cells: Cells, ratios: Ratios) -> Iterator[Point]:
    for (label, tau), cell in cells.items():
        if "over_s" in cell:
            continue
        if not cell["contended"]:
            low, high = min(cell["runs_ms"]) / 1000, max(cell["runs_ms"]) / 1000
            yield Point(panel=SECONDS, series=label, x=tau, y=cell["total_ms"] / 1000, low=low, high=high)
        yield Point(panel=RECALL, series=label, x=tau, y=cell["relative_recall"])
    for tau, ratio in ratios.items():
        if ratio is not None and not ratio.text:
            series = f"{NATIVE} / {OURS}"
            yield Point(panel=RATIO, series=series, x=tau, y=ratio.value, low=ratio.low, high=ratio.high)


def _published(column: str, unit: float) -> list[Mark]:
    """Return the values of both methods in Table 2 as marks, named at the lower threshold."""
    rows = [row for row in published("table2") if row["method"] in ("LSH-S", OURS)]
    return [
        Mark(label=f"{row['method']}, published" if row["tau"] == 0.9 else "", x=row["tau"], y=y / unit, side="left")
        for row in rows
        if (y := row[column]) is not None
    ]


def _published_ratios() -> list[Mark]:
    """Return the published ratios of the times of LSH-S and SpotSigs as marks: Table 2, and the crossing at 0.78."""
    times = {(row["method"], row["tau"]): row["total_ms"] for row in published("table2")}
    marks = [Mark(label="", y=1.0)]
    for tau in (0.9, 1.0, 0.78):
        ratio = 1.0 if tau == 0.78 else times["LSH-S", tau] / times[OURS, tau]
        side = "right" if tau == 1 else "below"
        marks.append(Mark(label=f"published, {ratio:.1f}", x=tau, y=ratio, side=side))
    return marks


def _facts(cells: Cells, ratios: Ratios) -> Iterator[Fact]:
    clean = {tau: ratio for tau, ratio in ratios.items() if ratio is not None}
    yield from clean.values()
    if clean and len(clean) == len(ratios):
        slower = [tau for tau, ratio in clean.items() if ratio.value <= 1]
        above = [tau for tau in clean if not slower or tau > max(slower)]
        name = f"tau from which SpotSigs is faster than {NATIVE}"
        yield Fact(name=name, value=min(above, default=1.1), text="" if above else "never")
    taus = [tau for label, tau in cells if label == OURS]
    growth = quotient("SpotSigs at its lowest tau / at tau 1", cells[OURS, taus[0]], cells[OURS, taus[-1]])
    yield from [growth] if growth else []
