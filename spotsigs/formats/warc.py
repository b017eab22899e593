"""Documents from WARC and WET files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from spotsigs.errors import require
from spotsigs.formats.archive_records import (
    LINE,
    ArchiveLayout,
    Head,
    Record,
    archive_shards,
    block_length,
    copy_archives,
)
from spotsigs.formats.http_response import (
    BEGINNING,
    HTML_TYPES,
    MOST_HEADER,
    content_type,
    has_whole_header,
    page,
    parse_response,
)
from spotsigs.formats.input_files import SHARD_BYTES, InputFile, find_sources
from spotsigs.formats.writers import Keep
from spotsigs.records import CopyableCollection, Document, Shard, Skipped
from spotsigs.text.size_limits import in_words, largest_page

_FIRST = re.compile(rb"WARC/[01]\.\d+\r?\n")
_MOST_HEADER = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Warc(CopyableCollection):
    """HTTP responses of HTML type with a 2xx status, HTML resources, and the text records of WET files.

    Everything else in an archive (requests, images, redirects, revisits) is no document and is left out. The id is
    the target URI, the date ``WARC-Date``, the charset the HTTP header's. Large files are split, see `.archive`;
    a file whose records are not compressed one by one, or with a shared zstd dictionary, is one share.

    Parameters
    ----------
    path : str
        File, folder, glob pattern, or ``-`` for standard input; plain, gzip or zstd.
    shard_bytes : int
        Bytes of a file that a worker takes at a time.

    References
    ----------
    ISO 28500:2017 (WARC 1.1); Common Crawl's WET files.
    """

    path: str
    shard_bytes: int = SHARD_BYTES

    def __post_init__(self) -> None:
        require(self.shard_bytes > 0, f"shard_bytes must be positive, got {self.shard_bytes}")

    def sources(self) -> list[InputFile]:
        """Return the files the collection reads."""
        return find_sources(self.path, [f".{kind}{pack}" for kind in ("warc", "wet") for pack in ("", ".gz", ".zst")])

    def shards(self) -> Sequence[Shard]:
        """Return the collection's shares."""
        return archive_shards(self.sources(), LAYOUT, self.shard_bytes)

    def copy(self, folder: Path, keep: Keep) -> None:
        """Copy every record but the removed documents', each compressed on its own, ."""
        copy_archives(self.sources(), LAYOUT, folder, keep)


def _parse(line: bytes, stream: IO[bytes]) -> Head:
    """Read a header: lines of ``name: value``, which white space continues, up to an empty one."""
    if _FIRST.fullmatch(line) is None:
        raise OSError(f"{line[:60]!r} is no record line")
    text, name, size = [line], b"", 0
    fields: dict[bytes, bytes] = {}
    while (line := stream.readline(LINE)).strip():
        text.append(line)
        size += len(line)
        if size > _MOST_HEADER:
            raise OSError(f"its header is longer than {_MOST_HEADER >> 20} MiB")
        if line[:1] in b" \t" and name:
            fields[name] += b" " + line.strip()
            continue
        name, _, value = line.partition(b":")
        name = name.strip().lower()
        fields.setdefault(name, value.strip())
    if not line:
        raise EOFError("the file ends inside the header")
    if b"content-length" not in fields:
        raise OSError("its header names no Content-Length")
    decoded = {name.decode("latin-1"): value.decode("utf-8", "replace") for name, value in fields.items()}
    uri = decoded.get("warc-target-uri", "").strip("<> ")
    return Head(b"".join([*text, line]), uri, block_length(fields[b"content-length"]), decoded)


def _documents(record: Record) -> Iterator[Document | Skipped]:
    """Yield the document a record holds, if it holds one."""
    fields, uri = record.head.fields, record.head.uri or record.place
    kind, length = fields.get("warc-type", "").lower(), record.head.length
    media_type, charset = content_type(fields.get("content-type", ""))
    if kind not in ("response", "resource", "conversion"):
        return
    begin = more = record.take(BEGINNING)
    if media_type == "application/http":
        while not has_whole_header(begin) and more:
            begin += (more := record.take(BEGINNING))
            if len(begin) > MOST_HEADER:
                yield Skipped(uri, f"its HTTP header is longer than {in_words(MOST_HEADER)}")
                return
    if kind == "response" and media_type == "application/http":
        wanted = parse_response(begin).is_page
    elif kind == "conversion":
        wanted = media_type == "text/plain"
    else:
        wanted = media_type in HTML_TYPES
    if not wanted:
        return
    if length > largest_page():
        record.skip()
        if not record.missing:
            yield Skipped(uri, f"the record is larger than {in_words(largest_page())}")
        return
    if len(record.whole()) < length:
        return
    date = fields.get("warc-date")
    if media_type == "application/http":
        yield page(uri, parse_response(record.whole()), date)
    else:
        kind = "text/plain" if media_type == "text/plain" else "text/html"
        yield Document(id=uri, content=record.whole(), media_type=kind, charset=charset, date=date)


LAYOUT = ArchiveLayout(
    name="a WARC file",
    head=_FIRST,
    line=re.compile(rb"(?<=\n)WARC/[01]\.\d+\r?\n(?=(?:[\w-]+:[^\n]*\n)*?WARC-Type:)"),
    parse=_parse,
    documents=_documents,
    end=b"\r\n\r\n",
)
