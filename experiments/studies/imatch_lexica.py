"""I-Match: which IDF band is best, and what several lexica gain."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings
from experiments.show.figures import Panel, Point
from experiments.show.quality_figures import finite
from experiments.work.curves import Curve, difference
from experiments.work.study import IMATCH_BAND, Line, Work
from spotsigs.errors import require

BANDS = "F1 of I-Match and I-Match-S by IDF band, with 95 % intervals over resampled clusters"
LEXICA = "Recall and precision of I-Match by the number of lexica, with 95 % intervals over resampled clusters"
Found = dict[Any, Curve]
"""Curves of a single point by method and band, and by method and number of lexica."""

WORDS, SPOTS = "I-Match", "I-Match-S"


@dataclass(frozen=True, kw_only=True)
class IMatchFigures(Experiment):
    """F1 of I-Match and I-Match-S by IDF band, and their recall by the number of lexica.

    Attributes
    ----------
    results : Path
        Folder that receives ``imatch/``.
    methods : dict of str to str
        I-Match and I-Match-S, as on the command line.
    idf_min, idf_max : list of float
        Bounds that are combined; they contain the paper's 0.4 and 0.75.
    lexica : list of int
        Numbers of lexica, ascending from 1.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, section 5.3.3. Kolcz, Chowdhury, Alspector, KDD 2004.
    """

    results: Path = Path("results")
    methods: dict[str, str] = field(default_factory=dict)
    idf_min: list[float] = field(default_factory=lambda: [0.0, 0.2, 0.3, 0.4, 0.5, 0.6])
    idf_max: list[float] = field(default_factory=lambda: [0.65, 0.75, 0.85, 1.0])
    lexica: list[int] = field(default_factory=lambda: [1, 2, 3, 5, 7, 10])

    def __post_init__(self) -> None:
        require(set(self.methods) == {WORDS, SPOTS}, f"methods must be {WORDS} and {SPOTS}")
        low, high = IMATCH_BAND
        require(low in self.idf_min and high in self.idf_max, f"the bands must contain [{low}, {high}], the paper's")
        require(self.lexica[:1] == [1] and len(self.lexica) > 1, "lexica must start with 1 and go on")

    def __call__(self, settings: Settings) -> str:
        """Draw both figures; return where."""
        work = Work.begin(self.results, settings)
        bands = [band for band in product(self.idf_min, self.idf_max) if band[0] < band[1]]
        by_band = {
            (name, band): Line.composed(name, f"{words} matcher.idf_min={band[0]} matcher.idf_max={band[1]}", settings)
            for name, words in self.methods.items()
            for band in bands
        }
        by_lexica = {
            (name, count): Line.composed(name, f"{words} matcher.lexica={count}", settings)
            for name, words in self.methods.items()
            for count in self.lexica
        }
        lines = {key: replace(line, label=str(key)) for key, line in (by_band | by_lexica).items()}
        lines |= {(n, b): replace(lines[n, b], band=b) for n, b in by_band}
        curves = work.curves(list(lines.values()), [], "imatch")
        found = {key: curves[line.label] for key, line in lines.items()}
        drawn = [self._draw_bands(work, found), self._draw_lexica(work, found)]
        facts = [*_band_facts(found, bands), *_lexica_facts(found, self.lexica[-1])]
        work.facts(facts)
        return "I-Match: " + "; ".join(f"{fact.name} {fact}" for fact in facts) + "; " + "; ".join(drawn)

    def _draw_bands(self, work: Work, found: Found) -> str:
        points = []
        for name, high, low in product((WORDS, SPOTS), self.idf_max, self.idf_min):
            if low < high:
                curve = found[name, (low, high)]
                interval = curve.interval("f1")[:, 0]
                value, below, above = (finite(x) for x in (curve.micro[2, 0], *interval))
                points.append(Point(panel=name, series=f"to {high:g}", x=low, y=value, low=below, high=above))
        panels = [Panel(name=name, x_label="lower IDF bound", y_label="F1", y_range=(0, 1)) for name in (WORDS, SPOTS)]
        return work.lines("bands", BANDS, panels, points)

    def _draw_lexica(self, work: Work, found: Found) -> str:
        points = []
        for name, count in product((WORDS, SPOTS), self.lexica):
            for panel, m in (("Recall", 1), ("Precision", 0)):
                curve = found[name, count]
                low, high = curve.interval(("precision", "recall")[m])[:, 0]
                value, low, high = finite(curve.micro[m, 0]), finite(low), finite(high)
                points.append(Point(panel=panel, series=name, x=count, y=value, low=low, high=high))
        panels = [Panel(name=name, x_label="lexica", y_label=name.lower()) for name in ("Recall", "Precision")]
        return work.lines("lexica", LEXICA, panels, points)


def _band_facts(found: Found, bands: list[tuple[float, float]]) -> list[Fact]:
    facts = []
    for name in (WORDS, SPOTS):
        ours = found[name, IMATCH_BAND]
        others = [band for band in bands if band != IMATCH_BAND]
        best = max(others, key=lambda band: finite(found[name, band].micro[2, 0]))
        value, low, high = difference(ours, 0, found[name, best], 0)
        text = f"against [{best[0]:g}, {best[1]:g}]: {value:.3f}"
        facts.append(
            Fact(name=f"F1 of {name} at [0.4, 0.75] - the best other band", value=value, low=low, high=high, text=text)
        )
    value, low, high = difference(found[SPOTS, IMATCH_BAND], 0, found[WORDS, IMATCH_BAND], 0, "recall", relative=True)
    return [*facts, Fact(name="recall of I-Match-S / I-Match", value=value + 1, low=low + 1, high=high + 1)]


def _lexica_facts(found: Found, most: int) -> list[Fact]:
    facts = []
    for name in (WORDS, SPOTS):
        value, low, high = difference(found[name, most], 0, found[name, 1], 0, "recall", relative=True)
        facts.append(Fact(name=f"gain of several lexica, {name}", value=value, low=low, high=high))
        value, low, high = difference(found[name, most], 0, found[name, 1], 0, "precision")
        facts.append(Fact(name=f"precision with {most} lexica - with one, {name}", value=value, low=low, high=high))
    return facts
