"""Collections that are extracted once for all experiments, or for a sweep, and cached with their results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from experiments.work.machine_load import QUIET, ForeignLoad
from experiments.work.result_cache import code_version
from spotsigs.engines import Engine, Serial
from spotsigs.errors import InputError
from spotsigs.exact_duplicates import Sameness
from spotsigs.outofcore.segments import source_of
from spotsigs.output_files import replacing
from spotsigs.records import Corpus, Document, RowNumbers, Shard, Signatures, SignatureScheme, Skipped, Truth, Vectors
from spotsigs.signatures.extract import concatenate, extract, extract_shard, nothing_readable, texts, texts_for
from spotsigs.signatures.idf import IdfFilter
from spotsigs.storage.store import fingerprint, load_signatures, opened, save_signatures
from spotsigs.text.visible import VisibleText


@dataclass(frozen=True, kw_only=True)
class Source:
    """Collection with its extraction.

    Attributes
    ----------
    collection : Collection
        Collection of documents or of vectors.
    text : callable or None
        Function from a document to its text; None for a collection of vectors.
    signature : SignatureScheme or None
        Function from tokens to signatures; None for a collection of vectors.
    sameness : Sameness
        Which documents are exact duplicates, of which a scheme that reads the whole collection uses one.
    """

    collection: Any
    text: Any = None
    signature: SignatureScheme | None = None
    sameness: Sameness = field(default=Sameness.off, repr=False)  # off in all experiments, whose cells are named by it


@dataclass(frozen=True)
class Remembered:
    """Text extractor that caches its results on disk, for use with several kinds of signatures.

    Attributes
    ----------
    text : callable
        Function from a document to its text.
    folder : Path
        Folder with a file for each document.
    """

    text: Any
    folder: Path

    def __call__(self, document: Document) -> str:
        """Return the text of a document."""
        content = document.content
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        about = f"{type(content).__name__} {document.media_type} {document.charset}\n".encode()
        name = hashlib.blake2b(about + data, digest_size=16, usedforsecurity=False).hexdigest()
        path = self.folder / name
        try:
            return path.read_bytes().decode("utf-8", "surrogatepass")
        except FileNotFoundError:
            text: str = self.text(document)
            with replacing(path) as temporary:
                temporary.write_bytes(text.encode("utf-8", "surrogatepass"))
            return text


@dataclass(frozen=True, kw_only=True)
class Stored:
    """Extracted source in a store; its ``repr`` has everything that the content depends on.

    Attributes
    ----------
    source : Source
        Source of the store.
    checksum : str
        SHA-256 over the arrays of the store: ids, truth, signatures and counts of the documents.
    path : Path
        Store of signatures; for a collection of vectors, ids replace the hashes.
    parse_seconds : float or None
        Wall seconds of reading and extracting in one process with loaded kernels; None if not measured, or if other
        processes were active.
    """

    source: Source
    checksum: str
    path: Path = field(repr=False, compare=False)
    parse_seconds: float | None = field(repr=False, compare=False)

    def signatures(self) -> Signatures:
        """Return a writable copy of the signatures in memory, as kernels require."""
        found = load_signatures(self.path)
        own = {name: np.array(getattr(found, name)) for name in ("indptr", "hashes", "counts")}
        return replace(found, **own)

    def corpus(self, idf_filter: IdfFilter | None = None, *, sets: bool = False) -> Corpus:
        """Return the corpus after the filter; a collection of vectors is not filtered."""
        source = self.source
        if source.signature is None:
            store = opened(self.path, "signatures")
            kinds = {"indptr": np.int64, "hashes": np.uint64, "counts": np.int32}
            vectors = Vectors.from_csr(*(store.whole(name, kind) for name, kind in kinds.items()))
            return Corpus(vectors.as_sets() if sets else vectors)
        if idf_filter is None:
            raise InputError("a collection of pages needs an IDF filter")
        vectors = idf_filter(self.signatures())
        return Corpus(vectors.as_sets() if sets else vectors, lambda: texts(source.collection, source.text))

    def truth(self) -> Truth | None:
        """Return the truth of the collection, or None."""
        if self.source.signature is None:
            return None
        return Truth.from_clusters(load_signatures(self.path).clusters)


@dataclass(frozen=True)
class Computed:
    """An engine whose results were computed before.

    Attributes
    ----------
    results : sequence
        In task order.
    """

    results: Sequence[Any]
    processes: ClassVar[int] = 0

    def map(self, function: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        """Yield the results."""
        yield from self.results


def read_together(sources: Sequence[Source], folder: Path, engine: Engine, code: str | None = None) -> list[Stored]:
    """Read several sources, as `read` does; those of one collection and text in one pass over the pages.

    Parameters
    ----------
    sources : sequence of Source
        Without vectors.
    folder, engine
        As for `read`.
    code : str, optional
        Identifies the code; that of each source if omitted.
    """
    groups: dict[str, list[Source]] = {}
    for source in sources:
        if not _is_stored(_path(source, folder, code or code_version(source))):
            groups.setdefault(repr((source.collection, source.text)), []).append(source)
    for group in groups.values():
        if len(group) > 1:
            text = _remembered(group[0].text, folder)
            each = partial(_in_each, text=text, schemes=[source.signature for source in group])
            parts = list(engine.map(each, group[0].collection.shards()))
            for k, source in enumerate(group):
                path = _path(source, folder, code or code_version(source))
                _extract(source, path, Computed([part[k] for part in parts]), False)
    return [read(source, folder, engine, code=code) for source in sources]


CHUNK = 4_000_000
"""Bytes of content after which the pages of a shard are extracted in all schemes."""


def _in_each(shard: Shard, *, text: Any, schemes: Sequence[SignatureScheme]) -> list[Signatures]:
    """Extract a shard in several schemes; each page is read, and its text extracted, once."""
    parts: list[list[Signatures]] = [[] for _ in schemes]

    def extract_chunk(records: list[Document | Skipped]) -> None:
        known: dict[tuple[str, int], str] = {}
        for scheme, found in zip(schemes, parts, strict=True):
            extractor = texts_for(scheme, text)

            def looked_up(document: Document, extractor: Any = extractor) -> str:
                key = repr(extractor), id(document)
                if key not in known:
                    known[key] = extractor(document)
                return known[key]

            found.append(extract_shard(lambda: iter(records), looked_up, scheme))

    records: list[Document | Skipped] = []
    size = 0
    for record in shard():
        records.append(record)
        size += len(record.content) if isinstance(record, Document) else 0
        if size >= CHUNK:
            extract_chunk(records)
            records, size = [], 0
    extract_chunk(records)
    return [concatenate(found) for found in parts]


def _path(source: Source, folder: Path, code: str) -> Path:
    """Return the path of a source's store, which its content, its code and the collection's files determine."""
    parts: list[Any] = [source_of(source.collection, source.text, source.signature), code]
    if source.sameness is not Sameness.off:
        parts.append(source.sameness.value)
    return folder / f"input-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]}"


def _is_stored(path: Path) -> bool:
    try:
        opened(path, "signatures")
    except InputError:
        return False
    return True


def read(source: Source, folder: Path, engine: Engine, *, timed: bool = False, code: str | None = None) -> Stored:
    """Read a source, or open it in the cache.

    Parameters
    ----------
    source : Source
        Collection, text and signature.
    folder : Path
        Folder of the cache.
    engine : Engine
        Engine that runs the extraction.
    timed : bool
        Measure the time of reading, in this process alone; this may read the source again.
    code : str, optional
        Identifies the code; the hash of the source files that the parts of the source need if omitted.

    Returns
    -------
    Stored
    """
    path = _path(source, folder, code or code_version(source))
    try:
        seconds = opened(path, "signatures").facts["parse_seconds"]
        found = seconds is not None or not timed
    except InputError:
        found = False
    if not found:
        seconds = _extract(source, path, Serial() if timed else engine, timed)
    checksum = hashlib.sha256(fingerprint(path).encode()).hexdigest()
    return Stored(source=source, checksum=checksum, path=path, parse_seconds=seconds)


def _extract(source: Source, path: Path, engine: Engine, timed: bool) -> float | None:
    """Write the signatures of a source to a store; return the seconds if they were measured."""
    if source.signature is not None and timed:  # the first shard loads all kernels
        extract_shard(source.collection.shards()[0], source.text, source.signature)
    with ForeignLoad() as load:
        began = perf_counter()
        if source.signature is None:
            vectors = source.collection.vectors()
            n = len(vectors)
            ids = vectors.ids.astype(np.uint64)
            signatures = Signatures(RowNumbers(n), (None,) * n, vectors.indptr, ids, vectors.counts)
        else:
            signatures = _pages(source, None if timed else path.parent, engine)
        seconds = perf_counter() - began
    known = seconds if timed and load.cores <= QUIET else None
    save_signatures(path, signatures, parse_seconds=known)
    return known


def _pages(source: Source, kept: Path | None, engine: Engine) -> Signatures:
    """Return the signatures of pages; texts that take long to extract are cached in a folder, if given."""
    text, scheme = source.text, source.signature
    assert scheme is not None
    if kept is not None:
        text = _remembered(text, kept)
    found = extract(source.collection, text, scheme, engine, sameness=source.sameness)
    if not len(found) and (found.skipped or source.sameness is Sameness.off):
        raise nothing_readable(found.skipped)
    return found


def _remembered(text: Any, folder: Path) -> Any:
    """Return a text extractor that caches its texts in a folder, if it takes long."""
    if isinstance(text, VisibleText):
        return text
    version = hashlib.sha256(f"{text!r} {code_version(text)}".encode()).hexdigest()[:24]
    return Remembered(text, folder / f"texts-{version}")
