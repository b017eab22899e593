"""Signatures crossed with treatments of boilerplate, with thresholds that are chosen on other stories and sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from textwrap import fill
from typing import Any

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings
from experiments.show.figures import Panel, Point, draw_lines
from experiments.show.tables import Column, Table
from experiments.work.cross_validation import Difference, HalvedCollection, Result, cross_validated
from experiments.work.curves import STEP
from experiments.work.study import SEVERAL, Work, lines_of
from spotsigs.errors import InputError, require

COLUMNS = [
    Column(name="collection", title="Collection"),
    Column(name="treatment", title="Treatment"),
    Column(name="signature", title="Signature"),
    Column(name="tau", title="τ"),
    Column(name="precision", title="Precision", form=".3f"),
    Column(name="recall", title="Recall", form=".3f"),
    Column(name="f1", title="F1", form=".3f"),
    Column(name="f1_interval", title="95 %"),
    Column(name="lost", title="Lost", form=".1%"),
    Column(name="lost_interval", title="95 %"),
    Column(name="left", title="Left", form=".1%"),
    Column(name="left_interval", title="95 %"),
    Column(name="bcubed_f1", title="B-cubed F1", form=".3f"),
    Column(name="largest", title="Largest group", form=",.0f"),
]

NOTES = (
    "Stories and sites are cut into halves; the threshold of each half has the highest F1 on the other half, and the "
    "figures are means over both halves. IDF in [0.2, 1], exact multi-set Jaccard. Lost: stories of "
    "which no page is kept. Left: duplicates that are kept. Decisions by leaders. Intervals (95 %): crossed Poisson "
    "bootstrap of stories and sites; of stories alone for lost and left.",
)

LEAD_NOTES = (
    "Lead: F1 of spots minus F1 of the best other signature, which is chosen, like the thresholds, on the other half. "
    "A lead holds if its interval is above 0, does not hold if it is below 0, and is inconclusive otherwise. "
    "Interaction: lead on whole pages minus lead after the treatment.",
)

LETTERS = 40
"""Letters in a line below a panel of the figure."""
SHIFT = 0.06
"""Distance between the lines of the figure, in treatments."""

CAPTION = (
    "F1 of each signature by treatment of the page, at thresholds chosen on other stories and sites; 95 % intervals "
    "over stories and sites"
)


@dataclass(frozen=True, kw_only=True)
class SignatureStudy(Experiment):
    """F1 and decisions of signatures by treatment of the page's boilerplate.

    Attributes
    ----------
    collections : dict of str to dict
        Attributes of `HalvedCollection` by name of the collection; those that cannot be fetched are left out.
    signatures, treatments : dict of str to str
        Overrides by label. Each signature is combined with each treatment.
    leader : str
        Signature whose lead over `rivals` is measured.
    rivals : list of str
        Signatures it is compared to.
    drawn : list of str
        Collections of the figure.
    reference : str
        Treatment whose lead is compared to that of the others.
    step : float
        Distance between thresholds, a divisor of 1.
    """

    collections: dict[str, dict[str, Any]] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    treatments: dict[str, str] = field(default_factory=dict)
    leader: str = "spots"
    rivals: list[str] = field(default_factory=list)
    drawn: list[str] = field(default_factory=list)
    reference: str = "whole page"
    step: float = STEP

    def __post_init__(self) -> None:
        unknown = {self.leader, *self.rivals} - self.signatures.keys() if self.signatures else set()
        require(not unknown, f"leader and rivals must name signatures, got {sorted(unknown)}")
        known = not self.treatments or self.reference in self.treatments
        require(known, f"reference must name a treatment, got {self.reference!r}")

    def __call__(self, settings: Settings) -> str:
        """Write the tables and the figure; return them as text."""
        work = Work.begin(self.results, settings, SEVERAL)
        words = {
            f"{signature}, {treatment}": f"{self.signatures[signature]} {self.treatments[treatment]}"
            for treatment, signature in product(self.treatments, self.signatures)
        }
        lines = lines_of(words, settings)
        found: dict[str, dict[str, Result]] = {}
        left_out = []
        for name, chosen in self.collections.items():
            try:
                found[name] = cross_validated(work, name, HalvedCollection(**chosen), lines, self.step)
            except InputError as error:
                left_out.append(f"{name} is left out: {error}")
        require(bool(found), "; ".join(left_out))
        leads = {name: self._leads(results) for name, results in found.items()}
        work.facts(
            [fact for name in found for fact in (*_facts(name, found[name]), *self._lead_facts(name, leads[name]))]
        )
        quality = Table(
            caption="Quality by signature and treatment",
            columns=COLUMNS,
            rows=[
                {"collection": name, "treatment": treatment, "signature": signature}
                | _row(results[f"{signature}, {treatment}"])
                for name, results in found.items()
                for treatment, signature in product(self.treatments, self.signatures)
            ],
            notes=NOTES,
        )
        parts = [work.table(quality, "signatures"), self._lead_table(work, leads)]
        return "\n\n".join([*parts, self._figure(work, found), *left_out])

    def _leads(self, results: Mapping[str, Result]) -> dict[str, Difference]:
        return {
            treatment: Difference.of(
                results[f"{self.leader}, {treatment}"], [results[f"{rival}, {treatment}"] for rival in self.rivals]
            )
            for treatment in self.treatments
        }

    def _lead_facts(self, name: str, leads: Mapping[str, Difference]) -> list[Fact]:
        facts = []
        for treatment, lead in leads.items():
            label = f"{name}: lead of {self.leader}"
            facts.append(lead.fact(f"{label}, {treatment}"))
            if treatment != self.reference:
                facts.append(leads[self.reference].minus(lead).fact(f"{label}, {self.reference} - {treatment}"))
        return facts

    def _lead_table(self, work: Work, leads: Mapping[str, Mapping[str, Difference]]) -> str:
        rows = []
        for name, by_treatment in leads.items():
            for treatment, lead in by_treatment.items():
                row = {"collection": name, "treatment": treatment, "lead": str(lead), "verdict": lead.verdict}
                if treatment != self.reference:
                    interaction = by_treatment[self.reference].minus(lead)
                    row |= {"interaction": str(interaction), "interaction_verdict": interaction.verdict}
                rows.append(row)
        columns = [
            Column(name="collection", title="Collection"),
            Column(name="treatment", title="Treatment"),
            Column(name="lead", title="Lead of spots"),
            Column(name="verdict", title="Verdict"),
            Column(name="interaction", title="Interaction"),
            Column(name="interaction_verdict", title="Verdict"),
        ]
        caption = f"Lead of {self.leader} over the best of {', '.join(self.rivals)}"
        return work.table(Table(caption=caption, columns=columns, rows=rows, notes=LEAD_NOTES), "leads")

    def _figure(self, work: Work, found: Mapping[str, Mapping[str, Result]]) -> str:
        """Draw F1 over the treatments, a line for each signature."""
        ticks = range(1, len(self.treatments) + 1)
        titles = fill(", ".join(f"{k} {label}" for k, label in zip(ticks, self.treatments, strict=True)), LETTERS)
        panels = [Panel(name=name, x_label=titles, y_label="F1", x_ticks=ticks) for name in found if name in self.drawn]
        points = []
        for panel in panels:
            for shift, signature in enumerate(self.signatures):
                for k, treatment in zip(ticks, self.treatments, strict=True):
                    result = found[panel.name][f"{signature}, {treatment}"]
                    low, high = result.interval["f1"]
                    x = k + SHIFT * (shift - len(self.signatures) / 2)  # so that intervals do not hide each other
                    y = result.value("f1")
                    points.append(Point(panel=panel.name, series=signature, x=x, y=y, low=low, high=high))
        return work.figure(draw_lines, "f1", CAPTION, panels, points) if panels else ""


def _row(result: Result) -> dict[str, Any]:
    """Return the cells of a table that show a result."""
    row: dict[str, Any] = {name: result.value(name) for name in ("precision", "recall", "f1", "lost", "left")}
    row |= {name: result.value(name) for name in ("bcubed_f1", "largest")}
    row["tau"] = " and ".join(f"{tau:g}" for tau in dict.fromkeys(result.taus))
    row["f1_interval"] = "{:.3f} to {:.3f}".format(*result.interval["f1"])
    return row | {f"{name}_interval": "{:.1%} to {:.1%}".format(*result.interval[name]) for name in ("lost", "left")}


def _facts(name: str, results: Mapping[str, Result]) -> list[Fact]:
    facts = []
    for label, result in results.items():
        for measure, shown in (("f1", "F1"), ("lost", "lost"), ("left", "left")):
            low, high = result.interval[measure]
            facts.append(Fact(name=f"{name}: {label}: {shown}", value=result.value(measure), low=low, high=high))
        low, high = sorted(result.taus)
        facts.append(Fact(name=f"{name}: {label}: tau", value=sum(result.taus) / 2, low=low, high=high))
    return facts
