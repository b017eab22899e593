"""From collections to signatures: shard by shard, counted per document, without storing any text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Collection as SizedIterable
from contextlib import closing
from dataclasses import replace
from functools import partial
from traceback import walk_tb
from typing import Any

import numpy as np
import xxhash
from numba import njit
from numpy.typing import DTypeLike, NDArray

from spotsigs.engines import Engine
from spotsigs.errors import InputError
from spotsigs.exact_duplicates import Copies, Sameness
from spotsigs.records import (
    Collection,
    CollectionScheme,
    Document,
    MarkedText,
    Shard,
    Signatures,
    SignatureScheme,
    Skipped,
)
from spotsigs.signatures.reading_progress import reading
from spotsigs.spelling import option
from spotsigs.text.checksums import checksums
from spotsigs.text.tokens import tokenize, tokenize_marked, unmarked

_MISTAKES = (TypeError, AttributeError, NameError, ImportError, NotImplementedError)

TextExtractor = Callable[[Document], str]
"""Function from a document to its text, for example `spotsigs.text.visible.VisibleText`."""


@njit(cache=True, nogil=True)
def _count_runs(ascending: NDArray[np.uint64], counts: NDArray[np.int32]) -> int:
    """Move the distinct values of a sorted array to its front and count each; return how many there are."""
    n = 0
    for k in range(len(ascending)):
        if n > 0 and ascending[k] == ascending[n - 1]:
            counts[n - 1] += 1
        else:
            ascending[n] = ascending[k]
            counts[n] = 1
            n += 1
    return n


class _Growing:
    """An array that grows in place, so that appending does not copy its data."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._data, self._size = np.empty(1024, dtype), 0

    def extend(self, values: NDArray[Any]) -> None:
        size = self._size + len(values)
        if size > len(self._data):
            self._data.resize(size + size // 4, refcheck=False)
        self._data[self._size : size] = values
        self._size = size

    def finish(self) -> NDArray[Any]:
        self._data.resize(self._size, refcheck=False)
        return self._data


def read_texts(shard: Shard, text: TextExtractor) -> Iterator[tuple[Document, str] | Skipped]:
    """Yield a shard's documents with their texts, in order; a document without one is skipped with the reason."""
    for record in shard():
        if isinstance(record, Skipped):
            yield record
            continue
        try:
            content = text(record)
        except Exception as error:  # noqa: BLE001 - one bad page must not end a crawl; the reason is reported
            _require_no_mistake(text, record, error, anywhere=False)
            yield _skipped(record, error)
        else:
            yield record, content


def texts_for(scheme: SignatureScheme, text: TextExtractor) -> TextExtractor:
    """Return the extractor of a scheme's texts, which marks links and blocks if the scheme uses them."""
    return text.marked if scheme.marked and isinstance(text, MarkedText) else text


Row = tuple[NDArray[np.uint64], NDArray[np.int32]]
"""A document's distinct signatures and their counts, or its outline."""


def _to_row(scheme: SignatureScheme) -> Callable[[Document, str], Row]:
    """Return the function that turns a document's text into a row."""
    if isinstance(scheme, CollectionScheme):
        return lambda document, content: scheme.outline(tokenize_marked(content), site_of(document.id))
    cut = tokenize_marked if scheme.marked else tokenize
    return lambda document, content: count_signatures(scheme(cut(content)))


def site_of(name: str) -> str:
    """Return the host of a document's id, without ``www.``; empty if the id is no URL."""
    _, is_url, rest = name.partition("://")
    host = rest.replace("\\", "/").partition("/")[0].partition("?")[0].partition("#")[0].rpartition("@")[2]
    return host.partition(":")[0].lower().removeprefix("www.") if is_url else ""


def _rows(
    shard: Shard, text: TextExtractor, scheme: SignatureScheme
) -> Iterator[tuple[Document, NDArray[np.uint64], NDArray[np.int32], NDArray[np.uint64]] | Skipped]:
    to_row = _to_row(scheme)
    for record in read_texts(shard, texts_for(scheme, text)):
        if isinstance(record, Skipped):
            yield record
            continue
        document, content = record
        try:
            found, multiplicities = to_row(document, content)
            digests = checksums(document, unmarked(content))
        except Exception as error:  # noqa: BLE001 - as above
            _require_no_mistake(scheme, document, error, anywhere=True)
            yield _skipped(document, error)
        else:
            yield document, found, multiplicities, digests


def _require_no_mistake(method: Any, document: Document, error: Exception, *, anywhere: bool) -> None:
    """Raise an InputError if the code of a user's method has a mistake, which every page would show.

    An error that a library raises below a text extractor is due to the page; all errors of a scheme, which reads only
    tokens, are mistakes.
    """
    while isinstance(method, partial):
        method = method.func
    code = getattr(method, "__code__", None) or getattr(type(method).__call__, "__code__", None)
    if not isinstance(error, _MISTAKES) or code is None or str(method.__module__).startswith("spotsigs."):
        return
    *_, (frame, _) = walk_tb(error.__traceback__)
    if anywhere or frame.f_code.co_filename in (code.co_filename, __file__):
        name = getattr(method, "__qualname__", type(method).__qualname__)
        raise InputError(f"{name} has a mistake, found at {document.id}: {type(error).__name__}: {error}") from error


def _skipped(document: Document, error: Exception) -> Skipped:
    return Skipped(document.id, str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}")


def refusal(first: Skipped) -> InputError:
    """Return the error of a strict run for its first record that cannot be read."""
    return InputError(f"{first.id}: {first.reason} ({option('strict', 'true')} stops at the first)")


def nothing_readable(skipped: SizedIterable[Skipped]) -> InputError:
    """Return the error of a collection without a document that can be read."""
    first = next(iter(skipped), None)
    more = f"; the first of {len(skipped)} that cannot be read is {first.id}: {first.reason}" if first else ""
    return InputError(f"the collection has no readable document{more}")


def extract_shard(shard: Shard, text: TextExtractor, scheme: SignatureScheme, *, strict: bool = False) -> Signatures:
    """Extract and count the signatures of every document of a shard; if `strict`, to the first unreadable record.

    The result has one row per document, in order; a document that raises an exception is in ``skipped`` instead. The
    rows of a `CollectionScheme` are outlines, for its ``refine``.
    """
    [signatures] = extract_parts(shard, text, scheme, strict=strict)
    return signatures


def extract_parts(
    shard: Shard, text: TextExtractor, scheme: SignatureScheme, *, strict: bool = False, most: int = sys.maxsize
) -> Iterator[Signatures]:
    """Extract a shard as `extract_shard` does, in parts, at least one, that end after `most` bytes."""
    part = _Part()
    for record in _rows(shard, text, scheme):
        if part.size > most:
            yield part.finish()
            part = _Part()
        if isinstance(record, Skipped):
            part.skip(record)
            if strict:
                break
        else:
            part.add(*record)
    yield part.finish()


_BYTES_A_RECORD = 500  # of names and numbers, without signatures


class _Part:
    """Signatures of documents that are added one by one."""

    def __init__(self) -> None:
        self._documents: list[tuple[str, str | None, str | None]] = []
        self._skipped: list[Skipped] = []
        self._sizes: list[int] = []
        self._hashes, self._counts, self._digests = _Growing(np.uint64), _Growing(np.int32), _Growing(np.uint64)
        self._content_bytes = self.size = 0

    def skip(self, record: Skipped) -> None:
        self._skipped.append(record)
        self.size += _BYTES_A_RECORD + len(record.id) + len(record.reason)

    def add(
        self, document: Document, found: NDArray[np.uint64], counts: NDArray[np.int32], digests: NDArray[np.uint64]
    ) -> None:
        self._documents.append((document.id, document.cluster, document.date))
        self._content_bytes += _size(document.content)
        self._hashes.extend(found)
        self._counts.extend(counts)
        self._digests.extend(digests)
        self._sizes.append(len(found))
        self.size += _BYTES_A_RECORD + len(document.id) + found.nbytes + counts.nbytes

    def finish(self) -> Signatures:
        doc_ids, clusters, dates = zip(*self._documents, strict=True) if self._documents else ((), (), ())
        return Signatures(
            doc_ids,
            clusters,
            np.cumsum([0, *self._sizes], dtype=np.int64),
            self._hashes.finish(),
            self._counts.finish(),
            tuple(self._skipped),
            self._content_bytes,
            dates,
            self._digests.finish().reshape(-1, 4),
        )


def texts(collection: Collection, text: TextExtractor) -> Iterator[str]:
    """Yield the text of every readable document of a collection, which is read again, in the row order of `extract`."""
    for shard in collection.shards():
        for record in read_texts(shard, text):
            if not isinstance(record, Skipped):
                yield record[1]


def is_readable(document: Document, text: TextExtractor, scheme: SignatureScheme) -> bool:
    """Whether a document has signatures; otherwise `extract` skips it."""
    return not isinstance(next(_rows(lambda: iter((document,)), text, scheme)), Skipped)


def count_signatures(hashes: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Return the distinct hashes of a document's signatures, ascending, and the occurrences of each, int32."""
    distinct, counts = np.sort(hashes), np.empty(len(hashes), np.int32)
    n = _count_runs(distinct, counts)
    return distinct[:n], counts[:n]


def _size(content: bytes | str) -> int:
    if isinstance(content, bytes) or content.isascii():
        return len(content)
    return len(content.encode("utf-8", "replace"))


def concatenate(batches: Iterable[Signatures]) -> Signatures:
    """Concatenate batches of documents, which are read one at a time."""
    doc_ids: list[str] = []
    clusters: list[str | None] = []
    dates: list[str | None] = []
    skipped: list[Skipped] = []
    indptr, hashes, counts = _Growing(np.int64), _Growing(np.uint64), _Growing(np.int32)
    digests = _Growing(np.uint64)
    indptr.extend(np.zeros(1, np.int64))
    content_bytes = total = 0
    for batch in batches:
        doc_ids += batch.doc_ids
        clusters += batch.clusters
        dates += batch.dates
        skipped += batch.skipped
        content_bytes += batch.content_bytes
        indptr.extend(batch.indptr[1:] + total)
        total += int(batch.indptr[-1])
        hashes.extend(batch.hashes)
        counts.extend(batch.counts)
        digests.extend(batch.digests.reshape(-1))
    return Signatures(
        tuple(doc_ids),
        tuple(clusters),
        indptr.finish(),
        hashes.finish(),
        counts.finish(),
        tuple(skipped),
        content_bytes,
        tuple(dates),
        digests.finish().reshape(-1, 4),
    )


def unique_ids(ids: Sequence[str]) -> tuple[str, ...]:
    """Append ``#2``, ``#3``, … to repeated ids but the first, so that all are different."""
    return tuple(ids if len(set(ids)) == len(ids) else unique_names(lambda: iter(ids)))


def unique_names(names: Callable[[], Iterator[str]]) -> Iterator[str]:
    """Yield the names of `unique_ids`, with a hash of each in memory; each call of `names` iterates over all."""
    hashes = np.fromiter(map(name_hash, names()), np.uint64)
    ordered = np.sort(hashes)
    repeated = set(np.unique(ordered[1:][ordered[1:] == ordered[:-1]]).tolist())

    def taken(name: str) -> bool:
        position = int(np.searchsorted(ordered, np.uint64(name_hash(name))))
        return position < len(ordered) and bool(ordered[position] == name_hash(name))

    seen: dict[str, int] = {}
    given: set[str] = set()
    for name in names():
        if not repeated or name_hash(name) not in repeated:
            yield name
            continue
        number = seen[name] = seen.get(name, 0) + 1
        new = name
        while number > 1 and ((new := f"{name}#{number}") in given or taken(new)):
            number = seen[name] = number + 1
        given.add(new)
        yield new


def name_hash(name: str) -> int:
    """Return the XXH64 of a document's id."""
    return xxhash.xxh64_intdigest(name.encode("utf-8", "surrogatepass"))


def extract(
    collection: Collection,
    text: TextExtractor,
    scheme: SignatureScheme,
    engine: Engine,
    *,
    strict: bool = False,
    sameness: Sameness = Sameness.off,
) -> Signatures:
    """Extract and count the signatures of every document of a collection.

    Parameters
    ----------
    collection : Collection
        Documents; its shards are the tasks.
    text, scheme
        Functions from a document to its text, and from tokens to signatures.
    engine : Engine
        Maps over the shards; the result does not depend on it.
    strict : bool
        Stop at the first record that cannot be read.
    sameness : Sameness
        Criterion for exact duplicates, of which a `CollectionScheme` compares one; the other rows become empty.

    Returns
    -------
    Signatures
        One row per document, in the collection's order, ids made unique by `unique_ids`.

    Raises
    ------
    InputError
        If the scheme's parameters are wrong or, with `strict`, a record cannot be read.
    """
    # One page first: a bad parameter is an error, not a skipped document, and workers load compiled kernels.
    trial = Document(id="the first page", content=b"<p>the one")
    try:
        _to_row(scheme)(trial, texts_for(scheme, text)(trial))
    except Exception as error:
        for method in (text, scheme):
            _require_no_mistake(method, trial, error, anywhere=False)
        raise
    extracted = partial(extract_shard, text=text, scheme=scheme, strict=strict)
    shards = collection.shards()
    found = engine.map(extracted, shards)
    with closing(found) as batches, reading(collection, len(shards)) as progress:

        def watched() -> Iterator[Signatures]:
            for batch in batches:
                if strict and batch.skipped:
                    raise refusal(batch.skipped[0])
                progress(len(batch))
                yield batch

        signatures = concatenate(watched())
    if isinstance(scheme, CollectionScheme):
        distinct = Copies.among(signatures, sameness).distinct
        signatures = replace(scheme.refine(signatures.only(distinct)), digests=signatures.digests)
    return replace(signatures, doc_ids=unique_ids(signatures.doc_ids))
