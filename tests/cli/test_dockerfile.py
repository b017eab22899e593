"""The Dockerfile: what it copies, installs and runs is there; where Docker runs, the image is built and used."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from in_process import ROOT

LINES = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def instructions(name):
    """Return the arguments of all instructions of a name."""
    return [line.removeprefix(f"{name} ") for line in LINES if line.startswith(f"{name} ")]


def copied(folder):
    """Copy what the image has of the checkout into a folder, as the instructions do; return the source's folder."""
    for words in map(str.split, instructions("COPY")):
        target = folder / words[-1].lstrip("/")
        for word in words[:-1]:
            source = ROOT / word
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                target.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
    return folder / "opt/spotsigs/source"


def test_each_line_is_an_instruction_that_a_test_reads():
    names = {line.split()[0] for line in LINES if not line.startswith("#")}
    assert names == {"FROM", "ENV", "COPY", "RUN", "ENTRYPOINT"}


def test_the_package_is_built_from_the_files_that_are_copied(tmp_path):
    source = copied(tmp_path / "image")
    words = sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path
    built = subprocess.run(words, cwd=source, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert [path.suffix for path in tmp_path.glob("*.whl")] == [".whl"]


def test_what_it_installs_and_runs_exists():
    run = "\n".join(instructions("RUN"))
    constraints = Path(re.search(r"-c (\S+)", run)[1])
    assert constraints.name in " ".join(instructions("COPY")).split()
    [extras] = re.findall(r"source\[([\w,]+)\]", run)
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    assert all(find_spec(module) for module in re.findall(r"python -m ([\w.]+)", run))
    assert instructions("ENTRYPOINT") == ['["spotsigs"]']
    assert "spotsigs" in PROJECT["scripts"]


def test_the_kernels_are_compiled_where_the_command_looks_for_them():
    [(variable, folder)] = [line.split("=") for line in instructions("ENV")]
    assert variable == "NUMBA_CACHE_DIR"
    assert f"chmod -R a+rwX {folder}" in instructions("RUN")[-1], "a user without privileges compiles more of them"


def test_its_python_is_one_that_the_project_supports():
    [image] = instructions("FROM")
    version = tuple(map(int, re.fullmatch(r"python:(\d+)\.(\d+)-slim", image).groups()))
    assert version >= tuple(map(int, PROJECT["requires-python"].removeprefix(">=").split(".")))


@pytest.mark.long
def test_the_image_removes_the_duplicates_of_a_folder(tmp_path):
    is_there = shutil.which("docker") is not None
    if not is_there or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        pytest.skip("Docker does not run here")
    shutil.copytree(ROOT / "data/tiny", tmp_path / "pages")
    subprocess.run(["docker", "build", "-t", "spotsigs-test", "."], cwd=ROOT, check=True)
    words = "docker", "run", "--rm", "-v", f"{tmp_path}:/data", "-w", "/data", "spotsigs-test"
    subprocess.run([*words, "dedup", "pages", "--out", "kept"], check=True)
    assert len(list((tmp_path / "kept").rglob("*.html"))) == 15
