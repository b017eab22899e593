"""From a collection to signature multisets: documents stream through text, tokens and scheme, shard by shard."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np
from tqdm import tqdm

from spotsigs.engines import Engine
from spotsigs.records import Collection, Document, Shard, Signatures, SignatureScheme, Skipped
from spotsigs.tokens import tokenize

TextChoice = Callable[[Document], str]


def extract(collection: Collection, text: TextChoice, scheme: SignatureScheme, engine: Engine) -> Signatures:
    """Extract the signatures of a whole collection.

    Parameters
    ----------
    collection : Collection
        Its shards are the engine's tasks.
    text : callable
        ``(document) -> str``.
    scheme : SignatureScheme
        Tokens to signature hashes.
    engine : Engine
        Where the shards run; the result does not depend on it.

    Returns
    -------
    Signatures
        One row per readable document, in the collection's order, ids made unique.

    Raises
    ------
    InputError
        If the collection or the scheme cannot be used at all.
    """
    scheme(tokenize(""))  # a scheme that cannot work says so here, once, and not once a document
    shards = collection.shards()
    parts = engine.map(partial(extract_shard, text=text, scheme=scheme), shards)
    shown = tqdm(parts, "reading", total=len(shards), unit="shard", disable=not sys.stderr.isatty(), leave=False)
    return concatenate(list(shown))


def extract_shard(shard: Shard, text: TextChoice, scheme: SignatureScheme) -> Signatures:
    """Extract the signatures of one shard's documents; what cannot be read is listed, not raised.

    Parameters
    ----------
    shard : Shard
        Yields documents.
    text, scheme : callable
        As in `extract`.

    Returns
    -------
    Signatures
    """
    doc_ids, clusters, rows, skipped, size = [], [], [], [], 0
    for document, words in _readable(shard, text):
        if isinstance(document, Skipped):
            skipped.append(document)
            continue
        doc_ids.append(document.id)
        clusters.append(document.cluster)
        rows.append(np.unique(scheme(tokenize(words)), return_counts=True))
        size += len(document.content)
    return Signatures(
        tuple(doc_ids),
        tuple(clusters),
        np.concatenate([np.zeros(1, np.int64), np.cumsum([len(hashes) for hashes, _ in rows], dtype=np.int64)]),
        np.concatenate([np.empty(0, np.uint64), *(hashes for hashes, _ in rows)]),
        np.concatenate([np.empty(0, np.int32), *(counts.astype(np.int32) for _, counts in rows)]),
        tuple(skipped),
        size,
    )


def texts(collection: Collection, text: TextChoice) -> Iterator[str]:
    """Yield the text of every readable document, in the row order of `extract`, streaming."""
    for shard in collection.shards():
        for document, words in _readable(shard, text):
            if not isinstance(document, Skipped):
                yield words


def _readable(shard: Shard, text: TextChoice) -> Iterator[tuple[Document | Skipped, str]]:
    """Yield each record with its text; a document whose text cannot be had becomes a skipped record."""
    for record in shard():
        if isinstance(record, Skipped):
            yield record, ""
            continue
        try:
            words = text(record)
        except Exception as error:  # noqa: BLE001 - whatever a page does to a parser must not stop a crawl
            yield Skipped(record.id, f"its text cannot be extracted ({type(error).__name__}: {error})"), ""
        else:
            yield record, words


def concatenate(batches: Sequence[Signatures]) -> Signatures:
    """Put batches one after the other and make document ids unique.

    Parameters
    ----------
    batches : sequence of Signatures
        In document order.

    Returns
    -------
    Signatures
        A repeated id gets ``#2``, ``#3`` and so on, passing over ids that the collection uses itself.
    """
    offsets = np.cumsum([0, *(len(batch.hashes) for batch in batches)])
    return Signatures(
        unique_ids([name for batch in batches for name in batch.doc_ids]),
        tuple(name for batch in batches for name in batch.clusters),
        np.concatenate(
            [np.zeros(1, np.int64), *(batch.indptr[1:] + at for batch, at in zip(batches, offsets, strict=False))]
        ),
        np.concatenate([np.empty(0, np.uint64), *(batch.hashes for batch in batches)]),
        np.concatenate([np.empty(0, np.int32), *(batch.counts for batch in batches)]),
        tuple(record for batch in batches for record in batch.skipped),
        sum(batch.content_bytes for batch in batches),
    )


def unique_ids(names: Iterable[str]) -> tuple[str, ...]:
    """Return the ids with a number behind every repeat; the first keeps its name.

    Examples
    --------
    >>> unique_ids(["a", "a", "a#2", "a"])
    ('a', 'a#3', 'a#2', 'a#4')
    """
    names = list(names)
    taken = set(names)
    if len(taken) == len(names):
        return tuple(names)
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        number = seen[name] = seen.get(name, 0) + 1
        new = name
        while number > 1 and (new := f"{name}#{number}") in taken:
            number = seen[name] = number + 1
        taken.add(new)
        unique.append(new)
    return tuple(unique)
