"""Finished runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from spotsigs.errors import InputError
from spotsigs.experiments.config import Experiment, Settings
from spotsigs.experiments.run.runs import runs_table
from spotsigs.experiments.show.tables import Column


@dataclass(frozen=True, kw_only=True)
class Compare(Experiment):
    """Finished runs side by side: what was configured differently, the figures, and which pairs each reports.

    Attributes
    ----------
    runs : list of str
        Folders of finished runs, two or more.
    """

    runs: list[str] = field(default_factory=list)

    def __call__(self, settings: Settings | None = None) -> str:
        """Return the comparison as text; nothing is written."""
        if len(self.runs) < 2:
            raise InputError('name the folders of two or more runs, as in experiment.runs=\'["one","other"]\'')
        folders = [Path(run) for run in self.runs]
        table = runs_table(folders, f"{len(folders)} runs side by side")
        names = [f"{number}: {folder}" for number, folder in enumerate(folders, 1)]
        numbered = [{"run": number, **row} for number, row in enumerate(table.rows, 1)]
        shown = replace(table, columns=[Column(name="run", title="Run", form="d"), *table.columns], rows=numbered)
        return "\n".join(["", shown.text(), "", *names, "", _in_common(folders)])


def _in_common(folders: Sequence[Path]) -> str:
    """Return how many pairs the runs share with the first, and where the largest difference of a similarity lies."""
    from pandas import read_parquet

    first, *others = (
        read_parquet(folder / "pairs.parquet").set_index(["doc_a", "doc_b"])["similarity"] for folder in folders
    )
    lines = []
    for number, other in enumerate(others, 2):
        both = first.index.intersection(other.index)
        apart = (first.loc[both] - other.loc[both]).abs()
        line = f"pairs of runs 1 and {number}: {len(both):,} in both, {len(first) - len(both):,} only in 1, "
        line += f"{len(other) - len(both):,} only in {number}"
        if len(apart) and apart.max() > 0:
            line += f"; similarities differ by {apart.max():.3f} at most"
        lines.append(line)
    return "\n".join(lines)
