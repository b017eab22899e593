"""Tables: one list of rows, written as csv (full figures), Markdown and LaTeX (as printed)."""

from __future__ import annotations

import math
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from spotsigs.reports.output_files import replacing, write_csv, writing

ABSENT = "n/a"
QUALITY = ("precision", "recall", "f1")
"""Columns that every form of a table has, and that a collection without truth lacks."""
TIMES = ("sort_hash_ms", "cluster_ms", "total_ms")
PUBLISHED, MEASURED = "published", "measured"
"""Names of the rows of published tables."""


SCALED = (
    r"\centering\footnotesize\setlength{\tabcolsep}{3pt}%",
    r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
)
"""Lines that scale a table down to the width of the page, never up."""

COLUMN = 60
"""Signs that fit a line of a column in that size of type."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table."""

    name: str  # key of the rows, and header of the csv
    title: str = ""  # header where it is printed; empty for a column that only the csv has
    form: str = ""  # format of numbers, as in ``,.0f``; empty for text

    def printed(self, row: dict[str, Any]) -> str:
        """Return the row's value as printed."""
        value = row.get(self.name)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ABSENT
        return format(value, self.form) if self.form and not isinstance(value, str) else str(value)


TITLES = {
    "tau": ("τ", "g"), "k": ("k", ".0f"), "l": ("l", ".0f"), "spots": ("#Spots", ",.0f"), "mb": ("MB", ",.1f"),
    "documents": ("Documents", ",.0f"), "sort_hash_ms": ("Sort/Hash (ms)", ",.0f"),
    "cluster_ms": ("Clust. (ms)", ",.0f"), "total_ms": ("Total (ms)", ",.0f"), "precision": ("Prec.", ".3f"),
    "recall": ("Rec.", ".3f"), "f1": ("F1", ".3f"), "f1_held_out": ("F1 held out", ".3f"),
    "from_published": ("F1 − published", "+.3f"),
    "macro_f1": ("Macro F1", ".3f"), "bcubed_f1": ("B-cubed F1", ".3f"), "lost": ("Lost", ".1%"),
    "left": ("Left", ".1%"), "kept": ("Kept", ",.0f"), "stories_lost": ("Stories lost", ",.0f"),
    "duplicates_left": ("Duplicates left", ",.0f"), "largest_cluster": ("Largest group", ",.0f"),
    "time": ("Time (s)", ".2f"), "peak_mb": ("Peak MB", ",.0f"), "relative_recall": ("Rel. Rec.", ".3f"),
    "pairs": ("Pairs", ",.0f"), "threads": ("Threads", ".0f"), "speed_up": ("Speed-up", ".2f"),
    "collection": ("Collection", ""), "text": ("Text", ""), "method": ("Method", ""), "row": ("Row", ""),
    "at": ("At", ""), "idf": ("IDF", ""), "f1_interval": ("95 %", ""), "lost_interval": ("95 %", ""),
    "left_interval": ("95 %", ""), "unjudged_pairs": ("Unjudged", ",.0f"), "gap": ("− baseline, 95 %", ""),
}  # fmt: skip
"""Titles and formats of the columns that several tables have, by name."""


