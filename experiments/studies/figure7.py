"""Figure 7: runtime and relative recall over the threshold, SpotSigs against LSH-S."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.claims.facts import Fact
from experiments.claims.published import published
from experiments.config import Experiment, Settings
from experiments.show.figures import Mark, Panel, Point
from experiments.studies.table2 import recall_base, require_vectors
from experiments.work.study import Line, Work
from experiments.work.timing import quotient
from spotsigs.records import Matcher

OURS, NATIVE, DATASKETCH, TIGHT = "SpotSigs", "LSH-S (native)", "LSH-S (datasketch)", "SpotSigs, tight bounds"

CAPTION = (
    "Figure 7: runtime (range over runs, or 95 % interval of a sample) and recall of the pairs of I-Match-S; stars "
    "are published values, of 2008 and eight cores, whose curves cross at 0.78"
)


@dataclass(frozen=True, kw_only=True)
class Figure7(Experiment):
    """Seconds and relative recall of SpotSigs and LSH-S over tau, on vectors with WT10g's totals.

    Every point is timed; none is derived from the join at another threshold.

    Attributes
    ----------
    results : Path
        Folder that receives ``figure7/``.
    methods : dict of str to str
        Curves by label, each as on the command line.
    taus : list of float
        Thresholds, ascending.
    datasketch_taus : list of float
        Thresholds of the slower implementation.
    repeats : int
        Number of timed runs; the median is reported.
    budget : float
        Maximal seconds of Algorithm 1 at a threshold; if it would take longer, a sample is timed.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, Figure 7 and section 5.4.1.
    """

    results: Path = Path("results")
    methods: dict[str, str] = field(default_factory=dict)
    taus: list[float] = field(default_factory=lambda: [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.78, 0.85, 0.9, 0.95, 1.0])
    datasketch_taus: list[float] = field(default_factory=lambda: [0.4, 0.7, 1.0])
    repeats: int = 3
    budget: float = 15.0

    def __call__(self, settings: Settings) -> str:
        """Draw time and relative recall; return the crossing of the curves and the path."""
        require_vectors(settings)
        work = Work.begin(self.results, settings)
        stored = work.read()
        wanted = self._wanted(settings)
        base = recall_base(settings)
        matchers = [(stored, None, matcher) for _, _, matcher in wanted]
        found = work.times(matchers, self.repeats, "figure7", base=base, budget=self.budget)
        cells = {(label, tau): cell for (label, tau, _), cell in zip(wanted, found, strict=True)}
        seconds, recall = "Runtime", "Relative recall"
        points = [
            Point(
                panel=seconds,
                series=label,
                x=tau,
                y=cell["total_ms"] / 1000,
                low=min(cell["runs_ms"]) / 1000,
                high=max(cell["runs_ms"]) / 1000,
            )
            for (label, tau), cell in cells.items()
            if not cell["contended"]
        ]
        points += [
            Point(panel=recall, series=label, x=tau, y=cell["relative_recall"]) for (label, tau), cell in cells.items()
        ]
        x_label = "similarity threshold τ"
        panels = [
            Panel(name=seconds, x_label=x_label, y_label="seconds", y_log=True, marks=_published("total_ms", 1000)),
            Panel(name=recall, x_label=x_label, y_label="share that is found", marks=_published("relative_recall", 1)),
        ]
        drawn = work.lines("figure7", CAPTION, panels, points)
        facts = _facts(cells, self.taus)
        work.facts(facts)
        listed = "; ".join(f"{fact.name}: {fact}" for fact in facts if "from which" in fact.name)
        return f"Figure 7: {listed or 'times were disturbed by other processes'}; {drawn}"

    def _wanted(self, settings: Settings) -> list[tuple[str, float, Matcher]]:
        """Return label, threshold and method of every point."""
        return [
            (label, float(tau), Line.composed(label, f"{words} tau={tau}", settings).matcher)
            for label, words in self.methods.items()
            for tau in (self.datasketch_taus if label == DATASKETCH else self.taus)
        ]


def _published(column: str, unit: float) -> list[Mark]:
    """Return the values of both methods in Table 2 as marks, and for times also the published crossing."""
    marks = []
    for method in ("LSH-S", "SpotSigs"):
        values = {row["tau"]: row[column] / unit for row in published("table2") if row["method"] == method}
        listed = ", ".join(f"{values[tau]:.3g}" for tau in sorted(values))
        marks += [
            Mark(label=f"{method} {listed}" if tau == min(values) else "", x=tau, y=value, side="left")
            for tau, value in values.items()
        ]
    return [*marks, Mark(label="0.78", x=0.78)] if column == "total_ms" else marks


def _facts(cells: dict[tuple[str, float], dict[str, Any]], taus: list[float]) -> list[Fact]:
    facts = []
    for rival in (NATIVE, DATASKETCH):
        both = [tau for tau in taus if (rival, tau) in cells]
        ratios = {tau: quotient(f"{rival} / {OURS}, tau {tau:g}", cells[rival, tau], cells[OURS, tau]) for tau in both}
        clean = {tau: ratio for tau, ratio in ratios.items() if ratio is not None}
        facts += list(clean.values())
        if len(clean) == len(both) and both:
            facts.append(_crossing(rival, {tau: ratio.value for tau, ratio in clean.items()}))
    low, high = cells[OURS, taus[0]], cells[OURS, taus[-1]]
    growth = quotient(f"SpotSigs at tau {taus[0]:g} / at tau {taus[-1]:g}", low, high)
    return facts + ([growth] if growth else [])


def _crossing(rival: str, ratios: dict[float, float]) -> Fact:
    """Return the lowest threshold from which SpotSigs is always faster, or a number above 1 if there is none."""
    slower = [tau for tau, ratio in ratios.items() if ratio <= 1]
    above = [tau for tau in ratios if not slower or tau > max(slower)]
    return Fact(
        name=f"tau from which SpotSigs is faster than {rival}",
        value=min(above, default=1.1),
        text="" if above else "never",
    )
