"""The start of a command: streams, a faster import of numba, and a message while kernels are compiled."""

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import TextIO

from spotsigs import progress

_UNUSED = ("scipy.linalg", "cffi", "coverage")
"""Packages for matrix products in kernels, calls of C and coverage; those that are loaded already stay."""

COMPILING = "compiling kernels, once on this machine for each kind of run: a first run takes up to two minutes longer"


def open_streams() -> None:
    """Open the standard streams that the caller closed, as ``>&-`` does, on the null device.

    Otherwise the first file that is opened would get the number of one, and receive what is printed. A character that
    the terminal cannot encode is escaped.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def expand_home(words: Sequence[str]) -> list[str]:
    """Replace ``~`` after ``=``, where a shell does not, by the home folder.

    Examples
    --------
    >>> expand_home(["data.path=~/crawl", "tau=0.5"])[0] == "data.path=" + os.path.expanduser("~/crawl")
    True
    """
    found = []
    for word in words:
        key, sign, value = word.partition("=")
        found.append(f"{key}{sign}{os.path.expanduser(value)}" if value.startswith("~") else word)
    return found


def import_numba() -> None:
    """Import numba without the optional packages that it looks for and that no kernel here uses.

    Numba has no setting for that, so entries of ``sys.modules`` hide them meanwhile. With scipy, cffi and coverage
    installed, the import takes 0.51 instead of 0.77 s of CPU time (medians of five, in turn); the plain install has
    none of them. Objects of numba are also left out of the last garbage collection. Only the command does this: a
    library must not take matrix products from the kernels of its callers.
    """
    atexit.register(gc.freeze)
    absent = [name for name in _UNUSED if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        import numba.core.typing.cffi_utils
        import numba.np.arraymath  # noqa: F401
    finally:
        for name in absent:
            del sys.modules[name]


def say_when_compiling(out: TextIO) -> None:
    """Print a message when the first kernel is compiled that is in no cache, and count kernels for the live line."""
    from numba.core import event

    class Said(event.Listener):
        said = False

        def on_start(self, event: object) -> None:
            if not self.said and not out.closed:  # which a caller's stream can be, long after
                print(COMPILING, file=out, flush=True)
                self.said = True
            progress.compiling(1)

        def on_end(self, event: object) -> None:
            progress.compiling(-1)

    event.register("numba:compile", Said())
