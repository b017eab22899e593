"""Copies of a collection without its removed documents, in its own format."""

from __future__ import annotations

import bz2
import gzip
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

import numpy as np
import orjson
import zstandard
from numpy.typing import NDArray

from spotsigs.contracts import CopyableCollection
from spotsigs.errors import InputError, option, system_errors
from spotsigs.formats.compression import BLOCK, READ_ERRORS, open_stored
from spotsigs.formats.input_files import InputFile, file_name
from spotsigs.records import Document
from spotsigs.storage.atomic import move_aside, publish
from spotsigs.storage.locations import as_path, files_below, is_remote, remove, require_reachable, upload
from spotsigs.storage.manifest import MANIFEST, states_of, why_foreign, write_manifest
from spotsigs.text.charset import to_utf8

Keep = Callable[[Document], bool]
"""Called with every readable document in order; returns whether it belongs to the copy."""

_OUTPUT = "standard output cannot be written"

COPY, PREVIOUS = "copy", "previous"
"""Names of a new copy and of the one that it replaces, in a temporary folder."""


def prepare_copy(
    collection: CopyableCollection,
    doc_ids: Sequence[str],
    kept: NDArray[np.bool_],
    temporary: Path,
    *,
    judged: Keep = lambda document: True,
) -> None:
    """Write a collection without its removed documents into a temporary folder, for `publish_copy`.

    Parameters
    ----------
    collection : CopyableCollection
        The matched collection.
    doc_ids : sequence of str
        Ids of its documents, by row.
    kept : ndarray of bool, shape (n,)
        Whether each belongs to the copy.
    temporary : Path
        Folder of the copy, `COPY`.
    judged : callable, optional
        Whether a document of the collection was matched; others are copied.

    Raises
    ------
    InputError
        If the collection has changed since it was matched, or two of its files would be one in the copy.
    """
    copy = temporary / COPY
    copy.mkdir()
    with _keeping(doc_ids, kept, judged) as keep:
        collection.copy(copy, keep)


@contextmanager
def _keeping(doc_ids: Sequence[str], kept: NDArray[np.bool_], judged: Keep) -> Iterator[Keep]:
    """Yield the function of `prepare_copy` that decides about each document; check that it got all of them."""
    row = 0

    def keep(document: Document) -> bool:
        nonlocal row
        if not judged(document):
            return True
        name = doc_ids[row] if row < len(doc_ids) else None
        if name is None or not (name == document.id or name.startswith(f"{document.id}#")):
            raise InputError(f"{document.id!r} is not where it was: the collection has changed since it was matched")
        row += 1
        return bool(kept[row - 1])

    yield keep
    if row < len(doc_ids):
        raise InputError(f"{doc_ids[row]!r} is not where it was: the collection has changed since it was matched")


def print_kept(
    collection: CopyableCollection, doc_ids: Sequence[str], kept: NDArray[np.bool_], out: IO[bytes], *, judged: Keep
) -> None:
    """Write the kept documents as JSON lines: of JSON lines their own, of other formats records.

    A record has ``id``, ``html`` or ``text``, and ``date`` where it is known. The arguments are as in
    `prepare_copy`; a document that was not matched is not written.
    """
    with _keeping(doc_ids, kept, judged) as keep:
        for document, line in collection.with_lines():
            if judged(document) and keep(document):
                line = (_record(collection, document) if line is None else line).rstrip(b"\r\n")
                with system_errors(_OUTPUT):
                    out.write(line + b"\n")
    with system_errors(_OUTPUT):
        out.flush()


def _record(collection: CopyableCollection, document: Document) -> bytes:
    """Return a document as JSON. The date is in the column from which it was read, as scores are."""
    kind = "text" if document.media_type == "text/plain" else "html"
    record = {"id": document.id, kind: to_utf8(document.content, document.charset).decode()}
    if document.date is not None:
        record[getattr(collection, "date_column", "date")] = document.date
    return orjson.dumps(record)


