"""Compare the pinned versions with known vulnerabilities, and their licences with the list: `make audit`.

Exit codes: 0, every pinned version was looked up and nothing is known about any; 1, something is known, or a licence
has changed; 2, not every version could be looked up, which is no all-clear.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "licences.md"
COMMAND = ("--requirement", "constraints.txt", "--no-deps", "--disable-pip", "--format", "json")


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


def write_licences(target: Path) -> None:
    """Ask pip-licenses about an environment, and write what is pinned."""
    command = ["pip-licenses", "--format=json", f"--python={sys.executable}"]
    executable = Path(sys.executable).parent / command[0]
    answer = subprocess.run([str(executable), *command[1:]], capture_output=True, text=True, check=True)
    rows = [row for row in json.loads(answer.stdout) if _normal(row["Name"]) in pinned()]
    names: dict[str, set[str]] = {}
    for row in rows:
        names.setdefault(row["License"], set()).add(row["Name"])
    lines = [f"| {licence} | {', '.join(sorted(of, key=str.lower))} |" for licence, of in sorted(names.items())]
    target.write_text(INTRODUCTION + "\n".join(lines) + collections() + "\n", encoding="utf-8")


def looked_up() -> list[dict[str, Any]] | None:
    """Return the vulnerabilities of each pinned version by pip-audit; None without a network."""
    program = Path(sys.executable).parent / "pip-audit"
    answer = subprocess.run([str(program), *COMMAND], cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        return list(json.loads(answer.stdout)["dependencies"])
    except ValueError:
        return None


def verdict(pins: list[dict[str, Any]] | None) -> tuple[int, list[str]]:
    """Return the exit code, and what to print.

    Parameters
    ----------
    pins : list of dict or None
        ``name``, ``version`` and ``vulns``, or a ``skip_reason``, of each pinned version.
    """
    known = [
        f"{one['name']} {one['version']}: {vulnerability['id']}, mended in "
        + (" or ".join(vulnerability["fix_versions"]) or "no version yet")
        for one in pins or []
        for vulnerability in one.get("vulns", [])
    ]
    skipped = [one["name"] for one in pins or [] if "skip_reason" in one]
    if known:
        return 1, known
    if not pins or len(skipped) == len(pins):
        return 2, ["no vulnerability database answers here, so nothing was looked up: run this again with a network"]
    if skipped:
        return 2, [f"not looked up: {', '.join(skipped)}; nothing is known about the other {len(pins) - len(skipped)}"]
    return 0, [f"nothing is known about any of the {len(pins)} pinned versions"]


def main() -> int:
    """Write the list of licences, look vulnerabilities up, and print the verdict."""
    before = PAGE.read_text(encoding="utf-8")
    write_licences(PAGE)
    code, sentences = verdict(looked_up())
    if PAGE.read_text(encoding="utf-8") != before:
        code, sentences = 1, [*sentences, "docs/licences.md has changed: compare and commit it"]
    print("\n".join(sentences))  # noqa: T201
    return code


if __name__ == "__main__":
    sys.exit(main())
