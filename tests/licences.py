"""Write the licences of the pinned libraries as a page of the docs: `python tests/licences.py docs/licences.md`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

INTRODUCTION = """# Licences

The project is under the MIT licence. It uses the libraries below, in the versions that `constraints.txt` pins; none of
them is part of it. `make audit` writes this page from the metadata of each library.

| Licence | Libraries |
|---|---|
"""

COLLECTIONS = """

## Packages that collections fetch

They are fetched on first use and are no part of the project. `data/collections/registry.txt` has their checksums.

| Licence | Client | Packages |
|---|---|---|
"""


def pinned() -> set[str]:
    """Return the names in ``constraints.txt``, in their normal form."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {_normal(line.partition("==")[0]) for line in lines if "==" in line}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def collections() -> str:
    """Return a table of the licences of the packages that collections fetch."""
    rows: dict[str, set[str]] = {}
    for line in (ROOT / "data/collections/registry.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, licence, client = line.split()
            package = re.split(r"[-_]v?\d[\w.+~-]*$", re.sub(r"\.(tar\.gz|tgz|zip|deb)$", "", name))[0]
            rows.setdefault(f"{licence} | {client}", set()).add(package)
    return COLLECTIONS + "\n".join(f"| {key} | {', '.join(sorted(names))} |" for key, names in sorted(rows.items()))


def write(target: Path, python: str = sys.executable) -> None:
    """Ask pip-licenses about an environment, and write what is pinned."""
    command = ["pip-licenses", "--format=json", f"--python={python}"]
    executable = Path(sys.executable).parent / command[0]
    answer = subprocess.run([str(executable), *command[1:]], capture_output=True, text=True, check=True)
    rows = [row for row in json.loads(answer.stdout) if _normal(row["Name"]) in pinned()]
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row["License"], set()).add(row["Name"])
    lines = [f"| {licence} | {', '.join(sorted(names, key=str.lower))} |" for licence, names in sorted(found.items())]
    target.write_text(INTRODUCTION + "\n".join(lines) + collections() + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]), *sys.argv[2:])
