"""The start of a command: its streams, its arguments, and a message while kernels are compiled."""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import TextIO

COMPILING = "compiling kernels, once on this machine for each kind of run: a first run takes about half a minute longer"


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


def say_when_compiling(out: TextIO) -> None:
    """Print a message when the first kernel is compiled that is in no cache."""
    from numba.core import event

    class Compiling(event.Listener):
        said = False

        def on_start(self, event: object) -> None:
            if not self.said and not out.closed:  # the stream of a caller can be closed long before
                print(COMPILING, file=out, flush=True)
                self.said = True

        def on_end(self, event: object) -> None:
            pass

    event.register("numba:compile", Compiling())
