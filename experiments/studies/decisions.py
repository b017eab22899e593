"""Decisions of several methods: stories lost over duplicates left, by leaders and by connected components."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings
from experiments.show.figures import Panel, Point
from experiments.show.quality_figures import STEP, finite, thresholds
from experiments.show.tables import Column, Table
from experiments.studies.beyond import CollectionWorks, collection_name
from experiments.work.curves import Curve
from experiments.work.study import SEVERAL, Work, lines_of
from spotsigs.clustering.clusters import ClusterMethod
from spotsigs.errors import require

COLUMNS = [
    Column(name="collection", title="Collection"),
    Column(name="method", title="Method"),
    Column(name="clusters", title="Clusters"),
    Column(name="setting", title="Setting"),
    Column(name="tau", title="τ", form=".2f"),
    Column(name="kept", title="Kept", form=",.0f"),
    Column(name="stories_lost", title="Stories lost", form=",.0f"),
    Column(name="lost", title="of all", form=".1%"),
    Column(name="duplicates_left", title="Duplicates left", form=",.0f"),
    Column(name="left", title="of all", form=".1%"),
    Column(name="bcubed_f1", title="B-cubed F1", form=".3f"),
    Column(name="largest", title="Largest group", form=",.0f"),
    Column(name="f1", title="Pair F1", form=".3f"),
]

NOTES = (
    "Stories lost: truth clusters, single pages included, of which no page is kept. Duplicates left: kept pages beyond "
    "the first of each story. Usual: the threshold that the method is used with. Pair F1: that of the highest micro F1 "
    "over pairs. Decisions: that of the smallest sum of the two fractions. Both are chosen on the collection that "
    "evaluates them.",
)

CAPTION = (
    "Fraction of stories lost over fraction of duplicates left; one line for each method over its thresholds, in steps "
    "of 0.02"
)


@dataclass(frozen=True, kw_only=True)
class DecisionStudy(Experiment):
    """Stories lost and duplicates left, over the thresholds of each method.

    Attributes
    ----------
    results : Path
        Folder that receives the experiment's own.
    collections : list of str
        Overrides of ``data``, separated by spaces.
    methods : dict of str to str
        Methods by label, each as on the command line.
    usual : dict of str to float
        Threshold that each method is used with.
    step : float
        Distance between thresholds, a divisor of 1. One exact join serves all of them.
    """

    results: Path = Path("results")
    collections: list[str] = field(default_factory=list)
    methods: dict[str, str] = field(default_factory=dict)
    usual: dict[str, float] = field(default_factory=dict)
    step: float = STEP

    def __post_init__(self) -> None:
        require(self.usual.keys() == self.methods.keys(), "usual must name the threshold of each method, and no other")

    def __call__(self, settings: Settings) -> str:
        """Write the table and the figure; return them as text."""
        works = CollectionWorks(Work.begin(self.results, settings, SEVERAL), self.step)
        there, left_out = works.there(self.collections)
        curves = {data: self._curves(works.at(data), data) for data in there}
        rows = [row for data in there for row in self._rows(collection_name(data), curves[data])]
        work = works.work
        work.facts([fact for row in rows for fact in _facts(row)])
        table = Table(caption="Stories lost and duplicates left", columns=COLUMNS, rows=rows, notes=NOTES)
        names = [collection_name(data) for data in there]
        panels = [Panel(name=name, x_label="duplicates left", y_label="stories lost", y_range=(0, 1)) for name in names]
        points = [
            Point(panel=name, series=f"{label}, {method.value}", x=values["left"], y=values["lost"])
            for data, name in zip(there, names, strict=True)
            for label, curve in curves[data].items()
            for method in ClusterMethod
            for values in (curve.decided(at, method.value) for at in range(len(curve.taus)))
        ]
        drawn = work.lines("decisions", CAPTION, panels, points)
        return "\n\n".join([work.table(table, "table"), drawn, *left_out])

    def _curves(self, work: Work, data: str) -> dict[str, Curve]:
        taus = sorted({*thresholds(self.step), *self.usual.values()})
        return work.curves(lines_of(self.methods, work.settings), taus, f"decisions: {collection_name(data)}")

    def _rows(self, name: str, curves: Mapping[str, Curve]) -> list[dict[str, Any]]:
        """Return each method at its usual threshold, at that of the best pair F1, and at that of the best decisions."""
        rows = []
        for label, curve in curves.items():
            for method in (found.value for found in ClusterMethod):
                every = [curve.decided(at, method) for at in range(len(curve.taus))]
                decided = min(range(len(every)), key=lambda at: every[at]["lost"] + every[at]["left"])
                positions = {"usual": curve.at(self.usual[label]), "pair F1": curve.best, "decisions": decided}
                rows += [
                    {"collection": name, "method": label, "clusters": method, "setting": setting}
                    | {"tau": curve.taus[at], "f1": finite(curve.micro[2, at])}
                    | every[at]
                    for setting, at in positions.items()
                ]
        return rows


def _facts(row: dict[str, Any]) -> list[Fact]:
    label = f"{row['collection']}: {row['method']}, {row['clusters']}, {row['setting']}"
    return [Fact(name=f"{label}: {name}", value=row[name]) for name in ("lost", "left", "bcubed_f1")]
