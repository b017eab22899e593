"""Every command and code block of the README and the docs does what it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language):
    return [
        pytest.param(code, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, (kind, code) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
        if kind == language
    ]


def commands():
    for block in blocks("sh"):
        for number, line in enumerate(block.values[0].splitlines()):
            words = shlex.split(line, comments=True)
            if words[:2] == ["python", "run.py"]:
                quick = {"data=tiny", "--help"} & set(words) or "data.path=data/tiny" in words
                marks = [] if quick else [pytest.mark.long]
                yield pytest.param(words[2:], id=f"{block.id}-{number}", marks=marks)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_blocks_run(code):
    exec(compile(code, "a code block of the docs", "exec", dont_inherit=True), {"__name__": "docs"})


@pytest.mark.parametrize("arguments", list(commands()))
def test_commands_run(arguments):
    done = subprocess.run(
        [sys.executable, "run.py", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
