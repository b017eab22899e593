"""Tools of the benchmark: functions from vectors to ``run(tau, threads)``, which returns verified pairs.

The conversion of the input is done before a function returns ``run``, and timed separately. Tools on sets get every
(signature, number of its occurrence) as an element, so that all compute the same multiset Jaccard. Candidates are
verified by the compiled loop `verified`, which counts in the tool's time.

To add a tool, write such a function and add it to `TOOLS`.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spotsigs.records import Corpus, Matcher, Vectors

Found = tuple[NDArray[Any], NDArray[Any]]
"""Rows of similar pairs."""
Run = Callable[[float, int], Any]
"""Function ``(tau, threads) -> Found``; tools that only flag rows return a boolean array."""

ALL_TAUS = (1.0, 0.9, 0.78, 0.7, 0.6, 0.5, 0.4, 0.3)
PEER_TAUS = (1.0, 0.9, 0.7, 0.5)
SKETCH_TAUS = (0.9, 0.5)
"""Thresholds of tools whose time hardly depends on the threshold."""


class UnavailableError(Exception):
    """Error of a tool that cannot run on this machine, with the reason."""


@dataclass(frozen=True, kw_only=True)
class Tool:
    """Tool with its parameters in the benchmark.

    Attributes
    ----------
    prepare : callable
        Function from vectors to ``run``.
    exact : bool
        True if it finds every pair.
    taus : tuple of float
        Thresholds, descending: if one takes too long, lower ones are omitted.
    threads : tuple of int
        Numbers of threads; (1,) for single-threaded tools.
    flags : bool
        True if it only flags the rows that have a near-duplicate.
    """

    prepare: Callable[[Vectors], Run]
    exact: bool
    taus: tuple[float, ...] = PEER_TAUS
    threads: tuple[int, ...] = (1,)
    flags: bool = False


def own(build: Callable[[float, int], Matcher], vectors: Vectors) -> Run:
    """Return ``run`` of one of our matchers; stages and counters are in ``run.details``."""

    def run(tau: float, threads: int) -> Found:
        pairs = build(tau, threads)(Corpus(vectors))
        run.details = {"seconds": dict(pairs.seconds), "counters": dict(pairs.counters)}  # type: ignore[attr-defined]
        return pairs.i, pairs.j

    return run


def tight(tau: float, threads: int) -> Matcher:
    """Our exact join."""
    from spotsigs.matching.prefix_join import SpotSigsTight

    return SpotSigsTight(tau=tau, threads=threads)


def algorithm_1(tau: float, threads: int) -> Matcher:
    """Algorithm 1 as printed, on kernels."""
    from spotsigs.matching.algorithm1 import SpotSigs

    return SpotSigs(tau=tau, threads=threads)


def lsh_native(tau: float, threads: int) -> Matcher:
    """LSH-S on kernels, k = 6, l = 32."""
    from baselines.lsh_native import LshNative

    return LshNative(tau=tau, k=6, l=32, threads=threads)


def datasketch(vectors: Vectors) -> Run:
    """datasketch MinHashLSH, k = 6, l = 32, on hashes of tokens."""
    from datasketch import MinHash, MinHashLSH

    sets = _as_lists(vectors, _hashes)

    def run(tau: float, threads: int) -> Found:
        index = MinHashLSH(num_perm=192, params=(32, 6))
        sketches = list(MinHash.generator(sets, num_perm=192, seed=1, hashfunc=int))
        for row, sketch in enumerate(sketches):
            index.insert(row, sketch, check_duplication=False)
        return verified(vectors, (index.query(sketch) for sketch in sketches), tau)

    return run


def rensa(vectors: Vectors) -> Run:
    """rensa RMinHash and RMinHashLSH (Rust), 32 bands of 6."""
    from rensa import RMinHash, RMinHashLSH

    names = _as_lists(vectors, lambda tokens: np.char.mod("%d", tokens).astype(object))

    def run(tau: float, threads: int) -> Found:
        sketches = RMinHash.from_token_sets(names, 192, 1)
        index = RMinHashLSH(tau, 192, 32)
        index.insert_many(sketches)
        blocks = (index.query_all(sketches[k : k + 20_000]) for k in range(0, len(sketches), 20_000))
        return verified(vectors, (partners for block in blocks for partners in block), tau)

    return run


def rensa_flags(vectors: Vectors) -> Run:
    """rensa's rho pipeline, its fastest: flags rows with a near-duplicate by estimate, without pairs."""
    from rensa import RMinHash, RMinHashLSH

    hashes = _hashes(_tokens(vectors))
    starts = np.concatenate([np.zeros(1, np.uint64), np.cumsum(vectors.lengths).astype(np.uint64)])

    def run(tau: float, threads: int) -> NDArray[np.bool_]:
        matrix = RMinHash.digest_matrix_from_flat_token_hashes_rho(hashes, starts, 128, 1)
        return np.array(RMinHashLSH(tau, 128, 8).query_duplicate_flags_matrix_one_shot(matrix), np.bool_)

    return run


