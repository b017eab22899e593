"""The stages of one run, composed: pages to signatures, vectors, pairs, clusters and quality.

In memory all documents are one batch; within ``memory=`` they pass in many, from `spotsigs.outofcore`. Both return
the same `Matched`, and everything behind it takes pairs in chunks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spotsigs import progress
from spotsigs.clustering.clusters import Cohesion, cluster, cohesion
from spotsigs.clustering.decisions import Decisions, Keep, decide, priority
from spotsigs.engines import end_workers
from spotsigs.errors import InputError, require
from spotsigs.evaluation.metrics import Quality, evaluate
from spotsigs.evaluation.threshold import FLOOR, Suggestion, suggest
from spotsigs.formats.stored import StoredCollection
from spotsigs.in_memory import Extracted, Matched, extract_distinct, match_in_memory
from spotsigs.records import (
    Collection,
    CollectionScheme,
    Corpus,
    Matcher,
    Pairs,
    Signatures,
    SignatureScheme,
    VectorCollection,
    Vectors,
)
from spotsigs.runs.provenance import PeakMemory
from spotsigs.runs.settings import AUTO, Settings
from spotsigs.runs.stores import kept_store, own_store
from spotsigs.signatures.extract import nothing_readable, texts
from spotsigs.signatures.languages import count_in_shingles
from spotsigs.storage.locations import as_path

if TYPE_CHECKING:
    from spotsigs.outofcore.prefix_partition_join import PairFiles
    from spotsigs.outofcore.segments import Segments


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One run's result.

    Attributes
    ----------
    matched : Matched
        What was found, in memory or on disk.
    matcher : Matcher
        The method, with the threshold that was taken.
    label : str
        Name of the method that ran.
    decisions : Decisions
        Clusters, and which documents are kept.
    cohesion : Cohesion
        Pairs inside the clusters.
    added_from : int
        Number of the first document of the collection; documents before it were in the store already.
    quality : Quality or None
        None where the collection brings no truth.
    checksum : str
        SHA-256 over document ids, signature hashes and counts: the same for the same input, whatever its form.
    in_shingles : int
        Documents in no known language, which are compared by shingles.
    suggestion : Suggestion or None
        Where the threshold comes from, if the user gave none.
    peak_rss_bytes : int
        Largest resident memory of this process while matching; 0 for a run on disk, which is watched as a whole.
    """

    matched: Matched[Any, Any]
    matcher: Matcher
    label: str
    decisions: Decisions
    cohesion: Cohesion
    added_from: int
    quality: Quality | None
    checksum: str
    in_shingles: int
    suggestion: Suggestion | None
    peak_rss_bytes: int


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
    progress.doing("reading and matching")
    trial = Trial(settings)
    if settings.memory is None:
        matched, label = _in_memory(settings, trial), settings.matcher.label
        found = MatchedRun(matched, label)
    else:
        found = _on_disk(settings, folder, settings.memory, say)
    matched, collection = found.matched, settings.collection
    with found.locked:
        groups = cluster(matched.pairs, clusters=settings.clusters, **_priority(settings, found))
        held = cohesion(groups, matched.pairs.chunks())
        decisions = decide(
            matched.pairs.chunks(),
            groups,
            settings.keep,
            earlier=found.earlier,
            copies=matched.copies,
            compared=None if trial.matcher.reads_texts else matched.compared(),
            boilerplate=matched.only_boilerplate(),
        )
    # a new batch alone has no truth, for most of its pairs are with old documents; vectors have none
    known = not matched.new_from and not isinstance(collection, VectorCollection)
    truth = collection.truth(matched.signatures.clusters, matched.doc_ids) if known else None
    return Outcome(
        matched=matched,
        matcher=trial.matcher,
        label=found.label,
        decisions=decisions,
        cohesion=held,
        added_from=found.added_from,
        quality=None if truth is None else evaluate(matched.pairs.chunks(), truth, groups, kept=decisions.kept),
        checksum=checksum(*_content(settings, matched)),
        in_shingles=_in_shingles(settings, matched.signatures),
        suggestion=trial.suggestion,
        peak_rss_bytes=trial.peak_rss_bytes,
    )


@dataclass(frozen=True)
class MatchedRun:
    """A matched collection, and what its place requires.

    Attributes
    ----------
    matched : Matched
        The pairs.
    label : str
        Name of the method that ran.
    locked : context manager
        Held while pairs are read.
    earlier : ndarray of bool, shape (m,), or None
        Which of the first m documents an earlier run has kept.
    added_from : int
        Number of the first document of the collection.
    """

    matched: Matched[Any, Any]
    label: str
    locked: AbstractContextManager[object] = field(default_factory=nullcontext)
    earlier: NDArray[np.bool_] | None = None
    added_from: int = 0


