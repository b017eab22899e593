"""The report on thresholds of a collection: one exact join at the lowest threshold serves every higher one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spotsigs.errors import require
from spotsigs.in_memory import match_in_memory
from spotsigs.matching.prefix_join import self_join
from spotsigs.output_files import writing
from spotsigs.records import Corpus, Pairs, Truth, VectorCollection
from spotsigs.reports.threshold_page import Thresholds, compare_thresholds, write_threshold_page
from spotsigs.runs.pipeline import readable_texts
from spotsigs.runs.settings import Settings
from spotsigs.signatures.extract import nothing_readable


def threshold_report(settings: Settings, folder: Path, options: Thresholds) -> str:
    """Write ``threshold.html`` and its tables into a folder; return the proposal, for a terminal.

    Raises
    ------
    InputError
        If the collection has no pages.
    """
    name = settings.names["data"]
    require(not isinstance(settings.collection, VectorCollection), f"{name} has vectors; a threshold page shows pages")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    join = _ThresholdJoin(options.lowest, settings.threads)
    matched = match_in_memory(
        settings.collection,
        settings.text,
        settings.signature,
        settings.idf_filter,
        join,
        settings.engine,
        sets=settings.sets,
        strict=settings.strict,
        sameness=settings.copies,
    )
    if not len(matched.doc_ids):
        raise nothing_readable(matched.skipped)
    truth = Truth.from_clusters(matched.signatures.clusters)
    options = replace(options, clusters=settings.clusters)
    comparison = compare_thresholds(matched.pairs, join.similarities, settings.tau, truth, options)
    texts = readable_texts(settings)
    return write_threshold_page(folder, name, comparison, matched, texts, scheme=settings.signature, options=options)


class _ThresholdJoin:
    """The join at the lowest threshold, with the similarities of distinct pages."""

    def __init__(self, tau: float, threads: int | None) -> None:
        self.tau, self.threads = tau, threads
        self.similarities: NDArray[np.float64] = np.empty(0)

    def __call__(self, corpus: Corpus) -> Pairs:
        pairs = self_join(corpus.vectors, self.tau, threads=self.threads)
        self.similarities = pairs.similarity
        return pairs
