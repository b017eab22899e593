"""Primitives of the kernels: instructions of the processor, overlap of rows, contiguous ids, blocks over threads."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # ships no types
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from spotsigs.arrays.kernel import kernel

T = TypeVar("T")
R = TypeVar("R")

if getattr(config, "DISABLE_JIT"):  # noqa: B009 - interpreted kernels, for coverage: the same values, no hints

    def prefetch(array: Any, index: Any) -> None:
        """Prefetch the cache line of ``array[index]``."""

    def bit_count(word: Any) -> int:
        """Return the number of ones in a 64-bit word."""
        return int(word).bit_count()

else:

    @intrinsic
    def prefetch(context: Any, array: Any, index: Any) -> Any:
        """Prefetch the cache line of ``array[index]``, which need not exist."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            item = cgutils.get_item_pointer(context, builder, signature.args[0], view, [arguments[1]])
            byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
            hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            builder.call(hint, [builder.bitcast(item, byte), word(0), word(3), word(1)])
            return context.get_dummy_value()

        return types.void(array, index), generate

    @intrinsic
    def bit_count(context: Any, word: Any) -> Any:
        """Return the number of ones in a 64-bit word."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.ctpop(arguments[0])

        return types.int64(types.uint64), generate


@kernel
def overlap(ids, counts, start_a, stop_a, start_b, stop_b):  # type: ignore[no-untyped-def]
    """Return the sum of the smaller counts over two sorted rows: the multiset intersection's size."""
    shared = 0
    a = start_a
    b = start_b
    while a < stop_a and b < stop_b:
        if ids[a] < ids[b]:
            a += 1
        elif ids[a] > ids[b]:
            b += 1
        else:
            shared += min(counts[a], counts[b])
            a += 1
            b += 1
    return shared


@kernel
def grown(array):  # type: ignore[no-untyped-def]
    """Return a copy of an output array with twice the capacity."""
    larger = np.empty(2 * len(array) + 16, array.dtype)
    larger[: len(array)] = array
    return larger


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values, ascending: `np.unique` hashes integers first, which takes a hundred times as long."""
    ascending = np.sort(values)
    return np.compress(begins(ascending), ascending)


def begins(ascending: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether each of ascending values differs from the one before."""
    return np.append(np.ones(min(len(ascending), 1), np.bool_), ascending[1:] != ascending[:-1])


def renumbered(parts: Sequence[NDArray[np.int32]], n_ids: int) -> tuple[list[NDArray[np.int32]], int]:
    """Map the ids below `n_ids` of several arrays to contiguous ids, in the same order; return these and their number.

    A fifth of a byte of memory is used for each possible id.
    """
    words = np.zeros((n_ids + 63) >> 6, np.uint64)
    for ids in parts:
        _mark(ids, words)
    before = np.zeros(len(words) + 1, np.int32)
    np.cumsum(np.bitwise_count(words), dtype=np.int32, out=before[1:])
    renumbered_parts = [np.empty(len(ids), np.int32) for ids in parts]
    for ids, numbers in zip(parts, renumbered_parts, strict=True):
        _rank(ids, words, before, numbers)
    return renumbered_parts, int(before[-1])


@kernel
def _mark(ids, words):  # type: ignore[no-untyped-def]
    for value in ids:
        words[value >> 6] |= np.uint64(1) << np.uint64(value & 63)


@kernel
def _rank(ids, words, before, numbers):  # type: ignore[no-untyped-def]
    for k, value in enumerate(ids):
        lower = words[value >> 6] & ((np.uint64(1) << np.uint64(value & 63)) - np.uint64(1))
        numbers[k] = before[value >> 6] + bit_count(lower)


@kernel
def gather(indptr, values, rows, ends, out):  # type: ignore[no-untyped-def]
    """Concatenate the values of some rows; ``ends`` has their offsets in the output."""
    for r in range(len(rows)):
        at, to = indptr[rows[r]], ends[r]
        for k in range(ends[r + 1] - to):
            out[to + k] = values[at + k]


def all_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def over_blocks(kernel: Callable[[int, int], Any], n: int, threads: int | None, blocks_a_thread: int = 8) -> list[Any]:
    """Run ``kernel(start, stop)``, which releases the interpreter lock, over the blocks of ``range(n)``.

    `threads` is None for all cores; several blocks a thread balance the load. The results are in block order.
    """
    threads = all_cores() if threads is None else threads
    edges = np.linspace(0, n, min(n, threads * blocks_a_thread) + 1).astype(np.int64).tolist()
    spans = list(itertools.pairwise(edges))
    if threads == 1:
        return [kernel(*span) for span in spans]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda span: kernel(*span), spans))


def on_threads(function: Callable[[T], R], items: Sequence[T], threads: int) -> Generator[R, None, None]:
    """Yield the results of a function that waits for the system, in order, for some items at a time.

    If one raises an error, or the iteration is closed early, those that have not begun are cancelled.
    """
    with ThreadPoolExecutor(threads) as pool:
        try:
            yield from pool.map(function, items)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def concatenated(parts: Sequence[tuple[NDArray[Any], ...]], dtypes: tuple[Any, ...]) -> list[NDArray[Any]]:
    """Concatenate the output arrays of several blocks, column by column; typed also where there are none.

    A block may return more than its columns, such as a counter. Large columns are copied by one thread a core: most of
    the time, the system provides pages of memory.
    """
    if sum(column.nbytes for part in parts for column in part[: len(dtypes)]) < LARGE:
        return [np.concatenate([np.empty(0, dtype), *(part[c] for part in parts)]) for c, dtype in enumerate(dtypes)]
    with ThreadPoolExecutor(all_cores()) as pool:
        return [_concatenated([part[c] for part in parts], dtype, pool) for c, dtype in enumerate(dtypes)]


LARGE = 1 << 25
"""Bytes from which on threads concatenate."""


def _concatenated(parts: Sequence[NDArray[Any]], dtype: Any, pool: ThreadPoolExecutor) -> NDArray[Any]:
    out = np.empty(sum(map(len, parts)), np.result_type(dtype, *parts))
    stops = itertools.accumulate(map(len, parts))
    list(pool.map(lambda part, stop: np.copyto(out[stop - len(part) : stop], part), parts, stops))
    return out
