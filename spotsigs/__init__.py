"""SpotSigs: exact near-duplicate detection with stopword-anchored signatures (Theobald, Siddharth, Paepcke 2008)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "1.1.0"

if TYPE_CHECKING:
    from spotsigs.clustering.clusters import cluster
    from spotsigs.doors.api import dedup, near_duplicates
    from spotsigs.errors import InputError
    from spotsigs.evaluation.metrics import evaluate, relative_recall
    from spotsigs.matching.algorithm1 import SpotSigs
    from spotsigs.matching.brute_force import BruteForce
    from spotsigs.matching.containment import Containment
    from spotsigs.matching.partitions import partition_boundaries
    from spotsigs.matching.prefix_join import SpotSigsTight, join, self_join
    from spotsigs.method import Method
    from spotsigs.records import Clusters, Corpus, Document, Pairs, Truth, Vectors
    from spotsigs.signatures.idf import IdfFilter
    from spotsigs.signatures.spots import SpotSignatures
    from spotsigs.text.tokens import tokenize

__all__ = [  # noqa: RUF022 - by purpose
    # pages
    "dedup",
    "near_duplicates",
    "Method",
    "InputError",
    # features of your own
    "Vectors",
    "self_join",
    "join",
    "cluster",
    # quality
    "Truth",
    "evaluate",
    "relative_recall",
    # parts of a method
    "tokenize",
    "SpotSignatures",
    "IdfFilter",
    "SpotSigs",
    "SpotSigsTight",
    "BruteForce",
    "Containment",
    "partition_boundaries",
    # records
    "Document",
    "Corpus",
    "Pairs",
    "Clusters",
]

# Modules are imported at the first use of one of their names, because some load numba.
_MODULE = {
    "dedup": "doors.api",
    "near_duplicates": "doors.api",
    "Method": "method",
    "InputError": "errors",
    "Vectors": "records",
    "self_join": "matching.prefix_join",
    "join": "matching.prefix_join",
    "cluster": "clustering.clusters",
    "Truth": "records",
    "evaluate": "evaluation.metrics",
    "relative_recall": "evaluation.metrics",
    "tokenize": "text.tokens",
    "SpotSignatures": "signatures.spots",
    "IdfFilter": "signatures.idf",
    "SpotSigs": "matching.algorithm1",
    "SpotSigsTight": "matching.prefix_join",
    "BruteForce": "matching.brute_force",
    "Containment": "matching.containment",
    "partition_boundaries": "matching.partitions",
    "Document": "records",
    "Corpus": "records",
    "Pairs": "records",
    "Clusters": "records",
}

if not TYPE_CHECKING:  # so that a misspelt name is an error to type checkers, not Any

    def __getattr__(name: str) -> Any:
        if name not in _MODULE:
            raise AttributeError(f"module 'spotsigs' has no attribute '{name}'")
        value = getattr(import_module(f"spotsigs.{_MODULE[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, "__doc__", "__version__"})
