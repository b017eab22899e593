"""Detection of the format of an input by its content."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from pathlib import Path
from typing import Any

from spotsigs.errors import InputError, did_you_mean, require
from spotsigs.formats.arc import Arc
from spotsigs.formats.column_files import Csv, Parquet
from spotsigs.formats.folder import Folder
from spotsigs.formats.input_files import READ_ERRORS, beginning, find_sources
from spotsigs.formats.jsonl import Jsonl
from spotsigs.formats.row_documents import RowCollection
from spotsigs.formats.trec import Trec
from spotsigs.formats.warc import Warc
from spotsigs.spelling import option

FORMATS: dict[str, type[Any]] = {
    "folder": Folder,
    "jsonl": Jsonl,
    "csv": Csv,
    "parquet": Parquet,
    "warc": Warc,
    "arc": Arc,
    "trec": Trec,
}
"""Readers, by the names of ``data=``."""

SAMPLE = 20
"""Files of a folder that are looked into."""

CONTENT_COLUMNS = ("html", "text", "content")

_BEGINNINGS = (
    (rb"WARC/[01]\.\d", "warc"),
    (rb"filedesc://", "arc"),
    (rb"PAR1", "parquet"),
    (rb"\s*<DOC>", "trec"),
    (rb"(\xef\xbb\xbf)?\s*\{", "jsonl"),
)


def collection_of(path: str, name: str | None = None, **columns: str | None) -> tuple[str, Any]:
    """Return the reader of an input.

    Parameters
    ----------
    path : str
        A file, a folder, a glob pattern, a URL, or ``-`` for standard input.
    name : str, optional
        One of `FORMATS`; detected by the content where omitted.
    **columns : str or None
        Columns of a table, such as ``text_column="body"``; those that are None keep their usual names.

    Returns
    -------
    name : str
        The format.
    collection : Collection

    Raises
    ------
    InputError
        If nothing is there, or it is of none of the formats.
    """
    require(
        name is None or name in FORMATS,
        f"format {name} is not known; choose one of: {', '.join(FORMATS)}{did_you_mean(name, FORMATS)}",
    )
    name = name or format_of(path)
    given = {key: value for key, value in columns.items() if value is not None}
    require(
        not given or issubclass(FORMATS[name], RowCollection),
        f"{path} is of the format {name}, which has no columns; leave out {', '.join(map(option, given))}",
    )
    if name == "csv" and "delimiter" not in given:
        given["delimiter"] = _delimiter(find_sources(path)[0].path)
    return name, FORMATS[name](path=path, **given)


def format_of(path: str) -> str:
    """Return the name of the format that an input has.

    Parameters
    ----------
    path : str
        As in `collection_of`.

    Returns
    -------
    str
        One of `FORMATS`; of a folder, what most of its first files are.

    Raises
    ------
    InputError
        If nothing is there, or a single file is of none of the formats.
    """
    sources = find_sources(path)
    found = Counter(_format_of(source.path) for source in sources[:SAMPLE])
    name = found.most_common(1)[0][0]
    if name is None and len(sources) == 1:
        raise InputError(
            f"{path} is of no known format: neither a page nor {', '.join(sorted(set(FORMATS) - {'folder'}))}; "
            f"name it by {option('data')}"
        )
    return name or "folder"


def _format_of(path: Path) -> str | None:
    try:
        head = beginning(path, 1 << 14)
    except READ_ERRORS as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    for pattern, name in _BEGINNINGS:
        if re.match(pattern, head):
            return name
    if re.match(rb"\s*<", head) or path.suffix.lower() in (".html", ".htm", ".xhtml"):
        return "folder"
    if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return None
    return "csv" if _has_columns(head) else "folder"


def _has_columns(head: bytes) -> bool:
    """Return whether the first line names a column that holds pages."""
    first = head.decode("utf-8-sig", "replace").partition("\n")[0].lower()
    cells = [
        cell.strip() for delimiter in ",\t;|" for cell in next(csv.reader(io.StringIO(first), delimiter=delimiter), [])
    ]
    return any(name in cells for name in CONTENT_COLUMNS) and any(delimiter in first for delimiter in ",\t;|")


def _delimiter(path: Path) -> str:
    """Return the sign that stands most often in the first line."""
    first = beginning(path, 1 << 14).decode("utf-8-sig", "replace").partition("\n")[0]
    return max(",\t;|", key=first.count)
