"""Rows with named columns (JSON lines, Parquet, CSV) as documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from spotsigs.contracts import Shard
from spotsigs.errors import InputError, option, require
from spotsigs.formats.file_collection import FileCollection, NotOfFormatError
from spotsigs.formats.input_files import positioned
from spotsigs.records import Document, Skipped
from spotsigs.text.charset import wide_codec

URL = "url"
"""Column whose value is the id, and so gives the site, of a row without another id."""


@dataclass(frozen=True, kw_only=True)
class RowCollection(FileCollection):
    """A collection of rows. A column inside others is named by its path, such as ``doc.body.html``.

    Parameters
    ----------
    path : str
        File, folder, glob pattern, or ``-`` for standard input.
    id_column : str
        Document id; by default ``id``, or the `URL` of a row without one. Rows without either are named by their file
        and position in it.
    html_column, text_column : str
        Content. A row that has both counts as HTML.
    cluster_column : str
        Truth: rows of the same cluster are duplicates.
    date_column : str
        ISO 8601 capture time.
    shard_bytes : int
        Bytes of a file in a shard.
    """

    id_column: str = "id"
    html_column: str = "html"
    text_column: str = "text"
    cluster_column: str = "cluster"
    date_column: str = "date"

    truth_by: ClassVar[str] = "a column does, named by data.cluster_column=, that is the same for duplicates"

    def columns(self) -> list[str]:
        """Return the names of the columns of which documents are made."""
        return [*self.id_columns, self.html_column, self.text_column, self.cluster_column, self.date_column]

    @property
    def id_columns(self) -> tuple[str, ...]:
        """The columns of which the first with a value is the id."""
        return (self.id_column, URL) if self.id_column == RowCollection.id_column else (self.id_column,)

    def named_columns(self) -> list[str]:
        """Return the columns that do not have their usual names: the user has named them."""
        names = [field for field in fields(self) if field.name.endswith("_column")]
        return [getattr(self, field.name) for field in names if getattr(self, field.name) != field.default]

    def check_columns(self, path: Path, present: Iterable[str]) -> list[str]:
        """Return the columns that are read from a table with some columns present.

        Raises
        ------
        InputError
            If there are several columns of one name.
        NotOfFormatError
            If there is neither an HTML nor a text column, or a column of ids or content that the user named is missing.
        """
        present = list(present)
        for name in self.columns():
            number = present.count(name)
            require(number <= 1, f"{path} has {number} columns named {name!r}; rename all but one")
        for name in self.named_columns():
            if name not in present and name not in (self.cluster_column, self.date_column):
                raise NotOfFormatError(self.without_column(path, name, present))
        if self.html_column not in present and self.text_column not in present:
            raise NotOfFormatError(
                f"{path} has neither a column {self.html_column!r} nor {self.text_column!r}; name one by "
                f"{option('html_column')} or {option('text_column')}; its columns are {column_names(present)}"
            )
        return [name for name in present if name in self.columns()]

    def present(self, path: Path) -> list[str] | None:
        """Return the columns of a file; None if its rows have columns of their own, or it has no row."""
        return None

    def require_content(self, path: Path) -> None:
        """Raise NotOfFormatError if a file lacks the columns of pages, or one that the user has named."""
        if present := self.present(path):
            self.check_columns(path, present)

    def without_column(self, path: Path, name: str, present: Iterable[str]) -> str:
        """Return the sentence on a file without a column."""
        return f"{path} has no column {name!r}; its columns are {column_names(present)}"

    def shards(self) -> Sequence[Shard]:
        """Return the shards of the collection; a column of dates, scores or clusters may be missing in some files."""
        shards = super().shards()
        for name in {self.cluster_column, self.date_column}.intersection(self.named_columns()):
            self._require_column(name)
        return shards

    def _require_column(self, name: str) -> None:
        """Raise InputError if a column is in no file."""
        without: list[InputError] = []
        for source in self.sources():
            if not self.unreadable(source):
                present = self.present(source.path)
                if present is None or name in present:
                    return
                without.append(InputError(self.without_column(source.path, name, present)))
        if without:
            raise without[0]

    def without_pages(self, skipped: Sized) -> str | None:
        """Return the options that name the columns of pages; None if there are no rows."""
        names = f"{option('html_column')} or {option('text_column')}"
        return f"give another input, or name its column of pages by {names}" if skipped else None

    def document(self, position: str, row: Mapping[str, Any]) -> Document | Skipped:
        """Return the document of a row; the position of the row is its id if it has none."""
        doc_id = next(filter(None, (_label(value_of(row, column)) for column in self.id_columns)), position)
        for column, media_type in ((self.html_column, "text/html"), (self.text_column, "text/plain")):
            content = value_of(row, column)
            if content is None or (content in ("", b"") and value_of(row, self.text_column)):
                continue
            if not isinstance(content, str | bytes):
                return Skipped(
                    positioned(doc_id, position), f"{column!r} is of type {type(content).__name__}, not text"
                )
            return Document(
                id=doc_id,
                content=content,
                media_type=media_type,
                cluster=_label(value_of(row, self.cluster_column)),
                date=_label(value_of(row, self.date_column)),
            )
        reason = f"the row has neither {self.html_column!r} nor {self.text_column!r}"
        if self.html_column not in row and self.text_column not in row:
            reason += f"; its columns are {column_names(map(str, row))}"
        return Skipped(positioned(doc_id, position), reason)


def wide_fault(head: bytes) -> str | None:
    """Return why the text with a beginning cannot be read as bytes that include ASCII; None if it can."""
    utf, _, order = (wide_codec(head) or "").upper().rpartition("-")
    return f"the file is {utf}; convert it to UTF-8: iconv -f {utf}{order} -t UTF-8" if utf else None


def value_of(row: Mapping[str, Any], column: str) -> Any:
    """Return a value of a row by its column, or by its path through nested ones, as ``doc.body.html``; else None."""
    if column in row or "." not in column:
        return row.get(column)
    value: Any = row
    for name in column.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _label(value: object) -> str | None:
    """Return a value as a name; None for null, NaN and the empty string."""
    if value is None or value == "" or value != value:
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat() if isoformat else value)


def column_names(columns: Iterable[str], most: int = 20, longest: int = 40) -> str:
    """Return the names of columns, cut if a file is not the table it was taken for."""
    columns = list(columns)
    shown = [name if len(name) <= longest else name[: longest - 1] + "…" for name in columns[:most]]
    more = f" and {len(columns) - most:,} more" if len(columns) > most else ""
    return (", ".join(shown) or "none") + more
