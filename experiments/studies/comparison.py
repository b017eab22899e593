"""Finished runs side by side."""

from __future__ import annotations

from dataclasses import dataclass, field

from experiments.config import Experiment, Settings
from spotsigs.runs.comparison import compared


@dataclass(frozen=True, kw_only=True)
class Compare(Experiment):
    """What was configured differently, the figures, and which pairs each reports.

    Attributes
    ----------
    runs : list of str
        Folders of finished runs, two or more.
    """

    runs: list[str] = field(default_factory=list)

    def __call__(self, settings: Settings | None = None) -> str:
        """Return the comparison as text; nothing is written."""
        return compared(self.runs)
