"""All experiments in order, those that measure time first, then the claims ledger."""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass, field

from tqdm import tqdm

from experiments.config import NOT_OF_RESULTS, Experiment, Settings, composed, overrides
from experiments.harness.manifest import is_current
from experiments.harness.study import run
from experiments.run_folders import variant
from spotsigs.errors import InputError
from spotsigs.spelling import spelled


@dataclass(frozen=True, kw_only=True)
class Everything(Experiment):
    """Every table, figure, the claims ledger and the overview.

    Results are cached, so an interrupted run resumes; an experiment whose committed results are of the same commit is
    omitted. So is one whose pages cannot be fetched. If one fails, the others run, and the run fails at its end.

    Attributes
    ----------
    pages : list of str
        Names of the experiments on the collection of pages.
    vectors : list of str
        Names of the experiments on vectors at the scale of WT10g, which ignore overrides of ``data``.
    documents : int or None
        Rows of these vectors; None for the configured number. WT10g has 1,171,960.
    """

    pages: list[str] = field(default_factory=list)
    vectors: list[str] = field(default_factory=list)
    documents: int | None = None

    def __call__(self, settings: Settings) -> str:
        """Run the experiments; return their summaries."""
        mine = [word for word in overrides() if not word.startswith("experiment")]
        mine.append(f"experiment.results={spelled(str(self.results))}")  # a folder's name may contain =
        general = [word for word in mine if not word.startswith(("data=", "data."))]
        if self.documents is not None:
            general.append(f"data.documents={self.documents}")
        wanted = [(name, general) for name in self.vectors] + [(name, mine) for name in self.pages]
        wanted += [("claims", mine)]
        other = variant(overrides(), (*NOT_OF_RESULTS, "experiment.results"))
        plans = [composed(f"experiment={name}", *given) for name, given in wanted]
        parts: list[str] = []
        failed: list[str] = []
        for (name, _), plan in zip(tqdm(wanted, "experiments", unit="experiment", disable=None), plans, strict=True):
            if not other and is_current(self.results, name):
                parts.append(f"{self.results / name} has the results of this commit")
                continue
            try:
                parts.append(run(plan))
            except InputError as error:
                parts.append(f"{name} is left out: {error}")
            except Exception as error:  # noqa: BLE001 - the others run
                traceback.print_exc()
                failed.append(f"{name} ({type(error).__name__}: {error})")
        text = "\n\n".join(parts)
        if failed:
            sys.stdout.write(f"{text}\n")
            raise InputError(f"{len(failed)} experiments failed, the others are written: {'; '.join(failed)}")
        return text
