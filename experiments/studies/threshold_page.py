"""Choosing tau: the page of ``spotsigs threshold`` for any collection and signatures."""

from __future__ import annotations

from dataclasses import dataclass, field

from experiments.config import Experiment, Settings
from spotsigs.reports.threshold_page import Thresholds
from spotsigs.runs.thresholds import threshold_report


@dataclass(frozen=True, kw_only=True)
class Threshold(Experiment):
    """Pairs and removed pages by threshold, a suggested threshold, and pairs around it to compare.

    Attributes
    ----------
    lowest, step, candidates, each
        See `spotsigs.reports.threshold_page.Thresholds`.
    """

    lowest: float = 0.03
    step: float = 0.02
    candidates: list[float] = field(default_factory=list)
    each: int = 5

    def __post_init__(self) -> None:
        self._options(0)

    def _options(self, seed: int) -> Thresholds:
        return Thresholds(
            lowest=self.lowest, step=self.step, candidates=list(self.candidates), each=self.each, seed=seed
        )

    def __call__(self, settings: Settings) -> str:
        """Write page and tables; return the proposal."""
        folder = self.results / "threshold" / settings.names["data"]
        return threshold_report(settings, folder, self._options(settings.seed))
