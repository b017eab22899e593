"""A crawl within a memory budget: pages to segments, vectors, pairs and clusters, each stage on disk."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from spotsigs.clustering.in_memory import Matched, TextTasks, by_leaders, by_pairs
from spotsigs.clustering.leaders import LeaderOptions
from spotsigs.contracts import Collection, CollectionScheme
from spotsigs.errors import InputError, counted, option, reason, require, system_errors
from spotsigs.method import STORED, Method
from spotsigs.outofcore.block_join import join_store
from spotsigs.outofcore.contents import stored_contents
from spotsigs.outofcore.leaders import BYTES_A_RESULT, leaders_on_disk
from spotsigs.outofcore.pair_files import pairs_at_a_time
from spotsigs.outofcore.segments import extract_segments, finished_segments, first_segment, known_source, source_of
from spotsigs.outofcore.template_pass import refine_segments
from spotsigs.outofcore.text_lost_tasks import StoredGrams
from spotsigs.outofcore.vectorize import BYTES_A_DOCUMENT, LAYOUT, build_vectors
from spotsigs.records import Clusters, Pairs, no_pairs
from spotsigs.signatures.blocks import Blocks
from spotsigs.signatures.boilerplate import boilerplate_of
from spotsigs.signatures.contained import Contents
from spotsigs.signatures.extract import require_pages, require_reference, strict_error
from spotsigs.signatures.languages import marks_shingles
from spotsigs.storage.atomic import failed_path, store_lock
from spotsigs.storage.exact_duplicates import ExactDuplicates
from spotsigs.storage.identity import difference, identity, restored
from spotsigs.storage.locations import as_path, exists, require_reachable, sizes
from spotsigs.storage.store import (
    VERSION,
    Reader,
    StoredVectors,
    fingerprint,
    layout_of,
    open_vectors,
    opened,
    remove_tree,
    writing,
)
from spotsigs.storage.tasks import JOB, in_caller, in_the_making
from spotsigs.text.size_limits import BUDGET_PAGE, BYTES_A_BYTE, page_size_limit
from spotsigs.workers.engines import Dask, Engine, Processes, Serial, WorkerEngine, end_workers

log = logging.getLogger(__name__)

PROGRAM = 375 * 10**6
"""Bytes of a process with numba and pyarrow loaded, before any data.

