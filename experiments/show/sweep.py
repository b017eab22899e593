"""The end of a sweep: the paper's table with a row for each cell, and quality over the threshold as a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os.path import relpath
from pathlib import Path
from typing import Any

from experiments.claims.published import published_row
from experiments.show.table1_row import ROW
from experiments.show.tables import MEASURED, PUBLISHED, QUALITY, TIMES, Column, Table, band_text, write_cells
from spotsigs.reports.output_files import read_json, write_json
from spotsigs.runs.provenance import provenance
from spotsigs.runs.summary import shown_path

FIGURES = (
    *(f"{key}_{end}" for key in QUALITY for end in ("low", "high")),
    *("macro_f1", "bcubed_precision", "bcubed_recall", "bcubed_f1"),
    *("stories", "stories_lost", "duplicates", "duplicates_left", "kept", "removed", "pairs", "peak_mb"),
)
"""Figures of a cell that the files have besides the columns of Table 1."""

SHARED_TIMES = (
    "* Times and memory: cells may have run at the same time, and those that differ in tau alone have the time of one "
    "join at the lowest tau; timing=true runs each cell alone."
)

MOST_VALUES = 8
"""Values of a key that a caption lists."""

Row = dict[str, Any]


def write_sweep(folder: Path, jobs: Sequence[Mapping[str, Any]], cells: Sequence[Row]) -> Iterator[str]:
    """Yield the table of a sweep; then write it, the cells and the figure, and yield the paths.

    A folder that has the same table by the same code keeps its files.

    Parameters
    ----------
    folder : Path
        Receives ``sweep.csv``, ``sweep.json``, ``sweep.md`` and ``sweep.tex``, ``cells.csv`` and ``cells.parquet``;
        ``quality.svg``, ``quality.png`` and ``quality.csv`` if the sweep has several thresholds and truth.
    jobs : sequence of mapping
        ``words``, the overrides, and ``folder`` of each finished cell.
    cells : sequence of dict
        Figures of each, see `experiments.harness.cells`.
    """
    swept = swept_keys(jobs)
    table = sweep_table(folder, jobs, cells)
    yield f"\n{table.text()}\n"
    names = [column.name for column in table.columns]
    rows = [{name: _defined(row.get(name)) for name in names} for row in table.rows]
    about = {"caption": table.caption, "rows": rows} | provenance()
    figure = folder / "quality.png" if _has_curve(table) else None
    if not _is_written(folder, about, figure):
        (folder / "sweep.json").unlink(missing_ok=True)
        table.write(folder, "sweep")
        write_cells(folder, cells)
        if figure is not None:
            _draw(folder, table, swept)
        write_json(folder / "sweep.json", about)  # the last file, which states that the others are complete
    if figure is not None:
        yield f"figure: {shown_path(figure)}"
    yield f"sweep: {shown_path(folder)}"


def _defined(value: Any) -> Any:
    """Return a figure, None if it is undefined."""
    return None if value != value else value


def _is_written(folder: Path, about: Mapping[str, Any], figure: Path | None) -> bool:
    """Return whether a folder has a table and a figure that the same code made of the same cells."""
    if about["dirty"] or not (folder / "sweep.json").is_file() or (figure is not None and not figure.is_file()):
        return False
    before = read_json(folder / "sweep.json")
    return all(before.get(key) == value for key, value in about.items() if key != "command")


def sweep_table(folder: Path, jobs: Sequence[Mapping[str, Any]], cells: Sequence[Row]) -> Table:
    """Return the swept choices, as typed, and the columns of Table 1; published rows follow measured ones."""
    swept = swept_keys(jobs)
    rows: list[Row] = []
    once: set[str] = set()
    for job, cell in zip(jobs, cells, strict=True):
        row = _row(folder, job, cell, swept)
        same = {key: value for key, value in row.items() if key not in ("folder", "peak_mb", *TIMES)}
        if row["tau"] is None and str(same) in once:
            continue  # a method without a threshold has one row
        once.add(str(same))  # as text, in which figures that are not defined are equal
        rows.append(row)
        if (paper := published_row(cell | {"data": cell["collection"]}, job["words"])) is not None:
            paper |= {"idf": band_text(paper["idf_min"], paper["idf_max"]), "row": PUBLISHED}
            rows.append(paper | {key: row[key] for key in swept})
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
    columns += [Column(name=name) for name in (*FIGURES, "joined_at", "folder")]
    notes = (SHARED_TIMES,) if shared else ()
    named = [key for key in swept if key != "tau"]
    return Table(caption=_caption(jobs, cells), columns=columns, rows=rows, notes=notes, named=named)


def typed(job: Mapping[str, Any]) -> dict[str, str]:
    """Return the overrides of a cell by key."""
    return dict(word.lstrip("+").partition("=")[::2] for word in job["words"])


def swept_keys(jobs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the keys whose values differ between cells, in the order of the command."""
    values: dict[str, set[str]] = {}
    for job in jobs:
        for key, value in typed(job).items():
            values.setdefault(key, set()).add(value)
    return [key for key, distinct in values.items() if len(distinct) > 1]


