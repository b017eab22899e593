"""Finding input files, opening them whatever their compression, and cutting them into shares."""

from __future__ import annotations

import atexit
import glob
import gzip
import io
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import zstandard

from spotsigs.errors import InputError, require
from spotsigs.records import Document, Shard, Skipped
from spotsigs.spelling import option
from spotsigs.storage.locations import as_path, files_below, is_remote
from spotsigs.text.size_limits import in_words, largest_page

READ_ERRORS = (EOFError, OSError, zlib.error, zstandard.ZstdError)
"""What reading a damaged or vanished file raises."""

END = sys.maxsize
"""The stop of a share that ends with its file."""

SHARD_BYTES = 8 << 20
"""Input a worker takes at a time: a tenth of a second of extraction, so that workers finish together."""

STREAM_SHARDS = 8
"""Most shares of a compressed stream that cannot be entered in the middle."""

ZSTD_PIECE = 1 << 9
"""Bytes of zstd that are unpacked at a time: 16 MiB at most, for it packs 128 KiB into four bytes."""

_BLOCK = 1 << 20
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x5d\x2a\x4d\x18": "zstd with dictionary"}


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input file and the name its records are known by: its path below the collection's folder."""

    path: Path
    name: str


Read = TypeVar("Read")
Fault = Callable[[Path], str | None]
Cut = Callable[[Path], list[tuple[int, int]]]
Reader = Callable[[InputFile, int, int], Iterator[Document | Skipped]]


def find_sources(path: str, suffixes: Sequence[str] = ()) -> list[InputFile]:
    """Find the files of a collection.

    Parameters
    ----------
    path : str
        A file, a folder (searched in depth, hidden files left out), a glob pattern (``**`` for any depth), ``-`` for
        standard input, or a URL of one of the first three, see `spotsigs.storage.locations`.
    suffixes : sequence of str, optional
        Endings that make a file of a folder part of the collection; all where empty. A file named or matched by a
        pattern is always part of it.

    Returns
    -------
    list of Source
        In the order of their names, which is the same on every machine.

    Raises
    ------
    InputError
        If nothing is found.
    """
    require(path != "", "path is empty; give a file, a folder or a pattern such as 'crawl/*.gz'")
    if path == "-":
        return [InputFile(_spooled_input(), "stdin")]
    given = as_path(path)
    if is_remote(given):
        return _remote_sources(path, given, suffixes)
    if given.is_file():
        return [InputFile(given, file_name(Path(given.name)))]
    if given.is_dir():
        found = [InputFile(p, file_name(p.relative_to(given))) for p in _walk(given) if _ends_in(p, suffixes)]
        wanted = f"no file ending in {', '.join(suffixes)}" if suffixes else "no file"
        _require_found(found, f"the folder {path} holds {wanted}")
    elif glob.has_magic(path):
        root = Path(re.split(r"[*?\[]", path, maxsplit=1)[0] + "x").parent
        names = (Path(p) for p in glob.glob(path, recursive=True))
        found = [InputFile(p, file_name(p.relative_to(root))) for p in names if p.is_file()]
        _require_found(found, f"no file matches {path}")
    else:
        raise InputError(f"{path} does not exist; give a file, a folder or a pattern such as 'crawl/*.gz'")
    return sorted(found, key=lambda source: source.name)


def _remote_sources(path: str, given: Path, suffixes: Sequence[str]) -> list[InputFile]:
    """Find files that fsspec reaches, as `find_sources` does, with one listing."""
    start = re.split(r"[*?\[]", path, maxsplit=1)[0]
    root = given if start == path else as_path(start + "x").parent
    names = [name for name in files_below(root, None if root is given else path) if not re.search(r"(^|/)\.", name)]
    if root is given and names == [""]:
        return [InputFile(given, given.name)]
    found = [name for name in names if root is not given or name.lower().endswith(tuple(suffixes or [""]))]
    ending = f" ending in {', '.join(suffixes)}" if suffixes else ""
    _require_found(
        [InputFile(root / name, name) for name in found], f"{path} is no file, and no file{ending} is below it"
    )
    return [InputFile(root / name, name) for name in sorted(found)]


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(parent, name) for name in names if not name.startswith("."))


def _ends_in(path: Path, suffixes: Sequence[str]) -> bool:
    return not suffixes or path.name.lower().endswith(tuple(suffixes))


def _require_found(found: Sequence[InputFile], sentence: str) -> None:
    if not found:
        raise InputError(f"{sentence}; give another path")


