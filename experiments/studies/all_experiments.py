"""All experiments in order, those that measure time first, then the claims ledger."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field

from experiments.config import NOT_OF_RESULTS, Experiment, Settings, Takes, all_takes, composed, overrides
from experiments.harness.manifest import is_current
from experiments.harness.study import run
from experiments.run_folders import variant
from spotsigs.errors import InputError
from spotsigs.options import plain

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Everything(Experiment):
    """Every table, figure, the claims ledger and the overview.

    Results are cached, so an interrupted run resumes; an experiment whose committed results are of the same commit is
    omitted. So is one whose pages cannot be fetched. If one fails, the others run, and the run fails at its end.
    """

    pages: list[str] = field(default_factory=list)  # names of the experiments on the collection of pages
    # Names of the experiments on vectors at the scale of WT10g, which ignore overrides of ``data``
    vectors: list[str] = field(default_factory=list)
    documents: int | None = None  # rows of these vectors; None for the configured number. WT10g has 1,171,960.

    def __call__(self, settings: Settings) -> str:
        """Run the experiments; return their summaries."""
        mine = [word for word in overrides() if not word.startswith("experiment")]
        mine.append(f"experiment.results={plain(str(self.results))}")  # a folder's name may contain =
        general = [word for word in mine if not word.startswith(("data=", "data."))]
        if self.documents is not None:
            general.append(f"data.documents={self.documents}")
        wanted = [(name, general) for name in self.vectors] + [(name, mine) for name in self.pages]
        wanted += [("claims", mine)]
        other = variant(overrides(), (*NOT_OF_RESULTS, "experiment.results"))
        plans = {name: composed(f"experiment={name}", *given) for name, given in wanted}
        current = [name for name in plans if not other and is_current(self.results, name)]
        parts = [f"{self.results / name} has the results of this commit" for name in current]
        missing = {name: plan for name, plan in plans.items() if name not in current}
        takes = [Takes(**plan.experiment.takes) for plan in missing.values()]
        _announce(list(missing), len(plans), takes)
        failed: list[str] = []
        for number, (name, plan) in enumerate(missing.items(), start=1):
            LOG.info("%d of %d: %s takes %s", number, len(missing), name, takes[number - 1])
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


def _announce(names: Sequence[str], count: int, takes: Sequence[Takes]) -> None:
    lines = [f"{len(names)} of {count} experiments, those without results of this commit, take {all_takes(takes)}:"]
    lines += [f"  {name}: {one}" for name, one in zip(names, takes, strict=True)]
    lines.append("finished cells of an earlier run are used again; after Ctrl-C the same command continues")
    sys.stderr.write("\n".join(lines) + "\n")
