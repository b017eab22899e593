"""The stages of one run, composed: pages to signatures, vectors, pairs, clusters and quality.

In memory all documents are one batch; with ``memory=``, `spotsigs.outofcore` matches them in parts. Both return the
same `Matched`, and all later stages take pairs in chunks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.row_blocks import gathered
from spotsigs.clustering.clusters import ClusterMethod, Cohesion, cluster, cohesion
from spotsigs.clustering.decisions import Decisions, Keep, decide, priority
from spotsigs.clustering.leaders import leaders_of
from spotsigs.contracts import Collection, CollectionScheme, Matcher, SignatureScheme, VectorCollection
from spotsigs.defaults import TAU
from spotsigs.engines import end_workers
from spotsigs.errors import InputError, require
from spotsigs.evaluation.metrics import Quality, evaluate
from spotsigs.evaluation.threshold import FLOOR, Suggestion, suggest
from spotsigs.formats.stored import StoredCollection
from spotsigs.in_memory import Extracted, Matched, corpus_of, extract_distinct
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.matching.thresholds import JoinedOnce
from spotsigs.records import Corpus, Signatures, Truth, Vectors
from spotsigs.runs.provenance import PeakMemory
from spotsigs.runs.settings import AUTO, Settings
from spotsigs.runs.stores import kept_store, own_store
from spotsigs.signatures.extract import nothing_readable, texts
from spotsigs.signatures.languages import count_in_shingles
from spotsigs.spelling import option

if TYPE_CHECKING:
    from spotsigs.outofcore.prefix_partition_join import PairFiles
    from spotsigs.outofcore.segments import Segments


@dataclass(frozen=True, kw_only=True)
class MatchedRun:
    """A matched collection, in memory or on disk.

    Attributes
    ----------
    matched : Matched
        Signatures and pairs.
    matcher : Matcher
        Method, with its threshold.
    label : str
        Name of the method that ran.
    suggestion : Suggestion or None
        Evidence for the threshold, if the user set none.
    peak_rss_bytes : int
        Largest resident memory of this process while matching; 0 for a run on disk.
    joined_at : float or None
        Threshold of the earlier join whose pairs, times and memory these are; None for a join of its own.
    locked : context manager
        Entered while pairs are read.
    earlier : ndarray of bool, shape (m,), or None
        True for those of the first m documents that an earlier run has kept.
    added_from : int
        Number of the first document of the collection; those before it were in the store.
    """

    matched: Matched[Any, Any]
    matcher: Matcher
    label: str
    suggestion: Suggestion | None = None
    peak_rss_bytes: int = 0
    joined_at: float | None = None
    locked: AbstractContextManager[object] = field(default_factory=nullcontext)
    earlier: NDArray[np.bool_] | None = None
    added_from: int = 0


@dataclass(frozen=True, kw_only=True)
class Outcome(MatchedRun):
    """One run's result: a matched collection with its clusters, decisions and quality.

    Attributes
    ----------
    decisions : Decisions
        Clusters, and the documents that are kept.
    cohesion : Cohesion
        Pairs inside the clusters.
    quality : Quality or None
        None if the collection has no truth.
    checksum : str
        SHA-256 over document ids, signature hashes and counts, the same for any format of the input.
    in_shingles : int
        Documents that are compared by shingles: of no known language, or with few spot signatures.
    """

    decisions: Decisions
    cohesion: Cohesion
    quality: Quality | None
    checksum: str
    in_shingles: int


def outcome_of(settings: Settings, folder: Path, say: Callable[[str], object], reuse: Reuse | None = None) -> Outcome:
    """Match a collection, group the pairs and evaluate them, in passes over chunks of the pairs.

    Parameters
    ----------
    settings : Settings
        Configuration of the run.
    folder : Path
        The run's folder, which contains the store of a run on disk unless ``store=`` names one.
    say : callable
        Receives messages on the resources of stages on disk.
    reuse : Reuse, optional
        Results of other runs on the same signatures.

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
    reuse = reuse or Reuse()
    # leaders of a copy need no list of all pairs, which grows with the squares of the sizes of clusters
    listed = settings.copy is None or settings.page or settings.clusters is not ClusterMethod.leaders
    found = (
        _in_memory(settings, reuse, listed)
        if settings.memory is None
        else _on_disk(settings, folder, settings.memory, say, listed)
    )
    matched, collection = found.matched, settings.collection
    with found.locked, PeakMemory() as memory:
        order = _priority(settings, found)
        if matched.leaders is None:
            groups = cluster(matched.pairs, clusters=settings.clusters, **order)
        else:
            began, seconds = perf_counter(), matched.pairs.seconds
            groups, pairs = matched.leaders(**order, both=settings.keep is Keep.none)
            pairs = replace(pairs, seconds={"sort_hash": 0.0, **seconds, "cluster": perf_counter() - began})
            matched = replace(matched, pairs=pairs)
            found = replace(found, matched=matched, peak_rss_bytes=memory.peak_bytes)
        inside = cohesion(groups, matched.pairs.chunks())
        decisions = decide(
            matched.pairs.chunks(),
            groups,
            settings.keep,
            earlier=found.earlier,
            copies=matched.copies,
            compared=None if found.matcher.reads_texts else matched.compared(),
        )
    # a new batch alone has no truth, for most of its pairs are with old documents; vectors have none
    known = not matched.new_from and not isinstance(collection, VectorCollection)
    truth = Truth.from_clusters(matched.signatures.clusters) if known else None
    return Outcome(
        **vars(found),
        decisions=decisions,
        cohesion=inside,
        quality=None if truth is None else evaluate(matched.pairs.chunks(), truth, groups, kept=decisions.kept),
        checksum=checksum(*_content(settings, matched)),
        in_shingles=_in_shingles(settings, matched.signatures),
    )


