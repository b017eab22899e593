"""The finding: who is better where depends on how much prose stands in frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from selectolax.lexbor import LexborHTMLParser as HTMLParser

from data.collections.newsframes.frames import Frame
from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings
from experiments.show.figures import Panel, Point
from experiments.show.quality_figures import STEP, finite
from experiments.show.tables import Column, Table
from experiments.studies.beyond import FRAMED, PLAIN, REMOVED, CollectionWorks, Method, collection_name
from experiments.work.curves import Curve, FloatArray
from experiments.work.study import Work
from spotsigs.errors import require
from spotsigs.evaluation.metrics import RESAMPLES, ends
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.tokens import tokenize

AT_PAPER = 0.44
"""The threshold of the paper's SpotSigs row."""
BEST, FIXED = "best τ", "τ = 0.44"
"""Panels."""

COLUMNS = [
    Column(name="target", title="Aimed at", form=".2f"),
    Column(name="density", title="Spots per token", form=".3f"),
    Column(name="method", title="Method"),
    Column(name="f1", title="Best F1", form=".3f"),
    Column(name="interval", title="95 %"),
    Column(name="f1_44", title="F1 at 0.44", form=".3f"),
    Column(name="interval_44", title="95 %"),
    Column(name="lost", title="Lost", form=".1%"),
    Column(name="left", title="Left", form=".1%"),
    Column(name="lost_44", title="Lost at 0.44", form=".1%"),
    Column(name="left_44", title="Left at 0.44", form=".1%"),
    Column(name="less", title="SpotSigs less it", form=".3f"),
    Column(name="less_interval", title="95 %"),
]

NOTES = (
    "Micro averages over pairs, averaged over the seeds; exact multi-set Jaccard, IDF in [0.2, 1]. Intervals: seeds "
    "and, in each, truth clusters drawn with replacement. The best threshold is chosen on the collection that judges "
    "it. Lost: stories of which no page is kept; left: duplicates that are kept; by clusters of leaders. Spots per "
    "token: of the frames' visible text, averaged over frames and seeds. Aimed at: n/a for frames as they are.",
)

CAPTION = (
    "F1 over the density of spots in the frames of real news pages, whose blocks were exchanged for more or less "
    "prose; the vertical line marks the frames as they are; 95 % intervals over seeds and resampled clusters"
)


def methods() -> list[Method]:
    """Return the methods under comparison."""
    from baselines.shingles import Shingles

    return [
        Method(label=PLAIN, text="visible", signature=SpotSignatures()),
        Method(label="1-Shingles", text="visible", signature=Shingles(k=1)),
        Method(label="3-Shingles", text="visible", signature=Shingles(k=3)),
        Method(label=FRAMED, text="visible", signature=REMOVED),
    ]


@dataclass(frozen=True)
class Seeded:
    """One method on the same collection of several seeds.

    Attributes
    ----------
    curves : sequence of Curve
        One a seed.
    """

    curves: Sequence[Curve]

    def f1(self, tau: float | None) -> float:
        """Return F1 averaged over seeds, at a threshold or at each seed's best."""
        return float(np.mean([finite(curve.micro[2, _at(curve, tau)]) for curve in self.curves]))

    def resampled(self, tau: float | None) -> FloatArray:
        """Return the same for each resample of seeds and clusters, shape (resamples,)."""
        drawn = np.random.default_rng(0).integers(len(self.curves), size=(RESAMPLES, len(self.curves)))
        each = np.array([np.nan_to_num(curve.resampled[2, :, _at(curve, tau)]) for curve in self.curves])
        averages: FloatArray = np.take_along_axis(each.T, drawn, axis=1).mean(axis=1)
        return averages

    def decided(self, name: str, tau: float | None) -> float:
        """Return a measure of the decisions averaged over seeds, see `experiments.work.curves.decision_measures`."""
        return float(np.mean([curve.decided(_at(curve, tau))[name] for curve in self.curves]))

    def interval(self, tau: float | None) -> tuple[float, float]:
        """Return the 95 % interval of F1."""
        low, high = ends(self.resampled(tau))
        return float(low), float(high)


def _at(curve: Curve, tau: float | None) -> int:
    return curve.best if tau is None else curve.at(tau)


@dataclass(frozen=True, kw_only=True)
class FrameDensity(Experiment):
    """Quality of signatures over the density of spots in frames.

    Attributes
    ----------
    results : Path
        Folder that receives ``frames/``.
    data : str
        The collection without its seed and its density: overrides of ``data``, separated by spaces. Those of the
        command line that say where it comes from are added.
    seeds : list of int
        Seeds that figures are averaged over.
    densities : list of float
        Spots per token of frames; the frames as they are come besides.
    step : float
        Distance of thresholds; the paper's is among them.
    """

    results: Path = Path("results")
    data: str = "data=newsframes"
    seeds: list[int] = field(default_factory=lambda: [5, 6, 7, 8, 9])
    densities: list[float] = field(default_factory=lambda: [0.02, 0.04, 0.06, 0.08, 0.1, 0.12])
    step: float = STEP

    def __call__(self, settings: Settings) -> str:
        """Write the table and the figure; return them as text."""
        require(bool(self.seeds), "seeds must name at least one")
        works = CollectionWorks(Work.begin(self.results, settings, collection_name(self.data)), self.step)
        found = {target: self._seeded(works, target) for target in (None, *self.densities)}
        reached = {target: self._density(works, target) for target in found}
        order = sorted(found, key=reached.__getitem__)
        frames = works.at(self._words(self.seeds[0], None)).settings.collection.parts()[1]
        works.work.facts([*_facts(found, reached), *link_facts(frames)])
        table = Table(
            caption="Signatures over the density of spots in frames",
            columns=COLUMNS,
            rows=[row for target in order for row in _rows(target, reached[target], found[target])],
            notes=NOTES,
        )
        drawn = works.work.lines("frames", CAPTION, _panels(reached[None]), _points(order, reached, found))
        return f"{works.work.table(table, 'densities')}\n\n{drawn}"

    def _words(self, seed: int, target: float | None) -> str:
        """Return the overrides of a collection."""
        prose = [] if target is None else [f"data.prose={target}"]
        return " ".join([self.data, f"data.seed={seed}", *prose])

    def _seeded(self, works: CollectionWorks, target: float | None) -> dict[str, Seeded]:
        each = [
            works.curves(self._words(seed, target), methods(), f"frames: {target or 'as they are'}, seed {seed}")
            for seed in self.seeds
        ]
        return {method.label: Seeded([curves[method.label] for curves in each]) for method in methods()}

    def _density(self, works: CollectionWorks, target: float | None) -> float:
        """Return the density that the frames have, averaged over them and over seeds."""
        from data.collections.newsframes.density import density

        seeds = self.seeds[:1] if target is None else self.seeds  # as they are, they are the same for all seeds
        found = [
            density(frame)
            for seed in seeds
            for frame in works.at(self._words(seed, target)).settings.collection.parts()[1]
        ]
        return float(np.mean(found))


