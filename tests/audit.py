"""Compare the pinned versions with known vulnerabilities, and their licences with the list: `make audit`.

Exit codes: 0, every pinned version was looked up and nothing is known about any; 1, something is known, or a licence
has changed; 2, not every version could be looked up, which is no all-clear.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import licences

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "licences.md"
COMMAND = ("--requirement", "constraints.txt", "--no-deps", "--disable-pip", "--format", "json")


def looked_up() -> list[dict[str, Any]] | None:
    """Return the vulnerabilities of each pinned version by pip-audit; None without a network."""
    program = Path(sys.executable).parent / "pip-audit"
    answer = subprocess.run([str(program), *COMMAND], cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        return list(json.loads(answer.stdout)["dependencies"])
    except ValueError:
        return None


def verdict(found: list[dict[str, Any]] | None) -> tuple[int, list[str]]:
    """Return the exit code, and what to say.

    Parameters
    ----------
    found : list of dict or None
        ``name``, ``version`` and ``vulns``, or a ``skip_reason``, of each pinned version.
    """
    known = [
        f"{one['name']} {one['version']}: {vulnerability['id']}, mended in "
        + (" or ".join(vulnerability["fix_versions"]) or "no version yet")
        for one in found or []
        for vulnerability in one.get("vulns", [])
    ]
    skipped = [one["name"] for one in found or [] if "skip_reason" in one]
    if known:
        return 1, known
    if not found or len(skipped) == len(found):
        return 2, ["no vulnerability database answers here, so nothing was looked up: run this again with a network"]
    if skipped:
        return 2, [f"not looked up: {', '.join(skipped)}; nothing is known about the other {len(found) - len(skipped)}"]
    return 0, [f"nothing is known about any of the {len(found)} pinned versions"]


def main() -> int:
    """Write the list of licences, look vulnerabilities up, and say what was found."""
    before = PAGE.read_text(encoding="utf-8")
    licences.write(PAGE)
    code, sentences = verdict(looked_up())
    if PAGE.read_text(encoding="utf-8") != before:
        code, sentences = 1, [*sentences, "docs/licences.md has changed: look at the difference and commit it"]
    print("\n".join(sentences))  # noqa: T201
    return code


if __name__ == "__main__":
    sys.exit(main())
