"""Collections that are extracted once for all experiments, or for a sweep, and cached with their results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from data.truth import WithTruth, read_truth, truth_of
from experiments.harness.finished_cells import PatientProcesses
from experiments.harness.used_code import checksum_of_source
from spotsigs.clustering.in_memory import Extracted, SharedJoin
from spotsigs.contracts import Shard, SignatureScheme, VectorCollection
from spotsigs.errors import InputError, require
from spotsigs.formats.file_collection import FileCollection
from spotsigs.method import Method
from spotsigs.outofcore.segments import source_of
from spotsigs.records import Document, DocumentColumns, RowNumbers, Signatures, Skipped, Truth, Vectors
from spotsigs.signatures.extract import concatenate, extract, extract_shard, texts_for
from spotsigs.storage.exact_duplicates import ExactDuplicates, Sameness
from spotsigs.storage.store import fingerprint, load_signatures, opened, save_signatures
from spotsigs.storage.tasks import run_tasks
from spotsigs.workers.engines import Engine, Processes


@dataclass(frozen=True, kw_only=True)
class Source:
    """Collection with its extraction.

    Attributes
    ----------
    collection : Collection or VectorCollection
        Documents or vectors.
    text : callable or None
        Function from a document to its text; None for a collection of vectors.
    signature : SignatureScheme or None
        Function from tokens to signatures; None for a collection of vectors.
    duplicates : Sameness
        Which documents are exact duplicates, of which a scheme that reads the whole collection uses one.
    phrases : bool
        Whether decisions depend on the phrases of the texts.
    """

    collection: Any
    text: Any = None
    signature: Any = None
    duplicates: Sameness = Sameness.text
    phrases: bool = False

    @classmethod
    def of(cls, collection: Any, method: Method) -> Source:
        """Return the source of a method's signatures."""
        if isinstance(collection, VectorCollection):
            return cls(collection=collection)
        choices = {name: getattr(method, name) for name in ("text", "signature", "duplicates")}
        return cls(collection=collection, phrases=method.reads_phrases, **choices)


@dataclass(frozen=True, kw_only=True)
class Stored:
    """Extracted source in a store; its ``repr`` has everything that the content depends on."""

    source: Source  # source of the store
    checksum: str  # SHA-256 over the arrays of the store: ids, truth, signatures and counts of the documents
    # Store of signatures; for a collection of vectors, ids replace the hashes.
    path: Path = field(repr=False, compare=False)

    @property
    def occurrences(self) -> int:
        """Number of distinct signatures of all documents together."""
        return len(opened(self.path, "signatures").array("hashes", np.uint64))

    def signatures(self) -> Signatures:
        """Return a writable copy of the signatures in memory, as kernels require."""
        mapped = load_signatures(self.path)
        return replace(
            mapped, indptr=np.array(mapped.indptr), hashes=np.array(mapped.hashes), counts=np.array(mapped.counts)
        )

    def extracted(self, seconds: float = 0.0) -> Extracted:
        """Return the signatures and exact duplicates, with the wall seconds of the extraction."""
        if self.source.signature is None:
            store = opened(self.path, "signatures")
            indptr, ids = store.whole("indptr", np.int64), store.whole("hashes", np.uint64)
            vectors = Vectors.from_csr(indptr, ids, store.whole("counts", np.int32))
            return Extracted(_numbered(vectors), ExactDuplicates.none(len(vectors)), seconds, vectors)
        signatures = self.signatures()
        return Extracted(signatures, ExactDuplicates.among(signatures, self.source.duplicates), seconds)

    def prepare_join(self, method: Method, seconds: float = 0.0) -> SharedJoin:
        """Return the collection ready to be matched by a method."""
        return method.prepare_join(self.source.collection, self.extracted(seconds))

    def truth(self, *, judged: bool = False) -> Truth:
        """Return the truth of the collection; an InputError if it has none, or judged pairs unless they serve."""
        truth: Truth | None = None
        if self.source.signature is not None:
            known = load_signatures(self.path)
            truth = truth_of(self.source.collection, known.doc_ids, known.documents.clusters, known.skipped)
        return required(truth, judged=judged)


def required(truth: Truth | None, *, judged: bool) -> Truth:
    """Return a truth; an InputError if there is none, or judged pairs unless they serve."""
    how = "data.truth= names a file of them, or choose a collection that has labels, as data=gold"
    if truth is None:
        raise InputError(f"the collection has no truth to evaluate against; {how}")
    if truth.judged is not None and not judged:
        raise InputError(
            "this experiment needs clusters, and data.truth= has judged pairs; experiment=compare has both"
        )
    return truth


