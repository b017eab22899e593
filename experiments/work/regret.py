"""Evaluation of a threshold that is suggested without labels."""

from __future__ import annotations

from typing import Any

from experiments.work.extracted_collections import Stored
from spotsigs.evaluation.metrics import micro_averages, tallies
from spotsigs.evaluation.threshold import FLOOR, suggest
from spotsigs.matching.prefix_join import self_join
from spotsigs.records import CollectionScheme
from spotsigs.signatures.idf import IdfFilter


def suggested(*, stored: Stored, idf_filter: IdfFilter) -> dict[str, Any]:
    """Suggest a threshold for a collection and evaluate it against the truth.

    Parameters
    ----------
    stored : Stored
        Signatures of a collection with truth.
    idf_filter : IdfFilter
        Filter of signatures.

    Returns
    -------
    dict
        ``tau`` and ``f1`` (None if none is suggested and there is no default), ``reason``, ``separation``,
        ``edges``, ``counts``.
    """
    pairs = self_join(stored.corpus(idf_filter).vectors, FLOOR, threads=1)
    suggestion, truth = suggest(pairs.similarity), stored.truth()
    if suggestion.tau is None and isinstance(stored.source.signature, CollectionScheme):
        suggestion = suggestion.falling_back()
    f1 = None
    if suggestion.tau is not None and truth is not None:
        f1 = float(micro_averages(*tallies(pairs.at(suggestion.tau), truth))[2])
    return {
        "tau": suggestion.tau,
        "f1": f1,
        "reason": suggestion.reason,
        "separation": suggestion.separation,
        "edges": suggestion.edges.tolist(),
        "counts": suggestion.counts.tolist(),
    }
