"""Figure 6: F1 over the threshold by the choice of antecedents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spotsigs.experiments.claims.facts import Fact
from spotsigs.experiments.config import Settings
from spotsigs.experiments.show.quality_figures import STEP, best_facts, compared, curve_points, f1_panel, thresholds
from spotsigs.experiments.work.methods import shingles, spotsigs
from spotsigs.experiments.work.study import Work
from spotsigs.signatures.spots import ARTICLES, FLEXIONS

BEST = "articles and flexions"
FULL = "full stopword list (SMART)"

_PREPOSITIONS_AND_PRONOUNS = """
about above across after against along among around at before behind below beneath beside between beyond by down during
except for from in inside into like near of off on onto out outside over past since through throughout to toward towards
under until up upon with within without
i me my mine myself you your yours yourself he him his himself she her hers herself it its itself we us our ours
ourselves they them their theirs themselves who whom whose which what this that these those
"""

ANTECEDENTS = {
    "the": ["the"],
    "is": ["is"],
    "articles": list(ARTICLES),
    BEST: [*ARTICLES, *FLEXIONS],
    "prepositions and pronouns": _PREPOSITIONS_AND_PRONOUNS.split(),
    FULL: ["@smart"],
}
"""The sets of the figure; the paper names the kinds, not the words."""

CAPTION = "Figure 6: F1 over τ by the choice of antecedents; bands are 95 % intervals over resampled clusters"


@dataclass(frozen=True, kw_only=True)
class Figure6:
    """F1 over tau for spot signatures at different antecedents, distance 2 and chain length 3.

    Attributes
    ----------
    results : Path
        Folder that receives ``figure6/``.
    step : float
        Distance of the thresholds, a divisor of 1; one exact join at the lowest serves them all.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, Figure 6 and section 5.3.2.
    """

    results: Path = Path("results")
    step: float = STEP

    def __call__(self, settings: Settings) -> str:
        """Draw one line a set; return where."""
        work = Work.begin(self.results, settings)
        sets = [spotsigs(label, antecedents=words) for label, words in ANTECEDENTS.items()]
        rivals = [shingles(1), shingles(3)]
        curves = work.curves([*sets, *rivals], thresholds(self.step), "figure6")
        points = [point for label in ANTECEDENTS for point in curve_points(curves[label], "", label)]
        drawn = work.lines("figure6", CAPTION, [f1_panel("")], points)
        best = {label: float(curve.micro[2, curve.best]) for label, curve in curves.items()}
        second = max((label for label in ANTECEDENTS if label != BEST), key=best.__getitem__)
        shingled = max((line.label for line in rivals), key=best.__getitem__)
        facts = [fact for label in ANTECEDENTS for fact in best_facts(label, curves[label])]
        facts += [
            compared(f"{BEST} - the best other set", curves[BEST], curves[second]),
            compared(f"{FULL} - the best shingling", curves[FULL], curves[shingled]),
            Fact(
                name="range of best F1 over sets",
                value=max(best[s] for s in ANTECEDENTS) - min(best[s] for s in ANTECEDENTS),
            ),
        ]
        work.facts(facts)
        ranking = ", ".join(
            f"{label} {best[label]:.3f}" for label in sorted(ANTECEDENTS, key=best.__getitem__, reverse=True)
        )
        return f"Figure 6: best F1 by antecedents: {ranking}; {drawn}"
