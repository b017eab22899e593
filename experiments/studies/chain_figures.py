"""The figures the paper omits: F1 by chain length and by spot distance."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings
from experiments.show.quality_figures import STEP, best_facts, compared, curve_points, f1_panel, thresholds
from experiments.work.study import Work, lines_of
from spotsigs.errors import require

PAPERS = {"c": 3, "d": 2}


class Parameter(Enum):
    """What is varied: the chain length or the spot distance."""

    c = "c"
    d = "d"


CAPTION = "F1 over τ by {} (a figure the paper omits); bands are 95 % intervals over resampled clusters"
NAMES = {Parameter.c: "chain length", Parameter.d: "spot distance"}


@dataclass(frozen=True, kw_only=True)
class ChainFigure(Experiment):
    """F1 over tau for several chain lengths or spot distances, the other at the paper's best.

    Attributes
    ----------
    results : Path
        Folder that receives the experiment's own.
    parameter : Parameter
        ``c`` or ``d``.
    values : list of int
        Values of it.
    step : float
        Distance of the thresholds, a divisor of 1; one exact join at the lowest serves them all.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, section 5.3.2 ("figures omitted").
    """

    results: Path = Path("results")
    parameter: Parameter = Parameter.c
    values: list[int] = field(default_factory=lambda: [1, 2, 3, 4, 5])
    step: float = STEP

    def __post_init__(self) -> None:
        best = PAPERS[self.parameter.value]
        require(best in self.values, f"values must contain {best}, the paper's {NAMES[self.parameter]}")
        require(len(self.values) > 1, "values needs at least two entries to compare")

    def __call__(self, settings: Settings) -> str:
        """Draw one line a value; return where."""
        work = Work.begin(self.results, settings)
        name = self.parameter.value
        labels = {value: f"{name} = {value}" for value in self.values}
        lines = lines_of({label: f"idf_max=0.85 signature.{name}={value}" for value, label in labels.items()}, settings)
        curves = work.curves(lines, thresholds(self.step), NAMES[self.parameter])
        points = [point for label, curve in curves.items() for point in curve_points(curve, "", label)]
        drawn = work.lines(settings.names["experiment"], CAPTION.format(NAMES[self.parameter]), [f1_panel("")], points)
        best = {value: float(curves[label].micro[2, curves[label].best]) for value, label in labels.items()}
        papers = PAPERS[name]
        others = [value for value in self.values if value != papers]
        facts = [fact for label, curve in curves.items() for fact in best_facts(label, curve)]
        facts += [
            compared(f"{name}={papers} - {name}={value}", curves[labels[papers]], curves[labels[value]])
            for value in others
        ]
        second = max(others, key=best.__getitem__)
        facts += [
            compared(f"{name}={papers} - the best other", curves[labels[papers]], curves[labels[second]]),
            Fact(name="range of best F1", value=max(best.values()) - min(best.values())),
        ]
        work.facts(facts)
        listed = ", ".join(f"{label} {best[value]:.3f}" for value, label in labels.items())
        return f"F1 by {NAMES[self.parameter]}: best {listed}; {drawn}"