@cache
def _spooled_input() -> Path:
    """Copy standard input to a temporary file once: several workers and passes read it."""
    with tempfile.NamedTemporaryFile(prefix="spotsigs-stdin-", delete=False) as copy:
        atexit.register(Path(copy.name).unlink, missing_ok=True)
        shutil.copyfileobj(sys.stdin.buffer, copy, _BLOCK)
    return Path(copy.name)


def raw(path: Path) -> IO[bytes]:
    """Open a file for reading its bytes as they are; of a remote one, a block at a time."""
    if not is_remote(path):
        return path.open("rb")
    return io.BufferedReader(cast(io.RawIOBase, path.open("rb", _BLOCK)), _BLOCK)


def compression(path: Path) -> str:
    """Return ``gzip``, ``zstd``, ``zstd with dictionary`` or ``plain``, detected by the first bytes, not the name."""
    with raw(path) as file:
        head = file.read(4)
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "plain")


def open_bytes(path: Path) -> IO[bytes]:
    """Open a plain, gzip or zstd file for reading its content; a truncated one raises EOFError where it ends."""
    match compression(path):
        case "gzip":
            return cast("IO[bytes]", gzip.open(raw(path) if is_remote(path) else path, "rb"))
        case "zstd":
            return io.BufferedReader(_ZstdFile(raw(path)), _BLOCK)
        case _:
            return raw(path) if is_remote(path) else path.open("rb", _BLOCK)


class _ZstdFile(io.RawIOBase):
    """Content of a file of zstd frames; unlike the library's reader it does not take a truncated frame for the end."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._frame: Any = None
        self._input, self._output = b"", memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._output:
            self._input = self._input or self._file.read(128 * ZSTD_PIECE)
            if not self._input:
                if self._frame is not None:
                    raise EOFError("the zstd stream ends before its end mark")
                return 0
            if self._frame is None:
                self._frame = zstd_frame()
            piece, self._input = self._input[:ZSTD_PIECE], self._input[ZSTD_PIECE:]
            self._output = memoryview(self._frame.decompress(piece))
            if self._frame.eof:
                self._input, self._frame = self._frame.unused_data + self._input, None
        size = min(len(buffer), len(self._output))
        buffer[:size] = self._output[:size]
        self._output = self._output[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()


class _Frame:
    """What decompresses one zstd frame, and says so where its window is larger than may be held."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def decompress(self, piece: bytes) -> bytes:
        try:
            content: bytes = self._frame.decompress(piece)
        except zstandard.ZstdError as error:
            if "too much memory" not in str(error):
                raise
            most = in_words(_most_window())
            raise OSError(
                f"its zstd window is larger than {most}; unpack it (zstd -d --long=31), or leave out "
                f"{option('memory')} and {option('store')}"
            ) from error
        return content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frame, name)


def _most_window() -> int:
    return max(8 << 20, largest_page())


def zstd_frame(dictionary: zstandard.ZstdCompressionDict | None = None) -> Any:
    """Return what decompresses one frame; its window is held in memory, so that it is bounded as pages are."""
    return _Frame(zstandard.ZstdDecompressor(dictionary, max_window_size=_most_window()).decompressobj())


