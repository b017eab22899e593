"""Stores of runs on disk: those of single runs, those that a user names, and queries for one page."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from contextlib import nullcontext, suppress
from pathlib import Path

from spotsigs.errors import InputError, printable, reason, require
from spotsigs.records import Document
from spotsigs.runs.settings import Settings
from spotsigs.spelling import option
from spotsigs.storage.atomic import staging_folder
from spotsigs.storage.locations import as_path, is_remote
from spotsigs.storage.store import claim
from spotsigs.text.size_limits import BUDGET_PAGE, in_words

OWN = "of-this-run.json"
"""File of a store of a single run; only such stores are deleted."""


def own_store(settings: Settings, folder: Path) -> Path:
    """Return the path of a run's own store; delete stores of stopped runs with other documents or settings."""
    from spotsigs.outofcore.segments import source_of

    source = source_of(settings.collection, settings.text, settings.signature)
    name = hashlib.sha256(json.dumps(source).encode("utf-8", "replace")).hexdigest()[:16]
    path = folder / f"store-{name}"
    for other in folder.glob("store-*"):
        if other != path:
            discard(other)
    if not path.exists():
        claim(path, OWN, {"run": str(folder)})
    return path


def discard(store: Path) -> None:
    """Delete the store of a single run, and no other; if that fails, the next run deletes it."""
    if (store / OWN).is_file():
        with suppress(OSError), staging_folder(store) as gone:
            os.replace(store, gone / store.name)


def kept_store(store: str) -> Path:
    """Return the path of a store that the user names; that of a single run is no longer deleted."""
    named = as_path(store)
    if not is_remote(named):
        (named / OWN).unlink(missing_ok=True)
    return named


def ask(settings: Settings) -> str:
    """Return the documents of ``store=`` that the page ``query=`` is similar to, as lines of a table."""
    from spotsigs.outofcore.pipeline import Store

    assert settings.query is not None
    assert settings.store is not None
    tau = settings.tau if settings.matcher.threshold is None else settings.matcher.threshold
    memory = settings.memory or 10**9
    store = Store(folder=as_path(settings.store), text=settings.text, scheme=settings.signature, memory=memory)
    matches = store.query(_page(settings.query), tau)
    if not matches:
        return f"no document of {settings.store} reaches {option('tau', f'{tau:g}')}"
    lines = [f"  {match.similarity:.6f}  {printable(match.doc)}" for match in matches]
    same = [f"  (identical {match.identical})" if match.identical else "" for match in matches]
    return "\n".join(["similarity  doc", *map(str.__add__, lines, same)])


def _page(path: str) -> Document:
    from spotsigs.formats.python_objects import LOOKS_LIKE_A_TAG

    try:
        with nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as file:
            content = file.read(BUDGET_PAGE + 1)
    except OSError as error:
        raise InputError(f"{option('query', path)}: {reason(error)}; give a file, or - for standard input") from error
    require(len(content) <= BUDGET_PAGE, f"{option('query', path)}: the page is larger than {in_words(BUDGET_PAGE)}")
    html = LOOKS_LIKE_A_TAG.search(content.decode("latin-1")) is not None
    return Document(id=path, content=content, media_type="text/html" if html else "text/plain")
