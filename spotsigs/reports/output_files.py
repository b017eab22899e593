"""Atomic writing of result files."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from spotsigs.clustering import tables
from spotsigs.errors import option, system_errors
from spotsigs.storage import atomic
from spotsigs.storage.manifest import require_of_run


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path; its file replaces ``path`` when the block succeeds."""
    with writing(path), atomic.replacing(path) as temporary:
        yield temporary


def writing(path: Path) -> AbstractContextManager[None]:
    """Raise an `InputError` if the system does not let a path be written in the block."""
    way_out = f"; choose another folder with {option('hydra.run.dir')}"
    return system_errors(f"{atomic.destination(path)} cannot be written", way_out)


@contextmanager
def publishing(folder: Path, first: str, last: str, optional: Iterable[str]) -> Iterator[Path]:
    """Yield a folder for results; all of them replace the previous ones when the block succeeds.

    If the folder cannot be written or the disk is full, the previous results are unchanged. ``last`` marks complete
    results: the previous one is removed first, the new one written last. ``first`` proves that results are ours: it is
    there as long as any of them. Files of ``optional`` are removed if the new results lack them.
    """
    with ExitStack() as stack:
        with writing(folder):
            new = stack.enter_context(atomic.staging_folder(folder / "results"))
        yield new
        with writing(folder):
            _replace_files(new, folder, first, last, optional)


def _replace_files(new: Path, folder: Path, first: str, last: str, optional: Iterable[str]) -> None:
    """Replace previous files by new ones; restore the previous ones if a call fails."""
    names = sorted(path.relative_to(new) for path in new.rglob("*") if path.is_file())
    names.sort(key=lambda name: (name == Path(last), name != Path(first)))
    require_of_run(folder, [name.as_posix() for name in names])
    with ExitStack() as undo:
        for name in (Path(last), *(Path(name) for name in optional if Path(name) not in names)):
            atomic.move_aside(folder / name, new / "previous" / name, undo)
        for name in names:
            target = folder / name
            if name == Path(first) and target.exists():
                previous = new / "previous" / name
                previous.parent.mkdir(exist_ok=True)
                shutil.copy2(target, previous)
                atomic.publish(new / name, target)
                undo.callback(atomic.publish, previous, target)
                continue
            atomic.move_aside(target, new / "previous" / name, undo)
            atomic.publish(new / name, target, undo)
        undo.pop_all()


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write JSON; NaN and infinities become null."""
    write_text(path, json.dumps(_plain(value), indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Return the content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write rows under a header, see `spotsigs.clustering.tables.write_csv`."""
    with writing(path):
        tables.write_csv(path, header, rows)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
