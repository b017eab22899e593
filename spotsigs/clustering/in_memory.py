"""A collection in memory: its signatures, its filtered vectors, and its pairs at a threshold.

`spotsigs.outofcore.pipeline` runs the same stages in many batches and returns the same pairs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Collection as SizedIterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.row_blocks import Entry, gathered, scattered
from spotsigs.clustering.clusters import ClusterMethod, Counts, cluster, every_pair
from spotsigs.clustering.leaders import LeaderOptions, leaders_of
from spotsigs.contracts import Matcher
from spotsigs.matching.containment import Containment
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.records import (
    Clusters,
    Corpus,
    FloatArray,
    IntArray,
    Measure,
    Pairs,
    Signatures,
    Skipped,
    Vectors,
    no_pairs,
)
from spotsigs.signatures.blocks import Blocks
from spotsigs.signatures.contained import LEAST_BOUND, NO_RULE, Contents, RemovalRule, contents_of
from spotsigs.signatures.sections import SECTION_TAU
from spotsigs.storage.exact_duplicates import ExactDuplicates
from spotsigs.storage.identity import identity


class Grouped(NamedTuple):
    """Clusters of documents, the pairs that a run reports, and which of these decide which documents are kept."""

    clusters: Clusters
    pairs: Pairs
    counts: Counts


Grouping = Callable[[Pairs, ClusterMethod, LeaderOptions], Grouped]
"""Function that groups the documents of a collection by its pairs, all of which are listed or none."""


def by_pairs(
    representatives: NDArray[np.int32], pairs: Pairs, clusters: ClusterMethod, options: LeaderOptions
) -> Grouped:
    """Group documents by listed pairs, of which those count that the rule of the options allows."""
    if options.rule is NO_RULE:
        groups = cluster(pairs, clusters=clusters, priority=options.priority, removed=options.removed)
        return Grouped(groups, pairs, every_pair)
    counts = counts_by(options.rule, representatives)
    groups = cluster(pairs, clusters=clusters, priority=options.priority, removed=options.removed, counts=counts)
    return Grouped(groups, pairs, counts)


def counts_by(rule: RemovalRule, representatives: NDArray[np.int32]) -> Counts:
    """Return which documents may be removed for which by a rule for their representatives."""

    def counts(rows: IntArray, partners: IntArray, similarity: FloatArray) -> NDArray[np.bool_]:
        return rule.counts(representatives[rows], representatives[partners], similarity)

    return counts


def by_leaders(
    find: Callable[[LeaderOptions], tuple[Clusters, Pairs]],
    none: Pairs,
    clusters: ClusterMethod,
    options: LeaderOptions,
) -> Grouped:
    """Group documents by leaders that a function finds without a list of pairs; add its wall seconds to theirs."""
    assert clusters is ClusterMethod.leaders
    began = perf_counter()
    groups, pairs = find(options)
    pairs = replace(pairs, seconds={**none.seconds, "cluster": perf_counter() - began})
    return Grouped(groups, pairs, every_pair)


class TextTasks(NamedTuple):
    """Functions that read the texts of documents when they are called; None for texts that were not kept."""

    # Measures the text lost, see `spotsigs.evaluation.text_lost`, from which documents are kept and how many hashes are
    # counted at most.
    lost: Callable[[NDArray[np.bool_], int], Any] | None = None
    contents: Callable[[], Contents] | None = None  # returns their phrases, see `spotsigs.signatures.contained`


@dataclass(frozen=True, kw_only=True)
class Matched:
    """Matched collection, in memory or on disk.

    Attributes
    ----------
    doc_ids : sequence of str
        Id of each document.
    signatures : Blocks
        Signatures of all documents before the filters, old documents first. For a collection of vectors, ids replace
        the hashes.
    vectors : Vectors
        Signatures after the filters; the row of an exact duplicate is empty.
    rows : ndarray of int64, shape (n,)
        Document number of each row of the vectors, which are sorted by length on disk.
    exact_duplicates : ExactDuplicates
        Exact duplicates.
    pairs : Pairs
        Similar pairs, with the wall seconds of ``extract`` and of the matcher's stages; none unless they are `listed`.
    group : callable
        Groups the documents, see `Grouping`.
    skipped : collection of Skipped
        Records that could not be read; after an addition to a store, only those added.
    listed : bool
        All pairs are listed; otherwise `group` finds those that decide.
    new_from : int
        Number of the first document that this run added to a store, or that is none of a reference; 0 if all are new.
    joined_at : float or None
        Threshold of the earlier join that has these pairs and times; None for a join of its own.
    texts : TextTasks
        Measures what the texts of the documents share.
    """

    doc_ids: Sequence[str]
    signatures: Blocks
    vectors: Vectors
    rows: NDArray[np.int64]
    exact_duplicates: ExactDuplicates
    pairs: Pairs
    group: Grouping
    skipped: SizedIterable[Skipped]
    listed: bool = True
    new_from: int = 0
    joined_at: float | None = None
    texts: TextTasks = field(default_factory=TextTasks)

    @cached_property
    def n_reference(self) -> int:
        """Number of documents of a reference, which come first; 0 without one."""
        return self.signatures.n_reference

    def grouped(self, clusters: ClusterMethod, options: LeaderOptions) -> Grouped:
        """Return the clusters of the documents, and the pairs that decide which of them are kept."""
        return self.group(self.pairs, clusters, options)

    def rule(self, tau: float | None, least: float, *, texts: bool) -> RemovalRule:
        """Return which documents may be removed for which, by what is missing of them at least.

        If ``least`` is above 0, also by sections and, with ``texts``, by contents.
        """
        rule, sections = self.bound_rule, self.signatures.sections
        if len(rule.missing):
            rule = rule._replace(least_bound=LEAST_BOUND if tau is None else min(LEAST_BOUND, tau))
        if least > 0 and len(sections) == len(self.exact_duplicates) and sections.any():
            rule = rule._replace(sections=sections[self.exact_duplicates.first], section_tau=SECTION_TAU)
        if least > 0 and texts and self.texts.contents is not None:
            rule = rule._replace(contents=self.texts.contents(), least=float(least))
        return rule

    @cached_property
    def bound_rule(self) -> RemovalRule:
        """A rule that allows every removal, with what lower bounds need; `NO_RULE` if no signatures are missing."""
        missing, overlap = self.signatures.missing, self.pairs.overlap
        measured = not self.listed or overlap is not None
        if not measured or len(missing) != len(self.exact_duplicates) or not missing.any():
            return NO_RULE
        return NO_RULE._replace(
            missing=gathered(missing, self.exact_duplicates.first),
            lengths=self._of_documents(self.vectors.lengths.astype(np.int32)),
            of_shorter=overlap is not None and overlap.measure is Measure.containment,
        )

    def lower_bounds(self, i: IntArray, j: IntArray, similarity: FloatArray) -> FloatArray:
        """Return the lower bounds of the similarities of documents, see `spotsigs.signatures.contained.lower_bound`.

        All arrays have shape (m,).
        """
        of = self.exact_duplicates.representatives
        return self.bound_rule.lower_bounds(of[i], of[j], similarity)

    def main_lengths(self) -> IntArray:
        """Return the length of the main content of each document, or of its first exact duplicate.

        These are estimated numbers of tokens; if they are unknown, numbers of signatures before the filters.
        """
        lengths, exact_duplicates = self.signatures.main_tokens, self.exact_duplicates
        if len(lengths) == len(exact_duplicates):
            return gathered(lengths, exact_duplicates.first)
        return gathered(self.signatures.occurrences(), exact_duplicates.representatives)

    def signatures_of(self, documents: Iterable[int]) -> dict[int, dict[int, int]]:
        """Return the counts of the signatures of some documents after all filters, by document and hash."""
        vectors, wanted = self.vectors, np.array(sorted(documents), np.int64)
        heads = self.exact_duplicates.representatives[wanted]
        bags = {}
        for row in np.flatnonzero(np.isin(self.rows, heads)).tolist():
            ids, counts = vectors.row(row)
            hashes = ids if vectors.vocabulary is None else vectors.vocabulary[ids]
            bags[int(self.rows[row])] = dict(zip(hashes.tolist(), counts.tolist(), strict=True))
        return {document: bags[head] for document, head in zip(wanted.tolist(), heads.tolist(), strict=True)}

    def compared(self, fewest: int = 1) -> NDArray[np.bool_]:
        """Return whether each document, or its representative, has so many signatures after the filters."""
        return self._of_documents(self.vectors.lengths >= fewest)

    def sparse(self, tokens: int) -> NDArray[np.bool_] | None:
        """Return whether each document is compared by fewer than one signature in so many tokens; None if unknown."""
        sizes, lengths = self.signatures.tokens, self.vectors.lengths
        if len(sizes) != len(self.rows):
            return None
        return self._of_documents((lengths > 0) & (lengths * tokens < gathered(sizes, self.rows)))

    def _of_documents(self, of_rows: NDArray[Entry]) -> NDArray[Entry]:
        """Return the value of each document, or its representative, by the values of the rows of the vectors."""
        return gathered(scattered(of_rows, self.rows), self.exact_duplicates.representatives)


@dataclass(frozen=True)
class Extracted:
    """Signatures before the filters, exact duplicates, and the wall seconds of both.

    A collection of vectors has no signatures: ids replace the hashes, and ``vectors`` are given.
    """

    signatures: Signatures
    exact_duplicates: ExactDuplicates
    wall_seconds: float
    vectors: Vectors | None = None


@dataclass
class SharedJoin:
    """A collection that is joined once for matchers that differ in their threshold alone.

    A `nested` matcher, as most verified ones, finds the same candidates at each threshold and reports those that reach
    it. A matcher without a threshold has one set of pairs. Any other matcher runs each time.

    Attributes
    ----------
    extracted : Extracted
        Signatures before the filters.
    corpus : Corpus
        Input of the matchers.
    marked : bool
        Hashes of shingles are marked, see `spotsigs.signatures.languages.marks_shingles`.
    peak_bytes : int
        Largest resident memory of the last join, if it was measured.
    """

    extracted: Extracted
    corpus: Corpus
    marked: bool = False
    peak_bytes: int = 0
    _pairs: dict[str, tuple[float | None, Pairs]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def contents(self) -> Contents:
        """Phrases of the documents."""
        signatures = self.extracted.signatures
        assert signatures.phrases is not None
        return contents_of(signatures.phrases, signatures.indptr, signatures.hashes, marked=self.marked)

    def joined_at(self, matcher: Matcher) -> float | None:
        """Return the threshold of the join that has the matcher's pairs; None if the matcher has to run."""
        lowest, _ = self._pairs.get(_without_threshold(matcher), (None, None))
        if lowest is None or matcher.threshold is None or not matcher.nested:
            return None
        return lowest if lowest <= matcher.threshold else None

    def match_distinct(self, matcher: Matcher) -> Pairs:
        """Return the pairs of a matcher among documents that differ, without pairs of exact duplicates."""
        method, tau = _without_threshold(matcher), matcher.threshold
        if self.joined_at(matcher) is None and (tau is not None or method not in self._pairs):
            self._pairs[method] = tau, matcher(self.corpus)
        lowest, pairs = self._pairs[method]
        return pairs if tau is None or tau == lowest else pairs.at(tau)

    def match(self, matcher: Matcher, *, crossed: bool = False) -> Matched:
        """Return the pairs of a matcher, and the pairs of exact duplicates.

        With a reference, a pair has at least one document that is not of the reference. If ``crossed``, the other
        document is of the reference.
        """
        joined_at, new_from = self.joined_at(matcher), self.extracted.signatures.n_reference
        pairs = self.extracted.exact_duplicates.spread(self.match_distinct(matcher))
        if new_from:
            pairs = pairs.where(pairs.j >= new_from)
            if isinstance(matcher, Containment):
                pairs = matcher.keep_contained_references(pairs, new_from)
            pairs = pairs.where(pairs.i < new_from) if crossed else pairs
        group = partial(by_pairs, self.extracted.exact_duplicates.representatives)
        return replace(self._with_pairs(pairs, group), joined_at=joined_at)

    def match_without_list(self, matcher: SpotSigsTight) -> Matched:
        """Return no pairs, because the documents are grouped by leaders, which need no list of pairs."""
        vectors, duplicates = self.corpus.vectors, self.extracted.exact_duplicates
        find = partial(leaders_of, vectors, matcher.tau, exact_duplicates=duplicates, threads=matcher.threads)
        return replace(self._with_pairs(no_pairs(len(vectors)), partial(by_leaders, find)), listed=False)

    def _with_pairs(self, pairs: Pairs, group: Grouping) -> Matched:
        known, vectors = self.extracted, self.corpus.vectors
        return Matched(
            doc_ids=vectors.doc_ids,
            signatures=Blocks((known.signatures,)),
            vectors=vectors,
            rows=np.arange(len(vectors)),
            exact_duplicates=known.exact_duplicates,
            pairs=replace(pairs, seconds={"extract": known.wall_seconds, **pairs.seconds}),
            group=group,
            skipped=known.signatures.skipped,
            new_from=known.signatures.n_reference,
            texts=TextTasks(contents=None if known.signatures.phrases is None else lambda: self.contents),
        )


def _without_threshold(matcher: Matcher) -> str:
    return json.dumps(identity(matcher.at(1.0)))
