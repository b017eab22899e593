"""Common parts of all experiments: inputs, cached results, and tables and figures with their provenance."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from data.collections.gold import PAPER_BAND
from experiments.claims.facts import Fact, write_facts
from experiments.config import Settings, composed
from experiments.show.figures import Point
from experiments.show.tables import Table
from experiments.work.curves import Curve, quality_curve
from experiments.work.extracted_collections import Source, Stored, read_together
from experiments.work.result_cache import Cells, Task
from experiments.work.timing import time_extraction, time_matcher
from spotsigs.arrays.parallel import all_cores
from spotsigs.contracts import Matcher, SignatureScheme, VectorCollection
from spotsigs.defaults import IDF_MAX, IDF_MIN
from spotsigs.matching.algorithm1 import SpotSigs
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.output_files import write_json
from spotsigs.runs.provenance import provenance
from spotsigs.signatures.idf import IdfFilter

BAND = (IDF_MIN, IDF_MAX)
"""IDF band of the methods under comparison whose words name none, whatever the collection."""

IMATCH_BAND = (0.4, 0.75)
"""IDF band of I-Match and of the WT10g runs (Tables 1 and 2)."""

SEVERAL = "several collections"
"""Name of the data of an experiment that chooses its collections itself."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """Method under comparison: a line of a figure or a row of a table.

    Attributes
    ----------
    label : str
        Name of the line or row.
    signature : SignatureScheme
        Function from tokens to signatures.
    matcher : Matcher
        Function from signatures to pairs.
    band : tuple of float
        Range of normalised IDF of the kept signatures.
    sets : bool
        Count every signature once.
    text : callable or None
        Function from a document to its text; None for that of the experiment.
    """

    label: str
    signature: SignatureScheme
    matcher: Matcher
    band: tuple[float, float] = PAPER_BAND
    sets: bool = False
    text: Any = None

    @property
    def idf_filter(self) -> IdfFilter:
        """IDF filter of the band."""
        return IdfFilter(idf_min=self.band[0], idf_max=self.band[1])

    def task(self, function: Callable[..., dict[str, Any]], stored: Stored, **more: Any) -> Task:
        """Return the call of a function on signatures, with the method's filter and a join of the same pairs."""
        method = {"idf_filter": self.idf_filter, "matcher": equally_exact(self.matcher), "sets": self.sets}
        return Task(function=function, arguments={"stored": stored} | method | more)

    @classmethod
    def composed(cls, label: str, words: str, settings: Settings) -> Line:
        """Compose a method from overrides, as in ``signature=shingles3 tau=0.4``; without a band, it is `BAND`."""
        pinned = (f"{key}={value}" for key, value in zip(("idf_min", "idf_max"), BAND, strict=True))
        chosen = composed(*pinned, *shlex.split(words), f"seed={settings.seed}")
        band = chosen.idf_filter.idf_min, chosen.idf_filter.idf_max
        text = chosen.text if "text=" in words else None
        return cls(
            label=label, signature=chosen.signature, matcher=chosen.matcher, band=band, sets=chosen.sets, text=text
        )


def lines_of(methods: Mapping[str, str], settings: Settings) -> list[Line]:
    """Compose the methods of an experiment, given by label, in their order."""
    return [Line.composed(label, words, settings) for label, words in methods.items()]


