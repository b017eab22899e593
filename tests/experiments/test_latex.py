"""Tables in LaTeX: plain signs, legible in a paper of two columns, and compiled where there is a LaTeX."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from experiments.show.tables import COLUMN, Column, Table

NARROW = Table(
    caption="Table 2: 50 % of A & B_c #1 {x} ~ ^ \\",
    columns=[Column(name="a", title="τ ≥ ρ"), Column(name="b", title="n", form=",.0f")],
    rows=[{"a": "σ × α ≤ …", "b": 1234.5}, {"a": "Anna & Co.", "b": None}],
    notes=["A note."],
)
WIDE = Table(
    caption="Wide", columns=[Column(name=f"c{k}", title=f"a long title {k}") for k in range(12)], rows=[{"c0": "x"}]
)


def test_every_sign_is_one_that_latex_knows():
    text = NARROW.latex("x")
    assert text.isascii()
    assert r"\caption{50 \% of A \& B\_c \#1 \{x\} \textasciitilde{} \textasciicircum{} \textbackslash{}}" in text
    assert r"$\tau$ $\ge$ $\rho$ & n" in text
    assert r"Anna \& Co. & n/a" in text


def test_a_wide_table_goes_over_both_columns():
    assert sum(len(column.title) + 1 for column in WIDE.columns) > COLUMN
    for table, kind in ((NARROW, "table"), (WIDE, "table*")):
        assert re.findall(r"\\(?:begin|end)\{(table\*?)\}", table.latex("x")) == [kind, kind]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex found: install texlive-latex-recommended")
def test_latex_sets_them_without_a_complaint(tmp_path):
    head = r"\documentclass[twocolumn]{article}\usepackage{booktabs,graphicx}\begin{document}"
    tables = NARROW.latex("narrow") + WIDE.latex("wide")
    (tmp_path / "x.tex").write_text(f"{head}\n{tables}\nText.\n\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "x.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "Overfull" not in done.stdout
