"""What a run is doing, on the terminal it was started from: something there moves at least every second.

Bars are drawn anew, so that their clock goes on where nothing is finished for a while. Where there is none, a line says
what is being done and for how long, and goes when anything else is written. Where the standard error is no terminal
nothing is said: a log is not for looking on.
"""

from __future__ import annotations

import atexit
import sys
import threading
from time import monotonic
from typing import Any, TextIO

PERIOD = 1.0
"""Seconds without a sign, after which there is one."""


class LiveLine:
    """The line that says what is being done.

    Parameters
    ----------
    out : file
        The terminal.
    """

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.compiling = self.compiled = 0
        self._doing, self._since = "starting", monotonic()
        self._shown, self._last = "", monotonic()
        self._lock = threading.RLock()
        self._over = threading.Event()

    def doing(self, what: str) -> None:
        """Set what is done from now on."""
        self._doing, self._since = what, monotonic()

    def clear(self) -> None:
        """Take the line away: something else is about to be written."""
        with self._lock:
            if self._shown:
                self.out.write(f"\r{' ' * len(self._shown)}\r")
            self._shown, self._last = "", monotonic()

    def beat(self) -> None:
        """Draw the bars or the line anew, if nothing was written for a while."""
        if monotonic() - self._last < PERIOD:
            return
        for bar in _bars():  # their lock is taken before this one's, as where a bar writes
            bar.refresh()
        with self._lock:
            if monotonic() - self._last < PERIOD:  # a bar has been drawn
                return
            what = f"compiling kernel {self.compiled}" if self.compiling else self._doing
            text = f"{what}, {monotonic() - self._since:.0f} s"
            if text != self._shown:
                self.out.write(f"\r{text.ljust(len(self._shown))}")
                self.out.flush()
                self._shown = text

    def run(self) -> None:
        """Beat until the end of the program."""
        while not self._over.wait(PERIOD / 4):
            try:
                self.beat()
            except (OSError, ValueError):  # the terminal is gone
                return

    def end(self) -> None:
        """Stop, and leave nothing behind."""
        self._over.set()
        try:
            self.clear()
            self.out.flush()
        except (OSError, ValueError):
            pass


class Shared:
    """A stream to the same terminal: the line goes before anything is written."""

    def __init__(self, stream: TextIO, line: LiveLine) -> None:
        self._stream, self._line = stream, line

    def write(self, text: str) -> int:
        """Write behind the line."""
        with self._line._lock:
            self._line.clear()
            return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_line: LiveLine | None = None


def begin() -> None:
    """Begin to say what is done, where the standard error is a terminal."""
    global _line
    if _line is not None or sys.stderr is None or not sys.stderr.isatty():
        return
    _line = LiveLine(sys.stderr)
    for name in ("stderr", "stdout"):
        stream = getattr(sys, name)
        if stream is not None and stream.isatty():
            setattr(sys, name, Shared(stream, _line))
    atexit.register(_line.end)
    threading.Thread(target=_line.run, daemon=True).start()


def doing(what: str) -> None:
    """Say what is done from now on, until the next call; nothing where `begin` found no terminal."""
    if _line is not None:
        _line.doing(what)


def compiling(more: int) -> None:
    """Count one more (or, -1, one less) kernel that is being compiled."""
    if _line is not None:
        _line.compiling += more
        _line.compiled += max(more, 0)


def _bars() -> list[Any]:
    """Return the bars that are shown."""
    bar = getattr(sys.modules.get("tqdm.std"), "tqdm", None)
    if bar is None or not getattr(bar, "_instances", None):
        return []
    with bar.get_lock():
        return [shown for shown in bar._instances if not shown.disable]
