"""The folders of tests, so that helpers and cases of other tests are imported by name, here and in other processes."""

import os
from pathlib import Path

TESTS = Path(__file__).parent
FOLDERS = [
    str(TESTS),
    *sorted(str(path) for path in TESTS.iterdir() if path.is_dir() and path.name not in ("naive", "__pycache__")),
]
PYTHONPATH = os.pathsep.join([*FOLDERS, os.environ.get("PYTHONPATH", "")])
