"""The decorator of kernels."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from numba import njit
from numba.core import caching
from numba.core.caching import IndexDataCacheFile


class _Cache(IndexDataCacheFile):
    """A cache of compiled kernels of which a damaged file, as after a loss of power, counts as missing."""

    def _load_index(self) -> Any:
        inherited: Any = super()
        try:
            return inherited._load_index()
        except DAMAGED:
            return {}

    def _load_data(self, name: str) -> Any:
        inherited: Any = super()
        try:
            return inherited._load_data(name)
        except DAMAGED as error:
            raise FileNotFoundError(name) from error  # the kernel is compiled again


DAMAGED = (EOFError, pickle.UnpicklingError, ValueError, IndexError, KeyError, AttributeError, ImportError, TypeError)
"""What unpickling raises of a file that is not what was written."""

_MODULE: Any = caching
_MODULE.IndexDataCacheFile = _Cache

if TYPE_CHECKING:  # numba's types lack the third option
    kernel = njit(cache=True, nogil=True)
else:
    kernel = njit(cache=True, nogil=True, no_cfunc_wrapper=True)
"""Compile a function of arrays, at its first call or from the cache; it releases the interpreter lock.

No kernel is called from C: compilation takes 7 % less time without the wrapper for that.
"""