@dataclass(kw_only=True)
class Reuse:
    """Results that the cells of a sweep share, which differ in their thresholds alone; the first run sets the join.

    Attributes
    ----------
    extracted : Extracted or None
        Signatures; None if each run extracts its own.
    joined : JoinedOnce or None
        Pairs of the first run.
    peak_rss_bytes : int
        Largest resident memory of its join.
    """

    extracted: Extracted | None = None
    joined: JoinedOnce | None = None
    peak_rss_bytes: int = 0


def _in_memory(settings: Settings, reuse: Reuse, listed: bool) -> MatchedRun:
    """Run the stages on all documents at once; reuse signatures and pairs of earlier runs."""
    collection, text = settings.collection, settings.text
    known = reuse.extracted = reuse.extracted or extract_distinct(
        collection, text, settings.signature, settings.engine, strict=settings.strict, sameness=settings.copies
    )
    if not len(known.signatures) and known.signatures.skipped:
        raise nothing_readable(known.signatures.skipped)
    if reuse.joined is None:
        reuse.joined = JoinedOnce(corpus_of(collection, text, settings.idf_filter, known, sets=settings.sets))
    joined = reuse.joined
    suggestion = suggested(joined.corpus.vectors, settings.signature) if settings.auto else None
    matcher = settings.matcher if suggestion is None else settings.matcher.at(suggestion.tau)
    if not listed and isinstance(matcher, SpotSigsTight) and not any(known.signatures.clusters):
        matched = known.matched(joined.corpus, None)
        leaders = partial(leaders_of, matched.vectors, matcher.tau, matched.copies, threads=matcher.threads)
        matched = replace(matched, leaders=leaders)
        return MatchedRun(matched=matched, matcher=matcher, label=settings.matcher.label, suggestion=suggestion)
    joined_at = joined.at(matcher)
    if joined_at is None:
        matcher(_few_documents())  # compiles or loads the kernels, so that no time below includes that
    with PeakMemory() as memory:
        pairs = joined(matcher)
    if joined_at is None:
        reuse.peak_rss_bytes = memory.peak_bytes
    return MatchedRun(
        matched=known.matched(joined.corpus, pairs),
        matcher=matcher,
        label=settings.matcher.label,
        suggestion=suggestion,
        peak_rss_bytes=reuse.peak_rss_bytes,
        joined_at=joined_at,
    )


def _on_disk(settings: Settings, folder: Path, memory: int, say: Callable[[str], object], listed: bool) -> MatchedRun:
    from spotsigs.outofcore.pipeline import Store, VectorSettings, decided, fitting

    matcher, collection = settings.matcher, settings.collection
    method = matcher.on_store()
    if method is None:
        raise InputError(
            f"matcher={settings.names['matcher']} has no form for vectors on disk, which "
            f"{option('memory')} and {option('store')} need; take matcher=spotsigs_tight or spotsigs, or leave them out"
        )
    require(
        not isinstance(collection, VectorCollection),
        f"{option('memory')} and {option('store')} read pages, and data={settings.names['data']} has vectors; "
        "leave them out",
    )
    store = Store(
        folder=own_store(settings, folder) if settings.store is None else kept_store(settings.store),
        text=settings.text,
        scheme=settings.signature,
        engine=fitting(settings.engine, memory),
        memory=memory,
        say=say,
    )
    of = VectorSettings(idf_filter=settings.idf_filter, sets=settings.sets, sameness=settings.copies)

    def match(collection: Collection | None, add: bool) -> Matched[Segments, PairFiles]:
        return store.match(collection, method.tau, of, add=add, strict=settings.strict, listed=listed)

    matched = match(None if isinstance(collection, StoredCollection) else collection, settings.add)
    added_from = matched.new_from
    earlier = decided(store.folder, added_from) if added_from else None
    if added_from and earlier is None:
        say(f"no finished run has decided the {added_from:,} earlier documents of {store.folder}: all are decided now")
        matched = match(None, add=False)
    end_workers()  # the stages below use memory for each document
    return MatchedRun(
        matched=matched,
        matcher=matcher,
        label=method.label,
        locked=store.locked(),
        earlier=earlier,
        added_from=added_from,
    )


