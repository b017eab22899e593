"""What jsonl, Parquet and CSV share: a row with named columns becomes a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from spotsigs.errors import InputError, require
from spotsigs.formats.input_files import SHARD_BYTES, InputFile, find_sources
from spotsigs.records import CopyableCollection, Document, Skipped


@dataclass(frozen=True, kw_only=True)
class RowCollection(CopyableCollection):
    """A collection of rows.

    Parameters
    ----------
    path : str
        File, folder, glob pattern, or ``-`` for standard input.
    id_column : str
        Document id; rows without one are called by their file and place in it.
    html_column, text_column : str
        Content. A row that has both counts as HTML.
    cluster_column : str
        Truth: rows of the same cluster are duplicates.
    date_column : str
        ISO 8601 capture time.
    shard_bytes : int
        Bytes of a file that a worker takes at a time.
    """

    path: str
    id_column: str = "id"
    html_column: str = "html"
    text_column: str = "text"
    cluster_column: str = "cluster"
    date_column: str = "date"
    shard_bytes: int = SHARD_BYTES

    def __post_init__(self) -> None:
        require(self.shard_bytes > 0, f"shard_bytes must be positive, got {self.shard_bytes}")

    suffixes: ClassVar[tuple[str, ...]] = ()
    truth_by: ClassVar[str] = "a column does, named by data.cluster_column=, that is the same for duplicates"

    def sources(self) -> list[InputFile]:
        """Return the files the collection reads."""
        return find_sources(self.path, self.suffixes)

    def columns(self) -> list[str]:
        """Return the names of the columns a document is made of."""
        return [self.id_column, self.html_column, self.text_column, self.cluster_column, self.date_column]

    def check_columns(self, path: Path, present: Iterable[str]) -> list[str]:
        """Return the wanted columns that a table has; refuse one without content or without a column asked for.

        Parameters
        ----------
        path : Path
            The table, for the message.
        present : iterable of str
            Its columns.

        Raises
        ------
        InputError
            If there is neither an HTML nor a text column, a column named by the user is missing, or there are several
            of one name.
        """
        present = list(present)
        for name in self.columns():
            number = present.count(name)
            require(number <= 1, f"{path} has {number} columns named {name!r}; rename all but one")
        for field in fields(self):
            name = getattr(self, field.name)
            if field.name.endswith("_column") and name != field.default and name not in present:
                raise InputError(f"{path} has no column {name!r}; its columns are {_listed(present)}")
        if self.html_column not in present and self.text_column not in present:
            raise InputError(
                f"{path} has neither a column {self.html_column!r} nor {self.text_column!r}; "
                f"name one by html_column= or text_column=; its columns are {_listed(present)}"
            )
        return [name for name in present if name in self.columns()]

    def document(self, place: str, row: Mapping[str, Any]) -> Document | Skipped:
        """Turn a row into a document.

        Parameters
        ----------
        place : str
            Where the row lies, which is its id where it has none.
        row : mapping
            Column name to value.
        """
        doc_id = _label(row.get(self.id_column)) or place
        for column, media_type in ((self.html_column, "text/html"), (self.text_column, "text/plain")):
            content = row.get(column)
            if content is None or (not content and row.get(self.text_column)):
                continue
            if not isinstance(content, str | bytes):
                return Skipped(doc_id, f"{column!r} is of type {type(content).__name__}, not text")
            return Document(
                id=doc_id,
                content=content,
                media_type=media_type,
                cluster=_label(row.get(self.cluster_column)),
                date=_label(row.get(self.date_column)),
            )
        return Skipped(doc_id, f"the row has neither {self.html_column!r} nor {self.text_column!r}")


def _label(value: object) -> str | None:
    """Return a value as a name; nothing for null, NaN and the empty string."""
    if value is None or value == "" or value != value:
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat() if isoformat else value)


def _listed(columns: list[str], most: int = 20, longest: int = 40) -> str:
    """Return the names of columns, cut where a file is not the table it was taken for."""
    shown = [name if len(name) <= longest else name[: longest - 1] + "…" for name in columns[:most]]
    more = f" and {len(columns) - most:,} more" if len(columns) > most else ""
    return ", ".join(shown) + more
