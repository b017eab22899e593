"""The end of a sweep: the paper's table with a row for each cell, and its quality over the threshold as a figure."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.claims.published import published_row
from experiments.show.table1_row import QUALITY, ROW, row_cell
from experiments.show.tables import Column, Table
from spotsigs.output_files import read_json
from spotsigs.runs.runner import COMPLETE
from spotsigs.runs.summary import shown_path

TIMES = ("sort_hash_ms", "cluster_ms", "total_ms")

PRINTED = ("row", "tau", "total_ms", *QUALITY, "best")
"""Columns of a narrow terminal, besides the swept keys."""

MEASURED, PUBLISHED = "measured", "published"

SHARED_TIMES = (
    "* Times and memory: cells ran at the same time, and those that differ in tau alone have the time of one join at "
    "the lowest tau; timing=true runs each cell alone."
)

Row = dict[str, Any]


def write_sweep(folder: Path, jobs: Sequence[Mapping[str, Any]]) -> str:
    """Write the table and the figure of a sweep; return the table and the paths.

    Parameters
    ----------
    folder : Path
        Receives ``sweep.csv``, ``sweep.md`` and ``sweep.tex``, the paper's columns, and ``quality.svg``,
        ``quality.png`` and ``quality.csv`` if the sweep has several thresholds and truth.
    jobs : sequence of mapping
        ``words``, the overrides, and ``folder`` of each finished cell.
    """
    table, swept = sweep_table(jobs), _swept(jobs)
    table.write(folder, "sweep")
    drawn = _draw(folder, table, swept)
    paths = [*([f"figure: {shown_path(drawn)}"] if drawn else []), f"sweep: {shown_path(folder)}"]
    return "\n".join(["", printed(table, swept), "", *paths])


def sweep_table(jobs: Sequence[Mapping[str, Any]]) -> Table:
    """Return the swept choices, as typed, and the columns of Table 1; published rows follow measured ones."""
    swept = _swept(jobs)
    rows: list[dict[str, Any]] = []
    for job in jobs:
        row = _row(job, swept)
        same = {key: value for key, value in row.items() if key not in ("folder", *TIMES)}
        if row["tau"] is None and any(same.items() <= other.items() for other in rows):
            continue  # a method without a threshold has one row
        rows.append(row)
        if (paper := _published(job)) is not None:
            rows.append(paper | {key: row[key] for key in swept} | {"row": PUBLISHED})
    rows = [row | {"best": ""} for row in rows]
    _mark_best(rows, swept)
    shared = any(row.get("shared") for row in rows)
    columns = [Column(name=key, title=key, form="g" if key == "tau" else "") for key in swept]
    if any(row["row"] == PUBLISHED for row in rows):
        columns.append(Column(name="row", title="Row"))
    for title, (key, form) in ROW.items():
        empty = all(row.get(key) is None for row in rows) and key in (*QUALITY, "k", "l")
        if key not in swept and not empty and f"matcher.{key}" not in swept:
            columns.append(Column(name=key, title=title + ("*" if shared and key in TIMES else ""), form=form))
    if any(row.get("best") for row in rows):
        columns.append(Column(name="best", title="Best"))
    folders = [Column(name="joined_at"), Column(name="folder")]
    notes = (SHARED_TIMES,) if shared else ()
    return Table(caption=f"{len(jobs)} cells", columns=[*columns, *folders], rows=rows, notes=notes)


def _swept(jobs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the keys whose values differ between cells, in the order of the command."""
    values: dict[str, set[str]] = {}
    for job in jobs:
        for word in job["words"]:
            key, _, value = word.lstrip("+").partition("=")
            values.setdefault(key, set()).add(value)
    return [key for key, found in values.items() if len(found) > 1]


def _row(job: Mapping[str, Any], swept: Sequence[str]) -> Row:
    """Return the row of a finished cell, by the keys of ``metrics.json`` and the swept keys."""
    folder = Path(job["folder"])
    metrics, contended = read_json(folder / COMPLETE), read_json(folder / "run.json")["contended"]
    typed = dict(word.lstrip("+").partition("=")[::2] for word in job["words"])
    figures = {key: metrics.get(key) for key, _ in ROW.values()}
    figures |= {"idf": row_cell(metrics, "IDF"), "joined_at": metrics.get("joined_at"), "folder": str(folder)}
    choices = {key: typed.get(key) for key in swept if key != "tau"}
    return {**choices, "row": MEASURED, **figures, "shared": contended or metrics.get("joined_at") is not None}


def _published(job: Mapping[str, Any]) -> Row | None:
    """Return the published row of a cell, if there is one."""
    paper = published_row(read_json(Path(job["folder"]) / COMPLETE), job["words"])
    return None if paper is None else {**paper, "idf": row_cell(paper, "IDF")}


def _mark_best(rows: Sequence[Row], swept: Sequence[str]) -> None:
    """Mark the row of the best F1 of each method: of the cells that differ in their threshold alone."""
    methods: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["row"] == MEASURED and row["f1"] is not None:
            methods.setdefault(_method(row, swept), []).append(row)
    for found in methods.values():
        if len(found) > 1:
            max(found, key=lambda row: row["f1"])["best"] = "*"


def _method(row: Row, swept: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[key] for key in swept if key != "tau")


def printed(table: Table, swept: Sequence[str]) -> str:
    """Return the table, or its main columns if the terminal is narrower; its files have the others."""
    widest = max(map(len, replace(table, notes=()).text().splitlines()))
    if widest <= shutil.get_terminal_size((160, 24)).columns:
        return table.text()
    shown = [replace(c, title=c.title if c.name in (*swept, *PRINTED) else "") for c in table.columns]
    return replace(table, columns=shown).text()


def _draw(folder: Path, table: Table, swept: Sequence[str]) -> Path | None:
    """Draw F1, precision and recall over tau, with the published points; None without several thresholds or truth."""
    rows = [row for row in table.rows if row["row"] == MEASURED and row["f1"] is not None]
    if len({row["tau"] for row in rows if row["tau"] is not None}) < 2:
        return None
    from experiments.show.figures import Mark, Panel, Point, draw_lines

    taus = sorted({row["tau"] for row in rows if row["tau"] is not None})
    titles = {"f1": "F1", "precision": "precision", "recall": "recall"}
    points = [
        Point(panel=title, series=" ".join(map(str, _method(row, swept))) or "F1", x=tau, y=row[key])
        for key, title in titles.items()
        for row in sorted(rows, key=lambda row: row["tau"] or 0)
        if row[key] is not None
        for tau in ([row["tau"]] if row["tau"] is not None else taus)
    ]
    papers = [row for row in table.rows if row["row"] == PUBLISHED]
    panels = [
        Panel(
            name=title,
            x_label="similarity threshold τ",
            y_label=title,
            y_range=(0, 1.05),
            x_ticks=taus if len(taus) < 8 else (),
            marks=[
                Mark(label=f"{row['method']} {row[key]:.2f}", x=row["tau"], y=row[key], side=side)
                for row, side in zip(papers, ("right", "below", "left") * len(papers), strict=False)
                if row.get(key) is not None
            ],
        )
        for key, title in titles.items()
    ]
    caption = "Quality over the threshold" + ("; stars and dashed lines are published" if papers else "")
    draw_lines(folder / "quality", panels, points, caption)
    return folder / "quality.png"
