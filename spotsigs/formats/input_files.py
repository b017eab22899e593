"""Input files: finding them, opening them, and cutting them into shards."""

from __future__ import annotations

import atexit
import glob
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import zstandard

from spotsigs.errors import InputError, require
from spotsigs.formats.compression import BLOCK, READ_ERRORS, compression, open_bytes, open_stored
from spotsigs.storage.locations import as_path, files_below, is_remote, require_reachable
from spotsigs.storage.manifest import COMPLETE, is_of_run
from spotsigs.text.size_limits import largest_page

END = sys.maxsize
"""The stop of a shard that ends with its file."""

SHARD_BYTES = 8 << 20
"""Bytes of input in a shard: a tenth of a second of extraction, so that workers finish together."""

STREAM_SHARDS = 8
"""Largest number of shards of a compressed stream that can only be read from its beginning."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of the input.

    Attributes
    ----------
    path : Path
        The file.
    name : str
        Its path below the collection's folder, by which its records are named.
    fault : str or None
        Reason why it is not read, if that is known before it is opened.
    """

    path: Path
    name: str
    fault: str | None = None


def find_sources(path: str) -> list[InputFile]:
    """Return the files of a collection, sorted by name; raise InputError if there is none.

    `path` is a file, a folder (searched in depth), a glob pattern (``**`` for any depth; matching folders are
    searched), ``-`` for standard input, or a URL of one of the first three, see `spotsigs.storage.locations`. Hidden
    files are not part of a folder. A sub-folder that cannot be read, is a link or contains the results of a run,
    and a link to a file outside of the folder, are listed with the reason.
    """
    require(path != "", "path is empty; give a file, a folder or a pattern such as 'crawl/*.gz'")
    if path == "-":
        return [InputFile(_spooled_input(), "stdin")]
    given = as_path(path)
    if is_remote(given):
        return _remote_sources(path, given)
    if given.is_file():
        return [InputFile(given, file_name(Path(given.name)))]
    if given.is_dir():
        files = list(_walk(given, given))
        require(bool(files), f"the folder {path} contains no file; give another path")
    elif glob.has_magic(path):
        files = _matching(path)
        require(bool(files), f"no file matches {path}; give another path")
    else:
        raise InputError(f"{path} does not exist; give a file, a folder or a pattern such as 'crawl/*.gz'")
    return sorted(files, key=lambda source: source.name)


def _matching(pattern: str) -> list[InputFile]:
    """Return the files that match a pattern or are below a folder that does, and folders that cannot be searched."""
    root = Path(re.split(r"[*?\[]", pattern, maxsplit=1)[0] + "x").parent
    deep = "**" in pattern
    files: dict[Path, InputFile] = {}
    for path in [] if deep else map(Path, glob.glob(pattern)):  # glob follows links, which may lead to folders above
        if path.is_dir():
            files |= {source.path: source for source in _walk(path, root)}
        else:
            files[path] = InputFile(path, file_name(path.relative_to(root)))
    wanted = Path(pattern).relative_to(root).parts
    before = wanted[: wanted.index("**")] if "**" in wanted else wanted
    for source in _walk(root, root, None if deep else len(wanted) - 1):
        parts = source.path.relative_to(root).parts
        hides = source.fault and (deep or not source.path.is_symlink())  # other patterns follow links
        hides = hides and not source.path.is_file() and all(map(fnmatch, parts, before))
        if hides or (deep and _matches(parts, wanted)):
            files.setdefault(source.path, source)
    return list(files.values())


