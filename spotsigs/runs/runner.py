"""One run: match, write the run's folder and the copy, and return the result."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np

from spotsigs.clustering.decisions import BY_SCORE, Keep, is_unordered
from spotsigs.clustering.in_memory import Matched, SharedJoin
from spotsigs.clustering.tables import RowFacts, role_of, write_tables
from spotsigs.contracts import CopyableCollection, VectorCollection
from spotsigs.errors import option, require
from spotsigs.evaluation.metrics import Interval
from spotsigs.evaluation.text_lost import MOST_BYTES, TextLost, text_lost
from spotsigs.formats.writers import copy_errors, prepare_copy, print_kept, publish_copy, require_free
from spotsigs.method import Method
from spotsigs.outofcore.pipeline import largest_unit_within
from spotsigs.records import Skipped
from spotsigs.reports import terminal
from spotsigs.reports.output_files import publishing, write_csv, write_json, write_text, writing
from spotsigs.runs.copy_tasks import JudgedBy, copied_by_tasks
from spotsigs.runs.provenance import TreeMemory, provenance
from spotsigs.runs.result import Result, input_checksum
from spotsigs.runs.stages import Run, compute, readable_texts
from spotsigs.runs.stores import discard_stores
from spotsigs.signatures.extract import cutter, grams_of, name_hash, texts, texts_for, unique_names
from spotsigs.storage.atomic import locked, reserved, staging_folder
from spotsigs.storage.locations import NOT_WRITTEN, PRINTED, as_path, is_remote, remove, require_writable, upload
from spotsigs.storage.manifest import COMPLETE, RUN, require_of_run
from spotsigs.storage.tasks import in_caller, task_log
from spotsigs.text.size_limits import BUDGET_PAGE, page_size_limit

log = logging.getLogger(__name__)

TASKS = "tasks.parquet"
"""The log of the tasks of a run on disk, see `spotsigs.storage.tasks.Step`."""

OPTIONAL = (TASKS, "skipped.csv", "undated.csv", "unscored.csv", "clusters.html")
TABLES = ("pairs.parquet", "clusters.parquet", "clusters.csv", "kept.csv", "removed.csv", *OPTIONAL, RUN, COMPLETE)
"""Files of a run that are there only if they have rows, and all its files."""


def execute(
    method: Method,
    run: Run,
    *,
    contended: bool = False,
    join: SharedJoin | None = None,
    about: Mapping[str, str] | None = None,
    intervals: Callable[[Result], Mapping[str, Interval]] | None = None,
) -> Result:
    """Run a method, and replace the results in the run's folder at once.

    Parameters
    ----------
    method, run
        What to compute, of which input, and where.
    contended : bool
        Other jobs run at the same time, so that the times of this one do not compare.
    join : SharedJoin, optional
        Signatures and pairs that runs in memory share.
    about : mapping of str to str, optional
        Files with the configuration of the run, by their names in the folder ``.hydra``.
    intervals : callable, optional
        Returns intervals of figures of quality, in place of those by resampling clusters.
    """
    copy, target = _free_copy(run), as_path(run.output.folder)
    require_of_run(target, TABLES)
    with ExitStack() as folders:
        folder = _local_results(target, folders)
        run, temporary = replace(run, output=replace(run.output, folder=folder)), None
        if copy is not None and not is_remote(copy):
            folders.enter_context(_reserved(copy))
        with writing(folder):
            folders.enter_context(locked(folder))
        with ExitStack() as stack, ExitStack() as undo:
            with publishing(folder, RUN, COMPLETE, OPTIONAL) as new:
                with within_budget(run) as memory, task_log() as log_of_tasks:
                    result = compute(method, run, join)
                    if intervals is not None and result.quality is not None:
                        known = {**result.quality.intervals, **intervals(result)}
                        result = replace(result, quality=replace(result.quality, intervals=known))
                    if run.output.copy is not None:
                        n = len(result.matched.doc_ids)
                        with in_caller("text lost", n):
                            result = replace(result, text_lost=_text_lost(result, run))
                        with in_caller("copy", n - result.added_from):
                            temporary = _written(result, run, copy, stack)
                    with in_caller("tables", len(result.matched.doc_ids)):
                        write_result(new, result)
                        named = not isinstance(run.collection, VectorCollection)
                        input_sha256 = input_checksum(result.matched, named=named)
                    if run.output.page:
                        write_page(new, result, run)
                if memory is not None:
                    result = replace(result, peak_bytes=memory.peak_bytes)
                    log_of_tasks.write(new / TASKS)
                made = {"seed": run.seed, "contended": contended, "input_sha256": input_sha256}
                _finish(new, result, run, about, made)
                # Until the new results are complete, no file says that the folder has complete ones.
                if is_remote(target):
                    remove(target / COMPLETE)
                elif copy is None or not is_remote(copy):
                    # Copy and results are published together, or neither is.
                    stack.enter_context(terminal.uninterrupted(run.output.ends_program))
                if copy is not None and temporary is not None:
                    with copy_errors(copy):
                        publish_copy(temporary, copy, undo, overwrite=run.output.overwrite)
                if is_remote(target):
                    upload(new, target, last=COMPLETE)
            undo.pop_all()
        discard_stores(folder)
    return result


def _local_results(target: Path, stack: ExitStack) -> Path:
    """Return the folder of a run's results, a temporary one if they are uploaded."""
    if not is_remote(target):
        return target
    require_writable(target)
    return stack.enter_context(staging_folder(target)) / target.name