def require_truth(sources: Sequence[Source], folder: Path) -> None:
    """Refuse a user's pages without a truth that serves, before they are extracted into a folder."""
    for source in {repr(source.collection): source for source in sources}.values():
        own = isinstance(source.collection, FileCollection | WithTruth)
        if own and not all(_is_stored(_path(one, folder)) for one in sources):
            required(read_truth(source.collection), judged=True)


@dataclass(frozen=True)
class Computed(Engine):
    """An engine whose results were computed before."""

    results: Sequence[Any]  # in task order

    def map(self, function: Any, tasks: Iterable[Any]) -> Generator[Any, None, None]:
        """Yield the results as the function of a stage returns them, with a measure, see `spotsigs.storage.tasks`."""
        results = iter(self.results)
        yield from map(replace(function, func=lambda _: next(results)), tasks)


def read_together(sources: Sequence[Source], folder: Path, engine: Engine, *, later: str = "") -> list[Stored]:
    """Extract several sources into a folder, or open them there; sources of one collection in one pass.

    Workers can import the module of `later` tasks meanwhile, see `PatientProcesses`.
    """
    if isinstance(engine, Processes):
        engine = PatientProcesses(workers=engine.workers, later=later)
    paths = [_path(source, folder) for source in sources]
    known = {path: fingerprint(path) for path in paths if _is_stored(path)}
    groups: dict[str, list[tuple[Source, Path]]] = {}
    for source, path in zip(sources, paths, strict=True):
        if path not in known:
            groups.setdefault(repr(source.collection), []).append((source, path))
    for group in groups.values():
        if group[0][0].signature is None:
            known[group[0][1]] = save_signatures(group[0][1], _numbered(group[0][0].collection.vectors()))
        else:
            known |= _extract(group, engine)
    return [
        Stored(source=source, checksum=hashlib.sha256(known[path].encode()).hexdigest(), path=path)
        for source, path in zip(sources, paths, strict=True)
    ]


def _numbered(vectors: Vectors) -> Signatures:
    documents = DocumentColumns(RowNumbers(len(vectors)))
    return Signatures(documents, vectors.indptr, vectors.ids.astype(np.uint64), vectors.counts)


def _extract(group: Sequence[tuple[Source, Path]], engine: Engine) -> dict[Path, str]:
    """Write the signatures of sources of one collection; return the fingerprints of the stores."""
    written: dict[Path, str] = {}
    collection = group[0][0].collection
    parts: list[list[Signatures]] = []
    if len(group) > 1:
        each = partial(_in_each, ways=[(source.text, source.signature, source.phrases) for source, _ in group])
        parts = list(run_tasks(engine, each, collection.shards(), "reading", "shards", arrays=True))
    for k, (source, path) in enumerate(group):
        runs: Any = Computed([part[k] for part in parts]) if parts else engine
        result = extract(
            collection, source.text, source.signature, runs, sameness=source.duplicates, phrases=source.phrases
        )
        require(len(result) > 0 or source.duplicates is not Sameness.off, "the collection is empty; give another one")
        written[path] = save_signatures(path, result)
    return written


CHUNK = 4_000_000
"""Bytes of content after which the pages of a shard are extracted in all ways."""


def _in_each(shard: Shard, *, ways: Sequence[tuple[Any, SignatureScheme, bool]]) -> list[Signatures]:
    """Extract a shard by several texts and schemes; each page is read, and each of its texts extracted, once."""
    parts: list[list[Signatures]] = [[] for _ in ways]

    def extract_chunk(records: list[Document | Skipped]) -> None:
        known: dict[tuple[str, int], str] = {}
        for (text, scheme, phrases), chunks in zip(ways, parts, strict=True):
            extractor = texts_for(scheme, text)

            def looked_up(document: Document, extractor: Any = extractor) -> str:
                key = repr(extractor), id(document)
                if key not in known:
                    known[key] = extractor(document)
                return known[key]

            chunks.append(extract_shard(lambda: iter(records), looked_up, scheme, phrases=phrases))

    records: list[Document | Skipped] = []
    size = 0
    for record in shard():
        records.append(record)
        size += len(record.content) if isinstance(record, Document) else 0
        if size >= CHUNK:
            extract_chunk(records)
            records, size = [], 0
    extract_chunk(records)
    return [concatenate(chunks) for chunks in parts]


def _path(source: Source, folder: Path) -> Path:
    """Return the path of a source's store, which its content, the code and the collection's files determine."""
    code = checksum_of_source(source.collection, source.text, source.signature)
    parts: list[Any] = [source_of(source.collection, source.text, source.signature), code]
    if source.duplicates is not Sameness.off:
        parts.append(source.duplicates.value)
    parts += ["phrases"] * source.phrases
    return folder / f"input-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]}"


def _is_stored(path: Path) -> bool:
    try:
        opened(path, "signatures")
    except InputError:
        return False
    return True