def _row(folder: Path, job: Mapping[str, Any], cell: Row, swept: Sequence[str]) -> Row:
    figures = {key: cell.get(key) for key in (*(key for key, _ in ROW.values()), *FIGURES, "joined_at")}
    figures |= {"idf": band_text(cell["idf_min"], cell["idf_max"]), "folder": relpath(job["folder"], folder)}
    choices = {key: typed(job).get(key) for key in swept if key != "tau"}
    shared = cell["contended"] or cell["joined_at"] is not None
    return {**choices, "row": MEASURED, **figures, "shared": shared}


def _caption(jobs: Sequence[Mapping[str, Any]], cells: Sequence[Row]) -> str:
    values: dict[str, dict[str, None]] = {key: {} for key in ("collection", "matcher", "signature", "tau")}
    for job, cell in zip(jobs, cells, strict=True):
        values_of = typed(job) | {key: cell[key] for key in ("collection", "matcher", "signature")}
        values_of |= {"tau": "" if cell["tau"] is None else f"{cell['tau']:g}"}
        for key in (*values, *swept_keys(jobs)):
            if key != "data" and values_of.get(key):
                values.setdefault(key, {})[values_of[key]] = None
    collections = ", ".join(values.pop("collection"))
    rest = (f"{key}={_value_list(list(distinct))}" for key, distinct in values.items() if distinct)
    return f"{len(jobs)} cells of {collections}: {'; '.join(rest)}"


def _value_list(values: Sequence[str]) -> str:
    few = len(values) <= MOST_VALUES
    return ", ".join(values) if few else f"{values[0]}, {values[1]}, ... {values[-1]} ({len(values)} values)"


def _mark_best(rows: Sequence[Row], swept: Sequence[str]) -> None:
    """Mark the row of the best F1 of each method: of the cells that differ in their threshold alone."""
    methods: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["row"] == MEASURED and row["f1"] is not None and row["f1"] > 0:  # not if it is undefined
            methods.setdefault(_method(row, swept), []).append(row)
    for of_method in methods.values():
        if len(of_method) > 1:
            max(of_method, key=lambda row: row["f1"])["best"] = "*"


def _method(row: Row, swept: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[key] for key in swept if key != "tau")


def _has_curve(table: Table) -> bool:
    """Return whether a table has several thresholds, and truth."""
    measured = [row for row in table.rows if row["row"] == MEASURED and row["f1"] is not None]
    return len({row["tau"] for row in measured} - {None}) > 1


def _draw(folder: Path, table: Table, swept: Sequence[str]) -> None:
    """Draw F1, precision and recall over tau, a panel for each method.

    Methods are in order of their best F1; the interval of F1 is a band, the published F1 a star or a line.
    """
    from experiments.show.by_method import draw_by_method
    from experiments.show.figures import Mark

    rows = [dict(row) for row in table.rows if row["f1"] is not None]
    marks: dict[str, list[Mark]] = {}
    for row in rows:
        row["method"] = ", ".join(map(str, _method(row, swept))) or "F1"
        if row["row"] == PUBLISHED:
            label = f"published F1 {row['f1']:.2f}".replace("0.", ".")
            marks.setdefault(row["method"], []).append(Mark(label=label, x=row["tau"], y=row["f1"], side="below"))
    measured = [row for row in rows if row["row"] == MEASURED]
    lines = {"F1": "f1", "precision": "precision", "recall": "recall"}
    draw_by_method(folder / "quality", measured, lines, marks=marks)
