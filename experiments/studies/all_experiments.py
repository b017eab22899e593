"""All experiments in order, then the claims ledger and the report."""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from tqdm import tqdm

from experiments.config import Experiment, Settings, composed, overrides, quoted
from experiments.show.tables import Column, Table
from experiments.work.study import Work
from spotsigs.errors import InputError
from spotsigs.output_files import read_json

CONCLUSIONS = ("claims", "report")

COLUMNS = [
    Column(name="experiment", title="Experiment"),
    Column(name="seconds", title="Wall time (s)", form=",.1f"),
    Column(name="done", title="Cells done", form=".0f"),
    Column(name="kept", title="Cells kept from before", form=".0f"),
]


@dataclass(frozen=True, kw_only=True)
class Everything(Experiment):
    """Every table, figure, the claims ledger and the report.

    Results are cached, so an interrupted run resumes. An experiment whose pages cannot be fetched is omitted. If one
    fails, the others run, and the run fails at its end.

    Attributes
    ----------
    results : Path
        Folder of all results.
    pages : list of str
        Names of the experiments on the collection of pages.
    vectors : list of str
        Names of the experiments on vectors at the scale of WT10g, which ignore overrides of ``data``.
    documents : int or None
        Rows of these vectors; None for the configured number. WT10g has 1,171,960.
    """

    results: Path = Path("results")
    pages: list[str] = field(default_factory=list)
    vectors: list[str] = field(default_factory=list)
    documents: int | None = None

    def __call__(self, settings: Settings) -> str:
        """Run the experiments; return their summaries and a table of wall times."""
        mine = [word for word in overrides() if not word.startswith("experiment")]
        mine.append(f"experiment.results={quoted(str(self.results))}")  # a folder's name may contain =
        general = [word for word in mine if not word.startswith(("data=", "data."))]
        if self.documents is not None:
            general.append(f"data.documents={self.documents}")
        wanted = [(name, mine) for name in self.pages] + [(name, general) for name in self.vectors]
        wanted += [(name, mine) for name in CONCLUSIONS]
        plans = [composed(f"experiment={name}", *given) for name, given in wanted]
        parts: list[str] = []
        failed: list[str] = []
        rows: list[dict[str, Any]] = []
        for (name, _), plan in zip(tqdm(wanted, "experiments", unit="experiment", disable=None), plans, strict=True):
            began = perf_counter()
            try:
                parts.append(plan.experiment(plan))
            except InputError as error:
                parts.append(f"{name} is left out: {error}")
            except Exception as error:  # noqa: BLE001 - the others run
                traceback.print_exc()
                failed.append(f"{name} ({type(error).__name__}: {error})")
            rows.append({"experiment": name, "seconds": perf_counter() - began} | _cells(self.results / name))
        rows.append({"experiment": "all"} | {key: sum(row[key] for row in rows) for key in ("seconds", "done", "kept")})
        table = Table(caption="Wall time of each experiment", columns=COLUMNS, rows=rows)
        text = "\n\n".join([*parts, Work.begin(self.results, settings).table(table, "times")])
        if failed:
            sys.stdout.write(f"{text}\n")
            raise InputError(f"{len(failed)} experiments failed, the others are written: {'; '.join(failed)}")
        return text


def _cells(folder: Path) -> dict[str, int]:
    """Return the numbers of distinct cells of an experiment that were computed now (done) and cached (kept)."""
    kept: dict[str, bool] = {}
    for path in sorted(folder.glob("*.json")):
        for cell in read_json(path).get("cells", []):
            kept[cell["cell"]] = kept.get(cell["cell"], True) and cell["kept"]
    return {"done": sum(not old for old in kept.values()), "kept": sum(kept.values())}
