"""What reading a page costs: its text, its signatures, its share of what looks at the whole collection."""

from __future__ import annotations

import statistics
import time
from itertools import islice
from typing import Any

from spotsigs.experiments.run.provenance import QUIET, ForeignLoad
from spotsigs.experiments.work.extracted import Source
from spotsigs.records import CollectionScheme, Document, Shard, Signatures, SignatureScheme
from spotsigs.signatures.extract import extract_shard

PATIENCE = 3
"""Runs for each quiet one that is wanted, at most."""


def time_pages(*, source: Source, pages: int, repeats: int) -> dict[str, Any]:
    """Read some pages of a collection several times in one thread and return the median milliseconds a page.

    The caller gives this function a fresh process and an otherwise idle machine. The pages, at equal distances, are in
    memory before, and the kernels are loaded. What looks at the whole collection is timed on all its outlines.

    Parameters
    ----------
    source : Source
        Collection, text and signatures.
    pages : int
        How many are read, at most.
    repeats : int
        Quiet runs wanted.

    Returns
    -------
    dict
        ``text_ms, signature_ms, refine_ms`` and their sum ``ms``, a page; ``pages``; ``bytes`` a page; ``contended``.
    """
    shards = source.collection.shards()
    documents = [record for shard in shards for record in shard() if isinstance(record, Document)]
    chosen = list(islice(documents[:: max(1, len(documents) // pages)], pages))
    refines = isinstance(source.signature, CollectionScheme)
    everything = _rows(documents, source, source.signature) if refines else None
    read = _Read(chosen)
    runs = [_run(read, source, everything, len(documents)) for _ in range(2)][1:]
    while len([run for run in runs if run["foreign"] <= QUIET]) < repeats and len(runs) < PATIENCE * repeats:
        runs.append(_run(read, source, everything, len(documents)))
    quiet = [run for run in runs if run["foreign"] <= QUIET]
    found = {
        key: statistics.median(run[key] for run in quiet or runs) for key in ("text_ms", "signature_ms", "refine_ms")
    }
    size = sum(len(document.content) for document in chosen) / len(chosen)
    return {**found, "ms": sum(found.values()), "pages": len(chosen), "bytes": size, "contended": not quiet}


class _Read:
    """Documents as a shard."""

    def __init__(self, documents: list[Document]) -> None:
        self.documents = documents

    def __call__(self) -> Any:
        return iter(self.documents)


class _Nothing(SignatureScheme):
    """A scheme without signatures: what is left of the time is the text's."""

    label = "nothing"

    def __init__(self, marked: bool) -> None:
        self.marked = marked  # type: ignore[misc]

    def readable(self, text: str) -> list[str]:
        return []

    def __call__(self, tokens: Any) -> Any:
        return tokens.starts[:0].astype("u8")


def _rows(documents: list[Document], source: Source, scheme: Any) -> Signatures:
    shard: Shard = _Read(documents)
    return extract_shard(shard, source.text, scheme)


def _run(read: _Read, source: Source, everything: Signatures | None, n: int) -> dict[str, float]:
    with ForeignLoad() as load:
        began = time.perf_counter()
        _rows(read.documents, source, _Nothing(source.signature.marked))
        text = time.perf_counter()
        _rows(read.documents, source, source.signature)
        signed = time.perf_counter()
        refined = signed
        if everything is not None:
            source.signature.refine(everything, threads=1)  # type: ignore[union-attr]
            refined = time.perf_counter()
    pages = len(read.documents)
    return {
        "text_ms": 1000 * (text - began) / pages,
        "signature_ms": 1000 * ((signed - text) - (text - began)) / pages,
        "refine_ms": 1000 * (refined - signed) / n,
        "foreign": load.cores,
    }
