"""Every file of the committed results has a program that writes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
BENCHMARKS = {"bench": "benchmarks/bench.py", "race": "benchmarks/end_to_end.py", "soak": "tests/soak.py"}
"""Folders that no experiment writes, and their programs."""
EVERY = {"facts", "cells"}
"""Names that every experiment may write."""
OTHERS = ("cells", "runs", "variants", "threshold")
FOLDERS = sorted(path.name for path in RESULTS.iterdir() if path.is_dir() and path.name not in OTHERS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_is_written_by_an_existing_program(folder):
    program = ROOT / BENCHMARKS.get(folder, f"conf/experiment/{folder}.yaml")
    sources = [program]
    if folder not in BENCHMARKS:
        module = re.search(r"_target_: (experiments\.[\w.]+)\.\w+$", program.read_text(), re.MULTILINE)[1]
        sources.append(ROOT / f"{module.replace('.', '/')}.py")
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    names = {re.sub(r"\d{5,}", "", path.name.partition(".")[0]) for path in (RESULTS / folder).rglob("*.*")}
    written = {name for name in names if re.search(rf'"{name}|^ *(name: )?{name}(:|$)', text, re.MULTILINE)}
    assert names - EVERY - {folder} - written == set()
