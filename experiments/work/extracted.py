"""Collections, extracted once for a whole experiment and kept beside its cells."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from spotsigs.disk.places import content_of
from spotsigs.engines import Engine, Serial
from spotsigs.errors import require
from spotsigs.experiments.output_files import replacing
from spotsigs.experiments.run.pipeline import texts_of, truth_of
from spotsigs.experiments.run.provenance import QUIET, ForeignLoad
from spotsigs.experiments.work.cells import code_version
from spotsigs.experiments.work.outlined import Outlined
from spotsigs.records import Corpus, Document, RowNumbers, Signatures, SignatureScheme, Truth, Vectors
from spotsigs.signatures.extract import extract, extract_shard
from spotsigs.signatures.framed import FramedSpots
from spotsigs.signatures.idf import IdfFilter
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
    """A source that has been read and lies on disk; it prints what its content depends on.

    Attributes
    ----------
    source : Source
        What was read.
    checksum : str
        SHA-256 over document ids, truth, signatures and counts.
    path : Path
        Where the arrays lie.
    parse_seconds : float or None
        Wall seconds of reading and extracting in one process that has done so before; None if nobody asked, or other
        processes ran beside.
    """

    source: Source
    checksum: str
    path: Path = field(repr=False, compare=False)
    parse_seconds: float | None = field(repr=False, compare=False)

    def corpus(self, idf_filter: IdfFilter | None = None, *, sets: bool = False) -> Corpus:
        """Return the corpus after the filter; a collection of vectors is taken as it is."""
        arrays, about = _load(self.path)
        if self.source.signature is None:
            vectors = Vectors.from_csr(arrays["indptr"], arrays["hashes"], arrays["counts"])
            return Corpus(vectors.as_sets() if sets else vectors)
        require(idf_filter is not None, "a collection of pages needs an IDF filter")
        assert idf_filter is not None
        vectors = idf_filter(_signatures(arrays, about))
        source = self.source
        return Corpus(vectors.as_sets() if sets else vectors, lambda: texts_of(source.collection, source.text))

    def truth(self) -> Truth | None:
        """Return what the collection says is duplicate."""
        _, about = _load(self.path)
        if self.source.signature is None:
            return None
        return truth_of(self.source.collection, about["clusters"], about["doc_ids"])


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
    parts = (repr(source), code_version(source), *_file_states(source.collection))
    path = folder / f"input-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]}.npz"
    kept = _kept(path)
    if kept is None or (timed and kept["parse_seconds"] is None):
        _extract(source, path, Serial() if timed else engine, timed)
        _load.cache_clear()
    _, about = _load(path)
    return Stored(source=source, checksum=about["checksum"], path=path, parse_seconds=about["parse_seconds"])


def _extract(source: Source, path: Path, engine: Engine, timed: bool) -> None:
    if source.signature is not None and timed:  # a first share loads all that the whole needs
        extract_shard(source.collection.shards()[0], source.text, source.signature)
    with ForeignLoad() as load:
        began = perf_counter()
        if source.signature is None:
            vectors = source.collection.vectors()
            arrays = {"indptr": vectors.indptr, "hashes": vectors.ids, "counts": vectors.counts}
            about: dict[str, Any] = {}
        else:
            arrays, about = _pages(source, None if timed else path.parent, engine)
        seconds = perf_counter() - began
    digest = hashlib.sha256(json.dumps(about).encode())
    for array in arrays.values():
        digest.update(np.ascontiguousarray(array).data)
    about |= {"checksum": digest.hexdigest(), "parse_seconds": seconds if timed and load.cores <= QUIET else None}
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, about=np.frombuffer(json.dumps(about).encode(), np.uint8), **arrays)


def _pages(source: Source, kept: Path | None, engine: Engine) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the signatures of pages; what takes long, outlines and some texts, is looked up in a folder, if given."""
    text, scheme = source.text, source.signature
    assert scheme is not None
    if kept is not None and isinstance(scheme, FramedSpots) and not isinstance(scheme, Outlined):
        outlines, about = _load(read(replace(source, signature=Outlined.of(scheme)), kept, engine).path)
        refined = scheme.refine(_signatures(outlines, about))
        about = {key: about[key] for key in ("doc_ids", "clusters", "skipped", "content_bytes")}
        return {"indptr": refined.indptr, "hashes": refined.hashes, "counts": refined.counts}, about
    if kept is not None and not isinstance(text, VisibleText):
        version = hashlib.sha256(f"{text!r} {code_version(text)}".encode()).hexdigest()[:24]
        text = Remembered(text, kept / f"texts-{version}")
    found = extract(source.collection, text, scheme, engine)
    require(len(found) > 0, "the collection holds no readable document")
    about = {"doc_ids": found.doc_ids, "clusters": found.clusters}
    about |= {"skipped": len(found.skipped), "content_bytes": found.content_bytes}
    return {"indptr": found.indptr, "hashes": found.hashes, "counts": found.counts}, about


def _kept(path: Path) -> dict[str, Any] | None:
    """Return what is known about a kept input; None where there is none or it cannot be read."""
    try:
        return _load(path)[1]
    except (OSError, ValueError, KeyError, RecursionError, zipfile.BadZipFile, zlib.error):
        return None


@lru_cache(maxsize=2)
def _load(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    with np.load(path, allow_pickle=False) as content:
        arrays = {name: content[name] for name in ("indptr", "hashes", "counts")}
        return arrays, json.loads(content["about"].tobytes())


def _signatures(arrays: dict[str, Any], about: dict[str, Any]) -> Signatures:
    return Signatures(
        doc_ids=tuple(about["doc_ids"]),
        clusters=tuple(about["clusters"]),
        content_bytes=about["content_bytes"],
        **arrays,
    )


def _file_states(collection: Any) -> Iterator[tuple[str, int, str]]:
    """Yield path, size and checksum of every file that a collection is read from; none for a generated one."""
    for parameter in ("path", "judgments"):
        named = getattr(collection, parameter, None)
        if named and (root := Path(named)).exists():
            for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
                if path.is_file():
                    yield path.as_posix(), *content_of(path)


def documents(stored: Stored) -> RowNumbers | tuple[str, ...]:
    """Return the ids of a stored source's documents."""
    arrays, about = _load(stored.path)
    return tuple(about["doc_ids"]) if "doc_ids" in about else RowNumbers(len(arrays["indptr"]) - 1)
