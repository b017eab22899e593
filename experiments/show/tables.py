"""Tables: one list of rows, written as csv (full figures), Markdown and LaTeX (as printed)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spotsigs.output_files import replacing, write_csv

ABSENT = "n/a"
PUBLISHED, AT_PAPER = "published", "measured"
"""Names of the rows of published tables."""


TO_WIDTH = {
    r"\begin{tabular}": r"\centering\footnotesize\setlength{\tabcolsep}{3pt}%"
    + "\n"
    + r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
    + "\n"
    + r"\begin{tabular}",
    r"\end{tabular}": r"\end{tabular}%" + "\n}",
}
"""Scale a table down to the width of the page, never up."""

OVER_COLUMNS = {r"\begin{table}": r"\begin{table*}", r"\end{table}": r"\end{table*}"}
"""Set a wide table over both columns of a page, where its text stays legible."""

COLUMN = 60
"""Signs that fit a line of a column in that size of type."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
        Key of the rows, and header of the csv.
    title : str
        Header where it is printed; empty for a column that only the csv has.
    form : str
        Format of numbers, as in ``,.0f``; empty for text.
    """

    name: str
    title: str = ""
    form: str = ""

    def printed(self, row: dict[str, Any]) -> str:
        """Return the row's value as printed."""
        value = row.get(self.name)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ABSENT
        return format(value, self.form) if self.form and not isinstance(value, str) else str(value)


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows under columns.

    Attributes
    ----------
    caption : str
        Content of the table.
    columns : sequence of Column
        In print order.
    rows : sequence of dict
        Values by column name; unrounded numbers, None for absent ones.
    notes : sequence of str
        Sentences below the table.
    """

    caption: str
    columns: Sequence[Column]
    rows: Sequence[dict[str, Any]]
    notes: Sequence[str] = ()

    def write(self, folder: Path, name: str) -> None:
        """Write ``name.csv``, ``name.md`` and ``name.tex`` into a folder."""
        header = [column.name for column in self.columns]
        write_csv(folder / f"{name}.csv", header, ([row.get(key) for key in header] for row in self.rows))
        for suffix, text in ((".md", self.markdown()), (".tex", self.latex(name))):
            with replacing(folder / f"{name}{suffix}") as temporary:
                temporary.write_text(text, encoding="utf-8")

    def printed(self) -> tuple[list[str], list[list[str]]]:
        """Return the titles and the cells of the columns that are printed."""
        shown = [column for column in self.columns if column.title]
        return [column.title for column in shown], [[column.printed(row) for column in shown] for row in self.rows]

    def markdown(self) -> str:
        """Return the table in Markdown, text to the left and numbers to the right."""
        titles, cells = self.printed()
        sides = ["---:" if column.form else "---" for column in self.columns if column.title]
        lines = [titles, sides, *([cell.replace("|", "\\|") for cell in row] for row in cells)]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n\n".join([f"**{self.caption}**", body, *self.notes]) + "\n"

    def latex(self, label: str) -> str:
        """Return the table in LaTeX, for the packages booktabs and graphicx, over two columns if it is wide.

        A table that is still too wide is scaled. LaTeX numbers tables itself, so the caption loses its own number.
        """
        import pandas as pd

        titles, cells = self.printed()
        sides = "".join("r" if column.form else "l" for column in self.columns if column.title)
        frame = pd.DataFrame([[_tex(cell) for cell in row] for row in cells], columns=[_tex(title) for title in titles])
        text: str = frame.to_latex(
            index=False,
            column_format=sides,
            caption=_tex(re.sub(r"^Table \d+: ", "", self.caption)),
            label=f"tab:{label}",
            position="t",
        )
        notes = "".join(f"% {note}\n" for note in self.notes)
        wide = sum(max(map(len, column)) + 1 for column in zip(titles, *cells, strict=True)) > COLUMN
        for rule, put in {**TO_WIDTH, **(OVER_COLUMNS if wide else {})}.items():
            text = text.replace(rule, put)
        return "% needs \\usepackage{booktabs,graphicx}\n" + notes + text

    def text(self) -> str:
        """Return the table for a terminal."""
        return "\n".join([self.caption, "", *self.lines(), *([""] if self.notes else []), *self.notes])

    def lines(self, gap: str = "  ") -> list[str]:
        """Return the aligned lines of titles and rows, with a gap between columns."""
        titles, cells = self.printed()
        widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
        numeric = [bool(column.form) for column in self.columns if column.title]
        return [
            gap.join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, numeric, strict=True)
            ).rstrip()
            for row in (titles, *cells)
        ]


MATHS = {"τ": "tau", "ρ": "rho", "σ": "sigma", "α": "alpha", "≥": "ge", "≤": "le", "×": "times", "…": "dots"}
"""Signs beyond ASCII in tables, and their names in LaTeX."""


def _tex(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {sign: f"\\{sign}" for sign in "&%$#_{}"}
    special |= {sign: f"$\\{word}$" for sign, word in MATHS.items()}
    return "".join(special.get(sign, sign) for sign in text)


def band_text(low: Any, high: Any) -> str:
    """Return an IDF band in the format of the paper."""
    return f"[{low:g}, {high:g}]"