@dataclass(frozen=True, kw_only=True)
class Work:
    """State of a running experiment.

    Attributes
    ----------
    settings : Settings
        Settings of the run.
    folder : Path
        Folder of its tables and figures.
    cells : Cells
        Cached results, shared with all other experiments.
    inputs : dict
        Inputs read so far, for the provenance.
    """

    settings: Settings
    folder: Path
    cells: Cells
    inputs: dict[str, Stored] = field(default_factory=dict)

    @classmethod
    def begin(cls, results: Path, settings: Settings, data: str | None = None) -> Work:
        """Open the folder ``results/<experiment>`` and the cache; `data` names the input if ``data=`` does not."""
        settings = settings if data is None else replace(settings, names=settings.names | {"data": data})
        cells = Cells(folder=results / "cells", workers=settings.workers)
        return cls(settings=settings, folder=results / settings.names["experiment"], cells=cells)

    def read(self, signature: SignatureScheme | None = None) -> Stored:
        """Return the collection of the settings with the given signatures, or a collection of vectors."""
        collection, text = self.settings.collection, self.settings.text
        if isinstance(collection, VectorCollection):
            signature = text = None
        return self._read([Source(collection=collection, text=text, signature=signature)])[0]

    def read_lines(self, lines: Sequence[Line], collection: Any = None) -> dict[str, Stored]:
        """Return the signatures of a collection, by default that of the settings, by the label of the method."""
        whole, text = collection or self.settings.collection, self.settings.text
        sources = [Source(collection=whole, text=line.text or text, signature=line.signature) for line in lines]
        return dict(zip((line.label for line in lines), self._read(sources), strict=True))

    def _read(self, sources: Sequence[Source]) -> list[Stored]:
        """Read the sources that were not read yet, each text once."""
        missing = {repr(source): source for source in sources if repr(source) not in self.inputs}
        found = read_together(list(missing.values()), self.cells.folder, self.settings.engine)
        self.inputs.update(zip(missing, found, strict=True))
        return [self.inputs[repr(source)] for source in sources]

    def parse_ms(self, signature: SignatureScheme) -> float | None:
        """Return the milliseconds of reading and extracting; None if other processes were active."""
        task = Task(function=time_extraction, arguments={"source": self.read(signature).source}, alone=True)
        [cell] = self.cells.run([task], "time of extraction")
        return None if cell["contended"] else float(cell["parse_ms"])

    def curves(self, lines: Sequence[Line], taus: Sequence[float], describe: str) -> dict[str, Curve]:
        """Return the quality curve of every line by label; that of a matcher without tau has a single point."""
        stored = self.read_lines(lines)
        tasks = [
            line.task(quality_curve, stored[line.label], taus=list(taus) if line.matcher.threshold is not None else [])
            for line in lines
        ]
        found = self.cells.run(tasks, describe)
        return {line.label: Curve(cell) for line, cell in zip(lines, found, strict=True)}

    def times(
        self,
        matchers: Sequence[tuple[Stored, IdfFilter | None, Matcher]],
        repeats: int,
        describe: str,
        *,
        base: Matcher | None = None,
        limit: float | None = None,
    ) -> list[dict[str, Any]]:
        """Return time, memory and counts of every matcher, measured one at a time with the threads of the settings.

        See `time_matcher`. A matcher that takes more than `limit` seconds is stopped, see `Task`.
        """
        threads = self.settings.threads or all_cores()
        tasks = [
            Task(
                function=time_matcher,
                arguments={
                    "stored": stored,
                    "idf_filter": band,
                    "matcher": matcher.with_threads(threads),
                    "repeats": repeats,
                    "base": base,
                },
                alone=True,
                limit=limit,
            )
            for stored, band, matcher in matchers
        ]
        return self.cells.run(tasks, describe)

    def of_collection(self, caption: str) -> str:
        """Return the caption with the name of the collection, if one was read and the caption does not name it."""
        name = self.settings.names["data"]
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

    def facts(self, facts: Sequence[Fact]) -> None:
        """Write ``facts.csv``, the values that claims are judged by."""
        write_facts(self.folder / "facts.csv", facts)

    def figure(
        self, draw: Callable[..., None], name: str, caption: str, panels: Any, points: Sequence[Point], **more: Any
    ) -> str:
        """Draw by a function of `experiments.show.figures` with provenance; return the path."""
        caption = self.of_collection(caption)
        draw(self.folder / name, panels, points, caption, **more)
        self.record(name, figure={"caption": caption})
        return f"{self.folder / name}.svg (also png, pdf, csv, json)"

    def record(self, name: str, **shown: Any) -> None:
        """Write ``<name>.json``: content of the table or figure, provenance, and the cached results used."""
        about = (
            shown
            | provenance()
            | {
                "experiment": self.settings.names["experiment"],
                "data": self.settings.names["data"],
                "seed": self.settings.seed,
                "inputs": sorted(repr(stored) for stored in self.inputs.values()),
                "cells": self.cells.log,
            }
        )
        write_json(self.folder / f"{name}.json", about)


def equally_exact(matcher: Matcher) -> Matcher:
    """Return the tight join instead of Algorithm 1: the same pairs, but faster at low thresholds."""
    return SpotSigsTight(tau=matcher.tau) if isinstance(matcher, SpotSigs) else matcher
