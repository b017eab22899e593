"""The notebooks run from top to bottom, and the committed outputs are theirs."""

from __future__ import annotations

import importlib.util
from collections import Counter
from itertools import zip_longest
from pathlib import Path

import jupytext
import nbformat
import pytest
from folders import rows_of
from selectolax.lexbor import LexborHTMLParser

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FIRST_STEPS = ROOT / "notebooks" / "first_steps.ipynb"
by_name = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def module(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "notebooks" / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


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


def printed(notebook):
    """Return what each cell prints and shows as text."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [[output.get("text") or output["data"]["text/plain"] for output in cell.outputs] for cell in code]


def shown(notebook):
    """Return the tables of the outputs, each as rows of the texts of their cells, without the titles."""
    outputs = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    tables = [table for data in outputs for table in LexborHTMLParser(data.get("text/html", "")).css("table.dataframe")]
    return [[[cell.text(strip=True) for cell in row.css("th, td")] for row in each.css("tbody tr")] for each in tables]


def committed(name, columns):
    """Return the rows of a table of the results as a notebook shows them, numbered."""
    rows = rows_of(ROOT / "results" / name)
    return [[str(number), *(row[column] for column in columns)] for number, row in enumerate(rows)]


def same(text, exact):
    """Return whether a text is a number of the results, rounded, or equal to their text."""
    try:
        return exact == "" if text == "NaN" else abs(float(text) - float(exact)) <= 0.0005 + 1e-9
    except ValueError:
        return text == exact


def stale(notebook):
    """Return the differences between the results and what the first steps show of them."""
    *_, table1, bands, verdicts = shown(notebook)
    figures = ["tau", "spots", "precision", "recall", "f1"]
    expected = {
        "table1/table1.csv": (table1, ["method", "row", *figures]),
        "quality/quality.csv": (bands, ["panel", "series", "x", "low", "high"]),
    }
    different = [
        (name, seen, row)
        for name, (rows, columns) in expected.items()
        for seen, row in zip_longest(rows, committed(name, columns), fillvalue=[])
        if len(seen) != len(row) or not all(map(same, seen, row))
    ]
    counts = Counter(
        verdict for _, source, verdict in committed("claims.csv", ["source", "verdict"]) if source == "paper"
    )
    if dict(verdicts) != {verdict: str(count) for verdict, count in counts.items()}:
        different.append(("claims.csv", verdicts, counts))
    return different


def test_the_first_steps_show_the_committed_results():
    assert stale(nbformat.read(FIRST_STEPS, as_version=4)) == []


def test_the_first_steps_print_what_is_committed():
    done = module("execute").executed(FIRST_STEPS.with_suffix(".py"))
    assert printed(done) == printed(nbformat.read(FIRST_STEPS, as_version=4))


@pytest.mark.long
@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path != FIRST_STEPS], ids=lambda path: path.stem)
def test_a_notebook_runs(path):
    done = module("execute").executed(path.with_suffix(".py"))
    assert all(cell.execution_count for cell in done.cells if cell.cell_type == "code")
    if "newsframes is left out" not in str(printed(done)):
        assert printed(done) == printed(nbformat.read(path, as_version=4))
