"""The result of a run: pairs, clusters, decisions and quality, with the method that made them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.row_blocks import is_identity
from spotsigs.clustering.clusters import Cohesion, cohesion
from spotsigs.clustering.decisions import Decisions
from spotsigs.clustering.in_memory import Matched
from spotsigs.contracts import Collection, VectorCollection
from spotsigs.evaluation.metrics import FIGURES, Quality, evaluate
from spotsigs.evaluation.text_lost import TextLost
from spotsigs.method import Method, Spelling
from spotsigs.records import Truth
from spotsigs.runs.provenance import MIB
from spotsigs.runs.warnings import near_tau
from spotsigs.signatures.languages import marks_shingles, names_of_languages

FEW = 10
"""Fewer signatures decide about a document by a few words."""

SPARSE = 40
"""A document with fewer than one signature in so many tokens is judged by less than a tenth of its tokens. By default,
a spot signature has four tokens, and a shingle that replaces spots begins at one in four tokens."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """Pairs, decisions and quality of a method on a collection.

    Attributes
    ----------
    method : Method
        Method, as it was applied.
    data : str
        Name of the collection.
    matched : Matched
        Signatures and pairs, in memory or on disk, with wall seconds and counters.
    decisions : Decisions
        Clusters, and the documents that are kept.
    cohesion : Cohesion
        Pairs inside the clusters.
    quality : Quality or None
        None if the collection has no truth.
    in_shingles : int
        Documents that are compared by shingles: of no known language, or with few spot signatures.
    peak_bytes : int
        Largest resident memory of this process while matching; on disk, 0.
    memory : int or None
        Budget of a run on disk in bytes; None in memory.
    added_from : int
        Number of the first document of the collection; those before it were in the store.
    text_lost : TextLost or None
        Text in no kept page; None for a run without a copy, and for documents that are added to a store.
    """

    method: Method
    data: str
    matched: Matched
    decisions: Decisions
    cohesion: Cohesion
    quality: Quality | None
    in_shingles: int
    peak_bytes: int = 0
    memory: int | None = None
    added_from: int = 0
    text_lost: TextLost | None = None

    @classmethod
    def of(
        cls,
        method: Method,
        data: str,
        collection: Collection | VectorCollection,
        matched: Matched,
        *,
        earlier: NDArray[np.bool_] | None = None,
        truth: Truth | None = None,
    ) -> Result:
        """Decide about the documents of matched pairs, and evaluate the pairs, in passes over chunks of them.

        The array `earlier` is an argument of `spotsigs.method.Method.decide`. Without `truth`, the collection has it.
        """
        decisions, pairs = method.decide(matched, earlier=earlier)
        matched = replace(matched, pairs=pairs)
        # a new batch alone has no truth, for most of its pairs are with old documents; vectors have none
        if truth is None and not matched.new_from and not isinstance(collection, VectorCollection):
            truth = collection.truth(matched.doc_ids, matched.signatures.clusters, matched.skipped)
        in_shingles = 0
        if marks_shingles(method.signature) and not isinstance(collection, VectorCollection):
            in_shingles = matched.signatures.in_shingles()
        return cls(
            method=method,
            data=data,
            matched=matched,
            decisions=decisions,
            cohesion=cohesion(decisions.clusters, pairs),
            quality=None if truth is None else evaluate(pairs, truth, decisions.clusters, kept=decisions.kept),
            in_shingles=in_shingles,
        )

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """Figures of the run: sizes, quality (None without truth), memory, and times in ms."""
        matched, decisions, matcher = self.matched, self.decisions, self.method.matcher
        kept = decisions.kept[matched.new_from :]
        exact_duplicates, pairs, vectors = matched.exact_duplicates, matched.pairs, matched.vectors
        lost, sparse = self.text_lost, matched.sparse(SPARSE)
        contents = int(np.count_nonzero(is_identity(exact_duplicates.content)))
        seconds = {"sort_hash": 0.0, "cluster": 0.0, **pairs.seconds}
        quality = self.quality.figures() if self.quality else dict.fromkeys(FIGURES)
        low, high = self.method.band
        return {
            "documents": len(vectors),
            "documents_matched": int(np.count_nonzero(matched.compared())),
            "documents_few_signatures": int(np.count_nonzero(matched.compared() & ~matched.compared(FEW))),
            "documents_few_tokens": None if sparse is None else int(np.count_nonzero(sparse)),
            "documents_in_shingles": self.in_shingles,
            "languages": self._languages(),
            "copies_content": len(exact_duplicates) - contents,
            "copies_text": contents - int(np.count_nonzero(exact_duplicates.distinct)),
            "removed": int(np.count_nonzero(~kept)),
            "kept": int(np.count_nonzero(kept)),
            "text_lost": None if lost is None else lost.share,
            "sentences_lost": None if lost is None else lost.of_sentences,
            "removed_mostly_lost": None if lost is None else lost.mostly_lost,
            "text_lost_one_in": None if lost is None else lost.one_in,
            "skipped": len(matched.skipped),
            "signatures": pairs.counters.get("kept_signatures", vectors.n_signatures),
            "occurrences": vectors.n_occurrences,
            "pairs": len(pairs),
            "clusters": len(self.cohesion.labels),
            "largest_cluster": int(decisions.clusters.sizes.max(initial=0)),
            "min_similarity": _over(np.nanmin, self.cohesion.minimum),
            "mean_similarity": _over(np.nanmean, self.cohesion.mean),
            "pairs_near_tau": near_tau(pairs, self.method.tau) if matched.listed else None,
            "giant_chains": int(np.count_nonzero(self.cohesion.chain)),
            "new_documents": len(vectors) - matched.new_from,
            **quality,
            "memory_mib": matcher.memory_bytes(vectors) / MIB,
            "peak_mb": self.peak_bytes / 1e6,
            "parse_ms": seconds["extract"] * 1000,
            "sort_hash_ms": seconds["sort_hash"] * 1000,
            "cluster_ms": seconds["cluster"] * 1000,
            "total_ms": (seconds["sort_hash"] + seconds["cluster"]) * 1000,
            "joined_at": matched.joined_at,
            "stage_seconds": dict(pairs.seconds),
            "counters": dict(pairs.counters),
            "tau": self.method.tau,
            "idf_min": low,
            "idf_max": high,
            **{name: getattr(matcher, name, None) for name in "kl"},
            "memory_budget_mb": None if self.memory is None else self.memory / 1e6,
            "exact": matcher.exact,
            "verified": matcher.verified,
            "data": self.data,
            "label": matcher.label,
        }

    def described(self, spelling: Spelling) -> dict[str, Any]:
        """Return the metrics, the names of the text, signature and matcher, and the method as a door writes it."""
        words = self.method.words(spelling)
        names = {group: words[group] for group in ("text", "signature", "matcher")}
        return {**self.metrics, **names, "method": self.method.spelled(spelling)}

    def _languages(self) -> dict[str, int]:
        """Return the number of documents of this run by language, empty for none that is known."""
        codes = self.matched.signatures.languages[self.matched.new_from :]
        known, numbers = np.unique(codes, return_counts=True)
        names = (name or "" for name in names_of_languages(known))
        return dict(zip(names, numbers.tolist(), strict=True))


def _over(function: Callable[[Any], Any], values: Any) -> float | None:
    """Return a statistic of the values that are known; None without any."""
    return None if np.isnan(values).all() else float(function(values))


def input_checksum(matched: Matched, *, named: bool) -> str:
    """Return the SHA-256 over document ids, signature hashes and counts, the same for any format of the input.

    Vectors have no names; their rows count instead.
    """
    columns = ("hashes", "counts") if named else ("indptr", "hashes", "counts")
    arrays = (getattr(block, name) for name in columns for block in matched.signatures.read(name))
    return checksum(matched.doc_ids if named else (), arrays)


def checksum(doc_ids: Iterable[str], arrays: Iterable[NDArray[Any]]) -> str:
    """Return the SHA-256 of document ids and arrays, which does not depend on how the arrays are cut."""
    digest = hashlib.sha256()
    for number, name in enumerate(doc_ids):
        digest.update((f"\n{name}" if number else name).encode("utf-8", "replace"))
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