@contextmanager
def within_budget(run: Run) -> Iterator[TreeMemory | None]:
    """Bound the pages of a run on disk, and watch the memory of all its processes."""
    if run.memory is None:
        yield None
        return
    with TreeMemory() as memory, page_size_limit(BUDGET_PAGE, largest_unit_within(run.memory)):
        yield memory


def _finish(
    folder: Path, result: Result, run: Run, about: Mapping[str, str] | None, made: Mapping[str, object]
) -> None:
    """Write the files that state how the results were made, and last the figures, which mark a finished run."""
    for name, text in (about or {}).items():
        write_text(folder / ".hydra" / name, text)
    metrics = result.described(run.spelling)
    write_json(folder / RUN, provenance() | {**made, "method": metrics["method"]})
    write_json(folder / COMPLETE, metrics)


@contextmanager
def _reserved(copy: Path) -> Iterator[None]:
    """Refuse a copy that another run writes."""
    with ExitStack() as stack:
        with copy_errors(copy):
            free = stack.enter_context(reserved(copy))
        require(free, f"another run writes the copy {copy}; wait for it, or name another folder")
        yield


def _free_copy(run: Run) -> Path | None:
    """Return the path of the copy of the collection, if one is requested in a folder and can be written."""
    if run.output.copy in (None, NOT_WRITTEN):
        return None
    copyable = isinstance(run.collection, CopyableCollection)
    require(copyable, f"{option('data', run.data)} cannot be copied; use kept.csv")
    if run.output.copy == PRINTED:
        return None
    path = require_free(run.output.copy, overwrite=run.output.overwrite)
    require_writable(path)
    return path


def write_result(folder: Path, result: Result) -> None:
    """Write all tables; of the tables in `OPTIONAL`, write only those with rows."""
    matched = result.matched
    with writing(folder):
        write_tables(
            folder,
            matched.doc_ids,
            matched.pairs,
            result.decisions,
            result.cohesion,
            RowFacts(
                new_from=matched.new_from,
                n_reference=matched.n_reference,
                lower_bounds=matched.lower_bounds,
                languages=matched.signatures.languages,
                text_lost=None if result.text_lost is None else result.text_lost.of_page,
            ),
        )
    if len(matched.skipped):
        header = ("doc", "reason", "role") if matched.n_reference else ("doc", "reason")
        write_csv(folder / "skipped.csv", header, _skipped_rows(matched))
    keep = result.method.keep
    if keep in (Keep.newest, *BY_SCORE):
        named = islice(zip(matched.doc_ids, matched.signatures.dates, strict=False), matched.new_from, None)
        last = ((name, date or "") for name, date in named if is_unordered(keep, date))
        if (first := next(last, None)) is not None:
            name, column = ("undated.csv", "date") if keep is Keep.newest else ("unscored.csv", "score")
            write_csv(folder / name, ("doc", column), chain([first], last))