def windows(path: Path, shard_bytes: int = SHARD_BYTES, seekable: bool = True) -> list[tuple[int, int]]:
    """Cut the content of a file into shares of about equal size.

    A plain file is cut every `shard_bytes`. A compressed stream cannot be entered in the middle: each of its shares,
    `STREAM_SHARDS` at most, decompresses from the beginning and throws away what belongs to the shares before it.
    Decompression is several times cheaper than extraction, so up to eight workers still gain, without a second copy
    on disk and without passing text between processes.

    Parameters
    ----------
    path : Path
        The file.
    shard_bytes : int
        Wanted size of a share.
    seekable : bool
        Whether a plain file of this format can be entered in the middle.

    Returns
    -------
    list of (int, int)
        Start and stop of each share in bytes of content; the last stop is `END`. It depends on the file alone.
    """
    packed = compression(path) != "plain"
    size = _content_size(path) if packed else path.stat().st_size
    parts = max(1, round(size / shard_bytes))
    if packed or not seekable:
        parts = min(parts, STREAM_SHARDS)
    edges = [size * k // parts for k in range(parts)]
    return list(zip(edges, [*edges[1:], END], strict=True))


def _content_size(path: Path) -> int:
    """Guess how many bytes a compressed file holds: a wrong guess makes uneven shares, never a wrong result."""
    packed = path.stat().st_size
    guess, how = 5 * packed, compression(path)
    with raw(path) as file:
        if how == "zstd":
            known = zstandard.frame_content_size(file.read(18))
        else:
            file.seek(-min(4, packed), os.SEEK_END)
            known = int.from_bytes(file.read(4), "little")
            known += (max(guess - known, 0) >> 32) << 32  # gzip keeps the size modulo 2**32
    return known if known >= packed else guess


def file_shards(sources: Sequence[InputFile], fault: Fault, cut: Cut, read: Reader) -> list[Shard]:
    """Return the shares of a collection of files.

    Parameters
    ----------
    sources : sequence of InputFile
        The files, in order.
    fault : callable
        ``(path) -> str or None``: why a file is not of the format at all.
    cut : callable
        ``(path) -> list of (start, stop)``: the shares of one file.
    read : callable
        ``(source, start, stop) -> iterator``: the records of one share.

    Returns
    -------
    list of Shard
        In document order. A file that is not of the format is a share of one skipped record.

    Raises
    ------
    InputError
        If none of the files is of the format.
    """
    shards: list[Shard] = []
    wrong: list[Skipped] = []
    parts: list[tuple[int, int]]
    for source in sources:
        sentence, parts = unreadable(source.path, fault), []
        if sentence is None:
            try:
                parts = cut(source.path)
            except READ_ERRORS as error:
                sentence = reason(error)
        if sentence:
            wrong.append(Skipped(source.name, sentence))
            shards.append(partial(iter, (wrong[-1],)))
        shards += [partial(_guarded, read, source, start, stop) for start, stop in parts]
    if len(wrong) == len(sources):
        rest = f" (and so are {len(wrong) - 1} other files)" if wrong[1:] else ""
        raise InputError(f"{sources[0].path}: {wrong[0].reason}{rest}")
    return shards


def _guarded(read: Reader, source: InputFile, start: int, stop: int) -> Iterator[Document | Skipped]:
    """Let a share end where its file cannot be read further, and say so once for all shares.

    Every share of a compressed stream that lies behind the damage meets it; only the last one tells.
    """
    try:
        yield from read(source, start, stop)
    except READ_ERRORS as error:
        if stop == END or getattr(error, "errno", None):
            yield Skipped(source.name, reason(error))


def until_damage(found: Iterator[Read]) -> Iterator[Read]:
    """End where a file cannot be read further.

    What the caller does with each thing is not inside: an error of writing is never taken for one of reading.
    """
    try:
        yield from found
    except READ_ERRORS:
        return


def beginning(path: Path, size: int = 1 << 16) -> bytes:
    """Return the first bytes of a file's content, as far as they can be read."""
    with open_bytes(path) as stream:
        blocks = []
        try:
            while size > 0 and (block := stream.read1(size)):  # type: ignore[attr-defined]
                blocks.append(block)
                size -= len(block)
        except READ_ERRORS as error:
            if getattr(error, "errno", None):
                raise
        return b"".join(blocks)


def lines(path: Path, start: int = 0, stop: int = END) -> Iterator[tuple[int, bytes]]:
    """Iterate over the lines that begin in ``[start, stop)``, each with its offset in the content.

    Consecutive shares give every line of the file exactly once. A line longer than a page may be comes in pieces of
    one byte more; those behind the share's stop are left out.
    """
    most = largest_page() + 1
    with open_bytes(path) as stream:
        offset = start
        if start:
            skip(stream, start - 1)
            offset -= 1
            while rest := stream.readline(_BLOCK):
                offset += len(rest)
                if rest.endswith(b"\n"):
                    break
        while offset < stop and (line := stream.readline(most)):
            yield offset, line
            offset += len(line)


def skip(stream: IO[bytes], size: int) -> None:
    """Move forward by `size` bytes, reading where the stream cannot seek."""
    if isinstance(stream, io.BufferedReader) and stream.seekable():
        stream.seek(size, os.SEEK_CUR)
        return
    while size > 0 and (block := stream.read(min(size, _BLOCK))):
        size -= len(block)


def unreadable(path: Path, fault: Fault) -> str | None:
    """Say why a file cannot be read, or is not of its format; None where it can."""
    try:
        return fault(path) if path.is_file() else not_readable(path)
    except READ_ERRORS as error:
        return reason(error)


def not_readable(path: Path) -> str:
    """Say why a path that is no regular file is not read: a pipe would be waited for."""
    return "the file is no longer there" if not path.exists() else "it is no regular file"


def file_name(path: Path) -> str:
    """Return a relative path as the name of a record; bytes that are not UTF-8 are shown as such."""
    return os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")


def reason(error: BaseException) -> str:
    """Say in one sentence why a file could not be read."""
    if isinstance(error, EOFError):
        return "the compressed stream is truncated; what came before was read"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror.lower()}"
    return f"cannot be read: {error}"
