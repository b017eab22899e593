"""The stages of one run, composed: pages to signatures, vectors, pairs, clusters and quality.

In memory all documents are one batch; within ``memory=`` they pass in many, from `spotsigs.crawl`. Both give the same
`Matched`, and everything behind it takes pairs in chunks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.spans import gathered, scattered
from spotsigs.copies import Copies
from spotsigs.data.collections.stored import StoredCollection
from spotsigs.errors import InputError, require
from spotsigs.experiments import telling
from spotsigs.experiments.run.provenance import PeakMemory
from spotsigs.experiments.run.stores import kept_store, own_store
from spotsigs.experiments.settings import AUTO, Settings
from spotsigs.judging.clusters import Cohesion
from spotsigs.judging.groups import Grouped, group
from spotsigs.judging.keep import Keep, priority
from spotsigs.judging.metrics import Quality, evaluate
from spotsigs.judging.threshold import FLOOR, Suggestion, suggest
from spotsigs.records import (
    Clusters,
    CollectionScheme,
    Corpus,
    Matcher,
    PairChunks,
    Signatures,
    SignatureScheme,
    Skipped,
    Truth,
    VectorCollection,
    Vectors,
)
from spotsigs.signatures.extract import extract, nothing_readable, texts
from spotsigs.signatures.languages import count_in_shingles

if TYPE_CHECKING:
    from spotsigs.crawl.segments import Segments

CHUNK = 16
"""Share of the budget that pairs may take while they pass: names and tables take the rest."""


@dataclass(frozen=True, kw_only=True)
class Matched:
    """What was matched and what was found, in memory or on disk.

    Attributes
    ----------
    doc_ids : sequence of str
        By document number.
    vectors : Vectors
        Signatures after the filters; the row of a copy is empty.
    rows : ndarray of int64, shape (n,)
        Document number of each row of the vectors, which lie by length on disk.
    copies : Copies
        Which documents are copies of which.
    pairs : PairChunks
        What was found.
    matcher : Matcher
        The method, with the threshold that was taken.
    label : str
        Name of the method that ran.
    groups : Grouped
        What the pairs say of the documents.
    checksum : str
        SHA-256 over document ids, signature hashes and counts: the same for the same input, whatever its form.
    truth : Truth or None
        What the collection says is duplicate.
    skipped : collection of Skipped
        Records that could not be read.
    parse_seconds : float
        Wall time of reading and extracting.
    boilerplate : ndarray of bool, shape (n,)
        Whether each document says nothing but what many sites say; empty where nobody looked.
    in_shingles : int
        Documents in no known language, which are compared by shingles.
    new_from : int
        Number of the first document that was added to a store now.
    suggestion : Suggestion or None
        Where the threshold comes from, if the user gave none.
    peak_rss_bytes : int
        Largest resident memory of this process while matching; on disk, of all processes during the whole run.
    """

    doc_ids: Sequence[str]
    vectors: Vectors
    rows: NDArray[np.int64]
    copies: Copies
    pairs: PairChunks
    matcher: Matcher
    label: str
    groups: Grouped
    checksum: str
    truth: Truth | None = None
    skipped: Collection[Skipped] = ()
    parse_seconds: float = 0.0
    boilerplate: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    in_shingles: int = 0
    new_from: int = 0
    suggestion: Suggestion | None = None
    peak_rss_bytes: int = 0

    def signatures(self, documents: Iterable[int]) -> dict[int, dict[int, int]]:
        """Return the signatures of some documents that are matched, after all filters: hash and count, by document."""
        vectors, wanted = self.vectors, np.array(sorted(documents), np.int64)
        heads = self.copies.stands[wanted]
        found = {}
        for row in np.flatnonzero(np.isin(self.rows, heads)).tolist():
            ids, counts = vectors.row(row)
            hashes = ids if vectors.vocabulary is None else vectors.vocabulary[ids]
            found[int(self.rows[row])] = dict(zip(hashes.tolist(), counts.tolist(), strict=True))
        return {document: found[head] for document, head in zip(wanted.tolist(), heads.tolist(), strict=True)}

    def compared(self) -> NDArray[np.bool_]:
        """Return whether each document, or the copy that stands for it, has signatures to be compared by."""
        return gathered(scattered(self.vectors.lengths > 0, self.rows), self.copies.stands)

    def only_boilerplate(self) -> NDArray[np.bool_]:
        """Return whether each document says nothing but what many sites say."""
        if not len(self.boilerplate):
            return np.zeros(len(self.copies), np.bool_)
        return gathered(self.boilerplate, self.copies.stands)


@dataclass(frozen=True)
class Outcome:
    """One run's result.

    Attributes
    ----------
    matched : Matched
        What was found.
    clusters : Clusters
        The pairs, grouped.
    cohesion : Cohesion
        How well each cluster holds together.
    quality : Quality or None
        None where the collection brings no truth.
    """

    matched: Matched
    clusters: Clusters
    cohesion: Cohesion
    quality: Quality | None


def outcome_of(settings: Settings, folder: Path, say: Callable[[str], object]) -> Outcome:
    """Match a collection, group the pairs and judge them; all passes are over their chunks.

    Parameters
    ----------
    settings : Settings
        What to run.
    folder : Path
        The run's folder; holds the store of a run on disk where ``store=`` names none.
    say : callable
        Called with what each stage on disk is going to take.

    Returns
    -------
    Outcome
        The same in memory and within ``memory=``; with ``add=true``, of the pairs with at least one new document.

    Raises
    ------
    InputError
        If the collection is empty, a record is unreadable and ``strict`` is set, the matcher or the collection has no
        form on disk, or no threshold can be suggested.
    """
    telling.doing("reading and matching")
    if settings.memory is not None:
        matched = _on_disk(settings, folder, settings.memory, say)
    elif isinstance(settings.collection, VectorCollection):
        matched = _of_vectors(settings)
    else:
        matched = _in_memory(settings)
    truth, clusters = matched.truth, matched.groups.clusters
    quality = None if truth is None else evaluate(matched.pairs.chunks(), truth, clusters)
    return Outcome(matched, clusters, matched.groups.cohesion, quality)


def _of_vectors(settings: Settings) -> Matched:
    """Match a collection of vectors, which are taken as they are."""
    began = perf_counter()
    vectors = settings.collection.vectors()
    seconds = perf_counter() - began
    return _matched(
        settings,
        Corpus(vectors.as_sets() if settings.sets else vectors),
        Copies.none(len(vectors)),
        order=priority(settings.keep, len(vectors), vectors.lengths, ()),
        checksum=checksum((), (vectors.indptr, vectors.ids, vectors.counts)),
        parse_seconds=seconds,
    )


def _in_memory(settings: Settings) -> Matched:
    signatures, copies, seconds = _extracted(settings)
    if not len(signatures):
        raise nothing_readable(signatures.skipped)
    vectors = settings.idf_filter(signatures, copies)

    def distinct_texts() -> Iterator[str]:
        pages = texts(settings.collection, settings.text)
        for page, distinct in zip(pages, copies.distinct.tolist(), strict=True):
            yield page if distinct else ""

    return _matched(
        settings,
        Corpus(vectors.as_sets() if settings.sets else vectors, distinct_texts),
        copies,
        order=priority(settings.keep, len(vectors), signatures.occurrences(), signatures.dates),
        checksum=checksum(signatures.doc_ids, (signatures.hashes, signatures.counts)),
        truth=settings.collection.truth(signatures.clusters, signatures.doc_ids),
        skipped=signatures.skipped,
        parse_seconds=seconds,
        boilerplate=signatures.boilerplate,
        in_shingles=_in_shingles(settings, lambda: count_in_shingles(signatures.indptr, signatures.hashes)),
    )


def _matched(
    settings: Settings, corpus: Corpus, copies: Copies, order: NDArray[np.int64] | None, **known: Any
) -> Matched:
    """Match a corpus in memory."""
    matcher, suggestion = settings.matcher, None
    if settings.auto:
        suggestion = suggested(corpus.vectors, settings.signature)
        matcher = matcher.at(suggestion.tau)
    matcher(_few_documents())  # compiles or loads the kernels, so that no time below includes that
    with PeakMemory() as memory:
        pairs = copies.spread(matcher(corpus))
    return Matched(
        doc_ids=corpus.vectors.doc_ids,
        vectors=corpus.vectors,
        rows=np.arange(len(corpus.vectors)),
        copies=copies,
        pairs=pairs,
        groups=group(pairs, clusters=settings.clusters, priority=order),
        matcher=matcher,
        label=matcher.label,
        suggestion=suggestion,
        peak_rss_bytes=memory.peak_bytes,
        **known,
    )


def _on_disk(settings: Settings, folder: Path, memory: int, say: Callable[[str], object]) -> Matched:
    from spotsigs.crawl.stages_on_disk import fitting, group_on_disk, match_on_disk

    matcher, collection = settings.matcher, settings.collection
    method = matcher.on_store()
    if method is None:
        raise InputError(
            f"matcher={settings.names['matcher']} has no form for vectors on disk, which memory= and store= need; "
            "take matcher=spotsigs_tight, spotsigs or sketch, or leave them out"
        )
    require(
        not isinstance(collection, VectorCollection),
        f"memory= and store= read pages, and data={settings.names['data']} brings vectors; leave them out",
    )
    engine = fitting(settings.engine, memory)
    found = match_on_disk(
        own_store(settings, folder) if settings.store is None else kept_store(settings.store),
        None if isinstance(collection, StoredCollection) else collection,
        settings.text,
        settings.signature,
        settings.idf_filter,
        method.tau,
        engine,
        memory=memory,
        sets=settings.sets,
        add=settings.add,
        sameness=settings.copies,
        strict=settings.strict,
        search=None if method.search is None else (repr(matcher), method.search),
        say=say,
    )
    segments, stored = found.segments, found.stored
    # a new batch alone has no truth, for most of its pairs are with old documents
    truth = None if found.new_from else collection.truth(segments.clusters(), stored.doc_ids)
    return Matched(
        doc_ids=stored.doc_ids,
        vectors=stored.vectors,
        rows=stored.rows,
        copies=stored.copies,
        pairs=found.pairs.within(found.budget // CHUNK),
        matcher=matcher,
        groups=group_on_disk(
            found, engine, clusters=settings.clusters, priority=_order(settings.keep, segments), say=say
        ),
        label=method.label,
        checksum=checksum(stored.doc_ids, _hashes_and_counts(segments)),
        truth=truth,
        skipped=found.added.skipped_records(),
        parse_seconds=found.pairs.seconds["extract"],
        boilerplate=segments.boilerplate(),
        in_shingles=_in_shingles(settings, segments.in_shingles),
        new_from=found.new_from,
    )


def _order(keep: Keep, segments: Segments) -> NDArray[np.int64] | None:
    lengths = segments.occurrences() if keep is Keep.longest else None
    return priority(keep, int(segments.sizes().sum()), lengths, segments.dates() if keep is Keep.newest else ())


def _in_shingles(settings: Settings, count: Callable[[], int]) -> int:
    return count() if settings.signature.tells_languages else 0


def _hashes_and_counts(segments: Segments) -> Iterator[NDArray[Any]]:
    for array, kind in (("hashes", np.uint64), ("counts", np.int32)):
        for store in segments.stores():
            yield store.array(array, kind)


def suggested(vectors: Vectors, signature: SignatureScheme | None) -> Suggestion:
    """Return the threshold that the similarities of all pairs suggest.

    Raises
    ------
    InputError
        If they suggest none, and the signatures have no default.
    """
    from spotsigs.matching.tight import self_join

    suggestion = suggest(self_join(vectors, FLOOR).similarity)
    if suggestion.tau is None and isinstance(signature, CollectionScheme):
        return suggestion.falling_back()
    if suggestion.tau is None:
        raise InputError(f"tau={AUTO} finds no threshold here: {suggestion.reason}; give one, as in tau=0.44")
    return suggestion


def _few_documents() -> Corpus:
    pages = ["one page of a few words.", "one page of a few words.", "another page."]
    ids = np.array([0, 1, 2, 3, 0, 1, 2, 3, 1, 4])
    return Corpus(
        Vectors.from_csr(np.array([0, 4, 8, 10]), ids, vocabulary=np.arange(5, dtype=np.uint64)), lambda: iter(pages)
    )


_LAST: dict[str, tuple[Signatures, Copies, float]] = {}
"""What the last run of this process extracted: the others of a sweep read the same signatures."""


def _extracted(settings: Settings) -> tuple[Signatures, Copies, float]:
    """Return the signatures, which of them are copies, and the seconds that took, once for all runs of a sweep."""
    call = settings.collection, settings.text, settings.signature, settings.engine
    key = repr((call, settings.strict, settings.copies))
    if key not in _LAST:
        _LAST.clear()
        began = perf_counter()
        signatures = extract(*call, strict=settings.strict, sameness=settings.copies)
        copies = Copies.among(signatures, settings.copies)
        _LAST[key] = signatures, copies, perf_counter() - began
    return _LAST[key]


def readable_texts(settings: Settings, new_from: int = 0) -> Iterator[str | None]:
    """Iterate over the text of every document, copies too; None for those that lie in a store alone."""
    require(not isinstance(settings.collection, VectorCollection), "page=true needs pages; leave it out for vectors")
    if isinstance(settings.collection, StoredCollection):
        return iter(())
    return chain(repeat(None, new_from), texts(settings.collection, settings.text))


def checksum(doc_ids: Iterable[str], arrays: Iterable[NDArray[Any]]) -> str:
    """Return the SHA-256 of document ids and arrays: the same for the same documents, however many pieces they are."""
    digest = hashlib.sha256()
    for number, name in enumerate(doc_ids):
        digest.update((f"\n{name}" if number else name).encode("utf-8", "replace"))
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
