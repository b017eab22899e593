"""A progress bar while pages are read, by bytes of their files or by pages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from spotsigs.records import Collection
from spotsigs.storage.locations import is_remote


@contextmanager
def reading(collection: Collection, shards: int, out: TextIO | None = None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal; yield a function to call with the number of pages of each finished shard.

    The bar counts bytes of the collection's files, of which every shard has the same fraction. Without files on this
    machine, it counts pages, of ``collection.pages`` if that is known.
    """
    from tqdm import tqdm

    out = out or sys.stderr
    if not out.isatty():
        yield lambda pages: None
        return
    size = _bytes(collection)
    pages = {"total": getattr(collection, "pages", None), "unit": " pages", "delay": 1}
    form = {"total": size, "unit": "B", "unit_scale": True} if size else pages
    with tqdm(desc="reading", file=out, leave=False, **form) as bar:
        done = read = 0

        def update(pages: int) -> None:
            nonlocal done, read
            done, read = done + 1, read + pages
            if size:
                bar.set_postfix_str(f"{read:,} pages", refresh=False)
                bar.update(size * done // shards - bar.n)
            else:
                bar.update(pages)

        yield update


def _bytes(collection: Any) -> int:
    """Return the bytes of a collection's files; 0 if it has none on this machine."""
    try:
        paths = [source.path for source in collection.sources()]
        return 0 if any(map(is_remote, paths)) else sum(path.stat().st_size for path in paths)
    except (AttributeError, OSError):
        return 0
