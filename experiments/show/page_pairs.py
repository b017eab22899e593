"""Pairs to look at: both pages' text, the spot signatures they share, similarity and cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.parallel import overlap
from spotsigs.clustering.clusters import cluster
from spotsigs.records import Corpus, Matcher, Pairs, SignatureScheme, Truth, Vectors
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.tokens import TOKEN_PATTERN, tokenize

KINDS = {"true": "true pairs", "false": "false pairs", "missed": "missed pairs"}
LONGEST = 40_000
"""Characters of a page that are shown."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A stretch of text: ``kind`` is ``shared``, ``own`` (a signature of this page only) or empty."""

    text: str
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class Page:
    """One side of a pair.

    Attributes
    ----------
    id, truth : str
        The document and its true cluster.
    found : str
        The cluster it was put into, and how many pages that has.
    pieces : sequence of Piece
        Its text, in order.
    """

    id: str
    truth: str
    found: str
    pieces: Sequence[Piece]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A pair of pages.

    Attributes
    ----------
    kind : str
        ``true``, ``false`` or ``missed``.
    similarity : float
        Multiset Jaccard of what the filter keeps.
    left, right : Page
        The two.
    """

    kind: str
    similarity: float
    left: Page
    right: Page


def sample_pairs(
    corpus: Corpus, truth: Truth, matcher: Matcher, scheme: SpotSignatures, *, each: int, seed: int
) -> list[Sample]:
    """Draw true, false and missed pairs of a matcher and mark what the pages share.

    Parameters
    ----------
    corpus : Corpus
        With texts.
    truth : Truth
        Clusters.
    matcher : Matcher
        Whose pairs are judged.
    scheme : SpotSignatures
        What is marked in the texts.
    each : int
        Pairs of every kind, or all where there are fewer.
    seed : int
        Of the draw.

    Returns
    -------
    list of Sample
        True, false, missed.
    """
    vectors = corpus.vectors
    pairs = matcher(corpus)
    groups = cluster(pairs)
    rng = np.random.default_rng(seed)
    chosen = [
        (kind, int(i), int(j))
        for kind, found in judged_pairs(pairs, truth).items()
        for i, j in rng.permutation(found)[:each].tolist()
    ]
    wanted = {row for _, i, j in chosen for row in (i, j)}
    texts = {row: text[:LONGEST] for row, text in enumerate(corpus.texts()) if row in wanted}
    samples = []
    for kind, i, j in chosen:
        sides = [
            Page(
                id=str(vectors.doc_ids[row]),
                truth=str(truth.names[truth.labels[row]]) if truth.labels[row] >= 0 else "none",
                found=f"{groups.labels[row]} ({groups.sizes[groups.labels[row]]} pages)",
                pieces=marked(texts[row], texts[other], scheme),
            )
            for row, other in ((i, j), (j, i))
        ]
        samples.append(Sample(kind=kind, similarity=similarity(vectors, i, j), left=sides[0], right=sides[1]))
    return samples


def judged_pairs(pairs: Pairs, truth: Truth) -> dict[str, NDArray[np.int64]]:
    """Return the rows of all true, false and missed pairs, each of shape (n, 2)."""
    reported = np.stack([pairs.i, pairs.j], axis=1).astype(np.int64)
    same = (truth.labels[pairs.i] == truth.labels[pairs.j]) & (truth.labels[pairs.i] >= 0)
    positive = [np.empty((0, 2), np.int64)]
    for label in range(len(truth.names)):
        rows = np.flatnonzero(truth.labels == label)
        a, b = np.triu_indices(len(rows), 1)
        positive.append(np.stack([rows[a], rows[b]], axis=1))
    wanted = np.concatenate(positive)
    missed = ~np.isin(wanted @ [pairs.n, 1], reported @ [pairs.n, 1])
    return {"true": reported[same], "false": reported[~same], "missed": wanted[missed]}


def similarity(vectors: Vectors, i: int, j: int) -> float:
    """Return the multiset Jaccard of two rows; 0 if both are empty."""
    edges = vectors.indptr
    shared = overlap(vectors.ids, vectors.counts, edges[i], edges[i + 1], edges[j], edges[j + 1])
    union = int(vectors.lengths[i] + vectors.lengths[j] - shared)
    return shared / union if union else 0.0


def marked(text: str, other: str, scheme: SignatureScheme) -> list[Piece]:
    """Cut a text where its signatures begin and end; those that the other text has, too, are shared.

    Parameters
    ----------
    text, other : str
        The text to show, and the one beside it.
    scheme : SignatureScheme
        What signatures are; nothing is marked where it cannot tell their tokens.

    Returns
    -------
    list of Piece
        They add up to the text. A word of a shared and of an own signature is shared.
    """
    tokens = tokenize(text)
    places = word_places(text)
    chains = scheme.chains(tokens)
    if chains is None or len(places) != len(tokens):  # a letter that lower-casing turns into several
        return [Piece(text=text)]
    theirs = Counter(scheme.readable(other))
    kinds = [""] * len(places)
    for signature, words in zip(scheme.readable(text), chains, strict=True):
        for word in words:
            kinds[word] = "shared" if theirs[signature] or kinds[word] == "shared" else "own"
    return _pieces(text, places, kinds)


def word_places(text: str) -> list[tuple[int, int]]:
    """Return where each token of a text begins and ends."""
    import regex

    places = []
    for run in regex.finditer(TOKEN_PATTERN, text):
        start, end = run.span()
        if run["unspaced"] and end - start > 1:
            places += [(k, k + 2) for k in range(start, end - 1)]
        else:
            places.append((start, end))
    return places


def _pieces(text: str, places: Iterable[tuple[int, int]], kinds: Iterable[str]) -> list[Piece]:
    pieces, at = [], 0
    for (start, end), kind in zip(places, kinds, strict=True):
        if kind and end > at:
            pieces += [Piece(text=text[at:start])] if start > at else []
            pieces.append(Piece(text=text[max(at, start) : end], kind=kind))
            at = end
    return [*pieces, *([Piece(text=text[at:])] if at < len(text) else [])]