def titled(*names: str) -> list[Column]:
    """Return columns of `TITLES`."""
    return [Column(name=name, title=TITLES[name][0], form=TITLES[name][1]) for name in names]


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
    named : sequence of str
        Names of the columns that name a method, and of which a narrow table has a line above its rows.
    """

    caption: str
    columns: Sequence[Column]
    rows: Sequence[dict[str, Any]]
    notes: Sequence[str] = ()
    named: Sequence[str] = ()

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
        titles, cells = self.printed()
        sides = "".join("r" if column.form else "l" for column in self.columns if column.title)
        head, *body = (" & ".join(map(_tex, line)) + r" \\" for line in (titles, *cells))
        wide = sum(max(map(len, column)) + 1 for column in zip(titles, *cells, strict=True)) > COLUMN
        table = "table*" if wide else "table"
        lines = [r"% needs \usepackage{booktabs,graphicx}", *(f"% {note}" for note in self.notes)]
        caption = _tex(re.sub(r"^Table \d+: ", "", self.caption))
        lines += [rf"\begin{{{table}}}[t]", rf"\caption{{{caption}}}"]
        lines += [rf"\label{{tab:{label}}}", *SCALED, rf"\begin{{tabular}}{{{sides}}}", r"\toprule", head, r"\midrule"]
        return "\n".join([*lines, *body, r"\bottomrule", r"\end{tabular}%", "}", rf"\end{{{table}}}", ""])

    def text(self, width: int | None = None) -> str:
        """Return the table for a terminal, by default this one, in the first of its forms that fits the width.

        Columns with one value move to the caption; then heads and numbers are abbreviated; then each method is a line
        above its rows. Every form has the figures of quality.
        """
        width = width or shutil.get_terminal_size((160, 24)).columns
        forms = list(self._forms())
        shared, lines, heads = next((form for form in forms if max(map(len, form[1])) <= width), forms[-1])
        caption = f"{self.caption}. In all rows: {shared}" if shared else self.caption
        texts = caption, *self.notes, *([heads] if heads else [])
        caption, *notes = (textwrap.fill(text, width, break_long_words=False) for text in texts)
        return "\n".join([caption, "", *lines, *([""] if notes else []), *notes])

    def _forms(self) -> Iterator[tuple[str, list[str], str]]:
        """Yield forms, the widest first: the columns of the caption, the lines, and the meaning of short heads."""
        yield "", self.lines(), ""
        kept, shared = [], []
        for column in (column for column in self.columns if column.title):
            values = {column.printed(row) for row in self.rows}
            if len(values) == 1 and len(self.rows) > 1 and column.name not in QUALITY:
                shared += [f"{column.title.rstrip('*')} {value}" for value in values if value != ABSENT]
            else:
                kept.append(column)
        less, common = replace(self, columns=kept), ", ".join(shared)
        yield common, less.lines(), ""
        short = less._abbreviated()
        heads = {
            one.name: f"{one.title}: {other.title}"
            for one, other in zip(short.columns, kept, strict=True)
            if one.title not in other.title or other.title.endswith(")") > one.title.endswith(")")
        }
        yield common, short.lines(gap=" "), "; ".join(heads.values())
        named = {column.name: f"{column.name}=" * (column.title == column.name) for column in kept}
        named = {name: key for name, key in named.items() if name in self.named}
        if named:
            rest = [column for column in short.columns if column.name not in named]
            title, *rows = replace(short, columns=rest).lines(gap=" ")
            lines = [title]
            methods = (" ".join(f"{key}{row[name]}" for name, key in named.items()) for row in short.rows)
            for method, of in groupby(zip(methods, rows, strict=True), key=itemgetter(0)):
                lines += [method, *(line for _, line in of)]
            yield common, lines, "; ".join(text for name, text in heads.items() if name not in named)

    def _abbreviated(self) -> Table:
        """Return the table as text with short heads, and with numbers below 1 that begin with their point."""
        columns = []
        for column in self.columns:
            title = column.title.rstrip("*")
            columns.append(replace(column, title=SHORT.get(title, title)))
        rows = [
            {
                column.name: text if column.name in self.named and column.name != "idf" else _short(text)
                for column in columns
                for text in [column.printed(row)]
            }
            for row in self.rows
        ]
        return replace(self, columns=columns, rows=rows)

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


SHORT = {
    "Sort/Hash(msec)": "Hash", "Clust.(msec)": "Clust.", "Total(msec)": "Total", "Sort/Hash (ms)": "Hash",
    "Clust. (ms)": "Clust.", "Total (ms)": "Total", "#Spots": "Spots", "signature": "sig.",
    "− baseline, 95 %": "− baseline", "Macro F1": "Macro", "B-cubed F1": "B³", "Time (s)": "s", "Peak MB": "MB",
    "F1 − published": "− publ.", "F1 held out": "held o.",
}  # fmt: skip
"""Abbreviated heads of columns."""
SHORT_VALUES = {"measured": "", "published": "publ.", "default": "def.", "best = default": "both", ABSENT: "-"}


def _short(text: str) -> str:
    """Return a value as a narrow table has it, such as ``.8-.92`` for a band or an interval."""
    if (band := re.fullmatch(r"\[(\S+), (\S+)\]|(\d\S*) to (\d\S*)", text)) is not None:
        text = "-".join(filter(None, band.groups()))
    return SHORT_VALUES.get(text, re.sub(r"(?<!\d)0(?=\.\d)", "", text))


MATHS = {"τ": "tau", "ρ": "rho", "σ": "sigma", "α": "alpha", "≥": "ge", "≤": "le", "×": "times", "…": "dots"}
"""Signs beyond ASCII in tables, and their names in LaTeX."""


def _tex(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {"−": "$-$", "³": "$^3$", "†": r"$\dag$"}
    special |= {sign: f"\\{sign}" for sign in "&%$#_{}"}
    special |= {sign: f"$\\{word}$" for sign, word in MATHS.items()}
    return "".join(special.get(sign, sign) for sign in text)


def band_text(low: Any, high: Any) -> str:
    """Return an IDF band in the format of the paper."""
    return f"[{low:g}, {high:g}]"


def write_cells(folder: Path, cells: Iterable[Mapping[str, Any]]) -> None:
    """Write ``cells.parquet`` and ``cells.csv``; of equal cells the last one."""
    import pandas as pd

    key = ("collection", "data_seed", "method", "tau", "seed", "threads")
    rows = {tuple(cell.get(name) for name in key): cell for cell in cells}
    frame = pd.DataFrame(list(rows.values()))
    for suffix, write in ((".parquet", frame.to_parquet), (".csv", frame.to_csv)):
        with writing(folder), replacing(folder / f"cells{suffix}") as temporary:
            write(temporary, index=False)
