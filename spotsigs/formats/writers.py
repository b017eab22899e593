"""Copies of a collection without its removed documents, in its own format."""

from __future__ import annotations

import bz2
import gzip
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import numpy as np
import zstandard
from numpy.typing import NDArray

from spotsigs.contracts import CopyableCollection
from spotsigs.errors import InputError, reason
from spotsigs.formats.compression import BLOCK, READ_ERRORS, raw
from spotsigs.formats.input_files import InputFile, file_name
from spotsigs.records import Document
from spotsigs.spelling import is_command, option
from spotsigs.storage.locations import local_folder

Keep = Callable[[Document], bool]
"""Called with every readable document in order; returns whether it belongs to the copy."""

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

    copy = temporary / COPY
    copy.mkdir()
    collection.copy(copy, keep)
    if row < len(doc_ids):
        raise InputError(f"{doc_ids[row]!r} is not where it was: the collection has changed since it was matched")


def publish_copy(temporary: Path, folder: Path, *, overwrite: bool = False) -> None:
    """Rename a copy to its folder; the previous one moves to the temporary folder, or is an error."""
    if require_free(folder, overwrite=overwrite).exists() and any(folder.iterdir()):
        os.replace(folder, temporary / PREVIOUS)
    os.replace(temporary / COPY, folder)


def withdraw_copy(temporary: Path, folder: Path) -> None:
    """Undo `publish_copy`."""
    if not (temporary / COPY).exists():
        os.replace(folder, temporary / COPY)
    if (temporary / PREVIOUS).exists():
        os.replace(temporary / PREVIOUS, folder)


@contextmanager
def copy_errors(folder: Path) -> Iterator[None]:
    """Report an error of the system as one of writing the copy."""
    try:
        yield
    except OSError as error:
        raise InputError(f"the copy {folder} cannot be written: {reason(error)}; name another folder") from error


def require_free(folder: str | Path, *, overwrite: bool = False) -> Path:
    """Return the path of a folder for a copy; refuse one that is taken, or not on this machine."""
    path = local_folder(folder)
    taken = path.exists() and (not path.is_dir() or (any(path.iterdir()) and not overwrite))
    if taken:
        how = f", or replace it with {option('overwrite')}" if path.is_dir() and is_command() else ""
        raise InputError(f"{folder} is not empty; name another folder for the copy{how}")
    return path


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
        file = raw(source.path)
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
def packed(file: IO[bytes], how: str) -> Iterator[IO[bytes]]:
    """Yield a stream whose content is written to a file as one gzip member, zstd frame or bzip2 stream, or plain."""
    if how == "gzip":
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as stream:
            yield cast("IO[bytes]", stream)
    elif how.startswith("zstd"):
        with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as stream:
            yield cast("IO[bytes]", stream)
    elif how == "bzip2":
        with bz2.BZ2File(file, "wb") as stream:
            yield cast("IO[bytes]", stream)
    else:
        yield file
