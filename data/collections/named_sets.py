"""Data sets by name: of the Hugging Face hub, and of ir_datasets, where these packages are installed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import import_module
from itertools import islice
from typing import Any, ClassVar

from spotsigs.contracts import Collection, Shard
from spotsigs.errors import InputError, did_you_mean, require
from spotsigs.records import Document, Skipped

A_SHARD = 1000
"""Documents in a shard."""


def _package(name: str) -> Any:
    """Import an optional package; the error names the extra that has it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        way = f"`pip install 'spotsigs[hub]'` has it, or `pip install {name}`"
        raise InputError(f"the package {name} is not installed; {way}") from error


@dataclass(frozen=True, kw_only=True)
class HuggingFace(Collection):
    """Rows of a data set of the Hugging Face hub, or of a folder that ``datasets.load_dataset`` reads.

    Attributes
    ----------
    path : str
        Name, as in ``org/name``, or a folder.
    subset, split : str
        Configuration, empty for the only one; and part.
    id_column, html_column, text_column, cluster_column : str
        Names of columns. Without ids, rows are numbered; a row with both contents is HTML.
    """

    truth_by: ClassVar[str] = "a column does, named by data.cluster_column=, that is the same for duplicates"

    path: str
    subset: str = ""
    split: str = "train"
    id_column: str = "id"
    html_column: str = "html"
    text_column: str = "text"
    cluster_column: str = "cluster"
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        rows = loaded_rows(self.path, self.subset, self.split)
        columns = rows.column_names
        for name in (self.html_column, self.text_column):
            if name in columns:
                break
        else:
            raise InputError(
                f"{self.path} has neither a column {self.html_column!r} nor {self.text_column!r}; name one by "
                f"data.html_column= or data.text_column=; its columns are {', '.join(columns)}"
            )
        for key in ("id_column", "html_column", "text_column", "cluster_column"):
            name, usual = getattr(self, key), type(self).__dataclass_fields__[key].default
            near = did_you_mean(name, columns)
            require(name == usual or name in columns, f"data.{key}: {self.path} has no column {name!r}{near}")
        object.__setattr__(self, "digest", str(rows._fingerprint))

    def shards(self) -> Sequence[Shard]:
        """Return ranges of rows."""
        count = len(loaded_rows(self.path, self.subset, self.split))
        return [partial(self._documents, start, min(start + A_SHARD, count)) for start in range(0, count, A_SHARD)]

    def _documents(self, start: int, stop: int) -> Iterator[Document | Skipped]:
        rows = loaded_rows(self.path, self.subset, self.split)
        for number in range(start, stop):
            row = rows[number]
            given = row.get(self.id_column)
            name = f"{self.split}/{number}" if given in (None, "") else str(given)
            html, cluster = row.get(self.html_column), row.get(self.cluster_column)
            content = row.get(self.text_column) if html is None else html
            if not isinstance(content, str | bytes):
                yield Skipped(f"{name} (row {number + 1})", "the row has no content")
                continue
            kind = "text/plain" if html is None else "text/html"
            label = None if cluster is None else str(cluster)
            yield Document(id=name, content=content, media_type=kind, cluster=label)


@lru_cache(maxsize=2)
def loaded_rows(path: str, subset: str, split: str) -> Any:
    """Return the rows of a split of a data set on the Hugging Face Hub."""
    datasets = _package("datasets")
    try:
        return datasets.load_dataset(path, subset or None, split=split)
    except (OSError, ValueError, RuntimeError) as error:
        first = str(error).strip().splitlines()[0]
        raise InputError(f"data.path={path} data.split={split} cannot be loaded: {first}") from error


@dataclass(frozen=True, kw_only=True)
class IrDataset(Collection):
    """Documents of a data set of ir_datasets; what they have no labels for, ``data.truth=`` has.

    Attributes
    ----------
    path : str
        Id of the data set, as in ``msmarco-document`` or ``clueweb12``.
    """

    path: str

    def __post_init__(self) -> None:
        has = opened_dataset(self.path).has_docs()
        require(has, f"data.path={self.path}: the data set has no documents of its own; name the one that has them")

    def shards(self) -> Sequence[Shard]:
        """Return ranges of documents."""
        try:
            count = opened_dataset(self.path).docs_count()
        except OSError as error:
            raise InputError(f"data.path={self.path} cannot be fetched: {error}") from error
        if count is None:
            return [partial(self._documents, 0, None)]
        return [partial(self._documents, start, start + A_SHARD) for start in range(0, count, A_SHARD)]

    def _documents(self, start: int, stop: int | None) -> Iterator[Document | Skipped]:
        try:
            documents = opened_dataset(self.path).docs_iter()
            documents = islice(documents, start, stop) if stop is None else documents[start:stop]
            yield from map(_document, documents)
        except OSError as error:
            raise InputError(f"data.path={self.path} cannot be fetched: {error}") from error


def _document(document: Any) -> Document:
    html = getattr(document, "body_content_type", "") == "text/html"
    if html or hasattr(document, "html"):
        return Document(id=document.doc_id, content=document.body if html else document.html)
    return Document(id=document.doc_id, content=document.default_text(), media_type="text/plain")


@lru_cache(maxsize=2)
def opened_dataset(path: str) -> Any:
    """Return a data set of ir_datasets."""
    package = _package("ir_datasets")
    try:
        return package.load(path)
    except KeyError as error:
        raise InputError(
            f"data.path={path}: ir_datasets has no such data set; its ids are at ir-datasets.com"
        ) from error
