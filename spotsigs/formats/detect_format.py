"""Detection of the format of an input by its content; names of files matter only where they are empty."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from spotsigs.errors import InputError, did_you_mean, option, require
from spotsigs.formats.arc import Arc
from spotsigs.formats.compression import READ_ERRORS
from spotsigs.formats.csv_files import Csv
from spotsigs.formats.folder import Folder
from spotsigs.formats.input_files import InputFile, find_sources, read_head, why_unread
from spotsigs.formats.jsonl import Jsonl
from spotsigs.formats.parquet import Parquet
from spotsigs.formats.row_documents import RowCollection
from spotsigs.formats.trec import OPENS, Trec
from spotsigs.formats.warc import Warc
from spotsigs.text.charset import wide_codec

FORMATS: dict[str, type[Any]] = {
    "folder": Folder,
    "jsonl": Jsonl,
    "csv": Csv,
    "parquet": Parquet,
    "warc": Warc,
    "arc": Arc,
    "trec": Trec,
}
"""Readers, by the names of ``--format`` and ``data=``."""

SAMPLE = 20
"""Files of a folder whose beginnings are read."""

CONTENT_COLUMNS = ("html", "text", "content")

_DELIMITERS = ",\t;|"
_QUOTED = re.compile(r'"(?:[^"]|"")*+"?')
_BLANK_LINES = re.compile(r"\A\s*\n")
_ARROW = "arrow"  # no format that is read: the IPC format of Arrow, as files and as streams
_SEPARATOR = re.compile(r"\Asep=(.)\r?\n")  # Excel's first line
_PAGE_INDEX = re.compile(rb'\s*\{\s*"format"\s*:\s*"json-pages-')  # of the web archive beside it, in an unpacked WACZ
_BEGINNINGS = (
    (rb"WARC/[01]\.\d", "warc"),
    (rb"filedesc://", "arc"),
    (rb"PAR1", "parquet"),
    (rb"ARROW1\0\0|(?s:\xff{4}...\0)", _ARROW),
    (rb"\s*" + OPENS, "trec"),
    (rb"(\xef\xbb\xbf)?\s*\{", "jsonl"),
    (rb"\s*<", "folder"),
)
_KIND_OF_SUFFIX = (
    (".csv", "csv"),
    (".tsv", "csv"),
    (".json", "jsonl"),
    (".ndjson", "jsonl"),
    (".warc", "warc"),
    (".arc", "arc"),
)


def collection_of(path: str, name: str | None = None, **columns: str | None) -> tuple[str, Any]:
    """Return the reader of an input.

    Parameters
    ----------
    path : str
        A file, a folder, a glob pattern, a URL, or ``-`` for standard input.
    name : str, optional
        One of `FORMATS`; detected by the content if omitted.
    **columns : str or None
        Columns of a table, such as ``text_column="body"``, or of scores in place of dates, ``keep_by="score"``; None
        for the usual name.

    Returns
    -------
    name : str
        The format.
    collection : Collection

    Raises
    ------
    InputError
        If no file is found, or it is of none of the formats.
    """
    known = f"choose one of: {', '.join(FORMATS)}{did_you_mean(name, FORMATS)}"
    require(name is None or name in FORMATS, f"format {name} is not known; {known}")
    given = {key: value for key, value in columns.items() if value is not None}
    name = name or format_of(path, tuple(given.values()))
    require(
        not given or issubclass(FORMATS[name], RowCollection),
        f"{path} is of the format {name}, which has no columns; leave out {', '.join(map(option, given))}, "
        f"or set {option('data')} of a table",
    )
    if "keep_by" in given:
        given["date_column"] = given.pop("keep_by")
    if name == "csv" and "delimiter" not in given:
        given["delimiter"] = next((sign for source in find_sources(path) if (sign := _delimiter(source))), ",")
    return name, FORMATS[name](path=path, **given)


def format_of(path: str, columns: Sequence[str] = ()) -> str:
    """Return the name of the format of an input, one of `FORMATS`; a text whose first line has the columns is CSV.

    Most files of a sample have this format; text that may be a page or not counts least. Every other file is skipped
    with the reason when the input is read. `collection_of` describes the input and the errors.
    """
    sources = find_sources(path)
    guesses = Counter(
        _guess(source, len(sources) == 1, columns) for source in sources[:: max(1, len(sources) // SAMPLE)]
    )
    if len(sources) == 1:
        [guess] = guesses
        if guess is None:
            raise InputError(
                f"{path} is of no known format: neither a page nor {', '.join(sorted(set(FORMATS) - {'folder'}))}; "
                f"name it by {option('data')}"
            )
        return _require_readable(guess.removesuffix("?"), path)
    certain = [guess for guess, _ in guesses.most_common() if guess and not guess.endswith("?")]
    weak = [guess for guess, _ in guesses.most_common() if guess and guess.endswith("?")]
    return _require_readable([*certain, *weak, "folder"][0].removesuffix("?"), path)


def _require_readable(name: str, path: str) -> str:
    """Return the name of a format; refuse one that is not read."""
    require(
        name != _ARROW,
        f"{path} is in Arrow's IPC format, which is not read; write Parquet, such as "
        "datasets.load_from_disk(…).to_parquet('pages.parquet') or pyarrow.parquet.write_table",
    )
    return name


def _head(source: InputFile) -> bytes | None:
    """Return the beginning of a file, as UTF-8 if it is text; None of one that is not read."""
    if source.fault or not source.path.is_file():
        return None
    head = read_head(source.path, 1 << 14)
    codec = wide_codec(head)
    return head.decode(codec, "ignore").encode("utf-8", "replace") if codec else head


def _guess(source: InputFile, alone: bool, columns: Sequence[str]) -> str | None:
    """Return the format of a file, with a question mark if its content does not show it; None of another file."""
    try:
        head = _head(source)
    except READ_ERRORS as error:
        if alone:
            raise InputError(f"{source.path} {why_unread(error)}") from error
        return None
    if not head or head.isspace():
        name = source.name.lower()
        return None if head is None else next((f"{kind}?" for word, kind in _KIND_OF_SUFFIX if word in name), "folder?")
    names = (*CONTENT_COLUMNS, *(column.rpartition(".")[2] for column in columns))
    for pattern, name in _BEGINNINGS:
        if re.match(pattern, head):  # JSON next to pages is often their metadata
            is_sure = any(f'"{key}"'.encode() in head for key in names) and not _PAGE_INDEX.match(head)
            return name if name != "jsonl" or is_sure else "jsonl?"
    objects = [line for line in head.splitlines() if line.lstrip().startswith(b"{")]
    if 2 * len(objects) > len(head.splitlines()) and any(f'"{key}"'.encode() in head for key in names):
        return "jsonl"  # its first line is damaged
    first = _first_line(head).lower()
    cells = [cell.strip() for sign in _DELIMITERS for cell in next(csv.reader([first], delimiter=sign), [])]
    is_alone = len(set(cells)) == 1 and b"\n" in head.strip()  # a table of one column has no delimiter
    is_table = any(name.lower() in cells for name in (*CONTENT_COLUMNS, *columns)) and (
        is_alone or any(sign in first for sign in _DELIMITERS)
    )
    return "csv" if is_table else None if b"\0" in head else "folder?"


def _first_line(head: bytes) -> str:
    """Return the first line that is not blank; a carriage return alone, which the parser of CSV refuses, is a space."""
    text = _SEPARATOR.sub("", head.decode("utf-8", "replace").removeprefix("\ufeff"))
    return _BLANK_LINES.sub("", text).partition("\n")[0].replace("\r", " ")


def _delimiter(source: InputFile) -> str | None:
    """Return the most frequent separator outside quotes of the first line; None of a file that has no such line."""
    try:
        first = _first_line(_head(source) or b"")
    except READ_ERRORS:
        return None
    return max(_DELIMITERS, key=_QUOTED.sub("", first).count) if first and "\0" not in first else None
