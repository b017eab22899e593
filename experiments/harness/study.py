"""Common parts of all experiments: inputs, finished cells, and tables and figures with their provenance."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from experiments.claims.facts import Fact, write_facts
from experiments.config import NOT_OF_RESULTS, NOW, Settings, changed
from experiments.evaluate import QualityCells
from experiments.harness.cells import Cell, cell_of
from experiments.harness.curves import Curve
from experiments.harness.extracted_collections import Source, Stored, read_together, require_truth
from experiments.harness.finished_cells import FinishedCells
from experiments.harness.machine_load import Patience
from experiments.harness.manifest import problems, record, target_of
from experiments.harness.timing import TimedCell, TimedExtraction
from experiments.run_folders import variant
from experiments.show.tables import Table, write_cells
from spotsigs.arrays.parallel import all_cores
from spotsigs.contracts import Matcher
from spotsigs.errors import counted
from spotsigs.matching.algorithm1 import SpotSigs
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.method import Method
from spotsigs.reports.output_files import write_json
from spotsigs.runs.provenance import provenance

IMATCH_BAND = (0.4, 0.75)
"""IDF band of I-Match and of the WT10g runs (Tables 1 and 2)."""

PATIENCE_SECONDS = 600.0
"""Seconds that a run which replaces committed results waits for a quiet machine, for all its times together."""

LOG = logging.getLogger(__name__)

SEVERAL = "several collections"
"""Name of the data of an experiment that chooses its collections itself."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """State of a running experiment."""

    settings: Settings
    folder: Path  # folder of its tables and figures
    finished: FinishedCells  # finished cells, shared with all other experiments
    inputs: dict[str, Stored] = field(default_factory=dict)  # inputs read so far, for the provenance
    left_out: list[str] = field(default_factory=list)  # names of the collections that could not be fetched
    cells: list[Cell] = field(default_factory=list)  # cells so far, see `experiments.harness.cells`

    @classmethod
    def begin(cls, results: Path, settings: Settings, data: str | None = None) -> Work:
        """Open the folder ``results/<experiment>``, or the folder of ``settings.work``, and the finished cells.

        `data` names the input if ``data=`` does not.
        """
        settings = settings if data is None else replace(settings, names=settings.names | {"data": data})
        begun: Work | None = settings.work
        if begun is not None:
            return replace(begun, settings=settings)
        finished = FinishedCells(folder=results / "cells", workers=settings.workers)
        return cls(settings=settings, folder=results / settings.names["experiment"], finished=finished)

    def leave_out(self, name: str, error: Exception) -> str:
        """Note that a collection could not be fetched; return a sentence for the summary."""
        self.left_out.append(name)
        return f"{name} is left out: {error}"

    def read(self, method: Method, collection: Any = None) -> Stored:
        """Return the signatures of a collection, by default the settings' own, or a collection of vectors."""
        return self.read_all({"": method}, collection)[""]

    def read_all(self, methods: Mapping[str, Method], collection: Any = None) -> dict[str, Stored]:
        """Return the signatures of a collection, by default the settings' own, by the label of the method."""
        whole = self.settings.collection if collection is None else collection
        sources = [Source.of(whole, method) for method in methods.values()]
        missing = {repr(source): source for source in sources if repr(source) not in self.inputs}
        began = perf_counter()
        inputs = read_together(list(missing.values()), self.finished.folder, self.settings.engine)
        self.inputs.update(zip(missing, inputs, strict=True))
        if (seconds := perf_counter() - began) > 1:
            name = self.settings.names["data"]
            name = type(sources[0].collection).__name__ if name == SEVERAL else name
            LOG.info("%s: %s of signatures, %.0f s", name, counted(len(inputs), "kind"), seconds)
        return {label: self.inputs[repr(source)] for label, source in zip(methods, sources, strict=True)}

    def require_truth(self, methods: Iterable[Method]) -> None:
        """Refuse a collection without truth before it is extracted for methods."""
        require_truth([Source.of(self.settings.collection, method) for method in methods], self.finished.folder)

    def parse_ms(self, method: Method) -> float | None:
        """Return the milliseconds of reading and extracting; None if other processes were active."""
        [cell] = self.finished.of([TimedExtraction(source=self.read(method).source)], "time of extraction")
        return None if cell["contended"] else float(cell["parse_ms"])

    def curves(
        self,
        methods: Mapping[str, Method],
        taus: Sequence[float] | None,
        describe: str,
        *,
        listed: bool = False,
        compared: bool = False,
    ) -> dict[str, Curve]:
        """Return the quality curve of every method by label; `listed` and `compared` are attributes of `QualityCells`.

        A matcher without a threshold has a single point; so has each, at its own, without `taus`.
        """
        stored, data = self.read_all(methods), self.settings.names["data"]
        tasks = [
            QualityCells(
                stored=stored[label],
                method=replace(method, matcher=equally_exact(method.matcher)),
                taus=[] if method.tau is None else [method.tau] if taus is None else list(taus),
                data=data,
                listed=listed,
                compared=compared,
            )
            for label, method in methods.items()
        ]
        curves, drawn = {}, {"data_seed": getattr(self.settings.collection, "seed", None)}
        values = self.finished.of(tasks, describe)
        for label, value, entry in zip(methods, values, self.finished.log[-len(tasks) :], strict=True):
            rows = [
                cell_of(cell, label=label, seed=self.settings.seed, commit=entry["commit"], contended=True) | drawn
                for cell in value["cells"]
            ]
            curves[label] = Curve(value, rows)
            self.cells.extend(rows)
        write_cells(self.folder, self.cells)
        return curves

    def times(
        self,
        methods: Sequence[Method],
        repeats: int,
        describe: str,
        *,
        base: Matcher | None = None,
        limit: float | None = None,
        threads: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return time, memory and counts of every method, measured one at a time, by default on the settings' threads.

        See `TimedCell`. A method that takes more than `limit` seconds is stopped.
        """
        threads = threads or self.settings.threads or all_cores()
        tasks = [
            TimedCell(
                stored=self.read(method),
                method=replace(method, matcher=method.matcher.with_threads(threads)),
                repeats=repeats,
                base=base,
                limit=limit,
            )
            for method in methods
        ]
        return self.finished.of(tasks, describe)

    def of_collection(self, caption: str) -> str:
        """Return the caption with the name of the collection, if one was read and the caption does not name it."""
        name = self.settings.names["data"]
        fixed = getattr(self.settings.experiment, "fixed", {})
        if fixed.get("duplicates") == "off":
            caption = f"{caption}; exact duplicates are compared like all pages (duplicates=off)"
        if not self.inputs or name in caption:
            return caption
        path = getattr(self.settings.collection, "path", None)
        return f"{caption} ({name})" if path is None or name == "tiny" else f"{caption} ({name}: {path})"

    def table(self, table: Table, name: str) -> str:
        """Write a table with its provenance; return it for the terminal."""
        table = replace(table, caption=self.of_collection(table.caption))
        table.write(self.folder, name)
        titles, cells = table.printed()
        numbers = [bool(column.form) for column in table.columns if column.title]
        shown = {"caption": table.caption, "titles": titles, "numbers": numbers, "cells": cells}
        self.record(name, table=shown | {"notes": list(table.notes)})
        return table.text()

    def facts(self, facts: Sequence[Fact]) -> str:
        """Write ``facts.csv``, the values that claims are judged by; return them as text."""
        write_facts(self.folder / "facts.csv", facts)
        return "; ".join(f"{fact.name} {fact}" for fact in facts)

    def figure(self, name: str, caption: str, draw: Callable[[Path], None]) -> str:
        """Draw by a function of the path; record the provenance and the caption; return the path."""
        caption = self.of_collection(caption)
        draw(self.folder / name)
        self.record(name, figure={"caption": caption})
        return f"{self.folder / name}.svg (also png, pdf, csv, json)"

    def record(self, name: str, **shown: Any) -> None:
        """Write ``<name>.json``: content of the table or figure, provenance, and the finished cells used."""
        about = (
            shown
            | provenance()
            | {
                "experiment": self.settings.names["experiment"],
                "data": self.settings.names["data"],
                "seed": self.settings.seed,
                "inputs": sorted(repr(stored) for stored in self.inputs.values()),
                "cells": self.finished.log,
            }
        )
        write_json(self.folder / f"{name}.json", about)


def run(settings: Settings) -> str:
    """Run the experiment of the settings; return its summary.

    Committed results, those in the folder ``results``, are replaced by a complete run of the default configuration
    only, at its end, see `experiments.harness.manifest`. Until then, files are in
    ``results/runs/<experiment>.writing``.
    """
    experiment, name = settings.experiment, settings.names["experiment"]
    results = experiment.results
    if not experiment.replaces or results.resolve() != Path("results").resolve():
        return str(experiment(settings))
    written = results / "runs" / f"{name}.writing"
    shutil.rmtree(written, ignore_errors=True)
    work = Work.begin(results, settings)
    work = replace(
        work,
        folder=written,
        finished=replace(work.finished, patience=Patience(0 if settings.timing == NOW else PATIENCE_SECONDS)),
    )
    about, start = provenance(), perf_counter()
    try:
        text = str(experiment(replace(settings, work=work)))
        if not written.exists():
            return text
        reasons = problems(about, work.left_out, work.finished.contended)
        reasons += ["the code changed during the run"] if provenance() != about else []
        other = variant(changed(), (*NOT_OF_RESULTS, "experiment.results"))
        reasons += [f"{other} is not the default configuration"] if other else []
        seconds, inputs = perf_counter() - start, _checksums(work.inputs.values())
        said = record(results, name, written, seconds=seconds, inputs=inputs, reasons=reasons, about=about)
    finally:
        shutil.rmtree(written, ignore_errors=True)
    return f"{text.replace(str(written), str(target_of(results, name, reasons)))}\n\n{said}"


def _checksums(inputs: Iterable[Stored]) -> dict[str, str]:
    """Return a checksum of all that was read of each collection, by the name of its class."""
    of_files: dict[str, list[str]] = {}
    for stored in inputs:
        of_files.setdefault(type(stored.source.collection).__name__, []).append(stored.checksum)
    return {name: hashlib.sha256("".join(sorted(every)).encode()).hexdigest() for name, every in of_files.items()}


def equally_exact(matcher: Matcher) -> Matcher:
    """Return the tight join instead of Algorithm 1: the same pairs, but faster at low thresholds."""
    return SpotSigsTight(tau=matcher.tau) if isinstance(matcher, SpotSigs) else matcher
