"""The stages, composed: collection to vectors, vectors to pairs, pairs to clusters and quality."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.copies import Copies, Sameness
from spotsigs.engines import Engine
from spotsigs.errors import InputError
from spotsigs.experiments.run.provenance import PeakMemory
from spotsigs.judging.clusters import ClusterMethod, Cohesion, cluster, cohesion
from spotsigs.judging.keep import Keep, priority
from spotsigs.judging.metrics import RESAMPLES, Quality, evaluate
from spotsigs.records import Clusters, Corpus, Matcher, PairChunks, Signatures, SignatureScheme, Skipped, Truth, Vectors
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.languages import count_in_shingles


@dataclass(frozen=True)
class Prepared:
    """A collection that is ready to be matched.

    Attributes
    ----------
    corpus : Corpus
        Vectors after the filters, and the texts.
    truth : Truth or None
        What the collection says is duplicate.
    skipped : tuple of Skipped
        Records that could not be read.
    parse_seconds : float
        Wall time of reading and extracting.
    content_bytes : int
        Bytes of content read.
    checksum : str
        SHA-256 over document ids, signature hashes and counts: the same for the same input, whatever its form.
    occurrences : ndarray of int64, shape (n,)
        Signature occurrences of each document before the filters: how much prose it has.
    dates : sequence of (str or None)
        Capture times.
    new_from : int
        Number of the first document that was added to a store now.
    copies : Copies
        Which documents are copies of which; the corpus holds an empty row and no text in place of each.
    texts : callable
        Iterates over the text of every page, copies too.
    in_shingles : int
        Documents in no known language, which are compared by shingles.
    numbers : ndarray of int64, shape (n,), optional
        Document number of each row of the vectors, which lie by length on disk; None where rows are documents.
    said_nothing : ndarray of bool, shape (n,)
        Whether the document that stands for each said nothing but boilerplate; empty where nobody looked.
    """

    corpus: Corpus
    truth: Truth | None
    skipped: Sequence[Skipped]
    parse_seconds: float
    content_bytes: int
    checksum: str
    occurrences: NDArray[np.int64]
    copies: Copies
    texts: Callable[[], Iterator[str | None]]
    dates: Sequence[str | None] = ()
    new_from: int = 0
    in_shingles: int = 0
    numbers: NDArray[np.int64] | None = None
    said_nothing: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))

    @property
    def doc_ids(self) -> Sequence[str]:
        """Document ids, by document number."""
        return self.corpus.vectors.doc_ids

    def signatures(self, documents: Iterable[int]) -> dict[int, dict[int, int]]:
        """Return the signatures of some documents that are matched, after all filters: hash and count, by document."""
        vectors, wanted = self.corpus.vectors, np.array(sorted(documents), np.int64)
        heads = self.copies.stands[wanted]
        rows = np.unique(heads) if self.numbers is None else np.flatnonzero(np.isin(self.numbers, heads))
        found = {}
        for row in rows.tolist():
            span = slice(int(vectors.indptr[row]), int(vectors.indptr[row + 1]))
            ids = vectors.ids[span]
            hashes = ids if vectors.vocabulary is None else vectors.vocabulary[ids]
            document = row if self.numbers is None else int(self.numbers[row])
            found[document] = dict(zip(hashes.tolist(), vectors.counts[span].tolist(), strict=True))
        return {document: found[head] for document, head in zip(wanted.tolist(), heads.tolist(), strict=True)}

    def compared(self) -> NDArray[np.bool_]:
        """Return whether each document, or the copy that stands for it, has signatures to be compared by."""
        filled: NDArray[np.bool_] = self.corpus.vectors.lengths > 0
        if self.numbers is not None:
            by_length, filled = filled, np.empty_like(filled)
            filled[self.numbers] = by_length
        return filled[self.copies.stands]

    def boilerplate(self) -> NDArray[np.bool_]:
        """Return whether each document says nothing but what many sites say."""
        if not len(self.said_nothing):
            return np.zeros(len(self.copies), np.bool_)
        return self.said_nothing[self.copies.stands]


@dataclass(frozen=True)
class Outcome:
    """One run's result.

    Attributes
    ----------
    prepared : Prepared
        What was matched.
    pairs : PairChunks
        What was found, in memory or on disk.
    clusters : Clusters
        The pairs, grouped.
    cohesion : Cohesion
        How well each cluster holds together.
    quality : Quality or None
        None where the collection brings no truth.
    peak_rss_bytes : int
        Largest resident memory of this process while matching; on disk, of all processes during the whole run.
    label : str
        Name of the method that ran.
    """

    prepared: Prepared
    pairs: PairChunks
    clusters: Clusters
    cohesion: Cohesion
    quality: Quality | None
    peak_rss_bytes: int
    label: str


def prepare(
    collection: Any,
    text: Any,
    signature: SignatureScheme,
    idf_filter: IdfFilter,
    engine: Engine,
    *,
    sets: bool = False,
    strict: bool = False,
    sameness: Sameness = Sameness.text,
) -> Prepared:
    """Read a collection and turn it into vectors.

    A collection of vectors (`vectors()` instead of `shards()`) is taken as it is.

    Parameters
    ----------
    collection : Collection
        Where the documents come from.
    text : callable
        ``(document) -> str``, the page's text.
    signature : SignatureScheme
        Tokens to signatures.
    idf_filter : IdfFilter
        Which signatures and documents take part.
    engine : Engine
        Where extraction runs.
    sets : bool
        Count every signature once.
    strict : bool
        Stop at the first record that cannot be read.
    sameness : Sameness
        Which documents are copies.

    Returns
    -------
    Prepared

    Raises
    ------
    InputError
        If the collection is empty, or a record is unreadable and ``strict`` is set.
    """
    began = perf_counter()
    if hasattr(collection, "vectors"):
        vectors: Vectors = collection.vectors()
        digest = checksum((), (vectors.indptr, vectors.ids, vectors.counts))
        corpus = Corpus(vectors.as_sets() if sets else vectors)
        copies = Copies.none(len(vectors))
        return Prepared(corpus, None, (), perf_counter() - began, 0, digest, vectors.lengths, copies, corpus.texts)
    signatures, copies, seconds = _extracted(_Call(collection, text, signature, engine), strict, sameness)
    if not len(signatures):
        bad = signatures.skipped
        first = f"; the first of {len(bad)} that cannot be read is {bad[0].id}: {bad[0].reason}" if bad else ""
        raise InputError(f"the collection holds no readable document{first}")
    vectors = idf_filter(signatures, copies)

    def distinct_texts() -> Iterator[str]:
        for page, distinct in zip(texts_of(collection, text), copies.distinct.tolist(), strict=True):
            yield page if distinct else ""

    corpus = Corpus(vectors.as_sets() if sets else vectors, distinct_texts)
    return Prepared(
        corpus,
        truth_of(collection, signatures.clusters, signatures.doc_ids),
        signatures.skipped,
        seconds,
        signatures.content_bytes,
        checksum(signatures.doc_ids, (signatures.hashes, signatures.counts)),
        signatures.occurrences(),
        copies,
        lambda: texts_of(collection, text),
        signatures.dates,
        said_nothing=signatures.boilerplate,
        in_shingles=count_in_shingles(signatures.indptr, signatures.hashes) if signature.tells_languages else 0,
    )


def match(
    prepared: Prepared,
    matcher: Matcher,
    method: ClusterMethod = ClusterMethod.components,
    keep: Keep = Keep.first,
    *,
    resamples: int = RESAMPLES,
) -> Outcome:
    """Match a prepared collection, group the pairs and judge them.

    Parameters
    ----------
    prepared : Prepared
        From `prepare`.
    matcher : Matcher
        Corpus to pairs.
    method : ClusterMethod
        What a cluster is.
    keep : Keep
        Which document of a cluster represents it.
    resamples : int
        Bootstrap resamples of the quality's intervals.

    Returns
    -------
    Outcome
    """
    matcher(_few_documents())  # compiles or loads the kernels, so that no time below includes that
    with PeakMemory() as memory:
        pairs = prepared.copies.spread(matcher(prepared.corpus))
    order = priority(keep, pairs.n, prepared.occurrences, prepared.dates)
    return judged(prepared, pairs, matcher.label, method, order, memory.peak_bytes, resamples=resamples)


def judged(
    prepared: Prepared,
    pairs: PairChunks,
    label: str,
    method: ClusterMethod,
    order: NDArray[np.int64],
    peak_rss_bytes: int = 0,
    *,
    resamples: int = RESAMPLES,
) -> Outcome:
    """Group pairs, in memory or on disk, and judge them; all passes are over their chunks.

    Parameters
    ----------
    prepared : Prepared
        What was matched.
    pairs : PairChunks
        What was found.
    label : str
        Name of the method that found them.
    method : ClusterMethod
        What a cluster is.
    order : ndarray of int64, shape (n,)
        The smallest value of a cluster is its representative, see `spotsigs.judging.keep.priority`.
    peak_rss_bytes : int
        Largest resident memory while matching.
    resamples : int
        Bootstrap resamples of the quality's intervals.

    Returns
    -------
    Outcome
    """
    clusters = cluster(pairs, clusters=method, priority=order)
    truth = prepared.truth
    quality = None if truth is None else evaluate(pairs.chunks(), truth, clusters, resamples=resamples)
    held = cohesion(clusters, pairs.chunks())
    return Outcome(prepared, pairs, clusters, held, quality, peak_rss_bytes, label)


def _few_documents() -> Corpus:
    texts = ["one page of a few words.", "one page of a few words.", "another page."]
    ids = np.array([0, 1, 2, 3, 0, 1, 2, 3, 1, 4])
    return Corpus(
        Vectors.from_csr(np.array([0, 4, 8, 10]), ids, vocabulary=np.arange(5, dtype=np.uint64)), lambda: iter(texts)
    )


class _Call(tuple[Any, ...]):
    """Arguments of an extraction, equal and hashed by what they print: the key of the cache within one process."""

    def __new__(cls, *parts: Any) -> _Call:
        return super().__new__(cls, parts)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __eq__(self, other: object) -> bool:
        return repr(self) == repr(other)


@lru_cache(maxsize=1)
def _extracted(call: _Call, strict: bool, sameness: Sameness) -> tuple[Signatures, Copies, float]:
    """Extract once for all runs of a sweep that read the same signatures; return them and the seconds it took."""
    from spotsigs.signatures.extract import extract

    began = perf_counter()
    signatures = extract(*call, strict=strict, sameness=sameness)
    return signatures, Copies.among(signatures, sameness), perf_counter() - began


def texts_of(collection: Any, text: Any) -> Iterator[str]:
    """Iterate over the text of every document of a collection, in order."""
    from spotsigs.signatures.extract import texts

    return texts(collection, text)


def truth_of(collection: Any, clusters: Iterable[str | None], doc_ids: Sequence[str]) -> Truth | None:
    """Return what a collection says is duplicate: its judged pairs, else the clusters of its documents, else None."""
    truth = Truth.from_clusters(clusters)
    if getattr(collection, "judgments", None) is None:
        return truth
    from spotsigs.data.formats.jsonl import read_judgments

    labels = truth.labels if truth else np.full(len(doc_ids), -1, np.int32)
    return Truth(labels, truth.names if truth else (), read_judgments(collection.judgments, doc_ids))


def checksum(doc_ids: Iterable[str], arrays: Iterable[NDArray[Any]]) -> str:
    """Return the SHA-256 of document ids and arrays: the same for the same documents, however many pieces they are."""
    digest = hashlib.sha256()
    for number, name in enumerate(doc_ids):
        digest.update((f"\n{name}" if number else name).encode("utf-8", "replace"))
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