210 to 300 MB were measured for a worker, 320 MB for `run.py`.
"""

LEAST = BYTES_A_BYTE * BUDGET_PAGE
"""Least number of bytes for the data of a process: the largest page may use as much."""

BYTES_A_UNIT_BYTE = 3
"""Memory that a byte of a unit takes: stored, unpacked, and as values. Measured for pages of Parquet: 2.3 to 3."""

PASSING = 16
"""The pairs in memory at a time use one part in so many of the budget; names and tables use the rest."""


def data_budget(memory: int, workers: int = 0) -> int:
    """Return the bytes of a budget that each process has for data, in addition to the program itself.

    The budget is for all processes: the calling one and its workers, which use memory for data in turn. Without
    workers, all tasks run in the calling process.

    Raises
    ------
    InputError
        If the programs alone need nearly all of it.
    """
    budget = (memory - (workers + 1) * PROGRAM) // max(workers, 1)
    if budget < LEAST:
        least = (workers + 1) * PROGRAM + max(workers, 1) * LEAST
        given = f"{memory // 10**6}MB" if memory >= 10**6 else memory
        processes = counted(workers + 1, "process", "processes")
        raise InputError(
            f"{option('memory', given)} is too little for {processes}, whose code alone takes "
            f"{PROGRAM / 1e6:,.0f} MB{' each' if workers else ''}; give at least {-(-least // 10**6)}MB"
            + (", or fewer workers" if workers else "")
        )
    return budget


def largest_unit_within(memory: int, workers: int = 0) -> int:
    """Return the bytes that a process may unpack at once in addition to a page, where a format requires it."""
    return max((data_budget(memory, workers) - LEAST) // BYTES_A_UNIT_BYTE, 2 * BUDGET_PAGE)


def require_units(collection: Collection, engine: Engine, memory: int, *, copied: bool) -> Engine:
    """Return an engine of no more workers than can unpack the units of a collection at the same time.

    Raises
    ------
    InputError
        If the budget is too small for one.
    """
    alone = engine_within(engine, PROGRAM)
    most = largest_unit_within(memory, alone.processes)
    unit, sentence = collection.largest_unit(copied, most)
    if unit > most:
        least = (alone.processes + 1) * PROGRAM + max(alone.processes, 1) * (LEAST + BYTES_A_UNIT_BYTE * unit)
        raise InputError(f"{sentence}, or give at least {option('memory', f'{-(-least // 10**6)}MB')}")
    return engine_within(engine, memory, unit)


def engine_within(engine: Engine, memory: int, unit: int = 0) -> Engine:
    """Return an engine with no more worker processes on this machine than fit into a budget of bytes.

    An engine whose workers run on other machines is returned unchanged. Each process unpacks `unit` bytes at once.
    """
    further = BYTES_A_UNIT_BYTE * unit if unit > 2 * BUDGET_PAGE else 0
    most = max((memory - PROGRAM) // (PROGRAM + LEAST + further), 1)
    elsewhere = isinstance(engine, Dask) and engine.address is not None
    if not isinstance(engine, WorkerEngine) or elsewhere or most >= engine.processes:
        return engine
    if most > 1 or not isinstance(engine, Processes):
        return replace(engine, workers=most)
    end_workers()
    return Serial()


@dataclass(frozen=True, kw_only=True)
class Store:
    """A folder with the signatures, vectors and pairs of a collection.

    Each stage writes a result that is complete or absent, and is skipped if the result is there, so that a stopped run
    resumes.

    Attributes
    ----------
    folder : Path
        A folder that all workers can read and write, or a URL, see `spotsigs.storage.locations.as_path`.
    method : Method
        Method of its signatures, vectors and pairs. A store has one text and one signature scheme.
    engine : Engine
        Where extraction and joins run.
    memory : int
        Bytes for all processes together.
    """

    folder: Path
    method: Method
    engine: Engine = field(default_factory=Serial)
    memory: int = 10**9

    @classmethod
    def open(cls, folder: str | Path) -> Store | None:
        """Open a store with the method of its last decisions; return None if there is none in the folder yet.

        A store without decisions has the default thresholds and filters.

        Raises
        ------
        InputError
            If another release wrote the store, in another layout.
        """
        path = as_path(folder)
        batches = _batch_folders(path)
        if not batches:
            return None
        layout = layout_of(first_segment(batches[0]))
        require(
            layout in (None, VERSION),
            f"the store {path} has layout {layout}, this program reads layout {VERSION}; delete it and make it again",
        )
        decisions = _last_decisions(path)
        if decisions is not None:
            return cls(folder=path, method=restored(decisions.facts["method"], STORED))
        known = known_source(batches[0])
        text, signature = restored(known["text"], STORED), restored(known["scheme"], STORED)
        return cls(folder=path, method=Method.of(text=text, signature=signature, min_contained=0.0))

    def as_reference(self, method: Method) -> Blocks:
        """Return the signatures of all documents, to compare others by a method with them."""
        replace(self, method=method)._require_same_scheme(_batch_folders(self.folder)[0])
        segments = stored_segments(self.folder)
        return replace(segments, reference=len(segments.parts))

    @property
    def is_decided(self) -> bool:
        """Whether a run has decided documents of the store; a stopped first run has not."""
        return _last_decisions(self.folder) is not None

    @property
    def vectors(self) -> Path:
        """Path of the vectors."""
        return self.folder / "vectors"

    @cached_property
    def budget(self) -> int:
        """Bytes for the data of one process."""
        return data_budget(self.memory, self.engine.processes)

    def match(
        self,
        collection: Collection | None,
        *,
        add: bool = False,
        strict: bool = False,
        listed: bool = True,
        crossed: bool = False,
        against: Store | None = None,
        grams: int = 0,
    ) -> Matched:
        """Find all pairs of a collection.

        Parameters
        ----------
        collection : Collection or None
            The documents; with `add`, the new ones. None for all documents of the store.
        add : bool
            Append the documents to the store, and find the pairs with at least one of them, as in a run over all
            documents. The documents of the last addition, given once more, resume that addition.
        strict : bool
            Stop at the first record that cannot be read.
        listed : bool
            List the pairs; otherwise, the result groups the documents by leaders, unless documents have labels.
        crossed : bool
            List only the pairs of a reference's document with another one.
        against : Store, optional
            Its documents are a reference, see `spotsigs.contracts.Referenced`; it is only read.
        grams : int
            Most word 5-grams of the texts in what is written, see `extract_segments`.

        Returns
        -------
        Matched
            Its signatures and pairs are in files, with the wall seconds ``extract``, ``sort_hash``
            (layout) and ``cluster`` (join).

        Raises
        ------
        InputError
            If the budget is out of range, or the store was made with another text or signature scheme.
        """
        require_reachable(self.folder)
        self._log_budget()
        unit = largest_unit_within(self.memory, self.engine.processes)
        with self.locked(), page_size_limit(BUDGET_PAGE, unit):
            began = perf_counter()
            earlier, added = self._extract(collection, add, strict, grams)
            # A reference is compared like the documents of earlier runs: its pairs with the new documents count.
            if against is not None:
                earlier = against.as_reference(self.method)
            if added.reference:
                earlier, added = added.split()
            if collection is not None:
                require_pages(collection, int(added.sizes().sum()), added.skipped)
            labelled = not earlier.reference and added.is_labelled  # quality is computed from a list of all pairs
            return self._match(earlier, added, perf_counter() - began, listed or labelled, crossed)

    def _log_budget(self) -> None:
        workers = self.engine.processes
        whose = "this process" if not workers else "its worker" if workers == 1 else f"each of {workers} workers"
        processes = f"each of {workers + 1} processes" if workers else "this process"
        log.info(
            f"memory: {self.memory / 1e6:,.0f} MB, of which {PROGRAM / 1e6:,.0f} MB for the code of {processes} and "
            f"{self.budget / 1e6:,.0f} MB for the data of {whose}"
        )

    def _match(self, earlier: Blocks, added: Blocks, extract_seconds: float, listed: bool, crossed: bool) -> Matched:
        outlines, new_from = earlier + added, int(earlier.sizes().sum())
        segments = outlines
        require_reference(new_from, earlier.reference)
        text = f"{option('min_contained', self.method.min_contained)} needs the phrases of the documents"
        again = f"give {option('min_contained', 0)}, or make the store again"
        has_phrases = outlines.has_phrases
        require(has_phrases or not self.method.reads_phrases, f"{text}, which {self.folder} has not; {again}")
        skipped = (segments if earlier.reference else added).skipped
        extracted = perf_counter()
        # Exact duplicates come first: only one page of each set has signatures in all stages that follow.
        with in_caller("exact duplicates", new_from + int(added.sizes().sum())):
            exact_duplicates = segments.exact_duplicates(self.method.duplicates)
        # Templates need all pages of a site at once, so that they are removed in a second pass over the outlines.
        if isinstance(self.method.signature, CollectionScheme):
            folder, scheme = self.folder / "refined", self.method.signature
            segments = refine_segments(
                folder, segments, scheme, self.engine, memory=self.budget, exact_duplicates=exact_duplicates
            )
        stored = self._vectorize(segments, exact_duplicates)
        made = fingerprint(self.vectors)  # a remote store has no lock: compared after each stage that reads the vectors
        laid_out = perf_counter()
        pairs = self._join(stored, new_from, crossed and new_from > 0) if listed else no_pairs(len(stored))
        self._require_unchanged(made)
        seconds = {"extract": extract_seconds, "sort_hash": laid_out - extracted, "cluster": perf_counter() - laid_out}
        # Without a list of pairs, leaders are searched when the caller knows the order in which documents are kept.
        group: Any = partial(by_leaders, partial(self._leaders, made))
        if listed:
            group = partial(by_pairs, stored.exact_duplicates.representatives)
        return Matched(
            doc_ids=stored.doc_ids,
            signatures=segments,
            vectors=stored.vectors,
            rows=stored.rows,
            exact_duplicates=stored.exact_duplicates,
            pairs=replace(pairs, seconds=seconds, chunk_size=pairs_at_a_time(self.budget // PASSING)),
            group=group,
            listed=listed,
            skipped=skipped,
            new_from=new_from,
            texts=TextTasks(
                lost=self._grams(outlines).text_lost if outlines.has_grams else None,
                contents=partial(self._contents, outlines, segments) if self.method.reads_phrases else None,
            ),
        )

    def _grams(self, outlines: Blocks) -> StoredGrams:
        return StoredGrams(outlines, self.folder / "text-lost", self.engine, self.budget)

    def _contents(self, outlines: Blocks, segments: Blocks) -> Contents:
        """Return the phrases of the documents, by their signatures before and after the second pass."""
        marked = marks_shingles(self.method.signature)
        return stored_contents(self.folder / "contents", outlines, segments, self.engine, marked=marked)

    def _leaders(self, made: str, options: LeaderOptions) -> tuple[Clusters, Pairs]:
        """Find leaders among vectors, unless another run has replaced them."""
        result = leaders_on_disk(
            self.vectors,
            self.folder / "leaders",
            self.method.threshold,
            options,
            self.engine,
            memory=self.budget,
            contents=self.folder / "contents" if options.rule.least > 0 else None,
        )
        end_workers()  # what follows uses memory for each document
        self._require_unchanged(made)
        return result

    def _require_unchanged(self, made: str) -> None:
        """Refuse vectors that another run has replaced: a remote store has no lock."""
        require(
            fingerprint(self.vectors) == made,
            f"another run changed the store {self.folder} in the meantime; give the same command again",
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the store, and report what cannot be read or written in it as an `InputError`."""
        with ExitStack() as stack:
            with system_errors(f"the store {self.folder} cannot be written", "; give another path"):
                stack.enter_context(store_lock(self.folder))
            try:
                yield
            except OSError as error:
                at = failed_path(error) or self.folder
                rest = f"complete results in the store {self.folder} are kept, and the same command resumes"
                raise InputError(f"{at}: {reason(error)}; {rest}") from error

    def _extract(self, collection: Collection | None, add: bool, strict: bool, grams: int) -> tuple[Blocks, Blocks]:
        """Return the segments of the old documents, and of the new ones."""
        batches = _batch_folders(self.folder)
        if batches:
            self._require_same_scheme(batches[0])
        if collection is None:
            stored = stored_segments(self.folder)
            if strict and (first := next(iter(stored.skipped), None)) is not None:
                raise strict_error(first)
            return Blocks(), stored
        number = self._batch_number(collection, batches, add)
        new = extract_segments(
            _batch_folder(self.folder, number),
            collection,
            self.method.text,
            self.method.signature,
            self.engine,
            strict=strict,
            grams=grams,
            phrases=self.method.reads_phrases,
        )
        return _segments_of_batches(batches[:number]), new

    def _batch_number(self, collection: Collection, batches: Sequence[Path], add: bool) -> int:
        """Return the number of the batch with the documents of a collection, which may be the next one."""
        source = source_of(collection, self.method.text, self.method.signature)
        known = [known_source(batch) for batch in batches]
        # A batch that was begun with the same files and settings is resumed instead of added twice.
        same = [k for k, other in enumerate(known) if {key: other.get(key) for key in source} == source]
        if add:
            require(
                not same or same[-1] == len(batches) - 1,
                f"these documents are in the store {self.folder} already, and others were added after them",
            )
            return same[-1] if same else len(batches)
        adds = f"{option('add', 'true')} adds"
        require(len(batches) < 2, f"the store {self.folder} contains documents that were added; {adds} more")
        if batches and not same:
            finished_segments(batches[0])
        others = f"the store {self.folder} contains other documents; {adds} to them, or name another store"
        require(not batches or bool(same), others)
        return 0

    def _require_same_scheme(self, batch: Path) -> None:
        known = known_source(batch)
        # The two schemes differ in more than their names if only one removes templates: the option is named first.
        made = boilerplate_of(known["scheme"]["type"])
        wanted = boilerplate_of(identity(self.method.signature)["type"])
        require(
            made is wanted, f"the store {self.folder} was made with {option('boilerplate', made.value)}; give the same"
        )
        for key, value, name in (("text", self.method.text, "text="), ("scheme", self.method.signature, "signature=")):
            changed = difference(known[key], identity(value))
            require(not changed, f"the store {self.folder} was made with another {name} ({changed}); give the same")

    def _vectorize(self, segments: Blocks, exact_duplicates: ExactDuplicates) -> StoredVectors:
        """Build the vectors, unless they are there and were made of the same signatures with the same settings."""
        # The number of segments of a reference counts: one run can compare with files that another one has as input.
        content = "".join(map(fingerprint, segments.folders)) + f" {segments.reference}" * bool(segments.reference)
        made_of = {
            "content": xxhash.xxh64_hexdigest(content.encode()),
            "filter": identity(self.method.idf_filter),
            "sets": self.method.sets,
            "min_spots": self.method.idf_filter.min_spots,
            "sameness": self.method.duplicates.value,
            "layout": LAYOUT,
        }
        if exists(self.vectors / "store.json"):
            facts = opened(self.vectors, "vectors", verify=False).facts
            if {key: facts.get(key) for key in made_of} == made_of:
                remove_tree(in_the_making(self.vectors))  # which a run that stopped in between has not deleted
                return open_vectors(self.vectors)
        n = int(segments.sizes().sum())
        needed = n * max(BYTES_A_DOCUMENT, BYTES_A_RESULT)
        require(
            needed <= self.budget,
            f"memory is too little for {n:,} documents: ordering and grouping them takes {needed / 1e6:,.0f} MB in "
            f"addition to the code, and there are {self.budget / 1e6:,.0f} MB for data",
        )
        log.info(
            f"layout: {counted(n, 'document')}, {needed / 1e6:,.0f} MB for their order; signatures are read in ranges"
        )
        return build_vectors(
            self.vectors,
            segments,
            self.method.idf_filter,
            memory=self.budget,
            engine=self.engine,
            sets=self.method.sets,
            exact_duplicates=exact_duplicates,
            facts=made_of,
        )

    def _join(self, stored: StoredVectors, new_from: int, crossed: bool) -> Pairs:
        tau = self.method.threshold
        job = xxhash.xxh64_hexdigest(f"{fingerprint(self.vectors)} {new_from} {crossed}".encode())
        target, budget = self._resumed(f"{tau}-{job}")
        log.info(f"join: {counted(len(stored), 'document')}, each task within {budget / 1e6:,.0f} MB")
        return join_store(self.vectors, target, tau, self.engine, memory=budget, new_from=new_from, crossed=crossed)

    def _resumed(self, job: str) -> tuple[Path, int]:
        """Return the path of a job's pairs and the budget that its tasks were cut for.

        A stopped job resumes with its tasks if they fit into the present budget: other tasks would give the same pairs
        and lose the complete ones. A folder without the description of its job was deleted in part.
        """
        name = f"pairs-{job}-"
        known = [path.removeprefix(name) for path in sizes(self.folder) if path.startswith(name)]
        for cut in known:
            if not exists(self.folder / f"{name}{cut}" / JOB):
                remove_tree(self.folder / f"{name}{cut}")
        fits = max((int(cut) for cut in known if cut.isdigit() and int(cut) <= self.budget), default=self.budget)
        return self.folder / f"{name}{fits}", fits


