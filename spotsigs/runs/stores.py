"""Stores of runs on disk: temporary stores of single runs, and stores that a user names."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from spotsigs.method import Method
from spotsigs.storage.atomic import move_aside, staging_folder
from spotsigs.storage.locations import as_path, is_remote
from spotsigs.storage.store import claim

RUN_MARKER = "of-this-run.json"
"""File of a store of a single run; only such stores are deleted."""


def store_of_run(method: Method, collection: Any, folder: Path) -> Path:
    """Return the path of a run's own store; delete stores of stopped runs with other documents or settings."""
    from spotsigs.outofcore.segments import source_of

    source = source_of(collection, method.text, method.signature) | {"phrases": method.reads_phrases}
    name = hashlib.sha256(json.dumps(source).encode("utf-8", "replace")).hexdigest()[:16]
    path = folder / f"store-{name}"
    for other in folder.glob("store-*"):
        if other != path:
            _discard(other)
    if not path.exists():
        claim(path, RUN_MARKER, {"run": str(folder)})
    return path


def discard_stores(folder: Path) -> None:
    """Delete the stores of single runs in a folder of results, stopped runs included, which nothing resumes."""
    for store in folder.glob("store-*"):
        _discard(store)


def _discard(store: Path) -> None:
    """Delete the store of a single run, and no other; if that fails, the next run deletes it."""
    if (store / RUN_MARKER).is_file():
        with suppress(OSError), staging_folder(store) as gone:
            move_aside(store, gone / store.name)


def kept_store(store: str) -> Path:
    """Return the path of a store that the user names; if it was the store of a single run, it is no longer deleted."""
    named = as_path(store)
    if not is_remote(named):
        (named / RUN_MARKER).unlink(missing_ok=True)
    return named
