"""What a collection looks like without its duplicates: a copy in its own format."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import numpy as np
import zstandard
from numpy.typing import NDArray

from spotsigs.errors import InputError, reason
from spotsigs.formats.input_files import InputFile, compression, file_name, raw, until_damage
from spotsigs.records import CopyableCollection, Document, Skipped
from spotsigs.spelling import is_command, option
from spotsigs.storage.atomic import beside
from spotsigs.storage.locations import local_folder

Keep = Callable[[Document], bool]
"""Called with every readable document in order: whether it belongs to the copy."""


COPY, FORMER = "copy", "former"
"""Names of a new copy and of the one that it replaces, in a temporary folder."""

_BLOCK = 1 << 20


def write_copy(
    collection: CopyableCollection,
    doc_ids: Sequence[str],
    kept: NDArray[np.bool_],
    folder: str | Path,
    *,
    judged: Keep = lambda document: True,
) -> None:
    """Write a collection without its removed documents; the copy appears when it is complete.

    Parameters
    ----------
    collection : CopyableCollection
        What was matched.
    doc_ids : sequence of str
        Ids of its documents, by row.
    kept : ndarray of bool, shape (n,)
        Whether each belongs to the copy.
    folder : str or Path
        A new folder.
    judged : callable, optional
        Whether a document of the collection is one of those matched; what is not, stays. All where omitted.

    Raises
    ------
    InputError
        If the folder exists and is not empty, the collection's documents are no longer those that were matched, or
        two of its files would be one in the copy.
    """
    folder = require_free(folder)
    with copy_errors(folder), beside(folder) as temporary:
        prepare_copy(collection, doc_ids, kept, temporary, judged=judged)
        publish_copy(temporary, folder)


def prepare_copy(
    collection: CopyableCollection,
    doc_ids: Sequence[str],
    kept: NDArray[np.bool_],
    temporary: Path,
    *,
    judged: Keep = lambda document: True,
) -> None:
    """Write the copy that `write_copy` describes into a temporary folder, for `publish_copy`."""
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


def publish_copy(temporary: Path, folder: Path) -> None:
    """Put a copy in place; a former one moves to the temporary folder."""
    if folder.exists() and any(folder.iterdir()):
        os.replace(folder, temporary / FORMER)
    os.replace(temporary / COPY, folder)


def withdraw_copy(temporary: Path, folder: Path) -> None:
    """Undo `publish_copy`."""
    if not (temporary / COPY).exists():
        os.replace(folder, temporary / COPY)
    if (temporary / FORMER).exists():
        os.replace(temporary / FORMER, folder)


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
    """Return where a file of the collection lies in a copy, never outside of it, with its folder made.

    It keeps its name, whatever bytes that has; on Windows, signs that lead to another place are replaced.

    Raises
    ------
    InputError
        If another file lies there already.
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


def copy_pieces(
    source: InputFile, folder: Path, pieces: Iterator[tuple[bytes, Document | Skipped | None]], keep: Keep
) -> None:
    """Copy a file piece by piece, each a document or not, but for the removed documents."""
    with target_of(folder, source).open("xb") as file, packed(file, compression(source.path)) as out:
        for piece, record in until_damage(pieces):
            if not isinstance(record, Document) or keep(record):
                out.write(piece)


def copy_whole(source: InputFile, folder: Path) -> None:
    """Copy a file that is no document as it is; one that cannot be read is left out, as it was from the matching."""
    try:
        file = raw(source.path) if source.path.is_file() else None
    except OSError:
        file = None
    if file is not None:
        with file, target_of(folder, source).open("xb") as out:
            for block in until_damage(iter(lambda: file.read(_BLOCK), b"")):
                out.write(block)


@contextmanager
def packed(file: IO[bytes], how: str) -> Iterator[IO[bytes]]:
    """Give a stream whose content goes into a file as one gzip member or zstd frame, or as it is."""
    if how == "gzip":
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as stream:
            yield cast("IO[bytes]", stream)
    elif how.startswith("zstd"):
        with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as stream:
            yield cast("IO[bytes]", stream)
    else:
        yield file
