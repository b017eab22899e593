"""Resumable tasks: each names its inputs and writes a result of its own, so that it can run again on any worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from spotsigs.engines import Engine
from spotsigs.errors import InputError
from spotsigs.storage.locations import as_path
from spotsigs.storage.store import Reader, Writer, opened, writing

Task = TypeVar("Task")
Result = TypeVar("Result")

_COPIED = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Checkpoints:
    """Folder of the results of the tasks of a stage.

    Attributes
    ----------
    folder : str
        Path or URL that all workers can read and write.
    """

    folder: str

    def path(self, *names: object) -> Path:
        """Return the path of a result."""
        return as_path(self.folder).joinpath(*map(str, names))

    def result(self, kind: str, *names: object) -> Reader:
        """Open a result."""
        return opened(self.path(kind, *names), kind)

    def checkpoint(self, kind: str, *names: object, work: Callable[[Writer], None]) -> dict[str, Any]:
        """Write a result unless it is complete; return its facts."""
        try:
            return self.result(kind, *names).facts
        except InputError:
            with writing(self.path(kind, *names), kind) as out:
                work(out)
            return out.facts


def run(engine: Engine, function: Callable[[Task], Result], tasks: Sequence[Task], name: str) -> Iterator[Result]:
    """Run the tasks of a round with a progress bar."""
    return iter(tqdm(engine.map(function, tasks), name, total=len(tasks), unit=" tasks", disable=None, leave=False))


def append_parts(
    store: Writer,
    name: str,
    dtype: Any,
    readers: Sequence[Reader],
    of: str | None = None,
    before: NDArray[np.int64] | None = None,
) -> None:
    """Concatenate an array of several results; with `before`, its values are offsets that continue."""
    with store.growing(name, dtype) as append:
        if before is not None:
            append(before)
        last = 0
        for reader in readers:
            for values in pieces(reader, of or name, dtype):
                append(values if before is None else values + last)
            if before is not None and reader.length(of or name, dtype):
                last += int(values[-1])


def pieces(reader: Reader, name: str, dtype: Any) -> Iterator[NDArray[Any]]:
    """Yield an array of a result in pieces."""
    length = reader.length(name, dtype)
    for start in range(0, length, _COPIED):
        yield reader.part(name, dtype, start, min(start + _COPIED, length))
