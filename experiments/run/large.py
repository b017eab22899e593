"""One run within a memory budget: the stages of `spotsigs.crawl`, composed into the same outcome as in memory."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.crawl.stages_on_disk import Match, OnDisk, fitting, match_on_disk, query_page
from spotsigs.data.collections.stored import StoredCollection
from spotsigs.disk.places import is_remote, place
from spotsigs.disk.store import claim
from spotsigs.errors import InputError, printable, reason, require
from spotsigs.experiments.run.pipeline import Outcome, Prepared, checksum, judged, texts_of, truth_of
from spotsigs.experiments.settings import Settings
from spotsigs.judging.keep import Keep, priority
from spotsigs.records import Corpus, Document
from spotsigs.text.limits import BUDGET_PAGE, in_words

CHUNK = 16
"""Share of the budget that pairs may take while they pass: names and tables take the rest."""


def matched_on_disk(settings: Settings, folder: Path, say: Callable[[str], object]) -> Outcome:
    """Match within ``memory=``.

    Parameters
    ----------
    settings : Settings
        What to run.
    folder : Path
        The run's folder; holds the store where ``store=`` names none.
    say : callable
        Called with what each stage is going to take.

    Returns
    -------
    Outcome
        That of a run in memory; with ``add=true``, of the pairs with at least one new document.

    Raises
    ------
    InputError
        If the matcher or the collection has no form on disk.
    """
    matcher, collection = settings.matcher, settings.collection
    method = matcher.on_store()
    if method is None:
        raise InputError(
            f"matcher={settings.names['matcher']} has no form for vectors on disk, which memory= and store= need; "
            "take matcher=spotsigs_tight, spotsigs or sketch, or leave them out"
        )
    require(
        not hasattr(collection, "vectors"),
        f"memory= and store= read pages, and data={settings.names['data']} brings vectors; leave them out",
    )
    assert settings.memory is not None
    found = match_on_disk(
        own_store(settings, folder) if settings.store is None else kept_store(settings.store),
        None if isinstance(collection, StoredCollection) else collection,
        settings.text,
        settings.signature,
        settings.idf_filter,
        method.tau,
        fitting(settings.engine, settings.memory),
        memory=settings.memory,
        sets=settings.sets,
        add=settings.add,
        sameness=settings.copies,
        strict=settings.strict,
        search=None if method.search is None else (repr(matcher), method.search),
        say=say,
    )
    pairs = found.pairs.within(found.budget // CHUNK)
    return judged(_prepared(settings, found), pairs, method.label, settings.clusters, _priority(settings.keep, found))


OWN = "of-this-run.json"
"""File of a store that a run has made for itself: nothing else is ever deleted."""


def own_store(settings: Settings, folder: Path) -> Path:
    """Return the place of a run's own store; one of other documents or settings, left by a stopped run, is deleted."""
    from spotsigs.crawl.segments import source_of

    source = source_of(settings.collection, settings.text, settings.signature)
    name = hashlib.sha256(json.dumps(source).encode("utf-8", "replace")).hexdigest()[:16]
    place = folder / f"store-{name}"
    for other in folder.glob("store-*"):
        if other != place:
            discard(other)
    if not place.exists():
        claim(place, OWN, {"run": str(folder)})
    return place


def discard(store: Path) -> None:
    """Delete a store that a run has made for itself, and no other."""
    if (store / OWN).is_file():
        shutil.rmtree(store)


def kept_store(store: str) -> Path:
    """Return a store that the user names; if a run has made it for itself, it is the user's from now on."""
    named = place(store)
    if not is_remote(named):
        (named / OWN).unlink(missing_ok=True)
    return named


def _priority(keep: Keep, found: OnDisk) -> Any:
    lengths = found.segments.occurrences() if keep is Keep.longest else None
    dates = [date or None for date in found.segments.dates()] if keep is Keep.newest else None
    return priority(keep, len(found.stored), lengths, dates)


def _prepared(settings: Settings, found: OnDisk) -> Prepared:
    """Return what was matched; the vectors lie by length."""
    vectors = replace(found.stored.vectors, doc_ids=found.stored.doc_ids)

    def texts() -> Iterator[str | None]:
        if isinstance(settings.collection, StoredCollection):
            return iter(())
        return chain(repeat(None, found.new_from), texts_of(settings.collection, settings.text))

    return Prepared(
        corpus=Corpus(vectors),
        # a new batch alone has no truth, for most of its pairs are with old documents
        truth=None
        if found.new_from
        else truth_of(settings.collection, (name or None for name in found.segments.clusters()), found.stored.doc_ids),
        skipped=found.added.skipped_records(),
        parse_seconds=found.pairs.seconds["extract"],
        content_bytes=found.added.content_bytes,
        checksum=checksum(found.stored.doc_ids, _arrays(found)),
        occurrences=np.empty(0, np.int64),
        copies=found.stored.copies,
        texts=texts,
        new_from=found.new_from,
        in_shingles=found.segments.in_shingles() if settings.signature.tells_languages else 0,
        numbers=found.stored.rows,
        said_nothing=found.segments.boilerplate(),
    )


def _arrays(found: OnDisk) -> Iterator[NDArray[Any]]:
    for array, kind in (("hashes", np.uint64), ("counts", np.int32)):
        for store in found.segments.stores():
            yield store.array(array, kind)


def ask(settings: Settings) -> str:
    """Return the documents of ``store=`` that the page ``query=`` is similar to, as lines of a table."""
    assert settings.query is not None
    assert settings.store is not None
    tau = settings.tau if settings.matcher.threshold is None else settings.matcher.threshold
    matches = query_page(
        settings.store,
        _page(settings.query),
        settings.text,
        settings.signature,
        tau,
        memory=settings.memory or 10**9,
    )
    if not matches:
        return f"no document of {settings.store} reaches tau={tau:g}"
    lines = [f"{match.similarity:.6f}  {printable(match.doc)}{_identical(match)}" for match in matches]
    return "\n".join(["similarity  doc", *(f"  {line}" for line in lines)])


def _identical(match: Match) -> str:
    return f"  (identical {match.identical})" if match.identical else ""


def _page(path: str) -> Document:
    from spotsigs.api import LOOKS_LIKE_A_TAG

    try:
        with nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as file:
            content = file.read(BUDGET_PAGE + 1)
    except OSError as error:
        raise InputError(f"query={path}: {reason(error)}; give a file, or - for standard input") from error
    require(len(content) <= BUDGET_PAGE, f"query={path}: the page is larger than {in_words(BUDGET_PAGE)}")
    html = LOOKS_LIKE_A_TAG.search(content.decode("latin-1")) is not None
    return Document(id=path, content=content, media_type="text/html" if html else "text/plain")
