"""Strategies of property tests: collections of signature multisets, rich in near duplicates and borderline pairs."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from spotsigs.records import Vectors


def examples(n: int, *, long: int | None = None, **more: int) -> settings:
    """Draw `n` examples in the quick tests, a tenth where kernels are interpreted, thousands in the long ones.

    The profile is chosen in ``conftest.py``. `long` is given where an example takes long; `more` are further settings.
    """
    drawn = {"interpreted": max(5, n // 10), "long": long or max(1000, 10 * n)}
    return settings(max_examples=drawn.get(settings.get_current_profile_name(), n), **more)


def is_long() -> bool:
    """Return whether the long tests run."""
    return settings.get_current_profile_name() == "long"


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


def vectors(documents: list[Counter[int]]) -> Vectors:
    """Return the vectors of drawn multisets."""
    indptr = np.cumsum([0, *(len(document) for document in documents)])
    ids = [signature for document in documents for signature in sorted(document)]
    counts = [document[signature] for document in documents for signature in sorted(document)]
    return Vectors.from_csr(indptr, np.array(ids, np.int64), np.array(counts, np.int64))
