"""LCS: near duplicates by their longest common subsequence, compared only within perhaps-similar sets."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from baselines.hashing import group_rows, pairs_across, pairs_within, splitmix64
from baselines.lcs.myers import align
from spotsigs.arrays.csr import take_rows
from spotsigs.arrays.parallel import all_cores
from spotsigs.errors import require
from spotsigs.records import Corpus, Measure, Pairs, ThreadedMatcher, ThresholdMatcher, Tokens

# One character, then what must hold of it: an end mark of its own, or one before white space or a closing mark.
_SENTENCE_END = re.compile(r"[.!?…。！？｡](?:(?<=[。！？｡])|(?=[\s\"'”’»)\]]|$))")
_BATCH_TOKENS = 1 << 20  # sets are compared in batches of about this many tokens, to keep the overhead of each small


@dataclass(frozen=True, kw_only=True)
class Lcs(ThreadedMatcher, ThresholdMatcher):
    """Pairs of pages with ``r = |LCS(A, B)| / (|A| + |B| - |LCS(A, B)|) >= tau``, over token sequences.

    Three stages, each of which can be switched off:

    1. *Perhaps-similar sets* (`divide`). The MD5 values of a page's sentences go to ``buckets`` buckets by their
       remainder; the ``smallest`` of each bucket give one fingerprint. Pages that share a fingerprint are perhaps
       similar. Going through the fingerprints from rare to common, sets that share a page are united as long as the
       union has at most ``max_set`` different pages, so that the sets partition the collection.
    2. *Filtered sketches* (`sketch`). Before two pages are compared, each loses the tokens that lie in no run of
       ``sketch`` tokens of the other page.
    3. *Trustable portion* (`trust`). Of the LCS only one stretch counts: where it is coherent and central.

    Within a set, pages are ordered from long to short. Each page that is not yet similar to an earlier one is a
    representative and is compared with the later ones that are not; those with ``r >= tau`` join its similar set and
    are not compared with other representatives. Pages with the same tokens count as one, and each pair of their copies
    is reported. Pages without tokens never pair.

    The trustable portion. A stretch of the LCS, from one matched token to another, scores ``1 - coherence`` for each
    matched token and ``-coherence`` for each unmatched token of either page between its ends. So in each head and each
    tail of the best stretch at least ``coherence`` of the tokens are matched, and straggling matches between different
    templates fall off. Common heads and tails are templates, too: of the best stretches that end at each matched token,
    only those count whose middle lies in the central ``central`` share of both pages. The best of these has ``L``
    matched tokens and spans ``a`` and ``b`` tokens of the pages; then
    ``r = L / (max(a, central * |A|) + max(b, central * |B|) - L)``, the products rounded up: frames around the stretch
    do not count, but a short stretch does not stand for a long page.

    Parameters
    ----------
    tau : float
        Smallest r of a pair, in (0, 1].
    divide : bool
        Stage one; without it all pages form one set.
    buckets : int
        Buckets of a page's sentences (the slides' m).
    smallest : int
        Smallest MD5 values of a bucket that make its fingerprint (the slides' n).
    max_set : int
        Different pages that a perhaps-similar set may hold.
    sketch : int
        Length of the token runs of stage two; 1 leaves every LCS as long as it is, 0 leaves the pages whole.
    trust : bool
        Stage three.
    coherence : float
        Share of matched tokens below which a head or tail of the LCS falls off, in (0, 1).
    central : float
        Share of a page that counts as its centre, and that its topical content is taken to fill at least, in (0, 1].
    members : bool
        Measure the members of a similar set against each other, too, and report the pairs with ``r >= tau``.
    threads : int or None
        Threads that share the perhaps-similar sets.

    References
    ----------
    L. Huang, L. Wang and X. Li. Achieving both high precision and high recall in near-duplicate detection. CIKM 2008,
    and the authors' lecture slides.
    E. W. Myers. An O(ND) difference algorithm and its variations. Algorithmica 1(2), 1986.

    Deviations
    ----------
    - The similarity is not Jaccard: ``verified`` says that the r of each pair was computed. Pairs are lost where pages
      share no fingerprint, and to the representatives.
    - A sentence ends at ``. ! ? …`` before white space or a closing mark, and at ``。 ！ ？``; case and white space do
      not matter, and repeats within a page count once. A bucket with fewer than ``smallest`` sentences makes its
      fingerprint of those it has, an empty one makes none.
    - The slides say that partial transitivity is used but not how, nor by which criterion pages are sorted: the bound
      on size, the order of the fingerprints and longest first are this implementation's. A set of more than ``max_set``
      pages with one fingerprint is cut in that order.
    - The slide on filtered sketches is empty: the runs of tokens shared with the other page are this implementation's,
      as are the definitions of coherent and central, which the slides describe in words.
    - The slides report sets. ``members=True`` measures the pairs within each as well, so that pairs can be compared
      with other methods'; ``members=False`` gives the slides' comparisons, and pairs with the representative only.
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
        require(0 <= self.sketch <= 64, f"sketch must lie in [0, 64], got {self.sketch}")
        require(0.0 < self.coherence < 1.0, f"coherence must lie in (0, 1), got {self.coherence}")
        require(0.0 < self.central <= 1.0, f"central must lie in (0, 1], got {self.central}")

    def __call__(self, corpus: Corpus) -> Pairs:
        """Return the pairs of pages found similar, with their r.

        Reads every text once and holds the tokens of all different pages, 8 bytes each.

        Raises
        ------
        InputError
            If the corpus brings no texts, or not one for each row, or if copies make more than 2**31 pairs.
        """
        start = perf_counter()
        pages = self.read(corpus)
        parsed = perf_counter()
        labels = self.perhaps_similar(pages)
        divided = perf_counter()
        found = self.compare(pages, labels)
        compared = perf_counter()
        copy_i, copy_j = pairs_within(pages.rows, pages.copies)
        i, j, source = pairs_across(pages.rows, pages.copies, found.a, found.b)
        return Pairs.build(
            np.concatenate([copy_i, i]),
            np.concatenate([copy_j, j]),
            np.concatenate([np.ones(len(copy_i)), found.r[source]]),
            len(corpus.vectors),
            seconds={"parse": parsed - start, "sort_hash": divided - parsed, "cluster": compared - divided},
            counters={
                "different_pages": len(pages.indptr) - 1,
                "perhaps_similar_sets": int(labels.max(initial=-1)) + 1,
                "candidates": found.candidates,
                "comparisons": found.comparisons,
            },
        )

    def read(self, corpus: Corpus) -> Pages:
        """Read the texts: tokens, sentence fingerprints, and which documents are copies of each other.

        Returns
        -------
        Pages
            In order of comparison.
        """
        from spotsigs.text.tokens import tokenize

        keys: list[tuple[int, bytes] | None] = []
        tokens: dict[tuple[int, bytes], NDArray[np.uint64]] = {}
        fingerprints: dict[tuple[int, bytes], list[int]] = {}
        for text in corpus.texts():
            page = tokenize(text)
            key = (-len(page), hashlib.md5(page.buffer.tobytes(), usedforsecurity=False).digest())
            keys.append(key if len(page) else None)
            if len(page) and key not in tokens:
                tokens[key] = token_hashes(page)
                fingerprints[key] = sentence_fingerprints(text, self.buckets, self.smallest) if self.divide else []
        n = len(corpus.vectors)
        require(len(keys) == n, f"the corpus has {n} rows but {len(keys)} texts; give one text for each row")
        order = sorted(tokens)
        place = {key: p for p, key in enumerate(order)}
        rows, copies = group_rows(np.array([-1 if key is None else place[key] for key in keys], dtype=np.int64))
        sizes = [len(fingerprints[key]) for key in order]
        return Pages(
            tokens=np.concatenate([np.empty(0, np.uint64), *(tokens[key] for key in order)]),
            indptr=np.cumsum([0, *(-length for length, _ in order)]),
            rows=rows,
            copies=copies,
            fingerprints=np.array([f for key in order for f in fingerprints[key]], dtype=np.uint64),
            fingerprint_pages=np.repeat(np.arange(len(order)), sizes),
        )

    def perhaps_similar(self, pages: Pages) -> NDArray[np.int64]:
        """Return the perhaps-similar set of each page, numbered by first appearance (stage one).

        Returns
        -------
        ndarray of int64, shape (n_pages,)
        """
        n = len(pages.indptr) - 1
        if not self.divide:
            return np.zeros(n, dtype=np.int64)
        _, values, frequencies = np.unique(pages.fingerprints, return_inverse=True, return_counts=True)
        order = np.lexsort((pages.fingerprint_pages, values, frequencies[values]))
        roots = _bounded_union(values[order], pages.fingerprint_pages[order], n, self.max_set)
        _, first, labels = np.unique(roots, return_index=True, return_inverse=True)
        numbers: NDArray[np.int64] = np.argsort(np.argsort(first))[labels]
        return numbers

    def compare(self, pages: Pages, labels: NDArray[np.int64]) -> LcsPairs:
        """Compare the pages within each set (stages two and three).

        Parameters
        ----------
        pages : Pages
            As `read` gives them.
        labels : ndarray of int64, shape (n_pages,)
            The perhaps-similar set of each page.

        Returns
        -------
        LcsPairs
        """
        members, starts = group_rows(labels)
        sizes = np.diff(starts)
        sets = [members[starts[s] : starts[s + 1]] for s in np.flatnonzero(sizes > 1)]
        with ThreadPoolExecutor(self.threads or all_cores()) as pool:
            parts = list(pool.map(lambda batch: self.compare_sets(pages, batch), _batches(sets, pages.indptr)))
        empty = np.empty(0, np.int64)
        return LcsPairs(
            a=np.concatenate([empty, *(part.a for part in parts)]),
            b=np.concatenate([empty, *(part.b for part in parts)]),
            r=np.concatenate([np.empty(0), *(part.r for part in parts)]),
            candidates=sum(part.candidates for part in parts),
            comparisons=sum(part.comparisons for part in parts),
        )

    def compare_sets(self, pages: Pages, sets: list[NDArray[np.int64]]) -> LcsPairs:
        """Compare the pages within each of some sets, given as ascending page numbers, on one thread."""
        members = np.concatenate(sets)
        indptr, entries = take_rows(pages.indptr, members)
        tokens = pages.tokens[entries]
        rules = _Rules(self.tau, self.sketch, self.trust, self.coherence, self.central, self.members)
        a, b, r, candidates, comparisons = _compare_sets(
            tokens, indptr, _runs(tokens, indptr, self.sketch), np.cumsum([0, *map(len, sets)]), rules
        )
        return LcsPairs(members[a], members[b], r, candidates, comparisons)


class Pages(NamedTuple):
    """The different pages of a collection in order of comparison: from long to short, then by the MD5 of their tokens.

    ``tokens[indptr[p]:indptr[p + 1]]`` are the token hashes of page ``p``, and ``rows[copies[p]:copies[p + 1]]`` the
    documents with just these tokens. Page ``fingerprint_pages[f]`` has fingerprint ``fingerprints[f]``.
    """

    tokens: NDArray[np.uint64]
    indptr: NDArray[np.int64]
    rows: NDArray[np.int64]
    copies: NDArray[np.int64]
    fingerprints: NDArray[np.uint64]
    fingerprint_pages: NDArray[np.int64]


class LcsPairs(NamedTuple):
    """Similar pages ``a < b`` with their ``r``, and the work: pairs looked at, and pairs whose LCS was computed."""

    a: NDArray[np.int64]
    b: NDArray[np.int64]
    r: NDArray[np.float64]
    candidates: int
    comparisons: int


class _Rules(NamedTuple):
    """The parameters of `Lcs` that its kernels need."""

    tau: float
    sketch: int
    trust: bool
    coherence: float
    central: float
    members: bool


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, lower-cased, without their end marks and with one space for each white space.

    Parameters
    ----------
    text : str
        Visible text of a page.

    Returns
    -------
    list of str
        In order; text without an end mark is one sentence. Pieces without a letter or digit are no sentences.
    """
    pieces = (" ".join(piece.split()) for piece in _SENTENCE_END.split(text.lower()))
    return [piece for piece in pieces if any(map(str.isalnum, piece))]


def sentence_fingerprints(text: str, buckets: int = 7, smallest: int = 3) -> list[int]:
    """Return the fingerprints of a page: for each bucket of sentence MD5s, a hash of the smallest ones.

    Parameters
    ----------
    text : str
        Visible text of a page.
    buckets : int
        A sentence goes to the bucket ``MD5 mod buckets``, the MD5 read as a big-endian number.
    smallest : int
        Values that make a fingerprint: the first 8 bytes, big-endian, of the MD5 of their ascending concatenation.

    Returns
    -------
    list of int
        One 64-bit number for each bucket that is not empty, by bucket.
    """
    chosen: list[list[bytes]] = [[] for _ in range(buckets)]
    for value in sorted({_md5(sentence.encode("utf-8", "replace")) for sentence in sentences(text)}):
        bucket = chosen[int.from_bytes(value, "big") % buckets]
        if len(bucket) < smallest:
            bucket.append(value)
    return [int.from_bytes(_md5(b"".join(bucket))[:8], "big") for bucket in chosen if bucket]


def token_hashes(tokens: Tokens) -> NDArray[np.uint64]:
    """Return a well-mixed 64-bit hash of each token.

    Returns
    -------
    ndarray of uint64, shape (n_tokens,)
    """
    return splitmix64(_fnv1a(tokens.buffer, tokens.starts, tokens.ends))


def similarity(a: NDArray[np.uint64], b: NDArray[np.uint64], matcher: Lcs) -> float:
    """Return the r of two pages as a matcher measures it; 0 where it is below its tau.

    Parameters
    ----------
    a, b : ndarray of uint64
        Token hashes of the pages, the longer one first.
    matcher : Lcs
        Its stages two and three and their parameters are used.

    Returns
    -------
    float
    """
    if min(len(a), len(b)) == 0:
        return 0.0
    none = np.empty(0, np.int64)
    indptr = np.array([0, len(a), len(a) + len(b)])
    pages = Pages(np.concatenate([a, b]), indptr, none, none, np.empty(0, np.uint64), none)
    found = matcher.compare(pages, np.zeros(2, dtype=np.int64))
    return float(found.r[0]) if len(found.r) else 0.0


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _batches(sets: list[NDArray[np.int64]], indptr: NDArray[np.int64]) -> Iterator[list[NDArray[np.int64]]]:
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
    """Return a number for the run of ``length`` tokens at each place, equal for equal runs.

    It is -1 where the page ends within the run, and where the run occurs at one place only, so that it helps no pair.
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
    _, runs, places = np.unique(hashes[inside], return_inverse=True, return_counts=True)
    repeated = np.cumsum(places > 1, dtype=np.int32) - 1
    numbers[inside] = np.where(places > 1, repeated, -1)[runs]
    return numbers


@njit(cache=True, nogil=True)
def _fnv1a(buffer: NDArray[np.uint8], starts: NDArray[np.int32], ends: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Return the 64-bit FNV-1a hash of each span of bytes."""
    hashes = np.empty(len(starts), np.uint64)
    for t in range(len(starts)):
        h = np.uint64(0xCBF29CE484222325)
        for p in range(starts[t], ends[t]):
            h = (h ^ np.uint64(buffer[p])) * np.uint64(0x100000001B3)
        hashes[t] = h
    return hashes


@njit(cache=True, nogil=True)
def _bounded_union(values: NDArray[np.int64], pages: NDArray[np.int64], n: int, max_set: int) -> NDArray[np.int64]:
    """Unite neighbours with equal values while the union has at most ``max_set`` pages; return each page's root."""
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


@njit(cache=True, nogil=True)
def _root(parent: NDArray[np.int64], p: int) -> int:
    """Return the root of a page, halving the path to it."""
    while parent[p] != p:
        parent[p] = parent[parent[p]]
        p = parent[p]
    return p


@njit(cache=True, nogil=True)
def _compare_sets(
    tokens: NDArray[np.uint64],
    indptr: NDArray[np.int64],
    runs: NDArray[np.int32],
    set_starts: NDArray[np.int64],
    rules: _Rules,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], int, int]:
    """Compare the pages of each set in order; return similar pages with their r, candidates and comparisons."""
    n = len(indptr) - 1
    longest = 0
    for page in range(n):
        longest = max(longest, indptr[page + 1] - indptr[page])
    marks = np.zeros((2, runs.max() + 2), np.int32)  # 1 + the page that has marked each run last, for either side
    kept, places = np.empty((2, longest), np.uint64), np.empty((2, longest), np.int64)
    partner, reach = np.empty(longest, np.int64), np.empty((2, 2 * longest + 5), np.int64)
    out_a, out_b, out_r = np.empty(256, np.int64), np.empty(256, np.int64), np.empty(256, np.float64)
    found = candidates = comparisons = 0
    owner = np.full(n, -1, np.int64)
    for s in range(len(set_starts) - 1):
        for a in range(set_starts[s], set_starts[s + 1]):
            # A representative looks for members among the free pages, a member compares with its fellow members.
            wanted = owner[a]
            if wanted < 0:
                owner[a] = a
            elif not rules.members:
                continue
            _mark(runs, indptr[a], indptr[a + 1], marks[0], a)
            for b in range(a + 1, set_starts[s + 1]):
                if owner[b] != wanted:
                    continue
                least = _least_common(indptr[a + 1] - indptr[a], indptr[b + 1] - indptr[b], rules)
                if least > indptr[b + 1] - indptr[b]:
                    break  # too short, and the pages after it are no longer
                candidates += 1
                n_b = _keep(tokens, runs, indptr, b, marks[0], a, rules.sketch, kept[1], places[1])
                if n_b < least:
                    continue
                _mark(runs, indptr[b], indptr[b + 1], marks[1], b)
                n_a = _keep(tokens, runs, indptr, a, marks[1], b, rules.sketch, kept[0], places[0])
                if n_a < least:
                    continue
                comparisons += 1
                if align(kept[0, :n_a], kept[1, :n_b], n_a + n_b - 2 * least, partner, reach) < 0:
                    continue
                r = _similarity(partner[:n_a], places, indptr[a + 1] - indptr[a], indptr[b + 1] - indptr[b], rules)
                if r >= rules.tau:
                    if wanted < 0:
                        owner[b] = a
                    if found == len(out_a):
                        out_a, out_b, out_r = _twice(out_a), _twice(out_b), _twice(out_r)
                    out_a[found], out_b[found], out_r[found] = a, b, r
                    found += 1
    return out_a[:found], out_b[:found], out_r[:found], candidates, comparisons


@njit(cache=True, nogil=True)
def _twice(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy with room for as many elements again."""
    longer = np.empty(2 * len(array), array.dtype)
    longer[: len(array)] = array
    return longer


@njit(cache=True, nogil=True)
def _least_common(n_a: int, n_b: int, rules: _Rules) -> int:
    """Return the least number of matched tokens with which two pages can be similar; more than either has if none.

    By the test itself, which is monotone in that number: a stretch spans no fewer tokens than it matches.
    """
    low, high = 1, min(n_a, n_b) + 1
    while low < high:
        common = (low + high) // 2
        if _ratio(common, common, common, n_a, n_b, rules) >= rules.tau:
            high = common
        else:
            low = common + 1
    return low


@njit(cache=True, nogil=True)
def _ratio(common: int, span_a: int, span_b: int, n_a: int, n_b: int, rules: _Rules) -> float:
    """Return r for a number of matched tokens and the number of tokens they span, in pages of these lengths."""
    if rules.trust:
        n_a = max(span_a, int(np.ceil(rules.central * n_a)))
        n_b = max(span_b, int(np.ceil(rules.central * n_b)))
    return common / (n_a + n_b - common)


@njit(cache=True, nogil=True)
def _mark(runs: NDArray[np.int32], start: int, end: int, out_marks: NDArray[np.int32], page: int) -> None:
    """Mark the runs of tokens of a page."""
    for p in range(start, end):
        if runs[p] >= 0:
            out_marks[runs[p]] = page + 1


@njit(cache=True, nogil=True)
def _keep(
    tokens: NDArray[np.uint64],
    runs: NDArray[np.int32],
    indptr: NDArray[np.int64],
    page: int,
    marks: NDArray[np.int32],
    other: int,
    length: int,
    out_tokens: NDArray[np.uint64],
    out_places: NDArray[np.int64],
) -> int:
    """Write the tokens of a page in runs that the other page has marked, and their places; return how many."""
    size = 0
    start, end = indptr[page], indptr[page + 1]
    covered = start if length else end
    for p in range(start, end):
        if runs[p] >= 0 and marks[runs[p]] == other + 1:
            covered = max(covered, p + length)
        if p < covered:
            out_tokens[size] = tokens[p]
            out_places[size] = p - start
            size += 1
    return size


@njit(cache=True, nogil=True)
def _similarity(partner: NDArray[np.int64], places: NDArray[np.int64], n_a: int, n_b: int, rules: _Rules) -> float:
    """Return the r of two pages from an alignment of their sketches (see `Lcs`, the trustable portion)."""
    if not rules.trust:
        return _ratio(int(np.sum(partner >= 0)), 0, 0, n_a, n_b, rules)
    best = r = score = 0.0
    common = first_a = first_b = last_a = last_b = 0
    for p in range(len(partner)):
        if partner[p] < 0:
            continue
        a, b = places[0, p], places[1, partner[p]]
        score -= rules.coherence * (a - last_a - 1 + b - last_b - 1)
        if common == 0 or score <= 0:  # the best stretch that ends here begins here
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
