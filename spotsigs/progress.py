"""Progress of a long stage: a bar on a terminal, otherwise a record of the log every thirty seconds."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

log = logging.getLogger(__name__)

SECONDS = 30.0
"""Seconds between two records."""

T = TypeVar("T")


def progress(items: Iterable[T], name: str, total: int, unit: str) -> Iterator[T]:
    """Yield the items of a stage; report how many are done, the rate and the time left."""
    if sys.stderr is not None and sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(items, name, total, unit=f" {unit}", leave=False, delay=1)
        return
    began = last = time.monotonic()
    for done, item in enumerate(items, 1):
        yield item
        now = time.monotonic()
        if now - last < SECONDS:
            continue
        last, rate = now, done / (now - began)
        known = (
            f"{done:,} of {total:,} {unit} ({done / total:.0%}), {rate:.2g} a second" if total else f"{done:,} {unit}"
        )
        log.info("%s: %s%s", name, known, f", {(total - done) / rate:,.0f} s left" if total > done else "")