class Trial:
    """The matcher of a run in memory, at the threshold that is asked for or suggested, and what it took.

    Attributes
    ----------
    matcher : Matcher
        The method, once it has run with the threshold that was taken.
    suggestion : Suggestion or None
        Where that comes from, if the user gave none.
    peak_rss_bytes : int
        Largest resident memory of this process meanwhile.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings, self.matcher = settings, settings.matcher
        self.suggestion: Suggestion | None = None
        self.peak_rss_bytes = 0

    def __call__(self, corpus: Corpus) -> Pairs:
        """Return the pairs."""
        if self.settings.auto:
            self.suggestion = suggested(corpus.vectors, self.settings.signature)
            self.matcher = self.matcher.at(self.suggestion.tau)
        self.matcher(_few_documents())  # compiles or loads the kernels, so that no time below includes that
        with PeakMemory() as memory:
            pairs = self.matcher(corpus)
        self.peak_rss_bytes = memory.peak_bytes
        return pairs


_LAST: dict[str, Extracted] = {}
"""What the last run of this process extracted: the others of a sweep read the same signatures."""


def _in_memory(settings: Settings, trial: Trial) -> Matched[Signatures, Pairs]:
    collection = settings.collection
    of = collection, settings.text, settings.signature, settings.engine
    how: dict[str, Any] = {"strict": settings.strict, "sameness": settings.copies}
    key = repr((of, how))
    if key not in _LAST and not isinstance(collection, VectorCollection):
        _LAST.clear()
        _LAST[key] = extract_distinct(*of, **how)
        if not len(_LAST[key].signatures) and _LAST[key].signatures.skipped:
            raise nothing_readable(_LAST[key].signatures.skipped)
    return match_in_memory(
        *of[:3], settings.idf_filter, trial, settings.engine, sets=settings.sets, **how, known=_LAST.get(key)
    )


def _on_disk(settings: Settings, folder: Path, memory: int, say: Callable[[str], object]) -> MatchedRun:
    from spotsigs.outofcore.pipeline import decided, fitting, match_on_disk, store_locked

    matcher, collection = settings.matcher, settings.collection
    method = matcher.on_store()
    if method is None:
        raise InputError(
            f"matcher={settings.names['matcher']} has no form for vectors on disk, which memory= and store= need; "
            "take matcher=spotsigs_tight or spotsigs, or leave them out"
        )
    require(
        not isinstance(collection, VectorCollection),
        f"memory= and store= read pages, and data={settings.names['data']} brings vectors; leave them out",
    )
    store = own_store(settings, folder) if settings.store is None else kept_store(settings.store)
    engine = fitting(settings.engine, memory)

    def match(collection: Collection | None, add: bool) -> Matched[Segments, PairFiles]:
        return match_on_disk(
            store,
            collection,
            settings.text,
            settings.signature,
            settings.idf_filter,
            method.tau,
            engine,
            memory=memory,
            sets=settings.sets,
            add=add,
            sameness=settings.copies,
            strict=settings.strict,
            say=say,
        )

    matched = match(None if isinstance(collection, StoredCollection) else collection, settings.add)
    added_from = matched.new_from
    earlier = decided(store, added_from) if added_from else None
    if added_from and earlier is None:
        say(f"no finished run has decided the {added_from:,} earlier documents of {store}: all are decided now")
        matched = match(None, add=False)
    end_workers()  # what follows uses memory for each document
    return MatchedRun(matched, method.label, store_locked(as_path(store), say), earlier, added_from)


def _priority(settings: Settings, found: MatchedRun) -> dict[str, Any]:
    """Return the order in which documents are kept: those that an earlier run has kept come first."""
    signatures, n = found.matched.signatures, len(found.matched.doc_ids)
    lengths = signatures.occurrences() if settings.keep is Keep.longest else None
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
        raise InputError(f"tau={AUTO} finds no threshold here: {suggestion.reason}; give one, as in tau=0.44")
    return suggestion


def _few_documents() -> Corpus:
    pages = ["one page of a few words.", "one page of a few words.", "another page."]
    ids = np.array([0, 1, 2, 3, 0, 1, 2, 3, 1, 4])
    return Corpus(
        Vectors.from_csr(np.array([0, 4, 8, 10]), ids, vocabulary=np.arange(5, dtype=np.uint64)), lambda: iter(pages)
    )


def readable_texts(settings: Settings, new_from: int = 0) -> Iterator[str | None]:
    """Iterate over the text of every document, copies too; None for those that lie in a store alone."""
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
    """Return the names and the arrays that say what was matched; vectors have no names."""
    signatures = matched.signatures
    if isinstance(signatures, Signatures):
        arrays = signatures.indptr, signatures.hashes, signatures.counts
        named = not isinstance(settings.collection, VectorCollection)
        return (matched.doc_ids, iter(arrays[1:])) if named else ((), iter(arrays))
    kinds = {"hashes": np.uint64, "counts": np.int32}
    stores = ((store, name) for name in kinds for store in signatures.stores())
    return matched.doc_ids, (store.array(name, kinds[name]) for store, name in stores)


def checksum(doc_ids: Iterable[str], arrays: Iterable[NDArray[Any]]) -> str:
    """Return the SHA-256 of document ids and arrays: the same for the same documents, however many pieces they are."""
    digest = hashlib.sha256()
    for number, name in enumerate(doc_ids):
        digest.update((f"\n{name}" if number else name).encode("utf-8", "replace"))
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
