"""Time of reading a page: text, signatures, and its part of steps over the whole collection."""

from __future__ import annotations

import statistics
import time
from itertools import islice
from typing import Any

from experiments.work.extracted_collections import Source
from spotsigs.records import CollectionScheme, Document, Signatures, Skipped
from spotsigs.runs.provenance import QUIET, ForeignLoad
from spotsigs.signatures.extract import extract_shard, read_texts, texts_for

PATIENCE = 3
"""Maximal number of runs for each undisturbed run that is required."""


def time_pages(*, source: Source, pages: int, repeats: int) -> dict[str, Any]:
    """Read pages of a collection repeatedly in one thread and return the median milliseconds per page.

    The caller runs this function in a new process on an otherwise idle machine. The pages, at equal distances, are
    loaded into memory first, and the kernels compiled. Steps over the whole collection are timed on all its outlines.

    Parameters
    ----------
    source : Source
        Collection, text and signatures.
    pages : int
        Maximal number of pages to read.
    repeats : int
        Number of undisturbed runs.

    Returns
    -------
    dict
        ``text_ms, signature_ms, refine_ms``, their sum ``ms`` and ``bytes``, each per page; ``pages``; ``contended``.
    """
    shards = source.collection.shards()
    documents = [record for shard in shards for record in shard() if isinstance(record, Document)]
    chosen = list(islice(documents[:: max(1, len(documents) // pages)], pages))
    refines = isinstance(source.signature, CollectionScheme)
    everything = extract_shard(lambda: iter(documents), source.text, source.signature) if refines else None
    runs = [_run(chosen, source, everything, len(documents)) for _ in range(2)][1:]
    while len([run for run in runs if run["foreign"] <= QUIET]) < repeats and len(runs) < PATIENCE * repeats:
        runs.append(_run(chosen, source, everything, len(documents)))
    quiet = [run for run in runs if run["foreign"] <= QUIET]
    found = {
        key: statistics.median(run[key] for run in quiet or runs) for key in ("text_ms", "signature_ms", "refine_ms")
    }
    size = sum(len(document.content) for document in chosen) / len(chosen)
    return {**found, "ms": sum(found.values()), "pages": len(chosen), "bytes": size, "contended": not quiet}


def _run(documents: list[Document], source: Source, everything: Signatures | None, n: int) -> dict[str, float]:
    with ForeignLoad() as load:
        began = time.perf_counter()
        read = list(read_texts(lambda: iter(documents), texts_for(source.signature, source.text)))
        texts = {id(record[0]): record[1] for record in read if not isinstance(record, Skipped)}
        readable = [document for document in documents if id(document) in texts]
        text = time.perf_counter()
        extract_shard(lambda: iter(readable), lambda document: texts[id(document)], source.signature)
        signed = refined = time.perf_counter()
        if everything is not None:
            source.signature.refine(everything, threads=1)  # type: ignore[union-attr]
            refined = time.perf_counter()
    return {
        "text_ms": 1000 * (text - began) / len(documents),
        "signature_ms": 1000 * (signed - text) / len(documents),
        "refine_ms": 1000 * (refined - signed) / n,
        "foreign": load.cores,
    }