def _rows(target: float | None, reached: float, found: dict[str, Seeded]) -> list[dict[str, Any]]:
    rows = []
    for label, seeded in found.items():
        row: dict[str, Any] = {"target": target, "density": reached, "method": label}
        row |= {"f1": seeded.f1(None), "interval": _printed(seeded.interval(None))}
        row |= {"f1_44": seeded.f1(AT_PAPER), "interval_44": _printed(seeded.interval(AT_PAPER))}
        row |= {name: seeded.decided(name, None) for name in ("lost", "left")}
        row |= {f"{name}_44": seeded.decided(name, AT_PAPER) for name in ("lost", "left")}
        if label != PLAIN:
            less, low, high = _less(found[PLAIN], seeded)
            row |= {"less": less, "less_interval": _printed((low, high))}
        rows.append(row)
    return rows


def _less(a: Seeded, b: Seeded) -> tuple[float, float, float]:
    """Return how much better one method's best F1 is than another's, with the paired interval."""
    low, high = ends(a.resampled(None) - b.resampled(None))
    return a.f1(None) - b.f1(None), float(low), float(high)


def _printed(interval: tuple[float, float]) -> str:
    return "{:.3f} to {:.3f}".format(*interval)


def _panels(as_they_are: float) -> list[Panel]:
    return [
        Panel(
            name=name,
            x_label="spots per token of the frames",
            y_label="F1",
            y_range=(0, 1),
            guides=(as_they_are,),
        )
        for name in (BEST, FIXED)
    ]


def _points(
    order: Sequence[float | None], reached: dict[float | None, float], found: dict[float | None, dict[str, Seeded]]
) -> list[Point]:
    points = []
    for method in methods():
        for target in order:
            seeded = found[target][method.label]
            for panel, tau in ((BEST, None), (FIXED, AT_PAPER)):
                low, high = seeded.interval(tau)
                points.append(
                    Point(panel=panel, series=method.label, x=reached[target], y=seeded.f1(tau), low=low, high=high)
                )
    return points


def _facts(found: dict[float | None, dict[str, Seeded]], reached: dict[float | None, float]) -> list[Fact]:
    facts = []
    for target, methods_found in found.items():
        name = "frames as they are" if target is None else f"frames of {target:g}"
        facts.append(Fact(name=f"{name}: spots per token", value=reached[target]))
        for label, seeded in methods_found.items():
            low, high = seeded.interval(None)
            facts.append(Fact(name=f"{name}: {label}: best F1", value=seeded.f1(None), low=low, high=high))
            if label != PLAIN:
                less, low, high = _less(methods_found[PLAIN], seeded)
                facts.append(Fact(name=f"{name}: {PLAIN} - {label}, best F1", value=less, low=low, high=high))
    return facts


def link_facts(frames: Sequence[Frame]) -> list[Fact]:
    """Return how much of the signatures real navigation has: the words in links of frames, beside their articles.

    Parameters
    ----------
    frames : sequence of Frame
        Of real pages.

    Returns
    -------
    list of Fact
        The ratio of spots per token over all frames, and the share of frames whose links alone have none, with 95 %
        intervals over resampled frames.
    """
    scheme = SpotSignatures()
    counts = np.empty((len(frames), 4))
    for row, frame in zip(counts, frames, strict=True):
        links = " ".join(link.text(separator=" ") for link in HTMLParser(frame.bare()).css("a"))
        for at, text in ((0, links), (2, " ".join(frame.paragraphs))):
            tokens = tokenize(text)
            row[at : at + 2] = len(scheme(tokens)), len(tokens)
    drawn = np.random.default_rng(0).integers(len(frames), size=(RESAMPLES, len(frames)))

    def ratio(sums: FloatArray) -> FloatArray:
        return (sums[..., 0] / sums[..., 1]) / (sums[..., 2] / sums[..., 3])

    silent = counts[:, 0] == 0
    low, high = ends(ratio(counts[drawn].sum(1)))
    fewest, most = ends(silent[drawn].mean(1))
    return [
        Fact(
            name="spots per token, links of frames / articles",
            value=float(ratio(counts.sum(0))),
            low=float(low),
            high=float(high),
        ),
        Fact(
            name="share of frames whose links alone have no spot signature",
            value=float(silent.mean()),
            low=float(fewest),
            high=float(most),
        ),
    ]