def _skipped_rows(matched: Matched) -> Iterator[tuple[str, ...]]:
    """Yield a name that no other document of its role has, the reason, and, with a reference, the role."""
    n = matched.n_reference
    for of_reference, ids in ((True, matched.doc_ids[:n]), (False, matched.doc_ids[n:])):
        records = partial(_records, matched, of_reference)
        own = islice(unique_names(partial(_names, ids, records)), len(ids), None)
        for name, record in zip(own, records(), strict=True):
            yield (name, record.reason, role_of(of_reference)) if n else (name, record.reason)


def _records(matched: Matched, of_reference: bool) -> Iterator[Skipped]:
    return (record for record in matched.skipped if record.of_reference == of_reference)


def _names(ids: Sequence[str], records: Callable[[], Iterator[Skipped]]) -> Iterator[str]:
    return chain(ids, (record.id for record in records()))


def _text_lost(result: Result, run: Run) -> TextLost | None:
    """Measure the text that no kept page contains; None if the kept pages are in a store, without texts.

    The texts are read again if an earlier run, which made no copy, stored the signatures.
    """
    matched = result.matched
    if matched.new_from and run.documents is run.collection:
        return None
    most_bytes, kept = MOST_BYTES if run.memory is None else run.memory // 16, result.decisions.kept
    if matched.texts.lost is not None:
        lost: TextLost | None = matched.texts.lost(kept, run.grams)
        return lost
    if matched.signatures.has_grams:
        grams = matched.signatures.grams()
    else:
        scheme = result.method.signature
        grams = grams_of(texts(run.documents, texts_for(scheme, result.method.text)), cutter(scheme))
    return text_lost(grams, kept, most_bytes=most_bytes)


def _written(result: Result, run: Run, copy: Path | None, stack: ExitStack) -> Path | None:
    """Write the copy, and return its temporary folder; print it if there is none."""
    if run.output.copy == NOT_WRITTEN:
        return None
    if copy is None:
        _write_copy(result, run, None)
        return None
    with copy_errors(copy):
        temporary = stack.enter_context(staging_folder(copy))
        _write_copy(result, run, temporary)
    return temporary


def _write_copy(result: Result, run: Run, temporary: Path | None) -> None:
    """Write the copy of the collection into a temporary folder, or its documents to standard output."""
    matched, method = result.matched, result.method
    failed = np.unique(np.fromiter((name_hash(record.id) for record in _records(matched, False)), np.uint64))
    judged = JudgedBy(failed, method.text, method.signature)
    new = slice(result.added_from, None)
    decided = run.collection, matched.doc_ids[new], result.decisions.kept[new]
    if temporary is not None:
        if not copied_by_tasks(*decided, temporary, judged=judged, engine=run.engine):
            prepare_copy(*decided, temporary, judged=judged)
    else:
        print_kept(*decided, sys.stdout.buffer, judged=judged)


def write_page(folder: Path, result: Result, run: Run) -> None:
    """Write the page of clusters."""
    from spotsigs.reports.cluster_page import write_cluster_page

    matched = result.matched
    pairs = matched.pairs
    if not pairs.fits_memory:
        log.warning("clusters.html is left out: %s pairs do not fit into the memory budget", f"{len(pairs):,}")
        return
    doc_ids, n = matched.doc_ids, matched.n_reference
    if n:
        doc_ids = [*(f"{name} (reference)" for name in doc_ids[:n]), *doc_ids[n:]]
    write_cluster_page(
        folder / "clusters.html",
        doc_ids,
        pairs,
        result.decisions.clusters,
        readable_texts(result.method, run, matched.new_from),
        scheme=result.method.signature,
        matched=matched.signatures_of,
    )
