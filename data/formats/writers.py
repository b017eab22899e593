"""What a collection looks like without its duplicates: the copy in its own format, and the lists that explain it."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol, cast

import numpy as np
import zstandard
from numpy.typing import NDArray
from spotsigs.data.collections.downloads import replacing

from spotsigs.disk.atomic import beside
from spotsigs.errors import InputError, reason
from spotsigs.judging.keep import Decisions
from spotsigs.records import Document

Keep = Callable[[Document], bool]
"""Called with every readable document in order: whether it belongs to the copy."""


_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


class Copied(Protocol):
    """A collection that can be written again in its own format."""

    def copy(self, folder: Path, keep: Keep) -> None:
        """Write the files of the collection below a folder, without the documents that are not kept.

        What is no document, or cannot be read as one, was not judged and stays; what lies behind the damage of a
        truncated file cannot be copied.
        """
        ...


def write_copy(collection: Copied, doc_ids: Sequence[str], kept: NDArray[np.bool_], folder: str | Path) -> None:
    """Write a collection without its removed documents; the copy appears when it is complete.

    Parameters
    ----------
    collection : Copied
        What was matched.
    doc_ids : sequence of str
        Ids of its documents, by row.
    kept : ndarray of bool, shape (n,)
        Whether each belongs to the copy.
    folder : str or Path
        A new folder.

    Raises
    ------
    InputError
        If the folder exists and is not empty, or the collection's documents are no longer those that were matched.
    """
    folder = Path(folder)
    require_free(folder)
    row = 0

    def keep(document: Document) -> bool:
        nonlocal row
        name = doc_ids[row] if row < len(doc_ids) else None
        if name is None or not (name == document.id or name.startswith(f"{document.id}#")):
            return True  # its text could not be extracted, so it was not judged
        row += 1
        return bool(kept[row - 1])

    try:
        with beside(folder) as temporary:
            copy = temporary / "copy"
            copy.mkdir()
            collection.copy(copy, keep)
            if row < len(doc_ids):
                raise InputError(
                    f"{doc_ids[row]!r} is not where it was: the collection has changed since it was matched"
                )
            os.replace(copy, folder)
    except OSError as error:
        raise InputError(f"the copy {folder} cannot be written: {reason(error)}; give another place") from error


def require_free(folder: str | Path) -> None:
    """Refuse a place for a copy that is taken."""
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not empty; give another place for the copy")


def write_lists(decisions: Decisions, doc_ids: Sequence[str], folder: str | Path, *, new_from: int = 0) -> None:
    """Write ``kept.csv`` and ``removed.csv``.

    ``kept.csv`` says of each document that stays whether it could be ``compared``, ``no`` where it has too few
    signatures to have near-duplicates. ``removed.csv`` says for each removed document which one was kept instead, which
    is most similar to it, how much, and why it was removed.

    Parameters
    ----------
    decisions : Decisions
        From `spotsigs.judging.keep.decide`.
    doc_ids : sequence of str
        Ids of the documents, by row.
    folder : str or Path
        Where to.
    new_from : int
        ``kept.csv`` lists the documents from this row on: those that were added to a store now.
    """
    folder = Path(folder)
    kept = new_from + np.flatnonzero(decisions.kept[new_from:])
    _write_csv(folder / "kept.csv", ["doc", "compared"], _kept(decisions, doc_ids, kept.tolist()))
    header = ["doc", "kept_instead", "partner", "similarity", "reason"]
    _write_csv(folder / "removed.csv", header, _removed(decisions, doc_ids))


def _kept(decisions: Decisions, doc_ids: Sequence[str], rows: Sequence[int]) -> Iterator[list[Any]]:
    for row in rows:
        yield [doc_ids[row], "yes" if decisions.compared[row] else "no"]


def _removed(decisions: Decisions, doc_ids: Sequence[str]) -> Iterator[list[Any]]:
    for row in np.flatnonzero(~decisions.kept).tolist():
        instead, partner = int(decisions.instead[row]), int(decisions.partner[row])
        similarity = decisions.similarity[row]
        yield [
            doc_ids[row],
            doc_ids[instead] if instead >= 0 else "",
            doc_ids[partner],
            "" if np.isnan(similarity) else repr(float(similarity)),
            decisions.reason(row, doc_ids),
        ]


def _write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([harmless(cell) for cell in row] for row in rows)


def harmless(cell: str) -> str:
    """Quote text that a spreadsheet would run as a formula, wide forms and leading white space included.

    Examples
    --------
    >>> harmless("=cmd()"), harmless(" +1"), harmless("page.html")
    ("'=cmd()", "' +1", 'page.html')
    """
    return f"'{cell}" if cell.lstrip().startswith(_FORMULA) or cell.startswith(("\t", "\r", "\n")) else cell


def place(folder: Path, name: str) -> Path:
    """Return where a file of the collection lies in a copy, never outside of it, with its folder made."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", "..", ".")]
    path = folder.joinpath(*[part.replace(":", "_") for part in parts])
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def pack(content: bytes, packing: str) -> bytes:
    """Compress a record on its own, as web archives do."""
    if packing == "gzip":
        return gzip.compress(content, mtime=0)
    return zstandard.ZstdCompressor().compress(content) if packing.startswith("zstd") else content


@contextmanager
def packing(path: Path, like: str) -> Iterator[IO[bytes]]:
    """Open a file for writing, compressed as a whole like the original."""
    with path.open("wb") as file:
        if like == "gzip":
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as stream:
                yield cast("IO[bytes]", stream)
        elif like.startswith("zstd"):
            with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as stream:
                yield cast("IO[bytes]", stream)
        else:
            yield file
