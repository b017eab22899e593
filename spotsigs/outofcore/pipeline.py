"""A whole crawl within a memory budget: pages to segments to vectors to pairs, each stage on disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from spotsigs.engines import ClusterEngine, Engine, Processes, Serial, WorkerEngine, end_workers
from spotsigs.errors import InputError, as_tau, counted, reason, require
from spotsigs.exact_duplicates import WORDS, Copies, Sameness
from spotsigs.in_memory import Matched
from spotsigs.outofcore.prefix_partition_join import JOB, PairFiles, estimate, join_store, query
from spotsigs.outofcore.prefix_partition_tasks import BYTES_A_PAIR
from spotsigs.outofcore.segments import Segments, extract_segments, finished_segments, known_source, source_of
from spotsigs.outofcore.template_pass import refine_segments
from spotsigs.outofcore.vectorize import BYTES_A_DOCUMENT, build_vectors
from spotsigs.records import Collection, CollectionScheme, Document, Signatures, SignatureScheme, Skipped
from spotsigs.signatures.extract import extract_shard, nothing_readable, refusal
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.languages import ENGLISH
from spotsigs.spelling import option
from spotsigs.storage.atomic import alone, place_of
from spotsigs.storage.locations import as_path, exists, require_reachable, sizes
from spotsigs.storage.store import StoredVectors, fingerprint, open_vectors, opened, remove_tree, writing
from spotsigs.text.size_limits import BUDGET_PAGE, BYTES_A_BYTE, pages_up_to

PROGRAM = 375 * 10**6
"""Bytes of a process with numba, scipy and pyarrow loaded, before any data.

