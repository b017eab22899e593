"""Files that appear whole or not at all."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

from spotsigs.clustering.tables import harmless
from spotsigs.errors import InputError, reason
from spotsigs.spelling import option
from spotsigs.storage import atomic


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` and put it in its place when the block ends well.

    Parameters
    ----------
    path : Path
        The file to write.

    Yields
    ------
    Path
        Where to write it.

    Raises
    ------
    InputError
        If the folder cannot be written or the disk is full.
    """
    with writing(path), atomic.replacing(path) as temporary:
        yield temporary


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in one sentence that a path cannot be written, or the disk is full.

    Raises
    ------
    InputError
        In place of the system's error.
    """
    try:
        yield
    except OSError as error:
        where = f"{atomic.destination(path)} cannot be written: {reason(error)}"
        raise InputError(f"{where}; choose another folder with {option('hydra.run.dir')}") from error


@contextmanager
def publishing(folder: Path, last: str, optional: Iterable[str]) -> Iterator[Path]:
    """Yield a folder to write results to; when the block ends well, they replace former ones, all of them.

    Parameters
    ----------
    folder : Path
        Where the results are going to lie. A full disk or an error leaves what is there as it is.
    last : str
        Name of the file that says that the results are complete: the former one goes first, the new one comes last.
    optional : iterable of str
        Names of files that a former run may have left and these results may not have.

    Yields
    ------
    Path
        A folder below `folder`.

    Raises
    ------
    InputError
        If the folder cannot be written or the disk is full.
    """
    with ExitStack() as stack:
        with writing(folder):
            new = stack.enter_context(atomic.beside(folder / "results"))
        yield new
        with writing(folder):
            _put_in_place(new, folder, last, optional)


def _put_in_place(new: Path, folder: Path, last: str, optional: Iterable[str]) -> None:
    """Put new files in the places of former ones; if a call fails, the former ones come back."""
    names = sorted(path.relative_to(new) for path in new.rglob("*") if path.is_file())
    names.sort(key=lambda name: name == Path(last))
    with ExitStack() as undo:
        for name in (Path(last), *(Path(name) for name in optional if Path(name) not in names)):
            _put_aside(folder / name, new / "former" / name, undo)
        for name in names:
            place = folder / name
            _put_aside(place, new / "former" / name, undo)
            place.parent.mkdir(exist_ok=True)
            os.replace(new / name, place)
            undo.callback(place.unlink)
        undo.pop_all()


def _put_aside(place: Path, former: Path, undo: ExitStack) -> None:
    if place.exists():
        former.parent.mkdir(parents=True, exist_ok=True)
        os.replace(place, former)
        undo.callback(os.replace, former, place)


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write JSON; NaN becomes null."""
    write_text(path, json.dumps(_plain(value), indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Return the content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write rows under a header."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        quoted = ([harmless(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
        _write_rows(file, chain([header], quoted))


def _write_rows(file: IO[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write rows of CSV, each to a line end; the csv module before Python 3.13 leaves carriage returns unquoted."""
    plain, quoting = (csv.writer(file, lineterminator="\n", quoting=how) for how in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    for row in rows:
        breaks = any(isinstance(cell, str) and "\r" in cell for cell in row)
        (quoting if breaks else plain).writerow(row)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
