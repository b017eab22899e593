"""Run the notebooks and write them with their outputs: ``python notebooks/execute.py [name ...]``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

HERE = Path(__file__).parent


def executed(script: Path) -> NotebookNode:
    """Return the notebook of a script in percent form, run from top to bottom.

    Parameters
    ----------
    script : Path
        Its cells run in a new kernel, with the notebooks' folder as the working directory.

    Returns
    -------
    NotebookNode
        With outputs and pictures, but without times of execution, so that two runs give the same notebook.
    """
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    notebook = jupytext.read(script)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"{script.stem}-{number}"
    place = {"metadata": {"path": str(HERE)}}
    done = NotebookClient(notebook, timeout=1800, kernel_name="python3", resources=place).execute()
    for cell in done.cells:
        cell.metadata.pop("execution", None)
    done.metadata.pop("language_info", None)
    return done


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(path.stem for path in HERE.glob("*.ipynb")):
        notebook = executed(HERE / f"{name}.py")
        nbformat.write(notebook, HERE / f"{name}.ipynb")