210 to 300 MB were measured for a worker, 320 MB for `run.py`.
"""

LEAST = BYTES_A_BYTE * BUDGET_PAGE
"""Bytes for data that each process has at least: what the largest page may take. For more workers there is no room."""

BYTES_A_RESULT = 80
"""Bytes that clusters, decisions and their tables use for each document after the join, at most: 76 were measured for
clusters of two."""

PASSING = 16
"""Share of the budget that pairs may take while they pass: names and tables take the rest."""

_QUESTIONS = 5
"""Times a page is looked up while other runs replace what it is looked up in."""

Say = Callable[[str], object]


def data_budget(memory: int, workers: int = 0) -> int:
    """Return how much of a budget each process has for data, beside the program itself.

    Parameters
    ----------
    memory : int
        Bytes for all processes together: the calling one and its workers.
    workers : int
        Worker processes; 0 where the calling process does everything. Workers and caller take turns, so that only the
        workers' data counts, or the caller's.

    Raises
    ------
    InputError
        If the programs alone need nearly all of it.
    """
    budget = (memory - (workers + 1) * PROGRAM) // max(workers, 1)
    if budget < LEAST:
        least = (workers + 1) * PROGRAM + max(workers, 1) * LEAST
        processes = counted(workers + 1, "process", "processes")
        raise InputError(
            f"{option('memory', f'{memory / 1e6:,.0f}MB')} is too little for {processes}, whose code alone takes "
            f"{PROGRAM / 1e6:,.0f} MB{' each' if workers else ''}; give at least {least / 1e6:,.0f}MB"
            + (", or fewer workers" if workers else "")
        )
    return budget


def fitting(engine: Engine, memory: int) -> Engine:
    """Return an engine with no more worker processes on this machine than fit into a budget.

    Parameters
    ----------
    engine : Engine
        An engine whose workers run on other machines is returned unchanged.
    memory : int
        Bytes for all processes together.
    """
    most = max((memory - PROGRAM) // (PROGRAM + LEAST), 1)
    elsewhere = isinstance(engine, ClusterEngine) and engine.address is not None
    if not isinstance(engine, WorkerEngine) or elsewhere or most >= engine.processes:
        return engine
    if most > 1 or not isinstance(engine, Processes):
        return replace(engine, workers=most)
    end_workers()
    return Serial()


def match_on_disk(
    folder: str | Path,
    collection: Collection | None,
    text: Callable[[Document], str],
    scheme: SignatureScheme,
    idf_filter: IdfFilter,
    tau: float,
    engine: Engine,
    *,
    memory: int,
    sets: bool = False,
    add: bool = False,
    strict: bool = False,
    sameness: Sameness = Sameness.text,
    say: Say = lambda sentence: None,
) -> Matched[Segments, PairFiles]:
    """Find all pairs of a collection that does not fit into memory.

    Every stage leaves its result in the folder and is skipped where that is complete, so that a stopped run goes on.

    Parameters
    ----------
    folder : str or Path
        The store: a folder that all workers see, or a URL, see `spotsigs.storage.locations`.
    collection : Collection or None
        The documents; with `add`, the new ones. None for all that the store holds.
    text, scheme, idf_filter : callable
        As for `spotsigs.in_memory.match_in_memory`. A store has one text and one scheme.
    tau : float
        Similarity threshold.
    engine : Engine
        Where extraction and joins run.
    memory : int
        Bytes for all processes together.
    sets : bool
        Count every signature once.
    add : bool
        Put the documents behind those of the store, and look only for pairs with at least one of them. They are what a
        run over all documents gives, because document frequencies are counted over all of them, and a scheme that
        looks at the whole collection looks at all of them again, from their outlines. The same documents once more go
        on with the call that added them last.
    strict : bool
        Stop at the first record that cannot be read.
    sameness : Sameness
        Which documents are copies: pairs of similarity 1, of which one stands for the others.
    say : callable, optional
        Called with a sentence on what each stage is going to take.

    Returns
    -------
    Matched
        Its signatures are `Segments`, its pairs `PairFiles`, with the wall seconds ``extract``, ``sort_hash`` (layout)
        and ``cluster`` (join).

    Raises
    ------
    InputError
        If tau or the budget is out of range, or the store was made otherwise.
    """
    tau = as_tau(tau)
    folder = as_path(folder)
    require_reachable(folder)
    budget = data_budget(memory, engine.processes)
    say(_shares(memory, engine, budget))
    with store_locked(folder, say), pages_up_to(BUDGET_PAGE):
        began = perf_counter()
        earlier, added = _extracted(folder, collection, text, scheme, engine, add, strict)
        if not added.sizes().sum() and len(added.skipped):
            raise nothing_readable(added.skipped)
        segments, new_from = earlier + added, int(earlier.sizes().sum())
        extracted = perf_counter()
        copies = segments.copies(sameness)
        if isinstance(scheme, CollectionScheme):
            segments = refine_segments(folder / "refined", segments.only(copies.distinct), scheme, memory=budget)
        stored = _vectors(folder, segments, idf_filter, budget, engine, sets, copies, sameness, say)
        made = fingerprint(folder / "vectors")
        laid_out = perf_counter()
        pairs = _pairs(folder, stored, tau, engine, budget, new_from, say)
        require(  # only a remote store has no lock
            fingerprint(folder / "vectors") == made,
            f"another run changed the store {folder} in the meantime; give the same command again",
        )
        seconds = {
            "extract": extracted - began,
            "sort_hash": laid_out - extracted,
            "cluster": perf_counter() - laid_out,
        }
        return Matched(
            doc_ids=stored.doc_ids,
            signatures=segments,
            vectors=stored.vectors,
            rows=stored.rows,
            copies=stored.copies,
            pairs=replace(pairs, seconds=seconds, memory=budget // PASSING),
            skipped=added.skipped,
            new_from=new_from,
        )


def decided(folder: str | Path, n: int) -> NDArray[np.bool_] | None:
    """Return which of the first n documents of a store a run has kept; None if no run has decided exactly these."""
    try:
        return opened(as_path(folder) / "decided" / str(n), "decided").whole("kept", np.bool_)
    except InputError:
        return None


def put_decided(folder: str | Path, kept: NDArray[np.bool_]) -> None:
    """Write which documents of a store are kept: later runs with ``add`` do not decide them again."""
    with writing(as_path(folder) / "decided" / str(len(kept)), "decided") as out:
        out.put("kept", kept)


@contextmanager
def store_locked(folder: Path, say: Say) -> Iterator[None]:
    """Lock a store, and report what cannot be read or written in it as an `InputError`."""
    with ExitStack() as stack:
        try:
            stack.enter_context(alone(folder, say))
        except OSError as error:
            raise InputError(f"the store {folder} cannot be written: {reason(error)}; give another place") from error
        try:
            yield
        except OSError as error:
            at = place_of(error) or folder
            rest = f"what is complete in the store {folder} stays, and the same command goes on with it"
            raise InputError(f"{at}: {reason(error)}; {rest}") from error


def _pairs(
    folder: Path,
    stored: StoredVectors,
    tau: float,
    engine: Engine,
    budget: int,
    new_from: int,
    say: Say,
) -> PairFiles:
    store = folder / "vectors"
    job = xxhash.xxh64_hexdigest(f"{fingerprint(store)} {new_from}".encode())
    target, budget = _begun(folder, f"{tau!r}-{job}", budget)
    facts = estimate(stored, memory=budget)
    say(
        f"join: {counted(facts['tasks'], 'stretch', 'stretches')} of rows, each within {budget / 1e6:,.0f} MB; "
        f"the vectors take {facts['store_bytes'] / 1e6:,.0f} MB on disk"
    )
    pairs = join_store(store, target, tau, engine, memory=budget, new_from=new_from)
    return with_copies(pairs, target, stored.copies, new_from, budget)


def with_copies(pairs: PairFiles, folder: Path, copies: Copies, new_from: int, budget: int) -> PairFiles:
    """Put the pairs of copies beside those of the documents that stand for them, in files of their own."""
    if not copies.any:
        return pairs
    share = budget // 4
    found = copies.further(pairs.within(share).chunks(), most=max(share // BYTES_A_PAIR, 1), new_from=new_from)
    folders = []
    for k, (i, j, similarity) in enumerate(found):
        folders.append(folder / f"copies-{k:08d}")
        order = np.lexsort((j, i))
        with writing(folders[-1], "pairs") as out:
            out.put("i", i[order])
            out.put("j", j[order])
            out.put("similarity", similarity[order])
            out.facts = {"pairs": len(order)}
    return replace(pairs, folders=(*pairs.folders, *folders))


def _begun(folder: Path, job: str, budget: int) -> tuple[Path, int]:
    """Return the place of a job's pairs and the bytes that its tasks were cut for.

    A stopped job goes on with the tasks it began with where they fit, whatever budget or number of workers is given
    now: another cut would give the same pairs and lose what is done. A place that no longer says what it is for, its
    folder having vanished under a run, is begun again.
    """
    name = f"pairs-{job}-"
    known = [path.removeprefix(name) for path in sizes(folder) if path.startswith(name)]
    for cut in known:
        if not exists(folder / f"{name}{cut}" / JOB):
            remove_tree(folder / f"{name}{cut}")
    fits = max((int(cut) for cut in known if cut.isdigit() and int(cut) <= budget), default=budget)
    return folder / f"{name}{fits}", fits


def _shares(memory: int, engine: Engine, budget: int) -> str:
    workers = engine.processes
    whose = "this process" if not workers else "its worker" if workers == 1 else f"each of {workers} workers"
    processes = f"each of {workers + 1} processes" if workers else "this process"
    return (
        f"memory: {memory / 1e6:,.0f} MB, of which {PROGRAM / 1e6:,.0f} MB for the code of {processes} and "
        f"{budget / 1e6:,.0f} MB for the data of {whose}"
    )


def _extracted(
    folder: Path,
    collection: Collection | None,
    text: Any,
    scheme: SignatureScheme,
    engine: Engine,
    add: bool,
    strict: bool,
) -> tuple[Segments, Segments]:
    """Return the segments of the old documents, and of the new ones."""
    batches = _batches(folder)
    if batches:
        _require_made_with(batches[0], text, scheme)
    if collection is None:
        stored = stored_segments(folder)
        if strict and (first := next(iter(stored.skipped), None)) is not None:
            raise refusal(first)
        return Segments(()), stored
    source = source_of(collection, text, scheme)
    known = [known_source(batch) for batch in batches]
    same = [k for k, other in enumerate(known) if {key: other.get(key) for key in source} == source]
    if add:
        number = same[-1] if same else len(batches)
        require(
            not same or number == len(batches) - 1,
            f"these documents are in the store {folder} already, and others were added behind them",
        )
    else:
        number = 0
        require(
            len(batches) < 2,
            f"the store {folder} holds documents that were added; {option('add', 'true')} adds more",
        )
        if batches and not same:
            finished_segments(batches[0])
        require(
            not batches or bool(same),
            f"the store {folder} contains other documents; {option('add', 'true')} adds to them, or name another store",
        )
    new = extract_segments(_batch(folder, number), collection, text, scheme, engine, strict=strict)
    return _finished(batches[:number]), new


def _batch(folder: Path, number: int) -> Path:
    return folder / "segments" / f"{number:06d}"


def _batches(folder: Path) -> list[Path]:
    """Return where the documents lie that were put into a store, in order."""
    found: list[Path] = []
    while exists(_batch(folder, len(found)) / "source.json"):
        found.append(_batch(folder, len(found)))
    return found


def _require_made_with(batch: Path, text: Any, scheme: SignatureScheme) -> None:
    known = known_source(batch)
    for key, value, name in (("text", text, "text="), ("scheme", scheme, "signature=")):
        require(
            known[key] == repr(value),
            f"the store {batch.parent.parent} was made with {name} {known[key]}, not {value!r}; give the same",
        )


def stored_language(folder: str | Path) -> str | None:
    """Return the language that a store of spot signatures was made with; None where there is no store yet."""
    batches = _batches(as_path(folder))
    if not batches:
        return None
    named = re.search(r"language='(\w+)'", known_source(batches[0])["scheme"])
    return named[1] if named else ENGLISH


def stored_segments(folder: str | Path) -> Segments:
    """Return the signatures of all documents of a store, in the order in which they were put there.

    Raises
    ------
    InputError
        If there are none, or an extraction was stopped.
    """
    batches = _batches(as_path(folder))
    require(bool(batches), f"{folder} is no store of documents; make it by a run that names it as its store")
    return _finished(batches)


def _finished(batches: Sequence[Path]) -> Segments:
    return Segments(tuple(folder for batch in batches for folder in finished_segments(batch).folders))


def _vectors(
    store: Path,
    segments: Segments,
    idf_filter: IdfFilter,
    memory: int,
    engine: Engine,
    sets: bool,
    copies: Copies,
    sameness: Sameness,
    say: Say,
) -> StoredVectors:
    """Build the vectors, unless they are there and come from the same signatures and settings."""
    folder = store / "vectors"
    made_of = {
        "segments": [segment.relative_to(store).as_posix() for segment in segments.folders],
        "content": xxhash.xxh64_hexdigest("".join(map(fingerprint, segments.folders)).encode()),
        "filter": f"{idf_filter!r} {sets=}",
        "sets": sets,
        "min_spots": idf_filter.min_spots,
        "sameness": sameness.value,
    }
    if exists(folder / "store.json"):
        facts = opened(folder, "vectors", verify=False).facts
        if {key: facts.get(key) for key in made_of} == made_of:
            return open_vectors(folder, verify=None)
    n = int(segments.sizes().sum())
    needed = n * max(BYTES_A_DOCUMENT, BYTES_A_RESULT)
    require(
        needed <= memory,
        f"memory is too little for {n:,} documents: ordering and grouping them takes {needed / 1e6:,.0f} MB beside the "
        f"code, and there are {memory / 1e6:,.0f} MB for data",
    )
    say(
        f"layout: {counted(n, 'document')}, of which {needed / 1e6:,.0f} MB are held at once; signatures pass in ranges"
    )
    return build_vectors(
        folder, segments, idf_filter, memory=memory, engine=engine, sets=sets, copies=copies, facts=made_of
    )


@dataclass(frozen=True)
class Match:
    """A document of a store that a page is similar to.

    Attributes
    ----------
    doc : str
        Its id.
    similarity : float
        1 for a copy.
    identical : str
        ``content`` or ``text`` for a copy, otherwise empty.
    """

    doc: str
    similarity: float
    identical: str = ""


def query_page(
    folder: str | Path,
    page: Document,
    text: Callable[[Document], str],
    scheme: SignatureScheme,
    tau: float,
    *,
    memory: int = 10**9,
) -> list[Match]:
    """Find the documents of a store that one page is similar to; the store stays as it is.

    Parameters
    ----------
    folder : str or Path
        A store that `match_on_disk` has made.
    page : Document
        The page.
    text, scheme : callable
        Those the store was made with.
    tau : float
        Similarity threshold.
    memory : int
        Bytes that may be held.

    Returns
    -------
    list of Match
        The most similar first, equal ones in document order. See `.block_join.query` for signatures that the store
        does not know.

    Raises
    ------
    InputError
        If there is no finished store, it was made otherwise, or the page cannot be read.
    """
    tau = as_tau(tau)
    require(
        not isinstance(scheme, CollectionScheme),
        "a page cannot be searched for alone if its signatures depend on the other pages of its site; "
        f"add it with {option('add', 'true')}",
    )
    folder = as_path(folder)
    require_reachable(folder)
    batches = _batches(folder)
    require(
        bool(batches) and exists(folder / "vectors" / "store.json"),
        f"{folder} contains no finished store; make it by a run that names it as its store",
    )
    _require_made_with(batches[0], text, scheme)

    def shard() -> Iterator[Document | Skipped]:
        yield page

    with pages_up_to(BUDGET_PAGE):
        signatures = extract_shard(shard, text, scheme)
    require(not signatures.skipped, "".join(f"{record.id}: {record.reason}" for record in signatures.skipped))
    return _asked(folder / "vectors", signatures, tau, memory)


def _asked(store: Path, signatures: Signatures, tau: float, memory: int) -> list[Match]:
    """Ask a store that another run may replace at any moment: again, if that has happened in the meantime."""
    for _ in range(_QUESTIONS):
        made = _made(store)
        try:
            found = _answer(store, signatures, tau, memory)
        except InputError:
            if _made(store) == made:
                raise
        else:
            if _made(store) == made:
                return found
    raise InputError(f"another run changes the store {store.parent} while it is asked; ask again later")


def _made(store: Path) -> str | None:
    try:
        return fingerprint(store)
    except InputError:
        return None


def _answer(store: Path, signatures: Signatures, tau: float, memory: int) -> list[Match]:
    facts = opened(store, "vectors", verify=False).facts
    counts = np.ones_like(signatures.counts) if facts["sets"] else signatures.counts
    rows, similarity = query(store, signatures.hashes, counts, tau, memory=memory)
    stored = open_vectors(store, verify=None)
    segments = Segments(tuple(store.parent / name for name in facts["segments"]))
    same_content, same_text = _copies_of(signatures.digests[0], segments, Sameness(facts["sameness"]))
    found = {
        int(row): (value, "")
        for head, value in zip(rows.tolist(), similarity.tolist(), strict=True)
        for row in stored.copies.members(head)
    }
    found |= dict.fromkeys(same_text, (1.0, "text")) | dict.fromkeys(same_content, (1.0, "content"))
    ranked = sorted(found.items(), key=lambda match: (-match[1][0], match[0]))
    return [Match(stored.doc_ids[row], *match) for row, match in ranked]


def _copies_of(digests: NDArray[np.uint64], segments: Segments, sameness: Sameness) -> tuple[list[int], list[int]]:
    """Return the documents of identical content, and those of identical text, as far as these count as copies."""
    content, text = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    row = 0
    for part in segments.digests():
        if sameness is not Sameness.off:
            content.append(row + np.flatnonzero((part[:, :WORDS] == digests[:WORDS]).all(axis=1)))
        if sameness is Sameness.text and digests[WORDS:].any():
            text.append(row + np.flatnonzero((part[:, WORDS:] == digests[WORDS:]).all(axis=1)))
        row += len(part)
    return np.concatenate(content).tolist(), np.concatenate(text).tolist()


def default_memory() -> int:
    """Return half of the machine's memory: the budget where none is given."""
    import psutil

    return int(psutil.virtual_memory().total) // 2