def _batch_folder(folder: Path, number: int) -> Path:
    return folder / "segments" / f"{number:06d}"


def _batch_folders(folder: Path) -> list[Path]:
    """Return the paths of the batches of documents of a store, in order."""
    folders: list[Path] = []
    while exists(_batch_folder(folder, len(folders)) / "source.json"):
        folders.append(_batch_folder(folder, len(folders)))
    return folders


def read_decisions(folder: str | Path, n: int) -> NDArray[np.bool_] | None:
    """Return which of the first n documents of a store a run has kept; None if no run has decided exactly these."""
    store = _open_decisions(folder, n)
    return None if store is None else store.whole("kept", np.bool_)


def write_decisions(folder: str | Path, kept: NDArray[np.bool_], method: Method) -> None:
    """Write which documents of a store are kept, and by which method: later runs with ``add`` build on both."""
    with writing(as_path(folder) / "decided" / str(len(kept)), "decided") as out:
        out.put("kept", kept)
        out.facts["method"] = identity(method)


def _last_decisions(folder: Path) -> Reader | None:
    numbers = [int(name) for name in sizes(folder / "decided") if name.isdigit()]
    return _open_decisions(folder, max(numbers, default=0))


def _open_decisions(folder: str | Path, n: int) -> Reader | None:
    try:
        return opened(as_path(folder) / "decided" / str(n), "decided")
    except InputError:
        return None


def stored_segments(folder: str | Path) -> Blocks:
    """Return the signatures of all documents of a store, in the order in which they were added.

    Raises
    ------
    InputError
        If there are none, or an extraction was stopped.
    """
    batches = _batch_folders(as_path(folder))
    require(bool(batches), f"{folder} is no store of documents; make it by a run that names it as its store")
    return _segments_of_batches(batches)


def _segments_of_batches(batches: Sequence[Path]) -> Blocks:
    return Blocks(tuple(folder for batch in batches for folder in finished_segments(batch).folders))


def default_memory() -> int:
    """Return half of the machine's memory: the budget where none is given."""
    import psutil

    return int(psutil.virtual_memory().total) // 2
