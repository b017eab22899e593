"""Functions of the notebooks: pages with known clusters, the pairs that a method misses, two texts side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from IPython.display import HTML

import spotsigs
from data.collections.gold import Gold
from data.collections.newsframes import NewsFrames
from data.collections.republished import Republished
from experiments.show.page_pairs import Piece, judged_pairs, marked
from spotsigs.engines import Serial
from spotsigs.records import Collection, Pairs, Signatures, SignatureScheme, Truth, Vectors
from spotsigs.signatures.extract import extract, texts
from spotsigs.text.visible import VisibleText

ROOT = next(path for path in [Path(__file__), *Path(__file__).parents] if (path / "run.py").exists())
CACHE = ROOT / "data" / "cache"


@dataclass(frozen=True)
class Labelled:
    """A collection whose duplicates are known."""

    name: str
    collection: Collection
    may_be_shown: bool

    def vectors(self, scheme: SignatureScheme, **band: float) -> tuple[Vectors, Truth]:
        """Return the signatures within a band of IDF, and the true clusters."""
        signatures = _extracted(self.collection, scheme)
        truth = Truth.from_clusters(signatures.clusters)
        assert truth is not None
        return spotsigs.IdfFilter(**band)(signatures), truth

    def side_by_side(self, pair: Sequence[int], scheme: SignatureScheme, characters: int = 700) -> HTML:
        """Return the passages of two pages that share most, in two columns; words of shared signatures are bold."""
        both = [text for row, text in enumerate(texts(self.collection, VisibleText())) if row in pair]
        cells = []
        for text, other in (both, both[::-1]):
            shown = ""
            for piece in _richest(marked(text, other, scheme), characters):
                part = escape(" ".join(piece.text.split()) if piece.text.strip() else " ")
                shown += f"<b>{part}</b> " if piece.kind == "shared" else f"{part} "
            cells.append(f'<td style="text-align:left; vertical-align:top; width:50%">… {shown} …</td>')
        return HTML(f"<table><tr>{''.join(cells)}</tr></table>")


def _richest(pieces: Sequence[Piece], characters: int) -> Sequence[Piece]:
    """Return the passage of about so many characters with the most shared text."""
    ends = np.cumsum([len(piece.text) for piece in pieces])
    shared = np.cumsum([len(piece.text) * (piece.kind == "shared") for piece in pieces])
    last = np.searchsorted(ends, ends + characters)
    gains = np.append(shared, shared[-1])[last] - shared
    first = int(gains.argmax())
    return pieces[first + 1 : int(last[first]) + 1]


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
            collections.append(Labelled(name, collection, False))
    return [*collections, Labelled("gold", Gold(cache=CACHE), True)]


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


def lost(pairs: Pairs, truth: Truth) -> np.ndarray:
    """Return the true pairs that were not found, shape (n, 2)."""
    return judged_pairs(pairs, truth)["missed"]


def true_pairs(truth: Truth) -> np.ndarray:
    """Return all pairs of pages of one cluster, shape (n, 2)."""
    none = np.empty(0, np.int64)
    return lost(Pairs.build(none, none, np.empty(0), len(truth.labels)), truth)
