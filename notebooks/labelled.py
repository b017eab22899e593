"""Functions of the notebooks: pages with known clusters, and the quality of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import spotsigs
from data.collections.gold import Gold
from data.collections.newsframes import NewsFrames
from data.collections.republished import Republished
from spotsigs.contracts import Collection, SignatureScheme
from spotsigs.records import Pairs, Signatures, Truth, Vectors
from spotsigs.signatures.extract import extract, texts
from spotsigs.text.visible import VisibleText
from spotsigs.workers.engines import Serial

ROOT = next(path for path in [Path(__file__), *Path(__file__).parents] if (path / "run.py").exists())
CACHE = ROOT / "data" / "cache"


@dataclass(frozen=True)
class Labelled:
    """A collection whose duplicates are known."""

    name: str
    collection: Collection

    def vectors(self, scheme: SignatureScheme, **band: float) -> tuple[Vectors, Truth]:
        """Return the signatures within a band of IDF, and the true clusters."""
        signatures = _extracted(self.collection, scheme)
        truth = Truth.from_clusters(signatures.documents.clusters)
        assert truth is not None
        return spotsigs.IdfFilter(**band)(signatures), truth

    def longest_lines(self, characters: int = 100) -> list[str]:
        """Return the beginning of the longest line of each page; the first lines are mostly navigation."""
        lines = (text.strip().splitlines() or [""] for text in texts(self.collection, VisibleText()))
        return [" ".join(max(each, key=len).split())[:characters] for each in lines]


_KEPT: dict[str, Signatures] = {}


def _extracted(collection: Collection, scheme: SignatureScheme) -> Signatures:
    key = repr((collection, scheme))
    if key not in _KEPT:
        _KEPT[key] = extract(collection, VisibleText(), scheme, Serial())
    return _KEPT[key]


def labelled() -> list[Labelled]:
    """Return the real pages, if they have been downloaded, and the generated ones."""
    collections = []
    real = {"newsframes": NewsFrames(seed=5, cache=str(CACHE)), "republished": Republished(cache=str(CACHE))}
    for name, collection in real.items():
        try:
            collection.shards()
        except (spotsigs.InputError, OSError) as error:
            print(f"{name} is left out: {error}")
        else:
            collections.append(Labelled(name, collection))
    return [*collections, Labelled("gold", Gold(cache=CACHE))]


def quality(pairs: Pairs, truth: Truth) -> dict[str, object]:
    """Return precision, recall, F1 with its 95 % interval over resampled clusters, and the number of pairs."""
    found = spotsigs.evaluate(pairs, truth)
    low, high = found.intervals["f1"]
    row = {"precision": found.precision, "recall": found.recall, "F1": found.f1}
    return row | {"F1, 95 %": f"{low:.3f} to {high:.3f}", "pairs": len(pairs)}


def best(pairs: Pairs, truth: Truth) -> dict[str, object]:
    """Return the threshold with the highest F1 and its quality; the pairs are those of a low threshold."""
    taus = np.arange(0.06, 1.0, 0.02).round(2)
    tau = max(taus, key=lambda tau: np.nan_to_num(spotsigs.evaluate(pairs.at(tau), truth, resamples=0).f1))
    return {"tau": tau} | quality(pairs.at(tau), truth)


def true_pairs(truth: Truth) -> np.ndarray:
    """Return all pairs of pages of one cluster, shape (n, 2)."""
    pairs = [np.empty((0, 2), np.int64)]
    for label in range(len(truth.names)):
        rows = np.flatnonzero(truth.labels == label)
        a, b = np.triu_indices(len(rows), 1)
        pairs.append(np.stack([rows[a], rows[b]], axis=1))
    return np.concatenate(pairs)
