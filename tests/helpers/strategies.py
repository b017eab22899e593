"""Strategies of property tests: collections of signature multisets, rich in near duplicates and borderline pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from spotsigs.records import DocumentColumns, Pairs, RowNumbers, Signatures, Vectors


def examples(n: int, *, long: int | None = None, **more: int) -> settings:
    """Draw `n` examples in the quick tests, a tenth where kernels are interpreted, thousands in the long ones.

    The profile is chosen in ``conftest.py``. `long` is given where an example takes long; `more` are further settings.
    """
    drawn = {"interpreted": max(5, n // 10), "long": long or max(1000, 10 * n)}
    return settings(max_examples=drawn.get(settings.get_current_profile_name(), n), **more)


def is_long() -> bool:
    """Return whether the long tests run."""
    return settings.get_current_profile_name() == "long"


def edges(n: int) -> st.SearchStrategy[tuple[int, int]]:
    """Draw two of n rows in their order."""
    return st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda edge: edge[0] < edge[1])


MULTISETS = st.lists(st.dictionaries(st.integers(0, 12), st.integers(1, 5), max_size=8).map(Counter), max_size=12)
TAUS = (1 / 3, 0.44, 0.5, 0.8, 0.9, 1.0)


@st.composite
def collections(draw: st.DrawFn, largest: int = 14) -> list[Counter[int]]:
    """Draw multisets over a small universe, half of them edited copies of earlier ones, some of them empty."""
    documents: list[Counter[int]] = []
    for _ in range(draw(st.integers(0, largest))):
        if documents and draw(st.booleans()):
            document = Counter(draw(st.sampled_from(documents)))
            for signature, change in draw(st.lists(st.tuples(st.integers(0, 12), st.integers(-3, 3)), max_size=3)):
                document[signature] = max(0, document[signature] + change)
        else:
            document = Counter(draw(st.dictionaries(st.integers(0, 12), st.integers(1, 4), max_size=7)))
        documents.append(+document)
    return documents


@st.composite
def borderline_collections(draw: st.DrawFn) -> tuple[list[Counter[int]], float]:
    """Draw a threshold of small terms and pairs of documents that reach it exactly, or miss it by one unit."""
    shared, union = draw(st.sampled_from([(1, 3), (11, 25), (1, 2), (4, 5), (8, 10), (9, 10), (12, 15), (7, 10)]))
    scale = draw(st.integers(1, 4))
    documents = []
    for _ in range(draw(st.integers(1, 4))):
        overlap = max(1, shared * scale + draw(st.integers(-1, 1)))
        rest = union * scale - overlap
        left = draw(st.integers(0, max(0, rest)))
        offset = draw(st.integers(0, 3))
        common = Counter(draw(st.lists(st.integers(offset, offset + 5), min_size=overlap, max_size=overlap)))
        documents.append(common + Counter({100 + offset: left} if left else {}))
        documents.append(common + Counter({200 + offset: rest - left} if rest > left else {}))
    return [+document for document in documents], shared / union


def vectors_of(documents: Sequence[Mapping[int, int]], vocabulary: Sequence[int] | None = None) -> Vectors:
    """Return vectors whose rows count the ids of each document."""
    indptr = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    ids = np.array([s for document in documents for s in sorted(document)], np.int32)
    counts = np.array([document[s] for document in documents for s in sorted(document)], np.int32)
    lengths = np.array([sum(document.values()) for document in documents], np.int64)
    hashes = None if vocabulary is None else np.array(vocabulary, np.uint64)
    return Vectors(indptr, ids, counts, lengths, RowNumbers(len(documents)), hashes)


def pairs_of(edges: Iterable[Sequence[float]], n: int, similarity: float = 1) -> Pairs:
    """Return pairs of n documents; edges of two rows have the same similarity, others name it."""
    rows = [(*edge, similarity)[:3] for edge in edges]
    i, j, values = (np.array([row[k] for row in rows], kind) for k, kind in enumerate((np.int64, np.int64, float)))
    return Pairs.build(i, j, values, n)


def triples(pairs: Pairs) -> list[tuple[int, int, float]]:
    """Return the pairs as tuples of two rows and their similarity."""
    return list(zip(pairs.i.tolist(), pairs.j.tolist(), pairs.similarity.tolist(), strict=True))


def by_rows(pairs: Pairs, order: Sequence[int] | None = None) -> dict[tuple[int, int], float]:
    """Return the similarity by pair of rows, or of documents if row ``r`` is document ``order[r]``."""
    if order is None:
        return {(i, j): similarity for i, j, similarity in triples(pairs)}
    ends = ((int(order[i]), int(order[j]), similarity) for i, j, similarity in triples(pairs))
    return {(min(a, b), max(a, b)): similarity for a, b, similarity in ends}


def signatures_of(documents: Iterable[Iterable[tuple[int, int]]]) -> Signatures:
    """Return signatures from the hashes and counts of each document."""
    rows = list(map(list, documents))
    hashes, counts = np.array([entry for row in rows for entry in row], object).reshape(-1, 2).T
    names, indptr = tuple(map(str, range(len(rows)))), np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Signatures(DocumentColumns(names), indptr, hashes.astype(np.uint64), counts.astype(np.int32))


def rows_of_signatures(signatures: Signatures) -> list[dict[int, int]]:
    """Return the count of each signature by document."""
    values = list(zip(signatures.hashes.tolist(), signatures.counts.tolist(), strict=True))
    return [dict(values[a:b]) for a, b in pairwise(signatures.indptr.tolist())]