def _matches(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether the parts of a path match the parts of a pattern."""
    if not wanted or not parts:
        return not parts and all(part == "**" for part in wanted)
    if wanted[0] == "**":
        return _matches(parts, wanted[1:]) or _matches(parts[1:], wanted)
    return fnmatch(parts[0], wanted[0]) and _matches(parts[1:], wanted[1:])


def _remote_sources(path: str, given: Path) -> list[InputFile]:
    """Find files that fsspec reaches, as `find_sources` does, with one listing."""
    start = re.split(r"[*?\[]", path, maxsplit=1)[0]
    root = given if start == path else as_path(start + "x").parent
    require_reachable(root)
    names = [name for name in files_below(root, None if root is given else path) if not re.search(r"(^|/)\.", name)]
    if root is given and names == [""]:
        return [InputFile(given, given.name)]
    require(bool(names), f"{path} is no file, and no file is below it; give another path")
    return [InputFile(root / name, name) for name in sorted(names)]


def _walk(folder: Path, root: Path, depth: int | None = None) -> Iterator[InputFile]:
    """Iterate over the files below a folder, and over sub-folders that are not read, with the reason."""

    def refuse_source(path: Path, fault: str) -> InputFile:
        return InputFile(path, f"{file_name(path.relative_to(root))}/", fault)

    unreadable: list[InputFile] = []

    def refuse(error: OSError) -> None:
        if Path(error.filename) == root:
            raise InputError(f"the folder {root} {why_unread(error)}") from error
        unreadable.append(refuse_source(Path(error.filename), f"the folder {why_unread(error)}"))

    for parent, folders, names in os.walk(folder, onerror=refuse):
        below = Path(parent)
        visible = [name for name in folders if not name.startswith(".")]
        links = [name for name in visible if (below / name).is_symlink()]
        yield from (
            refuse_source(below / name, "a link to a folder is not followed; give its target") for name in links
        )
        results = [name for name in visible if name not in links and (below / name / COMPLETE).is_file()]
        results = [name for name in results if is_of_run(below / name)]
        yield from (refuse_source(below / name, "the results of a run are not read") for name in results)
        folders[:] = [name for name in visible if name not in links and name not in results]
        if depth is not None and len(below.relative_to(root).parts) >= depth:
            folders.clear()
        paths = [below / name for name in names if not name.startswith(".")]
        yield from (InputFile(path, file_name(path.relative_to(root)), _outside(path, root)) for path in paths)
    yield from unreadable


def _outside(path: Path, root: Path) -> str | None:
    """Return why a link to a file outside of a folder is not read; None of another file."""
    if not path.is_symlink() or not path.is_file() or path.resolve().is_relative_to(root.resolve()):
        return None
    return "a link to a file outside the folder is not followed; name it by a pattern, such as 'folder/*'"


@cache
def _spooled_input() -> Path:
    """Copy standard input to a temporary file once: several workers and passes read it."""
    with tempfile.NamedTemporaryFile(prefix="spotsigs-stdin-", delete=False) as copy:
        atexit.register(Path(copy.name).unlink, missing_ok=True)
        shutil.copyfileobj(sys.stdin.buffer, copy, BLOCK)
    return Path(copy.name)


def shard_ranges(path: Path, shard_bytes: int = SHARD_BYTES, seekable: bool = True) -> list[tuple[int, int]]:
    """Cut the content of a file into shards of about `shard_bytes`; return the start and stop of each, at last `END`.

    A stream that can only be read from its beginning, as a compressed one or one that is not `seekable`, has at most
    `STREAM_SHARDS`; a process that reads several of them decompresses it once, see `resumed_pass`.
    """
    packed = compression(path) != "plain"
    size = _content_size(path) if packed else path.stat().st_size
    parts = max(1, round(size / shard_bytes))
    if packed or not seekable:
        parts = min(parts, STREAM_SHARDS)
    edges = [size * k // parts for k in range(parts)]
    return list(zip(edges, [*edges[1:], END], strict=True))


def _content_size(path: Path) -> int:
    """Estimate the unpacked size of a compressed file: a wrong estimate makes uneven shards, never a wrong result."""
    packed = path.stat().st_size
    guess, how = 5 * packed, compression(path)
    known = 0
    with open_stored(path) as file:
        if how == "zstd":
            known = zstandard.frame_content_size(file.read(18))
        elif how == "gzip":
            file.seek(-min(4, packed), os.SEEK_END)
            known = int.from_bytes(file.read(4), "little")
            known += (max(guess - known, 0) >> 32) << 32  # gzip stores the size modulo 2**32
    return known if known >= packed else guess


def read_head(path: Path, size: int = 1 << 16) -> bytes:
    """Return the first bytes of a file's content, as far as they can be read."""
    content = bytearray()
    with open_bytes(path) as stream:
        try:
            while len(content) < size and (block := stream.read1(size - len(content))):  # type: ignore[attr-defined]
                content += block
        except READ_ERRORS as error:
            if getattr(error, "errno", None):
                raise
    return bytes(content)


def lines(path: Path, start: int = 0, stop: int = END) -> Iterator[tuple[int, bytes]]:
    """Iterate over the lines that begin in ``[start, stop)``, each with its offset in the content.

    Consecutive shards return every line of the file exactly once. A line that is longer than a page may be is returned
    in pieces, each one byte longer than such a page; the pieces after the shard's stop are omitted.
    """
    most = largest_page() + 1
    with open_bytes(path) as stream:
        offset = start
        if start:
            offset = 0
            if stream.seekable():
                offset = stream.seek(start - 1)
            while offset < start - 1 and (block := stream.read(min(start - 1 - offset, BLOCK))):
                offset += len(block)
            while rest := stream.readline(BLOCK):
                offset += len(rest)
                if rest.endswith(b"\n"):
                    break
        while offset < stop and (line := stream.readline(most)):
            yield offset, line
            offset += len(line)


_PASSES: dict[Any, tuple[int, int, Any, Iterator[tuple[int, Any]]]] = {}
"""The pass that this process can continue: the offset it reached, the offset of its next item, the item, the rest."""


def resumed_pass(
    path: Path, start: int, stop: int, key: object, items: Callable[[], Iterator[tuple[int, T]]]
) -> Iterator[tuple[int, T]]:
    """Iterate over the items of a file whose offsets are in ``[start, stop)``, where only a pass over it finds them.

    A process that reads shards of a file in order continues the pass of the previous shard, so that it decompresses
    and parses the file once. `items` begins a pass, by ascending offset; the hashable `key` identifies its parser.
    """
    facts = path.stat()
    state = facts.st_size, int(getattr(facts, "st_mtime_ns", 0)), int(getattr(facts, "st_ino", 0))
    name = (key, path, largest_page(), state)
    reached, at, item, rest = _PASSES.pop(name, (END, END, None, iter(())))
    _PASSES.clear()  # a worker continues one file at a time
    if reached > start:
        rest = items()
        at, item = next(rest, (END, None))
    while at < stop:
        if at >= start:
            yield at, item
        at, item = next(rest, (END, None))
    if at < END:
        _PASSES[name] = stop, at, item, rest


def not_readable(path: Path) -> str:
    """Return why a path that is no regular file is not read: opening a pipe would block."""
    return "the file is no longer there" if not path.exists() else "it is no regular file"


def positioned(name: str | None, position: str) -> str:
    """Return the id of a record that is skipped: unlike a document's, it includes the record's position."""
    return position if name in (None, "", position) else f"{name} ({position})"


def file_name(path: Path) -> str:
    """Return a relative path as the name of a record; bytes that are not UTF-8 are escaped."""
    return os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")


def why_unread(error: BaseException) -> str:
    """Return in one sentence why a file could not be read."""
    if isinstance(error, EOFError):
        return "the compressed stream is truncated; what came before was read"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror.lower()}"
    return f"cannot be read: {error}"
