"""LCS: near-duplicates by their longest common subsequence, compared only within perhaps-similar sets."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from baselines.hashing import group_rows, pairs_across, pairs_within, splitmix64
from baselines.lcs.myers import align
from spotsigs.arrays.csr import take_rows
from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.parallel import all_cores, concatenated, grown
from spotsigs.contracts import ThreadedMatcher, ThresholdMatcher
from spotsigs.errors import require
from spotsigs.records import Corpus, FloatArray, Measure, PairArrays, Pairs

# An end mark that needs no context, or one before white space or a closing mark.
_SENTENCE_END = re.compile(r"[.!?…。！？｡](?:(?<=[。！？｡])|(?=[\s\"'”’»)\]]|$))")
_BATCH_TOKENS = 1 << 20  # tokens in a batch of sets; large enough to amortize its overhead


@dataclass(frozen=True, kw_only=True)
class Lcs(ThreadedMatcher, ThresholdMatcher):
    """Pairs of pages with ``r = |LCS(A, B)| / (|A| + |B| - |LCS(A, B)|) >= tau``, over token sequences.

    Three stages, each of which can be switched off:

    1. *Perhaps-similar sets* (`divide`). The MD5 values of a page's sentences are distributed to ``buckets`` buckets by
       their remainder; the ``smallest`` values of each bucket form one fingerprint. Pages that share a fingerprint are
       perhaps similar. In order of the fingerprints, from rare to common, sets that share a page are united if the
       union has at most ``max_set`` different pages. The sets partition the collection.
    2. *Filtered sketches* (`sketch`). Before two pages are compared, tokens in no run of ``sketch`` tokens of the other
       page are removed.
    3. *Trustable portion* (`trust`). Only one segment of the LCS counts, a coherent and central one.

    Within a set, pages are ordered from long to short. Each page that is not similar to an earlier one is a
    representative. It is compared with the later pages that are in no similar set; those with ``r >= tau`` join its set
    and are not compared with other representatives. Pages with the same tokens count as one, and each pair of such
    pages is reported. Pages without tokens are in no pair.

    The trustable portion. A segment of the LCS, from one matched token to another, scores ``1 - coherence`` for each
    matched token and ``-coherence`` for each unmatched token of either page between its ends. So in each prefix and
    suffix of the best segment, at least a fraction ``coherence`` of the tokens is matched, which drops isolated matches
    between different templates. Common beginnings and ends are templates, too: of the best segments that end at each
    matched token, only those count whose middle is in the central fraction ``central`` of both pages. The best of these
    has ``L`` matched tokens and spans ``a`` and ``b`` tokens of the pages; then
    ``r = L / (max(a, central * |A|) + max(b, central * |B|) - L)``, with the products rounded up: templates around the
    segment do not count, but a short segment does not represent a long page.

    Parameters
    ----------
    tau : float
        Minimal r of a pair, in (0, 1].
    divide : bool
        Apply stage one; otherwise all pages form one set.
    buckets : int
        Number of buckets of a page's sentences (the slides' m).
    smallest : int
        Number of smallest MD5 values in the fingerprint of a bucket (the slides' n).
    max_set : int
        Maximal number of different pages in a perhaps-similar set.
    sketch : int
        Length of the token runs of stage two; 1 keeps the length of every LCS, 0 disables the stage.
    trust : bool
        Apply stage three.
    coherence : float
        Fraction of matched tokens below which a prefix or suffix of the LCS is dropped, in (0, 1).
    central : float
        Fraction of a page that counts as its centre, and the assumed minimum of its main content, in (0, 1].
    members : bool
        Also compare the members of a similar set with each other, and report the pairs with ``r >= tau``.
    threads : int or None
        Threads over perhaps-similar sets; None uses all cores.

    References
    ----------
    L. Huang, L. Wang and X. Li. Achieving both high precision and high recall in near-duplicate detection. CIKM 2008,
    and the authors' lecture slides.
    E. W. Myers. An O(ND) difference algorithm and its variations. Algorithmica 1(2), 1986.

    Deviations
    ----------
    - The similarity is not Jaccard; ``verified`` means that the r of each pair was computed. Pairs are missed if pages
      share no fingerprint, or through the use of representatives.
    - A sentence ends at ``. ! ? …`` before white space or a closing mark, and at ``。 ！ ？``. Case and white space are
      ignored, and repeats within a page count once. The fingerprint of a bucket with fewer than ``smallest`` sentences
      is formed from all of them; an empty bucket has none.
    - The slides mention partial transitivity but neither define it nor the order of pages: the bound on size, the order
      of the fingerprints and longest first are this implementation's. A set of more than ``max_set`` pages with one
      fingerprint is split in that order.
    - The slide on filtered sketches is empty: the runs of tokens shared with the other page are this implementation's,
      as are the definitions of coherent and central, which the slides describe in words.
    - The slides report sets. ``members=True`` also compares the pairs within each, so that pairs can be evaluated like
      the pairs of other methods; ``members=False`` makes the slides' comparisons and reports pairs with representatives
      only.
    - Tokens are compared by 64-bit hashes.
    """

    verified: ClassVar[bool] = True
    label: ClassVar[str] = "LCS"
    measure: ClassVar[str] = Measure.lcs
    reads_texts: ClassVar[bool] = True

    tau: float = 0.5
    divide: bool = True
    buckets: int = 7
    smallest: int = 3
    max_set: int = 5000
    sketch: int = 3
    trust: bool = True
    coherence: float = 0.7
    central: float = 0.5
    members: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.buckets >= 1, f"buckets must be at least 1, got {self.buckets}")
        require(self.smallest >= 1, f"smallest must be at least 1, got {self.smallest}")
        require(self.max_set >= 2, f"max_set must be at least 2, got {self.max_set}")
        require(0 <= self.sketch <= 64, f"sketch must be in [0, 64], got {self.sketch}")
        require(0.0 < self.coherence < 1.0, f"coherence must be in (0, 1), got {self.coherence}")
        require(0.0 < self.central <= 1.0, f"central must be in (0, 1], got {self.central}")

    @property
    def nested(self) -> bool:
        """False: the sets, whose members are compared, depend on the threshold."""
        return False

    def __call__(self, corpus: Corpus) -> Pairs:
        """Return the similar pairs of pages, with their r.

        Every text is read once; the tokens of all different pages are in memory, 8 bytes each.

        Raises
        ------
        InputError
            If the corpus does not have one text for each row, or equal pages form more than 2**31 pairs.
        """
        start = perf_counter()
        pages = self.read(corpus)
        parsed = perf_counter()
        labels = self.perhaps_similar(pages)
        divided = perf_counter()
        result = self.compare(pages, labels)
        compared = perf_counter()
        return Pairs.build(
            *pages.documents(result.i.astype(np.int64), result.j.astype(np.int64), result.similarity),
            len(corpus.vectors),
            seconds={"parse": parsed - start, "sort_hash": divided - parsed, "cluster": compared - divided},
            counters={
                "different_pages": len(pages.indptr) - 1,
                "perhaps_similar_sets": int(labels.max(initial=-1)) + 1,
                **result.counters,
            },
        )

    def read(self, corpus: Corpus) -> Pages:
        """Return the different pages in order of comparison, with their tokens, fingerprints and documents."""
        from spotsigs.text.hashing import hash_shingles
        from spotsigs.text.tokens import tokenize

        keys: list[tuple[int, bytes] | None] = []
        tokens: dict[tuple[int, bytes], NDArray[np.uint64]] = {}
        fingerprints: dict[tuple[int, bytes], list[int]] = {}
        for text in corpus.texts():
            page = tokenize(text)
            key = (-len(page), _md5(page.buffer.tobytes()))
            keys.append(key if len(page) else None)
            if len(page) and key not in tokens:
                tokens[key] = hash_shingles(page, 1)
                fingerprints[key] = sentence_fingerprints(text, self.buckets, self.smallest) if self.divide else []
        n = len(corpus.vectors)
        require(len(keys) == n, f"the corpus has {n} rows but {len(keys)} texts; give one text for each row")
        order = sorted(tokens)
        number = {key: p for p, key in enumerate(order)}
        rows, row_indptr = group_rows(np.array([-1 if key is None else number[key] for key in keys], dtype=np.int64))
        sizes = [len(fingerprints[key]) for key in order]
        return Pages(
            tokens=np.concatenate([np.empty(0, np.uint64), *(tokens[key] for key in order)]),
            indptr=np.cumsum([0, *(-length for length, _ in order)]),
            rows=rows,
            row_indptr=row_indptr,
            fingerprints=np.array([f for key in order for f in fingerprints[key]], dtype=np.uint64),
            fingerprint_pages=np.repeat(np.arange(len(order)), sizes),
        )

    def perhaps_similar(self, pages: Pages) -> NDArray[np.int64]:
        """Return the perhaps-similar set of each page, numbered by first appearance (stage one)."""
        n = len(pages.indptr) - 1
        if not self.divide:
            return np.zeros(n, dtype=np.int64)
        _, values, frequencies = np.unique(pages.fingerprints, return_inverse=True, return_counts=True)
        order = np.lexsort((pages.fingerprint_pages, values, frequencies[values]))
        roots = _bounded_union(values[order], pages.fingerprint_pages[order], n, self.max_set)
        _, first, labels = np.unique(roots, return_index=True, return_inverse=True)
        numbers: NDArray[np.int64] = np.argsort(np.argsort(first))[labels]
        return numbers

    def compare(self, pages: Pages, labels: NDArray[np.int64]) -> Pairs:
        """Compare the pages within each set, which `labels` gives for each page (stages two and three).

        The rows of the pairs are pages, and the similarities are their ``r``.
        """
        members, starts = group_rows(labels)
        sizes = np.diff(starts)
        sets = [members[starts[s] : starts[s + 1]] for s in np.flatnonzero(sizes > 1)]
        with ThreadPoolExecutor(self.threads or all_cores()) as pool:
            parts = list(pool.map(lambda batch: self.compare_sets(pages, batch), _set_batches(sets, pages.indptr)))
        a, b, r = concatenated([part for part, _, _ in parts], (np.int64, np.int64, np.float64))
        counters = {
            "candidates": sum(candidates for _, candidates, _ in parts),
            "comparisons": sum(comparisons for _, _, comparisons in parts),
        }
        return Pairs.build(a, b, r, len(labels), counters=counters)

    def compare_sets(self, pages: Pages, sets: list[NDArray[np.int64]]) -> tuple[PairArrays, int, int]:
        """Compare the pages within each set, given as ascending page numbers, on one thread.

        Return the similar pages with their ``r``, and the numbers of candidate pairs and of computed LCS.
        """
        members = np.concatenate(sets)
        indptr, entries = take_rows(pages.indptr, members)
        tokens = pages.tokens[entries]
        rules = _Rules(self.tau, self.sketch, self.trust, self.coherence, self.central, self.members)
        a, b, r, candidates, comparisons = _compare_sets(
            tokens, indptr, _runs(tokens, indptr, self.sketch), np.cumsum([0, *map(len, sets)]), rules
        )
        return (members[a], members[b], r), candidates, comparisons


class Pages(NamedTuple):
    """Different pages of a collection in order of comparison: from long to short, then by the MD5 of their tokens.

    ``tokens[indptr[p]:indptr[p + 1]]`` are the token hashes of page ``p``; ``rows[row_indptr[p]:row_indptr[p + 1]]``
    the documents with exactly these tokens. Page ``fingerprint_pages[f]`` has fingerprint ``fingerprints[f]``.
    """

    tokens: NDArray[np.uint64]
    indptr: NDArray[np.int64]
    rows: NDArray[np.int64]
    row_indptr: NDArray[np.int64]
    fingerprints: NDArray[np.uint64]
    fingerprint_pages: NDArray[np.int64]

    def documents(
        self, a: NDArray[np.int64], b: NDArray[np.int64], similarity: FloatArray
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
        """Return the documents of pairs of pages, and the documents of equal pages as pairs of similarity 1."""
        equal_i, equal_j = pairs_within(self.rows, self.row_indptr)
        i, j, source = pairs_across(self.rows, self.row_indptr, a, b)
        similarities = np.concatenate([np.ones(len(equal_i)), similarity[source]])
        return np.concatenate([equal_i, i]), np.concatenate([equal_j, j]), similarities


class _Rules(NamedTuple):
    """Parameters of `Lcs` for its kernels."""

    tau: float
    sketch: int
    trust: bool
    coherence: float
    central: float
    members: bool


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, lower-cased, without end marks and with single spaces.

    Text without an end mark is one sentence. Pieces without a letter or digit are dropped.
    """
    pieces = (" ".join(piece.split()) for piece in _SENTENCE_END.split(text.lower()))
    return [piece for piece in pieces if any(map(str.isalnum, piece))]


def sentence_fingerprints(text: str, buckets: int = 7, smallest: int = 3) -> list[int]:
    """Return the fingerprint of each non-empty bucket of sentence MD5s: a 64-bit hash of its smallest values.

    The bucket of a sentence is ``MD5 mod buckets``, with the MD5 as a big-endian number. A fingerprint is the first 8
    bytes, big-endian, of the MD5 of the concatenated smallest values.
    """
    chosen: list[list[bytes]] = [[] for _ in range(buckets)]
    for value in sorted({_md5(sentence.encode("utf-8", "replace")) for sentence in sentences(text)}):
        bucket = chosen[int.from_bytes(value, "big") % buckets]
        if len(bucket) < smallest:
            bucket.append(value)
    return [int.from_bytes(_md5(b"".join(bucket))[:8], "big") for bucket in chosen if bucket]


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _set_batches(sets: list[NDArray[np.int64]], indptr: NDArray[np.int64]) -> Iterator[list[NDArray[np.int64]]]:
    """Cut a list of sets into consecutive batches of at least `_BATCH_TOKENS` tokens."""
    batch: list[NDArray[np.int64]] = []
    size = 0
    for pages in sets:
        batch.append(pages)
        size += int((indptr[pages + 1] - indptr[pages]).sum())
        if size >= _BATCH_TOKENS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _runs(tokens: NDArray[np.uint64], indptr: NDArray[np.int64], length: int) -> NDArray[np.int32]:
    """Return a number for the run of ``length`` tokens at each position, equal for equal runs.

    It is -1 if the page ends within the run, or if the run occurs only once and thus in no pair.
    """
    numbers = np.full(len(tokens), -1, dtype=np.int32)
    starts = len(tokens) - length + 1
    if length == 0 or starts < 1:
        return numbers
    hashes = tokens[:starts]
    for k in range(1, length):
        hashes = splitmix64(hashes) ^ tokens[k : starts + k]
    is_inside = np.ones(len(tokens), dtype=np.bool_)
    for k in range(1, length):
        is_inside[np.maximum(indptr[1:] - k, indptr[:-1])] = False
    inside = np.flatnonzero(is_inside)
    _, runs, frequencies = np.unique(hashes[inside], return_inverse=True, return_counts=True)
    repeated = np.cumsum(frequencies > 1, dtype=np.int32) - 1
    numbers[inside] = np.where(frequencies > 1, repeated, -1)[runs]
    return numbers


@kernel
def _bounded_union(values, pages, n, max_set):  # type: ignore[no-untyped-def]
    """Unite adjacent pages with equal values up to ``max_set`` pages per set (union-find); return each page's root."""
    parent = np.arange(n)
    size = np.ones(n, np.int64)
    for k in range(1, len(values)):
        if values[k] == values[k - 1]:
            x, y = _root(parent, pages[k - 1]), _root(parent, pages[k])
            if x != y and size[x] + size[y] <= max_set:
                low, high = min(x, y), max(x, y)
                parent[high] = low
                size[low] += size[high]
    for p in range(n):
        parent[p] = _root(parent, p)
    return parent


@kernel
def _root(parent, p):  # type: ignore[no-untyped-def]
    """Return the root of a page, with path halving."""
    while parent[p] != p:
        parent[p] = parent[parent[p]]
        p = parent[p]
    return p


@kernel
def _compare_sets(tokens, indptr, runs, set_starts, rules):  # type: ignore[no-untyped-def]
    """Compare the pages of each set in order; return similar pages with their r, candidates and comparisons."""
    n = len(indptr) - 1
    longest = 0
    for page in range(n):
        longest = max(longest, indptr[page + 1] - indptr[page])
    marks = np.zeros((2, runs.max() + 2), np.int32)  # 1 + the last page that marked each run, for either side
    kept, positions = np.empty((2, longest), np.uint64), np.empty((2, longest), np.int64)
    partner, reach = np.empty(longest, np.int64), np.empty((2, 2 * longest + 5), np.int64)
    out_a, out_b, out_r = np.empty(256, np.int64), np.empty(256, np.int64), np.empty(256, np.float64)
    reached = candidates = comparisons = 0
    owner = np.full(n, -1, np.int64)
    for s in range(len(set_starts) - 1):
        for a in range(set_starts[s], set_starts[s + 1]):
            # A representative is compared with pages in no set, a member with the other members of its set.
            wanted = owner[a]
            if wanted < 0:
                owner[a] = a
            elif not rules.members:
                continue
            _mark(runs, indptr, a, marks[0])
            for b in range(a + 1, set_starts[s + 1]):
                if owner[b] != wanted:
                    continue
                least = _least_common(indptr[a + 1] - indptr[a], indptr[b + 1] - indptr[b], rules)
                if least > indptr[b + 1] - indptr[b]:
                    break  # too short, like all later pages
                candidates += 1
                n_b = _keep(tokens, runs, indptr, b, marks[0], a, rules.sketch, kept[1], positions[1])
                if n_b < least:
                    continue
                _mark(runs, indptr, b, marks[1])
                n_a = _keep(tokens, runs, indptr, a, marks[1], b, rules.sketch, kept[0], positions[0])
                if n_a < least:
                    continue
                comparisons += 1
                if align(kept[0, :n_a], kept[1, :n_b], n_a + n_b - 2 * least, partner, reach) < 0:
                    continue
                r = _similarity(partner[:n_a], positions, indptr[a + 1] - indptr[a], indptr[b + 1] - indptr[b], rules)
                if r >= rules.tau:
                    if wanted < 0:
                        owner[b] = a
                    if reached == len(out_a):
                        out_a, out_b, out_r = grown(out_a), grown(out_b), grown(out_r)
                    out_a[reached], out_b[reached], out_r[reached] = a, b, r
                    reached += 1
    return out_a[:reached], out_b[:reached], out_r[:reached], candidates, comparisons


@kernel
def _least_common(n_a, n_b, rules):  # type: ignore[no-untyped-def]
    """Return the least number of matched tokens of two similar pages, or one more than the shorter page has.

    Binary search on the test itself, which is monotone: a segment spans at least the tokens that it matches.
    """
    low, high = 1, min(n_a, n_b) + 1
    while low < high:
        common = (low + high) // 2
        if _ratio(common, common, common, n_a, n_b, rules) >= rules.tau:
            high = common
        else:
            low = common + 1
    return low


@kernel
def _ratio(common, span_a, span_b, n_a, n_b, rules):  # type: ignore[no-untyped-def]
    """Return r for numbers of matched tokens and of tokens spanned in pages of given lengths."""
    if rules.trust:
        n_a = max(span_a, int(np.ceil(rules.central * n_a)))
        n_b = max(span_b, int(np.ceil(rules.central * n_b)))
    return common / (n_a + n_b - common)


@kernel
def _mark(runs, indptr, page, out_marks):  # type: ignore[no-untyped-def]
    for p in range(indptr[page], indptr[page + 1]):
        if runs[p] >= 0:
            out_marks[runs[p]] = page + 1


@kernel
def _keep(  # type: ignore[no-untyped-def]
    tokens, runs, indptr, page, marks, other, length, out_tokens, out_positions
):
    """Write the tokens in runs that the other page marked, and their positions; return their number."""
    size = 0
    start, end = indptr[page], indptr[page + 1]
    covered = start if length else end
    for p in range(start, end):
        if runs[p] >= 0 and marks[runs[p]] == other + 1:
            covered = max(covered, p + length)
        if p < covered:
            out_tokens[size] = tokens[p]
            out_positions[size] = p - start
            size += 1
    return size


@kernel
def _similarity(partner, positions, n_a, n_b, rules):  # type: ignore[no-untyped-def]
    """Return the r of two pages from an alignment of their sketches; see `Lcs` for the trustable portion."""
    if not rules.trust:
        return _ratio(int(np.sum(partner >= 0)), 0, 0, n_a, n_b, rules)
    best = r = score = 0.0
    common = first_a = first_b = last_a = last_b = 0
    for p in range(len(partner)):
        if partner[p] < 0:
            continue
        a, b = positions[0, p], positions[1, partner[p]]
        score -= rules.coherence * (a - last_a - 1 + b - last_b - 1)
        if common == 0 or score <= 0:  # the best segment that ends here starts here
            score, common, first_a, first_b = 0.0, 0, a, b
        score += 1 - rules.coherence
        common += 1
        last_a, last_b = a, b
        is_central = (
            abs(first_a + last_a + 1 - n_a) <= rules.central * n_a
            and abs(first_b + last_b + 1 - n_b) <= rules.central * n_b
        )
        if is_central and score > best:
            best = score
            r = _ratio(common, last_a - first_a + 1, last_b - first_b + 1, n_a, n_b, rules)
    return r
