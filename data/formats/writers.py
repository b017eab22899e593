"""What a collection looks like without its duplicates: the copy in its own format, and the lists that explain it."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import zstandard
from numpy.typing import NDArray

from spotsigs.arrays.arrow import concat_strings, in_words, numbers, text
from spotsigs.arrays.spans import flagged
from spotsigs.data.collections.downloads import replacing
from spotsigs.data.formats.input_files import InputFile, compression, file_name, raw, until_damage
from spotsigs.disk.atomic import beside
from spotsigs.disk.store import names
from spotsigs.errors import InputError, reason
from spotsigs.judging.clusters import Cohesion
from spotsigs.judging.keep import Decisions
from spotsigs.records import Clusters, CopyableCollection, Document, IntArray, Skipped

Keep = Callable[[Document], bool]
"""Called with every readable document in order: whether it belongs to the copy."""


_BLOCK = 1 << 20
_FORMULA = ("=", "+", "@", "＝", "＋", "－", "＠", "-")
_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))  # that of regular expressions is ASCII in Arrow
_ARROW_FORMULA = f"^([{_SPACE}]*[{''.join(_FORMULA)}]|[\t\r\n])"

_ROWS = 1 << 14  # that are written at a time: far from the 2 GB that one array of strings can hold


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
    folder = Path(folder)
    require_free(folder)
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
    signatures to have near-duplicates, ``boilerplate`` where it says nothing but what many sites say.
    ``removed.csv`` says for each removed document which one was kept instead, which is most similar to it, how much,
    and why it was removed.

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
    kept = flagged(decisions.kept, new_from)
    columns = ([names(doc_ids, rows), _compared(decisions, rows)] for rows in kept)
    write_table(folder / "kept.csv", ["doc", "compared"], columns)
    header = ["doc", "kept_instead", "partner", "similarity", "reason"]
    removed = flagged(~decisions.kept)
    write_table(folder / "removed.csv", header, (_removed(decisions, doc_ids, rows) for rows in removed))


def _compared(decisions: Decisions, rows: IntArray) -> Any:
    which = np.where(decisions.boilerplate[rows], 2, decisions.compared[rows])
    return in_words(which, lambda kind: ("no", "yes", "boilerplate")[kind])


def _removed(decisions: Decisions, doc_ids: Sequence[str], rows: IntArray) -> list[Any]:
    import pyarrow.compute as pc

    instead = decisions.instead(rows)
    return [
        names(doc_ids, rows),
        pc.if_else(numbers(instead < 0), text([""])[0], names(doc_ids, np.maximum(instead, 0))),
        names(doc_ids, decisions.partner[rows]),
        in_words(decisions.similarity[rows], _number),
        decisions.reasons(rows, doc_ids),
    ]


def write_cluster_list(path: Path, doc_ids: Sequence[str], clusters: Clusters, cohesion: Cohesion) -> None:
    """Write a row for each cluster of several documents, the largest first.

    Parameters
    ----------
    path : Path
        The file.
    doc_ids : sequence of str
        Ids of the documents, by row.
    clusters : Clusters
        The grouping.
    cohesion : Cohesion
        Of the same clusters.
    """
    sizes = clusters.sizes[cohesion.labels]
    larger = np.flatnonzero(sizes > 2)
    larger = larger[np.argsort(-sizes[larger], kind="stable")]
    rows = chain(_parts(larger), flagged(sizes == 2))  # most are of two, and lie in order
    header = "cluster, representative, size, pairs, min_similarity, mean_similarity, apart, chain".split(", ")
    write_table(
        path,
        header,
        (
            [
                in_words(cohesion.labels[some], str),
                names(doc_ids, clusters.representatives[cohesion.labels[some]]),
                in_words(sizes[some], str),
                in_words(cohesion.pairs[some], str),
                in_words(cohesion.minimum[some], _number),
                in_words(cohesion.mean[some], _number),
                in_words(cohesion.apart[some], str),
                in_words(cohesion.chain[some], lambda chain: str(chain).lower()),
            ]
            for some in rows
        ),
    )


def _number(value: float) -> str:
    return "" if np.isnan(value) else repr(value)


def _parts(rows: IntArray) -> Iterator[IntArray]:
    return (rows[start : start + _ROWS] for start in range(0, len(rows), _ROWS))


def write_table(path: Path, header: Sequence[str], batches: Iterable[Sequence[Any]]) -> None:
    """Write columns of text as CSV.

    What a spreadsheet would run as a formula is quoted, see `harmless`.

    Parameters
    ----------
    path : Path
        The file; it appears when it is complete.
    header : sequence of str
        Names of the columns.
    batches : iterable of sequence of pyarrow.Array of string
        Some rows of all columns.
    """
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(f"{','.join(header)}\n".encode())
        for columns in batches:
            cells = [_quoted(_harmless(column), alone=len(columns) == 1) for column in columns]
            lines = concat_strings(*list(chain.from_iterable((cell, ",") for cell in cells))[:-1], "\n")
            file.write(lines.buffers()[2])  # one line after the other


def _quoted(cells: Any, *, alone: bool) -> Any:
    """Quote what a reader of CSV would take apart; an empty cell, too, where it is the whole line."""
    import pyarrow.compute as pc

    special = pc.match_substring_regex(cells, '[",\r\n]' + "|^$" * alone)
    if not pc.any(special).as_py():
        return cells
    return pc.if_else(special, concat_strings('"', pc.replace_substring(cells, '"', '""'), '"'), cells)


def _harmless(cells: Any) -> Any:
    import pyarrow.compute as pc

    formula = pc.match_substring_regex(cells, _ARROW_FORMULA)
    return pc.if_else(formula, concat_strings("'", cells), cells) if pc.any(formula).as_py() else cells


def harmless(cell: str) -> str:
    """Quote text that a spreadsheet would run as a formula, wide forms and leading white space included.

    Examples
    --------
    >>> harmless("=cmd()"), harmless(" +1"), harmless("page.html")
    ("'=cmd()", "' +1", 'page.html')
    """
    return f"'{cell}" if cell.lstrip().startswith(_FORMULA) or cell.startswith(("\t", "\r", "\n")) else cell


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
