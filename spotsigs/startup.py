"""The start of a run: numba without what no kernel uses, and a word to who waits while kernels are compiled."""

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import TextIO

from spotsigs import progress

_UNUSED = ("scipy.linalg", "cffi", "coverage")
"""For products of matrices inside of kernels, calls of C, and measured kernels; those that are loaded already stay."""

COMPILING = "compiling, once on this machine and for each kind of run: this one may take half a minute longer"


def open_streams() -> None:
    """Open the standard streams that the caller closed, as ``>&-`` does, on nothing.

    Without, the first file that is opened would take the place of one, and be written to by whoever prints.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # ids may have characters that the terminal has not


def expand_home(words: Sequence[str]) -> list[str]:
    """Put the user's home in place of ``~`` behind ``=``, where a shell leaves it.

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
    """Import numba while it cannot find what no kernel uses: a third of the time until the first page is read.

    Nor is what numba made looked through for garbage when the program ends, which took as long as a small run.
    This is for the program alone: a library must not take numpy's products from the kernels of those who import it.
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
    """Say it when the first kernel is compiled that lies in no cache, and how long that takes at most."""
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
