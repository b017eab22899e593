"""The stages of one run, in memory or on disk: a method and a collection to a result."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from glob import has_magic
from itertools import chain, repeat
from pathlib import Path
from typing import Any, cast

import numpy as np

from spotsigs.clustering.clusters import ClusterMethod
from spotsigs.clustering.in_memory import SharedJoin
from spotsigs.compile import prepare, steps_of
from spotsigs.contracts import Collection, Referenced, VectorCollection
from spotsigs.errors import InputError, option, require
from spotsigs.evaluation.text_lost import MOST_BYTES
from spotsigs.formats.folder import Folder
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.method import Method, Spelling, spell_part
from spotsigs.options import SEED
from spotsigs.records import Corpus, Vectors
from spotsigs.runs.provenance import PeakMemory
from spotsigs.runs.result import Result
from spotsigs.runs.stores import kept_store, store_of_run
from spotsigs.signatures.extract import texts
from spotsigs.storage.locations import NOT_WRITTEN, PRINTED, as_path, is_remote
from spotsigs.storage.tasks import in_caller
from spotsigs.workers.engines import Engine, Serial

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Output:
    """Files that a run writes."""

    folder: Path  # folder of the tables, on this machine or as a path of a URL
    # Folder or URL of the copy of the collection, in its own format, without the removed documents; `PRINTED` prints
    # the kept ones, and `NOT_WRITTEN` makes no copy.
    copy: str | None = None
    overwrite: bool = False  # the copy replaces an existing one
    page: bool = False  # write ``clusters.html``
    tables: bool = True  # tables are kept; otherwise the folder is a temporary one
    # All pairs are written; otherwise only the pairs that decide, each with a kept document, unless others are needed.
    listed: bool = True
    # The program has nothing to do after the run: an interrupt after the results are published changes nothing.
    ends_program: bool = False


@dataclass(frozen=True, kw_only=True)
class Run:
    """Input and output of a run, and where its stages run; they change nothing of the decisions.

    Attributes
    ----------
    collection : Collection or VectorCollection
        Documents, or vectors.
    data : str
        Name of the collection.
    against : Collection, Store or None
        Reference, whose documents are compared with the collection, always kept and never copied.
    strict : bool
        Stop at the first record that cannot be read.
    output : Output
        Files to write.
    engine : Engine
        Runs the extraction; on disk, the join as well.
    memory : int or None
        Bytes for all processes of a run on disk; None for a run in memory.
    store : str or None
        Folder or URL of a store that is kept; None for one that is deleted after the run.
    add : bool
        Add the documents to the store, and report only pairs with at least one of them.
    seed : int
        Seed of what is random; recorded with the results.
    spelling : Spelling
        How the door of the run writes the method in its results.
    """

    collection: Any
    data: str
    against: Any = None
    strict: bool = False
    output: Output
    engine: Engine = field(default_factory=Serial)
    memory: int | None = None
    store: str | None = None
    add: bool = False
    seed: int = SEED
    spelling: Spelling = spell_part

    def __post_init__(self) -> None:
        reference = getattr(self.against, "path", None) if isinstance(self.against, Collection) else None
        for key, named in (("copy", self.output.copy), ("store", self.store)):
            for read in (getattr(self.collection, "path", None), reference):
                _require_outside(key, named, read)
        _require_copy_apart(self)

    @property
    def documents(self) -> Any:
        """The collection, after its reference if that is a collection, too."""
        return Referenced(self.against, self.collection) if isinstance(self.against, Collection) else self.collection

    @property
    def grams(self) -> int:
        """Most word 5-grams that are kept to measure the text lost: in memory, or in the files of the store."""
        if self.output.copy is None:
            return 0
        return (MOST_BYTES if self.memory is None else self.memory // 16) // 8


def _require_outside(key: str, named: str | None, path: object) -> None:
    """Refuse to write among the files of the collection, which would become a part of it."""
    if named in (None, PRINTED, NOT_WRITTEN) or not isinstance(path, str) or path in ("", "-"):
        return
    fixed, deep, _ = path.partition("**")
    root, written = as_path(fixed), as_path(named)
    if is_remote(root) or is_remote(written):
        inside = f"{named.rstrip('/')}/".startswith(f"{fixed.rstrip('/')}/")
    else:
        inside = (bool(deep) or root.is_dir()) and written.resolve().is_relative_to(root.resolve())
    require(
        not inside,
        f"{option(key, named)} is inside the input {path}, and its files would become a part of the collection; "
        "choose a folder outside",
    )


def _require_copy_apart(run: Run) -> None:
    """Refuse a copy whose folder contains, or is in, another folder of the run: it is replaced as a whole."""
    copy = run.output.copy
    if copy in (None, PRINTED, NOT_WRITTEN):
        return
    others = {"the results": run.output.folder if run.output.tables else None, "the store": run.store}
    if isinstance(run.against, Collection | None):
        _require_no_source(copy, "the reference", run.against)
    else:
        others["the reference"] = run.against.folder
    _require_no_source(copy, "the input", run.collection)
    for what, path in others.items():
        if path is not None:
            apart = not _is_below(path, copy) and not _is_below(copy, path)
            require(apart, f"{option('copy', copy)} and {what} {path} are in one another; choose a folder apart")


def _require_no_source(copy: str, what: str, collection: object) -> None:
    """Refuse a copy whose folder contains files of the input or the reference, also through links."""
    path = getattr(collection, "path", None)
    if not isinstance(path, str) or not path or (path == "-" and not isinstance(collection, Folder)):
        return
    inside = path != "-" and _is_below(path, copy)
    if not inside and (path == "-" or has_magic(path)) and (is_remote(as_path(copy)) or as_path(copy).is_dir()):
        inside = any(_is_below(source.path, copy) for source in cast(Any, collection).sources())
    require(not inside, f"{what} {path} is in the copy {copy}, which is replaced; choose a folder outside")


def _is_below(path: str | Path, folder: str | Path) -> bool:
    """Return whether a path is a folder or below it, after links are followed."""
    inner, outer = as_path(path), as_path(folder)
    if is_remote(inner) or is_remote(outer):
        return f"{str(inner).rstrip('/')}/".startswith(f"{str(outer).rstrip('/')}/")
    return inner.resolve().is_relative_to(outer.resolve())


def compute(method: Method, run: Run, join: SharedJoin | None = None) -> Result:
    """Match a collection, group the pairs and evaluate them; other runs in memory may share the `join`.

    The result is the same in memory and on disk; with ``add``, it has the pairs with at least one new document.

    Raises
    ------
    InputError
        If the collection is empty, a record is unreadable and ``strict`` is set, or the matcher or the collection has
        no form on disk.
    """
    prepare(steps_of(method, listed=_needs_all_pairs(method, run)), run.memory)
    if run.memory is not None:
        return _compute_on_disk(method, run, run.memory)
    if join is None:
        extracted = method.extract(run.documents, run.engine, strict=run.strict, grams=run.grams)
        join = method.prepare_join(run.documents, extracted)
    return _compute_in_memory(method, run, join)


def _needs_all_pairs(method: Method, run: Run) -> bool:
    """Return whether the tables, the page of clusters or the clusters of a run need a list of all pairs.

    Documents with labels need it as well, because quality is computed from it; only their signatures show that.
    """
    return run.output.listed or run.output.page or method.clusters is not ClusterMethod.leaders


def _compute_in_memory(method: Method, run: Run, join: SharedJoin) -> Result:
    signatures = join.extracted.signatures
    labelled = not signatures.n_reference and any(name is not None for name in signatures.documents.clusters)
    listed = _needs_all_pairs(method, run) or labelled
    is_first = join.joined_at(method.matcher) is None  # no earlier join has the pairs of this one
    if is_first and listed:
        method.matcher(_few_documents())  # compiles or loads the kernels, so that no time below includes that
    n = len(join.corpus.vectors)
    with PeakMemory() as memory, in_caller("joining", n) if listed else nullcontext():
        crossed = run.output.listed
        matched = join.match(method.matcher, crossed=crossed) if listed else method.match_for_decisions(join)
    if is_first:
        join.peak_bytes = memory.peak_bytes
    with in_caller("decisions", n):
        result = Result.of(method, run.data, run.collection, matched)
    return replace(result, peak_bytes=join.peak_bytes, added_from=matched.new_from)


def _compute_on_disk(method: Method, run: Run, memory: int) -> Result:
    from spotsigs.outofcore.pipeline import Store, read_decisions, require_units, write_decisions
    from spotsigs.outofcore.segments import compute_checksums

    if not isinstance(method.matcher, SpotSigsTight):
        raise InputError(
            f"{method.matcher.label} has no form for vectors on disk, which {option('memory')}, {option('store')} and "
            "a store as reference need; leave them out"
        )
    # What needs no store comes first, so that a wrong budget is an error before any file is read as a whole.
    engine = require_units(run.documents, run.engine, memory, copied=run.output.copy is not None)
    compute_checksums(run.documents, engine)
    folder = store_of_run(method, run.documents, run.output.folder) if run.store is None else kept_store(run.store)
    store = Store(folder=folder, method=method, engine=engine, memory=memory)
    listed = _needs_all_pairs(method, run)
    matched = store.match(
        run.documents,
        add=run.add,
        strict=run.strict,
        listed=listed,
        crossed=run.output.listed and run.against is not None,
        against=run.against if isinstance(run.against, Store) else None,
        grams=run.grams,
    )
    # Decisions of earlier runs are final. Without any, all documents of the store are matched and decided together.
    added_from = matched.new_from
    earlier = read_decisions(store.folder, added_from) if run.add and added_from else None
    if run.add and added_from and earlier is None:
        undecided = "no finished run has decided the %s earlier documents of %s: all are decided now"
        log.warning(undecided, f"{added_from:,}", store.folder)
        matched = store.match(None, listed=listed)
    with store.locked(), in_caller("decisions", len(matched.doc_ids)):
        result = Result.of(method, run.data, run.collection, matched, earlier=earlier)
        result = replace(result, memory=memory, added_from=added_from)
    if run.store is not None:
        write_decisions(run.store, result.decisions.kept, method)
    return result


def _few_documents() -> Corpus:
    pages = ["one page of a few words.", "one page of a few words.", "another page."]
    ids = np.array([0, 1, 2, 3, 0, 1, 2, 3, 1, 4])
    return Corpus(
        Vectors.from_csr(np.array([0, 4, 8, 10]), ids, vocabulary=np.arange(5, dtype=np.uint64)), lambda: iter(pages)
    )


def readable_texts(method: Method, run: Run, new_from: int = 0) -> Iterator[str | None]:
    """Return the text of every document, exact duplicates included; None for those that only a store has."""
    require(not isinstance(run.collection, VectorCollection), "a page of clusters needs pages, not vectors")
    return chain(repeat(None, new_from), texts(run.documents, method.text))