def _priority(settings: Settings, found: MatchedRun) -> dict[str, Any]:
    """Return the order in which documents are kept: those that an earlier run has kept come first."""
    signatures, n = found.matched.signatures, len(found.matched.doc_ids)
    lengths = None
    if settings.keep is Keep.longest:
        lengths = gathered(signatures.occurrences(), found.matched.copies.representatives)
    dates = signatures.dates if settings.keep is Keep.newest else ()
    order = priority(settings.keep, n, lengths, dates)
    if found.earlier is None:
        return {"priority": order}
    m = len(found.earlier)
    order = np.arange(n) if order is None else order
    order[:m] = order.min(initial=0) - 1
    return {"priority": order, "removed": np.concatenate([~found.earlier, np.zeros(n - m, np.bool_)])}


def suggested(vectors: Vectors, signature: SignatureScheme | None) -> Suggestion:
    """Return the threshold that the similarities of all pairs suggest.

    Raises
    ------
    InputError
        If they suggest none, and the signatures have no default.
    """
    from spotsigs.matching.prefix_join import self_join

    suggestion = suggest(self_join(vectors, FLOOR).similarity)
    if suggestion.tau is None and isinstance(signature, CollectionScheme):
        return suggestion.falling_back()
    if suggestion.tau is None:
        raise InputError(
            f"{option('tau', AUTO)} finds no threshold: {suggestion.reason}; set one, as in {option('tau', TAU)}, "
            f"or remove the templates that pages of one site share, the usual cause: {option('boilerplate', 'remove')}"
        )
    return suggestion


def _few_documents() -> Corpus:
    pages = ["one page of a few words.", "one page of a few words.", "another page."]
    ids = np.array([0, 1, 2, 3, 0, 1, 2, 3, 1, 4])
    return Corpus(
        Vectors.from_csr(np.array([0, 4, 8, 10]), ids, vocabulary=np.arange(5, dtype=np.uint64)), lambda: iter(pages)
    )


def readable_texts(settings: Settings, new_from: int = 0) -> Iterator[str | None]:
    """Return the text of every document, exact duplicates included; None for those that only a store has."""
    require(not isinstance(settings.collection, VectorCollection), "page=true needs pages; leave it out for vectors")
    if isinstance(settings.collection, StoredCollection):
        return iter(())
    return chain(repeat(None, new_from), texts(settings.collection, settings.text))


def _in_shingles(settings: Settings, signatures: Signatures | Segments) -> int:
    if isinstance(settings.collection, VectorCollection) or not settings.signature.tells_languages:
        return 0
    if isinstance(signatures, Signatures):
        return count_in_shingles(signatures.indptr, signatures.hashes)
    return signatures.in_shingles()


def _content(settings: Settings, matched: Matched[Any, Any]) -> tuple[Sequence[str], Iterator[NDArray[Any]]]:
    """Return the names and arrays that identify the input; vectors have no names."""
    signatures = matched.signatures
    if isinstance(signatures, Signatures):
        arrays = signatures.indptr, signatures.hashes, signatures.counts
        named = not isinstance(settings.collection, VectorCollection)
        return (matched.doc_ids, iter(arrays[1:])) if named else ((), iter(arrays))
    kinds = {"hashes": np.uint64, "counts": np.int32}
    stores = ((store, name) for name in kinds for store in signatures.stores())
    return matched.doc_ids, (store.array(name, kinds[name]) for store, name in stores)


def checksum(doc_ids: Iterable[str], arrays: Iterable[NDArray[Any]]) -> str:
    """Return the SHA-256 of document ids and arrays, which does not depend on how the arrays are cut."""
    digest = hashlib.sha256()
    for number, name in enumerate(doc_ids):
        digest.update((f"\n{name}" if number else name).encode("utf-8", "replace"))
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
