"""The report on thresholds of a collection: one exact join at the lowest threshold serves every higher one."""

from __future__ import annotations

from dataclasses import replace

from spotsigs.contracts import VectorCollection
from spotsigs.errors import require
from spotsigs.evaluation.text_lost import shares_lost
from spotsigs.evaluation.threshold import FLOOR
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.method import Method
from spotsigs.options import TAU
from spotsigs.reports.output_files import publishing, write_json, writing
from spotsigs.reports.threshold_page import PAGE, compare_thresholds, write_threshold_page
from spotsigs.runs.provenance import provenance
from spotsigs.runs.stages import Run, readable_texts
from spotsigs.storage.manifest import RUN, require_of_run

FILES = ("threshold.csv", "histogram.csv", PAGE, RUN)
"""Files of the report."""

MOST_GRAMS = 1 << 20
"""Word 5-grams, a sample by hash, from which the text lost at each threshold is estimated."""


def threshold_report(method: Method, run: Run) -> str:
    """Write ``threshold.html`` and its tables into the run's folder; return the proposal, for a terminal.

    Raises
    ------
    InputError
        If the collection has no pages.
    """
    require(not isinstance(run.collection, VectorCollection), f"{run.data} has vectors; a threshold page shows pages")
    folder = run.output.folder
    require_of_run(folder, FILES)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    extracted = method.extract(run.collection, run.engine, strict=run.strict, grams=MOST_GRAMS)
    join = method.prepare_join(run.collection, extracted)
    lowest = SpotSigsTight(tau=FLOOR)
    distinct, matched = join.match_distinct(lowest), join.match(lowest)
    tau = TAU if method.tau is None else method.tau
    lost = shares_lost(extracted.signatures.grams)
    comparison = compare_thresholds(replace(method, matcher=lowest), matched, distinct.similarity, tau, lost)
    with publishing(folder, RUN, PAGE, ()) as new:
        write_json(new / RUN, provenance() | {"method": method.spelled(run.spelling)})
        answer = write_threshold_page(new, run.data, comparison, matched, readable_texts(method, run), method.signature)
    return f"{answer}\n\npairs around each candidate: {folder / PAGE}"
