"""Tools of the benchmark: functions from vectors to ``run(tau, threads)``, which returns verified pairs.

The conversion of the input is done before a function returns ``run``, and timed separately. Tools on sets get every
(signature, number of its occurrence) as an element, so that all compute the same multiset Jaccard. Candidates are
verified by the compiled loop `verified`, which counts in the tool's time. ``python -m benchmarks.join_tools`` measures
one run in a process of its own, for `benchmarks.bench`.

To add a tool, write such a function and add it to `TOOLS`.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baselines.lsh_native import LshNative
from data.collections.wt10g_like import Wt10gLike
from experiments.harness.machine_load import timed
from spotsigs.contracts import Matcher
from spotsigs.matching.algorithm1 import SpotSigs
from spotsigs.matching.bounds import bounds
from spotsigs.matching.prefix_join import SpotSigsTight, self_join
from spotsigs.matching.verify import jaccard
from spotsigs.records import Corpus, Vectors

PairArrays = tuple[NDArray[Any], NDArray[Any]]
"""Rows of similar pairs."""
Run = Callable[[float, int], PairArrays]
"""Function of tau and the number of threads."""

ALL_TAUS = (1.0, 0.9, 0.7, 0.5, 0.3)
PEER_TAUS = (0.9, 0.7, 0.5)
SKETCH_TAUS = (0.9, 0.5)
"""Thresholds of tools whose time hardly depends on the threshold."""


class UnavailableError(Exception):
    """Error of a tool that cannot run on this machine, with the reason."""


@dataclass(frozen=True, kw_only=True)
class Tool:
    """Tool: its function from vectors to ``run``, whether it finds every pair, its thresholds and numbers of threads.

    Thresholds descend: if one takes too long, lower ones are omitted.
    """

    prepare: Callable[[Vectors], Run]
    exact: bool
    taus: tuple[float, ...] = PEER_TAUS
    threads: tuple[int, ...] = (1,)


def of_matcher(build: Callable[..., Matcher], vectors: Vectors) -> Run:
    """Return ``run`` of one of our matchers."""

    def run(tau: float, threads: int) -> PairArrays:
        pairs = build(tau=tau, threads=threads)(Corpus(vectors))
        return pairs.i, pairs.j

    return run


def datasketch(vectors: Vectors) -> Run:
    """datasketch MinHashLSH, k = 6, l = 32, on hashes of tokens."""
    from datasketch import MinHash, MinHashLSH

    sets = _as_lists(vectors, _hashes)

    def run(tau: float, threads: int) -> PairArrays:
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

    def run(tau: float, threads: int) -> PairArrays:
        sketches = RMinHash.from_token_sets(names, 192, 1)
        index = RMinHashLSH(tau, 192, 32)
        index.insert_many(sketches)
        blocks = (index.query_all(sketches[k : k + 20_000]) for k in range(0, len(sketches), 20_000))
        return verified(vectors, (partners for block in blocks for partners in block), tau)

    return run


def set_similarity_search(vectors: Vectors) -> Run:
    """SetSimilaritySearch all_pairs, exact, Python."""
    from SetSimilaritySearch import all_pairs

    sets = _as_lists(vectors, lambda tokens: tokens)

    def run(tau: float, threads: int) -> PairArrays:
        pairs = np.array([(x, y) for x, y, _ in all_pairs(sets, "jaccard", tau)], np.int64).reshape(-1, 2)
        return pairs.min(axis=1, initial=2**62), pairs.max(axis=1, initial=-1)

    return run


def sparse_dot_topn(vectors: Vectors) -> Run:
    """sparse_dot_topn X·Xᵀ in blocks of rows (C++), exact: all entries are kept."""
    from scipy import sparse
    from sparse_dot_topn import sp_matmul

    tokens = _tokens(vectors)
    indptr = np.concatenate([[0], np.cumsum(vectors.lengths)])
    matrix = sparse.csr_matrix((np.ones(len(tokens), np.int32), tokens.astype(np.int32), indptr))
    transposed = matrix.T.tocsr()

    def run(tau: float, threads: int) -> PairArrays:
        pieces = []
        for begin in range(0, len(vectors), 2000):
            overlaps = sp_matmul(matrix[begin : begin + 2000], transposed, n_threads=threads).tocoo()
            i, j = overlaps.row.astype(np.int64) + begin, overlaps.col.astype(np.int64)
            similar = (i < j) & (overlaps.data / (vectors.lengths[i] + vectors.lengths[j] - overlaps.data) >= tau)
            pieces.append((i[similar], j[similar]))
        i, j = map(np.concatenate, zip(*pieces, strict=True))
        return i, j

    return run


def cpp(positional: bool, vectors: Vectors) -> Run:
    """AllPairs or PPJoin in our C++ implementation, exact; ordering and sorting the sets is not timed."""
    library = ctypes.CDLL(str(_compiled(Path(__file__).with_name("allpairs.cpp"))))
    rows, indptr, tokens = _ordered_sets(vectors)
    capacity = 64 * len(vectors) + 1000  # the system allocates only pages that are written
    out = np.empty((2, capacity), np.int32)
    integers, wide = np.ctypeslib.ndpointer(np.int32), np.ctypeslib.ndpointer(np.int64)
    library.join.restype = ctypes.c_int64
    library.join.argtypes = [
        wide,
        integers,
        ctypes.c_int64,
        ctypes.c_int32,
        integers,
        ctypes.c_double,
        ctypes.c_int32,
        integers,
        integers,
        ctypes.c_int64,
    ]

    def run(tau: float, threads: int) -> PairArrays:
        least = bounds(tau, int(vectors.lengths.max())).least
        n_tokens = int(tokens.max()) + 1
        n = library.join(indptr, tokens, len(vectors), n_tokens, least, tau, int(positional), out[0], out[1], capacity)
        if n > capacity:
            raise UnavailableError(f"{n:,} pairs do not fit in its buffer")
        return rows[out[0, :n]], rows[out[1, :n]]

    return run


TOOLS = {
    "spotsigs_tight": Tool(prepare=partial(of_matcher, SpotSigsTight), exact=True, taus=ALL_TAUS, threads=(2, 1)),
    "lsh_native": Tool(
        prepare=partial(of_matcher, partial(LshNative, k=6, l=32)), exact=False, taus=(0.9, 0.5, 0.3), threads=(2,)
    ),
    "spotsigs": Tool(prepare=partial(of_matcher, SpotSigs), exact=True, taus=ALL_TAUS, threads=(2,)),
    "AllPairs (our C++)": Tool(prepare=partial(cpp, False), exact=True),
    "PPJoin (our C++)": Tool(prepare=partial(cpp, True), exact=True),
    "rensa": Tool(prepare=rensa, exact=False, taus=SKETCH_TAUS, threads=(2,)),
    "datasketch": Tool(prepare=datasketch, exact=False, taus=SKETCH_TAUS),
    "SetSimilaritySearch": Tool(prepare=set_similarity_search, exact=True, taus=(0.9, 0.7)),
    "sparse_dot_topn": Tool(prepare=sparse_dot_topn, exact=True, taus=(0.9,), threads=(2,)),
}
"""Tools by name, ours first."""

JOIN = "spotsigs_tight"
OURS = (JOIN, "lsh_native", "spotsigs")
"""Tools whose kernels are compiled."""
PACKAGES = ("datasketch", "rensa", "SetSimilaritySearch", "sparse_dot_topn")


def verified(vectors: Vectors, candidates: Iterable[Iterable[int]], tau: float) -> PairArrays:
    """Return the pairs of each row and its later candidates that reach tau."""
    partners, ends = array("q"), array("q")
    for pair_chunks in candidates:
        partners.extend(pair_chunks)
        ends.append(len(partners))
    i, j = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0)), np.array(partners)
    i, j = i[i < j], j[i < j]
    similar = jaccard(vectors, i, j, threads=1) >= tau
    return i[similar], j[similar]


def _tokens(vectors: Vectors) -> NDArray[np.int64]:
    """Return contiguous ids of (signature, number of its occurrence), row by row."""
    counts = vectors.counts.astype(np.int64)
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    keys = np.repeat(vectors.ids.astype(np.int64), counts) * (int(counts.max(initial=1)) + 1) + number
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


def _hashes(tokens: NDArray[np.int64]) -> NDArray[np.uint64]:
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
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise UnavailableError("no C++ compiler is installed")
    library = Path(tempfile.mkdtemp()) / "allpairs.so"
    command = [compiler, "-O3", "-march=native", "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    return library


def measure(tool: str, vectors: Vectors, tau: float, threads: int) -> dict[str, Any]:
    """Run a tool and compare its pairs with the pairs of our exact join."""
    try:
        began = time.perf_counter()
        run = TOOLS[tool].prepare(vectors)
        prepared = time.perf_counter() - began
        TOOLS[tool].prepare(Wt10gLike(documents=200).vectors())(0.7, threads)  # loads compiled kernels
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak memory
        before = _resident("VmRSS")
        last: list[PairArrays] = []

        def joined() -> None:
            last.clear()  # free the previous pairs first
            last.append(run(tau, threads))

        seconds, _, contended, _ = timed(joined)
    except (UnavailableError, ImportError) as reason:
        return {"status": "unavailable", "reason": str(reason)}
    return {
        "status": "ok",
        "contended": contended,
        "seconds": float(np.median(seconds)),
        "least_seconds": min(seconds),
        "runs": len(seconds),
        "prepare_seconds": prepared,
        "peak_mb": _resident("VmHWM"),
        "before_mb": before,
        **agreement(last[0], vectors, tau, tool),
    }


def agreement(pairs: PairArrays, vectors: Vectors, tau: float, tool: str) -> dict[str, Any]:
    """Compare pairs with the exact ones."""
    if tool == JOIN:
        return {"pairs": len(pairs[0]), "recall": None, "precision": None}
    exact, n = self_join(vectors, tau), len(vectors)
    i, j = pairs
    reported = np.unique(np.minimum(i, j).astype(np.int64) * n + np.maximum(i, j))
    shared = len(np.intersect1d(exact.i.astype(np.int64) * n + exact.j, reported, assume_unique=True))
    recall, precision = shared / max(len(exact), 1), shared / max(len(reported), 1)
    return {"pairs": len(reported), "recall": recall, "precision": precision}


def _resident(field: str) -> float:
    """Return the memory of this process in MB, on Linux: VmRSS is the current value, VmHWM the peak."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith(field)).split()[1]) * 1024 / 1e6


if __name__ == "__main__":
    cell = json.loads(sys.argv[1])
    drawn = Wt10gLike(**cell["collection"]).vectors()
    print(json.dumps(measure(cell["tool"], drawn, cell["tau"], cell["threads"])))
    sys.stdout.flush()
    os._exit(0)  # skip freeing millions of Python objects, which can take as long as the run