def gaoya(vectors: Vectors) -> Run:
    """gaoya MinHashStringIndex (Rust), 32 bands of 6, without its own estimate of the similarity."""
    from gaoya.minhash import MinHashStringIndex

    names = _as_lists(vectors, lambda tokens: np.char.mod("t%d", tokens).astype(object))
    texts = [" ".join(row) for row in names]

    def run(tau: float, threads: int) -> Found:
        index = MinHashStringIndex(32, 0.0, 32, 6, None, "word", False, (1, 1), "vec")
        index.par_bulk_insert_docs(list(range(len(texts))), texts)
        blocks = (index.par_bulk_query(texts[k : k + 20_000]) for k in range(0, len(texts), 20_000))
        return verified(vectors, (partners for block in blocks for partners in block), tau)

    return run


def set_similarity_search(vectors: Vectors) -> Run:
    """SetSimilaritySearch all_pairs, exact, Python."""
    from SetSimilaritySearch import all_pairs

    sets = _as_lists(vectors, lambda tokens: tokens)

    def run(tau: float, threads: int) -> Found:
        found = np.array([(x, y) for x, y, _ in all_pairs(sets, "jaccard", tau)], np.int64).reshape(-1, 2)
        return found.min(axis=1, initial=2**62), found.max(axis=1, initial=-1)

    return run


def scipy_product(vectors: Vectors) -> Run:
    """scipy X·Xᵀ in blocks of rows, exact."""
    matrix = _matrix(vectors)

    def run(tau: float, threads: int) -> Found:
        return _products(vectors, tau, lambda block: block @ matrix.T, matrix)

    return run


def sparse_dot_topn(vectors: Vectors) -> Run:
    """sparse_dot_topn X·Xᵀ in blocks of rows (C++), exact: all entries are kept."""
    from sparse_dot_topn import sp_matmul

    matrix = _matrix(vectors)
    transposed = matrix.T.tocsr()

    def run(tau: float, threads: int) -> Found:
        return _products(vectors, tau, lambda block: sp_matmul(block, transposed, n_threads=threads), matrix)

    return run


def cpp(positional: bool, vectors: Vectors) -> Run:
    """AllPairs or PPJoin in our C++ implementation, exact; ordering and sorting the sets is not timed."""
    from spotsigs.matching.bounds import bounds

    library = ctypes.CDLL(str(_compiled(Path(__file__).with_name("allpairs.cpp"))))
    rows, indptr, tokens = _ordered_sets(vectors)
    capacity = 64 * len(vectors) + 1000  # the system allocates only pages that are written
    out = np.empty((2, capacity), np.int32)
    integers, wide = np.ctypeslib.ndpointer(np.int32), np.ctypeslib.ndpointer(np.int64)
    library.join.restype = ctypes.c_int64
    library.join.argtypes = [
        wide, integers, ctypes.c_int64, ctypes.c_int32, integers, ctypes.c_double, ctypes.c_int32, integers, integers,
        ctypes.c_int64,
    ]  # fmt: skip

    def run(tau: float, threads: int) -> Found:
        least = bounds(tau, int(vectors.lengths.max())).least
        n_tokens = int(tokens.max()) + 1
        n = library.join(indptr, tokens, len(vectors), n_tokens, least, tau, int(positional), out[0], out[1], capacity)
        if n > capacity:
            raise UnavailableError(f"{n:,} pairs do not fit in its buffer")
        return rows[out[0, :n]], rows[out[1, :n]]

    return run


TOOLS = {
    "spotsigs_tight": Tool(prepare=partial(own, tight), exact=True, taus=ALL_TAUS, threads=(2, 1)),
    "lsh_native": Tool(prepare=partial(own, lsh_native), exact=False, taus=ALL_TAUS, threads=(2,)),
    "spotsigs": Tool(prepare=partial(own, algorithm_1), exact=True, taus=ALL_TAUS, threads=(2,)),
    "AllPairs (our C++)": Tool(prepare=partial(cpp, False), exact=True),
    "PPJoin (our C++)": Tool(prepare=partial(cpp, True), exact=True),
    "rensa": Tool(prepare=rensa, exact=False, taus=SKETCH_TAUS, threads=(2,)),
    "rensa, flags only": Tool(prepare=rensa_flags, exact=False, taus=SKETCH_TAUS, threads=(2,), flags=True),
    "gaoya": Tool(prepare=gaoya, exact=False, taus=SKETCH_TAUS, threads=(2,)),
    "datasketch": Tool(prepare=datasketch, exact=False, taus=SKETCH_TAUS),
    "SetSimilaritySearch": Tool(prepare=set_similarity_search, exact=True),
    "sparse_dot_topn": Tool(prepare=sparse_dot_topn, exact=True, taus=(0.9,), threads=(2,)),
    "scipy": Tool(prepare=scipy_product, exact=True, taus=(0.9,)),
}
"""Tools by name, ours first."""

JOIN = "spotsigs_tight"
PRODUCTS = ("sparse_dot_topn", "scipy")
"""Tools that process every pair with a common token, whatever the threshold."""
OURS = (JOIN, "lsh_native", "spotsigs")
PACKAGES = ("datasketch", "rensa", "gaoya", "SetSimilaritySearch", "sparse_dot_topn", "scipy")


