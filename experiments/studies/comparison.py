"""Comparison of finished runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from experiments.config import Experiment, Settings
from spotsigs.runs.comparison import compared


@dataclass(frozen=True, kw_only=True)
class Compare(Experiment):
    """Differences in configuration, figures and pairs of finished runs.

    Attributes
    ----------
    runs : list of str
        Two or more folders of finished runs.
    """

    runs: list[str] = field(default_factory=list)

    def __call__(self, settings: Settings | None = None) -> str:
        """Return the comparison as text; nothing is written."""
        return compared(self.runs)
