"""Methods on vectors, each timed alone at thresholds and on numbers of threads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from experiments.claims.published import published
from experiments.config import Experiment, Settings, method_of
from experiments.harness.study import IMATCH_BAND, Work
from experiments.harness.timing import cost
from experiments.show.tables import MEASURED, PUBLISHED, Column, Table, band_text, write_cells
from experiments.views import View, columns_of, facts_of
from spotsigs.arrays.parallel import all_cores
from spotsigs.contracts import VectorCollection
from spotsigs.errors import require
from spotsigs.method import Method

WT10G_DOCUMENTS = 1_171_960
"""Documents of the published rows."""

REPEATS = 3
"""Timed runs of a matcher, whose median is reported; runs of more than five seconds are not repeated."""


@dataclass(frozen=True, kw_only=True)
class TimedMethods(Experiment):
    """Times, memory and relative recall of methods on vectors; every point is measured alone.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, Table 2, Figure 7, sections 1.1 and 5.4.
    """

    # Methods by label, each with a threshold or several, as in ``tau: [1.0, 0.9]``.
    methods: dict[str, dict[str, Any]] = field(default_factory=dict)
    taus: list[float] = field(default_factory=list)  # thresholds of the methods that set none
    doubled: bool = False  # Run on 1, 2, 4, ... threads, up to the number of cores.
    limit: float | None = None  # seconds after which a run is stopped; a method is not run at lower thresholds then
    limits: dict[str, float] = field(default_factory=dict)  # limits of single methods
    # ``name``, ``caption``, a format of ``documents``, ``columns`` and ``notes``, and the file of ``published`` rows,
    # which precede the measured rows of the same method; none if empty.
    table: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)  # attributes of `View` by the name of the file
    # Attributes of `experiments.views.FactView` by the name of the fact.
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require(len(self.methods) > 0, "experiment.methods must name at least one")

    def __call__(self, settings: Settings) -> str:
        """Write the cells, the facts, the table and the figures; return them as text."""
        require(
            isinstance(settings.collection, VectorCollection),
            f"experiment={settings.names['experiment']} times matchers on vectors: leave data out, or give "
            "data=wt10g_like",
        )
        work = Work.begin(self.results, settings)
        rows = [row for label in self.methods for row in self._rows_of(work, label)]
        facts = facts_of(self.facts, rows)
        write_cells(work.folder, map(_plain, rows))
        written = [self._table(work, rows)] if self.table else []
        for name, attributes in self.figures.items():
            view = View(**attributes)
            drawn = sorted(map(_drawn, rows), key=lambda row: float(row[view.x]))
            caption = f"{view.caption}{self._said(rows)}"
            written.append(work.figure(name, caption, partial(view.draw, rows=drawn)))
        listed = work.facts(facts)
        return "\n\n".join(written if self.table else [*written, listed])

    def _rows_of(self, work: Work, label: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a method by threads, at descending thresholds until one is over its limit."""
        settings, choices = work.settings, dict(self.methods[label])
        given: Any = choices.pop("tau", self.taus or None)
        base = method_of({"matcher": "imatch"}, settings).matcher
        cores = settings.threads or all_cores()
        for threads in thread_counts(cores) if self.doubled else [cores]:
            for tau in sorted(given if isinstance(given, list) else [given], key=lambda tau: -(tau or 0)):
                at = {} if tau is None else {"tau": tau}
                method = method_of(choices | at, settings, label=label, **self.fixed)
                words = [f"{settings.names['experiment']}: {label}", *(f"tau {value:g}" for value in at.values())]
                limit = self.limits.get(label, self.limit)
                [cell] = work.times([method], REPEATS, ", ".join(words), base=base, limit=limit, threads=threads)
                yield {"collection": settings.names["data"], **_row(label, method, threads, cell)}
                if "over_s" in cell:
                    break

    def _table(self, work: Work, rows: Sequence[Mapping[str, Any]]) -> str:
        name, printed = self.table.get("published"), {}
        if name:
            printed = {(str(row["method"]), row["tau"]): row for row in published(name)}
        shown: list[dict[str, Any]] = []
        for row in rows:
            paper = printed.get((str(row["method"]).removesuffix(" (native)"), row["tau"]))
            if paper is not None:
                idf = band_text(paper["idf_min"], paper["idf_max"])
                shown.append(paper | {"row": PUBLISHED, "idf": idf, "documents": WT10G_DOCUMENTS})
            shown.append({**row, "row": MEASURED, **cost(dict(row))})
        caption = self.table["caption"].format(documents=max(row.get("documents") or 0 for row in rows))
        columns = [*columns_of(self.table["columns"], ()), Column(name="contended")]
        table = Table(caption=caption, columns=columns, rows=shown, notes=self.table.get("notes", ()))
        return work.table(table, self.table["name"])

    def _said(self, rows: Sequence[Mapping[str, Any]]) -> str:
        """Return what the caption of a figure states of the runs."""
        stopped = "".join(
            f"; {row['method']} takes over {row['over_s']:g} s at τ = {row['tau']:g} and is not run below"
            for row in rows
            if row.get("over_s")
        )
        counts = [len(row["runs_ms"]) for row in rows if not row.get("over_s")]
        return stopped + (f"; a time is the median of {min(counts)} to {max(counts)} runs" if counts else "")


def _row(label: str, method: Method, threads: int, cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cell as a row; its counters are columns, too."""
    counters = cell.get("counters", {})
    about = {name: getattr(method.matcher, name, None) for name in "kl"} | {"spots": cell.get("signatures")}
    about |= {"method": label, "of": label, "program": method.matcher.label, "idf": band_text(*IMATCH_BAND)}
    return {**about, "tau": method.tau, "threads": threads, "contended": False, **cell, **counters}


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row for the table of cells; lists and counters are JSON."""
    rest = {key: value for key, value in row.items() if key != "of"}
    return {key: json.dumps(value) if isinstance(value, (dict, list)) else value for key, value in rest.items()}


def _drawn(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its seconds and their range over runs; without them if other processes were active."""
    if row.get("over_s") or row["contended"]:
        return dict(row)
    runs = [each / 1000 for each in row["runs_ms"]]
    return {**row, "seconds": row["total_ms"] / 1000, "seconds_low": min(runs), "seconds_high": max(runs)}


def thread_counts(cores: int) -> list[int]:
    """Return 1, 2, 4, ... and the number of cores."""
    return sorted({*(2**k for k in range(cores.bit_length()) if 2**k <= cores), cores})
