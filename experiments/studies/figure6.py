"""Figure 6: F1 over the threshold by the choice of antecedents."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings
from experiments.show.figures import Mark
from experiments.show.quality_figures import STEP, best_facts, compared, curve_points, f1_panel, thresholds
from experiments.work.study import Work, lines_of
from spotsigs.errors import require

BEST = "articles and flexions"
FULL = "full stopword list (SMART)"

CAPTION = "Figure 6: F1 over τ by the choice of antecedents; bands are 95 % intervals over resampled clusters"


@dataclass(frozen=True, kw_only=True)
class Figure6(Experiment):
    """F1 over tau for spot signatures at different antecedents, distance 2 and chain length 3.

    Attributes
    ----------
    results : Path
        Folder that receives ``figure6/``.
    methods : dict of str to str
        The sets by label: signatures as on the command line. The paper names the kinds of its sets, not the words.
    rivals : dict of str to str
        Shingles, which are compared but not drawn.
    step : float
        Distance of the thresholds, a divisor of 1; one exact join at the lowest serves them all.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, Figure 6 and section 5.3.2.
    """

    results: Path = Path("results")
    methods: dict[str, str] = field(default_factory=dict)
    rivals: dict[str, str] = field(default_factory=dict)
    step: float = STEP

    def __post_init__(self) -> None:
        require({BEST, FULL} <= self.methods.keys(), f"methods must contain {BEST!r} and {FULL!r}, which claims name")

    def __call__(self, settings: Settings) -> str:
        """Draw one line a set; return where."""
        work = Work.begin(self.results, settings)
        sets, rivals = list(self.methods), list(self.rivals)
        lines = lines_of(self.methods | self.rivals, settings)
        curves = work.curves(lines, thresholds(self.step), "figure6")
        points = [point for label in sets for point in curve_points(curves[label], "", label)]
        panel = replace(
            f1_panel(""), marks=[Mark(label="published: articles and flexions .94", x=0.44, y=0.94, side="below")]
        )
        drawn = work.lines("figure6", CAPTION, [panel], points)
        best = {label: float(curve.micro[2, curve.best]) for label, curve in curves.items()}
        second = max((label for label in sets if label != BEST), key=best.__getitem__)
        shingled = max(rivals, key=best.__getitem__)
        facts = [fact for label in sets for fact in best_facts(label, curves[label])]
        facts += [
            compared(f"{BEST} - the best other set", curves[BEST], curves[second]),
            compared(f"{FULL} - the best shingling", curves[FULL], curves[shingled]),
            Fact(
                name="range of best F1 over sets",
                value=max(best[s] for s in sets) - min(best[s] for s in sets),
            ),
        ]
        work.facts(facts)
        ranking = ", ".join(f"{label} {best[label]:.3f}" for label in sorted(sets, key=best.__getitem__, reverse=True))
        return f"Figure 6: best F1 by antecedents: {ranking}; {drawn}"
