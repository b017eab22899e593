"""Conclusions from the results of all experiments: the claims ledger and the report."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.claims.judged_claims import judge_all, summary, write_ledger
from experiments.config import Experiment, Settings
from experiments.show.report import finding, render, sections
from experiments.work.study import Work
from spotsigs.output_files import replacing
from spotsigs.runs.provenance import provenance


@dataclass(frozen=True, kw_only=True)
class Claims(Experiment):
    """Judge every claim by the facts of the experiments that have run."""

    def __call__(self, settings: Settings) -> str:
        """Write the ledger; return the counts of verdicts."""
        judged = judge_all(self.results)
        write_ledger(self.results, judged)
        Work.begin(self.results, settings).record("claims")
        return f"{summary(judged)}\n\nledger: {self.results / 'claims.md'}"


@dataclass(frozen=True, kw_only=True)
class Report(Experiment):
    """Write all results into one page."""

    def __call__(self, settings: Settings) -> str:
        """Write the report; return its path."""
        page = render(
            finding=finding(self.results),
            sections=sections(self.results),
            judged=judge_all(self.results),
            about=provenance() | {"data": settings.names["data"], "seed": settings.seed},
        )
        path = self.results / "report.html"
        with replacing(path) as temporary:
            temporary.write_text(page, encoding="utf-8")
        Work.begin(self.results, settings).record("report")
        return f"report: {path}"
