"""Figure 5: F1 over the threshold, SpotSigs against shingling, Jaccard and Cosine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings
from experiments.show.figures import Mark
from experiments.show.quality_figures import STEP, best_facts, compared, curve_points, f1_panel, thresholds
from experiments.work.curves import Curve
from experiments.work.study import Work, lines_of

CAPTION = (
    "Figure 5: F1 over τ, SpotSigs against shingling; bands are 95 % intervals over resampled clusters, stars and "
    "dashed lines the published best values"
)

PUBLISHED = {
    "Jaccard": [
        Mark(label="SpotSigs .94", x=0.44, y=0.94),
        Mark(label="1-Shingles .71", x=0.4, y=0.71),
        Mark(label="3-Shingles .69", x=0.4, y=0.69, side="below"),
    ],
    "Cosine": [Mark(label="SpotSigs .89", y=0.89), Mark(label="3-Shingles .53", y=0.53)],
}
"""Best F1 of Table 1 and of section 5.3.1, which gives no thresholds for Cosine."""


@dataclass(frozen=True, kw_only=True)
class Figure5(Experiment):
    """F1 of spot signatures, single words and 3-shingles over tau, by Jaccard (left) and Cosine (right).

    Attributes
    ----------
    results : Path
        Folder that receives ``figure5/``.
    methods : dict of str to str
        The lines of a panel by label: signatures as on the command line.
    step : float
        Distance of the thresholds, a divisor of 1; one exact join at the lowest serves them all.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, Figure 5 and section 5.3.1.
    """

    results: Path = Path("results")
    methods: dict[str, str] = field(default_factory=dict)
    step: float = STEP

    def __call__(self, settings: Settings) -> str:
        """Draw both panels; return where."""
        work = Work.begin(self.results, settings)
        methods = {
            f"{label}, {measure}": f"{words} matcher={matcher}"
            for measure, matcher in (("Jaccard", "spotsigs"), ("Cosine", "cosine"))
            for label, words in self.methods.items()
        }
        curves = work.curves(lines_of(methods, settings), thresholds(self.step), "figure5")
        points = [
            point for label, curve in curves.items() for point in curve_points(curve, *reversed(label.split(", ")))
        ]
        panels = [replace(f1_panel(measure), marks=marks) for measure, marks in PUBLISHED.items()]
        drawn = work.lines("figure5", CAPTION, panels, points)
        work.facts(
            [fact for label, curve in curves.items() for fact in best_facts(label, curve)] + _comparisons(curves)
        )
        best = "; ".join(
            f"{label} {curve.micro[2, curve.best]:.3f} at {curve.taus[curve.best]:g}" for label, curve in curves.items()
        )
        return f"Figure 5: best F1 {best}; {drawn}"


def _comparisons(curves: dict[str, Curve]) -> list[Fact]:
    facts = []
    for measure in ("Jaccard", "Cosine"):
        ours, words, shingled = (curves[f"{label}, {measure}"] for label in ("SpotSigs", "1-Shingles", "3-Shingles"))
        facts += [
            compared(f"SpotSigs - 1-Shingles, {measure}", ours, words),
            compared(f"SpotSigs - 3-Shingles, {measure}", ours, shingled),
            compared(f"3-Shingles - 1-Shingles, {measure}", shingled, words),
            compared(f"SpotSigs / 3-Shingles - 1, {measure}", ours, shingled, relative=True),
        ]
    ours = curves["SpotSigs, Jaccard"]
    rivals = {label: curve for label, curve in curves.items() if curve is not ours}
    nearest = max(rivals, key=lambda label: float(rivals[label].micro[2, rivals[label].best]))
    return [*facts, compared("SpotSigs, Jaccard - the best other", ours, rivals[nearest])]
