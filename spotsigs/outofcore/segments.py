"""Signatures of a crawl on disk, one segment a shard: extraction that can be stopped, resumed and added to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.parallel import on_threads
from spotsigs.contracts import Collection, Shard, SignatureScheme
from spotsigs.errors import InputError, require
from spotsigs.records import Document, Skipped
from spotsigs.signatures.blocks import Blocks
from spotsigs.signatures.extract import extract_parts, grams_a_shard, strict_error
from spotsigs.storage.identity import identity
from spotsigs.storage.locations import (
    SPAN,
    absolute,
    as_path,
    checksum_of_range,
    exists,
    is_remote,
    read,
    remember_checksum,
    size_and_checksum,
    unread_spans,
)
from spotsigs.storage.store import claim, entry_spans, opened, save_signatures, unsealed
from spotsigs.storage.tasks import mark_resumed, run_tasks
from spotsigs.text.size_limits import largest_page, largest_unit, page_size_limit
from spotsigs.text.tokens import tokenize
from spotsigs.workers.engines import Engine, Serial
from spotsigs.workers.progress import progress

_SOURCE = "source.json"
SCHEMA = 4
"""Version of what `source_of` returns."""

CONNECTIONS = 4
"""Remote files of which the checksums are requested at the same time."""

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
) -> Blocks:
    """Extract a collection's signatures to disk, one segment for each shard; a stopped call is resumed.

    The arguments are as in `spotsigs.signatures.extract.extract`. All workers can read and write the folder; no text
    and no signature passes through the engine. If ``strict``, no segment of the shard with an unreadable record is
    written. Segments that a previous call has written keep the ``grams`` and ``phrases`` that they have.

    Raises
    ------
    InputError
        If the folder contains the signatures of another collection or of other settings; if `strict`, for the first
        record of the collection that cannot be read.
    """
    folder = as_path(folder)
    shards = collection.shards()
    # one that cannot work raises an error here, not once for each document; on workers, which load its kernels
    list((engine if engine.processes and len(shards) > 1 else Serial()).map(try_scheme, [scheme] * 2))
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


def try_scheme(scheme: SignatureScheme) -> None:
    """Cut a text without words: a scheme with wrong parameters raises an error."""
    scheme(tokenize(""))


def source_of(collection: Collection, text: Any, scheme: Any) -> dict[str, Any]:
    """Return the identity of what the signatures of a collection depend on, see `spotsigs.storage.identity`."""
    source = {"collection": identity(collection), "text": identity(text), "scheme": identity(scheme)}
    return {"schema": SCHEMA, **source, "files": _facts_of_files(collection)}


def compute_checksums(collection: Any, engine: Engine) -> None:
    """Compute the checksums of a collection's files on workers, which `source_of` then need not read."""
    pieces: list[tuple[str, int, int]] = []
    if hasattr(collection, "sources"):
        for source in collection.sources():
            with suppress(OSError):
                spans = [] if is_remote(source.path) or not source.path.is_file() else unread_spans(source.path)
                pieces += [(str(source.path), *span) for span in spans]
    ends = row_starts([stop - start for _, start, stop in pieces])
    tasks = [tuple(pieces[first:last]) for first, last in entry_spans(ends, SPAN)]
    if len(tasks) < 2:
        return
    found = chain.from_iterable(run_tasks(engine, checksums_of, tasks, "looking for changed input"))
    for path, parts in groupby(zip(pieces, found, strict=True), key=lambda pair: pair[0][0]):
        checksums = [checksum for _, checksum in parts]
        if None not in checksums:
            remember_checksum(Path(path), cast(list[str], checksums))


def checksums_of(pieces: tuple[tuple[str, int, int], ...]) -> list[str | None]:
    """Return the checksums of ranges of files; None of one that cannot be read."""
    found: list[str | None] = []
    for path, start, stop in pieces:
        try:
            found.append(checksum_of_range(Path(path), start, stop))
        except OSError:
            found.append(None)
    return found


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


def finished_segments(folder: Path, reference_shards: int = 0) -> Blocks:
    """Return the signatures of a finished call of `extract_segments`; raise InputError if it was stopped."""
    folders = [folder / _segment_name(k) for k in range(known_source(folder)["shards"])]
    missing = [segment for segment in folders if not exists(segment / "store.json")]
    require(
        not missing,
        f"{folder} contains an unfinished extraction ({len(missing)} of {len(folders)} parts are missing); "
        "finish it first, or delete it",
    )
    parts = [_stores_of(segment) for segment in folders]
    return Blocks(tuple(chain(*parts)), reference=sum(map(len, parts[:reference_shards])))


def _facts_of_files(collection: Any) -> list[list[Any]]:
    """Return names, sizes and checksums of the files of a collection, if it has files.

    The files are read, at about the speed of the disk: size and time of a file can be the same for other content.
    """
    if not hasattr(collection, "sources"):
        return []
    sources = collection.sources()
    contents = on_threads(size_and_checksum, [source.path for source in sources], CONNECTIONS)
    shown = progress(contents, "looking for changed input", len(sources), "files")
    return [[source.name, *content] for source, content in zip(sources, shown, strict=True)]


def _segment_name(k: int) -> str:
    return f"{k:08d}"


def first_segment(folder: Path) -> Path:
    """Return the path of the first segment of an extraction, which may not be there yet."""
    return folder / _segment_name(0)


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
    target = as_path(folder) / _segment_name(k)
    try:
        opened(target, "signatures")
        mark_resumed()
    except InputError:
        further, last = 0, None
        with page_size_limit(*limits):
            parts = extract_parts(shard, text, scheme, strict=strict, most=PART_BYTES, grams=grams, phrases=phrases)
            for part in parts:
                if strict and part.skipped:
                    return 0, part.skipped[0]
                if last is not None:
                    save_signatures(_part_path(target, further), last)
                    further += 1
                last = part
        assert last is not None
        save_signatures(target, last, further=further)
    written = Blocks(tuple(_stores_of(target)))
    return int(written.sizes().sum()), next(iter(written.skipped), None) if strict else None


def _part_path(segment: Path, k: int) -> Path:
    return segment.with_name(f"{segment.name}-{k:04d}")


def _stores_of(segment: Path) -> list[Path]:
    """Return the stores of a finished segment in document order; the one with its name is written last."""
    further = opened(segment, "signatures", verify=False).facts.get("further", 0)
    return [*(_part_path(segment, k) for k in range(further)), segment]
