"""The report on thresholds of a collection: one exact join at the lowest threshold serves every higher one."""

from __future__ import annotations

from pathlib import Path

from spotsigs.contracts import VectorCollection
from spotsigs.errors import require
from spotsigs.evaluation.threshold import FLOOR
from spotsigs.in_memory import corpus_of, extract_distinct
from spotsigs.matching.prefix_join import self_join
from spotsigs.output_files import writing
from spotsigs.records import Truth
from spotsigs.reports.threshold_page import compare_thresholds, write_threshold_page
from spotsigs.runs.pipeline import readable_texts
from spotsigs.runs.settings import Settings
from spotsigs.signatures.extract import nothing_readable


def threshold_report(settings: Settings, folder: Path) -> str:
    """Write ``threshold.html`` and its tables into a folder; return the proposal, for a terminal.

    Raises
    ------
    InputError
        If the collection has no pages.
    """
    name, collection, text = settings.names["data"], settings.collection, settings.text
    require(not isinstance(collection, VectorCollection), f"{name} has vectors; a threshold page shows pages")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    known = extract_distinct(
        collection, text, settings.signature, settings.engine, strict=settings.strict, sameness=settings.copies
    )
    if not len(known.signatures):
        raise nothing_readable(known.signatures.skipped)
    corpus = corpus_of(collection, text, settings.idf_filter, known, sets=settings.sets)
    distinct = self_join(corpus.vectors, FLOOR, threads=settings.threads)
    matched = known.matched(corpus, distinct)
    truth = Truth.from_clusters(matched.signatures.clusters)
    comparison = compare_thresholds(matched.pairs, distinct.similarity, settings.tau, truth, settings.clusters)
    return write_threshold_page(folder, name, comparison, matched, readable_texts(settings), settings.signature)
