"""Signatures of a crawl on disk, one segment a shard: extraction that can be stopped, resumed and added to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Collection as SizedIterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from spotsigs.arrays.csr import row_sums
from spotsigs.contracts import Collection, Shard, SignatureScheme
from spotsigs.errors import InputError, require
from spotsigs.records import Document, Skipped, WordGrams
from spotsigs.signatures.extract import extract_parts, grams_a_shard, strict_error, unique_names
from spotsigs.signatures.languages import count_in_shingles
from spotsigs.storage.exact_duplicates import WORDS, ExactDuplicates, Sameness
from spotsigs.storage.identity import identity
from spotsigs.storage.locations import absolute, as_path, content_of, exists, read
from spotsigs.storage.store import Reader, claim, opened, save_signatures, unsealed
from spotsigs.storage.tasks import mark_resumed, run_tasks
from spotsigs.text.size_limits import largest_page, largest_unit, page_size_limit
from spotsigs.text.tokens import tokenize
from spotsigs.workers.engines import Engine
from spotsigs.workers.progress import progress

_SOURCE = "source.json"
SCHEMA = 2
"""Version of what `source_of` returns."""

PART_BYTES = 1 << 24
"""Bytes of signatures in memory before they are written: a shard may have any number."""


def extract_segments(
    folder: str | Path,
    collection: Collection,
    text: Callable[[Document], str],
    scheme: SignatureScheme,
    engine: Engine,
    *,
    strict: bool = False,
    grams: int = 0,
    phrases: bool = False,
) -> Segments:
    """Extract a collection's signatures to disk, one segment for each shard; a stopped call is resumed.

    The arguments are those of `spotsigs.signatures.extract.extract`. All workers can read and write the folder; no text
    and no signature passes through the engine. If ``strict``, no segment of the shard with an unreadable record is
    written. Segments that a previous call has written keep the ``grams`` and ``phrases`` that they have.

    Raises
    ------
    InputError
        If the folder contains the signatures of another collection or of other settings; if `strict`, for the first
        record of the collection that cannot be read.
    """
    folder = as_path(folder)
    scheme(tokenize(""))  # a scheme that cannot work raises here, not once for each document
    shards = collection.shards()
    differing = claim(folder, _SOURCE, source_of(collection, text, scheme) | {"shards": len(shards)})
    require(
        not differing,
        f"{folder} contains the signatures of another extraction (its {', '.join(differing)} differ); "
        "give another path or delete it",
    )
    task = partial(
        _extract_segment,
        folder=absolute(folder),
        text=text,
        scheme=scheme,
        strict=strict,
        limits=(largest_page(), largest_unit()),
        grams=grams_a_shard(grams, len(shards)),
        phrases=phrases,
    )
    with closing(run_tasks(engine, task, list(enumerate(shards)), "reading", "shards", rows=itemgetter(0))) as done:
        for _, refused in done:
            if refused is not None:
                raise strict_error(refused)
    return finished_segments(folder, collection.reference_shards)


def source_of(collection: Collection, text: Any, scheme: Any) -> dict[str, Any]:
    """Return the identity of what the signatures of a collection depend on, see `spotsigs.storage.identity`."""
    source = {"collection": identity(collection), "text": identity(text), "scheme": identity(scheme)}
    return {"schema": SCHEMA, **source, "files": _files(collection)}


def known_source(folder: Path) -> dict[str, Any]:
    """Return the identity of what the signatures of a folder depend on."""
    path = folder / _SOURCE
    try:
        known = unsealed(read(path))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read ({error}); extract again into another path") from error
    schema = known.get("schema", 1)
    require(schema == SCHEMA, f"{path} has schema {schema}, not {SCHEMA}; extract again into another path")
    return known


def finished_segments(folder: Path, reference_shards: int = 0) -> Segments:
    """Return the signatures of a finished call of `extract_segments`; raise InputError if it was stopped."""
    folders = [folder / _name(k) for k in range(known_source(folder)["shards"])]
    missing = [segment for segment in folders if not exists(segment / "store.json")]
    require(
        not missing,
        f"{folder} contains an unfinished extraction ({len(missing)} of {len(folders)} parts are missing); "
        "finish it first, or delete it",
    )
    parts = [_parts(segment) for segment in folders]
    return Segments(tuple(chain(*parts)), reference=sum(map(len, parts[:reference_shards])))


def _files(collection: Any) -> list[list[Any]]:
    """Return names, sizes and checksums of the files of a collection, if it has files.

    The files are read, at about the speed of the disk: size and time of a file can be the same for other content.
    """
    if not hasattr(collection, "sources"):
        return []
    sources = collection.sources()
    with ThreadPoolExecutor(4) as pool:
        contents = pool.map(lambda source: content_of(source.path), sources)
        contents = progress(contents, "looking for changed input", len(sources), "files")
        return [[source.name, *content] for source, content in zip(sources, contents, strict=True)]


def _name(k: int) -> str:
    return f"{k:08d}"


def _extract_segment(
    task: tuple[int, Shard],
    folder: str,
    text: Callable[[Document], str],
    scheme: Any,
    strict: bool,
    limits: tuple[int, int],
    grams: int,
    phrases: bool,
) -> tuple[int, Skipped | None]:
    """Write a segment; return the number of its documents and, if `strict`, the first record that cannot be read."""
    k, shard = task
    target = as_path(folder) / _name(k)
    try:
        opened(target, "signatures")
        mark_resumed()
    except InputError:
        further, last = 0, None
        with page_size_limit(*limits):
            more: Any = {"strict": strict, "most": PART_BYTES, "grams": grams, "phrases": phrases}
            for part in extract_parts(shard, text, scheme, **more):
                if strict and part.skipped:
                    return 0, part.skipped[0]
                if last is not None:
                    save_signatures(_further(target, further), last)
                    further += 1
                last = part
        assert last is not None
        save_signatures(target, last, further=further)
    written = Segments(tuple(_parts(target)))
    return int(written.sizes().sum()), next(iter(written.skipped), None) if strict else None


def _further(segment: Path, k: int) -> Path:
    return segment.with_name(f"{segment.name}-{k:04d}")


def _parts(segment: Path) -> list[Path]:
    """Return the stores of a finished segment in document order; the one with its name is written last."""
    further = opened(segment, "signatures", verify=False).facts.get("further", 0)
    return [*(_further(segment, k) for k in range(further)), segment]


class Part(NamedTuple):
    """Signatures of one segment, and the documents that are compared."""

    store: Reader
    rows: NDArray[np.bool_]

    def sizes(self) -> NDArray[np.int64]:
        """Return the number of signatures of each document, 0 for those that are not compared."""
        return np.where(self.rows, np.diff(self.store.array("indptr", np.int64)), 0)

    def column(self, name: str, dtype: DTypeLike) -> NDArray[Any]:
        """Return the ``hashes`` or ``counts`` of the compared documents."""
        values = self.store.whole(name, dtype)
        if self.rows.all():
            return values
        return values[np.repeat(self.rows, np.diff(self.store.array("indptr", np.int64)))]


@dataclass(frozen=True)
class Segments:
    """Signatures on disk, in document order.

    Attributes
    ----------
    folders : tuple of Path
        Stores of signatures.
    rows : ndarray of bool, shape (n,), optional
        The documents that are compared; all by default.
    reference : int
        Number of stores, the first ones, of a reference.
    """

    folders: tuple[Path, ...]
    rows: NDArray[np.bool_] | None = field(default=None, compare=False)
    reference: int = 0

    def __add__(self, other: Segments) -> Segments:
        """Return the segments of both, in order."""
        return Segments(self.folders + other.folders, reference=self.reference)

    def split(self) -> tuple[Segments, Segments]:
        """Return those of the reference, and the others."""
        k = self.reference
        return Segments(self.folders[:k], reference=k), Segments(self.folders[k:])

    def only(self, rows: NDArray[np.bool_]) -> Segments:
        """Return the same documents, with the signatures of some of them."""
        return replace(self, rows=None if rows.all() else rows)

    def readers(self, *, verify: bool = True) -> Iterator[Reader]:
        """Open the folders one after the other, see `spotsigs.storage.store.opened`."""
        return (opened(folder, "signatures", verify=verify) for folder in self.folders)

    def parts(self) -> Iterator[Part]:
        """Yield the signatures of the compared documents, by segment."""
        first = 0
        for reader in self.readers():
            last = first + int(reader.facts["rows"])
            yield Part(reader, np.ones(last - first, np.bool_) if self.rows is None else self.rows[first:last])
            first = last

    def exact_duplicates(self, sameness: Sameness) -> ExactDuplicates:
        """Find the exact duplicates; checksums of content and of text are in memory one after the other."""
        n = int(self.sizes().sum())
        if sameness is Sameness.off:
            return ExactDuplicates.none(n)

        def columns(first: int) -> NDArray[np.uint64]:
            checksums: NDArray[np.uint64] = np.empty((n, WORDS), np.uint64)
            row = 0
            for store in self.readers():
                digests = store.whole("digests", np.uint64).reshape(-1, 4)
                checksums[row : row + len(digests)] = digests[:, first : first + WORDS]
                row += len(digests)
            return checksums[:row]

        return ExactDuplicates.find(columns(0), lambda: columns(WORDS), n, sameness)

    @property
    def has_grams(self) -> bool:
        """Whether all segments have the word 5-grams of their texts, or a sample."""
        return all(store.has("grams") for store in self.readers(verify=False))

    @property
    def has_phrases(self) -> bool:
        """Whether all segments have the phrases of their texts."""
        return all(store.has("phrases") for store in self.readers(verify=False))

    def grams(self) -> Iterator[WordGrams]:
        """Yield the word 5-grams of all documents, by segment."""
        for store in self.readers():
            indptr, hashes = store.whole("gram_indptr", np.int64), store.whole("grams", np.uint64)
            yield WordGrams(indptr, hashes, store.facts["gram_bits"])

    def sizes(self) -> NDArray[np.int64]:
        """Return the number of documents of each segment."""
        return np.array([store.facts["rows"] for store in self.readers(verify=False)], np.int64)

    def entries(self) -> NDArray[np.int64]:
        """Return the number of signatures of each segment, including documents that are not compared."""
        return np.array([store.length("hashes", np.uint64) for store in self.readers(verify=False)], np.int64)

    @property
    def skipped(self) -> SkippedRecords:
        """The records that could not be read, which are read from disk at each iteration."""
        return SkippedRecords(self)

    @property
    def doc_ids(self) -> Iterator[str]:
        """The document ids; those of the reference, and the others, are made unique."""
        return chain.from_iterable(unique_names(partial(part.strings, "doc_ids")) for part in self.split())

    def strings(self, name: str) -> Iterator[str]:
        """Yield the names of documents or of skipped records."""
        for store in self.readers():
            yield from store.strings(name)

    @property
    def clusters(self) -> Iterator[str | None]:
        """The truth labels, None for a document without one."""
        for store in self.readers():
            yield from (name or None for name in store.strings("clusters"))

    @property
    def dates(self) -> Iterator[str | None]:
        """The capture times, None for a document without one."""
        for store in self.readers():
            dates = store.strings("dates")
            yield from (date or None for date in dates) if len(dates) else repeat(None, store.facts["rows"])

    def occurrences(self) -> NDArray[np.int64]:
        """Return the signature occurrences of each document, before any filter."""
        sums = (row_sums(store.array("indptr", np.int64), store.array("counts", np.int32)) for store in self.readers())
        return np.concatenate([np.empty(0, np.int64), *sums])

    @property
    def tokens(self) -> NDArray[np.int32]:
        """The number of tokens of each text; those of segments of an earlier release are missing."""
        counts = (store.whole("tokens", np.int32) for store in self.readers() if store.has("tokens"))
        return np.concatenate([np.empty(0, np.int32), *counts])

    @property
    def sections(self) -> NDArray[np.uint64]:
        """The sections of the documents, see `spotsigs.signatures.sections.sections_of`; outlines have none."""
        parts = (store.whole("sections", np.uint64) for store in self.readers() if store.has("sections"))
        return np.concatenate([np.empty(0, np.uint64), *parts])

    def in_shingles(self) -> int:
        """Return the number of documents that are compared by shingles in place of spots."""
        return sum(
            count_in_shingles(store.array("indptr", np.int64), store.array("hashes", np.uint64))
            for store in self.readers()
        )


@dataclass(frozen=True)
class SkippedRecords(SizedIterable[Skipped]):
    """Records of segments that could not be read; they stay on disk, for there may be any number."""

    segments: Segments

    def __len__(self) -> int:
        return sum(len(store.strings("skipped")) for store in self.segments.readers())

    def __iter__(self) -> Iterator[Skipped]:
        for k, store in enumerate(self.segments.readers()):
            of_reference = k < self.segments.reference
            yield from map(Skipped, store.strings("skipped"), store.strings("reasons"), repeat(of_reference))

    def __contains__(self, record: object) -> bool:
        return any(record == other for other in self)
