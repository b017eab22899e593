"""SpotSigs: exact near-duplicate detection with stopword-anchored signatures (Theobald, Siddharth, Paepcke 2008)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spotsigs.kernel_cache import find_place

find_place()

__version__ = "0.1.0"

if TYPE_CHECKING:
    from spotsigs.api import near_duplicates
    from spotsigs.brute_force import BruteForce
    from spotsigs.clusters import cluster
    from spotsigs.errors import InputError
    from spotsigs.join import SpotSigsTight, self_join
    from spotsigs.matcher import SpotSigs
    from spotsigs.metrics import evaluate, relative_recall
    from spotsigs.partitions import partition_boundaries
    from spotsigs.records import Clusters, Corpus, Document, Pairs, Truth, Vectors
    from spotsigs.signatures import SpotSignatures
    from spotsigs.tokens import tokenize
    from spotsigs.vectors import IdfFilter

# Where each public name lives; modules are imported at first use, because some load numba.
_HOME = {
    "near_duplicates": "api",
    "BruteForce": "brute_force",
    "cluster": "clusters",
    "InputError": "errors",
    "SpotSigsTight": "join",
    "self_join": "join",
    "SpotSigs": "matcher",
    "evaluate": "metrics",
    "relative_recall": "metrics",
    "partition_boundaries": "partitions",
    "Clusters": "records",
    "Corpus": "records",
    "Document": "records",
    "Pairs": "records",
    "Truth": "records",
    "Vectors": "records",
    "SpotSignatures": "signatures",
    "tokenize": "tokens",
    "IdfFilter": "vectors",
}

__all__ = [
    "BruteForce",
    "Clusters",
    "Corpus",
    "Document",
    "IdfFilter",
    "InputError",
    "Pairs",
    "SpotSignatures",
    "SpotSigs",
    "SpotSigsTight",
    "Truth",
    "Vectors",
    "cluster",
    "evaluate",
    "near_duplicates",
    "partition_boundaries",
    "relative_recall",
    "self_join",
    "tokenize",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'spotsigs' has no attribute '{name}'")
    value = getattr(import_module(f"spotsigs.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
