"""The lead of spot signatures over the density of spots in templates, and over how much of a template pages share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from data.collections.newsframes.density import density, sharing
from data.collections.newsframes.frames import Frame
from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings, composed
from experiments.show.figures import Panel, Point, draw_lines
from experiments.show.tables import Column, Table
from experiments.work.cross_validation import (
    RESAMPLES,
    Difference,
    FloatArray,
    HalvedCollection,
    Result,
    cross_validated,
    origin,
)
from experiments.work.curves import STEP
from experiments.work.study import Work, lines_of
from spotsigs.evaluation.metrics import ends
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.tokens import tokenize

COLUMNS = [
    Column(name="exchanged", title="Blocks exchanged"),
    Column(name="density", title="Spots per token", form=".3f"),
    Column(name="drift", title="Drift", form=".2f"),
    Column(name="shared", title="Shared", form=".3f"),
    Column(name="spots", title="Spots, F1", form=".3f"),
    Column(name="spots_interval", title="95 %"),
    Column(name="shingles", title="3-shingles, F1", form=".3f"),
    Column(name="shingles_interval", title="95 %"),
    Column(name="lead", title="Lead of spots"),
]

NOTES = (
    "Thresholds are chosen on the other half of the stories and sites. Spots per token: mean over templates. Shared: "
    "fraction of the template's words in blocks that two pages of a site have in common, mean over successive pages. "
    "Placebo: the blocks that change the density are exchanged for blocks of other sites with as many words and spots. "
    "Drift: fraction of the blocks that each page replaces. Intervals: crossed Poisson bootstrap of stories and sites.",
)

CAPTION = (
    "Lead of spots over 3-shingles in F1, over the density of spots in the templates (left) and over the fraction of a "
    "template that pages of a site share (right); each dot is a collection with other templates; 95 % intervals"
)

AXES = {"density": "spots per token of the templates", "shared": "fraction shared by pages of a site"}


@dataclass(frozen=True, kw_only=True)
class DensityStudy(Experiment):
    """Lead of spots over 3-shingles by density of spots in templates and by shared blocks.

    Attributes
    ----------
    collection : dict
        Attributes of `HalvedCollection`, without density and drift.
    methods : dict of str to str
        Spots and the signature they are compared to, in this order: overrides by label.
    densities : list of float
        Spots per token that templates are brought to; the unchanged templates are added.
    drifts : list of float
        Fractions of blocks that each page replaces.
    step : float
        Distance between thresholds.
    """

    collection: dict[str, Any] = field(default_factory=dict)
    methods: dict[str, str] = field(default_factory=dict)
    densities: list[float] = field(default_factory=list)
    drifts: list[float] = field(default_factory=list)
    step: float = STEP

    def __call__(self, settings: Settings) -> str:
        """Write the table and the figure; return them as text."""
        work = Work.begin(self.results, settings, "newsframes")
        changes: list[tuple[float | None, float, bool]] = [(None, drift, False) for drift in self.drifts]
        changes += [(target, drift, False) for target in self.densities for drift in self.drifts]
        changes += [(target, 0.0, True) for target in self.densities]
        points = [self._point(work, settings, *change) for change in changes]
        work.facts([*_changes_of_lead(points), *link_facts(_collection(self.collection["data"]).parts()[1])])
        table = Table(
            caption="Lead of spots by density and by shared blocks",
            columns=COLUMNS,
            rows=[point.row() for point in points],
            notes=NOTES,
        )
        return f"{work.table(table, 'density')}\n\n{_figure(work, points)}"

    def _point(self, work: Work, settings: Settings, target: float | None, drift: float, placebo: bool) -> _Changed:
        words = f"{self.collection['data']} data.drift={drift}"
        if target is not None:
            words += f" data.prose={target} data.placebo={str(placebo).lower()}"
        halved = HalvedCollection(**{**self.collection, "data": words})
        found = cross_validated(work, words, halved, lines_of(self.methods, settings), self.step)
        spots, shingles = (found[label] for label in self.methods)
        collection = _collection(words)
        mean = float(np.mean([density(frame) for frame in collection.parts()[1]]))
        return _Changed(target, mean, sharing(collection.templates()), drift, placebo, spots, shingles)


def _collection(words: str) -> Any:
    return composed(*words.split(), *origin(words)).collection


@dataclass(frozen=True)
class _Changed:
    """Result of a collection whose templates were changed: its density, the shared fraction and the quality."""

    target: float | None
    density: float
    shared: float
    drift: float
    placebo: bool
    spots: Result
    shingles: Result

    @property
    def lead(self) -> Difference:
        """Lead of spots."""
        return Difference.of(self.spots, [self.shingles])

    def row(self) -> dict[str, Any]:
        changed = "none" if self.target is None else "placebo" if self.placebo else f"towards {self.target:g}"
        return {
            "exchanged": changed,
            "density": self.density,
            "shared": self.shared,
            "drift": self.drift,
            "spots": self.spots.value("f1"),
            "spots_interval": "{:.3f} to {:.3f}".format(*self.spots.interval["f1"]),
            "shingles": self.shingles.value("f1"),
            "shingles_interval": "{:.3f} to {:.3f}".format(*self.shingles.interval["f1"]),
            "lead": str(self.lead),
        }


def _changes_of_lead(points: Sequence[_Changed]) -> list[Fact]:
    """Return how much the placebo, and the change of density it controls for, change the lead."""
    (before,) = [point for point in points if point.target is None and not point.drift]
    leads = {(point.target, point.placebo): point.lead for point in points if not point.drift}
    changes: dict[str, Difference] = {}
    for (target, placebo), lead in leads.items():
        if target is not None:
            changes[f"{'placebo for' if placebo else 'templates of'} {target:g}"] = lead.minus(before.lead)
        if placebo:
            changes[f"templates of {target:g}, without that of the placebo"] = leads[target, False].minus(lead)
    return [change.fact(f"change of the lead, {name}") for name, change in changes.items()]


def _figure(work: Work, points: Sequence[_Changed]) -> str:
    label = "lead of spots over 3-shingles, F1"
    panels = [Panel(name=name, x_label=axis, y_label=label) for name, axis in AXES.items()]
    drawn = []
    for name in AXES:
        for point in sorted(points, key=lambda point: (point.drift, point.placebo, getattr(point, name))):
            low, high = point.lead.interval
            series = f"placebo for {point.target:g}" if point.placebo else f"drift {point.drift:g}"
            x = getattr(point, name)
            drawn.append(Point(panel=name, series=series, x=x, y=point.lead.value, low=low, high=high))
    return work.figure(draw_lines, "lead", CAPTION, panels, drawn)


def link_facts(templates: Sequence[Frame]) -> list[Fact]:
    """Compare the spots per token of links in templates with those of articles, with intervals over templates.

    Returns
    -------
    list of Fact
        The ratio over all templates, and the fraction of templates whose links have no spot signature.
    """
    scheme = SpotSignatures()
    counts = np.empty((len(templates), 4))
    for row, frame in zip(counts, templates, strict=True):
        links = " ".join(link.text(separator=" ") for link in LexborHTMLParser(frame.bare()).css("a"))
        for at, text in ((0, links), (2, " ".join(frame.paragraphs))):
            tokens = tokenize(text)
            row[at : at + 2] = len(scheme(tokens)), len(tokens)
    drawn = np.random.default_rng(0).integers(len(templates), size=(RESAMPLES, len(templates)))

    def ratio(sums: FloatArray) -> FloatArray:
        return (sums[..., 0] / sums[..., 1]) / (sums[..., 2] / sums[..., 3])

    silent = counts[:, 0] == 0
    names = ("spots per token, links of frames / articles", "share of frames whose links alone have no spot signature")
    values = (ratio(counts.sum(0)), silent.mean())
    intervals = (ends(ratio(counts[drawn].sum(1))), ends(silent[drawn].mean(1)))
    return [
        Fact(name=name, value=float(value), low=float(low), high=float(high))
        for name, value, (low, high) in zip(names, values, intervals, strict=True)
    ]
