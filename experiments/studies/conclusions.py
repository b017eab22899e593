"""Claims ledger and overview, from the results of all experiments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from experiments.claims.judged_claims import judge_all, summary, write_ledger
from experiments.config import Experiment, Settings
from experiments.harness.manifest import states
from experiments.show.overview import overview
from spotsigs.reports.output_files import write_text


@dataclass(frozen=True, kw_only=True)
class Claims(Experiment):
    """Judge every claim by the facts of the experiments that have run."""

    replaces: ClassVar[bool] = False

    def __call__(self, settings: Settings) -> str:
        """Write the ledger and the overview; return the counts of verdicts."""
        judged = judge_all(self.results)
        write_ledger(self.results, judged)
        write_text(self.results / "README.md", overview(self.results, judged, states(self.results)))
        return f"{summary(judged)}\n\nledger: {self.results / 'claims.md'}"
