"""Collections, extracted once for a whole experiment and kept beside its cells."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from experiments.work.result_cache import code_version
from spotsigs.engines import Engine, Serial
from spotsigs.errors import InputError
from spotsigs.outofcore.segments import source_of
from spotsigs.output_files import replacing
from spotsigs.records import Corpus, Document, RowNumbers, Signatures, SignatureScheme, Truth, Vectors
from spotsigs.runs.provenance import QUIET, ForeignLoad
from spotsigs.signatures.extract import extract, extract_shard, nothing_readable, texts
from spotsigs.signatures.idf import IdfFilter
from spotsigs.storage.store import fingerprint, load_signatures, opened, save_signatures
from spotsigs.text.visible import VisibleText


@dataclass(frozen=True, kw_only=True)
class Source:
    """What is read, and how.

    Attributes
    ----------
    collection : Collection
        Documents, or vectors.
    text : callable or None
        ``(document) -> str``; None for a collection of vectors.
    signature : SignatureScheme or None
        Tokens to signatures; None for a collection of vectors.
    """

    collection: Any
    text: Any = None
    signature: SignatureScheme | None = None


@dataclass(frozen=True)
class Remembered:
    """A text extractor that looks up what it said of the same document before, for the next kind of signatures.

    Attributes
    ----------
    text : callable
        ``(document) -> str``.
    folder : Path
        Holds a file for each document.
    """

    text: Any
    folder: Path

    def __call__(self, document: Document) -> str:
        """Return the document's text."""
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
    """A source that has been read and lies in a store; it prints what its content depends on.

    Attributes
    ----------
    source : Source
        What was read.
    checksum : str
        SHA-256 over the arrays of the store: ids, truth, signatures and counts of the documents.
    path : Path
        The store of signatures; of a collection of vectors, ids stand in place of their hashes.
    parse_seconds : float or None
        Wall seconds of reading and extracting in one process that has done so before; None if nobody asked, or other
        processes ran beside.
    """

    source: Source
    checksum: str
    path: Path = field(repr=False, compare=False)
    parse_seconds: float | None = field(repr=False, compare=False)

    def signatures(self) -> Signatures:
        """Return the signatures of the documents, in memory of their own: what kernels read is writable there."""
        found = load_signatures(self.path, verify=None)
        own = {name: np.array(getattr(found, name)) for name in ("indptr", "hashes", "counts")}
        return replace(found, **own)

    def corpus(self, idf_filter: IdfFilter | None = None, *, sets: bool = False) -> Corpus:
        """Return the corpus after the filter; a collection of vectors is taken as it is."""
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
        """Return what the collection says is duplicate."""
        if self.source.signature is None:
            return None
        found = load_signatures(self.path, verify=None)
        truth: Truth | None = self.source.collection.truth(found.clusters, found.doc_ids)
        return truth


def read(source: Source, folder: Path, engine: Engine, *, timed: bool = False) -> Stored:
    """Read a source, or find it where it was kept.

    Parameters
    ----------
    source : Source
        Collection, text and signature.
    folder : Path
        Where inputs are kept.
    engine : Engine
        Where extraction runs.
    timed : bool
        Read it, again if need be, in this process alone, so that its time is known.

    Returns
    -------
    Stored
    """
    parts = source_of(source.collection, source.text, source.signature), code_version(source)
    path = folder / f"input-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]}"
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
    """Put the signatures of a source into a store; return the seconds that took if they are known."""
    if source.signature is not None and timed:  # a first share loads all that the whole needs
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
    if kept is not None and not isinstance(text, VisibleText):
        version = hashlib.sha256(f"{text!r} {code_version(text)}".encode()).hexdigest()[:24]
        text = Remembered(text, kept / f"texts-{version}")
    found = extract(source.collection, text, scheme, engine)
    if not len(found):
        raise nothing_readable(found.skipped)
    return found
