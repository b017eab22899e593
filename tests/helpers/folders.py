"""The folders of tests, so that helpers and cases of other tests are imported by name, here and in other processes."""

import csv
import os
from pathlib import Path

TESTS = Path(__file__).parents[1]
FOLDERS = [
    str(TESTS),
    *sorted(str(path) for path in TESTS.iterdir() if path.is_dir() and path.name not in ("naive", "__pycache__")),
]
PYTHONPATH = os.pathsep.join([*FOLDERS, os.environ.get("PYTHONPATH", "")])


def rows_of(path):
    """Return the rows of a CSV file by column."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def contents(folder):
    """Return the bytes of all files below a folder, by path, without the manifests of copies, which have times."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".spotsigs-copy.json")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
