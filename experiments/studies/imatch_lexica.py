"""Quality of I-Match over IDF bands and over numbers of lexica."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings, methods_of
from experiments.harness.curves import Curve, compared, finite
from experiments.harness.study import IMATCH_BAND, Work
from experiments.show.figures import Mark, Panel, Point, draw_lines
from spotsigs.errors import require

BANDS = "F1 of I-Match and I-Match-S by IDF band, with 95 % intervals over resampled clusters; the axes differ"
LEXICA = "Recall and precision of I-Match by the number of lexica, with 95 % intervals over resampled clusters"
Curves = dict[Any, Curve]
"""Curves of a single point, by method and band, and by method and number of lexica."""

WORDS, SPOTS = "I-Match", "I-Match-S"
F1 = {WORDS: 0.05, SPOTS: 0.37}
"""Published, at the band [0.4, 0.75]."""


@dataclass(frozen=True, kw_only=True)
class IMatchFigures(Experiment):
    """F1 of I-Match and I-Match-S by IDF band, and their recall by the number of lexica.

    Attributes
    ----------
    methods : dict of str to dict
        I-Match and I-Match-S.
    idf_min, idf_max : list of float
        Bounds of the bands, which are their combinations; they contain the paper's 0.4 and 0.75.
    lexica : list of int
        Numbers of lexica, ascending from 1.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, section 5.3.3. Kolcz, Chowdhury, Alspector, KDD 2004.
    """

    methods: dict[str, dict[str, Any]] = field(default_factory=dict)
    idf_min: list[float] = field(default_factory=lambda: [0.0, 0.2, 0.3, 0.4, 0.5, 0.6])
    idf_max: list[float] = field(default_factory=lambda: [0.65, 0.75, 0.85, 1.0])
    lexica: list[int] = field(default_factory=lambda: [1, 2, 3, 5, 7, 10])

    def __post_init__(self) -> None:
        require(set(self.methods) == {WORDS, SPOTS}, f"methods must be {WORDS} and {SPOTS}")
        low, high = IMATCH_BAND
        require(low in self.idf_min and high in self.idf_max, f"the bands must contain [{low}, {high}], the paper's")
        require(
            self.lexica[:1] == [1] and len(self.lexica) > 1,
            f"lexica must start with 1 and have more values, got {self.lexica}",
        )

    def __call__(self, settings: Settings) -> str:
        """Write both figures and the facts; return a summary."""
        work = Work.begin(self.results, settings)
        bands = [band for band in product(self.idf_min, self.idf_max) if band[0] < band[1]]
        chosen: dict[Any, dict[str, Any]] = {}
        for name, choices in self.methods.items():
            for low, high in bands:
                band = {"idf_min": low, "idf_max": high, "matcher.idf_min": low, "matcher.idf_max": high}
                chosen[name, (low, high)] = choices | band
            for count in self.lexica:
                chosen[name, count] = choices | {"matcher.lexica": count}
        methods = methods_of({str(key): choices for key, choices in chosen.items()}, settings, **self.fixed)
        by_label = work.curves(methods, [], "imatch")
        curves = {key: by_label[str(key)] for key in chosen}
        facts = [*_band_facts(curves, bands), *_lexica_facts(curves, self.lexica[-1])]
        work.facts(facts)
        drawn = f"{self._draw_bands(work, curves)}; {self._draw_lexica(work, curves)}"
        return "I-Match: " + "; ".join(f"{fact.name} {fact}" for fact in facts) + f"; {drawn}"

    def _draw_bands(self, work: Work, curves: Curves) -> str:
        points = [
            _point(curves[name, (low, high)], name, f"upper bound {high:g}", low)
            for name, high, low in product((WORDS, SPOTS), self.idf_max, self.idf_min)
            if low < high
        ]
        panels = []
        for name in (WORDS, SPOTS):
            of_gold = work.settings.names["data"] == "gold"
            paper = [Mark(label=f"published, {F1[name]:.2f}", x=IMATCH_BAND[0], y=F1[name])] if of_gold else []
            highest = max([p.high or 0 for p in points if p.panel == name] + [mark.y or 0 for mark in paper])
            y_range = (0, 1.1 * highest or 1)
            panels.append(Panel(name=name, x_label="lower IDF bound", y_label="F1", y_range=y_range, marks=paper))
        return work.figure(draw_lines, "bands", BANDS, panels, points)

    def _draw_lexica(self, work: Work, curves: Curves) -> str:
        points = [
            _point(curves[name, count], panel, name, count, panel.lower())
            for name, count, panel in product((WORDS, SPOTS), self.lexica, ("Recall", "Precision"))
        ]
        panels = [Panel(name=name, x_label="lexica", y_label=name.lower()) for name in ("Recall", "Precision")]
        return work.figure(draw_lines, "lexica", LEXICA, panels, points)


def _point(curve: Curve, panel: str, series: str, x: float, measure: str = "f1") -> Point:
    """Return the point of a curve without thresholds, with its interval."""
    low, high = curve.interval(measure)[:, 0]
    y = finite(curve.values(measure)[0])
    return Point(panel=panel, series=series, x=x, y=y, low=finite(low), high=finite(high))


def _band_facts(curves: Curves, bands: list[tuple[float, float]]) -> list[Fact]:
    facts = []
    for name in (WORDS, SPOTS):
        others = [band for band in bands if band != IMATCH_BAND]
        best = max(others, key=lambda band: finite(curves[name, band].values("f1")[0]))
        title = f"F1 of {name} at [0.4, 0.75] - the best other band"
        fact = compared(title, curves[name, IMATCH_BAND], curves[name, best])
        facts.append(replace(fact, text=f"against [{best[0]:g}, {best[1]:g}]: {fact.value:.3f}"))
    spots, words = curves[SPOTS, IMATCH_BAND], curves[WORDS, IMATCH_BAND]
    gain = compared("recall of I-Match-S / I-Match", spots, words, measure="recall", relative=True)
    low, high = gain.interval
    return [*facts, replace(gain, value=gain.value + 1, low=low + 1, high=high + 1)]


def _lexica_facts(curves: Curves, most: int) -> list[Fact]:
    facts = []
    for name in (WORDS, SPOTS):
        several, one = curves[name, most], curves[name, 1]
        title = f"precision with {most} lexica - with one, {name}"
        facts.append(compared(f"gain of several lexica, {name}", several, one, measure="recall", relative=True))
        facts.append(compared(title, several, one, measure="precision"))
    return facts
