"""A system that denies a service once: the n-th write, mkdir, rename, ... of a run fails."""

from __future__ import annotations

import errno
import io
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

CALLS = "open mkdir rename replace link unlink rmdir fsync".split()
"""Functions of `os` that fail; ``write`` is a buffer's way to the file, or its end."""

NUMBERS = [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EMFILE]
"""Reasons for which calls fail."""

EVERY = int(os.environ.get("SPOTSIGS_EVERY", "4"))
"""The long sweeps fail each so many-th call, from another one on for each reason: with 4, each fails for one."""


class Denied:
    """Counts calls that change files below a folder, and fails the n-th.

    Attributes
    ----------
    at : int
        Which call fails; 0 for none.
    last : int
        The last one that does, where there are several.
    below : Path
        Calls on other paths are not counted.
    calls : list of (str, str)
        What was called, and on what.
    """

    buffer = io.DEFAULT_BUFFER_SIZE  # bytes of a file after which they are written

    def __init__(self, below: Path, at: int, number: int = errno.ENOSPC, *, last: int | None = None) -> None:
        self.below, self.at, self.number = str(below), at, number
        self.last = at if last is None else last
        self.calls: list[tuple[str, str]] = []

    def __call__(self, name: str, path: Any) -> None:
        """Count a call, and fail if it is its turn."""
        path = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else f"fd {path}"
        if not path.startswith(self.below):
            return
        self.calls.append((name, path[len(self.below) + 1 :]))
        if self.at and self.at <= len(self.calls) <= self.last:
            raise OSError(self.number, os.strerror(self.number), path)

    @property
    def kinds(self) -> Counter[str]:
        """How often each was called."""
        return Counter(name for name, _ in self.calls)


class DeniedFile(io.FileIO):
    """A file whose writes may fail; a part of the bytes is written then, as on a full disk."""

    denied: Denied

    def write(self, content: Any) -> int:
        try:
            self.denied("write", self.name)
        except OSError:
            super().write(memoryview(content)[: len(content) // 2])
            raise
        return super().write(content)


@contextmanager
def denying(denied: Denied) -> Iterator[None]:
    """Let the calls of this process go through a counter."""
    real_open = io.open

    def opening(file: Any, mode: str = "r", buffering: int = -1, *words: Any, **more: Any) -> Any:
        path = os.fspath(file) if isinstance(file, (str, os.PathLike)) else ""
        if not str(path).startswith(denied.below) or not set(mode) & set("wxa+"):
            return real_open(file, mode, buffering, *words, **more)
        denied("open", path)
        raw = DeniedFile(path, mode.replace("b", "").replace("t", ""))
        raw.denied = denied
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw, denied.buffer)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, *words, **more)

    def counted(name: str) -> Any:
        real = getattr(os, name)

        def call(path: Any, *words: Any, **more: Any) -> Any:
            if name != "open" or (words and words[0] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
                denied(name, words[0] if name in ("rename", "replace", "link") else path)
            return real(path, *words, **more)

        return call

    calls = {name: counted(name) for name in CALLS}
    with mock.patch("builtins.open", opening), mock.patch("io.open", opening), mock.patch.multiple(os, **calls):
        yield


def content(folder: Path) -> dict[str, bytes]:
    """Return the results in a folder: without locks and temporary files."""
    contents = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and path.name not in (".lock", ".spotsigs-copy.json") and ".writing-" not in name:
            contents[name] = path.read_bytes()
    return contents


def copied(source: Path, target: Path) -> Path:
    """Replace the previous copy of a folder; return its path."""
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(source, target))


def sweep(
    counting: Denied, every: int, first: int, check: Callable[[int], tuple[str, str]], title: str
) -> Counter[Any]:
    """Fail every so many-th of the counted calls; print and return how often each call had which outcome."""
    outcomes = Counter(check(at) for at in range(1 + first % every, len(counting.calls) + 1, every))
    for (call, outcome), times in sorted(outcomes.items()):
        sys.stdout.write(f"{title}: {call:8} {outcome:12} {times} of {counting.kinds[call]}\n")
    return outcomes
