"""The notebooks run from top to bottom, and what is committed of them is what they print."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import jupytext
import nbformat
import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
by_name = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def module(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "notebooks" / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_there_are_three():
    assert len(NOTEBOOKS) >= 3


@by_name
def test_a_notebook_says_what_it_is(path):
    notebook = nbformat.read(path, as_version=4)
    assert notebook.cells[0].cell_type == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    assert len(notebook.cells) > 5


@by_name
def test_a_notebook_is_its_script_and_was_run(path):
    notebook, script = nbformat.read(path, as_version=4), jupytext.read(path.with_suffix(".py"))
    kinds = [(cell.cell_type, cell.source) for cell in script.cells]
    assert [(cell.cell_type, cell.source) for cell in notebook.cells] == kinds
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in outputs) or path.stem == "first_steps"


@by_name
def test_no_text_of_others_is_committed(path):
    # the pages of newsframes belong to their publishers: numbers of them are shown, no words
    assert "reuter" not in path.read_text(encoding="utf-8").lower()


@pytest.mark.long
@by_name
def test_a_notebook_runs(path):
    done = module("execute").executed(path.with_suffix(".py"))
    assert all(cell.execution_count for cell in done.cells if cell.cell_type == "code")
