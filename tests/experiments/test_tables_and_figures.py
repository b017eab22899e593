"""Tables in csv, Markdown and LaTeX, figures as the same bytes."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.show.figures import Mark, Panel, Point, draw_bars, draw_dots, draw_lines
from experiments.show.tables import COLUMN, Column, Table
from experiments.views import View

TABLE = Table(
    caption="Table 2: 50 % of A & B_c #1 {x} ~ ^ \\",
    columns=[Column(name="a", title="τ ≥ ρ"), Column(name="x", title="n", form=",.2f"), Column(name="hidden")],
    rows=[
        {"a": "σ × α ≤ … | _more_", "x": 1234.5, "hidden": 1},
        {"a": "Anna & Co."},
        {"a": "nan", "x": float("nan")},
        {"a": "− † ³"},
    ],
    notes=["A note."],
)
COLUMNS = [Column(name=f"c{k}", title=f"a long title {k}") for k in range(12)]
WIDE = Table(caption="Wide", columns=COLUMNS, rows=[{"c0": "x"}])


def test_a_table_has_three_forms(tmp_path):
    TABLE.write(tmp_path, "t")
    assert (tmp_path / "t.csv").read_text().splitlines()[:2] == ["a,x,hidden", "σ × α ≤ … | _more_,1234.5,1"]
    markdown = (tmp_path / "t.md").read_text()
    assert "| σ × α ≤ … \\| _more_ | 1,234.50 |" in markdown
    assert "| Anna & Co. | n/a |" in markdown
    assert "| nan | n/a |" in markdown
    assert "A note." in TABLE.text()
    tex = (tmp_path / "t.tex").read_text()
    assert tex.isascii()
    assert r"\caption{50 \% of A \& B\_c \#1 \{x\} \textasciitilde{} \textasciicircum{} \textbackslash{}}" in tex
    assert r"$\tau$ $\ge$ $\rho$ & n" in tex
    assert r"Anna \& Co. & n/a" in tex
    assert r"$-$ $\dag$ $^3$ & n/a" in tex


def test_a_wide_table_goes_over_both_columns():
    assert sum(len(column.title) + 1 for column in WIDE.columns) > COLUMN
    for table, kind in ((TABLE, "table"), (WIDE, "table*")):
        assert re.findall(r"\\(?:begin|end)\{(table\*?)\}", table.latex("x")) == [kind, kind]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex found: install texlive-latex-recommended")
def test_latex_sets_them_without_a_complaint(tmp_path):
    head = r"\documentclass[twocolumn]{article}\usepackage{booktabs,graphicx}\begin{document}"
    tables = TABLE.latex("narrow") + WIDE.latex("wide")
    (tmp_path / "x.tex").write_text(f"{head}\n{tables}\nText.\n\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "x.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "Overfull" not in done.stdout


POINTS = [
    Point(panel=panel, series=series, x=x, y=y + x / 10, low=y, high=y + 0.2)
    for panel in ("left", "right")
    for series, y in (("one", 0.2), ("two", 0.5))
    for x in (0.2, 0.4, 0.6)
]
PANELS = [Panel(name=name, x_label="tau", y_label="F1", y_range=(0, 1)) for name in ("left", "right")]


@pytest.mark.parametrize("draw", [draw_lines, draw_dots, draw_bars])
def test_figures_are_the_same_bytes_again(tmp_path, draw):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        draw(tmp_path / folder / "figure", PANELS[0] if draw is draw_bars else PANELS, POINTS)
    suffixes = ("svg", "png", "pdf", "csv")
    for suffix in suffixes:
        first, second = ((tmp_path / folder / f"figure.{suffix}").read_bytes() for folder in ("a", "b"))
        assert first == second
        assert len(first) > 200
    assert (tmp_path / "a" / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert b"</svg>" in (tmp_path / "a" / "figure.svg").read_bytes()
    assert {path.name for path in (tmp_path / "a").iterdir()} == {f"figure.{suffix}" for suffix in suffixes}


FIGURES = {"left": 0.2, "left_low": 0.1, "left_high": 0.4, "lost": 0.5, "of": "a"}
ROWS = [{"collection": name} | FIGURES for name in ("gold", "news", "docs")]


def test_single_points_have_no_line_in_the_legend(tmp_path, monkeypatch):
    lines, legend = [], Figure.legend

    def recorded(figure, handles, *rest, **more):
        lines.append([handle.get_linestyle() for handle in handles])
        return legend(figure, handles, *rest, **more)

    monkeypatch.setattr(Figure, "legend", recorded)
    points = [Point(panel="left", series=name, x=0, y=0) for name in "ab"]
    draw_lines(tmp_path / "points", PANELS[:1], points)
    draw_lines(tmp_path / "lines", PANELS[:1], [*points, Point(panel="left", series="a", x=1, y=0)])
    assert lines[0] == ["None", "None"]
    assert "None" not in lines[1]


def test_looks_of_many_lines_do_not_depend_on_the_order_of_a_set(tmp_path, monkeypatch):
    looks, plot = [], Axes.plot

    def recorded(axes, x, y, **look):
        looks.append([look[name] for name in ("color", "linestyle", "marker")])
        return plot(axes, x, y, **look)

    monkeypatch.setattr(Axes, "plot", recorded)
    lines = [Point(panel="left", series=str(k), x=x, y=0) for k in range(12) for x in (0, 1)]
    draw_lines(tmp_path / "f", PANELS[:1], lines)
    assert len(set(map(tuple, looks))) == 12
    assert len({look[0] for look in looks}) == 10
    assert looks[10] == [looks[0][0], looks[1][1], looks[2][2]]


def test_both_coordinates_have_intervals(tmp_path):
    view = View(x="left", y={"stories lost": "lost"}, axes={"x_label": "left", "y_label": "lost"})
    [first, *_] = view.points(ROWS)
    assert (first.low, first.high, first.x_low, first.x_high) == (None, None, 0.1, 0.4)
    view.draw(tmp_path / "f", ROWS)
    text = (tmp_path / "f.csv").read_text()
    assert text.startswith("panel,series,x,y,low,high,x_low,x_high\ngold,a,0.2,0.5,,,0.1,0.4\n")
    replace(view, x="lost", y={"left": "left"}).draw(tmp_path / "g", ROWS)
    assert (tmp_path / "g.csv").read_text().splitlines()[0] == "panel,series,x,y,low,high"


def test_a_collection_can_be_left_out_and_all_others_are_listed():
    view = View(caption="c", x="left", y={"lost": "lost"}, omitted=["gold"])
    assert [row["collection"] for row in view.drawn(ROWS)] == ["news", "docs"]
    assert view.drawn(ROWS[:1]) == ROWS[:1]
    assert view.full_caption(ROWS) == "c; gold, news and docs"
    assert view.full_caption(ROWS[:1]) == "c; gold"


def test_lines_are_set_apart(tmp_path):
    points = [Point(panel="", series=name, x=1, y=2, low=1, high=3) for name in "abcd"]
    pictures = []
    for apart in (0, 0.1):
        draw_lines(tmp_path / "f", [Panel(name="", x_label="x", y_label="y", apart=apart)], points)
        assert (tmp_path / "f.csv").read_text().count(",1,2,1,3\n") == 4
        pictures.append((tmp_path / "f.svg").read_bytes())
    assert pictures[0] != pictures[1]


def test_published_values_are_drawn(tmp_path):
    marked = [replace(panel, marks=[Mark(label="the paper's", x=0.4, y=0.94)]) for panel in PANELS]
    drawn = []
    for name, panels in (("plain", PANELS), ("marked", marked)):
        draw_lines(tmp_path / name, panels, POINTS)
        drawn.append((tmp_path / f"{name}.png").read_bytes())
    assert drawn[0] != drawn[1]
