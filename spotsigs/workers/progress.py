"""Progress of a long stage: a bar on a terminal, otherwise a record of the log every thirty seconds."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, Self, TypeVar

log = logging.getLogger(__name__)

SECONDS = 30.0
"""Seconds between two records."""

QUIET_SECONDS = 5.0
"""Seconds without progress after which a bar shows how many they are."""

T = TypeVar("T")


class Progress:
    """How far a stage is, in a ``with`` block that calls `advance`.

    A thread shows each second that time passes while nothing ends.

    Parameters
    ----------
    name : str
        Name of the stage.
    total : int
        Number of items; 0 if it is unknown.
    unit : str
        What the items are, in the plural.
    done : int
        Items that an earlier run has done.
    """

    def __init__(self, name: str, total: int, unit: str, *, done: int = 0) -> None:
        self.name, self.total, self.unit, self.note = name, total, unit, ""
        self.done = self._before = done
        self._bar: Any = None

    def __enter__(self) -> Self:
        self._began = self._advanced = self._reported = time.monotonic()
        if sys.stderr is not None and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(
                None, self.name, self.total or None, unit=f" {self.unit}", initial=self.done, leave=False, delay=1
            )
        self._ended = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._bar is not None:
            self._bar.close()

    def advance(self, n: int = 1, note: str = "") -> None:
        """Count n more items, and show a note, such as what runs now."""
        self.done, self.note, self._advanced = self.done + n, note, time.monotonic()
        if self._bar is not None:
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(n)
        elif self._advanced - self._reported >= SECONDS:
            self._report(self._advanced)

    def write(self, line: str) -> None:
        """Write a line to standard output, above the bar."""
        if self._bar is not None:
            self._bar.write(line, file=sys.stdout)
        else:
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def _watch(self) -> None:
        while not self._ended.wait(1.0):
            now = time.monotonic()
            quiet = now - self._advanced
            if self._bar is None and now - self._reported >= SECONDS:
                self._report(now)
            elif self._bar is not None and quiet >= QUIET_SECONDS:
                self._bar.set_postfix_str(", ".join(filter(None, (self.note, f"{quiet:.0f} s since the last"))))

    def _report(self, now: float) -> None:
        """Log how many items are done, the rate, the time left, and how long none has ended."""
        self._reported = now
        known = [f"{self.done:,} {self.unit}"]
        rate = (self.done - self._before) / max(now - self._began, 1e-9)
        if self.total:
            known = [f"{self.done:,} of {self.total:,} {self.unit} ({self.done / self.total:.0%})"]
        if self.total and rate:
            known.append(f"{rate:.2g} a second")
        if self.total > self.done and rate:
            known.append(f"{(self.total - self.done) / rate:,.0f} s left")
        if now - self._advanced >= QUIET_SECONDS:
            known.append(f"{now - self._advanced:.0f} s since the last")
        facts = {"stage": self.name, "done": self.done, "total": self.total or None, "unit": self.unit}
        log.info("%s: %s", self.name, ", ".join(filter(None, (*known, self.note))), extra={"facts": facts})


def progress(items: Iterable[T], name: str, total: int, unit: str) -> Iterator[T]:
    """Yield the items of a stage; show how many are done, the rate and the time left."""
    with Progress(name, total, unit) as shown:
        for item in items:
            yield item
            shown.advance()
