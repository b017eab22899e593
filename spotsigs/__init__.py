"""SpotSigs: exact near-duplicate detection with stopword-anchored signatures (Theobald, Siddharth, Paepcke 2008)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "1.0.0"

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
    from spotsigs.records import Clusters, Corpus, Document, Pairs, Truth, Vectors
    from spotsigs.signatures.idf import IdfFilter
    from spotsigs.signatures.spots import SpotSignatures
    from spotsigs.text.tokens import tokenize

# Public names by module; modules are imported at first use, because some load numba.
_NAMES = {
    "doors.api": ("dedup", "near_duplicates"),
    "clustering.clusters": ("cluster",),
    "errors": ("InputError",),
    "evaluation.metrics": ("evaluate", "relative_recall"),
    "matching.algorithm1": ("SpotSigs",),
    "matching.brute_force": ("BruteForce",),
    "matching.containment": ("Containment",),
    "matching.partitions": ("partition_boundaries",),
    "matching.prefix_join": ("SpotSigsTight", "join", "self_join"),
    "records": ("Clusters", "Corpus", "Document", "Pairs", "Truth", "Vectors"),
    "signatures.idf": ("IdfFilter",),
    "signatures.spots": ("SpotSignatures",),
    "text.tokens": ("tokenize",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "BruteForce", "Clusters", "Containment", "Corpus", "Document", "IdfFilter", "InputError", "Pairs",
    "SpotSignatures", "SpotSigs", "SpotSigsTight", "Truth", "Vectors", "cluster", "dedup", "evaluate", "join",
    "near_duplicates", "partition_boundaries", "relative_recall", "self_join", "tokenize",
]  # fmt: skip


if not TYPE_CHECKING:  # so that a misspelt name is an error to type checkers, not Any

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'spotsigs' has no attribute '{name}'")
        value = getattr(import_module(f"spotsigs.{_MODULES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, "__doc__", "__version__"})
