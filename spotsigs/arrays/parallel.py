"""Numba kernels shared by the exact matchers: overlap of two rows, growing outputs, blocks over threads."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def grown(array):  # type: ignore[no-untyped-def]
    """Return a copy of an output array with twice the capacity."""
    larger = np.empty(2 * len(array) + 16, array.dtype)
    larger[: len(array)] = array
    return larger


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


def concatenated(parts: list[tuple[NDArray[Any], ...]], dtypes: tuple[Any, ...]) -> list[NDArray[Any]]:
    """Concatenate the output arrays of several blocks, column by column; typed also where there are none."""
    return [np.concatenate([np.empty(0, dtype), *(part[c] for part in parts)]) for c, dtype in enumerate(dtypes)]
