"""Collections of files of one format, read in shards and copied file by file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from spotsigs.contracts import CopyableCollection, Shard
from spotsigs.errors import InputError, counted, require
from spotsigs.formats.compression import ENDINGS, READ_ERRORS, compression
from spotsigs.formats.input_files import (
    END,
    SHARD_BYTES,
    InputFile,
    find_sources,
    not_readable,
    resumed_pass,
    shard_ranges,
    why_unread,
)
from spotsigs.formats.writers import copy_whole, open_packed, target_of
from spotsigs.records import Document, Skipped
from spotsigs.storage.locations import is_remote

Parse = Callable[[], Document | Skipped]
Piece = tuple[int, tuple[bytes, Parse | None]]
"""Some bytes of a file with their offset, and a function that parses the record that they are, if they are one."""


class NotOfFormatError(InputError):
    """The file is valid but lacks the columns or records that documents need.

    It is skipped; if every file lacks them, the run fails.
    """


@dataclass(frozen=True, kw_only=True)
class FileCollection(CopyableCollection):
    """Files of one format. A file of another format is one skipped record, and is copied as it is.

    Parameters
    ----------
    path : str
        File, folder, glob pattern, URL, or ``-`` for standard input; see `.input_files.find_sources`.
    shard_bytes : int
        Bytes of a file in a shard.
    """

    path: str
    shard_bytes: int = SHARD_BYTES

    seekable: ClassVar[bool] = True
    """Whether pieces of a plain file are found without reading it from its beginning."""

    def __post_init__(self) -> None:
        require(self.shard_bytes > 0, f"shard_bytes must be positive, got {self.shard_bytes}")

    @abstractmethod
    def fault(self, path: Path) -> str | None:
        """Return why a file is not of the format, or None if it is."""

    def require_content(self, path: Path) -> None:
        """Raise NotOfFormatError if a file of the format lacks what makes documents of it."""

    def pieces(self, source: InputFile, start: int = 0, stop: int = END) -> Iterator[Piece]:
        """Iterate over the bytes of a file, cut at its records: the pieces that begin in ``[start, stop)``."""
        raise NotImplementedError

    def cut(self, path: Path) -> list[tuple[int, int]]:
        """Return the shards of a file, ``(start, stop)`` each; the last stop is `END`."""
        return shard_ranges(path, self.shard_bytes, seekable=self.seekable)

    def records(self, source: InputFile, start: int, stop: int) -> Iterator[Document | Skipped]:
        """Iterate over the records of a shard."""
        if self.seekable and compression(source.path) == "plain":
            pieces = self.pieces(source, start, stop)
        else:
            pieces = resumed_pass(source.path, start, stop, self, partial(self.pieces, source))
        return (parse() for _, (_, parse) in pieces if parse is not None)

    def sources(self) -> list[InputFile]:
        """Return the files of the collection."""
        return find_sources(self.path)

    def unreadable(self, source: InputFile) -> str | None:
        """Return why a file cannot be read, or is not of the format; None if it can."""
        if source.fault:
            return source.fault
        try:
            fault = self._fault(source.path) if source.path.is_file() else not_readable(source.path)
            if fault is None:
                self.require_content(source.path)
            return fault
        except READ_ERRORS as error:
            return why_unread(error)
        except NotOfFormatError as error:
            return str(error)

    def shards(self) -> Sequence[Shard]:
        """Return the shards in document order; a file that is not of the format is a shard of one skipped record.

        Raises
        ------
        InputError
            If none of the files is of the format.
        """
        shards: list[Shard] = []
        wrong: list[Skipped] = []
        sources = self.sources()
        for source in sources:
            sentence, parts = self.unreadable(source), list[tuple[int, int]]()
            if sentence is None:
                try:
                    parts = self.cut(source.path)
                except READ_ERRORS as error:
                    sentence = why_unread(error)
            if sentence:
                wrong.append(Skipped(source.name, sentence))
                shards.append(partial(iter, (wrong[-1],)))
            shards += [partial(_guarded, self.records, source, start, stop) for start, stop in parts]
        if len(wrong) == len(sources):
            for source in sources:
                if not source.fault and source.path.is_file() and not self._fault(source.path):
                    with suppress(*READ_ERRORS):  # the reason why it is not read is in the sentence below
                        self.require_content(source.path)
            rest = f"; {counted(len(wrong) - 1, 'other file')} cannot be read either" if wrong[1:] else ""
            raise InputError(f"{sources[0].path}: {wrong[0].reason}{rest}")
        return shards

    def _fault(self, path: Path) -> str | None:
        try:
            return self.fault(path)
        except READ_ERRORS as error:
            return why_unread(error)

    def copy(self, folder: Path, keep: Callable[[Document], bool]) -> None:
        """Copy every record but the removed documents, see `spotsigs.contracts.CopyableCollection`."""
        for source in self.sources():
            self.copy_source(source, folder, keep)

    def copy_source(self, source: InputFile, folder: Path, keep: Callable[[Document], bool]) -> None:
        """Copy one file of the collection, the task of a worker."""
        if self.unreadable(source):
            copy_whole(source, folder)
        else:
            self.copy_file(source, self.target(source, folder), keep)

    def target(self, source: InputFile, folder: Path) -> Path:
        """Return the path of a file in a copy, which does not exist, and create its folder."""
        return target_of(folder, self._named(source))

    def copy_file(self, source: InputFile, target: Path, keep: Callable[[Document], bool]) -> None:
        """Copy one file of the format without the removed documents, up to any damage."""
        with target.open("xb") as file, open_packed(file, compression(source.path)) as out:
            for piece, record in self.with_records(source):
                if not isinstance(record, Document) or keep(record):
                    out.write(piece)

    def ranges(self, source: InputFile) -> list[tuple[int, int]]:
        """Return ranges of a file that tasks can copy, ``(start, stop)`` each; none if it is copied as a whole."""
        own = type(self).copy_file is not FileCollection.copy_file
        if own or not self.seekable or is_remote(source.path) or self.unreadable(source):
            return []
        return [] if compression(source.path) != "plain" else self.cut(source.path)

    def staying(
        self, source: InputFile, start: int, stop: int, keep: Callable[[Document], bool]
    ) -> Iterator[tuple[int, int, bool]]:
        """Yield the start and the stop of each piece that begins in a range, and whether it belongs to a copy."""
        for at, (piece, parse) in self.pieces(source, start, stop):
            record = parse() if parse is not None else None
            yield at, at + len(piece), not isinstance(record, Document) or keep(record)

    def with_records(self, source: InputFile) -> Iterator[tuple[bytes, Document | Skipped | None]]:
        """Iterate over the bytes of a file up to any damage, each piece with the record that it is, if it is one."""
        pieces = self.pieces(source)
        while True:
            try:
                _, (piece, parse) = next(pieces)
            except (StopIteration, *READ_ERRORS):
                return
            yield piece, parse() if parse is not None else None

    def _named(self, source: InputFile) -> InputFile:
        """Return a file with its name in a copy: standard input has the ending of its format and compression."""
        if self.path != "-":
            return source
        packing = ENDINGS.get(compression(source.path).partition(" ")[0], "")
        return replace(source, name=f"{source.name}.{type(self).__name__.lower()}{packing}")


def _guarded(
    read: Callable[[InputFile, int, int], Iterator[Document | Skipped]], source: InputFile, start: int, stop: int
) -> Iterator[Document | Skipped]:
    """End a shard where its file cannot be read further; only the last shard of a compressed stream reports it."""
    try:
        yield from read(source, start, stop)
    except READ_ERRORS as error:
        if stop == END or getattr(error, "errno", None):
            yield Skipped(source.name, why_unread(error))
