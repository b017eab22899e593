"""The pipeline in memory: from pages to signatures, vectors and pairs, in one batch.

`spotsigs.outofcore.pipeline` runs the same stages in many batches and returns the same pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Collection as SizedIterable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.row_blocks import gathered, scattered
from spotsigs.contracts import Collection, PairChunks, SignatureScheme, VectorCollection
from spotsigs.engines import Engine
from spotsigs.exact_duplicates import Copies, Sameness
from spotsigs.records import Clusters, Corpus, Document, Pairs, Signatures, Skipped, Vectors
from spotsigs.signatures.extract import extract, texts

SignaturesT = TypeVar("SignaturesT", bound=Any)  # Signatures, or Segments on disk
PairsT = TypeVar("PairsT", bound=PairChunks)


@dataclass(frozen=True, kw_only=True)
class Matched(Generic[SignaturesT, PairsT]):
    """Matched collection: signatures and pairs in memory, or `Segments` and `PairFiles` on disk.

    Attributes
    ----------
    doc_ids : sequence of str
        Id of each document.
    signatures : Signatures or Segments
        Signatures of all documents before the filters, old documents first. For a collection of vectors, ids replace
        the hashes.
    vectors : Vectors
        Signatures after the filters; the row of an exact duplicate is empty.
    rows : ndarray of int64, shape (n,)
        Document number of each row of the vectors, which are sorted by length on disk.
    copies : Copies
        Exact duplicates.
    pairs : PairChunks
        Similar pairs, with the wall seconds of ``extract`` and of the matcher's stages.
    skipped : collection of Skipped
        Records that could not be read; after an addition to a store, only those added.
    new_from : int
        Number of the first document that this run added to a store; 0 if all are new.
    leaders : callable, optional
        Finds the clusters of leaders and their pairs where no pairs are listed; takes ``priority, removed, both``, see
        `spotsigs.clustering.leaders.leaders_of`.
    """

    doc_ids: Sequence[str]
    signatures: SignaturesT
    vectors: Vectors
    rows: NDArray[np.int64]
    copies: Copies
    pairs: PairsT
    skipped: SizedIterable[Skipped]
    new_from: int = 0
    leaders: Callable[..., tuple[Clusters, Pairs]] | None = None

    def signatures_of(self, documents: Iterable[int]) -> dict[int, dict[int, int]]:
        """Return the counts of the signatures of some documents after all filters, by document and hash."""
        vectors, wanted = self.vectors, np.array(sorted(documents), np.int64)
        heads = self.copies.representatives[wanted]
        found = {}
        for row in np.flatnonzero(np.isin(self.rows, heads)).tolist():
            ids, counts = vectors.row(row)
            hashes = ids if vectors.vocabulary is None else vectors.vocabulary[ids]
            found[int(self.rows[row])] = dict(zip(hashes.tolist(), counts.tolist(), strict=True))
        return {document: found[head] for document, head in zip(wanted.tolist(), heads.tolist(), strict=True)}

    def compared(self) -> NDArray[np.bool_]:
        """Return whether each document, or its representative, has signatures after the filters."""
        return gathered(scattered(self.vectors.lengths > 0, self.rows), self.copies.representatives)


@dataclass(frozen=True)
class Extracted:
    """Signatures before the filters, exact duplicates, and the wall seconds of both.

    A collection of vectors has no signatures: ids replace the hashes, and ``vectors`` are given.
    """

    signatures: Signatures
    copies: Copies
    wall_seconds: float
    vectors: Vectors | None = None

    def matched(self, corpus: Corpus, pairs: Pairs | None) -> Matched[Signatures, Pairs]:
        """Return the result of a matcher of the corpus, with the pairs of the exact duplicates; None for no pairs."""
        none = np.empty(0, np.int32)
        listed = Pairs(none, none, np.empty(0), len(corpus.vectors))
        pairs = listed if pairs is None else self.copies.spread(pairs)
        return Matched(
            doc_ids=corpus.vectors.doc_ids,
            signatures=self.signatures,
            vectors=corpus.vectors,
            rows=np.arange(len(corpus.vectors)),
            copies=self.copies,
            pairs=replace(pairs, seconds={"extract": self.wall_seconds, **pairs.seconds}),
            skipped=self.signatures.skipped,
        )


def extract_distinct(
    collection: Collection | VectorCollection,
    text: Callable[[Document], str],
    scheme: SignatureScheme,
    engine: Engine,
    *,
    strict: bool = False,
    sameness: Sameness = Sameness.text,
) -> Extracted:
    """Extract signatures with `spotsigs.signatures.extract.extract` and find the exact duplicates."""
    began = perf_counter()
    if isinstance(collection, VectorCollection):
        vectors = collection.vectors()
        ids: Any = vectors.ids
        signatures = Signatures(vectors.doc_ids, (), vectors.indptr, ids, vectors.counts)
        return Extracted(signatures, Copies.none(len(vectors)), perf_counter() - began, vectors)
    signatures = extract(collection, text, scheme, engine, strict=strict, sameness=sameness)
    return Extracted(signatures, Copies.among(signatures, sameness), perf_counter() - began)


def corpus_of(
    collection: Collection | VectorCollection,
    text: Callable[[Document], str],
    idf_filter: Callable[[Signatures, Copies], Vectors],
    known: Extracted,
    *,
    sets: bool = False,
) -> Corpus:
    """Return the input of a matcher: filtered signatures, and the texts for a matcher that reads them."""
    filtered = idf_filter(known.signatures, known.copies) if known.vectors is None else known.vectors
    vectors = filtered.as_sets() if sets else filtered
    if isinstance(collection, VectorCollection):
        return Corpus(vectors)

    def distinct_texts() -> Iterator[str]:
        """Yield the text of each document; that of an exact duplicate is empty."""
        for page, distinct in zip(texts(collection, text), known.copies.distinct.tolist(), strict=True):
            yield page if distinct else ""

    return Corpus(vectors, distinct_texts)


def match_in_memory(
    collection: Collection | VectorCollection,
    text: Callable[[Document], str],
    scheme: SignatureScheme,
    idf_filter: Callable[[Signatures, Copies], Vectors],
    matcher: Callable[[Corpus], Pairs | None],
    engine: Engine,
    *,
    sets: bool = False,
    sameness: Sameness = Sameness.text,
) -> Matched[Signatures, Pairs]:
    """Find all pairs of a collection that fits into memory.

    Parameters
    ----------
    collection : Collection or VectorCollection
        Documents, or vectors, which are matched without extraction, filters and detection of exact duplicates.
    text, scheme, engine
        As in `spotsigs.signatures.extract.extract`.
    idf_filter : callable
        An `IdfFilter`, or another function from signatures and copies to vectors.
    matcher : callable
        Matcher, with its threshold. One that returns None lists no pairs, not even those of exact duplicates.
    sets : bool
        Count every signature once.
    sameness : Sameness
        Criterion for exact duplicates, which are pairs of similarity 1.

    Raises
    ------
    InputError
        If the scheme or the matcher rejects the input.
    """
    known = extract_distinct(collection, text, scheme, engine, sameness=sameness)
    corpus = corpus_of(collection, text, idf_filter, known, sets=sets)
    return known.matched(corpus, matcher(corpus))