def publish_copy(temporary: Path, folder: Path, undo: ExitStack, *, overwrite: bool = False) -> None:
    """Rename a copy to its folder, with its manifest; a previous copy moves to the temporary folder, or is an error.

    A copy on another machine is uploaded file by file; files of a previous copy that have no new version are deleted.
    `undo` takes the calls that restore the previous copy, or delete the remote one. A folder with any file that the
    manifest of a previous copy does not list is never replaced.
    """
    new = temporary / COPY
    if is_remote(require_free(folder, overwrite=overwrite)):
        _upload_copy(new, folder, undo)
        return
    write_manifest(new)
    move_aside(folder, temporary / PREVIOUS, undo)
    if (temporary / PREVIOUS).exists():  # files may have been added since it was checked
        _require_own(temporary / PREVIOUS, folder)
    publish(new, folder, undo)


def _upload_copy(new: Path, folder: Path, undo: ExitStack) -> None:
    """Upload a copy. Its manifest lists the new files before they are sent: a stopped upload can be replaced."""
    names = {path.relative_to(new).as_posix() for path in new.rglob("*") if path.is_file()}
    previous = states_of(folder)
    if previous.pop(MANIFEST, None) is None:
        undo.callback(remove, folder / MANIFEST)
    else:
        undo.callback(write_manifest, folder, names, previous)
    write_manifest(folder, names, previous)
    upload(new, folder)
    for name in names:
        undo.callback(remove, folder / name)
    for name in previous.keys() - names:
        remove(folder / name)
    write_manifest(folder)


def copy_errors(folder: Path) -> AbstractContextManager[None]:
    """Report an error of the system in the block as one of writing the copy."""
    how = "set TMPDIR to a larger disk" if is_remote(folder) else "name another folder"
    return system_errors(f"the copy {folder} cannot be written", f"; {how}")


def require_free(folder: str | Path, *, overwrite: bool = False) -> Path:
    """Return the path of a folder for a copy, to which a link leads; refuse one that cannot be reached or is taken.

    With `overwrite`, a folder is free that contains a copy of this program and no other file.
    """
    path = as_path(folder)
    require_reachable(path)
    if not is_remote(path) and path.is_symlink():
        path = path.resolve()
    is_folder = is_remote(path) or path.is_dir()
    content = files_below(path) if is_remote(path) else any(path.iterdir()) if is_folder else path.exists()
    if content and not (overwrite and is_folder):
        how = f", or replace it with {option('overwrite')}" if is_folder and not why_foreign(path) else ""
        raise InputError(f"{folder} is not empty; name another folder for the copy{how}")
    if content:
        _require_own(path, folder)
    return path


def _require_own(path: Path, named: str | Path) -> None:
    """Refuse to replace a folder that contains a file which is not of a copy of this program."""
    why = why_foreign(path)
    if why is not None:
        raise InputError(f"{named} {why}, so that it is not replaced; name another folder for the copy")


def target_of(folder: Path, source: InputFile) -> Path:
    """Return the path of a file in a copy, never outside of it, and create its folder; refuse one that exists.

    The file keeps its name, whatever bytes that has; on Windows, characters with a meaning in paths are replaced.
    """
    depth = source.name.count("/") + 1
    own = Path(*source.path.parts[-depth:])  # a record's name shows bytes that are not UTF-8 as escapes
    name = own.as_posix() if file_name(own) == source.name else source.name
    if os.name == "nt":
        name = name.replace("\\", "/").replace(":", "_")
    path = folder.joinpath(*(part for part in name.split("/") if part not in ("", "..", ".")))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        raise InputError(f"{source.name!r} and another file of the collection would be one in a copy; rename one")
    return path


def copy_whole(source: InputFile, folder: Path) -> None:
    """Copy a file as it is stored; a file that cannot be read, or a link that is not followed, is omitted."""
    try:
        if source.fault or not source.path.is_file():
            return
        file = open_stored(source.path)
    except OSError:
        return
    with file, target_of(folder, source).open("xb") as out:
        while True:
            try:  # only the reading: an error of writing is not one of reading
                block = file.read(BLOCK)
            except READ_ERRORS:
                return
            if not block:
                return
            out.write(block)


@contextmanager
def open_packed(file: IO[bytes], how: str) -> Iterator[IO[bytes]]:
    """Yield a stream whose content is written to a file as one gzip member, zstd frame or bzip2 stream, or plain."""
    stream: Any = nullcontext(file)
    if how == "gzip":
        stream = gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0)
    elif how.startswith("zstd"):
        stream = zstandard.ZstdCompressor().stream_writer(file, closefd=False)
    elif how == "bzip2":
        stream = bz2.BZ2File(file, "wb")
    with stream as out:
        yield out