def verified(vectors: Vectors, candidates: Iterable[Iterable[int]], tau: float) -> Found:
    """Return the pairs of each row and its later candidates that pass the exact test."""
    kept: list[Found] = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    rows: list[int] = []
    partners: list[NDArray[np.int64]] = []
    size = 0
    for row, found in enumerate(candidates):
        rows.append(row)
        partners.append(np.fromiter(found, np.int64))
        size += len(partners[-1])
        if size > 1_000_000:
            kept.append(_similar(vectors, rows, partners, tau))
            rows, partners, size = [], [], 0
    if rows:
        kept.append(_similar(vectors, rows, partners, tau))
    i, j = map(np.concatenate, zip(*kept, strict=True))
    return i, j


def _similar(vectors: Vectors, rows: list[int], partners: list[NDArray[np.int64]], tau: float) -> Found:
    i = np.repeat(np.array(rows), [len(one) for one in partners])
    j = np.concatenate(partners)
    i, j = i[i < j], j[i < j]
    similar = np.empty(len(i), np.bool_)
    _compare(vectors.indptr, vectors.ids, vectors.counts, vectors.lengths, i, j, tau, similar)
    return i[similar], j[similar]


@njit(cache=True, nogil=True)
def _compare(indptr: Any, ids: Any, counts: Any, lengths: Any, i: Any, j: Any, tau: Any, out: Any) -> None:
    for m in range(len(i)):
        a, b, overlap = indptr[i[m]], indptr[j[m]], 0
        while a < indptr[i[m] + 1] and b < indptr[j[m] + 1]:
            if ids[a] == ids[b]:
                overlap += min(counts[a], counts[b])
                a += 1
                b += 1
            elif ids[a] < ids[b]:
                a += 1
            else:
                b += 1
        out[m] = overlap / (lengths[i[m]] + lengths[j[m]] - overlap) >= tau


def _tokens(vectors: Vectors) -> NDArray[np.int64]:
    """Return contiguous ids of (signature, number of its occurrence), row by row."""
    counts = vectors.counts.astype(np.int64)
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    keys = np.repeat(vectors.ids.astype(np.int64), counts) * (int(counts.max(initial=1)) + 1) + number
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


def _hashes(tokens: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return 32-bit hashes."""
    x = tokens.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (x ^ x >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(32)


def _as_lists(vectors: Vectors, name: Callable[[NDArray[np.int64]], NDArray[Any]]) -> list[list[Any]]:
    """Return each row as a list of the names of its tokens; equal names are the same object."""
    tokens = _tokens(vectors)
    names = name(np.arange(int(tokens.max()) + 1)).tolist()
    ends = np.cumsum(vectors.lengths)
    return [
        [names[t] for t in tokens[e - n : e].tolist()]
        for e, n in zip(ends.tolist(), vectors.lengths.tolist(), strict=True)
    ]


def _matrix(vectors: Vectors) -> Any:
    """Return the 0/1 matrix of rows and tokens."""
    from scipy import sparse

    tokens = _tokens(vectors)
    indptr = np.concatenate([[0], np.cumsum(vectors.lengths)])
    return sparse.csr_matrix((np.ones(len(tokens), np.int32), tokens.astype(np.int32), indptr))


def _products(vectors: Vectors, tau: float, product: Callable[[Any], Any], matrix: Any) -> Found:
    """Return the similar pairs from blocks of the product."""
    kept = []
    for begin in range(0, len(vectors), 2000):
        overlaps = product(matrix[begin : begin + 2000]).tocoo()
        i, j = overlaps.row.astype(np.int64) + begin, overlaps.col.astype(np.int64)
        similar = (i < j) & (overlaps.data / (vectors.lengths[i] + vectors.lengths[j] - overlaps.data) >= tau)
        kept.append((i[similar], j[similar]))
    i, j = map(np.concatenate, zip(*kept, strict=True))
    return i, j


def _ordered_sets(vectors: Vectors) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Return rows by length, and their tokens by ascending frequency in CSR form."""
    tokens = _tokens(vectors)
    frequency = np.bincount(tokens)
    rank = np.empty(len(frequency), np.int64)
    rank[np.argsort(frequency, kind="stable")] = np.arange(len(frequency))
    rows = np.argsort(vectors.lengths, kind="stable")
    place = np.empty(len(rows), np.int64)
    place[rows] = np.arange(len(rows))
    keys = np.repeat(place, vectors.lengths) * len(frequency) + rank[tokens]
    keys.sort()
    indptr = np.concatenate([[0], np.cumsum(vectors.lengths[rows])])
    return rows, indptr, (keys % len(frequency)).astype(np.int32)


def _compiled(source: Path) -> Path:
    """Compile the C++ implementation for this process."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise UnavailableError("no C++ compiler is installed")
    library = Path(tempfile.mkdtemp()) / "allpairs.so"
    command = [compiler, "-O3", "-march=native", "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    return library
